"""What a filter is for one row, worked out from the definition: slow, plain, and shared with nothing it is to judge.

A row is a dict of Python values, None is NULL, and so is the third truth value. NaN equals itself and is above every
other number, -0.0 equals 0.0, texts compare by their bytes, and two kinds of numbers are compared as Spark converts
them: as doubles as soon as one side is one.
"""

from __future__ import annotations

import datetime
import decimal
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from skipstone.predicate.expression import Call, Cast, Column, Constant, Element, Expression, Field
from skipstone.predicate.literal import (
    Comparison,
    Conjunction,
    InSet,
    Literal,
    Match,
    MatchKind,
    NullTest,
    Opaque,
    Operator,
    Predicate,
)

Row = Mapping[str, Any]
Truth = bool | None


def truth(filter_: Conjunction | Predicate | Literal, row: Row) -> Truth:
    """TRUE, FALSE or NULL, for one row."""
    match filter_:
        case Conjunction(predicates=predicates):
            return _not(_any(_not(truth(predicate, row)) for predicate in predicates))
        case Predicate(literals=literals):
            return _any(truth(literal, row) for literal in literals)
        case Comparison(operator=operator, left=left, right=right):
            return _compare(operator, (value(left, row), left.type), (value(right, row), right.type))
        case InSet(expression=expression, values=values, negated=negated):
            found = _any(truth(Comparison(Operator.EQUAL, expression, constant), row) for constant in values)
            return _not(found) if negated else found
        case NullTest(expression=expression, negated=negated):
            return (value(expression, row) is None) != negated
        case Match(negated=negated):
            found = _matches(filter_, row)
            return _not(found) if negated else found
        case Opaque(text=text):
            return row[f"opaque {text}"]  # type: ignore[no-any-return]


def selects(filter_: Conjunction | Predicate | Literal, row: Row) -> bool:
    """Whether the filter is TRUE."""
    return truth(filter_, row) is True


def _any(truths: Iterable[Truth]) -> Truth:
    found = list(truths)
    return True if True in found else None if None in found else False


def _not(one: Truth) -> Truth:
    return None if one is None else not one


def _compare(operator: Operator, left: tuple[Any, pa.DataType], right: tuple[Any, pa.DataType]) -> Truth:
    null_safe = operator in (Operator.NULL_SAFE_EQUAL, Operator.NULL_SAFE_NOT_EQUAL)
    if left[0] is None or right[0] is None:
        if not null_safe:
            return None
        same = left[0] is None and right[0] is None
        return same == (operator is Operator.NULL_SAFE_EQUAL)
    order = _order(left, right)
    match operator:
        case Operator.EQUAL | Operator.NULL_SAFE_EQUAL:
            return order == 0
        case Operator.NOT_EQUAL | Operator.NULL_SAFE_NOT_EQUAL:
            return order != 0
        case Operator.LESS:
            return order < 0
        case Operator.LESS_EQUAL:
            return order <= 0
        case Operator.GREATER:
            return order > 0
        case Operator.GREATER_EQUAL:
            return order >= 0


def _order(left: tuple[Any, pa.DataType], right: tuple[Any, pa.DataType]) -> int:
    one, other = _alike(*left, right[1]), _alike(*right, left[1])
    if isinstance(one, float) and (one != one or other != other):
        return int(one != one) - int(other != other)
    if isinstance(one, str):
        one, other = one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass")
    return int(one > other) - int(one < other)


def _alike(one: Any, type_: pa.DataType, beside: pa.DataType) -> Any:
    if pa.types.is_floating(type_) or pa.types.is_floating(beside):
        return float(one)
    if type(one) is datetime.date and pa.types.is_timestamp(beside):
        return datetime.datetime.combine(one, datetime.time())
    return one


def _matches(literal: Match, row: Row) -> Truth:
    text, pattern = value(literal.expression, row), literal.pattern
    if text is None:
        return None
    match literal.kind:
        case MatchKind.PREFIX:
            return bool(text.startswith(pattern))
        case MatchKind.SUFFIX:
            return bool(text.endswith(pattern))
        case MatchKind.CONTAINS:
            return pattern in text
        case MatchKind.LIKE:
            return like(text, pattern)
        case MatchKind.ILIKE:
            return like(text.lower(), pattern.lower())
        case MatchKind.RLIKE:
            return re.search(pattern, text) is not None


