"""Sizes and workloads as tab-separated text, one column or query a line; every complaint names file and line.

sizes      column <tab> type <tab> mean chunk bytes [<tab> source column of a duplicate]
workload   query id <tab> weight <tab> columns with commas between them
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from skipstone.errors import ColumnNotFound, InvalidInput
from skipstone.layout.columns.values import ColumnQuery, ColumnSizes, SizedColumn


def read_sizes(path: str | os.PathLike[str]) -> ColumnSizes:
    """Read the physical columns of a table in stored order."""
    columns: list[SizedColumn] = []
    line_of: dict[str, int] = {}
    sources: list[tuple[int, str]] = []
    for number, fields in _lines(path):
        where = f"{path}, line {number}"
        if len(fields) not in (3, 4):
            raise InvalidInput(
                f"{where}: {_fields(len(fields))}; a column is name, type and mean chunk bytes, "
                "and for a duplicate its source, with tabs between them"
            )
        name, source = fields[0], (fields[3] if len(fields) == 4 and fields[3] else None)
        if not name:
            raise InvalidInput(f"{where}: the column has no name")
        if name in line_of:
            raise InvalidInput(f'{where}: column "{name}" was given in line {line_of[name]} already')
        line_of[name] = number
        try:
            columns.append(SizedColumn(name, fields[1], _number(fields[2], "a size"), source))
        except InvalidInput as problem:
            raise _placed(problem, where) from None
        if source is not None:
            sources.append((number, source))
    if not columns:
        raise InvalidInput(f"{path}: no column in it; a line is name, type and mean chunk bytes with tabs between them")
    originals = [column.name for column in columns if column.source is None]
    for number, source in sources:
        if source not in set(originals):
            raise ColumnNotFound.among(source, originals, where=f"{path} for the duplicate in line {number}")
    return ColumnSizes(tuple(columns))


def read_queries(path: str | os.PathLike[str], sizes: ColumnSizes) -> tuple[ColumnQuery, ...]:
    """Read a workload over these columns."""
    names = [column.name for column in sizes.originals]
    known = set(names)
    queries = []
    for number, fields in _lines(path):
        where = f"{path}, line {number}"
        if len(fields) != 3:
            raise InvalidInput(
                f"{where}: {_fields(len(fields))}; a query is an id, a weight and its columns, with tabs between them"
            )
        columns = tuple(column.strip() for column in fields[2].split(",")) if fields[2].strip() else ()
        if "" in columns:
            raise InvalidInput(f"{where}: a column name is empty; names have single commas between them")
        for column in columns:
            if column not in known:
                raise ColumnNotFound.among(column, names, where=f"the schema ({where})")
        try:
            queries.append(ColumnQuery(columns, _number(fields[1], "a weight"), fields[0]))
        except InvalidInput as problem:
            raise _placed(problem, where) from None
    if not queries:
        raise InvalidInput(f"{path}: no query in it; a line is an id, a weight and columns, with tabs between them")
    return tuple(queries)


def write_sizes(sizes: ColumnSizes, path: str | os.PathLike[str]) -> None:
    """Write what `read_sizes` reads."""
    lines = []
    for column in sizes.columns:
        fields = [column.name, column.type, repr(float(column.chunk_bytes))]
        lines.append([*fields, column.source] if column.source is not None else fields)
    _write(path, lines)


def require_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a file that could not be written, before the work whose result is to go there."""
    directory = Path(path).parent
    if not directory.is_dir():
        raise InvalidInput(f"cannot write {path}: there is no directory {directory}")
    if Path(path).is_dir():
        raise InvalidInput(f"cannot write {path}: it is a directory")
    if not os.access(path if Path(path).exists() else directory, os.W_OK):
        raise InvalidInput(f"cannot write {path}: permission denied")


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Number the lines that are not blank, split at tabs."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror or problem}") from problem
    except UnicodeDecodeError as problem:
        raise InvalidInput(f"cannot read {path}: it is not UTF-8 text ({problem.reason})") from problem
    # Not splitlines(): a column name may hold what Unicode calls a line separator.
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        if line.strip():
            yield number, line.split("\t")


def _write(path: str | os.PathLike[str], lines: Iterable[Iterable[str]]) -> None:
    rows = []
    for fields in lines:
        fields = list(fields)
        for field in fields:
            if any(mark in field for mark in "\t\n\r"):
                raise InvalidInput(f"{field!r} has a tab or a line break in it, which a tab-separated file cannot hold")
        rows.append("\t".join(fields) + "\n")
    try:
        Path(path).write_text("".join(rows), encoding="utf-8", newline="")
    except OSError as problem:
        raise InvalidInput(f"cannot write {path}: {problem.strerror or problem}") from problem


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{text!r} is not a number; {what} is a number above 0") from None


def _placed(problem: InvalidInput, where: str) -> InvalidInput:
    return InvalidInput(f"{where}: {problem}")


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"
