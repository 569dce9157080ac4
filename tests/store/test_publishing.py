"""A published table gives every reader the same rows as ours, whatever its columns hold and whatever was tracked."""

from __future__ import annotations

import math
import random
from pathlib import Path

import deltalake
import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from skipstone.errors import InvalidInput
from skipstone.lake import Table, open_lake
from skipstone.store import publishing
from tests.relayout.worlds import random_table

ROWS = pa.table({
    "id": range(100),
    "ratio": [None if number % 9 == 0 else math.nan if number % 10 == 0 else number / 4 for number in range(100)],
    "note": ["x" * 80 + str(number) for number in range(100)],
    "empty": pa.nulls(100, pa.int64()),
    "a.b": range(100, 200),
    "flag": [number % 2 == 0 for number in range(100)],
})  # fmt: skip


def counts(table: Table, condition: str, expression: ds.Expression) -> dict[str, int]:
    """How many rows each reader finds."""
    delta = deltalake.DeltaTable(table.location.uri)
    with duckdb.connect() as connection:
        connection.register("t", delta.to_pyarrow_dataset())
        in_duckdb = connection.sql(f"SELECT count(*) FROM t WHERE {condition}").fetchall()[0][0]
    engine = deltalake.QueryBuilder().register("t", delta)
    return {
        "skipstone": table.scan(where=condition, dialect="duckdb").count(),
        "dataset": delta.to_pyarrow_dataset().to_table(filter=expression).num_rows,
        "duckdb": in_duckdb,
        "datafusion": pa.table(engine.execute(f"SELECT * FROM t WHERE {condition}").read_all()).num_rows,
        "polars": polars.scan_delta(table.location.uri).sql(f"SELECT id FROM self WHERE {condition}").collect().height,
    }


CASES = [
    ("ratio > 5 AND ratio < 9", (ds.field("ratio") > 5) & (ds.field("ratio") < 9), 13),
    ("ratio IS NULL", ds.field("ratio").is_null(), 12),
    ("id = 7", ds.field("id") == 7, 1),
    (f"note = '{'x' * 80}42'", ds.field("note") == "x" * 80 + "42", 1),
    ("empty IS NULL", ds.field("empty").is_null(), 100),
    ("flag", ds.field("flag"), 50),
]


@pytest.mark.parametrize(("condition", "expression", "expected"), CASES, ids=[case[0][:20] for case in CASES])
def test_columns_without_exact_bounds_are_read_by_everybody(
    condition: str, expression: ds.Expression, expected: int, tmp_path: Path
) -> None:
    table = open_lake(tmp_path).create("t", ROWS, block_rows=30)
    table.export()
    assert set(counts(table, condition, expression).values()) == {expected}


def test_files_that_come_later_with_less_known_do_not_take_rows_away(tmp_path: Path) -> None:
    plain = ROWS.set_column(1, "ratio", pa.array([float(number) for number in range(100)]))
    table = open_lake(tmp_path).create("t", plain)
    table.export()
    configuration = deltalake.DeltaTable(table.location.uri).metadata().configuration
    assert configuration["delta.dataSkippingStatsColumns"] == "id,ratio,empty"
    table.append(ROWS)  # with NaN, so that its files have no bounds of ratio
    table.export()
    configuration = deltalake.DeltaTable(table.location.uri).metadata().configuration
    assert configuration["delta.dataSkippingStatsColumns"] == "id,empty"
    found = counts(table, "ratio > 5 AND ratio < 9", (ds.field("ratio") > 5) & (ds.field("ratio") < 9))
    assert set(found.values()) == {13 + 3}


def test_without_the_property_delta_rs_would_lose_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why the property is there; when this fails, delta-rs has been repaired."""
    monkeypatch.setattr(publishing, "_indexed", lambda columns: {})
    table = open_lake(tmp_path).create("t", ROWS)
    table.export()
    dataset = deltalake.DeltaTable(table.location.uri).to_pyarrow_dataset()
    assert dataset.to_table(filter=ds.field("ratio") > 5).num_rows == 0


def test_random_tables_are_the_same_rows_to_everybody(tmp_path: Path) -> None:
    rows = random_table(random.Random(5), 200).drop_columns(["k.v", "l"]).append_column("id", pa.array(range(200)))
    table = open_lake(tmp_path).create("t", rows, block_rows=20)
    table.export()
    for name, value in (("n", 1), ("f", 1.5), ("s", "ab")):
        condition = f"{name} = {value!r}"
        assert len(set(counts(table, condition, ds.field(name) == value).values())) == 1, condition


def test_types_that_delta_lacks_are_published_as_wider_ones_that_everybody_reads(tmp_path: Path) -> None:
    rows = pa.table({
        "byte": pa.array([200, None], pa.uint8()),
        "short": pa.array([60_000, None], pa.uint16()),
        "int": pa.array([2**32 - 1, None], pa.uint32()),
        "zoned": pa.array([1, None], pa.timestamp("ms", "Europe/Oslo")),
        "fine": pa.array([1_000, None], pa.timestamp("ns")),
        "coarse": pa.array([1, None], pa.timestamp("s")),
    })  # fmt: skip
    table = open_lake(tmp_path).create("t", rows)
    table.export()
    delta = deltalake.DeltaTable(table.location.uri)
    expected = [tuple(row.values()) for row in rows.to_pylist()]
    assert [tuple(row.values()) for row in delta.to_pyarrow_table().to_pylist()] == expected
    assert polars.scan_delta(table.location.uri).collect().rows() == expected


def test_columns_that_delta_has_no_type_for_are_named(tmp_path: Path) -> None:
    table = open_lake(tmp_path).create("t", pa.table({"id": [1], "at": pa.array([1], pa.time32("s"))}))
    with pytest.raises(InvalidInput, match=r'^Delta has no type for these columns, .*: "at" \(time32\[s\]\)$'):
        table.export()
    assert not (tmp_path / "t" / "_delta_log").exists()
