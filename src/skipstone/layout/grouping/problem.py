"""What there is to group and to replicate: columns, queries, features, and a sample of the rows as feature vectors.

Sun, "Skipping-oriented Data Design for Large-Scale Analytics", dissertation, 2017, sections 4.4.2 and 4.5, table 5.1:

    C      columns        C^q    accesses[q]            W        queries, with weights
    F      features       F^q    subsumed[q]            R        rows rows, of which vectors are a sample
    W^G    readers(G)     rel-cols(f)  relevant[f]      b        block_rows
    (C_i, F_i, M_i)       LayoutDraft

Columns and features are numbers here, positions in `columns` and `features`; `scheme_of` gives them their names back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skipstone.errors import InvalidInput
from skipstone.layout.clustering.conditions import true_rows
from skipstone.layout.scheme import ClusteringSpec, Layout, Scheme
from skipstone.layout.vectors import Bits, DistinctVectors, distinct
from skipstone.predicate.implication import implication_matrix
from skipstone.predicate.literal import Conjunction
from skipstone.workload.query import Feature, Query

__all__ = ["ROW_ID_BYTES", "DesignProblem", "LayoutDraft", "design_problem", "scheme_of", "with_queries"]

ROW_ID_BYTES = 2.0
"""What a row id takes where it is stored, about: ids of a block ascend, so that their differences are small."""

CELL_BYTES = 4.0
"""What a cell is taken to be stored in where nothing is known of its column."""


@dataclass(frozen=True, slots=True)
class LayoutDraft:
    """A layout while it is being searched for: columns, local features and masters (C_i, F_i, M_i) by their numbers."""

    columns: frozenset[int]
    features: frozenset[int]
    masters: frozenset[int]

    @classmethod
    def group(cls, columns: Iterable[int], features: Iterable[int] = ()) -> LayoutDraft:
        """A column group of GSOP: all of its columns are masters.

        >>> LayoutDraft.group([0, 2], [1]).masters == {0, 2}
        True
        """
        members = frozenset(columns)
        return cls(members, frozenset(features), members)

    @property
    def is_whole(self) -> bool:
        """Whether every column holds every row, so that all rows are clustered and none are kept apart."""
        return self.columns == self.masters


@dataclass(frozen=True, slots=True, eq=False)
class DesignProblem:
    """A chunk of `rows` rows, known by a sample, to be laid out for these queries in blocks of `block_rows`.

    Queries that the same features subsume are of one kind: they skip the same blocks. `cell_bytes` is what a stored
    cell of each column takes on average. `sample` holds the rows that the vectors are of, for who looks at more.
    """

    columns: tuple[str, ...]
    features: tuple[Conjunction, ...]
    queries: tuple[Query, ...]
    accesses: Bits
    kinds: Bits
    kind_of: NDArray[np.int64]
    weights: NDArray[np.float64]
    vectors: DistinctVectors
    sample: pa.Table
    rows: int
    block_rows: int
    cell_bytes: NDArray[np.float64]
    row_id_bytes: float = ROW_ID_BYTES
    seed: int = 0

    @property
    def subsumed(self) -> Bits:
        """For each query the features that subsume it: F^q."""
        return self.kinds[self.kind_of]

    @property
    def relevant(self) -> Bits:
        """For each feature the columns that some query it subsumes reads: rel-cols(f)."""
        return np.asarray(self.subsumed.T.astype(np.float32) @ self.accesses.astype(np.float32) > 0)

    @property
    def scale(self) -> float:
        """How many rows of the chunk a row of the sample stands for."""
        return self.rows / max(1, self.vectors.rows)

    @property
    def block_size(self) -> int:
        """How many rows of the sample make a block."""
        return max(1, round(self.block_rows / self.scale)) if self.rows else 1

    def readers(self, columns: Collection[int]) -> Bits:
        """Which queries read at least one of these columns: W^G."""
        return np.asarray(self.accesses[:, sorted(columns)].any(axis=1))

    def share(self, features: Collection[int]) -> float:
        """The share of all rows that satisfy at least one of these features: |R_i| / |R|."""
        inside = self.vectors.bits[:, sorted(features)].any(axis=1)
        return float(self.vectors.counts[inside].sum() / max(1, self.vectors.rows))


def design_problem(
    sample: pa.Table,
    features: Sequence[Feature | Conjunction],
    queries: Sequence[Query],
    columns: Sequence[str],
    *,
    rows: int,
    block_rows: int,
    cell_bytes: Mapping[str, float] | None = None,
    seed: int = 0,
    time_zone: str | None = None,
) -> DesignProblem:
    """Evaluate the features on the sample and work out which of them subsume which queries.

    The sample needs the columns that features and filters look at. Columns that a query reads and the table does not
    have are the caller's mistake.
    """
    if block_rows < 1 or rows < 0:
        raise InvalidInput(f"a chunk of {rows:,} rows in blocks of {block_rows:,}: blocks need one row or more")
    filters = tuple(one.filter if isinstance(one, Feature) else one for one in features)
    accesses, kinds, kind_of = _asked(queries, columns, filters)
    vectors, _ = distinct(true_rows(filters, sample, time_zone=time_zone))
    sizes = cell_bytes or {}
    return DesignProblem(
        columns=tuple(columns),
        features=filters,
        queries=tuple(queries),
        accesses=accesses,
        kinds=kinds,
        kind_of=kind_of,
        weights=np.array([query.weight for query in queries], dtype=np.float64),
        vectors=vectors,
        sample=sample,
        rows=rows,
        block_rows=block_rows,
        cell_bytes=np.array([sizes.get(name, CELL_BYTES) for name in columns], dtype=np.float64),
        seed=seed,
    )


def with_queries(problem: DesignProblem, queries: Sequence[Query]) -> DesignProblem:
    """The same rows and features with other queries, to judge by."""
    accesses, kinds, kind_of = _asked(queries, problem.columns, problem.features)
    weights = np.array([query.weight for query in queries], dtype=np.float64)
    return replace(problem, queries=tuple(queries), accesses=accesses, kinds=kinds, kind_of=kind_of, weights=weights)


def _asked(
    queries: Sequence[Query], columns: Sequence[str], features: Sequence[Conjunction]
) -> tuple[Bits, Bits, NDArray[np.int64]]:
    """Which columns each query reads; the different sets of features that subsume queries; which of them each has."""
    place = {name: number for number, name in enumerate(columns)}
    accesses = np.zeros((len(queries), len(columns)), dtype=np.bool_)
    for number, query in enumerate(queries):
        accesses[number, [place[name] for name in query.columns]] = True
    subsumed = (
        implication_matrix([query.filter for query in queries], features)
        if queries and features
        else np.zeros((len(queries), len(features)), dtype=np.bool_)
    )
    kinds, kind_of = distinct(subsumed)
    return accesses, kinds.bits, kind_of


def scheme_of(
    problem: DesignProblem, drafts: Sequence[LayoutDraft], clusterings: ClusteringSpec | Sequence[ClusteringSpec]
) -> Scheme:
    """Name what was drafted; columns keep the order of the table. One clustering for all, or one for each."""
    specs = [clusterings] * len(drafts) if isinstance(clusterings, ClusteringSpec) else clusterings
    layouts = tuple(
        Layout(
            tuple(problem.columns[column] for column in sorted(draft.columns)),
            tuple(sorted(draft.features)),
            frozenset(problem.columns[column] for column in draft.masters),
            spec,
        )
        for draft, spec in zip(drafts, specs, strict=True)
    )
    return Scheme(layouts, problem.features).validate(problem.columns)
