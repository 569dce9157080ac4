"""Publish a snapshot in place as a Delta table, so that other engines read the same files without a copy.

The Delta log stands in the table's own directory and names, for every chunk, the files of one layout that holds every
column of every row. Statistics go into it only where they are exact and mean the same to every reader: whole numbers,
dates, texts that were not cut, and floats of files without NaN.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import DeltaError, SchemaMismatchError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from skipstone.catalog.location import Location
from skipstone.catalog.values import BlockSet, Snapshot
from skipstone.errors import CommitConflict, InvalidInput, LayoutInfeasible, listed
from skipstone.layout.scheme import FEATURE_PREFIX, Scheme
from skipstone.predicate.expression import Column
from skipstone.predicate.printing import sql

__all__ = ["Published", "is_published", "publish", "published_features"]

_VERSION_KEY = "skipstone.version"
_CHUNKS_KEY = "skipstone.chunks"
_STATISTICS_KEY = "delta.dataSkippingStatsColumns"
_INDEXED_KEY = "delta.dataSkippingNumIndexedCols"

_SIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


@dataclass(frozen=True, slots=True)
class Published:
    """What was published: the version of ours, the Delta version that it became, and the files that joined and left."""

    version: int
    delta_version: int
    files_added: int
    files_removed: int


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    size: int
    statistics: str
    bounded: frozenset[str]
    """The columns whose bounds are in the statistics, or that are NULL throughout and have none."""


def is_published(table: Location) -> bool:
    """Whether there is a Delta table in the directory of this table."""
    return bool(DeltaTable.is_deltatable(table.uri, table.storage_options))


def publish(table: Location, snapshot: Snapshot) -> Published:
    """Make the Delta table in a table's directory show this snapshot, in one commit."""
    wanted = {file.path: file for blocks in snapshot.block_sets for file in _files(table, snapshot, blocks)}
    properties = CommitProperties(
        custom_metadata={_VERSION_KEY: str(snapshot.version), _CHUNKS_KEY: _fingerprint(snapshot)}
    )
    try:
        if not is_published(table):
            create_table_with_add_actions(
                table.uri,
                _delta_schema(_shown(snapshot, ())),
                [_add(file) for file in wanted.values()],
                configuration=_indexed(_bounded_everywhere(snapshot, wanted.values())),
                storage_options=table.storage_options,
                commit_properties=properties,
            )
            return Published(snapshot.version, 0, len(wanted), 0)
        delta = DeltaTable(table.uri, storage_options=table.storage_options)
        there = _paths(delta)
        # The same chunks hold the same rows in whatever layout, and streams and change feeds must not replay them.
        changed = delta.history(1)[0].get(_CHUNKS_KEY) != _fingerprint(snapshot)
        joined = [_add(file, data_change=changed) for path, file in sorted(wanted.items()) if path not in there]
        left = [RemoveAction(path, changed, _now(), there[path]) for path in sorted(set(there) - set(wanted))]
        if joined or left:
            # Columns only ever join: files that lack one are read as NULL there, and that means unknown.
            fields = [field.name for field in delta.schema().fields]
            shown = _shown(snapshot, fields)
            _narrow_index(delta, _bounded_everywhere(snapshot, wanted.values()))
            missing = [field for field in _delta_schema(shown).fields if field.name not in fields]
            if missing and all(field.name.startswith(FEATURE_PREFIX) for field in missing):
                delta.alter.add_columns(missing)
            delta.create_write_transaction(
                [*joined, *left], "append", _delta_schema(shown), commit_properties=properties
            )
        return Published(snapshot.version, delta.version() + bool(joined or left), len(joined), len(left))
    except SchemaMismatchError as error:
        raise InvalidInput(f"the published Delta table has another schema: {_first_line(error)}") from error
    except DeltaError as error:
        raise CommitConflict(f"the Delta table at {table.uri} could not be updated: {_first_line(error)}") from error


def _bounded_everywhere(snapshot: Snapshot, files: Iterable[_File]) -> tuple[str, ...]:
    """The columns that every file has bounds of, among those whose names need no quotes in a property."""
    common = frozenset(snapshot.schema.names).intersection(*(file.bounded for file in files))
    return tuple(name for name in snapshot.schema.names if name in common and name.isidentifier() and name.isascii())


def _indexed(columns: Sequence[str]) -> dict[str, str | None]:
    """Tell readers which columns have statistics.

    delta-rs takes a bound that is missing in a file for NULL, and then reads nothing of the file through
    `to_pyarrow_dataset`; it does not where the properties say that there are no statistics of the column.
    """
    return {_STATISTICS_KEY: ",".join(columns)} if columns else {_INDEXED_KEY: "0"}


def _narrow_index(delta: DeltaTable, columns: Sequence[str]) -> None:
    """Take columns out of the properties that the files to be added have no bounds of; it comes before the files."""
    before = delta.metadata().configuration
    if before.get(_INDEXED_KEY) == "0":
        return
    there = [name for name in before.get(_STATISTICS_KEY, "").split(",") if name]
    kept = [name for name in there if name in columns]
    if kept != there or not there:
        delta.alter.set_table_properties({name: str(value) for name, value in _indexed(kept).items()})


