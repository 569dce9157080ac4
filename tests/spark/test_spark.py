"""Tables loaded, laid out and read by Spark tasks, with the same functions that threads run elsewhere."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from skipstone.catalog.values import Change
from skipstone.errors import ExecutionFailed
from skipstone.lake import open_lake
from skipstone.relayout.executor import LocalExecutor, Silent
from skipstone.relayout.rewriting import Design, rewrite_chunks
from skipstone.relayout.tracking import tracked_expressions
from skipstone.spark.executor import SparkExecutor
from skipstone.workload.query import Query
from tests.relayout.test_random_schemes import bag, by_duckdb
from tests.relayout.worlds import SCHEMA, random_condition, random_features, random_scheme, random_table

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_the_executor_of_tasks_gives_what_the_executor_of_threads_gives(spark: SparkSession) -> None:
    def split(word: str) -> list[tuple[int, bytes]]:
        return [(ord(letter) % 5, letter.encode()) for letter in word]

    def gather(bucket: int, parts: object) -> tuple[int, bytes]:
        return bucket, b"".join(sorted(parts))  # type: ignore[call-overload]

    words = ["skip", "stone", "", "blocks"]
    found = [
        (
            executor.map(str.upper, words, stage="shout", progress=Silent()),
            executor.shuffle(split, words, gather, buckets=5, stage="letters", progress=Silent()),
        )
        for executor in (LocalExecutor(2), SparkExecutor(spark))
    ]
    assert found[0] == found[1]


def test_a_task_that_fails_is_reported_in_one_line_without_a_java_stack(spark: SparkSession) -> None:
    def fail(word: str) -> str:
        raise OSError("disk full")

    with pytest.raises(ExecutionFailed) as caught:
        SparkExecutor(spark).map(fail, ["a"], stage="load", progress=Silent())
    assert str(caught.value) == "load: Spark failed. OSError: disk full"


def test_columns_of_an_appended_data_frame_are_found_by_name(spark: SparkSession, tmp_path: Path) -> None:
    """By position, amounts would become prices and nobody would notice: both are whole numbers."""
    table = open_lake(tmp_path, spark=spark).create("t", pa.table({"amount": [1], "price": [10]}))
    table.append(spark.sql("SELECT 20L AS price, 2L AS amount"))
    table.append(spark.sql("SELECT 30L AS price"))
    found = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["price"])
    assert [(row["amount"], row["price"]) for row in found] == [(1, 10), (2, 20), (None, 30)]


def test_rows_of_a_data_frame_come_back_equal_through_spark_and_arrow(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(tmp_path, spark=spark)
    frame = spark.sql("""
        SELECT id, IF(id % 3 = 0, NULL, id * 1.5) AS f,
               TIMESTAMP '1850-01-01 00:00:00.123456' + make_dt_interval(CAST(id AS INT)) AS t,
               TIMESTAMP_NTZ '2020-01-01 00:00:00' AS n, CAST(id AS DECIMAL(20, 3)) AS m, map('k', id) AS kv,
               named_struct('a', id, 'b', array(id, NULL)) AS s, CAST(concat('x', id) AS BINARY) AS b,
               DATE '1000-01-01' AS d
        FROM range(1000)""")
    table = lake.create("t", frame, chunk_rows=300, block_rows=100)
    assert len(table.snapshot().chunks) >= 2
    again = table.scan().to_spark()
    assert again.schema.simpleString() == frame.schema.simpleString()
    assert bag(again.toArrow()) == bag(frame.toArrow())
    assert table.scan().count() == 1000


@pytest.mark.parametrize("seed", range(3))
def test_layouts_written_by_spark_answer_as_duckdb_does(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(1000 + seed)
    rows = random_table(chance, 120)
    table = open_lake(tmp_path, spark=spark).create("t", rows, chunk_rows=60, block_rows=9)
    features = random_features(chance, 6)
    design = Design(
        random_scheme(chance, features, 1 + seed),
        tuple(Query(tuple(SCHEMA.names), feature) for feature in features),
        block_rows=10,
        tracked=tracked_expressions(SCHEMA, features),
    )
    snapshot = table.snapshot()
    chunks = rewrite_chunks(
        snapshot, snapshot.chunks, design, table=table.location, executor=SparkExecutor(spark), progress=Silent()
    )
    table.catalog.commit(Change("optimize", replaced=chunks), base=snapshot.version)
    for _ in range(4):
        condition = random_condition(chance)
        expected = bag(by_duckdb(rows, f"SELECT n, f, s FROM rows WHERE {condition}"))
        scan = table.scan(["n", "f", "s"], condition)
        assert bag(scan.to_arrow()) == expected, condition
        spark_rows: pa.Table = scan.to_spark().toArrow()
        assert bag(spark_rows) == expected, condition
