"""Wall time of whole queries: Skipstone in Spark and through Arrow, beside Spark and DuckDB on plain files.

All answer the same unseen queries, one of each template, in turn; Skipstone's time includes parsing and planning.
The plain files are the original ones, in row groups of 100,000 rows, which suit a reader that must read them all.
Through Arrow, Skipstone reads and filters, and DuckDB does the rest of the query on the rows that come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import skipstone
from bench.engines import Answer, DuckDB, Engine, Spark, spark_session
from bench.experiment import Experiment
from bench.experiments.engines import time_engines
from bench.experiments.rivals import BLOCKS, SMOKE_BLOCKS, sop_workload
from bench.experiments.sop import narrowed, read_columns
from bench.lakes import ChosenLake, chosen_lake
from bench.layouts import RivalChooser, Sizes, ordered
from bench.measure import PairedTimes, break_even_runs
from bench.query import Query
from bench.quiet_duckdb import connect
from bench.report import Claim, Figure, Report, Series, Table, table_of, timing_values
from bench.skipping import Scanner, requests_of
from bench.skipstone_layouts import grouped_blocks_for
from bench.tpch.data import DENORM, denormalised
from bench.tpch.templates import SOP_TEMPLATES
from skipstone.lake import BLOCK_ROWS

RUNS = 10
COLD_RUNS = 3
SMOKE_TEMPLATES = ("q6", "q12")

WHOLE_UP_TO = 1.0
"""The largest scale factor at which files have all columns; above it those that queries read, for all alike."""

SPARK_PLAIN = "spark plain"
SPARK_SORTED = "spark sorted"
DUCKDB_PLAIN = "duckdb plain"
SKIPSTONE_SPARK = "skipstone spark"
SKIPSTONE_ARROW = "skipstone arrow"


@dataclass(frozen=True, slots=True)
class InSpark:
    """A lake that answers through its Spark session."""

    lake: skipstone.Lake
    name: str = SKIPSTONE_SPARK

    def run(self, sql: str) -> Answer:
        """Answer a query and bring the whole result here."""
        return [tuple(row.values()) for row in self.lake.sql(sql).toArrow().to_pylist()]

    def close(self) -> None:
        """Nothing is held open."""


class ThroughArrow:
    """A lake that reads and filters without Java; DuckDB does the rest of the query on the rows that come."""

    name = SKIPSTONE_ARROW

    def __init__(self, lake: skipstone.Lake, columns: tuple[str, ...]) -> None:
        self._lake = lake
        self._columns = columns
        self._connection = connect(threads=2)

    def run(self, sql: str) -> Answer:
        """Answer a query and bring the whole result here."""
        # A query is given as text, as to every engine; what it asks of the table is read off that text each time.
        [request] = requests_of(Query("", sql), DENORM, self._columns)
        rows = self._lake.table(DENORM).scan(request.columns, request.where, dialect="duckdb").to_arrow()
        self._connection.register(DENORM, rows)
        answer: Answer = self._connection.sql(sql).fetchall()
        self._connection.unregister(DENORM)
        return answer

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


def _subjects(
    plain: Path, in_order: Path, chosen: ChosenLake, columns: tuple[str, ...]
) -> tuple[dict[str, Engine], dict[str, Path]]:
    """The engines, and the files that each reads."""
    session = spark_session()
    lake = skipstone.open(chosen.home, spark=session)
    at = {SPARK_PLAIN: plain, SPARK_SORTED: in_order}
    engines: dict[str, Engine] = {name: Spark({DENORM: place}, session.newSession()) for name, place in at.items()}
    engines |= {
        SKIPSTONE_SPARK: InSpark(lake),
        DUCKDB_PLAIN: DuckDB({DENORM: plain}),
        SKIPSTONE_ARROW: ThroughArrow(lake, columns),
    }
    places = at | {SKIPSTONE_SPARK: chosen.data, DUCKDB_PLAIN: plain, SKIPSTONE_ARROW: chosen.data}
    return engines, places


def different_answers(engines: dict[str, Engine], sql: dict[str, str]) -> int:
    """Return how many queries are not answered by all alike, numbers to nine digits and five decimals.

    Spark gives a quotient of decimals six decimals and no more, DuckDB one of floating point.
    """
    different = 0
    for text in sql.values():
        answers = {_rounded(engine.run(text)) for engine in engines.values()}
        different += len(answers) > 1
    return different


def _rounded(answer: Answer) -> tuple[tuple[str, ...], ...]:
    return tuple(sorted(tuple(_text(value) for value in row) for row in answer))


def _text(value: object) -> str:
    try:
        return f"{round(float(value), 5):.9g}"  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(value)


def _run(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    work = sop_workload(seed, 0.0, smoke)
    source = denormalised(scale) if scale <= WHOLE_UP_TO else narrowed(scale, read_columns(work))
    scanner = Scanner(source, DENORM, work.test)
    blocks = SMOKE_BLOCKS if smoke else BLOCKS
    chooser = RivalChooser(source, DENORM, work.train, blocks)
    column = chooser.best_column()
    chooser.close()
    sizes = Sizes.for_blocks(scanner.rows, blocks)
    in_order = ordered("sorted", f"sorted by {column}", source, out / "layouts", sizes, column).dataset
    # Laid out by the threads of this process, before Spark starts. Larger tables have more blocks, not larger ones.
    block_rows = min(grouped_blocks_for(scanner.rows, blocks), BLOCK_ROWS)
    chosen = chosen_lake(source, DENORM, work.train, out / "lake", block_rows)
    engines, places = _subjects(source, in_order, chosen, scanner.columns)
    first = {query.template: query.sql for query in reversed(work.test)}
    sql = {template: first[template] for template in (SMOKE_TEMPLATES if smoke else SOP_TEMPLATES)}
    different = different_answers(engines, sql)
    warm = time_engines(engines, sql, 1 if smoke else RUNS)
    cold = time_engines(engines, sql, 1 if smoke else COLD_RUNS, places)
    for engine in engines.values():
        engine.close()
    templates = [
        ((template, name), timing_values(warm.by_task[name, template])) for template in sql for name in engines
    ]
    return Report(
        "walltime",
        SENTENCE,
        "",
        scale,
        seed,
        smoke,
        settings=(
            ("table", f"{scanner.rows:,} rows, {len(scanner.columns)} columns"),
            ("queries", f"unseen, one of each of {', '.join(sql)}"),
            ("sorted by", f"{column}, {sizes.rows_per_block:,} rows a row group"),
            (
                "Skipstone's layout",
                f"{chosen.chosen}, blocks of {block_rows:,} rows or more, made in {chosen.seconds:,.0f} s",
            ),
            ("engines", "two threads each; Spark local[2]; results collected into Python"),
        ),
        tables=(
            _totals("warm", "All templates, warm", warm, chosen.seconds),
            _totals("cold", "All templates, cold: files are dropped from the page cache first", cold, chosen.seconds),
            table_of("templates", "By template, warm", ("template", "subject"), templates),
        ),
        figures=(_figure(warm, list(sql), list(engines)),),
        claims=_claims(warm, list(sql), different),
    )


def _totals(name: str, title: str, times: PairedTimes, layout_seconds: float) -> Table:
    """One line for each subject; Skipstone's layout pays after so many runs of these queries instead of plain files."""
    lines = []
    for subject, timing in times.total.items():
        values = timing_values(timing)
        rival = {SKIPSTONE_SPARK: SPARK_PLAIN, SKIPSTONE_ARROW: DUCKDB_PLAIN}.get(subject)
        if rival is not None:
            values["break_even_runs"] = break_even_runs(layout_seconds, times.total[rival].median, timing.median)
        lines.append(((subject,), values))
    return table_of(name, title, ("subject",), lines)


