"""How many rows each query reads of a layout: by clustering the sample's vectors and asking block by block.

Sun, dissertation, 2017, section 4.4.3, "Computation Approach", and 5.4.3:

    r_i^q, rr(q, L_i)    rows(layout, readers)[q]

    a) local features    layout.features                       (chosen by the caller)
    b) projection        the vectors' bits at these features, grouped again
    c) partitioning      `ward`, or another clustering of vectors

A layout of which every column is a master clusters all rows; another clusters the rows that satisfy a local feature and
keeps the others, which only masters have, apart (section 5.4.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from skipstone.layout.clustering.bottom_up import read_by_queries, ward, ward_by_queries
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft
from skipstone.layout.vectors import Bits, DistinctVectors, distinct, unions

__all__ = ["ClusteredRows", "RowsRead", "VectorClustering", "by_queries", "by_ward"]

Rows: TypeAlias = NDArray[np.float64]
"""For each query a number of rows of the chunk."""

MOST_VECTORS = 8_000
"""Of more different vectors the rarest are not clustered, they join the groups that suit them best."""


class RowsRead(Protocol):
    """Tells how many rows queries read of a layout; implementations remember what they worked out."""

    def rows(self, layout: LayoutDraft, readers: Bits) -> Rows:
        """For each query of the problem the rows it reads of a layout that is clustered for the queries `readers`.

        Also for queries that are not among the readers. A query that no local feature subsumes skips nothing: it reads
        all rows that the layout holds, and may do so only where it reads masters.
        """
        ...


VectorClustering: TypeAlias = Callable[[DistinctVectors, Bits, NDArray[np.float64], int], NDArray[np.int64]]
"""Gives each vector a group, from the vectors, each query's features, the queries' weights, and the rows of a block."""


def by_ward(vectors: DistinctVectors, queries: Bits, weights: NDArray[np.float64], min_size: int) -> NDArray[np.int64]:
    """Cluster as the paper does: a feature weighs as much as the queries it subsumes (4.5, weight(G, f))."""
    return ward(vectors, weights @ queries, min_size)


def by_queries(
    vectors: DistinctVectors, queries: Bits, weights: NDArray[np.float64], min_size: int
) -> NDArray[np.int64]:
    """Cluster for what queries read, see `ward_by_queries`."""
    return ward_by_queries(vectors, queries, weights, min_size)


class ClusteredRows:
    """The exact answer: clusters the sample, once for each different set of features and readers."""

    def __init__(self, problem: DesignProblem, clustering: VectorClustering = by_ward) -> None:
        self._problem = problem
        self._clustering = clustering
        self._known: dict[tuple[tuple[int, ...], bytes, bool], Rows] = {}

    @property
    def clustered(self) -> int:
        """How many times a clustering had to be made."""
        return len(self._known)

    def rows(self, layout: LayoutDraft, readers: Bits) -> Rows:
        """See `RowsRead`."""
        local = tuple(sorted(layout.features))
        weights = self._weights_of_kinds(readers)
        key = (local, weights.tobytes(), layout.is_whole)
        if key not in self._known:
            of_kinds = self._rows_of_kinds(local, weights, clusters_all=layout.is_whole)
            self._known[key] = of_kinds[self._problem.kind_of]
        return self._known[key]

    def _weights_of_kinds(self, readers: Bits) -> NDArray[np.float64]:
        problem = self._problem
        totals: Rows = np.zeros(len(problem.kinds), dtype=np.float64)
        np.add.at(totals, problem.kind_of, problem.weights * readers)
        return totals

    def _rows_of_kinds(self, local: tuple[int, ...], weights: NDArray[np.float64], *, clusters_all: bool) -> Rows:
        problem = self._problem
        vectors, _ = distinct(problem.vectors.bits[:, local], problem.vectors.counts)
        kinds = problem.kinds[:, local]
        inside = np.ones(len(vectors), dtype=np.bool_) if clusters_all else vectors.bits.any(axis=1)
        clustered = DistinctVectors(vectors.bits[inside], vectors.counts[inside])
        group = _grouped(clustered, kinds, weights, problem.block_size, self._clustering)
        groups = int(group.max()) + 1 if len(group) else 0
        sizes = np.bincount(group, weights=clustered.counts, minlength=groups)
        read = read_by_queries(unions(clustered.bits, group, groups), kinds)
        rows = sizes @ read
        # Rows that satisfy no local feature are blocks of their own, which any local feature that subsumes can skip.
        rows[~kinds.any(axis=1)] += vectors.counts[~inside].sum()
        return np.asarray(rows * problem.scale)


def _grouped(
    vectors: DistinctVectors, kinds: Bits, weights: NDArray[np.float64], min_size: int, clustering: VectorClustering
) -> NDArray[np.int64]:
    if len(vectors) <= MOST_VECTORS:
        return clustering(vectors, kinds, weights, min_size)
    often = np.zeros(len(vectors), dtype=np.bool_)
    often[np.argsort(-vectors.counts, kind="stable")[:MOST_VECTORS]] = True
    group = np.empty(len(vectors), dtype=np.int64)
    group[often] = clustering(DistinctVectors(vectors.bits[often], vectors.counts[often]), kinds, weights, min_size)
    groups = int(group[often].max()) + 1
    united = unions(vectors.bits[often], group[often], groups)
    rows = np.bincount(group[often], weights=vectors.counts[often], minlength=groups)
    # A rare vector joins the group that it widens least, as it does when rows are routed.
    widened = ((vectors.bits[~often] * (weights @ kinds)) @ ~united.T) * rows
    group[~often] = np.argmin(widened, axis=1)
    return group
