"""The native home of a table: block catalog in a Delta table, schemes in immutable files, data beside them.

A change is prepared completely (scheme files, one catalog file per chunk, none of them visible) and becomes visible by
one entry in the Delta log, which exactly one writer can make under each version number. Whether a change still applies
on top of what others committed meanwhile is decided here, by chunk, and not left to delta-rs: its own rules refuse an
append beside a replacement.
"""

from __future__ import annotations

import functools
import json
import logging
import posixpath
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from skipstone.catalog.chunk_files import ChunkFiles, in_parallel
from skipstone.catalog.location import Location, told_as_damage
from skipstone.catalog.protocol import DEFAULT_RETENTION
from skipstone.catalog.records import (
    DELTA_SCHEMA,
    TABLE_CHUNK,
    TableRecord,
    chunk_file,
    read_table_record,
    table_file,
)
from skipstone.catalog.rules import (
    oldest_kept,
    require_applicable,
    require_readable,
    require_retention,
    require_sound_change,
    version_at,
)
from skipstone.catalog.schemes import read_scheme, scheme_document, scheme_hash
from skipstone.catalog.values import Change, Commit, NewChunk, Snapshot, SnapshotSource, VacuumReport
from skipstone.errors import (
    CommitConflict,
    InvalidInput,
    SnapshotNotFound,
    StorageFailed,
    TableExists,
    TableNotFound,
    listed,
)
from skipstone.layout.scheme import Scheme

__all__ = ["NativeCatalog"]

_LOG = logging.getLogger(__name__)

ATTEMPTS = 50
"""A commit gives up after losing this many races for a version number in a row."""

VERSIONS_KEPT = 16
"""Lists of live catalog files that a process keeps, for the versions it used last."""

SNAPSHOTS_KEPT = 4
"""Snapshots that a process keeps in memory with all that was loaded of them."""

_OWN_KEY = "skipstone"
"""What we say about a commit stands under this key of Delta's commit information."""

_HOME = "_skipstone"
_BLOCKS = f"{_HOME}/blocks"
_SCHEMES = f"{_HOME}/schemes"
_SEGMENTS = f"{_HOME}/segments"
_MARKER = f"{_HOME}/table.json"
_FORMAT = {"format": 1, "program": "skipstone"}

_CONFIGURATION: dict[str, str | None] = {
    # Old versions stay readable until vacuum says otherwise; delta-rs would drop their log entries after a month.
    "delta.enableExpiredLogCleanup": "false",
    "delta.checkpointInterval": "20",
}


@dataclass(frozen=True, slots=True)
class _Version:
    """One version of the Delta table: its live catalog files, as chunk and Delta's own facts on the file."""

    number: int
    files: dict[str, _LiveFile]

    @property
    def by_chunk(self) -> dict[str, str]:
        return {file.chunk: path for path, file in self.files.items()}

    @property
    def record_path(self) -> str:
        return self.by_chunk[TABLE_CHUNK]


@dataclass(frozen=True, slots=True)
class _LiveFile:
    chunk: str
    size: int
    blocks: int


