"""`gsop-r-families`: replicas from the other end, beginning with what every family of queries would like best.

The paper's walk begins with single columns and spends storage where that helps at once. This one begins with a layout
for each family, which reads least, and gives storage back until the budget holds, step by step; the few schemes are
followed that have lost least for what they gave back:

    merge    two layouts become one for the families of both, so that common columns are stored once
    drop     a layout does without a column that another has; its families then put rows together by row ids

Then steps that make the workload read less within the budget are taken as long as there are any: the same two, and

    split    a family gets a layout of its own again
    add      a column comes back

Costs are those of the reader: its exact path, cells or bytes, and blocks of real clusterings of a sample, see
`served_rows`. What is stored is counted with a margin for what a sample cannot know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from skipstone.layout.grouping.cost import Prices, in_cells, query_costs
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft, scheme_of
from skipstone.layout.replication.gsop_r import ROUNDING, Designed, require_budget
from skipstone.layout.replication.pieces import Piece, drafts
from skipstone.layout.replication.served_rows import ServedRows, Serving
from skipstone.layout.scheme import ClusteringSpec, Scheme

__all__ = ["ServedScheme", "serve_families"]

MARGIN = 2.0
"""The share of rows in a layout is taken to be so many standard deviations above what the sample shows: Wilson's upper
bound (Journal of the American Statistical Association, 1927), which is above zero for rows that no sample has shown."""

MOST_MERGES = 20
"""Of so many pairs of layouts it is found out what putting them together costs; that means clustering anew."""

FOLLOWED = 4
"""So many schemes are followed while storage is given back; eight found nothing better on TPC-H."""

MOST_STEPS = 200
"""No search goes on longer, whatever it still finds."""

WORTH_A_STEP = 1e-3
"""A step that saves less than this share of what the workload reads is not worth looking further for."""


@dataclass(frozen=True, slots=True)
class ServedScheme:
    """What was found: layouts with the clustering of each, what the workload reads and how much is stored."""

    problem: DesignProblem
    designed: Designed
    specs: tuple[ClusteringSpec, ...]

    def scheme(self) -> Scheme:
        """The scheme, as it is written."""
        return scheme_of(self.problem, self.designed.layouts, self.specs)


def serve_families(
    rows: ServedRows, budget: float, *, reading: Prices | None = None, storing: Prices | None = None
) -> ServedScheme:
    """Search for the scheme that stores at most `budget` times the table and of which the workload reads least.

    `reading` and `storing` price cells and row ids; without them cells are counted as in equations 5.1 and 5.2.
    """
    require_budget(budget)
    search = _Search(rows, reading, storing)
    state = search.fitting(budget)
    for _ in range(MOST_STEPS):
        better = search.better(state, budget)
        if better is None:
            break
        state = better
    return search.result(state)


@dataclass(frozen=True, slots=True)
class _State:
    """A scheme on the way: who is served by which layout, what that costs, and how many times the table it stores."""

    servings: tuple[Serving, ...]
    layouts: tuple[LayoutDraft, ...]
    cost: float
    stored: float


class _Search:
    """The steps of the search; it counts the schemes it looked at."""

    def __init__(self, rows: ServedRows, reading: Prices | None, storing: Prices | None) -> None:
        self.rows = rows
        self.problem = rows.problem
        self.reading = reading or in_cells(self.problem)
        self.storing = storing or replace(in_cells(self.problem), row_id=0.0)
        self.tried = 0
        self._shares: dict[frozenset[int], float] = {}
        self._states: dict[tuple[Serving, ...], _State] = {}

    def first(self) -> _State:
        """A layout for each family, and one for the columns that nobody reads."""
        servings = [Serving(frozenset({n}), family.columns) for n, family in enumerate(self.rows.families)]
        read = frozenset().union(*(family.columns for family in self.rows.families))
        unread = frozenset(range(len(self.problem.columns))) - read
        return self._state((*servings, Serving(frozenset(), unread)))

    def fitting(self, budget: float) -> _State:
        """Give storage back until the budget holds: a beam search.

        The step that costs least for what it gives back is often one too many, or takes away what two others would have
        been joined by; so several schemes are followed until none of them can still become better than what was found.
        """
        first = self.first()
        if first.stored <= budget + ROUNDING:
            return first
        front, best = [first], None
        while front:
            reached = {one.servings: one for state in front for one in self._smaller(state)}
            fits = [one for one in reached.values() if one.stored <= budget + ROUNDING]
            best = min(fits if best is None else [best, *fits], key=lambda one: one.cost, default=None)
            open_ = [
                one
                for one in reached.values()
                if one.stored > budget + ROUNDING and (best is None or one.cost < best.cost)
            ]
            given_back = [max(first.stored - one.stored, ROUNDING) for one in open_]
            rates = [(one.cost - first.cost) / given for one, given in zip(open_, given_back, strict=True)]
            front = [open_[place] for place in np.argsort(rates, kind="stable")[:FOLLOWED]]
        assert best is not None, "one layout for all stores every cell once"
        return best

    def _smaller(self, state: _State) -> list[_State]:
        """The schemes one step away that store less."""
        reached = [self._state(servings) for servings in (*self._merges(state), *self._drops(state))]
        saving = [one for one in reached if one.stored < state.stored - ROUNDING]
        if saving:
            return saving
        # Nothing is left but to put together what has no column in common; in the end that is one layout.
        return [self._state(_joined(state.servings, 0, 1))]

    def better(self, state: _State, budget: float) -> _State | None:
        """Take the step within the budget after which the workload reads least, if that is less than now."""
        steps = (*self._splits(state), *self._adds(state), *self._drops(state))
        # What a step stores is known before anything is clustered.
        fitting = [one for one in steps if self._stored(self._layouts(_tidy(one))) <= budget + ROUNDING]
        reached = [self._state(servings) for servings in fitting]
        best = min(reached, key=lambda one: one.cost, default=None)
        return best if best is not None and best.cost < state.cost * (1 - WORTH_A_STEP) else None

    def result(self, state: _State) -> ServedScheme:
        """Write down what was found."""
        served = [
            self.rows.served(serving, draft) for serving, draft in zip(state.servings, state.layouts, strict=True)
        ]
        return ServedScheme(
            self.problem,
            Designed(state.layouts, state.cost, state.stored, self.tried),
            tuple(one.spec for one in served),
        )

    def _state(self, servings: tuple[Serving, ...]) -> _State:
        servings = _tidy(servings)
        if servings not in self._states:
            self.tried += 1
            layouts = self._layouts(servings)
            self._states[servings] = _State(servings, layouts, self._cost(servings, layouts), self._stored(layouts))
        return self._states[servings]

    def _layouts(self, servings: tuple[Serving, ...]) -> tuple[LayoutDraft, ...]:
        return drafts([Piece(one.columns, self.rows.features(one.families)) for one in servings], self._share)

    def _share(self, features: frozenset[int]) -> float:
        """The share of rows that satisfy one of the features, at most: a sample may show too few."""
        if features not in self._shares:
            share = self.problem.share(features)
            sampled = max(1, self.problem.vectors.rows)
            known = not features or sampled >= self.problem.rows
            self._shares[features] = share if known else _at_most(share, sampled)
        return self._shares[features]

    def _cost(self, servings: tuple[Serving, ...], layouts: tuple[LayoutDraft, ...]) -> float:
        table = np.empty((len(self.problem.queries), len(layouts)))
        for place, (serving, draft) in enumerate(zip(servings, layouts, strict=True)):
            table[:, place] = self.rows.served(serving, draft).rows
        costs = query_costs(self.problem, layouts, table, self.reading, thrifty=True)
        return float(self.problem.weights @ costs)

    def _stored(self, layouts: tuple[LayoutDraft, ...]) -> float:
        """Equation 5.2 with shares on the safe side, and row ids where they have a price."""
        cells = self.storing.cells
        stored = 0.0
        for layout in layouts:
            inside = self._share(layout.features)
            masters = cells[sorted(layout.masters)].sum()
            stored += masters + inside * (cells[sorted(layout.columns)].sum() - masters)
            if len(layouts) > 1:
                stored += self.storing.row_id * (1.0 if layout.masters else inside)
        return float(stored / cells.sum())

    def _merges(self, state: _State) -> Iterator[tuple[Serving, ...]]:
        """Pairs of layouts with common columns, first those that have most in common, in columns and in filters."""
        pairs = []
        for one, left in enumerate(state.servings):
            for other, right in enumerate(state.servings[one + 1 :], one + 1):
                if left.columns & right.columns:
                    filters = self._filtered(left.families), self._filtered(right.families)
                    pairs.append((-_likeness(left.columns, right.columns) - _likeness(*filters), one, other))
        for _, one, other in sorted(pairs)[:MOST_MERGES]:
            yield _joined(state.servings, one, other)

    def _drops(self, state: _State) -> Iterator[tuple[Serving, ...]]:
        """Columns that a layout could do without: they are elsewhere, too, and its families do not filter on them."""
        for place, serving in enumerate(state.servings):
            filtered = self._filtered(serving.families)
            for column in sorted(serving.columns - filtered):
                if sum(column in one.columns for one in state.servings) > 1:
                    yield _replaced(state.servings, place, Serving(serving.families, serving.columns - {column}))

    def _adds(self, state: _State) -> Iterator[tuple[Serving, ...]]:
        """Columns that a layout's families read and have to look for elsewhere."""
        for place, serving in enumerate(state.servings):
            read = frozenset().union(*(self.rows.families[family].columns for family in serving.families))
            for column in sorted(read - serving.columns):
                yield _replaced(state.servings, place, Serving(serving.families, serving.columns | {column}))

    def _splits(self, state: _State) -> Iterator[tuple[Serving, ...]]:
        """Families that share a layout and could have one of their own."""
        for place, serving in enumerate(state.servings):
            if len(serving.families) < 2:
                continue
            for family in sorted(serving.families):
                rest = serving.families - {family}
                kept = Serving(rest, serving.columns)
                own = Serving(frozenset({family}), self.rows.families[family].columns)
                yield (*_replaced(state.servings, place, kept), own)

    def _filtered(self, families: frozenset[int]) -> frozenset[int]:
        names = frozenset().union(
            *(
                self.problem.queries[number].filter.columns
                for number in range(len(self.problem.queries))
                if int(self.rows.family_of[number]) in families
            )
        )
        return frozenset(number for number, name in enumerate(self.problem.columns) if name in names)


