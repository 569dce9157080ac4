"""Rows that queries read of a layout, quickly: a search for replicas asks for thousands of layouts.

Sun, dissertation, 2017: a layout is clustered by the heaviest of its local features, as many as leave about a given
number of different vectors (section 4.5; the paper: 3,000 of a whole chunk), and is then skipped by all of them. That
is what makes a clustering cheap, for its time grows with the square of that number.

    k, by binary search     _heaviest
    rr(q, L_i)              rows(layout, readers)[q]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skipstone.layout.clustering.bottom_up import read_by_queries
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft
from skipstone.layout.grouping.rows_read import VectorClustering, by_ward
from skipstone.layout.vectors import Bits, distinct, unions

__all__ = ["QuickRows"]

MOST_VECTORS = 400
"""Different vectors that a clustering of the search works on."""


class QuickRows:
    """A `RowsRead` that clusters by the heaviest local features only, and remembers what it found."""

    def __init__(
        self, problem: DesignProblem, clustering: VectorClustering = by_ward, most_vectors: int = MOST_VECTORS
    ) -> None:
        self._problem = problem
        self._clustering = clustering
        self._most = most_vectors
        self._known: dict[tuple[tuple[int, ...], bytes, bool], NDArray[np.float64]] = {}

    @property
    def clustered(self) -> int:
        """How many times a clustering had to be made."""
        return len(self._known)

    def rows(self, layout: LayoutDraft, readers: Bits) -> NDArray[np.float64]:
        """See `RowsRead`."""
        problem = self._problem
        local = np.array(sorted(layout.features), dtype=np.int64)
        weights = np.zeros(len(problem.kinds), dtype=np.float64)
        np.add.at(weights, problem.kind_of, problem.weights * readers)
        # Readers that no local feature subsumes say nothing about the clustering.
        weights[~problem.kinds[:, local].any(axis=1)] = 0.0
        key = (tuple(local.tolist()), weights.tobytes(), layout.is_whole)
        if key not in self._known:
            self._known[key] = self._rows_of_kinds(local, weights, clusters_all=layout.is_whole)[problem.kind_of]
        return self._known[key]

    def _rows_of_kinds(
        self, local: NDArray[np.int64], weights: NDArray[np.float64], *, clusters_all: bool
    ) -> NDArray[np.float64]:
        problem = self._problem
        kinds = problem.kinds[:, local]
        bits, counts = problem.vectors.bits[:, local], problem.vectors.counts
        inside = np.ones(len(bits), dtype=np.bool_) if clusters_all else bits.any(axis=1)
        bits, counts, apart = bits[inside], counts[inside], counts[~inside].sum()
        chosen = self._heaviest(bits, counts, weights @ kinds)
        vectors, which = distinct(bits[:, chosen], counts)
        group = self._clustering(vectors, kinds[:, chosen], weights, problem.block_size)[which]
        groups = int(group.max()) + 1 if len(group) else 0
        read = read_by_queries(unions(bits, group, groups), kinds)
        rows = np.bincount(group, weights=counts.astype(np.float64), minlength=groups) @ read.astype(np.float64)
        # Rows that satisfy no local feature are blocks of their own, which any local feature that subsumes can skip.
        rows[~kinds.any(axis=1)] += apart
        return np.asarray(rows * problem.scale)

    def _heaviest(self, bits: Bits, counts: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """The heaviest features, as many as leave no more different vectors than are wanted."""
        order = np.argsort(-weights, kind="stable")
        enough, too_many = 1, len(order) + 1
        while enough + 1 < too_many:
            middle = (enough + too_many) // 2
            if len(distinct(bits[:, order[:middle]], counts)[0]) <= self._most:
                enough = middle
            else:
                too_many = middle
        return np.sort(order[:enough])
