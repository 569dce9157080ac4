"""Laws over random filters and rows of every type: what is implied holds, what is skipped holds no match."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skipstone.errors import CannotEvaluate
from skipstone.predicate.bounds import Bounds, may_match, prepare
from skipstone.predicate.evaluation import evaluate
from skipstone.predicate.expression import Column, Constant, Expression
from skipstone.predicate.implication import explain_implication, implication_matrix, implies
from skipstone.predicate.literal import Comparison, Conjunction, InSet, Literal, Match, NullTest, Operator, Predicate
from tests.predicate.blocks import Block, table_of
from tests.predicate.strategies import EDGES, SCHEMA, Generator

Filter = Conjunction | Predicate


def narrow(chance: random.Random) -> Generator:
    """A generator over few columns, so that two filters often speak of the same ones."""
    kind = chance.choice([type_ for type_ in EDGES if type_ != pa.binary()])
    first = next(field for field in SCHEMA if field.type == kind)
    names = [first.name, *chance.sample(SCHEMA.names, 1)]
    names += [field.name for field in SCHEMA if field.type == kind and field.name != first.name]
    if chance.random() < 0.3:
        names += ["text"]
    return Generator(chance, pa.schema([SCHEMA.field(name) for name in dict.fromkeys(names)]))


def literal(g: Generator) -> Literal:
    """A literal over the generator's columns, whatever types they have."""
    field = g.choose(list(g.schema))
    column = Column(field.name, field.type)
    if field.type not in EDGES or g.chance(15):
        return NullTest(column, negated=g.chance(60))
    if field.type == pa.string() and g.chance(50):
        drawn = Generator(g.random).match()
        assert isinstance(drawn, Match)
        return Match(drawn.kind, column, drawn.pattern, drawn.negated)
    same = [other for other in g.schema if other.type == field.type and other.name != field.name]
    if same and g.chance(30):
        other = g.choose(same)
        return Comparison(g.choose(list(Operator)), column, Column(other.name, other.type))
    constants = [g.constant(field.type) for _ in range(3)]
    if g.chance(25):
        return InSet(column, tuple(dict.fromkeys(constants)), negated=g.chance(50))
    return Comparison(g.choose(list(Operator)), column, constants[0])


def predicate(g: Generator) -> Predicate:
    return Predicate(tuple(literal(g) for _ in range(g.choose((1, 1, 1, 2, 3)))))


def conjunction(g: Generator) -> Conjunction:
    return Conjunction(tuple(predicate(g) for _ in range(g.choose((1, 2, 2, 3)))))


def where(filter_: Filter, rows: pa.Table) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """The rows for which a filter is TRUE, as Arrow evaluates it; it raises CannotEvaluate where Spark would fail."""
    truths = evaluate(filter_, rows, time_zone="UTC").to_pylist()
    return np.array([truth is True for truth in truths], dtype=np.bool_)


def can_be_evaluated(filter_: Filter, rows: pa.Table) -> bool:
    try:
        where(filter_, rows)
    except CannotEvaluate:
        return False
    return True


