"""`ward` and `ward-queries` over rows: figure 3.1 of the dissertation, vectors that the sample did not have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from skipstone.layout.clustering import by_vectors
from skipstone.layout.clustering.bottom_up import ward
from skipstone.layout.clustering.by_vectors import VectorRouter, Ward, WardByQueries
from skipstone.layout.clustering.routing import ClusteringProblem
from skipstone.layout.vectors import distinct, unions
from skipstone.predicate.literal import Conjunction
from skipstone.workload.query import Query
from tests.layout.clustering.worlds import asked, bits_of, featured, groups, routed

# Figure 3.1: a log of events (t1 .. t6), three features, and the weights 50, 20 and 10 of the queries they subsume.
EVENTS = pa.table({
    "event": ["click", "click", "click", "buy", "click", "buy"],
    "product": ["jeans", "shirts", "shirts", "jeans", "jeans", "shoes"],
    "publisher": ["groupon", "google", "groupon", "google", "google", "shoedeal"],
    "revenue": [0.0, -0.5, 0.0, 12.0, -0.5, 30.0],
})  # fmt: skip
FEATURES = ("event = 'buy'", "product = 'jeans'", "publisher = 'google' AND revenue < 0")
WEIGHTS = (50.0, 20.0, 10.0)
FIGURE_BLOCKS = np.array([0, 1, 2, 0, 1, 2])
"""Figure 3.1(d): P1 is t1 and t4, P2 is t2 and t5, P3 is t3 and t6."""


def problem_of_the_figure(*more: Query, block_rows: int = 2) -> ClusteringProblem:
    schema = EVENTS.schema
    queries = [
        query
        for text, weight in zip(FEATURES, WEIGHTS, strict=True)
        for query in asked(text, schema=schema, weight=weight)
    ]
    return ClusteringProblem(
        featured(*FEATURES, schema=schema), (*queries, *more), rows=EVENTS.num_rows, block_rows=block_rows
    )


def skipped(block: np.ndarray) -> float:
    """Equations 3.1 and 3.2: the weighted rows that the queries skip."""
    vectors = unions(bits_of(EVENTS, problem_of_the_figure()), block, int(block.max()) + 1)
    return float((np.bincount(block)[:, None] * np.array(WEIGHTS) * ~vectors).sum())


def test_the_rows_of_the_figure_have_the_vectors_of_the_figure() -> None:
    assert bits_of(EVENTS, problem_of_the_figure()).astype(int).tolist() == [
        [0, 1, 0],
        [0, 0, 1],
        [0, 0, 0],
        [1, 1, 0],
        [0, 1, 1],
        [1, 0, 0],
    ]


def test_the_first_block_of_the_figure_skips_twenty() -> None:
    """Section 3.4.1: only F3 prunes P1, which has two rows, and its weight is 10."""
    bits = bits_of(EVENTS, problem_of_the_figure())[FIGURE_BLOCKS == 0]
    union = unions(bits, np.zeros(2, dtype=np.int64), 1)
    assert union.astype(int).tolist() == [[1, 1, 0]]
    assert float((2 * np.array(WEIGHTS) * ~union).sum()) == 20.0


def test_the_search_finds_better_blocks_than_the_figure_shows() -> None:
    """The figure only illustrates: it skips 180. t2 with t3, t1 with t5 and t4 with t6 skip 260."""
    router = Ward().fit(EVENTS, problem_of_the_figure())
    routing = routed(router, EVENTS, problem_of_the_figure())
    assert sorted(sorted(rows) for rows in groups(routing)) == [[0, 4], [1, 2], [3, 5]]
    assert skipped(FIGURE_BLOCKS) == 180.0
    assert skipped(routing.group.astype(np.int64)) == 260.0


def test_features_are_weighed_by_the_queries_that_they_subsume() -> None:
    """A query for jeans that were bought is subsumed by two features; its weight counts for both."""
    [both] = asked("event = 'buy' AND product = 'jeans'", schema=EVENTS.schema, weight=7.0)
    router = Ward().fit(EVENTS, problem_of_the_figure(both))
    assert router.weights.tolist() == [57.0, 27.0, 10.0]


def test_a_vector_that_was_not_sampled_goes_where_it_costs_least() -> None:
    """The sample has no row of the vector (0,1,1): of the groups, that of (0,1,0) is widened least, by F3."""
    sample = EVENTS.take([0, 0, 1, 1, 3, 3])
    problem = problem_of_the_figure()
    router = Ward().fit(sample, problem)
    home = routed(router, EVENTS, problem).group
    assert router.unions[home[0]].astype(int).tolist() == [0, 1, 0]
    assert home[4] == home[0]


def test_of_groups_that_would_be_widened_alike_the_one_that_wastes_least_is_taken() -> None:
    """The vector (0,0,0) widens no group; the one whose own features weigh least loses least by it."""
    sample = EVENTS.take([0, 0, 1, 1, 3, 3])
    router = Ward().fit(sample, problem_of_the_figure())
    home = routed(router, EVENTS, problem_of_the_figure()).group
    assert router.unions[home[2]].astype(int).tolist() == [0, 0, 1]


def test_of_too_many_vectors_the_most_frequent_are_clustered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the others are sent to the groups of those."""
    monkeypatch.setattr(by_vectors, "MOST_VECTORS", 20)
    often = list(range(20)) * 10
    rows = pa.table({"x": [*often, *range(20, 64)]})
    filters = [f"x % {2 * bit} >= {bit}" for bit in (1, 2, 4, 8, 16, 32)]
    features = featured(*filters, schema=rows.schema)
    problem = ClusteringProblem(features, asked(*filters, schema=rows.schema), rows=rows.num_rows, block_rows=20)
    router = Ward().fit(rows, problem)
    assert len(router.vectors) == 20
    routing = routed(router, rows, problem)
    assert set(routing.group[: len(often)].tolist()) == set(range(router.groups))
    assert set(routing.group.tolist()) == set(range(router.groups))


