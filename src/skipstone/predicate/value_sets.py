"""What several literals say together about one expression.

Values of one type are totally ordered here as Spark orders them (NaN is the greatest, strings by their bytes), so the
values for which a literal is TRUE are a ray, a few points, or all but a few points. A conjunction intersects such
sets and a disjunction unites them.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from skipstone.predicate.coercion import holds
from skipstone.predicate.expression import Constant, Expression
from skipstone.predicate.literal import Comparison, InSet, Literal, Match, NullTest, Operator

__all__ = ["conjoined", "disjoined", "order_key", "subject"]

Key = tuple[bool, Any]
"""A constant's place in the order of its type: NaN after everything else."""


def order_key(constant: Constant) -> Key:
    """Order constants of one type.

    >>> order_key(Constant(float("inf"), pa.float64())) < order_key(Constant(float("nan"), pa.float64()))
    True
    """
    value = constant.value
    return (True, 0) if value != value else (False, value)  # NaN is not itself


def subject(literal: Literal) -> Expression | None:
    """The expression that a literal compares with constants or tests for NULL, if it is such a literal."""
    match literal:
        case Comparison(left=left, right=Constant()):
            return left
        case InSet(expression=expression) | NullTest(expression=expression) | Match(expression=expression):
            return expression
        case _:
            return None


@dataclass(slots=True)
class _Bound:
    """One end of a ray: the constant and whether it belongs to the ray."""

    constant: Constant
    inclusive: bool

    def end(self, towards: int) -> Key:
        """The last value of the ray where its type has one: `x > 5` begins at 6 on integers (towards = 1)."""
        stepped = None if self.inclusive else _step(self.constant, towards)
        return order_key(stepped or self.constant)


def _step(constant: Constant, direction: int) -> Constant | None:
    """The next value of a type that counts in steps: whole numbers, decimals and dates.

    >>> _step(Constant(decimal.Decimal("0.05"), pa.decimal128(9, 2)), 1).value
    Decimal('0.06')
    """
    value, type_ = constant.value, constant.type
    if pa.types.is_integer(type_) and isinstance(value, int):
        return Constant(value + direction, type_)
    if isinstance(value, decimal.Decimal):
        digits = decimal.Context(prec=type_.precision + 2)
        return Constant(digits.add(value, decimal.Decimal((0, (1,), -type_.scale)) * direction), type_)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        ordinal = value.toordinal() + direction
        inside = datetime.date.min.toordinal() <= ordinal <= datetime.date.max.toordinal()
        return Constant(datetime.date.fromordinal(ordinal), type_) if inside else None
    return None


@dataclass(slots=True)
class _Said:
    """All that a conjunction or a disjunction says about one expression with constants of one type."""

    expression: Expression
    type: pa.DataType
    lower: list[_Bound] = field(default_factory=list)
    upper: list[_Bound] = field(default_factory=list)
    points: list[dict[Key, Constant]] = field(default_factory=list)
    holes: list[dict[Key, Constant]] = field(default_factory=list)
    literals: list[Comparison | InSet] = field(default_factory=list)

    @property
    def only(self) -> Literal | None:
        """The literal itself where there is but one and it is as simple as it can be."""
        if len(self.literals) != 1 or self.is_boolean:
            return None
        literal = self.literals[0]
        if isinstance(literal, Comparison):
            return literal
        keys = [order_key(value) for value in literal.values]
        return literal if len(keys) > 1 and all(a < b for a, b in itertools.pairwise(keys)) else None

    def complete(self) -> _Said:
        """Take the literals apart into rays, points and holes."""
        if self.only is None:
            for literal in self.literals:
                self._add(literal)
        return self

    def _add(self, literal: Comparison | InSet) -> None:
        if self.is_boolean:
            self._add_boolean(literal)
            return
        if isinstance(literal, InSet):
            constants = {order_key(value): value for value in literal.values}
            (self.holes if literal.negated else self.points).append(constants)
            return
        assert isinstance(literal.right, Constant)
        match literal.operator:
            case Operator.EQUAL:
                self.points.append({order_key(literal.right): literal.right})
            case Operator.NOT_EQUAL:
                self.holes.append({order_key(literal.right): literal.right})
            case Operator.LESS | Operator.LESS_EQUAL as operator:
                self.upper.append(_Bound(literal.right, operator is Operator.LESS_EQUAL))
            case Operator.GREATER | Operator.GREATER_EQUAL as operator:
                self.lower.append(_Bound(literal.right, operator is Operator.GREATER_EQUAL))

    @property
    def is_boolean(self) -> bool:
        return bool(pa.types.is_boolean(self.type))

    def _add_boolean(self, literal: Comparison | InSet) -> None:
        """Of two values, all that can be said is which of them are meant: `flag <> true` is `flag = false`."""
        values = literal.values if isinstance(literal, InSet) else (literal.right,)
        named = {bool(value.value) for value in values if isinstance(value, Constant)}
        if isinstance(literal, InSet):
            meant = {False, True} - named if literal.negated else named
        else:
            meant = {v for v in (False, True) if holds(literal.operator, v, next(iter(named)))}
        self.points.append({(False, v): Constant(v, self.type) for v in sorted(meant)})

    def least(self, constants: dict[Key, Constant], *, negated: bool = False) -> list[Literal]:
        """Say that the value is, or is not, one of the constants."""
        if not constants:
            return []
        if self.is_boolean and len(constants) == 2:
            return [NullTest(self.expression, negated=True)]
        if len(constants) == 1:
            operator = Operator.NOT_EQUAL if negated else Operator.EQUAL
            return [Comparison(operator, self.expression, next(iter(constants.values())))]
        return [InSet(self.expression, tuple(constants[key] for key in sorted(constants)), negated)]

    def above(self, bound: _Bound | None) -> list[Literal]:
        if bound is None:
            return []
        operator = Operator.GREATER_EQUAL if bound.inclusive else Operator.GREATER
        return [Comparison(operator, self.expression, bound.constant)]

    def below(self, bound: _Bound | None) -> list[Literal]:
        if bound is None:
            return []
        operator = Operator.LESS_EQUAL if bound.inclusive else Operator.LESS
        return [Comparison(operator, self.expression, bound.constant)]


