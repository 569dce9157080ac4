"""Rows stream: what is held does not grow with the table, the order is that of the table, and errors come through."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from skipstone.lake import Table, open_lake
from skipstone.scan import read as reading
from skipstone.scan.scan import Scan
from skipstone.scan.streaming import BATCHES_AHEAD, streamed

THREADS = 2


class Counted:
    """Tasks of many batches that count how many have been read."""

    def __init__(self) -> None:
        self.read = 0
        self._lock = threading.Lock()

    def __call__(self, task: int) -> Iterator[int]:
        for batch in range(50):
            with self._lock:
                self.read += 1
            yield task * 100 + batch


def test_whoever_takes_one_batch_makes_only_a_few_be_read() -> None:
    counted = Counted()
    batches = streamed(range(20), counted, threads=THREADS)
    assert next(batches) == 0
    batches.close()  # type: ignore[attr-defined] # a generator: the threads end here
    assert counted.read <= (THREADS + 1) * (BATCHES_AHEAD + 1) + 1


def test_the_order_is_that_of_the_tasks_whoever_is_faster() -> None:
    found = list(streamed(range(7), Counted(), threads=3))
    assert found == [task * 100 + batch for task in range(7) for batch in range(50)]


def test_an_error_is_raised_where_its_batches_are_taken() -> None:
    def read(task: int) -> Iterator[int]:
        yield task
        if task == 2:
            raise OSError("the disk is gone")

    taken: list[int] = []
    with pytest.raises(OSError, match="the disk is gone"):
        taken.extend(streamed(range(9), read, threads=THREADS))
    assert taken == [0, 1, 2]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    monkeypatch.setattr(reading, "TASK_ROWS", 100)
    rows = pa.table({"id": range(2000), "kind": [number % 2 for number in range(2000)]})
    return open_lake(tmp_path).create("t", rows, block_rows=10, chunk_rows=100)


def test_a_scan_of_many_tasks_gives_all_rows_in_order_and_can_be_left_at_any_time(table: Table) -> None:
    def scan() -> Scan:
        return Scan(table.scan(["id"]).plan, table.location, to_frame=table._frame_of, threads=3)

    assert scan().to_arrow()["id"].to_pylist() == list(range(2000))
    before = threading.active_count()
    for batch in scan().to_batches():
        assert batch["id"][0].as_py() == 0
        break
    assert threading.active_count() == before, "no thread goes on reading for nobody"


def test_counting_reads_only_what_the_filter_looks_at(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    read_blocks: Callable[..., Iterator[pa.RecordBatch]] = vars(reading)["read_blocks"]

    def watching(*args: object, **kwargs: object) -> Iterator[pa.RecordBatch]:
        asked.append(tuple(args[2].names))  # type: ignore[attr-defined]
        return read_blocks(*args, **kwargs)

    monkeypatch.setattr(reading, "read_blocks", watching)
    assert table.scan(where="kind = 1").count() == 1000
    assert set(asked) == {("kind",)}
