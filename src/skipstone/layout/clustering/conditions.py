"""What a block must hold for a query to have to read it, as a matrix that searches can work on.

A query is spared a block if one of its conditions is known to be TRUE for no row there. Two kinds can be known: a
*stored* condition (a feature) by its bit in the block vector, and a *bound* by the block's minimum, maximum or null
count. So `x = 5` becomes the two bounds `x >= 5` and `x <= 5`, and a feature as well where it recurs; a condition that
neither recurs nor is a bound says nothing.

    WHERE city = 'Oslo' AND day >= 3 AND day < 5 AND note LIKE '%fee%'

    city >= 'Oslo', city <= 'Oslo', day >= 3, day < 5     bounds
    city = 'Oslo', note LIKE '%fee%'                      features, if enough queries ask for them
    city = 'Oslo' AND note LIKE '%fee%'                   a feature, if enough queries ask for both
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skipstone.errors import CannotEvaluate
from skipstone.layout.vectors import Bits
from skipstone.predicate.evaluation import Evaluator, cannot_evaluate
from skipstone.predicate.expression import Constant, Expression
from skipstone.predicate.implication import implication_matrix
from skipstone.predicate.literal import (
    Comparison,
    Conjunction,
    InSet,
    Match,
    MatchKind,
    NullTest,
    Operator,
    Predicate,
)
from skipstone.predicate.normalising import conjunction
from skipstone.predicate.printing import sql
from skipstone.predicate.value_sets import order_key
from skipstone.workload.query import Query

__all__ = ["Conditions", "bounds_of", "conditions_of", "recurring", "true_rows"]

MIN_SUPPORT = 0.01
"""A condition that queries with at least this share of the weight ask for is worth a bit in every block vector."""

MIN_QUERIES = 2
"""One query alone is no pattern, however few there are."""

MOST_FEATURES = 256
"""The most features that are considered; the ones that the most weight asks for."""

MOST_POINTS = 128
"""The most bounds of one direction on one expression; others are rounded outwards, to the next weaker one."""

MOST_PAIRED = 1_500
"""Of so many different queries (the heaviest) pairs are compared to find conditions that recur together."""


@dataclass(frozen=True, slots=True, eq=False)
class Conditions:
    """Conditions, and for each query which of them it needs.

    `needs[q, p]`: a block that has no row where filter p is TRUE can be skipped by query q. `stored[p]`: only a bit
    in the block vector tells; the others are told by bounds. The queries have different filters, sorted by their text.
    """

    filters: tuple[Conjunction, ...]
    stored: NDArray[np.bool_]
    queries: tuple[Conjunction, ...]
    weights: NDArray[np.float64]
    needs: Bits


def conditions_of(
    queries: Sequence[Query],
    features: Sequence[Conjunction] = (),
    *,
    time_zone: str | None = None,
    recur: bool = True,
    bounded: frozenset[str] | None = None,
) -> Conditions:
    """Break filters down to the conditions that blocks can be skipped by.

    `features` are stored in any case; with `recur` further ones are found among the queries. Blocks have bounds of the
    columns `bounded`, of all if they are not given; what is asked of other columns takes a bit, too. Queries that
    nothing can be known about need nothing and are left out.
    """
    merged = _merged(queries, time_zone)
    found = list(features)
    if recur:
        known = set(features)
        found += [feature for feature in recurring(merged) if feature not in known]
    asked: list[set[Conjunction]] = [set() for _ in merged]
    for place, feature in np.argwhere(implication_matrix(list(merged), found)):
        asked[place].add(found[feature])
    bounds = _Bounds()
    for place, filter_ in enumerate(merged):
        for predicate in filter_:
            for bound in bounds_of(predicate):
                bounds.note(place, bound, merged[filter_])
    for place, predicate_ in bounds.needs():
        if bounded is None or predicate_.columns <= bounded:
            asked[place].add(Conjunction((predicate_,)))
        else:
            # It will be kept as a feature, and features are written in the normal form.
            asked[place].add(conjunction((predicate_,)))
    stored = set(found)
    if bounded is not None:
        stored |= {condition for of_query in asked for condition in of_query if not condition.columns <= bounded}
    filters = sorted(set().union(*asked), key=lambda filter_: (filter_ not in stored, sql(filter_))) if asked else []
    position = {filter_: number for number, filter_ in enumerate(filters)}
    kept = [place for place in range(len(merged)) if asked[place]]
    needs = np.zeros((len(kept), len(filters)), dtype=np.bool_)
    for row, place in enumerate(kept):
        needs[row, [position[filter_] for filter_ in asked[place]]] = True
    all_filters = list(merged)
    return Conditions(
        filters=tuple(filters),
        stored=np.array([filter_ in stored for filter_ in filters], dtype=np.bool_),
        queries=tuple(all_filters[place] for place in kept),
        weights=np.array([merged[all_filters[place]] for place in kept], dtype=np.float64),
        needs=needs,
    )


def _merged(queries: Sequence[Query], time_zone: str | None) -> dict[Conjunction, float]:
    """Add up the weights of equal filters, keeping of each what can be evaluated; in the order of their texts."""
    weights: dict[Conjunction, float] = defaultdict(float)
    of_use: dict[Predicate, bool] = {}
    for query in queries:
        for predicate in query.filter:
            if predicate not in of_use:
                fine = predicate.is_deterministic and cannot_evaluate(predicate, time_zone=time_zone) is None
                of_use[predicate] = fine
        weights[Conjunction(tuple(part for part in query.filter if of_use[part]))] += query.weight
    return {filter_: weights[filter_] for filter_ in sorted(weights, key=sql) if filter_.predicates}


def recurring(merged: dict[Conjunction, float]) -> list[Conjunction]:
    """Find predicates, and sets of predicates that occur together, that queries of enough weight share.

    Sets are found as intersections of two queries, which are all that closed sets of two or more queries can be
    built from; a bound by itself is left to minimum and maximum, together with others it may be part of a set.
    """
    enough = MIN_SUPPORT * sum(merged.values())
    items = [(frozenset(filter_.predicates), weight) for filter_, weight in merged.items()]
    heaviest = sorted(items, key=lambda item: -item[1])[:MOST_PAIRED]
    shared = {one & other for (one, _), (other, _) in itertools.combinations(heaviest, 2)}
    shared |= {frozenset((predicate,)) for one, _ in items for predicate in one}
    shared |= {one for one, _ in items}
    support: dict[Conjunction, float] = {}
    for some in shared:
        if not some or (len(some) == 1 and _is_bound(next(iter(some)))):
            continue
        having = [weight for one, weight in items if some <= one]
        if sum(having) >= enough and (len(having) >= MIN_QUERIES or len(items) == 1):
            support[conjunction(some)] = sum(having)
    return sorted(support, key=lambda feature: (-support[feature], sql(feature)))[:MOST_FEATURES]


def _is_bound(predicate: Predicate) -> bool:
    return bounds_of(predicate) == (predicate,)


def bounds_of(predicate: Predicate) -> tuple[Predicate, ...]:
    """Return what a block's bounds must admit for the predicate to be TRUE somewhere; nothing if they cannot tell.

    >>> from skipstone.predicate.expression import Column
    >>> day = Column("day", pa.int64())
    >>> some = Predicate((InSet(day, tuple(Constant(v, pa.int64()) for v in (3, 5, 9))),))
    >>> [sql(bound) for bound in bounds_of(some)]
    ['day >= 3', 'day <= 9']
    """
    if len(predicate.literals) != 1:
        return ()
    match predicate.literals[0]:
        case Comparison(operator=Operator.EQUAL, left=left, right=Constant() as constant):
            return _between(left, constant, constant)
        case Comparison(operator=operator, right=Constant()) if operator in _RAYS:
            return (predicate,)
        case InSet(expression=expression, values=values, negated=False) if values:
            ordered = sorted(values, key=order_key)
            return _between(expression, ordered[0], ordered[-1])
        case Match(kind=MatchKind.PREFIX, expression=expression, pattern=pattern, negated=False) if pattern:
            return _prefixed(expression, pattern)
        case NullTest():
            return (predicate,)
        case _:
            return ()


_RAYS = frozenset({Operator.LESS, Operator.LESS_EQUAL, Operator.GREATER, Operator.GREATER_EQUAL})


def _between(expression: Expression, least: Constant, greatest: Constant) -> tuple[Predicate, ...]:
    return (
        Predicate((Comparison(Operator.GREATER_EQUAL, expression, least),)),
        Predicate((Comparison(Operator.LESS_EQUAL, expression, greatest),)),
    )


def _prefixed(expression: Expression, pattern: str) -> tuple[Predicate, ...]:
    after = ord(pattern[-1]) + 1
    least = Comparison(Operator.GREATER_EQUAL, expression, Constant(pattern, expression.type))
    if 0xD800 <= after <= 0xDFFF or after > 0x10FFFF:  # not a character: leave the upper end open
        return (Predicate((least,)),)
    beyond = Constant(pattern[:-1] + chr(after), expression.type)
    return (Predicate((least,)), Predicate((Comparison(Operator.LESS, expression, beyond),)))


class _Bounds:
    """The bounds that queries ask for, thinned to a number of different ones for each expression and direction."""

    def __init__(self) -> None:
        self._rays: dict[tuple[Expression, bool], dict[Predicate, list[tuple[int, float]]]] = {}
        self._others: list[tuple[int, Predicate]] = []

    def note(self, query: int, bound: Predicate, weight: float) -> None:
        """Remember that a query needs a bound."""
        literal = bound.literals[0]
        if isinstance(literal, Comparison):
            upwards = literal.operator in (Operator.GREATER, Operator.GREATER_EQUAL)
            of_expression = self._rays.setdefault((literal.left, upwards), {})
            of_expression.setdefault(bound, []).append((query, weight))
        else:
            self._others.append((query, bound))

    def needs(self) -> list[tuple[int, Predicate]]:
        """Return each query with each bound that it needs, rounded outwards where there are too many."""
        needed = list(self._others)
        for (_, upwards), bounds in self._rays.items():
            # From the weakest to the strictest, so that rounding outwards is rounding down.
            ordered = sorted(bounds, key=_strictness, reverse=not upwards)
            kept = _thinned([sum(weight for _, weight in bounds[bound]) for bound in ordered])
            for place, bound in enumerate(ordered):
                weaker = ordered[kept[bisect.bisect_right(kept, place) - 1]]
                needed += [(query, weaker) for query, _ in bounds[bound]]
        return needed


def _strictness(bound: Predicate) -> tuple[object, bool]:
    """Order bounds of one expression by their constants; of x >= 5 and x > 5 (x < 5 and x <= 5) the former first."""
    literal = bound.literals[0]
    assert isinstance(literal, Comparison)
    assert isinstance(literal.right, Constant)
    return order_key(literal.right), literal.operator in (Operator.GREATER, Operator.LESS_EQUAL)


def _thinned(weights: Sequence[float]) -> list[int]:
    """Choose positions that cut the weights into parts of about equal weight, the first position among them."""
    if len(weights) <= MOST_POINTS:
        return list(range(len(weights)))
    before = np.concatenate([[0.0], np.cumsum(weights)[:-1]])
    part = np.floor(before / (before[-1] + weights[-1]) * MOST_POINTS)
    return [0, *(np.flatnonzero(np.diff(part)) + 1).tolist()]


def true_rows(filters: Sequence[Conjunction], rows: pa.Table, *, time_zone: str | None = None) -> Bits:
    """Return for each row and each filter whether the filter may be TRUE, as the writer of blocks finds it.

    A predicate that Arrow refuses to evaluate may be TRUE for all rows: nothing can be skipped by it, and a replica for
    it holds every row. Predicates that several filters share are evaluated once.

    >>> from skipstone.predicate.expression import Column
    >>> x = Column("x", pa.int64())
    >>> positive = Predicate((Comparison(Operator.GREATER, x, Constant(0, pa.int64())),))
    >>> true_rows([Conjunction((positive,)), Conjunction(())], pa.table({"x": [1, -1, None]})).tolist()
    [[True, True], [False, True], [False, True]]
    """
    bits = np.ones((rows.num_rows, len(filters)), dtype=np.bool_, order="F")
    masks: dict[Predicate, NDArray[np.bool_]] = {}
    for number, filter_ in enumerate(filters):
        for predicate in filter_:
            if predicate not in masks:
                masks[predicate] = _mask(predicate, rows, time_zone)
            bits[:, number] &= masks[predicate]
    return bits


def _mask(predicate: Predicate, rows: pa.Table, time_zone: str | None) -> NDArray[np.bool_]:
    try:
        judged = Evaluator(predicate, time_zone=time_zone).evaluate(rows)
    except CannotEvaluate:
        return np.ones(rows.num_rows, dtype=np.bool_)
    return np.asarray(judged.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)
