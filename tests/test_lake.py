"""The use cases of a lake, without Java: load from every source, read, look back, clean up, publish."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import deltalake
import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from skipstone.catalog.querylog import LoggedQuery
from skipstone.errors import (
    CannotEvaluate,
    ColumnNotFound,
    InvalidInput,
    InvalidQuery,
    StorageFailed,
    TableExists,
    TableNotFound,
)
from skipstone.lake import Lake, Optimized, Promise, Table, open_lake
from skipstone.scan.explain import report, text
from skipstone.scan.plan import Skipping
from skipstone.workload.reading import Workload

ROWS = pa.table({"id": range(1000), "day": [number // 100 for number in range(1000)], "name": ["a", None] * 500})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(tmp_path / "lake")


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create("t", ROWS, block_rows=100, chunk_rows=300)


def ids(found: pa.Table) -> list[int]:
    return sorted(found["id"].to_pylist())


def test_a_parquet_directory_with_hive_partitions_is_loaded_with_its_partition_columns(
    lake: Lake, tmp_path: Path
) -> None:
    pyarrow.dataset.write_dataset(
        ROWS, tmp_path / "p", format="parquet", partitioning=["day"], partitioning_flavor="hive"
    )
    table = lake.create("p", tmp_path / "p")
    assert ids(table.scan(where="day = 3").to_arrow()) == list(range(300, 400))


def test_a_single_parquet_file_is_loaded(lake: Lake, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "one.parquet", row_group_size=64)
    assert lake.create("one", tmp_path / "one.parquet").scan().count() == 1000


def test_csv_files_are_loaded_by_their_header(lake: Lake, tmp_path: Path) -> None:
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "name"), (1, "x"), (2, "")])
    table = lake.create("c", str(tmp_path / "rows.csv"))
    assert table.schema == pa.schema([("id", pa.int64()), ("name", pa.string())])
    assert table.scan(where="id = 2").count() == 1


def test_a_delta_table_is_loaded_as_it_is_now(lake: Lake, tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "d", ROWS, partition_by=["day"])
    deltalake.DeltaTable(tmp_path / "d").delete("day = 4")
    assert lake.create("d", tmp_path / "d").scan().count() == 900


def test_a_source_that_cannot_be_read_leaves_no_table(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(InvalidInput, match="cannot be read as Parquet"):
        lake.create("bad", tmp_path / "bad.parquet")
    assert lake.tables() == ()
    with pytest.raises(TableNotFound, match='no table "bad"'):
        lake.table("bad")


def test_a_source_that_turns_out_to_be_damaged_on_the_way_leaves_nothing_behind(lake: Lake, tmp_path: Path) -> None:
    """The first file is loaded before the second, whose footer is good and whose data are not, is found out."""
    (tmp_path / "p").mkdir()
    pq.write_table(ROWS, tmp_path / "p" / "a.parquet")
    damaged = bytearray((tmp_path / "p" / "a.parquet").read_bytes())
    damaged[4:400] = bytes(396)
    (tmp_path / "p" / "b.parquet").write_bytes(damaged)
    with pytest.raises(InvalidInput, match=r"p/b\.parquet cannot be read as Parquet: "):
        lake.create("t", tmp_path / "p")
    assert not (tmp_path / "lake" / "t").exists()
    table = lake.create("t", ROWS)
    before = sorted((tmp_path / "lake" / "t" / "data").rglob("*"))
    with pytest.raises(InvalidInput, match=r"p/b\.parquet cannot be read as Parquet: "):
        table.append(tmp_path / "p")
    assert sorted((tmp_path / "lake" / "t" / "data").rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("short.csv", "id,day\n1,2\n3\n", "CSV parse error: Expected 2 columns, got 1: 3"),
        ("empty.csv", "", "Empty CSV file"),
        ("late.csv", "id,day\n" + "1,2\n" * 400_000 + "x,3\n", "CSV conversion error to int64: invalid value 'x'"),
    ],
)
def test_bad_rows_of_csv_are_said_with_the_file(
    name: str, content: str, reason: str, lake: Lake, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InvalidInput) as caught:
        lake.create("c", tmp_path / name)
    assert str(caught.value).startswith(f"{tmp_path / name} cannot be read as CSV: ")
    assert str(caught.value).endswith(reason)
    assert lake.tables() == ()


def test_csv_is_appended_with_the_types_of_the_table(lake: Lake, tmp_path: Path) -> None:
    """What the text looks like says nothing then: whole numbers in a column of doubles, a column without any value."""
    table = lake.create("c", pa.table({"price": [0.5], "name": ["7"], "day": pa.array([None], pa.date32())}))
    (tmp_path / "more.csv").write_text("price,name,day\n1,12,\n2,,\n")
    table.append(tmp_path / "more.csv")
    assert table.scan(["price", "name"], "price >= 1").to_arrow().to_pylist() == [
        {"price": 1.0, "name": "12"},
        {"price": 2.0, "name": None},
    ]
    (tmp_path / "header.csv").write_text("price,name,day\n")
    table.append(tmp_path / "header.csv")
    assert table.scan().count() == 3
    (tmp_path / "wrong.csv").write_text("price,name,day\ncheap,a,\n")
    with pytest.raises(InvalidInput, match=r"wrong\.csv cannot be read as CSV: .*to double: invalid value 'cheap'"):
        table.append(tmp_path / "wrong.csv")


def test_a_csv_file_without_rows_makes_a_table_of_texts(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "header.csv").write_text("id,name\n")
    assert lake.create("h", tmp_path / "header.csv").schema.types == [pa.string(), pa.string()]


def test_a_time_zone_must_be_one(lake: Lake) -> None:
    with pytest.raises(InvalidInput, match=r'no time zone "Europe/Pariss"\. Did you mean "Europe/Paris"\?'):
        lake.create("t", ROWS, time_zone="Europe/Pariss")
    assert dict(lake.create("t", ROWS, time_zone="+05:30").snapshot().properties)["skipstone.timeZone"] == "+05:30"


@pytest.mark.parametrize("kind", ["DELETE FROM t", "UPDATE t SET id = 1", "DROP TABLE t", "INSERT INTO t VALUES (1)"])
def test_a_statement_that_would_change_a_table_is_refused(kind: str, lake: Lake, table: Table) -> None:
    with pytest.raises(InvalidQuery) as caught:
        lake.explain(kind)
    assert str(caught.value) == (
        f'{kind.split()[0]} cannot be used on table "t": statements are queries here, '
        "and tables are changed by create, append, optimize and restore"
    )


def test_a_workload_without_a_query_on_the_table_says_what_there_is(table: Table) -> None:
    statements = ["SELECT id FROM elsewhere", "SELECT idd FROM t", "SELECT id FROM t WHERE"]
    with pytest.raises(InvalidInput) as caught:
        table.advise(Workload.of(statements, {"t": table.schema}))
    assert str(caught.value) == (
        'the workload has no query on table "t"; statements read: 3; not understood: 2, the first at statement:2:8: '
        'no column "idd" in the tables that the statement reads. Did you mean "id"? It has: day, id, name; '
        "other tables in them: elsewhere"
    )


def test_a_column_to_be_excluded_must_be_there(table: Table) -> None:
    with pytest.raises(ColumnNotFound, match=r'no column "dy" in table "t" \(exclude\)\. Did you mean "day"\?'):
        table.advise(Workload.of(["SELECT id FROM t WHERE day = 1"], {"t": table.schema}), exclude=["dy"])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.unlink(), "is not there, though a version of the table has it; "),
        (lambda path: path.write_bytes(b"PAR1"), "cannot be read: Parquet file size is 4 bytes"),
    ],
    ids=["deleted", "damaged"],
)
def test_a_file_of_the_table_that_cannot_be_read_is_named(
    damage: Callable[[Path], object], reason: str, table: Table
) -> None:
    file = table.snapshot().block_sets[0].files[0]
    damage(Path(table.location.uri) / file)
    with pytest.raises(StorageFailed) as caught:
        table.scan().to_arrow()
    assert str(caught.value).startswith(f"{table.location.uri}/{file} {reason}")


@pytest.mark.parametrize("pattern", ["schemes/*.json", "blocks/chunk=_table/*.parquet", "blocks/chunk=0*/*.parquet"])
def test_a_file_of_the_catalog_that_is_damaged_is_named(pattern: str, lake: Lake, table: Table) -> None:
    damaged = sorted(Path(table.location.uri, "_skipstone").glob(pattern))
    assert damaged
    for file in damaged:
        file.write_bytes(b"{ not what it was")
    with pytest.raises(StorageFailed) as caught:
        open_lake(lake.location.uri).table("t").scan(where="id > 3").to_arrow()
    assert str(caught.value).split(" cannot be read: ")[0] in {str(file) for file in damaged}


def test_a_table_is_not_made_twice(lake: Lake, table: Table) -> None:
    with pytest.raises(TableExists):
        lake.create("t", ROWS)


def test_rows_that_do_not_fit_are_refused_with_the_columns_named(table: Table) -> None:
    with pytest.raises(InvalidInput) as caught:
        table.append(pa.table({"id": ["x"], "day": [1], "extra": [2]}))
    assert str(caught.value) == (
        'these rows do not fit table "t": "extra" is not a column of the table, "id" is string, not int64'
    )
    assert table.scan().count() == 1000


def test_an_append_does_not_touch_old_chunks_and_is_queryable_at_once(table: Table) -> None:
    before = table.snapshot()
    table.append(pa.table({"id": [5000], "day": [9], "name": ["new"]}))
    after = table.snapshot()
    assert set(before.chunks) < set(after.chunks)
    assert ids(table.scan(["id"], "id = 5000").to_arrow()) == [5000]
    assert table.scan(where="id = 5000", version=before.version).count() == 0


def test_bounds_skip_and_the_switch_switches(table: Table) -> None:
    on = table.scan(["name"], "id BETWEEN 250 AND 260")
    off = table.scan(["name"], "id BETWEEN 250 AND 260", skipping=Skipping(bounds=False))
    assert on.plan.counts().rows == 100
    assert off.plan.counts().rows == 1000
    assert on.to_arrow().num_rows == off.to_arrow().num_rows == 11


def test_one_scan_gives_the_same_rows_to_arrow_polars_and_duckdb(table: Table) -> None:
    def scan() -> pa.Table:
        return table.scan(["id"], "name IS NULL AND day > 7").to_arrow()

    expected = ids(scan())
    again = table.scan(["id"], "name IS NULL AND day > 7")
    assert sorted(again.to_polars()["id"].to_list()) == expected
    with duckdb.connect() as connection:
        assert sorted(row[0] for row in again.to_duckdb(connection).fetchall()) == expected
    assert again.count() == len(expected) == 100


def test_what_only_spark_can_evaluate_is_refused_by_arrow_with_a_hint(table: Table) -> None:
    with pytest.raises(CannotEvaluate, match="to_spark"):
        table.scan(where="my_function(id) = 3").to_arrow()


def test_an_unknown_column_is_named_with_the_near_miss(table: Table) -> None:
    with pytest.raises(ColumnNotFound, match='Did you mean "name"'):
        table.scan(["nam"])


def test_restore_brings_rows_back_as_a_new_version(table: Table) -> None:
    then = table.snapshot().version
    table.append(ROWS)
    assert table.scan().count() == 2000
    assert table.restore(then) > then + 1
    assert table.scan().count() == 1000
    assert [commit.operation for commit in table.history()][:2] == ["restore", "append"]


def test_a_published_table_reads_the_same_elsewhere_and_moves_with_appends(table: Table) -> None:
    table.export()
    table.append(ROWS.slice(0, 10))
    assert deltalake.DeltaTable(table.location.uri).to_pyarrow_table().num_rows == 1000
    published = table.export()
    assert (published.delta_version, published.files_removed) == (1, 0)
    assert polars.read_delta(table.location.uri).height == 1010


def test_explain_says_what_is_read_and_why_not_more_is_skipped(table: Table) -> None:
    scan = table.scan(["name"], "id < 50 AND my_function(day)")
    assert text(report(scan.plan, table="t", unknown=("a reason",))).splitlines()[:2] == [
        "table t, version 1",
        "  filter    (MY_FUNCTION(day)) AND id < 50",
    ]
    found = report(scan.plan, table="t")
    assert (found.read.blocks, found.plain.blocks) == (1, 10)
    assert "not laid out for any workload yet" in " ".join(found.reasons)


# What was asked, and what was promised.


def asked(logged: Sequence[LoggedQuery]) -> list[tuple[str, int, int]]:
    return [(one.sql, one.rows_read, one.rows_total) for one in logged]


def test_a_lake_that_logs_queries_remembers_what_each_asked_and_read(lake: Lake, table: Table) -> None:
    table.scan(["name"], "id < 150").to_arrow()
    assert table.log() == (), "nobody asked for a log"
    watched = open_lake(lake.location.uri, log_queries=True).table("t")
    begun = datetime.now(UTC)
    found = watched.scan(["name", "day"], "id < 150").to_arrow()
    assert watched.scan(where="day = 3").count() == 100
    first, second = watched.log()
    assert (found.num_rows, first.sql) == (150, "SELECT name, day FROM t WHERE id < 150")
    assert (first.columns, first.filter, first.version) == (("name", "day"), "id < 150", watched.snapshot().version)
    assert (first.blocks_read, first.blocks_total, first.rows_read, first.rows_total) == (2, 10, 200, 1000)
    assert first.cells_read == 200 * 3
    assert first.bytes_read > 0
    assert first.seconds is not None
    assert 0 < first.seconds < 60
    assert begun <= first.asked_at <= second.asked_at
    assert asked(watched.log(since=second.asked_at)) == [("SELECT * FROM t WHERE day = 3", 100, 1000)]
    assert open_lake(lake.location.uri).table("t").log() == (first, second), "the log lies with the table"


def test_the_log_is_of_reads_that_were_finished(lake: Lake, table: Table) -> None:
    watched = open_lake(lake.location.uri, log_queries=True).table("t")
    scan = watched.scan(["id"])
    assert watched.log() == (), "a description of a read is no read"
    next(iter(scan.to_batches()))
    assert watched.log() == (), "half a read is not counted"
    assert scan.to_reader().read_all().num_rows == 1000
    assert asked(watched.log()) == [("SELECT id FROM t", 1000, 1000)]


def test_what_is_handed_to_spark_is_logged_without_a_time(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Table, "_frame_of", lambda self, plan: plan)
    watched = open_lake(lake.location.uri, log_queries=True).table("t")
    watched.scan(["id"], "id < 150").to_spark()
    (logged,) = watched.log()
    assert (logged.rows_read, logged.seconds) == (200, None)


def test_that_the_log_cannot_be_written_does_not_fail_the_query(
    lake: Lake, table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    Path(table.location.uri, "_skipstone", "queries").write_text("in the way")
    watched = open_lake(lake.location.uri, log_queries=True).table("t")
    with caplog.at_level("WARNING"):
        assert watched.scan(where="id < 5").to_arrow().num_rows == 5
    assert "the query log at" in caplog.text
    assert "could not be written" in caplog.text


def work_on(table: Table) -> Workload:
    return Workload.of(
        [f"SELECT id FROM t WHERE name = 'a' AND id % 10 = {digit}" for digit in range(8)] * 5, {"t": table.schema}
    )


def test_a_layout_that_is_there_already_is_not_written_again(table: Table) -> None:
    advice = table.advise(work_on(table), clustering="sort", block_rows=50, min_support=0.1)
    done = table.optimize(advice)
    assert (done.version, done.chunks) == (2, 4)
    assert table.optimize(advice) == Optimized(
        None, 0, 0, "nothing to do: all 4 chunks are laid out by this advice already"
    )
    assert table.snapshot().version == 2
    table.append(ROWS.slice(0, 70))
    again = table.optimize(advice)
    assert (again.version, again.chunks) == (4, 1), "only the chunk that came after is written"
    assert table.scan().count() == 1070


def test_a_description_has_what_the_layout_promised_beside_what_was_read_since(lake: Lake, table: Table) -> None:
    assert table.describe().promise is None
    advice = table.advise(work_on(table), clustering="ward", block_rows=50, min_support=0.1)
    table.optimize(advice)
    watched = open_lake(lake.location.uri, log_queries=True).table("t")
    predicted = advice.candidate(advice.chosen).rows
    assert watched.describe().promise == Promise(2, predicted, 0, None)
    for digit in (1, 3):
        watched.scan(["id"], f"name = 'a' AND id % 10 = {digit}").to_arrow()
    watched.scan(["id"]).to_arrow()
    read = [one.rows_read for one in watched.log()]
    promise = watched.describe().promise
    assert promise == Promise(2, predicted, 3, sum(read) / 3000)
    assert promise is not None
    assert promise.read_rows_share is not None
    assert read[2] == 1000
    assert max(read[:2]) < 1000, "the layout serves the queries that it was made for"
    watched.append(ROWS)
    assert watched.describe().promise == promise, "it is the last layout's promise, also after other commits"


WRITER = """
import sys, pyarrow as pa
from skipstone.lake import open_lake
table = open_lake(sys.argv[1]).table("t")
print("ready", flush=True)
while True:
    table.append(pa.table({"id": range(100), "day": [1] * 100, "name": ["x"] * 100}), block_rows=10)
"""


@pytest.mark.parametrize("seconds", [0.05, 0.3])
def test_a_writer_killed_at_any_moment_leaves_the_last_version_and_orphans_that_vacuum_finds(
    table: Table, seconds: float
) -> None:
    root = Path(table.location.uri)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(root.parent)], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        time.sleep(seconds)
    finally:
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        assert writer.stdout is not None
        writer.stdout.close()
    appended = sum(commit.operation == "append" for commit in table.history())
    assert table.scan().to_arrow().num_rows == 1000 + 100 * appended
    used = {file for blocks in table.snapshot().block_sets for file in blocks.files}
    there = {str(path.relative_to(root)) for path in (root / "data").rglob("*.parquet")}
    found = table.vacuum(timedelta(0), dry_run=False, allow_short_retention=True)
    assert {file for file in found.files if file.startswith("data/")} == there - used
    assert table.scan().to_arrow().num_rows == 1000 + 100 * appended
