"""Read chosen blocks: exactly their row groups, exactly the columns asked for, as a stream of record batches."""

from __future__ import annotations

import posixpath
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.catalog.location import Location
from skipstone.catalog.values import ROW_ID, Blocks
from skipstone.store.checksum import Checksums, checksums, merge_checksums
from skipstone.store.types import restored

__all__ = ["FileBlocks", "file_blocks", "read_blocks", "stored_checksums"]

BATCH_ROWS = 65_536
"""Rows of a batch at most, unless the caller says otherwise."""

COLUMN_CHUNKS_KEPT = 300_000
"""Parsed footers are kept per process up to so many column chunks in all, at about 900 bytes each (measured)."""


@dataclass(frozen=True, slots=True)
class FileBlocks:
    """Some row groups of one file, ascending; the path is relative to the table's root."""

    file: str
    row_groups: tuple[int, ...]


def file_blocks(files: Sequence[str], row_groups: Sequence[int]) -> tuple[FileBlocks, ...]:
    """Gather blocks, given as parallel files and row groups, into one request per file, in order of appearance.

    >>> file_blocks(["a", "b", "a"], [3, 0, 1])
    (FileBlocks(file='a', row_groups=(1, 3)), FileBlocks(file='b', row_groups=(0,)))
    """
    gathered: dict[str, list[int]] = {}
    for file, group in zip(files, row_groups, strict=True):
        gathered.setdefault(file, []).append(int(group))
    return tuple(FileBlocks(file, tuple(sorted(groups))) for file, groups in gathered.items())


def read_blocks(
    table: Location,
    reads: Iterable[FileBlocks],
    schema: pa.Schema,
    *,
    stored: Mapping[str, str] | None = None,
    row_ids: bool = False,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Read the columns of `schema`, with its names, order and types, from chosen blocks.

    `stored` names the physical column to read for a column where that is a duplicate; a file that does not have the
    duplicate gives the column itself. A column that a file does not have was added to the table later and is NULL
    there. With `row_ids` the last column of every batch is `ROW_ID`.
    """
    physical = stored or {}
    wanted = [(field, physical.get(field.name, field.name)) for field in schema]
    result = list(schema)
    if row_ids:
        wanted.append((_ROW_ID_FIELD, ROW_ID))
        result.append(_ROW_ID_FIELD)
    result_schema = pa.schema(result)
    for read in reads:
        yield from _read_file(table, read, wanted, result_schema, batch_rows)


def stored_checksums(
    table: Location,
    blocks: Blocks,
    schema: pa.Schema,
    *,
    whole_rows: Sequence[str] = (),
    stored: Mapping[str, str] | None = None,
) -> Checksums:
    """Checksum what blocks hold on disk, row ids included; `schema` names columns that all of them have.

    With `stored`, the duplicates named there are what is read for their columns.
    """
    reads = file_blocks(blocks.rows["file"].to_pylist(), blocks.rows["row_group"].to_pylist())
    row_ids = ROW_ID in blocks.columns
    rows = (*whole_rows, ROW_ID) if whole_rows and row_ids else whole_rows
    return merge_checksums(
        checksums(batch, whole_rows=rows) for batch in read_blocks(table, reads, schema, stored=stored, row_ids=row_ids)
    )


_ROW_ID_FIELD = pa.field(ROW_ID, pa.int64(), nullable=False)


def _read_file(
    table: Location, read: FileBlocks, wanted: Sequence[tuple[pa.Field, str]], schema: pa.Schema, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    footer, present = _FOOTERS.of(table, read.file)
    wanted = [(field, name if name in present else field.name) for field, name in wanted]
    columns = sorted({name for _, name in wanted if name in present})
    if not columns:
        yield from _rows_of_nulls(footer, read, schema, batch_rows)
        return
    with _open(table, read.file, footer) as file:
        for batch in file.iter_batches(batch_rows, row_groups=list(read.row_groups), columns=columns):
            yield _shaped(batch, wanted, schema)


def _shaped(batch: pa.RecordBatch, wanted: Sequence[tuple[pa.Field, str]], schema: pa.Schema) -> pa.RecordBatch:
    # Positions, because Parquet's reader takes names with dots for paths and may give more columns than were asked for.
    positions = {name: position for position, name in enumerate(batch.schema.names)}
    arrays = [
        restored(batch.column(positions[name]), field.type)
        if name in positions
        else pa.nulls(batch.num_rows, field.type)
        for field, name in wanted
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _rows_of_nulls(footer: Any, read: FileBlocks, schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
    left = sum(footer.row_group(group).num_rows for group in read.row_groups)
    while left > 0:
        rows = min(left, batch_rows)
        if len(schema):
            yield pa.RecordBatch.from_arrays([pa.nulls(rows, field.type) for field in schema], schema=schema)
        else:
            # The only way to make a batch that has rows and no columns.
            yield pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
        left -= rows


class _Footers:
    """The footers used last, parsed, with the names of the columns. Files never change, so none is ever stale."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._kept: OrderedDict[tuple[Location, str], tuple[Any, frozenset[str]]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def of(self, table: Location, path: str) -> tuple[Any, frozenset[str]]:
        """Give the footer of a file and the names of its columns."""
        key = (table, path)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        with _open(table, path, None) as file:
            footer = file.metadata
        found = (footer, frozenset(footer.schema.to_arrow_schema().names))
        with self._lock:
            if key not in self._kept:
                self._kept[key] = found
                self._size += _column_chunks(footer)
            while self._size > self._budget and len(self._kept) > 1:
                _, (dropped, _) = self._kept.popitem(last=False)
                self._size -= _column_chunks(dropped)
        return found


def _column_chunks(footer: Any) -> int:
    return int(footer.num_columns * footer.num_row_groups)


_FOOTERS = _Footers(COLUMN_CHUNKS_KEPT)


def _open(table: Location, path: str, footer: Any) -> Any:
    filesystem, base = table.filesystem()
    source = filesystem.open_input_file(posixpath.join(base, path))
    # Coalescing reads pays where every request costs a round trip; on a local disk it only costs threads.
    return pq.ParquetFile(source, metadata=footer, pre_buffer=not table.is_local)
