"""What is loaded is what the files hold: all columns of all files, all values, in types that hold them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skipstone.errors import InvalidInput
from skipstone.lake import Lake, open_lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(tmp_path / "lake")


def directory_of(path: Path, *files: Mapping[str, Any] | pa.Table) -> Path:
    """A directory of Parquet files, in this order."""
    path.mkdir()
    for number, rows in enumerate(files):
        pq.write_table(pa.table(rows), path / f"{number}.parquet")
    return path


def rewrite_log(table: Path, change: Any) -> None:
    """Change the entries of the first commit of a Delta table."""
    log = table / "_delta_log" / f"{0:020d}.json"
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    for entry in entries:
        change(entry)
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def test_columns_that_only_later_parquet_files_have_are_loaded(lake: Lake, tmp_path: Path) -> None:
    required = pa.table(
        {"a": [2], "b": ["x"]}, schema=pa.schema([("a", pa.int64()), pa.field("b", pa.string(), False)])
    )
    table = lake.create("t", directory_of(tmp_path / "files", {"a": [1]}, required))
    assert table.scan().to_arrow().to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
    assert table.schema.field("b").nullable, "the first file has no value for it"


def test_parquet_files_of_different_types_are_loaded_in_one_that_holds_the_values_of_all(
    lake: Lake, tmp_path: Path
) -> None:
    wider = directory_of(tmp_path / "wider", {"a": pa.array([1], pa.int32())}, {"a": [2**40]}, {"a": pa.nulls(1)})
    assert lake.create("wider", wider).scan().to_arrow()["a"].to_pylist() == [1, 2**40, None]
    mixed = directory_of(tmp_path / "mixed", {"a": [1]}, {"a": ["1"]})
    with pytest.raises(InvalidInput, match=r"mixed cannot be read as Parquet: .*incompatible types: int64 vs string"):
        lake.create("mixed", mixed)


def test_int96_timestamps_of_all_years_are_loaded(lake: Lake, tmp_path: Path) -> None:
    """Arrow takes INT96 for nanoseconds, in which the year 9999 becomes 1816."""
    moments = [datetime(1, 1, 1), datetime(1500, 2, 3, 4), datetime(2020, 1, 1, 0, 0, 0, 123456), None]
    moments.append(datetime(9999, 12, 31, 23, 59, 59, 999999))
    rows = pa.table({"at": pa.array(moments, pa.timestamp("us"))})
    pq.write_table(rows, tmp_path / "old.parquet", use_deprecated_int96_timestamps=True)
    table = lake.create("t", tmp_path / "old.parquet")
    assert table.scan().to_arrow()["at"].to_pylist() == moments
    assert table.scan(where="at > TIMESTAMP_NTZ '3000-01-01 00:00:00'").count() == 1


def test_texts_of_csv_that_look_like_null_elsewhere_stay_texts(lake: Lake, tmp_path: Path) -> None:
    """`NA` is Namibia, and NaN is a number: what is read is what DuckDB reads."""
    file = tmp_path / "rows.csv"
    file.write_text('id,country,share\n1,NA,NaN\n2,null,1.5\n3,"",inf\n4,,\n5,N/A,0.5\n')
    found = lake.create("t", file).scan().to_arrow()
    assert found["country"].to_pylist() == ["NA", "null", None, None, "N/A"]
    with duckdb.connect() as connection:
        expected = connection.sql(f"SELECT * FROM read_csv('{file}')").fetchall()
    assert repr([tuple(row.values()) for row in found.to_pylist()]) == repr(expected)  # by text, for NaN's sake


def test_lines_within_quotes_of_csv_may_lie_across_blocks_of_the_file(lake: Lake, tmp_path: Path) -> None:
    texts = [f'first {number}\nsecond, "{number}"' for number in range(60_000)]
    with (tmp_path / "rows.csv").open("w") as file:
        file.write("id,text\n")
        file.writelines('{},"{}"\n'.format(number, text.replace('"', '""')) for number, text in enumerate(texts))
    assert lake.create("t", tmp_path / "rows.csv").scan().to_arrow()["text"].to_pylist() == texts


def test_all_columns_of_all_csv_files_are_loaded(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "1.csv").write_text("a,b,c\n1,2,3\n")
    (tmp_path / "files" / "2.csv").write_text("b,a,d\n2.5,x1,y\n")
    table = lake.create("t", tmp_path / "files")
    assert table.scan().to_arrow().to_pylist() == [
        {"a": "1", "b": 2.0, "c": 3, "d": None},
        {"a": "x1", "b": 2.5, "c": None, "d": "y"},
    ]


def test_a_delta_table_that_maps_columns_is_refused(lake: Lake, tmp_path: Path) -> None:
    """By the names of the table, nothing is found in its files; it used to be loaded as NULL throughout."""

    def map_columns(entry: dict[str, Any]) -> None:
        if "protocol" in entry:
            entry["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if "metaData" in entry:
            entry["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
            schema = json.loads(entry["metaData"]["schemaString"])
            notes = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
            schema["fields"][0]["metadata"] = notes
            entry["metaData"]["schemaString"] = json.dumps(schema)

    deltalake.write_deltalake(tmp_path / "mapped", pa.table({"a": [1, 2]}))
    rewrite_log(tmp_path / "mapped", map_columns)
    with pytest.raises(InvalidInput, match=r'mapped cannot be read as a Delta table: it maps columns .*"name"'):
        lake.create("t", tmp_path / "mapped")
    assert lake.tables() == ()


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"no Parquet")])
def test_a_damaged_file_of_a_delta_table_is_said_to_be_that(lake: Lake, tmp_path: Path, damage: Any) -> None:
    deltalake.write_deltalake(tmp_path / "damaged", pa.table({"a": [1, 2]}))
    damage(next((tmp_path / "damaged").glob("*.parquet")))
    with pytest.raises(InvalidInput, match=r"damaged cannot be read as a Delta table: .*\.parquet"):
        lake.create("t", tmp_path / "damaged")


def test_appended_columns_are_found_by_name_and_one_that_is_missing_is_null(lake: Lake, tmp_path: Path) -> None:
    table = lake.create("t", pa.table({"a": [1], "b": [2]}))
    table.append(pa.table({"b": [20], "a": [10]}))
    table.append(pa.table({"b": [200]}))
    pq.write_table(pa.table({"a": [1000]}), tmp_path / "only_a.parquet")
    table.append(tmp_path / "only_a.parquet")
    found = table.scan().to_arrow().to_pylist()
    assert [tuple(row.values()) for row in found] == [(1, 2), (10, 20), (None, 200), (1000, None)]
    assert table.scan(where="b IS NULL").to_arrow()["a"].to_pylist() == [1000]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (pa.array(["a", None, "b"], pa.string_view()), pa.string()),
        (pa.array([b"a", None, b"b"], pa.binary_view()), pa.binary()),
        (pa.array([["a"], None, []], pa.list_(pa.string_view())), pa.list_(pa.string())),
        (pa.array([Decimal("1.5"), None, Decimal(2)], pa.decimal32(5, 2)), pa.decimal128(5, 2)),
        (pa.array([Decimal("1.5"), None, Decimal(2)], pa.decimal64(12, 2)), pa.decimal128(12, 2)),
    ],
)
def test_types_that_arrow_can_do_little_with_are_kept_as_ones_that_it_can(
    lake: Lake, given: pa.Array, kept: pa.DataType
) -> None:
    table = lake.create("t", pa.table({"id": [1, 2, 3], "a": given}))
    table.append(pa.table({"id": [4, 5, 6], "a": given}))
    assert table.schema.field("a").type == kept
    assert table.scan(["a"]).to_arrow()["a"].to_pylist() == given.to_pylist() * 2
    assert table.scan(["id"], "a IS NULL").to_arrow()["id"].to_pylist() == [2, 5]
