"""Columns of bounds in every form that Arrow stores them in answer as blocks asked one by one."""

from __future__ import annotations

import datetime
import decimal
import math
import random
import string
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skipstone.predicate.bounds import Bounds, prepare
from skipstone.predicate.expression import Column, Constant, Scalar
from skipstone.predicate.literal import Comparison, Conjunction, InSet, NullTest, Operator, Predicate
from skipstone.predicate.parsing import parse_filter
from tests.predicate.blocks import Block, Columns, Table, table_of

EPOCH = datetime.datetime(1970, 1, 1)


def drawn(kind: pa.DataType, chance: random.Random) -> Scalar:
    """A value of a type, small ones and ends alike."""
    number = chance.choice((chance.randrange(-40, 40), chance.randrange(-(10**7), 10**7)))
    if pa.types.is_unsigned_integer(kind):
        return chance.choice((0, abs(number) % 200, (1 << kind.bit_width) - 1))
    if pa.types.is_integer(kind):
        half = 1 << (kind.bit_width - 1)
        return chance.choice((number % 100, half - 1, -half))
    if pa.types.is_decimal(kind):
        whole = chance.choice(
            (number, 10**kind.precision - 1, 1 - 10**kind.precision, number * 2**61 % 10**kind.precision)
        )
        return decimal.Decimal((whole < 0, tuple(map(int, str(abs(whole)))), -kind.scale))
    if pa.types.is_floating(kind):
        return chance.choice((number / 4, 0.0, -0.0, math.inf, -math.inf))
    if pa.types.is_boolean(kind):
        return chance.random() < 0.5
    if pa.types.is_date(kind):
        return (EPOCH + datetime.timedelta(days=number % 4000)).date()
    if pa.types.is_duration(kind):
        return datetime.timedelta(seconds=number)
    if pa.types.is_timestamp(kind):
        moment = EPOCH + datetime.timedelta(seconds=number)
        return moment.replace(tzinfo=datetime.UTC) if kind.tz else moment
    text = "".join(chance.choice("abz") for _ in range(chance.randrange(4)))
    return text.encode() + bytes([chance.randrange(256)]) if pa.types.is_binary(kind) else text


KINDS = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64(),
    pa.float32(), pa.float64(), pa.bool_(), pa.date32(), pa.date64(),
    pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.duration("us"),
    pa.decimal32(7, 2), pa.decimal64(15, 3), pa.decimal128(9, 2), pa.decimal128(18, 4), pa.decimal128(38, 10),
    pa.decimal128(19, 0), pa.string(), pa.large_string(), pa.binary(),
]  # fmt: skip


def _sorted(values: list[Any]) -> list[Any]:
    return sorted(values)  # of one type, which Scalar cannot say


def blocks_of(column: Column, chance: random.Random, count: int = 60) -> list[Block]:
    """Blocks with all kinds of knowledge of one column."""
    found = []
    for _ in range(count):
        rows = chance.randrange(1, 6)
        nulls = chance.choice((0, 0, 1, rows, None))
        nans = chance.choice((0, 0, 1, None)) if pa.types.is_floating(column.type) else 0
        ends = [drawn(column.type, chance) for _ in range(2)]
        low, high = _sorted(ends) if chance.random() < 0.95 else ends
        if chance.random() < 0.15:
            low = None
        if chance.random() < 0.15:
            high = None
        bounds = Bounds(low, high, nulls, nans)
        found.append(Block(rows, {column: bounds} if chance.random() < 0.95 else {}))
    return found


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_columns_of_every_type_answer_as_blocks_do(kind: pa.DataType) -> None:
    chance = random.Random(7)
    column = Column("c", kind)
    blocks = blocks_of(column, chance)
    table = table_of(blocks, [column])
    for number in range(60):
        constants = [Constant(drawn(kind, chance), kind) for _ in range(chance.choice((1, 1, 2, 30)))]
        if len(constants) > 1:
            predicate = Predicate((InSet(column, tuple(dict.fromkeys(constants)), negated=chance.random() < 0.3),))
        elif number % 10 == 0:
            predicate = Predicate((NullTest(column, negated=chance.random() < 0.5),))
        else:
            predicate = Predicate((Comparison(chance.choice(list(Operator)), column, constants[0]),))
        plan = prepare(predicate)
        assert plan.mask(table).tolist() == [plan.may_match(block) for block in blocks], predicate


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != pa.date64()], ids=str)
def test_two_columns_of_every_type_are_compared_as_in_blocks(kind: pa.DataType) -> None:
    chance = random.Random(8)
    left, right = Column("a", kind), Column("b", kind)
    blocks = [
        Block(one.rows, {**one.known, **other.known})
        for one, other in zip(blocks_of(left, chance), blocks_of(right, chance), strict=True)
    ]
    table = table_of(blocks, [left, right])
    for operator in Operator:
        plan = prepare(Predicate((Comparison(operator, left, right),)))
        assert plan.mask(table).tolist() == [plan.may_match(block) for block in blocks], operator


