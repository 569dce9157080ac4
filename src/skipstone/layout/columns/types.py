"""Types of columns as text, in Spark's words, and back."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from skipstone.predicate.datatypes import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    name_in_spark,
)

_ARROW: Final = {
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: INT,
    exp.DType.BIGINT: LONG,
    exp.DType.FLOAT: FLOAT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.TEXT: STRING,
    exp.DType.VARCHAR: STRING,
    exp.DType.CHAR: STRING,
    exp.DType.BINARY: BINARY,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.DATETIME: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
}


def type_text(type_: pa.DataType) -> str:
    """Write a type as Spark does; what Spark has no word for keeps Arrow's.

    >>> type_text(pa.list_(pa.struct([("a", pa.int64()), ("b", pa.decimal128(9, 2))])))
    'array<struct<a:bigint,b:decimal(9,2)>>'
    """
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return f"array<{type_text(type_.value_type)}>"
    if pa.types.is_map(type_):
        return f"map<{type_text(type_.key_type)},{type_text(type_.item_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{','.join(f'{field.name}:{type_text(field.type)}' for field in type_)}>"
    name = name_in_spark(type_)
    return str(type_) if name is None else name.lower().replace(", ", ",")


def arrow_type(text: str) -> pa.DataType:
    """Read a type; one that is not understood counts as a string, for what a query reads does not depend on it.

    >>> arrow_type("array<struct<a:bigint,b:decimal(9,2)>>")
    ListType(list<element: struct<a: int64, b: decimal128(9, 2)>>)
    >>> arrow_type("uint32")
    DataType(string)
    """
    try:
        found = sqlglot.parse_one(text, into=exp.DataType, dialect="spark")
    except SqlglotError:
        return STRING
    return _arrow(found)


def _arrow(node: exp.Expression | None) -> pa.DataType:
    if not isinstance(node, exp.DataType):
        return STRING
    inner = node.expressions
    if node.this == exp.DType.ARRAY and len(inner) == 1:
        return pa.list_(pa.field("element", _arrow(inner[0])))
    if node.this == exp.DType.MAP and len(inner) == 2:
        return pa.map_(_arrow(inner[0]), _arrow(inner[1]))
    if node.this == exp.DType.STRUCT:
        return pa.struct([(part.name, _arrow(part.kind)) for part in inner if isinstance(part, exp.ColumnDef)])
    if node.this == exp.DType.DECIMAL:
        sizes = [int(size.name) for size in inner]
        precision, scale = (sizes + [10, 0][len(sizes) :])[:2]
        return pa.decimal128(precision, scale) if 0 < precision <= 38 and scale <= precision else STRING
    return _ARROW.get(node.this, STRING)
