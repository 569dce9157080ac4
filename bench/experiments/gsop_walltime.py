"""Wall time of GSOP beside SOP: whole queries of ten templates, in Spark and through Arrow.

All schemes hold the same rows and are designed on one sample. Each is a lake of its own whose data files are links to
those of one table, so that every engine always reads the latest version, as users do. Subjects take turns.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import skipstone
from bench.engines import Engine, spark_session
from bench.experiment import Experiment
from bench.experiments.engines import time_engines
from bench.experiments.gsop import (
    BLOCKS,
    ONE_LAYOUT,
    OURS,
    SMOKE_SERVED,
    SOP,
    Drawer,
    Written,
    asked_queries,
    design_for,
    gsop_workload,
    reading,
    write,
)
from bench.experiments.rivals import SMOKE_BLOCKS
from bench.experiments.sop import narrowed, read_columns
from bench.experiments.walltime import InSpark, ThroughArrow, different_answers
from bench.measure import PairedTimes
from bench.query import Query
from bench.report import Claim, Figure, Report, Series, Table, table_of, timing_values
from bench.skipstone_layouts import SkipstoneTable, grouped_blocks_for, rows_of
from bench.tpch.data import DENORM
from bench.tpch.templates import GSOP_TEMPLATES
from skipstone.layout.replication.family_groups import MOST_SERVED

RUNS = 10
SMOKE_TEMPLATES = ("q6", "q12")
ENGINES = ("spark", "arrow")
LEAST_GAIN = 1.5


def _run(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    work = gsop_workload(seed, smoke)
    source = narrowed(scale, read_columns(work))
    rows = rows_of(source)
    block_rows = grouped_blocks_for(rows, SMOKE_BLOCKS if smoke else BLOCKS)
    shutil.rmtree(out, ignore_errors=True)
    table = SkipstoneTable.loaded(skipstone.open(out / "lake"), DENORM, [source], work.train, block_rows)
    train, test = asked_queries(table, work.train), table.asked(work.test)
    problem = design_for(source, train, block_rows, seed, smoke)
    drawer = Drawer(problem, SMOKE_SERVED if smoke else MOST_SERVED)
    sop = drawer.sop()
    drawings = (sop, drawer.ours(lambda: sop.groups, ONE_LAYOUT), drawer.ours(drawer.refined, OURS))
    written = [write(table, one, train, block_rows) for one in drawings]
    read = [((one.drawing.name,), reading(one.snapshot, test)) for one in written]
    first = {query.template: query for query in reversed(work.test)}
    asked = {template: first[template] for template in (SMOKE_TEMPLATES if smoke else GSOP_TEMPLATES)}
    times, different = _timed(out, written, asked, tuple(table.table.schema.names), 1 if smoke else RUNS)
    by_template = [
        ((template, name), timing_values(times.by_task[name, template])) for template in asked for name in times.total
    ]
    return Report(
        "gsop-walltime",
        SENTENCE,
        "Dissertation, section 4.7.5, figure 4.8(b)",
        scale,
        seed,
        smoke,
        settings=(
            ("table", f"{rows:,} rows, the {len(problem.columns)} columns that the queries read"),
            ("queries", f"unseen, one of each of {', '.join(asked)}"),
            ("blocks", f"at least {block_rows:,} rows each, about {BLOCKS} a layout"),
            ("engines", "two threads each; Spark local[2]; results collected into Python; warm"),
        ),
        tables=(
            _totals(times),
            table_of("read", f"What all {len(test)} test queries read", ("scheme",), read),
            table_of("templates", "By template", ("template", "subject"), by_template),
        ),
        figures=(_figure(times, list(asked)),),
        claims=(
            Claim("answers", "queries that are not answered alike by all", different, at_most=0),
            *(
                Claim(
                    engine,
                    f"time with SOP over that with our GSOP, {engine}",
                    times.total[_subject(engine, SOP)].median / times.total[_subject(engine, OURS)].median,
                    at_least=LEAST_GAIN,
                )
                for engine in ENGINES
            ),
        ),
        notes=(
            "SOP is clustered as in the paper, and read with bounds as well, which the paper's reader did not have.",
            "Through Arrow, Skipstone reads and filters, and DuckDB does the rest of the query on the rows that come.",
        ),
    )


def _subject(engine: str, scheme: str) -> str:
    return f"{engine}: {scheme}"


def _timed(
    out: Path, written: Sequence[Written], asked: dict[str, Query], columns: tuple[str, ...], runs: int
) -> tuple[PairedTimes, int]:
    """Time all schemes in both engines, and count the queries that they do not all answer alike."""
    session = spark_session()
    engines: dict[str, Engine] = {}
    for number, one in enumerate(written):
        lake = skipstone.open(_linked(out / "lake", out / f"lake-{number}", one.snapshot.version), spark=session)
        engines[_subject("spark", one.drawing.name)] = InSpark(lake)
        engines[_subject("arrow", one.drawing.name)] = ThroughArrow(lake, columns)
    sql = {template: query.sql for template, query in asked.items()}
    different = different_answers(engines, sql)
    times = time_engines(engines, sql, runs)
    for engine in engines.values():
        engine.close()
    return times, different


def _linked(lake: Path, copy: Path, version: int) -> Path:
    """Make a lake that shares the data files of another, and whose table is what that one was at a version."""

    def link_data(source: str, target: str) -> None:
        # Data files never change, so one file can serve many lakes; what the catalog keeps is its own.
        if source.endswith(".parquet") and f"/{DENORM}/data/" in source:
            os.link(source, target)
        else:
            shutil.copy2(source, target)

    shutil.copytree(lake, copy, copy_function=link_data)
    skipstone.open(copy).table(DENORM).restore(version)
    return copy


def _totals(times: PairedTimes) -> Table:
    lines = [((subject,), timing_values(timing)) for subject, timing in times.total.items()]
    return table_of("warm", "All templates", ("subject",), lines)


def _figure(times: PairedTimes, templates: Sequence[str]) -> Figure:
    series = tuple(
        Series(subject, tuple((template, times.by_task[subject, template].median) for template in templates))
        for subject in times.total
    )
    paper = "figure 4.8(b): GSOP answers 3.3 times faster than SOP"
    return Figure("templates", "Median wall time", "bars", "template", "seconds", series, paper=paper)


SENTENCE = "Wall time of queries on column groups beside one layout for all columns, in Spark and through Arrow."
EXPERIMENTS = (Experiment("gsop-walltime", SENTENCE, "figure 4.8(b)", scale=1.0, minutes=12, function=_run),)
