"""Which copy of each column a query reads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.layout.columns.choice import StoredOrder
from skipstone.layout.columns.seek import LinearSeek, ObjectStoreSeek, PowerSeek, SeekProfile, seek_costs

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
    assert order.choose([0, 1, 2], start_from=[0, 2, 4]).cost == 0.0


def test_many_columns_with_replicas_end_no_worse_than_they_began() -> None:
    rng = np.random.default_rng(4)
    sizes = rng.lognormal(9, 2, 90)
    stored = [*rng.permutation(90).tolist(), *rng.permutation(90).tolist(), *rng.permutation(90).tolist()]
    order = StoredOrder(sizes, stored, PowerSeek())
    columns = list(range(80))
    first = [stored.index(column) for column in columns]
    begun = cheapest_choice(sizes, stored[:90], PowerSeek(), columns)
    choice = order.choose(columns, start_from=first)
    assert not choice.exact
    assert choice.cost < begun
    assert [stored[position] for position in choice.positions] == columns


def test_columns_that_always_lie_together_are_read_together() -> None:
    sizes = np.array([10.0, 10.0, 1e6])
    choice = StoredOrder(sizes, [0, 1, 2, 0, 1], PowerSeek()).choose([1, 0, 2])
    assert choice.cost == 0.0
    assert set(choice.positions) in ({0, 1, 2}, {2, 3, 4})
