"""Orders that need no search: the one a table has, and the most read columns first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skipstone.layout.columns.cost import order_cost
from skipstone.layout.columns.problem import ColumnProblem
from skipstone.layout.columns.search import Effort, FoundOrder
from skipstone.layout.columns.seek import SeekProfile


def default(problem: ColumnProblem, profile: SeekProfile, effort: Effort, seed: int) -> FoundOrder:
    """Keep the order of the schema (section 2.2 of the wide-table paper: "default")."""
    return _found("default", problem, profile, effort, seed, range(len(problem.sizes)))


def naive(problem: ColumnProblem, profile: SeekProfile, effort: Effort, seed: int) -> FoundOrder:
    """Put the columns that most queries read in front.

    Bian et al., "Wide Table Layout Optimization based on Column Ordering and Duplication", SIGMOD 2017, section 6.2:
    "frequently used columns are in the front of row group".

    Departs from the paper: how often is the weight of the queries that read a column; ties keep the schema's order.
    """
    read = np.zeros(len(problem.sizes))
    for reads, weight in zip(problem.reads, problem.weights, strict=True):
        read[list(reads)] += weight
    return _found("naive", problem, profile, effort, seed, np.argsort(-read, kind="stable").tolist())


def _found(
    algorithm: str, problem: ColumnProblem, profile: SeekProfile, effort: Effort, seed: int, order: Sequence[int]
) -> FoundOrder:
    started = effort.clock()
    initial = order_cost(problem, range(len(problem.sizes)), profile)
    final = order_cost(problem, order, profile)
    seconds = effort.clock() - started
    return FoundOrder(tuple(order), algorithm, seed, initial, final, seconds=seconds)
