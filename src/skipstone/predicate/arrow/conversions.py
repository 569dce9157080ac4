"""Values of one Arrow type as values of another, with Spark's meaning, or an honest refusal.

A conversion is offered only where Spark's result and Arrow's are the same value for every row it accepts. What
differs for some rows only (text that is not plainly a number, a bigint that does not fit an int) is checked when rows
are there, and the whole batch is refused if one such row is found: in ANSI mode Spark fails on it, else it gives NULL
or wraps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import CannotEvaluate
from skipstone.predicate.arrow.families import Family, family_of
from skipstone.predicate.arrow.zones import MICROSECONDS, shift

__all__ = ["Conversion", "Datum", "conform", "converter", "refuse_unless", "spark_type"]

Datum: TypeAlias = Any
"""A `pa.Array`, or a `pa.Scalar` that stands for the same value in every row."""

Conversion: TypeAlias = Callable[[Datum], Datum]

TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
DOUBLE_INTEGER_DIGITS = 15  # every integer of so many digits, and every power of ten up to 10**22, is exact in a double
PLAIN_INTEGER = r"\A-?[0-9]{1,18}\z"
PLAIN_DECIMAL = r"\A-?[0-9]{1,300}(\.[0-9]{1,300})?\z"
PLAIN_DATE = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
PLAIN_TIMESTAMP = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?\z"
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, the years that text has four digits for


def spark_type(type_: pa.DataType) -> pa.DataType:
    """Name the signed, view-free, undictionaried type in which Spark holds the values of a file's type.

    >>> spark_type(pa.uint32())
    DataType(int64)
    >>> spark_type(pa.dictionary(pa.int32(), pa.string_view()))
    DataType(string)
    """
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return spark_type(type_.value_type)
    if pa.types.is_unsigned_integer(type_):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}[type_.bit_width]
    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_binary_view(type_) or pa.types.is_fixed_size_binary(type_):
        return pa.binary()
    if pa.types.is_date64(type_):
        return pa.date32()
    if pa.types.is_decimal(type_) and not pa.types.is_decimal128(type_) and type_.precision <= 38:
        return pa.decimal128(type_.precision, type_.scale)
    return type_


def conform(array: pa.Array, declared: pa.DataType) -> pa.Array:
    """Give a file's array in the type that the table declares; only widening is possible.

    >>> conform(pa.array(["a", "b", "a"]).dictionary_encode(), pa.string()).to_pylist()
    ['a', 'b', 'a']
    >>> conform(pa.array([1999], pa.timestamp("ns")), pa.timestamp("us")).cast(pa.int64()).to_pylist()
    [1]
    """
    array = _plain(array)
    if array.type.equals(declared):
        return array
    held, wanted = family_of(array.type), family_of(declared)
    if held is Family.NESTED and wanted is Family.NESTED:
        return array  # its fields, keys and elements are conformed when they are taken out
    if (held, wanted) not in _WIDENINGS:
        raise CannotEvaluate(f"a column is {array.type} in these rows and {declared} in the schema")
    if held is Family.FLOAT and array.type.bit_width > declared.bit_width:
        raise CannotEvaluate(f"a column is {array.type} in these rows and only {declared} in the schema")
    return converter(array.type, declared)(array)


_WIDENINGS = {
    *((family, family) for family in Family if family is not Family.OTHER),
    *((Family.NULL, family) for family in Family),
    (Family.INTEGER, Family.DECIMAL),
    (Family.INTEGER, Family.FLOAT),
    (Family.DATE, Family.WALL_CLOCK),
}


def _plain(array: pa.Array) -> pa.Array:
    """Undo encodings, views and unsignedness."""
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif pa.types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        elif not (plain := spark_type(array.type)).equals(array.type):
            array = array.cast(plain)
        else:
            return array


def converter(source: pa.DataType, target: pa.DataType, *, offset: int | None = None) -> Conversion:
    """Find how values of `source` become values of `target`, or raise CannotEvaluate if Arrow's way is not Spark's.

    `offset` is the time zone in seconds east of Greenwich where it is known and fixed; conversions between instants
    and the wall clock need it.

    >>> converter(pa.float64(), pa.int64())(pa.array([-1.9, None])).to_pylist()
    [-1, None]
    >>> converter(pa.float64(), pa.string())
    Traceback (most recent call last):
    skipstone.errors.CannotEvaluate: it converts double to string, where Arrow and Spark differ
    """
    if source.equals(target):
        return lambda datum: datum
    held, wanted = family_of(source), family_of(target)
    if held is Family.NULL:
        return lambda datum: datum.cast(target)
    rule = _RULES.get((held, wanted))
    made = rule(source, target, offset) if rule else None
    if made is None:
        raise CannotEvaluate(f"it converts {source} to {target}, where Arrow and Spark differ")
    return made


def refuse_unless(condition: Datum, reason: str) -> None:
    """Raise CannotEvaluate unless the condition holds in every row where it is known."""
    if isinstance(condition, pa.Scalar):
        holds = condition.as_py() is not False
    else:
        holds = pc.all(condition, skip_nulls=True, min_count=0).as_py() is not False
    if not holds:
        raise CannotEvaluate(reason)


def _cast(target: pa.DataType, *, safe: bool = True) -> Conversion:
    return lambda datum: pc.cast(datum, target, safe=safe)


def _checked_cast(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion:
    return _cast(target)


def _integer_to_float(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion:
    return _cast(target, safe=False)  # both round to the nearest, ties to even


def _float_to_float(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion:
    return _cast(target, safe=False)


def _float_to_integer(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion:
    limit = 2.0 ** (target.bit_width - 1)

    def convert(datum: Datum) -> Datum:
        whole = pc.trunc(datum)
        in_range = pc.and_(pc.greater_equal(whole, -limit), pc.less(whole, limit))
        refuse_unless(in_range, f"a value does not fit {target}")
        return pc.cast(whole, target, safe=False)

    return convert


def _integer_to_decimal(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion | None:
    # Arrow wants room for every int64 before it looks at the values: widen first, then let it check that they fit.
    room = pa.decimal128(19 + target.scale, target.scale) if target.scale <= 19 else None
    if room is None or not pa.types.is_decimal128(target):
        return None
    return lambda datum: pc.cast(pc.cast(pc.cast(datum, pa.int64()), room), target)


def _decimal_to_float(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion | None:
    if not pa.types.is_float64(target) or not 0 <= source.scale <= 22:
        return None  # to a float it would be rounded twice
    narrow = pa.decimal128(DOUBLE_INTEGER_DIGITS, source.scale) if source.scale <= DOUBLE_INTEGER_DIGITS else None
    if narrow is None:
        return None
    unscaled = pa.decimal128(DOUBLE_INTEGER_DIGITS, 0)
    divisor = pa.scalar(float(10**source.scale), pa.float64())

    def convert(datum: Datum) -> Datum:
        array = pa.array([datum.as_py()], source) if isinstance(datum, pa.Scalar) else datum
        fitting = pc.cast(array, narrow)  # raises where a value has more digits
        # One division of two exact doubles is rounded correctly, which Arrow's own conversion does not promise.
        digits = pa.Array.from_buffers(unscaled, len(fitting), fitting.buffers(), offset=fitting.offset)
        result = pc.divide(pc.cast(pc.cast(digits, pa.int64()), pa.float64(), safe=False), divisor)
        return result[0] if isinstance(datum, pa.Scalar) else result

    return convert


def _text_to(pattern: str) -> Callable[[pa.DataType, pa.DataType, int | None], Conversion | None]:
    def rule(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion | None:
        if pa.types.is_float32(target):
            return None

        def convert(datum: Datum) -> Datum:
            plain = pc.match_substring_regex(datum, pattern)
            refuse_unless(plain, f"a text is not plainly a {family_of(target).value}, so its conversion is Spark's own")
            return pc.cast(datum, target)

        return convert

    return rule


def _text_to_day(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion:
    to_date = _text_to(PLAIN_DATE)(source, pa.date32(), None)

    def convert(datum: Datum) -> Datum:
        assert to_date is not None
        days = to_date(datum)
        refuse_unless(pc.greater_equal(days.cast(pa.int32()), FIRST_DAY), "a date lies before the year 1")
        return days

    return convert


def _text_to_wall_clock(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion | None:
    to_timestamp = _text_to(PLAIN_TIMESTAMP)(source, target, None)
    if to_timestamp is None or target.unit != "us":
        return None
    first = pa.scalar(FIRST_DAY * 86_400 * MICROSECONDS, pa.int64())

    def convert(datum: Datum) -> Datum:
        moments = to_timestamp(datum)
        refuse_unless(pc.greater_equal(moments.cast(pa.int64()), first), "a timestamp lies before the year 1")
        return moments

    return convert


def _date_to_text(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion:
    def convert(datum: Datum) -> Datum:
        days = pc.cast(pc.cast(datum, pa.date32()), pa.int32())
        in_range = pc.and_(pc.greater_equal(days, FIRST_DAY), pc.less_equal(days, LAST_DAY))
        refuse_unless(in_range, "a date lies outside the years 1 to 9999")
        return pc.cast(pc.cast(datum, pa.date32()), target)

    return convert


def _date_to_wall_clock(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion:
    return lambda datum: pc.cast(pc.cast(datum, pa.date32()), target)


def _between_units(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion:
    """Change the unit: exactly to a finer one (raises past its range), downwards to a coarser one as Spark does."""
    if source.unit == target.unit:
        return _cast(target)
    if TICKS_PER_SECOND[source.unit] < TICKS_PER_SECOND[target.unit]:
        return _cast(target)
    ratio = TICKS_PER_SECOND[source.unit] // TICKS_PER_SECOND[target.unit]

    def convert(datum: Datum) -> Datum:
        if isinstance(datum, pa.Scalar):
            return pa.scalar(None if not datum.is_valid else datum.value // ratio, pa.int64()).cast(target)
        ticks = pc.fill_null(datum.cast(pa.int64()), 0).to_numpy()
        floored = pa.array(np.floor_divide(ticks, ratio))
        return (floored if datum.null_count == 0 else pc.if_else(pc.is_valid(datum), floored, None)).cast(target)

    return convert


def _wall_clock_to_instant(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion | None:
    if offset is None:
        return None
    to_microseconds = _between_units(source, pa.timestamp("us"), None)
    to_target = _between_units(pa.timestamp("us", "UTC"), target, None)
    return lambda datum: to_target(shift(to_microseconds(datum), -offset, pa.timestamp("us", "UTC")))


def _instant_to_wall_clock(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion | None:
    if offset is None:
        return None
    to_microseconds = _between_units(source, pa.timestamp("us", "UTC"), None)
    to_target = _between_units(pa.timestamp("us"), target, None)
    return lambda datum: to_target(shift(to_microseconds(datum), offset, pa.timestamp("us")))


def _date_to_instant(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion | None:
    at_wall_clock = pa.timestamp("us")
    moved = _wall_clock_to_instant(at_wall_clock, target, offset)
    return None if moved is None else lambda datum: moved(pc.cast(pc.cast(datum, pa.date32()), at_wall_clock))


def _instant_to_date(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion | None:
    moved = _instant_to_wall_clock(source, pa.timestamp("us"), offset)
    return None if moved is None else lambda datum: pc.cast(moved(datum), pa.date32(), safe=False)


def _wall_clock_to_date(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion:
    return lambda datum: pc.cast(datum, pa.date32(), safe=False)


def _boolean_from_integer(source: pa.DataType, target: pa.DataType, offset: int | None) -> Conversion:
    return lambda datum: pc.not_equal(datum, pa.scalar(0, source))


_RULES: dict[tuple[Family, Family], Callable[[pa.DataType, pa.DataType, int | None], Conversion | None]] = {
    (Family.BOOLEAN, Family.INTEGER): _checked_cast,
    (Family.BOOLEAN, Family.FLOAT): _checked_cast,
    (Family.BOOLEAN, Family.STRING): _checked_cast,
    (Family.INTEGER, Family.BOOLEAN): _boolean_from_integer,
    (Family.INTEGER, Family.INTEGER): _checked_cast,
    (Family.INTEGER, Family.FLOAT): _integer_to_float,
    (Family.INTEGER, Family.DECIMAL): _integer_to_decimal,
    (Family.INTEGER, Family.STRING): _checked_cast,
    (Family.FLOAT, Family.FLOAT): _float_to_float,
    (Family.FLOAT, Family.INTEGER): _float_to_integer,
    (Family.DECIMAL, Family.DECIMAL): _checked_cast,  # raises where digits would be rounded away
    (Family.DECIMAL, Family.INTEGER): _checked_cast,
    (Family.DECIMAL, Family.FLOAT): _decimal_to_float,
    (Family.STRING, Family.STRING): _checked_cast,
    (Family.STRING, Family.BINARY): _checked_cast,
    (Family.STRING, Family.INTEGER): _text_to(PLAIN_INTEGER),
    (Family.STRING, Family.FLOAT): _text_to(PLAIN_DECIMAL),
    (Family.STRING, Family.DATE): _text_to_day,
    (Family.STRING, Family.WALL_CLOCK): _text_to_wall_clock,
    (Family.BINARY, Family.BINARY): _checked_cast,
    (Family.DATE, Family.DATE): _checked_cast,
    (Family.DATE, Family.STRING): _date_to_text,
    (Family.DATE, Family.WALL_CLOCK): _date_to_wall_clock,
    (Family.DATE, Family.INSTANT): _date_to_instant,
    (Family.WALL_CLOCK, Family.WALL_CLOCK): _between_units,
    (Family.WALL_CLOCK, Family.DATE): _wall_clock_to_date,
    (Family.WALL_CLOCK, Family.INSTANT): _wall_clock_to_instant,
    (Family.INSTANT, Family.INSTANT): _between_units,
    (Family.INSTANT, Family.DATE): _instant_to_date,
    (Family.INSTANT, Family.WALL_CLOCK): _instant_to_wall_clock,
    (Family.DURATION, Family.DURATION): _between_units,
}
