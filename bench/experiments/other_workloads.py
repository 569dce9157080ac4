"""What sorting and Z-order reach on other workloads: Fragment Skipper's random queries, and one that fits nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from bench.experiment import Experiment
from bench.experiments.rivals import SMOKE_BLOCKS, layouts_table, written_table
from bench.layouts import Layout, RivalChooser, Sizes, ordered, plain, z_order
from bench.measure import ScanCounts
from bench.place import cached
from bench.query import Query
from bench.report import Claim, Report
from bench.skipping import Scanner
from bench.tpch.data import DENORM, connect_to, denormalised, normalised, write_batches
from bench.workloads import fragment_skipper, hostile

HOSTILE_BLOCKS = 600
HOSTILE_QUERIES = 300


def lineitem(scale: float, root: Path | None = None) -> Path:
    """Return lineitem alone as a dataset of its own."""
    tables = normalised(scale, root)

    def make(directory: Path) -> None:
        connection = connect_to(tables)
        reader = connection.sql("select * from lineitem order by l_orderkey, l_linenumber").to_arrow_reader(50_000)
        write_batches(reader, reader.schema, directory, rows_per_group=100_000)
        connection.close()

    return cached("lineitem", {"sf": scale}, make, root)


def simple_rivals(
    source: Path, table: str, train: Sequence[Query], out: Path, rows: int, blocks: int, smoke: bool
) -> tuple[Layout, ...]:
    """Write the data as it came, sorted by the best column, and Z-ordered by the best columns."""
    sizes = Sizes.for_blocks(rows, blocks)
    chooser = RivalChooser(source, table, train, blocks)
    try:
        column = chooser.best_column()
        z_columns = chooser.best_z_order(most=1 if smoke else 4, candidates=2 if smoke else 6)
    finally:
        chooser.close()
    return (
        plain(source, out, sizes),
        ordered("best-column", f"sorted by the best single column: {column}", source, out, sizes, column),
        z_order("z-order", f"delta-rs Z-order by {', '.join(z_columns)}", source, out, sizes, z_columns),
    )


def _fragment_skipper(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    source = lineitem(scale)
    connection = connect_to(normalised(scale))
    facts = fragment_skipper.column_facts(connection)
    connection.close()
    # The paper judges its layout by the queries that it was made for; so do we here, and state it.
    asked = fragment_skipper.queries(facts, 40 if smoke else fragment_skipper.QUERIES_IN_THE_PAPER, seed=seed)
    scanner = Scanner(source, "lineitem", asked)
    blocks = SMOKE_BLOCKS if smoke else math.ceil(scanner.rows / fragment_skipper.ROWS_PER_PARTITION_IN_THE_PAPER)
    layouts = simple_rivals(source, "lineitem", asked, out / "layouts", scanner.rows, blocks, smoke)
    counts = [scanner.of_dataset(layout.dataset) for layout in layouts]
    return Report(
        "fragment-skipper-rivals",
        FRAGMENT_SKIPPER_SENTENCE,
        "Fragment Skipper, section VI.C, figure 8",
        scale,
        seed,
        smoke,
        settings=(
            ("table", f"lineitem, {scanner.rows:,} rows"),
            (
                "queries",
                f"{len(asked)} random ones, layouts judged by the queries they were chosen for, as in the paper",
            ),
            ("paper", "46 partitions of at most 100,000 rows; one third of the rows skipped"),
        ),
        tables=(layouts_table(scanner, layouts, counts), written_table(layouts)),
    )


def _hostile(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    source = denormalised(scale)
    count = 30 if smoke else HOSTILE_QUERIES
    train, test = (hostile.queries(count, seed=seed, stream=stream) for stream in ("train", "test"))
    scanner = Scanner(source, DENORM, test)
    blocks = SMOKE_BLOCKS if smoke else HOSTILE_BLOCKS
    layouts = simple_rivals(source, DENORM, train, out / "layouts", scanner.rows, blocks, smoke)
    counts = [scanner.of_dataset(layout.dataset) for layout in layouts]
    least = min(ScanCounts.total(per_query).rows for per_query in counts) / (scanner.rows * len(test))
    return Report(
        "hostile",
        HOSTILE_SENTENCE,
        "",
        scale,
        seed,
        smoke,
        settings=(
            ("table", f"{scanner.rows:,} rows, {len(scanner.columns)} columns"),
            ("queries", f"{count} for training, {count} for tests, no two alike"),
        ),
        tables=(layouts_table(scanner, layouts, counts), written_table(layouts)),
        claims=(Claim("no rival helps", "least share of rows that any rival reads", least, at_least=0.95),),
    )


FRAGMENT_SKIPPER_SENTENCE = "What existing layouts read of lineitem for Fragment Skipper's random queries."
HOSTILE_SENTENCE = "A workload that no layout can serve: whoever lays data out for it has wasted the work."
EXPERIMENTS = (
    Experiment(
        "fragment-skipper-rivals",
        FRAGMENT_SKIPPER_SENTENCE,
        "VI.C, figure 8",
        1.0,
        minutes=3,
        function=_fragment_skipper,
    ),
    Experiment("hostile", HOSTILE_SENTENCE, "", scale=1.0, minutes=5, function=_hostile),
)
