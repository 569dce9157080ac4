"""Catalog files in memory: read once, column by column, and kept for all snapshots that share them.

A catalog file never changes, so what was read of it is never stale. Where a segment holds the blocks of a file, they
are read from there, together with those of many others.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.catalog.location import Location, told_as_damage
from skipstone.catalog.records import ChunkHeader, bounds_fields, read_bounds, read_facts, read_header
from skipstone.catalog.segments import (
    SLIM_COLUMNS,
    GroupReader,
    Place,
    Segment,
    SegmentGroup,
    bytes_field,
    members_of_next,
    places,
    read_segments,
    spread,
    write_segment,
)
from skipstone.catalog.values import BLOCK_SCHEMA, BlockSet, ChunkFacts, ExpressionBounds, matrix_of

__all__ = ["ChunkFiles"]

READERS = 16
"""Files read at once where there are many: on an object store each costs a round trip."""

FILES_PER_SEGMENT = 32
"""So many catalog files outside of segments are borne before they are put into one."""

_SLIM_SCHEMA = pa.schema([BLOCK_SCHEMA.field(name) for name in SLIM_COLUMNS])

Found = TypeVar("Found")

Run: TypeAlias = "str | tuple[SegmentGroup, int, int]"
"""Blocks that lie together: all of a catalog file, or rows of a segment's group from a start to an end."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """What is always kept of a file that is in no segment."""

    header: ChunkHeader
    slim: pa.Table


