"""What explain says of a plan adds up: what is read and what each mechanism skips is everything there is."""

from __future__ import annotations

import pyarrow as pa
import pytest

from skipstone.catalog.values import Change
from skipstone.lake import Table, open_lake
from skipstone.layout.scheme import ClusteringSpec, Layout, Scheme
from skipstone.predicate.parsing import parse_filter
from skipstone.relayout.executor import LocalExecutor, Silent
from skipstone.relayout.rewriting import Design, rewrite_chunks
from skipstone.scan.explain import ScanReport, report, text
from skipstone.scan.plan import Counts, Skipping
from skipstone.workload.query import Query

ROWS = pa.table({
    "id": range(3000),
    "shop": [f"s{number * 7 % 10}" for number in range(3000)],
    "amount": [number * 37 % 1000 for number in range(3000)],
})  # fmt: skip
FEATURES = ("shop = 's3'", "amount > 900")


@pytest.fixture(scope="module", params=["one layout", "a layout for each half of the columns"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Chunks that are laid out by two features, and one that came later and is raw."""
    lake = open_lake(tmp_path_factory.mktemp("lake"))
    table = lake.create("t", ROWS, chunk_rows=1000)
    features = tuple(parse_filter(one, ROWS.schema) for one in FEATURES)
    parts = [ROWS.schema.names] if request.param == "one layout" else [["id", "shop"], ["amount"]]
    layouts = tuple(Layout(tuple(part), (0, 1), frozenset(part), ClusteringSpec("ward")) for part in parts)
    design = Design(Scheme(layouts, features), tuple(Query(("id",), one) for one in features), 50, ())
    snapshot = table.snapshot()
    chunks = rewrite_chunks(
        snapshot, snapshot.chunks, design, table=table.location, executor=LocalExecutor(1), progress=Silent()
    )
    table.catalog.commit(Change("optimize", replaced=chunks), base=snapshot.version)
    table.append(ROWS.slice(0, 500), block_rows=100)
    return table


def explained(table: Table, columns: list[str], where: str | None, skipping: Skipping | None = None) -> ScanReport:
    return report(table.scan(columns, where, skipping=skipping).plan, table="t")


QUESTIONS = (
    "shop = 's3'",
    "shop = 's3' AND amount > 950",
    "amount > 990",
    "id < 40",
    "shop = 's3' AND id >= 2990",
    "id < 0",
    "shop = 's3' OR amount > 900",
    None,
)


@pytest.mark.parametrize("where", QUESTIONS)
@pytest.mark.parametrize("columns", [["id"], ["amount"], ["id", "shop", "amount"]], ids=",".join)
def test_what_is_read_and_what_is_skipped_is_everything(columns: list[str], where: str | None, table: Table) -> None:
    found = explained(table, columns, where)
    snapshot = table.snapshot()
    rows_stored = {
        chunk: int(blocks.rows[blocks.offsets[position] : blocks.offsets[position + 1]].sum())
        for blocks in snapshot.block_sets
        for position, chunk in enumerate(blocks.chunks)
    }
    for chunk in found.chunks:
        skipped = chunk.skipped_by_features + chunk.skipped_by_bounds + chunk.skipped_whole
        assert chunk.read.blocks + skipped == chunk.blocks
        rows_skipped = chunk.rows_skipped_by_features + chunk.rows_skipped_by_bounds + chunk.rows_skipped_whole
        rows_read = sum(one.rows_read for one in chunk.path)
        assert rows_read + rows_skipped == rows_stored[chunk.chunk]
        assert sum(one.blocks_read for one in chunk.path) == chunk.read.blocks
        assert chunk.plain.rows == snapshot.facts(chunk.chunk).rows
    assert sum((chunk.read for chunk in found.chunks), Counts()) == found.read
    assert sum((chunk.plain for chunk in found.chunks), Counts()) == found.plain
    assert found.plain.rows == 3500


def test_each_mechanism_has_its_own_share_and_none_where_it_is_switched_off(table: Table) -> None:
    where = "shop = 's3' AND amount > 950"
    both = explained(table, ["id"], where)
    assert both.subsuming
    assert sum(chunk.skipped_by_features for chunk in both.chunks) > 0
    alone = explained(table, ["id"], where, Skipping(bounds=False))
    assert sum(chunk.skipped_by_bounds for chunk in alone.chunks) == 0
    assert sum(chunk.skipped_by_features for chunk in alone.chunks) > 0
    bounds = explained(table, ["id"], where, Skipping(features=False))
    assert sum(chunk.skipped_by_features for chunk in bounds.chunks) == 0
    none = explained(table, ["id"], where, Skipping(features=False, bounds=False))
    assert both.read.rows <= min(alone.read.rows, bounds.read.rows)
    assert max(alone.read.rows, bounds.read.rows) <= none.read.rows
    assert "skipping by features is switched off" in none.reasons
    assert "skipping by bounds is switched off" in none.reasons


def test_the_text_names_what_each_mechanism_skips(table: Table) -> None:
    found = explained(table, ["id"], "shop = 's3' AND id >= 2990")
    said = text(found)
    by_features = sum(chunk.skipped_by_features for chunk in found.chunks)
    by_bounds = sum(chunk.skipped_by_bounds for chunk in found.chunks)
    rows = sum(chunk.rows_skipped_by_features for chunk in found.chunks)
    assert by_features > 0
    assert by_bounds > 0
    assert f"{by_features:>15,} blocks of {rows:,} rows by features" in said
    assert f"{by_bounds:>15,} blocks of " in said
    assert "note: 1 chunks are raw: not laid out for any workload yet" in said
