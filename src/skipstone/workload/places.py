"""Where a statement's text names the tables we know, so that each mention can be pointed at something else.

The text itself is what Spark is given; only the names change. `requests` describes the same mentions, by the same
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from skipstone.predicate.parsing import dialect_named
from skipstone.workload.resolving import KnownTables, cte_meant, drop_hints, fold_names, number_mentions

__all__ = ["TablePlace", "renamed", "table_places"]


@dataclass(frozen=True, slots=True)
class TablePlace:
    """One mention of a known table: its place in the text (the end is exclusive), and the name it goes by in the query.

    `needs_alias` tells that the query calls the table by its own name, which a new name must be an alias for. `mention`
    counts all names of tables in the text, as `Request.mention` does.
    """

    table: str
    start: int
    end: int
    alias: str
    needs_alias: bool
    mention: int
    qualified: bool = False
    """Whether the name has several parts, as `prod.sales` has."""


def table_places(sql: str, tables: Mapping[str, pa.Schema], *, dialect: str = "spark") -> tuple[TablePlace, ...] | None:
    """Find all mentions of known tables in the order of the text; None where the text cannot be read.

    >>> schema = pa.schema([("a", pa.int64())])
    >>> [(place.start, place.end) for place in table_places("SELECT a FROM t JOIN t AS u ON t.a = u.a", {"t": schema})]
    [(14, 15), (21, 22)]
    """
    known = KnownTables.of(tables)
    try:
        tree = sqlglot.parse_one(sql, read=dialect_named(dialect))
    except (SqlglotError, RecursionError):
        return None
    drop_hints(tree)
    written = {id(identifier): identifier.name for identifier in tree.find_all(exp.Identifier)}
    mentions = number_mentions(tree)
    fold_names(tree)
    places = []
    for mention, table in enumerate(mentions):
        parts = table.parts
        if not all(isinstance(part, exp.Identifier) for part in parts):
            continue
        if len(parts) == 1 and cte_meant(table, dialect) is not None:
            continue
        number = known.find(tuple(part.name for part in parts))
        if number is None:
            continue
        start, end = parts[0].meta.get("start"), parts[-1].meta.get("end")
        if start is None or end is None:
            return None
        alias = table.alias or written[id(parts[-1])]
        places.append(
            TablePlace(
                known.tables[number].name, start, end + 1, alias, _needs_alias(table), mention, qualified=len(parts) > 1
            )
        )
    return tuple(sorted(places, key=lambda place: place.start))


def renamed(sql: str, places: tuple[TablePlace, ...], names: tuple[str, ...]) -> str:
    """Write other names where the tables are named, under the names that the query knows them by.

    >>> place = TablePlace("t", 14, 15, "t", True, 0)
    >>> renamed("SELECT a FROM t WHERE t.a = 1", (place,), ("view_7",))
    'SELECT a FROM `view_7` AS `t` WHERE t.a = 1'
    """
    pieces, done = [], 0
    for place, name in zip(places, names, strict=True):
        quoted = f"`{name}` AS `{place.alias}`" if place.needs_alias else f"`{name}`"
        pieces += [sql[done : place.start], quoted]
        done = place.end
    return "".join([*pieces, sql[done:]])


def _needs_alias(table: exp.Table) -> bool:
    # A sample stands between a table's name and its alias, so an alias cannot follow the name there; nor can it where a
    # table is described.
    described_or_sampled = isinstance(table.parent, (exp.TableSample, exp.Describe))
    return not table.alias and not table.args.get("sample") and not described_or_sampled
