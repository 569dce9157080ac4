"""Parquet files stored again in another order, with duplicates: the same rows, and nothing that was not checked."""

from __future__ import annotations

import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipstone.store.reordering as reordering
from skipstone.errors import ColumnNotFound, InvalidInput, VerificationFailed
from skipstone.layout.columns.values import ColumnLayout, StoredColumn
from skipstone.store.reordering import SPARK_SCHEMA, Reordered, apply_order

ROWS = pa.table(
    {
        "a": [1, 2, None] * 100,
        "k.v": ["x", "y", None] * 100,
        "l": [[1], [], None] * 100,
        "s": [{"x": 1, "y": ["q"]}, None, {"x": None, "y": None}] * 100,
        "f": [float("nan"), -0.0, None] * 100,
    }
)
LAYOUT = ColumnLayout(
    (
        StoredColumn("s"),
        StoredColumn("a__copy1", "a"),
        StoredColumn("l"),
        StoredColumn("k.v"),
        StoredColumn("a"),
        StoredColumn("s__copy1", "s"),
        StoredColumn("f"),
    )
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two files, one below a directory, one without rows; beside them what is no data."""
    place = tmp_path / "source"
    (place / "part=1").mkdir(parents=True)
    codecs = {"a": "gzip", "k.v": "zstd"}
    settings = {"use_dictionary": ["a", "f"], "write_statistics": ["a", "k.v"]}
    pq.write_table(ROWS, place / "one.parquet", row_group_size=70, compression=codecs, **settings)
    pq.write_table(ROWS.slice(0, 0), place / "part=1" / "two.parquet")
    (place / "_SUCCESS").write_text("")
    (place / "_old").mkdir()
    (place / "_old" / "three.parquet").write_text("not Parquet")
    return place


def test_rows_stay_where_they_are(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    steps: list[tuple[int, int]] = []
    done = apply_order(source, LAYOUT, target, progress=lambda step, of: steps.append((step, of)))
    assert done == Reordered(2, 5 + 1, 300, done.bytes_read, done.bytes_written)
    assert done.bytes_written == sum(file.stat().st_size for file in target.rglob("*.parquet"))
    assert steps == [(step, 6) for step in range(1, 7)]
    assert sorted(str(file.relative_to(target)) for file in target.rglob("*.*")) == [
        "one.parquet",
        "part=1/two.parquet",
    ]
    found = pq.read_table(target / "one.parquet")
    assert found.schema.names == [column.name for column in LAYOUT.stored]
    for column in LAYOUT.stored:
        assert found[column.name].to_pylist().__repr__() == ROWS[column.logical].to_pylist().__repr__()
    footer = pq.read_metadata(target / "one.parquet")
    assert [footer.row_group(group).num_rows for group in range(5)] == [70, 70, 70, 70, 20]
    chunks = {one.path_in_schema: one for one in (footer.row_group(0).column(i) for i in range(footer.num_columns))}
    assert {name for name, one in chunks.items() if one.compression == "GZIP"} == {"a", "a__copy1"}
    assert {name for name, one in chunks.items() if one.compression == "ZSTD"} == {"k.v"}
    assert {name for name, one in chunks.items() if one.has_dictionary_page} == {"a", "a__copy1", "f"}
    assert {name for name, one in chunks.items() if one.is_stats_set} == {"a", "a__copy1", "k.v"}


def test_another_engine_reads_the_duplicate_as_it_reads_the_column(source: Path, tmp_path: Path) -> None:
    apply_order(source, LAYOUT, tmp_path / "target")
    where = f"'{tmp_path}/target/one.parquet'"
    count = f"SELECT count(*) FROM {where} WHERE a IS DISTINCT FROM a__copy1 OR s IS DISTINCT FROM s__copy1"
    with duckdb.connect() as connection:
        assert connection.execute(count).fetchone() == (0,)
        assert connection.execute(f'SELECT sum(a), count("k.v") FROM {where}').fetchone() == (300, 200)


def test_one_file_is_enough(source: Path, tmp_path: Path) -> None:
    assert apply_order(source / "one.parquet", LAYOUT, tmp_path / "target").files == 1
    assert pq.read_metadata(tmp_path / "target" / "one.parquet").num_rows == 300


def test_spark_sees_duplicates_and_old_timestamps_survive(tmp_path: Path) -> None:
    days = [datetime.datetime(1000, 1, 1), None, datetime.datetime(2020, 1, 1, 1, 2, 3, 456789)]
    rows = pa.table({"t": pa.array(days, pa.timestamp("us"))}).replace_schema_metadata({SPARK_SCHEMA: "{}", "by": "us"})
    pq.write_table(rows, tmp_path / "old.parquet", use_deprecated_int96_timestamps=True)
    layout = ColumnLayout((StoredColumn("t__copy1", "t"), StoredColumn("t")))
    apply_order(tmp_path / "old.parquet", layout, tmp_path / "target")
    path = tmp_path / "target" / "old.parquet"
    footer = pq.read_metadata(path)
    assert {footer.schema.column(i).physical_type for i in range(2)} == {"INT96"}
    assert SPARK_SCHEMA not in footer.metadata
    assert footer.metadata[b"by"] == b"us"
    found = pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read()
    assert found["t__copy1"].to_pylist() == found["t"].to_pylist() == days


def test_a_duplicate_that_differs_is_caught_and_nothing_is_left(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wrong values go into the duplicate, as a fault of ours would put them there."""

    def faulty(rows: pa.Table, layout: ColumnLayout, schema: pa.Schema) -> pa.Table:
        arranged = arrange(rows, layout, schema)
        sevens = pa.array([7] * len(rows), pa.int64())
        return arranged.set_column(1, schema.field(1), sevens)

    arrange = reordering._arranged
    monkeypatch.setattr(reordering, "_arranged", faulty)
    with pytest.raises(VerificationFailed, match=r"one\.parquet, row group 0: .* a__copy1: other values"):
        apply_order(source, LAYOUT, tmp_path / "target")
    assert [path for path in (tmp_path / "target").rglob("*") if path.is_file()] == []


def test_what_cannot_be_stored_again(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    apply_order(source, LAYOUT, target)
    with pytest.raises(InvalidInput, match=r"target is not empty: there is one\.parquet; give a new directory"):
        apply_order(source, LAYOUT, target)
    with pytest.raises(InvalidInput, match="overlap; give a directory of its own"):
        apply_order(source, LAYOUT, source / "ordered")
    with pytest.raises(InvalidInput, match="no Parquet file there"):
        apply_order(tmp_path / "nowhere", LAYOUT, tmp_path / "other")
    with pytest.raises(InvalidInput, match=r"the layout leaves out columns that one\.parquet has: f\. "):
        apply_order(source, ColumnLayout(LAYOUT.stored[:-1]), tmp_path / "other")
    with pytest.raises(ColumnNotFound, match=r'"k_v".* one\.parquet, which the layout speaks of.*k\.v'):
        apply_order(source, ColumnLayout((*LAYOUT.stored, StoredColumn("k_v"))), tmp_path / "other")
    (source / "_delta_log").mkdir()
    (source / "_delta_log" / "0.json").write_text("{}")
    with pytest.raises(InvalidInput, match=r"is a Delta table, whose log says .*skipstone create"):
        apply_order(source, LAYOUT, tmp_path / "other")
    (source / "broken.parquet").write_text("PAR?")
    (source / "_delta_log" / "0.json").unlink()
    with pytest.raises(InvalidInput, match=r"broken\.parquet is not a Parquet file"):
        apply_order(source, LAYOUT, tmp_path / "other")
    assert not (tmp_path / "other").exists(), "what is wrong is found before anything is written"
