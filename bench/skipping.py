"""How much of a Parquet dataset min/max skipping on row groups must read, counted from footers without reading data.

This is the skipping that every engine does today, at its best: each comparison, IN list, prefix, range and comparison
of two columns is used, through AND, OR and NOT. It owes nothing to Skipstone's own predicate algebra, so the rivals are
judged by independent code. A filter is rewritten into a condition over block statistics and DuckDB evaluates it, so
constants are folded and compared exactly as DuckDB would in the query itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from sqlglot import exp

from bench.measure import ScanCounts
from bench.query import Query
from bench.quiet_duckdb import connect

_NUMBERS = count()

UNKNOWN = "true"
"""What a block may do when its statistics do not say: match."""

_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}
_NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
}


@dataclass(frozen=True, slots=True)
class Request:
    """What one reference to the table asks of it: columns and a filter in SQL."""

    columns: tuple[str, ...]
    where: str


def requests_of(query: Query, table: str, columns: Sequence[str]) -> tuple[Request, ...]:
    """Return one request for each SELECT that reads `table`, which is its only table.

    >>> requests_of(Query("t", "select a, sum(b) from d where c < 3 group by a"), "d", ["a", "b", "c", "z"])
    (Request(columns=('a', 'b', 'c'), where='c < 3'),)
    """
    found = []
    for select in sqlglot.parse_one(query.sql, read="duckdb").find_all(exp.Select):
        source = select.args.get("from_") or select.args.get("from")
        if source is None or not isinstance(source.this, exp.Table) or source.this.name != table:
            continue
        if select.args.get("joins"):
            raise ValueError(f"{query.template} joins {table} with something; only single tables are counted here")
        named = {column.name for column in select.find_all(exp.Column)}
        if any(isinstance(item, exp.Star) for item in select.expressions):
            named |= set(columns)
        where = select.args.get("where")
        read = tuple(column for column in columns if column in named)
        found.append(Request(read, where.this.sql("duckdb") if where else "true"))
    if not found:
        raise ValueError(f"query of {query.template} does not read {table}")
    return tuple(found)


def may_match(where: str, columns: Iterable[str]) -> str:
    """Return the condition over block statistics under which a block may hold a row that satisfies `where`.

    >>> may_match("a < 5 and not b in (1, 2)", ["a", "b"])
    '(coalesce(min_a < 5, true)
      and (coalesce(min_b <> 1 or max_b <> 1, true) and coalesce(min_b <> 2 or max_b <> 2, true)))'
    >>> may_match("a % 7 = 3", ["a"])
    'true'
    """
    return _may_match(where, frozenset(columns))


@lru_cache(maxsize=10_000)
def _may_match(where: str, columns: frozenset[str]) -> str:
    return _may(sqlglot.parse_one(where, read="duckdb"), columns, negated=False)


def _may(node: exp.Expr, known: frozenset[str], *, negated: bool) -> str:
    """Return when a block may hold a row for which `node`, or its negation, is true."""
    if node.args.get("negate"):  # how sqlglot writes NOT LIKE, and may come to write others
        negated = not negated
    if isinstance(node, exp.Paren):
        return _may(node.this, known, negated=negated)
    if isinstance(node, exp.Not):
        return _may(node.this, known, negated=not negated)
    if isinstance(node, exp.And | exp.Or):
        word = "and" if isinstance(node, exp.And) != negated else "or"
        left, right = (_may(side, known, negated=negated) for side in (node.left, node.right))
        return f"({left} {word} {right})"
    if isinstance(node, exp.Between):
        low, high = node.args["low"], node.args["high"]
        rewritten = exp.And(
            this=exp.GTE(this=node.this, expression=low), expression=exp.LTE(this=node.this, expression=high)
        )
        return _may(rewritten, known, negated=negated)
    if isinstance(node, exp.In) and node.expressions:
        parts = [_comparison(exp.EQ, node.this, value, known, negated) for value in node.expressions]
        return "(" + (" and " if negated else " or ").join(parts) + ")"
    if isinstance(node, exp.Like):
        return _prefix(node, known, negated)
    if type(node) in _FLIPPED and isinstance(node, exp.Binary):
        return _comparison(type(node), node.left, node.right, known, negated)
    if isinstance(node, exp.Boolean):
        return "true" if bool(node.this) != negated else "false"
    return UNKNOWN


def _comparison(operator: type[exp.Expr], left: exp.Expr, right: exp.Expr, known: frozenset[str], negated: bool) -> str:
    """Return when some row of a block may satisfy `left operator right`, for a column and a constant or two columns."""
    if negated:
        operator = _NEGATED[operator]
    if _is_constant(left):
        left, right, operator = right, left, _FLIPPED[operator]
    if not _is_column(left, known) or not (_is_constant(right) or _is_column(right, known)):
        return UNKNOWN
    least, greatest = _bounds(left)
    other_least, other_greatest = _bounds(right)
    conditions: dict[type[exp.Expr], str] = {
        exp.LT: f"{least} < {other_greatest}",
        exp.LTE: f"{least} <= {other_greatest}",
        exp.GT: f"{greatest} > {other_least}",
        exp.GTE: f"{greatest} >= {other_least}",
        exp.EQ: f"{least} <= {other_greatest} and {greatest} >= {other_least}",
        # Every row equals the other side only where both sides are one and the same value throughout.
        exp.NEQ: f"{least} <> {other_greatest} or {greatest} <> {other_least}",
    }
    return f"coalesce({conditions[operator]}, true)"


def _prefix(node: exp.Like, known: frozenset[str], negated: bool) -> str:
    """Return when a row may be LIKE a pattern that begins with plain characters."""
    pattern = node.expression
    if not _is_column(node.this, known) or not isinstance(pattern, exp.Literal) or not pattern.is_string:
        return UNKNOWN
    text = str(pattern.this)
    plain = text[: min((place for place in map(text.find, "%_\\") if place >= 0), default=len(text))]
    if not plain:
        return UNKNOWN
    least, greatest = (f"left({bound}, {len(plain)})" for bound in _bounds(node.this))
    constant = exp.Literal.string(plain).sql("duckdb")
    if not negated:
        return f"coalesce({least} <= {constant} and {greatest} >= {constant}, true)"
    if text == plain + "%":
        return f"coalesce({least} <> {constant} or {greatest} <> {constant}, true)"
    return UNKNOWN


def _is_column(node: exp.Expr, known: frozenset[str]) -> bool:
    return isinstance(node, exp.Column) and node.name in known


def _is_constant(node: exp.Expr) -> bool:
    return node.find(exp.Column, exp.Subquery, exp.Select) is None


def _bounds(node: exp.Expr) -> tuple[str, str]:
    if isinstance(node, exp.Column):
        return f"min_{node.name}", f"max_{node.name}"
    constant = node.sql("duckdb")
    return constant, constant


class BlockTable:
    """The blocks of one layout: rows, file, bytes of each column, and their bounds in the columns that have some."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, name: str, bounded: frozenset[str]) -> None:
        self._connection = connection
        self._name = name
        self._bounded = bounded
        whole = connection.sql(f"select * from {name} order by block").to_arrow_table()
        self._file, self._rows = (whole.column(column).to_numpy() for column in ("file", "rows"))
        self._bytes = {
            column.removeprefix("bytes_"): whole.column(column).to_numpy()
            for column in whole.column_names
            if column.startswith("bytes_")
        }
        self.blocks, self.files, self.rows = len(self._rows), len(np.unique(self._file)), int(self._rows.sum())

    @classmethod
    def of_dataset(cls, dataset: Path, bounded: Iterable[str], name: str = "blocks") -> BlockTable:
        """Read the footers of all Parquet files below a directory; bounds are kept for the columns in `bounded`."""
        files = data_files(dataset)
        wanted = sorted(set(bounded) & set(pq.read_schema(files[0]).names))
        tables = [_blocks_of(file, number, wanted) for number, file in enumerate(files)]
        connection = connect()
        connection.register(f"{name}_footers", pa.concat_tables(tables, promote_options="permissive"))
        connection.execute(f"create table {name} as select row_number() over () as block, * from {name}_footers")
        return cls(connection, name, frozenset(wanted))

    @classmethod
    def of_order(
        cls,
        connection: duckdb.DuckDBPyConnection,
        relation: str,
        keys: str,
        rows_per_block: int,
        bounded: Iterable[str],
    ) -> BlockTable:
        """Return the blocks that `relation` would have if it were sorted by `keys` and cut every so many rows.

        Nothing is written. Bytes are not known, and every block counts as one file.
        """
        wanted = sorted(set(bounded))
        values = ", ".join(
            f"min({c}) as min_{c}, max({c}) as max_{c}, count(*) - count({c}) as nulls_{c}" for c in wanted
        )
        name = f"ordered_blocks_{next(_NUMBERS)}"
        connection.execute(
            f"create temp table {name} as select block, block as file, count(*) as rows, {values} from ("
            f"select *, (row_number() over (order by {keys}) - 1) // {rows_per_block} as block from {relation}) "
            "group by block"
        )
        return cls(connection, name, frozenset(wanted))

    @property
    def bounded(self) -> frozenset[str]:
        """Return the columns whose least and greatest values are known for the blocks."""
        return self._bounded

    def read_for(self, asked: Sequence[tuple[Request, str]]) -> list[ScanCounts]:
        """Count what a scan must read for each request, given beside the condition that `may_match` makes of it."""
        counted = []
        for start in range(0, len(asked), 50):
            part = asked[start : start + 50]
            conditions = ", ".join(f"{condition} as c{place}" for place, (_, condition) in enumerate(part))
            chosen = self._connection.sql(f"select {conditions} from {self._name} order by block").to_arrow_table()
            counted += [self._count(request, chosen.column(place)) for place, (request, _) in enumerate(part)]
        return counted

    def _count(self, request: Request, chosen: Any) -> ScanCounts:
        mask = np.asarray(chosen, dtype=bool)
        rows = int(self._rows[mask].sum())
        size = sum(int(self._bytes[column][mask].sum()) for column in request.columns if column in self._bytes)
        files = len(np.unique(self._file[mask]))
        return ScanCounts(rows, rows * len(request.columns), 0, int(mask.sum()), files, size)


