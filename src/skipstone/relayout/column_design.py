"""The order of columns inside every layout, and duplicates within a headroom, for the workload that drives the rows.

Bian et al., "Wide Table Layout Optimization based on Column Ordering and Duplication", SIGMOD 2017, section 5.1, the
Layout Generator: it records the mean seek cost C of the workload when a layout is made, watches the mean seek cost C'
of later workloads on it, and re-orders once C'/C passes a threshold.

    C     the note `columns_cost` of a chunk       C'    `Drift.cost`       threshold    WORTH_REORDERING

Departs from the paper: the cost is that of one row group of each layout that a query reads, so that it does not grow
with the table; and every layout of a scheme has an order of its own, made for the columns that queries read from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from skipstone.catalog.values import BlockSet, NewChunk, Note, Snapshot
from skipstone.errors import InvalidInput
from skipstone.layout.columns.orders import BEST_ORDER
from skipstone.layout.columns.proposing import layout_cost, propose_duplicates, propose_order
from skipstone.layout.columns.search import Effort
from skipstone.layout.columns.seek import PowerSeek, SeekProfile, seek_profile
from skipstone.layout.columns.values import ColumnQuery, ColumnSizes, SizedColumn, StoredColumn
from skipstone.layout.scheme import RESERVED_PREFIX, Layout, Scheme
from skipstone.scan.plan import likely_path
from skipstone.workload.query import Query

__all__ = [
    "COST_NOTE",
    "PROFILE_NOTE",
    "WORTH_REORDERING",
    "ColumnForecast",
    "ColumnWishes",
    "Drift",
    "arranged",
    "column_cost",
    "drifts",
    "duplicate_share",
    "mean_chunk_bytes",
    "recorded_cost",
    "with_column_cost",
]

WORTH_REORDERING = 1.05
"""The threshold of section 5.1: past it, an order does not serve the workload any more as it did when it was made."""

COST_NOTE = "columns_cost"
PROFILE_NOTE = "columns_profile"

MOVES_A_COLUMN = 20
"""A full annealing; a thousand columns take some seconds."""

FEWEST_MOVES = 200

ChunkBytes = Mapping[str, float]
"""The bytes of each column in one row group."""


@dataclass(frozen=True, slots=True)
class ColumnWishes:
    """What the user wants of the order: how many more bytes duplicates may take, and what a gap costs.

    With `seconds`, each search goes on for so long; without, for a number of moves that follows from the columns, and
    the same workload gives the same order.
    """

    headroom: float = 0.0
    profile: SeekProfile = field(default_factory=PowerSeek)
    seconds: float | None = None
    algorithm: str = BEST_ORDER
    seed: int = 0

    def effort(self, columns: int) -> Effort:
        """How hard to search for an order of so many columns."""
        if self.seconds is not None:
            return Effort(seconds=self.seconds)
        return Effort(moves=max(FEWEST_MOVES, MOVES_A_COLUMN * columns))


@dataclass(frozen=True, slots=True)
class ColumnForecast:
    """What an order of columns costs a judging query, in milliseconds a row group, now and as it is advised.

    `duplicates` are physical columns beyond those of the table, and `duplicate_share` what they add to its bytes.
    `drift` is the greatest present cost over the cost that was recorded when the present order was made.
    """

    profile: str
    now: float
    then: float
    duplicates: int
    duplicate_share: float
    advised: bool
    drift: float | None


@dataclass(frozen=True, slots=True)
class Drift:
    """What chunks with one order cost now, by a workload, and what they cost when the order was made."""

    chunks: tuple[str, ...]
    profile: str
    cost: float
    recorded: float

    @property
    def ratio(self) -> float:
        """Present cost over recorded cost; an order that cost nothing and now does is infinitely worse.

        >>> Drift(("c",), "power", cost=2.1, recorded=2.0).ratio > WORTH_REORDERING
        False
        """
        if self.recorded > 0:
            return self.cost / self.recorded
        return float("inf") if self.cost > 0 else 1.0


def arranged(scheme: Scheme, queries: Sequence[Query], chunk_bytes: ChunkBytes, wishes: ColumnWishes) -> Scheme:
    """Order the columns of each layout for the queries that read from it, and repeat some within the headroom."""
    of_layout = _queries_by_layout(scheme, queries)
    layouts = tuple(
        _arranged_layout(layout, of_layout[number], chunk_bytes, wishes) if of_layout[number] else layout
        for number, layout in enumerate(scheme.layouts)
    )
    return replace(scheme, layouts=layouts)


def _arranged_layout(
    layout: Layout, queries: Sequence[ColumnQuery], chunk_bytes: ChunkBytes, wishes: ColumnWishes
) -> Layout:
    effort, seed = wishes.effort(len(layout.columns)), wishes.seed
    plain = _sizes(replace(layout, duplicates=(), order=()), chunk_bytes)
    sizes, _ = propose_order(plain, queries, wishes.profile, effort, algorithm=wishes.algorithm, seed=seed)
    if wishes.headroom:
        sizes, _ = propose_duplicates(sizes, queries, wishes.headroom, wishes.profile, effort, seed=seed)
    stored = [
        StoredColumn(column.name if column.source is None else f"{RESERVED_PREFIX}{column.name}", column.source)
        for column in sizes.columns
    ]
    duplicates = tuple((column.name, column.source) for column in stored if column.source is not None)
    return replace(
        layout,
        columns=tuple(column.name for column in stored if column.source is None),
        duplicates=duplicates,
        order=tuple(column.name for column in stored) if duplicates else (),
    )


def column_cost(scheme: Scheme, queries: Sequence[Query], chunk_bytes: ChunkBytes, profile: SeekProfile) -> float:
    """The seek cost of a query in milliseconds, on average by weight, over one row group of each layout it reads."""
    weight = sum(query.weight for query in queries)
    total = 0.0
    for layout, here in zip(scheme.layouts, _queries_by_layout(scheme, queries), strict=True):
        if here:
            total += layout_cost(_sizes(layout, chunk_bytes), here, profile)
    return total / weight if weight else 0.0


def _queries_by_layout(scheme: Scheme, queries: Sequence[Query]) -> list[list[ColumnQuery]]:
    """What each layout is asked for: the columns that queries read from it, filters included."""
    asked: list[list[ColumnQuery]] = [[] for _ in scheme.layouts]
    stored = {column for layout in scheme.layouts for column in layout.columns}
    for query in queries:
        columns = tuple(dict.fromkeys((*query.columns, *sorted(query.filter.columns))))
        path = likely_path(scheme, [column for column in columns if column in stored], query.filter)
        for number in set(path.values()):
            here = tuple(column for column, layout in path.items() if layout == number)
            asked[number].append(ColumnQuery(here, query.weight))
    return asked


def _sizes(layout: Layout, chunk_bytes: ChunkBytes) -> ColumnSizes:
    sources = dict(layout.duplicates)
    return ColumnSizes(
        tuple(
            # A column without a byte has no place among the others; one is near enough to none.
            SizedColumn(name, "", max(1.0, chunk_bytes.get(sources.get(name, name), 0.0)), sources.get(name))
            for name in layout.stored
        )
    )


def duplicate_share(scheme: Scheme, chunk_bytes: ChunkBytes) -> float:
    """What duplicates add to the bytes of a scheme, as a share."""
    own = sum(chunk_bytes.get(name, 0.0) for layout in scheme.layouts for name in layout.columns)
    more = sum(chunk_bytes.get(source, 0.0) for layout in scheme.layouts for _, source in layout.duplicates)
    return more / own if own else 0.0


def mean_chunk_bytes(blocks: BlockSet, scheme: Scheme) -> dict[str, float]:
    """The bytes of each column in a block that is its master's, on average over a block set."""
    means: dict[str, float] = {}
    for number, layout in enumerate(scheme.layouts):
        here = blocks.layout == number
        for name in layout.masters:
            sizes = blocks.column_bytes(name)[here]
            means[name] = _mean(sizes)
    return means


