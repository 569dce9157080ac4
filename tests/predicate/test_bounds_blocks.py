"""Blocks of small worlds: a block with a matching row is never skipped, whatever is known of it; the twins agree."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.predicate.bounds import may_match, prepare
from skipstone.predicate.expression import Column, Expression
from skipstone.predicate.literal import Comparison, InSet, Match, NullTest
from tests.predicate.blocks import Block, block_of, table_of, vaguer
from tests.predicate.oracle import selects
from tests.predicate.worlds import WORLDS, Filter, World, pairs, parts_of_values, singles, texts

BLOCKS = 60
VAGUE = {parts_of_values, texts}
"""Worlds with literals that bounds cannot decide: patterns, functions that are not monotone."""


def expressions_of(world: World) -> list[Expression]:
    """The expressions that the world's literals are about, in order."""
    found: dict[Expression, None] = {}
    for literal in world.literals:
        match literal:
            case Comparison(left=left, right=right):
                found[left] = None
                if right.__class__ is left.__class__:
                    found[right] = None
            case InSet(expression=expression) | Match(expression=expression) | NullTest(expression=expression):
                found[expression] = None
    return list(found)


def drawn(world: World, chance: random.Random) -> list[tuple[Block, Sequence[int]]]:
    """Blocks of one to four rows, some known exactly and some vaguely, with the rows in them."""
    found: list[tuple[Block, Sequence[int]]] = []
    expressions = expressions_of(world)
    for _ in range(BLOCKS):
        places = [chance.randrange(len(world.rows)) for _ in range(chance.choice((1, 1, 2, 2, 4)))]
        if chance.random() < 0.1:
            places = [place for place in places if not any(world.rows[place].values())] or places
        block = block_of([world.rows[place] for place in places], expressions)
        if chance.random() < 0.5:
            known = {one: vaguer(bounds, chance) for one, bounds in block.known.items() if chance.random() < 0.8}
            block = Block(block.rows, known)
        found.append((block, places))
    return found


def filters_of(world: World, chance: random.Random) -> list[Filter]:
    return [*singles(world.literals), *chance.sample(pairs(chance.sample(world.literals, 16)), 60)]


@pytest.mark.parametrize("world_of", WORLDS)
def test_no_block_with_a_matching_row_is_skipped_and_columns_say_what_blocks_say(
    world_of: Callable[[], World],
) -> None:
    world, chance = world_of(), random.Random(20)
    blocks = drawn(world, chance)
    table = table_of([block for block, _ in blocks], expressions_of(world))
    skipped = 0
    for filter_ in filters_of(world, chance):
        where, plan = world.where(filter_), prepare(filter_)
        one_by_one = [plan.may_match(block) for block, _ in blocks]
        for (block, places), may in zip(blocks, one_by_one, strict=True):
            rows = [world.rows[place] for place in places]
            assert may or not where[list(places)].any(), f"{filter_} skipped {rows} by {block.known}"
            skipped += not may
        assert plan.mask(table).tolist() == one_by_one, filter_
    assert skipped, "nothing was skipped, so nothing was checked"


@pytest.mark.parametrize("world_of", [world_of for world_of in WORLDS if world_of not in VAGUE])
def test_a_block_of_one_row_is_skipped_exactly_if_the_row_does_not_match(world_of: Callable[[], World]) -> None:
    """With exact bounds one row is known completely, so any doubt left is a bound that was not used."""
    world = world_of()
    expressions = [one for one in expressions_of(world) if isinstance(one, Column)]  # others by what they are made of
    for row in world.rows[:: max(1, len(world.rows) // 40)]:
        block = block_of([row], expressions)
        for literal in world.literals:
            assert may_match(singles([literal])[0], block) == selects(literal, row), f"{literal} on {row}"


@given(st.randoms(use_true_random=False), st.sampled_from(WORLDS))
@settings(deadline=None, max_examples=40)
def test_knowing_less_never_skips_more(chance: random.Random, world_of: Callable[[], World]) -> None:
    world = world_of()
    expressions = expressions_of(world)
    rows = [chance.choice(world.rows) for _ in range(3)]
    block = block_of(rows, expressions)
    vague = Block(
        chance.choice((None, block.rows)), {one: vaguer(bounds, chance) for one, bounds in block.known.items()}
    )
    for literal in chance.sample(world.literals, 20):
        filter_ = singles([literal])[0]
        assert may_match(filter_, vague) >= may_match(filter_, block), literal


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_in_any_form_of_array(kind: pa.DataType) -> None:
    world = texts()
    blocks = [block_of([row], expressions_of(world)) for row in world.rows[::20]]
    table = table_of(blocks, expressions_of(world))
    for text, known in table.known.items():
        table.known[text] = type(known)(
            known.minimum.cast(kind), known.maximum.cast(kind), known.null_count, known.nan_count
        )
    for literal in world.literals[::5]:
        plan = prepare(singles([literal])[0])
        assert plan.mask(table).tolist() == [plan.may_match(block) for block in blocks], literal
