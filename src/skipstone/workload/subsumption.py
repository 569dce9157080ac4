"""Which predicates and features subsume which queries, for thousands of each at once.

`skipstone.predicate.implication` decides one pair. Here all predicates are put on one line of numbers: every subject
(an expression, the order of two columns, an unread condition) gets a stretch of it, and a literal that is TRUE exactly
where its subject lies in a set becomes the intervals of that set. One predicate implies another if the intervals of
each of its literals lie within the other's: a compiled loop finds that out for a hundred million pairs in seconds.

That finds what a single literal says by itself. Rules that tie subjects to each other (a pattern that matches a
constant, a < b with b < 5) are asked of `implies` afterwards, for the pairs where they may matter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skipstone.compiled import njit
from skipstone.predicate.implication import conclusion_of, implies, premise_of
from skipstone.predicate.implication_terms import Condition, Subject, term_of
from skipstone.predicate.intervals import ValueSet
from skipstone.predicate.literal import Conjunction, Predicate
from skipstone.workload.query import Feature, Query

__all__ = ["Implications", "Occurrences", "subsumption"]

PAIRS_ASKED = 200_000
"""Pairs that may be asked of `implies` one by one; beyond that, rules that tie subjects are not used."""


def subsumption(features: Sequence[Feature | Conjunction], queries: Sequence[Query]) -> np.ndarray:
    """Tell which features subsume which queries: a boolean matrix, features by queries.

    A feature subsumes a query if every row that the query's filter selects satisfies the feature, so that a block
    without such a row can be skipped.

    >>> import pyarrow as pa
    >>> from skipstone.predicate.parsing import parse_filter
    >>> schema = pa.schema([("revenue", pa.int64())])
    >>> over_21, over_32 = (parse_filter(f"revenue > {limit}", schema) for limit in (21, 32))
    >>> subsumption([over_21, over_32], [Query(("revenue",), over_32), Query(("revenue",), over_21)])
    array([[ True,  True],
           [ True, False]])
    """
    filters = [one.filter if isinstance(one, Feature) else one for one in features]
    wanted = list(dict.fromkeys(predicate for filter_ in filters for predicate in filter_))
    distinct = list(dict.fromkeys(query.filter for query in queries))
    held = _holding(wanted, distinct)
    place = {predicate: row for row, predicate in enumerate(wanted)}
    matrix = np.ones((len(filters), len(distinct)), dtype=np.bool_)
    for row, filter_ in enumerate(filters):
        for predicate in filter_:
            matrix[row] &= held[place[predicate]]
    column = {filter_: number for number, filter_ in enumerate(distinct)}
    result: np.ndarray = matrix[:, [column[query.filter] for query in queries]]
    return result


def _holding(wanted: Sequence[Predicate], filters: Sequence[Conjunction]) -> np.ndarray:
    """Which of the wanted predicates hold wherever a filter is TRUE: by one predicate of it, or by several together."""
    occurring = Occurrences.of(filters)
    matrix = Implications(occurring.predicates, wanted).subsumed(occurring)
    matrix |= np.array([premise_of(filter_).is_impossible for filter_ in filters], dtype=np.bool_)
    columns = [predicate.columns for predicate in occurring.predicates]
    by_column: dict[str, set[int]] = {}
    for number, names in enumerate(columns):
        for name in names:
            by_column.setdefault(name, set()).add(number)
    queries_of = [set(occurring.queries_of(number)) for number in range(len(columns))]
    several = {number for number, filter_ in enumerate(filters) if len(filter_) > 1}
    for row, predicate in enumerate(wanted):
        touching = set().union(*(by_column.get(name, set()) for name in predicate.columns))
        candidates = set().union(*(queries_of[number] for number in touching)) & several
        conclusion = conclusion_of(predicate)
        for number in sorted(candidates):
            if not matrix[row, number] and premise_of(filters[number]).implies(conclusion):
                matrix[row, number] = True
    return matrix


@dataclass(frozen=True, slots=True, eq=False)
class Occurrences:
    """The distinct predicates of some filters, and for each the filters (by number) that it occurs in."""

    predicates: tuple[Predicate, ...]
    starts: np.ndarray
    numbers: np.ndarray
    filters: int

    @classmethod
    def of(cls, filters: Sequence[Iterable[Predicate]]) -> Occurrences:
        """Collect the predicates in order of first occurrence."""
        occurring: dict[Predicate, list[int]] = {}
        for number, filter_ in enumerate(filters):
            for predicate in dict.fromkeys(filter_):
                occurring.setdefault(predicate, []).append(number)
        starts = np.zeros(len(occurring) + 1, dtype=np.int64)
        starts[1:] = np.cumsum([len(numbers) for numbers in occurring.values()]) if occurring else 0
        numbers = np.array([number for found in occurring.values() for number in found], dtype=np.int64)
        return cls(tuple(occurring), starts, numbers, len(filters))

    def queries_of(self, predicate: int) -> list[int]:
        """The numbers of the filters that a predicate occurs in."""
        found: list[int] = self.numbers[self.starts[predicate] : self.starts[predicate + 1]].tolist()
        return found


class Implications:
    """Which of some predicates (premises) imply which of others (conclusions)."""

    def __init__(self, premises: Sequence[Predicate], conclusions: Sequence[Predicate]) -> None:
        self._premise_intervals, self._conclusion_intervals = _on_one_line(premises, conclusions)
        self._extra_starts, self._extra = self._ask(premises, conclusions)
        self.conclusions = len(conclusions)

    def supports(self, occurring: Occurrences, weights: np.ndarray) -> np.ndarray:
        """The weight of the filters that each conclusion subsumes."""
        result: np.ndarray = _compiled_supports(
            *self._premise_intervals,
            *self._conclusion_intervals,
            self._extra_starts,
            self._extra,
            occurring.starts,
            occurring.numbers,
            weights.astype(np.float64),
        )
        return result

    def subsumed(self, occurring: Occurrences, conclusions: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Which filters each conclusion (or each of those named) subsumes: a boolean matrix, conclusions by filters."""
        chosen = np.arange(self.conclusions) if conclusions is None else np.asarray(conclusions, dtype=np.int64)
        result: np.ndarray = _compiled_rows(
            *self._premise_intervals,
            *self._conclusion_intervals,
            self._extra_starts,
            self._extra,
            occurring.starts,
            occurring.numbers,
            chosen,
            occurring.filters,
        )
        return result

    def _ask(self, premises: Sequence[Predicate], conclusions: Sequence[Predicate]) -> tuple[np.ndarray, np.ndarray]:
        """Ask `implies` where subjects are tied by rules: for each conclusion, further premises that imply it."""
        tied_premises = [_has_ties(predicate) for predicate in premises]
        by_column: dict[str, list[int]] = {}
        for number, predicate in enumerate(premises):
            for name in predicate.columns:
                by_column.setdefault(name, []).append(number)
        extra: list[list[int]] = []
        asked = 0
        for predicate in conclusions:
            found: list[int] = []
            tied = _has_ties(predicate)
            candidates = sorted({number for name in predicate.columns for number in by_column.get(name, ())})
            chosen = candidates if tied else [number for number in candidates if tied_premises[number]]
            asked += len(chosen)
            if asked <= PAIRS_ASKED:
                found = [number for number in chosen if implies(premises[number], predicate)]
            extra.append(found)
        starts = np.zeros(len(extra) + 1, dtype=np.int64)
        starts[1:] = np.cumsum([len(found) for found in extra]) if extra else 0
        return starts, np.array([number for found in extra for number in found], dtype=np.int64)