class ChunkFiles:
    """The catalog files of chunks below a location, read through a cache that threads may share."""

    def __init__(self, location: Location, segments: Location) -> None:
        self._location = location
        self._segments_at = segments
        self._segments: tuple[Segment, ...] = ()
        self._places: dict[str, Place] = {}
        self._entries: dict[str, _Entry] = {}
        self._columns: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()

    def block_sets(self, files: Mapping[str, str]) -> tuple[BlockSet, ...]:
        """Arrange chunks, given as catalog file and chunk name, into block sets; ordered by their first chunk."""
        by_shape: dict[Any, list[ChunkHeader]] = {}
        for header in sorted(self._headers(files), key=lambda header: header.chunk):
            by_shape.setdefault(header.shape, []).append(header)
        return tuple(self._block_set(headers) for headers in by_shape.values())

    def facts(self, path: str) -> ChunkFacts:
        """What is known of the chunk of a catalog file as a whole."""
        return read_facts(self._open(path))

    def data_files(self, files: Mapping[str, str]) -> set[str]:
        """The data files that the chunks of these catalog files consist of."""
        return {name for blocks in self.block_sets(files) for name in blocks.files}

    def put_together(self, files: Mapping[str, str]) -> None:
        """Write a segment, if there are so many live files outside of segments that the next reader will be glad."""
        self._find_places(files)
        loose = sum(path not in self._places for path in files)
        if loose < FILES_PER_SEGMENT:
            return
        members = members_of_next(files, {path: place for path, place in self._places.items() if path in files})
        readers: dict[str, GroupReader] = {}
        headers = self._headers({path: files[path] for path in members})
        segment = write_segment(self._segments_at, headers, lambda header: self._all_rows(header, readers))
        with self._lock:
            self._segments = (*self._segments, segment)
            self._places = places(self._segments, files)

    def used_segments(self, files: Mapping[str, str]) -> set[str]:
        """The files of the segments that are of use for these catalog files, relative to the segments' place."""
        segments = read_segments(self._segments_at)
        used = {place.group.file for place in places(segments, files).values()}
        kept = [one for one in segments if any(group.file in used for group in one.groups)]
        return {name for one in kept for name in (one.manifest, *(group.file for group in one.groups))}

    def keep_only(self, paths: Iterable[str]) -> None:
        """Forget what is kept of all other files."""
        kept = set(paths)
        with self._lock:
            self._places = {path: place for path, place in self._places.items() if path in kept}
            self._entries = {path: entry for path, entry in self._entries.items() if path in kept}
            kept.update(place.group.file for place in self._places.values())
            self._columns = {key: found for key, found in self._columns.items() if key[0] in kept}

    def column(self, run: Run, name: str) -> pa.Array:
        """A column of `BLOCK_SCHEMA` of a run of blocks."""
        if not isinstance(run, str):
            try:
                return self._column_of_run(run, name)
            except FileNotFoundError:
                return joined([self.column(path, name) for path in _files_of(run)])
        entry = self._entries.get(run)
        if name in SLIM_COLUMNS and entry is not None:
            return _whole(entry.slim[name])
        return self._once(run, name, lambda: _whole(self._open(run).read(columns=[name])[name]))

    def column_bytes(self, run: Run, number: int, columns: int) -> pa.Array:
        """The stored bytes of one of some physical columns, of a run of blocks."""
        if not isinstance(run, str):
            try:
                return self._column_of_run(run, bytes_field(number))
            except FileNotFoundError:
                return joined([self.column_bytes(path, number, columns) for path in _files_of(run)])
        lists = self._once(run, "column_bytes", lambda: self._open(run).read(columns=["column_bytes"])["column_bytes"])
        return pa.array(matrix_of(lists, columns)[:, number])

    def bounds(self, run: Run, number: int, kind: pa.DataType) -> ExpressionBounds:
        """The bounds of one tracked expression of a run of blocks."""
        fields = bounds_fields(number)
        if not isinstance(run, str):
            group, start, end = run
            try:
                whole = self._once(group.file, fields[0], lambda: read_bounds(self._group(group, fields), number, kind))
            except FileNotFoundError:
                return ExpressionBounds.concat([self.bounds(path, number, kind) for path in _files_of(run)])
            return whole if end - start == len(whole) else whole.slice(start, end - start)
        return self._once(run, fields[0], lambda: read_bounds(self._open(run).read(columns=fields), number, kind))

    def _headers(self, files: Mapping[str, str]) -> list[ChunkHeader]:
        self._find_places(files)
        with self._lock:
            placed, entries = self._places, dict(self._entries)
        missing = [path for path in files if path not in placed and path not in entries]
        found = dict(zip(missing, in_parallel(lambda path: self._read_entry(path, files[path]), missing), strict=True))
        entries |= found
        with self._lock:
            self._entries |= found
        return [placed[path].header if path in placed else entries[path].header for path in files]

    def _find_places(self, files: Mapping[str, str]) -> None:
        """Look for segments, if enough is missing for a segment to exist that we have not seen."""
        with self._lock:
            unknown = sum(path not in self._places and path not in self._entries for path in files)
        if unknown < FILES_PER_SEGMENT // 2:
            return
        segments = read_segments(self._segments_at)
        found = places(segments, files)
        with self._lock:
            self._segments = segments
            # What is in use already stays where it is found, for what was loaded of it is kept.
            self._places = {**found, **self._places}

    def _read_entry(self, path: str, chunk: str) -> _Entry:
        file = self._open(path)
        slim = file.read(columns=list(SLIM_COLUMNS)).cast(_SLIM_SCHEMA)
        return _Entry(read_header(path, chunk, file), slim)

    def _open(self, path: str) -> pq.ParquetFile:
        # Whole files are fetched: they are small, and one request costs less than several.
        with told_as_damage(self._location, path):
            return pq.ParquetFile(io.BytesIO(self._location.read(path)))

    def _column_of_run(self, run: tuple[SegmentGroup, int, int], name: str) -> pa.Array:
        group, start, end = run
        whole = self._once(group.file, name, lambda: self._group_column(group, name))
        return whole if end - start == len(whole) else whole.slice(start, end - start)

    def _group(self, group: SegmentGroup, columns: Sequence[str]) -> pa.Table:
        filesystem, base = self._segments_at.filesystem()
        dictionary = [name for name in columns if name == "file"]
        with filesystem.open_input_file(f"{base}/{group.file}") as source:
            return pq.ParquetFile(source, read_dictionary=dictionary, pre_buffer=True).read(columns=list(columns))

    def _group_column(self, group: SegmentGroup, name: str) -> pa.Array:
        column = self._group(group, [name])[name]
        return _whole(column.unify_dictionaries() if name == "file" else column)

    def _all_rows(self, header: ChunkHeader, readers: dict[str, GroupReader]) -> pa.Table:
        place = self._places.get(header.path)
        if place is None:
            return spread(self._open(header.path).read(), header)
        group = place.group
        if group.file not in readers:
            readers[group.file] = GroupReader(self._segments_at, group)
        start, end = (int(one) for one in group.offsets[place.position : place.position + 2])
        return readers[group.file].rows(start, end)

    def _once(self, path: str, name: str, load: Callable[[], Found]) -> Found:
        key = (path, name)
        if key not in self._columns:
            found = load()
            with self._lock:
                self._columns.setdefault(key, found)
                return self._columns[key]  # type: ignore[no-any-return]
        return self._columns[key]  # type: ignore[no-any-return]

    def _block_set(self, headers: Sequence[ChunkHeader]) -> BlockSet:
        first = headers[0]
        counts = np.array([header.blocks for header in headers], dtype=np.int64)
        return BlockSet(
            scheme=first.scheme,
            chunks=tuple(header.chunk for header in headers),
            offsets=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)]),
            columns=first.columns,
            tracked=dict(first.tracked),
            source=_Chunks(self, self._runs(headers), len(first.columns), first.tracked),
        )

    def _runs(self, headers: Sequence[ChunkHeader]) -> tuple[Run, ...]:
        placed = [self._places.get(header.path) for header in headers]
        follows = [False, *(_follows(one, other) for one, other in pairwise(placed))]
        runs: list[Run] = []
        first = 0
        for header, place, joins in zip(headers, placed, follows, strict=True):
            if place is None:
                runs.append(header.path)
                continue
            start, end = (int(one) for one in place.group.offsets[place.position : place.position + 2])
            if joins:
                runs.pop()
                start = first
            else:
                first = start
            runs.append((place.group, start, end))
        return tuple(runs)


