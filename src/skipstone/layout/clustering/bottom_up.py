"""The bottom-up framework: merge the two groups whose merge hurts the objective least, until all are large enough.

Two objectives share the loop. `ward` is the paper's, which counts every feature for itself. `ward_by_queries` counts
what queries really read: a query is spared a group if ANY feature that subsumes it is absent there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skipstone.compiled import njit
from skipstone.errors import InvalidInput
from skipstone.layout.vectors import Bits, DistinctVectors, distinct, pack, words

__all__ = ["Search", "merge_costs", "merged_queries", "read_by_queries", "search", "ward", "ward_by_queries"]


def ward(vectors: DistinctVectors, weights: NDArray[np.float64], min_size: int) -> NDArray[np.int64]:
    """Cluster distinct vectors so that the features' weights skip as many rows as a bottom-up search finds.

    Returns the group of each vector, numbered in the order of each group's first vector.

    Sun, "Skipping-oriented Data Design for Large-Scale Analytics", dissertation, 2017, section 3.4, Balanced MaxSkip
    Partitioning by the bottom-up framework (3.4.4), equations 3.1, 3.2, 3.5 and 3.6:

        C(P_i) = |P_i| sum_k w_k (1 - v(P_i)_k),  delta(P_i, P_j) = C(P_i u P_j) - C(P_i) - C(P_j)

        v_1 .. v_n   vectors.bits      w_k       weights[k]
        |P_i|        size              v(P_i)    union
        minSize      min_size          -delta    cost, which is never negative (lemma 1)

    The pair with the largest delta is merged; of equal ones the pair whose first vectors come first. A group that
    reaches min_size is done.

    Departs from the paper: a vector that alone fills a group is done at once, as the text of 3.4.4 says and its
    pseudo-code does not; "reaches" is >= min_size (pseudo-code: >), so that groups lie in [min_size, 2 min_size)
    whatever the counts; and the last group, if it stays too small, joins the finished group where that costs least.

    >>> vectors = DistinctVectors(np.array([[1, 0], [1, 1], [0, 0], [0, 1]], dtype=bool), np.array([5, 5, 5, 5]))
    >>> ward(vectors, np.array([10.0, 1.0]), min_size=10).tolist()
    [0, 0, 1, 1]
    """
    _check(vectors, min_size)
    if weights.shape != vectors.bits.shape[1:] or (weights < 0).any():
        raise InvalidInput("every feature needs a weight that is not negative")
    # To MaxSkip every feature is a query of its own, read where the feature is present.
    return search(vectors, np.eye(len(weights), dtype=np.bool_), weights, min_size).group


def ward_by_queries(
    vectors: DistinctVectors, queries: Bits, weights: NDArray[np.float64], min_size: int
) -> NDArray[np.int64]:
    """Cluster distinct vectors so that queries read few rows, a group being read where no subsuming feature is absent.

    `queries` has a row for each query: the features that subsume it (SOP's query vector, turned round). A query that no
    feature subsumes reads everything and changes nothing. The cost of a merge is the weighted number of rows that
    queries read after it and did not read before; the rest is as in `ward`.

    Departs from the paper: MaxSkip (equation 3.1) adds up the features as if each spared other queries. Here two
    absent features that subsume one query spare it once, and a feature that is absent beside another gains nothing.

    One query needs the first two features, and is spared where either is absent: rows that have just one of them are
    better kept away from rows that have the other, which MaxSkip does not see.

    >>> vectors = DistinctVectors(np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=bool), np.array([4, 5, 5, 6]))
    >>> ward_by_queries(vectors, np.array([[True, True]]), np.array([1.0]), min_size=9).tolist()
    [0, 0, 1, 1]
    """
    _check(vectors, min_size)
    if queries.shape != (len(weights), vectors.bits.shape[1]) or (weights < 0).any():
        raise InvalidInput("every query needs a bit for each feature, and a weight that is not negative")
    masks, totals = merged_queries(queries, weights)
    return search(vectors, masks, totals, min_size).group


def merge_costs(vectors: DistinctVectors, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what MaxSkip loses by merging each pair of vectors: -delta of equation 3.5.

    >>> vectors = DistinctVectors(np.array([[0, 1, 0], [0, 0, 1]], dtype=bool), np.array([12, 11]))
    >>> merge_costs(vectors, np.array([50.0, 20.0, 10.0])).tolist()
    [[0.0, 340.0], [340.0, 0.0]]
    """
    gained = (vectors.bits * weights) @ ~vectors.bits.T  # of the row's features, what the column's vector lacks
    return np.asarray(gained * vectors.counts + gained.T * vectors.counts[:, None])


def merged_queries(queries: Bits, weights: NDArray[np.float64]) -> tuple[Bits, NDArray[np.float64]]:
    """Merge queries that equal features subsume, and leave out those that none does.

    >>> masks, totals = merged_queries(np.array([[1, 0], [0, 0], [1, 0]], dtype=bool), np.array([1.0, 5.0, 2.0]))
    >>> masks.tolist(), totals.tolist()
    ([[True, False]], [3.0])
    """
    of_use = queries.any(axis=1) & (weights > 0)
    masks, which = distinct(queries[of_use])
    totals = np.zeros(len(masks), dtype=np.float64)
    np.add.at(totals, which, weights[of_use])
    return masks.bits, totals