@given(st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_rows_of_p_are_rows_of_every_q_that_it_implies(chance: random.Random) -> None:
    g = narrow(chance)
    filters: list[Filter] = [*(predicate(g) for _ in range(5)), *(conjunction(g) for _ in range(5))]
    rows = g.table(30)
    filters = [filter_ for filter_ in filters if can_be_evaluated(filter_, rows)]
    found = implication_matrix(filters, filters)
    masks = [where(filter_, rows) for filter_ in filters]
    for i, j in np.argwhere(found):
        assert not (masks[i] & ~masks[j]).any(), f"{filters[i]} was said to imply {filters[j]}"
    assert found.diagonal().all()


@given(st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=30)
def test_the_matrix_and_the_explanation_say_what_implies_says(chance: random.Random) -> None:
    g = narrow(chance)
    filters: list[Filter] = [*(predicate(g) for _ in range(4)), *(conjunction(g) for _ in range(4))]
    found = implication_matrix(filters, filters)
    for i, p in enumerate(filters):
        for j, q in enumerate(filters):
            said = implies(p, q)
            assert found[i, j] == said, (p, q)
            if i % 3 == 0 and j % 3 == 0:
                assert explain_implication(p, q).holds == said


@given(st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=30)
def test_p_and_q_implies_each_and_each_implies_p_or_q(chance: random.Random) -> None:
    g = narrow(chance)
    p, q = predicate(g), predicate(g)
    assert implies(Conjunction((p, q)), p)
    assert implies(Conjunction((q, p)), p)
    assert implies(p, Predicate((*q.literals, *p.literals)))


def bounds_of_column(column: pa.ChunkedArray) -> Bounds:
    values = column.to_pylist()
    known = [value for value in values if value is not None]
    nulls = len(values) - len(known)
    if column.type not in EDGES:
        return Bounds(null_count=nulls)
    numbers = [value for value in known if value == value]
    key = (lambda one: one.encode()) if column.type == pa.string() else lambda one: one
    low, high = (min(numbers, key=key), max(numbers, key=key)) if numbers else (None, None)
    return Bounds(low, high, nulls, len(known) - len(numbers))


def blocks(g: Generator, rows: pa.Table, chance: random.Random) -> Iterator[tuple[Block, pa.Table]]:
    """Small pieces of the rows, with the bounds of all or of most columns."""
    size = chance.choice((1, 2, 3))
    for start in range(0, rows.num_rows, size):
        piece = rows.slice(start, size)
        known: dict[Expression, Bounds] = {
            Column(field.name, field.type): bounds_of_column(piece.column(field.name))
            for field in g.schema
            if chance.random() < 0.9
        }
        yield Block(piece.num_rows, known), piece


def check_blocks(chance: random.Random) -> int:
    """Skip blocks by the bounds of columns; give how many were skipped."""
    g = narrow(chance)
    rows = g.table(24)
    pieces = list(blocks(g, rows, chance))
    columns = [Column(field.name, field.type) for field in g.schema]
    table = table_of([block for block, _ in pieces], columns)
    skipped = 0
    filters: list[Filter] = [*(predicate(g) for _ in range(4)), *(conjunction(g) for _ in range(4))]
    for filter_ in [one for one in filters if can_be_evaluated(one, rows)]:
        one_by_one = [may_match(filter_, block) for block, _ in pieces]
        for (block, piece), may in zip(pieces, one_by_one, strict=True):
            if not may:
                skipped += 1
                assert not where(filter_, piece).any(), f"{filter_} skipped {piece.to_pylist()} by {block}"
        assert prepare(filter_).mask(table).tolist() == one_by_one, filter_
    return skipped


@given(st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_a_skipped_block_of_any_types_holds_no_match(chance: random.Random) -> None:
    check_blocks(chance)


@given(st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_expressions_of_all_kinds_are_never_pruned_wrongly_and_never_implied_wrongly(chance: random.Random) -> None:
    """Filters as they come, with functions, casts and comparisons of different types, most of which say little."""
    g = Generator(chance)
    one, other = g.predicate(), g.predicate()
    p = Conjunction((one, g.predicate()))
    rows = g.table(8)
    columns = [Column(field.name, field.type) for field in SCHEMA]
    block = Block(rows.num_rows, {column: bounds_of_column(rows.column(column.name)) for column in columns})
    assume(can_be_evaluated(p, rows) and can_be_evaluated(other, rows))
    mask = where(p, rows)
    assert implies(p, one)
    if implies(p, other):
        assert not (mask & ~where(other, rows)).any()
    may = may_match(p, block)
    assert may or not mask.any(), p
    assert prepare(p).mask(table_of([block], columns)).tolist() == [may]


@pytest.mark.slow
def test_many_random_blocks_and_filters() -> None:
    skipped = sum(check_blocks(random.Random(seed)) for seed in range(1000))
    assert skipped > 10_000, "hardly anything was skipped, so hardly anything was checked"


def test_a_constant_of_each_type_is_found_in_the_block_that_holds_it_alone() -> None:
    for kind, values in EDGES.items():
        column = Column("c", kind)
        for value in values:
            number = None if value != value else value
            block = Block(1, {column: Bounds(number, number, null_count=0, nan_count=int(value != value))})
            equal = Predicate((Comparison(Operator.EQUAL, column, Constant(value, kind)),))
            other = Predicate((Comparison(Operator.NOT_EQUAL, column, Constant(value, kind)),))
            assert may_match(equal, block), (kind, value)
            assert not may_match(other, block), (kind, value)
            table = table_of([block], [column])
            assert prepare(equal).mask(table).tolist() == [True], (kind, value)
            assert prepare(other).mask(table).tolist() == [False], (kind, value)
