"""Load rows as raw chunks: in the order they come, cut into blocks, queryable as soon as they are committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skipstone.catalog.values import Blocks, ChunkFacts, NewChunk, Note, new_chunk_name
from skipstone.layout.scheme import Scheme
from skipstone.store.checksum import merge_checksums
from skipstone.store.writer import BlockTarget, BlockWriter, Vectors, Written

__all__ = ["Loaded", "RowWriter", "raw_chunks", "renumbered", "write_batches"]

RAW_FILE_ROWS = 1_000_000
"""A raw file has at most about so many rows, so that files can be dealt out to chunks."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file or so of rows that were loaded; all of one slice, where rows are cut by a column."""

    written: Written
    slice: str = ""


def write_batches(
    batches: Iterable[pa.RecordBatch], target: BlockTarget, block_rows: int, file_rows: int = RAW_FILE_ROWS
) -> Iterator[Written]:
    """Write a stream of rows as blocks of exactly `block_rows` (the last may have fewer), a file or so at a time."""
    writer = RowWriter(target, block_rows, file_rows)
    try:
        for batch in batches:
            yield from writer.write(batch)
        yield from writer.close()
    except BaseException:
        writer.abort()
        raise


class RowWriter:
    """Writes rows as they come as blocks of exactly `block_rows`, in files of about `file_rows`."""

    def __init__(self, target: BlockTarget, block_rows: int, file_rows: int) -> None:
        self._target = target
        self._block_rows = block_rows
        self._file_rows = file_rows
        self._begin()

    def _begin(self) -> None:
        self._writer = BlockWriter(self._target)
        self._block = self._filled = self._rows_in_file = 0

    def write(self, batch: pa.RecordBatch) -> Iterator[Written]:
        """Take rows, and give what was written where a file is full by that."""
        start = 0
        while start < batch.num_rows:
            taken = min(self._block_rows - self._filled, batch.num_rows - start)
            self._writer.write(self._block, batch.slice(start, taken), _no_features(taken))
            start, self._filled, self._rows_in_file = start + taken, self._filled + taken, self._rows_in_file + taken
            if self._filled == self._block_rows:
                self.end_block()
                if self._rows_in_file >= self._file_rows:
                    yield from self.close()

    def end_block(self) -> None:
        """Let the next row begin a block, even where this one is not full."""
        if self._filled:
            self._block, self._filled = self._block + 1, 0

    def close(self) -> Iterator[Written]:
        """Finish the file and give what was written; further rows begin another."""
        if self._rows_in_file:
            yield self._writer.close()
            self._begin()

    def abort(self) -> None:
        """Give up, and delete the file that is open."""
        self._writer.abort()


def _no_features(rows: int) -> Vectors:
    return np.zeros((rows, 0), np.uint8)


def raw_chunks(
    loaded: Sequence[Loaded], columns: Sequence[str], *, chunk_rows: int, source: str
) -> tuple[NewChunk, ...]:
    """Deal what was loaded out to chunks of at most about `chunk_rows` rows of one slice each, in order."""
    by_slice: dict[str, list[Written]] = {}
    for one in loaded:
        by_slice.setdefault(one.slice, []).append(one.written)
    chunks: list[NewChunk] = []
    for slice_ in sorted(by_slice):
        notes: tuple[Note, ...] = (("slice", slice_),) if slice_ else ()
        parts = _of_chunk_size(by_slice[slice_], chunk_rows)
        chunks.extend(_raw_chunk(part, columns, source, notes) for part in parts)
    return tuple(chunks)


def _of_chunk_size(written: Sequence[Written], chunk_rows: int) -> Iterator[list[Written]]:
    pending: list[Written] = []
    rows = 0
    for one in written:
        if pending and rows + one.rows > chunk_rows:
            yield pending
            pending, rows = [], 0
        pending.append(one)
        rows += one.rows
    if rows:
        yield pending


def _raw_chunk(parts: list[Written], columns: Sequence[str], source: str, notes: tuple[Note, ...]) -> NewChunk:
    blocks = Blocks.concat(renumbered(parts))
    facts = ChunkFacts(
        sum(part.rows for part in parts), merge_checksums(part.checksums for part in parts), source, notes
    )
    return NewChunk(new_chunk_name(), Scheme.raw(columns), blocks, facts)


def renumbered(parts: Sequence[Written]) -> list[Blocks]:
    """Number the blocks of several writers through, so that their order is that of the writers."""
    numbered, first = [], 0
    for part in parts:
        rows = part.blocks.rows
        position = rows.schema.get_field_index("block")
        numbers = pa.array(np.arange(first, first + rows.num_rows, dtype=np.int32))
        renamed = rows.set_column(position, rows.schema.field(position), numbers)
        numbered.append(Blocks(renamed, part.blocks.columns, part.blocks.bounds))
        first += rows.num_rows
    return numbered
