"""Estimates of the rows that queries read of a layout, without clustering anything.

Sun, dissertation, 2017, section 4.4.3, "Estimation Approach", and the baseline of section 4.7.5:

    V            vectors, the distinct local vectors        count(v)    vectors.counts
    b            problem.block_size                         n           all rows of the sample
    V_skip^q     vectors that miss a feature which subsumes q

    Block Est.   r_i^q  ~  n - b * sum over v in V_skip^q of floor(count(v) / b)
    Sel. Est.    r_i^q  ~  the rows that satisfy every local feature which subsumes q

Rows with one vector are put together by any clustering, so full blocks of them are skipped for certain: the first is an
upper bound. The second knows nothing of blocks.

Departs from the paper: rows that a layout with replicas keeps apart (section 5.4.2) are counted whole, not in blocks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skipstone.layout.clustering.bottom_up import read_by_queries
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft
from skipstone.layout.vectors import Bits, distinct, grouped, words

__all__ = ["BlockEstimate", "SelectivityEstimate"]

Rows = NDArray[np.float64]


class _Estimate:
    """Remembers what was estimated for a set of local features; readers do not matter where nothing is clustered."""

    def __init__(self, problem: DesignProblem) -> None:
        self._problem = problem
        self._known: dict[tuple[tuple[int, ...], bool], Rows] = {}

    def rows(self, layout: LayoutDraft, readers: Bits) -> Rows:
        """See `RowsRead`."""
        local = tuple(sorted(layout.features))
        key = (local, layout.is_whole)
        if key not in self._known:
            of_kinds = self._rows_of_kinds(local, keeps_apart=not layout.is_whole)
            self._known[key] = (of_kinds * self._problem.scale)[self._problem.kind_of]
        return self._known[key]

    def _rows_of_kinds(self, local: tuple[int, ...], *, keeps_apart: bool) -> Rows:
        raise NotImplementedError


class BlockEstimate(_Estimate):
    """`Block Est.`: what cannot be skipped for certain is read."""

    def __init__(self, problem: DesignProblem) -> None:
        super().__init__(problem)
        self._words = words(problem.vectors.bits)

    def _rows_of_kinds(self, local: tuple[int, ...], *, keeps_apart: bool) -> Rows:
        problem = self._problem
        vectors = self._words & self._mask(local)
        first, group = grouped(vectors)
        counts = np.bincount(group, weights=problem.vectors.counts, minlength=len(first)).astype(np.int64)
        full = counts // problem.block_size * problem.block_size
        if keeps_apart:
            outside = ~vectors[first].any(axis=1)
            full[outside] = counts[outside]
        # Only vectors that fill a block can be skipped, and there are no more of those than blocks.
        skippable = full > 0
        bits = problem.vectors.bits[first[skippable]][:, local]
        skipped = full[skippable] @ ~read_by_queries(bits, problem.kinds[:, local])
        return np.asarray(problem.vectors.rows - skipped, dtype=np.float64)

    def _mask(self, local: tuple[int, ...]) -> NDArray[np.uint64]:
        """One row of words that keeps of a vector what the local features say."""
        bits = np.zeros((1, self._problem.vectors.bits.shape[1]), dtype=np.bool_)
        bits[0, list(local)] = True
        return words(bits)


class SelectivityEstimate(_Estimate):
    """`Sel. Est.`: a query reads the rows that match it."""

    def _rows_of_kinds(self, local: tuple[int, ...], *, keeps_apart: bool) -> Rows:
        problem = self._problem
        vectors, _ = distinct(problem.vectors.bits[:, local], problem.vectors.counts)
        return np.asarray(vectors.counts @ read_by_queries(vectors.bits, problem.kinds[:, local]), dtype=np.float64)