def _has_ties(predicate: Predicate) -> bool:
    return any(condition.subject.ties for literal in predicate.literals for condition in term_of(literal).if_true)


# Predicates as intervals on one line -----------------------------------------------------------------------------

_Line = Mapping[Subject, tuple[int, Sequence[object]]]
"""For each subject where its stretch begins, and its cuts in order; NULL has the place after the last cut."""


def _on_one_line(
    premises: Sequence[Predicate], conclusions: Sequence[Predicate]
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Give both sides as intervals of places.

    A premise is a list of literals, each a list of conditions (any of which will do), each a list of intervals (all of
    which must be covered). A conclusion is a list of intervals.
    """
    sufficient = [_by_subject(predicate) for predicate in conclusions]
    sets: list[Condition] = [
        condition for predicate in premises for literal in predicate.literals for condition in term_of(literal).if_true
    ]
    sets += [Condition(subject, values) for by_subject in sufficient for subject, values in by_subject.items()]
    line = _line(sets)
    literals, conditions, intervals = [0], [0], [0]
    lows: list[int] = []
    highs: list[int] = []
    for predicate in premises:
        for literal in predicate.literals:
            for condition in term_of(literal).if_true:
                for low, high in _places(condition.subject, condition.values, line):
                    lows.append(low)
                    highs.append(high)
                intervals.append(len(lows))
            conditions.append(len(intervals) - 1)
        literals.append(len(conditions) - 1)
    own_starts = [0]
    own: list[tuple[int, int]] = []
    for by_subject in sufficient:
        own += sorted(pair for subject, values in by_subject.items() for pair in _places(subject, values, line))
        own_starts.append(len(own))
    table = np.array(own, dtype=np.int64).reshape(-1, 2)
    return (
        tuple(np.array(part, dtype=np.int64) for part in (literals, conditions, intervals, lows, highs)),
        (np.array(own_starts, dtype=np.int64), table[:, 0].copy(), table[:, 1].copy()),
    )


def _by_subject(predicate: Predicate) -> dict[Subject, ValueSet]:
    """The sets of which one suffices for a predicate to be TRUE, one for each subject."""
    found: dict[Subject, ValueSet] = {}
    for literal in predicate.literals:
        conditions = term_of(literal).if_true
        if conditions:
            subject, values = conditions[0].subject, conditions[0].values
            found[subject] = found[subject] | values if subject in found else values
    return found


def _line(conditions: Iterable[Condition]) -> _Line:
    cuts: dict[Subject, set[object]] = {}
    for condition in conditions:
        cuts.setdefault(condition.subject, set()).update(condition.values.cuts)
    line: dict[Subject, tuple[int, Sequence[object]]] = {}
    place = 0
    for subject, found in cuts.items():
        line[subject] = (place, sorted(found))  # type: ignore[type-var]
        place += len(found) + 2
    return line


def _places(subject: Subject, values: ValueSet, line: _Line) -> Iterator[tuple[int, int]]:
    start, cuts = line[subject]
    for low, high in zip(values.cuts[::2], values.cuts[1::2], strict=True):
        yield start + bisect_left(cuts, low), start + bisect_left(cuts, high)  # type: ignore[type-var]
    if values.null:
        # A place of its own, with a gap before it: no interval of values reaches NULL.
        yield start + len(cuts) + 1, start + len(cuts) + 2


@njit(cache=True)
def _covered(low: int, high: int, first: int, last: int, lows: np.ndarray, highs: np.ndarray) -> bool:
    """Whether [low, high) lies within one of the intervals first .. last - 1."""
    while first < last:
        middle = (first + last) // 2
        if lows[middle] > low:
            last = middle
        elif highs[middle] >= high:
            return True
        else:
            first = middle + 1
    return False


@njit(cache=True)
def _implies(
    premise: int,
    literals: np.ndarray,
    conditions: np.ndarray,
    intervals: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    first: int,
    last: int,
    own_lows: np.ndarray,
    own_highs: np.ndarray,
) -> bool:
    """Whether each literal of a premise has a condition all of whose intervals are covered."""
    for literal in range(literals[premise], literals[premise + 1]):
        satisfied = False
        for condition in range(conditions[literal], conditions[literal + 1]):
            inside = True
            for interval in range(intervals[condition], intervals[condition + 1]):
                if not _covered(lows[interval], highs[interval], first, last, own_lows, own_highs):
                    inside = False
                    break
            if inside:
                satisfied = True
                break
        if not satisfied:
            return False
    return True


@njit(cache=True)
def _supports(
    literals: np.ndarray,
    conditions: np.ndarray,
    intervals: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    own_starts: np.ndarray,
    own_lows: np.ndarray,
    own_highs: np.ndarray,
    extra_starts: np.ndarray,
    extra: np.ndarray,
    starts: np.ndarray,
    numbers: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    found = np.zeros(own_starts.size - 1)
    seen = np.full(weights.size, -1)
    for own in range(found.size):
        total = 0.0
        first, last = own_starts[own], own_starts[own + 1]
        next_extra = extra_starts[own]
        for premise in range(literals.size - 1):
            told = next_extra < extra_starts[own + 1] and extra[next_extra] == premise
            if told:
                next_extra += 1
            if told or _implies(
                premise, literals, conditions, intervals, lows, highs, first, last, own_lows, own_highs
            ):
                for place in range(starts[premise], starts[premise + 1]):
                    number = numbers[place]
                    if seen[number] != own:
                        seen[number] = own
                        total += weights[number]
        found[own] = total
    return found


@njit(cache=True)
def _rows(
    literals: np.ndarray,
    conditions: np.ndarray,
    intervals: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    own_starts: np.ndarray,
    own_lows: np.ndarray,
    own_highs: np.ndarray,
    extra_starts: np.ndarray,
    extra: np.ndarray,
    starts: np.ndarray,
    numbers: np.ndarray,
    chosen: np.ndarray,
    filters: int,
) -> np.ndarray:
    matrix = np.zeros((chosen.size, filters), dtype=np.bool_)
    for row in range(chosen.size):
        own = chosen[row]
        first, last = own_starts[own], own_starts[own + 1]
        next_extra = extra_starts[own]
        for premise in range(literals.size - 1):
            told = next_extra < extra_starts[own + 1] and extra[next_extra] == premise
            if told:
                next_extra += 1
            if told or _implies(
                premise, literals, conditions, intervals, lows, highs, first, last, own_lows, own_highs
            ):
                for place in range(starts[premise], starts[premise + 1]):
                    matrix[row, numbers[place]] = True
    return matrix


# numba's own types know nothing of the arguments of what it compiles.
_compiled_supports: Any = _supports
_compiled_rows: Any = _rows
