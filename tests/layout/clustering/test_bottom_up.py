"""The bottom-up framework against its definition and worked examples, and how hard it looks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from skipstone.errors import InvalidInput
from skipstone.layout.clustering.bottom_up import merge_costs, merged_queries, search, ward, ward_by_queries
from skipstone.layout.vectors import Bits, DistinctVectors, distinct, unions

# The example of the Fragment Skipper paper, section V.B.4: V1 .. V4, their counts, and the weights of the features.
WORKED = DistinctVectors(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0], [1, 1, 0]], dtype=bool), np.array([12, 11, 19, 10]))
WORKED_WEIGHTS = np.array([50.0, 20.0, 10.0])


def skipped(vectors: DistinctVectors, group: NDArray[np.int64], weights: NDArray[np.float64]) -> float:
    """Equation 3.2, written as it is printed."""
    united = unions(vectors.bits, group, int(group.max()) + 1)
    size = np.bincount(group, weights=vectors.counts)
    return float((size[:, None] * weights * ~united).sum())


def read_by(vectors: DistinctVectors, group: NDArray[np.int64], queries: Bits, weights: NDArray[np.float64]) -> float:
    united = unions(vectors.bits, group, int(group.max()) + 1)
    size = np.bincount(group, weights=vectors.counts)
    present = np.array([[(~query | union).all() for query in queries] for union in united])
    return float((size[:, None] * weights * present).sum())


def bottom_up_by_definition(
    vectors: DistinctVectors, queries: Bits, weights: NDArray[np.float64], min_size: int
) -> list[int]:
    """Look at every pair in every round; the smallest loss wins, of equal ones the pair that comes first."""

    def loss(union: NDArray[np.bool_], rows: int) -> float:
        return rows * float(sum(w for query, w in zip(queries, weights, strict=True) if (~query | union).all()))

    groups = {i: (vectors.bits[i], int(vectors.counts[i]), [i]) for i in range(len(vectors))}
    done = {i: groups.pop(i) for i in list(groups) if groups[i][1] >= min_size}

    def cost(one: tuple[NDArray[np.bool_], int, list[int]], two: tuple[NDArray[np.bool_], int, list[int]]) -> float:
        return loss(one[0] | two[0], one[1] + two[1]) - loss(one[0], one[1]) - loss(two[0], two[1])

    while len(groups) > 1:
        i, j = min(
            ((i, j) for i in groups for j in groups if i < j),
            key=lambda pair: (cost(groups[pair[0]], groups[pair[1]]), pair),
        )
        one, two = groups.pop(i), groups.pop(j)
        merged = (one[0] | two[0], one[1] + two[1], one[2] + two[2])
        (done if merged[1] >= min_size else groups)[i] = merged
    for i, rest in groups.items():
        if done:
            home = min(done, key=lambda g: (cost(rest, done[g]), g))
            done[home] = (done[home][0] | rest[0], done[home][1] + rest[1], done[home][2] + rest[2])
        else:
            done[i] = rest
    leader = {member: min(members) for _, _, members in done.values() for member in members}
    numbers = {first: number for number, first in enumerate(sorted(set(leader.values())))}
    return [numbers[leader[i]] for i in range(len(vectors))]


@st.composite
def problems(draw: st.DrawFn) -> tuple[DistinctVectors, Bits, NDArray[np.float64], int]:
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    features = draw(st.integers(1, 12))
    bits = random.random((draw(st.integers(1, 24)), features)) < draw(st.sampled_from([0.1, 0.4, 0.7]))
    vectors, _ = distinct(bits, random.integers(1, 9, len(bits)))
    queries = random.random((draw(st.integers(1, 12)), features)) < draw(st.sampled_from([0.1, 0.3]))
    # Whole numbers: sums are exact, so that ties are ties whatever the order of the additions.
    weights = random.integers(0, 4, len(queries)).astype(np.float64)
    return vectors, queries, weights, draw(st.integers(1, 40))


def test_the_worked_example_has_the_cost_matrix_of_the_paper() -> None:
    assert (-merge_costs(WORKED, WORKED_WEIGHTS)).tolist() == [
        [0, -340, -380, -600],
        [-340, 0, -190, -870],
        [-380, -190, 0, -1330],
        [-600, -870, -1330, 0],
    ]


def test_the_worked_example_merges_v2_and_v3_first() -> None:
    # V2 and V3 hold 30 rows together and V1 and V4 hold 22, so a limit of 22 ends the search after two merges.
    assert ward(WORKED, WORKED_WEIGHTS, min_size=22).tolist() == [0, 1, 1, 0]


def test_the_worked_example_goes_on_until_one_group_is_left() -> None:
    assert ward(WORKED, WORKED_WEIGHTS, min_size=1000).tolist() == [0, 0, 0, 0]


@settings(max_examples=150, deadline=None)
@given(problems())
def test_ward_is_what_its_definition_says(problem: tuple[DistinctVectors, Bits, NDArray[np.float64], int]) -> None:
    vectors, _, _, min_size = problem
    features = vectors.bits.shape[1]
    weights = np.arange(features, dtype=np.float64) % 4
    expected = bottom_up_by_definition(vectors, np.eye(features, dtype=np.bool_), weights, min_size)
    assert ward(vectors, weights, min_size).tolist() == expected


@settings(max_examples=150, deadline=None)
@given(problems())
def test_ward_by_queries_is_what_its_definition_says(
    problem: tuple[DistinctVectors, Bits, NDArray[np.float64], int],
) -> None:
    vectors, queries, weights, min_size = problem
    expected = bottom_up_by_definition(vectors, queries, weights, min_size)
    assert ward_by_queries(vectors, queries, weights, min_size).tolist() == expected


@settings(max_examples=100, deadline=None)
@given(problems())
def test_groups_are_as_large_as_asked_and_small_vectors_make_no_group_of_twice_that(
    problem: tuple[DistinctVectors, Bits, NDArray[np.float64], int],
) -> None:
    vectors, queries, weights, min_size = problem
    for group in (
        ward(vectors, np.ones(vectors.bits.shape[1]), min_size),
        ward_by_queries(vectors, queries, weights, min_size),
    ):
        size = np.bincount(group, weights=vectors.counts)
        assert (size > 0).all(), "groups are numbered without gaps"
        if vectors.rows >= min_size:
            assert (size >= min_size).all()
        joined = np.bincount(group) > 1
        # The last, too small group may have joined one that was done.
        assert np.sum(size[joined] >= 2 * min_size) <= 1


def test_a_vector_that_fills_a_group_alone_stays_alone() -> None:
    vectors = DistinctVectors(np.array([[0, 0], [0, 1], [1, 0]], dtype=bool), np.array([100, 6, 6]))
    assert ward(vectors, np.array([1.0, 1.0]), min_size=10).tolist() == [0, 1, 1]


def test_of_equal_costs_the_pair_that_comes_first_is_merged() -> None:
    vectors = DistinctVectors(np.eye(4, dtype=np.bool_), np.full(4, 5))
    assert ward(vectors, np.ones(4), min_size=10).tolist() == [0, 0, 1, 1]


def test_counting_queries_reads_less_than_counting_features() -> None:
    """MaxSkip keeps the rows of two features of one query apart from all else, twice over; that buys nothing."""
    random = np.random.default_rng(1)
    bits = random.random((400, 16)) < 0.35
    vectors, _ = distinct(bits, random.integers(1, 50, 400))
    queries = np.zeros((12, 16), dtype=np.bool_)
    for query in queries:
        query[random.choice(16, 3, replace=False)] = True
    weights = np.ones(len(queries))
    by_features = ward(vectors, queries.sum(axis=0).astype(np.float64), 300)
    by_queries = ward_by_queries(vectors, queries, weights, 300)
    assert read_by(vectors, by_queries, queries, weights) < 0.9 * read_by(vectors, by_features, queries, weights)
    assert skipped(vectors, by_features, queries.sum(axis=0).astype(np.float64)) > 0


def test_equal_queries_are_merged_and_those_without_features_left_out() -> None:
    masks, totals = merged_queries(np.array([[1, 1], [0, 0], [1, 1], [0, 1]], dtype=bool), np.array([1.0, 9, 2, 4]))
    assert {(tuple(mask), total) for mask, total in zip(masks.tolist(), totals.tolist(), strict=True)} == {
        ((True, True), 3.0),
        ((False, True), 4.0),
    }


def test_no_vectors_make_no_groups() -> None:
    nothing = DistinctVectors(np.zeros((0, 3), dtype=np.bool_), np.zeros(0, dtype=np.int64))
    assert ward(nothing, np.ones(3), 5).tolist() == []


def test_vectors_without_features_are_one_group() -> None:
    vectors, _ = distinct(np.zeros((10, 0), dtype=np.bool_))
    assert ward(vectors, np.zeros(0), 5).tolist() == [0]


@pytest.mark.parametrize(
    ("weights", "min_size", "reason"),
    [
        (np.ones(2), 5, "every feature needs a weight"),
        (np.array([1.0, -1.0, 1.0]), 5, "not negative"),
        (np.ones(3), 0, "at least one row, not 0"),
    ],
)
def test_impossible_input_is_refused(weights: NDArray[np.float64], min_size: int, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        ward(WORKED, weights, min_size)


def test_the_search_looks_at_few_more_pairs_than_there_are() -> None:
    """By definition every round looks at all pairs, here some 10^8 in all; caching keeps it to a few for each pair."""
    count = 1_000
    random = np.random.default_rng(7)
    bits = random.random((2 * count, 50)) < random.uniform(0.02, 0.5, 50)
    vectors, _ = distinct(bits)
    vectors = DistinctVectors(vectors.bits[:count], random.integers(1, 2_000, count))
    found = search(vectors, np.eye(50, dtype=np.bool_), random.integers(1, 100, 50).astype(np.float64), 10_000)
    assert count * (count - 1) / 2 <= found.pairs <= 3 * count**2
