"""Conditions that are carried and not looked into: their one text, their columns, and whether they can be trusted.

The text is Spark SQL, with every column under its own name from the schema and nothing of the table's name or of the
user's spelling left. It is read back and written again once, so that reading it gives the same text.
"""

from __future__ import annotations

import functools
from typing import Final

import sqlglot
from sqlglot import exp

from skipstone.predicate.dialects import dialect_named
from skipstone.predicate.expression import columns_of
from skipstone.predicate.functions import CONTEXT_DEPENDENT_NAMES, CONTEXT_DEPENDENT_NODES, WRITTEN_AS_READ
from skipstone.predicate.literal import Opaque
from skipstone.predicate.names import Names
from skipstone.predicate.printing import sql
from skipstone.predicate.values import asked_at, column_parts

__all__ = ["depends_on_more_than_the_row", "is_deterministic", "opaque"]


def opaque(node: exp.Expression, names: Names, *, negated: bool) -> Opaque:
    """Carry a condition, or its negation, as text."""
    condition = node.unnest().copy()
    columns: set[str] = set()
    root = exp.Paren(this=condition)
    own = _outside_queries(root)
    for reference in own:
        found = names.find(column_parts(reference), asked_at(reference))
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
    replacement = sqlglot.parse_one(sql(names.find(parts)), read=dialect_named("spark"))
    reference.replace(replacement)


@functools.lru_cache(maxsize=4096)
def _stable(text: str) -> str:
    """Write a text again until reading it gives the same text; two rounds do for all that we have met."""
    for _ in range(4):
        again = sqlglot.parse_one(text, read=dialect_named("spark")).sql(dialect="spark", comments=False)
        if again == text:
            return text
        text = again
    return text


def is_deterministic(node: exp.Expression) -> bool:
    """Whether a condition depends on nothing but the row, and its text says just what was written.

    A text that sqlglot may have changed the meaning of is as good as one whose answer changes by itself: blocks must
    not be skipped by it.

    >>> is_deterministic(sqlglot.parse_one("my_udf(a) > 5")), is_deterministic(sqlglot.parse_one("rand() < 0.1"))
    (True, False)
    """
    return all(_depends_on_the_row(part) and _is_written_as_read(part) for part in node.walk())


def depends_on_more_than_the_row(node: exp.Expr) -> bool:
    """Whether chance, the clock, the session or other rows have a say in a condition.

    >>> depends_on_more_than_the_row(sqlglot.parse_one("day > CURRENT_DATE"))
    True
    """
    return not all(_depends_on_the_row(part) for part in node.walk())


def _depends_on_the_row(node: exp.Expr) -> bool:
    if isinstance(node, CONTEXT_DEPENDENT_NODES):
        return False
    if isinstance(node, exp.Anonymous) and not node.expressions:
        return False  # of a function that we do not know and that is given nothing, the clock is the likeliest source
    name = node.name.lower() if isinstance(node, exp.Anonymous) else type(node).__name__.lower()
    # unix_timestamp(moment) is a function of the moment; without one it is the clock's.
    return name not in CONTEXT_DEPENDENT_NAMES or (
        name in _OF_THE_CLOCK_ONLY_WITHOUT_ARGUMENTS and bool(node.expressions)
    )


_OF_THE_CLOCK_ONLY_WITHOUT_ARGUMENTS: Final = ("unix_timestamp", "to_unix_timestamp")


def _is_written_as_read(node: exp.Expr) -> bool:
    if isinstance(node, exp.Bracket):
        return not node.args.get("offset")
    if isinstance(node, exp.Cast):  # TRY_CAST is one as well
        return not (node.args.get("format") or node.args.get("default"))
    return isinstance(node, _WRITTEN_AS_READ) or type(node).__name__ in WRITTEN_AS_READ


_WRITTEN_AS_READ: Final = (
    exp.Add,
    exp.All,
    exp.And,
    exp.Anonymous,
    exp.Any,
    exp.Between,
    exp.BitwiseAnd,
    exp.BitwiseNot,
    exp.BitwiseOr,
    exp.BitwiseXor,
    exp.Boolean,
    exp.Case,
    exp.Collate,
    exp.Column,
    exp.DPipe,
    exp.DataType,
    exp.DataTypeParam,
    exp.Div,
    exp.Dot,
    exp.EQ,
    exp.Escape,
    exp.GT,
    exp.GTE,
    exp.HexString,
    exp.ILike,
    exp.Identifier,
    exp.In,
    exp.IntDiv,
    exp.Is,
    exp.LT,
    exp.LTE,
    exp.Lambda,
    exp.Like,
    exp.Literal,
    exp.Mod,
    exp.Mul,
    exp.NEQ,
    exp.Neg,
    exp.Not,
    exp.Null,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Or,
    exp.Paren,
    exp.RawString,
    exp.RegexpLike,
    exp.Sub,
    exp.Tuple,
    exp.Var,
)
"""Nodes that are no calls and have but one way of being written."""
