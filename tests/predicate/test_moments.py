"""Dates and times of constants, as the dialects write them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from skipstone.predicate.literal import Opaque
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql

SCHEMA = pa.schema([("day", pa.date32()), ("at", pa.timestamp("us")), ("s", pa.string()), ("gift", pa.bool_())])


@pytest.mark.parametrize(
    ("dialect", "filter_", "text"),
    [
        ("snowflake", "day >= DATEADD('day', -30, '2024-01-31'::date)", "day >= DATE '2024-01-01'"),
        ("snowflake", "day >= TO_DATE('2024-01-01')", "day >= DATE '2024-01-01'"),
        ("snowflake", "at > DATEADD(hour, 36, TO_TIMESTAMP('2024-01-01'))", "at > TIMESTAMP_NTZ '2024-01-02 12:00:00'"),
        ("redshift", "day < DATEADD(month, 2, '2023-12-31'::date)", "day < DATE '2024-02-29'"),
        ("trino", "day > date_add('week', -1, DATE '2024-01-08')", "day > DATE '2024-01-01'"),
        ("trino", "at >= from_iso8601_timestamp('2024-01-01T00:00:00Z')", "at >= TIMESTAMP_NTZ '2024-01-01 00:00:00'"),
        ("mysql", "day > DATE_SUB('2024-01-08', INTERVAL 7 DAY)", "day > DATE '2024-01-01'"),
        ("mysql", "day > DATE_ADD('2024-01-31', INTERVAL 1 MONTH)", "day > DATE '2024-02-29'"),
        ("bigquery", "day = DATE(2024, 2, 29)", "day = DATE '2024-02-29'"),
        ("bigquery", "day = PARSE_DATE('%Y%m%d', '20240229')", "day = DATE '2024-02-29'"),
        ("bigquery", "DATE(at) = '2024-02-29'", "CAST(at AS DATE) = DATE '2024-02-29'"),
        ("bigquery", "s IN UNNEST(['b', 'a'])", "s IN ('a', 'b')"),
        ("duckdb", "day = make_date(2024, 2, 29)", "day = DATE '2024-02-29'"),
        ("postgres", "day = TO_DATE('2024-02-29', 'YYYY-MM-DD')", "day = DATE '2024-02-29'"),
        (
            "postgres",
            "at < TO_TIMESTAMP('2024-01-01 10:00:00.500000', 'YYYY-MM-DD HH24:MI:SS.US')",
            "at < TIMESTAMP_NTZ '2024-01-01 10:00:00.5'",
        ),
        ("postgres", "s = ANY (ARRAY['b', 'a', NULL])", "s IN ('a', 'b')"),
        ("postgres", "s <> ALL (ARRAY['b', 'a'])", "s NOT IN ('a', 'b')"),
        ("postgres", "NOT (s = ANY (ARRAY['b', 'a']))", "s NOT IN ('a', 'b')"),
        ("postgres", "s <> ALL (ARRAY['b', NULL])", "FALSE"),
        ("tsql", "day >= CONVERT(date, '2024-01-01') AND s = N'å'", "day >= DATE '2024-01-01' AND s = 'å'"),
        ("tsql", "gift = 1", "gift = TRUE"),
        ("mysql", "gift <> 1", "gift = FALSE"),
        ("spark", "day >= date_sub(date '2024-01-08', 7)", "day >= DATE '2024-01-01'"),
    ],
)  # fmt: skip
def test_what_is_constant_is_computed(dialect: str, filter_: str, text: str) -> None:
    assert sql(parse_filter(filter_, SCHEMA, dialect=dialect)) == text


@pytest.mark.parametrize(
    ("dialect", "filter_"),
    [
        ("bigquery", "day = DATE(2023, 2, 29)"),  # there is no such day
        ("postgres", "day = TO_DATE('24-2-29', 'YY-MM-DD')"),  # the century is the engine's guess
        ("postgres", "day = TO_DATE('2024-02-29 x', 'YYYY-MM-DD')"),  # more than the format has
        ("mysql", "day > DATE_ADD('2024-1-31', INTERVAL 1 MONTH)"),  # not written out
        ("snowflake", "day > ADD_MONTHS('2024-02-29'::date, 1)"),  # from the last day to the last day there
        ("bigquery", "at > TIMESTAMP('2024-01-01', 'Europe/Oslo')"),
        ("spark", "day >= date_sub(current_date(), 7)"),
        ("spark", "at > dateadd(hour, 1, at)"),
        ("postgres", "s <> ANY (ARRAY['b', 'a'])"),  # TRUE for every s: some element differs
        ("postgres", "s = ALL (ARRAY['b', 'a'])"),
        ("bigquery", "s IN UNNEST(SPLIT('a,b'))"),
        ("bigquery", "s NOT LIKE ANY ('a%', 'b%')"),
    ],
)
def test_what_is_not_certain_stays_as_it_was_written(dialect: str, filter_: str) -> None:
    (predicate,) = parse_filter(filter_, SCHEMA, dialect=dialect).predicates
    assert isinstance(predicate.literals[0], Opaque)