def data_files(dataset: Path) -> list[Path]:
    """Return the Parquet files below a directory in a stable order, without those of a log or in hiding."""
    below = len(dataset.parts)
    files = [f for f in sorted(dataset.rglob("*.parquet")) if not any(p[0] in "_." for p in f.parts[below:])]
    if not files:
        raise ValueError(f"there are no Parquet files in {dataset}")
    return files


def _blocks_of(file: Path, number: int, bounded: Sequence[str]) -> pa.Table:
    """Return one row for each row group of a file."""
    metadata = pq.read_metadata(file)
    schema = pq.read_schema(file)
    place = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    columns: dict[str, pa.Array] = {
        "file": pa.array([number] * len(groups), pa.int32()),
        "rows": pa.array([group.num_rows for group in groups], pa.int64()),
    }
    for name, i in place.items():
        columns[f"bytes_{name}"] = pa.array([group.column(i).total_compressed_size for group in groups], pa.int64())
    for name in bounded:
        statistics = [group.column(place[name]).statistics for group in groups]
        usable = [s if s is not None and s.has_min_max else None for s in statistics]
        kind = _plain(schema.field(name).type)
        columns[f"min_{name}"] = pa.array([s.min if s else None for s in usable], kind)
        columns[f"max_{name}"] = pa.array([s.max if s else None for s in usable], kind)
    return pa.table(columns)


