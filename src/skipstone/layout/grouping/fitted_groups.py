"""Column groups as they will be: each with the clustering that suits its queries best, tried on a sample.

The paper makes the blocks of every group by its clustering of feature vectors. Here a group may also be a tree of cuts
or a sorted order, whichever spares its queries most; and a query skips blocks by bounds as well as by features, as the
reader does. A group has bounds of its own columns alone: of what a query asks of others it must keep a bit.

The queries that read a group are dealt into those that clusterings learn from and those that choose among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skipstone.layout.clustering import clustering
from skipstone.layout.clustering.conditions import true_rows
from skipstone.layout.clustering.routing import ClusteringProblem
from skipstone.layout.grouping.cost import Prices, query_costs
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft, with_queries
from skipstone.layout.sampling import sampled_blocks
from skipstone.layout.scheme import ClusteringSpec
from skipstone.layout.whatif import SampledBlocks, describe_blocks
from skipstone.predicate.expression import Expression, columns_of
from skipstone.predicate.literal import Conjunction
from skipstone.workload.query import Feature, Query

__all__ = ["FITS", "FittedGroup", "fit_groups", "fitted_blocks", "fitted_costs"]

FITS = (ClusteringSpec("qdtree"), ClusteringSpec("ward-queries"), ClusteringSpec("sort"))
"""What each group chooses from; the first that is best wins."""

CHOOSERS = 4
"""Of a group's queries every so many-th different one chooses, and is not learnt from."""

MOST_CHOOSERS = 100
MOST_LEARNT = 300
"""More queries hardly change a clustering of one group, and take their time."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedGroup:
    """A group, the clustering it chose, and the blocks that a sample falls into."""

    layout: LayoutDraft
    clustering: ClusteringSpec
    blocks: SampledBlocks


def fit_groups(
    problem: DesignProblem,
    groups: Sequence[LayoutDraft],
    tracked: Sequence[Expression],
    *,
    fits: Sequence[ClusteringSpec] = FITS,
) -> tuple[FittedGroup, ...]:
    """Choose a clustering for each group; `tracked` are the expressions that blocks have bounds of."""
    return tuple(_fitted(problem, group, tracked, fits) for group in groups)


def fitted_costs(
    problem: DesignProblem, groups: Sequence[FittedGroup], queries: Sequence[Query], prices: Prices
) -> NDArray[np.float64]:
    """What each of some queries reads of the chunk, as `query_costs` counts it."""
    judged = with_queries(problem, queries)
    filters = [query.filter for query in queries]
    rows = np.column_stack([group.blocks.read_shares(filters) for group in groups]) * problem.rows
    return query_costs(judged, [group.layout for group in groups], rows, prices)


def fitted_blocks(
    spec: ClusteringSpec, sample: pa.Table, problem: ClusteringProblem, tracked: Sequence[Expression]
) -> SampledBlocks:
    """Cluster a sample and describe the blocks it falls into; they have a bit for each feature that the catalog has."""
    filters = [feature.filter for feature in problem.features]
    bits = true_rows(filters, sample, time_zone=problem.time_zone)
    router = clustering(spec).fit(sample, problem)
    routing = router.route(sample.to_batches()[0], bits)
    known = set(filters)
    used: list[Conjunction] = [one for one in router.used if one not in known]
    block = sampled_blocks(routing.group, routing.order, rows=problem.rows, block_rows=problem.block_rows)
    held = np.concatenate([bits, true_rows(used, sample, time_zone=problem.time_zone)], axis=1)
    return describe_blocks(sample, held, [*filters, *used], block, tracked)


def _fitted(
    problem: DesignProblem, group: LayoutDraft, tracked: Sequence[Expression], fits: Sequence[ClusteringSpec]
) -> FittedGroup:
    names = frozenset(problem.columns[column] for column in group.columns)
    readers = [problem.queries[number] for number in np.flatnonzero(problem.readers(group.columns))]
    if not readers or not problem.sample.num_rows:
        one_block = np.zeros(problem.sample.num_rows, dtype=np.int64)
        nothing_known = np.zeros((len(one_block), 0), dtype=np.bool_)
        return FittedGroup(group, ClusteringSpec(), describe_blocks(problem.sample, nothing_known, (), one_block, ()))
    # Where there is nothing to choose, all learn.
    learnt, choosers = _dealt(readers) if len(fits) > 1 else (_thinned(readers, MOST_LEARNT), tuple(readers))
    asked = ClusteringProblem(
        tuple(Feature(problem.features[feature]) for feature in sorted(group.features)),
        learnt,
        problem.rows,
        problem.block_rows,
        problem.seed,
        bounded=names,
    )
    bounds = [one for one in tracked if columns_of(one) <= names]
    weights = np.array([query.weight for query in choosers])
    filters = [query.filter for query in choosers]
    best: tuple[float, FittedGroup] | None = None
    for spec in fits:
        blocks = fitted_blocks(spec, problem.sample, asked, bounds)
        read = float(weights @ blocks.read_shares(filters))
        if best is None or read < best[0]:
            best = (read, FittedGroup(group, spec, blocks))
    assert best is not None
    return best[1]


def _dealt(readers: Sequence[Query]) -> tuple[tuple[Query, ...], tuple[Query, ...]]:
    """Learn from three quarters of the different filters of each template, choose by the others; by all if few."""
    weights: dict[tuple[str, Conjunction], Query] = {}
    for query in readers:
        key = (query.template, query.filter)
        weights[key] = replace(query, weight=query.weight + weights[key].weight) if key in weights else query
    counts: dict[str, int] = {}
    learnt: list[Query] = []
    choosers: list[Query] = []
    for (template, _), query in weights.items():
        counts[template] = counts.get(template, 0) + 1
        (choosers if counts[template] % CHOOSERS == 0 else learnt).append(query)
    if not choosers or not learnt:
        return tuple(readers), tuple(readers)
    return _thinned(learnt, MOST_LEARNT), _thinned(choosers, MOST_CHOOSERS)


def _thinned(queries: Sequence[Query], most: int) -> tuple[Query, ...]:
    """Take every so many-th, each for those that are left out."""
    step = -(-len(queries) // most)
    return tuple(replace(query, weight=query.weight * step) for query in queries[::step])
