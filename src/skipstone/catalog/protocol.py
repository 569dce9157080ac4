"""What a home for a table's block catalog can do, whichever it is."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

import pyarrow as pa

from skipstone.catalog.values import Change, Commit, Snapshot, VacuumReport

__all__ = ["DEFAULT_RETENTION", "Catalog"]

DEFAULT_RETENTION = timedelta(days=7)
"""How long a snapshot that is no longer the latest stays readable, and how long a writer may take; vacuum's floor."""


class Catalog(Protocol):
    """The block catalog of one table: snapshots to read, and changes that are made whole or not at all."""

    def create(
        self, schema: pa.Schema, *, properties: tuple[tuple[str, str], ...] = (), operation: str = "create"
    ) -> Snapshot:
        """Make an empty table and give its first snapshot; TableExists where there is one."""

    def snapshot(self, version: int | None = None, *, timestamp: datetime | None = None) -> Snapshot:
        """The latest snapshot, that of a version, or the one that was the latest at a point in time.

        TableNotFound where there is no table; SnapshotNotFound for a version that never was or has been vacuumed.
        """

    def commit(self, change: Change, *, base: int) -> int:
        """Make a change on top of version `base` and give the new version.

        Commits made in between are no hindrance where they touched other chunks. CommitConflict where another writer
        replaced or removed one of the same chunks, added one of the same name, or changed the schema in a way that
        matters; then nothing of this change is in the table.
        """

    def history(self, limit: int | None = None) -> tuple[Commit, ...]:
        """The commits, latest first."""

    def restore(self, version: int) -> int:
        """Make the table what it was at a version, as a new commit, and give the new version."""

    def vacuum(
        self,
        retention: timedelta = DEFAULT_RETENTION,
        *,
        dry_run: bool = True,
        allow_short_retention: bool = False,
    ) -> VacuumReport:
        """Delete the files that no snapshot of the retention period uses, and say which they were.

        A file younger than the retention is never deleted: a running writer may be about to commit it. A retention
        below `DEFAULT_RETENTION` is refused unless it is allowed explicitly.
        """
