"""What a design is for: families of queries that want the same of the table, and the rows that each of them asks for.

Queries of one family read the same columns and filter on the same ones; they differ in constants. A layout made
for one family has all the columns that it reads, so that it reads no row ids; it holds the rows that the family can ask
for, and blocks cut for its filters alone. That is the best that a family can be given, and the workload's best scheme
where storage does not matter. `serving` searches from there.

Which rows a family can ask for is told by a *cover*: general features, one of which subsumes each of its queries.

    WHERE c_nationkey = s_nationkey AND cr_name = '...' AND o_orderdate >= '...'   cover: c_nationkey = s_nationkey
    WHERE sn_name = '...'                                                          no cover: the whole table

A query that its cover does not subsume reads whole columns, so covers are made of some of the filters and tried on the
others first. Where they miss some, as they do where each query has another range of days, just the conditions that many
filters have in common are taken; where those miss, too, there is no cover.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from skipstone.layout.clustering.conditions import true_rows
from skipstone.layout.grouping.problem import DesignProblem
from skipstone.layout.vectors import Bits
from skipstone.predicate.implication import implication_matrix
from skipstone.predicate.literal import Conjunction, Predicate
from skipstone.predicate.normalising import conjunction
from skipstone.predicate.printing import sql
from skipstone.workload.mining import mine
from skipstone.workload.query import Query

__all__ = ["Cover", "Family", "cover_of", "families_of", "general_features"]

MOST_FAMILIES = 40
"""The heaviest families are designed for; the others join the one whose columns are most like theirs."""

FEWEST_FILTERS = 3

GENERAL = 0.1
"""A feature of a cover subsumes this share of the family's different filters, and `FEWEST_FILTERS` of them, or all
where there are fewer. What is asked for less often says nothing of queries that are still to come."""

SUPPORTS = (0.99, 0.5)
"""Besides features of that share, those that (nearly) all queries of a family have in common, and half of them."""

MOST_GENERAL = 24
"""Of each family so many general features are considered."""

WORTH_KEEPING_APART = 0.9
"""A cover that holds this share of the rows is not worth it: the whole table serves queries never seen as well."""

MOST_UNCOVERED = 0.01
"""Queries that the cover does not subsume have to read the master columns in full; more of them are not put up with."""

MOST_MISSED = 0.03
"""The share of a family's filters that covers made without them may miss. Those are made of fewer filters than the
cover that is used, so that they miss more."""

ASKED_AGAIN = 3
"""A family of few filters is taken to have no others where each was asked so many times."""

FOLDS = 4
"""Covers are made of three quarters of the filters and tried on the last."""


@dataclass(frozen=True, slots=True)
class Family:
    """Queries by their numbers, and the columns that they read together."""

    queries: tuple[int, ...]
    columns: frozenset[int]


@dataclass(frozen=True, slots=True)
class Cover:
    """The features whose rows a layout holds; None: it holds all rows."""

    features: frozenset[int] | None

    def __or__(self, other: Cover) -> Cover:
        if self.features is None or other.features is None:
            return Cover(None)
        return Cover(self.features | other.features)


def families_of(problem: DesignProblem, most: int = MOST_FAMILIES) -> tuple[Family, ...]:
    """Sort the queries of a problem into families, the heaviest first."""
    alike: dict[_Likeness, list[int]] = {}
    for number, query in enumerate(problem.queries):
        alike.setdefault(_likeness(query), []).append(number)
    heaviest = sorted(alike, key=lambda key: (-_weight(problem, alike[key]), sorted(key[0]), sorted(key[1])))
    kept = {key: list(alike[key]) for key in heaviest[:most]}
    for key in heaviest[most:]:
        likest = max(kept, key=lambda one: len(one[0] & key[0]) / max(1, len(one[0] | key[0])))
        kept[likest] += alike[key]
    return tuple(Family(tuple(sorted(queries)), _columns(problem, queries)) for queries in kept.values())


def general_features(queries: Sequence[Query], most: int = MOST_FAMILIES) -> tuple[Conjunction, ...]:
    """Mine what the queries of each family have in common, dates and times included, for covers to choose from.

    The features of a whole workload are those that help most queries; a family that is a small part of it would find no
    feature there that subsumes all of its queries.
    """
    alike: dict[_Likeness, list[Query]] = {}
    for query in queries:
        alike.setdefault(_likeness(query), []).append(query)
    heaviest = sorted(alike.values(), key=lambda some: -sum(query.weight for query in some))
    return tuple(dict.fromkeys(feature for some in heaviest[:most] for feature in _general(some)))


def _general(queries: Sequence[Query]) -> list[Conjunction]:
    """Features that queries of one family have in common, and what of them is written in many of the filters."""
    found: dict[Conjunction, None] = {}
    # Mining drops what is general where special features cover the same queries; covers want both to choose from.
    for support in (*SUPPORTS, GENERAL):
        mined = mine(queries, min_support=support, max_features=MOST_GENERAL, exclude_dates=False)
        found |= dict.fromkeys(feature.filter for feature in mined)
    recurring = _recurring(queries)
    kept = (conjunction(one for one in feature if one in recurring) for feature in found)
    return list(dict.fromkeys([*found, *(one for one in kept if one.predicates)]))


def _recurring(queries: Sequence[Query]) -> frozenset[Predicate]:
    """The conditions that several different filters are written with, rather than implied by."""
    times = Counter(predicate for filter_ in {query.filter for query in queries} for predicate in filter_)
    return frozenset(predicate for predicate, count in times.items() if count >= FEWEST_FILTERS)


def cover_of(problem: DesignProblem, family: Family) -> Cover:
    """Find general features that subsume the family's queries, those still to come as well, and hold few rows."""
    texts = {sql(problem.queries[number].filter): number for number in reversed(family.queries)}
    different = [texts[text] for text in sorted(texts)]
    queries = [problem.queries[number] for number in different]
    recurring = _recurring(queries)
    rows = problem.vectors.counts @ problem.vectors.bits
    weights, weight = problem.weights[different], _weight(problem, family.queries)
    for only in (None, recurring):
        if _missed(problem, queries, weight, only) > MOST_MISSED:
            continue
        usable = np.array([only is None or only.issuperset(feature) for feature in problem.features], np.bool_)
        chosen = _covering(problem.kinds[problem.kind_of[different]] & usable, rows, weights)
        if chosen and problem.share(chosen) <= WORTH_KEEPING_APART:
            return Cover(frozenset(chosen))
    return Cover(None)


