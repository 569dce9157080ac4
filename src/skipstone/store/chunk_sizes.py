"""How large the chunks of each column are, by the footers of Parquet files."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.catalog.location import Location
from skipstone.errors import InvalidInput
from skipstone.layout.columns.types import type_text
from skipstone.layout.columns.values import ColumnSizes, SizedColumn
from skipstone.store.reordering import parquet_files
from skipstone.store.types import leaf_count


def chunk_sizes(source: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> ColumnSizes:
    """Read the mean bytes of every column's chunk in a row group, from the footers below a directory or of one file.

    Columns come in the order of the first file, and every file must have them all. A nested column is as large as its
    leaves together.
    """
    place = Location.at(source, storage_options)
    total: dict[str, int] = {}
    types: dict[str, pa.DataType] = {}
    groups = 0
    for path in parquet_files(place):
        schema, sums, count = _sizes_of(place, path)
        if not types:
            types = {field.name: field.type for field in schema}
        different = sorted(set(types) ^ set(schema.names))
        if different:
            raise InvalidInput(
                f'{posixpath.join(place.uri, path)} and the files before it do not have the same columns: "'
                f'{different[0]}" is only in some. Hint: give a directory of one table'
            )
        for name, size in sums.items():
            total[name] = total.get(name, 0) + size
        groups += count
    if not groups:
        raise InvalidInput(f"{place.uri}: no row group in its files, so that columns have no size")
    return ColumnSizes(tuple(SizedColumn(name, type_text(kind), total[name] / groups) for name, kind in types.items()))


def _sizes_of(place: Location, path: str) -> tuple[pa.Schema, dict[str, int], int]:
    """The schema of a file, the bytes of each column's chunks in it, and how many row groups these are."""
    filesystem, base = place.filesystem()
    shown = posixpath.join(place.uri, path)
    with filesystem.open_input_file(posixpath.join(base, path) if path else base) as file:
        try:
            footer = pq.read_metadata(file)
        except pa.ArrowInvalid as error:
            raise InvalidInput(f"{shown} is not a Parquet file: {error}") from error
    schema = footer.schema.to_arrow_schema()
    repeated = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if repeated:
        raise InvalidInput(f'{shown} has two columns named "{repeated[0]}"')
    sums = dict.fromkeys(schema.names, 0)
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        leaf = 0
        for field in schema:
            for _ in range(leaf_count(field.type)):
                sums[field.name] += group.column(leaf).total_compressed_size
                leaf += 1
    return schema, sums, footer.num_row_groups
