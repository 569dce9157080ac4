"""The commands for tables, end to end on a small lake: what is made, what is printed, and how errors end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skipstone.lake import open_lake
from skipstone.relayout.advising import AUTO
from tests.cli.running import error_of, json_of, printed, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 4000
SHOPS = (("north", 0), ("w[e]st", 3))
"""Two of the shops, and which of the four they are."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Rows whose shop and price have nothing to do with the order they come in."""
    numbers = range(ROWS)
    rows = {
        "id": numbers,
        "shop": [("north", "south", "east", "w[e]st")[number * 7 % 4] for number in numbers],
        "price": [number * 37 % 1000 for number in numbers],
    }
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    statements = [
        f"SELECT sum(price) FROM sales WHERE shop = '{shop}' AND price > {price}"
        for shop in ("north", "east")
        for price in (700, 800, 900, 950)
    ]
    path = tmp_path / "queries.sql"
    path.write_text(";\n".join(statements))
    return path


@pytest.fixture
def lake(tmp_path: Path, source: Path) -> Path:
    printed("create", tmp_path / "lake", "sales", source, "--block-rows", 1000)
    return tmp_path / "lake"


def test_a_table_is_created_described_and_listed(tmp_path: Path, source: Path) -> None:
    lake = tmp_path / "lake"
    assert printed("show", lake) == f"no tables in {lake}\n"
    said = printed("create", lake, "sales", source, "--block-rows", 1000, "--chunk-rows", 2000)
    assert said == "sales is at version 1: create, rows 4000, chunks 2\n"
    size = open_lake(lake).table("sales").describe().bytes
    assert printed("show", lake) == f"sales: version 1, 4,000 rows in 2 chunks, {size:,} bytes\n"
    assert printed("show", lake, "sales").splitlines()[1:] == [
        "  2 chunks by none: 4 blocks, 0 features, 1 layouts",
        "  id  int64",
        "  shop  string",
        "  price  int64",
    ]
    (described,) = json_of("show", lake)
    assert described["columns"] == [["id", "int64"], ["shop", "string"], ["price", "int64"]]
    assert (described["rows"], described["chunks"]) == (ROWS, 2)


def test_the_time_zone_given_at_creation_is_the_one_that_filters_use(tmp_path: Path, source: Path) -> None:
    printed("create", tmp_path / "lake", "sales", source, "--time-zone", "Europe/Paris")
    properties = dict(open_lake(tmp_path / "lake").table("sales").snapshot().properties)
    assert properties["skipstone.timeZone"] == "Europe/Paris"


def test_rows_are_appended_as_new_chunks(lake: Path, source: Path) -> None:
    assert printed("append", lake, "sales", source) == "sales is at version 2: append, rows 4000, chunks 1\n"
    assert json_of("append", lake, "sales", source)["operation"] == "append"
    assert open_lake(lake).table("sales").scan().count() == 3 * ROWS


def test_rows_are_appended_in_the_layout_of_the_table(lake: Path, source: Path, workload: Path) -> None:
    code, said = error_of("append", lake, "sales", source, "--layout")
    assert (code, said.splitlines()[0][:60]) == (2, 'InvalidInput: table "sales" has not been laid out yet, so th')
    printed("optimize", lake, "sales", "-w", workload, "--clustering", "qdtree", "--block-rows", 100)
    said = printed("append", lake, "sales", source, "--layout")
    assert said.startswith("sales is at version 3: append, rows 4000, chunks 1")
    (described,) = json_of("show", lake)
    assert [(one["clustering"], one["chunks"]) for one in described["layouts"]] == [("qdtree", 2)]


