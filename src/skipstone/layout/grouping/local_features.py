"""Local features of a column group: which of all features its blocks are made by, and how many of them.

Sun, dissertation, 2017, section 4.5:

    W^G            readers, the queries that read a column of the group
    F^q            problem.subsumed[q]
    CandSet^G      the features that subsume some query of W^G
    weight(G, f)   the weight of the queries of W^G that f subsumes
    k              how many of the heaviest are taken: binary search for about 3,000 distinct vectors

All of this depends on a group's readers alone, so it is worked out once for each set of readers.

Departs from the paper: "about 3,000" is made "at most 3,000, and one feature at least"; of features of equal weight
those that come first in the workload's own ranking win.
"""

from __future__ import annotations

import numpy as np

from skipstone.layout.grouping.problem import DesignProblem
from skipstone.layout.vectors import Bits, distinct

__all__ = ["DISTINCT_VECTORS", "LocalFeatures", "ranked_candidates"]

DISTINCT_VECTORS = 3_000
"""Section 4.5: "around 3,000 distinct vectors provide a good balance" of effect and effort."""


class LocalFeatures:
    """Chooses the local features of groups, and remembers them."""

    def __init__(self, problem: DesignProblem, distinct_vectors: int = DISTINCT_VECTORS) -> None:
        self._problem = problem
        self._most = distinct_vectors
        self._known: dict[bytes, frozenset[int]] = {}

    def of(self, readers: Bits) -> frozenset[int]:
        """The local features of a group that these queries read."""
        key = readers.tobytes()
        if key not in self._known:
            ranked = ranked_candidates(self._problem, readers)
            self._known[key] = frozenset(ranked[: self._how_many(ranked)])
        return self._known[key]

    def _how_many(self, ranked: list[int]) -> int:
        """The most features that give few enough distinct vectors; their number grows with each feature."""
        vectors = self._problem.vectors
        low, high = min(1, len(ranked)), len(ranked)
        while low < high:
            middle = (low + high + 1) // 2
            found, _ = distinct(vectors.bits[:, ranked[:middle]])
            if len(found) <= self._most:
                low = middle
            else:
                high = middle - 1
        return low


def ranked_candidates(problem: DesignProblem, readers: Bits) -> list[int]:
    """The candidate features of a group, the heaviest first."""
    of_kinds = np.zeros(len(problem.kinds), dtype=np.float64)
    np.add.at(of_kinds, problem.kind_of, problem.weights * readers)
    weights = of_kinds @ problem.kinds
    return [int(feature) for feature in np.argsort(-weights, kind="stable") if weights[feature] > 0]
