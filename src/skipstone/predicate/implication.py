"""Whether one filter implies another: every row that makes p TRUE makes q TRUE.

The papers call it subsumption, q subsumes p (Sun, "Skipping-oriented Data Design for Large-Scale Analytics", PhD
thesis, UC Berkeley, 2017, section 3.3.1): for every predicate of q there is one of p that is as strict or stricter,
checked by hard-coded rules (section 3.5).

    F_i, F_j     p, q: conjunctions           f_u, f_v     predicates of q and of p

Departs from the paper: the predicates of p are taken together, so x >= 1 and x <= 5 imply x BETWEEN 0 AND 9, and a
contradictory p implies everything. The rules live in what a literal is read into (`implication_terms`) and in how
subjects narrow each other (`implication_theories`); here q is refuted: p holds, some predicate of q does not, and if no
row can be like that, p implies q.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from skipstone.predicate.implication_terms import Condition, Subject, Term, term_of
from skipstone.predicate.implication_theories import Clause, Contradiction, Knowledge, settle
from skipstone.predicate.literal import Conjunction, Predicate

__all__ = ["Conclusion", "Filter", "Premise", "conclusion_of", "implies", "premise_of"]

Filter: TypeAlias = Conjunction | Predicate
"""Either side of an implication."""

MOST_SPLITS = 16
"""Of the disjunctions that stay open, at most this many are tried term by term."""

MOST_BRANCHES = 64
"""A disjunction with more terms than this is not tried term by term."""


def implies(p: Filter, q: Filter) -> bool:
    """Whether every row that makes p TRUE makes q TRUE; False also where that is so but not found.

    >>> import pyarrow as pa
    >>> from skipstone.predicate.expression import Column, Constant
    >>> from skipstone.predicate.literal import Comparison, Operator
    >>> age = Column("age", pa.int32())
    >>> def over(years: int) -> Predicate:
    ...     return Predicate((Comparison(Operator.GREATER, age, Constant(years, pa.int32())),))
    >>> implies(over(50), over(18)), implies(over(18), over(50))
    (True, False)
    """
    return premise_of(p).implies(q)


class Premise:
    """A filter p made ready to be asked which filters it implies.

    `knowledge` is what its rows have in common, `clauses` the disjunctions that say more than that. `is_impossible`
    tells that no row makes it TRUE: it implies everything. A premise is not changed after it has been made.
    """

    __slots__ = ("_tied", "clauses", "filter", "is_impossible", "knowledge")

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
        # A contradiction that no single subject shows can only come about through these subjects.
        in_clauses = {condition.subject for clause in self.clauses for t in clause for condition in t.if_true}
        self._tied = frozenset(tied for subject in in_clauses for tied in (subject, *subject.ties)) | frozenset(
            tied for subject in self.knowledge.sets if subject.ties for tied in (subject, *subject.ties)
        )

    def implies(self, q: Filter | Conclusion) -> bool:
        """Whether every row that makes this filter TRUE makes q TRUE."""
        if self.is_impossible:
            return True
        conclusion = q if isinstance(q, Conclusion) else conclusion_of(q)
        return all(self._refutes(denial) for denial in conclusion.denials)

    def _refutes(self, denial: Denial) -> bool:
        """Whether this filter cannot be TRUE where a predicate of q is not."""
        if denial.is_impossible:
            return True
        sets = self.knowledge.sets
        for condition in denial.conditions:
            held = sets.get(condition.subject)
            if held is not None and not held.meets(condition.values):
                return True
        if not self._must_reason_about(denial):
            return False
        knowledge = self.knowledge.copy()
        try:
            knowledge.learn(denial.conditions)
            open_clauses = settle(knowledge, self.clauses)
            return _some_split_fails(knowledge, [c for c in open_clauses if denial.subjects & _subjects(c)])
        except Contradiction:
            return True

    def _must_reason_about(self, denial: Denial) -> bool:
        """Whether a contradiction may come about that no single subject shows."""
        if not denial.subjects.isdisjoint(self._tied):
            return True
        return denial.has_ties and any(subject in self.knowledge.sets for subject in denial.subjects)


@dataclass(frozen=True, slots=True)
class Denial:
    """What must hold for a predicate not to be TRUE, with each subject mentioned once.

    `subjects` are those of the conditions and all that rules tie to them; `is_impossible` tells that the predicate is
    TRUE for every row.
    """

    predicate: Predicate
    conditions: tuple[Condition, ...]
    subjects: frozenset[Subject]
    has_ties: bool
    is_impossible: bool


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
        return Denial(predicate, (), frozenset(), has_ties=False, is_impossible=True)
    subjects = frozenset(tied for c in conditions for tied in (c.subject, *c.subject.ties))
    has_ties = any(condition.subject.ties for condition in conditions)
    return Denial(predicate, conditions, subjects, has_ties=has_ties, is_impossible=False)


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


def _subjects(clause: Clause) -> frozenset[Subject]:
    return frozenset(tied for t in clause for c in t.if_true for tied in (c.subject, *c.subject.ties))
