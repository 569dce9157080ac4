"""Literals over Arrow batches: each is compiled once into a step whose value is TRUE, FALSE or null for every row.

Arrow compares floats as IEEE 754 has it, Spark (and DuckDB) as a total order: NaN equals itself and lies above all
other values. The functions here state each comparison by those of Arrow:

    x <  y    x < y, or only y is NaN         x >= y   not (x < y)
    x <= y    x <= y, or y is NaN             x >  y   not (x <= y)
    x =  y    x = y, or both are NaN          x <> y   not (x = y)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import CannotEvaluate
from skipstone.predicate.arrow.conversions import Datum, converter, spark_type
from skipstone.predicate.arrow.expressions import Compiler, constant_of
from skipstone.predicate.arrow.families import Family, common_type, family_of
from skipstone.predicate.arrow.java_patterns import like_as_re2, like_parts, rlike_as_re2
from skipstone.predicate.arrow.letter_case import has_plain_case, lowered
from skipstone.predicate.arrow.steps import Always, Frame, Step
from skipstone.predicate.arrow.texts import validated
from skipstone.predicate.expression import Constant, Expression
from skipstone.predicate.literal import Comparison, InSet, Literal, Match, MatchKind, NullTest, Opaque, Operator

__all__ = ["compile_literal"]

Relation: TypeAlias = Callable[[Datum, Datum], Datum]

FEW_VALUES = {Family.INTEGER: 8, Family.STRING: 4, Family.DATE: 8}
"""So many comparisons for equality are faster than one look-up in a hash table (measured on a million rows)."""


def compile_literal(literal: Literal, compiler: Compiler) -> Step:
    """Compile a literal to a step that gives Arrow booleans, or raise CannotEvaluate with the reason."""
    match literal:
        case Comparison(operator=operator, left=left, right=right):
            return _comparison(operator, left, right, compiler)
        case InSet():
            return _membership(literal, compiler)
        case Match():
            return _match(literal, compiler)
        case NullTest(expression=expression, negated=negated):
            test = pc.is_valid if negated else pc.is_null
            inner = compiler.value(expression)
            return lambda frame: test(inner(frame))
        case Opaque(text=text):
            raise CannotEvaluate(f"{_shortened(text)} is left to Spark")


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:56] + " ..."


# Comparisons ----------------------------------------------------------------------------------------------------------


def _comparison(operator: Operator, left: Expression, right: Expression, compiler: Compiler) -> Step:
    if isinstance(left, Constant) and not isinstance(right, Constant):
        operator, left, right = operator.flipped, right, left
    left_step, right_step, type_ = _sides(left, right, compiler)
    family = family_of(type_)
    if not family.is_ordered:
        raise CannotEvaluate(f"values of {type_} are compared by Spark")
    relation = _relation(operator, family)
    return lambda frame: relation(left_step(frame), right_step(frame))


def _sides(left: Expression, right: Expression, compiler: Compiler) -> tuple[Step, Step, pa.DataType]:
    """Compile two sides to the type in which they are compared.

    Where a constant is a value of the other side's narrower type as well, the column need not be widened: for every
    value of an int column `x < 5L` and `x < 5` say the same. A bigint does not turn into a double without loss, so
    there both sides must be converted.
    """
    held = spark_type(left.type)
    wanted = common_type(held, spark_type(right.type))
    if isinstance(right, Constant) and not right.is_null and _widens_exactly(held, wanted):
        narrow = _constant_in(right, held, wanted, compiler)
        if narrow is not None:
            return compiler.value(left), Always(narrow), held
        if family_of(held) in (Family.INSTANT, Family.WALL_CLOCK):
            coarse = _without_nanoseconds(left, right, compiler)
            if coarse is not None:
                return coarse
    return compiler.converted(left, wanted), compiler.converted(right, wanted), wanted


def _widens_exactly(source: pa.DataType, target: pa.DataType) -> bool:
    if source.equals(target):
        return True
    held, wanted = family_of(source), family_of(target)
    if held is Family.INTEGER and wanted is Family.FLOAT:
        return int(source.bit_width) <= 32
    if held is wanted is Family.FLOAT:
        return int(source.bit_width) <= int(target.bit_width)
    return held is wanted or (held is Family.INTEGER and wanted is Family.DECIMAL)


def _constant_in(constant: Constant, held: pa.DataType, wanted: pa.DataType, compiler: Compiler) -> pa.Scalar | None:
    """Give the constant as a value of the column's own type, None where it is not one."""
    try:
        there = converter(spark_type(constant.type), wanted, offset=compiler.offset)(constant_of(constant))
        here = converter(wanted, held, offset=compiler.offset)(there)
        back = converter(held, wanted, offset=compiler.offset)(here)
    except (CannotEvaluate, pa.ArrowException):
        return None
    same = there.equals(back) or constant.is_nan
    return here if same else None


