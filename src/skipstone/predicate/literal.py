"""Filters as values: literals are conditions, predicates disjunctions of literals, conjunctions sets of predicates.

    literal      price > 100              may be TRUE, FALSE or NULL for a row
    predicate    price > 100 OR gift      a disjunction of literals          (papers: filter predicate)
    conjunction  {price > 100, day = 3}   a set of predicates, all TRUE      (papers: predicate set, query filter)

A conjunction selects the rows for which it is TRUE; rows for which it is FALSE or NULL are alike to it. Normalisation
(`skipstone.predicate.normalising`) therefore may swap FALSE and NULL once every NOT has been pushed down to a literal,
and that is why a negated literal is a literal of its own here: `NOT (a = 1)` is TRUE only where a is known and not 1.

The classes build exactly what they name. `conjunction(...)` and `predicate(...)` are the constructors that put things
in canonical order; only they should be used to combine values.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from skipstone.predicate.expression import Constant, Expression, columns_of

__all__ = [
    "ALWAYS",
    "NEVER",
    "Comparison",
    "Conjunction",
    "InSet",
    "Literal",
    "Match",
    "MatchKind",
    "NullTest",
    "Opaque",
    "Operator",
    "Predicate",
]


class Operator(enum.Enum):
    """How two values are compared. NULL on either side gives NULL, except for NULL_SAFE_EQUAL."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    NULL_SAFE_EQUAL = "<=>"
    """TRUE where both are NULL or both are the same value; never NULL."""
    NULL_SAFE_NOT_EQUAL = "IS DISTINCT FROM"
    """The negation of NULL_SAFE_EQUAL; never NULL."""

    @property
    def negated(self) -> Operator:
        """The operator that is TRUE exactly where this one is FALSE (NULL stays NULL).

        >>> Operator.LESS.negated
        <Operator.GREATER_EQUAL: '>='>
        """
        return _NEGATED[self]

    @property
    def flipped(self) -> Operator:
        """The operator that holds for (b, a) where this one holds for (a, b).

        >>> Operator.LESS.flipped
        <Operator.GREATER: '>'>
        """
        return _FLIPPED.get(self, self)


_PAIRS = (
    (Operator.EQUAL, Operator.NOT_EQUAL),
    (Operator.LESS, Operator.GREATER_EQUAL),
    (Operator.GREATER, Operator.LESS_EQUAL),
    (Operator.NULL_SAFE_EQUAL, Operator.NULL_SAFE_NOT_EQUAL),
)
_NEGATED = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
_FLIPPED = {
    Operator.LESS: Operator.GREATER,
    Operator.GREATER: Operator.LESS,
    Operator.LESS_EQUAL: Operator.GREATER_EQUAL,
    Operator.GREATER_EQUAL: Operator.LESS_EQUAL,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right`. A constant stands on the right; NaN equals NaN and is the greatest value.

    In canonical form the right side is never a NULL constant, and of two columns the one with the smaller text
    stands on the left.
    """

    operator: Operator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class InSet:
    """`expression [NOT] IN (values)`; the values are sorted, distinct, not NULL, and two or more in canonical form."""

    expression: Expression
    values: tuple[Constant, ...]
    negated: bool = False


class MatchKind(enum.Enum):
    """How a pattern is read."""

    PREFIX = "startswith"
    """The text begins with the pattern, which is taken letter by letter."""
    SUFFIX = "endswith"
    CONTAINS = "contains"
    LIKE = "LIKE"
    """SQL's pattern with % and _; the escape is always a backslash in canonical form."""
    ILIKE = "ILIKE"
    RLIKE = "RLIKE"
    """A regular expression found anywhere in the text, in the engine's own (Java's) syntax."""


@dataclass(frozen=True, slots=True)
class Match:
    """`expression [NOT] LIKE pattern` and its kin; the simplest kind that says it is the canonical one."""

    kind: MatchKind
    expression: Expression
    pattern: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class NullTest:
    """`expression IS [NOT] NULL`: `negated` means IS NOT NULL. Never NULL itself."""

    expression: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Opaque:
    """A boolean expression that is carried but not looked into: a UDF call, or a form past the bound on size.

    `text` is its canonical Spark SQL; two opaque literals are the same condition only if text and columns are equal.
    `deterministic` is False for anything that may differ between two runs over one row (rand, now, current_user ...);
    such a literal is never a feature and never equal to another for the purpose of skipping.
    """

    text: str
    columns: frozenset[str]
    deterministic: bool = True


Literal: TypeAlias = Comparison | InSet | Match | NullTest | Opaque


@dataclass(frozen=True, slots=True)
class Predicate:
    """A disjunction of literals, TRUE where any of them is. Without literals it is never TRUE (`NEVER`)."""

    literals: tuple[Literal, ...]

    @property
    def columns(self) -> frozenset[str]:
        """The top-level columns that the predicate reads."""
        return frozenset().union(*(columns_of_literal(literal) for literal in self.literals))

    @property
    def is_deterministic(self) -> bool:
        """Whether the predicate gives the same answer for a row whenever it is asked."""
        return all(not isinstance(literal, Opaque) or literal.deterministic for literal in self.literals)


@dataclass(frozen=True, slots=True)
class Conjunction:
    """A set of predicates that must all be TRUE. Without predicates every row satisfies it (`ALWAYS`)."""

    predicates: tuple[Predicate, ...]

    @property
    def columns(self) -> frozenset[str]:
        """The top-level columns that the conjunction reads."""
        return frozenset().union(*(predicate.columns for predicate in self.predicates))

    @property
    def is_deterministic(self) -> bool:
        """Whether the conjunction gives the same answer for a row whenever it is asked."""
        return all(predicate.is_deterministic for predicate in self.predicates)

    def __iter__(self) -> Iterator[Predicate]:
        return iter(self.predicates)

    def __len__(self) -> int:
        return len(self.predicates)


NEVER = Predicate(())
"""The predicate that no row satisfies."""

ALWAYS = Conjunction(())
"""The conjunction that every row satisfies."""


def columns_of_literal(literal: Literal) -> frozenset[str]:
    """Name the top-level columns that a literal reads."""
    match literal:
        case Comparison(left=left, right=right):
            return columns_of(left) | columns_of(right)
        case InSet(expression=expression) | Match(expression=expression) | NullTest(expression=expression):
            return columns_of(expression)
        case Opaque(columns=columns):
            return columns
