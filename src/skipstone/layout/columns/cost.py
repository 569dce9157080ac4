"""The cost model: seek distances, seek costs of queries and of a workload."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skipstone.layout.columns.problem import ColumnProblem
from skipstone.layout.columns.seek import SeekProfile, seek_costs


def order_cost(problem: ColumnProblem, order: Sequence[int] | NDArray[np.int32], profile: SeekProfile) -> float:
    """Weighted seek cost of a workload over columns stored in this order, in milliseconds a row group.

    Bian et al., "Wide Table Layout Optimization based on Column Ordering and Duplication", SIGMOD 2017,
    Definitions 1-6: dist(i,j) = |b(j) - e(i)|, Cost(i,j) = f(dist(i,j)), Cost(q,S) = N * (eps + sum of Cost over
    neighbours among the columns that q reads, in stored order), Cost(Q,S) = sum of w_q * Cost(q,S).

        S      order                   f      profile
        s(i)   problem.sizes[i]        w_q    problem.weights[q]
        C_q    problem.reads[q]

    >>> from skipstone.layout.columns.seek import LinearSeek
    >>> problem = ColumnProblem(np.array([1e6, 3e6, 1e6]), ((0, 2),), np.array([2.0]))
    >>> order_cost(problem, [0, 1, 2], LinearSeek()), order_cost(problem, [1, 0, 2], LinearSeek())
    (6.0, 0.0)

    Departs from the paper: the initial seek eps is the same for every order and left out, and N, the number of row
    groups, multiplies every cost alike and is 1.
    """
    return float((problem.weights * query_costs(problem, order, profile)).sum())


def query_costs(
    problem: ColumnProblem, order: Sequence[int] | NDArray[np.int32], profile: SeekProfile
) -> NDArray[np.float64]:
    """Seek cost of each query over columns stored in this order (Definition 4), unweighted."""
    order = np.asarray(order, np.int64)
    count = len(problem.sizes)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    start = np.zeros(count + 1)
    np.cumsum(problem.sizes[order], out=start[1:])
    lengths = np.array([len(reads) for reads in problem.reads], np.int64)
    query = np.repeat(np.arange(len(lengths)), lengths)
    keys = np.sort(query * count + place[np.array([item for reads in problem.reads for item in reads], np.int64)])
    query, position = keys // count, keys % count
    same = query[1:] == query[:-1]
    gaps = start[position[1:]] - start[position[:-1] + 1]
    costs = seek_costs(profile, gaps[same])
    return np.bincount(query[1:][same], weights=costs, minlength=len(lengths)).astype(np.float64)
