"""Mine features: conjunctions that subsume many queries, few of them, each adding queries that the others miss.

Sun, "Skipping-oriented Data Design for Large-Scale Analytics", dissertation, 2017, section 3.3:

1. augmentation (3.3.2)   each query is given every predicate of the workload that subsumes it
2. frequent sets          sets of predicates that subsume queries of at least the weight T
3. redundancy (3.3.3)     in order of growing generality, a set stays if it adds queries of at least the weight T: I(F)
4. selection              the numFeat sets of the greatest I(F)

    Q_i       a query                          F         predicates of all queries
    F_i       a predicate set                  T         min_support
    I(F_i)    the weight of the queries that F_i subsumes and no set kept before it does

Two ways to find the frequent sets give the same features. `paper` lists them all, level by level (Agrawal and Srikant,
"Fast Algorithms for Mining Association Rules", VLDB 1994), which blows up where queries have many predicates. `closed`
lists only closed sets: of all sets that subsume the same queries the one with the most predicates. It comes first in
the order of step 3 and leaves the others nothing to add, so nothing but closed sets is ever kept.

Departs from the paper: a query counts by its weight; a predicate subsumes a query if the query's predicates together
imply it; and a column-to-column comparison of dates is not excluded with the ranges of dates, which are left out
because data is usually partitioned by them (3.7.1).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipstone.errors import InvalidInput
from skipstone.predicate.expression import Constant, Expression
from skipstone.predicate.implication_matrix import implication_matrix
from skipstone.predicate.literal import Comparison, Conjunction, InSet, Literal, Predicate
from skipstone.predicate.normalising import conjunction
from skipstone.predicate.printing import sql
from skipstone.workload.query import Feature, Query

__all__ = ["MAX_FEATURES", "SUPPORT_SHARE", "Method", "Mined", "mine", "mine_features", "subsumption"]

MAX_FEATURES = 50
"""numFeat: as many features unless the caller says otherwise; the curves of section 3.7.2 are flat well before that."""

SUPPORT_SHARE = 0.005
"""T as a share of the workload's weight, unless the caller gives it; at least two queries."""

MOST_SETS = 200_000
"""The search stops with an error past so many frequent sets, rather than never."""

Bits = npt.NDArray[np.bool_]


class Method(enum.Enum):
    """How frequent predicate sets are listed."""

    PAPER = "paper"
    """All of them, level by level."""
    CLOSED = "closed"
    """One for each set of queries that some predicate set subsumes exactly."""


@dataclass(frozen=True, slots=True)
class Mined:
    """The features found, how many frequent sets were looked at, and the minimum support that was used."""

    features: tuple[Feature, ...]
    sets: int
    min_support: float


def mine(
    queries: Sequence[Query],
    *,
    min_support: float | None = None,
    max_features: int | None = None,
    exclude: Sequence[str] = (),
    method: Method = Method.CLOSED,
) -> tuple[Feature, ...]:
    """Find the features of a workload, the one that adds most first; see `mine_features`."""
    return mine_features(
        queries, min_support=min_support, max_features=max_features, exclude=exclude, method=method
    ).features


def mine_features(
    queries: Sequence[Query],
    *,
    min_support: float | None = None,
    max_features: int | None = None,
    exclude: Sequence[str] = (),
    method: Method = Method.CLOSED,
) -> Mined:
    """Find features, and say how hard it was.

    `min_support` is T, in units of the queries' weights; predicates on the columns in `exclude` are left aside, and so
    are comparisons of dates and times with constants.
    """
    support = _support(queries, min_support)
    limit = MAX_FEATURES if max_features is None else max_features
    if limit < 0:
        raise InvalidInput(f"max_features must be 0 or more; it is {limit}")
    items = _Items.of(queries, frozenset(exclude), support)
    sets = items.closed_sets() if method is Method.CLOSED else items.frequent_sets()
    kept = _without_redundancy(sets, items, support)
    # The paper sorts by I(F) alone; of equal ones the stricter, then the text, so that the answer is one.
    kept.sort(key=lambda one: (-one[0], -len(one[1].predicates), sql(one[1].filter)))
    return Mined(tuple(_feature(queries, items, chosen) for _, chosen in kept[:limit]), len(sets), support)


def subsumption(features: Sequence[Feature | Conjunction], queries: Sequence[Query]) -> Bits:
    """Tell for each feature and each query whether the feature subsumes the query: whether the query implies it."""
    filters = [feature.filter if isinstance(feature, Feature) else feature for feature in features]
    return implication_matrix([query.filter for query in queries], filters).T


def _support(queries: Sequence[Query], given: float | None) -> float:
    if given is None:
        return max(2.0, SUPPORT_SHARE * sum(query.weight for query in queries))
    if not given > 0:
        raise InvalidInput(f"min_support must be more than 0, in queries; it is {given}")
    return given


@dataclass(frozen=True, slots=True)
class _Set:
    """A predicate set: its predicates, and the queries it subsumes as bits of a whole number."""

    predicates: tuple[int, ...]
    subsumed: int
    filter: Conjunction


