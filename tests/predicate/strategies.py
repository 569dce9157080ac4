"""Filters and rows in which skipping systems have gone wrong: edge values of every type, and all kinds of literals.

Everything is drawn from a `random.Random`, so that the same generators serve Hypothesis (which lends a Random that it
can shrink) and long seeded runs that put hundreds of predicates into one query of another engine.
"""

from __future__ import annotations

import datetime
import decimal
import math
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
from hypothesis import strategies as st

from skipstone.predicate.expression import Call, Cast, Column, Constant, Element, Expression, Field, Scalar
from skipstone.predicate.literal import (
    Comparison,
    Conjunction,
    InSet,
    Literal,
    Match,
    MatchKind,
    NullTest,
    Operator,
    Predicate,
)

T = TypeVar("T")

NASTY_TEXTS = (
    "",
    " ",
    "%",
    "_",
    "\\",
    "\0",
    "\x7f",
    "\u07ff",
    "\ud7ff",
    "\uffff",
    "\U0010ffff",
    "\U0010ffff\U0010ffff",
    "a",
    "a%",
    "a_00",
    "ab",
    "abc",
    "aB",
    "a\nb",
    "a\r\nb",
    "a'b",
    "b",
    "z" * 40,
    "z" * 40 + "a",
    "é",
    "E\u0301",
    "😀",
    "😀x",
    "İ",
    "ß",
    "SS",
    "10",
    "2",
    "-7",
    "1994-01-01",
    "x" * 5000,
    "x" * 5000 + "y",
)
PATTERNS = (
    "",
    "%",
    "_",
    "a%",
    "%b",
    "%a%",
    "a%b",
    "a_b",
    "__",
    "a\\%",
    "a\\_%",
    "\\\\",
    "%\\\\%",
    "A%",
    "%\n%",
    "\U0010ffff%",
    "z%a",
    "_%",
)
REGULAR_EXPRESSIONS = ("^a", "b$", "a.b", "^[a-z]+$", r"\d+", r"\s", "a|z{3,}", "(?:ab)+c?", "[^a]", ".", "^$", r"\.")

UTC = datetime.UTC
_CLOCKS = (
    datetime.datetime(1000, 1, 1),
    datetime.datetime(1582, 10, 10, 12),
    datetime.datetime(1850, 6, 1, 11, 59, 59, 456789),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime.datetime(1970, 1, 1),
    datetime.datetime(1994, 1, 1),
    datetime.datetime(1994, 1, 1, 0, 0, 0, 1),
    datetime.datetime(2024, 2, 29, 12, 30, 15, 456789),
    datetime.datetime(2024, 3, 31, 2, 30),
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
)


def _whole_numbers(bits: int) -> tuple[int, ...]:
    top = 1 << (bits - 1)
    near = (0, 1, 2, 3, 5, 7, -1, -2, -7, 10, 100)
    return (*near, top - 1, top - 2, -top, 1 - top)


