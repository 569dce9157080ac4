"""Nothing is committed before what was written has been compared with what was read.

For every layout with masters: as many rows as were read, the same bag of values in every master column, and, where rows
were checksummed as rows, every value beside the others (and the row id) that it was read with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from skipstone.catalog.values import RESERVED_PREFIX, ROW_ID, Checksum
from skipstone.errors import VerificationFailed, listed
from skipstone.layout.scheme import Scheme
from skipstone.store.checksum import Checksums, checksums

if TYPE_CHECKING:
    from skipstone.store.writer import Written

__all__ = ["require_nothing_lost", "source_checksums", "whole_row_columns", "whole_rows_name"]


def whole_rows_name(layout: int) -> str:
    """The name under which the checksum of a layout's whole rows is kept.

    >>> whole_rows_name(2)
    '_skipstone_rows_of_layout_2'
    """
    return f"{RESERVED_PREFIX}rows_of_layout_{layout}"


def whole_row_columns(scheme: Scheme) -> dict[str, tuple[str, ...]]:
    """For each layout that holds all rows, the columns that are checksummed as rows: its masters and the row id.

    >>> whole_row_columns(Scheme.raw(["b", "a"]))
    {'_skipstone_rows_of_layout_0': ('a', 'b')}
    """
    ids = (ROW_ID,) if scheme.needs_row_ids else ()
    return {
        whole_rows_name(number): (*sorted(layout.masters), *ids)
        for number, layout in enumerate(scheme.layouts)
        if layout.holds_all_rows
    }


def source_checksums(scheme: Scheme, batch: pa.RecordBatch | pa.Table) -> Checksums:
    """Checksum rows as they are read, for comparison with what is written; with `ROW_ID` where the scheme needs it."""
    return checksums(batch, whole_rows=whole_row_columns(scheme))


def require_nothing_lost(scheme: Scheme, read: Checksums, written: Written, *, what: str) -> None:
    """Raise VerificationFailed, saying what differs, unless every layout holds what was read.

    `read` are the `source_checksums` of all rows; `what` names the chunk for the message. Row ids and whole rows are
    compared where `read` has them.
    """
    known = dict(read)
    wrong: list[str] = []
    for number, layout in enumerate(scheme.layouts):
        if not layout.holds_all_rows:
            continue
        there = dict(written.checksums_of(number))
        ids = [ROW_ID] if scheme.needs_row_ids else []
        wrong += [
            _difference(number, name, known[name], there.get(name, Checksum()))
            for name in (*sorted(layout.masters), *ids, whole_rows_name(number))
            if name in known and there.get(name) != known[name]
        ]
        unread = sorted(layout.masters - known.keys())
        if unread:
            raise VerificationFailed(f"{what}: there is nothing to compare the columns {listed(unread)} with")
    if wrong:
        raise VerificationFailed(
            f"{what}: what was written is not what was read, so nothing was committed. {listed(wrong)}. "
            "Does the source give the same rows each time it is read? If it does, please report this as a bug"
        )


def _difference(layout: int, name: str, read: Checksum, written: Checksum) -> str:
    shown = "whole rows" if name.startswith(RESERVED_PREFIX) and name != ROW_ID else name
    if read.rows != written.rows:
        return f"layout {layout}, {shown}: {read.rows} rows read, {written.rows} written"
    return f"layout {layout}, {shown}: other values"
