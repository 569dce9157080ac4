"""The wide table is lineitem with everything that belongs to each line item, in lineitem's order."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.tpch.data import DENORM_COLUMNS, denormalised, write_batches


def test_every_line_item_has_one_wide_row(duck: duckdb.DuckDBPyConnection) -> None:
    assert duck.sql("select count(*) from denorm").fetchall() == duck.sql("select count(*) from lineitem").fetchall()
    assert (
        duck.sql(
            "select l_orderkey, l_linenumber, l_comment from lineitem except all "
            "select l_orderkey, l_linenumber, l_comment from denorm"
        ).fetchall()
        == []
    )


def test_keys_of_the_joined_tables_agree(duck: duckdb.DuckDBPyConnection) -> None:
    wrong = duck.sql(
        "select count(*) from denorm where l_orderkey <> o_orderkey or o_custkey <> c_custkey "
        "or l_partkey <> p_partkey or l_partkey <> ps_partkey or l_suppkey <> ps_suppkey or l_suppkey <> s_suppkey "
        "or c_nationkey <> cn_nationkey or s_nationkey <> sn_nationkey "
        "or cn_regionkey <> cr_regionkey or sn_regionkey <> sr_regionkey"
    ).fetchall()
    assert wrong == [(0,)]


def test_rows_are_stored_in_the_order_of_line_items(tiny_wide: Path) -> None:
    table = pq.read_table(tiny_wide, columns=["l_orderkey", "l_linenumber"])
    ordered = table.sort_by([("l_orderkey", "ascending"), ("l_linenumber", "ascending")])
    assert table.equals(ordered)


def test_columns_are_the_sixty_eight_announced_ones(tiny_wide: Path) -> None:
    assert tuple(pq.read_schema(tiny_wide / "part-00000.parquet").names) == DENORM_COLUMNS
    assert len(DENORM_COLUMNS) == 68


def test_scales_at_which_the_join_is_not_one_to_one_are_refused() -> None:
    with pytest.raises(ValueError, match=r"needs a scale factor of at least 0\.01, not 0\.002"):
        denormalised(0.002)


@pytest.mark.parametrize("batch_rows", [1, 7, 10, 64])
def test_row_groups_are_exact_whatever_the_batches_were(tmp_path: Path, batch_rows: int) -> None:
    table = pa.table({"n": list(range(64))})
    written = write_batches(table.to_batches(batch_rows), table.schema, tmp_path, rows_per_group=10, rows_per_file=25)
    files = sorted(tmp_path.glob("*.parquet"))
    sizes = [
        [pq.read_metadata(file).row_group(i).num_rows for i in range(pq.read_metadata(file).num_row_groups)]
        for file in files
    ]
    assert written == 64
    assert sizes == [[10, 10], [10, 10], [10, 10], [4]]
    assert pq.read_table(tmp_path).equals(table)


def test_an_empty_stream_still_leaves_a_readable_table(tmp_path: Path) -> None:
    table = pa.table({"n": pa.array([], pa.int64())})
    assert write_batches([], table.schema, tmp_path, rows_per_group=10) == 0
    assert pq.read_table(tmp_path).equals(table)
