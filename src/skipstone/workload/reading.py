"""A workload: what statements in files ask of the tables we know, with equal requests merged.

Memory grows with the distinct requests, templates and problems, and by twelve bytes for each request in the order of
arrival: which query it is and its weight. The order is what stability and cross-validation are about.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from skipstone.errors import InvalidInput, TableNotFound
from skipstone.workload.query import Query, Request
from skipstone.workload.requests import FrontEnd, Statement
from skipstone.workload.statements import Record, cut_bluntly, files_of, is_json_lines, json_records, next_piece
from skipstone.workload.templates import without_comments_around

__all__ = ["Arrivals", "Problem", "Template", "Workload"]

_LOG = logging.getLogger(__name__)

PROBLEMS_KEPT = 10_000
"""Problems that are kept with their place; further ones are only counted."""

TEXT_KEPT = 200
"""Characters of a statement that a problem keeps."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A statement that could not be read, with its place and the reason."""

    file: str
    line: int
    column: int | None
    reason: str
    sql: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.column is None else f"{self.file}:{self.line}:{self.column}"
        return f"{place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Template:
    """Statements that differ in constants only: their text with `?`, how many there were, how long they ran."""

    label: str
    text: str
    weight: float
    duration_ms: float | None = None
    users: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """The requests to one table in order of time: for each the position of its query, and its weight."""

    query: np.ndarray
    weight: np.ndarray
    timestamp: np.ndarray | None = None
    """Seconds since 1970, where the log has them for every statement."""


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """What a set of statements asks of tables.

    `statements` counts all that were read, `not_queries` those that ask for no rows by what they are, and
    `problem_count` those that could not be read; `problems` names these with their places. `others` gives the weight of
    statements for each table they read that has no schema here. All counts are weighted by the log's `count`.
    """

    tables: Mapping[str, pa.Schema]
    statements: float
    problem_count: float
    problems: tuple[Problem, ...]
    not_queries: Mapping[str, float]
    others: Mapping[str, float]
    templates: tuple[Template, ...]
    _queries: Mapping[str, tuple[Query, ...]] = field(repr=False)
    _arrivals: Mapping[str, Arrivals] = field(repr=False)
    _unknown: Mapping[str, Mapping[str, float]] = field(repr=False)

    @classmethod
    def read(
        cls,
        paths: str | Path | Sequence[str | Path],
        tables: Mapping[str, pa.Schema],
        *,
        dialect: str = "spark",
        timezone: str = "UTC",
    ) -> Workload:
        """Read SQL files, JSON lines, and directories of either."""
        given = [paths] if isinstance(paths, (str, Path)) else list(paths)
        reader = _Reader(tables, dialect, timezone)
        for path in given:
            for file in files_of(Path(path)):
                reader.read_file(file)
        _LOG.info("%d statements read, %d of them not understood", reader.statements, reader.problem_count)
        return reader.workload()

    @classmethod
    def of(
        cls,
        statements: Iterable[str],
        tables: Mapping[str, pa.Schema],
        *,
        dialect: str = "spark",
        timezone: str = "UTC",
    ) -> Workload:
        """Read statements that are at hand as texts; their lines are numbered as if each were one.

        >>> work = Workload.of(["SELECT a FROM t WHERE a = 1"] * 3, {"t": pa.schema([("a", pa.int64())])})
        >>> [(query.columns, query.weight) for query in work.queries("t")]
        [(('a',), 3.0)]
        """
        reader = _Reader(tables, dialect, timezone)
        for number, text in enumerate(statements, start=1):
            reader.read_record("statement", Record(number, text))
        return reader.workload()

    def queries(self, table: str) -> tuple[Query, ...]:
        """The distinct requests to a table, in order of first arrival."""
        return self._queries[self._known(table)]

    def arrivals(self, table: str) -> Arrivals:
        """All requests to a table in order of time."""
        return self._arrivals[self._known(table)]

    def unused_conditions(self, table: str) -> Mapping[str, float]:
        """Why conditions on a table could not be used, with the weight of the requests concerned."""
        return self._unknown[self._known(table)]

    def _known(self, table: str) -> str:
        if table not in self._queries:
            raise TableNotFound.among(table, self._queries, where="the schemas given")
        return table


@dataclass(slots=True)
class _TemplateCount:
    label: str
    weight: float = 0.0
    duration_ms: float | None = None
    users: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _TableCount:
    """What was asked of one table so far; a query is known by its place in `requests`."""

    place: dict[Request, int] = field(default_factory=dict)
    weights: list[float] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    arrived: array[int] = field(default_factory=lambda: array("i"))
    arrived_weight: array[float] = field(default_factory=lambda: array("d"))
    timestamps: array[float] = field(default_factory=lambda: array("d"))
    unknown: dict[str, float] = field(default_factory=dict)


