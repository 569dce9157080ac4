"""A filter on its way to canonical form: literals joined by AND and OR, every NOT already pushed into them.

A formula stands for the rows that make it TRUE, and for nothing else. That is sound because NOT is resolved before a
formula exists: AND and OR are TRUE exactly where all, or any, of their parts are TRUE, so a part that is FALSE and a
part that is NULL are alike from here on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from skipstone.predicate.expression import Constant, Expression
from skipstone.predicate.literal import Comparison, InSet, Literal, Match, NullTest, Opaque, Operator

__all__ = ["ALWAYS_TRUE", "NEVER_TRUE", "AllOf", "AnyOf", "Formula", "all_of", "any_of", "not_true"]


@dataclass(frozen=True, slots=True)
class AllOf:
    """TRUE where every part is; without parts always."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """TRUE where some part is; without parts never."""

    parts: tuple[Formula, ...]


Formula: TypeAlias = Literal | AllOf | AnyOf

ALWAYS_TRUE = AllOf(())
NEVER_TRUE = AnyOf(())


def all_of(parts: Iterable[Formula]) -> Formula:
    """Join with AND, flattening nested ones.

    >>> all_of([ALWAYS_TRUE, NEVER_TRUE]) == NEVER_TRUE
    True
    """
    flat: list[Formula] = []
    for part in parts:
        if isinstance(part, AllOf):
            flat.extend(part.parts)
        elif part == NEVER_TRUE:
            return NEVER_TRUE
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def any_of(parts: Iterable[Formula]) -> Formula:
    """Join with OR, flattening nested ones.

    >>> any_of([ALWAYS_TRUE, NEVER_TRUE]) == ALWAYS_TRUE
    True
    """
    flat: list[Formula] = []
    for part in parts:
        if isinstance(part, AnyOf):
            flat.extend(part.parts)
        elif part == ALWAYS_TRUE:
            return ALWAYS_TRUE
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else AnyOf(tuple(flat))


def not_true(formula: Formula) -> Formula:
    """The rows for which a formula is FALSE or NULL: `P IS NOT TRUE`, the complement and not the negation.

    >>> import pyarrow as pa
    >>> from skipstone.predicate.expression import Column
    >>> x = Column("x", pa.int64())
    >>> isinstance(not_true(Comparison(Operator.LESS, x, Constant(5, pa.int64()))), AnyOf)  # x >= 5 OR x IS NULL
    True
    """
    match formula:
        case AllOf(parts=parts):
            return any_of(not_true(part) for part in parts)
        case AnyOf(parts=parts):
            return all_of(not_true(part) for part in parts)
        case NullTest(expression=expression, negated=negated):
            return NullTest(expression, not negated)
        case Comparison(operator=operator, left=left, right=right):
            opposite = Comparison(operator.negated, left, right)
            if isinstance(right, Constant) and isinstance(right.value, bool) and operator is Operator.EQUAL:
                opposite = Comparison(Operator.EQUAL, left, Constant(not right.value, right.type))
            if operator in (Operator.NULL_SAFE_EQUAL, Operator.NULL_SAFE_NOT_EQUAL):
                return opposite
            return any_of([opposite, *_nulls(left), *_nulls(right)])
        case InSet(expression=expression, values=values, negated=negated):
            return any_of([InSet(expression, values, not negated), *_nulls(expression)])
        case Match(kind=kind, expression=expression, pattern=pattern, negated=negated):
            return any_of([Match(kind, expression, pattern, not negated), *_nulls(expression)])
        case Opaque(text=text, columns=columns, deterministic=deterministic):
            return Opaque(f"NOT (COALESCE({text}, FALSE))", columns, deterministic)


def _nulls(expression: Expression) -> tuple[Literal, ...]:
    return () if isinstance(expression, Constant) else (NullTest(expression),)
