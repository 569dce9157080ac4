"""Small worlds in which every implication can be checked: some rows, and literals over their columns.

The rows hold a witness for every difference that the literals can make: each constant, its neighbours, and values
between and beyond. So an implication holds in the world exactly if it holds for all rows there can be.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipstone.predicate.expression import Call, Cast, Column, Constant, Expression, Scalar
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
from tests.predicate.oracle import Row, selects

Filter = Conjunction | Predicate


@dataclass(frozen=True)
class World:
    """Rows, and the literals that are told apart by them."""

    rows: tuple[Row, ...]
    literals: tuple[Literal, ...]

    @cached_property
    def truths(self) -> dict[Literal, npt.NDArray[np.bool_]]:
        """For each literal in which rows it is TRUE."""
        return {literal: np.array([selects(literal, row) for row in self.rows]) for literal in self.literals}

    def where(self, filter_: Filter) -> npt.NDArray[np.bool_]:
        """The rows for which a filter over these literals is TRUE."""
        if isinstance(filter_, Conjunction):
            found = np.ones(len(self.rows), np.bool_)
            for predicate in filter_:
                found &= self.where(predicate)
            return found
        found = np.zeros(len(self.rows), np.bool_)
        for literal in filter_.literals:
            found |= self.truths[literal]
        return found

    def implications(self, filters: Sequence[Filter]) -> npt.NDArray[np.bool_]:
        """Which filter implies which, as the rows have it."""
        where = np.array([self.where(filter_) for filter_ in filters])
        misses = where.astype(np.float32) @ (~where).T.astype(np.float32)  # rows of p that are not rows of q
        return np.asarray(misses == 0)


def compared(left: Expression, *values: Scalar, type_: pa.DataType | None = None) -> list[Literal]:
    """All operators with each value."""
    constants = [Constant(value, type_ or left.type) for value in values]
    return [Comparison(operator, left, constant) for constant in constants for operator in Operator]


def in_sets(left: Expression, *sets: Sequence[Scalar]) -> list[Literal]:
    """IN and NOT IN for each list of values."""
    return [
        InSet(left, tuple(Constant(value, left.type) for value in values), negated)
        for values in sets
        for negated in (False, True)
    ]


def null_tests(*expressions: Expression) -> list[Literal]:
    """IS NULL and IS NOT NULL."""
    return [NullTest(expression, negated) for expression in expressions for negated in (False, True)]


def matched(left: Expression, kind: MatchKind, *patterns: str) -> list[Literal]:
    """Each pattern and its negation."""
    return [Match(kind, left, pattern, negated) for pattern in patterns for negated in (False, True)]


def singles(literals: Iterable[Literal]) -> list[Predicate]:
    """Each literal as a predicate of its own."""
    return [Predicate((literal,)) for literal in literals]


def pairs(literals: Sequence[Literal]) -> list[Filter]:
    """Every two literals with OR between them, and with AND."""
    both = list(itertools.combinations(literals, 2))
    return [*(Predicate(pair) for pair in both), *(Conjunction((Predicate((a,)), Predicate((b,)))) for a, b in both)]


def rows_of(**columns: Iterable[Any]) -> tuple[Row, ...]:
    """All combinations of the columns' values."""
    return tuple(dict(zip(columns, values, strict=True)) for values in itertools.product(*columns.values()))


TINY = Column("x", pa.int8())
FLOAT = Column("x", pa.float64())
SINGLE = Column("x", pa.float32())
FLAG = Column("x", pa.bool_())
CENTS = Column("x", pa.decimal128(4, 2))
TEXT = Column("x", pa.string())
RAW = Column("x", pa.binary())
DAY = Column("x", pa.date32())
CLOCK = Column("x", pa.timestamp("us"))
A, B, C = (Column(name, pa.int8()) for name in "abc")


def whole_numbers() -> World:
    """Every value of a byte, compared with bytes, fractions and doubles."""
    fraction, double = pa.decimal128(5, 2), pa.float64()
    return World(
        rows_of(x=[None, *range(-128, 128)]),
        (
            *compared(TINY, -128, -1, 0, 1, 2, 127, None),
            *compared(TINY, Decimal("0.50"), Decimal("1.00"), Decimal("300"), type_=fraction),
            *compared(TINY, 0.5, 1.0, math.nan, math.inf, -math.inf, type_=double),
            *in_sets(TINY, (0, 1), (0, 2), (0, 1, 2), (-128, 127), (1, None)),
            *null_tests(TINY),
        ),
    )


