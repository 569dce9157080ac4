"""Types as Spark sees them: which Arrow types are alike, how Spark names them, and what two of them widen to.

A constant is typed by the *logical* type of what it is compared with: `string` for a large or dictionary-encoded
string, microseconds for a timestamp of any unit. So the same filter over two encodings of one column has the same
constants.
"""

from __future__ import annotations

import functools
from typing import Final

import pyarrow as pa

__all__ = [
    "BINARY",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "FLOAT",
    "INT",
    "LONG",
    "MAX_PRECISION",
    "STRING",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "as_decimal",
    "bounded_decimal",
    "integer_range",
    "is_comparable",
    "logical",
    "name_in_duckdb",
    "name_in_spark",
]

BOOLEAN: Final = pa.bool_()
INT: Final = pa.int32()
LONG: Final = pa.int64()
FLOAT: Final = pa.float32()
DOUBLE: Final = pa.float64()
STRING: Final = pa.string()
BINARY: Final = pa.binary()
DATE: Final = pa.date32()
TIMESTAMP: Final = pa.timestamp("us", "UTC")
TIMESTAMP_NTZ: Final = pa.timestamp("us")

MAX_PRECISION = 38  # DecimalType.MAX_PRECISION in Spark
MINIMUM_ADJUSTED_SCALE = 6  # DecimalType.MINIMUM_ADJUSTED_SCALE in Spark

_SPARK_NAMES: Final = {
    BOOLEAN: "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    INT: "INT",
    LONG: "BIGINT",
    FLOAT: "FLOAT",
    DOUBLE: "DOUBLE",
    STRING: "STRING",
    BINARY: "BINARY",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
    TIMESTAMP_NTZ: "TIMESTAMP_NTZ",
}
_DUCKDB_NAMES: Final = {
    **_SPARK_NAMES,
    INT: "INTEGER",
    STRING: "VARCHAR",
    BINARY: "BLOB",
    TIMESTAMP: "TIMESTAMPTZ",
    TIMESTAMP_NTZ: "TIMESTAMP",
}


@functools.lru_cache(maxsize=4096)
def logical(type_: pa.DataType) -> pa.DataType:
    """Reduce a type to the one that its constants have.

    >>> logical(pa.dictionary(pa.int32(), pa.large_string()))
    DataType(string)
    >>> logical(pa.timestamp("ms", "Europe/Paris"))
    TimestampType(timestamp[us, tz=UTC])
    """
    if pa.types.is_dictionary(type_):
        return logical(type_.value_type)
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or type_ == pa.string_view():
        return STRING
    if (
        pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_fixed_size_binary(type_)
        or type_ == pa.binary_view()
    ):
        return BINARY
    if pa.types.is_timestamp(type_):
        return TIMESTAMP_NTZ if type_.tz is None else TIMESTAMP
    if pa.types.is_date(type_):
        return DATE
    return type_


@functools.lru_cache(maxsize=4096)
def is_comparable(type_: pa.DataType) -> bool:
    """Whether constants of the type are ones we order and compare ourselves."""
    type_ = logical(type_)
    return type_ in _SPARK_NAMES or pa.types.is_decimal(type_) or pa.types.is_integer(type_)


@functools.lru_cache(maxsize=64)
def integer_range(type_: pa.DataType) -> tuple[int, int]:
    """The least and greatest value of an integer type.

    >>> integer_range(pa.int8()), integer_range(pa.uint8())
    ((-128, 127), (0, 255))
    """
    bits = int(type_.bit_width)
    if pa.types.is_signed_integer(type_):
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


def name_in_spark(type_: pa.DataType) -> str | None:
    """Name a type as Spark's SQL does, or None where Spark has no scalar type like it.

    >>> name_in_spark(pa.decimal128(9, 2)), name_in_spark(pa.timestamp("ns"))
    ('DECIMAL(9, 2)', 'TIMESTAMP_NTZ')
    """
    return _name(type_, _SPARK_NAMES)


def name_in_duckdb(type_: pa.DataType) -> str | None:
    """Name a type as DuckDB's SQL does.

    >>> name_in_duckdb(pa.timestamp("us", "UTC")), name_in_duckdb(pa.uint8())
    ('TIMESTAMPTZ', None)
    """
    return _name(type_, _DUCKDB_NAMES)


def _name(type_: pa.DataType, names: dict[pa.DataType, str]) -> str | None:
    type_ = logical(type_)
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})" if type_.precision <= MAX_PRECISION else None
    return names.get(type_)


_DECIMALS_OF_INTEGERS: Final = {pa.int8(): (3, 0), pa.int16(): (5, 0), INT: (10, 0), LONG: (20, 0)}


def as_decimal(type_: pa.DataType) -> tuple[int, int] | None:
    """Precision and scale of the decimal that Spark turns an exact number into, None for other types.

    >>> as_decimal(pa.int32()), as_decimal(pa.decimal128(9, 2)), as_decimal(pa.float64())
    ((10, 0), (9, 2), None)
    """
    if pa.types.is_decimal(type_):
        return type_.precision, type_.scale
    return _DECIMALS_OF_INTEGERS.get(type_)


def bounded_decimal(precision: int, scale: int) -> pa.DataType:
    """Cut a decimal result to 38 digits as Spark does, giving up fraction digits beyond six before whole ones.

    Spark's DecimalType.adjustPrecisionScale (spark.sql.decimalOperations.allowPrecisionLoss, on by default).

    >>> bounded_decimal(44, 12)
    Decimal128Type(decimal128(38, 6))
    """
    if precision <= MAX_PRECISION:
        return pa.decimal128(precision, scale)
    whole = precision - scale
    kept = max(MAX_PRECISION - whole, min(scale, MINIMUM_ADJUSTED_SCALE))
    return pa.decimal128(MAX_PRECISION, kept)
