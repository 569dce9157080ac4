"""Layouts made for some families of queries: the rows they hold, their clustering, and what judges read of them.

Queries that a layout is fitted to do not judge it, where a family has enough different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft
from skipstone.layout.replication.families import Cover, Family, cover_of, families_of
from skipstone.layout.replication.fitted_rows import FittedRows, with_always
from skipstone.layout.scheme import ClusteringSpec
from skipstone.layout.vectors import Bits
from skipstone.predicate.implication import implication_matrix
from skipstone.predicate.literal import Conjunction
from skipstone.predicate.printing import sql
from skipstone.workload.query import Query

__all__ = ["FITS", "Served", "ServedRows", "Serving"]

FITS = (
    ClusteringSpec("qdtree", (("mixing", 0.4),)),
    ClusteringSpec("sort"),
)
"""Clusterings that every layout chooses from. Bottom-up clusterings of vectors never won and take most of the time."""

JUDGES = 12
"""So many different queries of each family say what a layout is worth to it."""

LEARNT_FROM = 24
"""A layout is fitted to so many different queries of each of its families."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A layout that is to serve some families, by their numbers, with some columns."""

    families: frozenset[int]
    columns: frozenset[int]


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """What a serving comes to: the clustering that suits it, and the rows of it that each judge reads."""

    spec: ClusteringSpec
    rows: NDArray[np.float64]


class ServedRows:
    """Tells what judges read of servings, and remembers it.

    `problem` is the problem with the judges as its queries, and with a last feature that every row satisfies. `fits`
    are the clusterings that a layout chooses from.
    """

    def __init__(self, problem: DesignProblem, fits: Sequence[ClusteringSpec] = FITS) -> None:
        self._fits = tuple(fits)
        self.families = families_of(problem)
        self._fit_to = [_learnt(problem, family) for family in self.families]
        judged, self.family_of = _judged(problem, self.families)
        self.problem = with_always(judged)
        self._always = len(problem.features)
        self._rows = FittedRows(self.problem)
        self._covers = [cover_of(problem, family) for family in self.families]
        self._implied = _implied(problem.features)
        self._asked: list[Bits] = [
            np.asarray(problem.kinds[problem.kind_of[list(family.queries)]].any(axis=0)) for family in self.families
        ]
        self._known: dict[tuple[frozenset[int], frozenset[int], bool], Served] = {}

    @property
    def fitted(self) -> int:
        """How many layouts were really clustered."""
        return len(self._known)

    def features(self, families: frozenset[int]) -> frozenset[int]:
        """The local features of a layout for these families: their covers, and what says more within those."""
        if not families:
            return frozenset()
        cover = Cover(frozenset())
        for family in families:
            cover = cover | self._covers[family]
        asked = np.flatnonzero(np.any([self._asked[family] for family in families], axis=0))
        if cover.features is None:
            return frozenset({*asked.tolist(), self._always})
        within: Bits = np.asarray(self._implied[:, sorted(cover.features)].any(axis=1))
        return frozenset(cover.features | {feature for feature in asked.tolist() if within[feature]})

    def served(self, serving: Serving, draft: LayoutDraft) -> Served:
        """Cluster a sample for a serving in every way there is, and take what its families read least of.

        `draft` is the layout that the serving comes to among others.
        """
        names = self.problem.columns
        shown = frozenset(one for one in serving.columns if names[one] in self._rows.filter_columns)
        key = (serving.families, shown, draft.is_whole or self._always in draft.features)
        if key not in self._known:
            self._known[key] = self._fitted(serving, draft)
        return self._known[key]

    def _fitted(self, serving: Serving, draft: LayoutDraft) -> Served:
        learnt = [query for family in sorted(serving.families) for query in self._fit_to[family]]
        if not learnt:
            return Served(ClusteringSpec(), self._rows.rows(draft, ClusteringSpec(), learnt))
        ours = np.isin(self.family_of, sorted(serving.families))
        weights = self.problem.weights[ours]
        tried = [Served(spec, self._rows.rows(draft, spec, learnt)) for spec in self._fits]
        return min(tried, key=lambda one: float(weights @ one.rows[ours]))


def _different(problem: DesignProblem, family: Family) -> list[int]:
    """One query for each different filter of a family, ordered by the filters' texts."""
    texts = {sql(problem.queries[number].filter): number for number in reversed(family.queries)}
    return [texts[text] for text in sorted(texts)]


def _judges_of(problem: DesignProblem, family: Family) -> list[int]:
    """Every fourth filter judges where there are enough of them; else all do, for want of better."""
    different = _different(problem, family)
    chosen = different[3::4] if len(different) >= 8 else different
    return _thinned(chosen, JUDGES)


def _learnt(problem: DesignProblem, family: Family) -> tuple[Query, ...]:
    """The queries of a family that layouts are fitted to: those that do not judge."""
    judges = set(_judges_of(problem, family))
    different = _different(problem, family)
    chosen = [one for one in different if one not in judges] if len(different) >= 8 else different
    weight = float(problem.weights[list(family.queries)].sum())
    fewer = _thinned(chosen, LEARNT_FROM)
    return tuple(replace(problem.queries[number], weight=weight / len(fewer)) for number in fewer)


def _thinned(numbers: list[int], most: int) -> list[int]:
    """Take every so many-th, so that no more than `most` are left."""
    if len(numbers) <= most:
        return numbers
    return [numbers[place * len(numbers) // most] for place in range(most)]


def _judged(problem: DesignProblem, families: Sequence[Family]) -> tuple[DesignProblem, NDArray[np.int64]]:
    """The problem with the judges as its queries, each family with its weight; and the family of each judge."""
    chosen: list[int] = []
    weights: list[float] = []
    family_of: list[int] = []
    for number, family in enumerate(families):
        judges = _judges_of(problem, family)
        weight = float(problem.weights[list(family.queries)].sum())
        chosen += judges
        weights += [weight / len(judges)] * len(judges)
        family_of += [number] * len(judges)
    judged = replace(
        problem,
        queries=tuple(problem.queries[number] for number in chosen),
        accesses=problem.accesses[chosen],
        kind_of=problem.kind_of[chosen],
        weights=np.array(weights, np.float64),
    )
    return judged, np.array(family_of, np.int64)


def _implied(features: Sequence[Conjunction]) -> Bits:
    """Which features say so much that they imply which others; each implies itself."""
    return implication_matrix(features, features) if features else np.zeros((0, 0), np.bool_)
