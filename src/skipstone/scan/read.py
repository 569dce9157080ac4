"""Read what a plan names and give the rows that satisfy the filter; the same function here and inside Spark tasks.

Within one layout, blocks stream: the filter's columns first, the others only of row groups in which a row is left.
Across layouts, rows are put together by row id, the layout with the fewest rows first: each further layout gives only
the rows that are still wanted (dissertation 4.6.2 and 5.6, where a sort-merge join does this after reading everything).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipstone.catalog.location import Location
from skipstone.catalog.values import ROW_ID
from skipstone.errors import CannotEvaluate
from skipstone.predicate.evaluation import Evaluator, cannot_evaluate
from skipstone.predicate.literal import ALWAYS, Conjunction, Predicate
from skipstone.predicate.printing import sql
from skipstone.scan.plan import ChunkRead, FileRead, LayoutRead, ScanPlan
from skipstone.store.reader import FileBlocks, read_blocks

__all__ = ["ReadTask", "read", "read_tasks"]

Ints = npt.NDArray[np.int64]

Pair: TypeAlias = tuple[str, str]
"""A column, and the name it is stored under."""

BATCH_ROWS = 65_536

TASK_ROWS = 2_000_000
"""About so many rows make a task, where the rows of a chunk can be read apart (that is, where it is one layout)."""


@dataclass(frozen=True, slots=True)
class ReadTask:
    """A part of a scan that one process reads by itself; picklable.

    `schema` is the table's; the rows have `columns`. `filter` is evaluated as far as Arrow can; what it cannot evaluate
    keeps its rows and is the caller's to check, or, where the rows must be `exact`, is an error. Parts of a timestamp
    are evaluated only where a `time_zone` is given.
    """

    table: Location
    schema: pa.Schema
    source: ChunkRead
    columns: tuple[str, ...]
    filter: Conjunction = ALWAYS
    row_ids: bool = False
    """Whether the rows come with their row ids, as a last column."""
    exact: bool = False
    time_zone: str | None = None


def read_tasks(
    plan: ScanPlan,
    table: Location,
    *,
    columns: tuple[str, ...] | None = None,
    row_ids: bool = False,
    exact: bool = False,
    time_zone: str | None = None,
) -> list[ReadTask]:
    """Cut a plan into tasks of a good size; `columns` may be fewer than the plan's."""
    wanted = plan.columns if columns is None else columns
    return [
        ReadTask(table, plan.snapshot.schema, part, wanted, plan.filter, row_ids, exact, time_zone)
        for chunk in plan.reads()
        for part in _parts(chunk)
    ]


