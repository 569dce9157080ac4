"""The functions and operators that Arrow computes as Spark does, each with the conditions under which it is true.

A function is a rule from a call to a step. It refuses (CannotEvaluate) types for which it does not know Spark's result,
and its step refuses rows on which Spark would fail: an overflow, a division by zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import CannotEvaluate
from skipstone.predicate.arrow.conversions import FIRST_DAY, LAST_DAY, Datum, converter, refuse_unless, spark_type
from skipstone.predicate.arrow.families import Family, common_type, family_of
from skipstone.predicate.arrow.letter_case import lowered, uppered
from skipstone.predicate.arrow.steps import Frame, Step, Steps, broadcast
from skipstone.predicate.arrow.texts import is_ascii, validated
from skipstone.predicate.expression import Call, Constant, Expression

__all__ = ["FUNCTIONS"]

Rule: TypeAlias = Callable[[Call, Steps], Step]
Kernel: TypeAlias = Callable[..., Datum]


def _arity(call: Call, *counts: int) -> tuple[Expression, ...]:
    if len(call.arguments) not in counts:
        raise CannotEvaluate(f"{call.name} with {len(call.arguments)} arguments is left to Spark")
    return call.arguments


def _family(expression: Expression) -> Family:
    return family_of(expression.type)


def _left_to_spark(call: Call) -> CannotEvaluate:
    types = " and ".join(str(argument.type) for argument in call.arguments)
    return CannotEvaluate(f"{call.name} of {types} is left to Spark")


def _apply(kernel: Kernel, *steps: Step) -> Step:
    """Compose steps with a kernel."""
    if len(steps) == 1:
        (only,) = steps
        return lambda frame: kernel(only(frame))
    return lambda frame: kernel(*(step(frame) for step in steps))


def _require(call: Call, type_: pa.DataType) -> None:
    """Refuse a call whose declared type is not the one that Spark gives it: then we have not understood it."""
    if not spark_type(call.type).equals(type_):
        raise CannotEvaluate(f"{call.name} of these arguments is {type_} in Spark and {call.type} here")


# Arithmetic -----------------------------------------------------------------------------------------------------------


def _arithmetic(kernel: Kernel) -> Rule:
    def rule(call: Call, steps: Steps) -> Step:
        left, right = _arity(call, 2)
        families = {_family(left), _family(right)}
        if Family.DATE in families:
            return _date_arithmetic(call, steps)
        if not all(family.is_number for family in families):
            raise _left_to_spark(call)
        if Family.DECIMAL in families and Family.FLOAT not in families:
            return _decimal_arithmetic(call, steps, kernel)
        operand = _operand_type(left, right)
        _require(call, operand)
        return _apply(kernel, steps.converted(left, operand), steps.converted(right, operand))

    return rule


def _operand_type(left: Expression, right: Expression) -> pa.DataType:
    return common_type(spark_type(left.type), spark_type(right.type))


def _decimal_arithmetic(call: Call, steps: Steps, kernel: Kernel) -> Step:
    """Add, subtract or multiply exactly: Arrow's result type is Spark's as long as 38 digits are enough.

    Past 38 digits Spark gives up scale and Arrow raises. Integers are exact in any decimal, so how Spark widens them
    does not change the value; the exact result must fit the declared type.
    """
    left, right = (steps.converted(argument, _as_decimal(argument.type)) for argument in call.arguments)
    target = spark_type(call.type)
    if family_of(target) is not Family.DECIMAL:
        raise _left_to_spark(call)

    def compute(frame: Frame) -> Datum:
        exact = kernel(left(frame), right(frame))
        return exact if exact.type.equals(target) else pc.cast(exact, target)

    return compute


def _as_decimal(type_: pa.DataType) -> pa.DataType:
    held = spark_type(type_)
    if pa.types.is_decimal(held):
        return held
    return pa.decimal128({8: 3, 16: 5, 32: 10, 64: 19}[held.bit_width], 0)


def _date_arithmetic(call: Call, steps: Steps) -> Step:
    """`date + days` and `date - days`, and the functions date_add and date_sub."""
    date, days = _arity(call, 2)
    if _family(date) is Family.INTEGER and call.name == "add":
        date, days = days, date
    if _family(date) is not Family.DATE or _family(days) is not Family.INTEGER:
        raise _left_to_spark(call)
    _require(call, pa.date32())
    kernel = pc.subtract_checked if call.name in ("sub", "date_sub") else pc.add_checked
    return _apply(
        lambda d, n: pc.cast(kernel(pc.cast(d, pa.int32()), n), pa.date32()),
        steps.converted(date, pa.date32()),
        steps.converted(days, pa.int32()),
    )


def _divide(call: Call, steps: Steps) -> Step:
    """`a / b` of integers and doubles is a division of doubles; of decimals it rounds by Spark's own rules."""
    left, right = _arity(call, 2)
    if any(_family(argument) not in (Family.INTEGER, Family.FLOAT) for argument in (left, right)):
        raise _left_to_spark(call)
    _require(call, pa.float64())

    def kernel(dividend: Datum, divisor: Datum) -> Datum:
        refuse_unless(pc.not_equal(divisor, 0.0), "a divisor is zero")
        return pc.divide(dividend, divisor)

    return _apply(kernel, steps.converted(left, pa.float64()), steps.converted(right, pa.float64()))


