"""Features as the dissertation finds them, and the closed search that finds the same ones without the blow-up."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.errors import InvalidInput
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql
from skipstone.workload.mining import Method, mine, mine_features, subsumption
from skipstone.workload.query import Feature, Query

SCHEMA = pa.schema({
    "product": pa.string(), "revenue": pa.int64(), "publisher": pa.string(), "day": pa.date32(), "due": pa.date32(),
})  # fmt: skip


def query(text: str, weight: float = 1.0, columns: tuple[str, ...] = ("product", "revenue")) -> Query:
    return Query(columns, parse_filter(text, SCHEMA), weight)


def texts(features: tuple[Feature, ...]) -> list[tuple[str, float]]:
    return [(sql(feature.filter), feature.weight) for feature in features]


EXAMPLE_1 = [
    query("product = 'shoes'"),
    query("product IN ('shoes', 'shirts') AND revenue > 32"),
    query("product = 'shirts' AND revenue > 21"),
]


def test_example_1_is_augmented_as_the_dissertation_shows() -> None:
    """Section 3.3.2: after augmentation Q1 has two predicates, Q2 and Q3 have three."""
    predicates = [
        parse_filter(text, SCHEMA)
        for text in (
            "product = 'shoes'",
            "product IN ('shoes', 'shirts')",
            "revenue > 32",
            "revenue > 21",
            "product = 'shirts'",
        )
    ]
    assert subsumption(predicates, EXAMPLE_1).tolist() == [
        [True, False, False],
        [True, True, True],
        [False, True, False],
        [False, True, True],
        [False, False, True],
    ]


@pytest.mark.parametrize("method", Method)
def test_example_1_gives_the_two_features_that_serve_it(method: Method) -> None:
    """Both sets that subsume two queries are found; the general one stays because it adds Q1 (T = 1)."""
    features = mine(EXAMPLE_1, min_support=1, method=method)
    assert texts(features) == [
        ("product = 'shirts' AND revenue > 21", 1.0),
        ("product IN ('shirts', 'shoes') AND revenue > 32", 1.0),
        ("product = 'shoes'", 1.0),
    ]
    assert texts(mine(EXAMPLE_1, min_support=2, method=method)) == [
        ("product IN ('shirts', 'shoes') AND revenue > 21", 2.0)
    ]


def test_figure_3_1_features_with_their_weights() -> None:
    """Three features of 30, 20 and 10 queries, one of them of two predicates."""
    workload = [
        query("publisher = 'google'", 30),
        query("product LIKE '%shoes%'", 20),
        query("product = 'shirts' AND revenue < 0", 10),
    ]
    assert texts(mine(workload, min_support=10)) == [
        ("publisher = 'google'", 30.0),
        ("contains(product, 'shoes')", 20.0),
        ("product = 'shirts' AND revenue < 0", 10.0),
    ]


def test_a_feature_keeps_the_columns_of_the_queries_it_subsumes() -> None:
    features = mine([query("revenue > 5", 3, ("day", "revenue")), query("revenue > 9", 3, ("product", "revenue"))])
    assert [feature.columns for feature in features] == [("product", "revenue"), ("day", "product", "revenue")]


def test_ranges_of_dates_are_left_out_and_comparisons_between_date_columns_are_not() -> None:
    features = mine([query("day > DATE '1994-01-01' AND day < due AND revenue = 1", 5)])
    assert texts(features) == [("day < due AND revenue = 1", 5.0)]


def test_excluded_columns_are_left_out() -> None:
    assert texts(mine([query("revenue = 1 AND product = 'a'", 5)], exclude=["product"])) == [("revenue = 1", 5.0)]


def test_filters_that_may_differ_between_two_runs_are_never_features() -> None:
    assert mine([query("rand() < 0.5", 9), query("day < current_date()", 9)]) == ()


def test_only_the_features_that_add_most_are_returned() -> None:
    workload = [query(f"revenue = {number}", 10 - number) for number in range(5)]
    assert [weight for _, weight in texts(mine(workload, max_features=2))] == [10.0, 9.0]


def test_a_support_that_is_not_positive_is_refused() -> None:
    with pytest.raises(InvalidInput, match="min_support must be more than 0"):
        mine(EXAMPLE_1, min_support=0)


def test_long_filters_that_all_queries_share_do_not_blow_up() -> None:
    """Twenty shared predicates have a million frequent subsets, and one closed set."""
    shared = " AND ".join(f"revenue <> {number}" for number in range(100, 2000, 100))
    workload = [query(f"product = 'p{number}' AND {shared}", 2) for number in range(30)]
    mined = mine_features(workload, min_support=2)
    assert mined.sets <= 31
    assert len(mined.features) == 30


literals = st.sampled_from([
    "product = 'a'", "product = 'b'", "product IN ('a', 'b')", "product LIKE 'a%'", "revenue > 1", "revenue > 5",
    "revenue > 9", "revenue < 20", "publisher = 'x'", "publisher IS NOT NULL", "revenue BETWEEN 3 AND 7",
])  # fmt: skip
filters = st.lists(literals, min_size=1, max_size=3, unique=True).map(" AND ".join)
workloads = st.lists(st.tuples(filters, st.integers(1, 4)), min_size=1, max_size=12)


@settings(max_examples=150, deadline=None)
@given(workloads, st.integers(1, 6))
def test_the_closed_search_finds_the_features_of_the_paper(workload: list[tuple[str, int]], support: int) -> None:
    queries = [query(text, weight) for text, weight in workload]
    closed = mine_features(queries, min_support=support, method=Method.CLOSED)
    paper = mine_features(queries, min_support=support, method=Method.PAPER)
    assert closed.features == paper.features
    assert closed.sets <= paper.sets


@settings(max_examples=60, deadline=None)
@given(workloads, st.integers(1, 6))
def test_the_kept_features_subsume_every_query_that_a_frequent_predicate_set_subsumes(
    workload: list[tuple[str, int]], support: int
) -> None:
    """Brute force over all predicate sets of the workload, with what is left uncovered below the support."""
    queries = [query(text, weight) for text, weight in workload]
    features = mine(queries, min_support=support, max_features=10_000)
    covered = [bool(one) for one in subsumption(features, queries).any(axis=0)] if features else [False] * len(queries)
    left = sum(one.weight for one, done in zip(queries, covered, strict=True) if not done)
    predicates = sorted({predicate for one in queries for predicate in one.filter}, key=sql)
    for size in (1, 2):
        for chosen in itertools.combinations(predicates, size):
            single = subsumption([parse_filter(" AND ".join(f"({sql(one)})" for one in chosen), SCHEMA)], queries)[0]
            uncovered = sum(
                one.weight for one, hit, done in zip(queries, single, covered, strict=True) if hit and not done
            )
            assert uncovered < support, (chosen, left)
