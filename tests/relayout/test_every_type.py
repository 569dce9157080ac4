"""Whatever the type, the filter and the clustering: what Arrow reads from a layout is what DuckDB finds in the rows."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from skipstone.errors import InvalidInput
from skipstone.predicate.literal import Conjunction
from skipstone.predicate.printing import sql
from skipstone.scan.plan import Skipping
from tests.relayout.every_type import TABLES, World, bag
from tests.second_opinion import second_opinion

FILTERS = 90
WORLDS = 2
"""2 worlds of 90 filters, each asked of the tables of 12 clusterings: 2,160 cases."""

MANY_WORLDS = max(1, int(os.environ.get("SKIPSTONE_CASES", "20000")) // (FILTERS * len(TABLES)))

SWITCHES = (Skipping(), Skipping(features=False), Skipping(bounds=False), Skipping(features=False, bounds=False))
COLUMNS = (["id"], ["id", "double", "text"], ["id", "place", "tags", "items"], ["id", "money", "moment", "raw"])


def duckdb_knows(filter_: Conjunction) -> bool:
    try:
        sql(filter_, "duckdb")
    except InvalidInput:
        return False
    return True


@cache
def world_of(seed: int) -> tuple[World, tuple[tuple[int, ...], ...]]:
    """A world, and for each filter the ids of the rows that DuckDB finds."""
    world = World.of(seed, FILTERS, duckdb_knows)
    with second_opinion() as connection:
        connection.register("rows", world.rows)
        ids = [
            tuple(row[0] for row in connection.execute(f"SELECT id FROM rows WHERE {sql(one, 'duckdb')}").fetchall())
            for one in world.filters
        ]
    assert sum(map(bool, ids)) > len(ids) // 3, "a third of the filters should find something"
    return world, tuple(ids)


def check(seed: int, name: str, directory: Path) -> None:
    """Ask all filters of a table, with everything that skips and in turn with parts of it switched off."""
    world, ids = world_of(seed)
    table = world.table(name, directory)
    assert bag(table.scan().to_arrow()) == bag(world.rows), "all rows, each once"
    read = without_skipping = 0
    for number, (filter_, found) in enumerate(zip(world.filters, ids, strict=True)):
        columns = COLUMNS[number % len(COLUMNS)]
        expected = world.expected(found, columns)
        for switches in dict.fromkeys((SWITCHES[0], SWITCHES[number // 4 % len(SWITCHES)])):
            scan = table.scan(columns, sql(filter_), skipping=switches)
            assert bag(scan.to_arrow()) == expected, f"seed {seed}, {name}, {switches}: WHERE {sql(filter_)}"
            if switches == SWITCHES[0]:
                rows_read = scan.plan.counts().rows
        if switches == SWITCHES[-1]:
            read += rows_read
            without_skipping += scan.plan.counts().rows
    assert read < 0.8 * without_skipping, "where hardly anything is skipped, little is shown"


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("seed", range(WORLDS))
def test_what_arrow_reads_from_any_layout_is_what_duckdb_finds_in_the_rows(
    seed: int, name: str, tmp_path: Path
) -> None:
    check(seed, name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_000 + MANY_WORLDS))
def test_what_arrow_reads_in_many_worlds_is_what_duckdb_finds(seed: int, tmp_path: Path) -> None:
    for name in TABLES:
        check(seed, name, tmp_path)
