"""Selective and full-copy replication (section 5.3), with GSOP as a black box."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.layout.grouping.cost import in_cells, storage_cost, workload_cost
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft, scheme_of
from skipstone.layout.grouping.rows_read import ClusteredRows, by_ward
from skipstone.layout.replication.baselines import clusters_of_features, full_copies, selective_replication
from skipstone.layout.replication.gsop_r import SchemeCosts
from skipstone.layout.replication.pieces import relevant_columns
from skipstone.layout.scheme import ClusteringSpec
from skipstone.predicate.literal import ALWAYS
from tests.layout.grouping.worlds import problems, small_world


def one_group(problem: DesignProblem) -> tuple[LayoutDraft, ...]:
    """A GSOP that puts everything together."""
    return (LayoutDraft.group(range(len(problem.columns)), range(len(problem.features))),)


def costs_of(problem: DesignProblem) -> SchemeCosts:
    return SchemeCosts(problem, ClusteredRows(problem, by_ward))


@pytest.fixture
def conflict() -> DesignProblem:
    """Features that cut every pair of columns across: no order of the rows serves them all."""
    rows = [f"{one & 1}{one >> 1 & 1}{one >> 2 & 1}" for one in range(8)]
    queries = [("ab", "100"), ("ac", "010"), ("ad", "001")]
    return small_world(rows, queries, columns="abcd", block_rows=4, weights=[3.0, 2.0, 1.0])


def test_the_feature_that_gains_most_is_replicated_first(conflict: DesignProblem) -> None:
    """Its replica has the rows that satisfy it and its relevant columns; the groups do without it (figure 5.3(a))."""
    costs = costs_of(conflict)
    before = costs.queries(one_group(conflict))
    found = selective_replication(costs, one_group(conflict), 1.25)
    [chosen] = found.moves
    feature = int(chosen.removeprefix("Repl(").removesuffix(")"))
    group, replica = found.layouts
    assert replica == LayoutDraft(relevant_columns(conflict)[feature], frozenset({feature}), frozenset())
    assert group.features == frozenset({0, 1, 2}) - {feature}
    assert group.masters == group.columns
    assert found.storage == 1 + 0.5 * 2 / 4
    assert found.query_cost < before


def test_features_are_replicated_until_the_budget_is_spent(conflict: DesignProblem) -> None:
    found = [selective_replication(costs_of(conflict), one_group(conflict), budget) for budget in (1.0, 1.25, 1.5, 2.0)]
    assert [len(one.moves) for one in found[:3]] == [0, 1, 2]
    assert found[0].layouts == one_group(conflict)
    assert [one.query_cost for one in found] == sorted((one.query_cost for one in found), reverse=True)


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from([1.0, 1.2, 2.0]))
def test_selective_replication_keeps_to_the_budget_and_never_makes_it_worse(
    problem: DesignProblem, budget: float
) -> None:
    costs = costs_of(problem)
    found = selective_replication(costs, one_group(problem), budget)
    scheme_of(problem, found.layouts, ClusteringSpec())
    assert found.storage <= budget + 1e-9
    assert found.storage == pytest.approx(storage_cost(problem, found.layouts))
    assert found.query_cost <= costs.queries(one_group(problem)) + 1e-9


def test_features_that_suit_each_other_share_a_copy() -> None:
    """Two pairs: within a pair one feature's rows are the other's, across pairs they conflict."""
    rows = [f"{one & 1}{one & 1}{one >> 1 & 1}{one >> 1 & 1}" for one in range(4)] * 4
    queries = [("a", "1000"), ("b", "0100"), ("c", "0010"), ("d", "0001")]
    problem = small_world(rows, queries, columns="abcd", block_rows=8)
    found = clusters_of_features(problem, 2, ClusteredRows(problem, by_ward))
    assert set(found) == {frozenset({0, 1}), frozenset({2, 3})}


def test_each_copy_is_laid_out_for_its_features_and_the_first_has_the_masters(conflict: DesignProblem) -> None:
    problem, layouts = full_copies(conflict, 3, one_group, ClusteredRows(conflict, by_ward))
    assert problem.features[-1] == ALWAYS
    assert len(layouts) == 3
    assert [len(one.masters) for one in layouts] == [4, 0, 0]
    everything = len(conflict.features)
    assert [everything in one.features for one in layouts] == [False, True, True], "so that it holds all rows"
    assert storage_cost(problem, layouts) == pytest.approx(3.0)
    counter, prices = ClusteredRows(problem, by_ward), in_cells(problem)
    read = workload_cost(problem, layouts, counter, prices, thrifty=True)
    assert read == pytest.approx(float(conflict.weights @ np.full(3, 4 * 2))), (
        "each query: half of the rows, its columns"
    )


@settings(max_examples=40, deadline=None)
@given(problems(), st.integers(1, 3))
def test_copies_are_complete_and_cost_what_they_are(problem: DesignProblem, copies: int) -> None:
    clusters = clusters_of_features(problem, copies, ClusteredRows(problem, by_ward))
    assert len(clusters) <= copies
    assert sorted(feature for one in clusters for feature in one) == list(range(len(problem.features)))
    widened, layouts = full_copies(problem, copies, one_group, ClusteredRows(problem, by_ward))
    scheme_of(widened, layouts, ClusteringSpec())
    assert storage_cost(widened, layouts) == pytest.approx(len(layouts))
