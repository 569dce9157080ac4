"""The use cases of a lake, without Java: load from every source, read, look back, clean up, publish."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import deltalake
import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from skipstone.errors import CannotEvaluate, ColumnNotFound, InvalidInput, TableExists, TableNotFound
from skipstone.lake import Lake, Table, open_lake
from skipstone.scan.explain import report, text
from skipstone.scan.plan import Skipping

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
