"""The demonstration: generate TPC-H data, lay it out for a workload, show what unseen queries read before and after.

"Before" is what most people have: the table as plain Parquet files in the order in which the rows came, read by Spark's
own reader, which skips row groups by their bounds. "After" is the same rows laid out by Skipstone, read by `Lake.sql`.
Both answer in one Spark session, take turns, and their answers are compared.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table as TerminalTable

import skipstone
from bench.engines import Answer, Spark, spark_session
from bench.measure import ScanCounts
from bench.place import cache_root
from bench.query import Query
from bench.skipping import Scanner
from bench.tpch.data import DENORM, denormalised
from bench.tpch.queries import queries
from bench.tpch.templates import SOP_TEMPLATES
from skipstone.errors import InvalidInput

BLOCKS = 600
TRAINING = 100
"""Queries of each template that the layout is made for."""

UNSEEN = 3
"""Queries of each template, with other constants, that are run before and after."""

RUNS = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """What the unseen queries of one template cost: counts are sums, seconds the sum of each query's median."""

    before: ScanCounts
    after: ScanCounts
    seconds_before: float
    seconds_after: float

    def __add__(self, other: Measured) -> Measured:
        return Measured(
            self.before + other.before,
            self.after + other.after,
            self.seconds_before + other.seconds_before,
            self.seconds_after + other.seconds_after,
        )


def demonstrate(
    scale: float, seed: int, console: Console, *, home: Path | None = None, per_template: tuple[int, int] | None = None
) -> Mapping[str, Measured]:
    """Do it, say what is done, print one table, and return what was measured, by template.

    `per_template` are the numbers of training and of unseen queries.
    """
    place = home or cache_root() / "demo"
    many, few = per_template or (TRAINING, UNSEEN)
    console.print(f"1. Generate TPC-H at scale factor {scale:g} as one wide table.")
    source = denormalised(scale)
    work = queries(SOP_TEMPLATES, many, seed=seed, stream="train")
    unseen = queries(SOP_TEMPLATES, few, seed=seed, stream="test")
    scanner = Scanner(source, DENORM, unseen)
    console.print(f"   {scanner.rows:,} rows, {len(scanner.columns)} columns")
    lake = _laid_out(place, source, work, max(1, scanner.rows // BLOCKS), console)
    console.print(f"4. Run {len(unseen)} queries with constants that the layout has not seen; before → after:")
    measured = _measured(lake, source, unseen, scanner)
    by_template = {name: measured[name] for name in SOP_TEMPLATES}
    console.print(_shown(by_template, scanner))
    example = f"SELECT count(*) FROM {DENORM} WHERE p_brand = 'Brand#12'"
    console.print(
        f"All {len(unseen)} answers are the same before and after. To look further:\n"
        f"   .venv/bin/skipstone show {lake.location.uri} {DENORM}\n"
        f'   .venv/bin/skipstone explain {lake.location.uri} "{example}"',
        soft_wrap=True,
        highlight=False,
    )
    return by_template


def _laid_out(place: Path, source: Path, work: Sequence[Query], block_rows: int, console: Console) -> skipstone.Lake:
    """Load the rows, advise and optimize, in a fresh directory."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    workload = place / "workload.sql"
    workload.write_text(";\n".join(query.sql for query in work) + ";\n")
    lake = skipstone.open(place / "lake", spark=spark_session())
    started = time.perf_counter()
    table = lake.create(DENORM, source)
    console.print(f"2. skipstone create: loaded as it came, {time.perf_counter() - started:.0f} s.")
    started = time.perf_counter()
    advice = table.advise(skipstone.Workload.read(workload, {DENORM: table.schema}), block_rows=block_rows)
    done = table.optimize(advice)
    if done.version is None:
        raise InvalidInput(f"no layout pays at this size: {done.reason}. Hint: run the demonstration at a larger scale")
    console.print(
        f"3. skipstone optimize for {len(work)} logged queries: {advice.chosen}, {done.blocks:,} blocks, "
        f"{time.perf_counter() - started:.0f} s."
    )
    return lake


def _measured(lake: skipstone.Lake, source: Path, unseen: Sequence[Query], scanner: Scanner) -> Mapping[str, Measured]:
    plain = Spark({f"{DENORM}_plain": source}, lake.spark)
    total: dict[str, Measured] = {}
    for query, before in zip(unseen, scanner.of_dataset(source), strict=True):
        plain_sql = query.sql.replace(DENORM, f"{DENORM}_plain")
        seconds_before, expected = _timed(lambda text=plain_sql: plain.run(text))  # type: ignore[misc]
        seconds_after, found = _timed(lambda text=query.sql: _run(lake, text))  # type: ignore[misc]
        if sorted(map(repr, found)) != sorted(map(repr, expected)):
            raise AssertionError(f"an answer changed, which must never happen; please report it:\n{query.sql}")
        read = [one.read for one in lake.last_scan]
        after = ScanCounts(
            rows=sum(one.rows for one in read),
            cells=sum(one.cells for one in read),
            blocks=sum(one.blocks for one in read),
            bytes=sum(one.bytes for one in read),
        )
        one = Measured(before, after, seconds_before, seconds_after)
        total[query.template] = total[query.template] + one if query.template in total else one
    plain.close()
    return total


def _run(lake: skipstone.Lake, text: str) -> Answer:
    return [tuple(row.values()) for row in lake.sql(text).toArrow().to_pylist()]


def _timed(run: Callable[[], Answer]) -> tuple[float, Answer]:
    answer = run()  # the first run warms up and does not count
    seconds = []
    for _ in range(RUNS):
        started = time.perf_counter()
        answer = run()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds), answer


def _shown(measured: Mapping[str, Measured], scanner: Scanner) -> TerminalTable:
    """One line for each template: shares of rows and cells, bytes and time, before → after, and the lower bound."""
    shown = TerminalTable(header_style="bold", box=None)
    heads = ("rows read\n%", "match\n%", "cells read\nmillions", "bytes read\nMB", "time in Spark\nseconds", "faster\n")
    shown.add_column("query")
    for head in heads:
        shown.add_column(head, justify="right", no_wrap=True)
    per_template = len(scanner.queries) // len(measured)
    for name, one in measured.items():
        shown.add_row(name, *_cells(one, scanner.rows * per_template))
    everything = Measured(ScanCounts(), ScanCounts(), 0.0, 0.0)
    for one in measured.values():
        everything = everything + one
    shown.add_row("all", *_cells(everything, scanner.rows * len(scanner.queries)), style="bold")
    return shown


def _cells(one: Measured, rows: int) -> tuple[str, ...]:
    return (
        f"{100 * one.before.rows / rows:.0f} → {100 * one.after.rows / rows:.1f}",
        f"{100 * one.before.matching_rows / rows:.2f}",
        f"{one.before.cells / 1e6:.1f} → {one.after.cells / 1e6:.1f}",
        f"{one.before.bytes / 1e6:.1f} → {one.after.bytes / 1e6:.1f}",
        f"{one.seconds_before:.2f} → {one.seconds_after:.2f}",
        f"{one.seconds_before / one.seconds_after:.1f}x",
    )
