"""What the rivals of a learned layout read: figure 3.5(a) of the dissertation without its own bar.

Every layout is written for real and judged by the bounds of its row groups, for queries that its makers have not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from bench.experiment import Experiment
from bench.layouts import (
    PAPER_RANGE_SCHEME,
    TPCH_RANGE_SCHEMES,
    Layout,
    RivalChooser,
    Sizes,
    hive_partitions,
    ordered,
    plain,
    z_order,
)
from bench.measure import ScanCounts
from bench.query import Query
from bench.report import Claim, Figure, Report, Series, Table, scan_values, table_of
from bench.skipping import BlockTable, Scanner
from bench.tpch.data import DENORM, denormalised
from bench.tpch.queries import SKEW_IN_THE_DISSERTATION, queries
from bench.tpch.templates import SOP_TEMPLATES

BLOCKS = 600
SMOKE_BLOCKS = 30
ORDER_MONTH = "strftime(o_orderdate, '%Y-%m')"

FIGURE_3_5 = (("plain", 1.0), ("range1", 0.25), ("range2", 0.19), ("fineblock (SOP)", 0.039), ("actual", 0.007))
"""Shares of tuples in the paper's figure 3.5(a): scale factor 100, 2,300 to 9,000 blocks; plain is its full scan."""


READ = ("rows_read", "rows_share", "bound_share", "times_bound", "cells_read", "blocks_read", "bytes_read")
"""Measures of a scan that stand side by side; more would not fit a terminal."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Queries to choose by, and unseen queries to be judged by."""

    train: tuple[Query, ...]
    test: tuple[Query, ...]


def sop_workload(seed: int, skew: float, smoke: bool) -> Workload:
    """Return the workload of section 3.7.2: 100 training and 10 test queries for each of eight templates."""
    per_template = (4, 2) if smoke else (100, 10)
    return Workload(
        queries(SOP_TEMPLATES, per_template[0], seed=seed, stream="train", skew=skew),
        queries(SOP_TEMPLATES, per_template[1], seed=seed, stream="test", skew=skew),
    )


def tpch_rivals(source: Path, work: Workload, out: Path, rows: int, blocks: int, smoke: bool) -> tuple[Layout, ...]:
    """Write every rival layout of the wide table, each at its best for the training queries."""
    sizes = Sizes.for_blocks(rows, blocks)
    chooser = RivalChooser(source, DENORM, work.train, blocks)
    try:
        column = chooser.best_column()
        scheme = chooser.best(TPCH_RANGE_SCHEMES[:6] if smoke else TPCH_RANGE_SCHEMES)
        z_columns = chooser.best_z_order(most=1 if smoke else 4, candidates=2 if smoke else 8)
    finally:
        chooser.close()
    return (
        plain(source, out, sizes),
        ordered("range1", "range by order date, as the paper", source, out, sizes, "o_orderdate"),
        ordered(
            "range2", f"composite range as the paper: {PAPER_RANGE_SCHEME}", source, out, sizes, PAPER_RANGE_SCHEME
        ),
        ordered("best-column", f"sorted by the best single column: {column}", source, out, sizes, column),
        ordered("best-range", f"best relative of the paper's range: {scheme}", source, out, sizes, scheme),
        hive_partitions("hive-month", "Hive partitions by month of order", source, out, sizes, ORDER_MONTH),
        z_order("z-order", f"delta-rs Z-order by {', '.join(z_columns)}", source, out, sizes, z_columns),
    )


class Named(Protocol):
    """A layout in a table, whoever made it."""

    @property
    def name(self) -> str:
        """Return what reports call it."""


def layouts_table(
    scanner: Scanner,
    layouts: Sequence[Named],
    counts: Sequence[Sequence[ScanCounts]],
    name: str = "layouts",
    title: str = "All test queries together",
) -> Table:
    """Return one line for each layout: what all queries together read of it."""
    lines = []
    for layout, per_query in zip(layouts, counts, strict=True):
        values = scan_values(ScanCounts.total(per_query), table_rows=scanner.rows, queries=len(scanner.queries))
        lines.append(((layout.name,), {measure: values[measure] for measure in READ}))
    return table_of(name, title, ("layout",), lines)


