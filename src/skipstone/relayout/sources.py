"""Where rows to be loaded come from: pieces that one task each reads as a stream of Arrow batches.

Parquet files and Delta tables are read row group by row group with pyarrow, CSV files as streams, Arrow tables from
memory. What cannot be read is said with the name of its file. Spark DataFrames come through `skipstone.spark.loading`,
because only Spark can read them.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet as pq
from deltalake import DeltaTable

from skipstone.catalog.location import Location
from skipstone.errors import InvalidInput, SkipstoneError, listed
from skipstone.relayout.executor import Executor, Progress
from skipstone.relayout.loading import Loaded, write_batches
from skipstone.relayout.slicing import Slicing, write_sliced
from skipstone.store.writer import BlockTarget

__all__ = [
    "LoadJob",
    "Piece",
    "PiecewiseSource",
    "Source",
    "arrow_source",
    "csv_source",
    "delta_source",
    "open_source",
    "parquet_source",
    "with_types_of",
]

PIECE_ROWS = 1_000_000
"""About so many rows are loaded by one task."""

BATCH_ROWS = 65_536

INT96_UNIT = "us"
"""What Spark's INT96 timestamps are counted in. Nanoseconds, which Arrow takes them for, reach from 1677 to 2262 only,
and other years come out wrong without a word."""


@dataclass(frozen=True, slots=True)
class LoadJob:
    """Where rows go that are loaded, in blocks and files of which size, and by which column they are cut, if any."""

    target: BlockTarget
    block_rows: int
    file_rows: int
    slicing: Slicing | None = None

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Loaded]:
        """Write a stream of rows, whose columns may be in any order; one that the rows lack is NULL."""
        shaped = (_shaped(batch, self.target.schema) for batch in batches)
        if self.slicing is not None:
            return write_sliced(shaped, self.slicing, self.target, self.block_rows, self.file_rows)
        return (Loaded(one) for one in write_batches(shaped, self.target, self.block_rows, self.file_rows))


class Piece(Protocol):
    """Some rows of a source; picklable."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows, always the same ones in the same order."""


class Source(Protocol):
    """Rows to be loaded: their schema, a name for the history, and the way to write them as raw blocks."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""

    @property
    def name(self) -> str:
        """Where the rows come from, for the history."""

    def load(self, job: LoadJob, *, executor: Executor, progress: Progress) -> list[Loaded]:
        """Write all rows in their order; nothing is committed. One entry per file or so, in order."""


@dataclass(frozen=True, slots=True)
class PiecewiseSource:
    """Rows that can be read piece by piece, by whoever executes."""

    schema: pa.Schema
    pieces: tuple[Piece, ...]
    name: str

    def load(self, job: LoadJob, *, executor: Executor, progress: Progress) -> list[Loaded]:
        """Write all rows in their order, each piece in a task."""
        tasks = [_LoadTask(piece, job) for piece in self.pieces]
        loaded = executor.map(_load_piece, tasks, stage="load", progress=progress)
        return [written for task in loaded for written in task]


@dataclass(frozen=True, slots=True)
class _LoadTask:
    piece: Piece
    job: LoadJob


def _load_piece(task: _LoadTask) -> list[Loaded]:
    return list(task.job.write(task.piece.batches()))


@dataclass(frozen=True, slots=True)
class ParquetPiece:
    """Some row groups of a Parquet file, and columns that the file's path gives a value to."""

    place: Location
    path: str
    row_groups: tuple[int, ...]
    schema: pa.Schema
    constants: tuple[tuple[str, pa.Scalar], ...] = ()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows; a column that this file lacks is NULL."""
        filesystem, base = self.place.filesystem()
        constants = dict(self.constants)
        place = posixpath.join(base, self.path)
        with (
            _told_as_bad_source(self.place.child(self.path), "Parquet"),
            pq.ParquetFile(filesystem.open_input_file(place), coerce_int96_timestamp_unit=INT96_UNIT) as file,
        ):
            present = set(file.schema_arrow.names)
            wanted = [name for name in self.schema.names if name in present and name not in constants]
            for batch in file.iter_batches(BATCH_ROWS, row_groups=list(self.row_groups), columns=wanted):
                yield _shaped(batch, self.schema, constants)


@dataclass(frozen=True, slots=True)
class CsvPiece:
    """A CSV file with a header line."""

    place: Location
    path: str
    schema: pa.Schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the file as a stream, with the types of the schema; a column that this file lacks is NULL."""
        with _opened_csv(self.place, self.path, self.schema) as reader:
            yield from reader


