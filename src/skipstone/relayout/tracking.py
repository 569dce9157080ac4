"""Which columns and expressions the catalog keeps bounds of, for every block."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from skipstone.predicate.expression import Call, Cast, Column, Expression, Field
from skipstone.predicate.literal import Comparison, Conjunction, InSet, Literal, Match, NullTest
from skipstone.predicate.printing import sql
from skipstone.store.statistics import Tracked

__all__ = ["tracked_columns", "tracked_expressions"]

MOST_TRACKED = 64
"""Bounds are kept of at most so many columns that no workload has asked for; of those it asks for, always."""


def tracked_columns(schema: pa.Schema, limit: int = MOST_TRACKED) -> tuple[Tracked, ...]:
    """The first columns whose values have an order.

    >>> [one.text for one in tracked_columns(pa.schema([("day", pa.date32()), ("tags", pa.list_(pa.string()))]))]
    ['day']
    """
    ordered = [field for field in schema if _has_order(field.type)]
    return tuple(_tracked(Column(field.name, field.type)) for field in ordered[:limit])


def tracked_expressions(schema: pa.Schema, filters: Iterable[Conjunction]) -> tuple[Tracked, ...]:
    """The columns and expressions that filters look at, and the columns that are tracked in any case."""
    found: dict[str, Tracked] = {}
    for condition in filters:
        for predicate in condition:
            for literal in predicate.literals:
                for expression in _sides(literal):
                    if isinstance(expression, (Column, Field, Cast, Call)) and _has_order(expression.type):
                        one = _tracked(expression)
                        found.setdefault(one.text, one)
    for one in tracked_columns(schema):
        found.setdefault(one.text, one)
    return tuple(found.values())


def _tracked(expression: Expression) -> Tracked:
    return Tracked(sql(expression), expression)


def _sides(literal: Literal) -> tuple[Expression, ...]:
    match literal:
        case Comparison(left=left, right=right):
            return (left, right)
        case InSet(expression=expression) | Match(expression=expression) | NullTest(expression=expression):
            return (expression,)
        case _:
            return ()


def _has_order(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _has_order(kind.value_type)
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind))
