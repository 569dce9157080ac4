"""What is written in blocks is read back: the same bag of rows, of the same types, in exactly the blocks asked for."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.catalog.location import Location
from skipstone.catalog.values import CLUSTERED, REST, ROW_ID, UNKNOWN
from skipstone.errors import InvalidInput
from skipstone.layout.scheme import Layout, Scheme
from skipstone.predicate.expression import Call, Column
from skipstone.predicate.parsing import parse_filter
from skipstone.store import reader as reader_module
from skipstone.store.checksum import WHOLE_ROWS, checksums
from skipstone.store.reader import file_blocks, read_blocks, stored_checksums
from skipstone.store.statistics import Tracked
from skipstone.store.types import storable_schema
from skipstone.store.writer import BlockTarget, BlockWriter, Vectors, Written, write_blocks
from tests.store.strategies import canonical, tables, unhurried

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def target_for(location: Location, schema: pa.Schema, **changes: object) -> BlockTarget:
    return BlockTarget(location, "chunk", storable_schema(schema), **changes)  # type: ignore[arg-type]


def pieces(table: pa.Table, cuts: Sequence[int]) -> Iterator[tuple[int, pa.RecordBatch, None]]:
    """The rows in blocks that end at the cuts, each block in two batches."""
    for block, (start, end) in enumerate(zip([0, *cuts], [*cuts, table.num_rows], strict=True)):
        middle = (start + end) // 2
        for batch in (table.slice(start, middle - start), table.slice(middle, end - middle)):
            for one in batch.combine_chunks().to_batches():
                yield block, one, None


def read_all(location: Location, written: Written, schema: pa.Schema, *, row_ids: bool = False) -> pa.Table:
    rows = written.blocks.rows
    reads = file_blocks(rows["file"].to_pylist(), rows["row_group"].to_pylist())
    fields = [*schema, *([pa.field(ROW_ID, pa.int64(), nullable=False)] if row_ids else [])]
    batches = read_blocks(location, reads, schema, row_ids=row_ids, batch_rows=3)
    return pa.Table.from_batches(list(batches), pa.schema(fields))


@unhurried
@given(tables(), st.data())
def test_random_tables_of_every_type_come_back_equal(table: pa.Table, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, table.num_rows), max_size=4)))
    with tempfile.TemporaryDirectory() as directory:
        location = Location.at(directory)
        target = target_for(location, table.schema, row_groups_per_file=2, whole_rows=tuple(table.column_names))
        written = write_blocks(target, pieces(table, cuts))
        found = read_all(location, written, table.schema)
        stored = stored_checksums(location, written.blocks, table.schema, whole_rows=table.column_names)
    assert found.schema == table.schema
    found.validate(full=True)
    for name in table.column_names:
        assert canonical(found[name]) == canonical(table[name])
    assert written.rows == table.num_rows
    if table.num_rows:
        assert written.checksums == checksums(table, whole_rows=table.column_names) == stored
    sizes = np.diff([0, *cuts, table.num_rows])
    assert written.blocks.rows["rows"].to_pylist() == [size for size in sizes.tolist() if size]


@pytest.fixture
def location(tmp_path: Path) -> Location:
    return Location.at(tmp_path)


PLAIN = pa.table({"a": pa.array(range(1000)), "b": [f"text {i % 7}" for i in range(1000)]})


def test_each_block_is_one_row_group_and_files_are_rolled(location: Location) -> None:
    target = target_for(location, PLAIN.schema, row_groups_per_file=4)
    written = write_blocks(target, pieces(PLAIN, range(100, 1000, 100)))
    rows = written.blocks.rows
    assert rows["rows"].to_pylist() == [100] * 10
    assert rows["row_group"].to_pylist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert len(set(rows["file"].to_pylist())) == 3
    for file in written.blocks.files:
        assert file.startswith("data/chunk/0/")
        metadata = pq.read_metadata(f"{location.uri}/{file}")
        groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        assert groups == [100] * len(groups)


@pytest.mark.slow
def test_a_block_may_be_larger_than_writers_like_their_row_groups(location: Location) -> None:
    rows = 1_200_000  # more than the 1,048,576 at which Arrow's writer would cut
    table = pa.table({"a": np.arange(rows)})
    written = write_blocks(target_for(location, table.schema), pieces(table, []))
    assert written.blocks.rows["rows"].to_pylist() == [rows]


def test_exactly_the_blocks_asked_for_are_read(location: Location) -> None:
    written = write_blocks(target_for(location, PLAIN.schema), pieces(PLAIN, range(100, 1000, 100)))
    reads = file_blocks(written.blocks.rows["file"].to_pylist()[:2], [7, 3])
    found = pa.Table.from_batches(read_blocks(location, reads, PLAIN.schema))
    assert found["a"].to_pylist() == [*range(300, 400), *range(700, 800)]


def test_a_footer_says_nothing_of_where_the_rows_came_from(location: Location) -> None:
    noisy = PLAIN.replace_schema_metadata({"pandas": "{}", "org.apache.spark.sql.parquet.row.metadata": "{}"})
    fields = [one.with_metadata({"PARQUET:field_id": "9", "comment": "x"}) for one in noisy.schema]
    noisy = noisy.cast(pa.schema(fields, noisy.schema.metadata))
    written = write_blocks(target_for(location, noisy.schema), pieces(noisy, []))
    file = f"{location.uri}/{written.blocks.files[0]}"
    assert pq.read_metadata(file).metadata is None
    assert pq.read_schema(file).field("a").metadata is None


def test_decimals_that_fit_are_stored_as_integers_which_are_read_faster(location: Location) -> None:
    table = pa.table({f"d{digits}": pa.array([1, None], pa.decimal128(digits, 2)) for digits in (9, 18, 19)})
    written = write_blocks(target_for(location, table.schema), pieces(table, [0, 2]))
    row_group = pq.ParquetFile(f"{location.uri}/{written.blocks.files[0]}").metadata.row_group(0)
    assert [row_group.column(i).physical_type for i in range(3)] == ["INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"]
    assert read_all(location, written, table.schema).equals(table)


def test_bytes_of_columns_are_those_of_the_file(location: Location) -> None:
    table = pa.table({"n": [{"x": [1, 2], "y": "a"}] * 9, "m.k": list(range(9)), "k": [{"v": [1.5]}] * 9})
    written = write_blocks(target_for(location, table.schema, duplicates=(("copy", "n"),)), pieces(table, [4]))
    metadata = pq.read_metadata(f"{location.uri}/{written.blocks.files[0]}")
    for group, sizes in enumerate(written.blocks.rows["column_bytes"].to_pylist()):
        columns = [metadata.row_group(group).column(i).total_compressed_size for i in range(metadata.num_columns)]
        # n has the leaves x and y, then m.k, then k's v, then the copy of n.
        assert sizes == [columns[0] + columns[1], columns[2], columns[3], columns[4] + columns[5]]
    assert written.blocks.columns == ("n", "m.k", "k", "copy")


def test_a_duplicate_is_read_under_the_name_of_its_source(location: Location) -> None:
    written = write_blocks(target_for(location, PLAIN.schema, duplicates=(("a again", "a"),)), pieces(PLAIN, [500]))
    names = pq.read_schema(f"{location.uri}/{written.blocks.files[0]}").names
    assert names == ["a", "b", "a again"]
    reads = file_blocks(written.blocks.rows["file"].to_pylist(), [0, 1])
    batches = list(read_blocks(location, reads, PLAIN.schema, stored={"a": "a again"}))
    assert pa.Table.from_batches(batches).equals(PLAIN)


def test_columns_that_came_later_are_null_and_widened_ones_are_widened(location: Location) -> None:
    table = pa.table({"a": pa.array([1, 2], pa.int32()), "s": pa.array([{"x": 1}, None])})
    written = write_blocks(target_for(location, table.schema), pieces(table, []))
    later = pa.schema(
        [
            ("new", pa.string()),
            ("a", pa.int64()),
            ("s", pa.struct([("x", pa.int64()), ("y", pa.list_(pa.int8()))])),
        ]
    )
    found = read_all(location, written, later)
    assert found.to_pylist() == [
        {"new": None, "a": 1, "s": {"x": 1, "y": None}},
        {"new": None, "a": 2, "s": None},
    ]
    only_new = read_all(location, written, pa.schema([("new", pa.date32())]))
    assert only_new["new"].to_pylist() == [None, None]


def test_rows_are_counted_where_no_column_is_asked_for(location: Location) -> None:
    written = write_blocks(target_for(location, PLAIN.schema), pieces(PLAIN, [10]))
    reads = file_blocks(written.blocks.files, [1])
    assert [batch.num_rows for batch in read_blocks(location, reads, pa.schema([]), batch_rows=600)] == [600, 390]


def with_row_ids(table: pa.Table) -> pa.Table:
    return table.append_column(pa.field(ROW_ID, pa.int64(), nullable=False), pa.array(range(table.num_rows)))


def test_row_ids_are_stored_where_a_scheme_has_several_layouts(location: Location) -> None:
    scheme = Scheme((Layout(("a",), masters=frozenset("a")), Layout(("b", "a"), masters=frozenset("b"))))
    target = BlockTarget.of(location, "c", PLAIN.schema, scheme, layout=1)
    written = write_blocks(target, pieces(with_row_ids(PLAIN), [300]))
    rows = written.blocks.rows
    assert (rows["first_row_id"].to_pylist(), rows["last_row_id"].to_pylist()) == ([0, 300], [299, 999])
    found = read_all(location, written, PLAIN.schema, row_ids=True)
    assert found.equals(with_row_ids(PLAIN))
    column = pq.read_metadata(f"{location.uri}/{written.blocks.files[0]}").row_group(1).column(2)
    assert "DELTA_BINARY_PACKED" in column.encodings
    assert column.total_compressed_size < 700, "an ascending number costs next to nothing"
    assert {name for name, _ in written.checksums} == {"a", "b", ROW_ID, WHOLE_ROWS}


def test_a_scheme_of_one_layout_stores_no_row_ids(location: Location) -> None:
    target = BlockTarget.of(location, "c", PLAIN.schema, Scheme.raw(["b", "a"]))
    written = write_blocks(target, pieces(PLAIN, []))
    assert written.blocks.columns == ("b", "a")
    assert written.blocks.rows["first_row_id"].to_pylist() == [UNKNOWN]


def test_the_rest_of_a_layout_has_masters_only(location: Location) -> None:
    features = (parse_filter("a > 5", PLAIN.schema),)
    layouts = (
        Layout(("b", "a"), (0,), frozenset("a"), duplicates=(("b2", "b"), ("a2", "a"))),
        Layout(("b",), masters=frozenset("b")),
    )
    scheme = Scheme(layouts, features)
    tracked = [Tracked.of(Column("a", pa.int64())), Tracked.of(Column("b", pa.string()))]
    clustered = BlockTarget.of(location, "c", PLAIN.schema, scheme, part=CLUSTERED, tracked=tracked)
    rest = BlockTarget.of(location, "c", PLAIN.schema, scheme, part=REST, tracked=tracked)
    assert clustered.columns == ("b", "a", "b2", "a2", ROW_ID)
    assert rest.columns == ("a", "a2", ROW_ID)
    assert [one.text for one in rest.tracked] == ["a"]
    both = Written.merge(
        write_blocks(target, pieces(with_row_ids(PLAIN).slice(start, 500), []))
        for target, start in ((rest, 500), (clustered, 0))
    )
    assert both.blocks.rows["part"].to_pylist() == [CLUSTERED, REST]
    sizes = dict(zip(both.blocks.columns, zip(*both.blocks.rows["column_bytes"].to_pylist(), strict=True), strict=True))
    assert sizes["b"][1] == sizes["b2"][1] == UNKNOWN
    assert min(*sizes["a"], *sizes["a2"], *sizes[ROW_ID], sizes["b"][0]) > 0
    bounds = dict(both.blocks.bounds)
    assert bounds["b"].null_count.to_pylist() == [0, None], "what a part does not hold is unknown there"
    with pytest.raises(InvalidInput, match="layout 0 has no masters"):
        BlockTarget.of(location, "c", PLAIN.schema, Scheme((Layout(("a",), (0,)),), features), part=REST)


def vectors(rows: Sequence[int]) -> Vectors:
    return np.array([[row & 0xFF, row >> 8] for row in rows], dtype=np.uint8)


def test_a_block_vector_is_the_union_of_its_rows(location: Location) -> None:
    batch = PLAIN.slice(0, 4).combine_chunks().to_batches()[0]
    target = target_for(location, PLAIN.schema, vector_bytes=2)
    with BlockWriter(target) as writer:
        writer.write(0, batch, vectors([1, 4, 0, 0x100]))
        writer.write(0, batch, vectors([0, 0, 0, 0x8000]))
        writer.write(2, batch, vectors([0] * 4))
        writer.write(5, batch, None)
        written = writer.close()
    assert written.blocks.rows["vector"].to_pylist() == [b"\x05\x81", b"\x00\x00", None]
    assert written.blocks.rows["block"].to_pylist() == [0, 2, 5]
    with pytest.raises(InvalidInput, match="4 rows need vectors of 2 bytes each"):
        BlockWriter(target).write(0, batch, vectors([1]))


def test_rows_whose_vector_is_not_known_make_the_block_unknown(location: Location) -> None:
    batch = PLAIN.slice(0, 4).combine_chunks().to_batches()[0]
    with BlockWriter(target_for(location, PLAIN.schema, vector_bytes=2)) as writer:
        writer.write(0, batch, vectors([1, 4, 0, 2]))
        writer.write(0, batch, None)
        assert writer.close().blocks.rows["vector"].to_pylist() == [None]


def test_bounds_of_expressions_are_those_of_their_values(location: Location) -> None:
    length = Call("length", (Column("b", pa.string()),), pa.int32())
    target = target_for(location, PLAIN.schema, tracked=(Tracked.of(length), Tracked.of(Column("a", pa.int64()))))
    written = write_blocks(target, pieces(PLAIN, [600]))
    bounds = dict(written.blocks.bounds)
    assert bounds["LENGTH(b)" if "LENGTH(b)" in bounds else "length(b)"].maximum.to_pylist() == [6, 6]
    assert bounds["a"].minimum.to_pylist() == [0, 600]


def test_what_arrow_cannot_compute_as_spark_would_has_no_bounds(location: Location) -> None:
    unknown = Call("soundex", (Column("b", pa.string()),), pa.string())
    written = write_blocks(
        target_for(location, PLAIN.schema, tracked=(Tracked("soundex(b)", unknown),)), pieces(PLAIN, [])
    )
    known = dict(written.blocks.bounds)["soundex(b)"]
    assert (known.null_count.to_pylist(), known.minimum.to_pylist()) == ([None], [None])


def test_rows_of_other_types_are_converted_and_missing_columns_are_named(location: Location) -> None:
    target = target_for(
        location, pa.schema([pa.field("a", pa.int64(), nullable=False), ("t", pa.timestamp("us", "UTC"))])
    )
    batch = pa.record_batch({"t": pa.array([0], pa.timestamp("ms", "UTC")), "a": pa.array([1], pa.int8()), "x": [1]})
    written = write_blocks(target, [(0, batch, None)])
    assert read_all(location, written, target.schema).to_pydict()["a"] == [1]
    with pytest.raises(InvalidInput, match='no column "t"'):
        write_blocks(target, [(0, batch.select(["a"]), None)])
    nulls = batch.set_column(1, "a", pa.array([None], pa.int64()))
    with pytest.raises(InvalidInput, match='column "a" may not be NULL, but 1 of its values are'):
        write_blocks(target, [(0, nulls, None)])


def test_blocks_that_come_in_the_wrong_order_are_refused(location: Location) -> None:
    batch = PLAIN.slice(0, 1).combine_chunks().to_batches()[0]
    with pytest.raises(InvalidInput, match="2 came after 3"):
        write_blocks(target_for(location, PLAIN.schema), [(3, batch, None), (2, batch, None)])


def test_what_fails_leaves_no_file_behind(location: Location) -> None:
    batch = PLAIN.slice(0, 1).combine_chunks().to_batches()[0]

    def source() -> Iterator[tuple[int, pa.RecordBatch, None]]:
        for block in range(5):
            yield block, batch, None
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        write_blocks(target_for(location, PLAIN.schema, row_groups_per_file=2), source())
    assert list(location.list()) == []


def test_nothing_written_is_no_blocks(location: Location) -> None:
    written = write_blocks(target_for(location, PLAIN.schema), [])
    assert (len(written.blocks), written.rows, written.checksums, list(location.list())) == (0, 0, (), [])


def test_a_target_and_what_was_written_travel_between_processes(location: Location) -> None:
    target = target_for(location, PLAIN.schema, tracked=(Tracked.of(Column("a", pa.int64())),))
    written = pickle.loads(pickle.dumps(write_blocks(pickle.loads(pickle.dumps(target)), pieces(PLAIN, [10]))))
    assert written.blocks.rows["rows"].to_pylist() == [10, 990]


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        (pa.schema([("a", pa.int64()), ("A", pa.int64())]), "must differ in more than case; doubled: a"),
        (pa.schema([("_Skipstone_row_id", pa.int64())]), "may not begin with _skipstone_"),
        (pa.schema([]), "at least one column"),
        (pa.schema([("a", pa.list_(pa.struct([])))]), "struct without fields, as in: a"),
        (pa.schema([("a", pa.month_day_nano_interval())]), "columns of type month_day_nano_interval cannot be stored"),
        (pa.schema([("a", pa.list_view(pa.int64()))]), "cannot be stored"),
    ],
)
def test_a_schema_that_cannot_be_stored_is_refused(schema: pa.Schema, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        storable_schema(schema)


SHARED = pa.table(
    {
        "i": pa.array([1, None, -3], pa.int32()),
        "d": pa.array([None, "1.25", "-99999.99"]).cast(pa.decimal128(9, 2)),
        "s": ["é", None, ""],
        "t": pa.array([0, None, -1], pa.timestamp("us", "UTC")),
        "n": pa.array([0, None, -1], pa.timestamp("us")),
        "day": pa.array([0, None, -700_000], pa.date32()),
        "l": [[1, None], None, []],
        "st": [{"x": 1.5, "y": ["a"]}, None, {"x": None, "y": None}],
        "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "b": pa.array([True, None, False]),
        "y": pa.array([b"\x00", None, b""]),
    }
)


def test_duckdb_and_polars_read_the_files_as_they_are(location: Location) -> None:
    written = write_blocks(target_for(location, SHARED.schema), pieces(SHARED, [1]))
    file = f"{location.uri}/{written.blocks.files[0]}"
    with duckdb.connect() as connection:
        relation = connection.sql(f"SELECT * FROM '{file}'")
        assert relation is not None
        in_duckdb: pa.Table = relation.to_arrow_table()
    for name in SHARED.column_names:
        assert in_duckdb[name].to_pylist() == SHARED[name].to_pylist(), name
    in_polars: pa.Table = pl.read_parquet(file).to_arrow()
    for name in ("i", "d", "s", "t", "n", "day", "l", "st", "b", "y"):
        assert in_polars[name].to_pylist() == SHARED[name].to_pylist(), name


@pytest.mark.spark
def test_spark_reads_the_files_as_they_are(location: Location, spark: SparkSession) -> None:
    written = write_blocks(target_for(location, SHARED.schema), pieces(SHARED, [1]))
    frame = spark.read.parquet(f"{location.uri}/{written.blocks.files[0]}")
    assert dict(frame.dtypes) == {
        "i": "int",
        "d": "decimal(9,2)",
        "s": "string",
        "t": "timestamp",
        "n": "timestamp_ntz",
        "day": "date",
        "l": "array<bigint>",
        "st": "struct<x:double,y:array<string>>",
        "m": "map<string,bigint>",
        "b": "boolean",
        "y": "binary",
    }
    assert checksums(frame.toArrow()) == tuple(
        (name, one) for name, one in written.checksums if not name.startswith("_skipstone")
    )


def test_footers_are_kept_within_a_budget(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    footers = reader_module._Footers(budget=6)
    monkeypatch.setattr(reader_module, "_FOOTERS", footers)
    written = write_blocks(
        target_for(location, PLAIN.schema, row_groups_per_file=1), pieces(PLAIN, range(100, 1000, 100))
    )
    assert len(written.blocks.files) == 10
    for _ in range(2):
        assert read_all(location, written, PLAIN.schema).equals(PLAIN)
    assert len(footers._kept) == 3, "three files of one row group and two columns each"


def test_lists_of_fixed_size_under_a_null_come_back(location: Location) -> None:
    inside = pa.list_(pa.bool_(), 2)
    kind = pa.struct([pa.field("x", inside, nullable=False), pa.field("y", inside)])
    values = [None, {"x": [True, None], "y": None}, {"x": [False, True], "y": [None, False]}, None]
    table = pa.table(
        {"s": pa.array(values, kind), "l": pa.array([[None], [[True, False]], None, []], pa.list_(inside))}
    )
    found = read_all(location, write_blocks(target_for(location, table.schema), pieces(table, [])), table.schema)
    assert found.to_pylist() == table.to_pylist()
    assert found.schema == table.schema


@pytest.mark.slow
@settings(unhurried, max_examples=2_000)
@given(tables(max_columns=5, max_rows=30), st.data())
def test_many_random_tables_come_back_equal(table: pa.Table, data: st.DataObject) -> None:
    test_random_tables_of_every_type_come_back_equal.hypothesis.inner_test(table, data)  # type: ignore[attr-defined]
