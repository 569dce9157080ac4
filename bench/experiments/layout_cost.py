"""What laying a table out costs, beside Spark reading it and writing it once as Parquet.

The whole wide table is laid out by a tree, by Spark's tasks and by the threads of one process; both start from the same
raw table and the same advice. Spark copies before and after, so that whatever else the machine does falls on both.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import skipstone
from bench.engines import spark_session
from bench.experiment import Experiment
from bench.experiments.rivals import BLOCKS, SMOKE_BLOCKS, sop_workload
from bench.measure import PeakMemory, bytes_on_disk
from bench.report import Claim, Report, table_of
from bench.skipping import data_files
from bench.skipstone_layouts import grouped_blocks_for, rows_of
from bench.tpch.data import COMPRESSION, DENORM, denormalised

TIMES_A_COPY = 3.0


@dataclass(frozen=True, slots=True)
class Cost:
    """What one piece of work took."""

    seconds: float
    peak_bytes: int
    own_bytes: int


def cost_of(work: Callable[[], object]) -> Cost:
    """Do it, with a clock and an eye on memory: of this process and all below it, and of this process alone."""
    started = time.perf_counter()
    with PeakMemory() as peak:
        work()
    return Cost(time.perf_counter() - started, peak.total_bytes, peak.own_bytes)


def _run(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    source = denormalised(scale)
    rows = rows_of(source)
    block_rows = grouped_blocks_for(rows, SMOKE_BLOCKS if smoke else BLOCKS)
    work = sop_workload(seed, 0.0, smoke)
    place = out / "lake"
    shutil.rmtree(out / "lake", ignore_errors=True)
    local = skipstone.open(place)
    costs: dict[str, Cost] = {}
    costs["load, one process"] = cost_of(lambda: local.create(DENORM, source))
    table = local.table(DENORM)
    raw = table.snapshot().version
    asked = skipstone.Workload.of([query.sql for query in work.train], {DENORM: table.schema})
    costs["advise, one process"] = cost_of(
        lambda: table.advise(asked, clustering="qdtree", block_rows=block_rows, seed=seed)
    )
    advice = table.advise(asked, clustering="qdtree", block_rows=block_rows, seed=seed)
    costs["lay out, one process"] = cost_of(lambda: table.optimize(advice))
    table.restore(raw)
    session = spark_session()
    frame = session.read.parquet(*map(str, data_files(source)))

    def copy() -> None:
        frame.write.mode("overwrite").option("compression", COMPRESSION).parquet(str(out / "copy"))

    before = cost_of(copy)
    by_spark = skipstone.open(place, spark=session).table(DENORM)
    costs["lay out, Spark"] = cost_of(lambda: by_spark.optimize(advice))
    after = cost_of(copy)
    costs["copy, Spark, before"], costs["copy, Spark, after"] = before, after
    copying = (before.seconds + after.seconds) / 2
    written = bytes_on_disk(out / "copy")
    lines = [
        (
            (name,),
            {"seconds": cost.seconds, "times_copy": cost.seconds / copying, "peak_bytes": float(cost.peak_bytes)},
        )
        for name, cost in costs.items()
    ]
    ratios = {name: costs[name].seconds / copying for name in ("lay out, one process", "lay out, Spark")}
    return Report(
        "layout-cost",
        SENTENCE,
        "",
        scale,
        seed,
        smoke,
        settings=(
            ("table", f"{rows:,} rows, {len(table.schema)} columns, {written / 1e9:.2f} GB as Spark writes it"),
            ("layout", f"{advice.chosen}, blocks of at least {block_rows:,} rows"),
            ("threads", "two; Spark local[2]"),
        ),
        tables=(table_of("costs", "Time and peak memory of all processes together", ("work",), lines),),
        claims=(
            Claim("spark", "laying out with Spark, over Spark's copy", ratios["lay out, Spark"], at_most=TIMES_A_COPY),
            Claim("local", "in one process, over Spark's copy", ratios["lay out, one process"], at_most=TIMES_A_COPY),
            Claim("driver", "driver's gigabytes while Spark lays out", costs["lay out, Spark"].own_bytes / 1e9, 2.0),
        ),
        notes=("Peak memory is that of this process and all below it: Spark's driver and its Python workers.",),
    )


SENTENCE = "Time and memory to lay the whole wide table out, beside Spark reading and writing it once."
EXPERIMENTS = (Experiment("layout-cost", SENTENCE, "", scale=1.0, minutes=6, function=_run),)
