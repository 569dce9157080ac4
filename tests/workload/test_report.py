"""The workload report: the dissertation's curves on logs whose curves are known, and every count."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.predicate.literal import ALWAYS
from skipstone.predicate.parsing import parse_filter
from skipstone.workload.choosing import MiningSettings
from skipstone.workload.query import Query
from skipstone.workload.reading import Arrivals, Workload
from skipstone.workload.report import SHARES, Curve, commonality, kind_of, stability, workload_report

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("s", pa.string()), ("day", pa.date32())])


def query(filter_: str, weight: float = 1.0) -> Query:
    return Query(("a",), parse_filter(filter_, SCHEMA), weight)


def arriving(order: list[int], weights: list[float] | None = None) -> Arrivals:
    weight = np.ones(len(order)) if weights is None else np.array(weights)
    return Arrivals(np.array(order, dtype=np.int32), weight)


class TestCommonality:
    def test_one_predicate_in_nine_of_ten_requests(self) -> None:
        """Figure 3.2(a) reads: 10 % of the filters are used by 90 % of the queries."""
        queries = [query("a = 0", 90), *(query(f"a = {number}") for number in range(1, 10)), query("b = 1")]
        assert commonality(queries).at(0.1) == pytest.approx(0.9)
        assert commonality(queries).at(1.0) == 1.0

    def test_where_every_request_has_its_own_filter_the_curve_is_the_diagonal(self) -> None:
        queries = [query(f"a = {number}") for number in range(100)]
        assert dict(commonality(queries).points) == pytest.approx({share: share for share in SHARES})

    def test_a_request_uses_predicates_if_it_has_one_of_them(self) -> None:
        queries = [query("a = 1 AND b = 1"), query("a = 1 AND b = 2"), query("a = 1 AND b = 3"), query("b = 4")]
        # Five predicates; the most frequent one, a fifth of them, is used by three of four requests.
        assert commonality(queries).at(0.2) == 0.75

    def test_requests_without_a_filter_are_left_out(self) -> None:
        assert commonality([query("a = 1"), Query(("a",), ALWAYS, 99)]).at(1.0) == 1.0
        assert commonality([Query(("a",), ALWAYS)]).at(1.0) == 0.0
        assert commonality([]).points[-1] == (1.0, 0.0)


class TestStability:
    def test_without_recurrence_it_is_the_diagonal(self) -> None:
        """Section 3.2.1: "If every query used completely new filters ... this curve would be a function of y=x"."""
        queries = [query(f"a = {number}") for number in range(100)]
        found = stability(queries, arriving(list(range(100))))
        assert dict(found.points) == pytest.approx({share: share for share in SHARES}, abs=0.011)

    def test_where_all_filters_are_in_the_first_tenth_everything_is_known_by_then(self) -> None:
        queries = [query(f"a = {number}") for number in range(5)]
        found = stability(queries, arriving(list(range(5)) * 10))
        assert found.at(0.1) == 1.0
        assert found.at(0.05) == pytest.approx(0.4)

    def test_whole_filters_ask_that_all_predicates_have_been_seen(self) -> None:
        # The first half asks a = 1, the second a = 1 with something new each time.
        queries = [query("a = 1"), *(query(f"a = 1 AND b = {number}") for number in range(20))]
        order = arriving([0] * 20 + list(range(1, 21)))
        assert stability(queries, order).at(0.1) == 1.0
        assert stability(queries, order, whole_filters=True).at(0.5) == 0.5

    def test_it_is_averaged_over_windows_each_with_its_own_beginning(self) -> None:
        """In a long log, a filter that was seen a window ago is new again."""
        queries = [query("a = 1"), query("a = 2")]
        order = arriving([0] * 50 + [1] * 50)
        assert stability(queries, order).at(0.02) == 1.0
        short = arriving([0] * 25 + [1] * 25)
        assert stability(queries, short).at(0.02) == 0.5

    def test_a_request_counts_as_often_as_the_log_says(self) -> None:
        queries = [query("a = 1"), query("a = 2")]
        assert stability(queries, arriving([0, 1], [9, 1])).at(0.5) == 0.9

    @settings(max_examples=60)
    @given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40))
    def test_both_readings_agree_with_counting_by_hand(self, asked: list[tuple[int, int]]) -> None:
        queries = [query(f"a = {a} AND b = {b}") for a, b in asked]
        order = arriving(list(range(len(asked))))
        for whole in (False, True):
            found = stability(queries, order, whole_filters=whole)
            for share, height in found.points:
                seen = {one for pair in asked[: int(share * len(asked) + 1e-9)] for one in _predicates(pair)}
                known = [(all if whole else any)(one in seen for one in _predicates(pair)) for pair in asked]
                assert height == pytest.approx(sum(known) / len(asked))


def _predicates(pair: tuple[int, int]) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("a", pair[0]), ("b", pair[1])


def test_a_curve_is_a_staircase() -> None:
    curve = Curve(((0.1, 0.2), (0.5, 0.7), (1.0, 1.0)))
    assert [curve.at(share) for share in (0.0, 0.1, 0.49, 0.5, 1.0)] == [0.0, 0.2, 0.2, 0.7, 1.0]


@pytest.mark.parametrize(
    ("filter_", "kind"),
    [
        ("a = 1", "equality"),
        ("a <=> 1", "equality"),
        ("a > 1", "range"),
        ("a <> 1", "inequality"),
        ("a IN (1, 2)", "list"),
        ("a NOT IN (1, 2)", "inequality"),
        ("s LIKE 'x%y'", "pattern"),
        ("s LIKE 'x%'", "pattern"),
        ("a IS NULL", "null test"),
        ("a < b", "columns compared"),
        ("a = 1 OR b = 2", "any of several"),
        ("my_udf(a)", "carried as text"),
        ("FALSE", "never"),
    ],
)
def test_kinds_of_predicates(filter_: str, kind: str) -> None:
    assert {kind_of(predicate) for predicate in parse_filter(filter_, SCHEMA)} == {kind}


STATEMENTS = (
    ["SELECT a FROM t WHERE s = 'x' AND b > 10"] * 6
    + ["SELECT b FROM t WHERE s = 'x' AND b > 20"] * 2
    + ["SELECT * FROM t", "SELECT a FROM t WHERE day > '2024-01-01'", "DROP TABLE t", "SELECT FROM WHERE"]
)


class TestReport:
    def test_statements_are_accounted_for_to_the_last(self) -> None:
        report = workload_report(Workload.of(STATEMENTS, {"t": SCHEMA}))
        assert report.statements == 12
        assert report.queries + report.problem_count + sum(report.not_queries.values()) == 12
        assert (report.problem_count, report.not_queries) == (1, {"not a query but DROP": 1.0})
        assert sum(template.weight for template in report.templates) == report.queries

    def test_a_table_is_described(self) -> None:
        (table,) = workload_report(Workload.of(STATEMENTS, {"t": SCHEMA})).tables
        assert (table.requests, table.different, table.with_filter, table.minable) == (10, 4, 9, 8)
        assert {use.column: (use.read, use.filtered) for use in table.columns} == {
            "a": (8, 0),
            "b": (9, 8),
            "s": (9, 8),
            "day": (2, 1),
        }
        assert [use.column for use in table.columns] == ["b", "s", "a", "day"]
        assert {use.kind: (use.different, use.weight) for use in table.kinds} == {"range": (3, 9), "equality": (1, 8)}

    def test_coverage_grows_feature_by_feature_to_what_can_be_covered(self) -> None:
        (table,) = workload_report(Workload.of(STATEMENTS, {"t": SCHEMA}), MiningSettings(min_support=2)).tables
        assert [(use.filter, use.weight, use.additional, use.covered, use.columns) for use in table.features] == [
            ("b > 10 AND s = 'x'", 8.0, 6.0, 0.8, ("a", "b", "s")),
            ("b > 20 AND s = 'x'", 2.0, 2.0, 0.8, ("b", "s")),
        ]
        assert table.subsumed == table.minable / table.requests == 0.8

    def test_settings_are_followed(self) -> None:
        work = Workload.of(STATEMENTS, {"t": SCHEMA})
        (one,) = workload_report(work, MiningSettings(max_features=1)).tables
        assert len(one.features) == 1
        (without,) = workload_report(work, MiningSettings(exclude=("s", "b"))).tables
        assert (without.features, without.minable, without.subsumed) == ((), 0.0, 0.0)
        (dates,) = workload_report(work, MiningSettings(exclude_dates=False)).tables
        assert "day > DATE '2024-01-01'" in {use.filter for use in dates.features}

    def test_tables_that_nothing_is_asked_of_are_left_out_unless_they_are_named(self) -> None:
        work = Workload.of(STATEMENTS, {"t": SCHEMA, "u": SCHEMA})
        assert [table.table for table in workload_report(work).tables] == ["t"]
        (asked,) = workload_report(work, tables=["u"]).tables
        assert (asked.table, asked.requests, asked.subsumed, asked.features) == ("u", 0, 0.0, ())
