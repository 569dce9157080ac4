"""Features out of queries: filters that subsume many of them.

Sun, "Skipping-oriented Data Design for Large-Scale Analytics", PhD thesis, UC Berkeley, 2017, sections 3.3.2 and 3.3.3.
Both methods here start from the augmented workload: for each predicate f that occurs anywhere, the queries that have a
predicate which f subsumes. They differ in how they get from there to the features.

`paper` enumerates all frequent predicate sets level by level and then throws most of them away. `closed` walks only the
closed sets that can still be kept. Both give the same features (`tests/workload/test_mining.py`), because both go
through the candidates in one order; `docs/algorithms/feature_mining.md` has the argument.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skipstone.errors import InvalidInput, near_miss
from skipstone.predicate.expression import Column, Constant, Expression, walk
from skipstone.predicate.implication import premise_of
from skipstone.predicate.literal import Comparison, InSet, Literal, Match, NullTest, Opaque, Operator, Predicate
from skipstone.predicate.normalising import conjunction
from skipstone.predicate.printing import sql
from skipstone.workload.query import Feature, Query
from skipstone.workload.subsumption import Implications, Occurrences

__all__ = [
    "DEFAULT_MAX_FEATURES",
    "DEFAULT_MIN_SUPPORT",
    "METHODS",
    "MinedFeature",
    "Mining",
    "is_minable",
    "mine",
    "mine_features",
]

DEFAULT_MIN_SUPPORT = 0.01
"""T as a share of the workload's weight: a feature should earn its place with one query in a hundred."""

DEFAULT_MAX_FEATURES = 50
"""numFeat. The dissertation uses 15 (TPC-H) and 40 (Conviva), finds that more do no harm, and speaks of "< 50"."""

MOST_SETS = 200_000
"""Predicate sets that the paper's method may enumerate; then it stops at the length it has reached, and says so."""


@dataclass(frozen=True, slots=True)
class MinedFeature:
    """A feature with what it adds: `additional` is I(F), the weight of queries that no more special feature
    subsumes."""

    feature: Feature
    additional: float


@dataclass(frozen=True, slots=True)
class Mining:
    """What mining found, in descending order of I(F), and what it did for it.

    `min_support` is T as a weight. `stopped_at` is the length of predicate sets at which the paper's method gave up
    enumerating, or None; `examined` counts the predicate sets that were looked at.
    """

    features: tuple[MinedFeature, ...]
    min_support: float
    predicates: int
    frequent_predicates: int
    examined: int
    stopped_at: int | None = None


def mine(
    queries: Sequence[Query],
    *,
    min_support: float = DEFAULT_MIN_SUPPORT,
    max_features: int = DEFAULT_MAX_FEATURES,
    exclude: Iterable[str] = (),
    exclude_dates: bool = True,
    complete: bool = True,
    method: str = "closed",
) -> tuple[Feature, ...]:
    """Mine the features of a workload, the most useful first.

    `min_support` is the paper's T: below 1 a share of the workload's weight, else a weight. Predicates on columns in
    `exclude` are left out, and by default those that compare dates or times with constants, which change from run to
    run and are better served by ranges. `complete` adds general features at the end for queries that the paper's
    elimination leaves without any.

    >>> from skipstone.predicate.parsing import parse_filter
    >>> schema = pa.schema([("product", pa.string()), ("revenue", pa.int64())])
    >>> filters = ("product = 'shoes'", "product IN ('shoes', 'shirts') AND revenue > 32",
    ...            "product = 'shirts' AND revenue > 21")
    >>> queries = [Query(("product", "revenue"), parse_filter(text, schema)) for text in filters]
    >>> for feature in mine(queries, min_support=2):
    ...     print(feature.weight, sql(feature.filter))
    2.0 product IN ('shirts', 'shoes') AND revenue > 21
    3.0 product IN ('shirts', 'shoes')
    """
    mining = mine_features(
        queries,
        min_support=min_support,
        max_features=max_features,
        exclude=exclude,
        exclude_dates=exclude_dates,
        complete=complete,
        method=method,
    )
    return tuple(mined.feature for mined in mining.features)


