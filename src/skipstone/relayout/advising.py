"""Advice: which layout would serve a workload, what each candidate would read, and whether laying out pays.

Candidates are judged on queries that were kept from them. "No change" and sorting by the best single column are always
among them; what is not worth a rewrite is not advised. Nothing is written.

With a budget of storage, groups of columns and partial replicas are candidates, too; cells that are stored twice must
save as much as a rewrite must.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipstone.catalog.location import Location
from skipstone.catalog.values import ROW_ID, Snapshot
from skipstone.errors import InvalidInput, LayoutInfeasible
from skipstone.layout.clustering import clustering
from skipstone.layout.clustering.conditions import true_rows
from skipstone.layout.clustering.routing import ClusteringProblem
from skipstone.layout.replication.gsop_r import ROUNDING, require_budget
from skipstone.layout.sampling import sampled_blocks
from skipstone.layout.scheme import ClusteringSpec, Layout, Scheme
from skipstone.layout.whatif import describe_blocks, matching_shares
from skipstone.predicate.literal import Conjunction
from skipstone.predicate.printing import sql
from skipstone.relayout.column_design import ColumnForecast
from skipstone.relayout.column_groups import GSOP, group_features, try_groups
from skipstone.relayout.executor import Executor, Progress
from skipstone.relayout.fitting import sample_rows
from skipstone.relayout.partial_replicas import GSOP_R, present_storage, try_replicas
from skipstone.relayout.rewriting import Design, read_whole_chunk
from skipstone.relayout.tracking import tracked_expressions
from skipstone.scan.plan import plan_scan
from skipstone.scan.read import ReadTask
from skipstone.workload.mining import DEFAULT_MAX_FEATURES, DEFAULT_MIN_SUPPORT, mine
from skipstone.workload.query import Feature, Query

__all__ = [
    "AUTO",
    "NO_CHANGE",
    "SMALLEST_GAIN",
    "Advice",
    "Candidate",
    "QueryForecast",
    "Wishes",
    "advise",
    "bytes_per_row",
    "held_out",
    "judged_on",
]

_LOG = logging.getLogger(__name__)

AUTO = ("sort", "zorder", "hilbert", "ward", "ward-queries", "qdtree")
"""What `auto` tries, besides leaving the table as it is. Groups of columns must be asked for, by name or by a budget of
storage: a table that has them is read by Skipstone alone."""

SEVERAL_LAYOUTS = (GSOP, GSOP_R)
"""What a budget of storage adds: layouts that share no column, and layouts that do."""

NO_CHANGE = "no change"

SMALLEST_GAIN = 0.1
"""A layout that reads less than this share fewer bytes than the present one is not worth the rewrite."""

HELD_OUT = 4
"""Of each template, every so many-th different query is kept from the search and judges it."""

Shares = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user wants of a layout; the defaults are for a table of millions of rows."""

    clustering: tuple[ClusteringSpec, ...] = ()
    """Those to choose from; all that `auto` tries where none is named."""
    block_rows: int = 10_000
    max_features: int = DEFAULT_MAX_FEATURES
    min_support: float = DEFAULT_MIN_SUPPORT
    exclude: tuple[str, ...] = ()
    sample_rows: int = 200_000
    seed: int = 0
    storage: float | None = None
    """How many times the cells of the table may be stored; None: several layouts are not thought of unless named."""

    def candidates(self) -> tuple[ClusteringSpec, ...]:
        """All that is tried, in order.

        >>> [one.name for one in Wishes(clustering=(ClusteringSpec("sort"),), storage=1.2).candidates()]
        ['sort', 'gsop', 'gsop-r']
        """
        named = self.clustering or tuple(ClusteringSpec(one) for one in AUTO)
        if self.storage is None:
            if any(one.name == GSOP_R for one in named):
                raise InvalidInput(f"{GSOP_R} stores some cells twice: say how many times the table, as in storage=1.2")
            return named
        require_budget(self.storage)
        several = (ClusteringSpec(one) for one in SEVERAL_LAYOUTS if all(one != spec.name for spec in named))
        return (*named, *several)


