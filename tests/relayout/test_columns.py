"""Orders and duplicates of columns: whatever is stored where and how often, answers are DuckDB's on the original."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import skipstone.store.reader as reader
import skipstone.store.writer as writer
from skipstone.catalog.values import Blocks, Change
from skipstone.errors import InvalidInput, VerificationFailed
from skipstone.lake import Table, open_lake
from skipstone.layout.columns.seek import PowerSeek
from skipstone.layout.scheme import ClusteringSpec, Layout, Scheme
from skipstone.predicate.parsing import parse_filter
from skipstone.relayout.column_design import ColumnWishes, arranged, column_cost
from skipstone.relayout.executor import LocalExecutor, Silent
from skipstone.relayout.rewriting import Design, rewrite_chunks
from skipstone.relayout.tracking import tracked_expressions
from skipstone.scan.explain import report, text
from skipstone.scan.plan import plan_scan
from skipstone.store.reader import file_blocks, read_blocks, stored_checksums
from skipstone.workload.query import Query
from tests.relayout.test_random_schemes import bag, by_duckdb
from tests.relayout.worlds import SCHEMA, random_condition, random_features, random_scheme, random_table

SCHEMES = int(os.environ.get("SKIPSTONE_CASES", "2400")) // 240
QUERIES = 12


def with_copies(chance: random.Random, scheme: Scheme) -> Scheme:
    """The same scheme with other orders, and some columns of some layouts stored again."""
    return replace(scheme, layouts=tuple(_layout_with_copies(chance, layout) for layout in scheme.layouts))


def _layout_with_copies(chance: random.Random, layout: Layout) -> Layout:
    columns = list(layout.columns)
    chance.shuffle(columns)
    duplicates = [
        (f"_skipstone_copy{number}_{column}", column)
        for column in columns
        for number in range(1, chance.choice([1, 1, 2, 3]))
    ]
    chance.shuffle(duplicates)
    order = list(columns)
    for stored, _ in duplicates:
        order.insert(chance.randint(0, len(order)), stored)
    return replace(layout, columns=tuple(columns), duplicates=tuple(duplicates), order=tuple(order))


def lay_out(table: Table, scheme: Scheme, chunks: Sequence[str] | None = None, block_rows: int = 8) -> None:
    """Rewrite chunks in a scheme and commit that."""
    snapshot = table.snapshot()
    queries = tuple(Query(tuple(SCHEMA.names), feature) for feature in scheme.features)
    design = Design(scheme, queries, block_rows, tracked_expressions(snapshot.schema, scheme.features))
    made = rewrite_chunks(
        snapshot,
        snapshot.chunks if chunks is None else chunks,
        design,
        table=table.location,
        executor=LocalExecutor(1),
        progress=Silent(),
    )
    table.catalog.commit(Change("optimize", replaced=made), base=snapshot.version)


@pytest.mark.parametrize("seed", range(SCHEMES))
def test_answers_do_not_depend_on_orders_and_duplicates(seed: int, tmp_path: Path) -> None:
    """Chunks have different orders, some none; a query over all of them is one query."""
    chance = random.Random(seed)
    rows = random_table(chance, chance.choice([40, 150]))
    table = open_lake(tmp_path).create("t", rows, chunk_rows=40, block_rows=7)
    layouts = chance.choice([1, 1, 2, 3])
    for _ in range(2):
        features = random_features(chance, chance.randint(0 if layouts == 1 else 1, 6))
        scheme = with_copies(chance, random_scheme(chance, features, layouts))
        chunks = table.snapshot().chunks
        lay_out(table, scheme, chance.sample(chunks, chance.randint(1, len(chunks))), chance.choice([3, 8, 20]))
    assert bag(table.scan().to_arrow()) == bag(rows), "all rows, each once"
    assert table.scan().to_arrow().schema.equals(SCHEMA), "no reader sees a duplicate"
    assert _physical_columns(table) - set(SCHEMA.names), "some columns are stored twice, or nothing is tested here"
    for _ in range(QUERIES):
        condition = random_condition(chance)
        names = chance.sample(SCHEMA.names, chance.randint(1, 5))
        listed = ", ".join(f'"{name}"' for name in names)
        expected = bag(by_duckdb(rows, f"SELECT {listed} FROM rows WHERE {condition}"))
        found = table.scan(names, condition)
        assert bag(found.to_arrow()) == expected, f"seed {seed}: SELECT {listed} WHERE {condition}"
        assert found.count() == expected.total()


def _physical_columns(table: Table) -> set[str]:
    return {name for file in _data_files(table) for name in pq.read_schema(file).names}


def _data_files(table: Table) -> list[str]:
    return sorted(f"{table.location.uri}/{file}" for blocks in table.snapshot().block_sets for file in blocks.files)


COPY = "_skipstone_copy1_a"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """a is needed with b and with c, and a wide column lies between the two; so a is stored beside both."""
    chance = np.random.default_rng(0)
    rows = pa.table(
        {
            "a": np.arange(1000),
            "b": np.arange(1000) % 7,
            "wide": [chance.bytes(200) for _ in range(1000)],
            "c": np.arange(1000) % 11,
        }
    )
    return open_lake(tmp_path).create("t", rows, chunk_rows=500)


def neighbours() -> Scheme:
    """The scheme that the fixture speaks of."""
    names = ("a", "b", "wide", "c")
    return Scheme(
        (Layout(names, (), frozenset(names), duplicates=((COPY, "a"),), order=("a", "b", "wide", COPY, "c")),)
    )


def test_the_copy_that_lies_closer_is_read(table: Table) -> None:
    lay_out(table, neighbours(), block_rows=100)
    for columns, stored in ((["a", "b"], {"a": "a", "b": "b"}), (["c", "a"], {"a": COPY, "c": "c"})):
        plan = table.scan(columns).plan
        assert all(dict(part.columns) == stored for read in plan.reads() for part in read.layouts)
        found = report(plan, table="t")
        duplicates = tuple(name for name in columns if stored[name] != name)
        assert {one.path[0].duplicates for one in found.chunks} == {duplicates}
        assert ("duplicates are read of a: they lie closer to the other columns" in text(found)) == bool(duplicates)
        physical = [_bytes_of(table, name) for name in stored.values()]
        assert plan.counts().bytes == sum(physical)
        assert plan.counts().cells == 2000
        assert table.scan(columns).to_arrow().sort_by("a")["a"].to_pylist() == list(range(1000))


def _bytes_of(table: Table, name: str) -> int:
    return sum(int(np.maximum(blocks.column_bytes(name), 0).sum()) for blocks in table.snapshot().block_sets)


def test_the_files_have_the_order_and_only_they_show_the_duplicate(table: Table) -> None:
    lay_out(table, neighbours())
    assert {tuple(pq.read_schema(file).names) for file in _data_files(table)} == {("a", "b", "wide", COPY, "c")}
    assert table.schema.names == ["a", "b", "wide", "c"]
    assert dict(table.snapshot().facts(table.snapshot().chunks[0]).checksums).keys() >= {"a", "b", "wide", "c"}
    assert COPY not in dict(table.snapshot().facts(table.snapshot().chunks[0]).checksums)


def test_other_engines_do_not_see_the_duplicate(table: Table) -> None:
    original = table.scan().to_arrow().sort_by("a")
    lay_out(table, neighbours())
    table.export()
    delta = DeltaTable(table.location.uri)
    assert [field.name for field in delta.schema().fields] == ["a", "b", "wide", "c"]
    read = pa.table(delta.to_pyarrow_dataset().to_table()).sort_by("a")
    assert read.select(original.schema.names).equals(original)
    lazily = polars.scan_delta(table.location.uri).sort("a").collect()
    assert lazily.columns == original.schema.names
    assert lazily["c"].to_list() == original["c"].to_pylist()
    with duckdb.connect() as connection:
        connection.register("delta", delta.to_pyarrow_dataset())
        shown = connection.sql("SELECT * FROM delta ORDER BY a")
        assert shown.columns == ["a", "b", "wide", "c"]
        assert shown.fetchall() == [tuple(row.values()) for row in original.to_pylist()]


def test_a_duplicate_that_differs_is_not_committed(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer is made to store another column's values in the duplicate, as a fault of ours would."""
    honest = writer._with_duplicates

    def faulty(rows: pa.Table, target: writer.BlockTarget, stored: pa.Schema) -> pa.Table:
        made = honest(rows, target, stored)
        return made.set_column(made.schema.get_field_index(COPY), stored.field(COPY), made["b"])

    monkeypatch.setattr(writer, "_with_duplicates", faulty)
    before = table.snapshot().version
    with pytest.raises(VerificationFailed, match=f'duplicate of "a": .*{COPY}: other values'):
        lay_out(table, neighbours())
    assert table.snapshot().version == before