def test_csv_is_told_by_its_name_or_by_the_option(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("id,shop,price\n9000,south,1\n")
    (tmp_path / "more.dat").write_text("id,shop,price\n9001,south,1\n")
    printed("append", lake, "sales", tmp_path / "more.csv")
    printed("append", lake, "sales", tmp_path / "more.dat", "--format", "csv")
    assert open_lake(lake).table("sales").scan(where="id >= 9000").count() == 2


def test_advice_compares_layouts_and_writes_nothing(lake: Path, workload: Path) -> None:
    said = printed("advise", lake, "sales", "-w", workload, "--block-rows", 100).splitlines()
    assert said[0].split() == ["layout", "rows", "read", "cells", "read", "bytes", "read"]
    names = [line.split("  ")[0].strip() for line in said[2:-1]]
    assert (names[0], names[-1]) == ("no change", "no layout can read less than")
    assert set(AUTO) <= set(names)
    assert "of the bytes, the present layout 100.0 %, on 2 queries kept from the search" in said[-1]
    assert open_lake(lake).table("sales").snapshot().version == 1


def test_advice_as_json_has_candidates_features_and_forecasts(lake: Path, workload: Path) -> None:
    options = ("--clustering", "qdtree", "--clustering", "zorder(over=price; dimensions=1)", "--block-rows", 100)
    advice = json_of("advise", lake, "sales", "-w", workload, *options, "--max-features", 3)
    assert [one["name"] for one in advice["candidates"]] == ["no change", "qdtree", "zorder"]
    assert advice["chosen"] in ("qdtree", "zorder")
    assert len(advice["features"]) == 3
    assert {one["template"] for one in advice["queries"]} == {"s1"}
    assert all(one["then"] <= one["now"] for one in advice["queries"])


def test_columns_that_are_excluded_are_in_no_feature(lake: Path, workload: Path) -> None:
    advice = json_of("advise", lake, "sales", "-w", workload, "--clustering", "qdtree", "--exclude", "price")
    assert {one["filter"] for one in advice["features"]} == {"shop = 'north'", "shop = 'east'"}


def test_optimize_lays_out_and_explain_and_history_tell_of_it(lake: Path, workload: Path) -> None:
    said = printed("optimize", lake, "sales", "-w", workload, "--block-rows", 100, "--clustering", "qdtree")
    assert said.splitlines()[-1].startswith("Version 2: 1 chunks, ")
    assert said.splitlines()[-1].endswith("laid out by qdtree.")
    statement = "SELECT sum(price) FROM sales WHERE shop = 'north' AND price > 950"
    lines = printed("explain", lake, statement).splitlines()
    assert lines[:3] == [
        "table sales, version 2",
        "  filter    price > 950 AND shop = 'north'",
        "  columns   shop, price",
    ]
    (scan,) = json_of("explain", lake, statement)
    assert scan["read"]["rows"] < ROWS / 5
    assert scan["plain"]["rows"] == ROWS
    (latest, created, empty) = json_of("history", lake, "sales")
    assert (latest["operation"], created["operation"], empty["version"]) == ("optimize", "create", 0)
    assert dict(latest["metrics"])["clustering"] == "qdtree"
    assert len(printed("history", lake, "sales", "--limit", 1).splitlines()) == 1


def test_optimize_as_json_says_what_was_advised_and_what_was_done(lake: Path, workload: Path) -> None:
    done = json_of("optimize", lake, "sales", "-w", workload, "--block-rows", 100, "--clustering", "sort(column=shop)")
    assert done["advice"]["chosen"] == "sort"
    assert done["optimized"]["version"] == 2


def test_what_does_not_pay_is_not_done(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "all.sql").write_text("SELECT * FROM sales")
    said = printed("optimize", lake, "sales", "-w", tmp_path / "all.sql", "--clustering", "sort(column=shop)")
    assert said.splitlines()[-1] == "Nothing was written."
    assert "not worth the rewrite" in " ".join(said.split())
    assert open_lake(lake).table("sales").snapshot().version == 1


def test_restore_and_vacuum_go_back_and_clean_up(lake: Path, source: Path) -> None:
    printed("append", lake, "sales", source)
    assert printed("restore", lake, "sales", 1) == "sales is at version 3: restore, version 1\n"
    short = ("--retain-hours", 0, "--allow-short-retention")
    would = printed("vacuum", lake, "sales", *short).splitlines()
    assert would[-1].endswith("would be deleted; add --delete to do it")
    deleted = json_of("vacuum", lake, "sales", *short, "--delete")
    assert deleted["files"] == would[:-1]
    assert not deleted["dry_run"]
    left = json_of("vacuum", lake, "sales", *short, "--delete")["files"]
    assert not [path for path in left if path.startswith("data/")], "the first vacuum has deleted all rows not in use"
    assert open_lake(lake).table("sales").scan().count() == ROWS


def test_vacuum_wants_to_be_told_twice_to_keep_less_than_a_week(lake: Path) -> None:
    code, error = error_of("vacuum", lake, "sales", "--retain-hours", 1)
    assert code == 2
    assert error.startswith("InvalidInput: ")


def test_export_publishes_a_delta_table_in_place(lake: Path, source: Path) -> None:
    assert printed("export", lake, "sales") == (f"{lake}/sales is a Delta table at version 0: 1 files joined, 0 left\n")
    printed("append", lake, "sales", source)
    again = json_of("export", lake, "sales", "--version", 1)
    assert (again["version"], again["files_added"], again["uri"]) == (1, 0, f"{lake}/sales")
    assert json_of("export", lake, "sales")["files_added"] == 1
    assert deltalake.DeltaTable(lake / "sales").to_pyarrow_table().num_rows == 2 * ROWS


def test_a_statement_over_no_table_of_the_lake_is_said_to_be_so(lake: Path) -> None:
    assert printed("explain", lake, "SELECT 1 FROM elsewhere") == "no table of the lake is mentioned\n"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ("show", "LAKE", "salse"),
            'TableNotFound: no table "salse" in LAKE. Did you mean "sales"? Tables there: sales',
        ),
        (("create", "LAKE", "sales", "SOURCE"), 'TableExists: there is a table "sales" in LAKE already'),
        (("restore", "LAKE", "sales", "7"), "SnapshotNotFound: there is no version 7 of LAKE/sales; the latest is 1"),
        (
            ("advise", "LAKE", "sales", "-w", "QUERIES", "--clustering", "qdtre"),
            'InvalidInput: there is no clustering "qdtre". Did you mean "qdtree"? There are: none, sort, range, '
            "zorder, hilbert, ward, ward-queries, qdtree",
        ),
        (
            ("advise", "LAKE", "sales", "-w", "QUERIES", "--clustering", "sort(shop)"),
            'InvalidInput: the parameters of a clustering have the form PARAMETER=VALUE; found "shop"',
        ),
        (
            ("show", "LAKE", "--storage-option", "AWS_REGION"),
            'InvalidInput: a storage option has the form NAME=VALUE; this one has no "=": AWS_REGION',
        ),
        (
            ("append", "LAKE", "sales", "SOURCE", "--format", "orc"),
            'InvalidInput: "orc" is not a format that can be loaded; there are: csv, delta, parquet',
        ),
        (
            ("append", "LAKE", "sales", "/nowhere/rows.parquet"),
            "InvalidInput: there is no file or directory /nowhere/rows.parquet to load from",
        ),
        (("show", "SOURCE"), "InvalidInput: SOURCE is a file, and not a directory of tables"),
        (("create", "SOURCE", "more", "SOURCE"), "InvalidInput: SOURCE is a file, and not a directory of tables"),
        (
            ("create", "xyz://bucket/lake", "more", "SOURCE"),
            "InvalidInput: xyz://bucket/lake cannot be opened: Unrecognized filesystem type in URI: xyz://bucket/lake",
        ),
        (
            ("create", "LAKE", "more", "SOURCE", "--time-zone", "Europe/Roma"),
            'InvalidInput: no time zone "Europe/Roma". Did you mean "Europe/Rome"? Offsets are as in +02:00',
        ),
        (
            ("create", "LAKE", "more", "SOURCE", "--cut-by", "shopp"),
            'ColumnNotFound: no column "shopp" in the table. Did you mean "shop"? It has: id, shop, price',
        ),
        (
            ("advise", "LAKE", "sales", "-w", "QUERIES", "--exclude", "pric"),
            'ColumnNotFound: no column "pric" in table "sales" (exclude). Did you mean "price"? '
            "It has: id, shop, price",
        ),
        (
            ("advise", "LAKE", "sales", "-w", "/nowhere/queries.sql"),
            'InvalidInput: no file or directory "/nowhere/queries.sql" to read a workload from',
        ),
        (
            ("vacuum", "LAKE", "sales", "--retain-hours", "nan"),
            "InvalidInput: --retain-hours goes from 0 to 1,000,000; it was nan",
        ),
        (
            ("explain", "LAKE", "DELETE FROM sales WHERE id = 1"),
            'InvalidQuery: DELETE cannot be used on table "sales": statements are queries here, and tables are changed '
            "by create, append, optimize and restore",
        ),
        (
            ("explain", "LAKE", "SELECT id FROM WHERE"),
            "InvalidQuery: expected table name but found 'WHERE' (line 1, column 20)\n  SELECT id FROM WHERE\n"
            "                     ^",
        ),
        (("explain", "LAKE", " "), "InvalidQuery: no statement, only comments or nothing"),
        (
            ("rewrite", "LAKE", "SELECT id FROM sales WHERE id >", "--dialect", "duckdb"),
            "InvalidQuery: something is missing at '>' (line 1, column 31)\n  SELECT id FROM sales WHERE id >\n"
            "                                ^",
        ),
        (
            ("log", "LAKE", "salse"),
            'TableNotFound: no table "salse" in LAKE. Did you mean "sales"? Tables there: sales',
        ),
        (
            ("export", "LAKE", "sales", "--version", "9"),
            "SnapshotNotFound: there is no version 9 of LAKE/sales; the latest is 1",
        ),
    ],
)
def test_bad_input_ends_with_2_and_says_what_would_do(
    arguments: tuple[str, ...], error: str, lake: Path, source: Path, workload: Path
) -> None:
    places = {"LAKE": str(lake), "SOURCE": str(source), "QUERIES": str(workload)}
    said = error.replace("LAKE", str(lake)).replace("SOURCE", str(source))
    assert error_of(*(places.get(one, one) for one in arguments)) == (2, said)
    assert printed("show", lake).startswith("sales: version 1, "), "nothing has changed, and nothing was made"
    assert len(printed("show", lake).splitlines()) == 1


