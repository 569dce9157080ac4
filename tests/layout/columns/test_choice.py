"""Which copy of each column a query reads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.layout.columns.choice import StoredOrder
from skipstone.layout.columns.choice_kernels import Copies
from skipstone.layout.columns.choice_relaxed import relaxed_choice
from skipstone.layout.columns.problem import compressed
from skipstone.layout.columns.seek import LinearSeek, ObjectStoreSeek, PowerSeek, SeekProfile, seek_costs
from tests.layout.columns.worlds import PROFILES

GROWING: tuple[SeekProfile, ...] = (PowerSeek(), LinearSeek(), ObjectStoreSeek(coalesced_bytes=3000.0))


def cheapest_choice(sizes: np.ndarray, stored: list[int], profile: SeekProfile, columns: list[int]) -> float:
    """Try every combination of copies."""
    start = np.concatenate([[0.0], np.cumsum(sizes[stored])])
    places = [[p for p, column in enumerate(stored) if column == wanted] for wanted in columns]
    best = np.inf
    for combination in itertools.product(*places):
        read = sorted(combination)
        gaps = np.array([start[right] - start[left + 1] for left, right in itertools.pairwise(read)])
        best = min(best, seek_costs(profile, gaps).sum())
    return float(best)


@settings(deadline=None)
@given(st.data(), st.sampled_from(GROWING))
def test_no_combination_of_copies_is_cheaper(data: st.DataObject, profile: SeekProfile) -> None:
    count = data.draw(st.integers(2, 7))
    sizes = np.array(data.draw(st.lists(st.sampled_from([48.0, 999.0, 5e4, 2e6]), min_size=count, max_size=count)))
    extra = data.draw(st.lists(st.integers(0, count - 1), max_size=6))
    stored = data.draw(st.permutations([*range(count), *extra]))
    columns = data.draw(st.lists(st.integers(0, count - 1), min_size=1, unique=True))
    choice = StoredOrder(sizes, stored, profile).choose(columns)
    assert choice.exact
    assert [stored[position] for position in choice.positions] == columns, "One copy of each column that was asked for"
    assert choice.cost == pytest.approx(cheapest_choice(sizes, stored, profile, columns))


def test_a_run_of_copies_is_taken_as_a_whole_though_no_single_one_helps() -> None:
    # a b c lie far apart, and once more side by side at the end; reading only one of them there costs more.
    sizes = np.array([100.0, 100.0, 100.0, 9e6, 9e6])
    order = StoredOrder(sizes, [0, 3, 1, 4, 2, 3, 0, 1, 2], PowerSeek())
    assert order.choose([0, 1, 2]).positions == (6, 7, 8)


@settings(deadline=None)
@given(st.data(), st.sampled_from(PROFILES))
def test_the_relaxation_bounds_every_choice_from_below_and_names_one(data: st.DataObject, profile: SeekProfile) -> None:
    count = data.draw(st.integers(2, 6))
    sizes = np.array(data.draw(st.lists(st.sampled_from([48.0, 999.0, 5e4, 2e6]), min_size=count, max_size=count)))
    stored = data.draw(st.permutations([*range(count), *data.draw(st.lists(st.integers(0, count - 1), max_size=6))]))
    columns = data.draw(st.lists(st.integers(0, count - 1), min_size=1, unique=True))
    start = np.concatenate([[0.0], np.cumsum(sizes[stored])])
    places = [[p for p, column in enumerate(stored) if column == wanted] for wanted in columns]
    begin = np.array([start[p] for found in places for p in found])
    end = np.array([start[p + 1] for found in places for p in found])
    first, of_item = compressed([[sum(map(len, places[:i])) + k for k in range(len(p))] for i, p in enumerate(places)])
    chosen = np.full(len(columns), -1, np.int32)
    cost, bound = relaxed_choice(profile.compiled(), Copies(first, of_item), begin, end, chosen)
    best = cheapest_choice(sizes, stored, profile, columns)
    assert bound <= best + 1e-6
    assert cost >= best - 1e-6
    assert all(first[item] <= copy < first[item + 1] for item, copy in enumerate(chosen.tolist())), "One copy of each"
    read = np.sort(begin[chosen]), np.sort(end[chosen])
    assert cost == pytest.approx(seek_costs(profile, read[0][1:] - read[1][:-1]).sum())


def test_neighbours_are_read_from_different_places_where_that_saves_a_request() -> None:
    """a and b lie together twice; each place needs one of them, or a gap there gets wider than what is read through."""
    w, a, b, u, x, v, y = range(7)
    sizes = np.full(7, 1000.0)
    stored = [w, a, b, u, x, v, a, b, y]
    profile = ObjectStoreSeek(coalesced_bytes=2500.0)
    choice = StoredOrder(sizes, stored, profile).choose([w, a, b, x, y])
    assert choice.cost == pytest.approx(cheapest_choice(sizes, stored, profile, [w, a, b, x, y]))
    assert choice.cost < 1.0, "nothing but gaps that are read through"
    assert choice.exact
    assert {stored[position] for position in choice.positions} == {w, a, b, x, y}


def test_many_columns_with_replicas_cost_less_than_with_one_copy_each() -> None:
    rng = np.random.default_rng(4)
    sizes = rng.lognormal(9, 2, 90)
    stored = [*rng.permutation(90).tolist(), *rng.permutation(90).tolist(), *rng.permutation(90).tolist()]
    order = StoredOrder(sizes, stored, PowerSeek())
    columns = list(range(80))
    begun = cheapest_choice(sizes, stored[:90], PowerSeek(), columns)
    choice = order.choose(columns)
    assert choice.cost < 0.9 * begun
    assert [stored[position] for position in choice.positions] == columns


def test_columns_that_always_lie_together_are_read_together() -> None:
    sizes = np.array([10.0, 10.0, 1e6])
    choice = StoredOrder(sizes, [0, 1, 2, 0, 1], PowerSeek()).choose([1, 0, 2])
    assert choice.cost == 0.0
    assert set(choice.positions) in ({0, 1, 2}, {2, 3, 4})
