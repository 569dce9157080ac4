"""Codes keep the order of values, and curves keep neighbours together."""

from __future__ import annotations

import datetime
import decimal
import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.layout.clustering.coding import Coder, sortable
from skipstone.layout.clustering.curves import Curve, OrderKey, hilbert, nested, z_order
from skipstone.predicate.expression import Column, Expression
from skipstone.predicate.literal import Comparison
from skipstone.predicate.parsing import parse_filter

DAY = datetime.date(1994, 2, 28)
LARGE = decimal.Decimal(10**30)

ASCENDING: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-128, -1, 0, 127]),
    "int64": (pa.int64(), [-(2**63), -1, 0, 2**53, 2**53 + 1, 2**63 - 1]),
    "uint64": (pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
    "double with NaN": (pa.float64(), [-math.inf, -1.5, 0.0, 1e-300, 2.0, math.inf, math.nan]),
    "float": (pa.float32(), [-1.5, 0.0, 2.0]),
    "boolean": (pa.bool_(), [False, True]),
    "date": (pa.date32(), [datetime.date(1, 1, 1), DAY, datetime.date(9999, 12, 31)]),
    "timestamp": (pa.timestamp("us", "UTC"), [datetime.datetime(1969, 7, 20), datetime.datetime(2024, 2, 29, 1)]),
    "decimal": (pa.decimal128(9, 2), [decimal.Decimal("-10.01"), decimal.Decimal("0.00"), decimal.Decimal("99.99")]),
    "wide decimal": (
        pa.decimal128(38, 2),
        [-LARGE, decimal.Decimal("0.01"), LARGE],
    ),
    "text": (pa.string(), ["", "A", "a", "a\x01", "aa", "b", "é", "\U0010ffff"]),
    "binary": (pa.binary(), [b"", b"\x01", b"\x7f", b"\xff"]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "b", "c"]),
}
"""Values of each type from the least to the greatest, as Spark orders them."""


@pytest.mark.parametrize("name", ASCENDING)
def test_greater_values_have_greater_codes_and_null_has_the_least(name: str) -> None:
    kind, values = ASCENDING[name]
    array = pa.array([*reversed(values), None], kind)
    rows = pa.table({"x": array})
    codes = Coder.learn(Column("x", kind), rows, levels=64).codes(rows).tolist()
    assert codes[-1] == 0
    assert codes[:-1] == sorted(codes[:-1], reverse=True)
    assert len(set(codes)) == len(codes), "each value is a level of its own"
    assert np.argsort(sortable(array.drop_null()), kind="stable").tolist() == list(range(len(values)))[::-1]


def test_a_slice_of_decimals_is_coded_like_the_whole() -> None:
    """The low halves of decimals are read from the buffer, which a slice shares with what stands before it."""
    whole = pa.array([decimal.Decimal(number) / 100 for number in (5, -7, 9, 0)], pa.decimal128(9, 2))
    assert sortable(whole.slice(1, 2)).tolist() == [-7, 9]


def test_long_texts_that_begin_alike_are_equal_but_never_change_sides() -> None:
    texts = pa.array(["x" * 80, "x" * 79 + "y", "x" * 63, "y"])
    first, second, shorter, other = sortable(texts).tolist()
    assert first == second
    assert shorter < first < other


def test_types_without_an_order_are_all_equal() -> None:
    assert sortable(pa.array([[1], [2], None])).tolist() == [0, 0, 0]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.integers(-50, 50)), max_size=60),
    st.lists(st.integers(-60, 60), min_size=1, max_size=30),
    st.integers(1, 12),
)
def test_codes_never_turn_values_round(sample: list[int | None], others: list[int], levels: int) -> None:
    x = Column("x", pa.int64())
    coder = Coder.learn(x, pa.table({"x": pa.array(sample, pa.int64())}), levels)
    ordered = sorted(others)
    rows = pa.table({"x": pa.array(ordered, pa.int64())})
    codes = coder.codes(rows).tolist()
    assert codes == sorted(codes)
    assert all(0 < code < coder.levels for code in codes)
    places = coder.spread(rows, bits=16).tolist()
    assert places == sorted(places)


