"""Which of many filters imply which of many others: a matrix, as workloads and features need it.

Asking every pair would take minutes for ten thousand filters. Most answers need one subject only: what p says about x,
and what must hold of x where q is not TRUE, have no value in common. Those are found for all pairs at a time, subject
by subject, on the distinct sets alone. Pairs are then reasoned about one by one only where a rule ties several subjects
together (patterns, comparisons of columns) or where p has several disjunctions, and where the two share a subject.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from skipstone.compiled import njit
from skipstone.predicate.implication_patterns import Pattern
from skipstone.predicate.implication_premise import Denial, Filter, Part, Premise, conclusion_of, premise_of
from skipstone.predicate.implication_terms import IS_TRUE, Subject
from skipstone.predicate.implication_theories import by_subject
from skipstone.predicate.intervals import ValueSet

__all__ = ["implication_matrix"]

Bits = npt.NDArray[np.bool_]


def implication_matrix(ps: Sequence[Filter], qs: Sequence[Filter]) -> Bits:
    """Give the matrix whose entry [i, j] tells whether `ps[i]` implies `qs[j]`: what `implies` says of each pair.

    >>> import pyarrow as pa
    >>> from skipstone.predicate.expression import Column, Constant
    >>> from skipstone.predicate.literal import Comparison, Operator, Predicate
    >>> age = Column("age", pa.int32())
    >>> over = [Predicate((Comparison(Operator.GREATER, age, Constant(n, pa.int32())),)) for n in (18, 50)]
    >>> implication_matrix(over, over).tolist()
    [[True, False], [True, True]]
    """
    premises, p_of = _distinct([premise_of(p) for p in ps])
    conclusions, q_of = _distinct([conclusion_of(q) for q in qs])
    denials = [denial for conclusion in conclusions for denial in conclusion.denials]
    refuted = _refuted(premises, denials)
    implied = np.ones((len(premises), len(conclusions)), dtype=np.bool_)
    place = 0
    for j, conclusion in enumerate(conclusions):
        for _ in conclusion.denials:
            implied[:, j] &= refuted[:, place]
            place += 1
    return implied[np.ix_(p_of, q_of)]


def _distinct(prepared: list[Any]) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """The distinct objects in order, and for each entry which one it is."""
    numbers: dict[int, int] = {}
    kept: list[Any] = []
    for one in prepared:
        if numbers.setdefault(id(one), len(kept)) == len(kept):
            kept.append(one)
    return kept, np.array([numbers[id(one)] for one in prepared], dtype=np.int64)


def _refuted(premises: Sequence[Premise], denials: Sequence[Denial]) -> Bits:
    """For each premise and denial whether both cannot hold of one row."""
    found = np.zeros((len(premises), len(denials)), dtype=np.bool_)
    denied, reasoner = _denied(denials), _Reasoner(denials)
    for start in range(0, len(premises), PREMISES_AT_A_TIME):
        some = premises[start : start + PREMISES_AT_A_TIME]
        refuted, touched = _refuted_by_sets(some, denied, len(denials))
        for i, premise in enumerate(some):
            reasoner.complete(premise, refuted[i], touched[i])
        found[start : start + PREMISES_AT_A_TIME] = refuted
    found[:, [denial.is_impossible for denial in denials]] = True
    found[[premise.is_impossible for premise in premises]] = True
    return found


PREMISES_AT_A_TIME = 2048
"""Bounds the memory that the terms of disjunctions take."""


@dataclass(frozen=True, slots=True)
class _Said:
    """The sets that some filters say the value of one subject lies in, each set once."""

    filters: list[int] = field(default_factory=list)
    which: list[int] = field(default_factory=list)
    sets: dict[ValueSet, int] = field(default_factory=dict)

    def add(self, number: int, values: ValueSet) -> None:
        self.filters.append(number)
        self.which.append(self.sets.setdefault(values, len(self.sets)))


def _said(conditions: Iterable[tuple[int, Subject, ValueSet]]) -> dict[Subject, _Said]:
    said: dict[Subject, _Said] = {}
    for number, subject, values in conditions:
        said.setdefault(subject, _Said()).add(number, values)
    return said


def _denied(denials: Sequence[Denial]) -> dict[Subject, _Said]:
    return _said((j, c.subject, c.values) for j, denial in enumerate(denials) for c in denial.conditions)


def _refuted_by_sets(premises: Sequence[Premise], denied: dict[Subject, _Said], denials: int) -> tuple[Bits, Bits]:
    """Where one subject has no value left: under what the premise says, or under every term of a disjunction of it.

    The second matrix tells where at least one term of a disjunction was ruled out.
    """
    rows = [
        (i, subject, values) for i, premise in enumerate(premises) for subject, values in premise.knowledge.sets.items()
    ]
    clauses: list[tuple[int, range]] = []
    row = len(premises)
    for i, premise in enumerate(premises):
        for clause in premise.clauses:
            clauses.append((i, range(row, row + len(clause))))
            for term in clause:
                said = by_subject(term.if_true).items()
                rows += [(row, subject, values & premise.knowledge[subject]) for subject, values in said]
                row += 1
    refuted = np.zeros((row, denials), dtype=np.bool_)
    for subject, claimed in _said(rows).items():
        if subject in denied:
            apart = _apart(list(claimed.sets), list(denied[subject].sets))
            if apart.any():
                shown = apart[np.ix_(claimed.which, denied[subject].which)]
                refuted[np.ix_(claimed.filters, denied[subject].filters)] |= shown
    touched = np.zeros((len(premises), denials), dtype=np.bool_)
    for i, terms in clauses:
        refuted[i] |= refuted[terms.start : terms.stop].all(axis=0)
        touched[i] |= refuted[terms.start : terms.stop].any(axis=0)
    return refuted[: len(premises)], touched


def _apart(claims: Sequence[ValueSet], denials: Sequence[ValueSet]) -> Bits:
    """For each pair of sets whether they have nothing in common."""
    ranks = {cut: i for i, cut in enumerate(sorted({cut for values in (*claims, *denials) for cut in values.cuts}))}
    found = _apart_by_rank(*_ranked(claims, ranks), *_ranked(denials, ranks))
    return np.asarray(found, dtype=np.bool_)


def _ranked(sets: Sequence[ValueSet], ranks: dict[Any, int]) -> tuple[Any, Any, Any]:
    """The cuts of all sets after one another as ranks, where each set's begin, and which sets hold NULL."""
    cuts = np.array([ranks[cut] for values in sets for cut in values.cuts], dtype=np.int64)
    starts = np.cumsum([0, *(len(values.cuts) for values in sets)])
    return cuts, starts, np.array([values.null for values in sets], dtype=np.bool_)