def test_o05_a_duplicate_that_another_engine_changed_is_found_by_its_checksum(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(table, neighbours())
    snapshot = table.snapshot()
    chunk = snapshot.chunks[0]
    blocks, span = snapshot.blocks_of(chunk)
    files = [blocks.files[number] for number in blocks.file_of[span]]
    groups = blocks.row_group[span].tolist()
    recorded = dict(snapshot.facts(chunk).checksums)["a"]
    schema = pa.schema([snapshot.schema.field("a")])

    def on_disk() -> object:
        monkeypatch.setattr(reader, "_FOOTERS", reader._Footers(1))  # files of ours never change, so footers are kept
        made = Blocks(pa.table({"file": files, "row_group": groups}), (COPY,))
        return dict(stored_checksums(table.location, made, schema, stored={"a": COPY}))["a"]

    assert on_disk() == recorded
    path = f"{table.location.uri}/{files[0]}"
    held = pq.read_table(path)
    changed = held.set_column(3, COPY, pa.array([0] * len(held)))
    pq.write_table(changed, path, row_group_size=pq.read_metadata(path).row_group(0).num_rows)
    assert on_disk() != recorded


def test_o05_a_file_without_the_duplicate_gives_the_column_itself(table: Table) -> None:
    """Another engine wrote a file anew and dropped what the schema does not have."""
    lay_out(table, neighbours())
    blocks = table.snapshot().block_sets[0]
    path = f"{table.location.uri}/{blocks.files[0]}"
    held = pq.read_table(path)
    rows = pq.read_metadata(path).row_group(0).num_rows
    pq.write_table(held.drop_columns([COPY]), path, row_group_size=rows)
    schema = pa.schema([table.schema.field("c"), table.schema.field("a")])
    groups = list(range(pq.read_metadata(path).num_row_groups))
    reads = file_blocks([blocks.files[0]] * len(groups), groups)
    found = pa.Table.from_batches(read_blocks(table.location, reads, schema, stored={"a": COPY}))
    assert found.equals(held.select(["c", "a"]))


def test_a_column_that_came_later_has_no_duplicate_and_is_null(table: Table) -> None:
    lay_out(table, neighbours())
    snapshot = table.snapshot()
    later = snapshot.schema.append(pa.field("a__copy1", pa.int64()))
    table.catalog.commit(Change("schema", schema=later), base=snapshot.version)
    found = table.scan(["a", "c", "a__copy1"]).to_arrow()
    assert found["a__copy1"].null_count == 1000
    assert sorted(found["a"].to_pylist()) == list(range(1000))
    lay_out(table, Scheme((Layout(("a", "b", "wide", "c", "a__copy1"), (), frozenset(later.names)),)))
    assert table.scan(["a__copy1"]).to_arrow()["a__copy1"].null_count == 1000


def test_plans_of_one_table_share_what_was_learned(table: Table) -> None:
    lay_out(table, neighbours())
    first, second = (plan_scan(table.snapshot(), ["a", "c"]) for _ in range(2))
    assert first.parts[0].replicas[0] is second.parts[0].replicas[0]
    assert plan_scan(table.snapshot(), ["b", "c"]).parts[0].replicas == {}, "nothing to choose"


def test_a_rewrite_reads_duplicates_like_columns(table: Table) -> None:
    before = table.scan().to_arrow().sort_by("a")
    lay_out(table, neighbours())
    lay_out(table, Scheme.raw(table.schema.names), block_rows=50)
    assert table.scan().to_arrow().sort_by("a").equals(before)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (Layout(("a", "b"), (), frozenset("ab"), duplicates=(("a2", "a"),)), "under names that columns may have: a2"),
        (
            Layout(("a", "b"), (), frozenset("ab"), duplicates=(("_skipstone_row_id", "a"),)),
            "under names that columns may have: _skipstone_row_id",
        ),
        (Layout(("a", "b"), (), frozenset("ab"), duplicates=((COPY, "c"),)), "repeats columns .* not store: c"),
        (Layout(("a", "b"), (), frozenset("ab"), duplicates=((COPY, "a"),) * 2), f"under one name: {COPY}"),
        (
            Layout(("a", "b"), (), frozenset("ab"), duplicates=((COPY, "a"),), order=("a", "b")),
            "for each of its 3 physical columns, once, .* it has: a, b",
        ),
        (Layout(("a", "b"), (), frozenset("ab"), order=("b", "a")), "with columns in their own order"),
    ],
)
def test_schemes_that_could_give_wrong_answers_are_refused(layout: Layout, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"layout 0 .*{message}"):
        Scheme((layout,)).validate(["a", "b"])