def like(text: str, pattern: str) -> bool:
    """SQL's LIKE by its definition: the first letter of the pattern decides what may come first in the text."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(like(text[i:], pattern[1:]) for i in range(len(text) + 1))
    if pattern[0] == "_":
        return bool(text) and like(text[1:], pattern[1:])
    wanted, rest = (pattern[1], pattern[2:]) if pattern[0] == "\\" else (pattern[0], pattern[1:])
    return text[:1] == wanted and like(text[1:], rest)


def value(expression: Expression, row: Row) -> Any:
    """The value of an expression in a row; None is NULL."""
    match expression:
        case Column(name=name):
            return row[name]
        case Constant(value=constant):
            return constant
        case Field(base=base, name=name):
            held = value(base, row)
            return None if held is None else held[name]
        case Element(base=base, key=key):
            held = value(base, row)
            return None if held is None else held.get(key.value)
        case Cast(base=base, type=type_):
            held = value(base, row)
            return None if held is None else _cast(held, base.type, type_)
        case Call(name=name, arguments=arguments, type=type_):
            held = [value(argument, row) for argument in arguments]
            if name == "coalesce":
                return next((one for one in held if one is not None), None)
            return None if None in held else _FUNCTIONS[name](type_, *held)


def _cast(held: Any, source: pa.DataType, target: pa.DataType) -> Any:
    if pa.types.is_floating(target):
        return float(held) if target == pa.float64() else struct.unpack("<f", struct.pack("<f", held))[0]
    if pa.types.is_date(target) and isinstance(held, datetime.datetime):
        return held.date()
    if pa.types.is_timestamp(target) and type(held) is datetime.date:
        zone = None if target.tz is None else datetime.UTC
        return datetime.datetime.combine(held, datetime.time(), tzinfo=zone)
    if pa.types.is_decimal(target):
        with decimal.localcontext(prec=80):
            step = decimal.Decimal(1).scaleb(-target.scale)
            rounded = decimal.Decimal(held).quantize(step, rounding=decimal.ROUND_HALF_UP)
            fits = abs(rounded) < decimal.Decimal(10) ** (target.precision - target.scale)
        return rounded if fits else None
    if pa.types.is_string(target):
        return str(held)
    assert pa.types.is_integer(source), "the oracle knows no such cast"
    assert pa.types.is_integer(target), "the oracle knows no such cast"
    return _wrapped(target, held)


def _wrapped(type_: pa.DataType, number: Any) -> Any:
    """A number as a result of the type: whole numbers run over as Java's do; decimals that do not fit are NULL."""
    if pa.types.is_integer(type_):
        half = 1 << (type_.bit_width - 1)
        return (number + half) % (2 * half) - half
    if pa.types.is_decimal(type_):
        return _cast(number, type_, type_)
    return number


def _exactly(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(type_: pa.DataType, *arguments: Any) -> Any:
        with decimal.localcontext(prec=80):
            return _wrapped(type_, function(*arguments))

    return apply


def _truncated(_: pa.DataType, unit: str, moment: datetime.datetime) -> datetime.datetime:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit.lower():
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - datetime.timedelta(days=day.weekday())
        case "day":
            return day
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return moment.replace(second=0, microsecond=0)
        case _:
            return moment.replace(microsecond=0)


def _substring(_: pa.DataType, text: str, start: int, length: int) -> str:
    assert start >= 0, "the oracle counts from the front"
    begin = max(start - 1, 0)
    return text[begin : begin + length]


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": _exactly(lambda a, b: a + b),
    "sub": _exactly(lambda a, b: a - b),
    "mul": _exactly(lambda a, b: a * b),
    "neg": _exactly(lambda a: -a),
    "mod": _exactly(lambda a, b: abs(a) % b * (1 if a >= 0 else -1)),
    "abs": _exactly(abs),
    "length": lambda _, text: len(text),
    "lower": lambda _, text: text.lower(),
    "year": lambda _, day: day.year,
    "month": lambda _, day: day.month,
    "date_add": lambda _, day, days: day + datetime.timedelta(days=days),
    "date_trunc": _truncated,
    "trunc": lambda type_, day, unit: _truncated(type_, unit, datetime.datetime.combine(day, datetime.time())).date(),
    "substring": _substring,
    "left": lambda _, text, length: text[:length],
}