def _plain(kind: Any) -> Any:
    return pa.string() if pa.types.is_string_view(kind) or pa.types.is_large_string(kind) else kind


class Scanner:
    """Count what layouts of one table read for a list of queries, next to the least that any layout could read."""

    def __init__(self, source: Path, table: str, queries: Sequence[Query]) -> None:
        self.table = table
        self.queries = tuple(queries)
        self._connection = connect()
        self._connection.execute(f"create view {table} as select * from read_parquet('{source}/**/*.parquet')")
        self.columns = tuple(row[0] for row in self._connection.sql(f"describe {table}").fetchall())
        self._requests = tuple(requests_of(query, table, self.columns) for query in self.queries)
        [(self.rows,)] = self._connection.sql(f"select count(*) from {table}").fetchall()
        self._matching = self._count_matching()
        used = {
            column.name
            for where in self._matching
            for column in sqlglot.parse_one(where, read="duckdb").find_all(exp.Column)
        }
        self.filter_columns = tuple(column for column in self.columns if column in used)
        """The columns that occur in any filter, in the order of the table."""

    def of_dataset(self, dataset: Path) -> tuple[ScanCounts, ...]:
        """Count for every query what min/max skipping reads of a dataset that holds the same rows."""
        blocks = BlockTable.of_dataset(dataset, self.filter_columns)
        if blocks.rows != self.rows:
            raise ValueError(f"the layout in {dataset.name} has {blocks.rows:,} rows, the table has {self.rows:,}")
        return self.of_blocks(blocks)

    def of_blocks(self, blocks: BlockTable) -> tuple[ScanCounts, ...]:
        """Count for every query what min/max skipping reads of the given blocks."""
        conditions = {where: may_match(where, blocks.bounded) for where in self._matching}
        distinct = list(dict.fromkeys(self._all_requests()))
        read = blocks.read_for([(request, conditions[request.where]) for request in distinct])
        counts = {request: counts + self._least(request) for request, counts in zip(distinct, read, strict=True)}
        return tuple(ScanCounts.total(counts[request] for request in requests) for requests in self._requests)

    def least(self) -> tuple[ScanCounts, ...]:
        """Return for every query the rows and cells that match, with nothing read."""
        return tuple(
            ScanCounts.total(self._least(request) for request in dict.fromkeys(requests)) for requests in self._requests
        )

    def _least(self, request: Request) -> ScanCounts:
        matching = self._matching[request.where]
        return ScanCounts(matching_rows=matching, matching_cells=matching * len(request.columns))

    def _all_requests(self) -> list[Request]:
        return [request for requests in self._requests for request in requests]

    def _count_matching(self) -> Mapping[str, int]:
        """Count the rows of every filter, many filters in one pass over the data."""
        filters = list(dict.fromkeys(request.where for request in self._all_requests()))
        counted: dict[str, int] = {}
        for start in range(0, len(filters), 100):
            part = filters[start : start + 100]
            counts = ", ".join(f"count(*) filter (where {where})" for where in part)
            [row] = self._connection.sql(f"select {counts} from {self.table}").fetchall()
            counted |= dict(zip(part, map(int, row), strict=True))
        return counted
