"""Where the work on rows runs: an executor maps functions over items and shuffles their output into buckets.

The functions are the same everywhere and speak Arrow; only who calls them differs. `LocalExecutor` runs them on the
threads of this process and needs no Java; `skipstone.spark.executor` runs them as Spark tasks. Functions and items must
be picklable, and what they return is small: counts, statistics, names of files, never rows.
"""

from __future__ import annotations

import os
import struct
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

__all__ = ["Executor", "LocalExecutor", "Progress", "Silent"]

T = TypeVar("T")
R = TypeVar("R")


class Progress(Protocol):
    """Told how far the work is, so that somebody can be shown it."""

    def start(self, stage: str, total: int) -> None:
        """Begin a stage of `total` steps; steps are rows where they are known, else tasks."""

    def advance(self, steps: int) -> None:
        """Note that so many more steps of the current stage are done."""


class Silent:
    """Progress that nobody watches."""

    def start(self, stage: str, total: int) -> None:
        """Say nothing."""

    def advance(self, steps: int) -> None:
        """Say nothing."""


class Executor(Protocol):
    """Runs picklable functions over items in parallel."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""

    def map(self, function: Callable[[T], R], items: Sequence[T], *, stage: str, progress: Progress) -> list[R]:
        """Apply a function to every item and give the results in the order of the items."""

    def shuffle(
        self,
        split: Callable[[T], Iterable[tuple[int, bytes]]],
        items: Sequence[T],
        gather: Callable[[int, Iterator[bytes]], R],
        *,
        buckets: int,
        stage: str,
        progress: Progress,
    ) -> list[R]:
        """Split every item into (bucket, bytes), then gather each bucket that got any; results in order of buckets."""


class LocalExecutor:
    """Runs on the threads of this process; what is shuffled waits in files of a temporary directory.

    >>> executor = LocalExecutor(threads=2)
    >>> executor.map(len, ["a", "bc"], stage="count", progress=Silent())
    [1, 2]
    >>> executor.shuffle(
    ...     lambda word: [(ord(letter) % 2, letter.encode()) for letter in word],
    ...     ["abc", "bd"],
    ...     lambda bucket, parts: (bucket, b"".join(sorted(parts))),
    ...     buckets=2, stage="letters", progress=Silent(),
    ... )
    [(0, b'bbd'), (1, b'ac')]
    """

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or os.cpu_count() or 1

    @property
    def parallelism(self) -> int:
        """How many threads work at once."""
        return self._threads

    def map(self, function: Callable[[T], R], items: Sequence[T], *, stage: str, progress: Progress) -> list[R]:
        """Apply a function to every item and give the results in the order of the items."""
        progress.start(stage, len(items))

        def step(item: T) -> R:
            result = function(item)
            progress.advance(1)
            return result

        if self._threads == 1 or len(items) <= 1:
            return [step(item) for item in items]
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(step, items))

    def shuffle(
        self,
        split: Callable[[T], Iterable[tuple[int, bytes]]],
        items: Sequence[T],
        gather: Callable[[int, Iterator[bytes]], R],
        *,
        buckets: int,
        stage: str,
        progress: Progress,
    ) -> list[R]:
        """Split every item into (bucket, bytes), then gather each bucket that got any; results in order of buckets."""
        with tempfile.TemporaryDirectory(prefix="skipstone-shuffle-") as directory:
            files = _BucketFiles(Path(directory))

            def write(item: T) -> None:
                for bucket, payload in split(item):
                    files.append(bucket, payload)

            self.map(write, items, stage=f"{stage}: split", progress=progress)
            filled = files.close()
            return self.map(
                lambda bucket: gather(bucket, files.read(bucket)), filled, stage=f"{stage}: write", progress=progress
            )


class _BucketFiles:
    """One file a bucket, holding length-prefixed payloads in the order they came."""

    LENGTH = struct.Struct("<Q")

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._sizes: dict[int, int] = {}

    def append(self, bucket: int, payload: bytes) -> None:
        """Add a payload; files are opened for the moment only, because there may be more buckets than descriptors."""
        with self._lock, self._path(bucket).open("ab") as file:
            file.write(self.LENGTH.pack(len(payload)))
            file.write(payload)
            self._sizes[bucket] = self._sizes.get(bucket, 0) + len(payload)

    def close(self) -> list[int]:
        """List the buckets that got something, ascending."""
        return sorted(self._sizes)

    def read(self, bucket: int) -> Iterator[bytes]:
        """Give the payloads of a bucket, and remove its file after the last."""
        path = self._path(bucket)
        with path.open("rb") as file:
            yield from iter(lambda: self._next(file), b"")
        path.unlink()

    def _next(self, file: BinaryIO) -> bytes:
        prefix = file.read(self.LENGTH.size)
        return file.read(self.LENGTH.unpack(prefix)[0]) if prefix else b""

    def _path(self, bucket: int) -> Path:
        return self._directory / str(bucket)
