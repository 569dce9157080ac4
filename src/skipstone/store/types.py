"""What Parquet keeps of Arrow's types, and how a column gets its own type back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.catalog.schemas import read_schema, schema_json
from skipstone.catalog.values import RESERVED_PREFIX, UNKNOWN
from skipstone.errors import InvalidInput, listed

__all__ = ["leaf_count", "restored", "storable_schema"]


def storable_schema(schema: pa.Schema) -> pa.Schema:
    """Give a schema without any metadata, if a table can have it, else say what stands in the way.

    Views, which Polars gives, become plain texts and bytes, and short decimals become long ones: Arrow cannot filter
    the ones nor find the least of the others, and Parquet does not tell them apart.

    Spark's and pandas's notes in a footer would outlive the columns that they speak of: Spark believes its own copy of
    the schema over the real one.

    >>> storable_schema(pa.schema([pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "7"})])).field("a").metadata
    """
    names = [name.lower() for name in schema.names]
    doubled = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if doubled:
        raise InvalidInput(f"a table's columns must differ in more than case; doubled: {listed(doubled)}")
    reserved = [name for name in schema.names if name.lower().startswith(RESERVED_PREFIX)]
    if reserved:
        raise InvalidInput(f"columns may not begin with {RESERVED_PREFIX}, which is ours: {listed(reserved)}")
    if not names:
        raise InvalidInput("a table needs at least one column, this schema has none")
    hollow = [field.name for field in schema if _is_hollow(field.type)]
    if hollow:
        raise InvalidInput(f"Parquet cannot store a struct without fields, as in: {listed(hollow)}")
    return pa.schema([_workable(field) for field in read_schema(schema_json(schema))])


def _workable(field: pa.Field) -> pa.Field:
    """The same field of a type for which Arrow has all functions, inside as well.

    >>> _workable(pa.field("a", pa.list_(pa.string_view()))).type
    ListType(list<item: string>)
    """
    kind = field.type
    if pa.types.is_string_view(kind):
        return field.with_type(pa.string())
    if pa.types.is_binary_view(kind):
        return field.with_type(pa.binary())
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return field.with_type(pa.decimal128(kind.precision, kind.scale))
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_workable(kind.field(i)) for i in range(kind.num_fields)]))
    if pa.types.is_map(kind):
        key, item = _workable(kind.key_field), _workable(kind.item_field)
        return field.with_type(pa.map_(key, item, keys_sorted=kind.keys_sorted))
    if pa.types.is_fixed_size_list(kind):
        return field.with_type(pa.list_(_workable(kind.value_field), kind.list_size))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_workable(kind.value_field)))
    if pa.types.is_large_list(kind):
        return field.with_type(pa.large_list(_workable(kind.value_field)))
    return field


def restored(values: Any, kind: pa.DataType) -> Any:
    """Give values, as read from Parquet, the type they had when they were written."""
    if values.type == kind:
        return values
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([restored(piece, kind) for piece in values.chunks], kind)
    if pa.types.is_fixed_size_list(kind):
        return _restored_fixed_lists(values, kind)
    if pa.types.is_struct(kind) and pa.types.is_struct(values.type):
        return _restored_struct(values, kind)
    if pa.types.is_map(kind) and pa.types.is_map(values.type):
        return _restored_map(values, kind)
    if _is_list(kind) and _is_list(values.type):
        return _restored_lists(values, kind)
    if pa.types.is_dictionary(kind):
        return restored(values, kind.value_type).dictionary_encode().cast(kind)
    return values.cast(kind)


def leaf_count(kind: pa.DataType) -> int:
    """The number of Parquet columns that an Arrow type is stored in.

    >>> leaf_count(pa.map_(pa.string(), pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int8()))])))
    3
    """
    if pa.types.is_dictionary(kind):
        return leaf_count(kind.value_type)
    if pa.types.is_map(kind):
        return leaf_count(kind.key_type) + leaf_count(kind.item_type)
    if pa.types.is_struct(kind):
        return sum(leaf_count(kind.field(i).type) for i in range(kind.num_fields))
    return leaf_count(kind.value_type) if _is_list(kind) or pa.types.is_fixed_size_list(kind) else 1


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_hollow(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return kind.num_fields == 0 or any(_is_hollow(kind.field(i).type) for i in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _is_hollow(kind.key_type) or _is_hollow(kind.item_type)
    return _is_hollow(kind.value_type) if _is_list(kind) or pa.types.is_fixed_size_list(kind) else False


def _restored_struct(values: pa.StructArray, kind: pa.DataType) -> pa.Array:
    present = set(values.type.names)
    children: Sequence[pa.Array] = [
        restored(values.field(field.name), field.type) if field.name in present else pa.nulls(len(values), field.type)
        for field in (kind.field(i) for i in range(kind.num_fields))
    ]
    fields = [kind.field(i) for i in range(kind.num_fields)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=_nulls(values))


def _restored_map(values: pa.MapArray, kind: pa.DataType) -> pa.Array:
    offsets = values.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    keys = restored(values.keys.slice(first, last - first), kind.key_type)
    items = restored(values.items.slice(first, last - first), kind.item_type)
    return pa.MapArray.from_arrays(_from_zero(offsets), keys, items, type=kind, mask=_nulls(values))


def _restored_lists(values: pa.Array, kind: pa.DataType) -> pa.Array:
    offsets = values.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    items = restored(values.values.slice(first, last - first), kind.value_type)
    wide = pa.types.is_large_list(kind)
    starts = _from_zero(offsets).cast(pa.int64() if wide else pa.int32())
    made = pa.LargeListArray if wide else pa.ListArray
    return made.from_arrays(starts, items, type=kind, mask=_nulls(values))


def _restored_fixed_lists(values: Any, kind: pa.DataType) -> pa.Array:
    lists = values if _is_list(values.type) else values.cast(pa.list_(values.type.value_field))
    # A NULL has no items in a list and must have `list_size` of them here. The same goes for what lies under a NULL
    # struct: it need not be NULL itself.
    items = restored(lists.flatten(), kind.value_type)
    known = np.flatnonzero(pc.list_value_length(lists).fill_null(0).to_numpy() == kind.list_size)
    positions = np.full((len(lists), kind.list_size), UNKNOWN, dtype=np.int64)
    positions[known] = np.arange(len(items)).reshape(len(known), kind.list_size)
    flat = positions.reshape(-1)
    full = items.take(pa.array(flat, mask=flat == UNKNOWN))
    return pa.FixedSizeListArray.from_arrays(full, type=kind, mask=_nulls(lists))


def _nulls(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None


def _from_zero(offsets: pa.Array) -> pa.Array:
    return pc.subtract(offsets, offsets[0]) if offsets[0].as_py() else offsets