@njit(cache=True, nogil=True)
def _apart_by_rank(ones: Any, one_starts: Any, one_null: Any, others: Any, other_starts: Any, other_null: Any) -> Any:
    apart = np.ones((len(one_null), len(other_null)), dtype=np.bool_)
    for i in range(len(one_null)):
        for j in range(len(other_null)):
            if one_null[i] and other_null[j]:
                apart[i, j] = False
                continue
            begin, end = other_starts[j], other_starts[j + 1]
            for k in range(one_starts[i], one_starts[i + 1], 2):
                # The first cut of the other set above the lower end of this interval.
                first, last = begin, end
                while first < last:
                    middle = (first + last) // 2
                    if others[middle] <= ones[k]:
                        first = middle + 1
                    else:
                        last = middle
                if (first - begin) % 2 == 1 or (first < end and others[first] < ones[k + 1]):
                    apart[i, j] = False
                    break
    return apart


class _Reasoner:
    """Asks, pair by pair, what single subjects do not show: where rules or several disjunctions come in."""

    def __init__(self, denials: Sequence[Denial]) -> None:
        self._denials = denials
        places: dict[Subject, list[int]] = {}
        for j, denial in enumerate(denials):
            for subject in denial.subjects:
                places.setdefault(subject, []).append(j)
        self._places = {subject: np.array(numbers) for subject, numbers in places.items()}
        self._has_ties = np.array([denial.has_ties for denial in denials], dtype=np.bool_)
        self._has_orders = np.array([denial.has_orders for denial in denials], dtype=np.bool_)
        self._is_pinned = np.array([denial.is_pinned for denial in denials], dtype=np.bool_)
        self._bits = np.zeros((len(denials), WORDS), dtype=np.uint64)
        for j, denial in enumerate(denials):
            self._bits[j] = _needed_bits(denial)

    def complete(self, premise: Premise, refuted: Bits, touched: Bits) -> None:
        """Add what follows by rules to one row of the matrix; `touched` is where a term was ruled out."""
        open_ = np.zeros(len(self._denials), dtype=np.bool_)
        for part in premise.parts:
            places = [self._places[subject] for subject in part.subjects if subject in self._places]
            if places:
                candidates = np.unique(np.concatenate(places))
                open_[candidates] |= self._may_follow(part, candidates, touched[candidates])
        for j in np.flatnonzero(open_ & ~refuted).tolist():
            refuted[j] = premise.refutes(self._denials[j])

    def _may_follow(self, part: Part, candidates: npt.NDArray[np.int64], touched: Bits) -> Bits:
        """Whether the part may refute these denials in a way that their sets do not show (as in `Part.bears_on`)."""
        has_ties = self._has_ties[candidates]
        if part.has_orders or (part.clauses and part.has_ties):
            return np.ones(len(candidates), dtype=np.bool_)
        if part.clauses:
            # One disjunction has been decided term by term; of several, one must lose a term first.
            return np.asarray(has_ties | (touched & (len(part.clauses) > 1)))
        pinned = np.logical_and(part.is_pinned or self._is_pinned[candidates], part.has_ties | has_ties)
        follows = np.logical_and(has_ties, (self._bits[candidates] & ~_given_bits(part) == 0).all(axis=1))
        may = pinned | follows | self._has_orders[candidates]
        return np.asarray(may | part.has_false_patterns, dtype=np.bool_)