def read_by_queries(bits: Bits, masks: Bits) -> Bits:
    """Return for each vector which queries read a group that has it as its union vector.

    >>> read_by_queries(np.array([[True, False]]), np.array([[True, False], [True, True]])).tolist()
    [[True, False]]
    """
    absent = (~bits).astype(np.float32) @ masks.T.astype(np.float32)
    return np.asarray(absent == 0)


def _check(vectors: DistinctVectors, min_size: int) -> None:
    if min_size < 1:
        raise InvalidInput(f"a group needs at least one row, not {min_size}")
    if (vectors.counts < 1).any():
        raise InvalidInput("a vector that no row has cannot be clustered; leave it out")


class Search(NamedTuple):
    """The group of each vector, and how many pairs of groups the search looked at to find them."""

    group: NDArray[np.int64]
    pairs: int


def search(vectors: DistinctVectors, masks: Bits, weights: NDArray[np.float64], min_size: int) -> Search:
    """Merge the groups whose merge costs least: the weighted rows that are read for masks whose features all occur.

    >>> vectors = DistinctVectors(np.array([[0], [1]], dtype=bool), np.array([5, 5]))
    >>> found = search(vectors, np.array([[True]]), np.array([1.0]), min_size=10)
    >>> found.group.tolist(), found.pairs
    ([0, 0], 1)
    """
    if len(vectors) == 0:
        return Search(np.zeros(0, dtype=np.int64), 0)
    reading = np.ascontiguousarray(pack(read_by_queries(vectors.bits, masks)))
    joint = np.flatnonzero(masks.sum(axis=1) > 1)
    leader, pairs = _bottom_up(
        reading,
        _weight_of_bytes(weights, reading.shape[1]),
        words(vectors.bits),
        joint,
        words(masks[joint]),
        weights[joint],
        vectors.counts.astype(np.float64),
        float(min_size),
    )
    _, first, group = np.unique(leader, return_index=True, return_inverse=True)
    return Search(np.argsort(np.argsort(first))[group].astype(np.int64), int(pairs))


