"""How sorted rows are cut into blocks, and what becomes of a sample of rows when the whole chunk is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skipstone.layout.vectors import Bits, union_of_words, unpack, words

__all__ = ["held_by_blocks", "joined", "sampled_blocks", "shuffled"]


def sampled_blocks(
    group: NDArray[np.int32], order: NDArray[np.uint64], *, rows: int, block_rows: int
) -> NDArray[np.int64]:
    """Number the block of each sampled row, as if the sample were all rows, thinned evenly.

    Rows are sorted by group and order, and each group is cut evenly into as many blocks of at least `block_rows` rows
    as it gives; groups too small for a block join those that follow, at the end those before. Every block has a row:
    where there are more blocks than rows in the sample, those without one are not numbered.

    >>> group, order = np.array([0, 0, 1, 1, 1, 1], dtype=np.int32), np.array([2, 1, 1, 2, 3, 4], dtype=np.uint64)
    >>> sampled_blocks(group, order, rows=600, block_rows=200).tolist()
    [0, 0, 1, 1, 2, 2]
    >>> sampled_blocks(group, order, rows=60_000, block_rows=200).tolist()
    [1, 0, 2, 3, 4, 5]
    """
    if not len(group):
        return np.zeros(0, dtype=np.int64)
    sorted_rows = np.lexsort((order, group))
    sizes = np.diff(np.flatnonzero(np.concatenate([[True], np.diff(group[sorted_rows]) != 0, [True]])))
    fills = block_rows * len(group) / max(rows, 1)
    spans = joined(sizes, fills)
    blocks = np.clip(np.floor(spans / fills + 1e-9).astype(np.int64), 1, spans)
    first = np.cumsum(blocks) - blocks
    within = np.arange(len(group)) - np.repeat(np.cumsum(spans) - spans, spans)
    answer = np.empty(len(group), dtype=np.int64)
    answer[sorted_rows] = np.repeat(first, spans) + within * np.repeat(blocks, spans) // np.repeat(spans, spans)
    return answer


def joined(sizes: NDArray[np.int64], fills: float) -> NDArray[np.int64]:
    """Join groups that do not fill a block with those that follow; what is left at the end joins what stands before.

    >>> joined(np.array([5, 1, 1, 4, 2]), 3.0).tolist()
    [5, 8]
    """
    spans: list[int] = []
    pending = 0
    for size in sizes.tolist():
        pending += size
        if pending >= fills:
            spans.append(pending)
            pending = 0
    if pending and spans:
        spans[-1] += pending
    elif pending:
        spans.append(pending)
    return np.array(spans, dtype=np.int64)


def held_by_blocks(true: Bits, block: NDArray[np.int64]) -> Bits:
    """Return for each block and condition whether some sampled row of the block satisfies the condition."""
    blocks = int(block.max()) + 1 if len(block) else 0
    united = union_of_words(words(true), block, blocks)
    packed = united.astype(np.dtype("<u8")).view(np.uint8).reshape(blocks, united.shape[1] * 8)
    return unpack(packed, true.shape[1])


def shuffled(rows: int, seed: int) -> NDArray[np.int64]:
    """Return the numbers of so many rows in a random order that the seed decides."""
    return np.random.default_rng(seed).permutation(rows)