def _at_most(share: float, sampled: int) -> float:
    """The share of all rows where so many sampled ones show this share, with the margin of `MARGIN`.

    >>> [round(_at_most(share, 20_000), 4) for share in (0.0, 0.1, 1.0)]
    [0.0002, 0.1043, 1.0]
    """
    square = MARGIN**2 / sampled
    return min(1.0, (share + square / 2 + float(np.sqrt(square * (share * (1 - share) + square / 4)))) / (1 + square))


def _likeness(one: frozenset[int], other: frozenset[int]) -> float:
    """What two sets have in common, as a share of the smaller."""
    return len(one & other) / max(1, min(len(one), len(other)))


def _joined(servings: tuple[Serving, ...], one: int, other: int) -> tuple[Serving, ...]:
    left, right = servings[one], servings[other]
    kept = [serving for place, serving in enumerate(servings) if place not in (one, other)]
    return (*kept, Serving(left.families | right.families, left.columns | right.columns))


def _replaced(servings: tuple[Serving, ...], place: int, serving: Serving) -> tuple[Serving, ...]:
    return (*servings[:place], serving, *servings[place + 1 :])


def _tidy(servings: tuple[Serving, ...]) -> tuple[Serving, ...]:
    """The servings that have a column, in one order whatever steps led to them."""
    kept = [serving for serving in servings if serving.columns]
    return tuple(sorted(kept, key=lambda one: (sorted(one.families), sorted(one.columns))))
