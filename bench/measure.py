"""What a benchmark measures, and how: counts of a scan, paired times, peak memory, cold files, break-even."""

from __future__ import annotations

import math
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Self

Task = str
"""The name of one thing that every subject does in a timed run, such as a template or a query number."""


@dataclass(frozen=True, slots=True)
class ScanCounts:
    """What one or more scans read, and the least that any layout would have to."""

    rows: int = 0
    cells: int = 0
    row_ids: int = 0
    blocks: int = 0
    files: int = 0
    bytes: int = 0
    matching_rows: int = 0
    """Rows that satisfy the filter: the lower bound of `rows`."""

    matching_cells: int = 0
    """Cells of those rows in the columns that the query reads: the lower bound of `cells`."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @classmethod
    def total(cls, counts: Iterable[ScanCounts]) -> ScanCounts:
        """Add counts up.

        >>> ScanCounts.total([ScanCounts(rows=2, cells=6), ScanCounts(rows=1)]).rows
        3
        """
        return sum(counts, ScanCounts())


@dataclass(frozen=True, slots=True)
class Timing:
    """Wall time of repeated runs: the median and the quartiles, in seconds."""

    median: float
    low: float
    high: float
    runs: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Timing:
        """Summarise measured times.

        >>> Timing.of([3.0, 1.0, 2.0])
        Timing(median=2.0, low=1.5, high=2.5, runs=3)
        """
        if len(seconds) == 1:
            return cls(seconds[0], seconds[0], seconds[0], 1)
        low, median, high = statistics.quantiles(seconds, n=4, method="inclusive")
        return cls(median, low, high, len(seconds))


@dataclass(frozen=True, slots=True)
class PairedTimes:
    """Times of several subjects that took turns, so that whatever else the machine did fell on all of them alike."""

    by_task: Mapping[tuple[str, Task], Timing]
    total: Mapping[str, Timing]


def paired(
    subjects: Mapping[str, Callable[[Task], object]],
    tasks: Sequence[Task],
    runs: int,
    *,
    warm_up: bool = True,
    before_each: Callable[[str, Task], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> PairedTimes:
    """Time every subject on every task `runs` times, subjects taking turns within each task.

    The order of the subjects rotates from run to run. With `warm_up`, one run more goes first and does not count.
    `before_each` is outside the measured time; it is where a cold run drops files from the cache.
    """
    seconds: dict[tuple[str, Task], list[float]] = {(s, task): [] for s in subjects for task in tasks}
    names = list(subjects)
    for run in range(-1 if warm_up else 0, runs):
        shift = run % len(names)
        for task in tasks:
            for name in names[shift:] + names[:shift]:
                if before_each is not None:
                    before_each(name, task)
                started = clock()
                subjects[name](task)
                if run >= 0:
                    seconds[name, task].append(clock() - started)
    totals = {name: [sum(seconds[name, task][run] for task in tasks) for run in range(runs)] for name in names}
    return PairedTimes(
        {key: Timing.of(values) for key, values in seconds.items()},
        {name: Timing.of(values) for name, values in totals.items()},
    )


def drop_from_cache(places: Iterable[Path]) -> int:
    """Ask the kernel to forget the pages of these files, directories included; return the number of files.

    Pages that were not written yet cannot be dropped, so each file is synced first.
    """
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("*")) if file.is_file()]
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    return len(files)


def bytes_on_disk(place: Path) -> int:
    """Return the size of all files under a directory."""
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())


def break_even_runs(layout_seconds: float, before_seconds: float, after_seconds: float) -> float:
    """Return after how many runs of a workload a layout has paid for itself; infinity when it never does.

    >>> break_even_runs(60.0, 10.0, 4.0), break_even_runs(60.0, 10.0, 10.0)
    (10.0, inf)
    """
    gained = before_seconds - after_seconds
    return layout_seconds / gained if gained > 0 else math.inf


class PeakMemory:
    """Watch the resident memory of this process and its descendants while a block runs.

    Spark's driver is a descendant of this process, and so are its Python workers. Memory that processes share is
    counted once for each of them, so the figure errs on the high side.
    """

    def __init__(self, interval_seconds: float = 0.05) -> None:
        self._interval = interval_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.own_bytes = 0
        """Peak of this process."""
        self.descendant_bytes = 0
        """Peak of all its descendants together."""
        self.total_bytes = 0
        """Peak of the sum, which is reached at one moment and may be less than the sum of the peaks."""

    def __enter__(self) -> Self:
        self._sample()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._sample()

    def _watch(self) -> None:
        while not self._stop.wait(self._interval):
            self._sample()

    def _sample(self) -> None:
        own = _resident_bytes(os.getpid())
        below = sum(_resident_bytes(process) for process in _descendants(os.getpid()))
        self.own_bytes = max(self.own_bytes, own)
        self.descendant_bytes = max(self.descendant_bytes, below)
        self.total_bytes = max(self.total_bytes, own + below)


def _resident_bytes(process: int) -> int:
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):  # the process ended, or the system has no /proc
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _descendants(process: int) -> list[int]:
    """Return all processes below this one; those that end while we look are left out."""
    found: list[int] = []
    waiting = [process]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(process: int) -> list[int]:
    found = []
    try:
        for thread in Path(f"/proc/{process}/task").iterdir():
            found += [int(child) for child in (thread / "children").read_text().split()]
    except OSError:
        pass
    return found