@dataclass(frozen=True, slots=True)
class _Chunks:
    """The columns of several runs of blocks of one shape, one after the other."""

    files: ChunkFiles
    runs: tuple[Run, ...]
    columns: int
    tracked: tuple[tuple[str, pa.DataType], ...]

    def column(self, name: str) -> pa.Array:
        pieces = in_parallel(lambda run: self.files.column(run, name), self.runs)
        return joined(pieces)

    def column_bytes(self, number: int) -> pa.Array:
        return joined(in_parallel(lambda run: self.files.column_bytes(run, number, self.columns), self.runs))

    def bounds(self, text: str) -> ExpressionBounds:
        number, kind = next((i, kind) for i, (name, kind) in enumerate(self.tracked) if name == text)
        pieces = in_parallel(lambda run: self.files.bounds(run, number, kind), self.runs)
        return pieces[0] if len(pieces) == 1 else ExpressionBounds.concat(pieces)


def in_parallel(work: Callable[[Any], Found], items: Sequence[Any]) -> list[Found]:
    """Do some work for each item, in order, in a few threads where there are many.

    >>> in_parallel(str.upper, ["a", "b"])
    ['A', 'B']
    """
    if len(items) <= READERS // 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(work, items))


def joined(pieces: Sequence[pa.Array]) -> pa.Array:
    """Put arrays of one kind of values after each other; if one of them has a dictionary, all get one.

    >>> joined([pa.array(["a"]), pa.array(["b", "a"]).dictionary_encode()]).indices.to_pylist()
    [0, 1, 0]
    """
    if len(pieces) == 1:
        return pieces[0]
    if not any(pa.types.is_dictionary(piece.type) for piece in pieces):
        return pa.concat_arrays(pieces)
    encoded = [one if pa.types.is_dictionary(one.type) else one.dictionary_encode() for one in pieces]
    return _whole(pa.chunked_array(encoded).unify_dictionaries())


def _files_of(run: tuple[SegmentGroup, int, int]) -> list[str]:
    """The catalog files that a run repeats: a vacuum may have deleted a segment that we still look into."""
    group, start, end = run
    first, last = np.searchsorted(group.offsets, [start, end])
    return [header.path for header in group.headers[first:last]]


def _follows(one: Place | None, other: Place | None) -> bool:
    if one is None or other is None:
        return False
    return one.group.file == other.group.file and other.position == one.position + 1


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