def test_a_long_list_of_texts_is_searched_and_not_taken_as_a_range() -> None:
    chance = random.Random(3)
    column = Column("c", pa.string())
    words = ["".join(chance.choice(string.ascii_lowercase) for _ in range(chance.randrange(1, 6))) for _ in range(400)]
    listed = tuple(Constant(word, pa.string()) for word in dict.fromkeys(words[:200]))
    blocks = []
    for _ in range(300):
        low, high = sorted(chance.sample(words, 2))
        blocks.append(Block(5, {column: Bounds(low, high if chance.random() < 0.2 else low + "b", 0)}))
    table = table_of(blocks, [column])
    for negated in (False, True):
        plan = prepare(Predicate((InSet(column, listed, negated),)))
        answers = plan.mask(table).tolist()
        assert answers == [plan.may_match(block) for block in blocks]
        assert True in answers
    assert False in prepare(Predicate((InSet(column, listed),))).mask(table).tolist()


def test_slices_and_chunks_of_arrays() -> None:
    column = Column("c", pa.decimal128(12, 2))
    blocks = blocks_of(column, random.Random(5), 40)
    whole = table_of(blocks, [column])
    known = whole.known["c"]
    plan = prepare(Predicate((Comparison(Operator.GREATER, column, Constant(decimal.Decimal(3), column.type)),)))
    answers = plan.mask(whole).tolist()
    parts = (known.minimum, known.maximum, known.null_count, known.nan_count)
    sliced = Table(whole.rows[7:30], {"c": Columns(*(part.slice(7, 23) for part in parts))})
    assert plan.mask(sliced).tolist() == answers[7:30]
    chunked = Table(whole.rows, {"c": Columns(*(pa.chunked_array([part[:9], part[9:]]) for part in parts))})
    assert plan.mask(chunked).tolist() == answers


def test_bounds_of_another_kind_than_the_expression_are_left_aside() -> None:
    column = Column("c", pa.int64())
    counts = pa.array([0, 3], pa.int64())
    texts = pa.array(["a", None])
    table = Table(np.array([3, 3], dtype=np.int64), {"c": Columns(texts, texts, counts, counts)})
    plan = prepare(Predicate((Comparison(Operator.EQUAL, column, Constant(5, pa.int64())),)))
    assert plan.mask(table).tolist() == [True, False], "that all are NULL is known whatever the bounds"
    mixed = Columns(pa.array([1, 1], pa.int64()), pa.array([2, 2], pa.int32()), counts, counts)
    assert plan.mask(Table(np.array([3, 3], dtype=np.int64), {"c": mixed})).tolist() == [True, False]


def test_disjunctions_and_what_nothing_is_known_of() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("t", pa.string())])
    low, high, zero = pa.array([1, 5]), pa.array([3, 9]), pa.array([0, 0])
    table = Table(np.array([3, 3], dtype=np.int64), {"a": Columns(low, high, zero, zero)})

    def mask(text: str) -> list[bool]:
        answers: list[bool] = prepare(parse_filter(text, schema)).mask(table).tolist()
        return answers

    assert mask("a > 4 OR a < 0") == [False, True]
    assert mask("a > 4 OR b = 1") == [True, True]
    assert mask("a > 4 OR t RLIKE 'x'") == [True, True]
    assert mask("(a > 4 OR b = 1) AND a = 2") == [True, False]
    assert mask("a < b AND b < 2") == [False, False]
    assert mask("a > 100 AND a < 50") == [False, False]
    assert prepare(Conjunction(())).mask(table).tolist() == [True, True]
    assert prepare(Predicate(())).mask(table).tolist() == [False, False]