def _remainder(call: Call, steps: Steps) -> Step:
    """`a % b` with the sign of a, as C and Java have it."""
    left, right = _arity(call, 2)
    if any(_family(argument) not in (Family.INTEGER, Family.FLOAT) for argument in (left, right)):
        raise _left_to_spark(call)
    operand = _operand_type(left, right)
    _require(call, operand)
    positive = call.name == "pmod"
    if positive and not pa.types.is_integer(operand):
        raise _left_to_spark(call)
    one, other = steps.converted(left, operand), steps.converted(right, operand)
    zero = pa.scalar(0, operand)

    def compute(frame: Frame) -> Datum:
        dividend, divisor = broadcast(one(frame), frame.batch.num_rows), other(frame)
        refuse_unless(pc.not_equal(divisor, zero), "a divisor is zero")
        if positive:
            refuse_unless(pc.greater(divisor, zero), "a divisor is negative")
        with np.errstate(invalid="ignore"):  # fmod of an infinity is NaN, here and in Java
            remainder = (np.mod if positive else np.fmod)(_filled(dividend), _filled(divisor))
        result = pa.array(remainder, operand)
        if dividend.null_count == 0 and not _has_null(divisor):
            return result
        return pc.if_else(pc.and_(pc.is_valid(dividend), pc.is_valid(divisor)), result, pa.scalar(None, operand))

    return compute


def _filled(datum: Datum) -> Any:
    """Give values to numpy, any value for NULL; a scalar stays one, which numpy divides by much faster."""
    if isinstance(datum, pa.Scalar):
        return np.dtype(datum.type.to_pandas_dtype()).type(datum.as_py() if datum.is_valid else 1)
    return pc.fill_null(datum, pa.scalar(1, datum.type)).to_numpy()


def _has_null(datum: Datum) -> bool:
    return not datum.is_valid if isinstance(datum, pa.Scalar) else bool(datum.null_count)


def _unary_number(kernel: Kernel) -> Rule:
    def rule(call: Call, steps: Steps) -> Step:
        (argument,) = _arity(call, 1)
        if not _family(argument).is_number:
            raise _left_to_spark(call)
        _require(call, spark_type(argument.type))
        return _apply(kernel, steps.value(argument))

    return rule


def _is_nan(call: Call, steps: Steps) -> Step:
    """`isnan(x)` is FALSE for NULL."""
    (argument,) = _arity(call, 1)
    if _family(argument) is not Family.FLOAT:
        raise _left_to_spark(call)
    return _apply(lambda x: pc.fill_null(pc.is_nan(x), False), steps.value(argument))