def _missed(
    problem: DesignProblem, queries: Sequence[Query], weight: float, only: frozenset[Predicate] | None
) -> float:
    """The share of queries that covers made of the others, of these conditions only, do not subsume.

    The queries have different filters; `weight` is that of all that are asked with these.
    """
    if len(queries) < 2 * FOLDS:
        # Too few to tell; but where the same ones are asked again and again, more of them may be expected.
        return 0.0 if weight >= ASKED_AGAIN * len(queries) else 1.0
    missed = 0
    for fold in range(FOLDS):
        known = [query for place, query in enumerate(queries) if place % FOLDS != fold]
        unseen = queries[fold::FOLDS]
        features = [one for one in _general(known) if only is None or only.issuperset(one)]
        subsumed = implication_matrix([query.filter for query in known], features)
        rows = true_rows(features, problem.sample).sum(axis=0)
        cover = _covering(subsumed, rows, np.array([query.weight for query in known]))
        if not cover:
            return 1.0
        covered = implication_matrix([query.filter for query in unseen], [features[one] for one in cover])
        missed += int((~covered.any(axis=1)).sum())
    return missed / len(queries)


def _covering(subsumed: Bits, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> list[int]:
    """Choose features that subsume all but few queries: the greedy set cover, fewest rows for the weight it adds first.

    Features that subsume only some of the queries are not chosen; none are where the others do not suffice.
    """
    enough = min(len(subsumed), max(FEWEST_FILTERS, GENERAL * len(subsumed)))
    candidates = np.flatnonzero(subsumed.sum(axis=0) >= enough)
    open_ = np.ones(len(subsumed), dtype=np.bool_)
    chosen: list[int] = []
    while open_.any() and len(candidates):
        gained = weights[open_] @ subsumed[np.ix_(open_, candidates)]
        if not gained.any():
            break
        best = int(np.argmin(np.where(gained > 0, (rows[candidates] + 1) / np.maximum(gained, 1e-12), np.inf)))
        chosen.append(int(candidates[best]))
        open_ &= ~subsumed[:, candidates[best]]
    uncovered = weights[open_].sum() / max(weights.sum(), 1e-12)
    return chosen if uncovered <= MOST_UNCOVERED else []


def _weight(problem: DesignProblem, queries: Sequence[int]) -> float:
    return float(problem.weights[list(queries)].sum())


def _columns(problem: DesignProblem, queries: Sequence[int]) -> frozenset[int]:
    read: Bits = np.asarray(problem.accesses[list(queries)].any(axis=0))
    return frozenset(np.flatnonzero(read).tolist())


_Likeness: TypeAlias = tuple[frozenset[str], frozenset[str]]


def _likeness(query: Query) -> _Likeness:
    """What queries of one family have in common: the columns they read, and those that they filter on."""
    return frozenset(query.columns), frozenset(query.filter.columns)
