"""What every catalog does, whichever it is: one suite, run against each."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skipstone.catalog.values import Change
from skipstone.errors import CommitConflict, InvalidInput, SnapshotNotFound, TableExists, TableNotFound
from skipstone.layout.scheme import Layout, Scheme
from skipstone.predicate.parsing import parse_filter
from tests.catalog.world import (
    NOW,
    SCHEMA,
    MemoryWorld,
    NativeWorld,
    World,
    append,
    content,
    make_chunk,
    optimize,
    two_layouts,
)

WIDER = SCHEMA.append(pa.field("c", pa.float64()))
NARROWER = pa.schema([SCHEMA.field("a")])


@pytest.fixture(params=["memory", "native"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return MemoryWorld() if request.param == "memory" else NativeWorld(tmp_path / "a table's home")


@pytest.fixture
def world(empty: World) -> World:
    empty.catalog.create(SCHEMA)
    return empty


def test_a_new_table_is_empty_and_keeps_schema_and_properties(empty: World) -> None:
    snapshot = empty.catalog.create(SCHEMA, properties=(("owner", "me"), ("chunk_rows", "10")))
    assert (snapshot.version, snapshot.chunks, snapshot.block_sets) == (0, (), ())
    assert snapshot.schema.equals(SCHEMA)
    assert snapshot.properties == (("chunk_rows", "10"), ("owner", "me"))


def test_a_table_is_created_once(world: World) -> None:
    table_id = world.catalog.snapshot().table_id
    with pytest.raises(TableExists):
        world.catalog.create(SCHEMA)
    assert world.catalog.snapshot().table_id == table_id


def test_without_a_table_there_is_nothing_to_read(empty: World) -> None:
    with pytest.raises(TableNotFound):
        empty.catalog.snapshot()


def test_an_appended_chunk_is_in_the_next_snapshot_and_not_in_the_last(world: World) -> None:
    before = world.catalog.snapshot()
    version = append(world, "one", "two")
    assert version == before.version + 1
    assert world.catalog.snapshot().chunks == ("one", "two")
    assert world.catalog.snapshot(before.version).chunks == ()
    assert before.chunks == ()


def test_everything_said_of_a_chunk_is_found_again(world: World) -> None:
    chunk = world.chunk("one", 100, blocks=7, scheme=two_layouts())
    world.catalog.commit(Change("append", added=(chunk,)), base=0)
    snapshot = world.catalog.snapshot()
    blocks, span = snapshot.blocks_of("one")
    expected = chunk.blocks.rows
    assert snapshot.facts("one") == chunk.facts
    assert snapshot.scheme_of("one") == two_layouts()
    assert span == slice(0, 14)
    for name in ("layout", "part", "block", "row_group", "rows", "first_row_id", "last_row_id"):
        assert getattr(blocks, name).tolist() == expected[name].to_pylist(), name
    assert [blocks.files[i] for i in blocks.file_of] == expected["file"].to_pylist()
    assert [bytes(vector) for vector in blocks.vectors] == expected["vector"].to_pylist()
    assert blocks.column_bytes("b").tolist() == [sizes[1] for sizes in expected["column_bytes"].to_pylist()]
    assert blocks.column_bytes("not stored").tolist() == [-1] * 14
    bounds = blocks.bounds("a")
    assert bounds is not None
    assert bounds.maximum.equals(chunk.blocks.bounds[0][1].maximum)
    assert blocks.bounds("b") is None


def test_features_are_found_again_as_values(world: World) -> None:
    features = tuple(parse_filter(text, SCHEMA) for text in ("a > 5 AND b LIKE 'x%'", "a IN (1, 2) OR b IS NOT NULL"))
    layout = Layout(("a", "b"), (0, 1), frozenset("ab"))
    world.catalog.commit(Change("append", added=(world.chunk("one", scheme=Scheme((layout,), features)),)), base=0)
    assert world.catalog.snapshot().scheme_of("one").features == features


def test_chunks_of_one_scheme_share_arrays_and_others_do_not(world: World) -> None:
    chunks = (
        world.chunk("z", 3),
        world.chunk("k", 8, blocks=2, scheme=two_layouts()),
        world.chunk("a", 10, blocks=3),
    )
    world.catalog.commit(Change("append", added=chunks), base=0)
    raw, grouped = world.catalog.snapshot().block_sets
    assert (raw.chunks, grouped.chunks) == (("a", "z"), ("k",))
    assert raw.offsets.tolist() == [0, 3, 4]
    assert raw.chunk_of.tolist() == [0, 0, 0, 1]
    assert raw.rows.tolist() == [3, 3, 4, 3]
    assert raw.of_chunk("z") == slice(3, 4)


def test_a_replaced_chunk_is_another_and_the_rest_stays(world: World) -> None:
    append(world, "one", "two")
    before = content(world.catalog.snapshot())
    optimize(world, "one")
    after = content(world.catalog.snapshot())
    assert after["two"] == before["two"]
    assert after["one"] != before["one"]


def test_replacing_removing_and_adding_are_one_commit(world: World) -> None:
    append(world, "one", "two")
    change = Change("mixed", (world.chunk("three"),), (world.chunk("two"),), ("one",), WIDER, (("k", "v"),))
    assert world.catalog.commit(change, base=1) == 2
    snapshot = world.catalog.snapshot()
    assert snapshot.chunks == ("three", "two")
    assert snapshot.schema == WIDER
    assert snapshot.properties == (("k", "v"),)
    assert world.catalog.snapshot(1).schema == SCHEMA


# What two writers do to each other: the first to commit always succeeds; this is what happens to the second.
SECOND: tuple[tuple[str, str, str], ...] = (
    ("append new", "append other", "ok"),
    ("append new", "append new", "conflict"),
    ("append new", "optimize one", "ok"),
    ("optimize one", "append new", "ok"),
    ("optimize one", "optimize one", "conflict"),
    ("optimize one", "optimize two", "ok"),
    ("optimize one", "remove one", "conflict"),
    ("remove one", "optimize one", "conflict"),
    ("remove one", "remove one", "conflict"),
    ("remove one", "remove two", "ok"),
    ("widen", "append new", "ok"),
    ("widen", "optimize one", "ok"),
    ("widen", "widen", "conflict"),
    ("widen", "set properties", "ok"),
    ("set properties", "append new", "ok"),
    ("narrow", "append new", "conflict"),
    ("narrow", "optimize one", "conflict"),
    ("narrow", "remove one", "ok"),
    ("append new", "widen", "ok"),
)


def change_called(name: str, world: World) -> Change:
    verb, _, what = name.partition(" ")
    makers: dict[str, Callable[[], Change]] = {
        "append": lambda: Change(name, added=(world.chunk(what),)),
        "optimize": lambda: Change(name, replaced=(world.chunk(what),)),
        "remove": lambda: Change(name, removed=(what,)),
        "widen": lambda: Change(name, schema=WIDER),
        "narrow": lambda: Change(name, schema=NARROWER),
        "set": lambda: Change(name, properties=(("k", "v"),)),
    }
    return makers[verb]()


@pytest.mark.parametrize(("first", "second", "outcome"), SECOND)
def test_two_writers_on_one_base(world: World, first: str, second: str, outcome: str) -> None:
    base = append(world, "one", "two")
    world.catalog.commit(change_called(first, world), base=base)
    between = content(world.catalog.snapshot())
    late = change_called(second, world)
    if outcome == "conflict":
        with pytest.raises(CommitConflict, match="start again"):
            world.catalog.commit(late, base=base)
        assert content(world.catalog.snapshot()) == between
        assert world.catalog.snapshot().version == base + 1
        return
    assert world.catalog.commit(late, base=base) == base + 2
    after = content(world.catalog.snapshot())
    touched = {chunk.name for chunk in (*late.added, *late.replaced)} | set(late.removed)
    assert {name: files for name, files in between.items() if name not in touched}.items() <= after.items()
    assert {chunk.name: chunk.blocks.files for chunk in (*late.added, *late.replaced)}.items() <= after.items()


def test_both_schema_and_properties_survive_two_writers(world: World) -> None:
    world.catalog.commit(Change("widen", schema=WIDER), base=0)
    world.catalog.commit(Change("set", properties=(("k", "v"),)), base=0)
    snapshot = world.catalog.snapshot()
    assert (snapshot.schema, snapshot.properties) == (WIDER, (("k", "v"),))


def test_a_conflict_names_the_chunks(world: World) -> None:
    append(world, "one", "two")
    optimize(world, "one", base=1)
    with pytest.raises(CommitConflict) as caught:
        optimize(world, "two", "one", base=1)
    assert str(caught.value) == (
        "optimize: another writer changed these chunks first: one. "
        "Nothing was lost and nothing of this change was committed; start again from the latest snapshot"
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda w: Change("x", added=(w.chunk("a"), w.chunk("a"))), "named twice: a"),
        (lambda w: Change("x", added=(w.chunk("one"),)), "the table has chunks of these names already: one"),
        (lambda w: Change("x", replaced=(w.chunk("none"),)), "the base version has no such chunks: none"),
        (lambda w: Change("x", removed=("none",)), "the base version has no such chunks: none"),
        (lambda w: Change("x", added=(make_chunk("a/b"),)), "cannot name a chunk"),
        (lambda w: Change("x", added=(make_chunk("_table"),)), "cannot name a chunk"),
        (lambda w: Change("x", added=(w.chunk("a", 10, blocks=0),)), "a chunk needs at least one row"),
    ],
)
def test_a_change_without_sense_is_refused(world: World, change: Callable[[World], Change], sentence: str) -> None:
    base = append(world, "one")
    with pytest.raises(InvalidInput, match=sentence):
        world.catalog.commit(change(world), base=base)
    assert world.catalog.snapshot().version == base


def test_a_layout_that_lacks_rows_is_refused(world: World) -> None:
    chunk = world.chunk("a", 10)
    wrong = type(chunk)(chunk.name, chunk.scheme, chunk.blocks, type(chunk.facts)(11))
    with pytest.raises(
        InvalidInput, match='chunk "a" has 11 rows, but its layout 0, which must hold all of them, has 10'
    ):
        world.catalog.commit(Change("x", added=(wrong,)), base=0)


def test_the_history_tells_what_was_done_and_when(world: World) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    append(world, "one", "two")
    change = Change("optimize", replaced=(world.chunk("one"),), removed=("two",), metrics=(("rows", 3), ("gain", 0.5)))
    world.catalog.commit(change, base=1)
    latest, middle, first = world.catalog.history()
    assert (latest.version, latest.operation, latest.replaced, latest.removed) == (2, "optimize", 1, 1)
    assert latest.metrics == (("rows", 3), ("gain", 0.5))
    assert (middle.operation, middle.added, first.operation) == ("append", 2, "create")
    assert before <= first.timestamp <= middle.timestamp <= latest.timestamp <= datetime.now(UTC)
    assert world.catalog.history(2) == (latest, middle)


def test_a_point_in_time_is_the_version_that_was_the_latest_then(world: World) -> None:
    append(world, "one")
    times = [commit.timestamp for commit in reversed(world.catalog.history())]
    assert world.catalog.snapshot(timestamp=times[1]).version == 1
    assert world.catalog.snapshot(timestamp=times[1] + timedelta(days=1)).version == 1
    with pytest.raises(SnapshotNotFound, match="did not exist yet"):
        world.catalog.snapshot(timestamp=times[0] - timedelta(days=1))
    with pytest.raises(InvalidInput):
        world.catalog.snapshot(1, timestamp=times[1])


@pytest.mark.parametrize("version", [7, -1])
def test_a_version_that_never_was_is_not_found(world: World, version: int) -> None:
    with pytest.raises(SnapshotNotFound, match=f"no version {version}"):
        world.catalog.snapshot(version)


def test_restore_brings_everything_back_as_a_new_version(world: World) -> None:
    append(world, "one", "two")
    old = world.catalog.snapshot()
    world.catalog.commit(Change("mixed", (world.chunk("x"),), (world.chunk("one"),), ("two",), WIDER), base=1)
    version = world.catalog.restore(1)
    restored = world.catalog.snapshot()
    assert restored.version == version == 3
    assert content(restored) == content(old)
    assert restored.schema == SCHEMA
    assert world.catalog.history(1)[0].operation == "restore"
    assert world.catalog.restore(2) == 4
    assert world.catalog.snapshot().chunks == ("one", "x")


def test_work_begun_before_a_restore_conflicts_only_where_the_restore_changed_something(world: World) -> None:
    append(world, "one", "two")
    optimize(world, "one")
    world.catalog.restore(1)
    assert optimize(world, "two", base=2) == 4
    with pytest.raises(CommitConflict):
        optimize(world, "one", base=2)


def test_vacuum_deletes_what_only_old_versions_use(world: World) -> None:
    append(world, "one", "two")
    old = content(world.catalog.snapshot())
    optimize(world, "one")
    assert world.catalog.vacuum().files == (), "within the retention nothing goes"
    planned = world.catalog.vacuum(NOW, allow_short_retention=True)
    data = [file for file in planned.files if file.startswith("data/")]
    assert (tuple(data), planned.dry_run, planned.oldest_version) == (old["one"], True, 2)
    assert content(world.catalog.snapshot(1)) == old, "a dry run deletes nothing"
    done = world.catalog.vacuum(NOW, dry_run=False, allow_short_retention=True)
    assert done.files == planned.files
    assert world.catalog.snapshot().chunks == ("one", "two")
    again = world.catalog.vacuum(NOW, dry_run=False, allow_short_retention=True)
    assert [file for file in again.files if file.startswith("data/")] == []


def test_a_vacuumed_version_is_said_to_be_gone(world: World) -> None:
    append(world, "one")
    optimize(world, "one")
    world.catalog.vacuum(NOW, dry_run=False, allow_short_retention=True)
    for use in (world.catalog.snapshot, world.catalog.restore):
        with pytest.raises(SnapshotNotFound, match="version 1 has been vacuumed; the oldest that is left is 2"):
            use(1)
    by_version = {commit.version: commit.restorable for commit in world.catalog.history()}
    assert by_version == {0: False, 1: False, 2: True, 3: True}
    with pytest.raises(SnapshotNotFound):
        world.catalog.snapshot(timestamp=world.catalog.history()[-1].timestamp)


def test_a_restore_does_not_bring_back_what_was_vacuumed_before(world: World) -> None:
    append(world, "one")
    optimize(world, "one")
    world.catalog.vacuum(NOW, dry_run=False, allow_short_retention=True)
    world.catalog.restore(2)
    with pytest.raises(SnapshotNotFound):
        world.catalog.snapshot(1)
    assert world.catalog.snapshot().chunks == ("one",)


def test_vacuum_has_a_floor(world: World) -> None:
    with pytest.raises(InvalidInput, match="below the floor of 7 days"):
        world.catalog.vacuum(timedelta(days=6))
    with pytest.raises(InvalidInput, match="negative"):
        world.catalog.vacuum(timedelta(days=-1), allow_short_retention=True)


def test_vectors_that_are_unknown_skip_nothing(world: World) -> None:
    chunk = world.chunk("one", 10, blocks=3)
    vectors = pa.array([b"\x01\x02", None, b"\x00\x00"], pa.binary())
    position = chunk.blocks.rows.schema.get_field_index("vector")
    rows = chunk.blocks.rows.set_column(position, chunk.blocks.rows.schema.field(position), vectors)
    blocks = type(chunk.blocks)(rows, chunk.blocks.columns, chunk.blocks.bounds)
    world.catalog.commit(Change("append", added=(type(chunk)("one", chunk.scheme, blocks, chunk.facts),)), base=0)
    assert world.catalog.snapshot().block_sets[0].vectors.tolist() == [[1, 2], [255, 255], [0, 0]]


def test_blocks_are_put_in_order(world: World) -> None:
    chunk = world.chunk("one", 10, blocks=4)
    rows = chunk.blocks.rows.take(pa.array([2, 0, 3, 1]))
    bounds = tuple((text, one.take(np.array([2, 0, 3, 1]))) for text, one in chunk.blocks.bounds)
    blocks = type(chunk.blocks)(rows, chunk.blocks.columns, bounds)
    world.catalog.commit(Change("append", added=(type(chunk)("one", chunk.scheme, blocks, chunk.facts),)), base=0)
    found = world.catalog.snapshot().block_sets[0]
    assert found.block.tolist() == [0, 1, 2, 3]
    known: Any = found.bounds("a")
    assert known.minimum.to_pylist() == found.first_row_id.tolist()


def test_what_is_committed_can_be_pickled() -> None:
    change = Change("append", added=(make_chunk("one", scheme=two_layouts()),), schema=WIDER)
    again = pickle.loads(pickle.dumps(change))
    assert again.added[0].scheme == change.added[0].scheme
    assert again.added[0].blocks.rows.equals(change.added[0].blocks.rows)
