"""Mining: the papers' worked examples, the two methods against each other, and what must never become a feature."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.errors import InvalidInput
from skipstone.predicate.implication import implies
from skipstone.predicate.literal import Predicate
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql
from skipstone.workload import mining
from skipstone.workload.mining import mine, mine_features
from skipstone.workload.query import Feature, Query
from skipstone.workload.subsumption import Implications, Occurrences, subsumption

SCHEMA = pa.schema(
    [
        ("product", pa.string()),
        ("publisher", pa.string()),
        ("event", pa.string()),
        ("revenue", pa.int64()),
        ("price", pa.decimal128(9, 2)),
        ("rate", pa.float64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("due", pa.date32()),
    ]
)


def query(filter_: str, weight: float = 1.0, columns: tuple[str, ...] = ()) -> Query:
    parsed = parse_filter(filter_, SCHEMA)
    return Query(tuple(sorted({*columns, *parsed.columns})), parsed, weight)


def predicate(text: str) -> Predicate:
    (only,) = parse_filter(text, SCHEMA).predicates
    return only


def texts(features: tuple[Feature, ...]) -> list[tuple[str, float]]:
    return [(sql(feature.filter), feature.weight) for feature in features]


EXAMPLE_1 = (
    "product = 'shoes'",
    "product IN ('shoes', 'shirts') AND revenue > 32",
    "product = 'shirts' AND revenue > 21",
)
"""Dissertation, section 3.3.1, Example 1."""


class TestThePapersExamples:
    def test_augmenting_example_1_gives_each_query_the_predicates_that_subsume_it(self) -> None:
        """Section 3.3.2: the augmented workload, printed there below "the workload in Example 3 becomes"."""
        occurring = Occurrences.of([parse_filter(text, SCHEMA) for text in EXAMPLE_1])
        matrix = Implications(occurring.predicates, occurring.predicates).subsumed(occurring)
        augmented = [
            {sql(one) for one, subsumes in zip(occurring.predicates, matrix[:, number], strict=True) if subsumes}
            for number in range(3)
        ]
        assert augmented == [
            {"product = 'shoes'", "product IN ('shirts', 'shoes')"},
            {"product IN ('shirts', 'shoes')", "revenue > 32", "revenue > 21"},
            {"product = 'shirts'", "revenue > 21", "product IN ('shirts', 'shoes')"},
        ]

    @pytest.mark.parametrize("method", ["closed", "paper"])
    def test_example_1_with_a_threshold_of_two(self, method: str) -> None:
        """{in, revenue > 21} subsumes Q2 and Q3; {in} adds Q1 alone, and {revenue > 21} nothing: both redundant."""
        found = mine([query(text) for text in EXAMPLE_1], min_support=2, complete=False, method=method)
        assert texts(found) == [("product IN ('shirts', 'shoes') AND revenue > 21", 2.0)]

    @pytest.mark.parametrize("method", ["closed", "paper"])
    def test_example_1_with_a_threshold_of_one_keeps_every_query_as_it_is(self, method: str) -> None:
        found = mine([query(text) for text in EXAMPLE_1], min_support=1 - 1e-9 + 1e-9, method=method)
        assert texts(found) == [
            ("product = 'shirts' AND revenue > 21", 1.0),
            ("product = 'shoes'", 1.0),
            ("product IN ('shirts', 'shoes') AND revenue > 32", 1.0),
        ]

    @pytest.mark.parametrize("method", ["closed", "paper"])
    def test_figure_3_1_features_and_weights(self, method: str) -> None:
        """Figure 3.1(b): event = 'buy' with weight 50, product = 'jeans' with 20, the pair of predicates with 10."""
        queries = [
            query("event = 'buy'", 50),
            query("product = 'jeans'", 20),
            query("publisher = 'google' AND revenue < 0", 10),
        ]
        assert texts(mine(queries, min_support=10, method=method)) == [
            ("event = 'buy'", 50.0),
            ("product = 'jeans'", 20.0),
            ("publisher = 'google' AND revenue < 0", 10.0),
        ]

    @pytest.mark.parametrize("method", ["closed", "paper"])
    def test_predicates_used_together_become_one_feature_and_its_parts_are_redundant(self, method: str) -> None:
        """Section 3.3.3: {publisher = 'google', revenue < 0} is in, its subsets help no further query."""
        queries = [query("publisher = 'google' AND revenue < 0", 10), query("revenue < 0", 2)]
        assert texts(mine(queries, min_support=5, complete=False, method=method)) == [
            ("publisher = 'google' AND revenue < 0", 10.0)
        ]

    @pytest.mark.parametrize("method", ["closed", "paper"])
    def test_a_more_general_feature_is_kept_where_it_subsumes_enough_more(self, method: str) -> None:
        queries = [query("revenue > 32", 10), query("revenue > 21", 7)]
        mined = mine_features(queries, min_support=5, method=method).features
        assert [(sql(one.feature.filter), one.feature.weight, one.additional) for one in mined] == [
            ("revenue > 32", 10.0, 10.0),
            ("revenue > 21", 17.0, 7.0),
        ]

    def test_the_queries_that_elimination_leaves_out_get_a_general_feature_at_the_end(self) -> None:
        found = mine([query(text) for text in EXAMPLE_1], min_support=2)
        assert texts(found) == [
            ("product IN ('shirts', 'shoes') AND revenue > 21", 2.0),
            ("product IN ('shirts', 'shoes')", 3.0),
        ]


class TestWhatIsMined:
    def test_disjunctions_with_a_negation_are_left_out(self) -> None:
        """They come from (a AND b) OR (c AND d) in conjunctive form, and hold for nearly every row."""
        queries = [query("(product = 'a' OR event <> 'x') AND revenue > 3 AND publisher <> 'google'", 5)]
        assert texts(mine(queries)) == [("publisher <> 'google' AND revenue > 3", 5.0)]

    def test_dates_against_constants_are_left_out_and_dates_against_dates_stay(self) -> None:
        queries = [query("day >= DATE '2024-01-01' AND year(at) = 2024 AND day < due AND event = 'buy'", 5)]
        assert texts(mine(queries)) == [("day < due AND event = 'buy'", 5.0)]

    def test_dates_can_be_asked_for(self) -> None:
        queries = [query("day >= DATE '2024-01-01'", 5)]
        assert texts(mine(queries, exclude_dates=False)) == [("day >= DATE '2024-01-01'", 5.0)]

    def test_excluded_columns_are_left_out_of_every_predicate(self) -> None:
        queries = [query("event = 'buy' AND (product = 'a' OR revenue > 1) AND revenue < 9", 5)]
        assert texts(mine(queries, exclude=["revenue"])) == [("event = 'buy'", 5.0)]

    def test_queries_that_read_nothing_are_not_mined(self) -> None:
        assert mine([query("event = 'buy' AND event = 'click'", 5), query("event = 'buy'", 1)]) == mine(
            [query("event = 'buy'", 1)]
        )

    def test_a_feature_names_the_columns_that_its_queries_read(self) -> None:
        queries = [query("event = 'buy'", 5, ("price",)), query("event = 'click'", 5, ("rate",))]
        assert [(sql(f.filter), f.columns) for f in mine(queries)] == [
            ("event = 'buy'", ("event", "price")),
            ("event = 'click'", ("event", "rate")),
        ]

    def test_features_come_in_the_order_of_what_they_add_and_are_cut_there(self) -> None:
        queries = [query(f"revenue = {number}", number) for number in range(1, 9)]
        assert texts(mine(queries, min_support=1, max_features=2)) == [("revenue = 8", 8.0), ("revenue = 7", 7.0)]
        assert mine(queries, max_features=0) == ()

    def test_an_empty_workload_has_no_features(self) -> None:
        assert mine([]) == ()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"min_support": 0.0}, "the minimum support must be more than 0, it is 0"),
            ({"max_features": -1}, "the number of features must be 0 or more, it is -1"),
            ({"method": "closd"}, 'no mining method "closd". Did you mean "closed"? There are: closed, paper'),
        ],
    )
    def test_what_cannot_be_asked_for_is_said(self, arguments: dict[str, float], message: str) -> None:
        with pytest.raises(InvalidInput) as problem:
            mine([query("event = 'buy'")], **arguments)  # type: ignore[arg-type]
        assert str(problem.value) == message


def test_the_papers_method_says_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mining, "MOST_SETS", 40)
    columns = ("product", "publisher", "event", "revenue", "price", "rate")
    texts_ = ["'a'", "'a'", "'a'", "1", "1", "1"]
    together = " AND ".join(f"{column} = {value}" for column, value in zip(columns, texts_, strict=True))
    stopped = mine_features([query(together, 5)], method="paper")
    assert (stopped.stopped_at, stopped.examined) == (2, 21), "21 sets of one and two, and 20 more of three do not fit"
    assert mine_features([query(together, 5)], method="closed").stopped_at is None


def test_the_closed_method_does_not_care_how_many_sets_are_frequent() -> None:
    """Forty predicates that always occur together have 2**40 frequent sets and one closed one."""
    together = " AND ".join(f"(revenue = {number} OR rate > {number})" for number in range(20))
    apart = " AND ".join(f"(product = 'p{number}' OR price > {number})" for number in range(20))
    result = mine_features([query(f"{together} AND {apart}", 5)])
    assert len(result.features) == 1
    assert result.examined <= 45


ATOMS = st.sampled_from(
    [
        "product = 'a'", "product = 'b'", "product IN ('a', 'b')", "product IN ('a', 'b', 'c')", "product LIKE 'a%'",
        "product IS NOT NULL", "product <> 'c'", "event = 'buy'", "event = 'click'", "revenue > 1", "revenue > 5",
        "revenue >= 6", "revenue < 9", "revenue = 7", "revenue BETWEEN 6 AND 8", "price <= 1.5", "price < 9",
        "rate > 0.5", "day < due", "product = publisher",
        "product = 'a' OR revenue > 5", "product = 'a' OR revenue > 1",
        "contains(publisher, 'x')", "publisher LIKE '%xy%'",
    ]
)  # fmt: skip
FILTERS = st.lists(ATOMS, min_size=1, max_size=4).map(lambda atoms: " AND ".join(f"({atom})" for atom in atoms))
WORKLOADS = st.lists(st.builds(query, FILTERS, st.sampled_from([1.0, 2.0, 5.0])), min_size=1, max_size=14)


class TestLaws:
    @settings(deadline=None, max_examples=150)
    @given(WORKLOADS, st.sampled_from([1.0, 2.0, 3.0, 0.3]))
    def test_both_methods_give_the_same_features(self, queries: list[Query], threshold: float) -> None:
        closed = mine_features(queries, min_support=threshold, method="closed")
        paper = mine_features(queries, min_support=threshold, method="paper")
        assert paper.stopped_at is None
        assert closed.features == paper.features
        assert closed.examined <= paper.examined + 1, "at most the frequent sets and the empty one"

    @settings(deadline=None, max_examples=80)
    @given(WORKLOADS)
    def test_what_features_add_is_what_they_cover(self, queries: list[Query]) -> None:
        mined = mine_features(queries, min_support=2.0, complete=False).features
        matrix = subsumption([one.feature for one in mined], queries)
        weights = np.array([one.weight for one in queries])
        covered = weights[matrix.any(axis=0)].sum()
        assert sum(one.additional for one in mined) <= covered + 1e-9
        for one, row in zip(mined, matrix, strict=True):
            subsumed = weights[row].sum()
            assert one.additional >= 2.0
            assert one.additional <= one.feature.weight <= subsumed + 1e-9

    @settings(deadline=None, max_examples=150)
    @given(st.lists(FILTERS, min_size=1, max_size=6), st.lists(FILTERS, min_size=1, max_size=6))
    def test_subsumption_is_implication(self, features: list[str], filters: list[str]) -> None:
        conclusions = [parse_filter(text, SCHEMA) for text in features]
        queries = [query(text) for text in filters]
        expected = [[implies(one.filter, feature) for one in queries] for feature in conclusions]
        assert subsumption(conclusions, queries).tolist() == expected

    @settings(deadline=None, max_examples=150)
    @given(st.lists(ATOMS, min_size=1, max_size=8), st.lists(ATOMS, min_size=1, max_size=8))
    def test_the_line_finds_what_implies_finds(self, premises: list[str], conclusions: list[str]) -> None:
        ps = [one for text in premises for one in parse_filter(text, SCHEMA)]
        qs = [one for text in conclusions for one in parse_filter(text, SCHEMA)]
        occurring = Occurrences.of([[one] for one in ps])
        found = Implications(occurring.predicates, qs).subsumed(occurring)
        assert found.tolist() == [[implies(p, q) for p in ps] for q in qs]
