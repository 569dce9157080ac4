"""A writer may die at any call that touches storage: a reader then sees the old version or the new one, nothing else.

Death is an exception that no code of ours catches, raised at the n-th such call, for every n there is; and, with less
control but nothing simulated, a signal that kills a process.
"""

from __future__ import annotations

import os
import posixpath
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.transaction import create_table_with_add_actions

from skipstone.catalog.location import Location
from skipstone.catalog.native import NativeCatalog
from skipstone.catalog.values import Change, ChunkFacts, NewChunk
from skipstone.errors import TableNotFound
from skipstone.layout.scheme import Scheme
from skipstone.store.reader import file_blocks, read_blocks
from skipstone.store.writer import BlockTarget, write_blocks
from tests.catalog.world import NOW, SCHEMA, content

ROWS = pa.record_batch({"a": [1, 2, 3, 4], "b": ["w", "x", "y", "z"]}, schema=SCHEMA)


@pytest.fixture(autouse=True)
def _segments_from_the_first_chunk_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skipstone.catalog.chunk_files.FILES_PER_SEGMENT", 1)


class Died(BaseException):
    """Not an Exception, so that nothing tidies up after it as it would after an error."""


class Storage:
    """Counts the calls that touch storage and lets the writer die at one of them, before or after it took effect."""

    def __init__(self) -> None:
        self.calls = 0
        self.die_before: int | None = None
        self.die_after: int | None = None

    def watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watching(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            number = self.calls  # calls are nested: this one may make others before it returns
            if number == self.die_before:
                raise Died
            result = call(*args, **kwargs)
            if number == self.die_after:
                raise Died
            return result

        return watching


@contextmanager
def storage_watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    storage = Storage()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", storage.watched(os.replace))
        patch.setattr(Location, "write", storage.watched(Location.write))
        patch.setattr(DeltaTable, "create_write_transaction", storage.watched(DeltaTable.create_write_transaction))
        patch.setattr(
            "skipstone.catalog.native.create_table_with_add_actions", storage.watched(create_table_with_add_actions)
        )
        patch.setattr(Location, "delete", storage.watched(Location.delete))
        patch.setattr(pq.ParquetWriter, "write_table", storage.watched(pq.ParquetWriter.write_table))
        yield storage


def written(location: Location, name: str) -> NewChunk:
    """A chunk whose rows are really there, in two blocks of two files."""
    target = BlockTarget.of(location, name, SCHEMA, Scheme.raw(SCHEMA.names))
    one_per_file = BlockTarget(location, name, target.schema, row_groups_per_file=1)
    found = write_blocks(one_per_file, ((block, ROWS.slice(2 * block, 2), None) for block in range(2)))
    return NewChunk(name, Scheme.raw(SCHEMA.names), found.blocks, ChunkFacts(4, found.checksums))


def rows_read(location: Location) -> dict[str, int]:
    """Read every row of every chunk of the latest version, as somebody new would."""
    snapshot = NativeCatalog(location).snapshot()
    counts = {}
    for chunk in snapshot.chunks:
        blocks, span = snapshot.blocks_of(chunk)
        reads = file_blocks([blocks.files[i] for i in blocks.file_of[span]], blocks.row_group[span].tolist())
        counts[chunk] = sum(batch.num_rows for batch in read_blocks(location, reads, snapshot.schema))
    return counts


def files_of_latest(location: Location) -> set[str]:
    """What the latest version needs, found without the catalog: from the Delta log and the data files it names."""
    blocks = location.child("_skipstone", "blocks")
    table = DeltaTable(blocks.uri)
    catalog_files = pa.table(table.get_add_actions(flatten=True))["path"].to_pylist()
    data_files = {file for file in table.to_pyarrow_table()["file"].to_pylist() if file is not None}
    return data_files | {posixpath.join("_skipstone", "blocks", path) for path in catalog_files}


def is_orphan_by_definition(path: str, used: set[str], there: set[str]) -> bool:
    if path.startswith("_skipstone/segments/"):
        # One that is complete may be of use; what a dead writer left of one is not.
        return posixpath.join(posixpath.dirname(path), "manifest.json") not in there
    kept = ("_skipstone/table.json", "_skipstone/schemes/", "_skipstone/blocks/_delta_log/")
    return path not in used and (path.endswith(".unfinished") or not path.startswith(kept))


def require_consistent(location: Location) -> None:
    """The latest version can be read whole, and vacuum deletes exactly what no version needs."""
    before = rows_read(location)
    assert all(count == 4 for count in before.values())
    NativeCatalog(location).vacuum(NOW, dry_run=False, allow_short_retention=True)
    planned = NativeCatalog(location).vacuum(NOW, allow_short_retention=True)
    used = files_of_latest(location)
    there = {file.path for file in location.list()}
    assert used <= there, "vacuum must not delete what is used"
    # What moving the horizon has replaced itself is left for the next time.
    assert set(planned.files) == {path for path in there if is_orphan_by_definition(path, used, there)}
    NativeCatalog(location).vacuum(NOW, dry_run=False, allow_short_retention=True)
    assert rows_read(location) == before


def prepared_table(path: Path) -> Location:
    location = Location.at(path)
    catalog = NativeCatalog(location)
    catalog.create(SCHEMA)
    catalog.commit(Change("append", added=(written(location, "one"), written(location, "two"))), base=0)
    return location


def append_three(location: Location) -> None:
    catalog = NativeCatalog(location)
    base = catalog.snapshot().version
    catalog.commit(Change("append", added=(written(location, "three"),)), base=base)


def rewrite_all(location: Location) -> None:
    catalog = NativeCatalog(location)
    base = catalog.snapshot().version
    replaced = (written(location, "one"), written(location, "two"))
    catalog.commit(Change("optimize", replaced=replaced, properties=(("k", "v"),)), base=base)


def restore_empty(location: Location) -> None:
    NativeCatalog(location).restore(0)


def vacuum_after_rewrite(location: Location) -> None:
    NativeCatalog(location).vacuum(NOW, dry_run=False, allow_short_retention=True)


OPERATIONS = (append_three, rewrite_all, restore_empty, vacuum_after_rewrite)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("when", ["before", "after"])
def test_death_at_every_call_leaves_the_old_version_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: Callable[[Location], None], when: str
) -> None:
    calls = calls_made_by(operation, tmp_path / "count", monkeypatch)
    assert calls >= 2, "there must be something to die at"
    for call in range(1, calls + 1):
        location = table_for(operation, tmp_path / str(call))
        old = content(NativeCatalog(location).snapshot())
        with storage_watched(monkeypatch) as storage:
            setattr(storage, f"die_{when}", call)
            with pytest.raises(Died):
                operation(location)
        found = content(NativeCatalog(location).snapshot())
        if found != old:
            assert completed(operation, found, old), f"half done after call {call}"
        require_consistent(location)


