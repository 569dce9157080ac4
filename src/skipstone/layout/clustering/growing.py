"""Grow a tree of cuts over a sample: each cut asks one condition, and its two sides are cut further.

This is the compiled part. Rows come as machine words: first a bit for each condition, then a bit for each query that
tells whether the row satisfies all of its filter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skipstone.compiled import njit

__all__ = ["Tree", "descend", "grow", "uncut"]

LEAF = -1


class Tree(NamedTuple):
    """Nodes as arrays. Node 0 is the root; `cut` is a condition or LEAF, rows that satisfy it go to `yes`.

    `leaf` numbers the leaves in the order in which they stand in the tree, so that neighbours share most conditions.
    """

    cut: NDArray[np.int64]
    yes: NDArray[np.int64]
    no: NDArray[np.int64]
    leaf: NDArray[np.int64]


def grow(
    rows: NDArray[np.uint64],
    conditions: int,
    need_start: NDArray[np.int64],
    needs: NDArray[np.int64],
    weights: NDArray[np.float64],
    min_rows: float,
    mixing: float,
    most_scored: int,
) -> Tree:
    """Cut the rows into leaves of at least `min_rows`, see `skipstone.layout.clustering.qdtree` for the rule.

    Query q needs the conditions `needs[need_start[q]:need_start[q + 1]]`. Of a node with more than `most_scored` rows
    only so many, the first, are looked at to choose a cut: the rows should come in random order.
    """
    cut, yes, no, used = _grow(rows, conditions, need_start, needs, weights, min_rows, mixing, most_scored)
    cut, yes, no = cut[:used], yes[:used], no[:used]
    return Tree(cut, yes, no, _numbered(cut, yes, no))


def uncut() -> Tree:
    """Return the tree that is one leaf."""
    leaf = np.array([LEAF])
    return Tree(leaf, leaf, leaf, np.array([0]))


def descend(tree: Tree, asked: NDArray[np.int64], true: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Send rows down the tree; `true[row, asked[c]]` tells whether a row satisfies condition c."""
    return _descend(tree.cut, tree.yes, tree.no, tree.leaf, asked, true)


@njit(cache=True)
def _ones(word: np.uint64) -> int:
    """Count the bits that are set; LLVM knows this pattern and emits one instruction."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))  # type: ignore[return-value]


@njit(cache=True)
def _transposed(rows: NDArray[np.uint64], members: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Turn rows of bits into columns of bits, 64 by 64 (Warren, "Hacker's Delight", 2nd edition, section 7-3)."""
    width = rows.shape[1]
    n = members.shape[0]
    height = (n + 63) // 64
    columns = np.zeros((width * 64, height), dtype=np.uint64)
    tile = np.empty(64, dtype=np.uint64)
    for h in range(height):
        for w in range(width):
            for k in range(64):
                at = h * 64 + k
                tile[k] = rows[members[at], w] if at < n else np.uint64(0)
            step = 32
            mask = np.uint64(0x00000000FFFFFFFF)
            while step != 0:
                k = 0
                while k < 64:
                    t = ((tile[k] >> np.uint64(step)) ^ tile[k + step]) & mask
                    tile[k] ^= t << np.uint64(step)
                    tile[k + step] ^= t
                    k = (k + step + 1) & ~step
                step >>= 1
                mask ^= mask << np.uint64(step)
            for k in range(64):
                columns[w * 64 + k, h] = tile[k]
    return columns


@njit(cache=True)
def _shared(one: NDArray[np.uint64], other: NDArray[np.uint64], height: int) -> int:
    count = 0
    for h in range(height):
        count += _ones(one[h] & other[h])
    return count


@njit(cache=True)
def _counts(columns: NDArray[np.uint64], height: int) -> NDArray[np.int64]:
    counts = np.zeros(columns.shape[0], dtype=np.int64)
    for c in range(columns.shape[0]):
        for h in range(height):
            counts[c] += _ones(columns[c, h])
    return counts


