"""The first half of a rewrite: read rows, evaluate the features, and send each row to the bucket of its block.

Dissertation 3.2.2 steps 2 and 4 (augmentation, shuffle), and 5.4.2 for several layouts: a layout gets the rows that
satisfy one of its features, with all its columns, and the remaining rows with its master columns only.

What a task read is counted and checksummed on the way; the counts go to a bucket of their own, the last, and are
compared with what was written before anything is committed.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipstone.catalog.values import CLUSTERED, REST, ROW_ID
from skipstone.layout.clustering.routing import Router
from skipstone.layout.scheme import Layout, Scheme
from skipstone.layout.vectors import pack
from skipstone.predicate.evaluation import Evaluator
from skipstone.predicate.literal import Conjunction
from skipstone.relayout.buckets import BucketPlan
from skipstone.scan.read import ReadTask, matches, read
from skipstone.store.checksum import Checksums, checksums, merge_checksums

__all__ = [
    "GROUP",
    "ORDER",
    "VECTOR",
    "LayoutRoute",
    "Part",
    "PartKey",
    "SplitTask",
    "Tally",
    "feature_bits",
    "needs_rest",
    "parts_of",
    "split",
]

Bits = npt.NDArray[np.bool_]

GROUP = "_skipstone_group"
ORDER = "_skipstone_order"
VECTOR = "_skipstone_vector"

ROWS_SENT_TOGETHER = 262_144
"""Rows of so many are cut into buckets at once: enough that each bucket's slice is worth a message."""


PartKey: TypeAlias = tuple[int, int]
"""A layout of a chunk and a part of it."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of one layout of one chunk, which has buckets of its own; `columns` are those it stores."""

    chunk: str
    layout: int
    part: int
    columns: tuple[str, ...]
    first_bucket: int
    buckets: int

    @property
    def key(self) -> PartKey:
        """What the part is called within its chunk."""
        return (self.layout, self.part)


@dataclass(frozen=True, slots=True, eq=False)
class LayoutRoute:
    """How the rows of a chunk find their place in one layout: who routes them, and which bucket then holds them."""

    layout: Layout
    router: Router
    plan: BucketPlan
    clustered: Part
    rest: Part | None
    rest_rows_per_bucket: int


@dataclass(frozen=True, slots=True, eq=False)
class SplitTask:
    """Some rows of a chunk, and where all of it goes."""

    source: ReadTask
    features: tuple[Conjunction, ...]
    routes: tuple[LayoutRoute, ...]
    tally_bucket: int


@dataclass(frozen=True, slots=True)
class Tally:
    """What was read of a chunk and what of it was sent to each of its parts, as checksums of columns and whole rows."""

    chunk: str
    read: Checksums
    sent: tuple[tuple[PartKey, Checksums], ...]

    @classmethod
    def merge(cls, tallies: Sequence[Tally]) -> Tally:
        """Add up what several tasks read of one chunk."""
        keys = sorted({key for tally in tallies for key, _ in tally.sent})
        return cls(
            tallies[0].chunk,
            merge_checksums(tally.read for tally in tallies),
            tuple(
                (key, merge_checksums(sums for tally in tallies for other, sums in tally.sent if other == key))
                for key in keys
            ),
        )


def split(task: SplitTask) -> Iterator[tuple[int, bytes]]:
    """Give (bucket, Arrow message) for the rows of a task, and its tally at the end."""
    evaluators = [Evaluator(feature) for feature in task.features]
    read_sums: list[Checksums] = []
    sent_sums: list[tuple[PartKey, Checksums]] = []
    for batch in _large_batches(read(task.source)):
        read_sums.append(checksums(batch.select(task.source.columns), whole_rows=task.source.columns))
        bits = feature_bits(evaluators, batch)
        for route in task.routes:
            for routed in _routed(route, batch, bits):
                sent_sums.append((routed.part.key, _sums_of(routed.rows, routed.part, stores_ids=len(task.routes) > 1)))
                yield from _slices(routed)
    read_tally = Tally(task.source.source.chunk, merge_checksums(read_sums), ())
    parts = [Tally(read_tally.chunk, (), ((key, sums),)) for key, sums in sent_sums]
    yield task.tally_bucket, pickle.dumps(Tally.merge([read_tally, *parts]))


