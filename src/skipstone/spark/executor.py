"""Run work on rows as Spark tasks: the same functions that `skipstone.relayout.executor` runs on threads.

Rows never become Java objects on the way. A task reads Parquet with pyarrow and gives Arrow messages, each with the
number of the bucket it belongs to; Spark's shuffle moves those messages as plain bytes, and a task of the next stage
gathers a bucket and writes its blocks. What comes back to the driver are statistics and file names.
"""

from __future__ import annotations

import itertools
import pickle
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from skipstone.relayout.executor import Progress
from skipstone.spark.failures import spark_failures_as_ours

__all__ = ["SparkExecutor", "pickled"]

T = TypeVar("T")
R = TypeVar("R")

PROGRESS_SECONDS = 0.5
JOB_GROUP = "spark.jobGroup.id"
"""The local property by which Spark groups jobs; the caller's own value is put back afterwards."""


class SparkExecutor:
    """Runs on the executors of a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        return int(self._spark.sparkContext.defaultParallelism)

    def map(self, function: Callable[[T], R], items: Sequence[T], *, stage: str, progress: Progress) -> list[R]:
        """Apply a function to every item and give the results in the order of the items."""
        if not items:
            return []
        shipped = pickled(function)

        shipped_items = [pickled(item) for item in items]

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            work = pickle.loads(shipped)
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield _row(number, pickled(work(pickle.loads(shipped_items[number]))))

        tasks = self._numbers(len(items)).mapInArrow(run, "number int, payload binary")
        with self._watched(stage, len(items), progress), spark_failures_as_ours(stage):
            rows = tasks.collect()
        return [pickle.loads(row.payload) for row in sorted(rows, key=lambda row: int(row.number))]

    def shuffle(
        self,
        split: Callable[[T], Iterable[tuple[int, bytes]]],
        items: Sequence[T],
        gather: Callable[[int, Iterator[bytes]], R],
        *,
        buckets: int,
        stage: str,
        progress: Progress,
    ) -> list[R]:
        """Split every item into (bucket, bytes), then gather each bucket that got any; results in order of buckets."""
        if not items:
            return []
        shipped_split, shipped_gather = pickled(split), pickled(gather)
        shipped_items = [pickled(item) for item in items]

        def split_items(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            work = pickle.loads(shipped_split)
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for bucket, payload in work(pickle.loads(shipped_items[number])):
                        yield _row(bucket, payload)

        def gather_buckets(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            # One partition is one bucket, so all that arrives here belongs together and needs no sorting.
            work = pickle.loads(shipped_gather)
            first = next(batches, None)
            if first is None:
                return
            bucket = first.column(0)[0].as_py()
            payloads = _payloads(first, batches)
            yield _row(bucket, pickled(work(bucket, payloads)))

        parts = self._numbers(len(items)).mapInArrow(split_items, "number int, payload binary")
        gathered = parts.repartitionById(buckets, sf.col("number")).mapInArrow(
            gather_buckets, "number int, payload binary"
        )
        with self._watched(stage, len(items) + buckets, progress), spark_failures_as_ours(stage):
            rows = gathered.collect()
        return [pickle.loads(row.payload) for row in sorted(rows, key=lambda row: int(row.number))]

    def _numbers(self, count: int) -> DataFrame:
        """One partition a number, and so one task an item: a range is cut as told, without a shuffle.

        What the items are travels in the closure, which Spark broadcasts by itself where it is large.
        """
        return self._spark.range(0, count, 1, count)

    @contextmanager
    def _watched(self, stage: str, tasks: int, progress: Progress) -> Iterator[None]:
        """Tell the progress how many tasks have finished, from a thread that asks Spark twice a second."""
        progress.start(stage, tasks)
        context, done = self._spark.sparkContext, threading.Event()
        group, outer = f"skipstone-{uuid.uuid4()}", context.getLocalProperty(JOB_GROUP)

        def watch() -> None:
            told = 0
            while not done.wait(PROGRESS_SECONDS):
                finished = min(self._finished_tasks(group), tasks)
                progress.advance(finished - told)
                told = finished
            progress.advance(tasks - told)

        context.setLocalProperty(JOB_GROUP, group)
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            context.setLocalProperty(JOB_GROUP, outer)  # type: ignore[arg-type] # None takes the value away
            done.set()
            watcher.join()

    def _finished_tasks(self, group: str) -> int:
        tracker = self._spark.sparkContext.statusTracker()
        finished = 0
        for job in tracker.getJobIdsForGroup(group):
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info else ():
                stage_info = tracker.getStageInfo(stage)
                finished += stage_info.numCompletedTasks if stage_info else 0
        return finished


def pickled(value: object) -> bytes:
    """Pickle a value, functions and closures included, for a task."""
    return bytes(cloudpickle.dumps(value))  # type: ignore[no-untyped-call]


def _row(number: int, payload: bytes) -> pa.RecordBatch:
    return pa.record_batch({"number": pa.array([number], pa.int32()), "payload": pa.array([payload], pa.binary())})


def _payloads(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in itertools.chain((first,), rest):
        yield from (value.as_py() for value in batch.column(1))
