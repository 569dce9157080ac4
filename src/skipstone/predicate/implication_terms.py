"""What it takes for one literal to be TRUE, and what it takes for it not to be, as sets of values of subjects.

A subject is something that has one value in a row: an expression; the order of two expressions; or a condition that is
not looked into (an opaque literal, a pattern), which is TRUE, FALSE or NULL. A literal becomes a term: necessary
conditions for its being TRUE and for its not being TRUE. Implication and block bounds only combine such conditions.

    x >= 5              TRUE: x in [5, ..)                   not TRUE: x in (.., 5) or NULL
    x LIKE 'ab%c'       TRUE: pattern is true, x in ['ab', 'ac')      not TRUE: pattern is false or NULL
    a < b               TRUE: order(a, b) is less, a and b known      not TRUE: order(a, b) is something else
    year(d) = 1994      TRUE: year(d) in {1994}, d in that year       not TRUE: the complements
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from skipstone.predicate.expression import Call, Cast, Constant, Element, Expression, Field
from skipstone.predicate.implication_patterns import ANY, RUN, Pattern, pattern_of
from skipstone.predicate.intervals import Domain, Family, ValueSet, domain_of, prefix_end, union_of
from skipstone.predicate.literal import Comparison, InSet, Literal, Match, NullTest, Opaque, Operator
from skipstone.predicate.monotone import preimage, without_widening

__all__ = ["Condition", "Order", "Subject", "Term", "subject_of", "term_of"]


@dataclass(frozen=True, slots=True)
class Order:
    """The order of two expressions as a subject; its values are the five states below."""

    left: Expression
    right: Expression


LESS, EQUAL, GREATER, ONE_NULL, BOTH_NULL = range(5)
"""How two values may stand to each other: both known (the first three), or not."""

_ORDER_DOMAIN = Domain(Family.UNORDERED, 0, 5)
_TRUTH_DOMAIN = Domain(Family.BOOLEAN, 0, 2)
IS_TRUE = ValueSet((1, 2))
IS_FALSE = ValueSet((0, 1))
_POINT_OF_EMPTY = ValueSet((b"", b"\0"))


class Subject:
    """Something that has one value (or NULL) in a row. Equal subjects are one object while they stay in the cache."""

    __slots__ = ("_hash", "domain", "of", "pattern", "ties")

    def __init__(
        self,
        of: Expression | Order | Literal,
        domain: Domain,
        *,
        ties: tuple[Subject, ...] = (),
        pattern: Pattern | None = None,
    ) -> None:
        self.of = of
        self.domain = domain
        self.ties = ties
        """The subjects that this one is tied to by rules: the sides of an order, what an unread condition is about."""
        self.pattern = pattern
        self._hash = hash(of)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Subject) and self.of == other.of)

    def __repr__(self) -> str:
        return f"Subject({self.of!r})"

    @property
    def is_unread(self) -> bool:
        """Whether this is a condition on one expression that is not looked into, NULL where the expression is."""
        return len(self.ties) == 1


@dataclass(frozen=True, slots=True)
class Condition:
    """That the value of a subject lies in a set."""

    subject: Subject
    values: ValueSet


@dataclass(frozen=True, slots=True)
class Term:
    """A literal with what must hold where it is TRUE, and what must hold where it is not (FALSE or NULL).

    Both lists are necessary conditions. The first of `if_true` is sufficient as well: its complement is the first of
    `if_untrue`. A literal that may differ between two evaluations has neither.
    """

    literal: Literal
    if_true: tuple[Condition, ...]
    if_untrue: tuple[Condition, ...]


@functools.lru_cache(maxsize=65536)
def subject_of(expression: Expression) -> Subject:
    """Give the subject of an expression."""
    return Subject(expression, domain_of(expression.type))


@functools.lru_cache(maxsize=65536)
def term_of(literal: Literal) -> Term:
    """Read a literal into conditions.

    >>> import pyarrow as pa
    >>> from skipstone.predicate.expression import Column
    >>> term = term_of(Comparison(Operator.GREATER, Column("x", pa.int8()), Constant(5, pa.int8())))
    >>> term.if_true[0].values, term.if_untrue[0].values
    (ValueSet(cuts=(6, 128), null=False), ValueSet(cuts=(-128, 6), null=True))
    """
    match literal:
        case Comparison(left=left, right=Constant() as right):
            return _exactly(literal, left, _compared(literal.operator, left, right))
        case Comparison():
            return _ordered(literal)
        case InSet(expression=expression):
            return _exactly(literal, expression, _member(literal))
        case NullTest(expression=expression, negated=negated):
            domain = domain_of(expression.type)
            return _exactly(literal, expression, domain.known if negated else ValueSet((), True))
        case Match():
            return _matched(literal)
        case Opaque():
            return _opaque(literal)


def _exactly(literal: Literal, expression: Expression, values: ValueSet | None) -> Term:
    """A literal that is TRUE exactly where its expression lies in a set; without a set it is carried unread."""
    if values is None:
        return _unread(literal, expression)
    subject = subject_of(expression)
    return Term(
        literal,
        (Condition(subject, values), *_consequences(expression, values)),
        _always_with(expression, subject.domain.complement(values)),
    )


def _always_with(expression: Expression, values: ValueSet) -> tuple[Condition, ...]:
    return (Condition(subject_of(expression), values), *_consequences(expression, values))


def _consequences(expression: Expression, values: ValueSet) -> tuple[Condition, ...]:
    """What a value of an expression says about its parts: year(d) = 1994 bounds d, length(c) > 3 makes c known.

    Each part is spoken of once: by its bounds where the function is monotone, else by being known.
    """
    found: list[Condition] = []
    pulled = preimage(expression, values)
    if pulled is not None:
        base, inside = pulled
        found.append(Condition(subject_of(base), inside))
        found += _consequences(base, inside)
    elif not values.null:
        for part in _strict_parts(expression):
            known = domain_of(part.type).known
            found.append(Condition(subject_of(part), known))
            found += _consequences(part, known)
    return tuple(found)


def _strict_parts(expression: Expression) -> Iterable[Expression]:
    """The parts that are known wherever the expression is."""
    match expression:
        case Cast(base=base) | Field(base=base) | Element(base=base):
            return (base,)
        case Call(name=name, arguments=arguments) if name in NULL_STRICT:
            return tuple(argument for argument in arguments if not isinstance(argument, Constant))
        case Call(name="nullif", arguments=(first, *_)):
            return (first,)
        case _:
            return ()


NULL_STRICT = frozenset(
    """
    add sub mul div mod neg abs ceil ceiling floor round bround sqrt cbrt exp ln log log10 log2 pow power sign signum
    length len char_length character_length octet_length bit_length upper lower ucase lcase trim ltrim rtrim
    substring substr left right replace reverse lpad rpad repeat instr locate position ascii initcap concat
    regexp_extract regexp_replace split_part translate get_json_object md5 sha1 sha2
    year quarter month day dayofmonth dayofweek dayofyear weekofyear weekday hour minute second last_day
    date_trunc trunc date_add date_sub datediff date_diff add_months months_between to_date date_format
    """.split()  # noqa: SIM905 - seventy lines of one name each would hide what is not there
)
"""Functions that give NULL whenever one of their arguments is NULL (so not coalesce, concat_ws, greatest, size ...)."""


def _compared(operator: Operator, left: Expression, right: Constant) -> ValueSet | None:
    """The values of `left` for which `left operator constant` is TRUE; None where they cannot be told."""
    domain = domain_of(left.type)
    if right.is_null:
        match operator:
            case Operator.NULL_SAFE_EQUAL:
                return ValueSet((), True)
            case Operator.NULL_SAFE_NOT_EQUAL:
                return domain.known
            case _:
                return ValueSet(())
    place = domain.constant(right, left.type)
    if place is None:
        return None
    low, high = place
    match operator:
        case Operator.EQUAL | Operator.NULL_SAFE_EQUAL:
            return domain.interval(low, high)
        case Operator.NOT_EQUAL:
            return domain.below(low) | domain.at_least(high)
        case Operator.NULL_SAFE_NOT_EQUAL:
            return domain.complement(domain.interval(low, high))
        case Operator.LESS:
            return domain.below(low)
        case Operator.LESS_EQUAL:
            return domain.below(high)
        case Operator.GREATER:
            return domain.at_least(high)
        case Operator.GREATER_EQUAL:
            return domain.at_least(low)


def _member(literal: InSet) -> ValueSet | None:
    domain = domain_of(literal.expression.type)
    points: list[ValueSet] = []
    for constant in literal.values:
        if constant.is_null:
            if literal.negated:
                return ValueSet(())  # NOT IN with a NULL in its list is never TRUE
            continue
        place = domain.constant(constant, literal.expression.type)
        if place is None:
            return None
        points.append(domain.interval(*place))
    inside = union_of(points)
    return domain.complement(ValueSet(inside.cuts, True)) if literal.negated else inside


def _matched(literal: Match) -> Term:
    """A pattern that is one range of texts is exact; of any other its head bounds the text."""
    expression, pattern = literal.expression, pattern_of(literal.kind, literal.pattern)
    domain = domain_of(expression.type)
    if pattern is None or domain.family is not Family.TEXT:
        return _unread(literal, expression)
    if pattern.tokens == (ANY, RUN):
        return _exactly(literal, expression, _POINT_OF_EMPTY if literal.negated else domain.at_least(b"\0"))
    head = pattern.head.encode("utf-8", "surrogatepass")
    if pattern.is_prefix or pattern.is_text:
        inside = domain.interval(head, prefix_end(head) if pattern.is_prefix else domain.next(head))
        return _exactly(
            literal, expression, domain.complement(ValueSet(inside.cuts, True)) if literal.negated else inside
        )
    bounds = domain.known if literal.negated else domain.interval(head, prefix_end(head))
    return _unread(literal, expression, pattern, bounds)


def _unread(
    literal: Literal, expression: Expression, pattern: Pattern | None = None, bounds: ValueSet | None = None
) -> Term:
    """A literal that is NULL where its expression is, and else TRUE or FALSE: a subject of its own."""
    positive, negated = _without_negation(literal)
    values = IS_FALSE if negated else IS_TRUE
    if isinstance(literal, Comparison) and literal.operator in _NULL_SAFE:
        # Never NULL itself, and it says nothing of its sides being known.
        subject = Subject(positive, _TRUTH_DOMAIN)
        return Term(literal, (Condition(subject, values),), (Condition(subject, _TRUTH_DOMAIN.complement(values)),))
    subject = Subject(positive, _TRUTH_DOMAIN, ties=(subject_of(expression),), pattern=pattern)
    known = bounds if bounds is not None else domain_of(expression.type).known
    return Term(
        literal,
        (Condition(subject, values), *_always_with(expression, known)),
        (Condition(subject, _TRUTH_DOMAIN.complement(values)),),
    )


def _without_negation(literal: Literal) -> tuple[Literal, bool]:
    """Tell `NOT p` as p with a mark, so that the two have one subject."""
    match literal:
        case InSet(expression=expression, values=values, negated=True):
            return InSet(expression, values), True
        case Match(kind=kind, expression=expression, pattern=pattern, negated=True):
            return Match(kind, expression, pattern), True
        case Comparison(
            operator=Operator.NOT_EQUAL | Operator.GREATER | Operator.GREATER_EQUAL | Operator.NULL_SAFE_NOT_EQUAL
        ):
            return Comparison(literal.operator.negated, literal.left, literal.right), True
        case _:
            return literal, False


def _opaque(literal: Opaque) -> Term:
    if not literal.deterministic:
        # Two evaluations may differ, so being TRUE once says nothing about any other time.
        return Term(literal, (), ())
    subject = Subject(literal, _TRUTH_DOMAIN)
    return Term(literal, (Condition(subject, IS_TRUE),), (Condition(subject, _TRUTH_DOMAIN.complement(IS_TRUE)),))


_NULL_SAFE = (Operator.NULL_SAFE_EQUAL, Operator.NULL_SAFE_NOT_EQUAL)

_STATES = {
    Operator.LESS: (LESS,),
    Operator.LESS_EQUAL: (LESS, EQUAL),
    Operator.EQUAL: (EQUAL,),
    Operator.GREATER_EQUAL: (EQUAL, GREATER),
    Operator.GREATER: (GREATER,),
    Operator.NOT_EQUAL: (LESS, GREATER),
    Operator.NULL_SAFE_EQUAL: (EQUAL, BOTH_NULL),
    Operator.NULL_SAFE_NOT_EQUAL: (LESS, GREATER, ONE_NULL),
}
"""The states of a pair in which a comparison is TRUE."""


def _ordered(literal: Comparison) -> Term:
    """A comparison of two expressions: a < b is the order of the two being 'less', with both known.

    >>> import pyarrow as pa
    >>> from skipstone.predicate.expression import Column
    >>> a, b = Column("a", pa.int8()), Column("b", pa.int8())
    >>> term_of(Comparison(Operator.LESS, a, b)).if_true[0] == term_of(Comparison(Operator.GREATER, b, a)).if_true[0]
    True
    """
    left, right, operator = without_widening(literal.left), without_widening(literal.right), literal.operator
    if left == right:
        return _exactly(literal, left, _compared_with_itself(operator, left))
    if repr(left) > repr(right):
        left, right, operator = right, left, operator.flipped
    subject = Subject(Order(left, right), _ORDER_DOMAIN, ties=(subject_of(left), subject_of(right)))
    states = union_of([ValueSet((state, state + 1)) for state in _STATES[operator]])
    sides: tuple[Condition, ...] = ()
    if operator not in _NULL_SAFE:
        sides = tuple(c for side in (left, right) for c in _always_with(side, domain_of(side.type).known))
    untrue = _ORDER_DOMAIN.complement(ValueSet(states.cuts, True))
    return Term(literal, (Condition(subject, states), *sides), (Condition(subject, untrue),))


def _compared_with_itself(operator: Operator, expression: Expression) -> ValueSet:
    """x = x is TRUE where x is known, x < x never, x <=> x always."""
    domain = domain_of(expression.type)
    match operator:
        case Operator.EQUAL | Operator.LESS_EQUAL | Operator.GREATER_EQUAL:
            return domain.known
        case Operator.NULL_SAFE_EQUAL:
            return domain.everything
        case _:
            return ValueSet(())
