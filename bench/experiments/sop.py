"""SOP with one layout: figure 3.5(a) of the dissertation with its own bar, and with ours beside it.

Every layout is written by the package's own pipeline and read through its own plans; rivals are written and counted as
in the experiment `rivals`. All share the number of blocks, and all are judged by queries that they were not made for.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow.dataset as pd

import skipstone
from bench.experiment import Experiment
from bench.experiments.rivals import (
    FIGURE_3_5,
    ORDER_MONTH,
    SMOKE_BLOCKS,
    Named,
    Workload,
    layouts_table,
    shares_figure,
    sop_workload,
    templates_table,
    tpch_rivals,
    written_table,
)
from bench.layouts import PAPER_RANGE_SCHEME, Layout, Sizes, ordered
from bench.measure import ScanCounts
from bench.place import cached
from bench.quiet_duckdb import connect
from bench.report import Claim, Report, Table, table_of
from bench.skipping import Scanner, data_files, requests_of
from bench.skipstone_layouts import LaidOut, SkipstoneTable, blocks_for, grouped_blocks_for
from bench.tpch.data import DENORM, DENORM_COLUMNS, ROWS_PER_ROW_GROUP, denormalised, write_batches
from bench.tpch.queries import SKEW_IN_THE_DISSERTATION
from bench.tpch.templates import SOP_TEMPLATES

BLOCKS = 600
MANY_BLOCKS = 3_000
SMOKE_MANY_BLOCKS = 60
FEATURES_IN_THE_PAPER = 15
ORDERS = ("sort", "zorder", "hilbert")
GROUPS = ("ward", "ward-queries", "qdtree")
RANGES = ("range1", "range2", "best-range")
RIVALS_MAKER = 1
"""To be counted up when rivals are made in another way, so that kept ones are not taken for them."""


def read_columns(work: Workload) -> tuple[str, ...]:
    """Return the columns that the templates read, and those of the paper's range scheme, in the order of the table."""
    examples = {query.template: query for query in (*work.train, *work.test)}
    asked = {
        column
        for query in examples.values()
        for request in requests_of(query, DENORM, DENORM_COLUMNS)
        for column in request.columns
    }
    return tuple(column for column in DENORM_COLUMNS if column in asked or column in PAPER_RANGE_SCHEME)


def narrowed(scale: float, columns: Sequence[str]) -> Path:
    """Return the wide table with these columns only, which is all that the counted queries can tell from the whole."""
    source = denormalised(scale)

    def make(directory: Path) -> None:
        table = pd.dataset(data_files(source), format="parquet")
        reader = table.scanner(columns=list(columns), batch_size=ROWS_PER_ROW_GROUP).to_reader()
        write_batches(reader, reader.schema, directory, ROWS_PER_ROW_GROUP)

    return cached("denorm-read", {"sf": scale, "columns": ",".join(columns)}, make)


def by_month(source: Path, scale: float) -> tuple[Path, ...]:
    """Return the rows of each month of order as a file of its own: the horizontal partitions of section 3.7.3."""

    def make(directory: Path) -> None:
        connection = connect()
        connection.execute(
            f"copy (select *, {ORDER_MONTH} as m from read_parquet('{source}/*.parquet')) to '{directory}' "
            "(format parquet, partition_by (m), write_partition_columns false)"
        )
        connection.close()

    home = cached("denorm-months", {"sf": scale, "of": source.name}, make)
    return tuple(sorted(place for place in home.iterdir() if place.is_dir()))


Counts = tuple[ScanCounts, ...]


