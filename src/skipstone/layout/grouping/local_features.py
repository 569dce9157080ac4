"""Local features of a column group: which of all features its blocks are made by, and how many of them.

Sun, dissertation, 2017, section 4.5:

    W^G            readers, the queries that read a column of the group
    F^q            problem.subsumed[q]
    CandSet^G      the features that subsume some query of W^G
    weight(G, f)   the weight of the queries of W^G that f subsumes
    k              how many of the heaviest are taken: as many as give about 3,000 distinct vectors

All of this depends on a group's readers alone, so it is worked out once for each set of readers.

Departs from the paper: "about 3,000" is made "at most 3,000, and one feature at least"; of features of equal weight
those that come first in the workload's own ranking win. k is found by adding one feature after the other, and not by
binary search: rows that are told apart already need not be looked at again, which takes a tenth of the time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skipstone.compiled import njit
from skipstone.layout.grouping.problem import DesignProblem
from skipstone.layout.vectors import Bits

__all__ = ["DISTINCT_VECTORS", "LocalFeatures", "ranked_candidates"]

DISTINCT_VECTORS = 3_000
"""Section 4.5: "around 3,000 distinct vectors provide a good balance" of effect and effort."""


class LocalFeatures:
    """Chooses the local features of groups, and remembers them."""

    def __init__(self, problem: DesignProblem, distinct_vectors: int = DISTINCT_VECTORS) -> None:
        self._problem = problem
        self._most = distinct_vectors
        self._of_features = np.ascontiguousarray(problem.vectors.bits.T)
        self._known: dict[bytes, frozenset[int]] = {}

    def of(self, readers: Bits) -> frozenset[int]:
        """The local features of a group that these queries read."""
        key = readers.tobytes()
        if key not in self._known:
            ranked = ranked_candidates(self._problem, readers)
            many = _how_many(self._of_features, np.array(ranked, dtype=np.int64), self._most)
            self._known[key] = frozenset(ranked[:many])
        return self._known[key]


def ranked_candidates(problem: DesignProblem, readers: Bits) -> list[int]:
    """The candidate features of a group, the heaviest first."""
    of_kinds = np.zeros(len(problem.kinds), dtype=np.float64)
    np.add.at(of_kinds, problem.kind_of, problem.weights * readers)
    weights = of_kinds @ problem.kinds
    return [int(feature) for feature in np.argsort(-weights, kind="stable") if weights[feature] > 0]


@njit(cache=True)
def _how_many(of_features: Bits, ranked: NDArray[np.int64], most: int) -> int:
    """The most of the first features, at least one, with which rows have no more than so many distinct vectors.

    Rows are told apart feature by feature. Their vectors grow more with each, so the first feature too many ends it.
    """
    rows = of_features.shape[1]
    group = np.zeros(rows, np.int64)
    groups = 1
    for place in range(len(ranked)):
        bits = of_features[ranked[place]]
        renamed = np.full(2 * groups, -1, np.int64)
        found = 0
        for row in range(rows):
            split = 2 * group[row] + bits[row]
            if renamed[split] < 0:
                renamed[split] = found
                found += 1
            group[row] = renamed[split]
        if found > most:
            return max(1, place)
        groups = found
    return len(ranked)
