"""What kind of values an Arrow type holds, and in which type Spark compares two of them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from skipstone.errors import CannotEvaluate

__all__ = ["Family", "common_type", "family_of", "integer_digits"]

MAX_DECIMAL_DIGITS = 38


class Family(enum.Enum):
    """Types whose values mean the same thing and differ in width or encoding only."""

    NULL = "null"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "floating point"
    DECIMAL = "decimal"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    INSTANT = "timestamp"
    """A point on the time line: Spark's TIMESTAMP, Arrow's timestamp with a zone (whichever zone it is shown in)."""
    WALL_CLOCK = "timestamp without time zone"
    DURATION = "interval"
    NESTED = "nested"
    OTHER = "other"

    @property
    def is_exact_number(self) -> bool:
        """Whether every value is an exact decimal number."""
        return self in (Family.INTEGER, Family.DECIMAL)

    @property
    def is_number(self) -> bool:
        """Whether values are numbers."""
        return self.is_exact_number or self is Family.FLOAT

    @property
    def is_ordered(self) -> bool:
        """Whether `<` is defined and we know Spark's order."""
        return self not in (Family.NESTED, Family.OTHER)


_TESTS: tuple[tuple[Family, Callable[[Any], bool]], ...] = (
    (Family.NULL, pa.types.is_null),
    (Family.BOOLEAN, pa.types.is_boolean),
    (Family.INTEGER, pa.types.is_integer),
    (Family.FLOAT, pa.types.is_floating),
    (Family.DECIMAL, pa.types.is_decimal),
    (Family.STRING, lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t)),
    (
        Family.BINARY,
        lambda t: (
            pa.types.is_binary(t)
            or pa.types.is_large_binary(t)
            or pa.types.is_binary_view(t)
            or pa.types.is_fixed_size_binary(t)
        ),
    ),
    (Family.DATE, pa.types.is_date),
    (Family.INSTANT, lambda t: pa.types.is_timestamp(t) and t.tz is not None),
    (Family.WALL_CLOCK, pa.types.is_timestamp),
    (Family.DURATION, pa.types.is_duration),
    (Family.NESTED, pa.types.is_nested),
)


def family_of(type_: pa.DataType) -> Family:
    """Name the family of a type; encodings (dictionary, run ends) take that of their values.

    >>> family_of(pa.dictionary(pa.int32(), pa.string()))
    <Family.STRING: 'string'>
    >>> family_of(pa.timestamp("ns", "Europe/Stockholm"))
    <Family.INSTANT: 'timestamp'>
    """
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return family_of(type_.value_type)
    return next((family for family, test in _TESTS if test(type_)), Family.OTHER)


def integer_digits(type_: pa.DataType) -> int:
    """Say how many decimal digits Spark grants an integer type when it meets a decimal.

    >>> integer_digits(pa.int32())
    10
    """
    return {8: 3, 16: 5, 32: 10, 64: 20}[type_.bit_width]


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Find the type in which Spark (in ANSI mode) compares two values, or raise CannotEvaluate.

    A bigint and a double meet as doubles, and so does an integer and a float; a decimal meets an integer exactly.

    >>> common_type(pa.int64(), pa.float32())
    DataType(double)
    >>> common_type(pa.decimal128(9, 2), pa.int32())
    Decimal128Type(decimal128(12, 2))
    """
    if left.equals(right):
        return left
    one, other = family_of(left), family_of(right)
    if one is Family.NULL:
        return right
    if other is Family.NULL:
        return left
    if one.is_number and other.is_number:
        return _common_number(left, right)
    if one is other and one.is_ordered:
        return _wider_of_one_family(one, left, right)
    if {one, other} == {Family.DATE, Family.WALL_CLOCK}:
        return pa.timestamp("us")
    if {one, other} <= {Family.DATE, Family.WALL_CLOCK, Family.INSTANT}:
        return pa.timestamp("us", "UTC")
    raise CannotEvaluate(f"it compares {left} with {right}, which Spark converts by rules of its own")


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    one, other = family_of(left), family_of(right)
    if Family.FLOAT in (one, other):
        return pa.float64()
    if one is other is Family.INTEGER:
        return left if left.bit_width >= right.bit_width else right
    (left_precision, left_scale), (right_precision, right_scale) = _decimal_shape(left), _decimal_shape(right)
    scale = max(left_scale, right_scale)
    precision = scale + max(left_precision - left_scale, right_precision - right_scale)
    if precision > MAX_DECIMAL_DIGITS:
        raise CannotEvaluate(f"it compares {left} with {right}, which have no common decimal of 38 digits")
    return pa.decimal128(precision, scale)


def _decimal_shape(type_: pa.DataType) -> tuple[int, int]:
    if pa.types.is_integer(type_):
        return integer_digits(type_), 0
    return type_.precision, type_.scale


def _wider_of_one_family(family: Family, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if family in (Family.INSTANT, Family.WALL_CLOCK, Family.DURATION):
        finest = max((left, right), key=lambda t: ("s", "ms", "us", "ns").index(t.unit))
        if family is Family.DURATION:
            return pa.duration(finest.unit)
        return pa.timestamp(finest.unit, None if family is Family.WALL_CLOCK else "UTC")
    if family is Family.DATE:
        return pa.date32()
    if family is Family.STRING:
        return pa.large_string() if pa.large_string() in (left, right) else pa.string()
    return pa.large_binary() if pa.large_binary() in (left, right) else pa.binary()
