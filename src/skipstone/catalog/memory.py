"""A block catalog that lives in memory: the twin that tests and notebooks use, with the rules of the native one."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from skipstone.catalog.protocol import DEFAULT_RETENTION
from skipstone.catalog.records import TableRecord
from skipstone.catalog.rules import (
    oldest_kept,
    require_applicable,
    require_readable,
    require_retention,
    require_sound_change,
    version_at,
)
from skipstone.catalog.schemes import scheme_document, scheme_hash
from skipstone.catalog.values import (
    Blocks,
    BlockSet,
    Change,
    Commit,
    ExpressionBounds,
    NewChunk,
    Snapshot,
    SnapshotSource,
    VacuumReport,
)
from skipstone.errors import InvalidInput, SnapshotNotFound, TableExists, TableNotFound

__all__ = ["MemoryCatalog"]


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """A committed chunk; two are the same only if they are one object."""

    chunk: NewChunk
    scheme: str


@dataclass(frozen=True, slots=True)
class _Version:
    commit: Commit
    record: TableRecord
    chunks: dict[str, _Held]


class MemoryCatalog:
    """The block catalog of one table, in this process and for as long as it lives.

    `clock` is what tells the time of commits, for tests that must not wait.

    >>> MemoryCatalog().create(pa.schema([("a", pa.int64())])).version
    0
    """

    def __init__(self, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._versions: list[_Version] = []
        self._deleted: set[str] = set()
        self._lock = threading.Lock()

    def create(
        self, schema: pa.Schema, *, properties: tuple[tuple[str, str], ...] = (), operation: str = "create"
    ) -> Snapshot:
        """Make an empty table and give its first snapshot; TableExists where there is one."""
        with self._lock:
            if self._versions:
                raise TableExists("there is a table in this catalog already")
            record = TableRecord(uuid.uuid4().hex, schema, tuple(sorted(properties)))
            self._versions.append(_Version(Commit(0, self._clock(), operation), record, {}))
        return self.snapshot(0)

    def exists(self) -> bool:
        """Whether there is a table here."""
        return bool(self._versions)

    def snapshot(self, version: int | None = None, *, timestamp: datetime | None = None) -> Snapshot:
        """The latest snapshot, that of a version, or the one that was the latest at a point in time."""
        if version is not None and timestamp is not None:
            raise InvalidInput("ask for a version or for a point in time, not for both")
        if timestamp is not None:
            version = version_at(self.history(), timestamp)
        head = self._head()
        if version is None:
            return _snapshot(head)
        require_readable(version, head.record.oldest_version)
        return _snapshot(self._at(version))

    def commit(self, change: Change, *, base: int) -> int:
        """Make a change on top of version `base` and give the new version."""
        require_sound_change(change)
        with self._lock:
            before, head = self._at(base), self._head()
            require_applicable(change, before.chunks, before.record.schema, head.chunks, head.record.schema)
            schema = head.record.schema if change.schema is None else change.schema
            properties = head.record.properties if change.properties is None else tuple(sorted(change.properties))
            chunks = {name: held for name, held in head.chunks.items() if name not in change.removed}
            for chunk in (*change.added, *change.replaced):
                chunks[chunk.name] = _Held(chunk, scheme_hash(scheme_document(chunk.scheme, schema)))
            counts = (len(change.added), len(change.replaced), len(change.removed))
            commit = Commit(len(self._versions), self._clock(), change.operation, *counts, change.metrics)
            return self._append(commit, replace(head.record, schema=schema, properties=properties), chunks)

    def history(self, limit: int | None = None) -> tuple[Commit, ...]:
        """The commits, latest first."""
        oldest = self._head().record.oldest_version
        commits = [replace(one.commit, restorable=one.commit.version >= oldest) for one in reversed(self._versions)]
        return tuple(commits[:limit])

    def restore(self, version: int) -> int:
        """Make the table what it was at a version, as a new commit, and give the new version."""
        with self._lock:
            head = self._head()
            require_readable(version, head.record.oldest_version)
            wanted = self._at(version)
            record = replace(wanted.record, oldest_version=head.record.oldest_version)
            commit = Commit(len(self._versions), self._clock(), "restore", metrics=(("version", version),))
            return self._append(commit, record, wanted.chunks)

    def vacuum(
        self,
        retention: timedelta = DEFAULT_RETENTION,
        *,
        dry_run: bool = True,
        allow_short_retention: bool = False,
    ) -> VacuumReport:
        """Say which data files no snapshot of the retention period uses, and forget the versions that used them."""
        require_retention(retention, allow_short_retention)
        history = self.history()
        with self._lock:
            head = self._head()
            oldest = oldest_kept(history, self._clock() - retention, head.record.oldest_version)
            used = _data_files(self._versions[oldest:])
            orphans = tuple(sorted(_data_files(self._versions[:oldest]) - used - self._deleted))
            if not dry_run:
                self._deleted.update(orphans)
                if oldest != head.record.oldest_version:
                    commit = Commit(len(self._versions), self._clock(), "vacuum", metrics=(("oldest_version", oldest),))
                    self._append(commit, replace(head.record, oldest_version=oldest), head.chunks)
            return VacuumReport(orphans, 0, oldest, dry_run)

    def _head(self) -> _Version:
        if not self._versions:
            raise TableNotFound("there is no table in this catalog")
        return self._versions[-1]

    def _at(self, version: int) -> _Version:
        head = self._head()
        if not 0 <= version < len(self._versions):
            raise SnapshotNotFound(f"there is no version {version}; the latest is {head.commit.version}")
        return self._versions[version]

    def _append(self, commit: Commit, record: TableRecord, chunks: dict[str, _Held]) -> int:
        self._versions.append(_Version(commit, record, chunks))
        return commit.version


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of blocks that are in memory already."""

    blocks: Blocks

    def column(self, name: str) -> pa.Array:
        column: Any = self.blocks.rows[name]
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

    def column_bytes(self, number: int) -> pa.Array:
        return self.blocks.bytes_of(number)

    def bounds(self, text: str) -> ExpressionBounds:
        return dict(self.blocks.bounds)[text]


def _snapshot(version: _Version) -> Snapshot:
    schemes = {held.scheme: held.chunk.scheme for held in version.chunks.values()}
    by_shape: dict[Any, list[_Held]] = {}
    for name in sorted(version.chunks):
        held = version.chunks[name]
        blocks = held.chunk.blocks
        tracked = tuple((text, one.type) for text, one in blocks.bounds)
        by_shape.setdefault((held.scheme, blocks.columns, tracked), []).append(held)
    return Snapshot(
        version.commit.version,
        version.commit.timestamp,
        version.record.table_id,
        version.record.schema,
        version.record.properties,
        tuple(_block_set(held) for held in by_shape.values()),
        SnapshotSource(schemes.__getitem__, lambda chunk: version.chunks[chunk].chunk.facts),
    )


def _block_set(held: list[_Held]) -> BlockSet:
    blocks = Blocks.concat([one.chunk.blocks.sorted() for one in held])
    counts = np.array([len(one.chunk.blocks) for one in held], dtype=np.int64)
    return BlockSet(
        scheme=held[0].scheme,
        chunks=tuple(one.chunk.name for one in held),
        offsets=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)]),
        columns=blocks.columns,
        tracked={text: one.type for text, one in blocks.bounds},
        source=_Columns(blocks),
    )


def _data_files(versions: list[_Version]) -> set[str]:
    chunks = {id(held): held for version in versions for held in version.chunks.values()}
    return {file for held in chunks.values() for file in held.chunk.blocks.files}
