"""A table's schema as JSON that a person can read and that gives the very same schema back."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from skipstone.errors import InvalidInput

__all__ = ["Json", "read_schema", "read_type", "schema_json", "type_json"]

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
"""What JSON can say."""

_SIMPLE: Mapping[str, pa.DataType] = {
    str(kind): kind
    for kind in (
        pa.null(),
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.uint8(),
        pa.uint16(),
        pa.uint32(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
        pa.binary_view(),
        pa.date32(),
        pa.date64(),
        *(pa.time32(unit) for unit in ("s", "ms")),
        *(pa.time64(unit) for unit in ("us", "ns")),
        *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
        *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
    )
}

_PARAMETRIC: tuple[tuple[re.Pattern[str], Callable[..., pa.DataType]], ...] = (
    (re.compile(r"timestamp\[(s|ms|us|ns), tz=(.+)\]"), lambda unit, zone: pa.timestamp(unit, zone)),
    (re.compile(r"fixed_size_binary\[(\d+)\]"), lambda width: pa.binary(int(width))),
    (re.compile(r"decimal32\((\d+), (-?\d+)\)"), lambda digits, scale: pa.decimal32(int(digits), int(scale))),
    (re.compile(r"decimal64\((\d+), (-?\d+)\)"), lambda digits, scale: pa.decimal64(int(digits), int(scale))),
    (re.compile(r"decimal128\((\d+), (-?\d+)\)"), lambda digits, scale: pa.decimal128(int(digits), int(scale))),
    (re.compile(r"decimal256\((\d+), (-?\d+)\)"), lambda digits, scale: pa.decimal256(int(digits), int(scale))),
)


def schema_json(schema: pa.Schema) -> list[Json]:
    """Write a schema as a list of fields. Metadata is left out: it belongs to whoever wrote the source.

    >>> schema_json(pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.list_(pa.string()))]))
    [{'name': 'a', 'type': 'int64', 'nullable': False},
     {'name': 'b', 'type': {'list': {'name': 'item', 'type': 'string', 'nullable': True}}, 'nullable': True}]
    """
    return [_field_json(field) for field in schema]


def read_schema(document: Json) -> pa.Schema:
    """Read back what `schema_json` wrote.

    >>> schema = pa.schema([pa.field("price", pa.decimal128(9, 2)), pa.field("t", pa.timestamp("us", "UTC"))])
    >>> read_schema(schema_json(schema)) == schema
    True
    """
    if not isinstance(document, list):
        raise InvalidInput(f"a schema is a list of fields; this is a {type(document).__name__}")
    return pa.schema([_read_field(field) for field in document])


def type_json(kind: pa.DataType) -> Json:
    """Write a type: by its name where that says all, else as an object with one key that names the kind."""
    text = str(kind)
    if text in _SIMPLE or any(pattern.fullmatch(text) for pattern, _ in _PARAMETRIC):
        return text
    if pa.types.is_struct(kind):
        return {"struct": [_field_json(kind.field(i)) for i in range(kind.num_fields)]}
    if pa.types.is_map(kind):
        return {
            "map": {
                "key": _field_json(kind.key_field),
                "value": _field_json(kind.item_field),
                "sorted": kind.keys_sorted,
            }
        }
    if pa.types.is_fixed_size_list(kind):
        return {"fixed_size_list": _field_json(kind.value_field), "size": kind.list_size}
    for name, is_kind in _LISTS.items():
        if is_kind(kind):
            return {name: _field_json(kind.value_field)}
    if pa.types.is_dictionary(kind):
        index, value = type_json(kind.index_type), type_json(kind.value_type)
        return {"dictionary": {"index": index, "value": value, "ordered": kind.ordered}}
    raise InvalidInput(f"columns of type {text} cannot be stored; convert the column first")


def read_type(document: Json) -> pa.DataType:
    """Read back what `type_json` wrote."""
    if isinstance(document, str):
        return _named_type(document)
    match document:
        case {"struct": list(fields)}:
            return pa.struct([_read_field(field) for field in fields])
        case {"map": {"key": key, "value": value, "sorted": keys_sorted}}:
            return pa.map_(_read_field(key), _read_field(value), keys_sorted=keys_sorted)
        case {"fixed_size_list": field, "size": size}:
            return pa.list_(_read_field(field), size)
        case {"dictionary": {"index": index, "value": value, "ordered": ordered}}:
            return pa.dictionary(read_type(index), read_type(value), ordered=ordered)
        case {"list": field}:
            return pa.list_(_read_field(field))
        case {"large_list": field}:
            return pa.large_list(_read_field(field))
    raise InvalidInput(f"not the description of a type: {document!r}")


_LISTS: Mapping[str, Callable[[pa.DataType], bool]] = {
    "list": pa.types.is_list,
    "large_list": pa.types.is_large_list,
}


@functools.lru_cache(maxsize=256)
def _named_type(text: str) -> pa.DataType:
    if text in _SIMPLE:
        return _SIMPLE[text]
    for pattern, make in _PARAMETRIC:
        found = pattern.fullmatch(text)
        if found:
            return make(*found.groups())
    raise InvalidInput(f'no type is called "{text}"')


def _field_json(field: pa.Field) -> Json:
    return {"name": field.name, "type": type_json(field.type), "nullable": field.nullable}


def _read_field(document: Any) -> pa.Field:
    try:
        return pa.field(document["name"], read_type(document["type"]), nullable=document["nullable"])
    except (KeyError, TypeError) as error:
        raise InvalidInput(f"not the description of a field: {document!r}") from error
