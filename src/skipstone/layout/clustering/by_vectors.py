"""Clusterings of feature vectors: `ward`, the papers' bottom-up search, and `ward-queries`, which counts queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skipstone.layout.clustering.bottom_up import ward, ward_by_queries
from skipstone.layout.clustering.conditions import true_rows
from skipstone.layout.clustering.curves import Curve, OrderKey
from skipstone.layout.clustering.ordered import dimensions_of
from skipstone.layout.clustering.routing import ClusteringProblem, Routing
from skipstone.layout.vectors import Bits, DistinctVectors, distinct, find_words, unions, words
from skipstone.predicate.implication import implication_matrix
from skipstone.predicate.literal import Conjunction

__all__ = ["VectorRouter", "Ward", "WardByQueries"]

MOST_VECTORS = 8_000
"""A search over more distinct vectors takes too long (Sun, dissertation, section 3.7.3); the rarest are left out."""

MOST_DIMENSIONS = 3
"""Rows of one vector are ordered by so many expressions."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorRouter:
    """The blocking map: the group of each vector that was clustered, and the rules for one that was not.

    A vector unknown to the sample goes where its absent features cost least: to the group whose union vector it
    widens least, weighted by the features; of equal ones to the group that would waste least on it.
    """

    vectors: NDArray[np.uint64]
    group_of: NDArray[np.int64]
    unions: Bits
    weights: NDArray[np.float64]
    rows: NDArray[np.float64]
    key: OrderKey
    used: tuple[Conjunction, ...] = ()

    @property
    def groups(self) -> int:
        """How many groups the vectors were clustered into."""
        return len(self.unions)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns by which rows of a group are ordered."""
        return self.key.columns

    def route(self, batch: pa.RecordBatch, bits: Bits) -> Routing:
        """Look each vector up; put unknown ones where they cost least."""
        found, which = distinct(bits)
        place = find_words(words(found.bits), self.vectors)
        group = np.zeros(len(place), dtype=np.int64)
        group[place >= 0] = self.group_of[place[place >= 0]]
        for unknown in np.flatnonzero(place < 0):
            group[unknown] = self._home(found.bits[unknown])
        return Routing(group[which].astype(np.int32), self.key.keys(batch))

    def _home(self, vector: NDArray[np.bool_]) -> int:
        widened = (vector & ~self.unions) @ self.weights * self.rows
        wasted = (self.unions & ~vector) @ self.weights
        return int(np.lexsort((wasted, widened))[0])


@dataclass(frozen=True, slots=True)
class Ward:
    """`ward`: the papers' bottom-up clustering of feature vectors, every feature counted by the queries it subsumes."""

    columns: tuple[str, ...] = ()

    def fit(self, sample: pa.Table, problem: ClusteringProblem) -> VectorRouter:
        """Cluster the sample's vectors."""
        subsumed, weights = _subsumption(problem)
        of_features = weights @ subsumed if len(weights) else np.array([one.weight for one in problem.features])
        vectors, min_size = _vectors(sample, problem)
        return _router(vectors, ward(vectors, of_features, min_size), of_features, sample, problem)


@dataclass(frozen=True, slots=True)
class WardByQueries:
    """`ward-queries`: the same search with the objective of what queries read, see `ward_by_queries`."""

    columns: tuple[str, ...] = ()

    def fit(self, sample: pa.Table, problem: ClusteringProblem) -> VectorRouter:
        """Cluster the sample's vectors."""
        subsumed, weights = _subsumption(problem)
        vectors, min_size = _vectors(sample, problem)
        group = ward_by_queries(vectors, subsumed, weights, min_size)
        return _router(vectors, group, weights @ subsumed, sample, problem)


def _subsumption(problem: ClusteringProblem) -> tuple[Bits, NDArray[np.float64]]:
    """For each different filter, which features subsume it; and the weights of the filters."""
    weights: dict[Conjunction, float] = {}
    for query in problem.queries:
        weights[query.filter] = weights.get(query.filter, 0.0) + query.weight
    subsumed = implication_matrix(list(weights), [feature.filter for feature in problem.features])
    return subsumed, np.array(list(weights.values()), dtype=np.float64)


def _vectors(sample: pa.Table, problem: ClusteringProblem) -> tuple[DistinctVectors, int]:
    """Return the vectors to cluster, the most frequent if there are too many, and how many sampled rows are a block."""
    bits = true_rows([feature.filter for feature in problem.features], sample, time_zone=problem.time_zone)
    vectors, _ = distinct(bits)
    min_size = max(1, round(problem.block_rows * sample.num_rows / max(problem.rows, 1)))
    if len(vectors) <= MOST_VECTORS:
        return vectors, min_size
    often = np.sort(np.argsort(-vectors.counts, kind="stable")[:MOST_VECTORS])
    return DistinctVectors(vectors.bits[often], vectors.counts[often]), min_size


def _router(
    vectors: DistinctVectors,
    group: NDArray[np.int64],
    weights: NDArray[np.float64],
    sample: pa.Table,
    problem: ClusteringProblem,
) -> VectorRouter:
    expressions = dimensions_of(problem.queries, MOST_DIMENSIONS)
    key = OrderKey.learn(Curve.HILBERT, expressions, sample, time_zone=problem.time_zone)
    # An empty sample leaves one group, to which everything goes.
    groups = int(group.max()) + 1 if len(group) else 1
    rows = np.bincount(group, weights=vectors.counts, minlength=groups).astype(np.float64)
    return VectorRouter(words(vectors.bits), group, unions(vectors.bits, group, groups), weights, rows, key)
