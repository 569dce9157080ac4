"""The schema of a table from wherever it is written down: data, a Delta table, CREATE TABLE statements, or JSON.

A workload can be looked at before there is any table of ours; all it takes is the names and types of the columns. Types
that we do not compare become a struct without fields, with which every condition is carried as text and never judged.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.dataset
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from skipstone.catalog.location import Location
from skipstone.catalog.native import NativeCatalog
from skipstone.catalog.schemas import read_schema
from skipstone.errors import InvalidInput, InvalidQuery, TableNotFound
from skipstone.predicate.dialects import dialect_named
from skipstone.workload.resolving import KnownTables
from skipstone.workload.statements import next_piece

__all__ = ["read_schemas", "schemas_of_ddl", "schemas_of_json"]

PARQUET_MAGIC = b"PAR1"

NOT_COMPARED = pa.struct([])
"""Stands for types whose order and equality are their engine's own: JSON, UUID, VARIANT, geography and the like."""


def read_schemas(
    source: str, *, table: str | None = None, dialect: str = "spark", options: Mapping[str, str] | None = None
) -> dict[str, pa.Schema]:
    """Read the schemas of one or several tables, by name.

    `source` is a Parquet file or directory, a Delta table, a table of a lake, a file of CREATE TABLE statements or of
    a bare column list (`a INT, b STRING`), or a JSON file: Spark's (as Delta writes it), ours, or a JSON Schema.
    `table` names the table where the source does not, and else picks the one that is wanted.
    """
    place = Location.at(source, options)
    name = table or posixpath.basename(place.uri).split(".")[0]
    if NativeCatalog(place).exists():
        return {name: NativeCatalog(place).snapshot().schema}
    if any(place.list("_delta_log")):
        return {name: _delta_schema(place)}
    parent = Location(posixpath.dirname(place.uri), place.options)
    own = posixpath.basename(place.uri)
    if not parent.exists(own):
        return {name: _parquet_schema(place)}
    content = parent.read(own)
    if content[:4] == PARQUET_MAGIC:
        return {name: _parquet_schema(place)}
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable(place) from None
    if text.lstrip()[:1] in ("{", "["):
        return {name: schemas_of_json(text, where=place.uri)}
    return _wanted(schemas_of_ddl(text, dialect=dialect, name=name), table, place)


def _unreadable(place: Location) -> InvalidInput:
    return InvalidInput(
        f"{place.uri} gives no schema; it should be a Parquet file or directory, a Delta table, "
        "a file with CREATE TABLE statements, or a JSON schema"
    )


def _wanted(found: dict[str, pa.Schema], table: str | None, place: Location) -> dict[str, pa.Schema]:
    if table is None:
        return found
    number = KnownTables.of(found).find(tuple(table.lower().split(".")))
    if number is None:
        raise TableNotFound.among(table, found, where=place.uri)
    chosen = list(found)[number]
    return {chosen: found[chosen]}


def _delta_schema(place: Location) -> pa.Schema:
    try:
        table = deltalake.DeltaTable(place.uri, storage_options=place.storage_options)
        return pa.schema(table.schema().to_arrow())
    except Exception as error:
        raise InvalidInput(f"{place.uri} cannot be read as a Delta table: {str(error).splitlines()[0]}") from error