def mine_features(
    queries: Sequence[Query],
    *,
    min_support: float = DEFAULT_MIN_SUPPORT,
    max_features: int = DEFAULT_MAX_FEATURES,
    exclude: Iterable[str] = (),
    exclude_dates: bool = True,
    complete: bool = True,
    method: str = "closed",
) -> Mining:
    """Mine features and say how: see `mine`."""
    threshold = _threshold(min_support, queries)
    if max_features < 0:
        raise InvalidInput(f"the number of features must be 0 or more, it is {max_features}")
    items = _Items.of(queries, threshold, frozenset(exclude), exclude_dates)
    kept, examined, stopped_at = _method(method)(items, threshold)
    if complete:
        kept = [*kept, *_completing(items, kept)]
    found = [items.feature(extent, gain, queries) for extent, gain in kept]
    found.sort(key=lambda mined: (-mined.additional, -mined.feature.weight, sql(mined.feature.filter)))
    return Mining(
        tuple(found[:max_features]), threshold, items.predicate_count, len(items.predicates), examined, stopped_at
    )


def _threshold(min_support: float, queries: Sequence[Query]) -> float:
    if not min_support > 0:
        raise InvalidInput(f"the minimum support must be more than 0, it is {min_support:g}")
    total = sum(query.weight for query in queries)
    return min_support * total if min_support < 1 else float(min_support)


def _method(name: str) -> Callable[[_Items, float], _Kept]:
    if name not in METHODS:
        nearest = near_miss(name, METHODS)
        hint = f' Did you mean "{nearest}"?' if nearest else ""
        raise InvalidInput(f'no mining method "{name}".{hint} There are: {", ".join(METHODS)}')
    return METHODS[name]


_Kept = tuple[list[tuple[np.ndarray, float]], int, int | None]
"""The extents (which transactions) of the sets that were kept, each with its I(F); how many sets were looked at; where
the enumeration stopped."""


@dataclass(frozen=True, slots=True, eq=False)
class _Items:
    """The frequent predicates of an augmented workload: `rows[i, q]` tells whether predicate i subsumes transaction q.

    A transaction is a distinct set of minable predicates with the weight of the queries that have it. Predicates are in
    order of ascending support, then of their text: the order that both methods go by.
    """

    predicates: tuple[Predicate, ...]
    rows: np.ndarray
    weights: np.ndarray
    transaction_of: np.ndarray
    """For each query its transaction, or -1 where no minable predicate is left of it."""
    predicate_count: int

    @classmethod
    def of(cls, queries: Sequence[Query], threshold: float, excluded: frozenset[str], exclude_dates: bool) -> _Items:
        """Augment the workload (section 3.3.2) and keep the predicates that subsume at least T queries."""
        transactions: dict[frozenset[Predicate], int] = {}
        minable: dict[Predicate, bool] = {}
        transaction_of = np.full(len(queries), -1, dtype=np.int64)
        sums: list[float] = []
        for number, query in enumerate(queries):
            for predicate in query.filter:
                if predicate not in minable:
                    minable[predicate] = is_minable(predicate, excluded, exclude_dates)
            chosen = frozenset(predicate for predicate in query.filter if minable[predicate])
            if not chosen or premise_of(query.filter).is_impossible:
                continue
            place = transactions.setdefault(chosen, len(transactions))
            if place == len(sums):
                sums.append(0.0)
            sums[place] += query.weight
            transaction_of[number] = place
        weights = np.array(sums, dtype=np.float64)
        occurring = Occurrences.of([sorted(chosen, key=sql) for chosen in transactions])
        implications = Implications(occurring.predicates, occurring.predicates)
        supports = implications.supports(occurring, weights)
        frequent = [number for number, support in enumerate(supports) if support >= threshold]
        frequent.sort(key=lambda number: (supports[number], sql(occurring.predicates[number])))
        rows = implications.subsumed(occurring, np.array(frequent, dtype=np.int64))
        predicates = tuple(occurring.predicates[number] for number in frequent)
        return cls(predicates, rows, weights, transaction_of, len(occurring.predicates))

    def feature(self, extent: np.ndarray, gain: float, queries: Sequence[Query]) -> MinedFeature:
        """Make the feature of a closed set: the conjunction of the predicates that all of its queries share."""
        members = np.flatnonzero(self.rows[:, extent].all(axis=1))
        filter_ = conjunction(_strictest([self.predicates[member] for member in members]))
        # The entry for -1, a query without a transaction, is the one put at the end.
        subsumed = np.flatnonzero(np.append(extent, False)[self.transaction_of])
        columns = sorted({column for number in subsumed.tolist() for column in queries[number].columns})
        return MinedFeature(Feature(filter_, float(self.weights[extent].sum()), tuple(columns)), gain)


