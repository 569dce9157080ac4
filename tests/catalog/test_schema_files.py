"""Schemas read from wherever they are written down: each form, several tables, types of many engines, and errors."""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from skipstone.catalog.schema_files import NOT_COMPARED, read_schemas, schemas_of_ddl, schemas_of_json
from skipstone.catalog.schemas import schema_json
from skipstone.errors import InvalidInput, InvalidQuery, TableNotFound
from skipstone.lake import open_lake
from skipstone.predicate.implication import implies
from skipstone.predicate.parsing import parse_filter

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "day": ["a", "b"]})


def test_a_parquet_file_names_its_table(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "sales.parquet")
    assert read_schemas(str(tmp_path / "sales.parquet")) == {"sales": ROWS.schema}
    assert list(read_schemas(str(tmp_path / "sales.parquet"), table="shop.sales")) == ["shop.sales"]


def test_a_parquet_file_is_known_by_what_it_holds_not_by_its_name(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "part-0000")
    assert read_schemas(str(tmp_path / "part-0000"))["part-0000"] == ROWS.schema


def test_a_directory_of_parquet_has_its_partitions_as_columns(tmp_path: Path) -> None:
    pyarrow.dataset.write_dataset(
        ROWS, tmp_path / "sales", format="parquet", partitioning=["day"], partitioning_flavor="hive"
    )
    assert read_schemas(str(tmp_path / "sales"))["sales"].names == ["id", "day"]


def test_a_delta_table_and_a_table_of_a_lake(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "d", ROWS)
    assert read_schemas(str(tmp_path / "d"))["d"].equals(ROWS.schema)
    open_lake(tmp_path / "lake").create("sales", ROWS)
    assert read_schemas(str(tmp_path / "lake" / "sales"))["sales"].equals(ROWS.schema)


def test_a_ddl_file_of_several_tables(tmp_path: Path) -> None:
    path = tmp_path / "all.sql"
    path.write_text(
        "-- the shop\nCREATE TABLE shop.sales (id BIGINT NOT NULL, PRIMARY KEY (id));\n"
        "INSERT INTO x VALUES (1); CREATE VIEW v AS SELECT 1;\nCREATE TABLE IF NOT EXISTS b (`a b` STRING) USING delta"
    )
    found = read_schemas(str(path))
    assert found == {
        "shop.sales": pa.schema([pa.field("id", pa.int64(), nullable=False)]),
        "b": pa.schema([("a b", pa.string())]),
    }
    assert list(read_schemas(str(path), table="SALES")) == ["shop.sales"]
    with pytest.raises(TableNotFound, match=r'no table "orders" in .*all\.sql. Tables there: b, shop\.sales'):
        read_schemas(str(path), table="orders")


def test_partition_columns_that_hive_names_outside_of_the_list_are_columns() -> None:
    (schema,) = schemas_of_ddl("CREATE TABLE t (a INT) PARTITIONED BY (day DATE)").values()
    assert schema == pa.schema([("a", pa.int32()), ("day", pa.date32())])


@pytest.mark.parametrize(
    ("dialect", "written", "expected"),
    [
        ("spark", "TIMESTAMP", pa.timestamp("us", "UTC")),
        ("spark", "TIMESTAMP_NTZ", pa.timestamp("us")),
        ("spark", "DECIMAL", pa.decimal128(10, 0)),
        ("spark", "ARRAY<INT>", pa.list_(pa.int32())),
        ("spark", "MAP<STRING, INT>", pa.map_(pa.string(), pa.int32())),
        ("spark", "STRUCT<a: INT, b: STRUCT<c: DATE>>", None),
        ("spark", "INTERVAL DAY", NOT_COMPARED),
        ("postgres", "timestamp", pa.timestamp("us")),
        ("postgres", "timestamp with time zone", pa.timestamp("us", "UTC")),
        ("postgres", "numeric", pa.decimal128(38, 18)),
        ("postgres", "jsonb", NOT_COMPARED),
        ("bigquery", "INT64", pa.int64()),
        ("bigquery", "NUMERIC", pa.decimal128(38, 9)),
        ("snowflake", "NUMBER", pa.decimal128(38, 0)),
        ("tsql", "nvarchar(max)", pa.string()),
        ("tsql", "bit", pa.bool_()),
        ("clickhouse", "LowCardinality(String)", pa.string()),
        ("mysql", "int unsigned", pa.uint32()),
    ],
)
def test_types_mean_what_their_engine_means(dialect: str, written: str, expected: pa.DataType | None) -> None:
    (schema,) = schemas_of_ddl(f"CREATE TABLE t (c {written})", dialect=dialect).values()
    nested = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.date32())]))])
    assert schema.field("c").type == (nested if expected is None else expected)


