"""Retrieval paths: the paper's greedy choice, and the exact one."""

import itertools
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from skipstone.scan.path import best_path, exact_path, greedy_path, path_cost

LAYOUTS = 4
eligibilities = st.dictionaries(
    st.sampled_from("abcdef"),
    st.lists(st.integers(0, LAYOUTS - 1), min_size=1, max_size=LAYOUTS, unique=True),
    min_size=1,
)
row_counts = st.lists(st.integers(0, 50), min_size=LAYOUTS, max_size=LAYOUTS)


def cheapest_by_brute_force(eligible: Mapping[str, Sequence[int]], rows: Sequence[int]) -> int:
    columns = list(eligible)
    paths = itertools.product(*(eligible[column] for column in columns))
    return min(path_cost(dict(zip(columns, path, strict=True)), rows) for path in paths)


@given(eligibilities, row_counts)
def test_the_exact_path_costs_what_brute_force_finds(eligible: dict[str, list[int]], rows: list[int]) -> None:
    path = exact_path(eligible, rows)
    assert path is not None
    assert path_cost(path, rows) == cheapest_by_brute_force(eligible, rows)


@given(eligibilities, row_counts)
def test_every_column_is_read_from_an_eligible_layout(eligible: dict[str, list[int]], rows: list[int]) -> None:
    for path in (greedy_path(eligible, rows), best_path(eligible, rows)):
        assert set(path) == set(eligible)
        assert all(path[column] in eligible[column] for column in path)


@given(eligibilities, row_counts)
def test_the_greedy_path_is_at_most_twice_the_optimum(eligible: dict[str, list[int]], rows: list[int]) -> None:
    assert path_cost(greedy_path(eligible, rows), rows) <= 2 * cheapest_by_brute_force(eligible, rows)


def test_too_many_sets_of_layouts_fall_back_to_the_greedy_path() -> None:
    eligible = {f"c{i}": list(range(30)) for i in range(5)}
    rows = list(range(30, 0, -1))
    assert exact_path(eligible, rows) is None
    assert best_path(eligible, rows) == greedy_path(eligible, rows)