def _parquet_schema(place: Location) -> pa.Schema:
    filesystem, base = place.filesystem()
    try:
        files = pyarrow.dataset.dataset(base, filesystem=filesystem, format="parquet", partitioning="hive")
    except FileNotFoundError:
        raise InvalidInput(f"there is nothing at {place.uri} to read a schema from") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidInput(f"{place.uri} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    if not files.schema.names:
        raise _unreadable(place)
    return files.schema.remove_metadata()


# DDL -------------------------------------------------------------------------------------------------------------


def schemas_of_ddl(text: str, *, dialect: str = "spark", name: str = "t") -> dict[str, pa.Schema]:
    """Read the columns of CREATE TABLE statements, or of a bare column list; other statements are passed over.

    >>> schemas_of_ddl("CREATE TABLE shop.sales (id BIGINT NOT NULL, price DECIMAL(9, 2)) USING parquet;")
    {'shop.sales': id: int64 not null
    price: decimal128(9, 2)}
    >>> schemas_of_ddl("sold DATE, note STRING", name="sales")["sales"].names
    ['sold', 'note']
    """
    found: dict[str, pa.Schema] = {}
    place, line = 0, 1
    while (piece := next_piece(text, place, line, dialect)) is not None:
        created = _create_table(piece.sql, dialect, whole=text, line=piece.line, start=piece.start)
        if created is not None:
            found[".".join(part.name for part in created.this.this.parts)] = _columns(created, dialect)
        line += text.count("\n", place, piece.end)
        place = piece.end
    if found:
        return found
    columns = _columns_of_list(text, dialect)
    if not columns.names:
        raise InvalidInput("expected CREATE TABLE statements with columns, or a column list such as: a INT, b STRING")
    return {name: columns}


def _columns_of_list(text: str, dialect: str) -> pa.Schema:
    try:
        bare = _create_table(f"CREATE TABLE t (\n{text.strip().rstrip(';')}\n)", dialect, whole=text, line=0)
    except InvalidQuery:
        return pa.schema([])
    return _columns(bare, dialect) if bare is not None else pa.schema([])


def _create_table(text: str, dialect: str, *, whole: str, line: int, start: int = 0) -> exp.Create | None:
    """Parse a CREATE TABLE with columns; None for any other statement.

    Errors point into the `whole` text, in which the statement starts on a line, and at a place.
    """
    if text.lstrip()[:6].upper() != "CREATE":
        return None
    try:
        tree = sqlglot.parse_one(text, read=dialect_named(dialect))
    except SqlglotError as problem:
        errors = problem.errors if isinstance(problem, ParseError) else []
        first = errors[0] if errors else {}
        own, column = first.get("line"), first.get("col")
        reason = str(first.get("description") or str(problem).splitlines()[0]).rstrip(".")
        if own is not None and column is not None:
            column += start - (whole.rfind("\n", 0, start) + 1) if own == 1 else 0
            own += line - 1
        raise InvalidQuery.at(f"cannot read the schema: {reason}", sql=whole, line=own, column=column) from problem
    if isinstance(tree, exp.Create) and tree.kind == "TABLE" and isinstance(tree.this, exp.Schema):
        return tree
    return None


def _columns(created: exp.Create, dialect: str) -> pa.Schema:
    definitions = list(created.this.expressions)
    partitions = created.find(exp.PartitionedByProperty)
    if partitions is not None and isinstance(partitions.this, exp.Schema):
        definitions += partitions.this.expressions  # Hive names partition columns with their types, and only there
    fields = [_field(one, dialect) for one in definitions if isinstance(one, exp.ColumnDef) and one.kind is not None]
    return pa.schema(fields)


def _field(column: exp.ColumnDef, dialect: str) -> pa.Field:
    never_null = any(
        isinstance(one.kind, (exp.NotNullColumnConstraint, exp.PrimaryKeyColumnConstraint))
        and not one.kind.args.get("allow_null")
        for one in column.constraints
    )
    return pa.field(column.name, _arrow_type(column.kind, dialect), nullable=not never_null)


_TYPES: Mapping[exp.DType, pa.DataType] = {
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.SMALLSERIAL: pa.int16(),
    exp.DType.MEDIUMINT: pa.int32(),
    exp.DType.INT: pa.int32(),
    exp.DType.SERIAL: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.BIGSERIAL: pa.int64(),
    exp.DType.UTINYINT: pa.uint8(),
    exp.DType.USMALLINT: pa.uint16(),
    exp.DType.UINT: pa.uint32(),
    exp.DType.UBIGINT: pa.uint64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.BIT: pa.bool_(),
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.MONEY: pa.decimal128(19, 4),
    exp.DType.SMALLMONEY: pa.decimal128(10, 4),
    **dict.fromkeys(
        (
            exp.DType.TEXT,
            exp.DType.VARCHAR,
            exp.DType.NVARCHAR,
            exp.DType.CHAR,
            exp.DType.NCHAR,
            exp.DType.TINYTEXT,
            exp.DType.MEDIUMTEXT,
            exp.DType.LONGTEXT,
            exp.DType.FIXEDSTRING,
        ),
        pa.string(),
    ),
    **dict.fromkeys((exp.DType.BINARY, exp.DType.VARBINARY, exp.DType.BLOB, exp.DType.LONGBLOB), pa.binary()),
    exp.DType.DATE: pa.date32(),
    exp.DType.DATE32: pa.date32(),
    **dict.fromkeys(
        (
            exp.DType.TIMESTAMP,
            exp.DType.TIMESTAMPNTZ,
            exp.DType.DATETIME,
            exp.DType.DATETIME2,
            exp.DType.DATETIME64,
            exp.DType.SMALLDATETIME,
        ),
        pa.timestamp("us"),
    ),
    **dict.fromkeys((exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ), pa.timestamp("us", "UTC")),
}

_DECIMALS = {
    "spark": (10, 0),
    "databricks": (10, 0),
    "hive": (10, 0),
    "mysql": (10, 0),
    "tsql": (18, 0),
    "bigquery": (38, 9),
    "duckdb": (18, 3),
    "trino": (38, 0),
    "presto": (38, 0),
}
"""What a DECIMAL without digits means; where it is without limit, as Spark's own reader takes it."""

_UNLIMITED_DECIMAL = (38, 18)


def _arrow_type(kind: exp.Expr | None, dialect: str) -> pa.DataType:
    if not isinstance(kind, exp.DataType):  # INTERVAL DAY and the like
        return NOT_COMPARED
    inside = kind.expressions
    match kind.this:
        case exp.DType.DECIMAL:
            digits = [int(one.name) for one in inside if one.name.isdigit()]
            precision, scale = (*digits, 0)[:2] if digits else _DECIMALS.get(dialect, _UNLIMITED_DECIMAL)
            return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
        case exp.DType.BIGDECIMAL:
            return pa.decimal256(76, 38)
        case exp.DType.ARRAY | exp.DType.LIST if inside:
            return pa.list_(_arrow_type(inside[0], dialect))
        case exp.DType.MAP if len(inside) == 2:
            return pa.map_(*(_arrow_type(one, dialect) for one in inside))
        case exp.DType.STRUCT if inside and all(isinstance(one, exp.ColumnDef) for one in inside):
            return pa.struct([_field(one, dialect) for one in inside])
        case exp.DType.LOWCARDINALITY if inside:
            return _arrow_type(inside[0], dialect)
    return _TYPES.get(kind.this, NOT_COMPARED)


# JSON ------------------------------------------------------------------------------------------------------------


def schemas_of_json(text: str, *, where: str = "the text") -> pa.Schema:
    """Read a schema that is written as JSON: Spark's and Delta's struct, our own list of fields, or a JSON Schema.

    >>> schemas_of_json('{"type": "object", "properties": {"id": {"type": "integer"}, "on": {"format": "date"}}}')
    id: int64
    on: date32[day]
    """
    try:
        document = json.loads(text)
    except ValueError as problem:
        raise InvalidInput(f"{where} is not JSON: {problem}") from None
    if isinstance(document, list):
        return read_schema(document)
    if document.get("type") == "struct":
        try:
            return pa.schema(deltalake.Schema.from_json(text).to_arrow())
        except Exception as problem:
            raise InvalidInput(f"{where} is no schema of Spark's: {str(problem).splitlines()[0]}") from None
    if isinstance(document.get("properties"), dict):
        return pa.schema(list(_properties(document)))
    raise InvalidInput(
        f'{where} is JSON, but no schema; accepted are Spark\'s ({{"type": "struct", "fields": [...]}}), '
        'a JSON Schema ({"properties": {...}}), and a list of {"name", "type", "nullable"}'
    )


def _properties(document: Mapping[str, Any]) -> Iterator[pa.Field]:
    required = set(document.get("required") or ())
    for name, described in document["properties"].items():
        type_ = _json_type(described if isinstance(described, dict) else {})
        yield pa.field(name, type_, nullable=name not in required)


_JSON_TYPES = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(), "string": pa.string()}
_JSON_FORMATS = {"date": pa.date32(), "date-time": pa.timestamp("us", "UTC")}


def _json_type(described: Mapping[str, Any]) -> pa.DataType:
    if described.get("format") in _JSON_FORMATS:
        return _JSON_FORMATS[described["format"]]
    named = described.get("type")
    names = [one for one in (named if isinstance(named, list) else [named]) if one != "null"]
    name = names[0] if len(names) == 1 else None
    if name == "array" and isinstance(described.get("items"), dict):
        return pa.list_(_json_type(described["items"]))
    if name == "object" and isinstance(described.get("properties"), dict):
        return pa.struct(list(_properties(described)))
    return _JSON_TYPES.get(str(name), NOT_COMPARED)
