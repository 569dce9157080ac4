"""Two operations at once, the one stopped just before its entry in the log while the other runs from start to end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import skipstone.catalog.native as native_module
from skipstone.catalog.native import NativeCatalog
from skipstone.catalog.values import Change
from skipstone.errors import CommitConflict, SkipstoneError, TableExists
from tests.catalog.test_behaviours import WIDER
from tests.catalog.world import NOW, SCHEMA, NativeWorld, append, content, optimize

Operation = Callable[[NativeWorld], Any]


def append_new(world: NativeWorld) -> None:
    append(world, "new")


def append_same(world: NativeWorld) -> None:
    append(world, "same")


def optimize_one(world: NativeWorld) -> None:
    optimize(world, "one")


def optimize_two(world: NativeWorld) -> None:
    optimize(world, "two")


def restore_first(world: NativeWorld) -> None:
    world.catalog.restore(1)


def vacuum_all(world: NativeWorld) -> None:
    world.catalog.vacuum(NOW, dry_run=False, allow_short_retention=True)


def change_schema(world: NativeWorld) -> None:
    world.catalog.commit(Change("widen", schema=WIDER), base=world.catalog.snapshot().version)


# The first is stopped before its commit, the second runs meanwhile and must succeed; then the first goes on and ...
PAIRS: tuple[tuple[Operation, Operation, type[SkipstoneError] | None], ...] = (
    (append_new, append_same, None),
    (append_same, append_same, CommitConflict),
    (append_new, optimize_one, None),
    (append_new, restore_first, None),
    (append_new, change_schema, None),
    (optimize_one, append_new, None),
    (optimize_one, optimize_two, None),
    (optimize_one, optimize_one, CommitConflict),
    (optimize_one, restore_first, CommitConflict),
    (optimize_one, change_schema, None),
    (change_schema, optimize_one, None),
    (change_schema, change_schema, CommitConflict),
    (restore_first, append_new, CommitConflict),
    (restore_first, optimize_one, CommitConflict),
    (restore_first, restore_first, CommitConflict),
    (restore_first, vacuum_all, CommitConflict),
    (vacuum_all, append_new, None),
    (vacuum_all, restore_first, None),
)


@pytest.mark.parametrize(("first", "second", "outcome"), PAIRS, ids=lambda one: getattr(one, "__name__", "succeeds"))
def test_a_commit_made_between_decision_and_entry_is_noticed(
    tmp_path: Path, first: Operation, second: Operation, outcome: type[SkipstoneError] | None
) -> None:
    world = NativeWorld(tmp_path)
    world.catalog.create(SCHEMA)
    append(world, "one", "two")
    optimize(world, "one")
    error = run_interrupted(world, first, second)
    if outcome is None:
        assert error is None
    else:
        assert isinstance(error, outcome), error
    snapshot = world.reopened().snapshot()
    missing = world.location.missing(sorted(file for files in content(snapshot).values() for file in files))
    assert missing == []
    assert {"one", "two"} <= set(snapshot.chunks)


def run_interrupted(world: NativeWorld, first: Operation, second: Operation) -> BaseException | None:
    """Run `second` inside `first`, at the moment in which `first` is about to make its entry."""
    commit = DeltaTable.create_write_transaction
    ready, go_on = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def stopping(table: DeltaTable, *args: Any, **kwargs: Any) -> None:
        if threading.current_thread() is thread and not ready.is_set():
            ready.set()
            assert go_on.wait(30)
        commit(table, *args, **kwargs)

    def run_first() -> None:
        try:
            first(world)
        except BaseException as error:
            errors.append(error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaTable, "create_write_transaction", stopping)
        thread = threading.Thread(target=run_first)
        thread.start()
        assert ready.wait(30)
        try:
            second(NativeWorld(Path(world.location.uri)))
        finally:
            go_on.set()
            thread.join()
    return errors[0] if errors else None


def test_the_suite_would_notice_a_catalog_that_does_not_look_at_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = NativeWorld(tmp_path)
    world.catalog.create(SCHEMA)
    append(world, "one")
    monkeypatch.setattr(native_module, "require_applicable", lambda *_: None)
    error = run_interrupted(world, optimize_one, optimize_one)
    assert error is None, "without the rule nobody is told that the one change has undone the other"


def test_many_threads_append_at_once_and_none_is_lost(tmp_path: Path) -> None:
    world = NativeWorld(tmp_path)
    world.catalog.create(SCHEMA)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(4):
                append(world if number % 2 else NativeWorld(tmp_path), f"c{number}-{turn}")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(world.catalog.snapshot().chunks) == 24
    assert world.catalog.snapshot().version == 24


OPTIMIZE = """
import sys
from pathlib import Path
from skipstone.errors import CommitConflict
from tests.catalog.world import NativeWorld, optimize
world = NativeWorld(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
try:
    optimize(world, *sys.argv[2].split(","), base=1)
    print("won")
except CommitConflict:
    print("conflict")
"""


def run_two(path: Path, first: str, second: str) -> list[str]:
    """Two processes rewrite chunks on top of version 1; what became of each, sorted."""
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPTIMIZE, str(path), names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for names in (first, second)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return sorted(process.communicate()[0].strip() for process in processes)


def test_two_processes_on_the_same_chunks_one_wins(tmp_path: Path) -> None:
    world = NativeWorld(tmp_path)
    world.catalog.create(SCHEMA)
    append(world, "one", "two", "three")
    assert run_two(tmp_path, "one,two", "two,three") == ["conflict", "won"]
    assert world.catalog.snapshot().chunks == ("one", "three", "two")
    assert world.catalog.snapshot().version == 2


def test_two_processes_on_different_chunks_both_win(tmp_path: Path) -> None:
    world = NativeWorld(tmp_path)
    world.catalog.create(SCHEMA)
    append(world, "one", "two", "three")
    assert run_two(tmp_path, "one", "two,three") == ["won", "won"]
    assert world.catalog.snapshot().version == 3


def test_two_threads_make_one_table_once(tmp_path: Path) -> None:
    outcomes: list[str] = []
    barrier = threading.Barrier(2)

    def make() -> None:
        catalog = NativeCatalog(NativeWorld(tmp_path).location)
        barrier.wait()
        try:
            catalog.create(SCHEMA)
            outcomes.append("made")
        except TableExists:
            outcomes.append("exists")

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["exists", "made"]
