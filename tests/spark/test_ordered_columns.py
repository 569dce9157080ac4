"""Spark reads a table whose columns are stored in other orders and some of them twice, and rewrites it, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from skipstone.lake import open_lake
from tests.relayout.test_columns import asked, orders, wide_rows
from tests.relayout.test_random_schemes import bag

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_spark_lays_out_and_reads_what_is_stored_twice(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(tmp_path, spark=spark)
    table = lake.create("t", wide_rows(), chunk_rows=1000, block_rows=500)
    queries = asked(1, "day >= 0")
    advice = table.advise(queries, columns=True, headroom=0.1)
    table.optimize(advice, chunks=table.snapshot().chunks[:1])
    assert len(orders(table)) == 2, "one chunk has the order, the other has not"
    duplicates = 0
    for query in queries[:8]:
        columns = ", ".join(query.columns)
        found = lake.sql(f"SELECT {columns} FROM t WHERE day BETWEEN 900 AND 1100").toArrow()
        duplicates += sum(len(path.duplicates) for one in lake.last_scan for chunk in one.chunks for path in chunk.path)
        assert bag(found) == bag(wide_rows().slice(900, 201).select(query.columns))
    assert duplicates > 0, "no duplicate was read, so none was tested"
