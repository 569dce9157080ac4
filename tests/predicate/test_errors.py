"""What is said of a filter that cannot be read or bound: whole sentences, as a person sees them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from skipstone.errors import ColumnNotFound, InvalidInput, InvalidQuery
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql

SCHEMA = pa.schema(
    [
        ("l_shipdate", pa.date32()),
        ("l_tax", pa.decimal128(9, 2)),
        ("l_shipmode", pa.string()),
        ("Value", pa.int32()),
        ("value", pa.int32()),
        ("home", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
    ]
)
ALL = "l_shipdate, l_tax, l_shipmode, Value, value, home"


@pytest.mark.parametrize(
    ("filter_", "message"),
    [
        (
            "l_shipdat > '1994-01-01'",
            f'no column "l_shipdat" in the schema (line 1, column 1). Did you mean "l_shipdate"? It has: {ALL}',
        ),
        (
            "l_tax > 0.05 AND\n  `l shipmode` = 'AIR'",
            f'no column "l shipmode" in the schema (line 2, column 3). Did you mean "l_shipmode"? It has: {ALL}',
        ),
        (
            "lineitem.l_taks = 1",
            f'no column "l_taks" in the schema (line 1, column 10). Did you mean "l_tax"? It has: {ALL}',
        ),
        (
            "my_udf(l_ship) = 1",
            f'no column "l_ship" in the schema (line 1, column 8). Did you mean "l_shipmode"? It has: {ALL}',
        ),
        (
            "home.ctiy = 'Oslo'",
            'no column "home.ctiy" in the schema (line 1, column 6). Did you mean "home.city"? '
            "It has: home.city, home.zip",
        ),
        ("nothing_like_it = 1", f'no column "nothing_like_it" in the schema (line 1, column 1). It has: {ALL}'),
    ],
)
def test_a_column_that_is_not_there_is_named_with_its_place_and_the_near_miss(filter_: str, message: str) -> None:
    with pytest.raises(ColumnNotFound) as problem:
        parse_filter(filter_, SCHEMA)
    assert str(problem.value) == message


def test_the_facts_are_on_the_error() -> None:
    with pytest.raises(ColumnNotFound) as problem:
        parse_filter("l_shipdat > '1994-01-01'", SCHEMA)
    assert (problem.value.name, problem.value.nearest) == ("l_shipdat", "l_shipdate")
    assert problem.value.available == tuple(SCHEMA.names)
    with pytest.raises(InvalidQuery) as other:
        parse_filter("l_tax >\n= = 1", SCHEMA)
    assert (other.value.line, other.value.column) == (2, 1)


@pytest.mark.parametrize(
    ("filter_", "message"),
    [
        ("l_tax = = 1", "something is missing at '=' (line 1, column 9)\n  l_tax = = 1\n          ^"),
        ("l_tax >", "something is missing at '>' (line 1, column 7)\n  l_tax >\n        ^"),
        ("(l_tax > 1", "expecting ) (line 1, column 10)\n  (l_tax > 1\n           ^"),
        ("", "expected a condition (line 1, column 1)\n  \n  ^"),
        ("-- nothing", "expected a condition (line 1, column 1)\n  -- nothing\n  ^"),
        ("l_tax > 1; l_tax < 2", "expected one condition, as after WHERE\n  l_tax > 1; l_tax < 2"),
        ("l_tax > 1 ORDER BY 1", "expected one condition, as after WHERE\n  l_tax > 1 ORDER BY 1"),
        (
            "l_shipmode = 'AIR",
            "cannot tell the words apart; a quote or a comment may not be closed\n  l_shipmode = 'AIR",
        ),
        (
            "VALUE = 1",
            '"VALUE" may be any of the columns "Value", "value"; their names differ only in case',
        ),
    ],
)
def test_what_cannot_be_read_is_pointed_at(filter_: str, message: str) -> None:
    with pytest.raises(InvalidQuery) as problem:
        parse_filter(filter_, SCHEMA)
    assert str(problem.value) == message


def test_names_that_differ_in_case_can_be_told_apart_on_request() -> None:
    assert sql(parse_filter("value = 1 AND Value = 2", SCHEMA, case_sensitive=True)) == "Value = 2 AND value = 1"


def test_a_dialect_that_is_not_known_is_named_with_the_near_miss() -> None:
    with pytest.raises(InvalidInput) as problem:
        parse_filter("l_tax > 1", SCHEMA, dialect="postgers")
    assert str(problem.value) == 'no SQL dialect "postgers". Did you mean "postgres"?'


def test_sql_is_printed_for_two_dialects() -> None:
    with pytest.raises(InvalidInput) as problem:
        sql(parse_filter("l_tax > 1", SCHEMA), "trino")
    assert str(problem.value) == 'cannot print SQL for "trino"; known dialects: duckdb, spark'


@pytest.mark.parametrize(
    ("filter_", "message"),
    [
        (
            "l_shipmode ILIKE 'air'",
            "DuckDB cannot be asked for \"l_shipmode\" ILIKE 'air' in Spark's sense: "
            "the two fold the case of some letters differently",
        ),
        (
            "l_shipmode RLIKE '^A'",
            "DuckDB cannot be asked for \"l_shipmode\" RLIKE '^A' in Spark's sense: "
            "its regular expressions are RE2's, Spark's are Java's",
        ),
        ("my_udf(l_tax)", "DuckDB's SQL cannot express what is known only as Spark SQL: MY_UDF(l_tax)"),
    ],
)
def test_what_duckdb_means_otherwise_is_not_printed_for_it(filter_: str, message: str) -> None:
    with pytest.raises(InvalidInput) as problem:
        sql(parse_filter(filter_, SCHEMA), "duckdb")
    assert str(problem.value) == message


@pytest.mark.parametrize(
    ("filter_", "text"),
    [
        ("l_shipmode = 'it\\'s'", "\"l_shipmode\" = 'it''s'"),
        ("l_shipmode = 'a\\nb\\\\c'", "\"l_shipmode\" = 'a\nb\\c'"),
        ("l_shipmode LIKE 'a\\\\_b%c'", "\"l_shipmode\" LIKE 'a\\_b%c' ESCAPE '\\'"),
        ("home.city <=> l_shipmode", 'struct_extract("home", \'city\') IS NOT DISTINCT FROM "l_shipmode"'),
        ("l_tax IN (1, 0.5)", "\"l_tax\" IN (CAST('0.50' AS DECIMAL(9, 2)), CAST('1.00' AS DECIMAL(9, 2)))"),
        ("l_shipdate > date '1994-01-01'", "\"l_shipdate\" > DATE '1994-01-01'"),
    ],
)
def test_duckdbs_spelling(filter_: str, text: str) -> None:
    assert sql(parse_filter(filter_, SCHEMA), "duckdb") == text
