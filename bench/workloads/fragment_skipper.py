"""The random queries over lineitem with which the Fragment Skipper paper was evaluated (section V.A).

Its generator knows two groups of columns: integers, decimals and dates by their least and greatest value, and strings
by the list of their values. A query is a random choice of predicates over them. The columns l_discount, l_tax and
l_comment are left out, as in the paper. The paper does not say how many predicates a query has or how operators are
drawn; here it is one to five, over different columns, and every operator is as likely as any other.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

import duckdb

from bench.query import Query

LEFT_OUT = ("l_discount", "l_tax", "l_comment")
QUERIES_IN_THE_PAPER = 330
SUPPORT_IN_THE_PAPER = 25
FEATURES_IN_THE_PAPER = 15
ROWS_PER_PARTITION_IN_THE_PAPER = 100_000
MOST_PREDICATES = 5
RANGE_OPERATORS = ("=", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """A column of the paper's first group."""

    name: str
    least: int | Decimal | date
    greatest: int | Decimal | date

    def predicate(self, rng: random.Random) -> str:
        """Return a comparison with a random constant between the least and the greatest value."""
        return f"{self.name} {rng.choice(RANGE_OPERATORS)} {self._constant(rng)}"

    def _constant(self, rng: random.Random) -> str:
        if isinstance(self.least, date) and isinstance(self.greatest, date):
            return f"date '{self.least + timedelta(rng.randint(0, (self.greatest - self.least).days))}'"
        if isinstance(self.least, int) and isinstance(self.greatest, int):
            return str(rng.randint(self.least, self.greatest))
        cents = rng.randint(int(Decimal(str(self.least)) * 100), int(Decimal(str(self.greatest)) * 100))
        return str(Decimal(cents) / 100)


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """A column of the paper's second group."""

    name: str
    values: tuple[str, ...]

    def predicate(self, rng: random.Random) -> str:
        """Return an equality with one of the values, or membership in two or three of them."""
        count = rng.choice((1, 1, 2, 3))
        chosen = sorted(rng.sample(self.values, min(count, len(self.values))))
        if len(chosen) == 1:
            return f"{self.name} = '{chosen[0]}'"
        return f"{self.name} in ({', '.join(repr(value) for value in chosen)})"


ColumnFacts = ColumnRange | ColumnValues


def column_facts(connection: duckdb.DuckDBPyConnection, table: str = "lineitem") -> tuple[ColumnFacts, ...]:
    """Read from the data what the paper's generator knows of each column."""
    described = connection.sql(f"describe {table}").fetchall()
    facts: list[ColumnFacts] = []
    for name, kind in ((row[0], row[1]) for row in described):
        if name in LEFT_OUT:
            continue
        if kind == "VARCHAR":
            values = connection.sql(f"select distinct {name} from {table} order by 1").fetchall()
            facts.append(ColumnValues(name, tuple(value for (value,) in values)))
        else:
            [(least, greatest)] = connection.sql(f"select min({name}), max({name}) from {table}").fetchall()
            facts.append(ColumnRange(name, least, greatest))
    return tuple(facts)


def queries(
    facts: Sequence[ColumnFacts],
    count: int = QUERIES_IN_THE_PAPER,
    *,
    seed: int,
    stream: str = "train",
    table: str = "lineitem",
) -> tuple[Query, ...]:
    """Return random queries over the described columns.

    >>> facts = (ColumnRange("l_linenumber", 1, 7), ColumnValues("l_linestatus", ("F", "O")))
    >>> queries(facts, 1, seed=1)[0].sql.split(" where ")
    ['select count(*) as items, sum(l_extendedprice) as price from lineitem',
     "l_linenumber = 7 and l_linestatus in ('F', 'O')"]
    """
    rng = random.Random(f"fragment skipper/{seed}/{stream}")
    return tuple(_query(facts, rng, table) for _ in range(count))


def _query(facts: Sequence[ColumnFacts], rng: random.Random, table: str) -> Query:
    chosen = rng.sample(list(facts), rng.randint(1, min(MOST_PREDICATES, len(facts))))
    where = " and ".join(column.predicate(rng) for column in chosen)
    sql = f"select count(*) as items, sum(l_extendedprice) as price from {table} where {where}"
    return Query("random", sql)
