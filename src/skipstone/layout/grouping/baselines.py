"""Column groupings that know nothing of skipping: `hillclimb` and `hyrise`, which section 4.7.5 compares with.

Both weigh two wastes of a row store against each other: columns that are read along because they stand in the same
vertical partition, and partitions that must be visited for one query. `single` and `one_group` need no search and stand
in `column_grouping`.

hillclimb   in the form of Jindal et al., "A Comparison of Knives for Bread Slicing", VLDB 2013 (section 3): begin with
            every column alone, merge the pair that saves most, stop when none saves. Cost: a disk, each touched
            partition is scanned in full, all of a query's through one buffer.
hyrise      Grund et al., "HYRISE: A Main Memory Hybrid Storage Engine", VLDB 2010 (section 5): primary partitions are
            the columns that the same queries read; those are put together as suits best. Cost: cache lines missed.

    n    rows        w(P)    widths of a partition's columns       A(q, P)    whether q reads a column of P

Departs from the papers: columns that no query reads are one partition from the beginning, they cost nothing anywhere.
HYRISE's exact search over all sets of primary partitions is used for up to MOST_EXACT of them; beyond that its divide
and conquer cuts the affinity graph, here by taking the strongest bonds first instead of by METIS.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from skipstone.layout.grouping.column_grouping import Columns, alike
from skipstone.layout.grouping.problem import DesignProblem

__all__ = ["cache_misses", "disk_seconds", "hillclimb", "hyrise"]

BUFFER_BYTES = 8 * 1024 * 1024  # the constants are those of Jindal et al., section 4: a disk and a database of 2012
DISK_BLOCK_BYTES = 8 * 1024
DISK_BYTES_PER_SECOND = 90.07e6
SEEK_SECONDS = 4.84e-3

CACHE_LINE_BYTES = 64

CELL_WIDTH = 8.0
"""Bytes of a cell in a row store, as both papers assume fixed widths and know nothing of compression."""

MOST_EXACT = 7
"""The most primary partitions that are combined by trying every way: 877 of them."""


def hillclimb(problem: DesignProblem) -> Columns:
    """Merge partitions while that makes the workload cheaper on a disk."""
    used = [[column] for column in range(len(problem.columns)) if problem.accesses[:, column].any()]
    return _with_unused(problem, _climb(problem, used, disk_seconds))


def hyrise(problem: DesignProblem) -> Columns:
    """Put primary partitions together so that the workload misses the fewest cache lines."""
    primary = [list(columns) for columns in alike(problem) if problem.accesses[:, columns[0]].any()]
    solved: list[list[int]] = []
    for part in _parts(problem, primary):
        ways = _partitions(part)
        costs = [cache_misses(problem, way) for way in ways]
        solved += ways[costs.index(min(costs))]
    return _with_unused(problem, _climb(problem, solved, cache_misses))


def disk_seconds(problem: DesignProblem, partitions: Sequence[Sequence[int]]) -> float:
    """The seconds that a disk works for the workload: every touched partition is scanned, all share the buffer."""
    touched = np.array([problem.readers(columns) for columns in partitions], dtype=np.float64)
    width = np.array([len(columns) * CELL_WIDTH for columns in partitions])
    blocks = np.ceil(problem.rows / np.maximum(1, DISK_BLOCK_BYTES // width))
    together = np.maximum(touched.T @ width, 1.0)
    # The buffer is divided among the partitions of a query by their widths; each refill is a seek.
    share = np.maximum(1.0, BUFFER_BYTES * width[:, None] / together / DISK_BLOCK_BYTES // 1)
    seeks = SEEK_SECONDS * np.ceil(blocks[:, None] / share)
    scans = (blocks * DISK_BLOCK_BYTES / DISK_BYTES_PER_SECOND)[:, None]
    return float(((seeks + scans) * touched).sum(axis=0) @ problem.weights)


def cache_misses(problem: DesignProblem, partitions: Sequence[Sequence[int]]) -> float:
    """The cache lines that the workload misses when it projects its columns out of each partition, row by row.

    Where less than a line of unwanted columns lies between two rows, the whole partition is streamed; else each row
    misses the lines that its wanted columns lie on, which on average is one more than fits them closely.
    """
    misses = 0.0
    for columns in partitions:
        wanted = problem.accesses[:, list(columns)].sum(axis=1) * CELL_WIDTH
        width = len(columns) * CELL_WIDTH
        streamed = problem.rows * width / CACHE_LINE_BYTES
        apart = problem.rows * np.minimum(width / CACHE_LINE_BYTES, wanted / CACHE_LINE_BYTES + 1)
        per_query = np.where(width - wanted < CACHE_LINE_BYTES, streamed, apart) * (wanted > 0)
        misses += float(per_query @ problem.weights)
    return misses


def _climb(
    problem: DesignProblem,
    start: Sequence[Sequence[int]],
    cost: Callable[[DesignProblem, Sequence[Sequence[int]]], float],
) -> list[list[int]]:
    """Merge the two partitions whose merge saves most, as long as one saves."""
    partitions = [list(columns) for columns in start]
    now = cost(problem, partitions)
    while len(partitions) > 1:
        best, chosen = now, None
        for one, other in itertools.combinations(range(len(partitions)), 2):
            merged = cost(problem, _merged(partitions, one, other))
            if merged < best:
                best, chosen = merged, (one, other)
        if chosen is None:
            break
        partitions, now = _merged(partitions, *chosen), best
    return partitions


def _merged(partitions: list[list[int]], one: int, other: int) -> list[list[int]]:
    kept = [columns for number, columns in enumerate(partitions) if number not in (one, other)]
    return [*kept, sorted(partitions[one] + partitions[other])]


def _parts(problem: DesignProblem, primary: list[list[int]]) -> list[list[list[int]]]:
    """Cut the primary partitions into parts that can be solved exactly: the strongest bonds are tied first."""
    part_of = list(range(len(primary)))
    bonds = []
    for one, other in itertools.combinations(range(len(primary)), 2):
        both = problem.readers(primary[one]) & problem.readers(primary[other])
        bonds.append((-float(problem.weights @ both), one, other))
    for bond, one, other in sorted(bonds):
        left, right = part_of[one], part_of[other]
        size = sum(part in (left, right) for part in part_of)
        if bond < 0 and left != right and size <= MOST_EXACT:
            part_of = [left if part == right else part for part in part_of]
    return [
        [columns for columns, part in zip(primary, part_of, strict=True) if part == wanted]
        for wanted in sorted(set(part_of))
    ]


def _partitions(items: list[list[int]]) -> list[list[list[int]]]:
    """Every way to put some primary partitions together.

    >>> [sorted(one) for one in _partitions([[1], [2]])]
    [[[1, 2]], [[1], [2]]]
    """
    if len(items) <= 1:
        return [[sorted(one) for one in items]]
    found = []
    for rest in _partitions(items[1:]):
        found += [[*rest[:at], sorted(items[0] + rest[at]), *rest[at + 1 :]] for at in range(len(rest))]
        found.append([sorted(items[0]), *rest])
    return found


def _with_unused(problem: DesignProblem, partitions: Sequence[Sequence[int]]) -> Columns:
    unused = [column for column in range(len(problem.columns)) if not problem.accesses[:, column].any()]
    return tuple(sorted(tuple(sorted(columns)) for columns in [*partitions, *([unused] if unused else [])]))
