"""Rival layouts that need none of Skipstone's code: the data as it came, sorted, range, Hive partitions, Z-order.

All are written by one writer with one compression and the same number of rows a block, so that they differ in the
order of rows and in nothing else; Z-order is written by delta-rs itself, told to use the same settings. A rival that
has a choice (which column, which scheme) makes it on the training queries, over a sample cut into as many blocks as the
whole table will have: the rivals are not crippled.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, combinations, groupby
from operator import itemgetter
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pd
import pyarrow.parquet as pq
from deltalake import DeltaTable, WriterProperties, write_deltalake

from bench.measure import ScanCounts, bytes_on_disk
from bench.place import unfinished
from bench.query import Query
from bench.quiet_duckdb import connect
from bench.skipping import BlockTable, Scanner, data_files
from bench.tpch.data import MEMORY_LIMIT, write_batches

ARRIVAL = "filename, file_row_number"
"""The order in which rows were stored; it makes every sort a total one."""

SAMPLE_ROWS = 200_000
SAMPLE_QUERIES = 200
"""A rival chooses by so many of the training queries; streams are shuffled, so the first are as good as any."""

Z_ORDER_COLUMNS = 4
"""More dimensions than this dilute each other; the search stops earlier when one more column does not help."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A copy of a table in some order of rows, and what making it cost."""

    name: str
    sentence: str
    dataset: Path
    rows_per_block: int
    seconds: float
    bytes_written: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """The settings that all layouts of a comparison share."""

    rows_per_block: int
    rows_per_file: int

    @classmethod
    def for_blocks(cls, rows: int, blocks: int, files: int = 8) -> Sizes:
        """Return sizes that cut a table of `rows` rows into about so many blocks and files.

        >>> Sizes.for_blocks(6_001_215, 600)
        Sizes(rows_per_block=10003, rows_per_file=760228)
        """
        rows_per_block = max(1, math.ceil(rows / blocks))
        return cls(rows_per_block, rows_per_block * max(1, math.ceil(blocks / files)) + rows_per_block)


def plain(source: Path, out: Path, sizes: Sizes) -> Layout:
    """Write the rows in the order in which they came."""
    return ordered("plain", "in the order in which the rows came", source, out, sizes, "")


def ordered(name: str, sentence: str, source: Path, out: Path, sizes: Sizes, keys: str) -> Layout:
    """Write the rows sorted by a list of SQL expressions; ties stay in the order of arrival."""

    def write(directory: Path) -> None:
        with _reading(source, directory) as connection:
            batches, schema = _stream(connection, f"{keys}, {ARRIVAL}" if keys else "")
            write_batches(batches, schema, directory, sizes.rows_per_block, sizes.rows_per_file)

    return _timed(name, sentence, out, sizes, write)


def hive_partitions(name: str, sentence: str, source: Path, out: Path, sizes: Sizes, key: str) -> Layout:
    """Write one directory for each value of the SQL expression `key`, rows in the order of arrival within it.

    Blocks end where partitions end, so the last block of each is smaller. Engines prune directories by the partition
    column; the counts here come from the bounds of the columns that it was derived from, which prune just as well.
    """

    def write(directory: Path) -> None:
        with _reading(source, directory) as connection:
            batches, schema = _stream(connection, f"partition_key, {ARRIVAL}", f"{key} as partition_key")
            place = schema.get_field_index("partition_key")
            kept = schema.remove(place)
            for value, pieces in groupby(_pieces(batches, place), key=itemgetter(0)):
                home = directory / f"partition_key={value}"
                home.mkdir()
                write_batches((piece for _, piece in pieces), kept, home, sizes.rows_per_block, sizes.rows_per_file)

    return _timed(name, sentence, out, sizes, write)


