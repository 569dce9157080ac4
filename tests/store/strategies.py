"""Random columns of every type that a table can have, with the values that storage formats get wrong."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

unhurried = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
"""For tests whose first example compiles, opens files or meets a cold machine."""

TEXTS = st.one_of(
    st.sampled_from(["", "a", "A", "\x00", "é", "\ud7ff", "\ue000", "\U0001f600", "\U0010ffff" * 20, "x" * 70, "%_\\"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)
BYTES = st.one_of(st.sampled_from([b"", b"\x00", b"\xff" * 70, b"\xffa" * 40]), st.binary(max_size=5))
DAYS = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
EPOCH_SECONDS = st.one_of(st.sampled_from([0, -1, -3_786_825_600, 253_402_300_799]), st.integers(-(10**9), 10**10))


def floats(width: int) -> st.SearchStrategy[float]:
    special = st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1.0])
    return st.one_of(special, st.floats(width=16 if width == 16 else 32 if width == 32 else 64))


def integers(bits: int, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return st.one_of(st.sampled_from([low, high, 0]), st.integers(max(low, -4), min(high, 4)))


def decimals(digits: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    limit = 10**digits - 1
    context = decimal.Context(prec=digits)
    return st.one_of(st.sampled_from([-limit, limit, 0]), st.integers(-99, 99)).map(
        lambda unscaled: decimal.Decimal(unscaled).scaleb(-scale, context)
    )


PRIMITIVES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    **{getattr(pa, f"int{bits}")(): integers(bits, True) for bits in (8, 16, 32, 64)},
    **{getattr(pa, f"uint{bits}")(): integers(bits, False) for bits in (8, 16, 32, 64)},
    pa.float16(): floats(16),
    pa.float32(): floats(32),
    pa.float64(): floats(64),
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.binary(): BYTES,
    pa.large_binary(): BYTES,
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.date32(): DAYS,
    pa.time32("ms"): st.integers(0, 86_399_999),
    pa.time64("us"): st.integers(0, 86_399_999_999),
    pa.timestamp("s"): EPOCH_SECONDS,
    pa.timestamp("ms"): EPOCH_SECONDS.map(lambda seconds: seconds * 1000 + 456),
    pa.timestamp("us"): EPOCH_SECONDS.map(lambda seconds: seconds * 10**6 + 456_789),
    pa.timestamp("us", "UTC"): EPOCH_SECONDS.map(lambda seconds: seconds * 10**6 + 456_789),
    pa.timestamp("us", "Europe/Stockholm"): EPOCH_SECONDS.map(lambda seconds: seconds * 10**6 - 1),
    pa.timestamp("ns"): st.integers(-(10**18), 10**18),
    pa.duration("us"): st.integers(-(10**9), 10**9),
    pa.decimal128(9, 2): decimals(9, 2),
    pa.decimal128(18, 4): decimals(18, 4),
    pa.decimal128(38, 10): decimals(38, 10),
    pa.decimal256(50, 3): decimals(50, 3),
    pa.null(): st.none(),
}
"""A strategy of values for each type that holds no other."""

ORDERED = [kind for kind in PRIMITIVES if not pa.types.is_null(kind)]


@st.composite
def kinds(draw: st.DrawFn, depth: int = 2) -> pa.DataType:
    """A type, nested up to some depth."""
    shape = draw(st.sampled_from(["plain"] * 3 + ["list", "struct", "map", "dictionary", "fixed", "large"]))
    if depth == 0 or shape == "plain":
        return draw(st.sampled_from(list(PRIMITIVES)))
    if shape == "dictionary":
        return pa.dictionary(pa.int32(), draw(st.sampled_from([pa.string(), pa.int64(), pa.binary()])))
    inside = draw(kinds(depth - 1))
    if shape == "list":
        return pa.list_(pa.field("item", inside, nullable=draw(st.booleans()) or pa.types.is_null(inside)))
    if shape == "large":
        return pa.large_list(inside)
    if shape == "fixed":
        return pa.list_(inside, draw(st.integers(1, 3)))
    if shape == "map":
        return pa.map_(draw(st.sampled_from([pa.string(), pa.int32()])), inside)
    # Under a NULL struct Arrow gives a dictionary-encoded field the index 0, which its dictionary may not have.
    inside, other = _without_dictionary(inside), _without_dictionary(draw(kinds(depth - 1)))
    return pa.struct([pa.field("f", inside), pa.field("g.h", other, nullable=pa.types.is_null(other))])


def _without_dictionary(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def values_of(kind: pa.DataType, *, nullable: bool = True) -> st.SearchStrategy[Any]:
    """Python values of a type."""
    if kind in PRIMITIVES:
        plain = PRIMITIVES[kind]
    elif pa.types.is_dictionary(kind):
        plain = values_of(kind.value_type, nullable=False)
    elif pa.types.is_map(kind):
        entries = st.lists(
            st.tuples(values_of(kind.key_type, nullable=False), values_of(kind.item_type)),
            max_size=3,
            unique_by=lambda entry: entry[0],
        )
        plain = entries
    elif pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        plain = st.fixed_dictionaries({one.name: values_of(one.type, nullable=one.nullable) for one in fields})
    else:
        inside = values_of(kind.value_type, nullable=kind.value_field.nullable)
        size = kind.list_size if pa.types.is_fixed_size_list(kind) else None
        plain = st.lists(inside, min_size=size or 0, max_size=3 if size is None else size)
    return st.one_of(st.none(), plain) if nullable else plain


@st.composite
def tables(draw: st.DrawFn, *, max_columns: int = 3, max_rows: int = 12) -> pa.Table:
    """A table with columns of any type; names are such that readers take them for something else."""
    names = draw(st.lists(st.sampled_from(["a", "a.b", "B c", "é", "list", "a.list.element"]), unique=True, min_size=1))
    chosen = [(name, draw(kinds()), draw(st.booleans())) for name in names[:max_columns]]
    # A column that may not be NULL must be of a type that has other values.
    fields = [pa.field(name, kind, nullable=nullable or pa.types.is_null(kind)) for name, kind, nullable in chosen]
    rows = draw(st.integers(0, max_rows))
    columns = [
        pa.array(draw(st.lists(values_of(one.type, nullable=one.nullable), min_size=rows, max_size=rows)), one.type)
        for one in fields
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def canonical(values: pa.Array | pa.ChunkedArray) -> str:
    """A text that is equal for equal values, NaN included, and tells -0.0 from 0.0."""
    whole: Any = pa.chunked_array(values) if isinstance(values, pa.Array) else values
    return repr([_python(value) for value in whole])


def _python(value: pa.Scalar) -> Any:
    if not value.is_valid:
        return None
    kind = value.type
    if pa.types.is_map(kind):
        return [(_python(entry["key"]), _python(entry["value"])) for entry in value.values]
    if pa.types.is_struct(kind):
        return [_python(value[i]) for i in range(kind.num_fields)]
    if pa.types.is_nested(kind):
        return [_python(one) for one in value.values]
    if pa.types.is_dictionary(kind):
        return _python(value.value if hasattr(value, "value") else value)
    # Nanoseconds do not fit into Python's datetime, and years before 1 or after 9999 neither.
    return value.value if pa.types.is_temporal(kind) else value.as_py()