def written_table(layouts: Sequence[Layout]) -> Table:
    """Return one line for each layout: what it is, and what writing it cost."""
    lines = []
    for layout in layouts:
        blocks = BlockTable.of_dataset(layout.dataset, ())
        made = {
            "blocks": float(blocks.blocks),
            "files": float(blocks.files),
            "layout_seconds": layout.seconds,
            "layout_bytes": float(layout.bytes_written),
        }
        lines.append(((layout.name, layout.sentence), made))
    return table_of("written", "The layouts", ("layout", "rows are"), lines)


def templates_table(scanner: Scanner, layouts: Sequence[Named], counts: Sequence[Sequence[ScanCounts]]) -> Table:
    """Return one line for each template and layout: the share of rows read, beside the share that matches."""
    lines = []
    for template in sorted({query.template for query in scanner.queries}, key=lambda name: (len(name), name)):
        for layout, per_query in zip(layouts, counts, strict=True):
            own = [c for query, c in zip(scanner.queries, per_query, strict=True) if query.template == template]
            values = scan_values(ScanCounts.total(own), table_rows=scanner.rows, queries=len(own))
            lines.append(((template, layout.name), {name: values[name] for name in ("rows_share", "bound_share")}))
    return table_of("templates", "By template", ("template", "layout"), lines)


def shares_figure(table: Table, paper: tuple[tuple[str, float], ...], paper_says: str) -> Figure:
    """Draw the share of rows that each layout reads, with the paper's own bars beside it."""
    bound = max(
        value for line in table.lines if (value := line.values[table.measures.index("bound_share")]) is not None
    )
    measured = [(line.labels[0], table.value("rows_share", *line.labels)) for line in table.lines]
    series = [Series("measured here", (*measured, ("actual", bound)))]
    if paper:
        series.append(Series("printed in the paper", paper))
    title = "Share of rows that the test queries read"
    return Figure("rows", title, "bars", "layout", "share of rows", tuple(series), paper=paper_says)


def _run(scale: float, seed: int, out: Path, smoke: bool, *, name: str, skew: float) -> Report:
    source = denormalised(scale)
    work = sop_workload(seed, skew, smoke)
    scanner = Scanner(source, DENORM, work.test)
    blocks = SMOKE_BLOCKS if smoke else BLOCKS
    layouts = tpch_rivals(source, work, out / "layouts", scanner.rows, blocks, smoke)
    counts = [scanner.of_dataset(layout.dataset) for layout in layouts]
    table = layouts_table(scanner, layouts, counts)
    bound = ScanCounts.total(counts[0]).matching_rows / (scanner.rows * len(scanner.queries))
    claims = () if skew else (Claim("bound", "share of rows that match (paper: 0.007)", bound, 0.01, 0.005),)
    paper = () if skew else FIGURE_3_5
    return Report(
        name,
        EXPERIMENT_SENTENCES[name],
        "Dissertation, section 3.7.3, figure 3.5(a)",
        scale,
        seed,
        smoke,
        settings=(
            ("table", f"{scanner.rows:,} rows, {len(scanner.columns)} columns"),
            (
                "queries",
                f"{len(work.train)} for training, {len(work.test)} for tests, templates {', '.join(SOP_TEMPLATES)}",
            ),
            ("constants", f"Zipf with factor {skew:g}, dates uniform" if skew else "uniform"),
            ("files", f"Parquet, zstd, {layouts[0].rows_per_block:,} rows a block"),
        ),
        tables=(table, templates_table(scanner, layouts, counts), written_table(layouts)),
        figures=(shares_figure(table, paper, "figure 3.5(a), scale factor 100, about 8,000 blocks" if paper else ""),),
        claims=claims,
        notes=("Skipping by the bounds of row groups alone, counted from footers.",),
    )


EXPERIMENT_SENTENCES = {
    "rivals": "What existing layouts read for the eight templates of SOP, by the bounds of their row groups.",
    "rivals-skewed": "The same with constants that follow Zipf with factor 3.",
}
EXPERIMENTS = (
    Experiment(
        "rivals",
        EXPERIMENT_SENTENCES["rivals"],
        "figure 3.5(a)",
        scale=1.0,
        minutes=12,
        function=partial(_run, name="rivals", skew=0.0),
    ),
    Experiment(
        "rivals-skewed",
        EXPERIMENT_SENTENCES["rivals-skewed"],
        "section 3.7.3",
        scale=1.0,
        minutes=12,
        function=partial(_run, name="rivals-skewed", skew=SKEW_IN_THE_DISSERTATION),
    ),
)
