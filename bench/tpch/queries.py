"""Streams of TPC-H queries: seeded, by template, with training and test streams that share nothing but their rules."""

from __future__ import annotations

import random
from collections.abc import Sequence
from enum import Enum

from bench.query import Query
from bench.tpch.parameters import RULES, Chooser
from bench.tpch.templates import NORMALISED, WIDE

SKEW_IN_THE_DISSERTATION = 3.0
"""The Zipf factor of TPC-H Skewed, section 3.7.2: the most frequent of five regions is in 84.3 % of the queries."""


class Schema(Enum):
    """The tables that a query is written over."""

    NORMALISED = "normalised"
    """The eight tables of the specification, with joins."""

    WIDE = "wide"
    """The single table `denorm`."""

    @property
    def templates(self) -> dict[str, str]:
        """Return the templates that have a form over this schema."""
        return WIDE if self is Schema.WIDE else NORMALISED


def queries(
    templates: Sequence[str],
    per_template: int,
    *,
    seed: int,
    stream: str = "train",
    schema: Schema = Schema.WIDE,
    skew: float = 0.0,
    scale: float = 1.0,
) -> tuple[Query, ...]:
    """Return `per_template` queries of each template in a shuffled order.

    Streams of different names are independent. With a `skew`, constants other than dates follow Zipf; which of them are
    popular depends on the seed alone, so that a test stream likes what its training stream liked.

    >>> for query in queries(("q14", "q6"), 1, seed=7, stream="test"):
    ...     print(query.template, dict(query.parameters))
    q6 {'DATE': '1995-01-01', 'DISCOUNT': '0.08', 'QUANTITY': '24'}
    q14 {'DATE': '1993-08-01'}
    """
    made = [
        _query(template, number, seed, stream, schema, skew, scale)
        for template in templates
        for number in range(per_template)
    ]
    random.Random(f"{seed}/{stream}/order").shuffle(made)
    return tuple(made)


def _query(template: str, number: int, seed: int, stream: str, schema: Schema, skew: float, scale: float) -> Query:
    """Return one query; its constants depend on its own number and on no other query."""
    if template not in schema.templates:
        known = ", ".join(schema.templates)
        raise ValueError(f"template {template!r} has no form over the {schema.value} schema; there are {known}")
    rng = random.Random(f"{seed}/{stream}/{template}/{number}")
    parameters = RULES[template](Chooser(rng, skew, ranking_seed=str(seed)), scale)
    sql = schema.templates[template].format(**parameters).strip()
    return Query(template, sql, tuple(parameters.items()))