def sums() -> World:
    """Every value of a byte, and what is made of it with sums that run over the end."""
    one = Constant(100, pa.int8())
    more, less = Call("add", (TINY, one), pa.int8()), Call("sub", (one, TINY), pa.int8())
    negative, wider = Call("neg", (TINY,), pa.int8()), Cast(TINY, pa.int16())
    wide = Call("sub", (wider, Constant(100, pa.int16())), pa.int16())
    return World(
        rows_of(x=[None, *range(-128, 128)]),
        tuple(
            literal
            for left, values in ((TINY, (27, 28, -1)), (more, (-128, 100, 127)), (less, (-28, 100)), (wide, (-228, 0)))
            for literal in compared(left, *values)
        )
        + tuple(compared(negative, -128, 5))
        + tuple(compared(wider, -129, -1, 27, 128))
        + tuple(null_tests(TINY, more, wide)),
    )


def floats() -> World:
    """NaN, the two zeros, the infinities and the smallest steps."""
    tiny, odd = 5e-324, math.nextafter(1.0, 2.0)
    values = (None, -math.inf, -1e308, -1.0, -tiny, -0.0, 0.0, tiny, 0.5, 1.0, odd, 1.5, 2.0, 1e308, math.inf, math.nan)
    return World(
        rows_of(x=values),
        (
            *compared(FLOAT, -math.inf, -0.0, 0.0, 1.0, 2.0, math.inf, math.nan, None),
            *compared(FLOAT, 0, 1, 2, type_=pa.int64()),
            *in_sets(FLOAT, (0.0, 1.0), (-0.0, math.nan), (math.inf, math.nan), (1.0, None)),
            *null_tests(FLOAT),
        ),
    )


def float_arithmetic() -> World:
    """Sums and products of doubles, and what they say of the double inside."""
    plus = Call("add", (FLOAT, Constant(0.1, pa.float64())), pa.float64())
    times = Call("mul", (FLOAT, Constant(0.1, pa.float64())), pa.float64())
    seeds = (-math.inf, -1.0, -0.1, -0.0, 0.0, 0.2, 1.0, 3.0, 10.0, math.inf, math.nan)
    near = {math.nextafter(seed, end) for seed in seeds if seed == seed for end in (-math.inf, math.inf)}
    return World(
        rows_of(x=[None, *seeds, *sorted(near)]),
        tuple(
            literal
            for left, values in (
                (FLOAT, (-0.1, 0.2, 3.0, math.nan)),
                (plus, (0.0, 0.30000000000000004, math.nan)),
                (times, (0.02, 0.30000000000000004, math.inf)),
            )
            for literal in (*compared(left, *values), *null_tests(left))
        ),
    )


def booleans() -> World:
    """Two values and NULL."""
    return World(rows_of(x=[None, False, True]), (*compared(FLAG, False, True, None), *null_tests(FLAG)))


def decimals() -> World:
    """Every cent from -9.99 to 9.99 and the ends, compared with other scales; sums, products and casts of cents."""
    places = [Decimal(cents).scaleb(-2) for cents in (-9999, -9998, *range(-320, 321), 9998, 9999)]
    plus = Call("add", (CENTS, Constant(Decimal("0.005"), pa.decimal128(4, 3))), pa.decimal128(6, 3))
    minus = Call("sub", (Constant(Decimal("1.00"), pa.decimal128(3, 2)), CENTS), pa.decimal128(5, 2))
    times = Call("mul", (CENTS, Constant(Decimal("0.3"), pa.decimal128(1, 1))), pa.decimal128(6, 3))
    finer, rounded = Cast(CENTS, pa.decimal128(8, 4)), Cast(CENTS, pa.decimal128(4, 1))
    short = Cast(CENTS, pa.decimal128(3, 2))
    return World(
        rows_of(x=[None, *places]),
        (
            *compared(CENTS, Decimal("-0.05"), Decimal("0.00"), Decimal("1.00"), Decimal("99.99")),
            *compared(CENTS, Decimal("1.005"), Decimal("1.000"), type_=pa.decimal128(6, 3)),
            *compared(CENTS, 1, 100, type_=pa.int32()),
            *compared(plus, Decimal("1.005"), Decimal("1.000")),
            *compared(minus, Decimal("1.05"), Decimal("0.00")),
            *compared(times, Decimal("0.300"), Decimal("0.301")),
            *compared(finer, Decimal("1.0000"), Decimal("1.0001")),
            *compared(rounded, Decimal("1.0"), Decimal("-0.1"), Decimal("0.0")),
            *compared(short, Decimal("1.00")),
            *null_tests(CENTS, plus, finer, short),
        ),
    )


