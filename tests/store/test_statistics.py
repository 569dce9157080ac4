"""Bounds hold every value, are exact unless they say otherwise, and admit what they do not know."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipstone.store.statistics import MAX_BOUND_BYTES, BlockBounds, bounds_column, bounds_of, bytes_above, text_above
from tests.store.strategies import BYTES, ORDERED, TEXTS, kinds, unhurried, values_of


def comparable(value: Any) -> Any:
    """Spark's order: text by its UTF-8 bytes; the others as Python has it."""
    return value.encode() if isinstance(value, str) else value


def plain(scalar: pa.Scalar) -> Any:
    return scalar.value if pa.types.is_temporal(scalar.type) else scalar.as_py()


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    kind = draw(st.sampled_from(ORDERED))
    return pa.array(draw(st.lists(values_of(kind), max_size=10)), kind)


@unhurried
@given(columns())
def test_bounds_hold_all_values_and_are_exact_where_they_say_so(column: pa.Array) -> None:
    found = bounds_of(column)
    values = [plain(value) for value in column if value.is_valid]
    nans = [value for value in values if isinstance(value, float) and math.isnan(value)]
    known = sorted(comparable(value) for value in values if not (isinstance(value, float) and math.isnan(value)))
    assert (found.null_count, found.nan_count) == (column.null_count, len(nans))
    if not known:
        assert found.minimum is None is found.maximum
        return
    assert found.minimum is not None
    assert found.minimum.type == column.type
    assert comparable(plain(found.minimum)) <= known[0]
    if found.minimum_exact:
        assert comparable(plain(found.minimum)) == known[0]
    if found.maximum is None:
        assert not found.maximum_exact
        return
    assert comparable(plain(found.maximum)) >= known[-1]
    if found.maximum_exact:
        assert comparable(plain(found.maximum)) == known[-1]


@unhurried
@given(st.lists(st.lists(values_of(pa.string()), max_size=4), min_size=1, max_size=4))
def test_bounds_of_many_blocks_are_those_of_each(blocks: list[list[str | None]]) -> None:
    found = [bounds_of(pa.array(block, pa.string())) for block in blocks]
    together = bounds_column(found, pa.string())
    assert len(together) == len(blocks)
    assert together.minimum.to_pylist() == [None if one.minimum is None else one.minimum.as_py() for one in found]
    assert together.maximum_exact.to_pylist() == [one.maximum_exact for one in found]
    assert together.null_count.to_pylist() == [one.null_count for one in found]


@given(kinds())
def test_a_column_of_any_type_can_be_asked(kind: pa.DataType) -> None:
    found = bounds_of(pa.nulls(3, kind))
    assert (found.null_count, found.minimum, found.maximum) == (3, None, None)
    assert len(bounds_column([found, BlockBounds()], kind)) == 2


@given(
    st.sampled_from(["", "a", "\ud7ff", "\U0010ffff"]).flatmap(lambda head: TEXTS.map(lambda tail: head + tail)), TEXTS
)
def test_the_text_above_a_prefix_is_above_all_that_have_it(prefix: str, rest: str) -> None:
    above = text_above(prefix)
    if above is None:
        assert set(prefix) <= {"\U0010ffff"}
    else:
        assert above.encode() > (prefix + rest).encode()


@given(BYTES, BYTES)
def test_the_bytes_above_a_prefix_are_above_all_that_have_it(prefix: bytes, rest: bytes) -> None:
    above = bytes_above(prefix)
    assert (above is None) == (set(prefix) <= {0xFF})
    assert above is None or above > prefix + rest


LONG = "x" * (MAX_BOUND_BYTES + 10)


@pytest.mark.parametrize(
    ("values", "minimum", "maximum"),
    [
        (["ab"], "ab", "ab"),
        ([LONG], LONG[:MAX_BOUND_BYTES], "x" * (MAX_BOUND_BYTES - 1) + "y"),
        (["\U0010ffff" * 30], "\U0010ffff" * 16, None),
        (["é" * 40, "z"], "z", "é" * 31 + "ê"),
        (["a" * (MAX_BOUND_BYTES - 1) + "é"], "a" * (MAX_BOUND_BYTES - 1), "a" * (MAX_BOUND_BYTES - 2) + "b"),
        ([LONG.encode()], LONG[:MAX_BOUND_BYTES].encode(), b"x" * (MAX_BOUND_BYTES - 1) + b"y"),
        ([b"\xff" * 99], b"\xff" * MAX_BOUND_BYTES, None),
    ],
)
def test_long_values_are_cut_soundly(values: list[Any], minimum: Any, maximum: Any) -> None:
    found = bounds_of(pa.array(values))
    assert found.minimum is not None
    assert found.minimum.as_py() == minimum
    assert (None if found.maximum is None else found.maximum.as_py()) == maximum
    assert found.maximum_exact is (len(values) == 1 and values[0] == maximum)


def test_c02_nan_is_counted_and_does_not_hide_the_other_values() -> None:
    found = bounds_of(pa.array([1.0, math.nan, math.inf, None]))
    assert (found.minimum, found.maximum, found.nan_count) == (pa.scalar(1.0), pa.scalar(math.inf), 1)
    assert bounds_of(pa.array([math.nan])) == BlockBounds(None, None, 0, 1, True, True)


def test_c06_bounds_of_zeros_hold_zeros_of_both_signs() -> None:
    for zeros in ([0.0], [-0.0], [0.0, -0.0], [-0.0, 0.0, 1.0]):
        found = bounds_of(pa.array(zeros))
        assert found.minimum is not None
        assert math.copysign(1, found.minimum.as_py()) == -1
        assert found.maximum is not None
        assert found.maximum.as_py() == 1.0 or math.copysign(1, found.maximum.as_py()) == 1


def test_c13_text_that_is_not_utf8_has_no_cut_bounds() -> None:
    broken = pa.array([b"\xff" * 100]).view(pa.string())
    found = bounds_of(broken)
    assert (found.minimum, found.maximum, found.null_count) == (None, None, 0)


def test_c15_bounds_of_timestamps_keep_every_digit() -> None:
    kind = pa.timestamp("ns")
    found = bounds_column([bounds_of(pa.array([1_234_567_891, 2_345_678_912], kind))], kind)
    assert found.minimum.cast(pa.int64()).to_pylist() == [1_234_567_891]
    assert found.maximum.cast(pa.int64()).to_pylist() == [2_345_678_912]


def test_encoded_columns_have_the_bounds_of_their_values() -> None:
    found = bounds_of(pa.chunked_array([pa.array(["b", "a"]).dictionary_encode(), pa.array(["c"]).dictionary_encode()]))
    assert (found.minimum, found.maximum) == (pa.scalar("a"), pa.scalar("c"))
    assert np.array_equal(bounds_column([found], pa.dictionary(pa.int32(), pa.string())).minimum.to_pylist(), ["a"])
