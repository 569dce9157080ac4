"""The Big Data Benchmark: its denormalised table, and the scan queries with the four knobs of the dissertation.

The dissertation (section 4.7.2) joins user visits with the rankings of the visited pages into one table of 11 columns
and 15 million rows at scale factor 0.1, and asks `SELECT A1, ..., Ak FROM t WHERE filter(B, b)` where the filter is
`B < b`, `B = b` or `B > b`. The knobs:

    s   selectivity: only filters that keep s ± 0.01 of the rows are in the pool
    z   Zipf parameter with which filters are picked from the pool
    k   columns in the select list
    t   column templates: the sets of k columns that queries may select

The paper's defaults are s = 0.2, k = 2, z = 1.1 and six templates.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from bench.place import cached
from bench.query import Query
from bench.tpch.data import write_batches

TABLE = "visits"
ROWS_AT_SCALE_ONE = 150_000_000
PAGES_AT_SCALE_ONE = 18_000_000
ROWS_PER_BATCH = 250_000
ROWS_PER_ROW_GROUP = 100_000
SELECTIVITY_TOLERANCE = 0.01
QUERIES_IN_THE_PAPER = 100
MAKER_VERSION = 1

COLUMNS = (
    "page_url",
    "page_rank",
    "avg_duration",
    "source_ip",
    "visit_date",
    "ad_revenue",
    "user_agent",
    "country_code",
    "language_code",
    "search_word",
    "duration",
)

_AGENTS = tuple(f"{name}/{version}.0" for name in ("Firefox", "Chrome", "Opera", "Safari") for version in range(1, 11))
_COUNTRIES = tuple(f"{a}{b}{c}" for a in "ABCDEF" for b in "AEIOU" for c in "LNRT")
_WORDS = tuple(f"{a}{b}{c}" for a in ("al", "be", "co", "du", "er") for b in "aeiou" for c in ("ma", "ne", "ri", "sto"))
_FIRST_DAY = np.datetime64("1970-01-01")
_DAYS = 15_340
"""Visits lie between 1970-01-01 and 2011-12-31."""


@dataclass(frozen=True, slots=True)
class Knobs:
    """The four parameters of section 4.7.2, with its defaults."""

    selectivity: float = 0.2
    skew: float = 1.1
    columns: int = 2
    templates: int = 6


def visits(scale: float, seed: int = 0, root: Path | None = None) -> Path:
    """Return a directory with the denormalised table at this scale factor."""
    recipe = {"sf": scale, "seed": seed, "maker": MAKER_VERSION}
    return cached("bigdata", recipe, lambda directory: _generate(scale, seed, directory), root)


def filter_pool(
    connection: duckdb.DuckDBPyConnection, selectivity: float, *, seed: int, table: str = TABLE
) -> tuple[str, ...]:
    """Return the filters of the wanted selectivity, measured on the data, in the seeded order of their popularity."""
    wanted = sorted({round(selectivity + step, 4) for step in (-0.009, -0.0045, 0.0, 0.0045, 0.009)})
    candidates: dict[str, None] = {}
    from_above = [1 - share for share in wanted]
    for column in COLUMNS:
        below = connection.sql(f"select quantile_disc({column}, {wanted}) from {table}").fetchall()[0][0]
        above = connection.sql(f"select quantile_disc({column}, {from_above}) from {table}").fetchall()[0][0]
        equal = connection.sql(
            f"select {column} from {table} group by 1 having abs(count(*) / (select count(*) from {table}) "
            f"- {selectivity}) <= {SELECTIVITY_TOLERANCE} order by 1"
        ).fetchall()
        candidates |= dict.fromkeys(f"{column} < {_literal(value)}" for value in below)
        candidates |= dict.fromkeys(f"{column} > {_literal(value)}" for value in above)
        candidates |= dict.fromkeys(f"{column} = {_literal(value)}" for (value,) in equal)
    counts = ", ".join(f"count(*) filter (where {candidate})" for candidate in candidates)
    [(total, *matching)] = connection.sql(f"select count(*), {counts} from {table}").fetchall()
    pool = [
        candidate
        for candidate, rows in zip(candidates, matching, strict=True)
        if abs(rows / total - selectivity) <= SELECTIVITY_TOLERANCE
    ]
    random.Random(f"big data/{seed}/pool").shuffle(pool)
    return tuple(pool)


def column_templates(columns: int, templates: int, *, seed: int) -> tuple[tuple[str, ...], ...]:
    """Return `templates` different sets of `columns` columns, each in the table's order.

    >>> len(column_templates(2, 55, seed=1)), column_templates(11, 1, seed=1)[0] == COLUMNS
    (55, True)
    """
    if not 1 <= templates <= comb(len(COLUMNS), columns):
        raise ValueError(
            f"{templates} templates of {columns} columns were asked for; "
            f"there are {comb(len(COLUMNS), columns)} sets of {columns} of the {len(COLUMNS)} columns"
        )
    everything = list(combinations(COLUMNS, columns))
    return tuple(random.Random(f"big data/{seed}/templates").sample(everything, templates))


def queries(
    pool: tuple[str, ...],
    knobs: Knobs,
    count: int = QUERIES_IN_THE_PAPER,
    *,
    seed: int,
    stream: str = "train",
    table: str = TABLE,
) -> tuple[Query, ...]:
    """Return scan queries; training and test streams share the pool, its popularity and the column templates."""
    if not pool:
        raise ValueError(f"no filter keeps {knobs.selectivity:.0%} ± {SELECTIVITY_TOLERANCE:.0%} of the rows")
    rng = random.Random(f"big data/{seed}/{stream}")
    selects = column_templates(knobs.columns, knobs.templates, seed=seed)
    weights = [1 / rank**knobs.skew for rank in range(1, len(pool) + 1)]
    made = []
    for where in rng.choices(pool, weights, k=count):
        place = rng.randrange(len(selects))
        made.append(Query(f"t{place + 1}", f"select {', '.join(selects[place])} from {table} where {where}"))
    return tuple(made)


def _literal(value: Any) -> str:
    """Write a value as SQL that Spark and DuckDB read alike."""
    if isinstance(value, int | float):
        return repr(value)
    return f"date '{value}'" if hasattr(value, "isoformat") else f"'{value}'"


def _generate(scale: float, seed: int, directory: Path) -> None:
    """Write user visits joined with the rankings of their pages, popular pages first by Zipf."""
    rows, pages = max(1_000, round(scale * ROWS_AT_SCALE_ONE)), max(100, round(scale * PAGES_AT_SCALE_ONE))
    batches = _batches(rows, pages, seed)
    first = next(batches)
    write_batches(_chain(first, batches), first.schema, directory, ROWS_PER_ROW_GROUP)


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _batches(rows: int, pages: int, seed: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, ROWS_PER_BATCH):
        rng = np.random.default_rng([seed, start])
        yield _batch(min(ROWS_PER_BATCH, rows - start), pages, rng)


def _batch(rows: int, pages: int, rng: np.random.Generator) -> pa.RecordBatch:
    """Make one batch of visits; everything about a page follows from its number."""
    # The square of a uniform number prefers small page numbers, as rankings do, without a table of Zipf weights.
    page = (rng.random(rows) ** 2 * pages).astype(np.int64)
    scrambled = (page.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(8)
    octets = rng.integers(0, 256, (rows, 4)).astype(str)
    dots = np.array(".")
    address = np.char.add(np.char.add(octets[:, 0], dots), octets[:, 1])
    address = np.char.add(np.char.add(address, dots), np.char.add(np.char.add(octets[:, 2], dots), octets[:, 3]))
    day = _FIRST_DAY + (rng.beta(2, 1, rows) * _DAYS).astype("timedelta64[D]")
    country = np.minimum(rng.geometric(0.08, rows) - 1, len(_COUNTRIES) - 1)
    columns = {
        "page_url": pa.array(np.char.add("http://example.org/", np.char.mod("%014x", scrambled)), pa.string()),
        "page_rank": pa.array((10_000 / (1 + page) ** 0.5).astype(np.int32) + 1),
        "avg_duration": pa.array((scrambled % np.uint64(100)).astype(np.int32) + 1),
        "source_ip": pa.array(address, pa.string()),
        "visit_date": pa.array(day),
        "ad_revenue": pa.array(np.round(rng.random(rows), 6)),
        "user_agent": _pick(_AGENTS, np.minimum(rng.geometric(0.15, rows) - 1, len(_AGENTS) - 1)),
        "country_code": _pick(_COUNTRIES, country),
        "language_code": _pick(tuple(f"{code}-{code[:2].lower()}" for code in _COUNTRIES), country),
        "search_word": _pick(_WORDS, rng.integers(0, len(_WORDS), rows)),
        "duration": pa.array(rng.integers(1, 11, rows).astype(np.int32)),
    }
    return pa.RecordBatch.from_pydict(columns)


def _pick(values: tuple[str, ...], places: Any) -> pa.Array:
    return pa.array(values, pa.string()).take(pa.array(places))
