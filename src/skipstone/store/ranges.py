"""Read few, long ranges of a file: what lies close together is fetched by one request, and requests go out together.

Every request to an object store waits for a first byte. A gap that takes less time to read than that is read through.
"""

from __future__ import annotations

import bisect
import io
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

__all__ = ["OBJECT_STORE", "REQUESTS_AT_ONCE", "Fetched", "Pieces", "RangeLimits", "coalesced"]

REQUESTS_AT_ONCE = 8
"""Requests of one process that wait at the same time."""


@dataclass(frozen=True, slots=True)
class RangeLimits:
    """Ranges no further apart than `gap_bytes` are one, unless that makes it longer than `request_bytes`."""

    gap_bytes: int
    request_bytes: int


OBJECT_STORE = RangeLimits(256 * 1024, 16 * 1024 * 1024)
"""A first byte takes about 30 ms, in which one stream of 50 MB/s reads 1.5 MB. With eight requests on their way at once
the wait is shared, and a gap of up to an eighth of that, rounded up, is cheaper to read than to leave out. Requests of
16 MiB spend nine tenths of their time on bytes."""


def coalesced(ranges: Iterable[tuple[int, int]], limits: RangeLimits) -> list[tuple[int, int]]:
    """Join ranges, each from a start to an end (exclusive), to those that are requested.

    The gap before the third range is too wide, and with the fourth it would be too long.

    >>> coalesced([(10, 20), (0, 8), (25, 40), (40, 50)], RangeLimits(gap_bytes=4, request_bytes=20))
    [(0, 20), (25, 40), (40, 50)]
    """
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start - joined[-1][1] <= limits.gap_bytes and end - joined[-1][0] <= limits.request_bytes:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif start < end:
            joined.append((start, end))
    return joined


class Pieces:
    """Parts of a file that were sent for: each is waited for when it is first read."""

    def __init__(self, source: Any, ranges: Sequence[tuple[int, int]], pool: ThreadPoolExecutor) -> None:
        self._starts = [start for start, _ in ranges]
        self._ends = [end for _, end in ranges]
        self._sent = [pool.submit(source.read_at, end - start, start) for start, end in ranges]

    def part(self, start: int, end: int) -> memoryview | None:
        """The bytes from start to end, where one piece has all of them."""
        number = bisect.bisect_right(self._starts, start) - 1
        if number < 0 or end > self._ends[number]:
            return None
        offset = self._starts[number]
        return memoryview(self._sent[number].result())[start - offset : end - offset]

    def give_up(self) -> None:
        """Do not send for what is still waiting to be sent for."""
        for one in self._sent:
            one.cancel()


class Fetched(io.RawIOBase):
    """An open file whose parts come from what was fetched; what was not is requested by itself."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        self._source = source
        self._size = int(source.size())
        self._position = 0
        self.pieces: Pieces | None = None

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go somewhere else; nothing is requested for that."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1) -> Any:
        """Give the next bytes, without a copy where they were fetched."""
        start = self._position
        end = self._size if size is None or size < 0 else min(start + size, self._size)
        self._position = end
        found = self.pieces.part(start, end) if self.pieces is not None else None
        return found if found is not None else self._source.read_at(end - start, start)
