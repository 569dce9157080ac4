"""TPC-H data: eight normalised tables from tpchgen-cli, and the one wide table that the dissertation lays out.

The wide table `denorm` has one row per line item and 68 columns: the sixteen of lineitem followed by every column of
the order, its customer, the customer's nation and region, the part, the part's supply, the supplier, and the supplier's
nation and region. Nations and regions appear twice and are told apart by a leading letter: `cn_name` and `cr_name` of
the customer, `sn_name` and `sr_name` of the supplier. Nothing is left out, so join keys appear under both names
(`l_orderkey` and `o_orderkey`); the dissertation counts 70 columns for the same join.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.place import cached
from bench.quiet_duckdb import connect

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
DENORM = "denorm"
SMALLEST_SCALE = 0.01
ROWS_PER_FILE = 1_000_000
ROWS_PER_ROW_GROUP = 100_000
COMPRESSION = "zstd"
ROWS_PER_JOIN = 500_000
MEMORY_LIMIT = "3GB"
MAKER_VERSION = 1
"""Raised when the data made here changes, so that older cached directories are not taken for it."""

COLUMNS: dict[str, tuple[str, ...]] = {
    "lineitem": (
        "l_orderkey",
        "l_partkey",
        "l_suppkey",
        "l_linenumber",
        "l_quantity",
        "l_extendedprice",
        "l_discount",
        "l_tax",
        "l_returnflag",
        "l_linestatus",
        "l_shipdate",
        "l_commitdate",
        "l_receiptdate",
        "l_shipinstruct",
        "l_shipmode",
        "l_comment",
    ),
    "orders": (
        "o_orderkey",
        "o_custkey",
        "o_orderstatus",
        "o_totalprice",
        "o_orderdate",
        "o_orderpriority",
        "o_clerk",
        "o_shippriority",
        "o_comment",
    ),
    "customer": (
        "c_custkey",
        "c_name",
        "c_address",
        "c_nationkey",
        "c_phone",
        "c_acctbal",
        "c_mktsegment",
        "c_comment",
    ),
    "part": (
        "p_partkey",
        "p_name",
        "p_mfgr",
        "p_brand",
        "p_type",
        "p_size",
        "p_container",
        "p_retailprice",
        "p_comment",
    ),
    "partsupp": ("ps_partkey", "ps_suppkey", "ps_availqty", "ps_supplycost", "ps_comment"),
    "supplier": ("s_suppkey", "s_name", "s_address", "s_nationkey", "s_phone", "s_acctbal", "s_comment"),
    "nation": ("n_nationkey", "n_name", "n_regionkey", "n_comment"),
    "region": ("r_regionkey", "r_name", "r_comment"),
}

_WIDE_PARTS = (
    ("l", "lineitem", ""),
    ("o", "orders", ""),
    ("c", "customer", ""),
    ("cn", "nation", "c"),
    ("cr", "region", "c"),
    ("p", "part", ""),
    ("ps", "partsupp", ""),
    ("s", "supplier", ""),
    ("sn", "nation", "s"),
    ("sr", "region", "s"),
)
"""Alias, table, and the letter put before its column names, in the order of the wide table's columns."""

DENORM_COLUMNS = tuple(prefix + column for _, table, prefix in _WIDE_PARTS for column in COLUMNS[table])

_DENORM_JOIN = """
from lineitem l
join orders o on o.o_orderkey = l.l_orderkey
join customer c on c.c_custkey = o.o_custkey
join nation cn on cn.n_nationkey = c.c_nationkey
join region cr on cr.r_regionkey = cn.n_regionkey
join part p on p.p_partkey = l.l_partkey
join partsupp ps on ps.ps_partkey = l.l_partkey and ps.ps_suppkey = l.l_suppkey
join supplier s on s.s_suppkey = l.l_suppkey
join nation sn on sn.n_nationkey = s.s_nationkey
join region sr on sr.r_regionkey = sn.n_regionkey
"""


def normalised(scale: float, root: Path | None = None) -> Path:
    """Return a directory with `<table>.parquet` for each of the eight tables at this scale factor."""
    recipe = {"sf": scale, "maker": MAKER_VERSION}
    return cached("tpch", recipe, lambda directory: _generate(scale, directory), root)


def denormalised(scale: float, root: Path | None = None, progress: Callable[[int, int], None] | None = None) -> Path:
    """Return a directory of Parquet files that hold the wide table at this scale factor, in line item order.

    Memory is bounded: the join is done for a run of orders at a time, and written a row group at a time.
    `progress(done, total)` is called with row counts while the table is made, and not when it is already there.
    """
    if scale < SMALLEST_SCALE:
        raise ValueError(
            f"the wide table needs a scale factor of at least {SMALLEST_SCALE:g}, not {scale:g}: "
            "below it, some parts have the same supplier twice and line items would be doubled"
        )
    tables = normalised(scale, root)
    recipe = {"sf": scale, "maker": MAKER_VERSION, "rows_per_group": ROWS_PER_ROW_GROUP}
    return cached(DENORM, recipe, lambda directory: _denormalise(tables, directory, progress), root)


