"""A workload over the columns of one table, from tab-separated text or from SQL."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from skipstone.errors import InvalidInput, listed
from skipstone.layout.columns.files import read_queries
from skipstone.layout.columns.types import arrow_type
from skipstone.layout.columns.values import ColumnQuery, ColumnSizes
from skipstone.workload.query import Query
from skipstone.workload.reading import Problem, Workload

SQL_SUFFIXES = (".sql", ".ddl", ".hql", ".jsonl", ".ndjson", ".json")
SQL_BEGINNINGS = ("select", "with", "from", "(", "--", "/*", "{")


@dataclass(frozen=True, slots=True)
class ReadColumns:
    """The queries of a workload, and the statements that could not be read."""

    queries: tuple[ColumnQuery, ...]
    problems: tuple[Problem, ...] = ()


def read_workload(
    path: str | os.PathLike[str], sizes: ColumnSizes, *, table: str | None = None, dialect: str = "spark"
) -> ReadColumns:
    """Read which columns of a table queries read: a tab-separated file, SQL files, JSON lines, or a directory of SQL.

    In SQL, `table` is what the statements call the table; where it is not given, they must read one table only. A
    statement that cannot be read is named among the problems; the tab-separated form is ours, and a mistake in it is
    an error.
    """
    place = Path(path)
    if not _is_sql(place):
        return ReadColumns(read_queries(path, sizes))
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in sizes.originals])
    name = table or _only_table(place, schema, dialect)
    work = Workload.read(place, {name: schema}, dialect=dialect)
    queries = column_queries(work.queries(name))
    if not queries:
        first = f"; {work.problems[0]}" if work.problems else ""
        raise InvalidInput(f'{path}: no statement in it reads a column of "{name}"{first}')
    return ReadColumns(queries, work.problems)


def column_queries(queries: Iterable[Query]) -> tuple[ColumnQuery, ...]:
    """What queries read, by their columns alone; queries that read none, such as a count of all rows, are left out.

    >>> from skipstone.predicate.literal import ALWAYS
    >>> column_queries([Query(("a", "b"), ALWAYS, 2.0), Query((), ALWAYS), Query(("a", "b"), ALWAYS)])
    (ColumnQuery(columns=('a', 'b'), weight=3.0, name='1'),)
    """
    weights: dict[tuple[str, ...], float] = {}
    for query in queries:
        if query.columns and query.weight > 0:
            columns = tuple(sorted(query.columns))
            weights[columns] = weights.get(columns, 0.0) + query.weight
    return tuple(ColumnQuery(columns, weight, str(n)) for n, (columns, weight) in enumerate(weights.items(), start=1))


def _is_sql(path: Path) -> bool:
    """By the suffix, else by the first word."""
    if path.is_dir() or path.suffix.lower() in SQL_SUFFIXES:
        return True
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            first = next((line for line in file if line.strip()), "")
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror or problem}") from problem
    return "\t" not in first.strip() and first.strip().lower().startswith(SQL_BEGINNINGS)


def _only_table(path: Path, schema: pa.Schema, dialect: str) -> str:
    # A table that no statement can mean has the schema here, so that all they read are others.
    mentioned = sorted(Workload.read(path, {"(unnamed)": schema}, dialect=dialect).others)
    if len(mentioned) == 1:
        return mentioned[0]
    found = f"the statements read {listed(mentioned)}" if mentioned else "no statement reads a table"
    raise InvalidInput(f"{path}: {found}; say with --table which of them the sizes belong to")
