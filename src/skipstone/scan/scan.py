"""A read of a table that is described first and done when its rows are asked for.

Only `to_spark` starts a Java virtual machine, and only where no Spark session was given.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skipstone.catalog.location import Location
from skipstone.errors import MissingDependency
from skipstone.predicate.literal import ALWAYS
from skipstone.scan.plan import ScanPlan, plan_scan
from skipstone.scan.read import ReadTask, read, read_tasks
from skipstone.scan.streaming import streamed

if TYPE_CHECKING:
    import duckdb
    import polars
    from pyspark.sql import DataFrame  # noqa: TID251

__all__ = ["Scan"]


class Scan:
    """The rows of a table that satisfy a filter, by the names of some columns, as of one snapshot."""

    def __init__(
        self,
        plan: ScanPlan,
        table: Location,
        *,
        to_frame: Callable[[ScanPlan], DataFrame],
        threads: int | None = None,
        time_zone: str | None = None,
        when_read: Callable[[ScanPlan, float | None], None] | None = None,
    ) -> None:
        self.plan = plan
        self._table = table
        self._time_zone = time_zone
        self._when_read = when_read
        self._to_frame = to_frame
        self._threads = threads or os.cpu_count() or 1

    @property
    def schema(self) -> pa.Schema:
        """The columns and types of the rows."""
        return self.plan.schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows; a few batches are read ahead, and no more than those are held."""
        started = time.perf_counter()
        yield from self._batches()
        self._tell(self.plan, started)

    def _tell(self, plan: ScanPlan, started: float | None) -> None:
        """Tell whoever wants to know that all rows of a plan were read, and in how many seconds where that is known."""
        if self._when_read is not None:
            self._when_read(plan, None if started is None else time.perf_counter() - started)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        tasks = read_tasks(self.plan, self._table, exact=True, time_zone=self._time_zone)
        if len(tasks) <= 1 or self._threads == 1:
            for task in tasks:
                yield from read(task)
            return
        yield from streamed(tasks, read, threads=self._threads)

    def to_reader(self) -> pa.RecordBatchReader:
        """Stream the rows to whoever takes an Arrow reader."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """Read all rows into memory."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def count(self) -> int:
        """Count the rows; without a filter nothing is read for that."""
        snapshot = self.plan.snapshot
        if self.plan.filter == ALWAYS:
            return sum(snapshot.facts(chunk).rows for chunk in snapshot.chunks)
        # Only the filter's columns are of interest, whichever were asked for.
        plan = plan_scan(snapshot, (), self.plan.filter, skipping=self.plan.skipping)
        tasks = read_tasks(plan, self._table, exact=True, time_zone=self._time_zone)
        started = time.perf_counter()
        with ThreadPoolExecutor(self._threads) as pool:
            counted = sum(pool.map(_count, tasks))
        self._tell(plan, started)
        return counted

    def to_spark(self) -> DataFrame:
        """Describe the rows as a Spark data frame; Spark reads them when it runs, and checks the filter itself."""
        frame = self._to_frame(self.plan)
        self._tell(self.plan, None)
        return frame

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Give the rows to DuckDB, which streams them once."""
        try:
            import duckdb
        except ImportError as error:
            raise MissingDependency.extra("duckdb", "duckdb", purpose="Scan.to_duckdb()") from error
        reader = self.to_reader()
        return connection.from_arrow(reader) if connection is not None else duckdb.from_arrow(reader)

    def to_polars(self) -> polars.DataFrame:
        """Read all rows into a Polars data frame."""
        try:
            import polars
        except ImportError as error:
            raise MissingDependency.extra("polars", "polars", purpose="Scan.to_polars()") from error
        frame: Any = polars.from_arrow(self.to_arrow())
        return frame  # type: ignore[no-any-return]


def _count(task: ReadTask) -> int:
    return sum(batch.num_rows for batch in read(task))
