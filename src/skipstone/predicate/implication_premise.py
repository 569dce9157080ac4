"""The two sides of an implication, each made ready once: what p says, and what must hold where q is not TRUE."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from skipstone.predicate.implication_patterns import Pattern
from skipstone.predicate.implication_terms import IS_TRUE, Condition, Subject, Term, term_of
from skipstone.predicate.implication_theories import (
    MOST_POINTS,
    Clause,
    Contradiction,
    Knowledge,
    common_head,
    settle,
)
from skipstone.predicate.intervals import Family, ValueSet
from skipstone.predicate.literal import Conjunction, Predicate

__all__ = ["Conclusion", "Denial", "Filter", "Part", "Premise", "conclusion_of", "premise_of"]

Filter: TypeAlias = Conjunction | Predicate
"""Either side of an implication."""

MOST_SPLITS = 16
"""Of the disjunctions that stay open, at most this many are tried term by term."""

MOST_BRANCHES = 64
"""A disjunction with more terms than this is not tried term by term."""


class Premise:
    """A filter p made ready to be asked which filters it implies.

    `knowledge` is what its rows have in common, `clauses` the disjunctions that say more than that, `parts` the same in
    pieces that do not bear on each other. `is_impossible` tells that no row makes it TRUE: it implies everything. A
    premise is not changed after it has been made.
    """

    __slots__ = ("_part_of", "clauses", "filter", "is_impossible", "knowledge", "parts")

    def __init__(self, p: Filter) -> None:
        self.filter = p
        self.is_impossible = False
        self.knowledge = Knowledge({})
        self.clauses: tuple[Clause, ...] = ()
        try:
            self.clauses = settle(self.knowledge, [_clause(predicate) for predicate in _predicates(p)])
            self.is_impossible = _some_split_fails(self.knowledge, self.clauses)
        except Contradiction:
            self.is_impossible = True
        self.parts = () if self.is_impossible else _parts(self.knowledge, self.clauses)
        self._part_of = {subject: part for part in self.parts for subject in part.subjects}

    def implies(self, q: Filter | Conclusion) -> bool:
        """Whether every row that makes this filter TRUE makes q TRUE."""
        if self.is_impossible:
            return True
        conclusion = q if isinstance(q, Conclusion) else conclusion_of(q)
        return all(self.refutes(denial) for denial in conclusion.denials)

    def refutes(self, denial: Denial) -> bool:
        """Whether no row makes this filter TRUE and is as the denial says."""
        if self.is_impossible or denial.is_impossible:
            return True
        sets = self.knowledge.sets
        for condition in denial.conditions:
            held = sets.get(condition.subject)
            if held is not None and not held.meets(condition.values):
                return True
        touched = dict.fromkeys(self._part_of[s] for s in denial.subjects if s in self._part_of)
        if not any(part.bears_on(denial) for part in touched):
            return False
        return _refuted(denial, tuple(touched))

    def parts_with(self, subjects: Iterable[Subject]) -> tuple[Part, ...]:
        """The parts that speak of any of these subjects, in order."""
        return tuple(dict.fromkeys(self._part_of[s] for s in subjects if s in self._part_of))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A piece of a premise: subjects that rules or disjunctions connect, and what is known of them.

    `has_orders` tells that expressions are compared with each other in it; `is_pinned` that a text is one of a few;
    `patterns` are the patterns that are TRUE in it, the heads of its ranges among them.
    """

    subjects: frozenset[Subject]
    sets: dict[Subject, ValueSet]
    clauses: tuple[Clause, ...]
    has_ties: bool
    has_orders: bool
    is_pinned: bool
    has_false_patterns: bool
    patterns: tuple[Pattern, ...]

    @property
    def is_about_patterns(self) -> bool:
        """Whether nothing but patterns and sets of values is known here."""
        return not self.clauses and not self.has_orders

    def bears_on(self, denial: Denial) -> bool:
        """Whether a contradiction with the denial may come about that no single subject shows.

        With patterns alone it takes a pattern of the denial that follows from one here, one here that follows from one
        of the denial or from its range, or a text that is one of a few, on which patterns can be tried.
        """
        if not self.is_about_patterns or denial.has_orders:
            return True
        if not self.has_ties and not denial.has_ties:
            return False
        return self.is_pinned or denial.is_pinned or self.has_false_patterns or denial.has_ties


