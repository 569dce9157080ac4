"""Column groups from advice to answers: chosen, written, planned, read, and appended to."""

from __future__ import annotations

import random

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import skipstone
from skipstone.lake import Table
from skipstone.layout.scheme import ClusteringSpec
from skipstone.relayout.advising import Advice
from skipstone.scan.plan import plan_scan

ROWS = 12_000


def wide_rows(seed: int = 1) -> pa.Table:
    """Two families of columns that have nothing to do with each other, and one column that both read."""
    random_ = np.random.default_rng(seed)
    return pa.table({
        "id": pa.array(np.arange(ROWS)),
        "town": pa.array(random_.choice(["Oslo", "Rome", "Bonn", "Kyiv"], ROWS)),
        "day": pa.array(random_.integers(0, 100, ROWS)),
        "price": pa.array(random_.random(ROWS).round(4)),
        "kind": pa.array(random_.integers(0, 40, ROWS)),
        "note": pa.array(random_.choice(np.array(["a", "b", None]), ROWS)),
        "weight": pa.array(random_.integers(0, 1000, ROWS)),
    })  # fmt: skip


def statements(seed: int, count: int = 40) -> list[str]:
    chance = random.Random(seed)
    by_town = [
        f"SELECT price, town, day FROM t WHERE town = '{chance.choice(['Oslo', 'Rome', 'Bonn', 'Kyiv'])}' "
        f"AND day BETWEEN {(low := chance.randrange(90))} AND {low + 5}"
        for _ in range(count)
    ]
    by_kind = [f"SELECT kind, note, weight FROM t WHERE kind = {chance.randrange(40)}" for _ in range(count)]
    mixed = [f"SELECT price, weight FROM t WHERE kind = {chance.randrange(40)} AND day < 3" for _ in range(4)]
    return [*by_town, *by_kind, *mixed]


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, Advice]:
    lake = skipstone.open(tmp_path_factory.mktemp("lake"))
    table = lake.create("t", wide_rows())
    work = skipstone.Workload.of(statements(1), {"t": table.schema})
    advice = table.advise(work, clustering=[ClusteringSpec("qdtree"), ClusteringSpec("gsop")], block_rows=100)
    table.optimize(advice)
    return table, advice


def test_groups_are_chosen_where_queries_want_different_orders(advised: tuple[Table, Advice]) -> None:
    table, advice = advised
    assert [one.name for one in advice.candidates] == ["no change", "qdtree", "gsop"]
    assert advice.chosen == "gsop"
    assert advice.candidate("gsop").bytes < 0.95 * advice.candidate("qdtree").bytes
    [blocks] = table.snapshot().block_sets
    layouts = table.snapshot().scheme(blocks.scheme).layouts
    homes = [frozenset(layout.columns) for layout in layouts]
    assert any({"price", "town", "day"} <= home for home in homes)
    assert any({"kind", "note", "weight"} <= home for home in homes)
    assert not any({"town", "kind"} <= home for home in homes)


def test_what_was_foretold_is_what_is_read(advised: tuple[Table, Advice]) -> None:
    """On queries that neither the search nor the forecast has seen, cells and row ids come out as predicted."""
    table, advice = advised
    unseen = skipstone.Workload.of(statements(2), {"t": table.schema}).queries("t")
    snapshot = table.snapshot()
    read, asked = 0.0, 0.0
    for query in unseen:
        plan = plan_scan(snapshot, query.columns, query.filter)
        counts = plan.counts()
        read += query.weight * (counts.cells + counts.row_ids)
        asked += query.weight * ROWS * len(plan.read_columns)
    assert read / asked == pytest.approx(advice.candidate("gsop").cells, rel=0.35)


def test_answers_are_those_of_duckdb(advised: tuple[Table, Advice]) -> None:
    table, _ = advised
    t = wide_rows()
    for statement in [*statements(3, count=6), "SELECT id, note FROM t WHERE weight < 5 AND price > 0.5"]:
        columns, where = statement.removeprefix("SELECT ").split(" FROM t WHERE ")
        found = table.scan(columns.split(", "), where).to_arrow()
        expected = duckdb.execute(statement).fetchall()
        assert sorted(map(repr, expected)) == sorted(repr(tuple(row.values())) for row in found.to_pylist())
    assert t.num_rows == table.scan().count()
