"""Whatever the type, the filter and the clustering: what Spark and Arrow read from a layout is what Spark finds.

A scan by Spark costs a tenth of a second whatever its size, so the scans of all tables and filters of a world are one
job: each task hands over its rows with the number of its filter, and Spark checks that filter once more, as it does for
a single scan. Some filters of each table go through `Lake.sql` besides, as one statement.
"""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from skipstone.lake import Table, open_lake
from skipstone.predicate.printing import sql
from skipstone.scan.plan import Skipping
from skipstone.scan.read import read, read_tasks
from skipstone.scan.scan import Scan
from skipstone.spark.executor import pickled
from skipstone.spark.types import spark_batch, spark_schema
from tests.relayout.every_type import TABLES, World, bag

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

FILTERS = 90
WORLDS = 2
"""2 worlds of 90 filters, each asked of the tables of 12 clusterings: 2,160 cases; every third through Arrow, too."""

MANY_WORLDS = max(1, int(os.environ.get("SKIPSTONE_CASES", "20000")) // (FILTERS * len(TABLES)))

SWITCHES = (Skipping(), Skipping(), Skipping(features=False), Skipping(bounds=False))
TASKS = 4


def found_by_spark(spark: SparkSession, rows: pa.Table, filters: Sequence[str]) -> list[list[int]]:
    """The ids of the rows for which each filter is TRUE, where nothing is laid out."""
    named = [f"({text}) AS c{number}" for number, text in enumerate(filters)]
    answer = spark.createDataFrame(rows).coalesce(1).selectExpr("id", *named).toArrow()
    ids = answer["id"].to_pylist()
    return [
        [id_ for id_, truth in zip(ids, column.to_pylist(), strict=True) if truth is True]
        for column in answer.columns[1:]
    ]


def together(spark: SparkSession, scans: Sequence[tuple[int, int, Scan, Table]], filters: Sequence[str]) -> DataFrame:
    """The rows of many scans as one data frame, with the numbers of the table and the filter in front."""
    shipped = [
        (numbers, pickled(task))
        for *numbers, scan, table in scans
        for task in read_tasks(scan.plan, table.location, columns=scan.plan.read_columns)
    ]
    [schema] = {
        pa.schema([scan.plan.snapshot.schema.field(name) for name in scan.plan.read_columns]) for *_, scan, _ in scans
    }
    seen = spark_schema(pa.schema([("t", pa.int32()), ("f", pa.int32()), *schema]))

    def read_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                (of_table, of_filter), task = shipped[number]
                for rows in read(pickle.loads(task)):
                    held = spark_batch(rows)
                    told = [pa.array([one] * held.num_rows, pa.int32()) for one in (of_table, of_filter)]
                    yield pa.RecordBatch.from_arrays([*told, *held.columns], names=["t", "f", *held.schema.names])

    frame = spark.range(0, len(shipped), 1, TASKS).mapInArrow(read_all, seen)
    choice = " ".join(f"WHEN {number} THEN ({text})" for number, text in enumerate(filters))
    return frame.where(f"CASE f {choice} END")


def check(seed: int, spark: SparkSession, directory: Path) -> None:
    world = World.of(seed, FILTERS)
    texts = [sql(filter_) for filter_ in world.filters]
    ids = found_by_spark(spark, world.rows, texts)
    assert sum(map(bool, ids)) > len(ids) // 3, "a third of the filters should find something"
    tables = [world.table(name, directory) for name in TABLES]
    scans = []
    for number, text in enumerate(texts):
        expected = world.expected(ids[number], world.rows.schema.names)
        for place, table in enumerate(tables):
            scan = table.scan(None, text, skipping=SWITCHES[(number + place) % len(SWITCHES)])
            if (number + place) % 3 == 0:
                assert bag(scan.to_arrow()) == expected, f"seed {seed}, {table.name}, through Arrow: WHERE {text}"
            scans.append((place, number, scan, table))
    found = together(spark, scans, texts).toArrow()
    for number, text in enumerate(texts):
        expected = world.expected(ids[number], world.rows.schema.names)
        of_filter = found.filter(pa.compute.equal(found["f"], number))
        for place, table in enumerate(tables):
            rows = of_filter.filter(pa.compute.equal(of_filter["t"], place)).drop_columns(["t", "f"])
            answer = bag(rows.cast(world.rows.schema))
            assert answer == expected, f"seed {seed}, {table.name}, through Spark: WHERE {text}"
    chance = random.Random(seed)
    mentions = [(name, chance.randrange(len(texts))) for name in TABLES]
    statement = " UNION ALL ".join(
        f"SELECT {place} AS t, id FROM {name} WHERE {texts[number]}" for place, (name, number) in enumerate(mentions)
    )
    answers = {(row.t, row.id) for row in open_lake(directory, spark=spark).sql(statement).collect()}
    assert answers == {(place, id_) for place, (_, number) in enumerate(mentions) for id_ in ids[number]}, statement


@pytest.mark.parametrize("seed", range(100, 100 + WORLDS))
def test_what_spark_and_arrow_read_from_any_layout_is_what_spark_finds_in_the_rows(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    check(seed, spark, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2_000, 2_000 + MANY_WORLDS))
def test_what_spark_and_arrow_read_in_many_worlds_is_what_spark_finds(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    check(seed, spark, tmp_path)