def _weight_of_bytes(weights: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Tabulate for each byte of a packed vector and each of its 256 values the sum of the weights of the set bits."""
    padded = np.zeros(width * 8, dtype=np.float64)
    padded[: len(weights)] = weights
    set_bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    return np.ascontiguousarray((set_bits[None, :, :] * padded.reshape(width, 1, 8)).sum(axis=2))


@njit(cache=True)
def _pair_costs(
    i: int,
    others: NDArray[np.int64],
    limits: NDArray[np.float64],
    costs: NDArray[np.float64],
    reading: NDArray[np.uint8],
    weight: NDArray[np.float64],
    table: NDArray[np.float64],
    united: NDArray[np.uint64],
    joint: NDArray[np.int64],
    joint_masks: NDArray[np.uint64],
    joint_weights: NDArray[np.float64],
    size: NDArray[np.float64],
) -> None:
    """Weighted rows that queries read after a merge of group i with each other group and not before.

    Costs are exact up to their limit, and else anything above it. Without limits only the least is wanted, the first
    of equal ones, and the others need not be exact. The loop is in here because a call for each pair would count
    references to eleven arrays, which takes ten times as long as the cost itself.
    """
    best = np.inf
    for a in range(others.shape[0]):
        j = others[a]
        limit = limits[a] if limits.shape[0] > 0 else best
        # At best the one that reads less reads nothing that the other does not.
        shared = min(weight[i], weight[j])
        cost = size[i] * (weight[j] - shared) + size[j] * (weight[i] - shared)
        if cost > limit:
            costs[a] = np.inf
            continue
        shared = 0.0
        for byte in range(reading.shape[1]):
            shared += table[byte, reading[i, byte] & reading[j, byte]]
        cost = size[i] * (weight[j] - shared) + size[j] * (weight[i] - shared)
        rows = size[i] + size[j]
        for q in range(joint.shape[0]):
            if cost > limit:
                break
            bit = np.uint8(1 << (joint[q] & 7))
            if (reading[i, joint[q] >> 3] | reading[j, joint[q] >> 3]) & bit:
                continue
            read = True
            for k in range(joint_masks.shape[1]):
                if joint_masks[q, k] & ~(united[i, k] | united[j, k]):
                    read = False
                    break
            if read:
                cost += rows * joint_weights[q]
        costs[a] = cost
        best = min(best, cost)


@njit(cache=True)
def _bottom_up(
    reading: NDArray[np.uint8],
    table: NDArray[np.float64],
    united: NDArray[np.uint64],
    joint: NDArray[np.int64],
    joint_masks: NDArray[np.uint64],
    joint_weights: NDArray[np.float64],
    size: NDArray[np.float64],
    min_size: float,
) -> tuple[NDArray[np.int64], int]:
    """Merge groups until all are done; return for each vector one that stands for its group, and the pairs looked at.

    For every group i the best partner among the later ones is kept, with its cost (nearest-neighbour caching). When
    the partner changes or goes, the cost kept is still a lower bound, because costs of other pairs do not change:
    the row is searched anew only when that bound comes up as the smallest (Muellner, "Modern hierarchical,
    agglomerative clustering algorithms", arXiv:1109.2378, 2011, the generic algorithm).
    """
    n = reading.shape[0]
    leader = np.arange(n)
    weight = np.zeros(n)
    for i in range(n):
        for byte in range(reading.shape[1]):
            weight[i] += table[byte, reading[i, byte]]
    active = np.empty(n, dtype=np.int64)
    alive = 0
    for i in range(n):
        if size[i] < min_size:
            active[alive] = i
            alive += 1
    bound = np.full(n, -1.0)
    partner = np.full(n, -1)
    costs = np.empty(n)
    limits = np.empty(n)
    no_limits = np.empty(0)
    earlier = np.empty(n, dtype=np.int64)
    pairs = 0
    while alive > 1:
        # The smallest bound, the first of equal ones; the last group has no later partner.
        at = 0
        for a in range(1, alive - 1):
            if bound[active[a]] < bound[active[at]]:
                at = a
        i = active[at]
        if partner[i] < 0:
            later = active[at + 1 : alive]
            pairs += later.shape[0]
            _pair_costs(
                i, later, no_limits, costs, reading, weight, table, united, joint, joint_masks, joint_weights, size
            )
            best = np.argmin(costs[: later.shape[0]])
            bound[i] = costs[best]
            partner[i] = later[best]
            continue
        j = partner[i]
        _absorb(i, j, reading, weight, table, united, joint, joint_masks, size)
        leader[j] = i
        gone = size[i] >= min_size
        kept = 0
        before = 0
        for a in range(alive):
            k = active[a]
            if k == j or (k == i and gone):
                continue
            active[kept] = k
            kept += 1
            if partner[k] == i or partner[k] == j:
                partner[k] = -1
            if k < i and not gone:
                earlier[before] = k
                limits[before] = bound[k]
                before += 1
        alive = kept
        pairs += before
        _pair_costs(
            i,
            earlier[:before],
            limits[:before],
            costs,
            reading,
            weight,
            table,
            united,
            joint,
            joint_masks,
            joint_weights,
            size,
        )
        for a in range(before):
            k = earlier[a]
            if costs[a] < bound[k] or (costs[a] == bound[k] and i < partner[k]):
                bound[k] = costs[a]
                partner[k] = i
        if not gone:
            bound[i] = -1.0
            partner[i] = -1
    if alive == 1:
        leader[active[0]] = _cheapest_home(
            active[0], leader, min_size, reading, weight, table, united, joint, joint_masks, joint_weights, size
        )
    for i in range(n):
        while leader[leader[i]] != leader[i]:
            leader[i] = leader[leader[i]]
    return leader, pairs


@njit(cache=True)
def _absorb(
    i: int,
    j: int,
    reading: NDArray[np.uint8],
    weight: NDArray[np.float64],
    table: NDArray[np.float64],
    united: NDArray[np.uint64],
    joint: NDArray[np.int64],
    joint_masks: NDArray[np.uint64],
    size: NDArray[np.float64],
) -> None:
    """Make group i the union of groups i and j (equation 3.6)."""
    size[i] += size[j]
    for k in range(united.shape[1]):
        united[i, k] |= united[j, k]
    for byte in range(reading.shape[1]):
        reading[i, byte] |= reading[j, byte]
    for q in range(joint.shape[0]):
        read = True
        for k in range(joint_masks.shape[1]):
            if joint_masks[q, k] & ~united[i, k]:
                read = False
                break
        if read:
            reading[i, joint[q] >> 3] |= np.uint8(1 << (joint[q] & 7))
    weight[i] = 0.0
    for byte in range(reading.shape[1]):
        weight[i] += table[byte, reading[i, byte]]


@njit(cache=True)
def _cheapest_home(
    i: int,
    leader: NDArray[np.int64],
    min_size: float,
    reading: NDArray[np.uint8],
    weight: NDArray[np.float64],
    table: NDArray[np.float64],
    united: NDArray[np.uint64],
    joint: NDArray[np.int64],
    joint_masks: NDArray[np.uint64],
    joint_weights: NDArray[np.float64],
    size: NDArray[np.float64],
) -> int:
    """Return the finished group that the last, too small group should join, or itself if there is none."""
    number = np.arange(leader.shape[0])
    homes = np.flatnonzero((leader == number) & (size >= min_size) & (number != i))
    if homes.shape[0] == 0:
        return i
    costs = np.empty(homes.shape[0])
    _pair_costs(i, homes, np.empty(0), costs, reading, weight, table, united, joint, joint_masks, joint_weights, size)
    return int(homes[np.argmin(costs)])
