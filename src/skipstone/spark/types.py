"""Arrow's types as Spark has them, and back: what Spark lacks becomes the nearest type that holds every value."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from skipstone.errors import InvalidInput, listed

__all__ = ["arrow_schema", "as_spark_holds_it", "spark_batch", "spark_schema"]

MOST_DIGITS = 38
"""A decimal of Spark has no more."""

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of a data frame; timestamps are instants in UTC, or have no zone.

    >>> from pyspark.sql.types import LongType, StructField
    >>> arrow_schema(StructType([StructField("a", LongType())])).field("a").type
    DataType(int64)
    """
    try:
        return to_arrow_schema(schema, timezone="UTC")
    except Exception as error:
        raise InvalidInput(f"a column of the data frame cannot be stored: {str(error).splitlines()[0]}") from error


def spark_schema(schema: pa.Schema) -> StructType:
    """The schema that Spark sees for rows of an Arrow schema; an error that names the columns it has no type for."""
    held = [pa.field(field.name, as_spark_holds_it(field.type), field.nullable) for field in schema]
    without = [f'"{field.name}" ({field.type})' for field in held if not _has_spark_type(field)]
    if without:
        raise InvalidInput(f"Spark has no type for these columns: {listed(without)}. Hint: read them with Table.scan()")
    return from_arrow_schema(pa.schema(held), prefer_timestamp_ntz=True)


def _has_spark_type(field: pa.Field) -> bool:
    try:
        there = from_arrow_schema(pa.schema([field]), prefer_timestamp_ntz=True)
        to_arrow_schema(there, timezone="UTC")  # and back, which a decimal of too many digits does not survive
    except (PySparkException, ValueError):
        return False
    return True


def as_spark_holds_it(kind: pa.DataType) -> pa.DataType:
    """The type that Spark holds values of this type in.

    >>> as_spark_holds_it(pa.uint32()), as_spark_holds_it(pa.timestamp("ns", "UTC"))
    (DataType(int64), TimestampType(timestamp[us, tz=UTC]))
    """
    if kind in _WIDER:
        return _WIDER[kind]
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_time(kind):
        return pa.time64("ns")
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_decimal(kind) and kind.precision <= MOST_DIGITS:
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_dictionary(kind):
        return as_spark_holds_it(kind.value_type)
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_map(kind):
        return pa.map_(as_spark_holds_it(kind.key_type), as_spark_holds_it(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, as_spark_holds_it(one.type), one.nullable) for one in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(as_spark_holds_it(kind.value_type))
    return kind


def spark_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows in the types that Spark holds them in."""
    kinds = [as_spark_holds_it(field.type) for field in batch.schema]
    if kinds == list(batch.schema.types):
        return batch
    columns = [
        column if column.type == kind else pc.cast(column, kind)
        for column, kind in zip(batch.columns, kinds, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
