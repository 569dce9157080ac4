"""Column grouping: a bottom-up search for the groups of columns with which the workload reads least.

Sun, dissertation, 2017, section 4.4.4:

    each column begins as a group
    until all columns are one group:
        merge the pair after which the objective, with the merged group estimated, is smallest
        replace the estimate by the exact value
    return the grouping of the iteration whose objective was smallest

    G               groups               COST(W, G)     cost
    r_i^q           group.rows           |G_i n C^q|    group.cells (priced)

`exact` and `estimate` are both `RowsRead` and remember what they were asked, as the paper's caches do.

Departs from the paper: ties go to the pair that comes first; `alike` begins with columns that the same queries read
already together, which reads no row more and no row id as often (their local features are the same anyhow).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skipstone.compiled import njit
from skipstone.layout.grouping.cost import Prices
from skipstone.layout.grouping.local_features import LocalFeatures
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft
from skipstone.layout.grouping.rows_read import RowsRead
from skipstone.layout.vectors import Bits

__all__ = ["ColumnGroups", "alike", "column_groups", "groups_cost", "one_group", "singles"]

Columns = tuple[tuple[int, ...], ...]
"""Groups of columns, each ascending, in the order of their first columns."""


@dataclass(frozen=True, slots=True)
class ColumnGroups:
    """What the search found, its objective, and the objective of every iteration, from all apart to all together."""

    groups: tuple[LayoutDraft, ...]
    cost: float
    costs: tuple[float, ...]


def singles(problem: DesignProblem) -> Columns:
    """Every column alone: the right end of the spectrum (figure 4.3), `GSOP-single`."""
    return tuple((column,) for column in range(len(problem.columns)))


def one_group(problem: DesignProblem) -> Columns:
    """All columns together: the left end of the spectrum, SOP."""
    return (tuple(range(len(problem.columns))),)


def alike(problem: DesignProblem) -> Columns:
    """Columns that the same queries read, together; so are those that no query reads."""
    together: dict[bytes, list[int]] = {}
    for column in range(len(problem.columns)):
        together.setdefault(problem.accesses[:, column].tobytes(), []).append(column)
    return tuple(tuple(columns) for columns in together.values())


def column_groups(
    problem: DesignProblem,
    *,
    exact: RowsRead,
    estimate: RowsRead,
    local: LocalFeatures,
    prices: Prices,
    start: Columns | None = None,
) -> ColumnGroups:
    """Search from `start` (every column alone) to one group, and return the best grouping on the way."""
    state = _State(problem, prices, exact, local)
    for columns in singles(problem) if start is None else start:
        state.add(state.exactly(columns))
    costs = [state.cost()]
    best = state.columns()
    merges = _Merges(state, estimate)
    while len(state.groups) > 1:
        one, other = merges.best()
        merged = tuple(sorted((*state.groups[one].columns, *state.groups[other].columns)))
        merges.merge(one, other, state.exactly(merged))
        costs.append(state.cost())
        if costs[-1] < min(costs[:-1]):
            best = state.columns()
    layouts = tuple(_draft(problem, columns, local) for columns in sorted(best))
    return ColumnGroups(layouts, min(costs), tuple(costs))


def groups_cost(
    problem: DesignProblem, groups: Iterable[Sequence[int]], *, exact: RowsRead, local: LocalFeatures, prices: Prices
) -> float:
    """The objective of given groups, equation 4.4."""
    state = _State(problem, prices, exact, local)
    for columns in groups:
        state.add(state.exactly(tuple(columns)))
    return state.cost()


def _draft(problem: DesignProblem, columns: Sequence[int], local: LocalFeatures) -> LayoutDraft:
    return LayoutDraft.group(columns, local.of(problem.readers(columns)))


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """A group with what its readers read of it: the price of their cells in a row, and the rows."""

    columns: tuple[int, ...]
    readers: Bits
    queries: NDArray[np.int64]
    cells: NDArray[np.float64]
    rows: NDArray[np.float64]


class _State:
    """A grouping, and for each query the running sums of equation 4.3; groups keep their numbers."""

    def __init__(self, problem: DesignProblem, prices: Prices, exact: RowsRead, local: LocalFeatures) -> None:
        self.problem = problem
        self.prices = prices
        self.exact = exact
        self.local = local
        self.groups: dict[int, _Group] = {}
        self.touched = np.zeros(len(problem.queries), dtype=np.int64)
        self.scanned = np.zeros(len(problem.queries), dtype=np.float64)
        self.put_together = np.zeros(len(problem.queries), dtype=np.float64)
        self._next = 0

    def exactly(self, columns: tuple[int, ...]) -> _Group:
        """A group whose rows are counted exactly."""
        readers = self.problem.readers(columns)
        rows = self.exact.rows(LayoutDraft.group(columns, self.local.of(readers)), readers)
        queries = np.flatnonzero(readers)
        cells = self.problem.accesses[:, list(columns)] @ self.prices.cells[list(columns)]
        return _Group(columns, readers, queries, cells, rows)

    def add(self, group: _Group) -> int:
        """Take a group in, and give its number, which is higher than those before."""
        self._change(group, 1)
        self.groups[self._next] = group
        self._next += 1
        return self._next - 1

    def remove(self, number: int) -> None:
        """Take a group out."""
        self._change(self.groups.pop(number), -1)

    def _change(self, group: _Group, sign: int) -> None:
        at = group.queries
        self.touched[at] += sign
        self.scanned[at] += sign * group.cells[at] * group.rows[at]
        self.put_together[at] += sign * self.overhead(group.rows[at])

    def overhead(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Equation 4.2 for one group of several."""
        sorting = self.prices.sorting * rows * np.log2(np.maximum(rows, 1.0))
        return np.asarray(rows * self.prices.row_id + sorting)

    def cost(self) -> float:
        """Equation 4.4."""
        needs_ids = self.touched > (0 if self.prices.row_ids_always else 1)
        return float(self.problem.weights @ (self.scanned + np.where(needs_ids, self.put_together, 0.0)))

    def columns(self) -> Columns:
        """The groups' columns."""
        return tuple(group.columns for group in self.groups.values())


