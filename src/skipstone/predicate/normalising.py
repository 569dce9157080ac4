"""One canonical form for filters that say the same thing.

`conjunction(...)` and `predicate(...)` combine values that are canonical already and give a canonical one; `canonical`
brings a formula of AND and OR there. The form is conjunctive: a set of predicates, each a set of literals, both in one
order (`reading_order`). What is said about one expression is said once: ranges are merged, points gathered in one IN.

Distribution of OR over AND can multiply, so its size is estimated before anything is expanded. See `MAX_PREDICATES`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from skipstone.predicate.expression import Constant, Expression
from skipstone.predicate.formula import AllOf, AnyOf, Formula
from skipstone.predicate.literal import (
    ALWAYS,
    NEVER,
    Comparison,
    Conjunction,
    InSet,
    Literal,
    Match,
    NullTest,
    Opaque,
    Operator,
    Predicate,
)
from skipstone.predicate.printing import sql
from skipstone.predicate.value_sets import conjoined, disjoined, subject

__all__ = ["MAX_PREDICATES", "canonical", "conjunction", "predicate", "reading_order"]

MAX_PREDICATES = 64
"""The most predicates that one OR of ANDs may become; past it the OR is carried as one opaque literal.

A judgement, not a theorem: every predicate of a query is an item for mining and a check for every block, and real
filters (two or three alternatives of a few conditions) stay well below.
"""


FEW_PREDICATES = 16
"""An OR of ANDs that becomes no more predicates than this is simply distributed."""


def predicate(literals: Iterable[Literal]) -> Predicate:
    """Join literals with OR.

    A predicate that is TRUE for all rows can only be one that says both `x IS NULL` and `x IS NOT NULL`; a conjunction
    leaves it out.

    >>> import pyarrow as pa
    >>> from skipstone.predicate.expression import Column, Constant
    >>> from skipstone.predicate.literal import Operator
    >>> x = Column("x", pa.int64())
    >>> one, two = (Comparison(Operator.EQUAL, x, Constant(v, pa.int64())) for v in (1, 2))
    >>> sql(predicate([two, one, two]))
    'x IN (1, 2)'
    """
    said = disjoined(literals)
    if len(said) < 2:
        return Predicate(tuple(said)) if said else NEVER
    ordered = sorted({reading_order(literal): literal for literal in said}.items())
    return Predicate(tuple(literal for _, literal in ordered))


def conjunction(predicates: Iterable[Predicate]) -> Conjunction:
    """Join predicates with AND.

    >>> import pyarrow as pa
    >>> from skipstone.predicate.expression import Column, Constant
    >>> from skipstone.predicate.literal import Operator
    >>> x = Column("x", pa.int64())
    >>> five, seven = (Predicate((Comparison(Operator.GREATER, x, Constant(v, pa.int64())),)) for v in (5, 7))
    >>> sql(conjunction([five, seven, five]))
    'x > 7'
    """
    # Each literal of a unit predicate, and each predicate of several, is looked at together with all the others.
    units: list[Literal] = []
    clauses: dict[Predicate, None] = {}
    for part in predicates:
        if not part.literals:
            return _IMPOSSIBLE
        if len(part.literals) == 1:
            units.append(part.literals[0])
        elif not _is_tautology(part):
            clauses[part] = None
    merged = conjoined(units)
    while merged is not None and clauses:
        remaining = [_resolved(part, _by_subject(merged)) for part in clauses]
        clauses = {part: None for part in remaining if part is not None and len(part.literals) > 1}
        if NEVER in remaining:
            return _IMPOSSIBLE
        found = [part.literals[0] for part in remaining if part is not None and len(part.literals) == 1]
        if not found:
            break
        merged = conjoined([*merged, *found])
    if merged is None:
        return _IMPOSSIBLE
    kept = [Predicate((literal,)) for literal in merged] + _unabsorbed(list(clauses), frozenset(merged))
    if len(kept) < 2:
        return Conjunction(tuple(kept)) if kept else ALWAYS
    ordered = sorted({tuple(map(reading_order, part.literals)): part for part in kept}.items())
    return Conjunction(tuple(part for _, part in ordered))


_RANKS = {
    operator: rank
    for rank, operator in enumerate(
        (
            Operator.EQUAL,
            Operator.NULL_SAFE_EQUAL,
            Operator.GREATER_EQUAL,
            Operator.GREATER,
            Operator.LESS_EQUAL,
            Operator.LESS,
            Operator.NOT_EQUAL,
            Operator.NULL_SAFE_NOT_EQUAL,
        )
    )
}


def reading_order(literal: Literal) -> tuple[str, int, str]:
    """Where a literal stands among others: by what it is about, a lower bound before an upper one, by its text."""
    text = sql(literal)
    match literal:
        case Comparison(operator=operator, left=left):
            return sql(left), _RANKS[operator], text
        case InSet(expression=expression, negated=negated):
            return sql(expression), _RANKS[Operator.NOT_EQUAL] if negated else 0, text
        case Match(expression=expression) | NullTest(expression=expression):
            return sql(expression), len(_RANKS), text
        case Opaque():
            return text, len(_RANKS), text


_IMPOSSIBLE = Conjunction((NEVER,))


def _is_tautology(part: Predicate) -> bool:
    """Whether a predicate says both `x IS NULL` and `x IS NOT NULL`."""
    nulls = [literal for literal in part.literals if isinstance(literal, NullTest)]
    negations = {literal.expression for literal in nulls if literal.negated}
    return any(literal.expression in negations for literal in nulls if not literal.negated)


def _by_subject(literals: Iterable[Literal]) -> dict[Expression, list[Literal]]:
    """Gather the literals that say something of one expression alone."""
    about: dict[Expression, list[Literal]] = {}
    for literal in literals:
        expression = subject(literal)
        if expression is not None:
            about.setdefault(expression, []).append(literal)
    return about


def _resolved(part: Predicate, known: dict[Expression, list[Literal]]) -> Predicate | None:
    """Simplify a predicate by what is known of the same expressions; None where it is known to be TRUE.

    x = 5 AND (x = 6 OR y = 1) -> x = 5 AND y = 1;  x = 5 AND (x > 3 OR y = 1) -> x = 5
    """
    kept: list[Literal] = []
    for literal in part.literals:
        expression = subject(literal)
        given = known.get(expression) if expression is not None else None
        if given is None:
            kept.append(literal)
            continue
        together = conjoined([*given, literal])
        if together is None:
            continue
        if set(together) == set(given):
            return None
        kept.append(literal)
    return part if len(kept) == len(part.literals) else Predicate(tuple(kept))


def _unabsorbed(clauses: Sequence[Predicate], units: frozenset[Literal]) -> list[Predicate]:
    """Leave out what another predicate says already: x AND (x OR y) -> x."""
    kept: list[Predicate] = []
    seen: list[frozenset[Literal]] = []
    for clause in sorted(clauses, key=lambda clause: len(clause.literals)):
        literals = frozenset(clause.literals)
        if units.isdisjoint(literals) and not any(smaller <= literals for smaller in seen):
            kept.append(clause)
            seen.append(literals)
    return kept


def canonical(formula: Formula) -> Conjunction:
    """Bring a formula into canonical form.

    (a AND b) OR (a AND c) -> a AND (b OR c)
    """
    match formula:
        case AllOf(parts=parts):
            return conjunction(itertools.chain.from_iterable(_predicates(part) for part in parts))
        case AnyOf(parts=parts):
            return _either(parts)
        case _:
            return conjunction([Predicate((formula,))])


def _predicates(formula: Formula) -> Iterable[Predicate]:
    return canonical(formula).predicates if isinstance(formula, (AllOf, AnyOf)) else (Predicate((formula,)),)


def _either(parts: Sequence[Formula]) -> Conjunction:
    literals = [part for part in parts if not isinstance(part, (AllOf, AnyOf))]
    alternatives = [Conjunction((predicate(literals),))] if literals else []
    alternatives += [canonical(part) for part in parts if isinstance(part, (AllOf, AnyOf))]
    alternatives = [each for each in dict.fromkeys(alternatives) if NEVER not in each.predicates]
    if not alternatives:
        return _IMPOSSIBLE
    if len(alternatives) == 1:
        return conjunction(alternatives[0].predicates)
    common = [each for each in alternatives[0] if all(each in other.predicates for other in alternatives[1:])]
    rests = [tuple(each for each in alternative if each not in common) for alternative in alternatives]
    if not all(rests):  # a OR (a AND b) -> a
        return conjunction(common)
    size = math.prod(len(rest) for rest in rests)
    if size > FEW_PREDICATES:
        told_apart = _told_apart(rests)
        if told_apart is not None:
            return conjunction([*common, *told_apart, *_implied_by_all(rests)])
    if size > MAX_PREDICATES:
        return conjunction([*common, *_implied_by_all(rests), _carried(rests)])
    return conjunction([*common, *(_any_of(choice) for choice in itertools.product(*rests))])


def _any_of(parts: Iterable[Predicate]) -> Predicate:
    return predicate(itertools.chain.from_iterable(part.literals for part in parts))


def _told_apart(rests: Sequence[tuple[Predicate, ...]]) -> list[Predicate] | None:
    """Say alternatives that one expression tells apart in as many predicates as they have conditions.

    (x = 1 AND a AND b) OR (x = 2 AND c AND d)
        -> x IN (1, 2) AND (x <> 1 OR a) AND (x <> 1 OR b) AND (x <> 2 OR c) AND (x <> 2 OR d)

    No value of x is in two of the alternatives, so the known x picks one and the others' predicates are TRUE.
    """
    for expression in dict.fromkeys(_only_subject(part) for part in rests[0]):
        deciding = [_points(rest, expression) for rest in rests] if expression is not None else []
        if not deciding or any(part is None for part in deciding):
            continue
        chosen = [part for part in deciding if part is not None]
        named = [constant for _, constants in chosen for constant in constants]
        if len(set(named)) < len(named) or len({constant.type for constant in named}) > 1:
            continue
        told = [_any_of(part for part, _ in chosen)]
        for rest, (deciding_part, _) in zip(rests, chosen, strict=True):
            elsewhere = _negated_points(deciding_part.literals[0])
            told += [predicate([elsewhere, *part.literals]) for part in rest if part is not deciding_part]
        return told
    return None


def _points(rest: Sequence[Predicate], expression: Expression | None) -> tuple[Predicate, tuple[Constant, ...]] | None:
    """The predicate of an alternative that names the only values of an expression, and these values."""
    for part in rest:
        if len(part.literals) == 1:
            match part.literals[0]:
                case Comparison(operator=Operator.EQUAL, left=left, right=Constant() as value) if left == expression:
                    return part, (value,)
                case InSet(expression=inside, values=values, negated=False) if inside == expression:
                    return part, values
    return None


def _negated_points(literal: Literal) -> Literal:
    match literal:
        case InSet(expression=expression, values=values):
            return InSet(expression, values, negated=True)
        case Comparison(left=left, right=right):
            return Comparison(Operator.NOT_EQUAL, left, right)
        case _:
            raise AssertionError(f"not a set of values: {literal}")


def _implied_by_all(rests: Sequence[tuple[Predicate, ...]]) -> list[Predicate]:
    """What every alternative says of one and the same expression: (x = 1 AND ..) OR (x = 2 AND ..) -> x IN (1, 2).

    These follow from the whole, so stating them beside it changes no row, and they are what blocks are skipped by.
    """
    implied = []
    for expression in dict.fromkeys(_only_subject(part) for part in rests[0]):
        said = [[part for part in rest if _only_subject(part) == expression] for rest in rests]
        if expression is None or not all(said):
            continue
        count = math.prod(len(parts) for parts in said)
        if count <= MAX_PREDICATES:
            implied += [_any_of(choice) for choice in itertools.product(*said)]
    return implied


def _only_subject(part: Predicate) -> Expression | None:
    """The one expression that a predicate is about, if there is just one."""
    subjects = {subject(literal) for literal in part.literals}
    return subjects.pop() if len(subjects) == 1 else None


def _carried(rests: Sequence[tuple[Predicate, ...]]) -> Predicate:
    texts = sorted({f"({sql(Conjunction(rest))})" for rest in rests})
    parts = [part for rest in rests for part in rest]
    columns = frozenset().union(*(part.columns for part in parts))
    return Predicate((Opaque(" OR ".join(texts), columns, all(part.is_deterministic for part in parts)),))
