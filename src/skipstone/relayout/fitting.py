"""Learn how the rows of a chunk are grouped: from a sample of them, in one task per chunk."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipstone.catalog.values import ROW_ID
from skipstone.layout.clustering import clustering
from skipstone.layout.clustering.routing import ClusteringProblem, Router
from skipstone.layout.scheme import Layout, Scheme
from skipstone.predicate.evaluation import Evaluator
from skipstone.predicate.implication import implication_matrix
from skipstone.predicate.literal import Conjunction
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql
from skipstone.relayout.buckets import BucketPlan, plan_buckets
from skipstone.relayout.splitting import feature_bits, needs_rest
from skipstone.scan.plan import ChunkRead, LayoutRead, path_by_rows
from skipstone.scan.read import ReadTask, read
from skipstone.workload.query import Feature, Query

__all__ = ["ChunkFit", "FitTask", "LayoutFit", "fit_chunk", "sample_rows", "with_used_features"]

Bits = npt.NDArray[np.bool_]

MOST_FEATURES = 512
"""A block vector has at most so many bits; what trees would like to add beyond that is left to min and max."""


@dataclass(frozen=True, slots=True)
class FitTask:
    """A chunk to learn from, and what it is to become."""

    sources: tuple[ReadTask, ...]
    chunk: str
    rows: int
    scheme: Scheme
    queries: tuple[Query, ...]
    block_rows: int
    sample_rows: int
    seed: int
    bucket_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class LayoutFit:
    """How the rows of one layout are grouped and dealt out, and the predicates by which it was decided."""

    router: Router
    plan: BucketPlan
    used: tuple[Conjunction, ...]
    rest_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class ChunkFit:
    """What was learnt of a chunk, for each layout of the scheme."""

    chunk: str
    rows: int
    layouts: tuple[LayoutFit, ...]


def fit_chunk(task: FitTask) -> ChunkFit:
    """Fit every layout of the scheme to the rows of a chunk."""
    names = _columns_needed(task)
    sample = sample_rows(task.sources, names, rows=task.rows, wanted=task.sample_rows, seed=task.seed)
    evaluators = [Evaluator(feature) for feature in task.scheme.features]
    bits = feature_bits(evaluators, sample) if sample.num_rows else np.zeros((0, len(evaluators)), np.bool_)
    readers = _readers(task, bits)
    layouts = tuple(
        _fit_layout(task, layout, queries, sample, bits)
        for layout, queries in zip(task.scheme.layouts, readers, strict=True)
    )
    return ChunkFit(task.chunk, task.rows, layouts)


def with_used_features(scheme: Scheme, fits: Sequence[ChunkFit], schema: pa.Schema) -> Scheme:
    """Add to a scheme's features the predicates by which its chunks were cut, so that blocks can be skipped by them.

    A feature is kept as text; one that would not be read back as it was meant is of no use.
    """
    used = dict.fromkeys(itertools.chain.from_iterable(layout.used for fit in fits for layout in fit.layouts))
    known = set(scheme.features)
    extra = [one for one in used if one not in known and parse_filter(sql(one), schema) == one]
    return replace(scheme, features=(*scheme.features, *extra[: max(0, MOST_FEATURES - len(scheme.features))]))


def sample_rows(
    sources: Sequence[ReadTask], columns: Sequence[str], *, rows: int, wanted: int, seed: int
) -> pa.RecordBatch:
    """Draw about `wanted` of the rows, the same ones each time: a hash of the row id decides."""
    share = min(1.0, wanted / max(rows, 1))
    kept = []
    for source in sources:
        for batch in read(_narrowed(source, columns)):
            ids = batch.column(batch.schema.get_field_index(ROW_ID)).to_numpy()
            kept.append(batch.filter(pa.array(_drawn(ids, share, seed))))
    schema = pa.schema([*(sources[0].schema.field(name) for name in columns), pa.field(ROW_ID, pa.int64())])
    if not kept:
        return schema.empty_table().to_batches()[0] if schema.empty_table().to_batches() else _empty(schema)
    # Row ids that were read from files may be NULL by their type, those that were made here may not.
    return pa.RecordBatch.from_arrays(pa.concat_batches(kept).columns, schema=schema)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _drawn(ids: npt.NDArray[np.int64], share: float, seed: int) -> Bits:
    """Mix the bits of each id (splitmix64) and keep the ones below the share."""
    if share >= 1.0:
        return np.ones(len(ids), np.bool_)
    mixed = ids.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    kept: Bits = mixed < np.uint64(int(share * (2**64 - 1)))
    return kept


def _columns_needed(task: FitTask) -> list[str]:
    """The columns that features, filters and the clusterings' own parameters look at; all of a layout sorts by them."""
    needed: set[str] = set()
    for feature in task.scheme.features:
        needed |= feature.columns
    for query in task.queries:
        needed |= query.filter.columns
    for layout in task.scheme.layouts:
        needed.update(clustering(layout.clustering).columns)
    return sorted(needed & set(task.sources[0].columns))


