"""Column groups by what families of queries want of them: the search that blocks with bounds need.

The search of the dissertation (`grouping.column_grouping`) knows what features spare. Where a query names constants
that no other does (`p_size IN (3, 14, ...)`, a list of eight of fifty) no feature subsumes it, and to that search it
reads everything wherever its columns are. A tree of cuts with bounds can serve it well, but only where its columns are
cut for it alone. So here every group that is considered is really clustered, on a small sample, and read as the reader
will.

From the groups that the other search found, the first of these steps that saves something is taken, until none does:

    carve    the columns that a family reads become a group of their own, however they were grouped
    merge    two groups that some family reads both of become one
    move     columns that the same queries read go to another group

The families that lose most, against reading just the rows that match, are carved for first. A family's judging queries
are none that its groups are clustered for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from skipstone.layout.grouping.column_grouping import alike
from skipstone.layout.grouping.cost import Prices, query_costs
from skipstone.layout.grouping.local_features import LocalFeatures
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft
from skipstone.layout.replication.served_rows import ServedRows, Serving
from skipstone.layout.scheme import ClusteringSpec
from skipstone.layout.whatif import matching_shares

__all__ = ["MOST_SERVED", "SEARCHED_WITH", "family_groups"]

SEARCHED_WITH = (ClusteringSpec("qdtree", (("mixing", 0.4),)),)
"""How groups are clustered while they are searched for; what they get in the end is chosen when they are found."""

MOST_SERVED = 1_200
"""The families of all groups that are clustered, added up, are about so many at most: what a clustering takes grows
with the queries it is for. Ten families have long come to an end by then."""

WORTH_A_STEP = 2e-3
"""A step that saves less than this share of what the workload reads is not taken."""

MOST_CARVED = 12
"""Of so many families, those that lose most, it is tried to carve their columns out."""

Groups: TypeAlias = tuple[frozenset[int], ...]
"""Columns by their numbers; the groups share none, and are in the order of their first columns."""


def family_groups(
    problem: DesignProblem, start: Sequence[LayoutDraft], prices: Prices, *, most_served: int = MOST_SERVED
) -> tuple[LayoutDraft, ...]:
    """Search on from given groups for those of which the workload reads least; `problem` has a small sample."""
    search = _Search(problem, prices, most_served)
    groups = search.walk(_tidy([group.columns for group in start]))
    return tuple(search.draft(columns) for columns in groups)


class _Search:
    """What groups cost, and the steps between them; groups that were clustered are remembered."""

    def __init__(self, problem: DesignProblem, prices: Prices, most_served: int) -> None:
        self._design = problem
        self._local = LocalFeatures(problem)
        self._served = ServedRows(problem, SEARCHED_WITH)
        self._judges = self._served.problem
        self._prices = prices
        self._most_served = most_served
        self._families_served = 0
        self._alike = [frozenset(columns) for columns in alike(problem)]
        self._read: dict[frozenset[int], NDArray[np.float64]] = {}
        self._costs: dict[Groups, NDArray[np.float64]] = {}
        rows = matching_shares(problem.sample, [query.filter for query in self._judges.queries]) * problem.rows
        self._least = rows * (self._judges.accesses @ prices.cells)

    def walk(self, groups: Groups) -> Groups:
        """Take the first step that saves, again and again."""
        cost = self._cost(groups)
        while True:
            found = next(
                (
                    (after, now)
                    for after in self._steps(groups)
                    if (now := self._cost(after)) < cost * (1 - WORTH_A_STEP)
                ),
                None,
            )
            if found is None:
                return groups
            groups, cost = found

    def draft(self, columns: frozenset[int]) -> LayoutDraft:
        """A group with the local features that section 4.5 gives it."""
        return LayoutDraft.group(columns, self._local.of(self._design.readers(columns)))

    def _cost(self, groups: Groups) -> float:
        return float(self._judges.weights @ self._query_costs(groups))

    def _query_costs(self, groups: Groups) -> NDArray[np.float64]:
        if groups not in self._costs:
            rows = np.column_stack([self._rows(columns) for columns in groups])
            self._costs[groups] = query_costs(self._judges, [self.draft(one) for one in groups], rows, self._prices)
        return self._costs[groups]

    def _rows(self, columns: frozenset[int]) -> NDArray[np.float64]:
        if columns not in self._read:
            readers = self._readers(columns)
            self._families_served += len(readers)
            self._read[columns] = self._served.served(Serving(readers, columns), self.draft(columns)).rows
        return self._read[columns]

    def _readers(self, columns: frozenset[int]) -> frozenset[int]:
        return frozenset(n for n, family in enumerate(self._served.families) if family.columns & columns)

    def _steps(self, groups: Groups) -> Iterator[Groups]:
        """The groups that one step leads to, the most promising first; none once enough was clustered."""
        for after in itertools.chain(self._carvings(groups), self._mergers(groups), self._moves(groups)):
            if self._families_served >= self._most_served:
                return
            if after != groups:
                yield after

    def _carvings(self, groups: Groups) -> Iterator[Groups]:
        lost = self._judges.weights * (self._query_costs(groups) - self._least)
        by_family = np.bincount(self._served.family_of, weights=lost, minlength=len(self._served.families))
        for number in np.argsort(-by_family, kind="stable")[:MOST_CARVED]:
            columns = self._served.families[int(number)].columns
            yield _tidy([*(group - columns for group in groups), columns])

    def _mergers(self, groups: Groups) -> Iterator[Groups]:
        for one, other in itertools.combinations(groups, 2):
            if self._readers(one) & self._readers(other):
                yield _tidy([*(group for group in groups if group not in (one, other)), one | other])

    def _moves(self, groups: Groups) -> Iterator[Groups]:
        for columns in self._alike:
            readers = self._readers(columns)
            for other in groups:
                if readers & self._readers(other) and not columns <= other:
                    yield _tidy([*(group - columns for group in groups if group != other), other | columns])


def _tidy(groups: Sequence[frozenset[int]]) -> Groups:
    return tuple(sorted((group for group in groups if group), key=sorted))