@dataclass(frozen=True, slots=True)
class House:
    """What all layouts of one comparison share: the rows, the queries, the number of blocks, and a place for lakes."""

    source: Path
    scale: float
    work: Workload
    scanner: Scanner
    blocks: int
    out: Path

    @classmethod
    def of(cls, scale: float, seed: int, skew: float, blocks: int, out: Path, smoke: bool) -> House:
        """Make the queries and the narrowed table."""
        work = sop_workload(seed, skew, smoke)
        source = narrowed(scale, read_columns(work))
        place = out / f"{blocks}-blocks-skew-{skew:g}"
        shutil.rmtree(place, ignore_errors=True)
        return cls(source, scale, work, Scanner(source, DENORM, work.test), blocks, place)

    @property
    def even(self) -> int:
        """The rows of a block of an order."""
        return blocks_for(self.scanner.rows, self.blocks)

    @property
    def least(self) -> int:
        """The least rows of a block of groups."""
        return grouped_blocks_for(self.scanner.rows, self.blocks)

    def table(self) -> SkipstoneTable:
        """Load the rows as they came, in blocks of the size that all layouts share."""
        lake = skipstone.open(self.out / "whole")
        return SkipstoneTable.loaded(lake, DENORM, [self.source], self.work.train, self.even)

    def auto(self, table: SkipstoneTable) -> LaidOut:
        """Let the package choose."""
        return table.lay_out("auto", "what the package chooses", "auto", block_rows=self.least)

    def ward_in_months(self) -> tuple[LaidOut, Counts]:
        """Cluster each month of order by itself with fifteen features, as section 3.7.3 does."""
        lake = skipstone.open(self.out / "months")
        table = SkipstoneTable.loaded(lake, DENORM, by_month(self.source, self.scale), self.work.train, self.least)
        sentence = f"`ward` within each month of order, {FEATURES_IN_THE_PAPER} features, as in the paper"
        features = FEATURES_IN_THE_PAPER
        laid = table.lay_out("ward in months", sentence, "ward", block_rows=self.least, max_features=features)
        return laid, table.counts(laid, self.scanner)

    def share(self, counts: Sequence[ScanCounts]) -> float:
        """Return the share of all rows that the test queries read."""
        everything: int = self.scanner.rows * len(self.scanner.queries)
        return ScanCounts.total(counts).rows / everything

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """Say what was compared."""
        return (
            ("table", f"{self.scanner.rows:,} rows, the {len(self.scanner.columns)} columns that the queries read"),
            ("queries", f"{len(self.work.train)} for training, {len(self.work.test)} for tests"),
            ("templates", ", ".join(SOP_TEMPLATES)),
            ("blocks", f"about {self.blocks:,}; orders: {self.even:,} rows each, groups: at least {self.least:,}"),
        )


def kept_rivals(house: House, seed: int, smoke: bool) -> tuple[Layout, ...]:
    """Return the rivals of `rivals` over the narrowed table: written once, and kept between runs like data."""

    def make(directory: Path) -> None:
        made = tpch_rivals(house.source, house.work, directory, house.scanner.rows, house.blocks, smoke)
        facts = [asdict(one) | {"dataset": one.dataset.name} for one in made]
        (directory / "layouts.json").write_text(json.dumps(facts))

    recipe = {"sf": house.scale, "seed": seed, "blocks": house.blocks, "of": house.source.name, "smoke": smoke}
    home = cached("sop-rivals", recipe | {"maker": RIVALS_MAKER}, make)
    kept = json.loads((home / "layouts.json").read_text())
    return tuple(Layout(**(one | {"dataset": home / one["dataset"]})) for one in kept)


def ours_table(house: House, laid: Sequence[LaidOut], counts: Sequence[Counts], name: str = "ours") -> Table:
    """Return one line for each of our layouts: what it is, what it costs, and how well the advice foretold it."""
    lines = []
    for one, read in zip(laid, counts, strict=True):
        values = {
            "rows_share": house.share(read),
            "blocks": float(one.blocks),
            "files": float(one.files),
            "advise_seconds": one.advise_seconds,
            "layout_seconds": one.layout_seconds,
            "layout_bytes": float(one.bytes),
        }
        if one.advice is not None:
            values["predicted_share"] = one.advice.candidate(one.advice.chosen).rows
        lines.append(((one.name, one.sentence), values))
    return table_of(name, f"Skipstone's layouts, about {house.blocks:,} blocks", ("layout", "rows are"), lines)