@dataclass(frozen=True, slots=True)
class Denial:
    """What must hold for a predicate not to be TRUE, with each subject mentioned once.

    `subjects` are those of the conditions and all that rules tie to them; `is_impossible` tells that the predicate is
    TRUE for every row; the rest is as in `Part`.
    """

    predicate: Predicate
    conditions: tuple[Condition, ...]
    subjects: frozenset[Subject]
    is_impossible: bool
    has_ties: bool = False
    has_orders: bool = False
    is_pinned: bool = False


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A filter q made ready to be asked whether a premise implies it."""

    filter: Filter
    denials: tuple[Denial, ...]


@functools.lru_cache(maxsize=65536)
def premise_of(p: Filter) -> Premise:
    """Prepare the left side of implications once."""
    return Premise(p)


@functools.lru_cache(maxsize=65536)
def conclusion_of(q: Filter) -> Conclusion:
    """Prepare the right side of implications once."""
    return Conclusion(q, tuple(_denial(predicate) for predicate in _predicates(q)))


def _predicates(p: Filter) -> tuple[Predicate, ...]:
    return (p,) if isinstance(p, Predicate) else p.predicates


def _clause(predicate: Predicate) -> Clause:
    return tuple(term_of(literal) for literal in predicate.literals)


def _denial(predicate: Predicate) -> Denial:
    knowledge = Knowledge({})
    try:
        knowledge.learn(condition for term in _clause(predicate) for condition in term.if_untrue)
        conditions = tuple(Condition(subject, values) for subject, values in knowledge.sets.items())
        settle(knowledge, ())
    except Contradiction:
        return Denial(predicate, (), frozenset(), is_impossible=True)
    return Denial(
        predicate,
        conditions,
        subjects=frozenset(tied for c in conditions for tied in (c.subject, *c.subject.ties)),
        is_impossible=False,
        has_ties=any(c.subject.ties for c in conditions),
        has_orders=any(len(c.subject.ties) == 2 for c in conditions),
        is_pinned=any(_is_pinned(c.subject, c.values) for c in conditions),
    )


def _is_pinned(subject: Subject, values: ValueSet) -> bool:
    return subject.domain.family is Family.TEXT and subject.domain.points(values, MOST_POINTS) is not None


def _parts(knowledge: Knowledge, clauses: Sequence[Clause]) -> tuple[Part, ...]:
    """Put together the subjects that a rule or a disjunction connects."""
    groups: list[set[Subject]] = []
    connected = [_clause_subjects(clause) for clause in clauses]
    connected += [frozenset((subject, *subject.ties)) for subject in knowledge.sets]
    for subjects in connected:
        met = [group for group in groups if not group.isdisjoint(subjects)]
        groups = [group for group in groups if group.isdisjoint(subjects)]
        groups.append(set(subjects).union(*met))
    return tuple(_part(group, knowledge, clauses) for group in groups)


def _part(subjects: set[Subject], knowledge: Knowledge, clauses: Sequence[Clause]) -> Part:
    sets = {subject: values for subject, values in knowledge.sets.items() if subject in subjects}
    patterns = [s.pattern for s, values in sets.items() if s.pattern is not None and values == IS_TRUE]
    heads = [common_head(values) for subject, values in sets.items() if subject.domain.family is Family.TEXT]
    return Part(
        subjects=frozenset(subjects),
        sets=sets,
        clauses=tuple(clause for clause in clauses if not _clause_subjects(clause).isdisjoint(subjects)),
        has_ties=any(subject.ties for subject in subjects),
        has_orders=any(len(subject.ties) == 2 for subject in subjects),
        is_pinned=any(_is_pinned(subject, values) for subject, values in sets.items()),
        has_false_patterns=any(s.pattern is not None and not values.meets(IS_TRUE) for s, values in sets.items()),
        patterns=(*patterns, *(head for head in heads if head is not None)),
    )


@functools.lru_cache(maxsize=131072)  # a search for layouts asks the same of the same filters again and again
def _refuted(denial: Denial, parts: tuple[Part, ...]) -> bool:
    clauses = [clause for part in parts for clause in part.clauses]
    knowledge = Knowledge({subject: values for part in parts for subject, values in part.sets.items()})
    try:
        knowledge.learn(denial.conditions)
        open_clauses = settle(knowledge, clauses)
    except Contradiction:
        return True
    if list(open_clauses) == clauses and not denial.has_ties and not any(part.has_ties for part in parts):
        return False  # no term of a disjunction was ruled out, so nothing has followed yet
    return _some_split_fails(knowledge, [c for c in open_clauses if denial.subjects & _clause_subjects(c)])


def _some_split_fails(knowledge: Knowledge, clauses: Sequence[Clause]) -> bool:
    """Whether there is a disjunction each of whose terms leads to a contradiction."""
    return any(
        all(_branch_fails(knowledge, term, clauses) for term in clause)
        for clause in clauses[:MOST_SPLITS]
        if len(clause) <= MOST_BRANCHES
    )


def _branch_fails(knowledge: Knowledge, term: Term, clauses: Sequence[Clause]) -> bool:
    branch = knowledge.copy()
    try:
        branch.learn(term.if_true)
        settle(branch, clauses)
    except Contradiction:
        return True
    return False


def _clause_subjects(clause: Clause) -> frozenset[Subject]:
    return frozenset(tied for t in clause for c in t.if_true for tied in (c.subject, *c.subject.ties))