def _the_one(bounds: list[_Bound]) -> _Bound | None:
    return bounds[0] if len(bounds) == 1 else None


def _begins(bound: _Bound) -> tuple[Key, bool]:
    """Order lower bounds by where they begin; `>` before nothing, `>=` before `>` at one value."""
    return bound.end(1), not bound.inclusive


def _ends(bound: _Bound) -> tuple[Key, bool]:
    """Order upper bounds by where they end; `<` before `<=` at one value."""
    return bound.end(-1), bound.inclusive


def _admits_above(bound: _Bound, key: Key) -> bool:
    own = order_key(bound.constant)
    return key > own or (bound.inclusive and key == own)


def _admits_below(bound: _Bound, key: Key) -> bool:
    own = order_key(bound.constant)
    return key < own or (bound.inclusive and key == own)


def conjoined(literals: Iterable[Literal]) -> list[Literal] | None:
    """Say what several literals say together, or None where no row can satisfy them all.

    >>> from skipstone.predicate.expression import Column
    >>> x = Column("x", pa.int64())
    >>> def compare(operator, value): return Comparison(operator, x, Constant(value, pa.int64()))
    >>> conjoined([compare(Operator.LESS, 1), compare(Operator.GREATER, 2)]) is None
    True
    """
    about, rest = _sort_out(literals)
    result: list[Literal] = []
    for said in about.values():
        together = _intersection(said.complete())
        if together is None:
            return None
        result += together
    return _with_null_tests([*result, *rest])


def _intersection(said: _Said) -> list[Literal] | None:
    if said.only is not None:
        return [said.only]
    lower = _the_one(said.lower) or max(said.lower, key=_begins, default=None)
    upper = _the_one(said.upper) or min(said.upper, key=_ends, default=None)
    holes = {key: constant for each in said.holes for key, constant in each.items()}
    if said.points:
        first, *others = said.points
        points = {
            key: constant
            for key, constant in first.items()
            if key not in holes
            and all(key in other for other in others)
            and (lower is None or _admits_above(lower, key))
            and (upper is None or _admits_below(upper, key))
        }
        return said.least(points) or None  # no points: never
    # A hole at the end of a range moves the end: x >= 5 AND x <> 5 -> x > 5.
    while holes and lower is not None and lower.end(1) in holes:
        lower = _Bound(holes.pop(lower.end(1)), inclusive=False) if _has_end(lower, 1) else _cut(lower, holes)
    while holes and upper is not None and upper.end(-1) in holes:
        upper = _Bound(holes.pop(upper.end(-1)), inclusive=False) if _has_end(upper, -1) else _cut(upper, holes)
    if lower is not None and upper is not None:
        begin, end = lower.end(1), upper.end(-1)
        if begin > end or (begin == end and not (_has_end(lower, 1) and _has_end(upper, -1))):
            return None
        if begin == end:
            constant = lower.constant if lower.inclusive else _step(lower.constant, 1)
            return [Comparison(Operator.EQUAL, said.expression, constant)] if constant is not None else None
    holes = {
        key: constant
        for key, constant in holes.items()
        if (lower is None or _admits_above(lower, key)) and (upper is None or _admits_below(upper, key))
    }
    return [*said.above(lower), *said.below(upper), *said.least(holes, negated=True)]


def _has_end(bound: _Bound, towards: int) -> bool:
    """Whether the value that `end` names belongs to the ray."""
    return bound.inclusive or _step(bound.constant, towards) is not None


def _cut(bound: _Bound, holes: dict[Key, Constant]) -> _Bound:
    """Forget a hole that the ray leaves out anyway."""
    holes.pop(order_key(bound.constant))
    return bound


