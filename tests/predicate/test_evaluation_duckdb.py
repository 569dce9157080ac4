"""Our answers are DuckDB's, whose NaN, -0.0, NULL and text are Spark's too, on random rows of edge values."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings

from skipstone.errors import CannotEvaluate, InvalidInput
from skipstone.predicate.evaluation import Evaluator
from skipstone.predicate.literal import Conjunction, Predicate
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql
from tests.predicate.strategies import Generator, generators
from tests.second_opinion import second_opinion

BOTH_KNOW_AT_LEAST = 0.7
"""So much of what is drawn must be comparable, else the agreement says little."""


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return second_opinion()


def answers(connection: duckdb.DuckDBPyConnection, text: str, rows: pa.Table) -> list[bool | None]:
    connection.register("rows", rows)
    return [row[0] for row in connection.execute(f"SELECT {text} FROM rows").fetchall()]


def check(connection: duckdb.DuckDBPyConnection, filter_: Predicate | Conjunction, rows: pa.Table) -> bool:
    """Compare the two if both can say something, and say whether they could."""
    try:
        text = sql(filter_, "duckdb")
        ours = Evaluator(filter_, time_zone="UTC").evaluate(rows).to_pylist()
    except (CannotEvaluate, InvalidInput):
        return False
    assert ours == answers(connection, text, rows), f"WHERE {text}"
    return True


@given(generators())
@settings(deadline=None)
def test_a_filter_has_the_truth_values_that_duckdb_gives_it(
    connection: duckdb.DuckDBPyConnection, generator: Generator
) -> None:
    check(connection, generator.conjunction(), generator.table())


def test_less_than_nan_is_not_turned_around(connection: duckdb.DuckDBPyConnection) -> None:
    rows = pa.table({"x": [0.0, float("nan"), float("-inf"), None]})
    filter_ = parse_filter("-x < CAST('NaN' AS DOUBLE)", rows.schema)
    assert answers(connection, sql(filter_, "duckdb"), rows) == [True, False, True, None]
    assert Evaluator(filter_).evaluate(rows).to_pylist() == [True, False, True, None]


def run(connection: duckdb.DuckDBPyConnection, seeds: range) -> None:
    compared = drawn = 0
    for seed in seeds:
        generator = Generator(random.Random(seed))
        rows = generator.table()
        for _ in range(20):
            drawn += 1
            compared += check(connection, Predicate((generator.literal(),)), rows)
    assert compared >= BOTH_KNOW_AT_LEAST * drawn, f"only {compared} of {drawn} could be compared"


def test_a_thousand_literals_have_the_truth_values_that_duckdb_gives_them(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    run(connection, range(50))


@pytest.mark.slow
def test_many_literals_have_the_truth_values_that_duckdb_gives_them(connection: duckdb.DuckDBPyConnection) -> None:
    run(connection, range(1_000, 3_000))