def connect_to(
    tables: Path, *, memory_limit: str = MEMORY_LIMIT, spill: Path | None = None
) -> duckdb.DuckDBPyConnection:
    """Open DuckDB with a view for each normalised table."""
    connection = connect(memory_limit=memory_limit)
    if spill is not None:
        connection.execute(f"set temp_directory = '{spill}'")
    for table in TABLES:
        connection.execute(f"create view {table} as select * from read_parquet('{tables / table}.parquet')")
    return connection


def write_batches(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    directory: Path,
    rows_per_group: int,
    rows_per_file: int = ROWS_PER_FILE,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Stream record batches into Parquet files with row groups of exactly `rows_per_group` rows; return the rows.

    All benchmark data goes through this one writer, so that layouts differ in the order of rows and in nothing else.
    """
    rows_per_file = max(rows_per_group, rows_per_file // rows_per_group * rows_per_group)
    writer: pq.ParquetWriter | None = None
    written = in_file = files = 0
    try:
        for group in _regroup(batches, schema, rows_per_group):
            if writer is None:
                writer = open_writer(directory / f"part-{files:05d}.parquet", schema)
                files, in_file = files + 1, 0
            writer.write_table(group, row_group_size=rows_per_group)
            written, in_file = written + group.num_rows, in_file + group.num_rows
            if in_file >= rows_per_file:
                writer.close()
                writer = None
            if progress is not None:
                progress(written)
        if files == 0:
            writer = open_writer(directory / "part-00000.parquet", schema)
    finally:
        if writer is not None:
            writer.close()
    return written


def open_writer(file: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a Parquet writer with the settings that all benchmark data shares.

    Decimals are stored as integers, as Spark does, and the Arrow schema is left out, so that every engine sees plain
    Parquet types.
    """
    return pq.ParquetWriter(
        file, schema, compression=COMPRESSION, store_schema=False, store_decimal_as_integer=True, version="2.6"
    )


def _regroup(batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    """Yield the stream again in tables of exactly `rows` rows, the last one shorter."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            taken = batch.slice(start, rows - count)
            held.append(taken)
            count += taken.num_rows
            start += taken.num_rows
            if count == rows:
                yield pa.Table.from_batches(held, schema)
                held, count = [], 0
    if count:
        yield pa.Table.from_batches(held, schema)


def _generate(scale: float, directory: Path) -> None:
    """Run tpchgen-cli into `directory`."""
    program = Path(sys.executable).with_name("tpchgen-cli")
    command = str(program) if program.exists() else shutil.which("tpchgen-cli")
    if command is None:
        raise FileNotFoundError("tpchgen-cli is not installed. Hint: pip install tpchgen-cli")
    arguments = [command, "parquet", "-s", str(scale), "--output-dir", str(directory), "--quiet"]
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)


def _denormalise(tables: Path, directory: Path, progress: Callable[[int, int], None] | None) -> None:
    """Join the normalised tables into the wide one, a run of order keys at a time, in the order of line items."""
    spill = directory / "spill"
    connection = connect_to(tables, spill=spill)
    [(total, last_key)] = connection.sql("select count(*), max(l_orderkey) from lineitem").fetchall()
    schema = connection.sql(_wide_rows(0, 0)).to_arrow_table().schema
    runs = max(1, -(-total // ROWS_PER_JOIN))
    bounds = [last_key * run // runs for run in range(runs)] + [last_key]
    batches = (
        batch
        for after, upto in itertools.pairwise(bounds)
        for batch in connection.sql(_wide_rows(after, upto)).to_arrow_reader(50_000)
    )
    report = None if progress is None else (lambda done: progress(done, total))
    written = write_batches(batches, schema, directory, ROWS_PER_ROW_GROUP, ROWS_PER_FILE, report)
    connection.close()
    shutil.rmtree(spill, ignore_errors=True)
    if written != total:
        raise RuntimeError(
            f"the wide table has {written:,} rows, lineitem has {total:,}: the join lost or doubled rows"
        )


def _wide_rows(after: int, upto: int) -> str:
    """Return the query for the wide rows of the orders with `after` < key <= `upto`."""
    columns = ", ".join(
        f"{alias}.{column}" + (f" as {prefix}{column}" if prefix else "")
        for alias, table, prefix in _WIDE_PARTS
        for column in COLUMNS[table]
    )
    # The range is repeated for orders, whose files are sorted by key too: both sides read only their share.
    keys = f"l.l_orderkey > {after} and l.l_orderkey <= {upto} and o.o_orderkey > {after} and o.o_orderkey <= {upto}"
    return f"select {columns} {_DENORM_JOIN} where {keys} order by l.l_orderkey, l.l_linenumber"
