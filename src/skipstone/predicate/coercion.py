"""What a comparison with a constant says about the values that a type can hold.

`quantity > 5.5` on an integer column is `quantity > 5`, and `quantity = 5.5` is TRUE for no row. Every ordered type
here is a lattice of values; a constant is placed at its greatest lattice value not above it (`floor`), and the operator
is chosen so that exactly the same lattice values satisfy it. What is said holds for the TRUE rows only, so it may be
applied only where no NOT stands above (see `skipstone.predicate.formula`).
"""

from __future__ import annotations

import datetime
import decimal
import math
import operator as op
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

from skipstone.predicate.datatypes import DATE, DOUBLE, FLOAT, integer_range, logical
from skipstone.predicate.expression import Constant, Expression, Scalar
from skipstone.predicate.formula import NEVER_TRUE, Formula, any_of
from skipstone.predicate.literal import Comparison, NullTest, Operator

__all__ = [
    "EPOCH",
    "EPOCH_DATE",
    "Place",
    "compare",
    "decimal_at",
    "exact_fraction",
    "holds",
    "nearest_double",
    "place",
]

EPOCH = datetime.datetime(1970, 1, 1)
EPOCH_DATE = datetime.date(1970, 1, 1)

# A double has at most 767 significant digits, so nothing is rounded here.
_EXACT = decimal.Context(prec=2000, Emin=-100_000, Emax=100_000)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a constant falls among the values of a type: at `floor`, or strictly between it and the next value.

    `floor` is None where the constant lies below all values; `above` says that it lies above all of them.
    """

    floor: Constant | None
    exact: bool
    above: bool = False


def compare(operator: Operator, left: Expression, place: Place) -> Formula:
    """Say `left operator constant` with a value that left can hold.

    >>> from skipstone.predicate.expression import Column
    >>> x = Column("x", pa.int32())
    >>> compare(Operator.GREATER_EQUAL, x, Place(Constant(5, pa.int32()), exact=False))
    Comparison(operator=<Operator.GREATER: '>'>, left=Column(name='x', ...), right=Constant(value=5, ...))
    >>> compare(Operator.EQUAL, x, Place(Constant(5, pa.int32()), exact=False)) == NEVER_TRUE
    True
    """
    known: Formula = NullTest(left, negated=True)
    if operator is Operator.NULL_SAFE_EQUAL:
        operator = Operator.EQUAL
    if operator is Operator.NULL_SAFE_NOT_EQUAL:
        return any_of([compare(Operator.NOT_EQUAL, left, place), NullTest(left)])
    if operator is Operator.EQUAL or operator is Operator.NOT_EQUAL:
        if place.exact and place.floor is not None:
            return _comparison(operator, left, place.floor)
        return NEVER_TRUE if operator is Operator.EQUAL else known
    wants_less = operator in (Operator.LESS, Operator.LESS_EQUAL)
    if place.floor is None:
        return NEVER_TRUE if wants_less else known
    if place.above:
        return known if wants_less else NEVER_TRUE
    if not place.exact:
        operator = Operator.LESS_EQUAL if wants_less else Operator.GREATER
    return _comparison(operator, left, place.floor)


def _comparison(operator: Operator, left: Expression, constant: Constant) -> Formula:
    if isinstance(constant.value, bool):
        return _boolean(operator, left, constant)
    if constant.is_nan:
        return _with_nan(operator, left, constant)
    if constant.value == 0 and isinstance(constant.value, float):
        constant = Constant(0.0, constant.type)  # -0.0 equals 0.0, and one text must stand for both
    return Comparison(operator, left, constant)


def _boolean(operator: Operator, left: Expression, constant: Constant) -> Formula:
    """Two values leave only four questions: never, always, is true, is false."""
    allowed = [value for value in (False, True) if holds(operator, value, constant.value)]
    if len(allowed) == 1:
        return Comparison(Operator.EQUAL, left, Constant(allowed[0], constant.type))
    return NullTest(left, negated=True) if allowed else NEVER_TRUE


_HOLDS: Final[dict[Operator, Callable[[Any, Any], bool]]] = {
    Operator.EQUAL: op.eq,
    Operator.NOT_EQUAL: op.ne,
    Operator.LESS: op.lt,
    Operator.LESS_EQUAL: op.le,
    Operator.GREATER: op.gt,
    Operator.GREATER_EQUAL: op.ge,
}


def holds(operator: Operator, left: Any, right: Any) -> bool:
    """Compare two values that Python orders as Spark does.

    >>> holds(Operator.LESS, 1, 2)
    True
    """
    return _HOLDS[operator](left, right)


def _with_nan(operator: Operator, left: Expression, nan: Constant) -> Formula:
    """NaN is the greatest value and equals itself: `x > NaN` never, `x <= NaN` for all known x."""
    if operator is Operator.GREATER:
        return NEVER_TRUE
    if operator is Operator.LESS_EQUAL:
        return NullTest(left, negated=True)
    if operator is Operator.GREATER_EQUAL:
        return Comparison(Operator.EQUAL, left, nan)
    if operator is Operator.LESS:
        return Comparison(Operator.NOT_EQUAL, left, nan)
    return Comparison(operator, left, nan)


def exact_fraction(value: int | float | decimal.Decimal) -> Fraction:
    """The number itself, without rounding. Fails for NaN and infinities."""
    return Fraction(value)


def place(value: Scalar, type_: pa.DataType) -> Place | None:
    """Place a constant among the values of a type, or say None where the two do not belong together.

    Numbers are compared as real numbers, dates and timestamps as points of one clock. Which pairs of SQL types mean
    just that in Spark is `skipstone.predicate.binding`'s to know.

    >>> place(decimal.Decimal("0.055"), pa.decimal128(9, 2))
    Place(floor=Constant(value=Decimal('0.05'), type=Decimal128Type(decimal128(9, 2))), exact=False, above=False)
    >>> place(300, pa.int8()).above
    True
    """
    type_ = logical(type_)
    if isinstance(value, bool):
        return Place(Constant(value, type_), exact=True) if pa.types.is_boolean(type_) else None
    if isinstance(value, (int, decimal.Decimal, float)):
        return _place_number(value, type_)
    if isinstance(value, str):
        return Place(Constant(value, type_), exact=True) if pa.types.is_string(type_) else None
    if isinstance(value, bytes):
        return Place(Constant(value, type_), exact=True) if pa.types.is_binary(type_) else None
    if isinstance(value, datetime.datetime):
        return _place_instant(value, type_)
    if isinstance(value, datetime.date):
        return Place(Constant(value, type_), exact=True) if type_ == DATE else None
    return None


def _place_number(value: int | decimal.Decimal | float, type_: pa.DataType) -> Place | None:
    if isinstance(value, float) and not math.isfinite(value):
        return _place_non_finite(value, type_)
    if pa.types.is_integer(type_):
        least, greatest = integer_range(type_)
        floor = math.floor(value)
        if floor < least:
            return Place(None, exact=False)
        if floor > greatest:
            return Place(Constant(greatest, type_), exact=False, above=True)
        return Place(Constant(floor, type_), exact=floor == value)
    if pa.types.is_decimal(type_):
        scaled = _EXACT.scaleb(decimal.Decimal(value), type_.scale)
        unscaled = math.floor(scaled)
        greatest = 10**type_.precision - 1
        if unscaled < -greatest:
            return Place(None, exact=False)
        if unscaled > greatest:
            return Place(Constant(decimal_at(greatest, type_.scale), type_), exact=False, above=True)
        return Place(Constant(decimal_at(unscaled, type_.scale), type_), exact=unscaled == scaled)
    if type_ == DOUBLE:
        return Place(Constant(nearest_double(value), type_), exact=True)
    if type_ == FLOAT:
        return _place_in_float32(nearest_double(value))
    return None


def _place_non_finite(value: float, type_: pa.DataType) -> Place | None:
    if type_ in (DOUBLE, FLOAT):
        return Place(Constant(value, type_), exact=True)
    if pa.types.is_integer(type_) or pa.types.is_decimal(type_):
        if value == -math.inf:
            return Place(None, exact=False)
        return Place(Constant(0, type_), exact=False, above=True)
    return None


def nearest_double(value: int | decimal.Decimal | float) -> float:
    """The double that Spark casts a number to: the nearest, ties to even; beyond the range an infinity.

    >>> nearest_double(decimal.Decimal("0.05"))
    0.05
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _place_in_float32(value: float) -> Place:
    """Place a double among single floats: both are compared as doubles, and every single float is one."""
    if not math.isfinite(value):
        return Place(Constant(value, FLOAT), exact=True)
    try:
        single = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        single = math.inf if value > 0 else -math.inf
    if single > value:
        single = _float32_below(single)
    return Place(Constant(single, FLOAT), exact=single == value)


def _float32_below(value: float) -> float:
    """The next single float towards minus infinity."""
    if value == 0.0:
        return -struct.unpack("<f", struct.pack("<I", 1))[0]  # type: ignore[no-any-return]
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits += -1 if value > 0 else 1
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def _place_instant(value: datetime.datetime, type_: pa.DataType) -> Place | None:
    if pa.types.is_timestamp(type_) and (type_.tz is None) == (value.tzinfo is None):
        return Place(Constant(value, type_), exact=True)
    if type_ == DATE:
        midnight = value.replace(tzinfo=None)
        return Place(Constant(midnight.date(), DATE), exact=midnight.time() == datetime.time())
    return None


def decimal_at(unscaled: int, scale: int) -> decimal.Decimal:
    """Build a decimal from its unscaled integer, exactly.

    >>> decimal_at(550, 2)
    Decimal('5.50')
    """
    return _EXACT.scaleb(decimal.Decimal(unscaled), -scale)