class NativeCatalog:
    """The block catalog of the table at a location, as the design's native home.

    It may be used from several threads, and from any number of processes at once. What it has read it keeps in memory:
    catalog files never change, so a later snapshot costs only what is new.
    """

    def __init__(self, location: Location) -> None:
        self.location = location
        self._blocks_at = location.child(*_BLOCKS.split("/"))
        self._files = ChunkFiles(self._blocks_at, location.child(*_SEGMENTS.split("/")))
        self._lock = threading.Lock()
        self._latest: DeltaTable | None = None
        self._versions: dict[int, _Version] = {}
        self._snapshots: dict[int, Snapshot] = {}
        self._scheme = functools.lru_cache(maxsize=1024)(self._load_scheme)
        self._record = functools.lru_cache(maxsize=64)(self._load_record)

    # What the protocol asks for.

    def create(
        self, schema: pa.Schema, *, properties: tuple[tuple[str, str], ...] = (), operation: str = "create"
    ) -> Snapshot:
        """Make an empty table and give its first snapshot; TableExists where there is one."""
        if self.exists():
            raise TableExists(f"there is a table at {self.location.uri} already")
        self.location.write(_MARKER, json.dumps(_FORMAT).encode())
        record = TableRecord(uuid.uuid4().hex, schema, tuple(sorted(properties)))
        add = self._write_record(record)
        try:
            create_table_with_add_actions(
                self._blocks_at.uri,
                Schema.from_arrow(DELTA_SCHEMA),
                [add],
                mode="error",
                partition_by=["chunk"],
                configuration=_CONFIGURATION,
                storage_options=self.location.storage_options,
                commit_properties=_properties(operation, {}, uuid.uuid4().hex),
            )
        except (DeltaError, OSError) as error:
            if self.exists():
                raise TableExists(f"there is a table at {self.location.uri} already") from error
            raise
        return self.snapshot()

    def exists(self) -> bool:
        """Whether there is a table here."""
        return DeltaTable.is_deltatable(self._blocks_at.uri, self.location.storage_options)

    def snapshot(self, version: int | None = None, *, timestamp: datetime | None = None) -> Snapshot:
        """The latest snapshot, that of a version, or the one that was the latest at a point in time."""
        if version is not None and timestamp is not None:
            raise InvalidInput("ask for a version or for a point in time, not for both")
        head = self._head()
        if timestamp is not None:
            version = version_at(self.history(), timestamp)
        if version is None or version == head.number:
            return self._snapshot(head)
        require_readable(version, self._record(head.record_path).oldest_version)
        return self._snapshot(self._version(version))

    def commit(self, change: Change, *, base: int) -> int:
        """Make a change on top of version `base` and give the new version."""
        require_sound_change(change)
        base_version = self._version(base)
        base_schema = self._record(base_version.record_path).schema
        prepared: list[AddAction] | None = None
        for attempt in range(ATTEMPTS):
            head = self._head()
            record = self._record(head.record_path)
            require_applicable(change, base_version.by_chunk, base_schema, head.by_chunk, record.schema)
            if prepared is None:
                prepared = self._prepare(change, record.schema if change.schema is None else change.schema)
            made = self._try_commit(head, self._actions(change, prepared, head), change.operation, _entry_of(change))
            if made is not None:
                _LOG.info(
                    "%s: version %d is a commit of %s: %d chunks added, %d replaced, %d removed",
                    *(self.location.uri, made, change.operation),
                    *(len(change.added), len(change.replaced), len(change.removed)),
                )
                self._put_together()
                return made
            _LOG.debug("%s: another writer made version %d first; trying again", self.location.uri, head.number + 1)
            time.sleep(min(0.001 * 2**attempt, 0.1))
        raise CommitConflict(
            f"{change.operation}: lost {ATTEMPTS} races for the next version in a row; try again later"
        )

    def _actions(self, change: Change, prepared: Sequence[AddAction], head: _Version) -> list[AddAction | RemoveAction]:
        actions: list[AddAction | RemoveAction] = list(prepared)
        gone = {chunk.name for chunk in change.replaced} | set(change.removed)
        if change.schema is not None or change.properties is not None:
            record = self._record(head.record_path)
            changed = replace(
                record,
                schema=record.schema if change.schema is None else change.schema,
                properties=record.properties if change.properties is None else tuple(sorted(change.properties)),
            )
            actions.append(self._write_record(changed))
            gone.add(TABLE_CHUNK)
        return actions + [_remove(path, file) for path, file in head.files.items() if file.chunk in gone]

    def history(self, limit: int | None = None) -> tuple[Commit, ...]:
        """The commits, latest first."""
        head = self._head()
        oldest = self._record(head.record_path).oldest_version
        oldest_wanted = 0 if limit is None else max(0, head.number + 1 - limit)
        commits = []
        # A clock may have been set back; a version is never older than the one before it.
        latest = datetime.fromtimestamp(0, UTC)
        for version in range(oldest_wanted, head.number + 1):
            commit = _commit_of(version, _commit_info(self._log_entry(version)), oldest)
            latest = max(latest, commit.timestamp)
            commits.append(replace(commit, timestamp=latest))
        return tuple(reversed(commits))

    def restore(self, version: int) -> int:
        """Make the table what it was at a version, as a new commit, and give the new version."""
        head = self._head()
        require_readable(version, self._record(head.record_path).oldest_version)
        wanted = self._version(version)
        record = self._record(head.record_path)
        restored = replace(self._record(wanted.record_path), oldest_version=record.oldest_version)
        adds: list[AddAction | RemoveAction] = [
            _add(path, file)
            for path, file in wanted.files.items()
            if path not in head.files and file.chunk != TABLE_CHUNK
        ]
        removes = [
            _remove(path, file)
            for path, file in head.files.items()
            if path not in wanted.files or file.chunk == TABLE_CHUNK
        ]
        actions = [*adds, self._write_record(restored), *removes]
        made = self._try_commit(head, actions, "restore", {"metrics": [["version", version]]})
        if made is None:
            raise CommitConflict(
                f"restore to version {version}: another writer committed meanwhile, and its change would be undone "
                "unseen. Look at the history and restore again if that is still wanted"
            )
        return made

    def vacuum(
        self,
        retention: timedelta = DEFAULT_RETENTION,
        *,
        dry_run: bool = True,
        allow_short_retention: bool = False,
    ) -> VacuumReport:
        """Delete the files that no snapshot of the retention period uses, and say which they were."""
        require_retention(retention, allow_short_retention)
        cutoff = datetime.now(UTC) - retention
        for _ in range(ATTEMPTS):
            head = self._head()
            history = [commit for commit in self.history() if commit.version <= head.number]
            oldest = oldest_kept(history, cutoff, self._record(head.record_path).oldest_version)
            used = self._used_since(oldest, head)
            orphans = [
                file
                for file in self.location.list()
                if _can_be_orphan(file.path) and file.path not in used and file.modified <= cutoff
            ]
            report = VacuumReport(
                tuple(file.path for file in orphans), sum(file.size for file in orphans), oldest, dry_run
            )
            # The horizon moves first: from then on nobody is promised what is about to go.
            if dry_run or self._move_horizon(head, oldest):
                break
        else:
            raise CommitConflict(f"vacuum: lost {ATTEMPTS} races for the next version in a row; try again later")
        if not dry_run:
            for file in orphans:
                self.location.delete(file.path)
            _LOG.info("%s: %d files, %d bytes deleted", self.location.uri, len(orphans), report.bytes)
        return report

    # Versions of the Delta table.

    def _head(self) -> _Version:
        with self._lock:
            if self._latest is None:
                self._latest = self._delta(None)
            else:
                self._latest.update_incremental()
            return self._version_of(self._latest)

    def _delta(self, version: int | None) -> DeltaTable:
        try:
            return DeltaTable(self._blocks_at.uri, version, self.location.storage_options)
        except TableNotFoundError as error:
            if version is not None and self.exists():
                raise self._no_version(version) from error
            raise TableNotFound(f"there is no table at {self.location.uri}") from error
        except DeltaError as error:
            if version is None:
                raise
            raise self._no_version(version) from error

    def _no_version(self, version: int) -> SnapshotNotFound:
        latest = self._head().number
        return SnapshotNotFound(f"there is no version {version} of {self.location.uri}; the latest is {latest}")

    def _version(self, number: int) -> _Version:
        if number < 0:
            raise self._no_version(number)
        kept = self._versions.get(number)
        return self._version_of(self._delta(number)) if kept is None else kept

    def _version_of(self, table: DeltaTable) -> _Version:
        number = table.version()
        kept = self._versions.get(number)
        if kept is not None:
            return kept
        adds: Any = pa.table(table.get_add_actions(flatten=True))
        files = {
            path: _LiveFile(chunk, size, rows)
            for path, chunk, size, rows in zip(
                *(adds[name].to_pylist() for name in ("path", "partition.chunk", "size_bytes", "num_records")),
                strict=True,
            )
        }
        found = _Version(number, files)
        self._versions[number] = found
        while len(self._versions) > VERSIONS_KEPT:
            self._versions.pop(next(iter(self._versions)), None)
        return found

    # Reading.

    def _snapshot(self, version: _Version) -> Snapshot:
        kept = self._snapshots.get(version.number)
        if kept is not None:
            return kept
        record = self._record(version.record_path)
        by_chunk = version.by_chunk
        source = SnapshotSource(self._scheme, lambda chunk: self._files.facts(by_chunk[chunk]))
        snapshot = Snapshot(
            version.number,
            self._timestamp(version.number),
            record.table_id,
            record.schema,
            record.properties,
            self._files.block_sets(_chunks_of(version)),
            source,
        )
        with self._lock:
            self._snapshots[version.number] = snapshot
            while len(self._snapshots) > SNAPSHOTS_KEPT:
                del self._snapshots[next(iter(self._snapshots))]
            versions = [self._versions[number] for number in self._snapshots if number in self._versions]
        self._files.keep_only(path for one in versions for path in one.files)
        return snapshot

    def _timestamp(self, version: int) -> datetime:
        return _moment(_commit_info(self._log_entry(version)))

    def _log_entry(self, version: int) -> list[dict[str, Any]]:
        content = self._blocks_at.read(f"_delta_log/{version:020d}.json")
        return [json.loads(line) for line in content.splitlines() if line.strip()]

    def _load_scheme(self, name: str) -> Scheme:
        with told_as_damage(self.location, f"{_SCHEMES}/{name}.json"):
            return read_scheme(self.location.read(f"{_SCHEMES}/{name}.json"))

    def _load_record(self, path: str) -> TableRecord:
        with told_as_damage(self._blocks_at, path):
            return read_table_record(self._blocks_at.read(path))

    # Writing.

    def _prepare(self, change: Change, schema: pa.Schema) -> list[AddAction]:
        chunks = (*change.added, *change.replaced)
        missing = self.location.missing(sorted({file for chunk in chunks for file in chunk.blocks.files}))
        if missing:
            raise InvalidInput(
                f"{change.operation}: these data files are not there (any more): {listed(missing)}. "
                "Has a vacuum with a short retention run meanwhile?"
            )
        names = {scheme: self._write_scheme(scheme, schema) for scheme in {chunk.scheme for chunk in chunks}}
        return in_parallel(lambda chunk: self._write_chunk(chunk, names[chunk.scheme]), chunks)

    def _write_scheme(self, scheme: Scheme, schema: pa.Schema) -> str:
        document = scheme_document(scheme, schema)
        name = scheme_hash(document)
        self.location.write(f"{_SCHEMES}/{name}.json", document)
        return name

    def _write_chunk(self, chunk: NewChunk, scheme: str) -> AddAction:
        return self._write_catalog_file(chunk.name, chunk_file(chunk, scheme), len(chunk.blocks))

    def _put_together(self) -> None:
        """Make reading faster for those who come next. The commit is made, and whether this works out is no matter."""
        try:
            self._files.put_together(_chunks_of(self._head()))
        except OSError:
            return

    def _write_record(self, record: TableRecord) -> AddAction:
        return self._write_catalog_file(TABLE_CHUNK, table_file(record), 1)

    def _write_catalog_file(self, chunk: str, content: bytes, rows: int) -> AddAction:
        path = posixpath.join(f"chunk={chunk}", f"{uuid.uuid4().hex}.parquet")
        self._blocks_at.write(path, content)
        return _add(path, _LiveFile(chunk, len(content), rows))

    def _try_commit(
        self, head: _Version, actions: Sequence[AddAction | RemoveAction], operation: str, entry: dict[str, Any]
    ) -> int | None:
        """Become the version after `head`, or give None if another writer has."""
        commit_id = uuid.uuid4().hex
        table = self._delta(head.number)
        try:
            table.create_write_transaction(
                list(actions),
                "append",
                Schema.from_arrow(DELTA_SCHEMA),
                partition_by=["chunk"],
                commit_properties=_properties(operation, entry, commit_id),
            )
        except (DeltaError, OSError) as error:
            return self._after_failure(head.number + 1, commit_id, error)
        return head.number + 1

    def _after_failure(self, version: int, commit_id: str, error: Exception) -> int | None:
        # A failure may come after the entry was made: an answer was lost on the way, or the checkpoint after it failed.
        try:
            entry = self._log_entry(version)
        except FileNotFoundError:
            raise StorageFailed(f"the commit of version {version} failed, nothing was committed: {error}") from error
        return version if _own(_commit_info(entry)).get("commit_id") == commit_id else None

    # Vacuum.

    def _used_since(self, oldest: int, head: _Version) -> set[str]:
        catalog_files = {path: file.chunk for path, file in self._version(oldest).files.items()}
        for version in range(oldest + 1, head.number + 1):
            for action in self._log_entry(version):
                if "add" in action:
                    catalog_files[action["add"]["path"]] = action["add"]["partitionValues"]["chunk"]
        chunks = {path: chunk for path, chunk in catalog_files.items() if chunk != TABLE_CHUNK}
        used = {posixpath.join(_BLOCKS, path) for path in catalog_files}
        used |= {posixpath.join(_SEGMENTS, path) for path in self._files.used_segments(chunks)}
        return used | self._files.data_files(chunks)

    def _move_horizon(self, head: _Version, oldest: int) -> bool:
        record = self._record(head.record_path)
        if record.oldest_version == oldest:
            return True
        old_path = head.record_path
        actions: list[AddAction | RemoveAction] = [self._write_record(replace(record, oldest_version=oldest))]
        actions.append(_remove(old_path, head.files[old_path]))
        return self._try_commit(head, actions, "vacuum", {"metrics": [["oldest_version", oldest]]}) is not None