def _shown(snapshot: Snapshot, there: Sequence[str]) -> pa.Schema:
    """The columns of the table, and those of the features that are published already or that some chunk keeps."""
    schemes = (snapshot.scheme(blocks.scheme) for blocks in snapshot.block_sets)
    kept = [name for scheme in schemes for layout in scheme.layouts for name, _ in scheme.feature_columns(layout)]
    before = [name for name in there if name.startswith(FEATURE_PREFIX)]
    features = [pa.field(name, pa.bool_()) for name in dict.fromkeys([*before, *kept])]
    return pa.schema([*snapshot.schema, *features])


def _delta_schema(shown: pa.Schema) -> Schema:
    """The schema in Delta's types; an error that names the columns for which there is none."""
    fields = [field.with_type(_as_delta_has_it(field.type)) for field in shown]
    without = [f'"{field.name}" ({field.type})' for field in fields if not _has_delta_type(field)]
    if without:
        raise InvalidInput(f"Delta has no type for these columns, so the table cannot be published: {listed(without)}")
    return Schema.from_arrow(pa.schema(fields))


def _as_delta_has_it(kind: pa.DataType) -> pa.DataType:
    """A type that Delta has, and whose values all values of this type are; the type itself where there is none.

    Left to itself delta-rs makes signed integers of the same width of unsigned ones, and of nanoseconds a type that
    other readers do not know.

    >>> _as_delta_has_it(pa.uint8()), _as_delta_has_it(pa.timestamp("ns", "Europe/Oslo"))
    (DataType(int16), TimestampType(timestamp[us, tz=UTC]))
    """
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    return _SIGNED.get(kind, kind)


def _has_delta_type(field: pa.Field) -> bool:
    try:
        Schema.from_arrow(pa.schema([field]))
    except Exception:  # delta-rs raises no narrower one
        return False
    return True


def published_features(table: Location) -> frozenset[str]:
    """The columns of features that the Delta table in a table's directory shows; none where there is no such table."""
    if not is_published(table):
        return frozenset()
    fields = DeltaTable(table.uri, storage_options=table.storage_options).schema().fields
    return frozenset(field.name for field in fields if field.name.startswith(FEATURE_PREFIX))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _paths(delta: DeltaTable) -> dict[str, int]:
    actions = pa.table(delta.get_add_actions(flatten=True))
    return dict(zip(actions["path"].to_pylist(), actions["size_bytes"].to_pylist(), strict=True))


def _fingerprint(snapshot: Snapshot) -> str:
    """A short name for the set of chunks: a chunk's rows never change, only their layout does."""
    return hashlib.sha256("\n".join(snapshot.chunks).encode()).hexdigest()[:32]


def _add(file: _File, *, data_change: bool = True) -> AddAction:
    return AddAction(file.path, file.size, {}, _now(), data_change, file.statistics)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _files(table: Location, snapshot: Snapshot, blocks: BlockSet) -> Iterator[_File]:
    layout = _complete_layout(snapshot.scheme(blocks.scheme), snapshot.schema.names)
    chosen = np.flatnonzero(blocks.layout == layout)
    of_file: dict[str, list[int]] = {}
    for position in chosen.tolist():
        of_file.setdefault(blocks.files[int(blocks.file_of[position])], []).append(position)
    filesystem, base = table.filesystem()
    sizes = {
        path: int(info.size)
        for path, info in zip(of_file, filesystem.get_file_info([f"{base}/{path}" for path in of_file]), strict=True)
    }
    for path, positions in of_file.items():
        statistics = _statistics(snapshot.schema, blocks, np.array(positions))
        yield _File(path, sizes[path], json.dumps(statistics), _bounded(statistics))


def _bounded(statistics: dict[str, Any]) -> frozenset[str]:
    rows = statistics["numRecords"]
    all_null = {name for name, count in statistics["nullCount"].items() if count == rows}
    return frozenset(statistics["minValues"]) | all_null


def _complete_layout(scheme: Scheme, columns: list[str]) -> int:
    for number, layout in enumerate(scheme.layouts):
        if layout.masters >= set(columns):
            return number
    raise LayoutInfeasible(
        "only a table all of whose chunks have a layout with every column of every row can be published in place; "
        f"a scheme here has {len(scheme.layouts)} layouts, none of them complete. "
        "Hint: optimize with one layout, or publish a snapshot from before"
    )


def _statistics(schema: pa.Schema, blocks: BlockSet, positions: npt.NDArray[np.int64]) -> dict[str, Any]:
    statistics: dict[str, Any] = {"numRecords": int(blocks.rows[positions].sum())}
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for field in schema:
        bounds = blocks.bounds(sql(Column(field.name, field.type)))
        if bounds is None:
            continue
        known = bounds.take(positions)
        if known.null_count.null_count == 0:
            nulls[field.name] = int(pc.sum(known.null_count).as_py() or 0)
        if not _is_plain(field.type) or not _all_exact(known):
            continue
        if pa.types.is_floating(field.type) and (known.nan_count.null_count or pc.sum(known.nan_count).as_py()):
            continue
        low, high = pc.min(known.minimum).as_py(), pc.max(known.maximum).as_py()
        if low is not None and high is not None and _is_finite(low) and _is_finite(high):
            least[field.name], greatest[field.name] = _json(low), _json(high)
    return {**statistics, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _all_exact(known: Any) -> bool:
    flags = (known.minimum_exact, known.maximum_exact)
    return all(pc.all(flag, skip_nulls=False).as_py() is True for flag in flags)


def _is_plain(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_string(kind) or pa.types.is_floating(kind)
    )


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime.date) else value
