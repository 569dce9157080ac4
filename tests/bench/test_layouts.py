"""Rival layouts hold the same rows in another order, in blocks of one size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from bench.layouts import (
    PAPER_RANGE_SCHEME,
    TPCH_RANGE_SCHEMES,
    Layout,
    RivalChooser,
    Sizes,
    hive_partitions,
    ordered,
    plain,
    z_order,
)
from bench.skipping import data_files
from bench.tpch.queries import queries

SIZES = Sizes(rows_per_block=2_000, rows_per_file=20_000)

BUILDERS: dict[str, Callable[[Path, Path], Layout]] = {
    "plain": lambda source, out: plain(source, out, SIZES),
    "sorted": lambda source, out: ordered("sorted", "", source, out, SIZES, "o_orderdate"),
    "range": lambda source, out: ordered("range", "", source, out, SIZES, PAPER_RANGE_SCHEME),
    "hive": lambda source, out: hive_partitions("hive", "", source, out, SIZES, "strftime(o_orderdate, '%Y-%m')"),
    "z-order": lambda source, out: z_order("z-order", "", source, out, SIZES, ("o_orderdate", "l_shipdate")),
}


@pytest.fixture(scope="module", params=BUILDERS)
def layout(request: pytest.FixtureRequest, tiny_wide: Path, tmp_path_factory: pytest.TempPathFactory) -> Layout:
    return BUILDERS[request.param](tiny_wide, tmp_path_factory.mktemp("layouts"))


@pytest.fixture(scope="module")
def chooser(tiny_wide: Path) -> Iterator[RivalChooser]:
    made = RivalChooser(tiny_wide, "denorm", queries(("q6", "q14"), 10, seed=1), blocks=60, sample_rows=10_000)
    yield made
    made.close()


def test_a_layout_holds_the_same_rows(layout: Layout, tiny_wide: Path) -> None:
    connection = duckdb.connect()
    columns = ", ".join(pq.read_schema(data_files(tiny_wide)[0]).names)
    source = f"select {columns} from read_parquet('{tiny_wide}/*.parquet')"
    files = [str(file) for file in data_files(layout.dataset)]
    copy = f"select {columns} from read_parquet({files})"
    for first, second in ((source, copy), (copy, source)):
        assert connection.sql(f"select count(*) from ({first} except all {second})").fetchall() == [(0,)]


def test_no_block_of_a_layout_is_larger_than_agreed(layout: Layout) -> None:
    sizes = [
        pq.read_metadata(file).row_group(i).num_rows
        for file in data_files(layout.dataset)
        for i in range(pq.read_metadata(file).num_row_groups)
    ]
    assert max(sizes) <= SIZES.rows_per_block
    if layout.name in ("plain", "sorted", "range"):
        assert set(sizes[:-1]) == {SIZES.rows_per_block}


def test_all_layouts_are_compressed_alike(layout: Layout) -> None:
    codecs = {pq.read_metadata(file).row_group(0).column(0).compression for file in data_files(layout.dataset)}
    assert codecs == {"ZSTD"}


def test_a_layout_says_what_it_cost(layout: Layout) -> None:
    assert layout.seconds > 0
    assert layout.bytes_written >= sum(file.stat().st_size for file in data_files(layout.dataset))


def test_hive_partitions_hold_one_month_each(tiny_wide: Path, tmp_path: Path) -> None:
    made = BUILDERS["hive"](tiny_wide, tmp_path)
    homes = sorted(home for home in made.dataset.iterdir() if home.is_dir())
    assert len(homes) == 80, "months from January 1992 to August 1998"
    [(first, last)] = (
        duckdb.connect()
        .sql(f"select min(o_orderdate)::varchar, max(o_orderdate)::varchar from read_parquet('{homes[3]}/*.parquet')")
        .fetchall()
    )
    assert (homes[3].name, first[:7], last[:7]) == ("partition_key=1992-04", "1992-04", "1992-04")


def test_the_best_column_is_the_one_the_queries_filter_on(chooser: RivalChooser) -> None:
    assert chooser.best_column() == "l_shipdate"
    assert chooser.share("l_shipdate") < chooser.share("l_quantity")


def test_a_range_scheme_is_chosen_among_the_relatives_of_the_papers(chooser: RivalChooser) -> None:
    assert PAPER_RANGE_SCHEME in TPCH_RANGE_SCHEMES
    assert len(set(TPCH_RANGE_SCHEMES)) == len(TPCH_RANGE_SCHEMES) == 45
    chosen = chooser.best((PAPER_RANGE_SCHEME, "l_shipdate"))
    assert chosen == "l_shipdate"


def test_a_z_order_takes_columns_only_while_they_help(chooser: RivalChooser) -> None:
    chosen = chooser.best_z_order(most=2, candidates=3)
    assert chosen[0] == "l_shipdate"


def test_choices_repeat(tiny_wide: Path, chooser: RivalChooser) -> None:
    again = RivalChooser(tiny_wide, "denorm", queries(("q6", "q14"), 10, seed=1), blocks=60, sample_rows=10_000)
    try:
        assert again.share("l_shipdate") == chooser.share("l_shipdate")
    finally:
        again.close()