def _sums_of(rows: pa.RecordBatch, part: Part, *, stores_ids: bool) -> Checksums:
    """What the writer of a part will find when it checksums these rows."""
    names = [*part.columns, ROW_ID] if stores_ids else list(part.columns)
    return checksums(rows.select(names), whole_rows=names)


def feature_bits(evaluators: Sequence[Evaluator], batch: pa.RecordBatch) -> Bits:
    """Evaluate the features on each row; a feature is satisfied only where its filter is TRUE."""
    bits = np.zeros((batch.num_rows, len(evaluators)), np.bool_)
    for number, evaluator in enumerate(evaluators):
        bits[:, number] = matches(evaluator, batch).to_numpy(zero_copy_only=False)
    return bits


def _large_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    pending: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        pending.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_SENT_TOGETHER:
            yield _joined(pending)
            pending, rows = [], 0
    if pending:
        yield _joined(pending)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


@dataclass(frozen=True, slots=True, eq=False)
class _Routed:
    part: Part
    rows: pa.RecordBatch
    bits: Bits
    group: npt.NDArray[np.int32]
    order: npt.NDArray[np.uint64]
    bucket: npt.NDArray[np.int32]


def _routed(route: LayoutRoute, batch: pa.RecordBatch, bits: Bits) -> Iterator[_Routed]:
    inside = _inside(route, bits)
    if inside.any():
        rows, vectors = (batch, bits) if inside.all() else (batch.filter(pa.array(inside)), bits[inside])
        routing = route.router.route(rows, vectors[:, list(route.layout.features)])
        bucket = route.plan.bucket_of(routing.group, routing.order)
        yield _Routed(route.clustered, rows, vectors, routing.group, routing.order, bucket)
    if route.rest is not None and not inside.all():
        rows, vectors = batch.filter(pa.array(~inside)), bits[~inside]
        ids = rows.column(rows.schema.get_field_index(ROW_ID)).to_numpy()
        bucket = np.minimum(ids // route.rest_rows_per_bucket, route.rest.buckets - 1).astype(np.int32)
        yield _Routed(route.rest, rows, vectors, np.zeros(len(ids), np.int32), ids.astype(np.uint64), bucket)


def _inside(route: LayoutRoute, bits: Bits) -> Bits:
    """Which rows are in the clustered part: all of them, where the layout does not tell rows apart."""
    if route.rest is None and route.layout.holds_all_rows:
        return np.ones(len(bits), np.bool_)
    satisfied: Bits = np.any(bits[:, list(route.layout.features)], axis=1)
    return satisfied


def _slices(routed: _Routed) -> Iterator[tuple[int, bytes]]:
    by_bucket = np.argsort(routed.bucket, kind="stable")
    sent = _with_routing(routed.rows.select([*routed.part.columns, ROW_ID]), routed).take(pa.array(by_bucket))
    ordered = routed.bucket[by_bucket]
    edges = np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, [len(ordered)]])
    for start, end in itertools.pairwise(edges.tolist()):
        yield routed.part.first_bucket + int(ordered[start]), message(sent.slice(start, end - start))


def _with_routing(rows: pa.RecordBatch, routed: _Routed) -> pa.RecordBatch:
    packed = pack(routed.bits)
    width = packed.shape[1]
    vector = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), rows.num_rows, [None, pa.py_buffer(np.ascontiguousarray(packed))]
    )
    return pa.RecordBatch.from_arrays(
        [*rows.columns, pa.array(routed.group), pa.array(routed.order), vector],
        names=[*rows.schema.names, GROUP, ORDER, VECTOR],
    )


def message(batch: pa.RecordBatch) -> bytes:
    """Write a batch as one Arrow stream, lightly compressed: it may cross a network."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def needs_rest(layout: Layout) -> bool:
    """Whether a layout must be stored in two parts, because some of its columns are masters and others are not."""
    return bool(layout.masters) and layout.masters != frozenset(layout.columns) and bool(layout.features)


def parts_of(
    chunk: str, scheme: Scheme, number: int, buckets: int, rest_buckets: int, first: int
) -> tuple[Part, Part | None]:
    """Lay out the buckets of one layout of a chunk, beginning with bucket `first`."""
    layout = scheme.layouts[number]
    clustered = Part(chunk, number, CLUSTERED, layout.columns, first, buckets)
    if not needs_rest(layout):
        return clustered, None
    masters = tuple(column for column in layout.columns if column in layout.masters)
    return clustered, Part(chunk, number, REST, masters, first + buckets, rest_buckets)