def _whole_number(kernel: Kernel) -> Rule:
    """`floor` and `ceil` of a float give a bigint."""

    def rule(call: Call, steps: Steps) -> Step:
        (argument,) = _arity(call, 1)
        if _family(argument) not in (Family.FLOAT, Family.INTEGER):
            raise _left_to_spark(call)
        _require(call, pa.int64())
        if _family(argument) is Family.INTEGER:
            return steps.converted(argument, pa.int64())
        narrow = converter(pa.float64(), pa.int64())
        return _apply(lambda x: narrow(kernel(x)), steps.converted(argument, pa.float64()))

    return rule


# Text -----------------------------------------------------------------------------------------------------------------


def _text(call: Call, *counts: int) -> tuple[Expression, ...]:
    arguments = _arity(call, *counts)
    if _family(arguments[0]) is not Family.STRING:
        raise _left_to_spark(call)
    return arguments


def _integer_constant(call: Call, expression: Expression) -> int:
    if isinstance(expression, Constant) and type(expression.value) is int and abs(expression.value) < 2**31:
        return expression.value
    raise CannotEvaluate(f"{call.name} with a position that is not a constant is left to Spark")


def _text_constant(call: Call, expression: Expression) -> str:
    if isinstance(expression, Constant) and isinstance(expression.value, str):
        return expression.value
    raise CannotEvaluate(f"{call.name} with an argument that is not a constant text is left to Spark")


def _length(call: Call, steps: Steps) -> Step:
    """`length` counts code points of text and bytes of binary."""
    (argument,) = _arity(call, 1)
    if _family(argument) is not Family.STRING:
        return _octet_length(call, steps)
    _require(call, pa.int32())
    return _apply(_letters, steps.value(argument))


def _letters(text: Datum) -> Datum:
    count = pc.binary_length(text) if is_ascii(text) else pc.utf8_length(validated(text))
    return pc.cast(count, pa.int32())


def _octet_length(call: Call, steps: Steps) -> Step:
    (argument,) = _arity(call, 1)
    if _family(argument) not in (Family.STRING, Family.BINARY):
        raise _left_to_spark(call)
    _require(call, pa.int32())
    return _apply(lambda t: pc.cast(pc.binary_length(t), pa.int32()), steps.value(argument))


def _cased(fold: Kernel) -> Rule:
    def rule(call: Call, steps: Steps) -> Step:
        (argument,) = _text(call, 1)
        return _apply(fold, steps.value(argument))

    return rule


def _substring(call: Call, steps: Steps) -> Step:
    """`substring(text, position, length)`: positions count from 1, from the end where negative; 0 is read as 1."""
    text, *rest = _text(call, 2, 3)
    position = _integer_constant(call, rest[0])
    count = _integer_constant(call, rest[1]) if len(rest) > 1 else None
    start = position - 1 if position > 0 else position
    stop = None if count is None else start + count
    if position < 0 and stop is not None and stop >= 0:
        stop = None  # it reaches the end of the text
    return _apply(lambda t: _slice(t, start, stop, count), steps.value(text))


def _slice(text: Datum, start: int, stop: int | None, count: int | None = None) -> Datum:
    if count is not None and count <= 0:
        start, stop = 0, 0
    return pc.utf8_slice_codeunits(validated(text), start=start, stop=stop)


def _left(call: Call, steps: Steps) -> Step:
    text, size = _text(call, 2)
    count = _integer_constant(call, size)
    return _apply(lambda t: _slice(t, 0, count, count), steps.value(text))


def _right(call: Call, steps: Steps) -> Step:
    text, size = _text(call, 2)
    count = _integer_constant(call, size)
    return _apply(lambda t: _slice(t, -count, None, count), steps.value(text))


def _trim(kernel: Kernel) -> Rule:
    """`trim` and its kin take off spaces, and no other white space."""

    def rule(call: Call, steps: Steps) -> Step:
        (text,) = _text(call, 1)
        return _apply(lambda t: kernel(t, characters=" "), steps.value(text))

    return rule


def _concat(call: Call, steps: Steps) -> Step:
    if not call.arguments or any(_family(argument) is not Family.STRING for argument in call.arguments):
        raise CannotEvaluate("concat of anything but text is left to Spark")
    texts = tuple(steps.converted(argument, pa.string()) for argument in call.arguments)
    return _apply(lambda *parts: pc.binary_join_element_wise(*parts, "", null_handling="emit_null"), *texts)


