"""Real processes that load and lay out the same table: killed at every kind of moment, and side by side.

A process is killed by itself, by a signal that nothing can catch, at the n-th call that touches storage; the calls are
counted first. Where two processes meet, each waits just before its entry in the log until both are there.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import skipstone
import skipstone.catalog.native as native
from skipstone.catalog.location import Location
from skipstone.errors import CommitConflict, TableExists, TableNotFound
from skipstone.lake import Table, open_lake
from tests.relayout.test_random_schemes import bag

ROWS = pa.table({
    "id": range(600),
    "day": [number * 7 % 100 for number in range(600)],
    "name": [None if number % 11 == 0 else f"n{number % 13}" for number in range(600)],
})  # fmt: skip
MORE = pa.table({"id": range(600, 650), "day": [3] * 50, "name": ["n3"] * 50})
STATEMENTS = [f"SELECT id FROM t WHERE day BETWEEN {day} AND {day + 4}" for day in range(0, 96, 3)]
STATEMENTS += [f"SELECT id, day FROM t WHERE name = 'n{number}'" for number in range(13)]


# What the processes do.


def create(directory: str) -> None:
    open_lake(directory).create("t", Path(directory, "rows.parquet"), chunk_rows=200, block_rows=50)


def append(directory: str) -> None:
    open_lake(directory).table("t").append(MORE, block_rows=20)


def append_laid_out(directory: str) -> None:
    open_lake(directory).table("t").append(MORE, layout=True)


def optimize(directory: str, clustering: str = "qdtree") -> None:
    table = open_lake(directory).table("t")
    work = skipstone.Workload.of(STATEMENTS, {"t": table.schema})
    table.optimize(table.advise(work, clustering=clustering, block_rows=15))


def vacuum(directory: str) -> None:
    open_lake(directory).table("t").vacuum(timedelta(0), dry_run=False, allow_short_retention=True)


DEEDS: dict[str, Callable[..., None]] = {
    one.__name__: one for one in (create, append, append_laid_out, optimize, vacuum)
}


def with_each_call(before: Callable[[], None]) -> None:
    """Do something before each call that touches storage, in this process from now on."""

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def watching(*args: Any, **kwargs: Any) -> Any:
            # What numba keeps of its work is written by whichever process comes first, and is no part of the table.
            if not str(args[-1]).endswith((".nbi", ".nbc")):
                before()
            return call(*args, **kwargs)

        return watching

    for owner, name in (
        (os, "replace"),
        (Location, "write"),
        (Location, "delete"),
        (DeltaTable, "create_write_transaction"),
        (native, "create_table_with_add_actions"),
        (pq.ParquetWriter, "write_table"),
        (pq.ParquetWriter, "close"),
    ):
        setattr(owner, name, watched(getattr(owner, name)))


def run_and_die(deed: str, directory: str, last_call: int) -> None:
    """Run in a process of its own: do something and be killed at a call; say how many calls it takes if not."""
    counter = itertools.count(1)
    made = 0

    def count() -> None:
        nonlocal made
        made = next(counter)
        if made == last_call:
            os.kill(os.getpid(), signal.SIGKILL)

    with_each_call(count)
    DEEDS[deed](directory)
    print(made, flush=True)


def run_and_wait(deed: str, directory: str, *arguments: str) -> None:
    """Run in a process of its own: wait for a line of input before the entry in the log, and say what came of it."""
    commit = DeltaTable.create_write_transaction
    waited = threading.Event()

    def waiting(*args: Any, **kwargs: Any) -> None:
        if not waited.is_set():
            waited.set()
            print("about to commit", flush=True)
            sys.stdin.readline()
        commit(*args, **kwargs)

    DeltaTable.create_write_transaction = waiting  # type: ignore[method-assign]
    try:
        DEEDS[deed](directory, *arguments)
        print("succeeded", flush=True)
    except CommitConflict as conflict:
        print(f"conflict: {conflict}", flush=True)


# The processes.


def start(function: str, *arguments: object) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    source = f"from tests.relayout.test_processes import {function}; {function}(*{arguments!r})"
    return subprocess.Popen(
        [sys.executable, "-c", source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"},
    )


def calls_of(deed: str, directory: Path) -> int:
    """How many calls it takes when nobody is killed."""
    told, _ = start("run_and_die", deed, str(directory), 0).communicate()
    return int(told)


def killed(deed: str, directory: Path, last_call: int) -> None:
    process = start("run_and_die", deed, str(directory), last_call)
    told, _ = process.communicate()
    assert (process.returncode, told) == (-signal.SIGKILL, ""), "it should have been killed"


def prepared(directory: Path, deed: str) -> Path:
    """A lake in which the deed can be done."""
    directory.mkdir()
    pq.write_table(ROWS, directory / "rows.parquet", row_group_size=100)
    if deed == "create":
        return directory
    create(str(directory))
    if deed in ("append_laid_out", "vacuum"):
        optimize(str(directory))
    return directory


def require_whole(table: Table, *, rows: pa.Table) -> None:
    """The last version has these rows, and vacuum deletes exactly the data files that it does not use."""
    assert bag(table.scan().to_arrow()) == bag(rows)
    root = Path(table.location.uri)
    used = {file for blocks in table.snapshot().block_sets for file in blocks.files}
    there = {str(path.relative_to(root)) for path in (root / "data").rglob("*") if path.is_file()}
    assert used <= there
    planned = table.vacuum(timedelta(0), allow_short_retention=True)
    assert {file for file in planned.files if file.startswith("data/")} == there - used
    table.vacuum(timedelta(0), dry_run=False, allow_short_retention=True)
    assert {str(path.relative_to(root)) for path in (root / "data").rglob("*") if path.is_file()} == used
    assert bag(table.scan().to_arrow()) == bag(rows)


def require_survived(deed: str, directory: Path, version: int) -> None:
    """After a death: the old version or the new one, whole; and the same can be done again."""
    try:
        table = open_lake(directory).table("t")
    except TableNotFound:
        assert deed == "create"
        create(str(directory))
        require_whole(open_lake(directory).table("t"), rows=ROWS)
        return
    now = table.snapshot().version
    assert now - version in (0, 1)
    if deed == "create" and table.snapshot().version == 0:
        with pytest.raises(TableExists):
            create(str(directory))
        require_whole(table, rows=ROWS.slice(0, 0))
        table.append(ROWS)
        require_whole(table, rows=ROWS)
        return
    appended = deed.startswith("append") and now > version
    require_whole(table, rows=pa.concat_tables([ROWS, MORE]) if appended else ROWS)
    if now == version:
        DEEDS[deed](str(directory))
        require_whole(table, rows=pa.concat_tables([ROWS, MORE]) if deed.startswith("append") else ROWS)


def version_of(directory: Path) -> int:
    lake = open_lake(directory)
    return lake.table("t").snapshot().version if lake.tables() else 0


MOMENTS = {"early": 0.2, "late": 0.7, "at the last call": 1.0}


@pytest.mark.parametrize("deed", ["create", "optimize"])
def test_a_process_killed_at_some_moment_leaves_the_old_version_or_the_new_and_orphans_that_vacuum_finds(
    deed: str, tmp_path: Path
) -> None:
    calls = calls_of(deed, prepared(tmp_path / "counted", deed))
    assert calls > 10, "there must be something to die at"
    for name, share in MOMENTS.items():
        directory = prepared(tmp_path / name, deed)
        version = version_of(directory)
        killed(deed, directory, min(calls, 1 + int(share * (calls - 1))))
        require_survived(deed, directory, version)


@pytest.mark.slow
@pytest.mark.parametrize("deed", DEEDS)
def test_a_process_killed_at_any_call_leaves_the_old_version_or_the_new_and_orphans_that_vacuum_finds(
    deed: str, tmp_path: Path
) -> None:
    calls = calls_of(deed, prepared(tmp_path / "counted", deed))
    for call in range(1, calls + 1):
        directory = prepared(tmp_path / str(call), deed)
        version = version_of(directory)
        killed(deed, directory, call)
        require_survived(deed, directory, version)


def meet(directory: Path, first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, str]:
    """Let two processes come to their entries in the log, then the first make its own, then the second."""
    processes = [start("run_and_wait", deed, str(directory), *arguments) for deed, *arguments in (first, second)]
    outcomes = []
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "about to commit\n"
    for process in processes:
        told, _ = process.communicate("go\n")
        outcomes.append(told.strip())
    return outcomes[0], outcomes[1]


def test_of_two_processes_that_optimize_the_same_chunks_one_wins_and_the_other_is_told_of_the_conflict(
    tmp_path: Path,
) -> None:
    directory = prepared(tmp_path / "lake", "optimize")
    version = version_of(directory)
    won, lost = meet(directory, ("optimize", "qdtree"), ("optimize", "sort"))
    assert won == "succeeded"
    assert lost.startswith("conflict: "), lost
    table = open_lake(directory).table("t")
    for chunk in table.snapshot().chunks:
        assert chunk in lost
    assert table.snapshot().version == version + 1
    assert [layout.clustering for layout in table.describe().layouts] == ["qdtree"]
    require_whole(table, rows=ROWS)


@pytest.mark.parametrize("append_is_first", [True, False])
def test_a_process_that_appends_beside_one_that_optimizes_disturbs_it_not(
    append_is_first: bool, tmp_path: Path
) -> None:
    directory = prepared(tmp_path / "lake", "optimize")
    version = version_of(directory)
    both = (("append",), ("optimize",)) if append_is_first else (("optimize",), ("append",))
    assert meet(directory, *both) == ("succeeded", "succeeded")
    table = open_lake(directory).table("t")
    assert table.snapshot().version == version + 2
    require_whole(table, rows=pa.concat_tables([ROWS, MORE]))