def _narrowed(source: ReadTask, columns: Sequence[str]) -> ReadTask:
    """The same rows, with fewer columns."""
    wanted = set(columns)
    layouts: Iterator[LayoutRead] = (
        replace(layout, columns=tuple(pair for pair in layout.columns if pair[0] in wanted) or layout.columns[:1])
        for layout in source.source.layouts
    )
    return replace(source, source=ChunkRead(source.source.chunk, tuple(layouts)), columns=tuple(columns))


def _fit_layout(
    task: FitTask, layout: Layout, queries: tuple[Query, ...], sample: pa.RecordBatch, bits: Bits
) -> LayoutFit:
    local = bits[:, list(layout.features)]
    inside = np.any(local, axis=1) if needs_rest(layout) or not layout.holds_all_rows else np.ones(len(bits), np.bool_)
    share = float(inside.mean()) if len(inside) else 1.0
    rows = pa.table(sample.filter(pa.array(inside)))
    problem = ClusteringProblem(
        features=tuple(Feature(task.scheme.features[number]) for number in layout.features),
        queries=queries,
        rows=max(1, round(task.rows * share)),
        block_rows=task.block_rows,
        seed=task.seed,
        bounded=frozenset(layout.columns) if len(task.scheme.layouts) > 1 else None,
    )
    router = clustering(layout.clustering).fit(rows, problem)
    routing = router.route(sample.filter(pa.array(inside)), local[inside])
    plan = plan_buckets(routing.group, routing.order, rows=problem.rows, bucket_rows=task.bucket_rows)
    return LayoutFit(router, plan, router.used, round(task.rows * (1 - share)))


def _readers(task: FitTask, bits: Bits) -> list[tuple[Query, ...]]:
    """For each layout the queries that it is clustered for: those that will read a column of it.

    Where layouts share columns, that is told by the path that a query would take if blocks held just the rows that all
    of a layout's features which subsume the query agree on.
    """
    scheme = task.scheme
    if len({column for layout in scheme.layouts for column in layout.columns}) == sum(
        len(layout.columns) for layout in scheme.layouts
    ):
        return [
            tuple(query for query in task.queries if not set(layout.columns).isdisjoint(query.columns))
            for layout in scheme.layouts
        ]
    names = frozenset(task.sources[0].columns)
    implied = implication_matrix([query.filter for query in task.queries], scheme.features)
    used: dict[tuple[tuple[str, ...], bytes], frozenset[int]] = {}
    read: list[list[Query]] = [[] for _ in scheme.layouts]
    for query, by in zip(task.queries, implied, strict=True):
        key = (query.columns, by.tobytes())
        if key not in used:
            subsuming = tuple(np.flatnonzero(by).tolist())
            rows = [_rows_of_all(bits, set(layout.features).intersection(subsuming)) for layout in scheme.layouts]
            wanted = [name for name in query.columns if name in names]
            used[key] = frozenset(path_by_rows(scheme, wanted, subsuming, rows).values())
        for number in used[key]:
            read[number].append(query)
    return [tuple(queries) for queries in read]


def _rows_of_all(bits: Bits, features: Iterable[int]) -> int:
    """How many rows satisfy all of some features."""
    return int(bits[:, sorted(features)].all(axis=1).sum())