def wide_rows() -> pa.Table:
    """Sixty columns; queries come from eight topics, whose columns are scattered over the table."""
    chance = np.random.default_rng(0)
    return pa.table({f"c{number}": chance.integers(0, 1000, 2000) for number in range(60)} | {"day": range(2000)})


def asked(seed: int, where: str, count: int = 64) -> list[Query]:
    """Queries on five of the six columns of a topic; another seed has other topics."""
    chance = random.Random(seed)
    topics = [chance.sample(range(60), 6) for _ in range(8)]
    schema = wide_rows().schema
    return [
        Query(
            tuple(sorted(f"c{column}" for column in chance.sample(topics[number % 8], 5))),
            parse_filter(where.format(number=number), schema),
            1.0,
            f"topic {number % 8}",
        )
        for number in range(count)
    ]


def orders(table: Table) -> set[tuple[str, ...]]:
    """The physical columns of the files, in order, without those for row ids."""
    return {tuple(pq.read_schema(file).names) for file in _data_files(table)}


def test_one_workload_drives_rows_and_columns(tmp_path: Path) -> None:
    table = open_lake(tmp_path).create("t", wide_rows(), chunk_rows=1000, block_rows=500)
    advice = table.advise(asked(1, "day BETWEEN {number}0 AND {number}9"), columns=True, headroom=0.1, block_rows=100)
    assert advice.chosen != "no change"
    found = advice.columns
    assert found is not None
    assert found.advised
    assert found.then < found.now / 2
    assert 0 < found.duplicate_share <= 0.1
    assert "columns: by the profile power, an order made for this workload seeks" in advice.reasons[-1]
    assert advice.reasons[-1].endswith(" queries kept from the search")
    done = table.optimize(advice)
    assert done.version is not None
    (names,) = orders(table)
    assert len(names) == 61 + found.duplicates
    hidden = [name for name in names if name.startswith("_skipstone_")]
    assert len(hidden) == found.duplicates
    notes = dict(table.snapshot().facts(table.snapshot().chunks[0]).notes)
    assert notes["columns_profile"] == "power"
    cost = notes["columns_cost"]
    assert isinstance(cost, float)
    assert 0 < cost < found.now
    again = table.advise(asked(1, "day BETWEEN {number}0 AND {number}9"), columns=True, headroom=0.1, block_rows=100)
    assert again.columns is not None
    assert again.columns.drift == pytest.approx(1.0, abs=0.01), "nothing has changed"
    assert not again.columns.advised
    assert table.scan().to_arrow().sort_by("day").select(wide_rows().schema.names).equals(wide_rows())


