"""Comparisons under Spark's rules for implicit casts, said with values that the compared expression can hold.

Spark casts both sides of a comparison to one type. Where that is the same as comparing the values themselves, the
constant is placed among the values of the other side (`skipstone.predicate.coercion`). Where the cast loses something
(a BIGINT beside a DOUBLE), the cast is written out. Where it depends on settings of the session, it stays opaque.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from skipstone.predicate.coercion import Place, compare, nearest_double, place
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
    as_decimal,
    integer_range,
    is_comparable,
    logical,
)
from skipstone.predicate.expression import Cast, Constant, Expression
from skipstone.predicate.folding import cast_constant
from skipstone.predicate.formula import ALWAYS_TRUE, NEVER_TRUE, Formula
from skipstone.predicate.literal import Comparison, NullTest, Operator
from skipstone.predicate.printing import sql
from skipstone.predicate.values import NotUnderstood

__all__ = ["between_expressions", "require_one_type", "with_constant"]

WHOLE_IN_DOUBLE = 1 << 53
WHOLE_IN_FLOAT = 1 << 24
DIGITS_IN_DOUBLE = 15
"""Decimals of so many digits are all different as doubles, and in the same order."""


def with_constant(operator: Operator, left: Expression, constant: Constant, timezone: str) -> Formula:
    """Compare an expression with a constant.

    >>> from skipstone.predicate.expression import Column
    >>> x = Column("x", pa.int32())
    >>> five = Constant(decimal.Decimal("5.5"), pa.decimal128(2, 1))
    >>> print(sql(with_constant(Operator.LESS, x, five, "UTC")))
    x <= 5
    """
    if constant.is_null:
        return _with_null(operator, left)
    if isinstance(left, Constant):
        return _of_constants(operator, left, constant, timezone)
    if logical(left.type) == BOOLEAN and operator in _EQUALITIES and _is_bit(constant):
        # gift = 1 -> gift = TRUE: where Spark takes it at all, it takes it so; to SQL Server and MySQL it is a number
        constant = Constant(bool(constant.value), BOOLEAN)
    left, found = _placed(left, constant, timezone)
    if _decided_without_the_row(operator, left, constant):
        raise NotUnderstood
    return compare(operator, left, found)


def _is_bit(constant: Constant) -> bool:
    return type(constant.value) is int and constant.value in (0, 1)


_EQUALITIES: Final = (
    Operator.EQUAL,
    Operator.NOT_EQUAL,
    Operator.NULL_SAFE_EQUAL,
    Operator.NULL_SAFE_NOT_EQUAL,
)


def _decided_without_the_row(operator: Operator, left: Expression, constant: Constant) -> bool:
    """Whether Spark answers TRUE for every row, those with NULL included.

    It does so for `whole <= 9223372036854775808`: an integer beside a decimal literal that no BIGINT reaches
    (DecimalPrecision in Spark's analyser). SQL would have NULL where the integer is NULL; we leave the answer to Spark.
    """
    value = constant.value
    if not isinstance(value, decimal.Decimal) or not pa.types.is_integer(logical(left.type)):
        return False
    least, greatest = integer_range(LONG)
    if operator in (Operator.LESS, Operator.LESS_EQUAL):
        return value > greatest
    return operator in (Operator.GREATER, Operator.GREATER_EQUAL) and value < least


def _with_null(operator: Operator, left: Expression) -> Formula:
    if operator is Operator.NULL_SAFE_EQUAL or operator is Operator.NULL_SAFE_NOT_EQUAL:
        wants_null = operator is Operator.NULL_SAFE_EQUAL
        if isinstance(left, Constant):
            return ALWAYS_TRUE if left.is_null == wants_null else NEVER_TRUE
        return NullTest(left, negated=not wants_null)
    return NEVER_TRUE


def _of_constants(operator: Operator, left: Constant, right: Constant, timezone: str) -> Formula:
    """Decide a comparison of two constants by placing one among the values of the other's type."""
    if left.is_null:
        return _with_null(operator, right)
    _, found = _placed(left, right, timezone)
    if found.floor is None or found.above:
        order = 1 if found.floor is None else -1
    else:
        from skipstone.predicate.value_sets import order_key

        a, b = order_key(left), order_key(found.floor)
        order = (a > b) - (a < b) if found.exact or a != b else -1
    holds = {
        Operator.EQUAL: order == 0,
        Operator.NULL_SAFE_EQUAL: order == 0,
        Operator.NOT_EQUAL: order != 0,
        Operator.NULL_SAFE_NOT_EQUAL: order != 0,
        Operator.LESS: order < 0,
        Operator.LESS_EQUAL: order <= 0,
        Operator.GREATER: order > 0,
        Operator.GREATER_EQUAL: order >= 0,
    }[operator]
    return ALWAYS_TRUE if holds else NEVER_TRUE


def _placed(left: Expression, constant: Constant, timezone: str) -> tuple[Expression, Place]:
    """The expression that is really compared, and the place of the constant among its values."""
    type_, other = logical(left.type), logical(constant.type)
    if not is_comparable(type_):
        raise NotUnderstood
    if other == STRING and type_ != STRING:
        constant = _text_as(constant, type_, timezone)
        other = constant.type
    if _is_exact(type_) and other in (DOUBLE, FLOAT):
        return _exact_with_floating(left, constant)
    if type_ in (DOUBLE, FLOAT) or _is_exact(type_):
        return left, _number_among(type_, constant)
    if type_ != other:
        if {type_, other} <= {DATE, TIMESTAMP, TIMESTAMP_NTZ}:
            constant = _moment_as(constant, type_, timezone)
        else:
            raise NotUnderstood
    return left, _require(place(constant.value, type_))


def _require(found: Place | None) -> Place:
    if found is None:
        raise NotUnderstood
    return found


def _is_exact(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_decimal(type_))


def _text_as(constant: Constant, type_: pa.DataType, timezone: str) -> Constant:
    """`d >= '1994-01-01'`: the text is read as the other side's type, where all modes of Spark read it alike."""
    if pa.types.is_decimal(type_) or type_ == FLOAT:
        # Depending on the mode, such a text is compared as a double, a float or a decimal.
        raise NotUnderstood
    found = cast_constant(constant, type_, timezone) if type_ != BOOLEAN else None
    if found is None:
        raise NotUnderstood
    return found


def _number_among(type_: pa.DataType, constant: Constant) -> Place:
    value = constant.value
    if isinstance(value, bool) or not isinstance(value, (int, float, decimal.Decimal)):
        raise NotUnderstood
    if isinstance(value, decimal.Decimal) and _is_exact(type_):
        _require_exact_widening(type_, constant.type)
    if type_ == FLOAT and isinstance(value, int) and abs(value) > WHOLE_IN_FLOAT:
        raise NotUnderstood  # compared as single floats or as doubles, depending on the mode
    if type_ in (DOUBLE, FLOAT):
        value = nearest_double(value)
    return _require(place(value, type_))


def _require_exact_widening(one: pa.DataType, other: pa.DataType) -> None:
    """Two decimals are compared exactly if one of 38 digits can hold both; else Spark rounds."""
    a, b = as_decimal(one), as_decimal(other)
    if a is None or b is None:
        a = a or (20, 0)  # an unsigned integer, which Spark reads as a wider signed one
        b = b or (20, 0)
    if max(a[0] - a[1], b[0] - b[1]) + max(a[1], b[1]) > MAX_PRECISION:
        raise NotUnderstood


def _exact_with_floating(left: Expression, constant: Constant) -> tuple[Expression, Place]:
    """A whole number or decimal beside a DOUBLE: Spark compares doubles, which may be fewer than the values."""
    value, type_ = constant.value, logical(left.type)
    assert isinstance(value, float)
    if constant.type == FLOAT:
        if pa.types.is_integer(type_) and not abs(value) < WHOLE_IN_FLOAT:
            raise NotUnderstood  # compared as single floats or as doubles, depending on the mode
        constant = Constant(value, DOUBLE)
    if pa.types.is_integer(type_):
        if type_.bit_width <= 32 or abs(value) < WHOLE_IN_DOUBLE:
            return left, _require(place(value, type_))
    elif type_.precision <= DIGITS_IN_DOUBLE:
        return left, _among_decimals(value, type_)
    widened = left if isinstance(left, Constant) else Cast(left, DOUBLE)
    return widened, _require(place(value, DOUBLE))


def _among_decimals(value: float, type_: pa.DataType) -> Place:
    """Place a double among decimals as their doubles are ordered: 0.05D is the decimal 0.05, though not its value."""
    found = _require(place(value, type_))
    if not math.isfinite(value) or found.floor is None or found.above:
        return found
    step = decimal.Decimal((0, (1,), -type_.scale))
    for candidate in (found.floor.value, found.floor.value + step):  # type: ignore[operator]
        if float(candidate) == value and abs(candidate) < 10 ** (type_.precision - type_.scale):  # type: ignore[arg-type]
            return _require(place(candidate, type_))
    return found


def _moment_as(constant: Constant, type_: pa.DataType, timezone: str) -> Constant:
    """Dates and timestamps of both kinds beside each other; where a zone matters, only UTC is simple enough."""
    if type_ == DATE:
        # The date is cast to a timestamp at its midnight; the constant then lies on one of its days.
        if constant.type == TIMESTAMP and timezone != "UTC":
            raise NotUnderstood
        return constant
    if constant.type != DATE and timezone != "UTC":
        raise NotUnderstood
    found = cast_constant(constant, type_, timezone)
    if found is None:
        raise NotUnderstood
    return found


def require_one_type(value: Expression, given: Sequence[Expression]) -> None:
    """Make sure that `value IN (given)` is what comparing with each of them says.

    Spark casts all of an IN to one type first, so `whole IN (1, 2.5e0)` compares doubles, and a text beside a date may
    be compared as a text or as a date, depending on the mode.
    """
    types = [logical(value.type), *(logical(e.type) for e in given if not (isinstance(e, Constant) and e.is_null))]
    distinct = set(types)
    if len(distinct) == 1:
        return
    if all(map(_is_exact, distinct)):
        digits = [as_decimal(type_) or (20, 0) for type_ in distinct]
        if max(p - s for p, s in digits) + max(s for _, s in digits) > MAX_PRECISION:
            raise NotUnderstood
        return
    if all(_is_exact(type_) or type_ in (DOUBLE, FLOAT) for type_ in distinct):
        # All become doubles. A DOUBLE on the left is compared so anyway; whole numbers only beside nothing but doubles.
        if types[0] == DOUBLE or (types[0] == FLOAT and DOUBLE in distinct) or len(set(types[1:])) == 1:
            return
        raise NotUnderstood
    if STRING in distinct and types[0] != STRING:
        if set(types[1:]) == {STRING} and all(_reads_as_itself(types[0], each) for each in given):
            return
        raise NotUnderstood
    if distinct <= {DATE, TIMESTAMP} or distinct <= {DATE, TIMESTAMP_NTZ}:
        return
    raise NotUnderstood


def _reads_as_itself(type_: pa.DataType, text: Expression) -> bool:
    """Whether a text is just how a value of the type is printed, so that comparing either says the same."""
    if not isinstance(text, Constant) or not isinstance(text.value, str):
        return isinstance(text, Constant) and text.is_null
    found = cast_constant(text, type_, "UTC")
    return found is not None and type_ in (DATE, INT, LONG) and str(found.value) == text.value


def between_expressions(operator: Operator, left: Expression, right: Expression, timezone: str) -> Formula:
    """Compare two expressions, neither of them constant.

    >>> from skipstone.predicate.expression import Column
    >>> a, b = Column("a", pa.int32()), Column("b", pa.float64())
    >>> print(sql(between_expressions(Operator.LESS, b, a, "UTC")))
    CAST(a AS DOUBLE) > b
    """
    left, right = _alike(left, right, timezone)
    if left == right:
        return _with_itself(operator, left)
    if sql(right) < sql(left):
        left, right, operator = right, left, operator.flipped
    return Comparison(operator, left, right)


def _with_itself(operator: Operator, value: Expression) -> Formula:
    """x = x is TRUE wherever x is known: NaN equals itself."""
    if operator is Operator.NULL_SAFE_EQUAL:
        return ALWAYS_TRUE
    if operator in (Operator.EQUAL, Operator.LESS_EQUAL, Operator.GREATER_EQUAL):
        return NullTest(value, negated=True)
    return NEVER_TRUE


def _alike(left: Expression, right: Expression, timezone: str) -> tuple[Expression, Expression]:
    """Write out the cast with which Spark makes two expressions comparable, where it may matter."""
    a, b = logical(left.type), logical(right.type)
    if not (is_comparable(a) and is_comparable(b)):
        raise NotUnderstood
    if a == b or (pa.types.is_integer(a) and pa.types.is_integer(b)):
        return left, right
    if _is_exact(a) and _is_exact(b):
        _require_exact_widening(a, b)
        return left, right
    if DOUBLE in (a, b) and (a in (DOUBLE, FLOAT) or _is_exact(a)) and (b in (DOUBLE, FLOAT) or _is_exact(b)):
        return _cast(left, DOUBLE), _cast(right, DOUBLE)
    if FLOAT in (a, b) and (pa.types.is_decimal(a) or pa.types.is_decimal(b)):
        return _cast(left, DOUBLE), _cast(right, DOUBLE)
    if {a, b} == {DATE, TIMESTAMP_NTZ} or ({a, b} == {DATE, TIMESTAMP} and timezone == "UTC"):
        return _cast(left, b if a == DATE else a), _cast(right, b if a == DATE else a)
    raise NotUnderstood


def _cast(value: Expression, type_: pa.DataType) -> Expression:
    return value if logical(value.type) == type_ else Cast(value, type_)
