"""Read chosen blocks: exactly their row groups, exactly the columns asked for, as a stream of record batches."""

from __future__ import annotations

import posixpath
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.catalog.location import Location, told_as_damage
from skipstone.catalog.values import ROW_ID, Blocks
from skipstone.errors import StorageFailed
from skipstone.store.checksum import Checksums, checksums, merge_checksums
from skipstone.store.ranges import OBJECT_STORE, REQUESTS_AT_ONCE, Fetched, Pieces, coalesced
from skipstone.store.types import leaf_count, restored

__all__ = ["FileBlocks", "file_blocks", "read_blocks", "stored_checksums"]

BATCH_ROWS = 65_536
"""Rows of a batch at most, unless the caller says otherwise."""

FETCHED_BYTES = 64 * 1024 * 1024
"""From an object store, row groups are fetched together until they have so many bytes; two such turns are held."""

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
        with _told_as_ours(table, read.file):
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


@contextmanager
def _told_as_ours(table: Location, file: str) -> Iterator[None]:
    """Say of a file that a version of the table has what is wrong with it."""
    try:
        with told_as_damage(table, file):
            yield
    except FileNotFoundError as error:
        raise StorageFailed(
            f"{table.uri}/{file} is not there, though a version of the table has it; it was deleted after that version "
            "was opened (skipstone vacuum deletes files of old versions), or by something else"
        ) from error


_ROW_ID_FIELD = pa.field(ROW_ID, pa.int64(), nullable=False)


def _read_file(
    table: Location, read: FileBlocks, wanted: Sequence[tuple[pa.Field, str]], schema: pa.Schema, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    footer, leaves = _FOOTERS.of(table, read.file)
    wanted = [(field, name if name in leaves else field.name) for field, name in wanted]
    columns = sorted({name for _, name in wanted if name in leaves})
    if not columns:
        yield from _rows_of_nulls(footer, read, schema, batch_rows)
        return
    of_columns = [leaf for name in columns for leaf in leaves[name]]
    batches = _local_batches if table.is_local else _fetched_batches
    for batch in batches(table, read, footer, columns, of_columns, batch_rows):
        yield _shaped(batch, wanted, schema)


def _local_batches(
    table: Location, read: FileBlocks, footer: Any, columns: list[str], leaves: list[int], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    with _open(table, read.file) as source, pq.ParquetFile(source, metadata=footer) as file:
        yield from file.iter_batches(batch_rows, row_groups=list(read.row_groups), columns=columns)


def _fetched_batches(
    table: Location, read: FileBlocks, footer: Any, columns: list[str], leaves: list[int], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Fetch the column chunks of some row groups in few requests, and those of the next while these are decoded.

    pyarrow's own coalescing has fixed limits in `ParquetFile`: it reads through gaps of up to 8 KiB.
    """
    with _open(table, read.file) as source, ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        fetched = Fetched(source)
        turns = _turns(footer, read.row_groups, leaves)
        sent = [Pieces(source, coalesced(turns[0][1], OBJECT_STORE), pool)]
        try:
            with pq.ParquetFile(pa.PythonFile(fetched, mode="r"), metadata=footer) as file:
                for number, (groups, _) in enumerate(turns):
                    if number + 1 < len(turns):
                        sent.append(Pieces(source, coalesced(turns[number + 1][1], OBJECT_STORE), pool))
                    fetched.pieces = sent.pop(0)
                    yield from file.iter_batches(batch_rows, row_groups=groups, columns=columns)
        finally:
            for pieces in sent:
                pieces.give_up()


def _turns(
    footer: Any, row_groups: Sequence[int], leaves: Sequence[int]
) -> list[tuple[list[int], list[tuple[int, int]]]]:
    """Cut row groups into those that are fetched together, with the ranges of their column chunks."""
    turns: list[tuple[list[int], list[tuple[int, int]]]] = []
    size = FETCHED_BYTES
    for group in row_groups:
        if size >= FETCHED_BYTES:
            turns.append(([], []))
            size = 0
        metadata = footer.row_group(group)
        ranges = [_chunk_range(metadata.column(leaf)) for leaf in leaves]
        turns[-1][0].append(group)
        turns[-1][1].extend(ranges)
        size += sum(end - start for start, end in ranges)
    return turns


def _chunk_range(chunk: Any) -> tuple[int, int]:
    starts = [chunk.data_page_offset]
    # Some writers name an offset of 0 where there is no dictionary.
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < chunk.data_page_offset:
        starts.append(chunk.dictionary_page_offset)
    return min(starts), min(starts) + chunk.total_compressed_size


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
    """The footers used last, parsed, with the Parquet columns of each column. Files never change, so none is stale."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._kept: OrderedDict[tuple[Location, str], tuple[Any, dict[str, range]]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def of(self, table: Location, path: str) -> tuple[Any, dict[str, range]]:
        """Give the footer of a file and the numbers of the Parquet columns that each of its columns consists of."""
        key = (table, path)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        with _open(table, path) as source:
            footer = pq.read_metadata(source)
        found = (footer, _leaves(footer.schema.to_arrow_schema()))
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


def _leaves(schema: pa.Schema) -> dict[str, range]:
    numbers, first = {}, 0
    for field in schema:
        count = leaf_count(field.type)
        numbers[field.name] = range(first, first + count)
        first += count
    return numbers


def _open(table: Location, path: str) -> Any:
    filesystem, base = table.filesystem()
    return filesystem.open_input_file(posixpath.join(base, path))
