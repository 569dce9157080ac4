"""The use cases: a lake of tables, and what can be done with each.

    lake = skipstone.open("s3://bucket/lake", spark=spark)       spark is optional
    table = lake.create("sales", "/data/sales.parquet")          raw, queryable at once
    advice = table.advise(work)                                  what if; nothing is written
    table.optimize(advice)                                       one atomic commit
    table.scan(columns=[...], where="...").to_arrow()            no Java
    lake.sql("SELECT ... FROM sales WHERE ...")                  a Spark data frame

Everything here takes plain values and gives frozen results; the command line only renders them.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from skipstone.catalog.location import Location
from skipstone.catalog.memory import MemoryCatalog
from skipstone.catalog.native import NativeCatalog
from skipstone.catalog.protocol import DEFAULT_RETENTION, Catalog
from skipstone.catalog.querylog import LoggedQuery, NativeQueryLog
from skipstone.catalog.values import Change, Commit, NewChunk, Note, Snapshot, VacuumReport, new_chunk_name
from skipstone.errors import (
    ColumnNotFound,
    InvalidInput,
    InvalidQuery,
    LayoutInfeasible,
    StorageFailed,
    TableExists,
    TableNotFound,
    listed,
)
from skipstone.layout.columns.seek import SeekProfile
from skipstone.layout.replication.gsop_r import ROUNDING
from skipstone.layout.scheme import ClusteringSpec, Scheme
from skipstone.predicate.arrow.zones import require_zone
from skipstone.predicate.evaluation import cannot_evaluate
from skipstone.predicate.literal import ALWAYS, Conjunction
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql as sql_text
from skipstone.predicate.writing_spark import identifier
from skipstone.relayout.advising import Advice, Wishes, advise
from skipstone.relayout.advising_columns import advise_columns
from skipstone.relayout.column_design import ColumnWishes, recorded_cost
from skipstone.relayout.design_files import DESIGN, design_in_force, keep_design, kept_design
from skipstone.relayout.executor import Executor, LocalExecutor, Progress, Silent
from skipstone.relayout.loading import RAW_FILE_ROWS, raw_chunks
from skipstone.relayout.partial_replicas import stored_cells
from skipstone.relayout.rewriting import rewrite_chunks, with_features_kept
from skipstone.relayout.slicing import Slicing
from skipstone.relayout.sources import LoadJob, Source, open_source, schemas_agree, with_types_of
from skipstone.relayout.tracking import tracked_columns
from skipstone.scan.explain import ScanReport, report
from skipstone.scan.plan import ScanPlan, Skipping, plan_scan
from skipstone.scan.redundant import Rewritten, rewritten, usable_features
from skipstone.scan.replicas import reading_profile
from skipstone.scan.scan import Scan
from skipstone.store.publishing import Published, is_published, publish, published_features
from skipstone.store.types import storable_schema
from skipstone.store.writer import BlockTarget
from skipstone.workload.mining import DEFAULT_MAX_FEATURES, DEFAULT_MIN_SUPPORT
from skipstone.workload.places import TablePlace, table_places
from skipstone.workload.query import Query, Request
from skipstone.workload.reading import Workload
from skipstone.workload.requests import FrontEnd

if TYPE_CHECKING:
    # Names for the reader and the type checker; nothing of Spark is imported when this module is.
    from pyspark.sql import DataFrame, SparkSession  # noqa: TID251

__all__ = [
    "CHUNK_ROWS",
    "RAW_BLOCK_ROWS",
    "Description",
    "Lake",
    "LayoutDescription",
    "Optimized",
    "Promise",
    "Table",
    "open_lake",
]

CHUNK_ROWS = 10_000_000
"""A chunk has at most about so many rows (the papers' horizontal partition)."""

RAW_BLOCK_ROWS = 65_536
"""Rows of a block in a raw chunk: large, because nothing is known yet that could skip small ones."""

BLOCK_ROWS = 10_000
"""Rows of a block in a layout, at least; the papers use 10,000 to 50,000."""

SAMPLE_ROWS = 200_000
"""An advice looks at so many rows."""

COMMITS_LOOKED_AT = 200
"""The last layout is looked for among so many commits."""

logger = logging.getLogger(__name__)

_CHUNK_ROWS = "skipstone.chunkRows"
_TIME_ZONE = "skipstone.timeZone"
_CUT_BY = "skipstone.cutBy"


def open_lake(
    path: str | os.PathLike[str],
    *,
    spark: SparkSession | None = None,
    storage_options: Mapping[str, str] | None = None,
    log_queries: bool = False,
) -> Lake:
    """Open a directory of tables, local or in an object store; it need not exist yet.

    With `spark`, rows are moved by its tasks and `sql` runs in it. Without it, rows are moved by the threads of this
    process, and a local session is started only when `sql` or `to_spark` ask for one.

    With `log_queries`, each table remembers what was asked of it and what that read: see `Table.log`.
    """
    return Lake(Location.at(path, storage_options), spark, log_queries=log_queries)


class Lake:
    """A directory of tables."""

    def __init__(self, location: Location, spark: SparkSession | None = None, *, log_queries: bool = False) -> None:
        self.location = location
        self.log_queries = log_queries
        self._spark = spark
        self._tables: dict[str, Table] = {}
        self._front: tuple[dict[str, pa.Schema], str, FrontEnd] | None = None
        self.last_scan: tuple[ScanReport, ...] = ()
        """What the last statement given to `sql` reads, for each mention of a table."""

    @property
    def spark(self) -> SparkSession:
        """The Spark session in use; a local one is started where none was given."""
        if self._spark is None:
            from skipstone.spark.session import local_session

            self._spark = local_session()
        return self._spark

    @property
    def executor(self) -> Executor:
        """Who works on rows: Spark's tasks where a session was given, else the threads of this process."""
        if self._spark is None:
            return LocalExecutor()
        from skipstone.spark.executor import SparkExecutor

        return SparkExecutor(self._spark)

    def tables(self) -> tuple[str, ...]:
        """Name the tables, sorted."""
        names = {name for name in self.location.directories() if NativeCatalog(self.location.child(name)).exists()}
        return tuple(sorted(names))

    def table(self, name: str) -> Table:
        """Find a table by its name."""
        if name not in self._tables:
            catalog = NativeCatalog(self.location.child(_table_name(name)))
            if not catalog.exists():
                raise TableNotFound.among(name, self.tables(), where=self.location.uri)
            self._tables[name] = Table(name, catalog, self.location.child(name), self)
        return self._tables[name]

    def create(
        self,
        name: str,
        source: DataFrame | pa.Table | str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        chunk_rows: int = CHUNK_ROWS,
        block_rows: int = RAW_BLOCK_ROWS,
        time_zone: str = "UTC",
        cut_by: str | None = None,
        progress: Progress | None = None,
    ) -> Table:
        """Make a table of rows from a data frame, an Arrow table, or the path of Parquet, CSV or Delta data.

        The rows are stored as they come, in raw chunks, and can be queried at once. With `cut_by`, a column or
        `month(c)` and the like, rows that differ in that never share a chunk, now or when they are appended later.
        """
        _require_positive("chunk_rows", chunk_rows)
        _require_positive("block_rows", block_rows)
        require_zone(time_zone)
        self.location.require_no_file()
        location = self.location.child(_table_name(name))
        catalog = NativeCatalog(location)
        if catalog.exists():
            raise TableExists(f'there is a table "{name}" in {self.location.uri} already')
        opened = self._open(source, format)
        schema = storable_schema(opened.schema)
        table = Table(name, catalog, location, self)
        # Rows are written before the table is made, so that a failure leaves no table behind that has none.
        slicing = None if cut_by is None else Slicing.parse(cut_by, schema)
        chunks = table._load(opened, schema, chunk_rows, block_rows, slicing, progress or Silent())
        properties = [(_CHUNK_ROWS, str(chunk_rows)), (_TIME_ZONE, time_zone)]
        if slicing is not None:
            properties.append((_CUT_BY, str(slicing)))
        empty = catalog.create(schema, properties=tuple(properties))
        catalog.commit(_loading("create", chunks), base=empty.version)
        self._tables[name] = table
        return table

    def sql(self, text: str) -> DataFrame:
        """Run a SELECT in Spark over the tables of the lake; tables it does not have are Spark's own to find.

        So are those that Spark knows by a name of several parts: `prod.sales` is the lake's `sales` only where Spark
        has no `prod.sales`. What is read is in `last_scan` afterwards.
        """
        from skipstone.spark.sql import PlannedMention, is_table_of_spark, run_sql

        session = self.spark  # started before the statement is read, because its time zone says what a text means
        planned = self._plan(text, is_elsewhere=lambda name: is_table_of_spark(session, name))
        self.last_scan = tuple(one.report for one in planned)
        if self.log_queries:
            for name in {one.place.table: None for one in planned}:
                self.table(name)._remember([logged(text, one.plan, None) for one in planned if one.place.table == name])
        mentions = [PlannedMention(one.place, one.plan, self.location.child(one.place.table)) for one in planned]
        return run_sql(session, text, mentions)

    def explain(self, text: str, *, skipping: Skipping | None = None) -> tuple[ScanReport, ...]:
        """Say what a statement would read of each table it mentions, and why; nothing is read."""
        return tuple(one.report for one in self._plan(text, skipping))

    def _plan(
        self, text: str, skipping: Skipping | None = None, *, is_elsewhere: Callable[[str], bool] = lambda name: False
    ) -> list[_PlannedRequest]:
        """Plan a scan for each mention of a table in a statement, but for those that are of tables elsewhere."""
        snapshots = {name: self.table(name).snapshot() for name in self.tables()}
        schemas = {name: snapshot.schema for name, snapshot in snapshots.items()}
        profile = reading_profile(self.location)
        return [
            _planned(place, request, snapshots[place.table], skipping, profile)
            for place, request in _mentions(text, schemas, self._front_end(schemas), "spark", is_elsewhere)
        ]

    def rewrite(self, text: str, *, dialect: str = "spark", time_zone: str = "UTC") -> Rewritten:
        """Give a query of another engine over published tables the conditions on features that its filter implies.

        `time_zone` is that of the engine's session. The answer stays the same, also when chunks without features are
        added and published later.
        """
        require_zone(time_zone)
        snapshots = {name: self.table(name).snapshot() for name in self.tables()}
        schemas = {name: snapshot.schema for name, snapshot in snapshots.items()}
        front = FrontEnd(schemas, dialect=dialect, timezone=time_zone)
        usable: dict[str, tuple[Conjunction, ...]] = {}
        mentions = []
        for place, request in _mentions(text, schemas, front, dialect):
            if place.table not in usable:
                published = published_features(self.location.child(place.table))
                usable[place.table] = usable_features(snapshots[place.table], published)
            mentions.append((place, request, usable[place.table], schemas[place.table].names))
        return rewritten(text, mentions, dialect=dialect)

    def _front_end(self, schemas: dict[str, pa.Schema]) -> FrontEnd:
        zone = self._session_zone()
        if self._front is None or self._front[:2] != (schemas, zone):
            self._front = (schemas, zone, FrontEnd(schemas, timezone=zone))
        return self._front[2]

    def _session_zone(self) -> str:
        """The time zone in which Spark will read the statement: that of the session, which is UTC where we start it."""
        if self._spark is None:
            return "UTC"
        from skipstone.spark.session import session_zone

        return session_zone(self._spark)

    def _open(self, source: Any, format_name: str | None) -> Source:
        if isinstance(source, (pa.Table, pa.RecordBatch)):
            return open_source(source)
        if isinstance(source, (str, os.PathLike)):
            return open_source(os.fspath(source), options=dict(self.location.options), format=format_name)
        if type(source).__module__.startswith("pyspark.sql"):
            from skipstone.spark.loading import frame_source

            return frame_source(source)
        raise InvalidInput(
            f"cannot load from {type(source).__name__}; give a Spark data frame, an Arrow table, or a path"
        )


class Table:
    """One table of a lake."""

    def __init__(self, name: str, catalog: Catalog, location: Location, lake: Lake) -> None:
        self.name = name
        self.catalog = catalog
        self.location = location
        self.lake = lake

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types, as of now."""
        return self.snapshot().schema

    def snapshot(self, version: int | None = None, *, timestamp: datetime | None = None) -> Snapshot:
        """Look at the table as it is now, as it was at a version, or at a point in time."""
        return self.catalog.snapshot(version, timestamp=timestamp)

    def append(
        self,
        source: DataFrame | pa.Table | str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        block_rows: int | None = None,
        cut_by: str | None = None,
        layout: bool = False,
        progress: Progress | None = None,
    ) -> int:
        """Add rows as new chunks, which old ones do not notice, and give the new version.

        They are raw, in blocks of `block_rows`; or, with `layout`, laid out by the design that the table was last
        optimized by, in the same commit. They are cut as the table was created, or by `cut_by` this once.
        """
        if layout and block_rows is not None:
            raise InvalidInput("the layout says how many rows a block has; give block_rows, or ask for the layout")
        rows_of_block = RAW_BLOCK_ROWS if block_rows is None else block_rows
        _require_positive("block_rows", rows_of_block)
        snapshot = self.snapshot()
        name = self._design_in_force(snapshot) if layout else None
        opened = with_types_of(self.lake._open(source, format), snapshot.schema)
        chunks = self._raw_chunks(opened, snapshot, rows_of_block, cut_by, progress or Silent())
        if name is None or not chunks:
            return self.catalog.commit(_loading("append", chunks), base=snapshot.version)
        laid_out = self._laid_out(chunks, snapshot, name, progress or Silent())
        change = _loading("append", laid_out)
        return self.catalog.commit(replace(change, metrics=(*change.metrics, (DESIGN, name))), base=snapshot.version)

    def _design_in_force(self, snapshot: Snapshot) -> str:
        name = design_in_force(snapshot, self.history(COMMITS_LOOKED_AT))
        if name is None:
            raise InvalidInput(
                f'table "{self.name}" has not been laid out yet, so that there is no layout to append in. '
                "Hint: append without one, and optimize the table"
            )
        return name

    def _laid_out(
        self, chunks: tuple[NewChunk, ...], snapshot: Snapshot, design: str, progress: Progress
    ) -> tuple[NewChunk, ...]:
        """Rewrite raw chunks that belong to no version yet; their files go, whether that works out or not."""
        try:
            alone = MemoryCatalog()
            base = alone.create(snapshot.schema, properties=snapshot.properties)
            alone.commit(_loading("append", chunks), base=base.version)
            return rewrite_chunks(
                alone.snapshot(),
                [chunk.name for chunk in chunks],
                kept_design(design, snapshot.schema, self.location),
                table=self.location,
                executor=self.lake.executor,
                progress=progress,
                notes=((DESIGN, design),),
            )
        finally:
            for file in sorted({file for chunk in chunks for file in chunk.blocks.files}):
                self.location.delete(file)

    def _raw_chunks(
        self, source: Source, snapshot: Snapshot, block_rows: int, cut_by: str | None, progress: Progress
    ) -> tuple[NewChunk, ...]:
        problems = schemas_agree(snapshot.schema, storable_schema(source.schema))
        if problems:
            raise InvalidInput(f'these rows do not fit table "{self.name}": {listed(problems)}')
        properties = dict(snapshot.properties)
        chunk_rows = int(properties.get(_CHUNK_ROWS, CHUNK_ROWS))
        cut_by = properties.get(_CUT_BY) if cut_by is None else cut_by
        slicing = None if cut_by is None else Slicing.parse(cut_by, snapshot.schema)
        return self._load(source, snapshot.schema, chunk_rows, block_rows, slicing, progress)

    def _load(
        self,
        source: Source,
        schema: pa.Schema,
        chunk_rows: int,
        block_rows: int,
        slicing: Slicing | None,
        progress: Progress,
    ) -> tuple[NewChunk, ...]:
        """Write rows as raw chunks, which belong to no version yet."""
        raw = Scheme.raw(schema.names)
        chunk = new_chunk_name()
        target = BlockTarget.of(self.location, chunk, schema, raw, tracked=tracked_columns(schema))
        job = LoadJob(target, block_rows, min(RAW_FILE_ROWS, chunk_rows), slicing)
        try:
            loaded = source.load(job, executor=self.lake.executor, progress=progress)
        except BaseException:
            self._delete_what_is_left_of(chunk)
            raise
        return raw_chunks(loaded, schema.names, chunk_rows=chunk_rows, source=source.name)

    def _delete_what_is_left_of(self, chunk: str) -> None:
        """Delete what tasks have written of a load that failed; what cannot be deleted is an orphan for vacuum."""
        with contextlib.suppress(OSError):
            for file in tuple(self.location.list(f"data/{chunk}")):
                self.location.delete(file.path)
            if self.location.is_local:
                os.rmdir(self.location.uri)  # fails, and should, where there is a table

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        *,
        version: int | None = None,
        timestamp: datetime | None = None,
        dialect: str = "spark",
        skipping: Skipping | None = None,
    ) -> Scan:
        """Describe a read: some columns (all by default) of the rows for which a condition is TRUE."""
        snapshot = self.snapshot(version, timestamp=timestamp)
        zone = _zone_of(snapshot)
        condition = ALWAYS
        if where is not None:
            condition = parse_filter(where, snapshot.schema, dialect=dialect, timezone=zone)
        profile = reading_profile(self.location)
        plan = plan_scan(snapshot, columns, condition, skipping=skipping, profile=profile)
        when_read = None
        if self.lake.log_queries:
            text = _statement(self.name, columns, where)

            def when_read(read: ScanPlan, seconds: float | None) -> None:
                self._remember([logged(text, read, seconds)])

        return Scan(plan, self.location, to_frame=self._frame_of, time_zone=zone, when_read=when_read)

    def log(self, since: datetime | None = None) -> tuple[LoggedQuery, ...]:
        """What was asked of the table through a lake that logs queries, and what it read; oldest first.

        A statement that mentions the table twice is there twice. What Spark runs has no seconds: it was planned, and
        may have been run since, or not, or often.
        """
        return self._query_log.read(since)

    @property
    def _query_log(self) -> NativeQueryLog:
        return NativeQueryLog(self.location)

    def _remember(self, queries: Sequence[LoggedQuery]) -> None:
        """Log queries; that this fails is no reason for the query to fail."""
        try:
            self._query_log.append(queries)
        except StorageFailed as error:
            logger.warning("%s", error)

    def _frame_of(self, plan: ScanPlan) -> DataFrame:
        from skipstone.spark.reading import frame_of_plan
        from skipstone.spark.session import session_zone

        here, there = _zone_of(plan.snapshot), session_zone(self.lake.spark)
        for predicate in plan.filter if here != there else ():
            if cannot_evaluate(predicate) and not cannot_evaluate(predicate, time_zone=here):
                raise InvalidInput(
                    f'{sql_text(predicate)} depends on the time zone: table "{self.name}" reads it in {here}, '
                    f"the Spark session in {there}. Hint: ask in Lake.sql(), which reads it as the session does, "
                    f"or set spark.sql.session.timeZone to {here}"
                )
        return frame_of_plan(self.lake.spark, plan, self.location)

    def advise(
        self,
        work: Workload | Sequence[Query],
        *,
        clustering: str | Sequence[ClusteringSpec] = "auto",
        block_rows: int = BLOCK_ROWS,
        max_features: int = DEFAULT_MAX_FEATURES,
        min_support: float = DEFAULT_MIN_SUPPORT,
        exclude: Sequence[str] = (),
        sample_rows: int = SAMPLE_ROWS,
        seed: int = 0,
        columns: bool = False,
        headroom: float = 0.0,
        profile: SeekProfile | None = None,
        column_seconds: float | None = None,
        storage: float | None = None,
        progress: Progress | None = None,
    ) -> Advice:
        """Find the layout that serves a workload best, and whether it pays; nothing is written.

        `clustering` is `auto`, the name of one, or several with parameters to choose from. With `storage`, groups of
        columns (`gsop`) and partial replicas (`gsop-r`) are tried, too: it says how many times the cells of the table
        may be stored, 1.2 for a fifth more; row ids are no cells. With `columns`, an order of
        the columns is found for the same workload, with duplicates that take at most `headroom` of the table's bytes;
        `profile` says what a gap between two reads costs, by default as it is where the table lies, and
        `column_seconds` how long each search goes on.
        """
        _require_positive("block_rows", block_rows)
        _require_positive("sample_rows", sample_rows)
        queries = self._asked(work)
        wishes = Wishes(
            _specs(clustering), block_rows, max_features, min_support, tuple(exclude), sample_rows, seed, storage
        )
        snapshot = self.snapshot()
        for column in exclude:
            if column not in snapshot.schema.names:
                raise ColumnNotFound.among(column, snapshot.schema.names, where=f'table "{self.name}" (exclude)')
        advice = advise(
            snapshot,
            queries,
            wishes,
            name=self.name,
            table=self.location,
            executor=self.lake.executor,
            progress=progress or Silent(),
        )
        if not columns:
            return advice
        seek = profile or reading_profile(self.location)
        wished = ColumnWishes(headroom, seek, column_seconds, seed=seed)
        return advise_columns(advice, snapshot, queries, wishes, wished)

    def _asked(self, work: Workload | Sequence[Query]) -> tuple[Query, ...]:
        """The queries of a workload on this table; an error where there are none, with what may be the reason."""
        if not isinstance(work, Workload):
            return tuple(work)
        queries = work.queries(self.name)
        if queries:
            return queries
        reasons = [f"statements read: {work.statements:,.0f}"]
        if work.problem_count:
            reasons.append(f"not understood: {work.problem_count:,.0f}, the first at {work.problems[0]}")
        if work.others:
            reasons.append(f"other tables in them: {listed(sorted(work.others))}")
        raise InvalidInput(f'the workload has no query on table "{self.name}"; {"; ".join(reasons)}')

    def optimize(
        self,
        advice: Advice,
        *,
        chunks: Sequence[str] | None = None,
        keep_features: bool = False,
        progress: Progress | None = None,
    ) -> Optimized:
        """Lay the table out as advised, in one commit that records the prediction; `chunks` are all by default.

        With `keep_features`, the files have a BOOLEAN column for each feature, which the table's schema does not show
        and a published Delta table does; see `Lake.rewrite`.

        Chunks that came after the advice are laid out, too; so a table that is advised no change stays as it is.
        """
        if advice.design is None:
            return Optimized(None, 0, 0, "; ".join(advice.reasons))
        snapshot = self.snapshot()
        design = with_features_kept(advice.design) if keep_features else advice.design
        name = design.name(snapshot.schema)
        asked = tuple(snapshot.chunks if chunks is None else chunks)
        chosen = tuple(chunk for chunk in asked if (DESIGN, name) not in snapshot.facts(chunk).notes)
        if not chosen:
            return Optimized(
                None, 0, 0, f"nothing to do: all {len(asked):,} chunks are laid out by this advice already"
            )
        predicted = advice.candidate(advice.chosen)
        notes: tuple[Note, ...] = (
            ("clustering", advice.chosen),
            (DESIGN, name),
            ("predicted_rows_share", predicted.rows),
            ("predicted_bytes_share", predicted.bytes),
            ("least_rows_share", advice.lower_bound),
            ("predicted_storage", predicted.storage),
        )
        rewritten = rewrite_chunks(
            snapshot,
            chosen,
            design,
            table=self.location,
            executor=self.lake.executor,
            progress=progress or Silent(),
            notes=notes,
        )
        stored = stored_cells(rewritten) / max(1, sum(one.facts.rows for one in rewritten) * len(snapshot.schema))
        if advice.storage is not None and stored > advice.storage + ROUNDING:
            for file in sorted({file for chunk in rewritten for file in chunk.blocks.files}):
                self.location.delete(file)
            raise LayoutInfeasible.past_the_storage_budget(stored, advice.storage, predicted.storage)
        # Before the commit: whoever sees a chunk that names the design must find it.
        keep_design(replace(design, by_scheme=()), name, snapshot.schema, self.location)
        blocks = sum(len(chunk.blocks) for chunk in rewritten)
        metrics = (*notes, ("storage", stored), ("chunks", len(rewritten)), ("blocks", blocks))
        change = Change("optimize", replaced=rewritten, metrics=metrics)
        version = self.catalog.commit(change, base=snapshot.version)
        return Optimized(version, len(rewritten), blocks, "; ".join(advice.reasons))

    def describe(self) -> Description:
        """Say what the table is: its size, its columns, and how its chunks are laid out."""
        snapshot = self.snapshot()
        layouts = []
        for blocks in snapshot.block_sets:
            scheme = snapshot.scheme(blocks.scheme)
            names = dict.fromkeys(layout.clustering.name for layout in scheme.layouts)
            layouts.append(
                LayoutDescription(
                    ", ".join(names),
                    len(blocks.chunks),
                    len(blocks),
                    len(scheme.features),
                    len(scheme.layouts),
                    sum(len(layout.duplicates) for layout in scheme.layouts),
                    recorded_cost(snapshot, blocks),
                )
            )
        return Description(
            self.name,
            snapshot.version,
            sum(snapshot.facts(chunk).rows for chunk in snapshot.chunks),
            len(snapshot.chunks),
            sum(
                int(np.maximum(blocks.column_bytes(name), 0).sum())
                for blocks in snapshot.block_sets
                for name in blocks.columns
            ),
            tuple((field.name, str(field.type)) for field in snapshot.schema),
            tuple(layouts),
            self._promise(),
        )

    def _promise(self) -> Promise | None:
        """What the last layout was expected to read, beside what the logged queries have read since."""
        latest = next((one for one in self.history(COMMITS_LOOKED_AT) if one.operation == "optimize"), None)
        if latest is None:
            return None
        since = [one for one in self.log() if one.version >= latest.version]
        total = sum(one.rows_total for one in since)
        predicted = dict(latest.metrics).get("predicted_rows_share")
        return Promise(
            latest.version,
            float(predicted) if isinstance(predicted, (int, float)) else None,
            len(since),
            sum(one.rows_read for one in since) / total if total else None,
        )

    def history(self, limit: int | None = None) -> tuple[Commit, ...]:
        """List the commits, latest first."""
        return self.catalog.history(limit)

    def restore(self, version: int) -> int:
        """Make the table what it was at a version, as a new commit, and give the new version."""
        return self.catalog.restore(version)

    def export(self, version: int | None = None) -> Published:
        """Publish the table in place as a Delta table, which other engines read without a copy."""
        return publish(self.location, self.snapshot(version))

    def vacuum(
        self,
        retention: timedelta = DEFAULT_RETENTION,
        *,
        dry_run: bool = True,
        allow_short_retention: bool = False,
    ) -> VacuumReport:
        """Delete the files that no snapshot of the retention period uses; only say which, unless told otherwise.

        A published Delta table is brought up to date first: its readers must not miss files that leave.
        """
        if not dry_run and is_published(self.location):
            self._bring_published_up_to_date()
        return self.catalog.vacuum(retention, dry_run=dry_run, allow_short_retention=allow_short_retention)

    def _bring_published_up_to_date(self) -> None:
        try:
            self.export()
        except LayoutInfeasible as error:
            raise LayoutInfeasible(
                f'vacuum of table "{self.name}" would take files away from the Delta table that was published of it, '
                "which cannot be brought up to date: a chunk has no layout with every column of every row. "
                "Hint: optimize with one layout; or withdraw the Delta table, "
                f"by deleting {self.location.uri}/_delta_log"
            ) from error


@dataclass(frozen=True, slots=True)
class LayoutDescription:
    """How some chunks of a table are laid out.

    `seek_cost` is what the workload cost for which their columns were ordered, in milliseconds a row group; it is None
    where they are in the table's own order. `duplicates` are columns that are stored once more.
    """

    clustering: str
    chunks: int
    blocks: int
    features: int
    layouts: int
    duplicates: int = 0
    seek_cost: float | None = None


@dataclass(frozen=True, slots=True)
class Promise:
    """What the layout of a version was expected to read, and what was read since: shares of the rows asked for.

    `read_rows_share` is None where no query was logged since.
    """

    version: int
    predicted_rows_share: float | None
    logged_queries: int
    read_rows_share: float | None


@dataclass(frozen=True, slots=True)
class Description:
    """What a table is; `bytes` are those of all stored columns, replicas included."""

    name: str
    version: int
    rows: int
    chunks: int
    bytes: int
    columns: tuple[tuple[str, str], ...]
    layouts: tuple[LayoutDescription, ...]
    promise: Promise | None = None


@dataclass(frozen=True, slots=True)
class Optimized:
    """What an optimize did: the new version (None where nothing was worth doing), chunks and blocks written, and
    why."""

    version: int | None
    chunks: int
    blocks: int
    reason: str


def _specs(clustering: str | Sequence[ClusteringSpec]) -> tuple[ClusteringSpec, ...]:
    """What to choose from; none stands for all that are tried by themselves."""
    if clustering == "auto":
        return ()
    return (ClusteringSpec(clustering),) if isinstance(clustering, str) else tuple(clustering)


@dataclass(frozen=True, slots=True)
class _PlannedRequest:
    place: TablePlace
    plan: ScanPlan
    report: ScanReport


def _mentions(
    text: str,
    schemas: Mapping[str, pa.Schema],
    front: FrontEnd,
    dialect: str,
    is_elsewhere: Callable[[str], bool] = lambda name: False,
) -> Iterator[tuple[TablePlace, Request]]:
    """Each mention of a table in a statement, and what is asked of it; all of it, where that is not understood."""
    statement = front.read(text)
    places = table_places(text, schemas, dialect=dialect)
    if places is None:
        raise InvalidQuery.at(statement.problem, sql=text, line=statement.line, column=statement.column)
    kind = statement.problem.removeprefix("not a query but ")
    if places and not statement.is_query and kind != "DESCRIBE":
        raise InvalidQuery(
            f'{kind} cannot be used on table "{places[0].table}": statements are queries here, '
            "and tables are changed by create, append, optimize and restore",
            sql=text,
        )
    reason = statement.problem or "the statement's use of this table is not understood"
    requests = _by_mention(statement.requests)
    here = tuple(place for place in places if not (place.qualified and is_elsewhere(text[place.start : place.end])))
    if len(here) < len(places):
        # The statement was understood with columns of ours where it means a table with others.
        reason, requests = "the statement names a table elsewhere that is called as one of the lake's", {}
    for place in here:
        request = requests.get(place.mention)
        if request is None or request.table != place.table:
            columns = tuple(schemas[place.table].names)
            request = Request(place.table, columns, alias=place.alias, unknown=(reason,))
        yield place, request


def _by_mention(requests: Sequence[Request]) -> dict[int, Request]:
    """The requests by the mention of a table that they are for; none for a mention that has not exactly one."""
    times = Counter(request.mention for request in requests)
    return {
        request.mention: request for request in requests if request.mention is not None and times[request.mention] == 1
    }


def _planned(
    place: TablePlace, request: Request, snapshot: Snapshot, skipping: Skipping | None, profile: SeekProfile
) -> _PlannedRequest:
    # In the order of the schema, because `*` must find all columns in it; at least one, because rows must be counted.
    wanted = [name for name in snapshot.schema.names if name in request.columns] or snapshot.schema.names[:1]
    plan = plan_scan(snapshot, wanted, request.filter, skipping=skipping, profile=profile)
    return _PlannedRequest(place, plan, report(plan, table=place.table, alias=place.alias, unknown=request.unknown))


def _zone_of(snapshot: Snapshot) -> str:
    """The time zone in which filters given to a table are read."""
    return dict(snapshot.properties).get(_TIME_ZONE, "UTC")


def logged(text: str, plan: ScanPlan, seconds: float | None) -> LoggedQuery:
    """What is remembered of a plan: what it reads, beside what a reader without any skipping would."""
    found = report(plan, table="")
    return LoggedQuery(
        datetime.now(UTC),
        text,
        found.version,
        found.columns,
        found.filter,
        blocks_read=found.read.blocks,
        blocks_total=found.plain.blocks,
        rows_read=found.read.rows,
        rows_total=found.plain.rows,
        cells_read=found.read.cells,
        bytes_read=found.read.bytes,
        seconds=seconds,
    )


def _statement(table: str, columns: Sequence[str] | None, where: str | None) -> str:
    """A scan as the statement that it stands for."""
    listed_columns = "*" if columns is None else ", ".join(identifier(name) for name in columns) or "1"
    return f"SELECT {listed_columns} FROM {identifier(table)}" + (f" WHERE {where}" if where else "")


def _table_name(name: str) -> str:
    if not name or name.startswith(("_", ".")) or any(letter in name for letter in '/\\:*?"<>|'):
        raise InvalidInput(f'"{name}" cannot name a table: a name is a directory, and begins with neither "_" nor "."')
    return name


def _loading(operation: str, chunks: tuple[NewChunk, ...]) -> Change:
    rows = sum(chunk.facts.rows for chunk in chunks)
    return Change(operation, added=chunks, metrics=(("rows", rows), ("chunks", len(chunks))))


def _require_positive(option: str, value: int) -> None:
    if value < 1:
        raise InvalidInput(f"{option} must be 1 or more; it is {value}")
