"""Load a Spark data frame as raw chunks: Spark hands Arrow batches to tasks that write blocks."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from skipstone.relayout.executor import Executor, Progress
from skipstone.relayout.loading import Loaded
from skipstone.relayout.sources import LoadJob
from skipstone.spark.failures import spark_failures_as_ours
from skipstone.spark.types import arrow_schema

__all__ = ["FrameSource", "frame_source"]


@dataclass(frozen=True, slots=True)
class FrameSource:
    """The rows of a data frame, in the order of its partitions."""

    frame: DataFrame
    schema: pa.Schema
    name: str = "data frame"

    def load(self, job: LoadJob, *, executor: Executor, progress: Progress) -> list[Loaded]:
        """Write all rows; the frame's own session does it, whichever executor there is."""
        progress.start("load", 1)
        written = _load_frame(self.frame, job)
        progress.advance(1)
        return written


def frame_source(frame: DataFrame) -> FrameSource:
    """Load a data frame."""
    return FrameSource(frame, arrow_schema(frame.schema))


def _load_frame(frame: DataFrame, job: LoadJob) -> list[Loaded]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        for number, loaded in enumerate(job.write(batches)):
            yield pa.record_batch(
                {
                    "partition": pa.array([partition], pa.int32()),
                    "number": pa.array([number], pa.int32()),
                    "loaded": pa.array([pickle.dumps(loaded)], pa.binary()),
                }
            )

    with spark_failures_as_ours("load"):
        rows = frame.mapInArrow(write, "partition int, number int, loaded binary").collect()
    return [pickle.loads(row.loaded) for row in sorted(rows, key=lambda row: (row.partition, row.number))]
