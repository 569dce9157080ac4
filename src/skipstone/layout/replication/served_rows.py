"""What queries read of a layout that is made for some families: by really clustering a sample and skipping its blocks.

Unlike the papers' estimate this asks the clusterings that will be used, trees and sorted orders among them, and skips
by bounds as well as by features, as the reader does. Queries that a layout was fitted to do not judge it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skipstone.layout.clustering import clustering
from skipstone.layout.clustering.conditions import true_rows
from skipstone.layout.clustering.ordered import compared
from skipstone.layout.clustering.routing import ClusteringProblem
from skipstone.layout.grouping.problem import DesignProblem
from skipstone.layout.replication.families import Cover, Family, cover_of, families_of
from skipstone.layout.sampling import sampled_blocks
from skipstone.layout.scheme import ClusteringSpec
from skipstone.layout.vectors import Bits, distinct
from skipstone.layout.whatif import SampledBlocks, describe_blocks
from skipstone.predicate.bounds import MaskPlan, prepare
from skipstone.predicate.expression import Column, Expression, columns_of
from skipstone.predicate.implication import implication_matrix
from skipstone.predicate.literal import ALWAYS, Conjunction
from skipstone.predicate.printing import sql
from skipstone.workload.query import Feature, Query

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

    `problem` is the problem with the judges as its queries and with ALWAYS, which every row satisfies, as one more
    feature, the last: a layout with it holds all rows of all its columns.
    """

    def __init__(self, problem: DesignProblem) -> None:
        self.families = families_of(problem)
        self._fit_to = [_learnt(problem, family) for family in self.families]
        judged, self.family_of = _judged(problem, self.families)
        self.problem = _with_always(judged)
        self.always = len(problem.features)
        self._covers = [cover_of(problem, family) for family in self.families]
        self._implied = _implied(problem.features)
        self._asked: list[Bits] = [
            np.asarray(problem.kinds[problem.kind_of[list(family.queries)]].any(axis=0)) for family in self.families
        ]
        self._plans: list[MaskPlan] = [prepare(query.filter) for query in self.problem.queries]
        self._tracked = _looked_at(problem)
        self._filter_columns = frozenset().union(*(columns_of(one) for one in self._tracked))
        self._bits = true_rows(problem.features, problem.sample)
        self._subsumed: dict[Conjunction, NDArray[np.bool_]] = {}
        self._true: dict[Conjunction, NDArray[np.bool_]] = {}
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
            return frozenset({*asked.tolist(), self.always})
        within: Bits = np.asarray(self._implied[:, sorted(cover.features)].any(axis=1))
        return frozenset(cover.features | {feature for feature in asked.tolist() if within[feature]})

    def served(self, serving: Serving, *, is_whole: bool) -> Served:
        """Cluster a sample for a serving in every way there is, and take what its families read least of.

        `is_whole` says that all columns are masters, so that all rows are clustered.
        """
        shown = frozenset(one for one in serving.columns if self.problem.columns[one] in self._filter_columns)
        key = (serving.families, shown, is_whole or self.always in self.features(serving.families))
        if key not in self._known:
            self._known[key] = self._fitted(serving, clusters_all=key[2])
        return self._known[key]

    def _fitted(self, serving: Serving, *, clusters_all: bool) -> Served:
        problem = self.problem
        features = sorted(self.features(serving.families) - {self.always})
        inside: Bits = np.ones(len(self._bits), np.bool_)
        if not clusters_all:
            inside = np.asarray(self._bits[:, features].any(axis=1))
        share = float(inside.mean()) if len(inside) else 1.0
        rows = problem.sample.filter(pa.array(inside)).combine_chunks()
        if not serving.families or not rows.num_rows:
            return Served(ClusteringSpec(), np.full(len(problem.queries), float(problem.rows)))
        asked = ClusteringProblem(
            tuple(Feature(problem.features[feature]) for feature in features),
            tuple(query for family in sorted(serving.families) for query in self._fit_to[family]),
            max(1, round(problem.rows * share)),
            problem.block_rows,
            problem.seed,
        )
        names = frozenset(problem.columns[column] for column in serving.columns)
        tracked = [one for one in self._tracked if columns_of(one) <= names]
        ours = np.isin(self.family_of, sorted(serving.families))
        tried = [
            Served(spec, self._read(self._blocks(spec, rows, inside, features, asked, tracked), share, names))
            for spec in FITS
        ]
        best = min(tried, key=lambda one: float(problem.weights[ours] @ one.rows[ours]))
        # A judge that no local feature subsumes has to read the rows that are kept apart, too.
        without: Bits = np.asarray(~problem.kinds[:, features].any(axis=1))
        apart = without[problem.kind_of]
        return best if clusters_all else replace(best, rows=best.rows + apart * (1 - share) * problem.rows)

    def _blocks(
        self,
        spec: ClusteringSpec,
        rows: pa.Table,
        inside: Bits,
        features: Sequence[int],
        asked: ClusteringProblem,
        tracked: Sequence[Expression],
    ) -> SampledBlocks:
        """Cluster the rows of a layout and cut them into blocks that know of all features and of the tree's own."""
        router = clustering(spec).fit(rows, asked)
        bits = self._bits[inside]
        routing = router.route(rows.to_batches()[0], bits[:, list(features)])
        extra = [one for one in router.used if one not in set(self.problem.features)]
        added = [self._true_rows(one)[inside] for one in extra]
        block = sampled_blocks(routing.group, routing.order, rows=asked.rows, block_rows=asked.block_rows)
        known = [*self.problem.features[: self.always], *extra]
        return describe_blocks(rows, np.column_stack([bits, *added]) if added else bits, known, block, tracked)

    def _read(self, blocks: SampledBlocks, share: float, names: frozenset[str]) -> NDArray[np.float64]:
        """The rows of the chunk that each judge reads; one that reads no column of these is taken to read nothing."""
        problem = self.problem
        subsumed = np.column_stack([self._subsumes(feature) for feature in blocks.features])
        total = max(1, int(blocks.rows.sum()))
        read: NDArray[np.float64] = np.zeros(len(problem.queries))
        for number, plan in enumerate(self._plans):
            if names.isdisjoint(problem.queries[number].columns):
                continue
            stays = np.all(blocks.vectors[:, subsumed[number]], axis=1) & plan.mask(blocks)
            read[number] = blocks.rows[stays].sum() / total * share
        return read * problem.rows

    def _subsumes(self, feature: Conjunction) -> NDArray[np.bool_]:
        """Which judges a feature subsumes."""
        if feature not in self._subsumed:
            filters = [query.filter for query in self.problem.queries]
            self._subsumed[feature] = implication_matrix(filters, [feature])[:, 0]
        return self._subsumed[feature]

    def _true_rows(self, condition: Conjunction) -> NDArray[np.bool_]:
        if condition not in self._true:
            self._true[condition] = true_rows([condition], self.problem.sample)[:, 0]
        return self._true[condition]


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


def _with_always(problem: DesignProblem) -> DesignProblem:
    """Add the feature that all rows and all queries satisfy."""
    vectors, _ = distinct(
        np.column_stack([problem.vectors.bits, np.ones(len(problem.vectors), np.bool_)]), problem.vectors.counts
    )
    kinds = np.column_stack([problem.kinds, np.ones(len(problem.kinds), np.bool_)])
    return replace(problem, features=(*problem.features, ALWAYS), kinds=kinds, vectors=vectors)


def _implied(features: Sequence[Conjunction]) -> Bits:
    """Which features say so much that they imply which others; each implies itself."""
    return implication_matrix(features, features) if features else np.zeros((0, 0), np.bool_)


def _looked_at(problem: DesignProblem) -> tuple[Expression, ...]:
    """The expressions whose bounds blocks will have: those that filters bound, and the columns they look at."""
    found: dict[Expression, None] = dict.fromkeys(compared(problem.queries))
    names = sorted(frozenset().union(*(query.filter.columns for query in problem.queries)))
    schema = problem.sample.schema
    found |= dict.fromkeys(Column(name, schema.field(name).type) for name in names if name in schema.names)
    return tuple(found)
