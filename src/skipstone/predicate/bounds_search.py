"""Searching many cuts of byte strings for each of very many blocks, in machine code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from skipstone.compiled import njit

__all__ = ["bytes_reach"]


def bytes_reach(minimum: Any, maximum: Any, cuts: Sequence[bytes]) -> npt.NDArray[np.bool_]:
    """Whether a value from `[minimum, maximum]` may lie in one of the intervals that the cuts begin and end.

    Both are arrays of type large_binary. With an odd number of cuts the last interval has no end.

    >>> import pyarrow as pa
    >>> low, high = (pa.array([value, None], pa.large_binary()) for value in (b"b", b"e"))
    >>> bytes_reach(low, high, [b"a", b"b", b"f"]).tolist(), bytes_reach(low, high, [b"e", b"f"]).tolist()
    ([False, True], [True, True])
    """
    ends = np.cumsum([0, *map(len, cuts)])
    # Numba wants something to take the address of, even where no byte is ever read.
    text = np.frombuffer(b"".join(cuts) + b"\0", dtype=np.uint8)
    return np.asarray(_reach(*_parts(minimum), *_parts(maximum), ends, text))


def _parts(array: Any) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Validity, offsets and bytes of an array."""
    valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False))
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    empty = np.zeros(1, dtype=np.uint8)
    return valid, places, np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else empty


@njit(cache=True, nogil=True)
def _compare(one: Any, begin: Any, end: Any, other: Any, other_begin: Any, other_end: Any) -> Any:
    """Compare two byte strings: below, equal to or above zero."""
    one_length, other_length = end - begin, other_end - other_begin
    for i in range(min(one_length, other_length)):
        difference = np.int64(one[begin + i]) - np.int64(other[other_begin + i])
        if difference != 0:
            return difference
    return one_length - other_length


@njit(cache=True, nogil=True)
def _reach(
    low_valid: Any, low_ends: Any, low: Any, high_valid: Any, high_ends: Any, high: Any, ends: Any, text: Any
) -> Any:
    cuts = len(ends) - 1
    found = np.ones(len(low_valid), dtype=np.bool_)
    for block in range(len(low_valid)):
        # An unknown minimum is the empty string, which nothing is below.
        low_begin, low_end = (low_ends[block], low_ends[block + 1]) if low_valid[block] else (0, 0)
        high_begin, high_end = (high_ends[block], high_ends[block + 1]) if high_valid[block] else (0, 0)
        if high_valid[block] and _compare(low, low_begin, low_end, high, high_begin, high_end) > 0:
            continue  # bounds the wrong way round cannot be trusted
        first, last = 0, cuts  # the place of the first cut above the minimum
        while first < last:
            middle = (first + last) // 2
            if _compare(text, ends[middle], ends[middle + 1], low, low_begin, low_end) <= 0:
                first = middle + 1
            else:
                last = middle
        if first % 2 == 1:
            continue
        if first == cuts:
            found[block] = False
        elif high_valid[block]:
            begin, end = ends[first], ends[first + 1]
            found[block] = _compare(text, begin, end, high, high_begin, high_end) <= 0
    return found
