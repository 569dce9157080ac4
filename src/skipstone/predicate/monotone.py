"""Functions that keep order: what a set of results says about the argument.

For a function f that never decreases, the arguments with a result in [a, b) are those in [first(a), first(b)), where
first(k) is the least argument whose result is at least k. That is exact, whatever the steps of f are. Where whole
numbers run over the end of their type the sets are turned round with them.

Only functions for which this holds over every value of their type are here. abs, mod, sin, month, hash, date_format,
a cast of a string and the like are not, and say nothing about their arguments beyond being known. What depends on the
session's time zone is widened by more than any zone is away from UTC.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from skipstone.predicate.expression import Call, Cast, Constant, Expression, Scalar
from skipstone.predicate.intervals import (
    TOP,
    Domain,
    Family,
    Key,
    ValueSet,
    domain_of,
    double_of_rank,
    double_rank,
    prefix_end,
    union_of,
)

__all__ = ["preimage", "without_widening"]

ZONE_SLACK_MICROSECONDS = 48 * 3600 * 1_000_000
"""Wider than the distance of any zone from UTC (18 hours in Java) and a day that a zone has left out, together."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One monotone function around an argument: which arguments have their result in [a, b).

    The result is NULL for NULL. With `overflows` it is NULL, too, where it would not fit into the type, as decimals do;
    whole numbers are turned round, and for moments beyond the calendar there is an error and no result.
    """

    argument: Expression
    pull: Callable[[Key, Key], ValueSet]
    overflows: bool = False


def preimage(expression: Expression, values: ValueSet) -> tuple[Expression, ValueSet] | None:
    """Give the argument of a monotone expression and a set that it lies in wherever the expression lies in `values`.

    None where the expression is not known to be monotone in one argument, or where nothing follows.

    >>> from skipstone.predicate.expression import Column
    >>> day = Column("day", pa.date32())
    >>> argument, days = preimage(Call("year", (day,), pa.int32()), ValueSet((1970, 1971)))
    >>> argument == day, days
    (True, ValueSet(cuts=(0, 365), null=False))
    """
    for rule in MONOTONE:
        step = rule(expression)
        if step is not None:
            break
    else:
        return None
    own, domain = domain_of(expression.type), domain_of(step.argument.type)
    pulled = [step.pull(low, high) for low, high in zip(values.cuts[::2], values.cuts[1::2], strict=True)]
    if values.cuts == own.known.cuts:
        pulled = [domain.known]
    if values.null and step.overflows:
        pulled.append(domain.complement(step.pull(own.bottom, own.top)))
    return step.argument, ValueSet((union_of(pulled) & domain.known).cuts, values.null)


def without_widening(expression: Expression) -> Expression:
    """Take off the casts under which every value keeps its key: CAST(a AS BIGINT) < b is a < b.

    >>> from skipstone.predicate.expression import Column
    >>> without_widening(Cast(Column("a", pa.int32()), pa.int64()))
    Column(name='a', type=DataType(int32))
    """
    while isinstance(expression, Cast):
        source, target = domain_of(expression.base.type), domain_of(expression.type)
        same = source.family is target.family is not Family.UNORDERED and source.unit == target.unit
        if not same or not _contains(target, source) or _loses_digits(expression):
            break
        expression = expression.base
    return expression


def _loses_digits(cast: Cast) -> bool:
    floats = pa.types.is_floating(cast.base.type) and pa.types.is_floating(cast.type)
    return bool(floats and cast.base.type.bit_width > cast.type.bit_width)


def widening_cast(expression: Expression) -> _Step | None:
    """CAST(int AS BIGINT) >= 5: int >= 5. Float to double and a date to a timestamp without zone are alike."""
    match expression:
        case Cast(base=base, type=type_):
            source, target = domain_of(base.type), domain_of(type_)
            if without_widening(expression) != expression:
                return _step(base, lambda key: key)
            if source.family is target.family is Family.NUMBER and not pa.types.is_integer(type_):
                return _decimal_cast(base, source, target)
    return None


def _decimal_cast(base: Expression, source: Domain, target: Domain) -> _Step:
    if target.unit >= source.unit:
        return _step(base, lambda key: _ceil(key * source.unit, target.unit), overflows=True)
    coarse = source.unit // target.unit  # digits are rounded off, halves away from zero
    return _step(base, lambda key: key * coarse - coarse // 2 + (key <= 0), overflows=True)


def cast_to_double(expression: Expression) -> _Step | None:
    """CAST(decimal AS DOUBLE) >= 0.1: decimal >= 0.1. Rounding keeps the order; each cut is found by bisection."""
    match expression:
        case Cast(base=base, type=type_) if type_ == pa.float64():
            source = domain_of(base.type)
            if source.family is Family.NUMBER:
                return _step(base, lambda key: _bisect(source, lambda x: double_rank(x / source.unit), key))
    return None


def cast_between_date_and_timestamp(expression: Expression) -> _Step | None:
    """CAST(moment AS DATE) = DATE '1994-01-01': moment in that day; with a zone, in that day or two around it."""
    match expression:
        case Cast(base=base, type=type_):
            source, target = domain_of(base.type), domain_of(type_)
            ticks = _DAY * max(source.unit, target.unit)
            if source.family in _MOMENTS and target.family is Family.DATE:
                return _zoned(base, source, target, lambda key: key * ticks)
            if source.family is Family.DATE and target.family in _MOMENTS:
                return _zoned(base, source, target, lambda key: _ceil(key, ticks))
            if {source.family, target.family} == _MOMENTS and source.unit == target.unit:
                return _zoned(base, source, target, lambda key: key)
    return None


def year(expression: Expression) -> _Step | None:
    """year(day) >= 1994: day >= DATE '1994-01-01'."""
    match expression:
        case Call(name="year", arguments=(base,)):
            source = domain_of(base.type)
            if source.family is Family.DATE:
                return _step(base, _first_day_of_year)
            if source.family in _MOMENTS:
                ticks = _DAY * source.unit
                return _zoned(base, source, source, lambda key: _first_day_of_year(key) * ticks)
    return None


def days_later(expression: Expression) -> _Step | None:
    """date_add(day, 30) >= DATE '1994-01-31': day >= DATE '1994-01-01', or a day at the end of the type run over."""
    match expression:
        case Call(name="date_add" | "date_sub" as name, arguments=(base, Constant(value=int(days)))):
            source = domain_of(base.type)
            if source.family is Family.DATE and domain_of(expression.type) == source:
                shift = days if name == "date_add" else -days
                return _Step(base, lambda low, high: _turned(source, low, high, shift, 1))
    return None


def date_trunc(expression: Expression) -> _Step | None:
    """date_trunc('MONTH', moment) = TIMESTAMP '1994-03-01': moment in that month."""
    match expression:
        case Call(name="date_trunc", arguments=(Constant(value=str(unit)), base)):
            source = domain_of(base.type)
            following = _TRUNCATIONS.get(unit.lower())
            if following is not None and source.family in _MOMENTS and domain_of(expression.type) == source:
                return _zoned(base, source, source, lambda key: following(key, source.unit))
        case Call(name="trunc", arguments=(base, Constant(value=str(unit)))):
            source = domain_of(base.type)
            # trunc knows no unit below a week: it gives NULL for those, whatever the day.
            first_of = _TRUNCATIONS[unit.lower()] if unit.lower() in _UNITS_OF_DAYS else None
            if first_of is not None and source.family is domain_of(expression.type).family is Family.DATE:
                return _step(base, lambda key: first_of(key * _DAY, 1) // _DAY)
    return None


def head_of_text(expression: Expression) -> _Step | None:
    """substring(phone, 1, 2) = '13': phone LIKE '13%'."""
    match expression:
        case Call(
            name="substring" | "substr",
            arguments=(base, Constant(value=int(start)), Constant(value=int(length))),
        ) if start in (0, 1) and length >= 0 and domain_of(base.type).family is Family.TEXT:
            return _step(base, lambda key: _first_with_head(length, key))
        case Call(name="left", arguments=(base, Constant(value=int(length)))) if length >= 0:
            if domain_of(base.type).family is Family.TEXT:
                return _step(base, lambda key: _first_with_head(length, key))
    return None


def plus_or_minus_constant(expression: Expression) -> _Step | None:
    """x + 1 > 5: x > 4, and, where Spark lets whole numbers run over, x at the end of its type. 10 - x > 3: x < 7."""
    match expression:
        case (
            Call(name="add", arguments=(base, Constant(value=value)))
            | Call(name="add", arguments=(Constant(value=value), base))
        ):
            return _shifted(expression, base, _negated(value, False), 1)
        case Call(name="sub", arguments=(base, Constant(value=value))):
            return _shifted(expression, base, _negated(value, True), 1)
        case Call(name="sub", arguments=(Constant(value=value), base)):
            return _shifted(expression, base, _negated(value, False), -1)
        case Call(name="neg", arguments=(base,)):
            return _shifted(expression, base, 0, -1)
    return None


def times_constant(expression: Expression) -> _Step | None:
    """price * 2 >= 10: price >= 5, for decimals that keep all digits and for doubles times a positive constant."""
    match expression:
        case (
            Call(name="mul", arguments=(base, Constant() as constant))
            | Call(name="mul", arguments=(Constant() as constant, base))
        ):
            source, target = domain_of(base.type), domain_of(expression.type)
            place = domain_of(constant.type)
            value = constant.value
            if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal) or not value > 0:
                return None
            if isinstance(value, float):
                factor = value
                doubles = _all_doubles(base, expression, factor)
                return _double_step(base, source, lambda x: x * factor) if doubles else None
            if target.unit > 1 and source.family is place.family is Family.NUMBER and target.family is Family.NUMBER:
                exact = target.unit == source.unit * place.unit
                scaled = _scaled(value, place.unit)
                if exact and scaled is not None:
                    return _step(base, lambda key: _ceil(key, scaled), overflows=True)
    return None


MONOTONE: tuple[Callable[[Expression], _Step | None], ...] = (
    widening_cast,
    cast_to_double,
    cast_between_date_and_timestamp,
    year,
    days_later,
    date_trunc,
    head_of_text,
    plus_or_minus_constant,
    times_constant,
)
"""The functions that are known to keep (or turn round) the order of one argument."""

_DAY = 86_400_000_000
_MOMENTS = {Family.LOCAL, Family.INSTANT}


def _step(argument: Expression, first: Callable[[Any], Key], *, overflows: bool = False) -> _Step:
    """A function that never decreases, by the least argument with a result of at least k."""
    domain = domain_of(argument.type)

    def pull(low: Key, high: Key) -> ValueSet:
        return domain.interval(_clip(first(low), domain), _clip(first(high), domain))

    return _Step(argument, pull, overflows)


def _zoned(argument: Expression, source: Domain, target: Domain, first: Callable[[Any], Key]) -> _Step:
    """A step on moments: exact without a zone, and widened to both sides where the session's zone comes in."""
    if Family.INSTANT not in (source.family, target.family):
        return _step(argument, first)
    domain = domain_of(argument.type)
    slack = 3 if source.family is Family.DATE else ZONE_SLACK_MICROSECONDS * source.unit

    def pull(low: Any, high: Any) -> ValueSet:
        begin: Any = first(low)
        end: Any = first(high)
        return domain.interval(_clip(begin - slack, domain), _clip(end + slack, domain))

    return _Step(argument, pull)