@dataclass(frozen=True, slots=True)
class QueryForecast:
    """What one judging query is expected to read, as shares of the table's rows; `at_least` is its selectivity."""

    template: str
    filter: str
    weight: float
    now: float
    then: float
    at_least: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout, and what the judging queries would read of the table with it: shares of rows, of cells, of bytes.

    `storage` is how many times the cells of the table it stores, row ids not counted; `stored_bytes` are all bytes that
    it takes, and `written_bytes` those that laying out would write.
    """

    name: str
    rows: float
    cells: float
    bytes: float
    storage: float = 1.0
    stored_bytes: int = 0
    written_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Advice:
    """What was found: the candidates, the one that is advised, and for `optimize` the design of it.

    `design` is None where no change is advised; `reasons` say why it is or is not.
    """

    table: str
    version: int
    rows: int
    candidates: tuple[Candidate, ...]
    chosen: str
    lower_bound: float
    features: tuple[Feature, ...]
    forecasts: tuple[QueryForecast, ...]
    reasons: tuple[str, ...]
    rewrite_bytes: int
    design: Design | None
    columns: ColumnForecast | None = None
    storage: float | None = None
    """How many times the cells of the table may be stored."""

    def candidate(self, name: str) -> Candidate:
        """The candidate of this name."""
        return next(one for one in self.candidates if one.name == name)


def advise(
    snapshot: Snapshot,
    queries: Sequence[Query],
    wishes: Wishes,
    *,
    name: str,
    table: Location,
    executor: Executor,
    progress: Progress,
) -> Advice:
    """Try layouts on a sample and judge them on queries that they were not made for."""
    if not queries:
        raise InvalidInput(
            f'the workload has no query on table "{name}" that could be understood; nothing to lay out for'
        )
    rows = sum(snapshot.facts(chunk).rows for chunk in snapshot.chunks)
    if rows == 0:
        raise LayoutInfeasible(f'table "{name}" has no rows yet; append some first')
    wishes.candidates()  # what cannot be wished for is said before rows are looked at
    training, judging = held_out(queries)
    features = _mined(training, wishes)
    sample = _sample(snapshot, queries, wishes, table, executor, progress, rows)
    judge = _Judge.of(snapshot, judging, sample)
    trials = []
    progress.start("try layouts", len(wishes.candidates()))
    for spec in wishes.candidates():
        if spec.name in SEVERAL_LAYOUTS:
            trials.append(_try_layouts(spec.name, snapshot, sample, training, judge, wishes, rows))
        else:
            trials.append(_try(spec, sample, features, training, judge, wishes, rows))
        progress.advance(1)
    return _decided(name, snapshot, rows, queries, judge, trials, wishes)


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """What was tried: one layout by a clustering, or a scheme of several; the shares of cells and bytes read of it."""

    name: str
    of: ClusteringSpec | Scheme
    cells: Shares
    bytes: Shares
    storage: float = 1.0
    stored_bytes: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class _Judge:
    """The queries that judge, what they read now and could read at best, and how cells and bytes follow from rows."""

    queries: tuple[Query, ...]
    now: Shares
    at_least: Shares
    weights: Shares
    cells: Shares
    bytes: Shares

    @classmethod
    def of(cls, snapshot: Snapshot, queries: Sequence[Query], sample: pa.Table) -> _Judge:
        """Plan each query on the table as it is; the sample says how many rows it selects."""
        rows = max(1, sum(snapshot.facts(chunk).rows for chunk in snapshot.chunks))
        sizes = bytes_per_row(snapshot)
        plans = [plan_scan(snapshot, query.columns, query.filter) for query in queries]
        counts = [plan.counts() for plan in plans]
        now = [
            (count.cells + count.row_ids) / (rows * len(plan.read_columns))
            for count, plan in zip(counts, plans, strict=True)
        ]
        return cls(
            tuple(queries),
            np.array(now),
            matching_shares(sample, [query.filter for query in queries]),
            np.array([query.weight for query in queries]),
            np.array([len(plan.read_columns) for plan in plans], np.float64),
            np.array([sum(sizes.get(column, 0.0) for column in plan.read_columns) for plan in plans]),
        )

    def candidate(self, name: str, cells: Shares, bytes_: Shares) -> Candidate:
        """Weigh the shares by queries, and by how many cells and bytes a row is for each of them."""
        return Candidate(
            name,
            _mean(cells, self.weights),
            _mean(cells, self.weights * self.cells),
            _mean(bytes_, self.weights * self.bytes),
        )


def _mean(shares: Shares, weights: Shares) -> float:
    total = float(weights.sum())
    return float((shares * weights).sum() / total) if total else float(shares.mean())


def bytes_per_row(snapshot: Snapshot) -> dict[str, float]:
    """The stored bytes of each column for one row, on average over the table."""
    stored: dict[str, float] = {}
    rows = max(1, sum(snapshot.facts(chunk).rows for chunk in snapshot.chunks))
    for blocks in snapshot.block_sets:
        home = {
            column: number
            for number, one in enumerate(snapshot.scheme(blocks.scheme).layouts)
            for column in one.masters
        }
        for column, layout in home.items():
            here = np.maximum(blocks.column_bytes(column), 0)[blocks.layout == layout]
            stored[column] = stored.get(column, 0.0) + float(here.sum())
    return {column: size / rows for column, size in stored.items()}


def held_out(queries: Sequence[Query]) -> tuple[list[Query], list[Query]]:
    """Keep every fourth different query of each template; where that leaves nothing, all queries judge."""
    seen: dict[str, int] = {}
    training: list[Query] = []
    judging: list[Query] = []
    for query in queries:
        count = seen[query.template] = seen.get(query.template, -1) + 1
        (judging if count % HELD_OUT == HELD_OUT - 1 else training).append(query)
    return (training, judging) if judging else (list(queries), list(queries))


def judged_on(queries: Sequence[Query], judging: Sequence[Query]) -> str:
    """Say which queries of a workload judged."""
    if len(judging) < len(queries):
        return f"on {len(judging)} queries kept from the search"
    return f"on the {len(queries)} queries that it was made for, too few to keep some from the search"


def _mined(queries: Sequence[Query], wishes: Wishes) -> tuple[Feature, ...]:
    return mine(queries, min_support=wishes.min_support, max_features=wishes.max_features, exclude=wishes.exclude)


@dataclass(frozen=True, slots=True)
class _SampleTask:
    sources: tuple[ReadTask, ...]
    columns: tuple[str, ...]
    rows: int
    wanted: int
    seed: int


def _draw(task: _SampleTask) -> pa.RecordBatch:
    return sample_rows(task.sources, task.columns, rows=task.rows, wanted=task.wanted, seed=task.seed)


def _sample(
    snapshot: Snapshot,
    queries: Sequence[Query],
    wishes: Wishes,
    table: Location,
    executor: Executor,
    progress: Progress,
    rows: int,
) -> pa.Table:
    """Draw rows of all chunks, in proportion, with the columns that filters and clusterings look at."""
    needed = {column for query in queries for column in query.filter.columns}
    for spec in wishes.clustering:
        needed.update(() if spec.name in SEVERAL_LAYOUTS else clustering(spec).columns)
    columns = tuple(name for name in snapshot.schema.names if name in needed) or tuple(snapshot.schema.names[:1])
    tasks = [
        _SampleTask(
            tuple(read_whole_chunk(snapshot, chunk, table)),
            columns,
            snapshot.facts(chunk).rows,
            max(1, round(wishes.sample_rows * snapshot.facts(chunk).rows / rows)),
            wishes.seed,
        )
        for chunk in snapshot.chunks
    ]
    drawn = executor.map(_draw, tasks, stage="sample", progress=progress)
    return pa.Table.from_batches(drawn).drop_columns([ROW_ID]).combine_chunks()


def _try(
    spec: ClusteringSpec,
    sample: pa.Table,
    features: tuple[Feature, ...],
    training: Sequence[Query],
    judge: _Judge,
    wishes: Wishes,
    rows: int,
) -> _Trial:
    filters = [feature.filter for feature in features]
    bits = true_rows(filters, sample)
    problem = ClusteringProblem(features, tuple(training), rows, wishes.block_rows, wishes.seed)
    router = clustering(spec).fit(sample, problem)
    routing = router.route(_one_batch(sample), bits)
    known: list[Conjunction] = [*filters, *(one for one in router.used if one not in set(filters))]
    tracked = tracked_expressions(sample.schema, [query.filter for query in training])
    block = sampled_blocks(routing.group, routing.order, rows=rows, block_rows=wishes.block_rows)
    blocks = describe_blocks(sample, true_rows(known, sample), known, block, [one.expression for one in tracked])
    shares = blocks.read_shares([query.filter for query in judge.queries])
    return _Trial(spec.name, spec, shares, shares)


def _try_layouts(
    name: str,
    snapshot: Snapshot,
    sample: pa.Table,
    training: Sequence[Query],
    judge: _Judge,
    wishes: Wishes,
    rows: int,
) -> _Trial:
    """Let groups of columns have layouts of their own, and with a budget cells have more than one."""
    features = group_features(
        training, max_features=wishes.max_features, min_support=wishes.min_support, exclude=wishes.exclude
    )
    known = bytes_per_row(snapshot)
    sizes = {column: known.get(column, 0.0) for column in snapshot.schema.names}
    shape = {"rows": rows, "block_rows": wishes.block_rows, "seed": wishes.seed}
    if name == GSOP_R and wishes.storage is not None:
        tried = try_replicas(
            sample, features, training, judge.queries, sizes, wishes.storage, exclude=wishes.exclude, **shape
        )
    else:
        tried = try_groups(sample, features, training, judge.queries, sizes, **shape)
    return _Trial(name, tried.scheme, tried.cells, tried.bytes, tried.storage, tried.stored_bytes)


def _one_batch(sample: pa.Table) -> pa.RecordBatch:
    batches = sample.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=sample.schema)


def _decided(
    name: str,
    snapshot: Snapshot,
    rows: int,
    queries: Sequence[Query],
    judge: _Judge,
    trials: Sequence[_Trial],
    wishes: Wishes,
) -> Advice:
    rewrite_bytes = round(sum(bytes_per_row(snapshot).values()) * rows)
    stored, stored_bytes = present_storage(snapshot)
    now = replace(judge.candidate(NO_CHANGE, judge.now, judge.now), storage=stored, stored_bytes=stored_bytes)
    candidates = [now, *(_candidate(judge, trial, rewrite_bytes) for trial in trials)]
    for one in candidates:
        _LOG.debug(
            "%s: %s reads %s of the bytes, %s of the rows", name, one.name, *map(_percent, (one.bytes, one.rows))
        )
    best = _best(candidates[1:])
    winner = candidates[best + 1]
    gain = 1 - winner.bytes / now.bytes if now.bytes else 0.0
    pays = gain >= SMALLEST_GAIN
    features = _mined(queries, wishes)
    design = _design(snapshot, queries, features, trials[best].of, wishes) if pays else None
    chosen_shares = trials[best].cells if pays else judge.now
    forecasts = tuple(
        QueryForecast(query.template, sql(query.filter), query.weight, float(before), float(after), float(least))
        for query, before, after, least in zip(judge.queries, judge.now, chosen_shares, judge.at_least, strict=True)
    )
    reason = (
        f"{winner.name} reads {_percent(winner.bytes)} of the bytes, the present layout {_percent(now.bytes)}, "
        f"{judged_on(queries, judge.queries)}"
    )
    verdict = reason if pays else f"{reason}: less than {SMALLEST_GAIN:.0%} is saved, which is not worth the rewrite"
    return Advice(
        name,
        snapshot.version,
        rows,
        tuple(candidates),
        winner.name if pays else NO_CHANGE,
        _mean(judge.at_least, judge.weights),
        features,
        forecasts,
        (verdict,),
        rewrite_bytes,
        design,
        storage=wishes.storage,
    )


def _candidate(judge: _Judge, trial: _Trial, table_bytes: int) -> Candidate:
    """What a trial comes to; its blocks are taken to compress as well as those that are there."""
    written = round(trial.stored_bytes * table_bytes)
    read = judge.candidate(trial.name, trial.cells, trial.bytes)
    return replace(read, storage=trial.storage, stored_bytes=written, written_bytes=written)


def _best(candidates: Sequence[Candidate]) -> int:
    """The candidate that reads fewest bytes; one that stores cells twice must read so much less than one that does not
    that another rewrite would pay."""
    order = sorted(range(len(candidates)), key=lambda number: candidates[number].bytes)
    once = next((number for number in order if candidates[number].storage <= 1 + ROUNDING), None)
    if once is None or candidates[order[0]].bytes <= (1 - SMALLEST_GAIN) * candidates[once].bytes:
        return order[0]
    return once


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _design(
    snapshot: Snapshot,
    queries: Sequence[Query],
    features: tuple[Feature, ...],
    of: ClusteringSpec | Scheme,
    wishes: Wishes,
) -> Design:
    if isinstance(of, ClusteringSpec):
        every = tuple(range(len(features)))
        layout = _with_present_order(snapshot, Layout((), every, frozenset(snapshot.schema.names), of))
        of = Scheme((layout,), tuple(feature.filter for feature in features))
    return Design(
        of,
        tuple(queries),
        wishes.block_rows,
        tracked_expressions(snapshot.schema, [query.filter for query in queries]),
        wishes.sample_rows,
        wishes.seed,
    )


def _with_present_order(snapshot: Snapshot, layout: Layout) -> Layout:
    """The same layout with all columns in the order, and with the duplicates, that most of the table's rows have.

    Columns that came to the table since then are last.
    """
    names = snapshot.schema.names
    present = Layout(tuple(names))
    most = 0
    for blocks in snapshot.block_sets:
        layouts = snapshot.scheme(blocks.scheme).layouts
        rows = int(blocks.rows.sum())
        if len(layouts) == 1 and rows > most and set(layouts[0].columns) <= set(names):
            present, most = layouts[0], rows
    later = tuple(name for name in names if name not in set(present.columns))
    order = (*present.order, *later) if present.order else ()
    return replace(layout, columns=(*present.columns, *later), duplicates=present.duplicates, order=order)