def test_a_number_out_of_range_is_refused_before_anything_is_opened(lake: Path, workload: Path) -> None:
    code, error = error_of("advise", lake, "sales", "-w", workload, "--block-rows", 0)
    assert code == 2
    assert "--block-rows" in error


def test_optimizing_twice_writes_once(lake: Path, workload: Path) -> None:
    options = ("-w", workload, "--block-rows", 100, "--clustering", "qdtree")
    assert printed("optimize", lake, "sales", *options).splitlines()[-1].startswith("Version 2: 1 chunks, ")
    assert printed("optimize", lake, "sales", *options).splitlines()[-1] == "Nothing was written."
    assert json_of("optimize", lake, "sales", *options)["optimized"]["version"] is None
    assert [one["version"] for one in json_of("history", lake, "sales")] == [2, 1, 0]


def test_the_log_is_listed_latest_first(lake: Path) -> None:
    assert printed("log", lake, "sales") == (
        "no query on sales was logged; query --log and open(log_queries=True) do that\n"
    )
    assert json_of("log", lake, "sales") == []
    watched = open_lake(lake, log_queries=True).table("sales")
    for price in (100, 200, 300):
        watched.scan(["id"], f"price < {price}").to_arrow()
    lines = printed("log", lake, "sales", "--limit", 2).splitlines()
    assert lines[0].split("  ")[0] == " asked at (UTC)"
    assert [line.split("SELECT ")[1] for line in lines[2:]] == [
        f"id FROM sales WHERE price < {price}" for price in (300, 200)
    ]
    assert " 4 of 4 " in lines[2]
    assert " 4,000 of 4,000 " in lines[2]
    (latest, *_) = logged = json_of("log", lake, "sales")
    assert len(logged) == 3
    assert latest["filter"] == "price < 300"
    assert (latest["rows_read"], latest["blocks_total"], latest["columns"]) == (ROWS, 4, ["id"])


