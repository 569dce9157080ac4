"""The files of the block catalog: one Parquet file per chunk, one for the table itself, and what is in them.

A chunk's file has `BLOCK_SCHEMA`, the scheme's hash and, in the column `facts`, one JSON text for the whole chunk that
is repeated on every row and stored once. Bounds of tracked expressions are further columns, `min.0`, `max.0` and so on,
each of the expression's own type; `facts` says which expression is number 0. They are not in the schema of the Delta
table, whose readers pass over columns that they do not know, so expressions may come and go without changing it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.catalog.schemas import read_schema, read_type, schema_json, type_json
from skipstone.catalog.values import (
    BLOCK_SCHEMA,
    Blocks,
    Checksum,
    ChunkFacts,
    ExpressionBounds,
    NewChunk,
    require_chunk_name,
)
from skipstone.errors import InvalidInput

__all__ = [
    "DELTA_SCHEMA",
    "TABLE_CHUNK",
    "ChunkHeader",
    "TableRecord",
    "bounds_fields",
    "chunk_file",
    "read_bounds",
    "read_facts",
    "read_header",
    "read_table_record",
    "table_file",
]

TABLE_CHUNK = "_table"
"""The partition that holds the table's own record. No chunk can have this name."""

DELTA_SCHEMA = pa.schema(
    [
        pa.field("chunk", pa.string()),
        pa.field("scheme", pa.string()),
        *(field.with_nullable(True) for field in BLOCK_SCHEMA),
        pa.field("facts", pa.string()),
    ]
)
"""The block catalog as a Delta table shows it, partitioned by chunk."""

_BOUNDS = ("min", "max", "nulls", "nans", "min_exact", "max_exact")
"""The columns of one tracked expression, in the order of the fields of `ExpressionBounds`."""


@dataclass(frozen=True, slots=True)
class ChunkHeader:
    """What must be known of a chunk's file before any of its columns is used."""

    path: str
    chunk: str
    blocks: int
    scheme: str
    columns: tuple[str, ...]
    tracked: tuple[tuple[str, pa.DataType], ...]

    @property
    def shape(self) -> tuple[Any, ...]:
        """Chunks of one shape can be put into the same arrays."""
        return (self.scheme, self.columns, self.tracked)


@dataclass(frozen=True, slots=True)
class TableRecord:
    """The table's own record: what belongs to a snapshot and to no chunk."""

    table_id: str
    schema: pa.Schema
    properties: tuple[tuple[str, str], ...] = ()
    oldest_version: int = 0
    """The oldest version whose files vacuum has left in place."""


def chunk_file(chunk: NewChunk, scheme: str) -> bytes:
    """Write the catalog file of a chunk."""
    require_chunk_name(chunk.name)
    blocks = chunk.blocks.sorted()
    if len(blocks) == 0:
        raise InvalidInput(f'chunk "{chunk.name}" has no blocks; a chunk needs at least one row')
    columns: dict[str, Any] = {
        "scheme": pa.array([scheme] * len(blocks), pa.string()),
        **{name: blocks.rows[name] for name in BLOCK_SCHEMA.names},
        "facts": pa.repeat(pa.scalar(_facts_text(chunk)), len(blocks)),
    }
    for number, (_, bounds) in enumerate(blocks.bounds):
        arrays = (
            bounds.minimum,
            bounds.maximum,
            bounds.null_count,
            bounds.nan_count,
            bounds.minimum_exact,
            bounds.maximum_exact,
        )
        columns |= dict(zip(bounds_fields(number), arrays, strict=True))
    return _parquet(pa.table(columns))


def table_file(record: TableRecord) -> bytes:
    """Write the catalog file of the table's own record."""
    text = json.dumps(
        {
            "format": 1,
            "table_id": record.table_id,
            "schema": schema_json(record.schema),
            "properties": dict(record.properties),
            "oldest_version": record.oldest_version,
        }
    )
    return _parquet(pa.table({"facts": [text]}))


def read_table_record(content: bytes) -> TableRecord:
    """Read what `table_file` wrote."""
    text = pq.read_table(io.BytesIO(content), columns=["facts"])["facts"][0].as_py()
    found = json.loads(text)
    if found["format"] != 1:
        raise InvalidInput(f"a table of format {found['format']} was written by a newer version; this one reads 1")
    return TableRecord(
        found["table_id"],
        read_schema(found["schema"]),
        tuple(sorted(found["properties"].items())),
        found["oldest_version"],
    )


def read_header(path: str, chunk: str, file: pq.ParquetFile) -> ChunkHeader:
    """Read the header of a chunk's file."""
    first = next(file.iter_batches(1, row_groups=[0], columns=["scheme", "facts"]))
    found = json.loads(first["facts"][0].as_py())
    tracked = tuple((one["text"], read_type(one["type"])) for one in found["expressions"])
    scheme = first["scheme"][0].as_py()
    return ChunkHeader(path, chunk, file.metadata.num_rows, scheme, tuple(found["columns"]), tracked)


def read_facts(file: pq.ParquetFile) -> ChunkFacts:
    """Read what is known of the chunk as a whole."""
    found = json.loads(next(file.iter_batches(1, row_groups=[0], columns=["facts"]))["facts"][0].as_py())
    return ChunkFacts(
        found["rows"],
        tuple(
            (name, Checksum(rows, int(values, 16), int(mixed, 16))) for name, rows, values, mixed in found["checksums"]
        ),
        found["source"],
        tuple((name, value) for name, value in found["notes"]),
    )


def bounds_fields(number: int) -> list[str]:
    """The columns that hold the bounds of an expression.

    >>> bounds_fields(3)[:2]
    ['min.3', 'max.3']
    """
    return [f"{name}.{number}" for name in _BOUNDS]


def read_bounds(table: pa.Table, number: int, kind: pa.DataType) -> ExpressionBounds:
    """Take the bounds of an expression from a table that has its columns."""
    arrays = [_whole(table[name]) for name in bounds_fields(number)]
    return ExpressionBounds(arrays[0].cast(kind), arrays[1].cast(kind), *arrays[2:])


def blocks_of(table: pa.Table, columns: Sequence[str], tracked: Sequence[tuple[str, pa.DataType]]) -> Blocks:
    """Take blocks, with all that is known of them, from a table that has all columns of a chunk's file."""
    bounds = tuple((text, read_bounds(table, number, kind)) for number, (text, kind) in enumerate(tracked))
    return Blocks(table.select(BLOCK_SCHEMA.names).cast(BLOCK_SCHEMA), tuple(columns), bounds)


def _facts_text(chunk: NewChunk) -> str:
    facts = chunk.facts
    return json.dumps(
        {
            "rows": facts.rows,
            "checksums": [[name, one.rows, f"{one.values:x}", f"{one.mixed:x}"] for name, one in facts.checksums],
            "source": facts.source,
            "notes": [list(note) for note in facts.notes],
            "columns": list(chunk.blocks.columns),
            "expressions": [{"text": text, "type": type_json(one.type)} for text, one in chunk.blocks.bounds],
        }
    )


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_statistics=False)
    return sink.getvalue()


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