def test_an_order_judged_by_the_queries_that_it_was_made_for_says_so(tmp_path: Path) -> None:
    table = open_lake(tmp_path).create("t", wide_rows(), chunk_rows=2000, block_rows=1000)
    advice = table.advise(asked(1, "day >= 0", count=3), columns=True)
    assert advice.reasons[-1].endswith("on the 3 queries that it was made for, too few to keep some from the search")


def test_rows_that_lie_well_stay_and_get_another_order(tmp_path: Path) -> None:
    """Filters that keep every row give rows no layout; chunks of two schemes each keep theirs."""
    table = open_lake(tmp_path).create("t", wide_rows(), chunk_rows=1000, block_rows=500)
    sort = ClusteringSpec("sort", (("column", "c7"),))
    names = tuple(wide_rows().schema.names)
    layout = Layout(names, (), frozenset(names), sort)
    snapshot = table.snapshot()
    design = Design(Scheme((layout,)), (), 100, tracked_expressions(snapshot.schema, ()))
    (sorted_chunk,) = rewrite_chunks(
        snapshot,
        snapshot.chunks[:1],
        design,
        table=table.location,
        executor=LocalExecutor(1),
        progress=Silent(),
    )
    table.catalog.commit(Change("optimize", replaced=(sorted_chunk,)), base=snapshot.version)
    advice = table.advise(asked(1, "day >= 0"), columns=True)
    assert advice.chosen == "no change"
    assert advice.columns is not None
    assert advice.columns.advised
    assert table.optimize(advice).chunks == 2
    after = table.snapshot()
    specs = {chunk: after.scheme_of(chunk).layouts[0].clustering.name for chunk in after.chunks}
    assert specs == {snapshot.chunks[0]: "sort", snapshot.chunks[1]: "none"}
    assert all(order != names for order in orders(table))
    raw = table.scan(["day"]).to_arrow()["day"].to_pylist()
    assert raw[1000:] == list(range(1000, 2000)), "rows that were not laid out stay in the order they came in"
    assert sorted(raw) == list(range(2000))