def _strictest(predicates: Sequence[Predicate]) -> list[Predicate]:
    """Leave out what another predicate of the set implies (of two that imply each other, the later in the text)."""
    ordered = sorted(predicates, key=sql)
    every = Occurrences.of([[predicate] for predicate in ordered])
    implied_by = Implications(every.predicates, every.predicates).subsumed(every)
    kept = []
    for number, predicate in enumerate(every.predicates):
        by = np.flatnonzero(implied_by[number])
        if not any(other != number and (not implied_by[other, number] or other < number) for other in by):
            kept.append(predicate)
    return kept


_Set = tuple[tuple[int, ...], np.ndarray]
"""A predicate set, as positions of its predicates, and its extent."""


def _closed(items: _Items, threshold: float) -> _Kept:
    """Walk the closed predicate sets that can still be kept, the most special first.

    Section 3.3.3 of the dissertation, without the list of all frequent sets:

        F_i            a node: `extent` and the predicates all of its transactions share
        subsume(F_i)   extent            Q_c    covered
        I(F_i)         the weight of extent that is not covered
        T              threshold

    A node is decided after everything more special than it, so the walk is one of the orders that the paper allows.
    What is below T without the covered queries is so for ever, since Q_c only grows, and so is all that is more
    special: it is not entered. Hence whatever is entered is kept or holds something that is, and the walk visits at
    most (number of features) x (length of the longest chain) nodes, however many sets are frequent.

    Departs from the paper: the candidates are closed sets only. A set and its closure subsume the same queries; the
    closure is the stricter one and is decided first, after which the others add nothing (I = 0), or as little as it.
    """
    rows, weights = items.rows, items.weights
    covered = np.zeros(weights.size, dtype=np.bool_)
    kept: list[tuple[np.ndarray, float]] = []
    path = [np.ones(weights.size, dtype=np.bool_)] if weights.size and len(rows) else []
    examined = len(path)
    while path:
        extent = path[-1]
        open_ = extent & ~covered
        gains = rows[:, open_] @ weights[open_]
        # A predicate that all of the extent share does not make it smaller; it is in the closure already.
        shared = rows[:, extent].all(axis=1)
        narrower = np.flatnonzero((gains >= threshold) & ~shared)
        if narrower.size:
            path.append(extent & rows[narrower[0]])
            examined += 1
            continue
        path.pop()
        gain = float(weights[open_].sum())
        if gain >= threshold and shared.any():
            kept.append((extent, gain))
            covered |= extent
    return kept, examined, None


def _paper(items: _Items, threshold: float) -> _Kept:
    """Enumerate all frequent predicate sets, and eliminate the redundant ones in order of growing generality.

    Sections 3.3.2 (frequent itemset mining over the augmented workload) and 3.3.3 (elimination by I(F)). Level by
    level as apriori does: a set of n + 1 predicates is looked at if two of its subsets of n were frequent.

    Departs from the paper: sets that subsume the same queries are equally general; of those the longest comes first.
    Beyond `MOST_SETS` the enumeration stops at the length it has reached, as in "Fragment Skipper", section V.B.2, and
    the result says so.
    """
    found: list[_Set] = []
    level: list[_Set] = [((number,), row) for number, row in enumerate(items.rows)]
    stopped_at: int | None = None
    while level:
        found += level
        room = MOST_SETS - len(found)
        longer = list(itertools.islice(_next_level(level, items, threshold), room + 1))
        if len(longer) > room:
            stopped_at = len(level[0][0])
            break
        level = longer
    ordered = sorted(found, key=lambda one: (_order_of(items, one[1]), -len(one[0]), one[0]))
    covered = np.zeros(items.weights.size, dtype=np.bool_)
    kept = []
    for _, extent in ordered:
        gain = float(items.weights[extent & ~covered].sum())
        if gain >= threshold:
            kept.append((extent, gain))
            covered |= extent
    return kept, len(found), stopped_at


