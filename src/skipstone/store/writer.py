"""Write blocks: each one row group of a plain Parquet file, each file named by uuid and complete before it is named.

The writer streams. It holds the rows of one block, writes them as one row group, and goes on; memory is bounded by a
block, never by a chunk. It needs nothing but its target, which is small and picklable, so that it runs in any process.
Files of a task that fails or is repeated are named nowhere, and `vacuum` finds them.
"""

from __future__ import annotations

import contextlib
import posixpath
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.catalog.location import Location
from skipstone.catalog.values import (
    BLOCK_SCHEMA,
    CLUSTERED,
    ROW_ID,
    UNKNOWN,
    Blocks,
    fixed_lists,
    require_chunk_name,
)
from skipstone.errors import InvalidInput
from skipstone.layout.scheme import Scheme
from skipstone.store.checksum import Checksums, checksums, merge_checksums, require_equal
from skipstone.store.statistics import BlockBounds, Tracked, bounds_column, bounds_of
from skipstone.store.types import leaf_count, storable_schema

__all__ = ["BlockTarget", "BlockWriter", "Vectors", "Written", "write_blocks"]

ROW_GROUPS_PER_FILE = 100
"""Footers grow with columns times row groups, and every reader of a file parses the whole footer."""

Vectors: TypeAlias = npt.NDArray[np.uint8]
"""Feature vectors of rows, one row of packed bytes each; bit j is in byte j // 8, lowest bit first."""


