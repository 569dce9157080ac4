"""Conditions that are carried and not looked into: their one text, their columns, and whether they can be trusted.

The text is Spark SQL, with every column under its own name from the schema and nothing of the table's name or of the
user's spelling left. It is read back and written again once, so that reading it gives the same text.
"""

from __future__ import annotations

import functools

import sqlglot
from sqlglot import exp

from skipstone.predicate.expression import columns_of
from skipstone.predicate.functions import CONTEXT_DEPENDENT_NAMES, CONTEXT_DEPENDENT_NODES
from skipstone.predicate.literal import Opaque
from skipstone.predicate.names import Names
from skipstone.predicate.values import column_parts

__all__ = ["is_deterministic", "opaque"]


def opaque(node: exp.Expression, names: Names, *, negated: bool) -> Opaque:
    """Carry a condition, or its negation, as text."""
    condition = node.unnest().copy()
    columns: set[str] = set()
    root = exp.Paren(this=condition)
    own = _outside_queries(root)
    for reference in own:
        found = names.find(column_parts(reference))
        columns |= columns_of(found)
        _rename(reference, [part.name for part in reference.parts], names)
    text = _stable(root.this.sql(dialect="spark", comments=False))
    if negated:
        text = f"NOT ({text})"
    return Opaque(text, frozenset(columns), is_deterministic(node))


def _outside_queries(root: exp.Expression) -> list[exp.Column]:
    """The column references of the condition itself: none of a subquery's, none that name a lambda's parameter."""
    found: list[exp.Column] = []
    pending: list[tuple[exp.Expression, frozenset[str]]] = [(root, frozenset())]
    while pending:
        node, bound = pending.pop()
        if isinstance(node, exp.Query):
            continue
        if isinstance(node, exp.Lambda):
            bound |= {parameter.name.lower() for parameter in node.expressions}
        if isinstance(node, exp.Column):
            if column_parts(node)[0].lower() not in bound:
                found.append(node)
            continue
        pending.extend((child, bound) for child in node.iter_expressions())
    return found


def _rename(reference: exp.Column, parts: list[str], names: Names) -> None:
    from skipstone.predicate.printing import sql

    replacement: exp.Expression = sqlglot.maybe_parse(sql(names.find(parts)), dialect="spark")
    reference.replace(replacement)


@functools.lru_cache(maxsize=4096)
def _stable(text: str) -> str:
    """Write a text again until reading it gives the same text; two rounds do for all that we have met."""
    for _ in range(4):
        again = sqlglot.parse_one(text, read="spark").sql(dialect="spark", comments=False)
        if again == text:
            return text
        text = again
    return text


def is_deterministic(node: exp.Expression) -> bool:
    """Whether a condition depends on nothing but the row.

    >>> is_deterministic(sqlglot.parse_one("my_udf(a) > 5")), is_deterministic(sqlglot.parse_one("rand() < 0.1"))
    (True, False)
    """
    for part in node.walk():
        if isinstance(part, CONTEXT_DEPENDENT_NODES):
            return False
        if isinstance(part, exp.Func) and _name(part) in CONTEXT_DEPENDENT_NAMES:
            return False
    return True


def _name(node: exp.Func) -> str:
    return str(node.this if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
