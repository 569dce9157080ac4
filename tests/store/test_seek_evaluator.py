"""The seek-cost evaluator, on a disk that is a formula and on a real directory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from skipstone.errors import InvalidInput
from skipstone.layout.columns.seek import PowerSeek, seek_costs
from skipstone.store.seek_evaluator import READ_BYTES, evaluate_seeks, measured_seeks


class FormulaDisk:
    """Reads take a millisecond for every 100 kB; a gap costs what the power profile says; forgetting is counted."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.seconds = 0.0
        self.forgotten = 0
        self.reads = 0
        self._head: int | None = None

    def read(self, offset: int, count: int) -> None:
        assert 0 <= offset <= self.size - count, "Nothing is read beyond the file's ends"
        if self._head is not None:
            self.seconds += float(seek_costs(PowerSeek(), np.array([float(abs(offset - self._head))]))[0]) / 1000
        self.seconds += count / 1e8
        self._head = offset + count
        self.reads += 1

    def forget(self) -> None:
        """A new measurement: the arm may be anywhere, and getting there is not part of it."""
        self.forgotten += 1
        self._head = None


def test_a_disk_that_is_a_formula_is_measured_as_that_formula() -> None:
    disk = FormulaDisk(64_000_000)
    told: list[tuple[int, int]] = []
    profile = measured_seeks(
        disk,
        disk.size,
        repeats=3,
        seed=1,
        progress=lambda done, total: told.append((done, total)),
        clock=lambda: disk.seconds,
    )
    distances = np.array([distance for distance, _ in profile.points])
    assert distances[0] == 4096
    assert distances[-1] > disk.size / 3
    costs = [cost for _, cost in profile.points]
    assert costs == pytest.approx(seek_costs(PowerSeek(), distances).tolist(), abs=1e-6)
    assert disk.forgotten == 3 * (len(distances) + 1) == told[-1][0] == told[-1][1]
    assert disk.reads == 3 * (2 * len(distances) + 1)


def test_a_file_without_room_for_a_gap_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"a file of 32,768 bytes is too small to measure seeks in"):
        measured_seeks(FormulaDisk(2 * READ_BYTES), 2 * READ_BYTES)


def test_a_scratch_file_is_measured_and_deleted(tmp_path: Path) -> None:
    profile = evaluate_seeks(tmp_path, scratch_bytes=200_000, repeats=1)
    assert all(cost >= 0.0 for _, cost in profile.points)
    assert list(tmp_path.iterdir()) == []


def test_a_scratch_file_is_deleted_when_the_measurement_fails(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate_seeks(tmp_path, scratch_bytes=200_000, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_measured_and_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "data.bin"
    file.write_bytes(bytes(300_000))
    assert len(evaluate_seeks(file, repeats=1).points) > 5
    assert file.read_bytes() == bytes(300_000)
