"""What a change must be, and when it may be made on top of what others have committed meanwhile.

Every home of a catalog keeps the same rules, so they stand here, over plain values: a version of a table is a map from
chunks to something that identifies a chunk's content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pyarrow as pa

from skipstone.catalog.protocol import DEFAULT_RETENTION
from skipstone.catalog.values import Change, Commit, NewChunk, require_chunk_name
from skipstone.errors import CommitConflict, InvalidInput, SnapshotNotFound, listed

__all__ = [
    "oldest_kept",
    "require_applicable",
    "require_readable",
    "require_retention",
    "require_sound_change",
    "still_reads",
    "version_at",
]


def require_sound_change(change: Change) -> None:
    """Raise InvalidInput unless a change makes sense by itself."""
    names = [*(chunk.name for chunk in (*change.added, *change.replaced)), *change.removed]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InvalidInput(f"{change.operation}: a chunk can be changed once in a commit; named twice: {listed(twice)}")
    for chunk in (*change.added, *change.replaced):
        require_chunk_name(chunk.name)
        _require_complete(chunk)


def require_applicable(
    change: Change,
    base: Mapping[str, Hashable],
    base_schema: pa.Schema,
    head: Mapping[str, Hashable],
    head_schema: pa.Schema,
) -> None:
    """Raise unless a change that was prepared on top of `base` is still right on top of `head`."""
    touched = [*(chunk.name for chunk in change.replaced), *change.removed]
    strangers = sorted(name for name in touched if name not in base)
    if strangers:
        raise InvalidInput(f"{change.operation}: the base version has no such chunks: {listed(strangers)}")
    known = sorted(chunk.name for chunk in change.added if chunk.name in base)
    if known:
        raise InvalidInput(f"{change.operation}: the table has chunks of these names already: {listed(known)}")
    lost = sorted(name for name in touched if head.get(name) != base[name])
    lost += sorted(chunk.name for chunk in change.added if chunk.name in head)
    if lost:
        raise CommitConflict(
            f"{change.operation}: another writer changed these chunks first: {listed(lost)}. "
            "Nothing was lost and nothing of this change was committed; start again from the latest snapshot"
        )
    if head_schema == base_schema:
        return
    if change.schema is not None:
        raise CommitConflict(f"{change.operation}: another writer changed the table's schema first; start again")
    if (change.added or change.replaced) and not still_reads(base_schema, head_schema):
        raise CommitConflict(
            f"{change.operation}: another writer changed the table's schema in a way that these chunks do not fit; "
            "start again from the latest snapshot"
        )


def still_reads(old: pa.Schema, new: pa.Schema) -> bool:
    """Whether chunks written under an old schema can be read under a new one: columns were only added, as nullable.

    >>> old = pa.schema([("a", pa.int64())])
    >>> still_reads(old, pa.schema([("a", pa.int64()), ("b", pa.string())]))
    True
    >>> still_reads(old, pa.schema([("a", pa.string())]))
    False
    """
    if any(name not in new.names or new.field(name) != old.field(name) for name in old.names):
        return False
    return all(field.nullable for field in new if field.name not in old.names)


def require_retention(retention: timedelta, allow_short_retention: bool) -> None:
    """Raise InvalidInput for a retention below the floor, unless that is asked for by name."""
    if retention < timedelta(0):
        raise InvalidInput(f"a retention cannot be negative; it was {retention / timedelta(hours=1):g} hours")
    if retention < DEFAULT_RETENTION and not allow_short_retention:
        raise InvalidInput(
            f"a retention of {retention} is below the floor of {DEFAULT_RETENTION.days} days: files of a writer that "
            "is still at work, or of a reader's snapshot, could be deleted. Pass allow_short_retention if nobody else "
            "uses the table"
        )


def require_readable(version: int, oldest: int) -> None:
    """Raise SnapshotNotFound for a version that has been vacuumed."""
    if 0 <= version < oldest:
        raise SnapshotNotFound(f"version {version} has been vacuumed; the oldest that is left is {oldest}")


def version_at(history: Sequence[Commit], timestamp: datetime) -> int:
    """The version that was the latest at a point in time, in UTC if it has no zone; `history` is latest first."""
    moment = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
    found = next((commit.version for commit in history if commit.timestamp <= moment), None)
    if found is None:
        raise SnapshotNotFound(f"the table did not exist yet at {moment.isoformat()}")
    if not next(commit.restorable for commit in history if commit.version == found):
        raise SnapshotNotFound(f"version {found}, the latest at {moment.isoformat()}, has been vacuumed")
    return found


def oldest_kept(history: Sequence[Commit], cutoff: datetime, oldest: int) -> int:
    """The oldest version that was the latest at some time after the cutoff, and not below `oldest`.

    `history` is latest first; the latest version is always kept.
    """
    kept = oldest
    for superseded, by in pairwise(reversed(history)):
        if by.timestamp <= cutoff:
            kept = max(kept, superseded.version + 1)
    return kept


def _require_complete(chunk: NewChunk) -> None:
    scheme = chunk.scheme
    if len(chunk.blocks) == 0:
        raise InvalidInput(f'chunk "{chunk.name}" has no blocks; a chunk needs at least one row')
    rows = chunk.blocks.rows
    layouts = rows["layout"].to_numpy()
    if layouts.min() < 0 or layouts.max() >= len(scheme.layouts):
        raise InvalidInput(f'chunk "{chunk.name}" has blocks of layout {layouts.max()}, which its scheme does not have')
    counts = rows["rows"].to_numpy()
    for number, layout in enumerate(scheme.layouts):
        held = int(counts[layouts == number].sum())
        if layout.holds_all_rows and held != chunk.facts.rows:
            raise InvalidInput(
                f'chunk "{chunk.name}" has {chunk.facts.rows} rows, but its layout {number}, which must hold all of '
                f"them, has {held}"
            )