def test_show_has_what_the_layout_promised_beside_what_was_read(lake: Path, workload: Path) -> None:
    printed("optimize", lake, "sales", "-w", workload, "--block-rows", 100, "--clustering", "qdtree")
    predicted = dict(json_of("history", lake, "sales")[0]["metrics"])["predicted_rows_share"]
    expected = f"  version 2 was expected to read {100 * predicted:.1f} % of rows; "
    assert f"{expected}no query was logged since\n" in printed("show", lake, "sales")
    open_lake(lake, log_queries=True).table("sales").scan(["id"]).to_arrow()
    assert f"{expected}1 logged: 100.0 %\n" in printed("show", lake, "sales")
    assert json_of("show", lake, "sales")[0]["promise"] == {
        "version": 2,
        "predicted_rows_share": predicted,
        "logged_queries": 1,
        "read_rows_share": 1.0,
    }


def by_duckdb(table: Path, sql: str) -> tuple[list[tuple[object, ...]], int, int]:
    """Answer a statement over the files of a published table; with the row groups DuckDB scans, and there are."""
    profile = table.parent / "profile.json"
    files = sorted(deltalake.DeltaTable(table).file_uris())
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW sales AS SELECT * FROM read_parquet({files!r}, union_by_name = true)")
        connection.execute("SET enable_profiling = 'json'")
        connection.execute(f"SET profiling_output = '{profile}'")
        rows = connection.execute(sql).fetchall()
        connection.execute("SET enable_profiling = 'no_output'")
    query = json.loads(profile.read_text())["query"]
    return rows, query["total_row_groups_scanned"], query["total_row_groups_to_scan"]


