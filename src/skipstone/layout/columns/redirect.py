"""Which physical columns a query should read: known column sets by hash, others by the queries most like them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from skipstone.errors import ColumnNotFound, InvalidInput
from skipstone.layout.columns.choice import StoredOrder
from skipstone.layout.columns.seek import PowerSeek, SeekProfile
from skipstone.layout.columns.values import ColumnQuery, ColumnSizes, StoredColumn

MOST_WAITING = 10_000
"""New column sets that wait to be learned; further ones are answered and not remembered."""


class RedirectedBy(Enum):
    """How the copies to read were found."""

    KNOWN = "known"
    """The workload has this set of columns."""

    SUPERSET = "superset"
    """The smallest set of the workload that has all these columns was taken as the pattern."""

    NEAREST = "nearest"
    """The set with the most columns in common was the pattern; first fit for the rest."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """The physical columns to read, in stored order: one for each column asked for."""

    reads: tuple[StoredColumn, ...]
    by: RedirectedBy


class Redirector:
    """Answers for one stored layout; it knows the workload's column sets and learns new ones.

    Bian et al., "Wide Table Layout Optimization based on Column Ordering and Duplication", SIGMOD 2017, section 5.3:
    a map from column sets to access patterns (PL), and for a new set an inverted bitmap index: the AND of the bitmaps
    of its columns gives the queries that read all of them, of which the one with the smallest set is the pattern;
    with no such query, the one with the most columns in common is, and columns that it lacks take their first copy.

        PL             _patterns          bitmap of a column   a row of _bitmaps

    >>> from skipstone.layout.columns.values import SizedColumn
    >>> sizes = ColumnSizes((
    ...     SizedColumn("a", "int", 9.0), SizedColumn("b", "int", 1e6), SizedColumn("c", "int", 9.0),
    ...     SizedColumn("a__copy1", "int", 9.0, "a"),
    ... ))
    >>> redirector = Redirector(sizes, [ColumnQuery(("a", "c")), ColumnQuery(("a", "b"))])
    >>> [column.name for column in redirector.redirect(["a", "c"]).reads]
    ['c', 'a__copy1']
    >>> [column.name for column in redirector.redirect(["a", "b"]).reads]
    ['a', 'b']
    >>> redirector.redirect(["b", "c"]).by
    <RedirectedBy.NEAREST: 'nearest'>

    Departs from the paper: among equally good patterns the one of greater weight is taken, then the earlier one.
    Unmatched columns take their first copy in stored order; the pattern's own copies stay as they are.
    """

    def __init__(
        self,
        sizes: ColumnSizes,
        queries: Iterable[ColumnQuery],
        profile: SeekProfile | None = None,
        *,
        lazily: bool = False,
    ) -> None:
        """Know a workload; `lazily` finds the pattern of a set when it is first needed, which is for few questions."""
        self._stored = sizes.layout.stored
        originals = sizes.originals
        self._names = [column.name for column in originals]
        self._number = {name: number for number, name in enumerate(self._names)}
        stored = [self._number[column.logical] for column in self._stored]
        bytes_of = np.array([column.chunk_bytes for column in originals])
        self._order = StoredOrder(bytes_of, stored, profile or PowerSeek())
        self._first = np.full(len(originals), -1, np.int64)
        for position in range(len(stored) - 1, -1, -1):
            self._first[stored[position]] = position
        self._patterns: dict[frozenset[int], dict[int, int]] = {}
        self._weights: dict[frozenset[int], float] = {}
        """The known sets, and how often each is asked for."""
        self._waiting: dict[frozenset[int], float] = {}
        for query in queries:
            wanted = frozenset(self._numbers(query.columns))
            if not lazily:
                self._pattern(wanted)
            self._weights[wanted] = self._weights.get(wanted, 0.0) + query.weight
        self._index()

    @property
    def known_sets(self) -> int:
        """How many column sets have their own pattern."""
        return len(self._weights)

    def redirect(self, columns: Sequence[str]) -> Redirect:
        """Say which physical columns to read; a set that is new waits for `learn`."""
        numbers = self._numbers(columns)
        wanted = frozenset(numbers)
        if wanted in self._weights:
            self._weights[wanted] += 1.0
            return self._answer(numbers, self._pattern(wanted), RedirectedBy.KNOWN)
        if wanted in self._waiting or len(self._waiting) < MOST_WAITING:
            self._waiting[wanted] = self._waiting.get(wanted, 0.0) + 1.0
        return self._answer(numbers, *self._like(numbers))

    def learn(self) -> int:
        """Find the best copies for the sets that were new, and remember them; return how many there were.

        This takes some milliseconds a set and is meant for the time between queries.
        """
        learned = len(self._waiting)
        for wanted, weight in self._waiting.items():
            self._pattern(wanted)
            self._weights[wanted] = weight
        self._waiting.clear()
        if learned:
            self._index()
        return learned

    def _numbers(self, columns: Sequence[str]) -> list[int]:
        if not columns:
            raise InvalidInput("no column to redirect; name at least one")
        for name in columns:
            if name not in self._number:
                raise ColumnNotFound.among(name, self._names, where="the layout")
        numbers = [self._number[name] for name in columns]
        if len(set(numbers)) < len(numbers):
            repeated = next(name for index, name in enumerate(columns) if name in columns[:index])
            raise InvalidInput(f'column "{repeated}" is asked for twice; each column is named once')
        return numbers

    def _pattern(self, wanted: frozenset[int]) -> dict[int, int]:
        """The position to read of each column of a set."""
        if wanted not in self._patterns:
            columns = sorted(wanted)
            self._patterns[wanted] = dict(zip(columns, self._order.choose(columns).positions, strict=True))
        return self._patterns[wanted]

    def _index(self) -> None:
        """Build the inverted bitmap index: heavier sets first, so that the first of equals is the one to take."""
        ranked = sorted(self._weights, key=lambda wanted: -self._weights[wanted])
        self._sets = ranked
        self._set_sizes = np.array([len(wanted) for wanted in ranked], np.int64)
        bits = np.zeros((len(self._names), len(ranked)), np.uint8)
        for number, wanted in enumerate(ranked):
            bits[list(wanted), number] = 1
        self._bitmaps: NDArray[np.uint8] = np.packbits(bits, axis=1)

    def _like(self, numbers: Sequence[int]) -> tuple[dict[int, int], RedirectedBy]:
        """The pattern of the smallest known superset, or else of the set with the most columns in common."""
        if not self._sets:
            return {}, RedirectedBy.NEAREST
        rows = self._bitmaps[list(numbers)]
        holds_all = np.unpackbits(np.bitwise_and.reduce(rows, axis=0), count=len(self._sets)).view(bool)
        if holds_all.any():
            supersets = np.flatnonzero(holds_all)
            smallest = supersets[np.argmin(self._set_sizes[supersets])]
            return self._pattern(self._sets[smallest]), RedirectedBy.SUPERSET
        common = np.unpackbits(rows, axis=1, count=len(self._sets)).sum(axis=0, dtype=np.int32)
        return self._pattern(self._sets[int(np.argmax(common))]), RedirectedBy.NEAREST

    def _answer(self, numbers: Sequence[int], pattern: dict[int, int], by: RedirectedBy) -> Redirect:
        positions = sorted(pattern.get(number, int(self._first[number])) for number in numbers)
        return Redirect(tuple(self._stored[position] for position in positions), by)
