"""The invariant that skipping rests on: a query over only the rows and columns its requests ask for gives its answer.

DuckDB is the oracle. Tables are small, so that every odd case comes up: no row, one row, NULLs, keys that do not meet.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from string import Template

import duckdb
import pyarrow as pa
import pytest

from skipstone.errors import InvalidInput
from skipstone.predicate.literal import Predicate
from skipstone.predicate.printing import sql
from skipstone.workload.requests import FrontEnd, Statement
from tests.workload.query_maker import random_query

SHAPES = [
    line
    for line in (Path(__file__).parent / "shapes.sql").read_text().splitlines()
    if line.strip() and not line.startswith("--")
]
SCHEMA = pa.schema([("id", pa.int32()), ("a", pa.int32()), ("b", pa.int32()), ("s", pa.string())])
TABLES = ("t1", "t2", "t3", "t4")
FRONT = FrontEnd(dict.fromkeys(TABLES, SCHEMA), dialect="duckdb")
NUMBERS, TEXTS = ("NULL", "1", "2", "3"), ("NULL", "'x'", "'y'", "'1'")
CASES = int(os.environ.get("SKIPSTONE_CASES", "20000"))


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    # Small tables need no optimizer, and DuckDB 2.0's gives rows past a LIMIT over an ANTI JOIN with an empty table.
    connection.execute("SET threads = 1; PRAGMA disable_optimizer")
    connection.execute("CREATE SCHEMA whole; CREATE SCHEMA asked")
    yield connection
    connection.close()


def fill_tables(engine: duckdb.DuckDBPyConnection, query: str, rng: random.Random) -> None:
    for table in TABLES:
        if table not in query:
            continue
        rows = [
            f"({number}, {rng.choice(NUMBERS)}, {rng.choice(NUMBERS)}, {rng.choice(TEXTS)})"
            for number in range(1, rng.choice([0, 1, 3, 6]) + 1)
        ]
        engine.execute(f"CREATE OR REPLACE TABLE whole.{table} (id INT, a INT, b INT, s VARCHAR)")
        if rows:
            engine.execute(f"INSERT INTO whole.{table} VALUES {', '.join(rows)}")


def keep_what_is_asked_for(engine: duckdb.DuckDBPyConnection, statement: Statement) -> None:
    """Make the views of schema `asked`; a table that no request names has none, so that nobody reads it unnoticed."""
    engine.execute("".join(f"DROP VIEW IF EXISTS asked.{table};" for table in TABLES))
    assert len({request.table for request in statement.requests}) == len(statement.requests)
    for request in statement.requests:
        columns = ", ".join(name for name in SCHEMA.names if name in request.columns) or "id"
        where = " AND ".join(filter(None, map(in_duckdb, request.filter))) or "true"
        engine.execute(
            f"CREATE VIEW asked.{request.table} AS SELECT {columns} FROM whole.{request.table} WHERE {where}"
        )


def in_duckdb(predicate: Predicate) -> str:
    """A predicate for DuckDB, or nothing where it has no words for it: leaving one out keeps more rows."""
    try:
        return f"({sql(predicate, dialect='duckdb')})"
    except InvalidInput:
        return ""


def answer(engine: duckdb.DuckDBPyConnection, schema: str, query: str) -> list[str]:
    engine.execute(f"USE {schema}")
    rows = engine.execute(query).fetchall()
    engine.execute("USE main")
    return sorted(map(repr, rows))


def check(engine: duckdb.DuckDBPyConnection, query: str, rng: random.Random) -> bool:
    """Compare the two answers; False where DuckDB itself refuses the query."""
    statement = FRONT.read_afresh(query)
    fill_tables(engine, query, rng)
    try:
        expected = answer(engine, "whole", query)
    except duckdb.Error:
        engine.execute("USE main")
        return False
    assert not statement.problem, f"{query}\n{statement.problem}"
    keep_what_is_asked_for(engine, statement)
    asked = "\n".join(f"  {one.table} {one.columns} {sql(one.filter)}" for one in statement.requests)
    try:
        got = answer(engine, "asked", query)
    except duckdb.Error as problem:
        pytest.fail(f"{query}\n{asked}\n{problem}")
    assert got == expected, f"{query}\n{asked}"
    return True


@pytest.mark.parametrize("shape", SHAPES)
def test_a_query_over_what_it_asks_for_gives_the_same_answer(engine: duckdb.DuckDBPyConnection, shape: str) -> None:
    rng = random.Random(shape)
    ran = 0
    for _ in range(5):
        constants = {f"{number}": rng.choice([1, 2, 3]) for number in range(1, 5)}
        query = _with(shape, constants)
        ran += check(engine, query, rng)
    assert ran, f"DuckDB runs none of these: {shape}"


class _Numbered(Template):
    idpattern = "[1-4]"


def _with(shape: str, constants: dict[str, int]) -> str:
    return _Numbered(shape).substitute(constants)


def test_random_queries_over_what_they_ask_for_give_the_same_answers(engine: duckdb.DuckDBPyConnection) -> None:
    rng = random.Random(20)
    ran = sum(check(engine, random_query(rng), rng) for _ in range(250))
    assert ran > 200, f"only {ran} of the random queries could be run at all"


@pytest.mark.slow
def test_many_random_queries_over_what_they_ask_for_give_the_same_answers(engine: duckdb.DuckDBPyConnection) -> None:
    rng = random.Random(7)
    for _ in range(CASES):
        check(engine, random_query(rng), rng)
