"""What a workload costs with a scheme, and what the scheme costs to store: the objectives of GSOP and GSOP-R.

Sun, "Skipping-oriented Data Design for Large-Scale Analytics", dissertation, 2017, sections 4.4.2 and 5.4.3:

    COST(q, G) = sum over G_i in G^q of |G_i n C^q| r_i^q + overhead(q, G)                       (4.1, 4.3)
    overhead(q, G) = sum of (r_i^q + sort(r_i^q)) if |G^q| > 1, else 0                           (4.2)
    q-cost(q, L, R, p) = sum over L_j of rr(q, L_j) (OR_i p(c_i, L_j) + sum_i p(c_i, L_j))       (5.1)
    s-cost(L, R) = sum over L_i of (|R_i| |C_i| + |R - R_i| |M_i|) / (|R| |C|)                   (5.2)

    r_i^q, rr(q, L_j)    rows_read[q, j]        |G_i n C^q|     cells priced by prices.cells
    p(c_i, L_j)          the retrieval path     a row id        priced by prices.row_id
    sort(x)              prices.sorting * x * log2(x)

GSOP's layouts share no column, so its only path is the greedy one: 4.3 and 5.1 are one function here.

Departs from the paper: row ids are counted by the rule of 4.2 (none where one layout is read), which 5.1 leaves out;
`Prices.row_ids_always` gives 5.1 to the letter. `sort` is not quantified in the paper, which then counts cells and row
ids; so it is free unless a price is put on it. Bytes may be counted in place of cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skipstone.compiled import njit
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft
from skipstone.layout.grouping.rows_read import RowsRead
from skipstone.layout.vectors import Bits

__all__ = [
    "Prices",
    "in_bytes",
    "in_cells",
    "layouts_touched",
    "query_costs",
    "readable",
    "rows_read_of",
    "storage_cost",
    "workload_cost",
]


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """What it costs to read a cell of each column and a row id, and to sort a row id into its place."""

    cells: NDArray[np.float64]
    row_id: float
    sorting: float = 0.0
    row_ids_always: bool = False


def in_cells(problem: DesignProblem) -> Prices:
    """Count cells and row ids, one for one, as the papers do."""
    return Prices(np.ones(len(problem.columns)), 1.0)


def in_bytes(problem: DesignProblem) -> Prices:
    """Count the bytes that cells and row ids are stored in, which is what a query waits for."""
    return Prices(problem.cell_bytes, problem.row_id_bytes)


def rows_read_of(problem: DesignProblem, layouts: Sequence[LayoutDraft], counter: RowsRead) -> NDArray[np.float64]:
    """Ask for each layout how many rows each query reads of it, if it is clustered for the queries that touch it."""
    table = np.empty((len(problem.queries), len(layouts)), dtype=np.float64, order="F")
    for place, layout in enumerate(layouts):
        table[:, place] = counter.rows(layout, problem.readers(layout.columns))
    return table


def readable(problem: DesignProblem, layouts: Sequence[LayoutDraft]) -> Bits:
    """For each query and layout whether a local feature subsumes the query, so that replicas serve it (5.6.1)."""
    answer = np.zeros((len(problem.queries), len(layouts)), dtype=np.bool_)
    for place, layout in enumerate(layouts):
        of_kinds: Bits = np.asarray(problem.kinds[:, sorted(layout.features)].any(axis=1))
        answer[:, place] = of_kinds[problem.kind_of]
    return answer


def query_costs(
    problem: DesignProblem,
    layouts: Sequence[LayoutDraft],
    rows_read: NDArray[np.float64],
    prices: Prices,
    *,
    thrifty: bool = False,
) -> NDArray[np.float64]:
    """What each query reads: its cells, and its row ids where it reads several layouts.

    Columns come from the eligible layout with the fewest rows to read: the greedy path of 5.6.3. With `thrifty` layouts
    that can be done without are left out one after the other as long as that saves; where layouts share no column it
    changes nothing.
    """
    return _paths(problem, layouts, rows_read, prices, thrifty=thrifty)[0]


def layouts_touched(
    problem: DesignProblem, layouts: Sequence[LayoutDraft], rows_read: NDArray[np.float64], prices: Prices
) -> Bits:
    """Which layouts each query reads a column of, on the path that `query_costs` with `thrifty` takes."""
    return _paths(problem, layouts, rows_read, prices, thrifty=True)[1]


def _paths(
    problem: DesignProblem,
    layouts: Sequence[LayoutDraft],
    rows_read: NDArray[np.float64],
    prices: Prices,
    *,
    thrifty: bool,
) -> tuple[NDArray[np.float64], Bits]:
    member = np.zeros((len(layouts), len(problem.columns)), dtype=np.int8)
    for place, layout in enumerate(layouts):
        member[place, sorted(layout.columns)] = REPLICA
        member[place, sorted(layout.masters)] = MASTER
    subsumes = readable(problem, layouts)
    touched = np.zeros((len(problem.queries), len(layouts)), dtype=np.bool_)
    costs = _query_costs(
        problem.accesses,
        member,
        subsumes,
        np.ascontiguousarray(rows_read),
        prices.cells,
        prices.row_id,
        prices.sorting,
        prices.row_ids_always,
        thrifty,
        touched,
    )
    return costs, touched


def workload_cost(
    problem: DesignProblem,
    layouts: Sequence[LayoutDraft],
    counter: RowsRead,
    prices: Prices,
    *,
    thrifty: bool = False,
) -> float:
    """Weigh and add up the costs of all queries: equation 4.4."""
    rows_read = rows_read_of(problem, layouts, counter)
    return float(problem.weights @ query_costs(problem, layouts, rows_read, prices, thrifty=thrifty))


def storage_cost(problem: DesignProblem, layouts: Sequence[LayoutDraft], prices: Prices | None = None) -> float:
    """How many times the table a scheme stores: in cells (equation 5.2), or in the unit of `prices`, row ids included.

    The example of 5.4.3 stores 18 cells in place of 16: 1.125.
    """
    # Row ids are no cells: the equation leaves them out, and bytes must not.
    charged = replace(in_cells(problem), row_id=0.0) if prices is None else prices
    stored = 0.0
    for layout in layouts:
        inside = 1.0 if layout.is_whole else problem.share(layout.features)
        columns, masters = sorted(layout.columns), sorted(layout.masters)
        stored += inside * charged.cells[columns].sum() + (1 - inside) * charged.cells[masters].sum()
        if len(layouts) > 1:
            stored += charged.row_id * (1.0 if masters else inside)
    return float(stored / charged.cells.sum())


REPLICA, MASTER = 1, 2


@njit(cache=True)
def _query_costs(
    accesses: NDArray[np.bool_],
    member: NDArray[np.int8],
    subsumes: NDArray[np.bool_],
    rows_read: NDArray[np.float64],
    cells: NDArray[np.float64],
    row_id: float,
    sorting: float,
    row_ids_always: bool,
    thrifty: bool,
    path: NDArray[np.bool_],
) -> NDArray[np.float64]:
    queries = accesses.shape[0]
    layouts = member.shape[0]
    costs = np.zeros(queries)
    allowed = np.ones(layouts, dtype=np.bool_)
    touched = np.zeros(layouts, dtype=np.bool_)
    needed = np.zeros(layouts, dtype=np.bool_)
    for q in range(queries):
        wanted = np.flatnonzero(accesses[q])
        allowed[:] = True
        best = _path_cost(
            q, wanted, member, subsumes, rows_read, cells, row_id, sorting, row_ids_always, allowed, touched
        )
        needed[:] = touched
        while thrifty:
            # Leave out the layout without which the path is cheapest, until leaving out no longer saves.
            allowed[:] = needed
            dropped = -1
            for j in range(layouts):
                if not needed[j]:
                    continue
                allowed[j] = False
                cost = _path_cost(
                    q, wanted, member, subsumes, rows_read, cells, row_id, sorting, row_ids_always, allowed, touched
                )
                allowed[j] = True
                if cost < best:
                    best = cost
                    dropped = j
            if dropped < 0:
                break
            needed[dropped] = False
        # Of the layouts that are not left out, the greedy path may touch fewer than it did among all.
        allowed[:] = needed
        _path_cost(q, wanted, member, subsumes, rows_read, cells, row_id, sorting, row_ids_always, allowed, touched)
        path[q] = touched
        costs[q] = best
    return costs


@njit(cache=True)
def _path_cost(
    q: int,
    wanted: NDArray[np.int64],
    member: NDArray[np.int8],
    subsumes: NDArray[np.bool_],
    rows_read: NDArray[np.float64],
    cells: NDArray[np.float64],
    row_id: float,
    sorting: float,
    row_ids_always: bool,
    allowed: NDArray[np.bool_],
    touched: NDArray[np.bool_],
) -> float:
    """The cost of the greedy path within the allowed layouts, infinite if they do not suffice; marks the touched."""
    touched[:] = False
    cost = 0.0
    for c in wanted:
        home = -1
        for j in range(member.shape[0]):
            if not allowed[j] or member[j, c] == 0 or (member[j, c] == 1 and not subsumes[q, j]):
                continue
            if home < 0 or rows_read[q, j] < rows_read[q, home]:
                home = j
        if home < 0:
            return np.inf
        touched[home] = True
        cost += rows_read[q, home] * cells[c]
    count = 0
    ids = 0.0
    for j in range(member.shape[0]):
        if touched[j]:
            count += 1
            rows = rows_read[q, j]
            ids += rows * row_id
            if rows > 1:
                ids += sorting * rows * np.log2(rows)
    return cost + ids if count > 1 or row_ids_always else cost