@dataclass(frozen=True, slots=True)
class BlockTarget:
    """Where the blocks of one part of one layout of a chunk go, and how they are stored.

    `schema` has the stored columns in stored order, without duplicates and row ids; `order` says where among them the
    duplicates are, which come last without it. `whole_rows` are the columns whose rows are checksummed as rows, with
    the row id where ids are stored; the checksum sees values that moved.
    """

    table: Location
    chunk: str
    schema: pa.Schema
    layout: int = 0
    part: int = CLUSTERED
    duplicates: tuple[tuple[str, str], ...] = ()
    order: tuple[str, ...] = ()
    row_ids: bool = False
    vector_bytes: int = 0
    tracked: tuple[Tracked, ...] = ()
    whole_rows: tuple[str, ...] = ()
    features: tuple[tuple[str, int], ...] = ()
    """BOOLEAN columns that say of each row what its feature vector says: their names, and the bit that each shows."""
    row_groups_per_file: int = ROW_GROUPS_PER_FILE
    compression: str = "zstd"

    @classmethod
    def of(
        cls,
        table: Location,
        chunk: str,
        schema: pa.Schema,
        scheme: Scheme,
        *,
        layout: int = 0,
        part: int = CLUSTERED,
        tracked: Sequence[Tracked] = (),
    ) -> BlockTarget:
        """The target for a part of a layout of a scheme; `schema` is the table's.

        Only expressions over columns that are stored there are tracked.
        """
        chosen = scheme.layouts[layout]
        names = [name for name in chosen.columns if part == CLUSTERED or name in chosen.masters]
        if not names:
            raise InvalidInput(f"layout {layout} has no masters, so it has no rest to write")
        duplicates = tuple((stored, source) for stored, source in chosen.duplicates if source in set(names))
        here = {*names, *(stored for stored, _ in duplicates)}
        return cls(
            table,
            require_chunk_name(chunk),
            storable_schema(pa.schema([schema.field(name) for name in names])),
            layout,
            part,
            duplicates,
            tuple(name for name in chosen.stored if name in here),
            scheme.needs_row_ids,
            (len(scheme.features) + 7) // 8,
            tuple(one for one in tracked if one.columns <= set(names)),
            tuple(names),
            scheme.feature_columns(chosen),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The physical columns, in stored order."""
        stored = self.order or (*self.schema.names, *(name for name, _ in self.duplicates))
        return (*stored, *([ROW_ID] if self.row_ids else []), *(name for name, _ in self.features))

    @property
    def directory(self) -> str:
        """The directory of the files, relative to the table's root."""
        return posixpath.join("data", self.chunk, str(self.layout))


@dataclass(frozen=True, slots=True)
class Written:
    """What was written: blocks for the catalog, and checksums over all their rows."""

    blocks: Blocks
    checksums: Checksums

    @property
    def rows(self) -> int:
        """The number of rows written."""
        return int(np.sum(self.blocks.rows["rows"].to_numpy()))

    @classmethod
    def merge(cls, parts: Iterable[Written]) -> Written:
        """What several writers wrote together, ordered by layout, part and block."""
        found = list(parts)
        sums = merge_checksums(one.checksums for one in found)
        return cls(Blocks.concat([one.blocks for one in found]).sorted(), sums)


class BlockWriter:
    """Write the blocks of one target, one after the other.

    Used as a context manager it deletes what it wrote when the work inside fails; call `close` to get what was written.
    """

    def __init__(self, target: BlockTarget) -> None:
        self._target = target
        self._physical = _physical_schema(target)
        self._stored = pa.schema(list(self._physical)[: len(target.columns) - len(target.features)])
        self._filesystem, self._base = target.table.filesystem()
        self._pending: list[pa.RecordBatch] = []
        self._pending_vectors: list[Vectors] = []
        self._pending_features: list[pa.RecordBatch] = []
        self._vectors_known = True
        self._block: int | None = None
        self._file: _OpenFile | None = None
        self._files: list[str] = []
        self._rows: list[tuple[int, str, int, int, bytes | None, int, int]] = []
        self._sizes: list[npt.NDArray[np.int64]] = []
        self._bounds: list[list[BlockBounds]] = [[] for _ in target.tracked]
        self._checksums: list[Checksums] = []

    def __enter__(self) -> BlockWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()

    def write(self, block: int, batch: pa.RecordBatch, vectors: Vectors | None = None) -> None:
        """Add rows to a block. Blocks come in ascending order; the rows of one come together.

        `batch` has the target's columns, in any order and among others, with `ROW_ID` where ids are stored. `vectors`
        are the feature vectors of the rows; without them the block's vector is unknown.
        """
        if self._block is not None and block < self._block:
            raise InvalidInput(f"blocks must come in ascending order; {block} came after {self._block}")
        if block != self._block:
            self._finish_block()
            self._block = block
        if batch.num_rows == 0:
            return
        self._pending.append(conformed(batch, self._target))
        if self._target.features:
            self._pending_features.append(_feature_columns(self._target, vectors, batch.num_rows))
        if vectors is None:
            self._vectors_known = False
        else:
            self._pending_vectors.append(_united(vectors, self._target.vector_bytes, batch.num_rows))

    def close(self) -> Written:
        """Finish the last block and file, and say what was written."""
        self._finish_block()
        self._close_file()
        return Written(self._blocks(), self._verified(merge_checksums(self._checksums)))

    def abort(self) -> None:
        """Give up, and delete what was written as far as that is possible."""
        if self._file is not None:
            self._file.abandon()
            self._file = None
        for path in self._files:
            # What it failed with is the error to be told; a file that stays is an orphan, which vacuum finds.
            with contextlib.suppress(OSError):
                self._target.table.delete(path)
        self._files = []

    def _finish_block(self) -> None:
        if not self._pending:
            self._pending_vectors, self._vectors_known = [], True
            return
        rows = pa.Table.from_batches(self._pending)
        vector = np.bitwise_or.reduce(np.stack(self._pending_vectors)).tobytes() if self._vectors_known else None
        self._pending, self._pending_vectors, self._vectors_known = [], [], True
        stored = _with_duplicates(rows, self._target, self._stored)
        self._checksums.append(checksums(stored, whole_rows=self._whole_rows))
        for tracked, found in zip(self._target.tracked, self._bounds, strict=True):
            values = tracked.values(rows)
            found.append(BlockBounds() if values is None else bounds_of(values))
        first, last = _row_id_range(rows) if self._target.row_ids else (UNKNOWN, UNKNOWN)
        if self._file is None:
            self._file = self._open_file()
        if self._target.features:
            features = pa.Table.from_batches(self._pending_features)
            stored = pa.Table.from_arrays([*stored.columns, *features.columns], schema=self._physical)
            self._pending_features = []
        group = self._file.write(stored)
        assert self._block is not None
        self._rows.append((self._block, self._file.path, group, rows.num_rows, vector, first, last))
        if group + 1 >= self._target.row_groups_per_file:
            self._close_file()

    @property
    def _whole_rows(self) -> tuple[str, ...]:
        columns = self._target.whole_rows
        return (*columns, ROW_ID) if columns and self._target.row_ids else columns

    def _verified(self, sums: Checksums) -> Checksums:
        """The checksums of the columns; VerificationFailed where a duplicate is not what its source is."""
        by_name = dict(sums)
        for stored, source in self._target.duplicates:
            if by_name:
                expected = ((stored, by_name[source]),)
                require_equal(expected, sums, what=f'chunk "{self._target.chunk}", duplicate of "{source}"')
        duplicates = {stored for stored, _ in self._target.duplicates}
        return tuple((name, one) for name, one in sums if name not in duplicates)

    def _open_file(self) -> _OpenFile:
        path = posixpath.join(self._target.directory, f"{uuid.uuid4().hex}.parquet")
        self._files.append(path)
        full = posixpath.join(self._base, path)
        if self._target.table.is_local:
            self._filesystem.create_dir(posixpath.dirname(full), recursive=True)
        return _OpenFile(path, self._filesystem.open_output_stream(full), self._physical, self._target.compression)

    def _close_file(self) -> None:
        if self._file is None:
            return
        metadata = self._file.close()
        self._file = None
        groups = self._rows[len(self._sizes) :]
        if metadata.num_row_groups != len(groups):
            raise AssertionError(f"{len(groups)} blocks became {metadata.num_row_groups} row groups; please report it")
        for group, (_, _, _, rows, _, _, _) in enumerate(groups):
            found = metadata.row_group(group)
            if found.num_rows != rows:
                raise AssertionError(f"a block of {rows} rows became {found.num_rows} rows; please report it")
            self._sizes.append(_column_bytes(found, self._physical))

    def _blocks(self) -> Blocks:
        target = self._target
        count = len(self._rows)
        block, file, group, rows, vector, first, last = (
            zip(*self._rows, strict=True) if self._rows else ((), (), (), (), (), (), ())
        )
        sizes = np.stack(self._sizes) if self._sizes else np.zeros((0, len(target.columns)), dtype=np.int64)
        columns = [
            pa.array(np.full(count, target.layout), pa.int16()),
            pa.array(np.full(count, target.part), pa.int8()),
            pa.array(block, pa.int32()),
            pa.array(file, pa.string()),
            pa.array(group, pa.int32()),
            pa.array(rows, pa.int64()),
            pa.array(vector, pa.binary()),
            pa.array(first, pa.int64()),
            pa.array(last, pa.int64()),
            fixed_lists(sizes),
        ]
        bounds = tuple(
            (tracked.text, bounds_column(found, tracked.type))
            for tracked, found in zip(target.tracked, self._bounds, strict=True)
        )
        return Blocks(pa.Table.from_arrays(columns, schema=BLOCK_SCHEMA), target.columns, bounds)


def write_blocks(target: BlockTarget, pieces: Iterable[tuple[int, pa.RecordBatch, Vectors | None]]) -> Written:
    """Write blocks from a stream of (block, rows, feature vectors of the rows), and say what was written."""
    with BlockWriter(target) as writer:
        for block, batch, vectors in pieces:
            writer.write(block, batch, vectors)
        return writer.close()


def conformed(batch: pa.RecordBatch, target: BlockTarget) -> pa.RecordBatch:
    """Take the target's columns from a batch, in its order and with its types, and refuse NULLs it does not allow."""
    fields = [*target.schema, *([pa.field(ROW_ID, pa.int64(), nullable=False)] if target.row_ids else [])]
    columns = []
    for field in fields:
        position = batch.schema.get_field_index(field.name)
        if position < 0:
            raise InvalidInput(f'the rows to be written have no column "{field.name}"')
        column = batch.column(position)
        column = column if column.type == field.type else column.cast(field.type)
        if not field.nullable and column.null_count:
            raise InvalidInput(f'column "{field.name}" may not be NULL, but {column.null_count} of its values are')
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


class _OpenFile:
    """A Parquet file that is being written."""

    def __init__(self, path: str, sink: Any, schema: pa.Schema, compression: str) -> None:
        self.path = path
        self._sink = sink
        self._found: list[Any] = []
        self._groups = 0
        self._writer = pq.ParquetWriter(
            sink,
            schema,
            version="2.6",
            compression=compression,
            store_schema=False,
            # Decimals of at most 18 digits as integers, as Spark stores them: read three to four times faster.
            store_decimal_as_integer=True,
            metadata_collector=self._found,
            **_encodings(schema),
        )

    def write(self, rows: pa.Table) -> int:
        """Write one row group and give its number."""
        self._writer.write_table(rows, row_group_size=rows.num_rows)
        self._groups += 1
        return self._groups - 1

    def close(self) -> Any:
        """Write the footer and give it."""
        self._writer.close()
        self._sink.close()
        return self._found[0]

    def abandon(self) -> None:
        """Close what is open; the file is not worth anything."""
        # A writer that failed in the middle of a row group cannot close; what it failed with is the error to be told.
        with contextlib.suppress(Exception):
            self._writer.close()
        self._sink.close()


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    if ROW_ID not in schema.names:
        return {}
    # Row ids ascend within a block and have no repeats: differences are small, a dictionary would only be overhead.
    empty = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), empty, store_schema=False)
    leaves = pq.ParquetFile(pa.BufferReader(empty.getvalue())).schema
    paths = [leaves.column(i).path for i in range(len(leaves))]
    return {
        "use_dictionary": [path for path in paths if path != ROW_ID],
        "column_encoding": {ROW_ID: "DELTA_BINARY_PACKED"},
    }


