"""Counting what min/max skipping reads: never a block too few, and none too many where bounds say enough."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.measure import ScanCounts
from bench.query import Query
from bench.skipping import BlockTable, Request, Scanner, may_match, requests_of
from bench.tpch.queries import Schema, queries
from bench.tpch.templates import SOP_TEMPLATES

COLUMNS = ("n", "m", "word")


def write_blocks(directory: Path, rows: list[tuple[int | None, int | None, str | None]], rows_per_block: int) -> Path:
    table = pa.table(
        {
            "n": pa.array([row[0] for row in rows], pa.int64()),
            "m": pa.array([row[1] for row in rows], pa.int64()),
            "word": pa.array([row[2] for row in rows], pa.string()),
        }
    )
    directory.mkdir(exist_ok=True)
    pq.write_table(table, directory / "part.parquet", row_group_size=rows_per_block)
    return directory


def blocks_read(place: Path, where: str) -> int:
    blocks = BlockTable.of_dataset(place, COLUMNS)
    [counts] = blocks.read_for([(Request(("n",), where), may_match(where, blocks.bounded))])
    return counts.blocks


FOUR_BLOCKS: list[tuple[int | None, int | None, str | None]] = [
    *((n, 100 - n, word) for n, word in ((0, "apple"), (9, "apricot"))),
    *((n, 100 - n, word) for n, word in ((10, "banana"), (19, "blackberry"))),
    *((n, 100 - n, word) for n, word in ((20, "cherry"), (20, "cherry"))),
    *((None, None, None) for _ in range(2)),
]
"""Blocks of n in 0..9, 10..19, exactly 20, and nothing but NULL, where bounds are missing."""


@pytest.mark.parametrize(
    ("where", "expected", "reason"),
    [
        ("n < 10", 2, "the first block, and the one without bounds"),
        ("10 > n", 2, "the constant may stand on the left"),
        ("n <= 10", 3, "ten itself lies in the second"),
        ("n > 19", 2, "the third"),
        ("n >= 19", 3, "nineteen lies in the second"),
        ("n = 15", 2, "the second"),
        ("n = 25", 1, "in no bounds"),
        ("n <> 20", 3, "the third holds nothing else"),
        ("not n = 20", 3, "the same in other words"),
        ("n in (5, 25)", 2, "one of the values lies in the first"),
        ("n not in (20, 25)", 3, "the third holds only a forbidden value"),
        ("n between 12 and 18", 2, "the second"),
        ("not n between 0 and 19", 2, "the third"),
        ("n < 10 or n > 19", 3, "two ranges"),
        ("not (n >= 10 and n <= 19)", 3, "two ranges after De Morgan"),
        ("n < 10 and m > 95", 2, "both hold in the first"),
        ("n < 10 and m < 50", 1, "each alone is possible, no block has both"),
        ("n > m", 1, "two columns: n is below m in every block"),
        ("n < m", 4, "and may be anywhere"),
        ("word like 'b%'", 2, "a prefix is a range"),
        ("word like 'ap_l%'", 2, "the plain beginning of a pattern is a prefix"),
        ("word like '%rr%'", 4, "a pattern without a beginning says nothing"),
        ("word not like 'cherry%'", 3, "the third holds nothing else"),
        ("n % 7 = 3", 4, "an expression has no bounds"),
        ("n < 5 + 5", 2, "constants are folded"),
        ("true", 4, "no filter"),
        ("false", 0, "nothing can match"),
    ],
)
def test_blocks_are_skipped_by_what_their_bounds_say(tmp_path: Path, where: str, expected: int, reason: str) -> None:
    assert blocks_read(write_blocks(tmp_path, FOUR_BLOCKS, 2), where) == expected, reason


NUMBERS = st.one_of(st.none(), st.integers(-3, 3))
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from([None, "", "a", "ab", "b"])), min_size=1, max_size=12)
ATOMS = st.one_of(
    st.builds(
        "{} {} {}".format, st.sampled_from("nm"), st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), st.integers(-3, 3)
    ),
    st.builds("{} {} n".format, st.integers(-3, 3), st.sampled_from(["<", "<=", ">", ">=", "=", "<>"])),
    st.builds("n {} m".format, st.sampled_from(["<", "<=", ">", ">=", "=", "<>"])),
    st.builds("n between {} and {}".format, st.integers(-3, 3), st.integers(-3, 3)),
    st.builds("m in ({}, {})".format, st.integers(-3, 3), st.integers(-3, 3)),
    st.builds(
        "word {} '{}'".format, st.sampled_from(["=", "like", "<", "not like"]), st.sampled_from(["a", "a%", "%b"])
    ),
    st.just("n + m = 1"),
    st.just("word is null"),
)
FILTERS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=5,
)


@settings(max_examples=120, deadline=None)
@given(rows=ROWS, where=FILTERS, rows_per_block=st.integers(1, 4))
def test_no_block_with_a_matching_row_is_ever_skipped(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int | None, int | None, str | None]],
    where: str,
    rows_per_block: int,
) -> None:
    place = write_blocks(tmp_path_factory.mktemp("blocks"), rows, rows_per_block)
    connection = duckdb.connect()
    needed = connection.sql(
        f"select count(distinct file_row_number // {rows_per_block}) "
        f"from read_parquet('{place}/part.parquet', file_row_number = true) where {where}"
    ).fetchall()[0][0]
    assert blocks_read(place, where) >= needed


def test_a_layout_that_lost_rows_is_not_counted(tmp_path: Path) -> None:
    whole = write_blocks(tmp_path / "whole", FOUR_BLOCKS, 2)
    lossy = write_blocks(tmp_path / "lossy", FOUR_BLOCKS[:-1], 2)
    scanner = Scanner(whole, "t", [Query("q", "select n from t where n < 5")])
    with pytest.raises(ValueError, match="the layout in lossy has 7 rows, the table has 8"):
        scanner.of_dataset(lossy)


def test_counts_are_rows_cells_blocks_files_and_bytes(tmp_path: Path) -> None:
    place = write_blocks(tmp_path, FOUR_BLOCKS[:6], 2)
    [counts] = Scanner(place, "t", [Query("q", "select word from t where n < 5")]).of_dataset(place)
    metadata = pq.read_metadata(place / "part.parquet").row_group(0)
    size = metadata.column(0).total_compressed_size + metadata.column(2).total_compressed_size
    assert counts == ScanCounts(
        rows=2, cells=4, row_ids=0, blocks=1, files=1, bytes=size, matching_rows=1, matching_cells=2
    )


def test_a_table_read_twice_is_counted_twice() -> None:
    query = Query("q", "select a from (select a from t where b < 1) union all select c from t where d > 2")
    found = requests_of(query, "t", ["a", "b", "c", "d"])
    assert set(found) == {Request(("a", "b"), "b < 1"), Request(("c", "d"), "d > 2")}
    twice = Query("q", "select a from t union all select a from t")
    assert len(requests_of(twice, "t", ["a"])) == 2


def test_a_star_reads_every_column() -> None:
    assert requests_of(Query("q", "select * from t"), "t", ["a", "b"]) == (Request(("a", "b"), "true"),)


def test_queries_over_several_tables_are_refused() -> None:
    with pytest.raises(ValueError, match="q joins t with something"):
        requests_of(Query("q", "select a from t join u on a = b"), "t", ["a"])
    with pytest.raises(ValueError, match="query of q does not read t"):
        requests_of(Query("q", "select a from u"), "t", ["a"])


def test_every_wide_template_has_one_request(tiny_wide: Path) -> None:
    made = queries(tuple(Schema.WIDE.templates), 1, seed=1)
    scanner = Scanner(tiny_wide, "denorm", made)
    for query in made:
        assert len(requests_of(query, "denorm", scanner.columns)) == 1


def test_predicted_and_written_orders_read_the_same_rows(tiny_wide: Path, tmp_path: Path) -> None:
    scanner = Scanner(tiny_wide, "denorm", queries(SOP_TEMPLATES, 2, seed=1))
    connection = duckdb.connect()
    connection.execute(f"create view t as select * from read_parquet('{tiny_wide}/*.parquet')")
    keys = "o_orderdate, l_orderkey, l_linenumber"
    predicted = scanner.of_blocks(BlockTable.of_order(connection, "t", keys, 1000, scanner.filter_columns))
    pq.write_table(
        connection.sql(f"select * from t order by {keys}").to_arrow_table(), tmp_path / "t.parquet", row_group_size=1000
    )
    written = scanner.of_dataset(tmp_path)
    assert [counts.rows for counts in predicted] == [counts.rows for counts in written]
