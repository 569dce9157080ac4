"""The two basic ways to replicate: single features selectively, or the table as a whole.

Sun, dissertation, 2017, section 5.3. Both begin with GSOP and take its grouping as given:

    selective     Repl(f): the rows that satisfy f, with rel-cols(f); the groups do without f from then on   (5.3.1)
    full copies   features are clustered into m sets, and each of m copies is grouped by GSOP for one of them  (5.3.2)

Departs from the paper: how the cost model of 5.4 judges a set of features while features are clustered is left open
there; here it is what queries read where each reads the copy that serves it best and a copy is one layout, because to
group the columns for each of thousands of pairs is out of reach. Of the features that might be replicated next, the
dozen that help most by themselves are tried with the groups clustered anew. A copy beyond the first has no masters; a
feature that every row satisfies makes it hold all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft
from skipstone.layout.grouping.rows_read import RowsRead
from skipstone.layout.replication.fitted_rows import with_always
from skipstone.layout.replication.gsop_r import ROUNDING, Designed, SchemeCosts, require_budget
from skipstone.layout.replication.pieces import relevant_columns
from skipstone.layout.vectors import distinct

__all__ = ["Grouping", "clusters_of_features", "full_copies", "selective_replication"]

MOST_OFFERS = 12
"""So many features, whose replicas help most while the groups stay as they are, are tried with the groups made anew."""

Grouping: TypeAlias = Callable[[DesignProblem], tuple[LayoutDraft, ...]]
"""GSOP as a black box: column groups with local features for a problem."""


def selective_replication(costs: SchemeCosts, groups: tuple[LayoutDraft, ...], budget: float) -> Designed:
    """Replicate one feature after the other, each time the one after which the workload reads least (5.3.1).

    It ends when no feature fits into the budget, or none that fits helps.
    """
    require_budget(budget)
    relevant = relevant_columns(costs.problem)
    layouts = groups
    best = costs.queries(layouts)
    waiting = sorted(relevant)
    chosen: list[int] = []
    tried = 1
    while True:
        picked: tuple[float, int, tuple[LayoutDraft, ...]] | None = None
        offers = [(one, _with_replica(layouts, one, relevant[one])) for one in waiting]
        offers = [offer for offer in offers if costs.storage(offer[1]) <= budget + ROUNDING]
        # What a replica does for its own queries is known before any group is clustered without its feature.
        offers.sort(key=lambda offer: costs.queries((*layouts, offer[1][-1])))
        for feature, replicated in offers[:MOST_OFFERS]:
            tried += 1
            cost = costs.queries(replicated)
            if cost < best and (picked is None or cost < picked[0]):
                picked = (cost, feature, replicated)
        if picked is None:
            return Designed(layouts, best, costs.storage(layouts), tried, tuple(f"Repl({one})" for one in chosen))
        best, feature, layouts = picked
        waiting.remove(feature)
        chosen.append(feature)


def full_copies(
    problem: DesignProblem, copies: int, grouping: Grouping, counter: RowsRead
) -> tuple[DesignProblem, tuple[LayoutDraft, ...]]:
    """Design `copies` copies of the table, each for a cluster of the features (5.3.2).

    Gives the layouts with the problem that they are for, which has one feature more: all rows satisfy it.
    """
    layouts: list[LayoutDraft] = []
    everything = len(problem.features)
    clusters = clusters_of_features(problem, copies, counter) or (frozenset[int](),)
    for number, cluster in enumerate(clusters):
        chosen = sorted(cluster)
        for group in grouping(_narrowed(problem, chosen)):
            features = frozenset(chosen[feature] for feature in group.features)
            masters = group.columns if number == 0 else frozenset[int]()
            layouts.append(LayoutDraft(group.columns, features | ({everything} if number else frozenset()), masters))
    return with_always(problem), tuple(layouts)


def clusters_of_features(problem: DesignProblem, wanted: int, counter: RowsRead) -> tuple[frozenset[int], ...]:
    """Merge features bottom up until `wanted` clusters are left, each time the pair that costs least.

    Features that subsume the same queries are one from the beginning.
    """
    alike: dict[bytes, set[int]] = {}
    for feature in range(len(problem.features)):
        alike.setdefault(problem.kinds[:, feature].tobytes(), set()).add(feature)
    clusters = [frozenset(one) for one in alike.values()]
    weights = problem.weights * problem.accesses.sum(axis=1)
    read = {cluster: _read(problem, cluster, counter) for cluster in clusters}
    while len(clusters) > max(1, wanted):
        best: tuple[float, int, int] | None = None
        for one, other in combinations(range(len(clusters)), 2):
            union = clusters[one] | clusters[other]
            if union not in read:
                read[union] = _read(problem, union, counter)
            rest = [read[cluster] for place, cluster in enumerate(clusters) if place not in (one, other)]
            cost = float(weights @ np.minimum.reduce([read[union], *rest]))
            if best is None or cost < best[0]:
                best = (cost, one, other)
        assert best is not None
        _, one, other = best
        union = clusters[one] | clusters[other]
        clusters = [cluster for place, cluster in enumerate(clusters) if place not in (one, other)] + [union]
    return tuple(sorted(clusters, key=lambda cluster: (-len(cluster), sorted(cluster))))


def _read(problem: DesignProblem, features: frozenset[int], counter: RowsRead) -> NDArray[np.float64]:
    """The rows that each query reads of a copy in one layout."""
    whole = LayoutDraft.group(range(len(problem.columns)), features)
    return counter.rows(whole, problem.readers(whole.columns))


def _narrowed(problem: DesignProblem, features: list[int]) -> DesignProblem:
    """The problem with some of its features only."""
    kinds, kind_of = distinct(problem.kinds[:, features])
    vectors, _ = distinct(problem.vectors.bits[:, features], problem.vectors.counts)
    return replace(
        problem,
        features=tuple(problem.features[feature] for feature in features),
        kinds=kinds.bits,
        kind_of=kind_of[problem.kind_of],
        vectors=vectors,
    )


def _with_replica(layouts: tuple[LayoutDraft, ...], feature: int, columns: frozenset[int]) -> tuple[LayoutDraft, ...]:
    """Add Repl(f), and take f out of the groups; replicas of other features stay as they are."""
    groups = tuple(
        replace(layout, features=layout.features - {feature}) if layout.masters else layout for layout in layouts
    )
    return (*groups, LayoutDraft(columns, frozenset({feature}), frozenset()))
