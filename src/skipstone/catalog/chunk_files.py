"""Catalog files in memory: read once, column by column, and kept for all snapshots that share them.

A catalog file never changes, so what was read of it is never stale.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.catalog.location import Location
from skipstone.catalog.records import ChunkHeader, bounds_fields, read_bounds, read_facts, read_header
from skipstone.catalog.values import BLOCK_SCHEMA, BlockSet, ChunkFacts, ExpressionBounds

__all__ = ["ChunkFiles"]

READERS = 16
"""Files read at once where there are many: on an object store each costs a round trip."""

_SLIM = [name for name in BLOCK_SCHEMA.names if name != "column_bytes"]
"""Read together with the header, in one go: nearly every plan needs them, and they are small."""

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class _Entry:
    """What is always kept of a file."""

    header: ChunkHeader
    slim: pa.Table


class ChunkFiles:
    """The catalog files of chunks below a location, read through a cache that threads may share."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._entries: dict[str, _Entry] = {}
        self._columns: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()

    def block_sets(self, files: Mapping[str, str]) -> tuple[BlockSet, ...]:
        """Arrange chunks, given as catalog file and chunk name, into block sets; ordered by their first chunk."""
        entries = self._load(files)
        by_shape: dict[Any, list[ChunkHeader]] = {}
        for entry in sorted(entries, key=lambda entry: entry.header.chunk):
            by_shape.setdefault(entry.header.shape, []).append(entry.header)
        return tuple(self._block_set(headers) for headers in by_shape.values())

    def facts(self, path: str) -> ChunkFacts:
        """What is known of the chunk of a catalog file as a whole."""
        return read_facts(self._open(path))

    def data_files(self, files: Mapping[str, str]) -> set[str]:
        """The data files that the chunks of these catalog files consist of."""
        names: set[str] = set()
        for entry in self._load(files):
            names.update(entry.slim["file"].unique().to_pylist())
        return names

    def keep_only(self, paths: Iterable[str]) -> None:
        """Forget what is kept of all other files."""
        kept = set(paths)
        with self._lock:
            self._entries = {path: entry for path, entry in self._entries.items() if path in kept}
            self._columns = {key: found for key, found in self._columns.items() if key[0] in kept}

    def column(self, path: str, name: str) -> pa.Array:
        """A column of `BLOCK_SCHEMA` of one file."""
        entry = self._entries.get(path)
        if name in _SLIM and entry is not None:
            return _whole(entry.slim[name])
        return self._once(path, name, lambda: _whole(self._open(path).read(columns=[name])[name]))

    def bounds(self, path: str, number: int, kind: pa.DataType) -> ExpressionBounds:
        """The bounds of one tracked expression of one file."""
        fields = bounds_fields(number)
        return self._once(path, fields[0], lambda: read_bounds(self._open(path).read(columns=fields), number, kind))

    def _load(self, files: Mapping[str, str]) -> list[_Entry]:
        missing = [path for path in files if path not in self._entries]
        found = in_parallel(lambda path: self._read_entry(path, files[path]), missing)
        with self._lock:
            self._entries.update(zip(missing, found, strict=True))
            return [self._entries[path] for path in files]

    def _read_entry(self, path: str, chunk: str) -> _Entry:
        file = self._open(path)
        slim = file.read(columns=_SLIM).cast(pa.schema([BLOCK_SCHEMA.field(name) for name in _SLIM]))
        return _Entry(read_header(path, chunk, file), slim)

    def _open(self, path: str) -> pq.ParquetFile:
        # Whole files are fetched: they are small, and one request costs less than several.
        return pq.ParquetFile(io.BytesIO(self._location.read(path)))

    def _once(self, path: str, name: str, load: Callable[[], Found]) -> Found:
        key = (path, name)
        if key not in self._columns:
            found = load()
            with self._lock:
                self._columns.setdefault(key, found)
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
            source=_Chunks(self, tuple(header.path for header in headers), first.tracked),
        )


@dataclass(frozen=True, slots=True)
class _Chunks:
    """The columns of several catalog files of one shape, one after the other."""

    files: ChunkFiles
    paths: tuple[str, ...]
    tracked: tuple[tuple[str, pa.DataType], ...]

    def column(self, name: str) -> pa.Array:
        pieces = in_parallel(lambda path: self.files.column(path, name), self.paths)
        return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)

    def bounds(self, text: str) -> ExpressionBounds:
        number, kind = next((i, kind) for i, (name, kind) in enumerate(self.tracked) if name == text)
        pieces = in_parallel(lambda path: self.files.bounds(path, number, kind), self.paths)
        return pieces[0] if len(pieces) == 1 else ExpressionBounds.concat(pieces)


def in_parallel(work: Callable[[str], Found], items: Sequence[str]) -> list[Found]:
    """Do some work for each item, in order, in a few threads where there are many.

    >>> in_parallel(str.upper, ["a", "b"])
    ['A', 'B']
    """
    if len(items) <= READERS // 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(work, items))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
