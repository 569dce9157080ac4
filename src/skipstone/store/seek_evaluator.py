"""The seek-cost evaluator: what a gap between two reads costs on a disk or an object store, measured."""

from __future__ import annotations

import os
import posixpath
import random
import statistics
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, Self

import pyarrow.fs

from skipstone.catalog.location import Location
from skipstone.errors import InvalidInput
from skipstone.layout.columns.seek import PiecewiseSeek

READ_BYTES = 16 * 1024
"""Bytes of one read: about a small column's chunk."""

SHORTEST_GAP = 4 * 1024
SCRATCH_BYTES = 256 * 1024 * 1024
REPEATS = 100
"""Seeks at each distance (section 5.2)."""

PIECE = 4 * 1024 * 1024


class Readable(Protocol):
    """A file that can be read from any place, and can forget what it has kept in memory."""

    def read(self, offset: int, count: int) -> None:
        """Read so many bytes from there on."""
        ...

    def forget(self) -> None:
        """Drop what is cached, as far as that is possible."""
        ...


def evaluate_seeks(
    place: str | os.PathLike[str],
    *,
    scratch_bytes: int = SCRATCH_BYTES,
    repeats: int = REPEATS,
    seed: int = 0,
    storage_options: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PiecewiseSeek:
    """Measure the seek profile of the place that holds a file, or of a directory, where a scratch file is written.

    The scratch file is deleted at the end, also when the measurement fails. `progress` is told how many of how many
    seeks are done.
    """
    location = Location.at(place, storage_options)
    filesystem, base = location.filesystem()
    kind = filesystem.get_file_info(base).type
    if kind == pyarrow.fs.FileType.File:
        with _open(location) as (file, size):
            return measured_seeks(file, size, repeats=repeats, seed=seed, progress=progress)
    if kind == pyarrow.fs.FileType.NotFound and location.is_local:
        raise InvalidInput(f'there is no file or directory "{location.uri}" to measure seeks on')
    with _scratch_file(location, scratch_bytes) as scratch, _open(scratch) as (file, size):
        return measured_seeks(file, size, repeats=repeats, seed=seed, progress=progress)


def measured_seeks(
    file: Readable,
    size: int,
    *,
    repeats: int = REPEATS,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> PiecewiseSeek:
    """Measure what two reads with a gap between them cost more than one read of as many bytes without a gap.

    Bian et al., "Wide Table Layout Optimization based on Column Ordering and Duplication", SIGMOD 2017, section 5.2:
    many seeks of each distance from different offsets, straight lines between the distances.

    Departs from the paper: distances double from 4 KiB on, with one between, rather than grow by 50 KB; the median
    stands for the average, for a machine that does other work has outliers; and the time of one read without a gap is
    taken off, so that a gap of no bytes costs nothing. Distances take turns, so that a slow minute falls on all.
    """
    distances = _distances(size)
    if not distances:
        raise InvalidInput(
            f"a file of {size:,} bytes is too small to measure seeks in; give one of at least "
            f"{4 * (SHORTEST_GAP + 2 * READ_BYTES):,} bytes, or a directory to write one to"
        )
    chance = random.Random(seed)
    seconds: dict[int, list[float]] = {distance: [] for distance in (0, *distances)}
    done = 0
    for _ in range(repeats):
        for distance in chance.sample(sorted(seconds), len(seconds)):
            seconds[distance].append(_seek_seconds(file, size, distance, chance, clock))
            done += 1
            if progress is not None:
                progress(done, repeats * len(seconds))
    whole = statistics.median(seconds[0])
    costs = (1000 * max(0.0, statistics.median(seconds[distance]) - whole) for distance in distances)
    return PiecewiseSeek(tuple(zip(map(float, distances), costs, strict=True)), name="measured")


def _seek_seconds(file: Readable, size: int, distance: int, chance: random.Random, clock: Callable[[], float]) -> float:
    """Time two reads with a gap of `distance` bytes between them, or one of both without a gap."""
    offset = chance.randrange(size - distance - 2 * READ_BYTES + 1)
    file.forget()
    started = clock()
    if distance:
        file.read(offset, READ_BYTES)
        file.read(offset + READ_BYTES + distance, READ_BYTES)
    else:
        file.read(offset, 2 * READ_BYTES)
    return clock() - started


def _distances(size: int) -> tuple[int, ...]:
    """Gaps that leave room for different offsets: up to three quarters of the file.

    >>> _distances(65536), _distances(300_000)[-3:]
    ((4096, 6144, 8192, 12288, 16384), (65536, 98304, 131072))
    """
    longest = 3 * size // 4 - 2 * READ_BYTES
    found, gap = [], SHORTEST_GAP
    while gap <= longest:
        found += [gap, 3 * gap // 2]
        gap *= 2
    return tuple(distance for distance in found if distance <= longest)


class _LocalFile:
    """A file of a local disk; its pages are dropped from the kernel's cache before every seek, and nothing read ahead.

    Where the system has no such advice, what is measured is its cache.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY)
        if hasattr(os, "posix_fadvise"):
            os.fsync(self._descriptor)
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_RANDOM)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def read(self, offset: int, count: int) -> None:
        os.pread(self._descriptor, count, offset)

    def forget(self) -> None:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


class _RemoteFile:
    """An object of a store, which keeps nothing between two reads."""

    def __init__(self, location: Location) -> None:
        filesystem, base = location.filesystem()
        self._file = filesystem.open_input_file(base)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, offset: int, count: int) -> None:
        self._file.read_at(count, offset)

    def forget(self) -> None:
        """There is nothing to forget."""


@contextmanager
def _open(location: Location) -> Iterator[tuple[Readable, int]]:
    filesystem, base = location.filesystem()
    size = int(filesystem.get_file_info(base).size)
    with _LocalFile(base) if location.is_local else _RemoteFile(location) as file:
        yield file, size


@contextmanager
def _scratch_file(directory: Location, size: int) -> Iterator[Location]:
    """Write a file that does not compress, and delete it in the end."""
    filesystem, base = directory.filesystem()
    name = f".{uuid.uuid4().hex}.seek"
    path = posixpath.join(base, name)
    try:
        with filesystem.open_output_stream(path) as stream:
            left = size
            while left > 0:
                left -= stream.write(os.urandom(min(PIECE, left)))
        yield directory.child(name)
    finally:
        if filesystem.get_file_info(path).type == pyarrow.fs.FileType.File:
            filesystem.delete_file(path)