def _next_level(level: Sequence[_Set], items: _Items, threshold: float) -> Iterator[_Set]:
    """Join the sets of one length that differ in their last predicate only."""
    for _, group in itertools.groupby(level, key=lambda one: one[0][:-1]):
        members = list(group)
        for number, (first, extent) in enumerate(members):
            for second, other in members[number + 1 :]:
                joined = extent & other
                if items.weights[joined].sum() >= threshold:
                    yield (*first, second[-1]), joined


def _order_of(items: _Items, extent: np.ndarray) -> tuple[bool, ...]:
    """Where a set stands in the order of growing generality: by its closure, member by member, having before lacking.

    A closure that holds another comes before it, so this is one of the orders that the paper allows; and it is the
    order in which the walk over closed sets decides them.
    """
    lacks: np.ndarray = np.logical_not(items.rows[:, extent].all(axis=1))
    return tuple(lacks.tolist())


def _completing(items: _Items, kept: Sequence[tuple[np.ndarray, float]]) -> Iterator[tuple[np.ndarray, float]]:
    """Go on until every query that some frequent predicate subsumes is subsumed by a feature.

    Elimination leaves out what adds less than T, and so leaves queries without any feature that a general one could
    have served: of a hundred queries with one fixed condition, the few whose other conditions are rare. For those the
    most general sets are taken, the closure of one frequent predicate each, the one that adds most first.

    Departs from the paper: it has no such step. What comes of it has I(F) < T and stands at the end of the list.
    """
    covered = np.zeros(items.weights.size, dtype=np.bool_)
    for extent, _ in kept:
        covered |= extent
    while len(items.rows):
        gains = items.rows[:, ~covered] @ items.weights[~covered]
        # Of two that add the same, the rarer predicate is the stricter one, and comes first here.
        best = int(np.argmax(gains))
        if not gains[best] > 0:
            return
        yield items.rows[best], float(gains[best])
        covered |= items.rows[best]


METHODS: dict[str, Callable[[_Items, float], _Kept]] = {"closed": _closed, "paper": _paper}
"""How features can be mined: ours, and the dissertation's procedure as it is written."""


# What is mined ---------------------------------------------------------------------------------------------------


def is_minable(predicate: Predicate, excluded: frozenset[str] = frozenset(), exclude_dates: bool = True) -> bool:
    """Whether a predicate may be part of a feature: it depends on the row alone, and what it says may rule rows out."""
    if not predicate.literals or not predicate.is_deterministic or not predicate.columns:
        return False
    if not excluded.isdisjoint(predicate.columns) or _says_little(predicate):
        return False
    return not (exclude_dates and any(_compares_times_with_constants(literal) for literal in predicate.literals))


def _says_little(predicate: Predicate) -> bool:
    """Whether a predicate is a disjunction with a negation in it, such as `brand <> 'x' OR size <= 5`.

    It holds for nearly every row, so no block could be skipped for it. Queries do not write such conditions; they come
    by the dozen from bringing (a AND b) OR (c AND d) into conjunctive form, which is how the query is understood, and
    would drown the conditions that it shares with others.
    """
    return len(predicate.literals) > 1 and any(_is_negation(literal) for literal in predicate.literals)


def _is_negation(literal: Literal) -> bool:
    match literal:
        case Comparison(operator=operator):
            return operator in (Operator.NOT_EQUAL, Operator.NULL_SAFE_NOT_EQUAL)
        case InSet(negated=negated) | Match(negated=negated) | NullTest(negated=negated):
            return negated
        case Opaque():
            return False


def _compares_times_with_constants(literal: Literal) -> bool:
    """Whether a literal sets a date or a time against constants.

    Section 3.7.3 leaves date filters to partitions by month. What they share is that their constants move with the
    calendar; `l_commitdate < l_receiptdate` has none, recurs as it is, and stays.
    """
    match literal:
        case Comparison(left=left, right=Constant()) | InSet(expression=left) | Match(expression=left):
            return _is_about_time(left)
        case Comparison() | NullTest() | Opaque():
            return False


def _is_about_time(expression: Expression) -> bool:
    return any(
        isinstance(part, Column) and (pa.types.is_date(part.type) or pa.types.is_timestamp(part.type))
        for part in walk(expression)
    )
