"""Queries for engines that know nothing of us: the same answer, through files that have a column for each feature."""

from __future__ import annotations

import random
from pathlib import Path

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skipstone.catalog.values import Change
from skipstone.errors import LayoutInfeasible
from skipstone.lake import Lake, Table, open_lake
from skipstone.layout.scheme import FEATURE_PREFIX, ClusteringSpec, Layout, Scheme, feature_column
from skipstone.predicate.parsing import parse_filter
from skipstone.relayout.executor import LocalExecutor, Silent
from skipstone.relayout.rewriting import Design, rewrite_chunks, with_features_kept
from skipstone.workload.query import Query
from skipstone.workload.reading import Workload
from tests.relayout.test_random_schemes import bag, by_duckdb
from tests.relayout.worlds import random_condition, random_table

ROWS = pa.table({
    "id": range(2000),
    "shop": [None if number % 13 == 0 else f"s{number % 10}" for number in range(2000)],
    "amount": [None if number % 7 == 0 else float("nan") if number % 11 == 0 else number / 2 for number in range(2000)],
})  # fmt: skip
QUERIES = ("SELECT id FROM sales WHERE shop = 's3'", "SELECT sum(amount) FROM sales WHERE shop IN ('s4', 's5')")


def laid_out(lake: Lake, name: str, rows: pa.Table, filters: list[str], block_rows: int) -> Table:
    """A table sorted into blocks by some features, which its files have as columns, too."""
    table = lake.create(name, rows, block_rows=100)
    features = tuple(dict.fromkeys(parse_filter(text, rows.schema) for text in filters))
    names = tuple(rows.schema.names)
    layout = Layout(names, tuple(range(len(features))), frozenset(names), ClusteringSpec("ward"))
    design = with_features_kept(
        Design(Scheme((layout,), features), tuple(Query(names, one) for one in features), block_rows, ())
    )
    snapshot = table.snapshot()
    chunks = rewrite_chunks(
        snapshot, snapshot.chunks, design, table=table.location, executor=LocalExecutor(1), progress=Silent()
    )
    table.catalog.commit(Change("optimize", replaced=chunks), base=snapshot.version)
    return table


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = open_lake(tmp_path)
    laid_out(lake, "sales", ROWS, ["shop = 's3'", "shop IN ('s4', 's5')"], 100).export()
    return lake


def through_duckdb(table: Table, text: str) -> pa.Table:
    """Run a statement over the published table, with a view of the table's name."""
    with duckdb.connect() as connection:
        rows = deltalake.DeltaTable(table.location.uri).to_pyarrow_dataset()
        connection.register(table.name, rows)
        found: pa.Table = connection.sql(text).to_arrow_table()
        return found


def test_a_query_gets_the_conditions_that_its_filter_implies_and_keeps_its_own_text(lake: Lake) -> None:
    feature = feature_column(parse_filter("shop = 's3'", ROWS.schema))
    assert lake.rewrite("SELECT id /* mine */ FROM sales WHERE shop = 's3' AND amount > 5", dialect="duckdb").sql == (
        f'SELECT id /* mine */ FROM (SELECT "id", "shop", "amount" FROM sales WHERE "{feature}" IS DISTINCT FROM FALSE)'
        " AS \"sales\" WHERE shop = 's3' AND amount > 5"
    )
    assert lake.rewrite("SELECT id FROM sales AS s WHERE shop = 's3'", dialect="spark").sql == (
        f"SELECT id FROM (SELECT `id`, `shop` FROM sales WHERE `{feature}` IS DISTINCT FROM FALSE) AS s "
        "WHERE shop = 's3'"
    )
    assert f'"{feature}" IS DISTINCT FROM FALSE' in lake.rewrite(QUERIES[0], dialect="trino").sql