def table_for(operation: Callable[[Location], None], path: Path) -> Location:
    location = prepared_table(path)
    if operation is vacuum_after_rewrite:
        rewrite_all(location)
    return location


def calls_made_by(operation: Callable[[Location], None], path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    location = table_for(operation, path)
    with storage_watched(monkeypatch) as storage:
        operation(location)
        return storage.calls


def completed(
    operation: Callable[[Location], None], found: dict[str, tuple[str, ...]], old: dict[str, tuple[str, ...]]
) -> bool:
    if operation is append_three:
        return set(found) == {"one", "two", "three"} and found["one"] == old["one"] and found["two"] == old["two"]
    if operation is rewrite_all:
        return set(found) == set(old) and found["one"] != old["one"] and found["two"] != old["two"]
    return operation is restore_empty and found == {}


@pytest.mark.parametrize("when", ["before", "after"])
def test_death_while_a_table_is_made_leaves_none_or_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    call = 0
    while True:
        call += 1
        location = Location.at(tmp_path / str(call))
        with storage_watched(monkeypatch) as storage:
            setattr(storage, f"die_{when}", call)
            try:
                NativeCatalog(location).create(SCHEMA)
            except Died:
                pass
            else:
                break
        try:
            assert NativeCatalog(location).snapshot().schema == SCHEMA
        except TableNotFound:
            assert NativeCatalog(location).create(SCHEMA).version == 0, "what is left over must be no hindrance"
    assert call > 3


def test_an_answer_that_is_lost_on_the_way_does_not_commit_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = prepared_table(tmp_path)
    commit = DeltaTable.create_write_transaction

    def answers_nothing(*args: Any, **kwargs: Any) -> None:
        commit(*args, **kwargs)
        raise OSError("connection reset")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", answers_nothing)
    append_three(location)
    snapshot = NativeCatalog(location).snapshot()
    assert (snapshot.version, snapshot.chunks) == (2, ("one", "three", "two"))


def test_storage_that_fails_is_said_to_have_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location = prepared_table(tmp_path)

    def fails(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", fails)
    with pytest.raises(OSError, match="the commit of version 2 failed, nothing was committed: disk full"):
        append_three(location)
    assert NativeCatalog(location).snapshot().version == 1


def test_a_commit_whose_files_have_been_deleted_is_refused(tmp_path: Path) -> None:
    location = prepared_table(tmp_path)
    chunk = written(location, "three")
    location.delete(chunk.blocks.files[1])
    with pytest.raises(ValueError, match="these data files are not there"):
        NativeCatalog(location).commit(Change("append", added=(chunk,)), base=1)


LOOP = """
import sys
from skipstone.catalog.location import Location
from skipstone.catalog.native import NativeCatalog
from skipstone.catalog.values import Change
from tests.catalog.test_crashes import written
location, prefix = Location.at(sys.argv[1]), sys.argv[2]
for number in range(10_000):
    catalog = NativeCatalog(location)
    base = catalog.snapshot().version
    chunk = written(location, f"{prefix}-{number}")
    catalog.commit(Change("append", added=(chunk,)), base=base)
    print(chunk.name, flush=True)
"""


def start_loop(location: Location, prefix: str) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(LOOP), location.uri, prefix],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_a_killed_process_loses_nothing_that_it_was_told_is_committed(tmp_path: Path) -> None:
    location = prepared_table(tmp_path)
    acknowledged: set[str] = {"one", "two"}
    loops = [start_loop(location, letter) for letter in "ab"]
    for loop in loops:
        assert loop.stdout is not None
        acknowledged.add(loop.stdout.readline().strip())
    time.sleep(0.2)
    for loop in loops:
        loop.send_signal(signal.SIGKILL)
        out, _ = loop.communicate()
        acknowledged.update(out.split())
    found = set(rows_read(location))
    assert acknowledged <= found
    assert len(found - acknowledged) <= 2, "each killed process may have committed once more than it could say"
    require_consistent(location)
