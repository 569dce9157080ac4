"""Fragment Skipper's set-up with our layouts, and a workload for which the right advice is to change nothing."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pyarrow.compute as pc

import skipstone
from bench.experiment import Experiment
from bench.experiments.other_workloads import HOSTILE_BLOCKS, HOSTILE_QUERIES, lineitem
from bench.experiments.rivals import SMOKE_BLOCKS, layouts_table
from bench.experiments.sop import narrowed
from bench.measure import PairedTimes, ScanCounts, paired
from bench.query import Query
from bench.report import Claim, Figure, Report, Series, Table, table_of, timing_values
from bench.skipping import Scanner, requests_of
from bench.skipstone_layouts import LaidOut, SkipstoneTable, blocks_for, grouped_blocks_for, rows_of
from bench.tpch.data import DENORM, DENORM_COLUMNS, connect_to, normalised
from bench.workloads import fragment_skipper, hostile
from skipstone.relayout.advising import NO_CHANGE

LINEITEM = "lineitem"
PAPER_SKIPPED = 0.33
FIGURE_8 = (("non-partitioned", 1.0), ("initial-queries", 1.0), ("augmented-queries", 2 / 3))
"""Shares of the records that the paper's figure 8 shows: about four of six million for its own method."""

TIMED_QUERIES = 33
RUNS = 10


