"""What a filter talks about: columns, fields, elements, function calls and typed constants, as frozen values.

An expression here is always bound: its columns exist in a schema and its type is known. The same expression as a user
wrote it is sqlglot's tree; `skipstone.predicate.binding` is the only door between the two. Equal expressions are equal
values, and `sql(expression)` in `skipstone.predicate.printing` gives each its one canonical text.

Types are Arrow's, because every file and every batch we meet speaks Arrow.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

__all__ = [
    "Call",
    "Cast",
    "Column",
    "Constant",
    "Element",
    "Expression",
    "Field",
    "Scalar",
    "columns_of",
    "walk",
]

Scalar: TypeAlias = (
    bool | int | float | decimal.Decimal | str | bytes | datetime.date | datetime.datetime | datetime.timedelta | None
)
"""The Python values a constant may hold.

Timestamps are `datetime` in microseconds: aware and in UTC where the type has a zone, naive where it has none.
"""


@dataclass(frozen=True, slots=True)
class Column:
    """A top-level column, by the exact name it has in the schema."""

    name: str
    type: pa.DataType

    def __hash__(self) -> int:
        # Hashing an Arrow type writes it out as text; names alone tell expressions apart well enough.
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct: `s.f`."""

    base: Expression
    name: str
    type: pa.DataType

    def __hash__(self) -> int:
        return hash((self.base, self.name))


@dataclass(frozen=True, slots=True)
class Element:
    """The value under a key of a map or at a position of a list: `m['k']`, `a[0]`."""

    base: Expression
    key: Constant
    type: pa.DataType

    def __hash__(self) -> int:
        return hash((self.base, self.key))


@dataclass(frozen=True, slots=True)
class Constant:
    """A typed constant. Two constants are equal when both value and type are: `1`, `1.0` and `true` are three.

    >>> Constant(1, pa.int64()) == Constant(True, pa.bool_())
    False
    >>> Constant(float("nan"), pa.float64()) == Constant(float("nan"), pa.float64())
    True
    """

    value: Scalar
    type: pa.DataType

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant) or self.type != other.type:
            return False
        # NaN equals itself here, as it does in Spark and DuckDB; -0.0 equals 0.0 there and here alike.
        return self.value == other.value or (self.is_nan and other.is_nan)

    def __hash__(self) -> int:
        return hash(None if self.value != self.value else self.value)  # NaN is not itself

    @property
    def is_nan(self) -> bool:
        """Whether this is the one constant that no IEEE comparison finds."""
        return isinstance(self.value, float) and self.value != self.value

    @property
    def is_null(self) -> bool:
        """Whether this is a NULL of its type."""
        return self.value is None


@dataclass(frozen=True, slots=True)
class Cast:
    """A value converted to another type: `CAST(c AS BIGINT)`. `safe` casts (TRY_CAST) give NULL where others fail."""

    base: Expression
    type: pa.DataType
    safe: bool = False

    def __hash__(self) -> int:
        return hash(("cast", self.base))


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator applied to arguments, by its lower-case name: `length(c)`, `add(a, b)`.

    Arithmetic is `add`, `sub`, `mul`, `div`, `mod`, `neg`; other functions keep the name Spark gives them.
    """

    name: str
    arguments: tuple[Expression, ...]
    type: pa.DataType

    def __hash__(self) -> int:
        return hash((self.name, self.arguments))


Expression: TypeAlias = Column | Field | Element | Constant | Cast | Call


def walk(expression: Expression) -> Iterator[Expression]:
    """Visit an expression and everything in it, outermost first.

    >>> c = Column("c", pa.string())
    >>> [type(e).__name__ for e in walk(Call("length", (c,), pa.int32()))]
    ['Call', 'Column']
    """
    yield expression
    match expression:
        case Field(base=base) | Cast(base=base):
            yield from walk(base)
        case Element(base=base, key=key):
            yield from walk(base)
            yield key
        case Call(arguments=arguments):
            for argument in arguments:
                yield from walk(argument)
        case Column() | Constant():
            pass


def columns_of(expression: Expression) -> frozenset[str]:
    """Name the top-level columns that an expression reads.

    >>> sorted(columns_of(Call("add", (Column("a", pa.int64()), Column("b", pa.int64())), pa.int64())))
    ['a', 'b']
    """
    return frozenset(part.name for part in walk(expression) if isinstance(part, Column))
