"""Statements as dashboards send them, in nine dialects: each is understood, or counted with its line and a reason.

The files below `dashboards/` are named after their dialect. `problems.txt` holds what is said of the statements that
are not understood. Where DuckDB can run a statement (written anew for it), it is the oracle: over the rows and columns
that the requests ask for, the answer is the same.
"""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from skipstone.errors import InvalidInput
from skipstone.predicate.parsing import dialect_named
from skipstone.predicate.printing import sql
from skipstone.workload.reading import Workload
from skipstone.workload.requests import FrontEnd
from skipstone.workload.resolving import KnownTables, cte_meant, number_mentions
from skipstone.workload.statements import next_piece
from tests.workload.dashboard_tables import TABLES

FOLDER = Path(__file__).parent / "dashboards"
FILES = sorted(FOLDER.glob("*.sql"))
DIALECTS = [file.stem for file in FILES]
KNOWN = KnownTables.of(TABLES)

UNDERSTOOD_AT_LEAST = 0.95
"""The share of the queries, those included that nobody could understand."""

RAN_AT_LEAST = 155
"""So many statements are run on DuckDB at least; what it has no words for says nothing."""


def read(dialect: str) -> Workload:
    return Workload.read(FOLDER / f"{dialect}.sql", TABLES, dialect=dialect)


def statements(dialect: str) -> Iterator[str]:
    text = (FOLDER / f"{dialect}.sql").read_text()
    place = 0
    while (piece := next_piece(text, place, 1, dialect)) is not None:
        yield piece.sql
        place = piece.end


def test_every_statement_is_counted_once_and_nearly_all_queries_are_understood() -> None:
    count = queries = problems = 0.0
    for dialect in DIALECTS:
        work = read(dialect)
        assert work.statements == len(list(statements(dialect)))
        count += work.statements
        queries += work.statements - sum(work.not_queries.values())
        problems += work.problem_count
    assert count > 230
    assert 1 - problems / queries >= UNDERSTOOD_AT_LEAST


def test_what_is_not_understood_is_said_with_its_place() -> None:
    found = [str(problem) for dialect in DIALECTS for problem in read(dialect).problems]
    assert found == (FOLDER / "problems.txt").read_text().splitlines()


def test_what_is_no_query_is_said() -> None:
    found = {kind for dialect in DIALECTS for kind in read(dialect).not_queries}
    assert found == {
        f"not a query but {word}"
        for word in (
            "ALTER", "ANALYZE", "COPY", "DECLARE", "DESCRIBE", "EXECUTE", "EXPLAIN", "SET", "SHOW", "SUMMARIZE",
            "SYSTEM", "UNLOAD", "USE",
        )
    }  # fmt: skip


@pytest.mark.parametrize("dialect", [*DIALECTS, "spark"])
@pytest.mark.parametrize("value", ["'{{ country }}'", "'{% if x %}SE{% endif %}'", "{{ country }}"])
def test_a_parameter_that_was_never_filled_in_is_no_value(dialect: str, value: str) -> None:
    statement = FrontEnd(TABLES, dialect=dialect).read(
        f"SELECT count(*) FROM orders WHERE country = {value} AND store_id = 3"
    )
    (request,) = statement.requests
    assert sql(request.filter) == "store_id = 3"
    (reason,) = request.unknown
    # ClickHouse has braces for maps, so what is within bare ones is no parameter to its parser.
    as_map = dialect == "clickhouse" and value == "{{ country }}"
    assert reason.startswith("a condition on a parameter is not used, its value is not known: ") != as_map


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_statement_that_is_not_understood_reads_its_tables_in_full(dialect: str) -> None:
    front = FrontEnd(TABLES, dialect=dialect)
    for text in statements(dialect):
        statement = front.read_afresh(text)
        if not statement.problem:
            continue
        for request in statement.requests:
            assert request.columns == tuple(sorted(TABLES[request.table].names)), text
            assert not request.filter.predicates
            assert request.unknown == (statement.problem,)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_reading_by_template_gives_what_reading_afresh_gives(dialect: str) -> None:
    front = FrontEnd(TABLES, dialect=dialect)
    for text in (*statements(dialect), *statements(dialect)):
        assert front.read(text) == front.read_afresh(text), text


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_nothing_that_a_cut_text_can_do_gets_out(dialect: str, share: float) -> None:
    """Logs cut statements; whatever is left of one is read or refused with a reason."""
    front = FrontEnd(TABLES, dialect=dialect)
    for text in statements(dialect):
        statement = front.read(text[: int(len(text) * share)])
        assert statement.problem or statement.is_query


# Answers ---------------------------------------------------------------------------------------------------------

WORDS: dict[str, tuple[str, ...]] = {
    "status": ("paid", "paid", "shipped", "open", "cancelled"),
    "channel": ("web", "web", "store", "app"),
    "country": ("SE", "SE", "NO", "DE", "FI", "FR", "XX"),
    "notes": ("refund", "a refund, late", "12", ""),
    "name": ("Ada", "Bo", "Mia", "Zoe"),
    "email": ("ada@example.com", "bo@example.org", "mia@other.com"),
    "segment": ("enterprise", "consumer", "consumer"),
    "city": ("Oslo", "Berlin"),
    "title": ("red ball", "blue book", "tree"),
    "category": ("toys", "books", "garden", "misc"),
    "brand": ("Acme", "Umbra", "Other"),
    "session_id": ("s1", "s2", "t1"),
    "event_type": ("click", "view", "ping"),
    "page": ("/checkout", "/p1", "/"),
    "device": ("ios", "ios 17", "android", "web"),
    "properties": ('{"campaign": "spring"}', '{"campaign": "fall"}', "{}"),
}
ROWS = 60


