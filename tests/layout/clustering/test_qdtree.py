"""Trees of cuts: what they separate, what they never do worse than, and that questions are asked as they are meant."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.layout.clustering.conditions import conditions_of, true_rows
from skipstone.layout.clustering.growing import Tree, descend, grow
from skipstone.layout.clustering.qdtree import QueryTree, useful_features
from skipstone.layout.clustering.questions import Questions
from skipstone.layout.clustering.routing import ClusteringProblem
from skipstone.layout.scheme import ClusteringSpec
from skipstone.layout.vectors import words
from skipstone.predicate.printing import sql
from tests.layout.clustering.worlds import asked, bits_of, featured, groups, random_problem, routed, rows_read

TREE = ClusteringSpec("qdtree")
UNCUT = ClusteringSpec("none")


def scattered(rows: int, seed: int = 0) -> pa.Table:
    """Rows whose columns know nothing of each other, in no order: arrival separates nothing."""
    chance = np.random.default_rng(seed)
    return pa.table({
        "x": chance.integers(0, 1000, rows),
        "y": chance.integers(0, 1000, rows),
        "kind": chance.choice(["a", "b", "c", "d"], rows),
    })  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_on_its_own_sample_a_tree_reads_no_more_than_rows_in_no_order(seed: int) -> None:
    chance = random.Random(seed)
    rows = scattered(600, seed)
    filters = {
        " AND ".join(
            chance.sample(
                [
                    f"x BETWEEN {(low := chance.randrange(900))} AND {low + chance.randrange(1, 300)}",
                    f"y < {chance.randrange(1000)}",
                    f"kind = '{chance.choice('abcd')}'",
                    f"kind IN ('a', '{chance.choice('bcd')}')",
                ],
                chance.randint(1, 3),
            )
        )
        for _ in range(chance.randint(1, 15))
    }
    queries = asked(*sorted(filters), schema=rows.schema)
    problem = ClusteringProblem((), queries, rows=600, block_rows=chance.choice([10, 40, 100]))
    assert rows_read(TREE, rows, problem) <= rows_read(UNCUT, rows, problem) + 1e-9


def test_a_query_that_needs_two_cuts_is_given_both() -> None:
    """Neither condition alone is absent anywhere until the other has been cut: the first cut gains nothing at once."""
    rows = scattered(4000)
    problem = ClusteringProblem((), asked("x < 500 AND y < 500", schema=rows.schema), rows=4000, block_rows=400)
    assert rows_read(TREE, rows, problem) <= 0.3
    together = groups(routed(QueryTree().fit(rows, problem), rows, problem))
    matching = {row for row in range(4000) if rows["x"][row].as_py() < 500 and rows["y"][row].as_py() < 500}
    assert sum(bool(matching.intersection(group)) for group in together) * 2 <= len(together)


def test_constants_that_were_never_asked_profit_from_those_that_were() -> None:
    rows = scattered(5000)
    training = asked(*(f"x BETWEEN {low} AND {low + 30}" for low in range(0, 1000, 50)), schema=rows.schema)
    unseen = asked(*(f"x BETWEEN {low} AND {low + 30}" for low in range(17, 950, 50)), schema=rows.schema)
    problem = ClusteringProblem((), training, rows=5000, block_rows=100)
    router = QueryTree().fit(rows, problem)
    routing = routed(router, rows, problem)
    x = rows["x"].to_numpy()
    read = 0
    for query in unseen:
        matching = true_rows([query.filter], rows)[:, 0]
        held = np.unique(routing.group[matching])
        assert len(np.unique(x[matching])) > 10
        read += int(np.isin(routing.group, held).sum())
    assert read / (len(unseen) * 5000) <= 0.12


def test_leaves_are_larger_than_blocks_and_no_row_is_lost() -> None:
    rows = scattered(3000)
    queries = asked(
        *(f"x < {bound} AND kind = '{kind}'" for bound in range(0, 1000, 40) for kind in "abcd"), schema=rows.schema
    )
    problem = ClusteringProblem((), queries, rows=3000, block_rows=50)
    router = QueryTree().fit(rows, problem)
    sizes = np.bincount(routed(router, rows, problem).group, minlength=router.groups)
    assert sizes.sum() == 3000
    assert sizes.min() >= 50
    assert router.groups > 20


def test_the_filters_that_are_proposed_are_those_that_bounds_cannot_tell() -> None:
    """`kind` recurs and is no bound by itself; `x` is told by minimum and maximum; a feature that is given is known."""
    rows = scattered(2000)
    filters = [f"kind IN ('b', 'd') AND x < {bound}" for bound in range(100, 1000, 100)]
    queries = asked(*filters, schema=rows.schema)
    proposed = QueryTree().fit(rows, ClusteringProblem((), queries, rows=2000, block_rows=50)).used
    assert "kind IN ('b', 'd')" in [sql(one) for one in proposed]
    given_too = featured("kind IN ('b', 'd')", schema=rows.schema)
    assert proposed[0] not in QueryTree().fit(rows, ClusteringProblem(given_too, queries, 2000, 50)).used


def test_a_feature_counts_for_what_it_spares_beyond_those_chosen_before() -> None:
    """Two features that are absent from the same blocks: one of them is enough."""
    rows = pa.table({"a": [0] * 50 + [1] * 50, "b": [0] * 50 + [1] * 50})
    queries = (
        *asked("a IN (1, 7) AND b IN (1, 7)", schema=rows.schema, weight=3.0),
        *asked("a IN (1, 7) AND b IN (1, 7) AND a < 9", schema=rows.schema, weight=3.0),
    )
    conditions = conditions_of(queries)
    assert conditions.stored.sum() > 1
    # The first block has none of the stored ones, the second has all; bounds tell nothing of either.
    held = np.stack([~conditions.stored, np.ones(len(conditions.stored), dtype=np.bool_)])
    assert len(useful_features(conditions, held, np.array([50.0, 50.0]))) == 1


@pytest.mark.parametrize("seed", range(6))
def test_questions_send_rows_where_the_conditions_themselves_would(seed: int) -> None:
    """Over every type, NULL and NaN: codes and searches on one side, plain evaluation of conditions on the other."""
    table, problem = random_problem(seed, rows=500, queries=25)
    features = [feature.filter for feature in problem.features]
    conditions = conditions_of(problem.queries, features)
    true = true_rows(conditions.filters, table)
    chance = np.random.default_rng(seed)
    tree = random_tree(len(conditions.filters), chance)
    questions = Questions.of(tree, conditions.filters, features, None)
    expected = descend(tree, np.arange(true.shape[1]), true)
    batch = table.combine_chunks().to_batches()[0]
    assert questions.leaf_of(batch, bits_of(table, problem)).tolist() == expected.tolist()


def random_tree(conditions: int, chance: np.random.Generator, cuts: int = 60) -> Tree:
    """A tree that asks any condition anywhere."""
    cut, yes, no = [-1], [-1], [-1]
    for _ in range(cuts):
        node = int(chance.choice([number for number, one in enumerate(cut) if one < 0]))
        cut[node], yes[node], no[node] = int(chance.integers(conditions)), len(cut), len(cut) + 1
        cut, yes, no = [*cut, -1, -1], [*yes, -1, -1], [*no, -1, -1]
    leaf = np.full(len(cut), -1)
    leaf[[number for number, one in enumerate(cut) if one < 0]] = np.arange(cuts + 1)
    return Tree(np.array(cut), np.array(yes), np.array(no), leaf)


def test_a_node_is_cut_where_both_sides_keep_enough_rows_and_some_query_gains() -> None:
    """Ten rows, two conditions: the first is true of one row only, too few for a side of three."""
    true = np.zeros((10, 3), dtype=bool)
    true[0, 0] = true[:4, 1] = true[:4, 2] = True
    queries = true[:, [1]]
    rows = words(np.concatenate([true[:, :2], queries], axis=1))
    tree = grow(rows, 2, np.array([0, 1]), np.array([1]), np.array([1.0]), min_rows=3.0, mixing=0.4, most_scored=100)
    assert tree.cut.tolist() == [1, -1, -1]
    assert tree.leaf.tolist() == [-1, 0, 1]


def test_no_query_means_no_cut() -> None:
    rows = words(np.ones((10, 1), dtype=bool))
    nothing = np.zeros(0, dtype=np.int64)
    tree = grow(rows, 1, np.array([0]), nothing, np.zeros(0), min_rows=2.0, mixing=0.4, most_scored=100)
    assert tree.cut.tolist() == [-1]