@njit(cache=True)
def _to_be_read(rows: float, matching: float, min_rows: float, mixing: float) -> float:
    """The rows a query will read of a node that it cannot skip, once the node has been cut up further."""
    # What matches can never be had by itself in less than a block.
    alone = max(matching, min_rows)
    return alone + (rows - alone) * (min_rows / rows) ** mixing if rows > alone else rows


@njit(cache=True)
def _alive(
    counts: NDArray[np.int64], need_start: NDArray[np.int64], needs: NDArray[np.int64], queries: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The queries none of whose conditions is absent."""
    kept = np.empty_like(queries)
    found = 0
    for q in queries:
        alive = True
        for k in range(need_start[q], need_start[q + 1]):
            if counts[needs[k]] == 0:
                alive = False
                break
        if alive:
            kept[found] = q
            found += 1
    return kept[:found]


@njit(cache=True)
def _open_conditions(
    counts: NDArray[np.int64],
    rows: int,
    need_start: NDArray[np.int64],
    needs: NDArray[np.int64],
    queries: NDArray[np.int64],
    conditions: int,
) -> NDArray[np.int64]:
    """The conditions that some of the queries need and that only some of the rows satisfy."""
    wanted = np.zeros(conditions, dtype=np.bool_)
    for q in queries:
        for k in range(need_start[q], need_start[q + 1]):
            if counts[needs[k]] < rows:
                wanted[needs[k]] = True
    return np.flatnonzero(wanted)


@njit(cache=True)
def _score(
    c: int,
    columns: NDArray[np.uint64],
    height: int,
    counts: NDArray[np.int64],
    rows: int,
    conditions: int,
    is_open: NDArray[np.int64],
    shared: NDArray[np.int64],
    queries: NDArray[np.int64],
    need_start: NDArray[np.int64],
    needs: NDArray[np.int64],
    weights: NDArray[np.float64],
    min_rows: float,
    mixing: float,
    limit: float,
) -> float:
    """Weighted rows that the queries will read of both sides of a cut; anything at least `limit` if that is more."""
    for p in is_open:
        shared[p] = _shared(columns[c], columns[p], height)
    yes_rows = counts[c]
    no_rows = rows - yes_rows
    total = 0.0
    for q in queries:
        in_yes = True
        in_no = True
        for k in range(need_start[q], need_start[q + 1]):
            p = needs[k]
            # A condition that all rows satisfy is present on both sides, and has no place in `shared`.
            if counts[p] < rows:
                if shared[p] == 0:
                    in_yes = False
                if shared[p] == counts[p]:
                    in_no = False
        if in_yes or in_no:
            matching = counts[conditions + q]
            if in_yes and in_no:
                matching_yes = _shared(columns[c], columns[conditions + q], height)
            else:
                matching_yes = matching if in_yes else 0
            if in_yes:
                total += weights[q] * _to_be_read(yes_rows, matching_yes, min_rows, mixing)
            if in_no:
                total += weights[q] * _to_be_read(no_rows, matching - matching_yes, min_rows, mixing)
            if total >= limit:
                break
    return total


@njit(cache=True)
def _choose(
    columns: NDArray[np.uint64],
    scored: int,
    all_counts: NDArray[np.int64],
    rows: int,
    conditions: int,
    queries: NDArray[np.int64],
    need_start: NDArray[np.int64],
    needs: NDArray[np.int64],
    weights: NDArray[np.float64],
    min_rows: float,
    mixing: float,
) -> int:
    """The cut after which the queries will read least, or LEAF if none leaves enough rows on both sides."""
    height = scored // 64 if scored < rows else columns.shape[1]
    scored = min(height * 64, rows)
    counts = _counts(columns, height) if scored < rows else all_counts
    queries = _alive(counts, need_start, needs, queries)
    is_open = _open_conditions(counts, scored, need_start, needs, queries, conditions)
    shared = np.zeros(conditions, dtype=np.int64)
    least = min_rows * scored / rows
    best = np.inf
    chosen = LEAF
    for c in is_open:
        if all_counts[c] < min_rows or rows - all_counts[c] < min_rows or counts[c] == 0:
            continue
        cost = _score(
            c,
            columns,
            height,
            counts,
            scored,
            conditions,
            is_open,
            shared,
            queries,
            need_start,
            needs,
            weights,
            least,
            mixing,
            best,
        )
        if cost < best:
            best = cost
            chosen = c
    return chosen


@njit(cache=True)
def _grow(
    rows: NDArray[np.uint64],
    conditions: int,
    need_start: NDArray[np.int64],
    needs: NDArray[np.int64],
    weights: NDArray[np.float64],
    min_rows: float,
    mixing: float,
    most_scored: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int]:
    n = rows.shape[0]
    most_nodes = 2 * int(n / max(min_rows, 1.0)) + 3
    cut = np.full(most_nodes, LEAF)
    yes = np.full(most_nodes, LEAF)
    no = np.full(most_nodes, LEAF)
    start = np.zeros(most_nodes, dtype=np.int64)
    stop = np.zeros(most_nodes, dtype=np.int64)
    members = np.arange(n)
    stop[0] = n
    used = 1
    node = 0
    everyone = np.arange(weights.shape[0])
    # Nodes are appended as they are made, so that every node comes after its parent.
    while node < used:
        here = members[start[node] : stop[node]]
        size = here.shape[0]
        if size >= 2 * min_rows and size >= 2:
            columns = _transposed(rows, here)
            counts = _counts(columns, columns.shape[1])
            alive = _alive(counts, need_start, needs, everyone)
            c = _choose(
                columns,
                most_scored,
                counts,
                size,
                conditions,
                alive,
                need_start,
                needs,
                weights,
                min_rows,
                mixing,
            )
            if c >= 0:
                middle = _parted(rows, members, start[node], stop[node], c)
                cut[node] = c
                yes[node] = used
                no[node] = used + 1
                start[used] = start[node]
                stop[used] = middle
                start[used + 1] = middle
                stop[used + 1] = stop[node]
                used += 2
        node += 1
    return cut, yes, no, used


@njit(cache=True)
def _parted(rows: NDArray[np.uint64], members: NDArray[np.int64], start: int, stop: int, c: int) -> int:
    """Move the members that satisfy a condition to the front, keeping the order of both parts."""
    word = c >> 6
    bit = np.uint64(c & 63)
    rest = np.empty(stop - start, dtype=np.int64)
    kept = 0
    left = start
    for at in range(start, stop):
        member = members[at]
        if (rows[member, word] >> bit) & np.uint64(1):
            members[left] = member
            left += 1
        else:
            rest[kept] = member
            kept += 1
    members[left:stop] = rest[:kept]
    return left


@njit(cache=True)
def _numbered(cut: NDArray[np.int64], yes: NDArray[np.int64], no: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the leaves from left to right."""
    leaf = np.full(cut.shape[0], LEAF)
    stack = [0]
    number = 0
    while len(stack) > 0:
        node = stack.pop()
        if cut[node] < 0:
            leaf[node] = number
            number += 1
        else:
            stack.append(no[node])
            stack.append(yes[node])
    return leaf


@njit(cache=True)
def _descend(
    cut: NDArray[np.int64],
    yes: NDArray[np.int64],
    no: NDArray[np.int64],
    leaf: NDArray[np.int64],
    asked: NDArray[np.int64],
    true: NDArray[np.bool_],
) -> NDArray[np.int64]:
    found = np.empty(true.shape[0], dtype=np.int64)
    for row in range(true.shape[0]):
        node = 0
        while cut[node] >= 0:
            node = yes[node] if true[row, asked[cut[node]]] else no[node]
        found[row] = leaf[node]
    return found