def _needed_bits(denial: Denial) -> npt.NDArray[np.uint64]:
    """The pairs of letters that a premise must have for the one pattern of a denial to follow from a pattern of it."""
    if len(denial.conditions) == 1:
        (condition,) = denial.conditions
        if condition.subject.pattern is not None and not condition.values.meets(IS_TRUE):
            return _pair_bits(condition.subject.pattern)
    return np.zeros(WORDS, dtype=np.uint64)


def _given_bits(part: Part) -> npt.NDArray[np.uint64]:
    bits = np.zeros(WORDS, dtype=np.uint64)
    for pattern in part.patterns:
        bits |= _pair_bits(pattern)
    return bits


WORDS = 4
"""The number of 64-bit words that the pairs of letters of a pattern are hashed into."""


@functools.lru_cache(maxsize=65536)
def _pair_bits(pattern: Pattern) -> npt.NDArray[np.uint64]:
    """Set one bit for every letter, and one for every two letters next to each other, in whichever case.

    >>> from skipstone.predicate.implication_patterns import pattern_of
    >>> from skipstone.predicate.literal import MatchKind
    >>> one, other = (_pair_bits(pattern_of(MatchKind.CONTAINS, text)) for text in ("an", "banana"))
    >>> bool((one & ~other == 0).all())
    True
    """
    bits = 0
    before = ""
    for token in pattern.tokens:
        letter = token.lower() if isinstance(token, str) else ""
        for mark in (letter, before + letter if before and letter else ""):
            if mark:
                bits |= 1 << (zlib.crc32(mark.encode("utf-8", "surrogatepass")) % (64 * WORDS))
        before = letter
    return np.frombuffer(bits.to_bytes(8 * WORDS, "little"), dtype=np.uint64)