def _with_null_tests(literals: list[Literal]) -> list[Literal] | None:
    """Drop IS NOT NULL where another literal says it, and find IS NULL where another denies it."""
    rejecting: set[Expression] = set()
    for literal in literals:
        rejecting.update(_never_null_where_true(literal))
    kept: list[Literal] = []
    tested = {literal.expression for literal in literals if isinstance(literal, NullTest) and literal.negated}
    for literal in literals:
        if isinstance(literal, NullTest):
            if not literal.negated and (literal.expression in rejecting or literal.expression in tested):
                return None
            if literal.negated and literal.expression in rejecting:
                continue
        kept.append(literal)
    return list(dict.fromkeys(kept))


def _never_null_where_true(literal: Literal) -> tuple[Expression, ...]:
    match literal:
        case Comparison(operator=Operator.NULL_SAFE_EQUAL | Operator.NULL_SAFE_NOT_EQUAL):
            return ()
        case Comparison(left=left, right=right):
            return left, right
        case InSet(expression=expression) | Match(expression=expression):
            return (expression,)
        case _:
            return ()


def disjoined(literals: Iterable[Literal]) -> list[Literal]:
    """Say what at least one of several literals says.

    >>> from skipstone.predicate.expression import Column
    >>> x = Column("x", pa.int64())
    >>> def compare(operator, value): return Comparison(operator, x, Constant(value, pa.int64()))
    >>> disjoined([compare(Operator.LESS, 5), compare(Operator.GREATER, 5)]) == [compare(Operator.NOT_EQUAL, 5)]
    True
    """
    about, rest = _sort_out(literals)
    result: list[Literal] = []
    for said in about.values():
        result += _union(said.complete())
    result += rest
    known = {literal.expression for literal in result if isinstance(literal, NullTest) and literal.negated}
    if known:
        result = [literal for literal in result if not known.intersection(_never_null_where_true(literal))]
    return list(dict.fromkeys(result))


def _union(said: _Said) -> list[Literal]:
    if said.only is not None:
        return [said.only]
    everything: list[Literal] = [NullTest(said.expression, negated=True)]
    lower = min(said.lower, key=_begins, default=None)
    upper = max(said.upper, key=_ends, default=None)
    points = {key: constant for each in said.points for key, constant in each.items()}
    if said.holes:
        first, *others = said.holes
        holes = {
            key: constant
            for key, constant in first.items()
            if key not in points
            and all(key in other for other in others)
            and not (lower is not None and _admits_above(lower, key))
            and not (upper is not None and _admits_below(upper, key))
        }
        return said.least(holes, negated=True) or everything
    # A point beside the end of a range moves the end: x < 5 OR x = 5 -> x <= 5.
    if lower is not None:
        lower = _extended(lower, points, -1)
        points = {key: constant for key, constant in points.items() if not _admits_above(lower, key)}
    if upper is not None:
        upper = _extended(upper, points, 1)
        points = {key: constant for key, constant in points.items() if not _admits_below(upper, key)}
    if lower is not None and upper is not None:
        gap = _gap(upper, lower)
        if gap is not None:
            return said.least(gap, negated=True) or everything
    return [*said.above(lower), *said.below(upper), *said.least(points)]


def _extended(bound: _Bound, points: dict[Key, Constant], away: int) -> _Bound:
    """Let a ray take in the points that touch it; `away` is the direction in which it would grow."""
    while True:
        if not bound.inclusive and order_key(bound.constant) in points:
            bound = _Bound(bound.constant, inclusive=True)
            continue
        last = bound.constant if bound.inclusive else _step(bound.constant, -away)
        beside = _step(last, away) if last is not None else None
        if beside is None or order_key(beside) not in points:
            return bound
        bound = _Bound(beside, inclusive=True)


def _gap(upper: _Bound, lower: _Bound) -> dict[Key, Constant] | None:
    """The values between `<= upper` and `>= lower` if there is at most one, else None."""
    above, below = order_key(lower.constant), order_key(upper.constant)
    if below > above or (below == above and (upper.inclusive or lower.inclusive)):
        return {}
    if below == above:
        return {below: upper.constant}
    last = upper.constant if upper.inclusive else _step(upper.constant, -1)
    between = _step(last, 1) if last is not None else None
    if between is None:
        return None
    if order_key(between) >= lower.end(1):
        return {}
    after = _step(between, 1)
    if after is not None and _has_end(lower, 1) and order_key(after) >= lower.end(1):
        return {order_key(between): between}
    return None


def _sort_out(literals: Iterable[Literal]) -> tuple[dict[tuple[Expression, pa.DataType], _Said], list[Literal]]:
    """Gather what is said with constants by expression and type of the constant; leave the rest in order."""
    about: dict[tuple[Expression, pa.DataType], _Said] = {}
    rest: list[Literal] = []
    for literal in literals:
        match literal:
            case Comparison(operator=Operator.NULL_SAFE_EQUAL | Operator.NULL_SAFE_NOT_EQUAL):
                rest.append(literal)
            case Comparison(left=expression, right=Constant(type=type_)):
                about.setdefault((expression, type_), _Said(expression, type_)).literals.append(literal)
            case InSet(expression=expression, values=(Constant(type=type_), *_)):
                about.setdefault((expression, type_), _Said(expression, type_)).literals.append(literal)
            case _:
                rest.append(literal)
    return about, rest