def _run(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    source = lineitem(scale)
    connection = connect_to(normalised(scale))
    facts = fragment_skipper.column_facts(connection)
    connection.close()
    count = 40 if smoke else fragment_skipper.QUERIES_IN_THE_PAPER
    train, unseen = (fragment_skipper.queries(facts, count, seed=seed, stream=stream) for stream in ("train", "test"))
    largest = blocks_for(rows_of(source), SMOKE_BLOCKS) if smoke else fragment_skipper.ROWS_PER_PARTITION_IN_THE_PAPER
    shutil.rmtree(out / "lake", ignore_errors=True)
    table = SkipstoneTable.loaded(skipstone.open(out / "lake"), LINEITEM, [source], train, largest)
    laid = _layouts(table, largest, count)
    tables, shares = [], {}
    for name, queries in (("trained", train), ("unseen", unseen)):
        scanner = Scanner(source, LINEITEM, queries)
        counts = [table.counts(one, scanner) for one in laid]
        title = "The queries that layouts were made for, as in the paper" if name == "trained" else "Unseen queries"
        tables.append(layouts_table(scanner, laid, counts, name, title))
        everything = scanner.rows * len(queries)
        shares[name] = {
            one.name: ScanCounts.total(read).rows / everything for one, read in zip(laid, counts, strict=True)
        }
        wrong = table.wrong_answers(laid[-1], scanner)
    times = _timed(table, laid, train[: 4 if smoke else TIMED_QUERIES], 1 if smoke else RUNS)
    return Report(
        "fragment-skipper",
        SENTENCES["fragment-skipper"],
        "Fragment Skipper, section VI, figures 7 and 8",
        scale,
        seed,
        smoke,
        settings=(
            ("table", f"{LINEITEM}, {rows_of(source):,} rows"),
            ("queries", f"{count} random ones; {count} unseen"),
            ("features", f"at most {fragment_skipper.FEATURES_IN_THE_PAPER}, each subsumes {_support(count)} queries"),
            ("blocks", f"at most {largest:,} rows"),
            (
                "paper",
                "46 partitions of at most 100,000 rows; a third of the rows skipped, and slower than unpartitioned",
            ),
            ("time", f"{min(TIMED_QUERIES, len(train))} queries, count(*) and sum through Arrow, two threads, warm"),
        ),
        tables=(*tables, _written(laid), _times_table(times)),
        figures=(_figure(shares["trained"]),),
        claims=(
            Claim("skipped", "rows skipped by auto (paper: 0.33)", 1 - shares["trained"]["auto"], at_least=0.4),
            Claim("unseen", "rows of unseen queries skipped by auto", 1 - shares["unseen"]["auto"], at_least=0.4),
            Claim(
                "time",
                "wall time of auto over the unpartitioned table",
                times.total["auto"].median / times.total["unpartitioned"].median,
                at_most=1.0,
            ),
            Claim("answers", "wrong answers", wrong, at_most=0),
        ),
    )


def _support(queries: int) -> int:
    """The paper's support of 25 in 330 queries."""
    return math.ceil(fragment_skipper.SUPPORT_IN_THE_PAPER * queries / fragment_skipper.QUERIES_IN_THE_PAPER)


def _layouts(table: SkipstoneTable, largest: int, queries: int) -> list[LaidOut]:
    """The table as it came, the paper's clustering, and what the package chooses; blocks have at most `largest` rows.

    Groups are cut into blocks of less than twice the least size.
    """
    least = largest // 2
    features = fragment_skipper.FEATURES_IN_THE_PAPER
    return [
        table.as_it_came("unpartitioned"),
        table.lay_out(
            "ward",
            "`ward` with the features of the paper's settings",
            "ward",
            block_rows=least,
            max_features=features,
            min_support=float(_support(queries)),
        ),
        table.lay_out("auto", "what the package chooses", "auto", block_rows=least),
    ]


def _timed(table: SkipstoneTable, laid: Sequence[LaidOut], queries: Sequence[Query], runs: int) -> PairedTimes:
    """Let layouts take turns on each query: plan, read through Arrow, aggregate."""
    wheres = {
        f"q{number}": requests_of(query, LINEITEM, table.table.schema.names)[0].where
        for number, query in enumerate(queries)
    }

    def answer(version: int, task: str) -> tuple[int, object]:
        scan = table.table.scan(["l_extendedprice"], wheres[task], dialect="duckdb", version=version)
        rows = scan.to_arrow()
        return rows.num_rows, pc.sum(rows["l_extendedprice"]).as_py()

    subjects = {one.name: partial(answer, one.snapshot.version) for one in laid}
    for task in wheres:
        answers = {subject(task) for subject in subjects.values()}
        if len(answers) != 1:
            raise AssertionError(f"layouts disagree, which must never happen; please report it: {wheres[task]}")
    return paired(subjects, list(wheres), runs)


def _times_table(times: PairedTimes) -> Table:
    lines = [((name,), timing_values(timing)) for name, timing in times.total.items()]
    return table_of("times", "All timed queries, each layout in turn", ("layout",), lines)


def _written(laid: Sequence[LaidOut]) -> Table:
    lines = [
        (
            (one.name, one.sentence),
            {
                "blocks": float(one.blocks),
                "files": float(one.files),
                "advise_seconds": one.advise_seconds,
                "layout_seconds": one.layout_seconds,
                "layout_bytes": float(one.bytes),
            },
        )
        for one in laid
    ]
    return table_of("written", "The layouts", ("layout", "rows are"), lines)


def _figure(shares: dict[str, float]) -> Figure:
    return Figure(
        "records",
        "Share of the records that a query reads on average",
        "bars",
        "layout",
        "share of rows",
        (Series("measured here", tuple(shares.items())), Series("printed in the paper", FIGURE_8)),
        paper="figure 8",
    )


def _run_hostile(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    count = 30 if smoke else HOSTILE_QUERIES
    train, test = (hostile.queries(count, seed=seed, stream=stream) for stream in ("train", "test"))
    asked = {
        column
        for query in (*train, *test)
        for request in requests_of(query, DENORM, DENORM_COLUMNS)
        for column in request.columns
    }
    source = narrowed(scale, [column for column in DENORM_COLUMNS if column in asked])
    scanner = Scanner(source, DENORM, test)
    blocks = SMOKE_BLOCKS if smoke else HOSTILE_BLOCKS
    shutil.rmtree(out / "lake", ignore_errors=True)
    rows = blocks_for(scanner.rows, blocks)
    table = SkipstoneTable.loaded(skipstone.open(out / "lake"), DENORM, [source], train, rows)
    laid = table.lay_out("auto", "", "auto", block_rows=grouped_blocks_for(scanner.rows, blocks))
    advice = laid.advice
    assert advice is not None
    lines = [((one.name,), {"predicted_share": one.rows}) for one in advice.candidates]
    return Report(
        "hostile-advice",
        SENTENCES["hostile-advice"],
        "",
        scale,
        seed,
        smoke,
        settings=(
            ("table", f"{scanner.rows:,} rows"),
            ("queries", f"{count} for training, no two alike"),
            ("advice", "; ".join(advice.reasons)),
        ),
        tables=(table_of("candidates", "What held-out queries would read", ("layout",), lines),),
        claims=(Claim("no change", "layouts written", float(advice.chosen != NO_CHANGE), at_most=0),),
    )


SENTENCES = {
    "fragment-skipper": "Fragment Skipper's random queries on layouts made for them: rows skipped and wall time.",
    "hostile-advice": "A workload that no layout can serve must end in advice to change nothing.",
}
EXPERIMENTS = (
    Experiment(
        "fragment-skipper", SENTENCES["fragment-skipper"], "figures 7 and 8", scale=1.0, minutes=6, function=_run
    ),
    Experiment("hostile-advice", SENTENCES["hostile-advice"], "", scale=1.0, minutes=3, function=_run_hostile),
)
