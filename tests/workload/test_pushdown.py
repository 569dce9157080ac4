"""What statements ask of their tables where DuckDB is no oracle: Spark's own syntax, and other engines' rules."""

from __future__ import annotations

import pyarrow as pa
import pytest

from skipstone.predicate.printing import sql
from skipstone.workload.requests import FrontEnd, Statement

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("a", pa.int32()),
        ("b", pa.int32()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("arr", pa.list_(pa.int32())),
        ("place", pa.struct([("city", pa.string())])),
    ]
)
ALL = tuple(sorted(SCHEMA.names))


def read(query: str, dialect: str = "spark") -> Statement:
    statement = FrontEnd({"t": SCHEMA, "u": SCHEMA}, dialect=dialect).read(query)
    assert not statement.problem, statement.problem
    return statement


def asked(query: str, dialect: str = "spark") -> list[tuple[str, tuple[str, ...], str]]:
    return [(request.table, request.columns, sql(request.filter)) for request in read(query, dialect).requests]


class TestSteps:
    """The parser makes one SELECT of the steps of `FROM t |> ...`, whatever their order."""

    @pytest.mark.parametrize(
        "query",
        [
            "FROM t |> LIMIT 3 |> WHERE a = 1 |> SELECT b",
            "SELECT * FROM t LIMIT 3 |> WHERE a = 1",
            "FROM t |> TABLESAMPLE (10 ROWS) |> WHERE a = 1",
            "FROM t |> DISTINCT |> AGGREGATE count(*) AS n",
        ],
    )
    def test_nothing_is_used_where_the_order_of_the_steps_decides(self, query: str) -> None:
        assert asked(query) == [("t", ALL, "TRUE")]
        (request,) = read(query).requests
        assert request.unknown == ("the order of the statement's steps is not looked into",)

    def test_a_right_join_after_a_filter_keeps_what_the_filter_does_not(self) -> None:
        query = "FROM t |> WHERE t.a = 1 |> RIGHT JOIN u ON t.id = u.id AND u.b = 1"
        assert asked(query) == [("t", ALL, "TRUE"), ("u", ALL, "TRUE")]

    @pytest.mark.parametrize("steps", ["SELECT count(*) AS n", "WHERE x.a > 3 |> SELECT x.b"])
    def test_rows_that_get_a_name_on_the_way_are_all_read(self, steps: str) -> None:
        """The parser makes a common table expression of them that nobody seems to read."""
        assert asked(f"FROM t |> AS x |> {steps}") == [("t", ALL, "TRUE")]

    def test_filters_and_inner_joins_are_used(self) -> None:
        query = "FROM t |> WHERE t.a = 1 |> JOIN u ON t.id = u.id |> WHERE u.b = 2 |> AGGREGATE count(*) AS n"
        assert asked(query) == [("t", ("a", "id"), "a = 1"), ("u", ("b", "id"), "b = 2")]


def test_a_table_that_a_hint_names_is_not_read_there() -> None:
    query = "SELECT /*+ BROADCAST(t), MERGE(x) */ t.a FROM t JOIN u AS x ON t.id = x.id WHERE t.b = 1"
    assert asked(query) == [("t", ("a", "b", "id"), "b = 1"), ("u", ("id",), "TRUE")]
    assert read(query).others == ()


@pytest.mark.parametrize("alias", ["", " AS p"])
def test_a_pivoted_table_is_read_in_full(alias: str) -> None:
    query = f"SELECT a, x FROM t PIVOT (sum(b) FOR s IN ('x', 'y')){alias} WHERE a = 1"
    assert asked(query) == [("t", ALL, "TRUE")]


def test_a_name_that_is_given_as_a_text_may_be_any_column() -> None:
    assert asked("SELECT IDENTIFIER('a') FROM t WHERE b = 1 AND IDENTIFIER('s') = 'x'") == [("t", ALL, "b = 1")]


def test_a_table_may_be_called_as_its_column_whose_field_is_meant() -> None:
    assert asked("SELECT place.city FROM t AS place WHERE b = 1") == [("t", ("b", "place"), "b = 1")]


def test_a_sample_of_the_rows_of_a_query_is_taken_before_its_filter() -> None:
    assert asked("SELECT a FROM t WHERE b = 1 USING SAMPLE 10", "duckdb") == [("t", ("a", "b"), "TRUE")]