def read(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Give the rows of a task that satisfy its filter, as far as Arrow can tell."""
    names = (*task.columns, ROW_ID) if task.row_ids else task.columns
    for batch in _read_one(task) if len(task.source.layouts) == 1 else _read_several(task):
        if batch.num_rows:
            yield batch.select(names)


def _parts(chunk: ChunkRead) -> Iterator[ChunkRead]:
    """A chunk that is read from one layout can be read in parts, each of whole files' runs of row groups."""
    if len(chunk.layouts) > 1:
        yield chunk
        return
    layout = chunk.layouts[0]
    pending: list[FileRead] = []
    rows = 0
    for file in layout.files:
        pending.append(file)
        rows += sum(file.rows)
        if rows >= TASK_ROWS:
            yield ChunkRead(chunk.chunk, (LayoutRead(layout.layout, layout.columns, tuple(pending)),))
            pending, rows = [], 0
    if pending:
        yield ChunkRead(chunk.chunk, (LayoutRead(layout.layout, layout.columns, tuple(pending)),))


def _read_one(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Stream one layout: the filter's columns decide which row groups the other columns are read of."""
    layout = task.source.layouts[0]
    evaluator = Evaluator(task.filter, time_zone=task.time_zone)
    first = [pair for pair in layout.columns if pair[0] in evaluator.columns]
    others = [pair for pair in layout.columns if pair[0] not in evaluator.columns]
    for file in layout.files:
        if first and others:
            yield from _read_late(task, file, evaluator, first, others)
            continue
        for batch in _numbered(task, file, _read_columns(task, file, file.row_groups, layout.columns)):
            yield batch.filter(matches(evaluator, batch, exact=task.exact))


def _read_late(
    task: ReadTask, file: FileRead, evaluator: Evaluator, first: Sequence[Pair], others: Sequence[Pair]
) -> Iterator[pa.RecordBatch]:
    """Read the filter's columns of a file, then the others of the row groups in which a row is left."""
    filtered: list[pa.RecordBatch] = []
    masks: list[npt.NDArray[np.bool_]] = []
    for batch in _numbered(task, file, _read_columns(task, file, file.row_groups, first)):
        mask = matches(evaluator, batch, exact=task.exact)
        filtered.append(batch.filter(mask))
        masks.append(mask.to_numpy(zero_copy_only=False))
    mask_of_file = np.concatenate(masks) if masks else np.empty(0, np.bool_)
    ends = np.cumsum(file.rows)
    hit = [bool(mask_of_file[end - rows : end].any()) for end, rows in zip(ends, file.rows, strict=True)]
    if not any(hit):
        return
    groups = tuple(group for group, wanted in zip(file.row_groups, hit, strict=True) if wanted)
    mask_of_hits = mask_of_file[np.repeat(hit, file.rows)]
    kept = pa.Table.from_batches(filtered)
    seen = given = 0
    for batch in _read_columns(task, file, groups, others, row_ids=False):
        rest = batch.filter(pa.array(mask_of_hits[seen : seen + batch.num_rows]))
        seen += batch.num_rows
        if rest.num_rows:
            yield _side_by_side(_one_batch(kept.slice(given, rest.num_rows)), rest)
            given += rest.num_rows


def matches(evaluator: Evaluator, batch: pa.RecordBatch, *, exact: bool = False) -> pa.BooleanArray:
    """Tell which rows may satisfy the filter: what cannot be evaluated keeps its rows, or is an error."""
    selection = evaluator.select(batch)
    if exact and selection.residual:
        condition = sql(selection.residual[0])
        reason = cannot_evaluate(selection.residual[0], time_zone=evaluator.time_zone)
        raise CannotEvaluate(
            f"{condition}: {reason or 'some rows need what only Spark computes'}. "
            "Hint: read it through Spark, with to_spark() or Lake.sql()"
        )
    return selection.mask


def _read_columns(
    task: ReadTask, file: FileRead, groups: tuple[int, ...], columns: Sequence[Pair], *, row_ids: bool | None = None
) -> Iterator[pa.RecordBatch]:
    wanted = task.row_ids if row_ids is None else row_ids
    return read_blocks(
        task.table,
        [FileBlocks(file.path, groups)],
        pa.schema([task.schema.field(logical) for logical, _ in columns]),
        stored=dict(columns),
        row_ids=wanted and file.stores_row_ids,
    )


def _numbered(task: ReadTask, file: FileRead, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add row ids where they are asked for and follow from the position of the rows in the chunk."""
    if not task.row_ids or file.stores_row_ids:
        yield from batches
        return
    ids = np.concatenate(
        [
            np.arange(first, first + rows, dtype=np.int64)
            for first, rows in zip(file.first_row_ids, file.rows, strict=True)
        ]
    )
    seen = 0
    for batch in batches:
        yield batch.append_column(
            pa.field(ROW_ID, pa.int64(), nullable=False), pa.array(ids[seen : seen + batch.num_rows])
        )
        seen += batch.num_rows


def _one_batch(rows: pa.Table) -> pa.RecordBatch:
    batches = rows.combine_chunks().to_batches()
    return batches[0]


def _side_by_side(left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
    fields = [*left.schema, *right.schema]
    return pa.RecordBatch.from_arrays([*left.columns, *right.columns], schema=pa.schema(fields))


@dataclass(frozen=True, slots=True, eq=False)
class _Gathered:
    """Rows of one layout, sorted by row id."""

    ids: Ints
    table: pa.Table


def _read_several(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Put rows together from several layouts, the one with the fewest rows first."""
    wanted: Ints | None = None
    gathered: list[_Gathered] = []
    for layout in sorted(task.source.layouts, key=lambda one: (one.rows, one.layout)):
        here = _gather(task, layout, wanted)
        gathered.append(here)
        wanted = here.ids
        if len(wanted) == 0:
            return
    assert wanted is not None
    rows = pa.table({ROW_ID: pa.array(wanted)})
    for one in gathered:
        aligned = (
            one.table if len(one.ids) == len(wanted) else one.table.take(pa.array(np.searchsorted(one.ids, wanted)))
        )
        for name in aligned.column_names:
            rows = rows.append_column(aligned.schema.field(name), aligned[name])
    evaluator = Evaluator(_spanning(task.filter, task.source.layouts), time_zone=task.time_zone)
    for batch in rows.to_batches(max_chunksize=BATCH_ROWS):
        yield batch.filter(matches(evaluator, batch, exact=task.exact))


def _gather(task: ReadTask, layout: LayoutRead, wanted: Ints | None) -> _Gathered:
    """Read the rows of a layout that are still wanted and satisfy what the filter says of its columns alone."""
    evaluator = Evaluator(_within(task.filter, layout), time_zone=task.time_zone)
    schema = pa.schema([task.schema.field(logical) for logical, _ in layout.columns])
    is_wanted = None if wanted is None else _Membership(wanted)
    ids: list[Ints] = []
    kept: list[pa.RecordBatch] = []
    for file in layout.files:
        groups = file.row_groups if wanted is None else _groups_with(file, wanted)
        for batch in _read_columns(task, file, groups, layout.columns, row_ids=True):
            row_ids = batch.column(len(schema)).to_numpy()
            mask = matches(evaluator, batch, exact=task.exact).to_numpy(zero_copy_only=False)
            mask = mask if is_wanted is None else mask & is_wanted(row_ids)
            if mask.any():
                ids.append(row_ids[mask])
                kept.append(batch.select(schema.names).filter(pa.array(mask)))
    if not kept:
        return _Gathered(np.empty(0, np.int64), schema.empty_table())
    all_ids = np.concatenate(ids)
    order = np.argsort(all_ids, kind="stable")
    return _Gathered(all_ids[order], pa.Table.from_batches(kept).take(pa.array(order)))


def _groups_with(file: FileRead, wanted: Ints) -> tuple[int, ...]:
    """The row groups in whose range of row ids one is wanted."""
    low = np.searchsorted(wanted, file.first_row_ids, side="left")
    high = np.searchsorted(wanted, file.last_row_ids, side="right")
    return tuple(group for group, one, other in zip(file.row_groups, low, high, strict=True) if one < other)


class _Membership:
    """Tells which row ids are among the wanted ones, through a bitmap over the range of the wanted ids."""

    def __init__(self, wanted: Ints) -> None:
        self._low, self._high = int(wanted[0]), int(wanted[-1])
        self._bitmap = np.zeros(self._high - self._low + 1, np.bool_)
        self._bitmap[wanted - self._low] = True

    def __call__(self, row_ids: Ints) -> npt.NDArray[np.bool_]:
        inside = (row_ids >= self._low) & (row_ids <= self._high)
        inside[inside] = self._bitmap[row_ids[inside] - self._low]
        return inside


def _within(condition: Conjunction, layout: LayoutRead) -> Conjunction:
    """The predicates that look only at columns which come from this layout."""
    here = {logical for logical, _ in layout.columns}
    return Conjunction(tuple(predicate for predicate in condition if predicate.columns <= here))


def _spanning(condition: Conjunction, layouts: Sequence[LayoutRead]) -> Conjunction:
    """The predicates that look at columns of more than one layout."""

    def spans(predicate: Predicate) -> bool:
        return not any(predicate.columns <= {logical for logical, _ in layout.columns} for layout in layouts)

    return Conjunction(tuple(predicate for predicate in condition if spans(predicate)))
