"""GSOP-R as the dissertation gives it: algorithms 1 and 2, a greedy walk by scheme transformations.

Sun, "Skipping-oriented Data Design for Large-Scale Analytics", dissertation, 2017, section 5.5.4:

    find-GSOPR-scheme(S, W, b)        find_gsop_r(problem, budget)
    pick-next-operation(L, W, V, b)   _next(...)
    q-cost, s-cost                    `SchemeCosts`: equations 5.1 and 5.2, by clustering the sample's vectors

Departs from the paper: equal costs are told apart by the order of the operations, so that the walk is always the same;
of two schemes of equal cost the one that stores less wins. Row ids count as in equation 4.2, none within one layout.
A queue of what the operations cost is not kept: what is remembered is rows read per layout, as in the paper. A `merge`
must keep the budget, too, which lines 15 to 19 of algorithm 2 do not ask: columns that one of the two layouts
replicates are stored for the rows of both from then on. The initial scheme may be the best, and is returned then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skipstone.errors import InvalidInput
from skipstone.layout.grouping.cost import Prices, in_cells, query_costs
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft
from skipstone.layout.grouping.rows_read import RowsRead
from skipstone.layout.replication.pieces import (
    Features,
    Pieces,
    Relevant,
    drafts,
    initial_pieces,
    merge,
    merge_repl,
    relevant_columns,
    repl,
)
from skipstone.layout.vectors import distinct

__all__ = ["ROUNDING", "Designed", "SchemeCosts", "condensed", "find_gsop_r", "require_budget"]

LARGEST_BUDGET = 10.0

ROUNDING = 1e-9
"""Storage is a sum of shares; so much of it is rounding."""


@dataclass(frozen=True, slots=True)
class Designed:
    """A scheme, what the workload reads with it, how many times the table it stores, and how hard was searched."""

    layouts: tuple[LayoutDraft, ...]
    query_cost: float
    storage: float
    tried: int
    moves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Move:
    """One operation on a scheme, and the scheme that comes of it."""

    name: str
    pieces: Pieces


def find_gsop_r(costs: SchemeCosts, budget: float) -> Designed:
    """Walk from the scheme of single columns by the best operation each time, and take the best scheme on the way."""
    require_budget(budget)
    problem = costs.problem
    relevant = relevant_columns(problem)
    pieces = initial_pieces(range(len(problem.columns)), relevant)
    first = costs.drafts(pieces)
    best = Designed(first, costs.queries(first), costs.storage(first), 1)
    moves: list[str] = []
    tried = 1
    while True:
        picked, examined = _next(costs, pieces, relevant, budget)
        tried += examined
        if picked is None:
            return replace(best, tried=tried)
        pieces = picked.pieces
        layouts = costs.drafts(pieces)
        cost = costs.queries(layouts)
        moves.append(picked.name)
        if cost < best.query_cost:
            best = Designed(layouts, cost, costs.storage(layouts), tried, tuple(moves))


def _next(costs: SchemeCosts, pieces: Pieces, relevant: Relevant, budget: float) -> tuple[_Move | None, int]:
    """Try every operation on a scheme, and give the one whose scheme the workload reads least of within the budget."""
    best: tuple[float, float] | None = None
    picked: _Move | None = None
    examined = 0
    for move in _moves(pieces, relevant):
        layouts = costs.drafts(move.pieces)
        stored = costs.storage(layouts)
        if stored > budget + ROUNDING:
            continue
        examined += 1
        judged = (costs.queries(layouts), stored)
        if best is None or judged < best:
            best, picked = judged, move
    return picked, examined


def _moves(pieces: Pieces, relevant: Relevant) -> Iterator[_Move]:
    """Every operation that the paper allows on a scheme, in a fixed order."""
    for number, piece in enumerate(pieces):
        if len(piece.features) > 1:
            for feature in sorted(piece.features):
                yield _Move(f"repl({number}, {feature})", repl(pieces, piece, feature, relevant))
    for number, one in enumerate(pieces):
        for place, other in enumerate(pieces[number + 1 :], number + 1):
            # Layouts without a common feature are read by no query together, so that merging them gains nothing.
            if one.features & other.features:
                yield _Move(f"merge({number}, {place})", merge(pieces, one, other))
                yield _Move(f"merge-repl({number}, {place})", merge_repl(pieces, one, other, relevant))


def require_budget(budget: float) -> float:
    """Give the budget back if it can hold the table once, else say what is wrong with it."""
    if not 1.0 <= budget <= LARGEST_BUDGET:
        raise InvalidInput(
            f"a storage budget is a multiple of the table's size from 1.0 (no replicas) to {LARGEST_BUDGET:g};"
            f" it is {budget:g}"
        )
    return budget


def condensed(problem: DesignProblem) -> DesignProblem:
    """The same problem with one query for all that read the same columns and that the same features subsume."""
    signature = np.concatenate([problem.accesses, problem.subsumed], axis=1)
    _, which = distinct(signature)
    first = np.unique(which, return_index=True)[1]
    order = np.argsort(first)
    position = np.empty(len(first), dtype=np.int64)
    position[order] = np.arange(len(first))
    weights = np.zeros(len(first), dtype=np.float64)
    np.add.at(weights, position[which], problem.weights)
    chosen = first[order]
    return replace(
        problem,
        queries=tuple(problem.queries[place] for place in chosen.tolist()),
        accesses=problem.accesses[chosen],
        kind_of=problem.kind_of[chosen],
        weights=weights,
    )


class SchemeCosts:
    """What schemes cost, with a memory for the parts that many schemes share."""

    def __init__(self, problem: DesignProblem, counter: RowsRead, prices: Prices | None = None) -> None:
        self.problem = problem
        self.prices = prices or in_cells(problem)
        self._counter = counter
        self._shares: dict[Features, float] = {}
        self._rows: dict[LayoutDraft, NDArray[np.float64]] = {}

    def share(self, features: Features) -> float:
        """The share of all rows that satisfy one of these features."""
        if features not in self._shares:
            self._shares[features] = self.problem.share(features)
        return self._shares[features]

    def drafts(self, pieces: Pieces) -> tuple[LayoutDraft, ...]:
        """The layouts of a scheme, with masters by the two rules."""
        return drafts(pieces, self.share)

    def storage(self, layouts: tuple[LayoutDraft, ...]) -> float:
        """How many times the cells of the table a scheme stores: equation 5.2."""
        cells = 0.0
        for layout in layouts:
            inside = self.share(layout.features)
            cells += inside * (len(layout.columns) - len(layout.masters)) + len(layout.masters)
        return cells / len(self.problem.columns)

    def queries(self, layouts: tuple[LayoutDraft, ...]) -> float:
        """What the workload reads: equation 5.1 with the greedy path, weighted and added up."""
        table = np.empty((len(self.problem.queries), len(layouts)), dtype=np.float64)
        for place, layout in enumerate(layouts):
            table[:, place] = self._rows_of(layout)
        return float(self.problem.weights @ query_costs(self.problem, layouts, table, self.prices))

    def _rows_of(self, layout: LayoutDraft) -> NDArray[np.float64]:
        if layout not in self._rows:
            self._rows[layout] = self._counter.rows(layout, self.problem.readers(layout.columns))
        return self._rows[layout]
