"""The second half of a rewrite: put the rows of a bucket in order, cut them into blocks, and write those."""

from __future__ import annotations

import bisect
import pickle
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skipstone.catalog.values import ROW_ID
from skipstone.relayout.cutting import block_ends
from skipstone.relayout.splitting import GROUP, ORDER, VECTOR, Part, PartKey, Tally
from skipstone.store.checksum import WHOLE_ROWS, Checksums, merge_checksums, require_equal
from skipstone.store.writer import BlockTarget, Vectors, Written, write_blocks

__all__ = ["Gather", "Gathered", "verify"]


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a bucket became: blocks of a part, or, for the bucket of tallies, what was read of each chunk."""

    part: Part | None
    written: Written | None
    tallies: tuple[Tally, ...] = ()


@dataclass(frozen=True, slots=True)
class Gather:
    """Writes any bucket of a rewrite: knows the part that each bucket belongs to, and where the part is stored."""

    parts: tuple[Part, ...]
    targets: tuple[BlockTarget, ...]
    block_rows: int
    tally_bucket: int

    def __call__(self, bucket: int, messages: Iterator[bytes]) -> Gathered:
        """Write the rows of a bucket, or add up the tallies."""
        if bucket == self.tally_bucket:
            return Gathered(None, None, _merged_by_chunk([pickle.loads(one) for one in messages]))
        number = bisect.bisect_right([part.first_bucket for part in self.parts], bucket) - 1
        rows = _in_order([pa.ipc.open_stream(one).read_all() for one in messages])
        return Gathered(self.parts[number], write_blocks(self.targets[number], self._blocks(rows)))

    def _blocks(self, rows: pa.Table) -> Iterator[tuple[int, pa.RecordBatch, Vectors]]:
        start = 0
        for number, end in enumerate(block_ends(rows[GROUP].to_numpy(), self.block_rows).tolist()):
            block = rows.slice(start, end - start)
            for batch in block.to_batches():
                yield number, batch, _vectors(batch)
            start = end


def _in_order(tables: list[pa.Table]) -> pa.Table:
    """Sort by group, then order key, then row id, so that the blocks do not depend on who sent what first."""
    table = pa.concat_tables(tables).combine_chunks()
    keys = (table[ROW_ID].to_numpy(), table[ORDER].to_numpy(), table[GROUP].to_numpy())
    return table.take(pa.array(np.lexsort(keys)))


def _vectors(batch: pa.RecordBatch) -> Vectors:
    column = batch.column(batch.schema.get_field_index(VECTOR))
    width = column.type.byte_width
    content = np.frombuffer(column.buffers()[1] or b"", np.uint8)
    return content[column.offset * width : (column.offset + len(column)) * width].reshape(len(column), width)


def _merged_by_chunk(tallies: list[Tally]) -> tuple[Tally, ...]:
    chunks = sorted({tally.chunk for tally in tallies})
    return tuple(Tally.merge([tally for tally in tallies if tally.chunk == chunk]) for chunk in chunks)


def verify(
    tally: Tally, written: dict[PartKey, Written], recorded: Checksums, masters: dict[int, frozenset[str]]
) -> None:
    """Raise VerificationFailed unless nothing was lost on the way from what was loaded to what was written.

    What was read is what was recorded when the chunk came to be, every part holds what was sent to it, and the master
    columns of all parts together hold all that was read.
    """
    what = f'chunk "{tally.chunk}"'
    require_equal(_comparable(recorded, tally.read), _comparable(tally.read, recorded), what=f"{what}, as recorded")
    for key, sent in tally.sent:
        require_equal(sent, written[key].checksums if key in written else (), what=f"{what}, layout {key[0]}")
    held = [
        tuple((name, one) for name, one in part.checksums if name in masters[layout])
        for (layout, _), part in written.items()
    ]
    columns = tuple((name, one) for name, one in tally.read if name != WHOLE_ROWS)
    require_equal(columns, merge_checksums(held), what=f"{what}, all layouts")


def _comparable(sums: Checksums, others: Checksums) -> Checksums:
    """The checksums that both have; of whole rows only where both speak of the same columns."""
    names, other_names = {name for name, _ in sums}, {name for name, _ in others}
    both = names & other_names if names == other_names else (names & other_names) - {WHOLE_ROWS}
    return tuple((name, one) for name, one in sums if name in both)
