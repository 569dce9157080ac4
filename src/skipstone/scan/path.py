"""Choose which layout a query reads each of its columns from.

Sun, "Skipping-oriented Data Design for Large-Scale Analytics", dissertation, 2017, section 5.6: a retrieval path
assigns every requested column to a layout that is eligible for it; its cost is the cells read plus the row ids read
(eq. 5.1).

    C^q           the keys of `eligible`        rr(q, L_j)     rows[j]
    p(c_i, L_j)   the path: column -> layout    eligibleL      eligible[column]

Two ways to find one: `greedy_path` as the paper gives it, a 2-approximation, and `exact_path`, which searches the sets
of layouts and is what the reader uses while that is cheap.

Departs from the paper: row ids are counted only where more than one layout is read, because a query that stays within
one layout needs none of them (that is the rule of equation 4.2, which 5.1 leaves out).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

__all__ = ["Path", "best_path", "exact_path", "greedy_path", "path_cost"]

Path: TypeAlias = dict[str, int]
"""The layout that each requested column is read from."""

MOST_SETS_TRIED = 4_096
"""Past so many sets of layouts the exact search gives way to the greedy one; a few milliseconds of planning."""


def best_path(eligible: Mapping[str, Sequence[int]], rows: Sequence[int]) -> Path:
    """Find the cheapest retrieval path: exactly while that is cheap, else greedily.

    >>> best_path({"a": [0, 1], "b": [1]}, rows=[10, 15])
    {'a': 1, 'b': 1}
    """
    exact = exact_path(eligible, rows)
    return greedy_path(eligible, rows) if exact is None else exact


def greedy_path(eligible: Mapping[str, Sequence[int]], rows: Sequence[int]) -> Path:
    """Read each column from the eligible layout with the fewest rows to read (section 5.6.3, "Greedy").

    >>> greedy_path({"a": [0, 1], "b": [1]}, rows=[10, 15])
    {'a': 0, 'b': 1}
    """
    return {column: min(layouts, key=lambda layout: (rows[layout], layout)) for column, layouts in eligible.items()}


def exact_path(eligible: Mapping[str, Sequence[int]], rows: Sequence[int]) -> Path | None:
    """Find the cheapest path by trying sets of layouts; None where there are too many sets to try.

    Within a given set of layouts greedy is optimal, so only the sets have to be searched: those of growing size, each
    joined with the layouts that some column has no alternative to.
    """
    forced = {layouts[0] for layouts in eligible.values() if len(set(layouts)) == 1}
    optional = sorted({layout for layouts in eligible.values() for layout in layouts} - forced)
    if 2 ** len(optional) > MOST_SETS_TRIED:
        return None
    best: tuple[int, int, Path] | None = None
    for size in range(len(optional) + 1):
        for chosen in combinations(optional, size):
            allowed = forced.union(chosen)
            path = _greedy_within(eligible, rows, allowed)
            if path is None:
                continue
            candidate = (path_cost(path, rows), len(set(path.values())), path)
            if best is None or candidate[:2] < best[:2]:
                best = candidate
    return None if best is None else best[2]


def path_cost(path: Mapping[str, int], rows: Sequence[int]) -> int:
    """Count the cells and row ids that a path reads (equation 5.1; no row ids within one layout).

    >>> path_cost({"c2": 1, "c3": 0, "c4": 1}, rows=[4, 2])  # the example of section 5.6.2
    14
    """
    cells = sum(rows[layout] for layout in path.values())
    touched = set(path.values())
    return cells + (sum(rows[layout] for layout in touched) if len(touched) > 1 else 0)


def _greedy_within(eligible: Mapping[str, Sequence[int]], rows: Sequence[int], allowed: set[int]) -> Path | None:
    path: Path = {}
    for column, layouts in eligible.items():
        usable = [layout for layout in layouts if layout in allowed]
        if not usable:
            return None
        path[column] = min(usable, key=lambda layout: (rows[layout], layout))
    return path
