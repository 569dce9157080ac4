"""Segments save time and change nothing: with them, without them, and when they vanish, the catalog says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import skipstone.catalog.chunk_files as chunk_files_module
import skipstone.catalog.segments as segments_module
from skipstone.catalog.location import Location
from skipstone.catalog.segments import read_segments
from skipstone.catalog.values import Change, Snapshot
from tests.catalog.world import NOW, SCHEMA, MemoryWorld, NativeWorld, append, optimize, two_layouts

SEGMENTS = "_skipstone/segments"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NativeWorld:
    monkeypatch.setattr(chunk_files_module, "FILES_PER_SEGMENT", 4)
    world = NativeWorld(tmp_path)
    world.catalog.create(SCHEMA)
    return world


def everything(snapshot: Snapshot, *, files: bool = True) -> dict[str, list[Any]]:
    """All that a snapshot says of its blocks, chunk by chunk, so that the arrangement in sets does not matter."""
    found = {}
    for chunk in snapshot.chunks:
        blocks, span = snapshot.blocks_of(chunk)
        names = ("layout", "part", "block", "row_group", "rows", "first_row_id", "last_row_id")
        told: list[Any] = [getattr(blocks, name)[span].tolist() for name in names]
        told += [blocks.column_bytes(name)[span].tolist() for name in ("a", "b")]
        told += [blocks.vectors[span].tolist(), blocks.scheme]
        told += [[blocks.files[i] for i in blocks.file_of[span]]] if files else []
        bounds = blocks.bounds("a")
        assert bounds is not None
        told += [
            bounds.minimum.to_pylist()[span],
            bounds.maximum_exact.to_pylist()[span],
            bounds.null_count.to_pylist(),
        ]
        told[-1] = told[-1][span]
        found[chunk] = told
    return found


def segments_of(world: NativeWorld) -> list[str]:
    return sorted(file.path for file in world.location.list(SEGMENTS) if file.path.endswith("manifest.json"))


def test_many_chunks_are_put_into_one_segment(world: NativeWorld) -> None:
    append(world, *(f"c{i}" for i in range(9)))
    assert len(segments_of(world)) == 1
    without = everything(world.catalog.snapshot())
    fresh = world.reopened()
    assert everything(fresh.snapshot()) == without
    assert set(without) == {f"c{i}" for i in range(9)}


def test_reading_from_a_segment_opens_no_catalog_file(world: NativeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    append(world, *(f"c{i}" for i in range(9)))
    monkeypatch.setattr(chunk_files_module.ChunkFiles, "_open", None)
    assert len(everything(world.reopened().snapshot())) == 9


def test_replaced_chunks_are_read_from_their_own_files(world: NativeWorld) -> None:
    append(world, *(f"c{i}" for i in range(9)))
    optimize(world, "c4", "c8")
    snapshot = world.reopened().snapshot()
    told = everything(snapshot)
    assert len(told["c4"][0]) == 2, "the new c4 has two blocks"
    assert len(told["c5"][0]) == 1
    assert everything(world.reopened().snapshot(1)).keys() == told.keys()


def test_segments_are_few_and_each_chunk_is_in_one_that_is_used(world: NativeWorld) -> None:
    for turn in range(40):
        append(world, f"c{turn}")
    live = {path for path in _catalog_files(world) if "chunk=c" in path}
    used = world.catalog._files.used_segments(dict.fromkeys(live, ""))  # type: ignore[attr-defined]
    assert len([name for name in used if name.endswith(".json")]) <= 4
    assert len(everything(world.reopened().snapshot())) == 40


def _catalog_files(world: NativeWorld) -> list[str]:
    prefix = "_skipstone/blocks/"
    return [file.path.removeprefix(prefix) for file in world.location.list(prefix) if file.path.endswith(".parquet")]


@pytest.mark.parametrize("loaded", [False, True])
def test_a_segment_that_vanishes_is_not_missed(world: NativeWorld, loaded: bool) -> None:
    append(world, *(f"c{i}" for i in range(9)))
    expected = everything(world.catalog.snapshot())
    catalog = world.reopened()
    snapshot = catalog.snapshot()
    if loaded:
        everything(snapshot)
    for file in list(world.location.list(SEGMENTS)):
        world.location.delete(file.path)
    assert everything(snapshot) == expected
    assert everything(world.reopened().snapshot()) == expected


def test_a_segment_without_manifest_or_of_another_format_is_passed_over(world: NativeWorld) -> None:
    append(world, *(f"c{i}" for i in range(9)))
    expected = everything(world.catalog.snapshot())
    (manifest,) = segments_of(world)
    content = json.loads(world.location.read(manifest))
    world.location.write(manifest, json.dumps({**content, "format": 2}).encode())
    assert everything(world.reopened().snapshot()) == expected
    world.location.delete(manifest)
    assert everything(world.reopened().snapshot()) == expected


def test_storage_that_fails_while_a_segment_is_written_does_not_fail_the_commit(
    world: NativeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(chunk_files_module, "write_segment", fails)
    assert append(world, *(f"c{i}" for i in range(9))) == 1
    assert len(world.reopened().snapshot().chunks) == 9


def test_vacuum_keeps_the_segments_in_use_and_deletes_the_others(world: NativeWorld) -> None:
    append(world, *(f"c{i}" for i in range(5)))
    append(world, *(f"d{i}" for i in range(5)))
    append(world, *(f"e{i}" for i in range(20)))
    before = segments_of(world)
    world.catalog.vacuum(NOW, dry_run=False, allow_short_retention=True)
    after = segments_of(world)
    assert set(after) < set(before)
    assert [f"{SEGMENTS}/{segment.manifest}" for segment in read_segments(world.location.child(SEGMENTS))] == after
    expected = everything(world.catalog.snapshot())
    assert everything(world.reopened().snapshot()) == expected


def test_groups_larger_than_a_row_group_are_merged_right(world: NativeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments_module, "ROWS_PER_GROUP", 7)
    for letter in "abc":
        chunks = tuple(world.chunk(f"{letter}{i}", 50, blocks=1 + 3 * i) for i in range(5))
        world.catalog.commit(Change("append", added=chunks), base=world.catalog.snapshot().version)
    assert everything(world.reopened().snapshot()) == everything(world.catalog.snapshot())
    assert sum(len(told[0]) for told in everything(world.reopened().snapshot()).values()) == 3 * 35


NAMES = st.sampled_from([f"n{i}" for i in range(8)])


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(st.tuples(st.sampled_from(["add", "replace", "remove", "group"]), st.sets(NAMES)), max_size=8))
def test_random_histories_are_told_as_the_catalog_in_memory_tells_them(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, set[str]]]
) -> None:
    native, memory = NativeWorld(tmp_path_factory.mktemp("table")), MemoryWorld()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_files_module, "FILES_PER_SEGMENT", 3)
        for world in (native, memory):
            world.catalog.create(SCHEMA)
        for verb, names in steps:
            here = set(memory.catalog.snapshot().chunks)
            chosen = sorted(names - here if verb == "add" else names & here)
            scheme = two_layouts() if verb == "group" else None
            chunks = tuple(native.chunk(name, 12, blocks=3, scheme=scheme) for name in chosen)
            changes = {
                "add": Change(verb, added=chunks),
                "replace": Change(verb, replaced=chunks),
                "group": Change(verb, replaced=chunks),
                "remove": Change(verb, removed=tuple(chosen)),
            }
            for world in (native, memory):
                world.catalog.commit(changes[verb], base=world.catalog.snapshot().version)
        for version in range(len(steps) + 1):
            expected = everything(memory.catalog.snapshot(version))
            assert everything(native.catalog.snapshot(version)) == expected
            assert everything(native.reopened().snapshot(version)) == expected


def test_a_place_without_segments_has_none(tmp_path: Path) -> None:
    assert read_segments(Location.at(tmp_path / "nothing")) == ()
