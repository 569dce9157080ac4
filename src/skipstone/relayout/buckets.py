"""Plan the shuffle: which bucket each row goes to, so that a bucket is a few blocks and buckets keep the order.

Rows are ordered by (group, order key). A bucket is a range of that order: several small groups, or part of a large
one. One task holds one bucket in memory, sorts it and writes its blocks. The plan is made from a sample, so buckets are
of about the wanted size, never exactly; nothing but balance depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["BucketPlan", "plan_buckets"]


@dataclass(frozen=True, slots=True, eq=False)
class BucketPlan:
    """The first (group, order key) of each bucket, in ascending order; bucket 0 begins before everything."""

    first_group: npt.NDArray[np.int32]
    first_order: npt.NDArray[np.uint64]

    @property
    def count(self) -> int:
        """How many buckets there are."""
        return len(self.first_group)

    def bucket_of(self, group: npt.NDArray[np.int32], order: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
        """Give the bucket of each row.

        >>> plan = BucketPlan(np.array([0, 2, 2], np.int32), np.array([0, 0, 50], np.uint64))
        >>> plan.bucket_of(np.array([0, 1, 2, 2, 9], np.int32), np.array([7, 7, 49, 50, 0], np.uint64)).tolist()
        [0, 0, 1, 2, 2]
        """
        bucket = np.searchsorted(self.first_group, group, side="right").astype(np.int32) - 1
        for split_group in np.unique(self.first_group[self.first_order > 0]):
            low, high = np.searchsorted(self.first_group, [split_group, split_group + 1])
            here = group == split_group
            bucket[here] = low - 1 + np.searchsorted(self.first_order[low:high], order[here], side="right")
        return np.maximum(bucket, 0)


def plan_buckets(
    group: npt.NDArray[np.int32], order: npt.NDArray[np.uint64], *, rows: int, bucket_rows: int
) -> BucketPlan:
    """Cut the order of a sample into buckets that stand for about `bucket_rows` of all `rows` rows.

    A group that fills a bucket gets buckets of its own; smaller ones share.

    >>> sample = np.repeat(np.arange(4, dtype=np.int32), [10, 10, 60, 20])
    >>> plan = plan_buckets(sample, np.arange(100, dtype=np.uint64), rows=1000, bucket_rows=200)
    >>> list(zip(plan.first_group.tolist(), plan.first_order.tolist()))
    [(0, 0), (2, 0), (2, 40), (2, 60), (3, 0)]
    """
    if len(group) == 0:
        return BucketPlan(np.zeros(1, np.int32), np.zeros(1, np.uint64))
    sampled = max(1, round(bucket_rows * len(group) / max(rows, len(group))))
    by_order = np.lexsort((order, group))
    group, order = group[by_order], order[by_order]
    starts = np.append(0, np.flatnonzero(group[1:] != group[:-1]) + 1)
    ends = np.append(starts[1:], len(group))
    firsts: list[tuple[int, int]] = []
    filled = sampled  # as if the bucket before the first were full
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        pieces = max(1, (end - start) // sampled)
        if filled + (end - start) > sampled or pieces > 1:
            firsts.append((int(group[start]), 0))
            filled = 0
        cuts = {int(order[start + (end - start) * piece // pieces]) for piece in range(1, pieces)}
        firsts.extend((int(group[start]), cut) for cut in sorted(cuts) if cut > int(order[start]))
        filled = sampled if pieces > 1 else filled + (end - start)
    return BucketPlan(
        np.array([first for first, _ in firsts], np.int32), np.array([cut for _, cut in firsts], np.uint64)
    )
