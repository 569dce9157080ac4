"""Checksums see every difference in values, and no difference in order or in how values are held."""

from __future__ import annotations

import decimal
import time
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipstone.catalog.values import Checksum
from skipstone.errors import InvalidInput, VerificationFailed
from skipstone.store.checksum import WHOLE_ROWS, checksum, checksums, hash_values, merge_checksums, require_equal
from tests.store.strategies import canonical, kinds, tables, unhurried, values_of


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    kind = draw(kinds())
    return pa.array(draw(st.lists(values_of(kind), max_size=12)), kind)


@unhurried
@given(columns(), st.randoms())
def test_the_order_of_rows_does_not_matter(column: pa.Array, random: Random) -> None:
    positions = list(range(len(column)))
    random.shuffle(positions)
    assert checksum(column.take(pa.array(positions, pa.int64()))) == checksum(column)


@unhurried
@given(columns(), st.integers(0, 12))
def test_checksums_of_parts_add_up(column: pa.Array, cut: int) -> None:
    parts = [column.slice(0, cut), column.slice(cut)]
    assert checksum(parts[0]) + checksum(parts[1]) == checksum(column)
    assert checksum(pa.chunked_array(parts, column.type)) == checksum(column)


@unhurried
@given(columns(), st.data())
def test_a_value_that_changes_is_seen(column: pa.Array, data: st.DataObject) -> None:
    other = pa.array(data.draw(st.lists(values_of(column.type), min_size=1, max_size=3)), column.type)
    changed = pa.chunked_array([column.slice(1), other], column.type)
    equal_bags = sorted(each(changed)) == sorted(each(pa.chunked_array([column], column.type)))
    assert (checksum(changed) == checksum(column)) is equal_bags


def each(column: pa.ChunkedArray) -> list[str]:
    return [canonical(column.slice(i, 1)) for i in range(len(column))]


@unhurried
@given(columns())
def test_a_duplicate_and_a_lost_row_are_seen(column: pa.Array) -> None:
    if len(column) == 0:
        assert checksum(column) == Checksum()
        return
    assert checksum(pa.concat_arrays([column, column.slice(0, 1)])) != checksum(column)
    twice = pa.concat_arrays([column.slice(0, 1)] * 2)
    assert checksum(twice) != Checksum(2, 0, 0), "a pair must not cancel out"


DIFFERENT = [
    (pa.array([None], pa.string()), pa.array([""])),
    (pa.array([None], pa.int64()), pa.array([0])),
    (pa.array([None], pa.list_(pa.int64())), pa.array([[]], pa.list_(pa.int64()))),
    (pa.array([[None]], pa.list_(pa.int64())), pa.array([[]], pa.list_(pa.int64()))),
    (pa.array([{"x": None}]), pa.array([None], pa.struct([("x", pa.null())]))),
    (pa.array([0.0]), pa.array([-0.0])),
    (pa.array(["a\x00"]), pa.array(["a"])),
    (pa.array([["ab", "c"]]), pa.array([["a", "bc"]])),
    (pa.array([[1, 2]]), pa.array([[2, 1]])),
    (pa.array([[[1], []]]), pa.array([[[], [1]]])),
    (pa.array([{"x": 1, "y": 2}]), pa.array([{"x": 2, "y": 1}])),
    (pa.array([decimal.Decimal("0.1")]), pa.array([decimal.Decimal("-0.1")])),
    (pa.array([b"12345678"]), pa.array([b"123456789"])),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_values_that_look_alike_are_told_apart(one: pa.Array, other: pa.Array) -> None:
    assert checksum(one) != checksum(other)


def test_how_values_are_held_does_not_matter() -> None:
    texts = pa.array(["b", None, "a", "b"])
    for kind in (pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int8(), pa.string())):
        assert checksum(texts.cast(kind)) == checksum(texts), kind
    numbers = pa.array([1, None, -1], pa.int8())
    assert checksum(numbers.cast(pa.int64())) == checksum(numbers)
    lists = pa.array([[1], None, []], pa.list_(pa.int64()))
    assert checksum(lists.cast(pa.large_list(pa.int64()))) == checksum(lists)
    nans = pa.array(np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64))
    assert checksum(nans) == checksum(pa.array([float("nan")] * 2))


