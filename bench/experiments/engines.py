"""How fast Spark, DuckDB and Polars answer from plain files, from files sorted by the best column, and from ours.

Ours are the files of a table that Skipstone laid out and published as Delta: the engines know nothing of its features
and skip by the bounds of row groups alone. Engines and layouts take turns in one run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.engines import DuckDB, Engine, Polars, Spark, spark_session
from bench.experiment import Experiment
from bench.experiments.rivals import BLOCKS, SMOKE_BLOCKS, sop_workload
from bench.lakes import chosen_lake
from bench.layouts import RivalChooser, Sizes, ordered, plain
from bench.measure import PairedTimes, PeakMemory, drop_from_cache, paired
from bench.report import Figure, Report, Series, Table, table_of, timing_values
from bench.skipping import Scanner
from bench.skipstone_layouts import grouped_blocks_for
from bench.tpch.data import DENORM, denormalised
from bench.tpch.templates import SOP_TEMPLATES

RUNS = 10
SMOKE_RUNS = 1
SMOKE_TEMPLATES = ("q6", "q12")
COLD_RUNS = 3


def time_engines(
    engines: dict[str, Engine], sql: dict[str, str], runs: int, datasets: dict[str, Path] | None = None
) -> PairedTimes:
    """Time every engine on every query; with `datasets`, each engine's files leave the page cache before each query."""
    subjects: dict[str, Callable[[str], object]] = {
        name: lambda task, engine=engine: engine.run(sql[task])  # type: ignore[misc]
        for name, engine in engines.items()
    }

    def make_cold(name: str, task: str) -> None:
        if datasets is not None:
            drop_from_cache([datasets[name]])

    return paired(subjects, list(sql), runs, warm_up=datasets is None, before_each=make_cold)


def _run(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    source = denormalised(scale)
    work = sop_workload(seed, 0.0, smoke)
    scanner = Scanner(source, DENORM, work.test)
    blocks = SMOKE_BLOCKS if smoke else BLOCKS
    sizes = Sizes.for_blocks(scanner.rows, blocks)
    chooser = RivalChooser(source, DENORM, work.train, blocks)
    column = chooser.best_column()
    chooser.close()
    chosen = chosen_lake(source, DENORM, work.train, out / "lake", grouped_blocks_for(scanner.rows, blocks))
    places = {
        "plain": plain(source, out / "layouts", sizes).dataset,
        "sorted": ordered("sorted", "", source, out / "layouts", sizes, column).dataset,
        "exported": chosen.data,
    }
    # One query of each template, the first of the test stream: the sum is the workload's mean, eight times.
    sql = {query.template: query.sql for query in reversed(work.test)}
    sql = {template: sql[template] for template in (SMOKE_TEMPLATES if smoke else SOP_TEMPLATES)}
    engines: dict[str, Engine] = {}
    datasets: dict[str, Path] = {}
    session = spark_session()
    with PeakMemory() as peak:
        for layout, place in places.items():
            made: tuple[Engine, ...] = (
                Spark({DENORM: place}, session.newSession()),
                DuckDB({DENORM: place}),
                Polars({DENORM: place}),
            )
            for engine in made:
                engines[f"{engine.name} {layout}"] = engine
                datasets[f"{engine.name} {layout}"] = place
        warm = time_engines(engines, sql, SMOKE_RUNS if smoke else RUNS)
        cold = time_engines(engines, sql, 1 if smoke else COLD_RUNS, datasets)
        for opened in engines.values():
            opened.close()
    templates = [
        ((template, name), timing_values(warm.by_task[name, template])) for template in sql for name in engines
    ]
    return Report(
        "engines",
        SENTENCE,
        "",
        scale,
        seed,
        smoke,
        settings=(
            ("table", f"{scanner.rows:,} rows, {len(scanner.columns)} columns, {sizes.rows_per_block:,} rows a block"),
            ("queries", f"one of each of {', '.join(sql)}"),
            ("sorted by", column),
            ("exported", f"laid out by {chosen.chosen}, published as Delta"),
            ("engines", "two threads each; Spark local[2]; results collected into Python"),
            ("peak memory", f"{peak.total_bytes / 1e9:.1f} GB in all, {peak.own_bytes / 1e9:.1f} GB without Java"),
        ),
        tables=(
            _totals("warm", "All templates, warm", warm),
            _totals("cold", "All templates, cold: the layout's files are dropped from the page cache first", cold),
            table_of("templates", "By template, warm", ("template", "engine and layout"), templates),
        ),
        figures=(_figure(warm, list(sql), list(engines)),),
    )


def _totals(name: str, title: str, times: PairedTimes) -> Table:
    lines = [((subject,), timing_values(timing)) for subject, timing in times.total.items()]
    return table_of(name, title, ("engine and layout",), lines)


def _figure(times: PairedTimes, templates: list[str], subjects: list[str]) -> Figure:
    series = tuple(
        Series(subject, tuple((template, times.by_task[subject, template].median) for template in templates))
        for subject in subjects
    )
    return Figure("templates", "Median wall time, warm", "bars", "template", "seconds", series)


SENTENCE = "Wall time of Spark, DuckDB and Polars on plain files, on sorted files, and on our exported layout."
EXPERIMENTS = (Experiment("engines", SENTENCE, "", scale=1.0, minutes=10, function=_run),)