def test_codes_are_quantiles_a_value_that_fills_several_is_one() -> None:
    rows = pa.table({"x": [7] * 70 + list(range(100, 130))})
    codes = Coder.learn(Column("x", pa.int64()), rows, levels=10).codes(rows)
    assert np.bincount(codes).tolist() == [0, 70, 10, 10, 10]


def test_days_are_coded_by_their_month() -> None:
    days = [datetime.date(1994, 1, 31), datetime.date(1994, 2, 1), DAY, datetime.date(1995, 2, 1), None]
    rows = pa.table({"d": pa.array(days, pa.date32())})
    assert Coder.by_unit(Column("d", pa.date32()), rows, "month").codes(rows).tolist() == [1, 2, 2, 3, 0]
    assert Coder.by_unit(Column("d", pa.date32()), rows, "year").codes(rows).tolist() == [1, 1, 1, 2, 0]


def test_an_expression_that_cannot_be_computed_counts_as_null() -> None:
    """The hour of an instant depends on a time zone, and none is known here."""
    instants = pa.table({"t": pa.array([0, 3_600_000_000], pa.timestamp("us", "UTC"))})
    hour = parse_expression_of("hour(t) >= 1", instants.schema)
    assert Coder.learn(hour, instants, levels=4).codes(instants).tolist() == [0, 0]
    assert Coder.learn(hour, instants, levels=4, time_zone="UTC").codes(instants).tolist() == [1, 2]


def parse_expression_of(condition: str, schema: pa.Schema) -> Expression:
    """The left side of a comparison."""
    [predicate] = parse_filter(condition, schema).predicates
    [literal] = predicate.literals
    assert isinstance(literal, Comparison)
    return literal.left


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 4), (2, 3), (3, 2), (4, 1), (4, 2)])
def test_curves_visit_every_point_once(dimensions: int, bits: int) -> None:
    points = np.array(list(itertools.product(range(1 << bits), repeat=dimensions)), dtype=np.uint64)
    for curve in (z_order, hilbert, nested):
        assert sorted(curve(points, bits).tolist()) == list(range(len(points)))


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 1), (2, 4), (3, 2), (3, 3), (4, 2)])
def test_a_step_along_the_hilbert_curve_is_a_step_in_space(dimensions: int, bits: int) -> None:
    points = np.array(list(itertools.product(range(1 << bits), repeat=dimensions)), dtype=np.int64)
    order = np.argsort(hilbert(points.astype(np.uint64), bits))
    assert (np.abs(np.diff(points[order], axis=0)).sum(axis=1) == 1).all()


def test_z_order_takes_bits_in_turn() -> None:
    """x = 011 and y = 101 give 01 10 11."""
    assert z_order(np.array([[0b011, 0b101]], dtype=np.uint64), 3).tolist() == [0b011011]


@pytest.mark.parametrize("curve", list(Curve))
@pytest.mark.parametrize("dimensions", [1, 2, 5, 9, 64])
def test_keys_of_many_dimensions_fit_a_word(curve: Curve, dimensions: int) -> None:
    """Codes get coarser; the least point still has the least key, and the greatest the greatest."""
    rows = pa.table({f"c{number}": list(range(300)) for number in range(dimensions)})
    columns = tuple(Column(name, pa.int64()) for name in rows.schema.names)
    keys = OrderKey.learn(curve, columns, rows).keys(rows)
    assert keys[0] == keys.min()
    if curve is not Curve.HILBERT:
        assert keys.tolist() == sorted(keys.tolist())
    assert len(np.unique(keys)) > 1


def test_no_dimensions_make_equal_keys() -> None:
    assert OrderKey(Curve.HILBERT, ()).keys(pa.table({"x": [1, 2]})).tolist() == [0, 0]
