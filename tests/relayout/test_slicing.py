"""Rows cut by a column: what differs in it never shares a chunk, nothing is lost, and memory holds a few blocks."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipstone.catalog.location import Location
from skipstone.errors import ColumnNotFound, InvalidInput
from skipstone.lake import Table, open_lake
from skipstone.layout.scheme import Scheme
from skipstone.relayout.slicing import Slicing, write_sliced
from skipstone.store.writer import BlockTarget
from tests.relayout.test_random_schemes import bag

DAYS = [datetime.date(1994, 1, 1) + datetime.timedelta(days=(7 * number) % 400) for number in range(900)]
ROWS = pa.table({
    "id": range(900),
    "sold": pa.array([None if number % 90 == 0 else day for number, day in enumerate(DAYS)], pa.date32()),
    "at": pa.array([datetime.datetime.combine(day, datetime.time(23, 30)) for day in DAYS], pa.timestamp("us", "UTC")),
    "shop": [f"s{number % 3}" for number in range(900)],
})  # fmt: skip


def slices_by_chunk(table: Table, of: str) -> list[list[object]]:
    """The different values of an expression in each chunk."""
    snapshot = table.snapshot()
    unit = Slicing.parse(of, snapshot.schema)
    rows = table.scan().to_arrow()
    found = []
    for chunk in snapshot.chunks:
        blocks, span = snapshot.blocks_of(chunk)
        files = {blocks.files[number] for number in blocks.file_of[span].tolist()}
        parts = [pq.read_table(Path(table.location.uri, file)) for file in files]
        column = pa.concat_tables(parts)[unit.column].combine_chunks()
        found.append(pc.unique(unit._values(column)).to_pylist())
    assert bag(rows) == bag(ROWS) or rows.num_rows > ROWS.num_rows
    return found


@pytest.mark.parametrize(("by", "chunks"), [("month(sold)", 15), ("year(at)", 2), ("shop", 3), ("month(at)", 14)])
def test_rows_that_differ_never_share_a_chunk(by: str, chunks: int, tmp_path: Path) -> None:
    table = open_lake(tmp_path).create("t", ROWS, cut_by=by, block_rows=20)
    found = slices_by_chunk(table, by)
    assert all(len(values) == 1 for values in found)
    assert len(found) == chunks


def test_a_slice_that_is_larger_than_a_chunk_becomes_several(tmp_path: Path) -> None:
    table = open_lake(tmp_path).create("t", ROWS, cut_by="shop", block_rows=20, chunk_rows=100)
    assert sorted(str(value) for values in slices_by_chunk(table, "shop") for value in values) == sorted(
        ["s0", "s1", "s2"] * 3
    )
    snapshot = table.snapshot()
    assert all(snapshot.facts(chunk).rows <= 120 for chunk in snapshot.chunks), "one block more at most"


def test_a_filter_on_the_column_leaves_whole_chunks_out(tmp_path: Path) -> None:
    table = open_lake(tmp_path).create("t", ROWS, cut_by="month(sold)")
    plan = table.scan(["id"], "sold >= DATE '1994-03-01' AND sold < DATE '1994-04-01'").plan
    assert len(list(plan.reads())) == 1


def test_the_table_remembers_and_an_append_may_choose_otherwise(tmp_path: Path) -> None:
    lake = open_lake(tmp_path)
    table = lake.create("t", ROWS.slice(0, 100), cut_by="shop")
    open_lake(tmp_path).table("t").append(ROWS.slice(100, 300))
    assert len(table.snapshot().chunks) == 6
    table.append(ROWS.slice(400), cut_by="year(sold)")
    assert len(table.snapshot().chunks) == 6 + 3, "two years, and the rows without a date"
    assert dict(table.snapshot().facts(table.snapshot().chunks[0]).notes) == {"slice": "s0"}
    assert bag(table.scan().to_arrow()) == bag(ROWS)


def test_what_cannot_cut_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    lake = open_lake(tmp_path)
    with pytest.raises(ColumnNotFound, match='Did you mean "sold"'):
        lake.create("t", ROWS, cut_by="month(solt)")
    with pytest.raises(InvalidInput, match=r"month\(shop\) needs a date or a timestamp; shop is string"):
        lake.create("t", ROWS, cut_by="month(shop)")
    with pytest.raises(InvalidInput, match="cut by at, which is timestamp"):
        lake.create("t", ROWS, cut_by="at")
    assert lake.tables() == ()
    assert not list(tmp_path.rglob("*.parquet"))


keys = st.lists(st.sampled_from([None, "", "a", "b", "NULL", *(f"k{number}" for number in range(60))]), max_size=200)


@given(keys, st.integers(1, 40))
def test_every_row_is_written_once_in_the_slice_it_belongs_to(values: list[str | None], batch_rows: int) -> None:
    rows = pa.table({"k": pa.array(values, pa.string()), "id": pa.array(range(len(values)), pa.int64())})
    found: dict[str | None, list[int]] = {}
    slicing = Slicing.parse("k", rows.schema)
    for batch in rows.to_batches(max_chunksize=batch_rows):
        names: set[str] = set()
        for name, part in slicing.slices(batch):
            assert len(set(part["k"].to_pylist())) == 1
            assert name not in names
            names.add(name)
            found.setdefault(part["k"][0].as_py(), []).extend(part["id"].to_pylist())
    assert found == {
        key: [number for number, value in enumerate(values) if value == key] for key in dict.fromkeys(values)
    }


def test_memory_holds_a_few_blocks_however_many_slices_there_are(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.int64())])
    target = BlockTarget.of(Location.at(tmp_path), "c", schema, Scheme.raw(["k"]))
    batches = [pa.record_batch({"k": pa.array(range(start, start + 60), pa.int64())}) for start in range(0, 200, 20)]
    loaded = list(write_sliced(batches, Slicing("k"), target, block_rows=2, file_rows=1000))
    assert sum(one.written.rows for one in loaded) == 60 * 10
    by_slice: dict[str, int] = {}
    for one in loaded:
        by_slice[one.slice] = by_slice.get(one.slice, 0) + one.written.rows
    assert len(by_slice) == 240
    assert by_slice["100"] == 3
