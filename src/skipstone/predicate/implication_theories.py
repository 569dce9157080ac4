"""What is known of several subjects of one row at a time, and the rules by which one narrows another.

Every rule only removes values that the row cannot have, so the order in which they run does not matter for soundness;
when a subject is left without any value, what was assumed contradicts itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from skipstone.predicate.implication_patterns import RUN, Pattern
from skipstone.predicate.implication_terms import (
    BOTH_NULL,
    EQUAL,
    GREATER,
    IS_FALSE,
    IS_TRUE,
    LESS,
    ONE_NULL,
    Condition,
    Subject,
    Term,
)
from skipstone.predicate.intervals import TOP, Domain, Family, Key, ValueSet, prefix_end, union_of

__all__ = [
    "MOST_POINTS",
    "RULES_OF_ORDERS",
    "RULES_OF_PATTERNS",
    "Clause",
    "Contradiction",
    "Knowledge",
    "by_subject",
    "common_head",
    "comparable",
    "impossible_orders",
    "settle",
]

MOST_POINTS = 1000
"""Patterns are tried on the values of an expression one by one where it has at most this many."""

MOST_ROUNDS = 50
"""The rules narrow each other at most this often; chains of comparisons could go on for as long as values last."""

_KNOWN = frozenset({LESS, EQUAL, GREATER})
_UNKNOWN = frozenset({ONE_NULL, BOTH_NULL})
_SAME = frozenset({EQUAL, BOTH_NULL})
_TURNED = {LESS: GREATER, GREATER: LESS}

Clause = tuple[Term, ...]
"""A disjunction of which not more is known yet than that one of its terms is TRUE."""


class Contradiction(Exception):
    """No row can be as assumed: this subject is left without a value."""

    def __init__(self, subject: Subject | None) -> None:
        super().__init__(subject)
        self.subject = subject


class Knowledge:
    """For each subject the set that its value lies in; a subject that is not mentioned may have any value."""

    __slots__ = ("changed", "sets")

    def __init__(self, sets: dict[Subject, ValueSet]) -> None:
        self.sets = sets
        self.changed = False

    def copy(self) -> Knowledge:
        """Give a copy that can be narrowed by itself."""
        return Knowledge(self.sets.copy())

    def __getitem__(self, subject: Subject) -> ValueSet:
        """Give the set that the value of a subject lies in."""
        return self.sets.get(subject, subject.domain.everything)

    def narrow(self, subject: Subject, values: ValueSet) -> None:
        """Learn that the value of a subject lies in a set."""
        before = self.sets.get(subject)
        after = values if before is None else before & values
        if not after.cuts and not after.null:
            raise Contradiction(subject)
        if after != before:
            self.sets[subject] = after
            self.changed = True

    def learn(self, conditions: Iterable[Condition]) -> None:
        """Learn that each condition holds."""
        for condition in conditions:
            self.narrow(condition.subject, condition.values)

    def allows(self, term: Term) -> bool:
        """Whether the term may be TRUE, each of its conditions taken by itself."""
        for condition in term.if_true:
            held = self.sets.get(condition.subject)
            if not (condition.values if held is None else held).meets(condition.values):
                return False
        return True


def settle(knowledge: Knowledge, clauses: Iterable[Clause]) -> tuple[Clause, ...]:
    """Draw conclusions until there are no more; give the disjunctions that stay open.

    A term that cannot be TRUE is dropped from its disjunction; the last one left must be TRUE; where all that are left
    speak of one subject, it lies in the union of what they say.
    """
    open_clauses = tuple(clauses)
    for _ in range(MOST_ROUNDS):
        knowledge.changed = False
        open_clauses = tuple(left for clause in open_clauses for left in _unit_step(knowledge, clause))
        ties = {len(subject.ties) for subject in knowledge.sets}
        for rule in (*(RULES_OF_PATTERNS if 1 in ties else ()), *(RULES_OF_ORDERS if 2 in ties else ())):
            rule(knowledge)
        if not knowledge.changed:
            break
    return open_clauses


def _unit_step(knowledge: Knowledge, clause: Clause) -> tuple[Clause, ...]:
    alive = tuple(term for term in clause if knowledge.allows(term))
    if not alive:
        raise Contradiction(clause[0].if_true[0].subject if clause else None)
    if len(alive) == 1:
        knowledge.learn(alive[0].if_true)
        return ()
    if not all(term.if_true for term in alive):
        return (alive,)
    shared = _shared_subjects(alive)
    for subject, values in shared.items():
        knowledge.narrow(subject, values)
    # The first condition of a term is sufficient, so a disjunction over one subject is that subject's set, no more.
    first = alive[0].if_true[0].subject
    return () if all(term.if_true[0].subject == first for term in alive) else (alive,)


def _shared_subjects(terms: Clause) -> dict[Subject, ValueSet]:
    """The subjects that every term speaks of, with the union of what they say."""
    said: dict[Subject, list[ValueSet]] = {}
    for number, term in enumerate(terms):
        for subject, values in by_subject(term.if_true).items():
            sets = said.setdefault(subject, [])
            if len(sets) == number:
                sets.append(values)
    return {subject: union_of(sets) for subject, sets in said.items() if len(sets) == len(terms)}


def by_subject(conditions: Iterable[Condition]) -> dict[Subject, ValueSet]:
    """Take conditions that must hold together subject by subject."""
    found: dict[Subject, ValueSet] = {}
    for condition in conditions:
        held = found.get(condition.subject)
        found[condition.subject] = condition.values if held is None else held & condition.values
    return found


def unread_is_null_with_its_expression(knowledge: Knowledge) -> None:
    """x known: x LIKE 'a%b' is TRUE or FALSE. x LIKE 'a%b' neither TRUE nor FALSE: x is NULL."""
    for subject, values in list(knowledge.sets.items()):
        if not subject.is_unread:
            continue
        (about,) = subject.ties
        if not values.null:
            knowledge.narrow(about, about.domain.known)
        elif not values.cuts:
            knowledge.narrow(about, ValueSet((), True))
        elif not knowledge[about].null:
            knowledge.narrow(subject, ValueSet(values.cuts))


def patterns_imply_patterns(knowledge: Knowledge) -> None:
    """x LIKE '%ab%' TRUE: x LIKE '%a%' TRUE. x in ['abc', 'abd'): x LIKE '%bc%' TRUE, x LIKE '%z' undecided."""
    subjects = [subject for subject in knowledge.sets if subject.pattern is not None]
    for weaker in subjects:
        if weaker.pattern is None or knowledge.sets[weaker] == IS_TRUE:
            continue
        for stronger in _true_patterns(knowledge, subjects, weaker.ties[0]):
            if stronger.within(weaker.pattern):
                knowledge.narrow(weaker, IS_TRUE)
                break


def patterns_bound_their_texts(knowledge: Knowledge) -> None:
    """x LIKE 'ab%c' TRUE: x in ['ab', 'ac')."""
    for subject, values in list(knowledge.sets.items()):
        if subject.pattern is not None and values == IS_TRUE:
            head = subject.pattern.head.encode("utf-8", "surrogatepass")
            knowledge.narrow(subject.ties[0], subject.ties[0].domain.interval(head, prefix_end(head)))


def points_fit_patterns(knowledge: Knowledge) -> None:
    """x IN ('ab', 'cd') and x LIKE '%b' TRUE: x = 'ab'. x IN ('ab', 'cd') and x LIKE '%b' not TRUE: x = 'cd'."""
    for subject in [subject for subject in knowledge.sets if subject.pattern is not None]:
        if subject.pattern is None:
            continue
        about, truth = subject.ties[0], knowledge.sets[subject]
        held = knowledge[about]
        points = about.domain.points(held, MOST_POINTS)
        if points is None:
            continue
        kept = [ValueSet((p, about.domain.next(p))) for p in points if _may_be(truth, subject.pattern, p)]
        knowledge.narrow(about, ValueSet(union_of(kept).cuts, held.null and truth.null))


def orders_know_nulls(knowledge: Knowledge) -> None:
    """a < b: both known. a <=> b with a known: b known, too. a NULL and b known: exactly one is NULL."""
    for subject, left, right in _orders(knowledge):
        one, other = knowledge[left], knowledge[right]
        possible = _KNOWN if one.cuts and other.cuts else frozenset()
        if (one.cuts and other.null) or (one.null and other.cuts):
            possible |= {ONE_NULL}
        if one.null and other.null:
            possible |= {BOTH_NULL}
        knowledge.narrow(subject, _among(possible))
        states = _states(knowledge, subject)
        if not states & _UNKNOWN:
            knowledge.narrow(left, left.domain.known)
            knowledge.narrow(right, right.domain.known)
        elif states == {BOTH_NULL}:
            knowledge.narrow(left, ValueSet((), True))
            knowledge.narrow(right, ValueSet((), True))


def orders_bound_their_sides(knowledge: Knowledge) -> None:
    """a < b and b < 5: a < 5. a <= b and b = 5 and a = 7: no row. a in [1, 2] and b in [3, 4]: a < b."""
    for subject, left, right in _orders(knowledge):
        if not comparable(left.domain, right.domain):
            continue
        one, other = knowledge[left], knowledge[right]
        if not one.cuts or not other.cuts:
            continue
        impossible = impossible_orders(left.domain, one, other)
        if impossible:
            knowledge.narrow(subject, _among(_states(knowledge, subject) - impossible))
        states = _states(knowledge, subject)
        if states & _UNKNOWN:
            if states <= {EQUAL, BOTH_NULL}:
                knowledge.narrow(left, other)
                knowledge.narrow(right, one)
            continue
        if GREATER not in states:
            _bound(knowledge, left, right, strict=EQUAL not in states)
        if LESS not in states:
            _bound(knowledge, right, left, strict=EQUAL not in states)
        if states == {EQUAL}:
            knowledge.narrow(left, other)
            knowledge.narrow(right, one)


def orders_are_transitive(knowledge: Knowledge) -> None:
    """a < b and b <= c: a < c. a <= b and b <= a: a = b. a < b and b < a: no row."""
    orders = [o for o in _orders(knowledge) if not _states(knowledge, o[0]) & _UNKNOWN]
    if len(orders) < 2:
        return
    below: dict[tuple[Subject, Subject], bool] = {}  # (a, b): a <= b, and whether even a < b
    for subject, left, right in orders:
        states = _states(knowledge, subject)
        if GREATER not in states:
            below[left, right] = EQUAL not in states
        if LESS not in states:
            below[right, left] = EQUAL not in states
    sides = list(dict.fromkeys(side for _, left, right in orders for side in (left, right)))
    for middle in sides:  # Floyd and Warshall's order of loops: paths through ever more middles
        for start in sides:
            for end in sides:
                if (start, middle) in below and (middle, end) in below:
                    strict = below[start, middle] or below[middle, end]
                    below[start, end] = strict or below.get((start, end), False)
    for subject, left, right in orders:
        if (left, right) in below:
            knowledge.narrow(subject, _among(frozenset({LESS} if below[left, right] else {LESS, EQUAL})))
        if (right, left) in below:
            knowledge.narrow(subject, _among(frozenset({GREATER} if below[right, left] else {EQUAL, GREATER})))


def same_values_stand_for_each_other(knowledge: Knowledge) -> None:
    """a <=> b and b <=> c: a <=> c. a <=> b and a < c: b < c. Neither asks whether the values are known."""
    alike: dict[Subject, Subject] = {}
    for subject, left, right in _orders(knowledge):
        if _states(knowledge, subject) <= _SAME:
            alike[_representative(alike, right)] = _representative(alike, left)
    if not alike:
        return
    between: dict[tuple[Subject, Subject], frozenset[int]] = {}
    for subject, left, right in _orders(knowledge):
        pair = _representative(alike, left), _representative(alike, right)
        states = _states(knowledge, subject)
        if pair[0] == pair[1]:
            knowledge.narrow(subject, _among(states & _SAME))
            continue
        held = between.get(pair)
        between[pair] = states if held is None else held & states
        between[pair[::-1]] = frozenset(_TURNED.get(state, state) for state in between[pair])
    for subject, left, right in _orders(knowledge):
        pair = _representative(alike, left), _representative(alike, right)
        if pair[0] != pair[1]:
            knowledge.narrow(subject, _among(_states(knowledge, subject) & between[pair]))


RULES_OF_PATTERNS: tuple[Callable[[Knowledge], None], ...] = (
    unread_is_null_with_its_expression,
    patterns_imply_patterns,
    patterns_bound_their_texts,
    points_fit_patterns,
)
"""The rules between an expression and the conditions on it that are not read, patterns above all."""

RULES_OF_ORDERS: tuple[Callable[[Knowledge], None], ...] = (
    orders_know_nulls,
    orders_bound_their_sides,
    orders_are_transitive,
    same_values_stand_for_each_other,
)
"""The rules between expressions that are compared with each other."""


def _representative(alike: dict[Subject, Subject], one: Subject) -> Subject:
    """The one of all subjects known to have the same value that speaks for them."""
    while (further := alike.get(one, one)) != one:
        one = further
    return one


def _true_patterns(knowledge: Knowledge, subjects: list[Subject], about: Subject) -> list[Pattern]:
    found = [s.pattern for s in subjects if s.pattern and s.ties[0] == about and knowledge.sets[s] == IS_TRUE]
    head = common_head(knowledge[about])
    return found if head is None else [*found, head]


def common_head(values: ValueSet) -> Pattern | None:
    """The prefix that all texts of a set share, as a pattern; None where NULL is among them or they share nothing."""
    if values.null or not values.cuts:
        return None
    low, high = values.cuts[0], values.cuts[-1]
    if not isinstance(low, bytes) or not isinstance(high, bytes):
        return None
    length = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    if len(high) == length + 1 and len(low) > length and low[length] + 1 == high[length]:
        length += 1  # ['abc', 'abd') share 'abc', not only 'ab'
    head = low[:length].decode("utf-8", "ignore")
    return Pattern((*head, RUN)) if head else None


def _may_be(truth: ValueSet, pattern: Pattern, point: Key) -> bool:
    if not isinstance(point, bytes):
        return True
    try:
        matches = pattern.matches(point.decode("utf-8"))
    except UnicodeDecodeError:
        return True
    return matches is None or truth.meets(IS_TRUE if matches else IS_FALSE)


def _orders(knowledge: Knowledge) -> list[tuple[Subject, Subject, Subject]]:
    return [(subject, *subject.ties) for subject in knowledge.sets if len(subject.ties) == 2]


@functools.lru_cache(maxsize=64)
def _among(states: frozenset[int]) -> ValueSet:
    """The states of an order as a set of its values."""
    return union_of([ValueSet((state, state + 1)) for state in sorted(states)])


@functools.lru_cache(maxsize=64)
def _listed(values: ValueSet) -> frozenset[int]:
    return frozenset(state for state in range(BOTH_NULL + 1) if values.meets(ValueSet((state, state + 1))))


def _states(knowledge: Knowledge, subject: Subject) -> frozenset[int]:
    """The states that an order may be in."""
    return _listed(knowledge[subject])


def impossible_orders(domain: Domain, one: ValueSet, other: ValueSet) -> set[int]:
    """The orders that two sets rule out: [1, 3) and [3, 5) rule out 'equal' and 'greater'."""
    impossible = set()
    if not _overlapping(one, other):
        impossible.add(EQUAL)
    if not _may_be_less(domain, one, other):
        impossible.add(LESS)
    if not _may_be_less(domain, other, one):
        impossible.add(GREATER)
    return impossible


def comparable(one: Domain, other: Domain) -> bool:
    """Whether keys of the two domains can be compared: one family and one unit."""
    return one.family is other.family is not Family.UNORDERED and one.unit == other.unit


def _overlapping(one: ValueSet, other: ValueSet) -> bool:
    return ValueSet(one.cuts).meets(ValueSet(other.cuts))


def _may_be_less(domain: Domain, one: ValueSet, other: ValueSet) -> bool:
    """Whether the least of `one` is below some member of `other`."""
    return domain.next(one.cuts[0]) < other.cuts[-1]


def _bound(knowledge: Knowledge, lower: Subject, upper: Subject, *, strict: bool) -> None:
    """Learn from lower <= upper (or lower < upper, strict) what the bounds of each say about the other."""
    domain = lower.domain
    high, low = knowledge[upper].cuts[-1], knowledge[lower].cuts[0]
    if strict:
        last = domain.last(high) if high is not TOP else None
        high = high if last is None else last
        low = domain.next(low)
    knowledge.narrow(lower, domain.below(high))
    knowledge.narrow(upper, domain.at_least(low))