def test_counting_queries_is_another_objective() -> None:
    """One query needs two features: rows with one of them are kept from rows with the other, see `ward_by_queries`."""
    rows = pa.table({"a": [0] * 9 + [1] * 11, "b": [0] * 4 + [1] * 5 + [0] * 5 + [1] * 6})
    features = featured("a = 1", "b = 1", schema=rows.schema)
    problem = ClusteringProblem(features, asked("a = 1 AND b = 1", schema=rows.schema), rows=20, block_rows=9)
    router = WardByQueries().fit(rows, problem)
    together = groups(routed(router, rows, problem))
    assert sorted(map(len, together)) == [9, 11]
    # One of the groups has no row with one of the two features, which is all that a skip needs.
    assert any({rows[name][row].as_py() for row in group} == {0} for group in together for name in ("a", "b"))


def test_without_queries_features_keep_their_own_weights() -> None:
    features = tuple(
        type(one)(one.filter, weight)
        for one, weight in zip(featured(*FEATURES, schema=EVENTS.schema), WEIGHTS, strict=True)
    )
    router: VectorRouter = Ward().fit(EVENTS, ClusteringProblem(features, (), rows=6, block_rows=2))
    assert router.weights.tolist() == list(WEIGHTS)
    vectors, which = distinct(bits_of(EVENTS, problem_of_the_figure()))
    by_hand = ward(vectors, np.array(WEIGHTS), 2)[which]
    assert (routed(router, EVENTS, problem_of_the_figure()).group == by_hand).all()


def test_rows_of_one_vector_are_ordered_by_what_filters_compare() -> None:
    """Blocks cut from a large group of equal vectors have narrow bounds."""
    rows = pa.table({"kind": ["a"] * 100, "day": [(37 * day) % 100 for day in range(100)]})
    days = asked(*(f"kind = 'a' AND day >= {day}" for day in range(0, 100, 5)), schema=rows.schema)
    problem = ClusteringProblem(featured("kind = 'a'", schema=rows.schema), days, rows=100, block_rows=10)
    [order] = groups(routed(Ward().fit(rows, problem), rows, problem))
    assert rows["day"].take(order).to_pylist() == list(range(100))


def test_conditions_are_proposed_by_neither() -> None:
    used: tuple[Conjunction, ...] = Ward().fit(EVENTS, problem_of_the_figure()).used
    assert used == ()
