"""Partial replicas from advice to answers: what they cost is said, the budget holds, and no answer changes."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipstone
from skipstone.errors import InvalidInput, LayoutInfeasible
from skipstone.lake import Table
from skipstone.layout.scheme import ClusteringSpec
from skipstone.relayout.advising import Advice, Wishes
from skipstone.relayout.partial_replicas import GSOP_R, present_storage
from skipstone.scan.explain import text as explanation
from skipstone.scan.plan import plan_scan

ROWS = 12_000
TREE = (ClusteringSpec("qdtree"),)


def rows_in_conflict(seed: int = 1) -> pa.Table:
    """Three families of queries read `price` and `note`: by town and day, by kind, and by weight."""
    random_ = np.random.default_rng(seed)
    return pa.table({
        "id": pa.array(np.arange(ROWS)),
        "town": pa.array(random_.choice(np.array(["Oslo", "Rome", "Bonn", "Kyiv", None]), ROWS)),
        "day": pa.array(random_.integers(0, 100, ROWS)),
        "kind": pa.array(random_.integers(0, 40, ROWS)),
        "weight": pa.array(random_.integers(0, 1000, ROWS)),
        "price": pa.array(random_.random(ROWS).round(3)),
        "note": pa.array(random_.choice(np.array(["a", "b", None]), ROWS)),
        **{f"extra{number}": pa.array(random_.integers(0, 9, ROWS)) for number in range(6)},
    })  # fmt: skip


def statements(seed: int, count: int = 40) -> list[str]:
    chance = random.Random(seed)
    by_town = [
        f"SELECT price, note, town, day FROM t WHERE town = 'Rome' AND day BETWEEN {(low := chance.randrange(90))} "
        f"AND {low + 5}"
        for _ in range(count)
    ]
    by_kind = [f"SELECT price, note, kind FROM t WHERE kind = {chance.randrange(40)}" for _ in range(count)]
    by_weight = [
        f"SELECT price, note, weight FROM t WHERE weight BETWEEN {(low := chance.randrange(950))} AND {low + 50}"
        for _ in range(count)
    ]
    return [*by_town, *by_kind, *by_weight]


def made(path: Path) -> tuple[Table, skipstone.Workload]:
    table = skipstone.open(path).create("t", rows_in_conflict(), chunk_rows=6_000)
    return table, skipstone.Workload.of(statements(1), {"t": table.schema})


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, Advice]:
    table, work = made(tmp_path_factory.mktemp("lake"))
    advice = table.advise(work, clustering=TREE, storage=1.2, block_rows=100)
    table.optimize(advice)
    return table, advice


def test_no_change_one_layout_groups_and_replicas_are_compared(advised: tuple[Table, Advice]) -> None:
    _, advice = advised
    assert [one.name for one in advice.candidates] == ["no change", "qdtree", "gsop", "gsop-r"]
    assert [one.storage for one in advice.candidates[:3]] == [1.0, 1.0, 1.0]
    now, tree, groups, replicas = advice.candidates
    assert now.written_bytes == 0
    assert now.stored_bytes == tree.stored_bytes == tree.written_bytes == advice.rewrite_bytes
    assert tree.stored_bytes <= groups.stored_bytes, "groups store row ids"
    assert 1.0 < replicas.storage <= 1.2
    assert groups.written_bytes < replicas.written_bytes == replicas.stored_bytes
    assert advice.chosen == GSOP_R
    assert replicas.bytes < 0.9 * min(tree.bytes, groups.bytes)


def test_what_is_stored_is_what_was_foretold_and_within_the_budget(advised: tuple[Table, Advice]) -> None:
    table, advice = advised
    stored, stored_bytes = present_storage(table.snapshot())
    foretold = advice.candidate(GSOP_R)
    assert stored == pytest.approx(foretold.storage, abs=0.01)
    assert 1.0 < stored <= 1.2
    assert stored_bytes > 0
    assert dict(table.history(1)[0].metrics)["storage"] == pytest.approx(stored)
    assert cells_in_files(table) == round(stored * ROWS * len(table.schema))


def cells_in_files(table: Table) -> int:
    """Count once more, from the footers of the files."""
    cells = 0
    for blocks in table.snapshot().block_sets:
        for file in blocks.files:
            footer = pq.ParquetFile(f"{table.location.uri}/{file}").metadata
            names = [name for name in footer.schema.to_arrow_schema().names if not name.startswith("_skipstone_")]
            cells += footer.num_rows * len(names)
    return cells


def test_a_query_reads_the_replica_made_for_it_and_explain_says_so(advised: tuple[Table, Advice]) -> None:
    table, _ = advised
    [found] = table.lake.explain("SELECT price, note, kind FROM t WHERE kind = 3")
    layouts = {one.layout for chunk in found.chunks for one in chunk.path}
    schemes = table.snapshot().scheme_of(table.snapshot().chunks[0])
    assert len(schemes.layouts) > len(layouts) == 1, "one of several layouts has all that is asked for"
    assert found.read.row_ids == 0
    assert found.read.cells < 0.1 * found.plain.cells
    [chunk, *_] = found.chunks
    [read] = chunk.path
    assert (read.cells, read.row_ids) == (chunk.read.cells, 0)
    assert f"layout {read.layout}: {read.blocks_read:,} of {read.blocks:,} blocks" in explanation(found)


def test_a_query_of_several_layouts_reads_row_ids_of_each(advised: tuple[Table, Advice]) -> None:
    table, _ = advised
    [found] = table.lake.explain("SELECT * FROM t WHERE kind = 3 AND day < 9")
    for chunk in found.chunks:
        assert len(chunk.path) > 1
        assert sum(one.cells for one in chunk.path) == chunk.read.cells
        assert sum(one.row_ids for one in chunk.path) == chunk.read.row_ids > 0


def test_answers_are_those_of_duckdb(advised: tuple[Table, Advice]) -> None:
    table, _ = advised
    t = rows_in_conflict()  # noqa: F841 - DuckDB finds it by its name
    more = ["SELECT id, note, extra1 FROM t WHERE price > 0.99", "SELECT id FROM t WHERE kind = 3 AND town IS NULL"]
    for statement in [*statements(3, count=6), *more]:
        columns, where = statement.removeprefix("SELECT ").split(" FROM t WHERE ")
        found = table.scan(columns.split(", "), where).to_arrow()
        expected = duckdb.execute(statement).fetchall()
        assert expected, statement
        assert sorted(map(repr, expected)) == sorted(repr(tuple(row.values())) for row in found.to_pylist())
    assert table.scan().count() == ROWS


def test_what_was_foretold_is_what_is_read(advised: tuple[Table, Advice]) -> None:
    table, advice = advised
    unseen = skipstone.Workload.of(statements(2), {"t": table.schema}).queries("t")
    snapshot = table.snapshot()
    read, asked = 0.0, 0.0
    for query in unseen:
        counts = plan_scan(snapshot, query.columns, query.filter).counts()
        read += query.weight * (counts.cells + counts.row_ids)
        asked += query.weight * ROWS * len(query.columns)
    assert read / asked == pytest.approx(advice.candidate(GSOP_R).cells, rel=0.35)


def test_rows_appended_since_are_laid_out_too_and_counted(advised: tuple[Table, Advice], tmp_path: Path) -> None:
    """All new rows are of the kind that is replicated: more is stored than a sample showed, which is not committed."""
    _, advice = advised
    table, _ = made(tmp_path)
    of_rome = rows_in_conflict(2).set_column(1, "town", pa.array(["Rome"] * ROWS))
    table.append(of_rome.set_column(3, "kind", pa.array([1] * ROWS)))
    before = table.snapshot().version
    files = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(LayoutInfeasible, match=r"take 1\.\d+ times the cells of the table, .* the budget of 1\.2; "):
        table.optimize(advice)
    assert table.snapshot().version == before
    assert sorted(tmp_path.rglob("*.parquet")) == files, "what was written is gone"
    assert table.optimize(replace(advice, storage=2.0)).version == before + 1


def test_a_table_of_more_blocks_than_its_sample_has_rows_can_be_advised_on(tmp_path: Path) -> None:
    """As are those of some hundred million rows, of which a search for replicas looks at twenty thousand."""
    table, work = made(tmp_path)
    advice = table.advise(work, clustering=TREE, storage=1.4, block_rows=20, sample_rows=300)
    assert [one.name for one in advice.candidates] == ["no change", "qdtree", "gsop", "gsop-r"]


def test_a_condition_that_nobody_here_can_evaluate_does_not_break_the_budget(tmp_path: Path) -> None:
    """A replica for it would hold all rows, which is found out before they are written."""
    table, _ = made(tmp_path)
    scored = [f"SELECT id, price, note FROM t WHERE score_of(kind) > 3 AND id > {number}" for number in range(40)]
    work = skipstone.Workload.of([*statements(1), *scored], {"t": table.schema})
    advice = table.advise(work, clustering=TREE, storage=1.2, block_rows=200)
    table.optimize(advice)
    assert present_storage(table.snapshot())[0] <= 1.2


def test_a_layout_for_rows_that_no_sample_has_shown_is_not_taken_to_be_free(tmp_path: Path) -> None:
    """With a budget of the table itself, one such row in the table would be one too many."""
    rows = rows_in_conflict()
    rare = pa.array(np.where(np.arange(ROWS) % 3_000 == 5, 1, 0))
    table = skipstone.open(tmp_path).create("t", rows.append_column("rare", rare), chunk_rows=6_000)
    texts = [*statements(1), *["SELECT price, note, extra1 FROM t WHERE rare = 1"] * 30]
    work = skipstone.Workload.of(texts, {"t": table.schema})
    advice = table.advise(work, clustering=(ClusteringSpec(GSOP_R),), storage=1.0, block_rows=200, sample_rows=500)
    assert advice.candidate(GSOP_R).storage == 1.0
    assert table.optimize(advice).version is not None
    assert present_storage(table.snapshot())[0] == 1.0


def test_cells_are_not_stored_twice_for_little(tmp_path: Path) -> None:
    """One family alone wants one order: replicas could save nothing."""
    table = skipstone.open(tmp_path).create("t", rows_in_conflict().select(["town", "day", "price", "note"]))
    work = skipstone.Workload.of(statements(1)[:40], {"t": table.schema})
    advice = table.advise(work, clustering=TREE, storage=2.0, block_rows=100)
    assert advice.candidate(advice.chosen).storage == 1.0


@pytest.mark.parametrize("budget", [0.9, 11.0])
def test_a_budget_that_makes_no_sense_is_refused(budget: float, tmp_path: Path) -> None:
    table, work = made(tmp_path)
    with pytest.raises(InvalidInput, match=r"a storage budget is a multiple of the table's size from 1\.0"):
        table.advise(work, storage=budget)


def test_replicas_without_a_budget_are_refused() -> None:
    with pytest.raises(
        InvalidInput, match=r"gsop-r stores some cells twice: say how many times the table, as in stora"
    ):
        Wishes(clustering=(ClusteringSpec(GSOP_R),)).candidates()