def test_what_is_compared_by_its_engine_alone_is_carried_and_never_judged() -> None:
    """Two texts may be one UUID: nothing follows from one about the other."""
    (schema,) = schemas_of_ddl("CREATE TABLE t (u UUID)", dialect="postgres").values()
    lower, upper = (parse_filter(f"u = '{text}'", schema, dialect="postgres") for text in ("ab", "AB"))
    other = parse_filter("u <> 'AB'", schema, dialect="postgres")
    assert implies(lower, lower)
    assert not implies(lower, other)
    assert not implies(lower, upper)


SPARKS = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": False, "metadata": {}},
        {"name": "price", "type": "decimal(9,2)", "nullable": True, "metadata": {}},
    ],
}
JSON_SCHEMA = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": ["number", "null"]},
        "on": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "at": {"type": "object", "properties": {"shop": {"type": "string"}}},
        "any": {},
    },
}


def test_json_of_spark_of_ours_and_a_json_schema(tmp_path: Path) -> None:
    expected = pa.schema([pa.field("id", pa.int64(), nullable=False), ("price", pa.decimal128(9, 2))])
    assert schemas_of_json(json.dumps(SPARKS)).equals(expected)
    (tmp_path / "sales.json").write_text(json.dumps(schema_json(expected)))
    assert read_schemas(str(tmp_path / "sales.json")) == {"sales": expected}
    assert schemas_of_json(json.dumps(JSON_SCHEMA)) == pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("price", pa.float64()),
            ("on", pa.date32()),
            ("tags", pa.list_(pa.string())),
            ("at", pa.struct([("shop", pa.string())])),
            ("any", NOT_COMPARED),
        ]
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type": "struct", "fields": 3}', "the text is no schema of Spark's: "),
        ('{"rows": 3}', "the text is JSON, but no schema; accepted are Spark's"),
        ("{", "the text is not JSON: Expecting property name"),
        ('["id"]', "not the description of a field: 'id'"),
    ],
)
def test_json_that_is_no_schema_is_refused_with_what_would_do(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        schemas_of_json(text)
    assert str(caught.value).startswith(message)


def test_a_mistake_in_a_ddl_file_is_pointed_at_in_the_whole_file() -> None:
    with pytest.raises(InvalidQuery) as caught:
        schemas_of_ddl("SET x = 1; CREATE TABLE t (\n  a INT,\n  b DECIMAL(9,\n  c INT);")
    assert (caught.value.line, caught.value.sql.splitlines()[0]) == (4, "SET x = 1; CREATE TABLE t (")


@pytest.mark.parametrize("text", ["", "hello world, this is prose", "SELECT 1", "CREATE TABLE t AS SELECT 1 AS a"])
def test_a_text_without_columns_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="expected CREATE TABLE statements with columns, or a column list such as"):
        schemas_of_ddl(text)


def test_a_directory_without_data_and_a_file_of_bytes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bytes").write_bytes(bytes(range(256)))
    for name in ("empty", "bytes"):
        with pytest.raises(InvalidInput, match=f"{name} gives no schema; it should be a Parquet file or directory"):
            read_schemas(str(tmp_path / name))