@pytest.mark.parametrize(
    ("query", "dialect"),
    [
        ("SELECT a FROM t WHERE monotonically_increasing_id() < 5 AND a = 1", "spark"),
        ("SELECT * FROM (SELECT a FROM t WHERE monotonically_increasing_id() < 5) d WHERE a = 1", "spark"),
        ("SELECT * FROM (SELECT a, monotonically_increasing_id() AS n FROM t) d WHERE a = 1", "spark"),
        ("SELECT * FROM (SELECT a, runningDifference(a) AS n FROM t) d WHERE a = 1", "clickhouse"),
        ("SELECT * FROM (SELECT a, SEQ4() AS n FROM t) d WHERE a = 1", "snowflake"),
    ],
)
def test_nothing_is_taken_from_under_a_function_that_counts_rows(query: str, dialect: str) -> None:
    assert asked(query, dialect) == [("t", ("a",), "TRUE")]


def test_an_equality_carries_no_filter_over_to_a_column_of_another_type() -> None:
    """The first branch makes the column a date, so that the text ' 2021-01-01' equals a day after 2020-01-01."""
    query = "SELECT u.a FROM (SELECT d AS k FROM t UNION ALL SELECT '2020-01-01') x JOIN u ON x.k = u.s "
    assert asked(query + "WHERE x.k > '2020-01-01'")[1] == ("u", ("a", "s"), "TRUE")


@pytest.mark.parametrize("condition", ["u.b <> ALL(ARRAY[])", "NOT u.b = ANY(t.arr)"])
def test_a_comparison_with_no_value_at_all_does_not_drop_the_rows_without_a_partner(condition: str) -> None:
    query = f"SELECT t.a FROM t LEFT JOIN u ON t.id = u.id AND t.b = 1 WHERE {condition}"
    assert [text for _, _, text in asked(query, "postgres")] == ["TRUE", "TRUE"]


def test_texts_with_quotes_inside_are_not_taken_for_one_another() -> None:
    front = FrontEnd({"t": SCHEMA})
    texts = ["it''s", "let''s", "it''d", "''", "s"]
    found = [front.read(f"SELECT a FROM t WHERE s = '{text}'").requests[0].filter for text in texts]
    afresh = [front.read_afresh(f"SELECT a FROM t WHERE s = '{text}'").requests[0].filter for text in texts]
    assert found == afresh
    assert sql(found[1]) == r"s = 'let\'s'"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t AS x (id, b, a, s, d, arr, place) WHERE x.a > 3",
        "SELECT b FROM t x (id, b, a, s, d, arr, place) WHERE a > 3",
        "WITH c AS (SELECT * FROM t) SELECT * FROM c AS x (id, b, a, s, d, arr, place) WHERE a > 3",
        "SELECT x.* FROM LATERAL (SELECT * FROM t) x (id, b, a, s, d, arr, place) WHERE x.a > 3",
    ],
)
def test_a_filter_on_columns_with_other_names_is_not_used(query: str) -> None:
    assert asked(query) == [("t", ALL, "TRUE")]


def test_an_equality_carries_no_filter_over_from_a_column_with_another_name() -> None:
    query = "SELECT u.b FROM t x (id, s, a, b, d, arr, place) JOIN u ON x.b = u.b WHERE x.b > 3"
    assert asked(query) == [("t", ALL, "TRUE"), ("u", ("b",), "TRUE")]


@pytest.mark.parametrize(
    "query",
    [
        "WITH x AS (SELECT a FROM t) SELECT * FROM (TABLE x)",
        "WITH x AS (SELECT a FROM t) SELECT * FROM IDENTIFIER('X')",
        "WITH x AS (SELECT a FROM t) SELECT * FROM IDENTIFIER(:name)",
        "WITH x AS (SELECT a FROM t) SELECT * FROM f(TABLE(x))",
        "WITH x AS (SELECT a FROM t) SELECT a FROM x WHERE a > 3 UNION ALL SELECT a FROM IDENTIFIER('x')",
    ],
)
def test_a_common_table_expression_may_be_read_in_ways_that_the_tree_does_not_show(query: str) -> None:
    assert asked(query) == [("t", ("a",), "TRUE")]
