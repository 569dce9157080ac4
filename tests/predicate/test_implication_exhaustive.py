"""Every implication between filters of small worlds, both ways: never claimed wrongly, hardly ever missed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest

from skipstone.predicate.implication import implication_matrix, implies
from tests.predicate.worlds import WORLDS, Filter, World, pairs, singles

FOUND_AT_LEAST = {
    "columns": 0.9999,  # that no value of this world is between -127 and 0: of other worlds it is not true
    "decimals": 0.999,  # that a cast is NULL exactly where the decimal does not fit
    "days_later": 0.9,  # at the end of the calendar the days run over, and no row of this world is there
    "texts": 0.93,  # ILIKE against the order of texts; patterns that no text matches both of
    "heads_of_texts": 0.97,  # that no two letters are above the last letter twice
    "parts_of_values": 0.25,  # a remainder follows from the length, the length from the text: not looked into
}
"""The share of the true implications that is found: all, but for these, each with what is missed."""

LITERALS_IN_PAIRS = 8
"""Of a world's literals this many are joined in pairs, evenly chosen; with more the default run would take minutes."""


def check(world: World, filters: Sequence[Filter], found: npt.NDArray[np.bool_], at_least: float) -> None:
    """Compare what is claimed with what the rows say."""
    true = world.implications(filters)
    wrong = [(filters[i], filters[j]) for i, j in np.argwhere(found & ~true)[:3]]
    assert not wrong, f"claimed, but some row says otherwise: {wrong}"
    share = found.sum() / true.sum()
    missed = [(filters[i], filters[j]) for i, j in np.argwhere(true & ~found)[:3]]
    assert share >= at_least, f"only {share:.4f} found; missed for example {missed}"


@pytest.mark.parametrize("world_of", WORLDS)
def test_implications_between_two_literals(world_of: Callable[[], World]) -> None:
    world = world_of()
    filters = singles(world.literals)
    found = np.array([[implies(p, q) for q in filters] for p in filters])
    check(world, filters, found, FOUND_AT_LEAST.get(world_of.__name__, 1.0))


def joined(world: World, how_many: int) -> list[Filter]:
    step = max(1, len(world.literals) // how_many)
    return [*singles(world.literals), *pairs(world.literals[::step])]


@pytest.mark.parametrize("world_of", WORLDS)
def test_implications_between_two_literals_joined_by_and_or_or(world_of: Callable[[], World]) -> None:
    world = world_of()
    filters = joined(world, LITERALS_IN_PAIRS)
    check(world, filters, implication_matrix(filters, filters), FOUND_AT_LEAST.get(world_of.__name__, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("world_of", WORLDS)
def test_implications_between_many_literals_joined_by_and_or_or(world_of: Callable[[], World]) -> None:
    world = world_of()
    filters = joined(world, 4 * LITERALS_IN_PAIRS)
    check(world, filters, implication_matrix(filters, filters), FOUND_AT_LEAST.get(world_of.__name__, 1.0))


@pytest.mark.parametrize("world_of", WORLDS)
def test_the_matrix_says_what_each_pair_says(world_of: Callable[[], World]) -> None:
    filters = joined(world_of(), 6)[::3]
    pair_by_pair = [[implies(p, q) for q in filters] for p in filters]
    assert implication_matrix(filters, filters).tolist() == pair_by_pair


def test_implication_is_transitive_where_it_says_yes() -> None:
    for world_of in WORLDS:
        filters = joined(world_of(), 4)
        found = implication_matrix(filters, filters).astype(np.float32)
        broken = np.argwhere((found @ found > 0) & (found == 0))
        assert not len(broken), f"{[filters[i] for i in broken[0]]} of {world_of.__name__}"


def test_every_filter_implies_itself() -> None:
    for world_of in WORLDS:
        filters = joined(world_of(), LITERALS_IN_PAIRS)
        assert all(implies(filter_, filter_) for filter_ in filters)