class _Reader:
    """Reads statement after statement and counts."""

    def __init__(self, tables: Mapping[str, pa.Schema], dialect: str, timezone: str) -> None:
        if not tables:
            raise InvalidInput("a workload needs the schema of at least one table to be read against")
        self.dialect = dialect
        self.front = FrontEnd(tables, dialect=dialect, timezone=timezone)
        self.schemas = dict(tables)
        self.tables = {name: _TableCount() for name in tables}
        self.templates: dict[str, _TemplateCount] = {}
        self.statements = 0.0
        self.problem_count = 0.0
        self.problems: list[Problem] = []
        self.not_queries: dict[str, float] = {}
        self.others: dict[str, float] = {}
        # The front end gives the same statement object for the same text; what it means is looked up by identity.
        self.known: dict[int, tuple[Statement, tuple[tuple[_TableCount, int], ...]]] = {}

    def read_file(self, file: Path) -> None:
        """Read all statements of a file."""
        try:
            text = file.read_text(encoding="utf-8-sig", errors="replace")
        except OSError as problem:
            raise InvalidInput(f'cannot read the workload "{file}": {problem.strerror or problem}') from problem
        if is_json_lines(file, text):
            for record in json_records(text):
                self.read_record(file.name, record)
        else:
            self._read_text(file.name, text, Record(1))

    def read_record(self, file: str, record: Record) -> None:
        """Read one record of a log; its text may hold several statements."""
        if record.problem:
            self.statements += record.count
            self._count_problem(file, record.line, None, record.problem, record.sql, record.count)
        else:
            self._read_text(file, record.sql, record, one_line=True)

    def _read_text(self, file: str, text: str, record: Record, *, one_line: bool = False) -> None:
        place, line = 0, 1
        while (piece := next_piece(text, place, line, self.dialect)) is not None:
            sql = without_comments_around(piece.sql)
            if sql:
                statement = self.front.read(sql)
                blunt = cut_bluntly(piece) if statement.problem and statement.is_query else None
                piece = blunt or piece
                if blunt is not None:
                    sql = without_comments_around(piece.sql)
                skipped = piece.sql.find(sql) if sql else 0
                first = record.line if one_line else piece.line + piece.sql.count("\n", 0, max(skipped, 0))
                self._count(file, first, sql, statement, record, one_line=one_line)
            line += text.count("\n", place, piece.end)
            place = piece.end

    def _count(self, file: str, line: int, sql: str, statement: Statement, record: Record, *, one_line: bool) -> None:
        weight = record.count
        self.statements += weight
        if not statement.is_query:
            self.not_queries[statement.problem] = self.not_queries.get(statement.problem, 0.0) + weight
            return
        if statement.problem:
            place = line if one_line else line + (statement.line or 1) - 1
            self._count_problem(file, place, statement.column, statement.problem, sql, weight)
            return
        template = self._count_template(statement, record)
        for other in statement.others:
            self.others[other] = self.others.get(other, 0.0) + weight
        for table, place in self._places(statement, template):
            table.weights[place] += weight
            table.arrived.append(place)
            table.arrived_weight.append(weight)
            table.timestamps.append(float("nan") if record.timestamp is None else record.timestamp)
        for request in statement.requests:
            unknown = self.tables[request.table].unknown
            for reason in request.unknown:
                unknown[reason] = unknown.get(reason, 0.0) + weight

    def _count_template(self, statement: Statement, record: Record) -> str:
        counted = self.templates.get(statement.template)
        if counted is None:
            counted = self.templates[statement.template] = _TemplateCount(f"s{len(self.templates) + 1}")
        counted.weight += record.count
        if record.duration_ms is not None:
            counted.duration_ms = (counted.duration_ms or 0.0) + record.duration_ms
        if record.user:
            counted.users.add(record.user)
        return counted.label

    def _places(self, statement: Statement, label: str) -> tuple[tuple[_TableCount, int], ...]:
        known = self.known.get(id(statement))
        if known is not None and known[0] is statement:
            return known[1]
        places = []
        for request in statement.requests:
            table = self.tables[request.table]
            merged = Request(request.table, request.columns, request.filter)
            place = table.place.setdefault(merged, len(table.place))
            if place == len(table.weights):
                table.weights.append(0.0)
                table.labels.append(label)
            places.append((table, place))
        if len(self.known) >= PROBLEMS_KEPT:
            self.known.clear()
        self.known[id(statement)] = statement, tuple(places)
        return tuple(places)

    def _count_problem(self, file: str, line: int, column: int | None, reason: str, sql: str, weight: float) -> None:
        self.problem_count += weight
        if len(self.problems) < PROBLEMS_KEPT:
            text = " ".join(sql.split())
            shown = text if len(text) <= TEXT_KEPT else f"{text[: TEXT_KEPT - 4]} ..."
            self.problems.append(Problem(file, line, column, reason, shown))

    def workload(self) -> Workload:
        """Freeze what was counted."""
        templates = (
            Template(counted.label, text, counted.weight, counted.duration_ms, len(counted.users))
            for text, counted in self.templates.items()
        )
        return Workload(
            tables=self.schemas,
            statements=self.statements,
            problem_count=self.problem_count,
            problems=tuple(self.problems),
            not_queries=dict(_by_weight(self.not_queries)),
            others=dict(_by_weight(self.others)),
            templates=tuple(sorted(templates, key=lambda template: (-template.weight, int(template.label[1:])))),
            _queries={name: tuple(_queries(count)) for name, count in self.tables.items()},
            _arrivals={name: _in_order(count) for name, count in self.tables.items()},
            _unknown={name: dict(_by_weight(count.unknown)) for name, count in self.tables.items()},
        )


def _queries(count: _TableCount) -> Iterator[Query]:
    for request, place in count.place.items():
        yield Query(request.columns, request.filter, count.weights[place], count.labels[place])


def _in_order(count: _TableCount) -> Arrivals:
    query = np.array(count.arrived, dtype=np.int32)
    weight = np.array(count.arrived_weight, dtype=np.float64)
    timestamps = np.array(count.timestamps, dtype=np.float64)
    if np.isnan(timestamps).any():
        return Arrivals(query, weight)
    order = np.argsort(timestamps, kind="stable")
    return Arrivals(query[order], weight[order], timestamps[order])


def _by_weight(counts: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