def test_a_published_layout_with_features_lets_duckdb_skip_what_the_rewritten_query_cannot_use(
    lake: Path, workload: Path
) -> None:
    # No least and greatest value of a column says anything of this condition.
    sql = "SELECT count(*) AS n, sum(id) FROM sales WHERE price % 40 = 2 AND shop <> 'south'"
    workload.write_text(";".join([sql, sql.replace("= 2", "= 6")] * 20))
    options = ("--block-rows", 50, "--clustering", "ward", "--min-support", 0.2, "--keep-features")
    printed("optimize", lake, "sales", "-w", workload, *options)
    assert json_of("rewrite", lake, sql)["sql"] == sql, "nothing is published yet"
    printed("export", lake, "sales")
    found = json_of("rewrite", lake, sql, "--dialect", "duckdb")
    assert found["mentions"][0]["features"]
    assert printed("rewrite", lake, sql, "--dialect", "duckdb") == found["sql"] + "\n"
    plain, scanned_before, there = by_duckdb(lake / "sales", sql)
    rewritten, scanned, _ = by_duckdb(lake / "sales", found["sql"])
    expected = [number for number in range(ROWS) if number * 37 % 1000 % 40 == 2 and number * 7 % 4 != 1]
    assert plain == rewritten == [(len(expected), sum(expected))]
    assert scanned * 4 < scanned_before <= there, (scanned, scanned_before, there)


