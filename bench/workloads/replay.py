"""A stream of inserts and scans in the order of time, after the replay evaluation of Tufă's thesis (chapter 6).

Orders arrive in the order of their dates, a share at a time, and scans come in between. At `drift_at` the users'
interest changes from one set of templates to another, which is what a system that watches its workload has to notice.
Only the shape is the thesis's; its tables and queries are not public.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

from bench.query import Query
from bench.tpch.queries import queries

SCANS_IN_THE_THESIS = 135
FIRST_ORDER, LAST_ORDER = date(1992, 1, 1), date(1998, 8, 2)
BEFORE, AFTER = ("q5", "q6", "q10", "q14"), ("q3", "q8", "q12", "q19")


@dataclass(frozen=True, slots=True)
class Insert:
    """Append the rows of the wide table with this filter: the orders of a run of days."""

    number: int
    where: str


@dataclass(frozen=True, slots=True)
class Scan:
    """Ask a query over what has been inserted so far."""

    query: Query


Event = Insert | Scan


def replay(
    inserts: int = 26,
    scans: int = SCANS_IN_THE_THESIS,
    *,
    seed: int,
    drift_at: float = 0.5,
    templates: tuple[Sequence[str], Sequence[str]] = (BEFORE, AFTER),
) -> tuple[Event, ...]:
    """Return inserts in the order of dates with scans spread between them; the first event is an insert.

    >>> [type(event).__name__ for event in replay(2, 3, seed=1)]
    ['Insert', 'Scan', 'Insert', 'Scan', 'Scan']
    """
    rng = random.Random(f"replay/{seed}")
    asked = [*_scans(templates[0], round(scans * drift_at), seed, "before")]
    asked += _scans(templates[1], scans - len(asked), seed, "after")
    # A scan lies somewhere in the run of inserts; sorted places keep the order in which scans were asked.
    places = sorted(rng.randrange(inserts) for _ in asked)
    events: list[Event] = []
    for number, where in enumerate(_shares(inserts)):
        events.append(Insert(number, where))
        events.extend(Scan(query) for query, place in zip(asked, places, strict=True) if place == number)
    return tuple(events)


def _scans(templates: Sequence[str], count: int, seed: int, stream: str) -> tuple[Query, ...]:
    per_template = -(-count // len(templates))
    return queries(templates, per_template, seed=seed, stream=f"replay/{stream}")[:count]


def _shares(count: int) -> list[str]:
    """Return filters that cut the order dates into `count` runs of days; together they hold every order once."""
    days = (LAST_ORDER - FIRST_ORDER).days + 1
    bounds = [FIRST_ORDER + timedelta(days * share // count) for share in range(count + 1)]
    return [f"o_orderdate >= date '{first}' and o_orderdate < date '{after}'" for first, after in pairwise(bounds)]