def _without_nanoseconds(
    left: Expression, right: Constant, compiler: Compiler
) -> tuple[Step, Step, pa.DataType] | None:
    """Compare in microseconds where the constant is beyond what nanoseconds reach: rounding does not matter there."""
    held, type_ = spark_type(left.type), spark_type(right.type)
    if not pa.types.is_timestamp(held) or held.unit != "ns" or family_of(type_) is not family_of(held):
        return None
    coarse = pa.timestamp("us", held.tz)
    return compiler.converted(left, coarse), compiler.converted(right, coarse), coarse


def _relation(operator: Operator, family: Family) -> Relation:
    equal, less, less_equal = _FLOAT_RELATIONS if family is Family.FLOAT else _PLAIN_RELATIONS
    relations: dict[Operator, Relation] = {
        Operator.EQUAL: equal,
        Operator.LESS: less,
        Operator.LESS_EQUAL: less_equal,
        Operator.NULL_SAFE_EQUAL: lambda left, right: _null_safe(equal, left, right),
        Operator.NULL_SAFE_NOT_EQUAL: lambda left, right: pc.invert(_null_safe(equal, left, right)),
    }
    if family is not Family.FLOAT:
        relations |= {
            Operator.NOT_EQUAL: pc.not_equal,
            Operator.GREATER: pc.greater,
            Operator.GREATER_EQUAL: pc.greater_equal,
        }
    if operator in relations:
        return relations[operator]
    opposite = relations[operator.negated]
    return lambda left, right: pc.invert(opposite(left, right))


def _null_safe(equal: Relation, left: Datum, right: Datum) -> Datum:
    known = pc.fill_null(equal(left, right), False)
    if isinstance(right, pa.Scalar) and right.is_valid:
        return known
    return pc.or_(known, pc.and_(pc.is_null(left), pc.is_null(right)))


def _is_plain_number(datum: Datum) -> bool:
    return isinstance(datum, pa.Scalar) and datum.is_valid and datum.as_py() == datum.as_py()


def _float_equal(left: Datum, right: Datum) -> Datum:
    equal = pc.equal(left, right)
    if _is_plain_number(right) or _is_plain_number(left):
        return equal
    return pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))


def _float_less(left: Datum, right: Datum) -> Datum:
    less = pc.less(left, right)
    if _is_plain_number(right):
        return less
    return pc.or_(less, pc.and_not(pc.is_nan(right), pc.is_nan(left)))


def _float_less_equal(left: Datum, right: Datum) -> Datum:
    less_equal = pc.less_equal(left, right)
    if _is_plain_number(right):
        return less_equal
    return pc.or_(less_equal, pc.is_nan(right))


_PLAIN_RELATIONS: tuple[Relation, Relation, Relation] = (pc.equal, pc.less, pc.less_equal)
_FLOAT_RELATIONS: tuple[Relation, Relation, Relation] = (_float_equal, _float_less, _float_less_equal)


# Sets -----------------------------------------------------------------------------------------------------------------


def _membership(literal: InSet, compiler: Compiler) -> Step:
    """`x IN (...)`: NULL where x is, and NULL instead of FALSE where the list holds a NULL."""
    if not literal.values:
        return Always(pa.scalar(literal.negated))
    wanted = spark_type(literal.expression.type)
    for value in literal.values:
        wanted = common_type(wanted, spark_type(value.type))
    family = family_of(wanted)
    if not family.is_ordered:
        raise CannotEvaluate(f"values of {wanted} are compared by Spark")
    inner, wanted, members = _members(literal, wanted, compiler)
    found = _lookup(members, wanted)
    holds_null = any(value.is_null for value in literal.values)

    def contains(frame: Frame) -> Datum:
        values = inner(frame)
        mask = _null_where_unknown(found(values), values)
        if holds_null:
            mask = pc.or_kleene(mask, pa.scalar(None, pa.bool_()))
        return pc.invert(mask) if literal.negated else mask

    return contains


