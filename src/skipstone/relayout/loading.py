"""Load rows as raw chunks: in the order they come, cut into blocks, queryable as soon as they are committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from skipstone.catalog.values import Blocks, ChunkFacts, NewChunk, Note, new_chunk_name
from skipstone.layout.scheme import Scheme
from skipstone.store.checksum import merge_checksums
from skipstone.store.writer import BlockTarget, BlockWriter, Vectors, Written

__all__ = ["raw_chunks", "renumbered", "write_batches"]

RAW_FILE_ROWS = 1_000_000
"""A raw file has at most about so many rows, so that files can be dealt out to chunks."""


def write_batches(
    batches: Iterable[pa.RecordBatch], target: BlockTarget, block_rows: int, file_rows: int = RAW_FILE_ROWS
) -> Iterator[Written]:
    """Write a stream of rows as blocks of exactly `block_rows` (the last may have fewer), a file or so at a time."""
    writer, block, filled, rows_in_file = BlockWriter(target), 0, 0, 0
    try:
        for batch in batches:
            start = 0
            while start < batch.num_rows:
                taken = min(block_rows - filled, batch.num_rows - start)
                writer.write(block, batch.slice(start, taken), _no_features(taken))
                start, filled, rows_in_file = start + taken, filled + taken, rows_in_file + taken
                if filled == block_rows:
                    block, filled = block + 1, 0
                    if rows_in_file >= file_rows:
                        yield writer.close()
                        writer, block, rows_in_file = BlockWriter(target), 0, 0
        if rows_in_file:
            yield writer.close()
    except BaseException:
        writer.abort()
        raise


def _no_features(rows: int) -> Vectors:
    return np.zeros((rows, 0), np.uint8)


def raw_chunks(
    loaded: Sequence[Written], columns: Sequence[str], *, chunk_rows: int, source: str, notes: tuple[Note, ...] = ()
) -> tuple[NewChunk, ...]:
    """Deal what was loaded out to chunks of at most about `chunk_rows` rows, in order."""
    chunks: list[NewChunk] = []
    pending: list[Written] = []
    rows = 0
    for written in loaded:
        if pending and rows + written.rows > chunk_rows:
            chunks.append(_raw_chunk(pending, columns, source, notes))
            pending, rows = [], 0
        pending.append(written)
        rows += written.rows
    if rows:
        chunks.append(_raw_chunk(pending, columns, source, notes))
    return tuple(chunks)


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