def _shifted(
    expression: Expression, base: Expression, value: int | float | decimal.Decimal | None, sign: int
) -> _Step | None:
    """expression = sign * base + value, in whole numbers that run over, in decimals that do not, or in doubles."""
    source, target = domain_of(base.type), domain_of(expression.type)
    if value is None:
        return None
    if isinstance(value, float):
        if sign < 0 or not _all_doubles(base, expression, value):
            return None
        return _double_step(base, source, lambda x: x + value)
    scaled = _scaled(value, target.unit)
    if scaled is None or source.family is not Family.NUMBER or target.family is not Family.NUMBER:
        return None
    if pa.types.is_integer(expression.type):
        if not pa.types.is_integer(base.type) or not _contains(target, source):
            return None
        return _Step(base, lambda low, high: _turned(target, low, high, scaled, sign))
    if target.unit < source.unit:
        return None
    factor = target.unit // source.unit
    if sign > 0:
        return _step(base, lambda key: _ceil(key - scaled, factor), overflows=True)
    return _Step(
        base,
        lambda low, high: _between((scaled - _int(high)) // factor + 1, (scaled - _int(low)) // factor + 1, source),
        overflows=True,
    )


def _turned(domain: Domain, low: Any, high: Any, shift: int, sign: int) -> ValueSet:
    """The whole numbers x with sign * x + shift in [low, high), counted round the end of their type as Java does.

    >>> bytes_ = domain_of(pa.int8())
    >>> _turned(bytes_, 100, 128, 100, 1).cuts, _turned(bytes_, -128, -120, 100, 1).cuts
    ((0, 28), (28, 36))
    """
    begin, end = (low - shift, high - shift) if sign > 0 else (shift - high + 1, shift - low + 1)
    bottom, size = _int(domain.bottom), _int(domain.top) - _int(domain.bottom)
    begin, end = begin - bottom, end - bottom
    start = begin % size
    stop = start + (end - begin)
    parts = [ValueSet((start + bottom, min(stop, size) + bottom))]
    if stop > size:
        parts.append(ValueSet((bottom, stop - size + bottom)))
    return union_of(parts)


def _first_with_head(length: int, key: Any) -> Key:
    """The first text whose first `length` letters are not below `key`.

    >>> _first_with_head(2, b"ab"), _first_with_head(2, b"abc")
    (b'ab', b'ac')
    """
    if not isinstance(key, bytes):
        return TOP
    try:
        letters, is_text = key.decode("utf-8"), True
    except UnicodeDecodeError as error:
        letters, is_text = key[: error.start].decode("utf-8"), False  # a cut between two texts, and none itself
    if len(letters) < length or (is_text and len(letters) == length):
        return key
    return prefix_end(letters[:length].encode("utf-8"))


def _double_step(base: Expression, source: Domain, function: Callable[[float], float]) -> _Step:
    return _step(base, lambda key: _bisect(source, lambda rank: double_rank(function(double_of_rank(rank))), key))


def _all_doubles(base: Expression, expression: Expression, value: float) -> bool:
    return base.type == expression.type == pa.float64() and math.isfinite(value)


def _bisect(domain: Domain, function: Callable[[int], int], key: Any) -> Key:
    """The least key of the domain at which a never decreasing function is at least `key`."""
    low, high = _int(domain.bottom), _int(domain.top)
    while low < high:
        middle = (low + high) // 2
        if function(middle) >= key:
            high = middle
        else:
            low = middle + 1
    return low


def _first_day_of_year(number: Any) -> int:
    return int(np.datetime64(int(number) - 1970, "Y").astype("datetime64[D]").astype(np.int64))


def _fixed(ticks: int, offset: int = 0) -> Callable[[Any, int], int]:
    """The first truncated moment at or after a key, where the steps have one length."""
    return lambda key, unit: _ceil(key - offset * unit, ticks * unit) * ticks * unit + offset * unit


def _calendar(months: int) -> Callable[[Any, int], int]:
    def following(key: Any, unit: int) -> int:
        day = _ceil(key, _DAY * unit)
        month = int(np.datetime64(day, "D").astype("datetime64[M]").astype(np.int64))
        month -= month % months  # months since 1970, which begins a year and a quarter
        start = _first_day_of_month(month)
        return (start if start >= day else _first_day_of_month(month + months)) * _DAY * unit

    return following


def _first_day_of_month(number: int) -> int:
    return int(np.datetime64(number, "M").astype("datetime64[D]").astype(np.int64))


_TRUNCATIONS: dict[str, Callable[[Any, int], int]] = {
    **dict.fromkeys(("year", "yyyy", "yy"), _calendar(12)),
    "quarter": _calendar(3),
    **dict.fromkeys(("month", "mon", "mm"), _calendar(1)),
    "week": _fixed(7 * _DAY, 4 * _DAY),  # 1970-01-05 was a Monday
    **dict.fromkeys(("day", "dd"), _fixed(_DAY)),
    "hour": _fixed(3_600_000_000),
    "minute": _fixed(60_000_000),
    "second": _fixed(1_000_000),
    "millisecond": _fixed(1_000),
    "microsecond": _fixed(1),
}


_UNITS_OF_DAYS = {"year", "yyyy", "yy", "quarter", "month", "mon", "mm", "week"}


def _ceil(numerator: Any, denominator: int) -> int:
    return -int(-numerator // denominator)


def _clip(key: Any, domain: Domain) -> Key:
    bottom, top = domain.bottom, domain.top
    return bottom if key < bottom else top if key > top else key


def _between(low: int, high: int, domain: Domain) -> ValueSet:
    return domain.interval(_clip(low, domain), _clip(high, domain))


def _contains(outer: Domain, inner: Domain) -> bool:
    return inner.known <= outer.known


def _scaled(value: Any, unit: int) -> int | None:
    """A number in keys of a unit, where it is a whole number of them."""
    if isinstance(value, float):
        return None
    numerator, denominator = value.as_integer_ratio()
    scaled, rest = divmod(numerator * unit, denominator)
    return None if rest else int(scaled)


def _negated(value: Scalar, negate: bool) -> int | float | decimal.Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal) or not negate:
        return value if isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool) else None
    # Unary minus on a Decimal would round it to the context's precision.
    return value.copy_negate() if isinstance(value, decimal.Decimal) else -value


def _int(key: Any) -> int:
    assert isinstance(key, int)
    return key