def _members(literal: InSet, wanted: pa.DataType, compiler: Compiler) -> tuple[Step, pa.DataType, list[pa.Scalar]]:
    """Give the values in the column's own type where all of them are values of it, else both sides widened."""
    held = spark_type(literal.expression.type)
    values = [value for value in literal.values if not value.is_null]
    if _widens_exactly(held, wanted):
        narrow = [_constant_in(value, held, wanted, compiler) for value in values]
        if None not in narrow:
            return compiler.value(literal.expression), held, [value for value in narrow if value is not None]
    convert = (converter(spark_type(value.type), wanted, offset=compiler.offset) for value in values)
    try:
        members = [to_wanted(constant_of(value)) for to_wanted, value in zip(convert, values, strict=True)]
    except pa.ArrowException as error:
        raise CannotEvaluate(f"a value of the list does not fit {wanted}") from error
    return compiler.converted(literal.expression, wanted), wanted, members


def _lookup(members: list[pa.Scalar], type_: pa.DataType) -> Callable[[Datum], Datum]:
    family = family_of(type_)
    if len(members) <= FEW_VALUES.get(family, 0):
        return lambda values: _any_equal(values, members)
    if family is Family.BOOLEAN:
        return lambda values: _any_equal(values, members)
    if family is Family.FLOAT:
        return _float_lookup([member.as_py() for member in members], type_)
    table = pa.array(members, type_)
    return lambda values: pc.is_in(values, value_set=table)


def _float_lookup(members: list[float], type_: pa.DataType) -> Callable[[Datum], Datum]:
    """Find floats by a hash table, which tells the two zeros apart, and one NaN from another by its bits."""
    plain = [member for member in members if member == member]
    wants_nan = len(plain) < len(members)
    table = pa.array([*plain, 0.0, -0.0] if 0.0 in plain else plain, type_)
    if not wants_nan:
        return lambda values: pc.is_in(values, value_set=table)
    return lambda values: pc.or_(pc.is_in(values, value_set=table), pc.fill_null(pc.is_nan(values), False))


def _any_equal(values: Datum, members: list[pa.Scalar]) -> Datum:
    if not members:
        return pc.and_(pc.is_null(values), pc.is_valid(values))
    mask = pc.equal(values, members[0])
    for member in members[1:]:
        mask = pc.or_(mask, pc.equal(values, member))
    return mask


def _null_where_unknown(mask: Datum, values: Datum) -> Datum:
    if isinstance(values, pa.Scalar):
        return mask if values.is_valid else pa.scalar(None, pa.bool_())
    if values.null_count == 0 or mask.null_count == values.null_count:
        return mask
    return pc.if_else(pc.is_valid(values), mask, pa.scalar(None, pa.bool_()))


# Patterns -------------------------------------------------------------------------------------------------------------


def _match(literal: Match, compiler: Compiler) -> Step:
    if family_of(literal.expression.type) is not Family.STRING:
        raise CannotEvaluate(f"{literal.kind.value} of {literal.expression.type} is left to Spark")
    inner = compiler.value(literal.expression)
    test = _text_test(literal.kind, literal.pattern)
    if literal.negated:
        return lambda frame: pc.invert(test(inner(frame)))
    return lambda frame: test(inner(frame))


def _text_test(kind: MatchKind, pattern: str) -> Callable[[Datum], Datum]:
    match kind:
        case MatchKind.PREFIX:
            return lambda text: pc.starts_with(text, pattern)
        case MatchKind.SUFFIX:
            return lambda text: pc.ends_with(text, pattern)
        case MatchKind.CONTAINS:
            return lambda text: pc.match_substring(text, pattern)
        case MatchKind.LIKE:
            return _like(pattern)
        case MatchKind.ILIKE:
            if not has_plain_case(pattern):
                raise CannotEvaluate("an ILIKE pattern has letters whose case Java and Arrow may see differently")
            like = _like(pattern.lower())
            return lambda text: like(lowered(text))
        case MatchKind.RLIKE:
            return _found_by(rlike_as_re2(pattern))


def _like(pattern: str) -> Callable[[Datum], Datum]:
    parts = like_parts(pattern)
    if parts is None:
        return _found_by(like_as_re2(pattern))
    if parts.kind is None:
        return lambda text: pc.equal(text, pa.scalar(parts.text, text.type))
    return _text_test(parts.kind, parts.text)


def _found_by(expression: str) -> Callable[[Datum], Datum]:
    try:
        pc.match_substring_regex(pa.array([""]), expression)
    except pa.ArrowInvalid as error:
        raise CannotEvaluate("the pattern is too large for RE2") from error
    return lambda text: pc.match_substring_regex(validated(text), expression)