def _physical_schema(target: BlockTarget) -> pa.Schema:
    """The schema of the files: columns, duplicates, row ids and features."""
    sources = dict(target.duplicates)
    others = {ROW_ID: pa.field(ROW_ID, pa.int64(), nullable=False)}
    others |= {name: pa.field(name, pa.bool_()) for name, _ in target.features}
    return pa.schema(
        [
            others[name] if name in others else target.schema.field(sources.get(name, name)).with_name(name)
            for name in target.columns
        ]
    )


def _feature_columns(target: BlockTarget, vectors: Vectors | None, rows: int) -> pa.RecordBatch:
    """What the vectors say of each feature, as columns; NULL, that is unknown, where there are no vectors."""
    if vectors is None:
        columns = [pa.nulls(rows, pa.bool_()) for _ in target.features]
    else:
        columns = [pa.array((vectors[:, bit // 8] >> (bit % 8) & 1).astype(np.bool_)) for _, bit in target.features]
    return pa.RecordBatch.from_arrays(columns, names=[name for name, _ in target.features])


def _with_duplicates(rows: pa.Table, target: BlockTarget, stored: pa.Schema) -> pa.Table:
    sources = dict(target.duplicates)
    return pa.Table.from_arrays([rows.column(sources.get(name, name)) for name in stored.names], schema=stored)


def _united(vectors: Vectors, width: int, rows: int) -> Vectors:
    if vectors.shape != (rows, width):
        raise InvalidInput(f"{rows} rows need vectors of {width} bytes each; these have the shape {vectors.shape}")
    return np.bitwise_or.reduce(vectors, axis=0) if width else np.zeros(0, dtype=np.uint8)


def _row_id_range(rows: pa.Table) -> tuple[int, int]:
    ids = np.concatenate([piece.to_numpy() for piece in rows.column(ROW_ID).chunks])
    return int(ids.min()), int(ids.max())


def _column_bytes(group: Any, schema: pa.Schema) -> npt.NDArray[np.int64]:
    sizes = np.zeros(len(schema), dtype=np.int64)
    leaf = 0
    for position, field in enumerate(schema):
        for _ in range(leaf_count(field.type)):
            sizes[position] += group.column(leaf).total_compressed_size
            leaf += 1
    return sizes
