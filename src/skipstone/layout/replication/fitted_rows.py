"""What judges read of a layout with a given clustering: by really clustering a sample and skipping its blocks.

The papers count rows by clustering feature vectors. This asks whichever clustering a layout is to have, trees and
sorted orders among them, and skips by bounds as well as by features, as the reader does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skipstone.layout.clustering.conditions import true_rows
from skipstone.layout.clustering.ordered import compared
from skipstone.layout.clustering.routing import ClusteringProblem
from skipstone.layout.grouping.cost import Prices, in_cells, layouts_touched, query_costs
from skipstone.layout.grouping.estimate import SelectivityEstimate
from skipstone.layout.grouping.fitted_groups import fitted_blocks
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft, with_queries
from skipstone.layout.scheme import ClusteringSpec
from skipstone.layout.vectors import Bits, distinct
from skipstone.layout.whatif import SampledBlocks
from skipstone.predicate.bounds import MaskPlan, prepare
from skipstone.predicate.expression import Column, Expression, columns_of
from skipstone.predicate.implication import implication_matrix
from skipstone.predicate.literal import ALWAYS, Conjunction
from skipstone.workload.query import Feature, Query

__all__ = ["FittedRows", "rows_of_scheme", "scheme_costs", "with_always"]

LEARNT_AT_MOST = 300
"""A layout of a given scheme is fitted to so many of the queries that read it."""


class FittedRows:
    """Clusters a sample for layouts, and tells how many rows of the chunk each query of the problem reads of them."""

    def __init__(self, problem: DesignProblem) -> None:
        self.problem = problem
        self.tracked = _looked_at(problem)
        self.filter_columns = frozenset().union(*(columns_of(one) for one in self.tracked))
        self._bits = true_rows(problem.features, problem.sample)
        self._plans: list[MaskPlan] = [prepare(query.filter) for query in problem.queries]
        self._subsumed: dict[Conjunction, NDArray[np.bool_]] = {}

    def rows(self, layout: LayoutDraft, spec: ClusteringSpec, learnt: Sequence[Query]) -> NDArray[np.float64]:
        """The rows that each query reads of a layout that is clustered for the queries `learnt`.

        A query that reads no column of the layout is taken to read none. One that no local feature subsumes reads the
        rows that are kept apart as well (section 5.4.2).
        """
        problem = self.problem
        features = sorted(layout.features)
        satisfied: Bits = np.asarray(self._bits[:, features].any(axis=1))
        inside = np.ones(len(satisfied), np.bool_) if layout.is_whole else satisfied
        share = float(inside.mean()) if len(inside) else 1.0
        rows = problem.sample.filter(pa.array(inside)).combine_chunks()
        names = frozenset(problem.columns[column] for column in layout.columns)
        if not learnt or not rows.num_rows:
            read = self._readers(names) * share
        else:
            asked = ClusteringProblem(
                tuple(Feature(problem.features[one]) for one in features if problem.features[one] != ALWAYS),
                tuple(learnt),
                max(1, round(problem.rows * share)),
                problem.block_rows,
                problem.seed,
                bounded=names,
            )
            tracked = [one for one in self.tracked if columns_of(one) <= names]
            read = self._read(fitted_blocks(spec, rows, asked, tracked), names) * share
        without: Bits = np.asarray(~problem.kinds[:, features].any(axis=1))
        return np.asarray((read + without[problem.kind_of] * self._readers(names) * (1 - share)) * problem.rows)

    def _readers(self, names: frozenset[str]) -> NDArray[np.float64]:
        return np.array([not names.isdisjoint(query.columns) for query in self.problem.queries], np.float64)

    def _read(self, blocks: SampledBlocks, names: frozenset[str]) -> NDArray[np.float64]:
        """The share of the layout's rows that each query reads."""
        subsumed = np.zeros((len(self._plans), len(blocks.features)), np.bool_)
        for place, feature in enumerate(blocks.features):
            subsumed[:, place] = self._subsumes(feature)
        total = max(1, int(blocks.rows.sum()))
        read = self._readers(names)
        for number in np.flatnonzero(read):
            stays = np.all(blocks.vectors[:, subsumed[number]], axis=1) & self._plans[number].mask(blocks)
            read[number] = blocks.rows[stays].sum() / total
        return read

    def _subsumes(self, feature: Conjunction) -> NDArray[np.bool_]:
        """Which queries a feature subsumes."""
        if feature not in self._subsumed:
            filters = [query.filter for query in self.problem.queries]
            self._subsumed[feature] = implication_matrix(filters, [feature])[:, 0]
        return self._subsumed[feature]


def scheme_costs(
    problem: DesignProblem,
    layouts: Sequence[LayoutDraft],
    specs: Sequence[ClusteringSpec],
    judges: Sequence[Query],
    prices: Prices,
    counter: FittedRows | None = None,
) -> NDArray[np.float64]:
    """What each judge reads with a scheme that is fitted to the problem's queries, as the reader will read it.

    `counter` may be one for the problem with the judges as its queries, if many schemes are judged.
    """
    counter = counter or FittedRows(with_queries(problem, judges))
    table = rows_of_scheme(problem, layouts, specs, counter)
    return query_costs(counter.problem, layouts, table, prices, thrifty=True)


def rows_of_scheme(
    problem: DesignProblem, layouts: Sequence[LayoutDraft], specs: Sequence[ClusteringSpec], counter: FittedRows
) -> NDArray[np.float64]:
    """The rows that each query of the counter reads of each layout, if it is fitted to the problem's queries.

    A layout is fitted to those that will read it, as it is when it is written: told by the path that a query would take
    if it read just the rows that all of a layout's features which subsume it agree on.
    """
    table = np.empty((len(counter.problem.queries), len(layouts)))
    everyone = np.ones(len(problem.queries), dtype=np.bool_)
    guess = SelectivityEstimate(problem)
    guessed = np.column_stack([guess.rows(layout, everyone) for layout in layouts])
    readers = layouts_touched(problem, layouts, guessed, in_cells(problem))
    for place, (layout, spec) in enumerate(zip(layouts, specs, strict=True)):
        numbers = np.flatnonzero(readers[:, place])
        step = max(1, -(-len(numbers) // LEARNT_AT_MOST))
        learnt = [problem.queries[number] for number in numbers[::step].tolist()]
        table[:, place] = counter.rows(layout, spec, learnt)
    return table


def with_always(problem: DesignProblem) -> DesignProblem:
    """Add a feature that all rows and all queries satisfy, as the last: a layout with it holds all rows.

    That is how a layout without masters is a full copy.
    """
    every_row = np.ones((len(problem.vectors), 1), np.bool_)
    vectors, _ = distinct(np.concatenate([problem.vectors.bits, every_row], axis=1), problem.vectors.counts)
    kinds = np.concatenate([problem.kinds, np.ones((len(problem.kinds), 1), np.bool_)], axis=1)
    return replace(problem, features=(*problem.features, ALWAYS), kinds=kinds, vectors=vectors)


def _looked_at(problem: DesignProblem) -> tuple[Expression, ...]:
    """The expressions whose bounds blocks will have: those that filters bound, and the columns they look at."""
    found: dict[Expression, None] = dict.fromkeys(compared(problem.queries))
    names = sorted(frozenset().union(*(query.filter.columns for query in problem.queries)))
    schema = problem.sample.schema
    found |= dict.fromkeys(Column(name, schema.field(name).type) for name in names if name in schema.names)
    return tuple(found)