def texts() -> World:
    """All texts of up to three letters from a few, and some that are long or at the end of the code."""
    letters = "aAb%\ud7ff\ue000\U0010ffff"
    short = ["".join(some) for n in range(4) for some in itertools.product(letters[:4] + "\0c" + letters[-1], repeat=n)]
    more = [
        "\ud7ff",
        "\ud7ffa",
        "\ue000",
        "\U0010ffff\U0010ffffb",
        "a" * 40,
        "a" * 39 + "b",
        "b" * 40,
        "abab",
        "aabb",
        "aİ",
    ]
    like = ("a%b", "%a%b", "a_", "_", "%", "", "_%", "a\\%%", "ab", "%b%a%", "__", "a%", "%b")
    return World(
        rows_of(x=[None, *short, *more]),
        (
            *compared(TEXT, "", "a", "ab", "a%", "b", "\ud7ff", "\ue000", "\U0010ffff", "a" * 40),
            *in_sets(TEXT, ("a", "ab"), ("", "b", "ab"), ("ab", None)),
            *matched(TEXT, MatchKind.PREFIX, "a", "ab", "\ud7ff", "\U0010ffff", "a" * 39),
            *matched(TEXT, MatchKind.SUFFIX, "b", "ab", "a"),
            *matched(TEXT, MatchKind.CONTAINS, "a", "b", "ab", "A", "%"),
            *matched(TEXT, MatchKind.LIKE, *like),
            *matched(TEXT, MatchKind.ILIKE, "a%", "ab", "%B", "a_"),
            *null_tests(TEXT),
        ),
    )


def heads_of_texts() -> World:
    """The first two letters of texts, and the texts."""
    head = Call("substring", (TEXT, Constant(1, pa.int32()), Constant(2, pa.int32())), pa.string())
    texts_ = ["".join(some) for n in range(4) for some in itertools.product("\0abc\U0010ffff", repeat=n)]
    return World(
        rows_of(x=[None, *texts_, "\ud7ff\ud7ff", "\ud7ff\ud7ffa", "\ud7ff\ue000", "abé", "ab\x7f", "a\x7f", "aé"]),
        (
            *compared(head, "", "a", "ab", "abc", "\ud7ff\ud7ff", "\U0010ffff\U0010ffff"),
            *in_sets(head, ("ab", "b"), ("a", "abc")),
            *compared(TEXT, "", "ab", "abc", "ac", "b"),
            *matched(TEXT, MatchKind.PREFIX, "ab", "b", "abc"),
            *matched(head, MatchKind.PREFIX, "ab\x7f", "a\x7f", "ab"),
            *null_tests(head, TEXT),
        ),
    )


def byte_strings() -> World:
    """Bytes that are no text."""
    values = [bytes(some) for n in range(3) for some in itertools.product((0, 1, 97, 127, 128, 255), repeat=n)]
    return World(
        rows_of(x=[None, *values, b"\xff\xff\xff"]),
        (
            *compared(RAW, b"", b"\x00", b"a", b"\x80", b"\xff", b"\xff\xff"),
            *in_sets(RAW, (b"", b"a"), (b"a", b"\xff")),
            *null_tests(RAW),
        ),
    )


def days() -> World:
    """Days around the turn of years, as days, years and clocks."""
    date = datetime.date
    turns = [date(year, 1, 1) for year in (1000, 1583, 1969, 1970, 1994, 1995, 2024)]
    near = [turn + datetime.timedelta(days=days) for turn in turns for days in (-31, -2, -1, 0, 1, 30, 31, 59)]
    year, clock = Call("year", (DAY,), pa.int32()), Cast(DAY, pa.timestamp("us"))
    month = Call("trunc", (DAY, Constant("MONTH", pa.string())), pa.date32())
    return World(
        rows_of(x=[None, date(1, 1, 1), date(5000, 6, 7), *near]),
        (
            *compared(DAY, date(1969, 12, 31), date(1970, 1, 1), date(1994, 1, 1), date(1995, 1, 1)),
            *compared(DAY, datetime.datetime(1994, 1, 1, 12), type_=pa.timestamp("us")),
            *compared(year, 1969, 1994, 1995),
            *in_sets(year, (1969, 1994)),
            *compared(clock, datetime.datetime(1994, 1, 1), datetime.datetime(1994, 12, 31, 0, 0, 0, 1)),
            *compared(month, date(1994, 1, 1), date(1994, 1, 2)),
            *null_tests(DAY, year, clock),
        ),
    )


