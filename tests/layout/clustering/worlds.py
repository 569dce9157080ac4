"""Small worlds for clusterings: rows of edge values, filters over them, and what blocks of routed rows would hold."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skipstone.layout.clustering import clustering
from skipstone.layout.clustering.conditions import true_rows
from skipstone.layout.clustering.routing import ClusteringProblem, Router, Routing
from skipstone.layout.sampling import sampled_blocks
from skipstone.layout.scheme import ClusteringSpec
from skipstone.layout.vectors import Bits
from skipstone.layout.whatif import describe_blocks
from skipstone.predicate.parsing import parse_filter
from skipstone.relayout.tracking import tracked_expressions
from skipstone.workload.query import Feature, Query
from tests.relayout.worlds import SCHEMA, random_condition, random_table

ALL: tuple[ClusteringSpec, ...] = tuple(
    ClusteringSpec(name, parameters)
    for name, parameters in (
        ("none", ()),
        ("sort", ()),
        ("sort", (("column", "f"),)),
        ("sort", (("column", "s"),)),
        ("range", (("over", "d:month, s, n:3"),)),
        ("range", (("over", "d:year, m"),)),
        ("zorder", ()),
        ("zorder", (("over", "n, f, s"),)),
        ("hilbert", (("dimensions", 2),)),
        ("hilbert", (("over", "d, m"),)),
        ("ward", ()),
        ("ward-queries", ()),
        ("qdtree", ()),
        ("qdtree", (("mixing", 0.5),)),
    )
)
"""Every clustering, as it chooses for itself and with each of its parameters."""


def called(spec: ClusteringSpec) -> str:
    """The name of a clustering and its parameters, for the names of tests."""
    return " ".join([spec.name, *(f"{name}={value}" for name, value in spec.parameters)])


def asked(*filters: str, schema: pa.Schema = SCHEMA, weight: float = 1.0) -> tuple[Query, ...]:
    """One query for each filter."""
    return tuple(Query(tuple(schema.names), parse_filter(text, schema), weight) for text in filters)


def featured(*filters: str, schema: pa.Schema = SCHEMA) -> tuple[Feature, ...]:
    """One feature for each filter."""
    return tuple(Feature(parse_filter(text, schema)) for text in filters)


def random_problem(
    seed: int, *, rows: int = 400, queries: int = 12, features: int = 5, block_rows: int = 20
) -> tuple[pa.Table, ClusteringProblem]:
    """A table of edge values, and queries and features over it by chance."""
    chance = random.Random(seed)
    table = random_table(chance, rows)
    of_chance = {random_condition(chance): None for _ in range(queries + features)}
    texts = list(of_chance)
    return table, ClusteringProblem(
        featured(*texts[:features]), asked(*texts[features:]), rows=rows, block_rows=block_rows, seed=seed
    )


def fitted(spec: ClusteringSpec, sample: pa.Table, problem: ClusteringProblem) -> Router:
    """The router that a clustering learns."""
    return clustering(spec).fit(sample, problem)


def bits_of(rows: pa.Table, problem: ClusteringProblem) -> Bits:
    """The feature vectors of rows."""
    return true_rows([feature.filter for feature in problem.features], rows)


def routed(router: Router, rows: pa.Table, problem: ClusteringProblem) -> Routing:
    """Where a router sends rows that come as one batch."""
    whole = rows.combine_chunks().to_batches()
    batch = whole[0] if whole else pa.RecordBatch.from_pylist([], schema=rows.schema)
    return router.route(batch, bits_of(rows, problem))


def blocks_of(routing: Routing, problem: ClusteringProblem) -> NDArray[np.int64]:
    """The block of each row where the routed rows are all there are."""
    return sampled_blocks(routing.group, routing.order, rows=len(routing.group), block_rows=problem.block_rows)


def rows_read(spec: ClusteringSpec, table: pa.Table, problem: ClusteringProblem) -> float:
    """The share of rows that the problem's queries read of a table laid out for them, vectors and bounds together."""
    router = fitted(spec, table, problem)
    block = blocks_of(routed(router, table, problem), problem)
    given = [feature.filter for feature in problem.features]
    known = [*given, *(one for one in router.used if one not in set(given))]
    filters = [query.filter for query in problem.queries]
    tracked = [one.expression for one in tracked_expressions(table.schema, filters)]
    shares = describe_blocks(table, true_rows(known, table), known, block, tracked).read_shares(filters)
    return float(np.dot(shares, [query.weight for query in problem.queries]))


def groups(routing: Routing) -> list[list[int]]:
    """The rows of each group that has any, in the order in which they will be stored."""
    order = np.lexsort((np.arange(len(routing.group)), routing.order, routing.group))
    present: Sequence[int] = np.unique(routing.group).tolist()
    return [[int(row) for row in order if routing.group[row] == group] for group in present]
