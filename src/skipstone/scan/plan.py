"""Decide what a request has to read: which blocks, which columns, and from which layouts.

Sun, dissertation 2017, sections 3.5 and 5.6, with min/max skipping beside it:

1. Query vector: the features that subsume the filter (`Skipping.features`). A block without a row for one of them has
   no row for the query.
2. Bounds: min, max and null counts of columns and expressions rule out further blocks (`Skipping.bounds`).
3. Retrieval path: for every chunk that has more than one layout, which columns come from which (`skipstone.scan.path`),
   and where a layout stores a column more than once, which of its copies is read (`skipstone.scan.replicas`).

A whole chunk is left out where any layout that must hold all matching rows has no block left to read. Everything works
on columns of block facts; nothing loops over blocks.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipstone.catalog.values import REST, BlockSet, Snapshot
from skipstone.errors import ColumnNotFound
from skipstone.layout.columns.seek import PowerSeek, SeekProfile
from skipstone.layout.scheme import Layout, Scheme
from skipstone.predicate.bounds import prepare
from skipstone.predicate.implication import implies
from skipstone.predicate.literal import ALWAYS, Conjunction
from skipstone.scan.path import Path, best_path
from skipstone.scan.replicas import Replicas, replicas_of

__all__ = [
    "BlockSetPlan",
    "ChunkRead",
    "Counts",
    "FileRead",
    "LayoutRead",
    "ScanPlan",
    "Skipping",
    "likely_path",
    "path_by_rows",
    "plan_scan",
]

_LOG = logging.getLogger(__name__)

Mask = npt.NDArray[np.bool_]

MOST_CHUNKS_PLANNED_APART = 256
"""Past so many chunks of one scheme a retrieval path is chosen for all of them together: planning must stay cheap."""


@dataclass(frozen=True, slots=True)
class Skipping:
    """Which mechanisms may skip. Both by default; switching one off never changes an answer."""

    features: bool = True
    bounds: bool = True


@dataclass(frozen=True, slots=True)
class Counts:
    """What reading costs: blocks, rows of those blocks, cells (rows times columns), row ids, and stored bytes."""

    blocks: int = 0
    rows: int = 0
    cells: int = 0
    row_ids: int = 0
    bytes: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.blocks + other.blocks,
            self.rows + other.rows,
            self.cells + other.cells,
            self.row_ids + other.row_ids,
            self.bytes + other.bytes,
        )


@dataclass(frozen=True, slots=True)
class FileRead:
    """Row groups of one file, ascending, with the rows in each and the range of the row ids in each.

    Where the file stores no row ids, the ids of a row group's rows are its first one and those that follow.
    """

    path: str
    row_groups: tuple[int, ...]
    rows: tuple[int, ...]
    first_row_ids: tuple[int, ...]
    last_row_ids: tuple[int, ...]
    stores_row_ids: bool


@dataclass(frozen=True, slots=True)
class LayoutRead:
    """What is read from one layout of a chunk: the requested columns by the name they are stored under, and the
    blocks."""

    layout: int
    columns: tuple[tuple[str, str], ...]
    files: tuple[FileRead, ...]

    @property
    def rows(self) -> int:
        """The rows of all blocks to read."""
        return sum(sum(file.rows) for file in self.files)


@dataclass(frozen=True, slots=True)
class ChunkRead:
    """What is read from one chunk; with several layouts, rows are put together again by their row ids."""

    chunk: str
    layouts: tuple[LayoutRead, ...]


@dataclass(frozen=True, eq=False)
class BlockSetPlan:
    """What is read from the chunks of one block set, and which mechanism ruled out what; for readers and for
    `explain`."""

    blocks: BlockSet
    scheme: Scheme
    subsuming: tuple[int, ...]
    by_features: Mask = field(repr=False)
    """Blocks that the features leave to be read."""
    by_bounds: Mask = field(repr=False)
    """Blocks that features and bounds leave to be read; bounds are asked only of what the features leave."""
    read: Mask = field(repr=False)
    """Blocks that are read: left by both, in a layout of the chunk's path, of a chunk that can have a match."""
    paths: tuple[Path, ...] = field(repr=False)
    """The retrieval path of each chunk, in the order of `blocks.chunks`; empty for a chunk that is left out whole."""
    replicas: Mapping[int, Replicas] = field(repr=False, default_factory=dict)
    """The layouts that store one of the columns more than once, with what says which copy is read."""

    def stored(self, layout: int, columns: Sequence[str]) -> dict[str, str]:
        """The physical column that is read of a layout for each of these columns."""
        replicas = self.replicas.get(layout)
        return {column: column for column in columns} if replicas is None else replicas.stored(columns)

    def counts(self) -> Counts:
        """Count what is read."""
        total = Counts()
        for number in range(len(self.scheme.layouts)):
            here = self.read & (self.blocks.layout == number)
            if not here.any():
                continue
            for columns, several, chunks in self._column_sets(number):
                mask = here if chunks is None else here & np.isin(self.blocks.chunk_of, chunks)
                total = total + self._count(mask, number, columns, several)
        return total

    def chunk_counts(self, position: int) -> Counts:
        """Count what is read from the chunk at this position."""
        path = self.paths[position]
        span = slice(int(self.blocks.offsets[position]), int(self.blocks.offsets[position + 1]))
        inside = np.zeros(len(self.blocks), np.bool_)
        inside[span] = True
        total = Counts()
        for number in sorted(set(path.values())):
            columns = [column for column, layout in path.items() if layout == number]
            mask = self.read & inside & (self.blocks.layout == number)
            total = total + self._count(mask, number, columns, len(set(path.values())) > 1)
        return total

    def _column_sets(self, layout: int) -> Iterator[tuple[list[str], bool, npt.NDArray[np.int64] | None]]:
        """The distinct sets of columns that chunks read from a layout, each with its chunks (None: all of them)."""
        users: dict[tuple[tuple[str, ...], bool], list[int]] = {}
        for position, path in enumerate(self.paths):
            columns = tuple(column for column, chosen in path.items() if chosen == layout)
            if columns:
                users.setdefault((columns, len(set(path.values())) > 1), []).append(position)
        for (columns, several), chunks in users.items():
            yield list(columns), several, None if len(users) == 1 else np.array(chunks)

    def _count(self, mask: Mask, layout: int, columns: Sequence[str], several: bool) -> Counts:
        rows = int(self.blocks.rows[mask].sum())
        names = self.stored(layout, columns).values()
        stored = sum(int(np.maximum(self.blocks.column_bytes(name)[mask], 0).sum()) for name in names)
        return Counts(int(mask.sum()), rows, rows * len(columns), rows if several else 0, stored)

    def reads(self) -> Iterator[ChunkRead]:
        """Give what is read of each chunk that is not left out."""
        positions = np.flatnonzero(self.read)
        bounds = np.searchsorted(positions, self.blocks.offsets)
        row_ids = _row_id_ranges(self.blocks, self.scheme)
        stored = {key: self.stored(*key) for key in {key for path in self.paths for key in _columns_by_layout(path)}}
        for number, path in enumerate(self.paths):
            chosen = positions[bounds[number] : bounds[number + 1]]
            if len(chosen) == 0:
                continue
            layouts = tuple(
                LayoutRead(
                    layout,
                    tuple((column, stored[layout, columns][column]) for column in columns),
                    _files(self.blocks, chosen[self.blocks.layout[chosen] == layout], row_ids),
                )
                for layout, columns in _columns_by_layout(path)
            )
            yield ChunkRead(self.blocks.chunks[number], layouts)


