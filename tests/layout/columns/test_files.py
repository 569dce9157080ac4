"""Sizes and workloads as tab-separated text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.errors import ColumnNotFound, InvalidInput, SkipstoneError
from skipstone.layout.columns.files import read_queries, read_sizes, write_sizes
from skipstone.layout.columns.values import (
    ColumnLayout,
    ColumnQuery,
    ColumnSizes,
    SizedColumn,
    StoredColumn,
    copy_names,
)

SIZES = ColumnSizes(
    (
        SizedColumn("a", "int", 10.5),
        SizedColumn("b", "string", 1e7),
        SizedColumn("a__copy1", "int", 10.5, "a"),
        SizedColumn("größe", "decimal(10,2)", 1 / 3),
    )
)

names = st.text(st.characters(exclude_characters="\t\n\r,", exclude_categories=["Cs"]), min_size=1).filter(
    lambda name: name == name.strip() and name
)


def test_sizes_survive_their_file(tmp_path: Path) -> None:
    write_sizes(SIZES, tmp_path / "s.tsv")
    assert read_sizes(tmp_path / "s.tsv") == SIZES


@settings(deadline=None)
@given(st.lists(names, min_size=1, max_size=5, unique=True), st.floats(1e-9, 1e15))
def test_any_name_and_size_survives_its_file(
    tmp_path_factory: pytest.TempPathFactory, columns: list[str], size: float
) -> None:
    folder = tmp_path_factory.mktemp("files")
    sizes = ColumnSizes(tuple(SizedColumn(name, "int", size) for name in columns))
    queries = (ColumnQuery(tuple(columns), 2.5, "q1"),)
    write_sizes(sizes, folder / "s.tsv")
    (folder / "w.tsv").write_text(f"q1\t2.5\t{','.join(columns)}\n", encoding="utf-8", newline="")
    assert read_sizes(folder / "s.tsv") == sizes
    assert read_queries(folder / "w.tsv", sizes) == queries


def test_windows_line_ends_a_byte_order_mark_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "s.tsv"
    file.write_bytes(b"\xef\xbb\xbfa\tint\t1\r\n\r\nb\tint\t2\r\n")
    assert [(column.name, column.chunk_bytes) for column in read_sizes(file).columns] == [("a", 1.0), ("b", 2.0)]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a\tint\t1\nb\tint\n", "{file}, line 2: 2 fields; a column is name, type and mean chunk bytes, and for a "),
        ("a\tint\tmany\n", "{file}, line 1: 'many' is not a number; a size is a number above 0"),
        ("a\tint\t0\n", '{file}, line 1: column "a" has a size of 0 bytes; a size is a number above 0'),
        ("a\tint\t-3\n", '{file}, line 1: column "a" has a size of -3 bytes; a size is a number above 0'),
        ("a\tint\tnan\n", '{file}, line 1: column "a" has a size of nan bytes; a size is a number above 0'),
        ("a\tint\tinf\n", '{file}, line 1: column "a" has a size of inf bytes; a size is a number above 0'),
        ("a\tint\t1\n\na\tint\t1\n", '{file}, line 3: column "a" was given in line 1 already'),
        ("\tint\t1\n", "{file}, line 1: the column has no name"),
        ("a\tint\t1\nc\tint\t1\tb\n", 'no column "b" in {file} for the duplicate in line 2. It has: a'),
        ("\n", "{file}: no column in it"),
    ],
)
def test_a_bad_line_of_sizes_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "s.tsv"
    file.write_text(text)
    with pytest.raises(SkipstoneError) as raised:
        read_sizes(file)
    assert str(raised.value).startswith(complaint.format(file=file))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("q1\t1\n", "{file}, line 1: 2 fields; a query is an id, a weight and its columns, with tabs between them"),
        ("q1\t1\ta\nq2\t1\t\n", '{file}, line 2: query "q2" reads no column; a query reads at least one'),
        ("q1\t1\ta,,b\n", "{file}, line 1: a column name is empty; names have single commas between them"),
        ("q1\t1\ta,b,a\n", '{file}, line 1: query "q1" names column "a" twice; each column is named once'),
        ("q1\t0\ta\n", '{file}, line 1: query "q1" has weight 0; a weight is a number above 0'),
        ("q1\theavy\ta\n", "{file}, line 1: 'heavy' is not a number; a weight is a number above 0"),
        ("q1\t1\tgrösse\n", 'no column "grösse" in the schema ({file}, line 1). Did you mean "größe"?'),
        ("q1\t1\ta__copy1\n", 'no column "a__copy1" in the schema ({file}, line 1).'),
        ("", "{file}: no query in it"),
    ],
)
def test_a_bad_line_of_a_workload_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "w.tsv"
    file.write_text(text)
    with pytest.raises(SkipstoneError) as raised:
        read_queries(file, SIZES)
    assert str(raised.value).startswith(complaint.format(file=file))


def test_a_file_that_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"cannot read .*nowhere.tsv: No such file or directory"):
        read_sizes(tmp_path / "nowhere.tsv")
    (tmp_path / "binary").write_bytes(b"PAR1\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="it is not UTF-8 text"):
        read_sizes(tmp_path / "binary")


def test_a_name_that_a_file_cannot_hold_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="has a tab or a line break in it"):
        write_sizes(ColumnSizes((SizedColumn("a\tb", "int", 1.0),)), tmp_path / "s.tsv")
    assert list(tmp_path.iterdir()) == []


def test_a_layout_stores_each_name_once_and_repeats_only_what_it_has() -> None:
    with pytest.raises(InvalidInput, match='two columns named "a"'):
        ColumnLayout((StoredColumn("a"), StoredColumn("a", "a")))
    with pytest.raises(ColumnNotFound, match='no column "b" in the layout that repeats it'):
        ColumnLayout((StoredColumn("a"), StoredColumn("b1", "b")))
    with pytest.raises(ColumnNotFound, match='no column "a1"'):
        ColumnLayout((StoredColumn("a"), StoredColumn("a1", "a"), StoredColumn("a2", "a1")))


def test_arranging_keeps_every_column_of_the_table() -> None:
    layout = ColumnLayout((StoredColumn("b"), StoredColumn("größe")))
    with pytest.raises(ColumnNotFound, match='no column "a" in the layout'):
        SIZES.arranged(layout)
    with pytest.raises(ColumnNotFound, match='no column "z" in the schema'):
        SIZES.arranged(ColumnLayout((*SIZES.layout.stored, StoredColumn("z"))))


def test_names_of_copies_are_new_even_where_case_is_folded() -> None:
    assert copy_names(["Price"], taken=["Price", "PRICE__COPY1"]) == ("Price__copy2",)