@dataclass(frozen=True, slots=True, eq=False)
class _Items:
    """The augmented workload: for each frequent predicate the distinct filters that it subsumes, as bits."""

    predicates: tuple[Predicate, ...]
    subsumed: tuple[int, ...]
    weights: npt.NDArray[np.float64]
    query_bit: tuple[int, ...]
    support: float

    @classmethod
    def of(cls, queries: Sequence[Query], exclude: frozenset[str], support: float) -> _Items:
        """Augment: one bit matrix of distinct filters by predicates, of which the frequent predicates are kept."""
        bit_of: dict[Conjunction, int] = {}
        query_bit = tuple(bit_of.setdefault(query.filter, len(bit_of)) for query in queries)
        weights = np.zeros(len(bit_of))
        np.add.at(weights, np.array(query_bit, dtype=np.int64), [query.weight for query in queries])
        found = {predicate: None for filter_ in bit_of for predicate in filter_ if _is_minable(predicate, exclude)}
        predicates = sorted(found, key=sql)
        matrix = implication_matrix(list(bit_of), predicates) if predicates else np.zeros((len(bit_of), 0), np.bool_)
        frequent = np.flatnonzero(weights @ matrix >= support) if predicates else np.empty(0, np.int64)
        return cls(
            tuple(predicates[number] for number in frequent),
            tuple(_as_bits(matrix[:, number]) for number in frequent),
            weights,
            query_bit,
            support,
        )

    def weight(self, subsumed: int) -> float:
        """The weight of the queries whose bits are set."""
        return float(self.weights[_positions(subsumed)].sum())

    def set_of(self, predicates: Iterable[int], subsumed: int) -> _Set:
        """A predicate set; its filter says the same in canonical form, where implied predicates have gone."""
        chosen = tuple(predicates)
        return _Set(chosen, subsumed, conjunction(self.predicates[number] for number in chosen))

    def frequent_sets(self) -> list[_Set]:
        """List all frequent sets, those of k + 1 predicates made of two of k that share k - 1 (VLDB 1994, apriori)."""
        level: dict[tuple[int, ...], int] = {(number,): bits for number, bits in enumerate(self.subsumed)}
        found: dict[tuple[int, ...], int] = {}
        while level:
            found |= level
            if len(found) > MOST_SETS:
                raise _too_many(len(found))
            longer: dict[tuple[int, ...], int] = {}
            keys = sorted(level)
            for position, first in enumerate(keys):
                for second in keys[position + 1 :]:
                    if first[:-1] != second[:-1]:
                        break
                    bits = level[first] & level[second]
                    if self.weight(bits) >= self.support:
                        longer[(*first, second[-1])] = bits
            level = longer
        return [self.set_of(chosen, bits) for chosen, bits in found.items()]

    def closed_sets(self) -> list[_Set]:
        """List the closed frequent sets, each once: a depth-first search that extends a set and takes the closure.

        Kuznetsov, "A fast algorithm for computing all intersections of objects from an arbitrary semilattice", 1993
        (close by one): an extension by predicate p is canonical if its closure adds no predicate before p.
        """
        # Predicates that subsume the same queries are in the same closed sets, so one of them stands for all.
        distinct = sorted(dict.fromkeys(self.subsumed), key=lambda bits: (-bits.bit_count(), bits))
        everything = (1 << len(self.weights)) - 1
        found: dict[int, None] = {}
        stack: list[tuple[int, int]] = [(everything, 0)]
        while stack:
            extent, first = stack.pop()
            for number in range(len(distinct) - 1, first - 1, -1):
                bits = extent & distinct[number]
                if bits == extent or bits in found or self.weight(bits) < self.support:
                    continue
                if any(not bits & ~distinct[before] and extent & ~distinct[before] for before in range(number)):
                    continue
                found[bits] = None
                if len(found) > MOST_SETS:
                    raise _too_many(len(found))
                stack.append((bits, number + 1))
        if everything in distinct and self.weight(everything) >= self.support:
            found[everything] = None
        return [
            self.set_of((n for n, subsumed in enumerate(self.subsumed) if not bits & ~subsumed), bits) for bits in found
        ]


def _without_redundancy(sets: Sequence[_Set], items: _Items, support: float) -> list[tuple[float, _Set]]:
    """Keep the sets that add enough queries to those kept before them, the strict before the general."""
    # A set that another subsumes subsumes no more queries than it does, so growing weight is growing generality.
    ordered = sorted(sets, key=lambda one: (items.weight(one.subsumed), -len(one.predicates), sql(one.filter)))
    covered = 0
    kept: list[tuple[float, _Set]] = []
    for one in ordered:
        added = items.weight(one.subsumed & ~covered)
        if added >= support:
            kept.append((added, one))
            covered |= one.subsumed
    return kept


def _feature(queries: Sequence[Query], items: _Items, chosen: _Set) -> Feature:
    subsumed = [query for query, bit in zip(queries, items.query_bit, strict=True) if chosen.subsumed >> bit & 1]
    columns = sorted({column for query in subsumed for column in query.columns})
    return Feature(chosen.filter, sum(query.weight for query in subsumed), tuple(columns))


def _too_many(sets: int) -> InvalidInput:
    return InvalidInput(
        f"more than {sets - 1:,} predicate sets are frequent. Hint: raise min_support, or exclude columns whose ranges "
        "differ from query to query"
    )


def _is_minable(predicate: Predicate, exclude: frozenset[str]) -> bool:
    return (
        predicate.is_deterministic
        and exclude.isdisjoint(predicate.columns)
        and not any(_is_date_range(literal) for literal in predicate.literals)
    )


def _is_date_range(literal: Literal) -> bool:
    match literal:
        case Comparison(left=left, right=Constant()) | InSet(expression=left):
            return _is_temporal(left)
        case _:
            return False


def _is_temporal(expression: Expression) -> bool:
    return bool(pa.types.is_temporal(expression.type))


def _as_bits(column: Bits) -> int:
    return int.from_bytes(np.packbits(column, bitorder="little").tobytes(), "little")


def _positions(bits: int) -> npt.NDArray[np.int64]:
    width = (bits.bit_length() + 7) // 8
    unpacked = np.unpackbits(np.frombuffer(bits.to_bytes(width, "little"), np.uint8), bitorder="little")
    return np.flatnonzero(unpacked)