def _mean(sizes: np.ndarray) -> float:
    known = sizes[sizes >= 0]
    return float(known.mean()) if len(known) else 0.0


def with_column_cost(chunk: NewChunk, queries: Sequence[Query], profile: SeekProfile) -> NewChunk:
    """Note what the workload costs on a chunk as it was written; a later workload is compared with that."""
    blocks = chunk.blocks
    layout_of = blocks.rows["layout"].to_numpy()
    means: dict[str, float] = {}
    for number, layout in enumerate(chunk.scheme.layouts):
        for name in layout.masters:
            sizes = blocks.bytes_of(blocks.columns.index(name)).to_numpy(zero_copy_only=False)
            means[name] = _mean(sizes[layout_of == number])
    cost = column_cost(chunk.scheme, queries, means, profile)
    notes: tuple[Note, ...] = ((COST_NOTE, cost), (PROFILE_NOTE, profile.name))
    kept = tuple(note for note in chunk.facts.notes if note[0] not in (COST_NOTE, PROFILE_NOTE))
    return replace(chunk, facts=replace(chunk.facts, notes=(*kept, *notes)))


def recorded_cost(snapshot: Snapshot, blocks: BlockSet) -> float | None:
    """What was noted when the order of a block set's chunks was made, on average over their rows; None without one."""
    cost = rows = 0.0
    for chunk in blocks.chunks:
        facts = snapshot.facts(chunk)
        noted = dict(facts.notes).get(COST_NOTE)
        if isinstance(noted, (int, float)):
            cost, rows = cost + noted * facts.rows, rows + facts.rows
    return cost / rows if rows else None


def drifts(snapshot: Snapshot, queries: Sequence[Query]) -> tuple[Drift, ...]:
    """Compare what a workload costs on chunks that have an order with what was recorded when they got it."""
    found = []
    for blocks in snapshot.block_sets:
        scheme = snapshot.scheme(blocks.scheme)
        by_profile: dict[str, list[tuple[str, float, int]]] = {}
        for chunk in blocks.chunks:
            facts = snapshot.facts(chunk)
            notes = dict(facts.notes)
            cost, name = notes.get(COST_NOTE), notes.get(PROFILE_NOTE)
            if isinstance(cost, (int, float)) and isinstance(name, str):
                by_profile.setdefault(name, []).append((chunk, float(cost), facts.rows))
        for name, recorded in sorted(by_profile.items()):
            profile = _known_profile(name)
            if profile is None:
                continue
            rows = sum(count for _, _, count in recorded)
            before = sum(cost * count for _, cost, count in recorded) / max(1, rows)
            now = column_cost(scheme, queries, mean_chunk_bytes(blocks, scheme), profile)
            found.append(Drift(tuple(chunk for chunk, _, _ in recorded), name, now, before))
    return tuple(found)


def _known_profile(name: str) -> SeekProfile | None:
    """The profile of a name; None for one that was read from a file which is not here."""
    try:
        return seek_profile(name)
    except InvalidInput:
        return None
