"""Expressions over Arrow batches: each is compiled once into a step that computes its value for a frame of rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import CannotEvaluate
from skipstone.predicate.arrow.conversions import Datum, conform, converter, refuse_unless, spark_type
from skipstone.predicate.arrow.families import Family, family_of
from skipstone.predicate.arrow.functions import FUNCTIONS
from skipstone.predicate.arrow.steps import Always, Frame, Step
from skipstone.predicate.expression import Call, Cast, Column, Constant, Element, Expression, Field

__all__ = ["Compiler", "constant_of"]


class Compiler:
    """Turns expressions into steps; equal expressions become one step, whose value a frame remembers.

    `offset` is the session's time zone in seconds east of Greenwich, or None where it is not known or not fixed.
    """

    def __init__(self, offset: int | None = None) -> None:
        self.offset = offset
        self._steps: dict[Expression, Step] = {}
        self._conversions: dict[tuple[Expression, pa.DataType], Step] = {}

    def value(self, expression: Expression) -> Step:
        """Compile an expression to its value, in `spark_type(expression.type)`."""
        known = self._steps.get(expression)
        if known is None:
            known = self._remembered(self._compile(expression))
            self._steps[expression] = known
        return known

    def converted(self, expression: Expression, target: pa.DataType) -> Step:
        """Compile an expression to its value in another type."""
        source = spark_type(expression.type)
        if source.equals(target):
            return self.value(expression)
        if isinstance(expression, Constant):
            return Always(_converted_constant(expression, target, self.offset))
        known = self._conversions.get((expression, target))
        if known is None:
            inner, convert = self.value(expression), converter(source, target, offset=self.offset)
            known = self._conversions[expression, target] = self._remembered(lambda frame: convert(inner(frame)))
        return known

    def _remembered(self, step: Step) -> Step:
        if isinstance(step, Always):
            return step

        def remembered(frame: Frame) -> Datum:
            found = frame.computed.get(key)
            if found is None:
                found = frame.computed[key] = step(frame)
            return found

        key = id(remembered)  # unique while the step lives, and a frame never outlives the steps that filled it
        return remembered

    def _compile(self, expression: Expression) -> Step:
        match expression:
            case Column(name=name, type=type_):
                declared = spark_type(type_)
                return lambda frame: conform(frame.column(name), declared)
            case Constant():
                return Always(constant_of(expression))
            case Field(base=base, name=name, type=type_):
                return _field(self.value(base), name, spark_type(type_))
            case Element():
                return self._element(expression)
            case Cast(base=base, type=type_):
                return self.converted(base, spark_type(type_))
            case Call():
                return self._call(expression)

    def _element(self, element: Element) -> Step:
        container, declared = element.base.type, spark_type(element.type)
        inner, key = self.value(element.base), element.key
        if key.is_null:
            return Always(pa.scalar(None, declared))
        if pa.types.is_map(container):
            return _map_value(inner, key, declared)
        if not isinstance(key.value, int) or isinstance(key.value, bool) or key.value < 0:
            raise CannotEvaluate(f"position {key.value!r} of a list is outside of every list")
        return _list_value(inner, key.value, declared)

    def _call(self, call: Call) -> Step:
        made = FUNCTIONS.get(call.name)
        if made is None:
            raise CannotEvaluate(f"the function {call.name} is left to Spark")
        return made(call, self)


def constant_of(constant: Constant) -> pa.Scalar:
    """Give a constant as an Arrow scalar.

    >>> constant_of(Constant(7, pa.int32()))
    <pyarrow.Int32Scalar: 7>
    """
    try:
        return pa.scalar(constant.value, spark_type(constant.type))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise CannotEvaluate(f"the constant {constant.value!r} is not a value of {constant.type}") from error


def _converted_constant(constant: Constant, target: pa.DataType, offset: int | None) -> pa.Scalar:
    scalar = constant_of(constant)
    try:
        return converter(scalar.type, target, offset=offset)(scalar)
    except pa.ArrowException as error:
        raise CannotEvaluate(f"the constant {constant.value!r} does not fit {target}") from error


def _field(inner: Step, name: str, declared: pa.DataType) -> Step:
    def take(frame: Frame) -> Datum:
        struct = inner(frame)
        if not pa.types.is_struct(struct.type):
            return pa.scalar(None, declared)
        place = struct.type.get_field_index(name)
        if place < 0:
            raise CannotEvaluate(f"the field {name} is not in these rows")
        return conform(pc.struct_field(struct, [place]), declared)

    return take


def _map_value(inner: Step, key: Constant, declared: pa.DataType) -> Step:
    if family_of(key.type) in (Family.FLOAT, Family.NESTED, Family.OTHER):
        raise CannotEvaluate(f"it looks up a map by a {key.type}")

    def look_up(frame: Frame) -> Datum:
        maps = inner(frame)
        if not pa.types.is_map(maps.type):
            return pa.scalar(None, declared)
        query = _converted_constant(key, maps.type.key_type, None)
        return conform(pc.map_lookup(maps, query, "first"), declared)

    return look_up


def _list_value(inner: Step, position: int, declared: pa.DataType) -> Step:
    def look_up(frame: Frame) -> Datum:
        lists = inner(frame)
        if family_of(lists.type) is Family.NULL:
            return pa.scalar(None, declared)
        within = pc.greater(pc.list_value_length(lists), position)
        refuse_unless(within, f"a list has no position {position}, which Spark answers with an error or with NULL")
        return conform(pc.list_element(lists, position), declared)

    return look_up
