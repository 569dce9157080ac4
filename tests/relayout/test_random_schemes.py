"""Whatever the scheme, and whatever may skip: a query's answer is the one DuckDB gives on the original rows."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from skipstone.catalog.values import Change
from skipstone.lake import Table, open_lake
from skipstone.predicate.parsing import parse_filter
from skipstone.relayout.executor import LocalExecutor, Silent
from skipstone.relayout.rewriting import Design, rewrite_chunks
from skipstone.relayout.tracking import tracked_expressions
from skipstone.scan.plan import ScanPlan, Skipping
from skipstone.workload.query import Query
from tests.relayout.worlds import SCHEMA, random_condition, random_scheme, random_table
from tests.second_opinion import second_opinion

SCHEMES = 40
QUERIES = 20
MANY_SCHEMES = max(1, int(os.environ.get("SKIPSTONE_CASES", "20000")) // QUERIES)
SWITCHES = (*[Skipping()] * 4, Skipping(features=False), Skipping(features=False, bounds=False))
"""In turn; without features nothing is known of replicas, so that most queries have them."""


def bag(rows: pa.Table) -> Counter[str]:
    """Rows as a bag; NaN equals NaN, -0.0 equals 0.0, and NULL is itself."""
    return Counter(repr([_plain(value) for value in row.values()]) for row in rows.to_pylist())


def _plain(value: Any) -> Any:
    return 0.0 if isinstance(value, float) and value == 0 else value


def by_duckdb(rows: pa.Table, query: str) -> pa.Table:
    """Ask DuckDB, the second opinion."""
    with second_opinion() as connection:
        connection.register("rows", rows)
        found: pa.Table = connection.sql(query).to_arrow_table()
        return found


def lay_out(table: Table, chance: random.Random, *, layouts: int) -> list[str]:
    """Rewrite some or all chunks of a table in a random scheme, commit that, and say which features it has."""
    snapshot = table.snapshot()
    some = chance.sample(snapshot.chunks, chance.randint(1, len(snapshot.chunks)))
    texts = [random_condition(chance) for _ in range(chance.randint(0 if layouts == 1 else 1, 9))]
    features = tuple(dict.fromkeys(parse_filter(text, SCHEMA) for text in texts))
    scheme = random_scheme(chance, features, layouts)
    queries = tuple(Query(tuple(SCHEMA.names), feature) for feature in features)
    design = Design(
        scheme, queries, block_rows=chance.choice([3, 8, 20]), tracked=tracked_expressions(SCHEMA, features)
    )
    chunks = rewrite_chunks(snapshot, some, design, table=table.location, executor=LocalExecutor(1), progress=Silent())
    table.catalog.commit(Change("optimize", replaced=chunks), base=snapshot.version)
    return texts


def asked(chance: random.Random, features: list[str]) -> str:
    """A condition: any, a feature, or one that a feature subsumes, which is what replicas are read for."""
    some = random_condition(chance)
    if not features or chance.random() < 0.3:
        return some
    feature = chance.choice(features)
    return feature if chance.random() < 0.3 else f"{feature} AND {some}"


def reads_replicas(plan: ScanPlan) -> bool:
    """Whether a column is read where it is no master."""
    return any(
        column not in part.scheme.layouts[layout].masters
        for part in plan.parts
        for path in part.paths
        for column, layout in path.items()
    )


@pytest.mark.parametrize("seed", range(SCHEMES))
def test_answers_do_not_depend_on_the_scheme_or_on_skipping(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


def test_queries_of_random_schemes_do_read_replicas(tmp_path: Path) -> None:
    """Else nothing above would say that what is stored twice is read right."""
    assert sum(check(seed, tmp_path / str(seed)) for seed in range(500, 504)) > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_000 + MANY_SCHEMES))
def test_answers_do_not_depend_on_any_of_many_schemes(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


def check(seed: int, directory: Path) -> int:
    """Lay a table out in random schemes and ask it random queries; say how many of them read replicas."""
    chance = random.Random(seed)
    rows = random_table(chance, chance.choice([1, 40, 150]))
    first = chance.randint(1, len(rows))
    table = open_lake(directory).create("t", rows.slice(0, first), chunk_rows=60, block_rows=7)
    features = lay_out(table, chance, layouts=chance.choice([1, 2, 3, 4, 5]))
    if first < len(rows):
        table.append(rows.slice(first), block_rows=5)
    # Of what is laid out already, and of what is raw.
    features += lay_out(table, chance, layouts=chance.choice([1, 2, 3, 4, 5]))
    assert bag(table.scan().to_arrow()) == bag(rows), "all rows, each once"
    of_replicas = 0
    for number in range(QUERIES):
        condition = asked(chance, features)
        names = chance.sample(SCHEMA.names, chance.randint(1, 4))
        listed = ", ".join(f'"{name}"' for name in names)
        expected = bag(by_duckdb(rows, f"SELECT {listed} FROM rows WHERE {condition}"))
        scan = table.scan(names, condition, skipping=SWITCHES[number % len(SWITCHES)])
        of_replicas += reads_replicas(scan.plan)
        found = scan.to_arrow()
        assert bag(found) == expected, f"seed {seed}: SELECT {listed} WHERE {condition}"
        assert table.scan(names, condition).count() == expected.total()
    return of_replicas