def _chunks_of(version: _Version) -> dict[str, str]:
    """The catalog files of a version's chunks, with the chunks' names."""
    return {path: file.chunk for path, file in version.files.items() if file.chunk != TABLE_CHUNK}


def _can_be_orphan(path: str) -> bool:
    # Scheme files are never deleted: they are small, and a writer may be about to name one that is there.
    if path.startswith(f"{_BLOCKS}/"):
        return not path.startswith(f"{_BLOCKS}/_delta_log/")
    return path.startswith(("data/", f"{_SEGMENTS}/")) or path.endswith(".unfinished")


def _add(path: str, file: _LiveFile) -> AddAction:
    statistics = json.dumps({"numRecords": file.blocks})
    return AddAction(path, file.size, {"chunk": file.chunk}, _now_ms(), True, statistics)


def _remove(path: str, file: _LiveFile) -> RemoveAction:
    return RemoveAction(path, True, _now_ms(), file.size, {"chunk": file.chunk})


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _properties(operation: str, entry: dict[str, Any], commit_id: str) -> CommitProperties:
    own = {"operation": operation, "commit_id": commit_id, **entry}
    # Without retries by delta-rs a lost race is told at once, and we judge it.
    return CommitProperties(custom_metadata={_OWN_KEY: json.dumps(own)}, max_commit_retries=0)


def _commit_info(entry: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return next((action["commitInfo"] for action in entry if "commitInfo" in action), {})


def _own(commit_info: dict[str, Any]) -> dict[str, Any]:
    return json.loads(commit_info.get(_OWN_KEY, "{}"))  # type: ignore[no-any-return]


def _moment(commit_info: dict[str, Any]) -> datetime:
    return datetime.fromtimestamp(commit_info.get("timestamp", 0) / 1000, UTC)


def _entry_of(change: Change) -> dict[str, Any]:
    return {
        "added": len(change.added),
        "replaced": len(change.replaced),
        "removed": len(change.removed),
        "metrics": [list(note) for note in change.metrics],
    }


def _commit_of(version: int, commit_info: dict[str, Any], oldest: int) -> Commit:
    own = _own(commit_info)
    return Commit(
        version,
        _moment(commit_info),
        own.get("operation", str(commit_info.get("operation", "")).lower()),
        own.get("added", 0),
        own.get("replaced", 0),
        own.get("removed", 0),
        tuple((name, value) for name, value in own.get("metrics", [])),
        restorable=version >= oldest,
    )
