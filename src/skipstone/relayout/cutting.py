"""Cut sorted rows into blocks: never fewer rows than asked for, never twice as many within a group.

Sun et al., "Fine-grained Partitioning for Aggressive Data Skipping", SIGMOD 2014, section 3.4.4 of the dissertation:
blocks have between minSize and 2 * minSize rows. A group (rows that a clustering wants together) with more rows is
cut evenly; groups that turn out smaller than a block share one with their neighbours.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skipstone.layout.sampling import joined

__all__ = ["block_ends"]


def block_ends(groups: npt.NDArray[np.int32], block_rows: int) -> npt.NDArray[np.int64]:
    """Give the end (exclusive) of each block in rows that are sorted by group.

    Group 0 fills a block; the two rows of group 1 do not, and share one with the first of group 2.

    >>> block_ends(np.array([0, 0, 0, 1, 1] + [2] * 7, dtype=np.int32), block_rows=3).tolist()
    [3, 6, 9, 12]
    >>> block_ends(np.array([4], dtype=np.int32), block_rows=3).tolist()
    [1]
    """
    if len(groups) == 0:
        return np.empty(0, np.int64)
    run_ends = np.append(np.flatnonzero(groups[1:] != groups[:-1]) + 1, len(groups))
    ends: list[npt.NDArray[np.int64]] = []
    start = 0
    for span in joined(np.diff(run_ends, prepend=0), block_rows).tolist():
        count = max(1, span // block_rows)
        ends.append(start + (np.arange(1, count + 1) * span) // count)
        start += span
    return np.concatenate(ends).astype(np.int64)