def _replace(call: Call, steps: Steps) -> Step:
    text, old, new = _text(call, 3)
    pattern, replacement = _text_constant(call, old), _text_constant(call, new)
    if not pattern:
        return steps.value(text)
    return _apply(lambda t: pc.replace_substring(t, pattern=pattern, replacement=replacement), steps.value(text))


def _reverse(call: Call, steps: Steps) -> Step:
    (text,) = _text(call, 1)
    return _apply(lambda t: pc.utf8_reverse(validated(t)), steps.value(text))


# Time -----------------------------------------------------------------------------------------------------------------


def _calendar(call: Call, moment: Expression, steps: Steps) -> Step:
    """Read a date as such and a timestamp as a wall clock, within the years that all kernels know."""
    family = _family(moment)
    if family is Family.DATE:
        return _apply(lambda d: _in_known_years(d, 1, pa.int32()), steps.converted(moment, pa.date32()))
    if family not in (Family.WALL_CLOCK, Family.INSTANT):
        raise _left_to_spark(call)
    if family is Family.INSTANT and steps.offset is None:
        raise CannotEvaluate(f"{call.name} of a timestamp depends on the session's time zone")
    ticks_per_day = 86_400_000_000
    return _apply(lambda t: _in_known_years(t, ticks_per_day, pa.int64()), steps.converted(moment, pa.timestamp("us")))


def _in_known_years(moments: Datum, ticks_per_day: int, ticks: pa.DataType) -> Datum:
    numbers = pc.cast(moments, ticks)
    span = None if isinstance(numbers, pa.Scalar) else pc.min_max(numbers)
    least, greatest = (numbers, numbers) if span is None else (span["min"], span["max"])
    reason = "a moment lies outside the years 1 to 9999"
    refuse_unless(pc.greater_equal(least, pa.scalar(FIRST_DAY * ticks_per_day, ticks)), reason)
    refuse_unless(pc.less(greatest, pa.scalar((LAST_DAY + 1) * ticks_per_day, ticks)), reason)
    return moments


def _part(kernel: Kernel, *, of_day: bool = False) -> Rule:
    def rule(call: Call, steps: Steps) -> Step:
        (moment,) = _arity(call, 1)
        if of_day and _family(moment) is Family.DATE:
            raise _left_to_spark(call)
        _require(call, pa.int32())
        return _apply(lambda m: pc.cast(kernel(m), pa.int32()), _calendar(call, moment, steps))

    return rule


_TRUNCATIONS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "week": "week",
    **dict.fromkeys(("day", "dd"), "day"),
    **{unit: unit for unit in ("hour", "minute", "second", "millisecond", "microsecond")},
}


def _truncation(call: Call, unit: Expression) -> str:
    name = _text_constant(call, unit).lower()
    if name not in _TRUNCATIONS:
        raise CannotEvaluate(f"{call.name} to {name!r} is left to Spark")
    return _TRUNCATIONS[name]


def _date_trunc(call: Call, steps: Steps) -> Step:
    """`date_trunc(unit, timestamp)`; weeks begin on Monday."""
    unit, moment = _arity(call, 2)
    truncation = _truncation(call, unit)
    target = spark_type(call.type)
    if _family(moment) is Family.DATE or family_of(target) is not _family(moment):
        raise _left_to_spark(call)
    clock = _calendar(call, moment, steps)
    back = converter(pa.timestamp("us"), target, offset=steps.offset)
    return _apply(lambda m: back(_floor(m, truncation)), clock)


def _trunc(call: Call, steps: Steps) -> Step:
    """`trunc(date, unit)`, by week and longer."""
    date, unit = _arity(call, 2)
    truncation = _truncation(call, unit)
    if _family(date) is not Family.DATE or truncation not in ("year", "quarter", "month", "week"):
        raise _left_to_spark(call)
    _require(call, pa.date32())
    return _apply(lambda d: _floor(d, truncation), _calendar(call, date, steps))