def test_an_order_that_serves_no_more_is_advised_to_be_made_again(tmp_path: Path) -> None:
    table = open_lake(tmp_path).create("t", wide_rows(), chunk_rows=2000, block_rows=1000)
    table.optimize(table.advise(asked(1, "day >= 0"), columns=True))
    first = orders(table)
    advice = table.advise(asked(2, "day >= 0"), columns=True)
    assert advice.columns is not None
    assert advice.columns.drift is not None
    assert advice.columns.drift > 1.05
    said = [reason for reason in advice.reasons if "times as long as the one that the order was made for" in reason]
    assert len(said) == 1
    assert said[0].endswith("which is past 1.05: re-order")
    table.optimize(advice)
    assert orders(table) != first
    again = table.advise(asked(2, "day >= 0"), columns=True)
    assert again.columns is not None
    assert again.columns.drift == pytest.approx(1.0, abs=0.01)


def test_the_same_workload_gives_the_same_order_and_new_chunks_may_get_it_alone(tmp_path: Path) -> None:
    table = open_lake(tmp_path).create("t", wide_rows().slice(0, 1000), block_rows=500)
    table.append(wide_rows().slice(1000), block_rows=500)
    advices = [table.advise(asked(1, "day >= 0"), columns=True, seed=3) for _ in range(2)]
    assert advices[0] == advices[1]
    new = table.snapshot().chunks[-1]
    assert table.optimize(advices[0], chunks=[new]).chunks == 1
    assert len(orders(table)) == 2, "the other chunk keeps the order that it has"
    assert table.scan().to_arrow().sort_by("day").select(wide_rows().schema.names).equals(wide_rows())


def test_a_rewrite_for_the_rows_keeps_the_order(tmp_path: Path) -> None:
    table = open_lake(tmp_path).create("t", wide_rows(), block_rows=500)
    table.optimize(table.advise(asked(1, "day >= 0"), columns=True, headroom=0.05))
    before = orders(table)
    advice = table.advise(asked(1, "day BETWEEN {number}0 AND {number}9"), block_rows=100)
    assert advice.columns is None
    assert table.optimize(advice).blocks >= 10
    assert orders(table) == before


def test_every_layout_has_an_order_for_what_is_read_from_it() -> None:
    """c0, c3 and c6 come from one layout and c1, c4 and c7 from the other, a query's filter included."""
    names = [f"c{number}" for number in range(9)]
    parts = (tuple(names[::2]), tuple(names[1::2]))
    scheme = Scheme(tuple(Layout(part, masters=frozenset(part)) for part in parts))
    schema = pa.schema([(name, pa.int64()) for name in names])
    queries = [
        Query(("c0", "c1", "c6"), parse_filter("c7 > 1", schema)),
        Query(("c2", "c8"), parse_filter("c3 > 1", schema), 2.0),
    ]
    sizes = dict.fromkeys(names, 1e6)
    made = arranged(scheme, queries, sizes, ColumnWishes(seed=1))
    for layout, part, together in zip(made.layouts, parts, (("c0", "c6"), ("c1", "c7")), strict=True):
        assert sorted(layout.columns) == sorted(part)
        first, last = sorted(layout.columns.index(name) for name in together)
        assert last == first + 1
    seek = 0.005 * 1e6**0.5
    # Apart: two columns lie between c0 and c6, and two between c1 and c7; two between c2 and c8, twice.
    assert column_cost(scheme, queries, sizes, PowerSeek()) == pytest.approx(4 * seek * 2**0.5 / 3)
    assert column_cost(made, queries, sizes, PowerSeek()) == 0.0