@pytest.mark.parametrize("dialect", ["duckdb", "spark", "trino"])
def test_a_query_without_features_is_printed_as_it_is_with_the_reason_beside_it(dialect: str, lake: Path) -> None:
    code, out, err = run("rewrite", lake, "SELECT id FROM sales WHERE price > 3", "--dialect", dialect)
    assert (code, out) == (0, "SELECT id FROM sales WHERE price > 3\n")
    assert err == "sales: the published table has no columns of features; optimize with them kept, and export\n"


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_query_is_logged_where_that_is_asked_for(lake: Path, spark: SparkSession) -> None:
    twice = "SELECT count(*) AS n FROM sales a JOIN sales b ON a.price = b.price WHERE a.id < 10 AND b.id > 3500"
    printed("query", lake, twice)
    assert json_of("log", lake, "sales") == []
    printed("query", lake, twice, "--log")
    logged = json_of("log", lake, "sales")
    assert {one["filter"] for one in logged} == {"id < 10", "id > 3500"}
    assert {one["rows_read"] for one in logged} == {1000}
    assert {(one["sql"], one["seconds"]) for one in logged} == {(twice, None)}


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_what_goes_wrong_in_a_task_of_spark_is_told_as_if_it_went_wrong_here(
    lake: Path, tmp_path: Path, spark: SparkSession
) -> None:
    (tmp_path / "late.csv").write_text("id,shop,price\n" + "1,a,2\n" * 200_000 + "x,b,3\n")
    code, error = error_of("create", lake, "late", tmp_path / "late.csv", "--spark")
    assert code == 2
    assert error.startswith(f"InvalidInput: {tmp_path}/late.csv cannot be read as CSV: ")
    assert error_of("query", lake, "DELETE FROM sales")[0] == 2
    (file,) = open_lake(lake).table("sales").snapshot().block_sets[0].files
    (lake / "sales" / file).write_bytes(b"PAR1")
    code, error = error_of("query", lake, "SELECT sum(price) FROM sales")
    assert code == 1
    assert error.startswith(f"StorageFailed: {lake}/sales/{file} cannot be read: Parquet file size is 4 bytes")


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_query_runs_in_spark_and_says_what_it_read(lake: Path, workload: Path, spark: SparkSession) -> None:
    printed("optimize", lake, "sales", "-w", workload, "--block-rows", 100, "--clustering", "qdtree")
    statement = (
        "SELECT shop, count(*) AS n, max(id) AS n FROM sales WHERE shop IN ('north', 'w[e]st') AND price > 950 "
        "GROUP BY shop ORDER BY shop"
    )
    lines = printed("query", lake, statement).splitlines()
    found = {shop: [n for n in range(ROWS) if n * 7 % 4 == place and n * 37 % 1000 > 950] for shop, place in SHOPS}
    assert [line.split() for line in (lines[0], *lines[2:4])] == [
        ["shop", "n", "n"],
        *([shop, str(len(ids)), str(max(ids))] for shop, ids in found.items()),
    ]
    assert lines[-1].startswith("sales: read ")
    assert error_of("query", lake, statement, "--json") == (
        2,
        "InvalidInput: the result has several columns of one name: n; tell them apart with AS",
    )
    document = json_of("query", lake, "SELECT id, double('NaN') AS f FROM sales WHERE id < 3 ORDER BY id", "--limit", 2)
    assert document["rows"] == [{"id": 0, "f": "NaN"}, {"id": 1, "f": "NaN"}]
    assert document["scans"][0]["table"] == "sales"
    code, error = error_of("query", lake, "SELECT shopp FROM sales")
    assert code == 2
    assert error.startswith("InvalidQuery: sql: Spark does not accept this. [UNRESOLVED_COLUMN")
    assert "\tat " not in error
    code, error = error_of("query", lake, "SELECT raise_error('too bad') FROM sales")
    assert (code, error) == (1, "ExecutionFailed: query: Spark failed. [USER_RAISED_EXCEPTION] too bad")
    assert json.loads(printed("show", lake, "--json"))[0]["version"] == 2


def test_verbose_says_what_is_done_and_very_verbose_why(tmp_path: Path, source: Path, workload: Path) -> None:
    lake = tmp_path / "lake"
    code, out, err = run("-v", "create", lake, "sales", source)
    assert code == 0
    assert "sales is at version 1" in out
    assert f"{lake}/sales: version 1 is a commit of create: 1 chunks added, 0 replaced, 0 removed" in err
    *_, why = run("-vv", "advise", lake, "sales", "-w", workload, "--clustering", "sort(column=shop)")
    assert "sales: no change reads 100.0 % of the bytes, 100.0 % of the rows" in why
    assert "8 statements read, 0 of them not understood" in why
    assert not run("advise", lake, "sales", "-w", workload, "--clustering", "sort(column=shop)")[2]