class _Merges:
    """What the merge of each pair of groups would change, kept from one iteration to the next.

    A merge changes what is read of queries that read one of the two groups. Pairs that no such query reads stay as they
    are, so that of many columns few pairs are looked at anew.
    """

    def __init__(self, state: _State, estimate: RowsRead) -> None:
        self._state = state
        self._estimate = estimate
        self._estimated: dict[tuple[int, int], tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
        # Groups keep their numbers, and each iteration makes one more. Only pairs (low, high) have entries.
        size = 2 * len(state.groups)
        self._changes = np.full((size, size), np.inf)
        for one, other in itertools.combinations(state.groups, 2):
            self._changes[one, other] = self._change(one, other)

    def best(self) -> tuple[int, int]:
        """The pair whose merge changes the objective to the smallest value; of equal ones the first."""
        one, other = divmod(int(np.argmin(self._changes)), self._changes.shape[1])
        return one, other

    def merge(self, one: int, other: int, merged: _Group) -> None:
        """Replace two groups by one."""
        state = self._state
        state.remove(one)
        state.remove(other)
        number = state.add(merged)
        for gone in (one, other):
            self._changes[gone, :] = self._changes[:, gone] = np.inf
            for key in state.groups:
                self._estimated.pop((min(gone, key), max(gone, key)), None)
        touched = {
            key for key, group in state.groups.items() if key == number or (group.readers & merged.readers).any()
        }
        for left, right in itertools.combinations(state.groups, 2):
            if left in touched or right in touched:
                self._changes[left, right] = self._change(left, right)

    def _change(self, one: int, other: int) -> float:
        state = self._state
        left, right = state.groups[one], state.groups[other]
        if not len(left.queries) and not len(right.queries):
            return 0.0
        if (one, other) not in self._estimated:
            readers = left.readers | right.readers
            draft = LayoutDraft.group((*left.columns, *right.columns), state.local.of(readers))
            queries = np.flatnonzero(readers)
            self._estimated[one, other] = (queries, self._estimate.rows(draft, readers)[queries])
        queries, rows = self._estimated[one, other]
        return float(
            _change_of_merge(
                queries,
                rows,
                left.cells,
                left.rows,
                left.readers,
                right.cells,
                right.rows,
                right.readers,
                state.touched,
                state.put_together,
                state.problem.weights,
                state.prices.row_id,
                state.prices.sorting,
                1 if state.prices.row_ids_always else 2,
            )
        )


@njit(cache=True)
def _ids(rows: float, row_id: float, sorting: float) -> float:
    return rows * row_id + (sorting * rows * np.log2(rows) if rows > 1 else 0.0)


@njit(cache=True)
def _change_of_merge(
    queries: NDArray[np.int64],
    merged_rows: NDArray[np.float64],
    left_cells: NDArray[np.float64],
    left_rows: NDArray[np.float64],
    left_readers: NDArray[np.bool_],
    right_cells: NDArray[np.float64],
    right_rows: NDArray[np.float64],
    right_readers: NDArray[np.bool_],
    touched: NDArray[np.int64],
    put_together: NDArray[np.float64],
    weights: NDArray[np.float64],
    row_id: float,
    sorting: float,
    fewest: int,
) -> float:
    """What a merge adds to the objective; row ids are read where a query touches `fewest` groups or more."""
    change = 0.0
    for k in range(queries.shape[0]):
        q = queries[k]
        rows = merged_rows[k]
        before = left_cells[q] * left_rows[q] + right_cells[q] * right_rows[q]
        cost = (left_cells[q] + right_cells[q]) * rows - before
        together = put_together[q]
        if touched[q] >= fewest:
            cost -= together
        count = touched[q] + 1
        if left_readers[q]:
            together -= _ids(left_rows[q], row_id, sorting)
            count -= 1
        if right_readers[q]:
            together -= _ids(right_rows[q], row_id, sorting)
            count -= 1
        if count >= fewest:
            cost += together + _ids(rows, row_id, sorting)
        change += weights[q] * cost
    return change