def a_value(field: pa.Field, rng: random.Random, row: int) -> object:
    if field.name in ("item_id", "event_id", "order_id") and row < ROWS // 2:
        return row
    if rng.random() < 0.08:
        return None
    if field.name in WORDS:
        return rng.choice(WORDS[field.name])
    day = datetime.datetime(2024, 1, 1) + datetime.timedelta(days=rng.randrange(150), seconds=rng.randrange(86_400))
    made: Callable[[], object] = {
        pa.int64(): lambda: rng.randrange(30),
        pa.int32(): lambda: rng.randrange(6) if field.name != "duration_ms" else rng.randrange(1000),
        pa.date32(): day.date,
        pa.timestamp("us"): lambda: day,
        pa.bool_(): lambda: rng.random() < 0.5,
        pa.float64(): lambda: rng.choice([0.0, 0.1, 0.25]),
    }.get(field.type, lambda: decimal.Decimal(rng.randrange(30_000)).scaleb(-2))
    return made()


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with each table, and the same rows in another order."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1; SET TimeZone = 'UTC'")
    rng = random.Random(3)
    for name, schema in TABLES.items():
        columns = [pa.array([a_value(field, rng, row) for row in range(ROWS)], field.type) for field in schema]
        rows = pa.Table.from_arrays(columns, schema=schema)
        connection.register("rows", rows)
        connection.execute(f"CREATE TABLE whole_{name} AS SELECT * FROM rows")
        connection.register("rows", rows.take(list(range(ROWS - 1, -1, -1))))
        connection.execute(f"CREATE TABLE turned_{name} AS SELECT * FROM rows")
        connection.execute(f"CREATE VIEW none_{name} AS SELECT * FROM whole_{name} WHERE false")
    yield connection
    connection.close()


def in_duckdb(text: str, dialect: str, name_of: Callable[[int, str], str]) -> str:
    """Write a statement for DuckDB with other names for the mentions of known tables."""
    tree = sqlglot.parse_one(text, read=dialect_named(dialect))
    if tree.find(exp.PreWhere, exp.Final):
        raise sqlglot.errors.UnsupportedError("DuckDB has no word for it, and sqlglot leaves it out")
    for number, table in enumerate(number_mentions(tree)):
        found = KNOWN.find(tuple(part.name.lower() for part in table.parts))
        if found is None or (len(table.parts) == 1 and cte_meant(table, dialect) is not None):
            continue
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
        table.set("this", exp.to_identifier(name_of(number, KNOWN.tables[found].name)))
        table.set("db", None)
        table.set("catalog", None)
    for column in tree.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
    return tree.sql(dialect="duckdb")


def rows_of(engine: duckdb.DuckDBPyConnection, text: str) -> list[str]:
    rows = engine.execute(text).fetchall()
    return sorted(repr([round(one, 9) if isinstance(one, float) else one for one in row]) for row in rows)


def check(engine: duckdb.DuckDBPyConnection, text: str, dialect: str) -> tuple[bool, bool]:
    """Compare the two answers; say whether DuckDB could, and whether rows were left out on the way."""
    statement = FrontEnd(TABLES, dialect=dialect).read_afresh(text)
    if statement.problem or not statement.is_query:
        return False, False
    try:
        expected = rows_of(engine, in_duckdb(text, dialect, lambda _, table: f"whole_{table}"))
        if expected != rows_of(engine, in_duckdb(text, dialect, lambda _, table: f"turned_{table}")):
            return False, False  # which of several rows comes first is not the statement's to say
    except (duckdb.Error, sqlglot.errors.SqlglotError):
        return False, False
    asked, left_out = {}, False
    for number, request in enumerate(statement.requests):
        where = " AND ".join(f"({one})" for one in map(printed, request.filter) if one) or "true"
        columns = (
            ", ".join(f'"{name}"' for name in TABLES[request.table].names if name in request.columns) or "1 AS one"
        )
        view = f"asked_{number}"
        engine.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT {columns} FROM whole_{request.table} WHERE {where}")
        (kept,) = engine.execute(f"SELECT count(*) FROM {view}").fetchone() or (0,)
        left_out |= kept < ROWS
        assert request.mention is not None, text
        asked[request.mention] = view
    got = rows_of(engine, in_duckdb(text, dialect, lambda number, table: asked.get(number, f"none_{table}")))
    shown = "\n".join(f"  {one.table} {one.columns} {sql(one.filter)}" for one in statement.requests)
    assert got == expected, f"{text}\n{shown}"
    return True, left_out and bool(expected)


def printed(predicate: object) -> str:
    try:
        return sql(predicate, dialect="duckdb")  # type: ignore[arg-type]
    except InvalidInput:
        return ""


def test_dashboards_over_what_they_ask_for_have_the_same_answers(engine: duckdb.DuckDBPyConnection) -> None:
    outcomes = [check(engine, text, dialect) for dialect in DIALECTS for text in statements(dialect)]
    ran, told = (sum(column) for column in zip(*outcomes, strict=True))
    assert ran >= RAN_AT_LEAST, f"only {ran} could be run"
    assert told >= ran / 2, f"of {ran} only {told} have an answer and left rows out"
