"""Run the user's SQL in Spark over planned scans: the text stays as it is, only the tables in it are views of scans.

Each mention of a table of the lake gets a view of its own, planned for what the statement asks of that mention. What is
skipped is only ever what the statement cannot use; names, functions, NULLs and everything else mean what Spark says.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from skipstone.catalog.location import Location
from skipstone.scan.plan import ScanPlan
from skipstone.spark.failures import spark_failures_as_ours
from skipstone.spark.reading import frame_of_plan
from skipstone.workload.places import TablePlace, renamed

__all__ = ["PlannedMention", "is_table_of_spark", "run_sql"]


@dataclass(frozen=True, slots=True)
class PlannedMention:
    """A mention of a table in the text, and the scan that serves it."""

    place: TablePlace
    plan: ScanPlan
    table: Location


def is_table_of_spark(spark: SparkSession, name: str) -> bool:
    """Whether Spark itself finds a table or view by a name, as it is written in a statement."""
    try:
        return bool(spark.catalog.tableExists(name))
    except PySparkException:
        return False  # no such database or catalog


def run_sql(spark: SparkSession, text: str, mentions: Sequence[PlannedMention]) -> DataFrame:
    """Describe the statement's result; Spark reads the scans when it runs."""
    names = tuple(f"skipstone_{uuid.uuid4().hex}" for _ in mentions)
    statement = renamed(text, tuple(mention.place for mention in mentions), names)
    views: Mapping[str, PlannedMention] = dict(zip(names, mentions, strict=True))
    try:
        for name, mention in views.items():
            frame_of_plan(spark, mention.plan, mention.table, superset=True).createOrReplaceTempView(name)
        with spark_failures_as_ours("sql"):
            return spark.sql(statement)
    finally:
        # The data frame has taken what it needs from the views; nothing of them stays in the user's session.
        for name in names:
            spark.catalog.dropTempView(name)
