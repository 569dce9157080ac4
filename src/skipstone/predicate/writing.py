"""What writing SQL has in common in all dialects: precedence, and where a constant may be written plainly."""

from __future__ import annotations

import abc
import datetime
import decimal
import math
from collections.abc import Callable
from typing import Final

import numpy
import pyarrow as pa

from skipstone.predicate.datatypes import DOUBLE, logical
from skipstone.predicate.expression import Call, Cast, Column, Constant, Element, Expression, Field
from skipstone.predicate.literal import (
    Comparison,
    Conjunction,
    InSet,
    Literal,
    Match,
    NullTest,
    Opaque,
    Operator,
    Predicate,
)

__all__ = ["OPERATORS_OF_CALLS", "Writer", "clock", "shortest_float32"]

OPERATORS_OF_CALLS: Final = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}


class Writer(abc.ABC):
    """What the two dialects share: precedence, literals, and where a constant may be written plainly."""

    def conjunction(self, value: Conjunction) -> str:
        if not value.predicates:
            return "TRUE"
        if len(value.predicates) == 1:
            return self.predicate(value.predicates[0])
        return " AND ".join(
            f"({self.predicate(p)})" if len(p.literals) > 1 else self.predicate(p, joined=True)
            for p in value.predicates
        )

    def predicate(self, value: Predicate, *, joined: bool = False) -> str:
        if not value.literals:
            return "FALSE"
        if len(value.literals) == 1:
            return self.literal(value.literals[0], joined=joined)
        return " OR ".join(self.literal(literal, joined=True) for literal in value.literals)

    def literal(self, value: Literal, *, joined: bool = False) -> str:
        match value:
            case Comparison():
                return self.comparison(value)
            case InSet(expression=expression, values=values, negated=negated):
                word = "NOT IN" if negated else "IN"
                plain = self.plainly(expression)
                return f"{self.operand(expression)} {word} ({', '.join(plain(v) for v in values)})"
            case Match():
                return self.match(value)
            case NullTest(expression=expression, negated=negated):
                return f"{self.operand(expression)} IS {'NOT ' if negated else ''}NULL"
            case Opaque():
                return self.opaque(value, joined=joined)

    def comparison(self, value: Comparison) -> str:
        left, right = value.left, value.right
        constant = self.plainly(left)(right) if isinstance(right, Constant) else self.operand(right)
        return f"{self.operand(left)} {self.operator(value.operator)} {constant}"

    def operator(self, operator: Operator) -> str:
        return operator.value

    def plainly(self, beside: Expression) -> Callable[[Constant], str]:
        """How to write a constant that stands beside an expression in a comparison."""
        type_ = logical(beside.type)

        def write(constant: Constant) -> str:
            if constant.type != type_ or isinstance(beside, Constant):
                return self.constant(constant)
            return self.plain_constant(constant)

        return write

    def plain_constant(self, constant: Constant) -> str:
        value = constant.value
        if isinstance(value, bool) or value is None:
            return self.constant(constant)
        if isinstance(value, int):
            return str(value)
        if isinstance(value, decimal.Decimal):
            return format(value, "f")
        if isinstance(value, float) and constant.type == DOUBLE and math.isfinite(value):
            return repr(value).upper()
        return self.constant(constant)

    def operand(self, value: Expression) -> str:
        """An expression as one side of an operator."""
        text = self.expression(value)
        return f"({text})" if isinstance(value, Call) and value.name in (*OPERATORS_OF_CALLS, "neg") else text

    def expression(self, value: Expression) -> str:
        match value:
            case Column(name=name):
                return self.quoted(name)
            case Field(base=base, name=name):
                return f"{self.operand(base)}.{self.quoted(name)}"
            case Element(base=base, key=key):
                return self.element(base, key)
            case Constant():
                return self.constant(value)
            case Cast(base=base, type=type_, safe=safe):
                return f"{'TRY_CAST' if safe else 'CAST'}({self.expression(base)} AS {self.type_name(type_)})"
            case Call(name="neg", arguments=(base,)):
                return f"-({self.expression(base)})"
            case Call(name=name, arguments=(left, right)) if name in OPERATORS_OF_CALLS:
                return f"{self.operand(left)} {OPERATORS_OF_CALLS[name]} {self.operand(right)}"
            case Call():
                return self.call(value)

    @abc.abstractmethod
    def quoted(self, name: str) -> str:
        """Write a name."""

    @abc.abstractmethod
    def constant(self, constant: Constant) -> str:
        """Write a constant with its type."""

    @abc.abstractmethod
    def match(self, value: Match) -> str:
        """Write a match of a text with a pattern."""

    @abc.abstractmethod
    def opaque(self, value: Opaque, *, joined: bool) -> str:
        """Write a condition that is carried as text; `joined` with others it needs parentheses."""

    @abc.abstractmethod
    def call(self, value: Call) -> str:
        """Write a call that is no arithmetic."""

    @abc.abstractmethod
    def element(self, base: Expression, key: Constant) -> str:
        """Write the value under a key or at a position."""

    @abc.abstractmethod
    def type_name(self, type_: pa.DataType) -> str:
        """Name a type."""


def shortest_float32(value: float) -> str:
    """The shortest digits that read as the given single float.

    >>> shortest_float32(0.05000000074505806)
    '0.05'
    """
    return str(numpy.float32(value)).upper()


def clock(value: datetime.datetime) -> str:
    """Write a date and a time of day, with as many digits of the second as it has.

    >>> clock(datetime.datetime(1994, 1, 1, 12, 30, 0, 500000))
    '1994-01-01 12:30:00.5'
    """
    text = f"{value.year:04}-{value.month:02}-{value.day:02} {value.hour:02}:{value.minute:02}:{value.second:02}"
    return f"{text}.{value.microsecond:06}".rstrip("0") if value.microsecond else text