def _run(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    house = House.of(scale, seed, 0.0, SMOKE_BLOCKS if smoke else BLOCKS, out, smoke)
    table = house.table()
    auto = house.auto(table)
    paper, paper_counts = house.ward_in_months()
    rivals = kept_rivals(house, seed, smoke)
    layouts: list[Named] = [auto, paper, *rivals]
    counts = [table.counts(auto, house.scanner), paper_counts]
    counts += [house.scanner.of_dataset(one.dataset) for one in rivals]
    shares = {one.name: house.share(read) for one, read in zip(layouts, counts, strict=True)}
    together = layouts_table(house.scanner, layouts, counts)
    return Report(
        "sop",
        SENTENCES["sop"],
        "Dissertation, section 3.7.3, figure 3.5(a)",
        scale,
        seed,
        smoke,
        settings=house.settings,
        tables=(
            together,
            templates_table(house.scanner, layouts, counts),
            ours_table(house, [auto, paper], counts[:2]),
            written_table(rivals),
        ),
        figures=(shares_figure(together, FIGURE_3_5, "figure 3.5(a), scale factor 100, about 8,000 blocks"),),
        claims=(
            Claim("auto", "share of rows that auto reads", shares["auto"], at_most=0.07),
            Claim("ward", "auto over ward as in the paper", shares["auto"] / shares[paper.name], at_most=0.4),
            Claim(
                "range",
                "auto over the best range scheme by hand",
                shares["auto"] / min(shares[name] for name in RANGES),
                at_most=0.4,
            ),
            Claim("answers", "wrong answers", table.wrong_answers(auto, house.scanner), at_most=0),
        ),
        notes=(NOTE,),
    )


def _run_clusterings(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    house = House.of(scale, seed, 0.0, SMOKE_BLOCKS if smoke else BLOCKS, out, smoke)
    table = house.table()
    laid = [table.as_it_came()]
    laid += [table.lay_out(name, f"clustering `{name}`", name, block_rows=house.even) for name in ORDERS]
    laid += [table.lay_out(name, f"clustering `{name}`", name, block_rows=house.least) for name in GROUPS]
    counts = [table.counts(one, house.scanner) for one in laid]
    together = layouts_table(house.scanner, laid, counts)
    return Report(
        "sop-clusterings",
        SENTENCES["sop-clusterings"],
        "Dissertation, section 3.7.3",
        scale,
        seed,
        smoke,
        settings=house.settings,
        tables=(together, templates_table(house.scanner, laid, counts), ours_table(house, laid, counts)),
        figures=(shares_figure(together, (), ""),),
        notes=(NOTE,),
    )


def _run_many_blocks(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    house = House.of(scale, seed, 0.0, SMOKE_MANY_BLOCKS if smoke else MANY_BLOCKS, out, smoke)
    table = house.table()
    auto = house.auto(table)
    paper, paper_counts = house.ward_in_months()
    layouts, counts = [auto, paper], [table.counts(auto, house.scanner), paper_counts]
    return Report(
        "sop-many-blocks",
        SENTENCES["sop-many-blocks"],
        "Dissertation, section 3.7.3, figure 3.6",
        scale,
        seed,
        smoke,
        settings=house.settings,
        tables=(
            layouts_table(house.scanner, layouts, counts),
            templates_table(house.scanner, layouts, counts),
            ours_table(house, layouts, counts),
        ),
        claims=(Claim("auto", "share of rows that auto reads", house.share(counts[0]), at_most=0.04),),
        notes=(NOTE,),
    )


def _run_skewed(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    blocks = SMOKE_BLOCKS if smoke else BLOCKS
    tables, times_bound = [], {}
    for name, skew in (("uniform", 0.0), ("skewed", SKEW_IN_THE_DISSERTATION)):
        house = House.of(scale, seed, skew, blocks, out, smoke)
        table = house.table()
        auto = house.auto(table)
        paper, paper_counts = house.ward_in_months()
        ranges = tuple(_ranges(house))
        counts = [table.counts(auto, house.scanner), paper_counts]
        counts += [house.scanner.of_dataset(one.dataset) for one in ranges]
        tables.append(layouts_table(house.scanner, [auto, paper, *ranges], counts, name, f"Constants are {name}"))
        times_bound[name] = tables[-1].value("times_bound", "auto")
    return Report(
        "sop-skewed",
        SENTENCES["sop-skewed"],
        "Dissertation, section 3.7.3",
        scale,
        seed,
        smoke,
        settings=(*house.settings, ("skew", f"Zipf with factor {SKEW_IN_THE_DISSERTATION:g}, dates uniform")),
        tables=tuple(tables),
        claims=(
            Claim(
                "skew",
                "read over matching, skewed over uniform",
                times_bound["skewed"] / times_bound["uniform"],
                at_most=1.0,
            ),
        ),
        notes=(NOTE, "The paper: 8 % and 10 % of what range1 and range2 read, against 16 % and 21 % without skew."),
    )


def _ranges(house: House) -> Iterator[Layout]:
    """Write the two range schemes that the paper compares with."""
    sizes = Sizes.for_blocks(house.scanner.rows, house.blocks)
    for name, keys in (("range1", "o_orderdate"), ("range2", PAPER_RANGE_SCHEME)):
        yield ordered(name, f"range by {keys}", house.source, house.out / "rivals", sizes, keys)


NOTE = (
    "Skipstone's layouts are read by block vectors and bounds together, the rivals by the bounds of their row groups. "
    "The table keeps only columns that queries read, which changes neither rows nor cells nor blocks."
)
SENTENCES = {
    "sop": "What queries read of a layout that the package chose, beside the paper's and those that others would make.",
    "sop-clusterings": "What the same queries read of a table laid out by each clustering.",
    "sop-many-blocks": "The same as `sop` in five times as many blocks.",
    "sop-skewed": "The same where constants follow Zipf with factor 3, beside constants drawn evenly.",
}
_MINUTES = {"sop": (6, _run), "sop-clusterings": (8, _run_clusterings), "sop-many-blocks": (4, _run_many_blocks)}
EXPERIMENTS = (
    *(
        Experiment(name, SENTENCES[name], "section 3.7.3", scale=1.0, minutes=minutes, function=function)
        for name, (minutes, function) in _MINUTES.items()
    ),
    Experiment("sop-skewed", SENTENCES["sop-skewed"], "section 3.7.3", 1.0, minutes=8, function=_run_skewed),
)