def days_later() -> World:
    """Days, and the days thirty days after them, which run over at the end of the calendar."""
    date = datetime.date
    near = [date(1994, 1, 1) + datetime.timedelta(days=days) for days in range(-40, 40)]
    later = Call("date_add", (DAY, Constant(30, pa.int32())), pa.date32())
    return World(
        rows_of(x=[None, date(1, 1, 1), date(5000, 6, 7), *near]),
        (
            *compared(later, date(1994, 1, 31), date(1994, 1, 1)),
            *compared(DAY, date(1994, 1, 1)),
            *null_tests(DAY, later),
        ),
    )


def clocks() -> World:
    """Moments without a zone, as moments, days, years and truncated moments."""
    date, moment, step = datetime.date, datetime.datetime, datetime.timedelta(microseconds=1)
    turns = [moment(1994, 1, 1), moment(1995, 1, 1), moment(1994, 3, 1), moment(1969, 12, 29), moment(1994, 3, 1, 5)]
    near = [
        turn + offset for turn in turns for offset in (-step, datetime.timedelta(), step, datetime.timedelta(days=3))
    ]
    year, day = Call("year", (CLOCK,), pa.int32()), Cast(CLOCK, pa.date32())

    def truncated(unit: str) -> Call:
        return Call("date_trunc", (Constant(unit, pa.string()), CLOCK), pa.timestamp("us"))

    return World(
        rows_of(x=[None, moment(1, 1, 1), moment(5000, 6, 7, 8), *near]),
        (
            *compared(CLOCK, moment(1994, 1, 1), moment(1994, 3, 1), moment(1995, 1, 1)),
            *compared(CLOCK, date(1994, 1, 1), type_=pa.date32()),
            *compared(year, 1969, 1994),
            *compared(day, date(1994, 1, 1), date(1994, 2, 28)),
            *compared(truncated("MONTH"), moment(1994, 3, 1), moment(1994, 3, 1, 1)),
            *compared(truncated("week"), moment(1969, 12, 29)),
            *compared(truncated("quarter"), moment(1994, 1, 1)),
            *compared(truncated("hour"), moment(1994, 3, 1, 5)),
            *null_tests(CLOCK, year, day),
        ),
    )


def columns() -> World:
    """Three columns of bytes that are compared with each other and with constants."""
    values = (None, -128, -127, 0, 1, 2, 3, 126, 127)
    literals: list[Literal] = [Comparison(op, one, other) for one, other in ((A, B), (B, C), (C, A)) for op in Operator]
    literals += [Comparison(op, A, A) for op in Operator]
    for column in (A, B):
        literals += [
            literal
            for literal in compared(column, 1, 2)
            if isinstance(literal, Comparison) and literal.operator is not Operator.NULL_SAFE_NOT_EQUAL
        ]
        literals += compared(column, -128, 127)[:1]
    return World(rows_of(a=values, b=values, c=values), (*literals, *null_tests(A, B, C)))


def parts_of_values() -> World:
    """Functions that are not monotone, but NULL where their argument is."""
    length, rest = (
        Call("length", (TEXT,), pa.int32()),
        Call("mod", (Call("length", (TEXT,), pa.int32()), _two()), pa.int32()),
    )
    either = Call("coalesce", (TEXT, Constant("a", pa.string())), pa.string())
    return World(
        rows_of(x=[None, "", "a", "b", "ab", "abc", "abcd"]),
        (
            *compared(length, 0, 1, 2),
            *compared(rest, 0, 1),
            *compared(either, "a", "b"),
            *compared(TEXT, "a", "b"),
            *null_tests(TEXT, length, rest, either),
        ),
    )


def _two() -> Constant:
    return Constant(2, pa.int32())


WORLDS = (
    whole_numbers, sums, floats, float_arithmetic, booleans, decimals, texts, heads_of_texts, byte_strings, days,
    days_later, clocks, columns, parts_of_values,
)  # fmt: skip
