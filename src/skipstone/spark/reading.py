"""A scan as a Spark data frame: one Spark task reads one task of the scan, and hands over only what it keeps."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skipstone.catalog.location import Location
from skipstone.predicate.literal import ALWAYS
from skipstone.predicate.printing import sql
from skipstone.scan.plan import ScanPlan
from skipstone.scan.read import ReadTask, read, read_tasks
from skipstone.spark.executor import pickled
from skipstone.spark.types import spark_batch, spark_schema

__all__ = ["frame_of", "frame_of_plan"]


def frame_of_plan(spark: SparkSession, plan: ScanPlan, table: Location, *, superset: bool = False) -> DataFrame:
    """Describe the rows of a plan: tasks drop early what they can, and Spark applies the filter once more.

    With `superset` it does not: for a statement that filters by itself, and that may know why a condition must not be
    asked of every row (`a <> 0 AND 10 / a > 1`, where Spark fails on a division by zero).
    """
    tasks = read_tasks(plan, table, columns=plan.read_columns)
    schema = pa.schema([plan.snapshot.schema.field(name) for name in plan.read_columns])
    rows = frame_of(spark, tasks, schema)
    if plan.filter != ALWAYS and not superset:
        rows = rows.where(sql(plan.filter))
    return rows.select([f"`{name.replace('`', '``')}`" for name in plan.columns])


def frame_of(spark: SparkSession, tasks: Sequence[ReadTask], schema: pa.Schema) -> DataFrame:
    """Describe the rows of read tasks as a data frame; nothing is read before Spark runs it."""
    seen = spark_schema(schema)
    if not tasks:
        return spark.createDataFrame([], seen)
    # A range has as many partitions as it is told, without a shuffle; a large closure is broadcast by Spark itself.
    shipped = [pickled(task) for task in tasks]

    def read_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for rows in read(pickle.loads(shipped[number])):
                    yield spark_batch(rows)

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read_all, seen)