def test_what_is_not_subsumed_stays_as_it_is_and_says_why(lake: Lake) -> None:
    text = "SELECT id FROM sales WHERE amount > 5 OR shop = 's3'"
    found = lake.rewrite(text, dialect="duckdb")
    assert found.sql == text
    assert found.mentions[0].reasons == ("no feature that is kept as a column subsumes what is asked of this mention",)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM sales WHERE shop = 's3'",
        "SELECT count(*), sum(id) FROM sales WHERE shop = 's3' AND amount IS NULL",
        "SELECT a.id FROM sales a JOIN sales b ON a.id = b.id + 1 WHERE a.shop = 's4' AND b.shop = 's3'",
        "SELECT a.id, b.shop FROM sales a LEFT JOIN sales b ON a.id = b.id AND b.shop = 's3' WHERE a.id < 50",
        "WITH c AS (SELECT id FROM sales WHERE shop IN ('s4', 's5')) SELECT count(*) FROM c WHERE id < 900",
        "SELECT shop, count(*) FROM sales WHERE shop = 's5' GROUP BY shop",
        "SELECT id FROM sales WHERE NOT shop = 's3'",
    ],
)
def test_the_answer_over_the_published_table_is_that_of_the_original(text: str, lake: Lake) -> None:
    table = lake.table("sales")
    found = lake.rewrite(text, dialect="duckdb").sql
    with duckdb.connect() as connection:
        connection.register("sales", ROWS)
        expected = connection.sql(text).to_arrow_table()
    assert bag(through_duckdb(table, found)) == bag(expected)
    assert through_duckdb(table, found).schema.names == expected.schema.names
    # Chunks that come later have no columns of features: the same text still finds their rows.
    table.append(ROWS)
    table.export()
    with duckdb.connect() as connection:
        connection.register("sales", pa.concat_tables([ROWS, ROWS]))
        expected = connection.sql(text).to_arrow_table()
    assert bag(through_duckdb(table, found)) == bag(expected)


def test_row_groups_without_a_match_can_be_left_out_by_any_reader(lake: Lake) -> None:
    table = lake.table("sales")
    feature = feature_column(parse_filter("shop = 's3'", ROWS.schema))
    matching = 0
    for file in deltalake.DeltaTable(table.location.uri).file_uris():
        parquet = pq.ParquetFile(file)
        position = parquet.schema_arrow.names.index(feature)
        for group in range(parquet.num_row_groups):
            statistics = parquet.metadata.row_group(group).column(position).statistics
            shops = parquet.read_row_group(group, columns=["shop"])["shop"].to_pylist()
            assert statistics.null_count == 0
            assert statistics.max == ("s3" in shops), "TRUE somewhere exactly where a row has the feature"
            matching += statistics.max
    assert 0 < matching < 4


def test_the_table_itself_does_not_show_the_columns(lake: Lake) -> None:
    table = lake.table("sales")
    assert table.scan().to_arrow().schema.names == ["id", "shop", "amount"]
    assert bag(table.scan().to_arrow()) == bag(ROWS)
    assert [one for one in deltalake.DeltaTable(table.location.uri).to_pyarrow_table().schema.names if "feature" in one]


def test_features_are_not_kept_unless_asked_for_and_rewrite_says_so(tmp_path: Path) -> None:
    lake = open_lake(tmp_path)
    table = lake.create("sales", ROWS, block_rows=500)
    work = Workload.of(QUERIES * 5, {"sales": ROWS.schema})
    advice = table.advise(work, clustering="ward", block_rows=100, min_support=0.1)
    table.optimize(advice)
    table.export()
    assert table.schema.names == [field.name for field in deltalake.DeltaTable(table.location.uri).schema().fields]
    found = lake.rewrite(QUERIES[0])
    assert (found.sql, found.mentions[0].features) == (QUERIES[0], ())
    assert found.mentions[0].reasons == (
        "the published table has no columns of features; optimize with them kept, and export",
    )
    assert table.optimize(advice, keep_features=True).version is not None
    table.export()
    assert lake.rewrite(QUERIES[0]).mentions[0].features == ("shop = 's3'",)
    assert bag(through_duckdb(table, lake.rewrite(QUERIES[0], dialect="duckdb").sql)) == bag(
        through_duckdb(table, QUERIES[0])
    )


def test_a_layout_of_some_columns_cannot_carry_them() -> None:
    feature = parse_filter("shop = 's3'", ROWS.schema)
    layouts = tuple(Layout((name,), (0,), frozenset([name]), ClusteringSpec("none")) for name in ROWS.schema.names)
    design = Design(Scheme(layouts, (feature,)), (Query(("id",), feature),), 100, ())
    with pytest.raises(LayoutInfeasible, match="none of them complete"):
        with_features_kept(design)


@pytest.mark.parametrize("seed", range(3))
def test_random_queries_over_random_tables_keep_their_answers(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    rows = random_table(chance, 200)
    lake = open_lake(tmp_path)
    conditions = [random_condition(chance) for _ in range(12)]
    table = laid_out(lake, "rows", rows, conditions, 10)
    table.export()
    added = 0
    for condition in conditions:
        text = f"SELECT n, f, s FROM rows WHERE {condition}"
        found = lake.rewrite(text, dialect="duckdb").sql
        added += FEATURE_PREFIX in found
        assert bag(through_duckdb(table, found)) == bag(by_duckdb(rows, text)), condition
    assert added
