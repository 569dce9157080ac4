"""What was asked of a table and what it cost to answer: a Delta table beside the block catalog.

It is append-only, and losing an entry loses no data, so it is written with delta-rs's own transactions. Nothing here is
needed to read the table.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from skipstone.catalog.location import Location
from skipstone.errors import StorageFailed

__all__ = ["LoggedQuery", "MemoryQueryLog", "NativeQueryLog", "QueryLog"]

APPENDS_PER_FILE = 64
"""Each append makes a file; after so many they are put into one, for the sake of whoever reads the log."""

_SCHEMA = pa.schema(
    [
        ("asked_at", pa.timestamp("us", "UTC")),
        ("sql", pa.string()),
        ("template", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("filter", pa.string()),
        ("version", pa.int64()),
        ("blocks_read", pa.int64()),
        ("blocks_total", pa.int64()),
        ("rows_read", pa.int64()),
        ("rows_total", pa.int64()),
        ("cells_read", pa.int64()),
        ("bytes_read", pa.int64()),
        ("seconds", pa.float64()),
    ]
)
"""The names are those of the fields of `LoggedQuery`."""


@dataclass(frozen=True, slots=True)
class LoggedQuery:
    """One request to one table as it was answered.

    `filter` is the canonical text of what was understood of the filter; `version` is the snapshot that was read;
    `seconds` is None where nobody waited for the answer, as for a plan that another engine executes.
    """

    asked_at: datetime
    sql: str
    version: int
    columns: tuple[str, ...] = ()
    filter: str = ""
    template: str = ""
    blocks_read: int = 0
    blocks_total: int = 0
    rows_read: int = 0
    rows_total: int = 0
    cells_read: int = 0
    bytes_read: int = 0
    seconds: float | None = None


class QueryLog(Protocol):
    """Where queries are remembered."""

    def append(self, queries: Sequence[LoggedQuery]) -> None:
        """Remember some queries."""

    def read(self, since: datetime | None = None) -> tuple[LoggedQuery, ...]:
        """Give the queries asked at or after a point in time, oldest first."""

    def forget(self, before: datetime) -> int:
        """Forget the queries asked before a point in time, and say how many those were."""


class MemoryQueryLog:
    """A query log for tests and notebooks.

    >>> log = MemoryQueryLog()
    >>> log.append([LoggedQuery(datetime(2024, 1, 1, tzinfo=UTC), "SELECT 1", 0)])
    >>> len(log.read())
    1
    """

    def __init__(self) -> None:
        self._queries: list[LoggedQuery] = []

    def append(self, queries: Sequence[LoggedQuery]) -> None:
        """Remember some queries."""
        self._queries.extend(queries)

    def read(self, since: datetime | None = None) -> tuple[LoggedQuery, ...]:
        """Give the queries asked at or after a point in time, oldest first."""
        chosen = [one for one in self._queries if since is None or one.asked_at >= since]
        return tuple(sorted(chosen, key=lambda one: one.asked_at))

    def forget(self, before: datetime) -> int:
        """Forget the queries asked before a point in time, and say how many those were."""
        kept = [one for one in self._queries if one.asked_at >= before]
        forgotten = len(self._queries) - len(kept)
        self._queries = kept
        return forgotten


class NativeQueryLog:
    """The query log of the table at a location."""

    def __init__(self, location: Location) -> None:
        self._at = location.child("_skipstone", "queries")
        self._appended = 0
        self._lock = threading.Lock()

    def append(self, queries: Sequence[LoggedQuery]) -> None:
        """Remember some queries."""
        if not queries:
            return
        columns = {
            field.name: pa.array([_plain(getattr(one, field.name)) for one in queries], field.type) for field in _SCHEMA
        }
        try:
            with self._lock:
                write_deltalake(
                    self._at.uri,
                    pa.table(columns, schema=_SCHEMA),
                    mode="append",
                    storage_options=self._at.storage_options,
                )
                self._appended += 1
                if self._appended % APPENDS_PER_FILE == 0:
                    self._put_together()
        except (DeltaError, OSError) as error:
            raise StorageFailed(f"the query log at {self._at.uri} could not be written: {error}") from error

    def read(self, since: datetime | None = None) -> tuple[LoggedQuery, ...]:
        """Give the queries asked at or after a point in time, oldest first."""
        table = self._table()
        if table is None:
            return ()
        rows: Any = table.to_pyarrow_table(filters=None if since is None else [("asked_at", ">=", since)])
        found = [LoggedQuery(**{**row, "columns": tuple(row["columns"])}) for row in rows.to_pylist()]
        return tuple(sorted(found, key=lambda one: one.asked_at))

    def forget(self, before: datetime) -> int:
        """Forget the queries asked before a point in time, and say how many those were.

        The files that held them are deleted once Delta's own retention has passed.
        """
        table = self._table()
        if table is None:
            return 0
        moment = before.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        # A plain timestamp literal is in nanoseconds, which delta-rs does not compare with microseconds.
        condition = f"""asked_at < arrow_cast('{moment}', 'Timestamp(Microsecond, Some("UTC"))')"""
        try:
            found = table.delete(condition)
            table.vacuum(dry_run=False)
        except (DeltaError, OSError) as error:
            raise StorageFailed(f"the query log at {self._at.uri} could not be changed: {error}") from error
        return int(found["num_deleted_rows"] or 0)

    def _table(self) -> DeltaTable | None:
        try:
            return DeltaTable(self._at.uri, storage_options=self._at.storage_options)
        except TableNotFoundError:
            return None

    def _put_together(self) -> None:
        table = self._table()
        try:
            if table is not None:
                table.optimize.compact()
        except (DeltaError, OSError):
            # Somebody else did it at the same time, or it will be done next time: it only saves time.
            return


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