@dataclass(frozen=True, slots=True)
class ArrowPiece:
    """Rows in memory."""

    rows: pa.Table

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Give the rows."""
        yield from self.rows.to_batches(max_chunksize=BATCH_ROWS)


def open_source(
    source: pa.Table | pa.RecordBatch | str,
    *,
    options: Mapping[str, str] | None = None,
    format: str | None = None,  # noqa: A002
) -> Source:
    """Open what is to be loaded: an Arrow table, or the path of a Parquet file or directory, a CSV file or a Delta
    table.

    `format` is `parquet`, `csv` or `delta`; without it the path tells.
    """
    if isinstance(source, pa.RecordBatch):
        return arrow_source(pa.Table.from_batches([source]))
    if isinstance(source, pa.Table):
        return arrow_source(source)
    place = Location.at(source, options)
    if place.is_local and not os.path.exists(place.uri):
        raise InvalidInput(f"there is no file or directory {place.uri} to load from")
    kind = format or _format_of(place)
    openers = {"parquet": parquet_source, "csv": csv_source, "delta": delta_source}
    if kind not in openers:
        raise InvalidInput(f'"{kind}" is not a format that can be loaded; there are: {listed(sorted(openers))}')
    return openers[kind](place)


def arrow_source(rows: pa.Table) -> Source:
    """Load rows that are in memory."""
    pieces = [ArrowPiece(rows.slice(start, PIECE_ROWS)) for start in range(0, rows.num_rows, PIECE_ROWS)]
    return PiecewiseSource(rows.schema, tuple(pieces), "rows in memory")


def parquet_source(place: Location) -> Source:
    """Load a Parquet file, or all of a directory, with Hive-style partition directories as columns."""
    filesystem, base = place.filesystem()
    with _told_as_bad_source(place, "Parquet"):
        kind = pyarrow.dataset.ParquetFileFormat(coerce_int96_timestamp_unit=INT96_UNIT)
        files = pyarrow.dataset.dataset(base, filesystem=filesystem, format=kind, partitioning="hive")
        # The footers of all files are read here, so a file of another kind among them is known before anything moves.
        return _dataset_source(place, files, _schema_of_files(files), f"parquet {place.uri}")


def _schema_of_files(files: Any) -> pa.Schema:
    """All columns that a file has or that paths give, in types that hold the values of all files.

    The dataset's own schema is that of its first file: columns that only others have would be lost.
    """
    schemas = [fragment.physical_schema for fragment in files.get_fragments()]
    merged = pa.unify_schemas([files.schema, *schemas], promote_options="permissive")
    everywhere = set(merged.names).intersection(*(schema.names for schema in schemas))
    return pa.schema([field if field.name in everywhere else field.with_nullable(True) for field in merged])


def delta_source(place: Location) -> Source:
    """Load the current version of a Delta table."""
    try:
        table = DeltaTable(place.uri, storage_options=place.storage_options)
        files = table.to_pyarrow_dataset()
        mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    except Exception as error:
        raise InvalidInput(f"{place.uri} cannot be read as a Delta table: {str(error).splitlines()[0]}") from error
    if mapping != "none":
        # Its files know the columns by other names, by which nothing would be found in them but NULL.
        raise InvalidInput(
            f'{place.uri} cannot be read as a Delta table: it maps columns (delta.columnMapping.mode is "{mapping}"). '
            "Hint: read it with an engine that knows this, and give the data frame, or write it as Parquet"
        )
    with _told_as_bad_source(place, "a Delta table"):
        return _dataset_source(place, files, files.schema, f"delta {place.uri} version {table.version()}")


def csv_source(place: Location) -> Source:
    """Load a CSV file or a directory of them; names come from the headers, types from the first megabyte of each file.

    A column without any value there is one of texts, as Spark has it, and so is one that is of several kinds. Only what
    is empty is NULL.
    """
    paths = [file.path for file in place.list() if file.path.endswith((".csv", ".csv.gz"))]
    if not paths:
        place, paths = Location(posixpath.dirname(place.uri), place.options), [posixpath.basename(place.uri)]
    schema = _schema_of_texts([_csv_schema(place, path) for path in paths])
    return PiecewiseSource(schema, tuple(CsvPiece(place, path, schema) for path in paths), f"csv {place.uri}")


def _csv_schema(place: Location, path: str) -> pa.Schema:
    with _opened_csv(place, path) as reader:
        return reader.schema


@contextmanager
def _opened_csv(place: Location, path: str, schema: pa.Schema | None = None) -> Iterator[Any]:
    """Open a CSV file for streaming: with the columns of a schema, or with those that it has, of types to be guessed.

    Arrow by itself takes texts like `NA`, `null` and `NaN` for NULL; Spark and DuckDB do not.
    """
    filesystem, base = place.filesystem()
    options = pyarrow.csv.ConvertOptions(
        column_types=schema,
        include_columns=None if schema is None else schema.names,
        include_missing_columns=schema is not None,
        null_values=[""],
        strings_can_be_null=True,
    )
    parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)
    with (
        _told_as_bad_source(place.child(path), "CSV"),
        filesystem.open_input_stream(posixpath.join(base, path)) as stream,
        pyarrow.csv.open_csv(stream, parse_options=parsing, convert_options=options) as reader,
    ):
        yield reader


def _schema_of_texts(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """All columns of some files, each with a type that the texts of all of them can be read in."""
    doubled = next((schema for schema in schemas if len(set(schema.names)) < len(schema.names)), None)
    if doubled is not None:
        return doubled  # for others to say that it will not do
    kinds: dict[str, list[pa.DataType]] = {}
    for schema in schemas:
        for field in schema:
            kinds.setdefault(field.name, []).append(field.type)
    return pa.schema([(name, _common_kind(found)) for name, found in kinds.items()])


def _common_kind(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """The type that texts are read in which look like these.

    >>> _common_kind([pa.null(), pa.int64(), pa.float64()]), _common_kind([pa.bool_(), pa.int64()])
    (DataType(double), DataType(string))
    """
    try:
        common = pa.unify_schemas([pa.schema([("", kind)]) for kind in kinds], promote_options="permissive")
    except pa.ArrowTypeError:
        return pa.string()
    kind = common.field(0).type
    return pa.string() if pa.types.is_null(kind) else kind


def with_types_of(source: Source, schema: pa.Schema) -> Source:
    """Let a source whose files have no types of their own, which is CSV, be read with those of a table's columns."""
    given = source.pieces if isinstance(source, PiecewiseSource) else ()
    pieces = [piece for piece in given if isinstance(piece, CsvPiece)]
    if not pieces:
        return source
    known = {field.name: field.type for field in schema if not pa.types.is_nested(field.type)}
    typed = pa.schema([field.with_type(known.get(field.name, field.type)) for field in source.schema])
    return PiecewiseSource(typed, tuple(replace(piece, schema=typed) for piece in pieces), source.name)


