"""SQL over planned scans gives what Spark gives over all rows."""

from __future__ import annotations

from datetime import time, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from skipstone.errors import InvalidInput, InvalidQuery
from skipstone.lake import Lake, open_lake
from tests.relayout.test_random_schemes import bag

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SALES = pa.table({
    "day": list(range(1000)),
    "shop": [f"s{number % 7}" for number in range(1000)],
    "amount": [None if number % 11 == 0 else number * 0.5 for number in range(1000)],
})  # fmt: skip
SHOPS = pa.table({"shop": [f"s{number}" for number in range(9)], "city": ["Bonn", "Lyon", None] * 3})

QUERIES = [
    "SELECT * FROM sales WHERE day BETWEEN 100 AND 120",
    "SELECT count(*) FROM sales",
    "SELECT shop, sum(amount) AS total FROM sales WHERE day > 900 GROUP BY shop HAVING sum(amount) > 10",
    "SELECT a.day, b.day AS later FROM sales a JOIN sales b ON a.day = b.day - 500 WHERE a.day < 10 AND b.amount > 1",
    "SELECT sales.day, city FROM sales JOIN shops ON sales.shop = shops.shop WHERE shops.city = 'Bonn' AND day < 50",
    "SELECT s.day, h.city FROM sales s LEFT JOIN shops h ON s.shop = h.shop AND h.city = 'Lyon' WHERE s.day < 20",
    "WITH top AS (SELECT shop, max(day) AS last FROM sales WHERE amount < 400 GROUP BY shop)"
    " SELECT sales.* FROM sales JOIN top ON sales.shop = top.shop AND sales.day = top.last",
    "SELECT day FROM sales WHERE shop IN (SELECT shop FROM shops WHERE city IS NULL) AND day < 30",
    "SELECT day FROM sales WHERE day < 5 UNION ALL SELECT day FROM Sales WHERE day > 995",
    "SELECT day, row_number() OVER (ORDER BY amount DESC NULLS LAST) AS place FROM sales WHERE day < 300",
    "SELECT x.d FROM (SELECT day AS d, amount FROM sales ORDER BY day LIMIT 10) x WHERE x.d > 5",
    # What is nested deeper comes later in the tree, wherever it stands in the text.
    "SELECT x.day, s.day AS other FROM (SELECT day, shop FROM sales WHERE day < 20) x"
    " JOIN sales s ON x.shop = s.shop WHERE s.day > 980",
    "SELECT day FROM sales WHERE day < 5 UNION ALL SELECT day FROM sales WHERE day = 500"
    " UNION ALL SELECT day FROM sales WHERE day > 995",
]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = open_lake(tmp_path_factory.mktemp("lake"), spark=spark)
    lake.create("sales", SALES, block_rows=50, chunk_rows=400)
    lake.create("shops", SHOPS)
    return lake


@pytest.mark.parametrize("query", QUERIES)
def test_a_statement_means_what_it_means_over_whole_tables(query: str, lake: Lake, spark: SparkSession) -> None:
    found = lake.sql(query).toArrow()
    spark.createDataFrame(SALES).createOrReplaceTempView("sales")
    spark.createDataFrame(SHOPS).createOrReplaceTempView("shops")
    try:
        expected = spark.sql(query).toArrow()
    finally:
        spark.catalog.dropTempView("sales")
        spark.catalog.dropTempView("shops")
    assert found.schema.names == expected.schema.names
    assert bag(found) == bag(expected)


def test_each_mention_of_a_table_is_planned_for_itself(lake: Lake) -> None:
    lake.sql(QUERIES[3])
    first, second = lake.last_scan
    assert (first.read.blocks, second.read.blocks) == (1, 20)
    assert first.plain.blocks == 20


def test_views_do_not_stay_in_the_session_of_the_user(lake: Lake, spark: SparkSession) -> None:
    lake.sql(QUERIES[0]).collect()
    assert not [table.name for table in spark.catalog.listTables() if table.name.startswith("skipstone_")]


def test_text_that_is_no_sql_is_pointed_at(lake: Lake) -> None:
    with pytest.raises(InvalidQuery) as caught:
        lake.sql("SELECT day FORM sales WHERE")
    assert caught.value.line == 1


def test_a_qualified_name_that_spark_knows_is_the_table_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(tmp_path, spark=spark)
    lake.create("people", pa.table({"id": [1, 2], "age": [30, 40]}))
    spark.range(5).createOrReplaceGlobalTempView("people")
    try:
        query = "SELECT count(*) FROM global_temp.people AS p JOIN people AS ours ON p.id = ours.id WHERE age > 30"
        assert lake.sql(query).collect()[0][0] == 1
        assert [scan.table for scan in lake.last_scan] == ["people"]
    finally:
        spark.catalog.dropGlobalTempView("people")
    assert lake.sql("SELECT count(*) FROM prod.people").collect()[0][0] == 2, "as queries of a log name it"


def test_tables_are_told_apart_by_all_parts_of_their_names(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(tmp_path, spark=spark)
    for rows, name in enumerate(("a.people", "people", "z.people"), start=1):
        lake.create(name, pa.table({"id": range(rows)}))
    found = [lake.sql(f"SELECT id FROM {name}").count() for name in ("a.people", "people", "z.people", "`z.people`")]
    assert found == [1, 2, 3, 3]


def test_a_table_can_be_described(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(tmp_path, spark=spark)
    lake.create("people", pa.table({"id": [1]}))
    assert [row.col_name for row in lake.sql("DESCRIBE people").collect()] == ["id"]


def test_types_that_spark_lacks_are_read_as_its_own_or_named(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(tmp_path, spark=spark)
    rows = pa.table({
        "at": pa.array([1, None], pa.time32("s")),
        "took": pa.array([1_000_000_000, None], pa.duration("ns")),
        "paid": pa.array([Decimal(9), None], pa.decimal256(20, 2)),
        "huge": pa.array([Decimal(9), None], pa.decimal256(60, 2)),
    })  # fmt: skip
    lake.create("odd", rows)
    [found] = lake.sql("SELECT at, took, paid FROM odd WHERE at IS NOT NULL").collect()
    assert tuple(found) == (time(0, 0, 1), timedelta(seconds=1), Decimal(9))
    with pytest.raises(InvalidInput, match=r'^Spark has no type for these columns: "huge" \(decimal256\(60, 2\)\)'):
        lake.sql("SELECT huge FROM odd")
