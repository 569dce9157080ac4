"""Column groups from advice to answers: chosen, written, planned, read, and appended to."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import skipstone
from skipstone.errors import InvalidInput, LayoutInfeasible
from skipstone.lake import Lake, Table
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
    asked = [*statements(3, count=6), "SELECT id, note FROM t WHERE weight < 5 AND price > 0.5"]
    assert duckdb_agrees(table, wide_rows(), asked)


def duckdb_agrees(table: Table, t: pa.Table, asked: list[str]) -> bool:
    """Whether each statement gives the same bag of rows; `t` is what DuckDB finds under that name."""
    for statement in asked:
        columns, where = statement.removeprefix("SELECT ").split(" FROM t WHERE ")
        found = table.scan(columns.split(", "), where).to_arrow()
        expected = duckdb.execute(statement).fetchall()
        assert sorted(map(repr, expected)) == sorted(repr(tuple(row.values())) for row in found.to_pylist()), statement
    return len(asked) > 0 and t.num_rows == table.scan().count()


@pytest.fixture
def laid_out(tmp_path: Path) -> tuple[Lake, Table]:
    """A table of column groups, half the size."""
    lake = skipstone.open(tmp_path / "lake")
    table = lake.create("t", wide_rows().slice(0, ROWS // 2))
    work = skipstone.Workload.of(statements(1), {"t": table.schema})
    table.optimize(table.advise(work, clustering="gsop", block_rows=100))
    return lake, table


def files_of(table: Table, chunk: str) -> set[str]:
    blocks, here = table.snapshot().blocks_of(chunk)
    return {blocks.files[number] for number in blocks.file_of[here]}


def test_vacuum_says_how_to_go_on_where_a_published_table_stands_in_its_way(laid_out: tuple[Lake, Table]) -> None:
    _, table = laid_out
    table.export(version=1)
    published = table.location.uri + "/_delta_log"
    with pytest.raises(LayoutInfeasible, match=f"withdraw the Delta table, by deleting {re.escape(published)}$"):
        table.vacuum(dry_run=False)
    assert table.scan(version=1).count() == ROWS // 2
    shutil.rmtree(published)
    assert not table.vacuum(dry_run=False).dry_run


def test_chunks_of_every_scheme_are_one_table(laid_out: tuple[Lake, Table]) -> None:
    """Groups of columns, groups appended in the same layout, raw rows, and one layout for all: a query is one query."""
    lake, table = laid_out
    [old] = table.snapshot().chunks
    before = files_of(table, old)
    table.append(wide_rows(7).slice(0, 3000), layout=True)
    table.append(wide_rows(8).slice(0, 500))
    table.append(wide_rows(9).slice(0, 2000))
    last = table.snapshot().chunks[-1]
    work = skipstone.Workload.of(statements(4), {"t": table.schema})
    table.optimize(table.advise(work, clustering="ward", block_rows=200), chunks=[last])
    snapshot = table.snapshot()
    assert len(snapshot.chunks) == 4
    assert files_of(table, old) == before, "an append touches no chunk that is there"
    assert sorted(len(snapshot.scheme_of(chunk).layouts) > 1 for chunk in snapshot.chunks) == [False, False, True, True]
    parts = [wide_rows().slice(0, ROWS // 2), wide_rows(7).slice(0, 3000)]
    t = pa.concat_tables([*parts, wide_rows(8).slice(0, 500), wide_rows(9).slice(0, 2000)])
    assert duckdb_agrees(table, t, [*statements(3, count=6), "SELECT id, note FROM t WHERE weight < 5 AND price > 0.5"])
    assert duckdb_agrees(skipstone.open(lake.location.uri).table("t"), t, statements(5, count=2))


def test_what_is_appended_in_the_layout_is_skipped_as_well(laid_out: tuple[Lake, Table]) -> None:
    _, table = laid_out
    version = table.snapshot().version
    assert table.append(wide_rows(7).slice(0, ROWS // 2), layout=True) == version + 1, "one commit, not two"
    old, new = (
        sum(
            plan_scan(table.snapshot(), query.columns, query.filter, chunks=[chunk]).counts().cells
            for query in skipstone.Workload.of(statements(6), {"t": table.schema}).queries("t")
        )
        for chunk in table.snapshot().chunks
    )
    assert new < 1.3 * old, "as many rows, laid out by the same design, are read about as little"


def test_the_layout_in_force_is_the_last_of_which_a_chunk_is_there(laid_out: tuple[Lake, Table]) -> None:
    _, table = laid_out
    groups = table.snapshot().version

    def layouts_of_the_newest() -> int:
        table.append(wide_rows(7).slice(0, 300), layout=True)
        return len(table.snapshot().scheme_of(table.snapshot().chunks[-1]).layouts)

    assert layouts_of_the_newest() > 1
    work = skipstone.Workload.of(statements(4), {"t": table.schema})
    table.optimize(table.advise(work, clustering="qdtree", block_rows=50), chunks=table.snapshot().chunks[-1:])
    assert layouts_of_the_newest() == 1, "most rows are in groups, but the tree was asked for last"
    table.restore(groups)
    assert layouts_of_the_newest() > 1, "what was undone is not in force"


def test_rows_that_were_laid_out_leave_no_raw_files_behind(laid_out: tuple[Lake, Table]) -> None:
    _, table = laid_out
    table.append(wide_rows(7).slice(0, 300), layout=True)
    used = {file for blocks in table.snapshot().block_sets for file in blocks.files}
    raw = table.snapshot(1)
    used |= {file for blocks in raw.block_sets for file in blocks.files}
    assert {file.path for file in table.location.list("data")} == used


def test_a_table_without_a_layout_is_not_appended_to_in_one(tmp_path: Path) -> None:
    table = skipstone.open(tmp_path / "lake").create("t", wide_rows().slice(0, 10))
    with pytest.raises(InvalidInput) as caught:
        table.append(wide_rows().slice(0, 10), layout=True)
    assert str(caught.value) == (
        'table "t" has not been laid out yet, so that there is no layout to append in. '
        "Hint: append without one, and optimize the table"
    )
    with pytest.raises(InvalidInput, match="the layout says how many rows a block has"):
        table.append(wide_rows().slice(0, 10), layout=True, block_rows=5)
    assert table.scan().count() == 10