def _single(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _decimals(precision: int, scale: int) -> tuple[decimal.Decimal, ...]:
    units = (0, 1, -1, 5, -5, 100, 150, -150, 550, 10**precision - 1, 1 - 10**precision)
    with decimal.localcontext(prec=60):
        return tuple(decimal.Decimal(unit).scaleb(-scale) for unit in units)


_DOUBLES = (
    0.0, -0.0, 0.1, 0.5, -0.5, 1.0, -1.0, 1.5, 3.0, 16777217.0, 9007199254740993.0, 1e300, -1e300, 5e-324,
    math.inf, -math.inf, math.nan,
)  # fmt: skip
_SINGLES = (0.0, -0.0, _single(0.1), 0.5, 1.5, -1.5, 3.0, 16777216.0, _single(3e38), math.inf, -math.inf, math.nan)

EDGES: dict[pa.DataType, tuple[Scalar, ...]] = {
    pa.bool_(): (True, False),
    pa.int8(): _whole_numbers(8),
    pa.int16(): _whole_numbers(16),
    pa.int32(): _whole_numbers(32),
    pa.int64(): (*_whole_numbers(64), 1 << 53, (1 << 53) + 1, 1 << 31),
    pa.float32(): _SINGLES,
    pa.float64(): _DOUBLES,
    pa.decimal128(9, 2): _decimals(9, 2),
    pa.decimal128(18, 4): _decimals(18, 4),
    pa.decimal128(38, 10): _decimals(38, 10),
    pa.string(): NASTY_TEXTS,
    pa.binary(): (b"", b"\0", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"a", b"ab"),
    pa.date32(): tuple(clock.date() for clock in _CLOCKS),
    pa.timestamp("us", "UTC"): tuple(clock.replace(tzinfo=UTC) for clock in _CLOCKS),
    pa.timestamp("us"): _CLOCKS,
}
"""Per type, the values that have been the undoing of others."""

PLACE = pa.struct([("city", pa.string()), ("zip", pa.int32())])
TAGS = pa.map_(pa.string(), pa.int64())
ITEMS = pa.list_(pa.int32())

SCHEMA = pa.schema(
    [
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("whole", pa.int32()),
        ("other_whole", pa.int32()),
        ("big", pa.int64()),
        ("other_big", pa.int64()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("other_double", pa.float64()),
        ("money", pa.decimal128(9, 2)),
        ("precise", pa.decimal128(18, 4)),
        ("vast", pa.decimal128(38, 10)),
        ("text", pa.string()),
        ("other_text", pa.string()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("other_day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("clock", pa.timestamp("us")),
        ("place", PLACE),
        ("tags", TAGS),
        ("items", ITEMS),
    ]
)
"""One column of every type, and a second one where columns are compared with each other."""

ROWS = 12


@dataclass(frozen=True)
class Generator:
    """Draws values, tables, expressions and filters over a schema."""

    random: random.Random
    schema: pa.Schema = SCHEMA

    def choose(self, options: Sequence[T]) -> T:
        """Take one of several, the first where Hypothesis has shrunk the choice."""
        return options[self.random.randrange(len(options))]

    def chance(self, percent: int) -> bool:
        """Say yes about so often."""
        return self.random.randrange(100) < percent

    # Rows

    def value(self, type_: pa.DataType) -> object:
        """A value of a type, nested ones included; NULL now and then."""
        if self.chance(15):
            return None
        if pa.types.is_struct(type_):
            return {type_.field(i).name: self.value(type_.field(i).type) for i in range(type_.num_fields)}
        if pa.types.is_map(type_):
            keys = sorted({self.choose(("k", "j", "", "😀")) for _ in range(self.random.randrange(4))})
            return [(key, self.value(type_.item_type)) for key in keys]
        if pa.types.is_list(type_):
            return [self.value(type_.value_type) for _ in range(self.random.randrange(4))]
        return self.choose(EDGES[type_])

    def table(self, rows: int | None = None) -> pa.Table:
        """Some rows of edge values; NULL is common, a column of nothing but NULLs is not rare."""
        count = self.random.randrange(ROWS + 1) if rows is None else rows
        columns = []
        for field in self.schema:
            empty = self.chance(5)
            columns.append(pa.array([None if empty else self.value(field.type) for _ in range(count)], field.type))
        return pa.table(columns, schema=self.schema)

    # Expressions

    def constant(self, type_: pa.DataType) -> Constant:
        """A constant that is not NULL."""
        return Constant(self.choose(EDGES[type_]), type_)

    def column(self, type_: pa.DataType) -> Column:
        """A column of a type."""
        fields = [field for field in self.schema if field.type.equals(type_)]
        field = self.choose(fields)
        return Column(field.name, field.type)

    def expression(self, type_: pa.DataType, depth: int = 1) -> Expression:
        """An expression of a type: mostly a column, else something made of columns."""
        makers = _MAKERS.get(type_, ())
        if depth == 0 or not makers or self.chance(60):
            return self.column(type_)
        return self.choose(makers)(self, depth - 1)

    # Filters

    def literal(self) -> Literal:
        """Any kind of literal but an opaque one."""
        kind = self.random.randrange(10)
        if kind < 4:
            return self.comparison()
        if kind < 5:
            return self.mixed_comparison()
        if kind < 7:
            return self.in_set()
        if kind < 9:
            return self.match()
        return NullTest(self.choose([self.nested_column, self.scalar_expression])(), negated=self.chance(50))

    def scalar_expression(self) -> Expression:
        """An expression of any scalar type."""
        return self.expression(self.choose(list(EDGES)))

    def nested_column(self) -> Expression:
        """A whole struct, map or list."""
        return self.column(self.choose((PLACE, TAGS, ITEMS)))

    def comparison(self) -> Literal:
        """A comparison of one type with a constant or with another expression."""
        type_ = self.choose(list(EDGES))
        right = self.constant(type_) if self.chance(70) else self.expression(type_, depth=0)
        return Comparison(self.choose(list(Operator)), self.expression(type_), right)

    def mixed_comparison(self) -> Literal:
        """Two kinds of numbers side by side."""
        left, right = self.choose(_MIXED)
        other = self.constant(right) if self.chance(60) else self.expression(right, depth=0)
        return Comparison(self.choose(list(Operator)), self.expression(left, depth=0), other)

    def in_set(self) -> Literal:
        """Membership in a list of two to twelve values, without NULL."""
        type_ = self.choose(list(EDGES))
        drawn = {self.constant(type_) for _ in range(self.choose((2, 3, 12)))}
        values = tuple(sorted(drawn, key=lambda constant: EDGES[type_].index(constant.value)))
        return InSet(self.expression(type_), values, negated=self.chance(50))

    def match(self) -> Literal:
        """A pattern over a text."""
        kind = self.choose(list(MatchKind))
        pools = {
            MatchKind.LIKE: PATTERNS,
            MatchKind.ILIKE: PATTERNS,
            MatchKind.RLIKE: REGULAR_EXPRESSIONS,
        }
        pattern = self.choose(pools.get(kind, NASTY_TEXTS))
        return Match(kind, self.expression(pa.string()), pattern, negated=self.chance(40))

    def predicate(self) -> Predicate:
        """One to three literals, any of which may hold."""
        return Predicate(tuple(self.literal() for _ in range(self.choose((1, 1, 1, 2, 3)))))

    def conjunction(self) -> Conjunction:
        """One to four predicates that must all hold."""
        return Conjunction(tuple(self.predicate() for _ in range(self.choose((1, 2, 3, 4)))))


_MIXED = (
    (pa.int32(), pa.int64()),
    (pa.int8(), pa.int32()),
    (pa.int32(), pa.float64()),
    (pa.int64(), pa.float64()),
    (pa.int32(), pa.float32()),
    (pa.float32(), pa.float64()),
    (pa.decimal128(9, 2), pa.decimal128(18, 4)),
    (pa.decimal128(18, 4), pa.decimal128(9, 2)),
    (pa.int32(), pa.decimal128(9, 2)),
    (pa.decimal128(9, 2), pa.int64()),
    (pa.decimal128(9, 2), pa.float64()),
    (pa.date32(), pa.timestamp("us")),
)

Maker = Callable[[Generator, int], Expression]


def _call(name: str, type_: pa.DataType, *arguments: pa.DataType) -> Maker:
    return lambda g, depth: Call(name, tuple(g.expression(argument, depth) for argument in arguments), type_)


def _with_constant(name: str, type_: pa.DataType, argument: pa.DataType, *constants: Constant) -> Maker:
    return lambda g, depth: Call(name, (g.expression(argument, depth), *constants), type_)


def _cast(type_: pa.DataType, source: pa.DataType) -> Maker:
    return lambda g, depth: Cast(g.expression(source, depth), type_)


def _int(value: int) -> Constant:
    return Constant(value, pa.int32())


def _text(value: str) -> Constant:
    return Constant(value, pa.string())


_TEXT, _INT, _LONG, _DOUBLE = pa.string(), pa.int32(), pa.int64(), pa.float64()
_DAY, _CLOCK, _MOMENT = pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")

_MAKERS: dict[pa.DataType, tuple[Maker, ...]] = {
    _INT: (
        _call("length", _INT, _TEXT),
        _call("add", _INT, _INT, _INT),
        _with_constant("mod", _INT, _INT, _int(8)),
        _call("neg", _INT, _INT),
        _call("abs", _INT, _INT),
        _call("year", _INT, _DAY),
        _call("month", _INT, _CLOCK),
        _call("day", _INT, _DAY),
        _call("hour", _INT, _CLOCK),
        _call("quarter", _INT, _DAY),
        _call("dayofweek", _INT, _DAY),
        _call("datediff", _INT, _DAY, _DAY),
        lambda g, _: Field(g.column(PLACE), "zip", _INT),
        lambda g, _: Element(g.column(ITEMS), _int(0), _INT),
        _cast(_INT, _LONG),
        _cast(_INT, _DOUBLE),
    ),
    _LONG: (
        _call("add", _LONG, _LONG, _LONG),
        _call("sub", _LONG, _LONG, _INT),
        _call("mul", _LONG, _LONG, _LONG),
        _with_constant("mod", _LONG, _LONG, Constant(-7, _LONG)),
        lambda g, _: Element(g.column(TAGS), _text("k"), _LONG),
        _cast(_LONG, _INT),
        _call("coalesce", _LONG, _LONG, _LONG),
    ),
    _DOUBLE: (
        _call("add", _DOUBLE, _DOUBLE, _DOUBLE),
        _call("mul", _DOUBLE, _DOUBLE, _LONG),
        _call("neg", _DOUBLE, _DOUBLE),
        _with_constant("div", _DOUBLE, _INT, _int(4)),
        _cast(_DOUBLE, pa.float32()),
        _cast(_DOUBLE, _LONG),
    ),
    pa.decimal128(18, 4): (_cast(pa.decimal128(18, 4), pa.decimal128(9, 2)), _cast(pa.decimal128(18, 4), _INT)),
    _TEXT: (
        _call("lower", _TEXT, _TEXT),
        _call("upper", _TEXT, _TEXT),
        _call("trim", _TEXT, _TEXT),
        _call("reverse", _TEXT, _TEXT),
        _with_constant("substring", _TEXT, _TEXT, _int(1), _int(2)),
        _with_constant("substring", _TEXT, _TEXT, _int(-2), _int(1)),
        _with_constant("left", _TEXT, _TEXT, _int(1)),
        _with_constant("right", _TEXT, _TEXT, _int(2)),
        _call("concat", _TEXT, _TEXT, _TEXT),
        _call("coalesce", _TEXT, _TEXT, _TEXT),
        lambda g, _: Field(g.column(PLACE), "city", _TEXT),
        _cast(_TEXT, _INT),
        _cast(_TEXT, _DAY),
    ),
    _DAY: (
        _with_constant("date_add", _DAY, _DAY, _int(30)),
        _with_constant("trunc", _DAY, _DAY, _text("MONTH")),
        _cast(_DAY, _CLOCK),
    ),
    _CLOCK: (
        lambda g, depth: Call("date_trunc", (_text("MONTH"), g.expression(_CLOCK, depth)), _CLOCK),
        lambda g, depth: Call("date_trunc", (_text("WEEK"), g.expression(_CLOCK, depth)), _CLOCK),
        _cast(_CLOCK, _DAY),
    ),
    _MOMENT: (lambda g, depth: Call("date_trunc", (_text("HOUR"), g.expression(_MOMENT, depth)), _MOMENT),),
}


def generators(schema: pa.Schema = SCHEMA) -> st.SearchStrategy[Generator]:
    """Generators whose choices Hypothesis makes and shrinks."""
    return st.randoms(use_true_random=False).map(lambda source: Generator(source, schema))


def tables(schema: pa.Schema = SCHEMA) -> st.SearchStrategy[pa.Table]:
    """Tables of up to a dozen rows of edge values."""
    return generators(schema).map(lambda generator: generator.table())


def literals(schema: pa.Schema = SCHEMA) -> st.SearchStrategy[Literal]:
    """Literals of every kind but opaque ones."""
    return generators(schema).map(lambda generator: generator.literal())


def predicates(schema: pa.Schema = SCHEMA) -> st.SearchStrategy[Predicate]:
    """Disjunctions of one to three literals, as they come: not in canonical form."""
    return generators(schema).map(lambda generator: generator.predicate())


def conjunctions(schema: pa.Schema = SCHEMA) -> st.SearchStrategy[Conjunction]:
    """Conjunctions of one to four predicates, as they come: not in canonical form."""
    return generators(schema).map(lambda generator: generator.conjunction())


def expressions(schema: pa.Schema = SCHEMA) -> st.SearchStrategy[Expression]:
    """Expressions of every scalar type."""
    return generators(schema).map(lambda generator: generator.scalar_expression())