@dataclass(frozen=True, eq=False)
class ScanPlan:
    """What a request reads of a table, as of one snapshot."""

    snapshot: Snapshot = field(repr=False)
    columns: tuple[str, ...]
    filter: Conjunction
    skipping: Skipping
    parts: tuple[BlockSetPlan, ...] = field(repr=False)

    @property
    def schema(self) -> pa.Schema:
        """The columns and types that a reader of the plan gets."""
        return pa.schema([self.snapshot.schema.field(column) for column in self.columns])

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The columns that are read: those asked for, and those that the filter looks at."""
        return _read_columns(self.snapshot.schema, self.columns, self.filter)

    def reads(self) -> Iterator[ChunkRead]:
        """Give what is read of each chunk that is not left out."""
        for part in self.parts:
            yield from part.reads()

    def counts(self) -> Counts:
        """Count what is read."""
        return sum((part.counts() for part in self.parts), Counts())


def plan_scan(
    snapshot: Snapshot,
    columns: Sequence[str] | None = None,
    filter: Conjunction = ALWAYS,  # noqa: A002 - the word that everybody uses for it
    *,
    skipping: Skipping | None = None,
    chunks: Sequence[str] | None = None,
    profile: SeekProfile | None = None,
) -> ScanPlan:
    """Plan a read of these columns (all by default) of the rows for which the filter may be TRUE.

    With `chunks`, only these chunks are read. `profile` says what a gap between two reads costs, where a column is
    stored more than once and one of its copies must be chosen; without it, that is a disk.
    """
    wanted = tuple(snapshot.schema.names if columns is None else columns)
    for column in wanted:
        if column not in snapshot.schema.names:
            raise ColumnNotFound.among(column, snapshot.schema.names, where="the table")
    needed = _read_columns(snapshot.schema, wanted, filter)
    chosen = skipping or Skipping()
    seek = profile or PowerSeek()
    parts = tuple(
        _with_replicas(
            _plan_block_set(blocks, snapshot.scheme(blocks.scheme), needed, filter, chosen, _inside(blocks, chunks)),
            needed,
            snapshot.table_id,
            seek,
        )
        for blocks in snapshot.block_sets
        if chunks is None or not set(chunks).isdisjoint(blocks.chunks)
    )
    plan = ScanPlan(snapshot, wanted, filter, chosen, parts)
    if _LOG.isEnabledFor(logging.DEBUG):
        read = plan.counts()
        _LOG.debug("version %d: %d blocks and %d rows are to be read", snapshot.version, read.blocks, read.rows)
    return plan


def _read_columns(schema: pa.Schema, columns: Sequence[str], condition: Conjunction) -> tuple[str, ...]:
    """The columns to read; where neither output nor filter names one, the first, because rows have to be counted."""
    extra = sorted(condition.columns - set(columns))
    needed = tuple(columns) + tuple(extra)
    return needed if needed else tuple(schema.names[:1])


def _with_replicas(part: BlockSetPlan, columns: Sequence[str], table_id: str, profile: SeekProfile) -> BlockSetPlan:
    found = replicas_of(part.blocks, part.scheme, columns, table_id=table_id, profile=profile)
    return dataclasses.replace(part, replicas=found) if found else part


def _columns_by_layout(path: Path) -> list[tuple[int, tuple[str, ...]]]:
    """The layouts of a path, ascending, with the columns that come from each.

    >>> _columns_by_layout({"a": 1, "b": 0, "c": 1})
    [(0, ('b',)), (1, ('a', 'c'))]
    """
    return [
        (layout, tuple(column for column, home in path.items() if home == layout))
        for layout in sorted(set(path.values()))
    ]


def _inside(blocks: BlockSet, chunks: Sequence[str] | None) -> Mask:
    if chunks is None:
        return np.ones(len(blocks), np.bool_)
    wanted = np.isin(np.array(blocks.chunks), list(chunks))
    return wanted[blocks.chunk_of]


def _plan_block_set(
    blocks: BlockSet,
    scheme: Scheme,
    columns: tuple[str, ...],
    condition: Conjunction,
    skipping: Skipping,
    inside: Mask,
) -> BlockSetPlan:
    subsuming = _subsuming(scheme, condition) if skipping.features else ()
    by_features = feature_mask(blocks.vectors, subsuming) if subsuming else np.ones(len(blocks), np.bool_)
    by_bounds = (
        prepare(condition).mask(blocks, by_features) if skipping.bounds and condition.predicates else by_features
    )
    left = by_bounds & inside
    if len(scheme.layouts) == 1:
        chosen: Path = dict.fromkeys(columns, 0)
        return BlockSetPlan(
            blocks, scheme, subsuming, by_features, by_bounds, left, tuple(chosen for _ in blocks.chunks)
        )
    by_layout = [number for number, layout in enumerate(scheme.layouts) if _has_all_matches(layout, subsuming)]
    # The rest part has no row with any feature of its layout, so where one of them subsumes the query it has no match.
    left = left & ~((blocks.part == REST) & np.isin(blocks.layout, by_layout))
    rows = _rows_per_chunk_and_layout(blocks, left, len(scheme.layouts))
    complete = [number for number, layout in enumerate(scheme.layouts) if layout.holds_all_rows or number in by_layout]
    alive: Mask = np.all(rows[:, complete] > 0, axis=1)
    paths = _paths(scheme, columns, subsuming, rows, alive)
    read = left & _on_path(blocks, paths)
    return BlockSetPlan(blocks, scheme, subsuming, by_features, by_bounds, read, paths)


def _subsuming(scheme: Scheme, condition: Conjunction) -> tuple[int, ...]:
    return tuple(number for number, feature in enumerate(scheme.features) if implies(condition, feature))


def feature_mask(vectors: npt.NDArray[np.uint8], subsuming: Sequence[int]) -> Mask:
    """Tell which blocks may have a row for every one of the features.

    This is the OR of query vector and block vector of section 3.5, the other way round: a block stays only if its bit
    is set for each feature that subsumes the query.

    >>> feature_mask(np.array([[0b101], [0b001]], np.uint8), [0, 2]).tolist()
    [True, False]
    """
    needed = np.zeros(vectors.shape[1], np.uint8)
    for feature in subsuming:
        needed[feature // 8] |= np.uint8(1 << feature % 8)
    stays = np.ones(len(vectors), np.bool_)
    for byte in np.flatnonzero(needed):
        stays &= (vectors[:, byte] & needed[byte]) == needed[byte]
    return stays


def _rows_per_chunk_and_layout(blocks: BlockSet, mask: Mask, layouts: int) -> npt.NDArray[np.int64]:
    cell = blocks.chunk_of[mask].astype(np.int64) * layouts + blocks.layout[mask]
    counted = np.bincount(cell, weights=blocks.rows[mask], minlength=len(blocks.chunks) * layouts)
    return counted.astype(np.int64).reshape(len(blocks.chunks), layouts)


def _paths(
    scheme: Scheme,
    columns: tuple[str, ...],
    subsuming: tuple[int, ...],
    rows: npt.NDArray[np.int64],
    alive: Mask,
) -> tuple[Path, ...]:
    eligible = {column: _eligible(scheme, column, subsuming) for column in columns}
    if len(alive) > MOST_CHUNKS_PLANNED_APART:
        shared = best_path(eligible, rows[alive].sum(axis=0).tolist())
        return tuple(shared if lives else {} for lives in alive)
    return tuple(
        best_path(eligible, counts.tolist()) if lives else {} for counts, lives in zip(rows, alive, strict=True)
    )


def _has_all_matches(layout: Layout, subsuming: tuple[int, ...]) -> bool:
    """Whether a local feature subsumes the query, so that every column of the clustered part has what it needs."""
    return not set(layout.features).isdisjoint(subsuming)


def _eligible(scheme: Scheme, column: str, subsuming: tuple[int, ...]) -> list[int]:
    """Where all values that the query needs of a column are: section 5.6.1."""
    return [
        number
        for number, layout in enumerate(scheme.layouts)
        if column in layout.masters or (column in layout.columns and _has_all_matches(layout, subsuming))
    ]


def likely_path(scheme: Scheme, columns: Sequence[str], condition: Conjunction) -> Path:
    """The retrieval path of a query where nothing is known of the rows: layouts with a feature for it have fewer."""
    if len(scheme.layouts) == 1:
        return dict.fromkeys(columns, 0)
    subsuming = _subsuming(scheme, condition)
    rows = [1 if _has_all_matches(layout, subsuming) else 2 for layout in scheme.layouts]
    return path_by_rows(scheme, columns, subsuming, rows)


def path_by_rows(scheme: Scheme, columns: Sequence[str], subsuming: tuple[int, ...], rows: Sequence[int]) -> Path:
    """The retrieval path of a query that these features subsume, if it reads so many rows of each layout."""
    return best_path({column: _eligible(scheme, column, subsuming) for column in columns}, rows)


def _on_path(blocks: BlockSet, paths: tuple[Path, ...]) -> Mask:
    width = int(blocks.layout.max(initial=0)) + 1
    used = np.zeros((len(paths), width), np.bool_)
    for number, path in enumerate(paths):
        used[number, list(set(path.values()))] = True
    return used[blocks.chunk_of, blocks.layout]


@dataclass(frozen=True, slots=True, eq=False)
class _RowIds:
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    stored: bool


def _row_id_ranges(blocks: BlockSet, scheme: Scheme) -> _RowIds:
    """The row ids of each block: as stored, or, where a chunk is one layout, the positions of its rows in the chunk."""
    if scheme.needs_row_ids:
        return _RowIds(blocks.first_row_id, blocks.last_row_id, stored=True)
    before = np.concatenate([[0], np.cumsum(blocks.rows)])
    first = before[:-1] - before[blocks.offsets[blocks.chunk_of]]
    return _RowIds(first, first + blocks.rows - 1, stored=False)


def _files(blocks: BlockSet, chosen: npt.NDArray[np.int64], row_ids: _RowIds) -> tuple[FileRead, ...]:
    if len(chosen) == 0:
        return ()
    file = blocks.file_of[chosen]
    order = np.lexsort((blocks.row_group[chosen], file))
    ordered, file = chosen[order], file[order]
    edges = np.concatenate([[0], np.flatnonzero(file[1:] != file[:-1]) + 1, [len(file)]])
    runs = [ordered[start:end] for start, end in itertools.pairwise(edges.tolist())]
    # Files in the order of their blocks, so that a raw chunk is read in the order in which it arrived.
    runs.sort(key=lambda run: int(run.min()))
    return tuple(
        FileRead(
            blocks.files[int(blocks.file_of[run[0]])],
            tuple(blocks.row_group[run].tolist()),
            tuple(blocks.rows[run].tolist()),
            tuple(row_ids.first[run].tolist()),
            tuple(row_ids.last[run].tolist()),
            row_ids.stored,
        )
        for run in runs
    )