def test_what_lies_under_a_null_does_not_matter() -> None:
    values = pa.array([1, 2, 3])
    masked = pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(b"\x05"), values.buffers()[1]])
    assert checksum(masked) == checksum(pa.array([1, None, 3]))


@unhurried
@given(tables())
def test_whole_rows_see_a_value_that_moved_to_another_row(table: pa.Table) -> None:
    names = table.column_names
    sums = dict(checksums(table, whole_rows=names))
    shifted = pa.concat_tables([table.slice(1), table.slice(0, 1)]).column(0) if table.num_rows else table.column(0)
    moved = table.set_column(0, table.schema.field(0), shifted)
    rows, moved_rows = (sorted(each_row(one)) for one in (table, moved))
    found = dict(checksums(moved, whole_rows=names))
    assert (found[WHOLE_ROWS] == sums[WHOLE_ROWS]) is (rows == moved_rows)
    assert {name: one for name, one in found.items() if name != WHOLE_ROWS} == dict(checksums(table))


def each_row(table: pa.Table) -> list[str]:
    return [
        "|".join(canonical(table.column(i).slice(row, 1)) for i in range(table.num_columns))
        for row in range(table.num_rows)
    ]


@unhurried
@given(tables())
def test_whole_rows_do_not_depend_on_the_order_of_columns(table: pa.Table) -> None:
    names = table.column_names
    assert checksums(table, whole_rows=names) == checksums(table, whole_rows=names[::-1])


def test_an_empty_table_has_checksums_of_all_columns() -> None:
    table = pa.table({"a": pa.array([], pa.int64())})
    assert checksums(table, whole_rows=["a"]) == ((WHOLE_ROWS, Checksum()), ("a", Checksum()))
    assert merge_checksums([]) == ()


def test_a_difference_is_told_in_one_sentence() -> None:
    read = checksums(pa.table({"a": [1, 2], "b": ["x", "y"], "c": [1, 1]}), whole_rows=["a", "b"])
    written = checksums(pa.table({"a": [2, 1], "b": ["x", "z"], "c": [1, 1]}), whole_rows=["a", "b"])
    with pytest.raises(VerificationFailed) as caught:
        require_equal(read, written, what='chunk "c1", layout 0')
    assert str(caught.value) == (
        'chunk "c1", layout 0: what was written is not what was read, so nothing was committed. '
        "whole rows: other values, b: other values. "
        "Does the source give the same rows each time it is read? If it does, please report this as a bug"
    )
    with pytest.raises(VerificationFailed, match="a: 2 rows read, 3 written"):
        require_equal(checksums(pa.table({"a": [1, 2]})), checksums(pa.table({"a": [1, 2, 2]})), what="x")
    with pytest.raises(VerificationFailed, match="b: 2 rows read, 0 written"):
        require_equal(checksums(pa.table({"b": [1, 2]})), checksums(pa.table({"a": [1, 2]})), what="x")


def test_types_that_no_table_has_are_refused() -> None:
    with pytest.raises(InvalidInput, match="month_day_nano_interval"):
        hash_values(pa.array([(1, 2, 3)], pa.month_day_nano_interval()))


def test_hashes_do_not_change_between_versions() -> None:
    """They are kept in catalogs: a change would make every later comparison fail."""
    table = pa.table({"i": [1, -1], "s": ["skipstone", None], "l": [[1.5], []], "d": [decimal.Decimal("1.25"), None]})
    found = {name: f"{one.values:016x}" for name, one in checksums(table)}
    assert found == {
        "i": "75e39f63a46788e1",
        "s": "18433cec87b23b13",
        "l": "3727d0db267597ce",
        "d": "81f841f55a442828",
    }


@pytest.mark.slow
def test_checksums_keep_up_with_reading() -> None:
    rows = 2_000_000
    random = np.random.default_rng(1)
    table = pa.table(
        {
            "i": random.integers(0, 1 << 40, rows),
            "f": random.random(rows),
            "s": pa.array([f"customer#{i:09d}" for i in random.integers(0, 1 << 20, rows)]),
        }
    )
    checksums(table.slice(0, 10))
    started = time.perf_counter()
    checksums(table)
    megabytes_per_second = table.nbytes / 1e6 / (time.perf_counter() - started)
    assert megabytes_per_second > 100
