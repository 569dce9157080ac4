"""Workloads over columns, from tab-separated text and from SQL."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from skipstone.errors import InvalidInput
from skipstone.layout.columns.reading import read_workload
from skipstone.layout.columns.types import arrow_type, type_text
from skipstone.layout.columns.values import ColumnSizes, SizedColumn

SIZES = ColumnSizes(
    (
        SizedColumn("a", "int", 10.0),
        SizedColumn("b", "string", 20.0),
        SizedColumn("from_day", "date", 30.0),
        SizedColumn("s", "struct<x:int,y:string>", 40.0),
    )
)


def columns_of(path: Path, table: str | None = None) -> list[tuple[tuple[str, ...], float]]:
    return [(query.columns, query.weight) for query in read_workload(path, SIZES, table=table).queries]


def test_the_form_of_a_file_is_told_by_its_name_or_its_first_word(tmp_path: Path) -> None:
    tabs, sql, odd = tmp_path / "w.txt", tmp_path / "w.sql", tmp_path / "log"
    tabs.write_text("select\t2\ta,b\n")
    assert columns_of(tabs) == [(("a", "b"), 2.0)]
    sql.write_text("SELECT a\tFROM t WHERE b = 'x'")
    assert columns_of(sql) == [(("a", "b"), 1.0)]
    odd.write_text("\n-- of today\nSELECT a FROM t;\nSELECT a FROM t;")
    assert columns_of(odd) == [(("a",), 2.0)]
    odd.write_text('{"sql": "SELECT from_day FROM t", "count": 3}\n')
    assert columns_of(odd) == [(("from_day",), 3.0)]


def test_filters_and_fields_of_structs_count_as_read(tmp_path: Path) -> None:
    file = tmp_path / "w.sql"
    file.write_text("SELECT count(*) FROM t WHERE s.x > 5; SELECT s.y FROM t WHERE from_day > DATE '2024-01-01';")
    assert columns_of(file) == [(("s",), 1.0), (("from_day", "s"), 1.0)]


def test_statements_of_other_tables_do_not_count(tmp_path: Path) -> None:
    file = tmp_path / "w.sql"
    file.write_text("SELECT a FROM t; SELECT z FROM u;")
    assert columns_of(file, "t") == [(("a",), 1.0)]
    with pytest.raises(InvalidInput, match=r"the statements read t, u; say with --table which of them"):
        columns_of(file)
    with pytest.raises(InvalidInput, match=r'no statement in it reads a column of "v"'):
        columns_of(file, "v")


def test_an_unknown_column_in_sql_is_a_problem_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "w.sql"
    file.write_text("SELECT a FROM t;\nSELECT c FROM t;\n")
    (problem,) = read_workload(file, SIZES).problems
    assert (problem.file, problem.line) == ("w.sql", 2)
    assert problem.reason == 'no column "c" in the tables that the statement reads. It has: a, b, from_day, s'


@pytest.mark.parametrize(
    "kind",
    [
        pa.int8(), pa.int64(), pa.float32(), pa.bool_(), pa.binary(), pa.date32(), pa.decimal128(20, 3),
        pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.list_(pa.field("element", pa.string())),
        pa.map_(pa.string(), pa.struct([("x", pa.int32())])),
    ],
    ids=str,
)  # fmt: skip
def test_a_type_survives_its_text(kind: pa.DataType) -> None:
    assert arrow_type(type_text(kind)) == kind
