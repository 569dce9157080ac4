"""The search for column groups: the examples of chapter 4, its laws, and what it is compared with."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.layout.grouping.baselines import cache_misses, disk_seconds, hillclimb, hyrise
from skipstone.layout.grouping.column_grouping import alike, column_groups, groups_cost, one_group, singles
from skipstone.layout.grouping.cost import Prices, in_bytes, in_cells, workload_cost
from skipstone.layout.grouping.estimate import BlockEstimate, SelectivityEstimate
from skipstone.layout.grouping.local_features import LocalFeatures, ranked_candidates
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft, scheme_of
from skipstone.layout.grouping.rows_read import ClusteredRows, by_queries, by_ward
from skipstone.layout.scheme import ClusteringSpec
from tests.layout.grouping.worlds import problems, small_world

EXAMPLE_3 = small_world(
    ["101", "011", "111", "000"],  # t1 .. t4 with A = 'm', B < 0, C LIKE 'y%', as figure 4.2 has it
    [("AC", "100"), ("BD", "010"), ("BC", "001")],
    columns="ABCD",
    block_rows=2,
)


class TestLocalFeatures:
    """Section 4.5."""

    def test_a_group_wants_the_features_of_the_queries_that_read_it(self) -> None:
        """D has no filter of its own, but Q2 reads it WHERE B < 0; C takes part in Q1 and Q3."""
        chosen = LocalFeatures(EXAMPLE_3)
        assert [sorted(chosen.of(EXAMPLE_3.readers([column]))) for column in range(4)] == [[0], [1, 2], [0, 2], [1]]

    def test_features_are_ranked_by_the_queries_that_read_the_group(self) -> None:
        world = small_world(
            ["11", "00"], [("a", "10"), ("a", "10"), ("b", "01"), ("b", "01"), ("b", "01"), ("a", "01")], columns="ab"
        )
        assert ranked_candidates(world, world.readers([0])) == [0, 1], "two queries of a against one"
        assert ranked_candidates(world, world.readers([1])) == [1]

    def test_there_are_as_many_as_keep_the_vectors_few(self) -> None:
        rows = [f"{number:04b}" for number in range(16)]
        world = small_world(rows, [("a", "1000"), ("a", "1100"), ("a", "1110"), ("a", "1111")], columns="a")
        for most, features in ((2, 1), (4, 2), (7, 2), (8, 3), (16, 4), (1, 1)):
            assert LocalFeatures(world, most).of(world.readers([0])) == set(range(features))


class TestEstimates:
    """Section 4.4.3."""

    WORLD = small_world(
        ["10"] * 5 + ["01"] * 7 + ["11"], [("a", "10"), ("a", "01"), ("a", "00")], columns="a", block_rows=3
    )
    WHOLE = LayoutDraft.group([0], [0, 1])

    def test_block_estimate(self) -> None:
        """13 rows; vector 01 fills two blocks of three, vector 10 one."""
        assert BlockEstimate(self.WORLD).rows(self.WHOLE, self.WORLD.readers([0])).tolist() == [13 - 6, 13 - 3, 13]

    def test_selectivity_estimate(self) -> None:
        assert SelectivityEstimate(self.WORLD).rows(self.WHOLE, self.WORLD.readers([0])).tolist() == [6, 8, 13]

    @settings(max_examples=60)
    @given(problems())
    def test_the_block_estimate_is_an_upper_bound_of_perfect_blocks(self, problem: DesignProblem) -> None:
        """With blocks of one row every vector is a block of its own, and the estimate is exact."""
        layout = LayoutDraft.group(range(len(problem.columns)), range(len(problem.features)))
        readers = problem.readers(layout.columns)
        estimated = BlockEstimate(problem).rows(layout, readers)
        least = SelectivityEstimate(problem).rows(layout, readers)
        assert (least <= estimated).all()
        if problem.block_size == 1:
            assert np.allclose(estimated, ClusteredRows(problem).rows(layout, readers))


def searched(problem: DesignProblem, prices: Prices | None = None, *, from_alike: bool = False) -> tuple[object, ...]:
    exact, local = ClusteredRows(problem), LocalFeatures(problem)
    found = column_groups(
        problem,
        exact=exact,
        estimate=BlockEstimate(problem),
        local=local,
        prices=prices or in_cells(problem),
        start=alike(problem) if from_alike else None,
    )
    return found, exact, local


class TestSearch:
    """Section 4.4.4."""

    def test_columns_that_the_same_queries_read_come_together(self) -> None:
        """Two queries with filters that conflict, over columns that have nothing in common."""
        rows = [f"{number % 2}{number // 2 % 2}" for number in range(16)]
        world = small_world(rows, [("abc", "10"), ("de", "01")], columns="abcde", block_rows=4)
        found, _, _ = searched(world)
        assert sorted(sorted(group.columns) for group in found.groups) == [[0, 1, 2], [3, 4]]  # type: ignore[attr-defined]
        assert found.cost == 3 * 8 + 2 * 8, "nothing is read that does not match, and no row ids"  # type: ignore[attr-defined]

    def test_one_group_where_row_ids_would_cost_more_than_they_save(self) -> None:
        world = small_world(["11", "00"] * 4, [("ab", "10"), ("ab", "01")], columns="ab", block_rows=2)
        found, _, _ = searched(world)
        assert len(found.groups) == 1  # type: ignore[attr-defined]

    @settings(max_examples=60)
    @given(problems(), st.booleans(), st.booleans())
    def test_the_search_is_never_worse_than_where_it_begins_and_ends(
        self, problem: DesignProblem, in_bytes_: bool, from_alike: bool
    ) -> None:
        prices = in_bytes(problem) if in_bytes_ else in_cells(problem)
        found, exact, local = searched(problem, prices, from_alike=from_alike)
        for other in (one_group(problem), *(() if from_alike else (singles(problem),))):
            cost = groups_cost(problem, other, exact=exact, local=local, prices=prices)  # type: ignore[arg-type]
            assert found.cost <= cost + 1e-6  # type: ignore[attr-defined]
        # The running sums of the search agree with the costs of the scheme, worked out from nothing.
        again = workload_cost(problem, found.groups, ClusteredRows(problem), prices)  # type: ignore[attr-defined]
        assert found.cost == pytest.approx(again)  # type: ignore[attr-defined]
        scheme_of(problem, found.groups, ClusteringSpec("ward")).validate(problem.columns)  # type: ignore[attr-defined]
        assert searched(problem, prices, from_alike=from_alike)[0] == found, "the same problem, the same answer"

    @settings(max_examples=60)
    @given(problems())
    def test_columns_that_the_same_queries_read_are_no_worse_together(self, problem: DesignProblem) -> None:
        exact, local, prices = ClusteredRows(problem), LocalFeatures(problem), in_cells(problem)
        together = groups_cost(problem, alike(problem), exact=exact, local=local, prices=prices)
        assert together <= groups_cost(problem, singles(problem), exact=exact, local=local, prices=prices) + 1e-6

    @settings(max_examples=30)
    @given(problems(most_columns=5))
    def test_exact_values_are_asked_once_an_iteration(self, problem: DesignProblem) -> None:
        exact = ClusteredRows(problem, by_queries)
        column_groups(
            problem,
            exact=exact,
            estimate=BlockEstimate(problem),
            local=LocalFeatures(problem),
            prices=in_cells(problem),
        )
        assert exact.clustered <= 2 * len(problem.columns) - 1


class TestBaselines:
    """What section 4.7.5 compares with."""

    @settings(max_examples=60)
    @given(problems(most_columns=8))
    def test_they_give_groupings_no_worse_than_columns_alone_in_their_own_view(self, problem: DesignProblem) -> None:
        everything = list(range(len(problem.columns)))
        for search, cost in ((hillclimb, disk_seconds), (hyrise, cache_misses)):
            found = search(problem)
            assert sorted(itertools.chain.from_iterable(found)) == everything
            assert cost(problem, found) <= cost(problem, singles(problem)) + 1e-9

    def test_hyrise_puts_together_what_is_always_read_together(self) -> None:
        world = small_world(["1", "0"], [("ab", "1"), ("cd", "1")], columns="abcde", stands_for=1_000)
        assert hyrise(world) == ((0, 1), (2, 3), (4,))

    def test_hillclimb_keeps_apart_what_is_never_read_together(self) -> None:
        world = small_world(["1", "0"], [("ab", "1")] * 5 + [("cd", "1")] * 5, columns="abcde", stands_for=100_000)
        found = hillclimb(world)
        assert not any({0, 1} & set(group) and {2, 3} & set(group) for group in found)


def test_ward_weighs_features_by_the_readers_of_the_group() -> None:
    """By f0 alone rows would be parted, by f1 alone otherwise; who reads the group decides."""
    rows = ["11", "10", "01", "00"]
    world = small_world(rows, [("a", "10")] * 3 + [("b", "01")] * 2, columns="ab", block_rows=2)
    for how in (by_ward, by_queries):
        counter = ClusteredRows(world, how)
        of_a = counter.rows(LayoutDraft.group([0], [0, 1]), world.readers([0]))
        of_b = counter.rows(LayoutDraft.group([1], [0, 1]), world.readers([1]))
        assert of_a[0] == 2
        assert of_b[-1] == 2