def _claims(warm: PairedTimes, templates: Sequence[str], different: int) -> tuple[Claim, ...]:
    total = {name: timing.median for name, timing in warm.total.items()}
    worst = max(
        warm.by_task[SKIPSTONE_SPARK, template].median / warm.by_task[SPARK_PLAIN, template].median
        for template in templates
    )
    return (
        Claim("answers", "queries that are not answered alike by all", different, at_most=0),
        Claim("plain", "times Spark on plain Parquet", total[SPARK_PLAIN] / total[SKIPSTONE_SPARK], at_least=4),
        Claim("sorted", "times Spark on sorted Parquet", total[SPARK_SORTED] / total[SKIPSTONE_SPARK], at_least=2),
        Claim("template", "slowest template against plain Parquet in Spark", worst, at_most=1),
        Claim("arrow", "times DuckDB on plain Parquet", total[DUCKDB_PLAIN] / total[SKIPSTONE_ARROW], at_least=5),
    )


def _figure(times: PairedTimes, templates: Sequence[str], subjects: Sequence[str]) -> Figure:
    series = tuple(
        Series(subject, tuple((template, times.by_task[subject, template].median) for template in templates))
        for subject in subjects
    )
    return Figure("templates", "Median wall time, warm", "bars", "template", "seconds", series)


SENTENCE = "Wall time of whole queries: Skipstone in Spark and through Arrow, beside Spark and DuckDB on plain files."
EXPERIMENTS = (Experiment("walltime", SENTENCE, "", scale=1.0, minutes=15, function=_run),)
