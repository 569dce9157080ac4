"""Where rows go on their way into blocks: shuffle buckets, then block boundaries."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skipstone.relayout.buckets import plan_buckets
from skipstone.relayout.cutting import block_ends

group_sizes = st.lists(st.integers(1, 40), min_size=0, max_size=20)


@given(group_sizes, st.integers(1, 30))
def test_blocks_hold_every_row_once_and_have_between_one_and_two_block_sizes(sizes: list[int], block_rows: int) -> None:
    groups = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    ends = block_ends(groups, block_rows)
    counts = np.diff(np.append(0, ends))
    assert counts.sum() == len(groups)
    if len(groups) >= block_rows:
        assert counts.min() >= block_rows
        assert counts.max() < 3 * block_rows


@given(st.lists(st.integers(30, 400), min_size=1, max_size=8))
def test_groups_that_fill_a_block_are_never_mixed(sizes: list[int]) -> None:
    groups = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    ends = block_ends(groups, 30)
    assert set(np.cumsum(sizes).tolist()) <= set(ends.tolist())
    assert np.diff(np.append(0, ends)).max() < 60


rows_of_a_chunk = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 40)), min_size=1, max_size=300)


@given(rows_of_a_chunk, rows_of_a_chunk, st.integers(1, 50))
def test_buckets_keep_the_order_of_groups_and_keys(
    sample: list[tuple[int, int]], chunk: list[tuple[int, int]], bucket_rows: int
) -> None:
    """Rows never seen in the sample get a bucket, too, and bucket numbers never fall along (group, order)."""
    plan = plan_buckets(
        np.array([g for g, _ in sample], np.int32),
        np.array([o for _, o in sample], np.uint64),
        rows=len(chunk),
        bucket_rows=bucket_rows,
    )
    ordered = sorted(chunk)
    bucket = plan.bucket_of(np.array([g for g, _ in ordered], np.int32), np.array([o for _, o in ordered], np.uint64))
    assert (np.diff(bucket) >= 0).all()
    assert bucket.min() >= 0
    assert bucket.max() < plan.count


def test_a_group_that_is_as_large_as_many_buckets_is_spread_evenly() -> None:
    order = np.arange(10_000, dtype=np.uint64)
    group = np.zeros(10_000, np.int32)
    plan = plan_buckets(group[::10], order[::10], rows=10_000, bucket_rows=1_000)
    counts = np.bincount(plan.bucket_of(group, order))
    assert len(counts) == 10
    assert counts.max() <= 1_100
