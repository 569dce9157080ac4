"""Algorithms 1 and 2 on the running example of chapter 5, and laws that hold for any problem and budget.

Rows r1 .. r4, columns a .. d for c1 .. c4; f1 qualifies r1 and r3, f2: r2 and r4, f3: r1 and r2. The relevant columns
are those of figure 5.5: f1: c1, c3; f2: c2, c3; f3: c2, c4.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.errors import InvalidInput
from skipstone.layout.grouping.cost import storage_cost, workload_cost
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft, scheme_of
from skipstone.layout.grouping.rows_read import ClusteredRows, by_ward
from skipstone.layout.replication.gsop_r import SchemeCosts, condensed, find_gsop_r, require_budget
from skipstone.layout.replication.pieces import initial_pieces, merge, merge_repl, relevant_columns, repl
from skipstone.layout.replication.quick_rows import QuickRows
from skipstone.layout.scheme import ClusteringSpec
from tests.layout.grouping.worlds import problems, small_world

R1, R2, R3, R4 = "101", "011", "100", "010"
BUDGETS = st.sampled_from([1.0, 1.1, 1.25, 1.5, 2.0, 3.0])


def running_example(*more: tuple[str, str]) -> DesignProblem:
    """The table of figure 5.1(a) in blocks of two rows, with a query for each feature's relevant columns, and more."""
    queries = [("ac", "100"), ("bc", "010"), ("bd", "001"), *more]
    return small_world([R1, R2, R3, R4], queries, columns="abcd", block_rows=2)


def costs_of(problem: DesignProblem) -> SchemeCosts:
    return SchemeCosts(problem, ClusteredRows(problem, by_ward))


FIGURE_5_4 = (
    LayoutDraft(frozenset({0, 1, 2}), frozenset({0, 1}), frozenset({0, 1, 2})),
    LayoutDraft(frozenset({1, 3}), frozenset({2}), frozenset({3})),
)


def test_the_relevant_columns_are_those_of_the_figure() -> None:
    assert relevant_columns(running_example()) == {
        0: frozenset({0, 2}),
        1: frozenset({1, 2}),
        2: frozenset({1, 3}),
    }


def test_the_scheme_of_figure_5_4_costs_1_125_times_the_table() -> None:
    """Section 5.4.3: 18 cells in place of 16."""
    problem = running_example()
    assert costs_of(problem).storage(FIGURE_5_4) == 18 / 16
    assert storage_cost(problem, FIGURE_5_4) == 18 / 16


def test_the_query_of_figure_5_6_costs_14() -> None:
    """Section 5.6.2: c2 and c4 of two rows of L2, c3 of all rows of L1, and six row ids."""
    problem = small_world([R1, R2, R3, R4], [("bcd", "001")], columns="abcd", block_rows=2)
    assert costs_of(problem).queries(FIGURE_5_4) == 14


def test_a_query_that_no_local_feature_subsumes_reads_masters_of_all_rows() -> None:
    """Section 5.6.1: c2 of L2 lacks r3 and r4, so it comes from L1; c4 is whole there in both parts."""
    problem = small_world([R1, R2, R3, R4], [("bd", "000")], columns="abcd", block_rows=2)
    cells, row_ids = 4 + 4, 4 + 4
    assert costs_of(problem).queries(FIGURE_5_4) == cells + row_ids


def test_without_a_budget_for_it_nothing_is_stored_twice() -> None:
    found = find_gsop_r(costs_of(running_example()), 1.0)
    assert found.storage == 1.0
    assert not any(move.startswith(("repl", "merge-repl")) for move in found.moves)


def test_replicas_rid_the_running_example_of_its_conflicts() -> None:
    """With half as much again every query reads the two rows that it wants of its two columns, and no row id."""
    problem = running_example()
    found = find_gsop_r(costs_of(problem), 1.5)
    assert found.query_cost == 3 * 2 * 2
    assert found.storage <= 1.5
    assert any("repl" in move for move in found.moves)
    assert find_gsop_r(costs_of(problem), 1.0).query_cost > found.query_cost


def test_each_step_is_the_best_of_all_operations_within_the_budget() -> None:
    """Algorithm 2, done again by hand for the first step: the scheme after it costs least of all that fit."""
    problem = running_example(("abcd", "100"))
    costs, relevant = costs_of(problem), relevant_columns(problem)
    start = initial_pieces(range(4), relevant)
    budget = 1.25
    schemes = [
        repl(start, one, feature, relevant) for one in start if len(one.features) > 1 for feature in one.features
    ]
    for number, one in enumerate(start):
        for other in start[number + 1 :]:
            if one.features & other.features:
                schemes += [merge(start, one, other), merge_repl(start, one, other, relevant)]
    reached = [costs.drafts(scheme) for scheme in schemes]
    least = min(costs.queries(layouts) for layouts in reached if costs.storage(layouts) <= budget)
    found = find_gsop_r(costs, budget)
    assert found.query_cost <= least
    assert found.tried > len([one for one in reached if costs.storage(one) <= budget])


@settings(max_examples=60, deadline=None)
@given(problems(), BUDGETS)
def test_whatever_the_problem_the_scheme_is_complete_and_within_the_budget(
    problem: DesignProblem, budget: float
) -> None:
    costs = costs_of(problem)
    found = find_gsop_r(costs, budget)
    scheme_of(problem, found.layouts, ClusteringSpec())  # each column is a master exactly once, or this says so
    assert found.storage <= budget + 1e-9
    assert found.storage == pytest.approx(storage_cost(problem, found.layouts))
    assert found.query_cost == pytest.approx(costs.queries(found.layouts))
    first = costs.drafts(initial_pieces(range(len(problem.columns)), relevant_columns(problem)))
    assert found.query_cost <= costs.queries(first) + 1e-9, "the best scheme on the way, and it begins there"


@settings(max_examples=60, deadline=None)
@given(problems())
def test_queries_that_cost_the_same_are_one(problem: DesignProblem) -> None:
    fewer = condensed(problem)
    assert fewer.weights.sum() == pytest.approx(problem.weights.sum())
    assert len(fewer.queries) <= len(problem.queries)
    groups = [LayoutDraft.group([column], range(len(problem.features))) for column in range(len(problem.columns))]
    prices = costs_of(problem).prices
    assert workload_cost(fewer, groups, ClusteredRows(fewer), prices) == pytest.approx(
        workload_cost(problem, groups, ClusteredRows(problem), prices)
    )


@settings(max_examples=60, deadline=None)
@given(problems())
def test_with_enough_vectors_the_quick_count_is_the_exact_one(problem: DesignProblem) -> None:
    everyone = np.ones(len(problem.queries), dtype=np.bool_)
    whole = LayoutDraft.group(range(len(problem.columns)), range(len(problem.features)))
    quick = QuickRows(problem, by_ward, most_vectors=1_000)
    exact = ClusteredRows(problem, by_ward)
    assert quick.rows(whole, everyone).tolist() == pytest.approx(exact.rows(whole, everyone).tolist())
    assert quick.rows(whole, everyone) is quick.rows(whole, everyone) or quick.clustered == 1, "it remembers"


@pytest.mark.parametrize("budget", [0.99, 10.5, float("nan")])
def test_a_budget_that_cannot_hold_the_table_is_refused(budget: float) -> None:
    with pytest.raises(InvalidInput) as failure:
        require_budget(budget)
    assert str(failure.value) == (
        f"a storage budget is a multiple of the table's size from 1.0 (no replicas) to 10; it is {budget:g}"
    )
