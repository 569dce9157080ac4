"""Skipstone's own layouts in a comparison: loaded, advised and written by the package, counted by the package's plans.

One raw table serves all layouts: each is written as a new version of it, kept as a snapshot, and undone again, so that
every clustering starts from the same rows in the same order.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq

import skipstone
from bench.measure import ScanCounts
from bench.query import Query
from bench.skipping import Scanner, data_files, requests_of
from skipstone.catalog.values import Snapshot
from skipstone.lake import Lake, Table
from skipstone.layout.scheme import ClusteringSpec, Layout, Scheme
from skipstone.relayout.advising import NO_CHANGE, Advice
from skipstone.relayout.rewriting import Design
from skipstone.relayout.tracking import tracked_expressions
from skipstone.scan.plan import plan_scan
from skipstone.workload.mining import DEFAULT_MAX_FEATURES, DEFAULT_MIN_SUPPORT
from skipstone.workload.query import Query as Asked
from skipstone.workload.requests import FrontEnd

__all__ = ["LaidOut", "SkipstoneTable", "blocks_for", "grouped_blocks_for", "rows_of"]

LARGER_THAN_ASKED = 0.8
"""Blocks of groups are on average this much larger than the least size: groups are no multiples of it."""


def blocks_for(rows: int, blocks: int) -> int:
    """Return the rows a block for a table that is cut evenly into so many blocks.

    >>> blocks_for(6_001_215, 600)
    10003
    """
    return max(1, -(-rows // blocks))


def grouped_blocks_for(rows: int, blocks: int) -> int:
    """Return the least rows a block with which groups of rows make about so many blocks.

    >>> grouped_blocks_for(6_001_215, 600)
    8002
    """
    return max(1, round(LARGER_THAN_ASKED * blocks_for(rows, blocks)))


@dataclass(frozen=True, slots=True)
class LaidOut:
    """A layout as it is stored, what was advised, and what both cost; `snapshot` is the raw one where nothing was."""

    name: str
    sentence: str
    snapshot: Snapshot
    advice: Advice | None
    advise_seconds: float = 0.0
    layout_seconds: float = 0.0

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return sum(len(blocks) for blocks in self.snapshot.block_sets)

    @property
    def files(self) -> int:
        """How many files there are."""
        return len({(number, file) for number, blocks in enumerate(self.snapshot.block_sets) for file in blocks.files})

    @property
    def bytes(self) -> int:
        """What all columns of all blocks take."""
        return sum(
            int(blocks.column_bytes(name).clip(min=0).sum())
            for blocks in self.snapshot.block_sets
            for name in blocks.columns
        )


class SkipstoneTable:
    """A table of a lake with the queries it is laid out for."""

    def __init__(self, lake: Lake, table: Table, train: Sequence[Query]) -> None:
        self.lake = lake
        self.table = table
        self.raw = table.snapshot()
        texts = [query.sql for query in train]
        self.work = skipstone.Workload.of(texts, {table.name: table.schema})

    @classmethod
    def loaded(
        cls, lake: Lake, name: str, sources: Sequence[Path], train: Sequence[Query], block_rows: int
    ) -> SkipstoneTable:
        """Load the rows of each source in its order: one or more chunks for each, in blocks of `block_rows` rows."""
        table = lake.create(name, sources[0], block_rows=block_rows)
        for source in sources[1:]:
            table.append(source, block_rows=block_rows)
        return cls(lake, table, train)

    def as_it_came(self, name: str = "none", sentence: str = "in the order in which the rows came") -> LaidOut:
        """Return the raw layout."""
        return LaidOut(name, sentence, self.raw, None)

    def lay_out(
        self,
        name: str,
        sentence: str,
        clustering: str | ClusteringSpec,
        *,
        block_rows: int,
        max_features: int = DEFAULT_MAX_FEATURES,
        min_support: float = DEFAULT_MIN_SUPPORT,
    ) -> LaidOut:
        """Advise, write, and go back to the raw table; the layout stays readable as a snapshot.

        A clustering that was asked for by name is written even where the advice is to change nothing: a comparison
        needs those that lose. `auto` is taken at its word.
        """
        spec = ClusteringSpec(clustering) if isinstance(clustering, str) else clustering
        started = time.perf_counter()
        advice = self.table.advise(
            self.work,
            clustering="auto" if clustering == "auto" else [spec],
            block_rows=block_rows,
            max_features=max_features,
            min_support=min_support,
        )
        advised = time.perf_counter()
        if advice.design is None and clustering != "auto":
            advice = self._insisted(advice, spec, block_rows)
        done = self.table.optimize(advice)
        written = time.perf_counter()
        snapshot = self.table.snapshot()
        if done.version is not None:
            self.table.restore(self.raw.version)
        what = f"{sentence}: {advice.chosen}" if clustering == "auto" or advice.chosen == NO_CHANGE else sentence
        return LaidOut(name, what, snapshot, advice, advised - started, written - advised)

    def _insisted(self, advice: Advice, spec: ClusteringSpec, block_rows: int) -> Advice:
        """Return the advice with the design that was declined."""
        columns = tuple(self.table.schema.names)
        features = tuple(feature.filter for feature in advice.features)
        layout = Layout(columns, tuple(range(len(features))), frozenset(columns), spec)
        queries = self.work.queries(self.table.name)
        tracked = tracked_expressions(self.table.schema, [query.filter for query in queries])
        design = Design(Scheme((layout,), features), queries, block_rows, tracked)
        return replace(advice, chosen=spec.name, design=design)

    def counts(self, laid: LaidOut, scanner: Scanner) -> tuple[ScanCounts, ...]:
        """Count what each query of the scanner reads of a layout, beside the least that any layout could read."""
        counted = []
        for asked, least in zip(self.asked(scanner.queries), scanner.least(), strict=True):
            plan = plan_scan(laid.snapshot, asked.columns, asked.filter)
            files = {file.path for chunk in plan.reads() for layout in chunk.layouts for file in layout.files}
            read = plan.counts()
            counted.append(ScanCounts(read.rows, read.cells, read.row_ids, read.blocks, len(files), read.bytes) + least)
        return tuple(counted)

    def wrong_answers(self, laid: LaidOut, scanner: Scanner) -> int:
        """Read what each query of the scanner asks for, and return how many do not find the rows that match."""
        wrong = 0
        for query, least in zip(scanner.queries, scanner.least(), strict=True):
            [request] = requests_of(query, scanner.table, scanner.columns)
            scan = self.table.scan(where=request.where, dialect="duckdb", version=laid.snapshot.version)
            wrong += scan.count() != least.matching_rows
        return wrong

    def asked(self, queries: Sequence[Query]) -> list[Asked]:
        """Return the one request that each query makes, as the package understands it."""
        front = FrontEnd({self.table.name: self.table.schema})
        return [_only_request(front, query) for query in queries]


def _only_request(front: FrontEnd, query: Query) -> Asked:
    statement = front.read(query.sql)
    if len(statement.requests) != 1 or statement.problem:
        raise ValueError(f"a query of {query.template} does not make exactly one request: {statement.problem}")
    [request] = statement.requests
    return Asked(request.columns, request.filter, 1.0, query.template)


def rows_of(dataset: Path) -> int:
    """Return how many rows the Parquet files below a directory have."""
    return sum(pq.read_metadata(file).num_rows for file in data_files(dataset))
