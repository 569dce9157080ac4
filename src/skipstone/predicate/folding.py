"""Constants computed before any row is seen: arithmetic, casts, intervals, and text read as dates and times.

Everything here either gives exactly what Spark gives, under ANSI and under legacy rules alike, or gives None. What
Spark itself would refuse or turn into NULL is None as well: the expression then stays as it was written.
"""

from __future__ import annotations

import calendar
import datetime
import decimal
import functools
import math
import re
import zoneinfo
from dataclasses import dataclass
from fractions import Fraction

import numpy
import pyarrow as pa

from skipstone.predicate.arrow.zones import fixed_offset
from skipstone.predicate.coercion import decimal_at, exact_fraction, nearest_double, place
from skipstone.predicate.datatypes import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    integer_range,
)
from skipstone.predicate.expression import Constant

__all__ = [
    "Interval",
    "add_interval",
    "arithmetic",
    "cast_constant",
    "date_from_text",
    "number_from_text",
    "numeric_literal",
    "timestamp_from_text",
]


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of time as SQL writes it; months and days have no fixed length."""

    months: int = 0
    days: int = 0
    microseconds: int = 0

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.days, -self.microseconds)

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.months + other.months, self.days + other.days, self.microseconds + other.microseconds)

    def __mul__(self, factor: int) -> Interval:
        return Interval(self.months * factor, self.days * factor, self.microseconds * factor)


_UNITS = {
    "YEAR": Interval(months=12),
    "QUARTER": Interval(months=3),
    "MONTH": Interval(months=1),
    "WEEK": Interval(days=7),
    "DAY": Interval(days=1),
    "HOUR": Interval(microseconds=3_600_000_000),
    "MINUTE": Interval(microseconds=60_000_000),
    "SECOND": Interval(microseconds=1_000_000),
    "MILLISECOND": Interval(microseconds=1_000),
    "MICROSECOND": Interval(microseconds=1),
}


def interval_of(count: str, unit: str) -> Interval | None:
    """Read `INTERVAL count unit`.

    >>> interval_of("3", "months")
    Interval(months=3, days=0, microseconds=0)
    """
    name = unit.upper()
    one = _UNITS.get(name) or _UNITS.get(name.removesuffix("S"))
    return one * int(count) if one is not None and re.fullmatch(r"\s*[+-]?\d{1,9}\s*", count) else None


def numeric_literal(text: str) -> Constant | None:
    """Type a number as Spark's parser does: INT, BIGINT or DECIMAL without an exponent, DOUBLE with one.

    >>> numeric_literal("5").type, numeric_literal("3000000000").type, numeric_literal("0.05").type
    (DataType(int32), DataType(int64), Decimal128Type(decimal128(2, 2)))
    """
    if "e" in text or "E" in text:
        value = float(text)
        return Constant(value, DOUBLE) if math.isfinite(value) else None
    if text.isdigit():
        whole = int(text)
        if whole <= integer_range(LONG)[1]:
            return Constant(whole, INT if whole <= integer_range(INT)[1] else LONG)
    return decimal_literal(text)


def decimal_literal(text: str) -> Constant | None:
    """Type a number as a decimal of just the digits that it is written with."""
    try:
        value = decimal.Decimal(text)
    except decimal.InvalidOperation:
        return None
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent > 0:
        return None
    precision = max(len(digits), -exponent)
    return Constant(value, decimal_type(precision, -exponent)) if precision <= MAX_PRECISION else None


decimal_type = functools.lru_cache(maxsize=1024)(pa.decimal128)


def arithmetic(name: str, left: Constant, right: Constant, type_: pa.DataType) -> Constant | None:
    """Compute `left name right` in the result type that Spark gives it, or None where that is not exact.

    >>> a, b = numeric_literal("0.06"), numeric_literal("0.01")
    >>> arithmetic("add", a, b, pa.decimal128(3, 2)).value
    Decimal('0.07')
    """
    if left.value is None or right.value is None:
        return Constant(None, type_)
    if not all(isinstance(c.value, (int, float, decimal.Decimal)) for c in (left, right)):
        return None
    if type_ in (DOUBLE, FLOAT):
        return _double_arithmetic(name, left, right) if type_ == DOUBLE else None
    a, b = (exact_fraction(c.value) for c in (left, right))  # type: ignore[arg-type]
    match name:
        case "add":
            exact = a + b
        case "sub":
            exact = a - b
        case "mul":
            exact = a * b
        case _:  # division rounds, and the sign of a remainder is a matter of taste: left to Spark
            return None
    placed = place(decimal_from_fraction(exact), type_) if (exact.denominator == 1 or _terminates(exact)) else None
    return placed.floor if placed is not None and placed.exact else None


def _terminates(value: object) -> bool:
    denominator = getattr(value, "denominator", 1)
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return bool(denominator == 1)


def decimal_from_fraction(value: object) -> decimal.Decimal:
    """Write a fraction whose decimal expansion ends, exactly."""
    numerator, denominator = getattr(value, "numerator", 0), getattr(value, "denominator", 1)
    scale = 0
    while denominator != 1 and (numerator * 10**scale) % denominator:
        scale += 1
    return decimal_at(numerator * 10**scale // denominator, scale)


def _double_arithmetic(name: str, left: Constant, right: Constant) -> Constant | None:
    a, b = nearest_double(left.value), nearest_double(right.value)  # type: ignore[arg-type]
    match name:
        case "add":
            value = a + b
        case "sub":
            value = a - b
        case "mul":
            value = a * b
        case "div" if b != 0:
            value = a / b
        case _:
            return None
    return Constant(value, DOUBLE) if math.isfinite(value) else None


def add_interval(moment: Constant, interval: Interval, timezone: str) -> Constant | None:
    """Add an interval to a date or a timestamp; the day is kept within its month, as 31 January + 1 month.

    >>> add_interval(Constant(datetime.date(1994, 1, 31), DATE), Interval(months=1), "UTC").value
    datetime.date(1994, 2, 28)
    """
    value = moment.value
    try:
        if isinstance(value, datetime.datetime):
            if value.tzinfo is not None and timezone != "UTC" and (interval.months or interval.days):
                return None  # a day is not 24 hours there
            shifted = _add_months(value, interval.months)
            step = datetime.timedelta(days=interval.days, microseconds=interval.microseconds)
            return Constant(shifted + step, moment.type)
        if isinstance(value, datetime.date) and not interval.microseconds:
            return Constant(_add_months(value, interval.months) + datetime.timedelta(days=interval.days), DATE)
    except (OverflowError, ValueError):
        return None
    return None


def _add_months(value: datetime.date, months: int) -> datetime.date:
    if not months:
        return value
    year, month0 = divmod(value.year * 12 + value.month - 1 + months, 12)
    day = min(value.day, calendar.monthrange(year, month0 + 1)[1])
    return value.replace(year=year, month=month0 + 1, day=day)


_DATE = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T].*)?\s*", re.DOTALL)
_MOMENT = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?"
    r"\s*(Z|UTC|[+-]\d{2}:\d{2})?)?\s*"
)


def date_from_text(text: str) -> datetime.date | None:
    """Read a date as Spark's cast does: what follows a blank or a T is dropped.

    >>> date_from_text("1994-1-2"), date_from_text("1994-13-01")
    (datetime.date(1994, 1, 2), None)
    """
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    try:
        return datetime.date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None


def timestamp_from_text(text: str, *, zoned: bool, timezone: str) -> datetime.datetime | None:
    """Read a timestamp; a text without an offset is in the session's time zone if the type has a zone.

    >>> timestamp_from_text("1994-01-01 12:30:00.5", zoned=False, timezone="UTC")
    datetime.datetime(1994, 1, 1, 12, 30, 0, 500000)
    >>> timestamp_from_text("1994-01-01", zoned=True, timezone="Europe/Paris").isoformat()
    '1993-12-31T23:00:00+00:00'
    """
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[i] or 0) for i in range(1, 7))
    try:
        local = datetime.datetime(year, month, day, hour, minute, second, int((match[7] or "").ljust(6, "0")))
    except ValueError:
        return None
    offset = match[8]
    if not zoned:
        return local if offset is None else None
    if offset is None:
        return in_zone(local, timezone)
    if offset in ("Z", "UTC"):
        return local.replace(tzinfo=datetime.UTC)
    hours, minutes = int(offset[1:3]), int(offset[4:6])
    if hours > 18 or minutes > 59:
        return None
    delta = datetime.timedelta(hours=hours, minutes=minutes) * (-1 if offset[0] == "-" else 1)
    try:
        return (local - delta).replace(tzinfo=datetime.UTC)
    except OverflowError:
        return None


FIRST_YEAR_ALIKE = 1971
"""From this year on, clocks of a zone show the same to Java and to Python wherever they are."""


def in_zone(local: datetime.datetime, timezone: str) -> datetime.datetime | None:
    """The instant at which clocks in a zone show a time; of two, the first, as Java takes it.

    Java's time zone data merges zones that agree since 1970, Python's may not: what a zone's clocks showed before that
    is only known to the one who asks.

    >>> in_zone(datetime.datetime(1950, 1, 1), "Europe/Stockholm") is None
    True
    """
    offset = fixed_offset(timezone)
    if offset == 0:
        return local.replace(tzinfo=datetime.UTC)
    if offset is None and local.year < FIRST_YEAR_ALIKE:
        return None
    try:
        if offset is not None:
            return (local - datetime.timedelta(seconds=offset)).replace(tzinfo=datetime.UTC)
        return local.replace(tzinfo=zoneinfo.ZoneInfo(timezone)).astimezone(datetime.UTC)
    except (zoneinfo.ZoneInfoNotFoundError, OverflowError, ValueError):
        return None


def number_from_text(text: str, type_: pa.DataType) -> Constant | None:
    """Read a number as Spark's cast of a string to the type does, where ANSI and legacy rules agree.

    >>> number_from_text(" 10 ", pa.int32()).value, number_from_text("10.5", pa.int32())
    (10, None)
    """
    text = text.strip(" ")
    if pa.types.is_integer(type_) or pa.types.is_decimal(type_):
        whole_only = pa.types.is_integer(type_)
        if not re.fullmatch(r"[+-]?\d+" if whole_only else r"[+-]?\d+(\.\d+)?", text):
            return None
        placed = place(decimal.Decimal(text), type_)
        return placed.floor if placed is not None and placed.exact else None
    if type_ in (DOUBLE, FLOAT):
        if text.lower() in _SPECIAL:
            return Constant(_SPECIAL[text.lower()], type_)
        if re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", text):
            value = float(text)
            if type_ == DOUBLE:
                return Constant(value, DOUBLE)
            return Constant(nearest_single(decimal.Decimal(text)), FLOAT)
    return None


def nearest_single(value: int | decimal.Decimal | float) -> float:
    """The single float nearest to a number, ties to even; beyond the range an infinity.

    >>> nearest_single(decimal.Decimal("0.05")), nearest_single(1e39)
    (0.05000000074505806, inf)
    """
    if isinstance(value, float) and not math.isfinite(value):
        return value
    # A double in between could be rounded twice, so the two neighbours are compared exactly.
    with numpy.errstate(over="ignore"):
        middle = numpy.float32(nearest_double(value))
        candidates = [numpy.nextafter(middle, numpy.float32(towards)) for towards in (-math.inf, middle, math.inf)]
    best = min(candidates, key=lambda each: (abs(_as_fraction(each) - exact_fraction(value)), _last_bit(each)))
    return float(best)


def _as_fraction(single: numpy.float32) -> Fraction:
    """A single float as a number; an infinity stands where the next float would be, as rounding has it."""
    return Fraction(float(single)) if numpy.isfinite(single) else Fraction(int(math.copysign(1 << 128, single)))


def _last_bit(single: numpy.float32) -> int:
    return int(single.view(numpy.uint32)) & 1


_SPECIAL = {
    "nan": math.nan,
    "inf": math.inf,
    "+inf": math.inf,
    "-inf": -math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-infinity": -math.inf,
}


def cast_constant(constant: Constant, type_: pa.DataType, timezone: str) -> Constant | None:
    """Cast a constant where the result is the same under ANSI and legacy rules; None where it may not be.

    >>> cast_constant(Constant("1994-01-01", STRING), DATE, "UTC").value
    datetime.date(1994, 1, 1)
    """
    value = constant.value
    if constant.type == type_:
        return constant
    if value is None:
        return Constant(None, type_)
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _cast_text(value, type_, timezone)
    if isinstance(value, (int, decimal.Decimal)):
        if type_ == DOUBLE:
            return Constant(nearest_double(value), DOUBLE)
        if type_ == FLOAT:
            return Constant(nearest_single(value), FLOAT)
        if pa.types.is_integer(type_) or pa.types.is_decimal(type_):
            placed = place(value, type_)
            return placed.floor if placed is not None and placed.exact else None
        if type_ == STRING and isinstance(value, int):
            return Constant(str(value), STRING)
        return None
    if isinstance(value, float):
        if type_ == DOUBLE:
            return Constant(value, DOUBLE)
        return Constant(nearest_single(value), FLOAT) if type_ == FLOAT else None
    if isinstance(value, datetime.datetime):
        return _cast_moment(value, type_, timezone)
    if isinstance(value, datetime.date):
        return _cast_date(value, type_, timezone)
    return None


def _cast_text(value: str, type_: pa.DataType, timezone: str) -> Constant | None:
    if type_ == DATE:
        date = date_from_text(value)
        return Constant(date, DATE) if date is not None else None
    if type_ in (TIMESTAMP, TIMESTAMP_NTZ):
        moment = timestamp_from_text(value, zoned=type_ == TIMESTAMP, timezone=timezone)
        return Constant(moment, type_) if moment is not None else None
    if type_ == BOOLEAN:
        word = value.strip(" ").lower()
        return Constant(word == "true", BOOLEAN) if word in ("true", "false") else None
    return number_from_text(value, type_)


def _cast_date(value: datetime.date, type_: pa.DataType, timezone: str) -> Constant | None:
    midnight = datetime.datetime(value.year, value.month, value.day)
    if type_ == TIMESTAMP_NTZ:
        return Constant(midnight, TIMESTAMP_NTZ)
    if type_ == TIMESTAMP:
        moment = in_zone(midnight, timezone)
        return Constant(moment, TIMESTAMP) if moment is not None else None
    return Constant(value.isoformat(), STRING) if type_ == STRING else None


def _cast_moment(value: datetime.datetime, type_: pa.DataType, timezone: str) -> Constant | None:
    if timezone != "UTC" and value.tzinfo is not None:
        return None
    if type_ == DATE:
        return Constant(value.date(), DATE)
    if type_ == TIMESTAMP_NTZ and value.tzinfo is not None:
        return Constant(value.replace(tzinfo=None), TIMESTAMP_NTZ)
    if type_ == TIMESTAMP and value.tzinfo is None:
        moment = in_zone(value, timezone)
        return Constant(moment, TIMESTAMP) if moment is not None else None
    return None