@contextmanager
def _told_as_bad_source(place: Location, kind: str) -> Iterator[None]:
    """Say of what Arrow finds wrong with a source which file it is, and that it is not ours."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, SkipstoneError):
            raise
        reason = (str(error).splitlines() or ["no reason given"])[0]
        raise InvalidInput(f"{place.uri} cannot be read as {kind}: {reason}") from error


def _format_of(place: Location) -> str:
    if place.exists("_delta_log/00000000000000000000.json") or any(place.list("_delta_log")):
        return "delta"
    if place.uri.endswith((".csv", ".csv.gz")):
        return "csv"
    names = [file.path for file in place.list()]
    if names and all(name.endswith((".csv", ".csv.gz")) for name in names):
        return "csv"
    return "parquet"


def _dataset_source(place: Location, files: Any, schema: pa.Schema, name: str) -> Source:
    schema = schema.remove_metadata()
    pieces = []
    for fragment in files.get_fragments():
        constants = _partition_values(fragment, schema)
        for groups in _groups_of_good_size(fragment):
            relative, root = _relative(fragment.path, place)
            pieces.append(ParquetPiece(root, relative, groups, schema, constants))
    return PiecewiseSource(schema, tuple(pieces), name)


def _relative(path: str, place: Location) -> tuple[str, Location]:
    """Where a fragment's path lies: below the place, or the place itself where that is a file."""
    _, base = place.filesystem()
    if path == base:
        return posixpath.basename(path), Location(posixpath.dirname(place.uri), place.options)
    return (posixpath.relpath(path, base) if path.startswith(base) else path), place


def _groups_of_good_size(fragment: Any) -> Iterator[tuple[int, ...]]:
    pending: list[int] = []
    rows = 0
    for group in fragment.row_groups:
        pending.append(group.id)
        rows += group.num_rows
        if rows >= PIECE_ROWS:
            yield tuple(pending)
            pending, rows = [], 0
    if pending:
        yield tuple(pending)


def _partition_values(fragment: Any, schema: pa.Schema) -> tuple[tuple[str, pa.Scalar], ...]:
    keys = pyarrow.dataset.get_partition_keys(fragment.partition_expression)
    return tuple(
        (
            name,
            pa.scalar(value).cast(schema.field(name).type)
            if value is not None
            else pa.scalar(None, schema.field(name).type),
        )
        for name, value in sorted(keys.items())
    )


def _shaped(
    batch: pa.RecordBatch, schema: pa.Schema, constants: Mapping[str, pa.Scalar] = MappingProxyType({})
) -> pa.RecordBatch:
    """The rows in the columns of a schema, found by name: given as constants, cast, or NULL where there is none."""
    arrays = []
    for field in schema:
        position = batch.schema.get_field_index(field.name)
        if field.name in constants:
            arrays.append(pa.repeat(constants[field.name], batch.num_rows))
        elif position < 0:
            arrays.append(pa.nulls(batch.num_rows, field.type))
        else:
            column = batch.column(position)
            arrays.append(column if column.type == field.type else pc.cast(column, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def schemas_agree(existing: pa.Schema, new: pa.Schema) -> Sequence[str]:
    """Say why rows of a new schema cannot be appended to a table; nothing where they can."""
    missing = [f'"{field.name}" is missing' for field in existing if field.name not in new.names and not field.nullable]
    extra = [f'"{name}" is not a column of the table' for name in new.names if name not in existing.names]
    differing = [
        f'"{field.name}" is {new.field(field.name).type}, not {field.type}'
        for field in existing
        if field.name in new.names and new.field(field.name).type != field.type
    ]
    return [*missing, *extra, *differing]
