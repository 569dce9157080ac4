"""Stream what several tasks give, in the order of the tasks, while threads read a bounded number of batches ahead."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

__all__ = ["BATCHES_AHEAD", "streamed"]

T = TypeVar("T")
R = TypeVar("R")

BATCHES_AHEAD = 4
"""A task that is read ahead waits when so many of its batches have not been taken yet."""


def streamed(tasks: Sequence[T], read: Callable[[T], Iterable[R]], *, threads: int) -> Iterator[R]:
    """Give all that the tasks give, task by task; never more than a few batches of a few tasks are held.

    >>> list(streamed(["ab", "", "c"], iter, threads=2))
    ['a', 'b', 'c']
    """
    ahead: deque[_Channel[R]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for task in tasks:
            channel: _Channel[R] = _Channel()
            pool.submit(channel.fill, read, task)
            ahead.append(channel)
            if len(ahead) > threads:
                yield from ahead[0]
                ahead.popleft()
        while ahead:
            yield from ahead[0]
            ahead.popleft()
    finally:
        # Whoever takes no more must not wait for those who read: they are told, and stop at their next batch.
        for channel in ahead:
            channel.abandon()
        pool.shutdown(wait=True, cancel_futures=True)


class _Channel(Generic[R]):
    """The batches of one task on their way from the thread that reads to the one that takes."""

    def __init__(self) -> None:
        self._waiting: deque[R] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._abandoned = False
        self._error: BaseException | None = None

    def fill(self, read: Callable[[T], Iterable[R]], task: T) -> None:
        """Read a task to its end, or until nobody wants the rest."""
        try:
            for batch in read(task):
                if not self._put(batch):
                    break
        except BaseException as error:
            self._error = error  # raised again where the batches are taken
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def abandon(self) -> None:
        """Take no more."""
        with self._changed:
            self._abandoned = True
            self._changed.notify_all()

    def _put(self, batch: R) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._abandoned or len(self._waiting) < BATCHES_AHEAD)
            if not self._abandoned:
                self._waiting.append(batch)
                self._changed.notify_all()
            return not self._abandoned

    def __iter__(self) -> Iterator[R]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or bool(self._waiting))
                if not self._waiting:
                    if self._error is not None:
                        raise self._error
                    return
                batch = self._waiting.popleft()
                self._changed.notify_all()
            yield batch