def z_order(name: str, sentence: str, source: Path, out: Path, sizes: Sizes, columns: Sequence[str]) -> Layout:
    """Let delta-rs write a Delta table and Z-order it by `columns`."""

    def write(directory: Path) -> None:
        table = pd.dataset(data_files(source), format="parquet")
        write_deltalake(directory, table.scanner(batch_size=sizes.rows_per_block).to_reader())
        _z_order(directory, columns, sizes)

    return _timed(name, sentence, out, sizes, write)


def _z_order(directory: Path, columns: Sequence[str], sizes: Sizes) -> None:
    table = DeltaTable(directory)
    bytes_per_row = bytes_on_disk(directory) / max(1, sum(_rows_of(directory)))
    settings = WriterProperties(compression="ZSTD", max_row_group_size=sizes.rows_per_block)
    table.optimize.z_order(
        list(columns), target_size=max(1, round(bytes_per_row * sizes.rows_per_file)), writer_properties=settings
    )
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


def _rows_of(directory: Path) -> list[int]:
    return [pq.read_metadata(file).num_rows for file in data_files(directory)]


class RivalChooser:
    """Choose for a rival, on a sample and the training queries, as somebody who knows the workload would."""

    def __init__(self, source: Path, table: str, train: Sequence[Query], blocks: int, sample_rows: int = SAMPLE_ROWS):
        self._scratch = Path(tempfile.mkdtemp(prefix="bench-sample-"))
        self._connection = connect(memory_limit=MEMORY_LIMIT)
        files = _rows_below(source)
        [(rows,)] = self._connection.sql(f"select count(*) from {files}").fetchall()
        # Every so many rows, and not at random: one table has one sample.
        step = max(1, rows // sample_rows)
        self._connection.execute(
            f"copy (select * exclude (filename, file_row_number) from {files} where file_row_number % {step} = 0 "
            f"order by {ARRIVAL}) to '{self._scratch}/sample.parquet' (format parquet)"
        )
        self._scanner = Scanner(self._scratch, table, train[:SAMPLE_QUERIES])
        self._connection.execute(f"create table sample as select * from {_rows_below(self._scratch)}")
        self._rows_per_block = max(1, math.ceil(self._scanner.rows / blocks))
        self.shares: dict[str, float] = {}
        """What each candidate would read of the rows, by its sort keys."""

    def close(self) -> None:
        """Remove the sample."""
        self._connection.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    @property
    def filter_columns(self) -> tuple[str, ...]:
        """Return the columns that the training queries filter on."""
        return self._scanner.filter_columns

    def share(self, keys: str) -> float:
        """Return the share of rows read when the sample is sorted by `keys`."""
        if keys not in self.shares:
            blocks = BlockTable.of_order(
                self._connection, "sample", f"{keys}, {ARRIVAL}", self._rows_per_block, self.filter_columns
            )
            self.shares[keys] = self._share_of(self._scanner.of_blocks(blocks))
        return self.shares[keys]

    def best(self, candidates: Iterable[str]) -> str:
        """Return the sort keys that read least; of equals, the first."""
        return min(candidates, key=self.share)

    def best_column(self) -> str:
        """Return the best single column to sort by."""
        return self.best(self.filter_columns)

    def best_z_order(self, most: int = Z_ORDER_COLUMNS, candidates: int = 8) -> tuple[str, ...]:
        """Add one column after the other to a Z-order of the sample, made by delta-rs, as long as it reads less."""
        offered = sorted(self.filter_columns, key=self.share)[:candidates]
        chosen: tuple[str, ...] = ()
        least = math.inf
        while len(chosen) < most:
            longer = [(*chosen, column) for column in offered if column not in chosen]
            tried = {columns: self._z_order_share(columns) for columns in longer}
            if not tried or min(tried.values()) >= least:
                break
            chosen = min(tried, key=lambda columns: tried[columns])
            least = tried[chosen]
        return chosen

    def _z_order_share(self, columns: tuple[str, ...]) -> float:
        home = self._scratch / "z"
        shutil.rmtree(home, ignore_errors=True)
        sizes = Sizes(self._rows_per_block, self._scanner.rows)
        wanted = ", ".join(self.filter_columns)
        write_deltalake(home, self._connection.sql(f"select {wanted} from sample order by {ARRIVAL}").to_arrow_table())
        _z_order(home, columns, sizes)
        return self._share_of(self._scanner.of_dataset(home))

    def _share_of(self, counts: Iterable[ScanCounts]) -> float:
        everything: int = self._scanner.rows * len(self._scanner.queries)
        return ScanCounts.total(counts).rows / everything


def range_schemes(dates: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return composite range schemes as sort keys: a grain of the date before or after any of the other dimensions.

    >>> range_schemes(["year(d)"], ["region"])
    ('year(d)', 'year(d), region', 'region, year(d)')
    """
    subsets = list(chain.from_iterable(combinations(others, size) for size in range(len(others) + 1)))
    date_first = [", ".join((date, *subset)) for date in dates for subset in subsets]
    date_last = [", ".join((*subset, date)) for date in dates for subset in subsets if subset]
    return tuple(date_first + date_last)


PAPER_RANGE_SCHEME = "date_trunc('month', o_orderdate), cr_name, c_mktsegment, ceil(l_quantity / 10)"
"""range2 of section 3.7.3: month of order (78 parts), customer region, market segment and quantity (5 parts each)."""

TPCH_RANGE_SCHEMES = range_schemes(
    ("date_trunc('year', o_orderdate)", "date_trunc('quarter', o_orderdate)", "date_trunc('month', o_orderdate)"),
    ("cr_name", "c_mktsegment", "ceil(l_quantity / 10)"),
)
"""The scheme of the paper with all its coarser and shorter relatives: at fewer blocks, fewer parts are better."""


def _rows_below(place: Path) -> str:
    """Return the table function that reads all Parquet files below a directory, with the place of each row."""
    return f"read_parquet('{place}/**/*.parquet', filename = true, file_row_number = true)"


@contextmanager
def _reading(source: Path, directory: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open DuckDB on a dataset as the view `source`, with room to spill beside what is being written."""
    spill = directory / "_spill"
    connection = connect(memory_limit=MEMORY_LIMIT, temp_directory=spill)
    connection.execute(f"create view source as select * from {_rows_below(source)}")
    try:
        yield connection
    finally:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)


def _stream(
    connection: duckdb.DuckDBPyConnection, order: str, extra: str = ""
) -> tuple[Iterable[pa.RecordBatch], pa.Schema]:
    """Return the rows of the source in an order, as batches, with their schema."""
    selected = "* exclude (filename, file_row_number)" + (f", {extra}" if extra else "")
    ordering = f" order by {order}" if order else f" order by {ARRIVAL}"
    reader = connection.sql(f"select {selected} from source{ordering}").to_arrow_reader(50_000)
    return reader, reader.schema


def _pieces(batches: Iterable[pa.RecordBatch], place: int) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Cut batches where the value of the column at `place` changes, and leave that column out."""
    for batch in batches:
        keys = batch.column(place)
        starts = [0, *(i + 1 for i in pc.indices_nonzero(pc.not_equal(keys[1:], keys[:-1])).to_pylist())]
        rest = batch.remove_column(place)
        for start, end in zip(starts, [*starts[1:], batch.num_rows], strict=True):
            yield str(keys[start].as_py()), rest.slice(start, end - start)


def _timed(name: str, sentence: str, out: Path, sizes: Sizes, write: Callable[[Path], None]) -> Layout:
    """Write a layout into `out`/`name`, whole or not at all, and time it."""
    dataset = out / name
    out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    with unfinished(dataset) as draft:
        write(draft)
    seconds = time.perf_counter() - started
    return Layout(name, sentence, dataset, sizes.rows_per_block, seconds, bytes_on_disk(dataset))
