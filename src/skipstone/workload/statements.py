"""Statements out of files: SQL text with many of them, JSON lines with one record each, directories of both.

A file is cut at semicolons that stand outside of quotes and comments. When a quote is left open somewhere, everything
after it is cut wrongly; `cut_bluntly` is for that: the reader goes back to the first line that ends in a semicolon and
starts afresh behind it, so that one bad statement does not spoil the rest of the file.
"""

from __future__ import annotations

import datetime
import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skipstone.errors import InvalidInput
from skipstone.predicate.parsing import dialect_named

__all__ = ["Piece", "Record", "cut_bluntly", "files_of", "is_json_lines", "json_records", "next_piece"]

SQL_SUFFIXES = (".sql", ".ddl", ".hql", ".txt")
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a text: where it starts, where the next may start, and the line (from 1) of its first word."""

    sql: str
    line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a query log; `problem` says why it is not a record of the form that is expected."""

    line: int
    sql: str = ""
    count: float = 1.0
    timestamp: float | None = None
    duration_ms: float | None = None
    user: str = ""
    problem: str = ""


def files_of(path: Path) -> tuple[Path, ...]:
    """Name the files of a workload: the file itself, or all SQL and JSON-lines files below a directory, sorted."""
    if not path.exists():
        raise InvalidInput(f'no file or directory "{path}" to read a workload from')
    if path.is_file():
        return (path,)
    found = sorted(
        file
        for file in path.rglob("*")
        if file.is_file()
        and file.suffix.lower() in (*SQL_SUFFIXES, *JSON_SUFFIXES)
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    if not found:
        suffixes = ", ".join((*SQL_SUFFIXES, *JSON_SUFFIXES))
        raise InvalidInput(f'the directory "{path}" holds no workload; files that are read end in {suffixes}')
    return tuple(found)


def is_json_lines(path: Path, text: str) -> bool:
    """Whether a file holds JSON lines: by its suffix, else by its first character."""
    suffix = path.suffix.lower()
    if suffix in JSON_SUFFIXES:
        return True
    return suffix not in SQL_SUFFIXES and text.lstrip()[:1] == "{"


def next_piece(text: str, start: int, line: int, dialect: str) -> Piece | None:
    """Cut the next statement out of a text, from a place and its line on; None where only blanks and comments are left.

    >>> text = "SELECT ';' -- one; two\\n;\\n\\nSELECT 2"
    >>> first = next_piece(text, 0, 1, "spark")
    >>> first.sql, first.line
    ("SELECT ';' -- one; two\\n", 1)
    >>> next_piece(text, first.end, 2, "spark")
    Piece(sql='SELECT 2', line=4, start=26, end=34)
    """
    marks, nested = _marks(dialect)
    begin: int | None = None
    place = start
    while place < len(text):
        mark = marks.search(text, place)
        until = mark.start() if mark else len(text)
        if begin is None:
            begin = _first_word(text, place, until)
        if mark is None:
            break
        place = mark.end()
        kind = mark.lastgroup
        if kind == "comment":
            place = _end_of_comment(text, mark.start(), nested) if text[mark.start()] == "/" else place
        elif kind == "end":
            if begin is not None:
                return Piece(text[begin : mark.start()], line + text.count("\n", start, begin), begin, place)
        elif begin is None:
            begin = mark.start()
    if begin is None:
        return None
    return Piece(text[begin:], line + text.count("\n", start, begin), begin, len(text))


def cut_bluntly(piece: Piece) -> Piece | None:
    """Cut a piece that could not be read at its first line that ends in a semicolon, if it has one.

    Such a line can only be inside of a quote or a comment, and is far more often the sign of one that was left open.
    """
    at = _LINE_END.search(piece.sql)
    if at is None or not piece.sql[at.end() :].strip():
        return None
    return Piece(piece.sql[: at.start()], piece.line, piece.start, piece.start + at.end())


def json_records(text: str) -> Iterator[Record]:
    """Read JSON lines: objects with `sql`, and optionally `count`, `timestamp`, `duration_ms` and `user`.

    >>> for record in json_records('{"sql": "SELECT 1", "count": 3}\\nnot json'):
    ...     print(record.line, record.sql, record.count, record.problem)
    1 SELECT 1 3.0
    2  1.0 not a JSON object: Expecting value: line 1 column 1 (char 0)
    """
    if text.lstrip()[:1] == "[":
        yield from _json_list(text)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as problem:
            yield Record(number, problem=f"not a JSON object: {problem}")
            continue
        yield _record(number, value)


_LINE_END = re.compile(r";[ \t\r]*\n")


def _json_list(text: str) -> Iterator[Record]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as problem:
        yield Record(1, problem=f"not a JSON list: {problem}")
        return
    # A list has no lines to speak of; its elements are numbered instead.
    for number, value in enumerate(values, start=1):
        yield _record(number, value)


def _record(number: int, value: Any) -> Record:
    if not isinstance(value, dict):
        return Record(number, problem=f"expected a JSON object with the key sql, found {type(value).__name__}")
    if "sql" not in value:
        keys = _in_utf8(", ".join(sorted(value)) or "none")
        return Record(number, problem=f'the key "sql" with the text of a statement is missing; keys found: {keys}')
    if not isinstance(value["sql"], str):
        return Record(number, problem=f'"sql" must be the text of a statement, found {type(value["sql"]).__name__}')
    sql = _in_utf8(value["sql"])
    try:
        return Record(
            number,
            sql,
            _number(value, "count", 1.0, least=0.0),
            _timestamp(value.get("timestamp")),
            _number(value, "duration_ms", None, least=0.0),
            str(value.get("user") or ""),
        )
    except ValueError as problem:
        return Record(number, sql, problem=_in_utf8(str(problem)))


_HALF_A_LETTER = re.compile("[\ud800-\udfff]")


def _in_utf8(text: str) -> str:
    """Put the replacement character for halves of letters, which JSON can hold and UTF-8 cannot."""
    return _HALF_A_LETTER.sub("\ufffd", text)


def _number(value: dict[str, Any], key: str, default: Any, *, least: float) -> Any:
    found = value.get(key)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not least <= found < float("inf"):
        raise ValueError(f'"{key}" must be a number of at least {least:g}, found {found!r}')
    return float(found)


def _timestamp(value: Any) -> float | None:
    """Read a moment as seconds since 1970: ISO text (taken for UTC without an offset), or seconds or milliseconds."""
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # Nobody logs queries of the year 5138; numbers of that size are milliseconds.
        return float(value) / 1000 if abs(value) > 1e11 else float(value)
    try:
        moment = datetime.datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f'"timestamp" must be ISO 8601 text or a number, found {value!r}') from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return moment.timestamp()


