"""Store Parquet files again with their columns in another order, some of them twice, without making a table of them.

Row group by row group: one is read, its columns are put in order, and it is written; nothing larger is ever in memory.
Rows stay where they are, row groups keep their rows, files keep their names. Every file is read back and its checksums
are compared with those of the source before it gets its name.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.catalog.location import Location
from skipstone.errors import ColumnNotFound, InvalidInput, listed
from skipstone.layout.columns.values import ColumnLayout
from skipstone.store.checksum import Checksums, checksums, require_equal
from skipstone.store.types import leaf_count

__all__ = ["Reordered", "apply_order", "parquet_files"]

SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""Spark believes this copy of the schema over the real one, and would not see a duplicate."""

ARROW_SCHEMA = b"ARROW:schema"
FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True)
class Reordered:
    """What was stored again."""

    files: int
    row_groups: int
    rows: int
    bytes_read: int
    bytes_written: int


def apply_order(
    source: str | os.PathLike[str],
    layout: ColumnLayout,
    target: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Reordered:
    """Store the Parquet files of a directory, or one file, with their columns as `layout` has them.

    `target` must be empty or not there. `progress` is told how many of how many row groups are done. Compression,
    dictionaries and the notes in footers are kept as they are, but for Spark's copy of the schema; INT96 timestamps
    keep their microseconds.
    """
    there, here = Location.at(source, storage_options), Location.at(target, storage_options)
    files = parquet_files(there)
    _require_room(there, here)
    total = 0
    for path in files:
        footer = _footer(there, path)
        _require_columns(path, footer, layout)
        total += footer.num_row_groups
    done = rows = read = written = 0
    for path in files:
        footer = _footer(there, path)
        sums: list[Checksums] = []
        with _Target(here, path or posixpath.basename(there.uri)) as file:
            for one in _rewritten(there, path, footer, layout, file):
                sums.append(one)
                done += 1
                if progress is not None:
                    progress(done, total)
            written += file.verified(footer, layout, sums)
        rows += footer.num_rows
        read += _size(there, path)
    return Reordered(len(files), total, rows, read, written)


def parquet_files(place: Location) -> tuple[str, ...]:
    """The Parquet files of a directory, by name and relative to it; or one empty path where the place is such a file.

    Files and directories whose names begin with `_` or `.` are not data, as everywhere.
    """
    filesystem, base = place.filesystem()
    info = filesystem.get_file_info(base)
    if info.is_file:
        return ("",)
    names = [one.path for one in place.list()]
    if any(name.startswith("_delta_log/") for name in names):
        raise InvalidInput(
            f"{place.uri} is a Delta table, whose log says which of its files count. "
            "Hint: make a table of it with `skipstone create`, and order that"
        )
    files = tuple(name for name in names if name.endswith((".parquet", ".parq")) and not _is_hidden(name))
    if not files:
        raise InvalidInput(f"{place.uri}: no Parquet file there; give a directory of .parquet files, or one such file")
    return files


def _is_hidden(path: str) -> bool:
    return any(part.startswith(("_", ".")) for part in path.split("/"))


def _require_room(source: Location, target: Location) -> None:
    if f"{target.uri}/".startswith(f"{source.uri}/") or f"{source.uri}/".startswith(f"{target.uri}/"):
        raise InvalidInput(f"{target.uri} and {source.uri} overlap; give a directory of its own to write to")
    found = next(iter(target.list()), None)
    if found is not None:
        raise InvalidInput(f"{target.uri} is not empty: there is {found.path}; give a new directory to write to")


def _footer(place: Location, path: str) -> Any:
    filesystem, base = place.filesystem()
    with filesystem.open_input_file(posixpath.join(base, path) if path else base) as file:
        try:
            return pq.read_metadata(file)
        except pa.ArrowInvalid as error:
            raise InvalidInput(f"{posixpath.join(place.uri, path)} is not a Parquet file: {error}") from error


def _size(place: Location, path: str) -> int:
    filesystem, base = place.filesystem()
    return int(filesystem.get_file_info(posixpath.join(base, path) if path else base).size)


def _require_columns(path: str, footer: Any, layout: ColumnLayout) -> None:
    names = footer.schema.to_arrow_schema().names
    for name in layout.columns:
        if name not in names:
            raise ColumnNotFound.among(name, names, where=f"{path or 'the file'}, which the layout speaks of")
    forgotten = sorted(set(names) - set(layout.columns))
    if forgotten:
        raise InvalidInput(
            f"the layout leaves out columns that {path or 'the file'} has: {listed(forgotten)}. "
            "Hint: a layout names every column of the table"
        )


def _rewritten(source: Location, path: str, footer: Any, layout: ColumnLayout, target: _Target) -> Iterator[Checksums]:
    """Write the row groups of a file in the order of the layout, and give the checksums of each."""
    filesystem, base = source.filesystem()
    with (
        filesystem.open_input_file(posixpath.join(base, path) if path else base) as stream,
        _parquet_file(stream, footer) as file,
        target.writer(file.schema_arrow, footer, layout) as writer,
    ):
        for group in range(footer.num_row_groups):
            rows = file.read_row_group(group)
            writer.write_table(_arranged(rows, layout, writer.schema), row_group_size=max(1, rows.num_rows))
            yield checksums(rows)


def _arranged(rows: pa.Table, layout: ColumnLayout, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays([rows.column(column.logical) for column in layout.stored], schema=schema)


def _parquet_file(stream: Any, footer: Any) -> Any:
    # Nanoseconds reach from 1677 to 2262 only; what writes INT96 counts in microseconds.
    return pq.ParquetFile(stream, metadata=footer, coerce_int96_timestamp_unit="us")


class _Target:
    """A file that is being written; it has its name only once it is whole and verified."""

    def __init__(self, place: Location, path: str) -> None:
        self._filesystem, base = place.filesystem()
        self._path = posixpath.join(base, path)
        # Object stores show an object only once its upload is complete, and cannot rename one.
        directory, name = posixpath.split(self._path)
        self._written_to = posixpath.join(directory, f".{name}.unfinished") if place.is_local else self._path
        self._shown = posixpath.join(place.uri, path)
        self._verified = False
        if place.is_local:
            self._filesystem.create_dir(directory, recursive=True)

    def __enter__(self) -> _Target:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._verified:
            if self._written_to != self._path:
                self._filesystem.move(self._written_to, self._path)
        elif self._filesystem.get_file_info(self._written_to).is_file:
            self._filesystem.delete_file(self._written_to)

    def writer(self, schema: pa.Schema, footer: Any, layout: ColumnLayout) -> Any:
        """Open a Parquet writer for the source's columns as the layout stores them."""
        stored = _stored_schema(schema, layout)
        return pq.ParquetWriter(
            self._filesystem.open_output_stream(self._written_to),
            stored,
            version="2.6",
            **_settings(schema, stored, footer, layout),
            store_schema=ARROW_SCHEMA in (footer.metadata or {}),
            use_deprecated_int96_timestamps=_has_int96(footer),
        )

    def verified(self, source: Any, layout: ColumnLayout, sums: Sequence[Checksums]) -> int:
        """Read the file back, raise VerificationFailed unless it holds what it should, and give its size."""
        with self._filesystem.open_input_file(self._written_to) as stream, _parquet_file(stream, None) as file:
            if file.metadata.num_row_groups != source.num_row_groups:
                raise AssertionError(f"{self._shown}: {file.metadata.num_row_groups} row groups; please report it")
            for group, expected in enumerate(sums):
                by_name = dict(expected)
                wanted = tuple((column.name, by_name[column.logical]) for column in layout.stored)
                found = checksums(file.read_row_group(group))
                require_equal(wanted, found, what=f"{self._shown}, row group {group}")
        self._verified = True
        return int(self._filesystem.get_file_info(self._written_to).size)


def _stored_schema(schema: pa.Schema, layout: ColumnLayout) -> pa.Schema:
    fields = []
    for column in layout.stored:
        field = schema.field(column.logical).with_name(column.name)
        if column.source is not None:
            # A field id says which column this is; only the column itself may carry it.
            field = field.with_metadata({k: v for k, v in (field.metadata or {}).items() if k != FIELD_ID})
        fields.append(field)
    notes = {key: value for key, value in (schema.metadata or {}).items() if key != SPARK_SCHEMA}
    return pa.schema(fields, notes)


def _settings(schema: pa.Schema, stored: pa.Schema, footer: Any, layout: ColumnLayout) -> dict[str, Any]:
    """How every stored Parquet column is written: as its source was, in the first row group."""
    if footer.num_row_groups == 0:
        return {"compression": "zstd"}
    group = footer.row_group(0)
    of_column: dict[str, list[Any]] = {}
    leaf = 0
    for field in schema:
        count = leaf_count(field.type)
        of_column[field.name] = [group.column(leaf + i) for i in range(count)]
        leaf += count
    empty = pa.BufferOutputStream()
    pq.write_table(stored.empty_table(), empty, store_schema=False)
    leaves = pq.ParquetFile(pa.BufferReader(empty.getvalue())).schema
    sources = [chunk for column in layout.stored for chunk in of_column[column.logical]]
    chunks = {leaves.column(number).path: chunk for number, chunk in enumerate(sources)}
    return {
        "compression": {path: _codec(chunk.compression) for path, chunk in chunks.items()},
        "use_dictionary": [path for path, chunk in chunks.items() if _has_dictionary(chunk)],
        "write_statistics": [path for path, chunk in chunks.items() if chunk.is_stats_set],
    }


def _has_dictionary(chunk: Any) -> bool:
    return any("DICTIONARY" in encoding for encoding in chunk.encodings)


def _codec(name: str) -> str:
    return "none" if name == "UNCOMPRESSED" else name.lower()


def _has_int96(footer: Any) -> bool:
    columns = [footer.schema.column(number) for number in range(footer.num_columns)]
    int96 = [column.path for column in columns if column.physical_type == "INT96"]
    newer = [column.path for column in columns if column.logical_type.type == "TIMESTAMP"]
    if int96 and newer:
        raise InvalidInput(
            f"timestamps of both kinds, INT96 ({listed(int96)}) and INT64 ({listed(newer)}), "
            "cannot be written into one file again. Hint: write the table once with one kind"
        )
    return bool(int96)