def _floor(moments: Datum, unit: str) -> Datum:
    return pc.floor_temporal(moments, unit=unit, week_starts_monday=True)


def _date_difference(call: Call, steps: Steps) -> Step:
    """`datediff(end, start)` counts days."""
    end, start = _arity(call, 2)
    if _family(end) is not Family.DATE or _family(start) is not Family.DATE:
        raise _left_to_spark(call)
    _require(call, pa.int32())
    return _apply(
        lambda e, s: pc.subtract_checked(pc.cast(e, pa.int32()), pc.cast(s, pa.int32())),
        steps.converted(end, pa.date32()),
        steps.converted(start, pa.date32()),
    )


def _day_of_week_from_sunday(moments: Datum) -> Datum:
    return pc.day_of_week(moments, count_from_zero=False, week_start=7)


# Choices --------------------------------------------------------------------------------------------------------------


def _coalesce(call: Call, steps: Steps) -> Step:
    if not call.arguments:
        raise CannotEvaluate("coalesce of nothing is left to Spark")
    return _apply(pc.coalesce, *_alike(call, steps))


def _alike(call: Call, steps: Steps) -> tuple[Step, ...]:
    target = spark_type(call.type)
    if not family_of(target).is_ordered:
        raise _left_to_spark(call)
    return tuple(steps.converted(argument, target) for argument in call.arguments)


def _extreme(kernel: Kernel) -> Rule:
    """`greatest` and `least` skip NULLs; floats are refused because Arrow orders NaN otherwise."""

    def rule(call: Call, steps: Steps) -> Step:
        families = (Family.INTEGER, Family.DATE, Family.INSTANT, Family.WALL_CLOCK)
        if family_of(call.type) not in families or len(call.arguments) < 2:
            raise _left_to_spark(call)
        return _apply(lambda *values: kernel(*values, skip_nulls=True), *_alike(call, steps))

    return rule


FUNCTIONS: dict[str, Rule] = {
    "add": _arithmetic(pc.add_checked),
    "sub": _arithmetic(pc.subtract_checked),
    "mul": _arithmetic(pc.multiply_checked),
    "div": _divide,
    "mod": _remainder,
    "pmod": _remainder,
    "neg": _unary_number(pc.negate_checked),
    "abs": _unary_number(pc.abs_checked),
    "isnan": _is_nan,
    "floor": _whole_number(pc.floor),
    "ceil": _whole_number(pc.ceil),
    "ceiling": _whole_number(pc.ceil),
    "length": _length,
    "char_length": _length,
    "character_length": _length,
    "octet_length": _octet_length,
    "lower": _cased(lowered),
    "lcase": _cased(lowered),
    "upper": _cased(uppered),
    "ucase": _cased(uppered),
    "substring": _substring,
    "substr": _substring,
    "left": _left,
    "right": _right,
    "trim": _trim(pc.utf8_trim),
    "ltrim": _trim(pc.utf8_ltrim),
    "rtrim": _trim(pc.utf8_rtrim),
    "concat": _concat,
    "replace": _replace,
    "reverse": _reverse,
    "year": _part(pc.year),
    "quarter": _part(pc.quarter),
    "month": _part(pc.month),
    "weekofyear": _part(pc.iso_week),
    "day": _part(pc.day),
    "dayofmonth": _part(pc.day),
    "dayofyear": _part(pc.day_of_year),
    "dayofweek": _part(_day_of_week_from_sunday),
    "weekday": _part(pc.day_of_week),
    "hour": _part(pc.hour, of_day=True),
    "minute": _part(pc.minute, of_day=True),
    "second": _part(pc.second, of_day=True),
    "date_trunc": _date_trunc,
    "trunc": _trunc,
    "datediff": _date_difference,
    "date_diff": _date_difference,
    "date_add": _date_arithmetic,
    "date_sub": _date_arithmetic,
    "coalesce": _coalesce,
    "ifnull": _coalesce,
    "nvl": _coalesce,
    "greatest": _extreme(pc.max_element_wise),
    "least": _extreme(pc.min_element_wise),
}
"""The rule of each function, by the name Spark gives it."""