@functools.cache
def _marks(dialect: str) -> tuple[re.Pattern[str], bool]:
    """The places of a text that matter when it is cut, for a dialect: quotes, comments, ends; whether comments nest."""
    tokenizer = type(dialect_named(dialect)).tokenizer_class
    escapes = {escape for escape in tokenizer.STRING_ESCAPES if escape == "\\"}
    quotes = {quote if isinstance(quote, str) else quote[0] for quote in (*tokenizer.QUOTES, *tokenizer.IDENTIFIERS)}
    quotes |= {"'", '"'}
    patterns = []
    for quote in sorted(quotes, key=lambda quote: (-len(quote), quote)):
        if quote == "[":
            patterns.append(r"\[[^\]\n;]*\]")
        elif quote == "$":
            continue
        elif len(quote) == 1:
            inside = rf"(?:[^{quote}\\]|\\.)*" if escapes and quote != "`" else f"[^{quote}]*"
            patterns.append(f"{quote}{inside}{quote}")
        else:
            patterns.append(rf"{re.escape(quote)}(?:\\.|(?!{re.escape(quote)}).)*{re.escape(quote)}")
    if tokenizer.HEREDOC_STRINGS:
        patterns.append(r"\$(?P<tag>\w*)\$.*?\$(?P=tag)\$")
    single = [comment for comment in tokenizer.COMMENTS if isinstance(comment, str)]
    comments = [rf"{re.escape(comment)}[^\n]*" for comment in sorted({*single, "--"}, key=len, reverse=True)]
    ends = [";"]
    if dialect in ("tsql", "fabric"):
        ends.append(r"^[ \t]*[Gg][Oo][ \t\r]*$")
    if dialect == "oracle":
        ends.append(r"^[ \t]*/[ \t\r]*$")
    pattern = rf"(?P<comment>/\*|{'|'.join(comments)})|(?P<quote>{'|'.join(patterns)})|(?P<end>{'|'.join(ends)})"
    return re.compile(pattern, re.DOTALL | re.MULTILINE), bool(tokenizer.NESTED_COMMENTS)


_COMMENT_EDGE = re.compile(r"/\*|\*/")


def _end_of_comment(text: str, start: int, nested: bool) -> int:
    """Where a comment that starts here ends; one that is never closed ends with its first two characters."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth <= 0 or (not nested and edge.group() == "*/"):
            return edge.end()
    if nested:
        return _end_of_comment(text, start, nested=False)
    return start + 2


_NOT_BLANK = re.compile(r"\S")


def _first_word(text: str, start: int, end: int) -> int | None:
    found = _NOT_BLANK.search(text, start, end)
    return found.start() if found else None
