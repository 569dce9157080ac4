"""The copies that queries read, where columns have several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skipstone.layout.columns.choice_kernels import Copies, choose_copies, new_beam
from skipstone.layout.columns.choice_relaxed import relaxed_choice
from skipstone.layout.columns.problem import compressed
from skipstone.layout.columns.seek import SeekProfile, is_concave

WIDTH = 1024
"""States that a choice may carry before it is cut: enough to be exact for some ten columns with replicas."""

LOOKED_AT_ALONE = 10
"""Under a profile that is not concave, columns whose copies always lie together are read together only where more
columns than these have replicas; with fewer, each is looked at alone, and the choice is exact."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a query reads: a position of the stored order for each of its columns, and what that costs.

    `exact` says that no other choice is cheaper, for a profile that grows with the distance; otherwise it is the best
    that was found. The step down of `power` at 36 MB counts as growth.
    """

    positions: tuple[int, ...]
    cost: float
    exact: bool


class StoredOrder:
    """Columns as they are stored, some of them several times, ready to say what a query should read.

    >>> from skipstone.layout.columns.seek import LinearSeek
    >>> order = StoredOrder(np.array([1e6, 2e6, 4e6]), [0, 2, 1, 0], LinearSeek())
    >>> order.choose([0, 1])
    Choice(positions=(3, 2), cost=0.0, exact=True)
    >>> order.choose([0, 2])
    Choice(positions=(0, 1), cost=0.0, exact=True)
    """

    def __init__(self, sizes: NDArray[np.float64], stored: Sequence[int], profile: SeekProfile) -> None:
        self._seek = profile.compiled()
        self._concave = is_concave(self._seek)
        self._start = np.zeros(len(stored) + 1)
        np.cumsum(sizes[list(stored)], out=self._start[1:])
        self._positions: list[list[int]] = [[] for _ in sizes]
        for position, column in enumerate(stored):
            self._positions[column].append(position)

    def choose(self, columns: Sequence[int]) -> Choice:
        """The copy to read of each of these columns.

        Prices on the columns settle most choices for good (`relaxed_choice`); where a doubt is left, all states of the
        columns with replicas are gone through, as far as their number allows (`choose_copies`).
        """
        replicated = sum(len(self._positions[column]) > 1 for column in columns)
        units = self._units(columns, alone=not self._concave and replicated <= LOOKED_AT_ALONE)
        number = {column: index for index, column in enumerate(columns)}
        # A unit is read as one long item: nothing lies between its columns, wherever they are stored.
        first, of_item = compressed(_consecutive([len(self._positions[unit[0]]) for unit in units]))
        begin = np.array([self._start[p] for unit in units for p in self._positions[unit[0]]])
        end = np.array([self._start[p + 1] for unit in units for p in self._positions[unit[-1]]])
        copies, chosen = Copies(first, of_item), first[:-1].copy()
        cost, bound = relaxed_choice(self._seek, copies, begin, end, chosen)
        exact = cost - bound < 1e-6
        if not exact:
            reads = np.arange(len(units), dtype=np.int32)
            beam = new_beam(WIDTH, len(of_item) + len(units))
            cost, exact = choose_copies(self._seek, copies, begin, end, reads, beam, chosen)
        positions = [0] * len(columns)
        for index, unit in enumerate(units):
            for column in unit:
                positions[number[column]] = self._positions[column][chosen[index] - first[index]]
        apart = not self._concave and any(len(unit) > 1 and len(self._positions[unit[0]]) > 1 for unit in units)
        return Choice(tuple(positions), float(cost), bool(exact) and not apart)

    def _units(self, columns: Sequence[int], *, alone: bool) -> list[list[int]]:
        """Cut the columns into sequences that are stored one behind the other wherever they are stored.

        Under a concave profile it never pays to read such neighbours from different places: of two gaps that share
        their bytes, it is cheapest to make one as wide as can be. Where a gap beyond some width costs a request, each
        place may need one of them to stay below that; so those with replicas may be asked for `alone`.
        """
        ordered = sorted(columns, key=lambda column: self._positions[column][0])
        units: list[list[int]] = []
        for column in ordered:
            here = self._positions[column]
            if units:
                before = self._positions[units[-1][-1]]
                joined = len(here) == 1 or not alone
                if joined and len(before) == len(here) and all(p + 1 == q for p, q in zip(before, here, strict=True)):
                    units[-1].append(column)
                    continue
            units.append([column])
        return units


def _consecutive(lengths: Sequence[int]) -> list[list[int]]:
    lists, at = [], 0
    for length in lengths:
        lists.append(list(range(at, at + length)))
        at += length
    return lists
