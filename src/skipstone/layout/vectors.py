"""Feature vectors: one bit per feature, of a row, of a group of rows, of a block.

Rows with equal vectors are alike to every feature, so a clustering works on distinct vectors and how often each
occurs (Sun, dissertation, 2017, section 3.4.3, the reduction step). On disk and in the catalog a vector is packed
eight bits to the byte, bit j of the vector being bit j % 8, counted from the least significant, of byte j // 8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skipstone.compiled import njit
from skipstone.errors import InvalidInput

__all__ = [
    "Bits",
    "DistinctVectors",
    "distinct",
    "find_words",
    "grouped",
    "pack",
    "packed_width",
    "union_of_words",
    "unions",
    "unpack",
    "words",
]

Bits = NDArray[np.bool_]
"""A matrix of rows by features: whether the row satisfies the feature."""


@dataclass(frozen=True, slots=True)
class DistinctVectors:
    """Vectors that differ, in the order of their packed bytes, and how many rows have each.

    The order makes everything that is built on it independent of the order in which the rows came.
    """

    bits: Bits
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.bits.ndim != 2 or self.counts.shape != self.bits.shape[:1]:
            raise InvalidInput(
                f"vectors need a matrix and a count for each row of it, not shapes {self.bits.shape} and"
                f" {self.counts.shape}"
            )

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def rows(self) -> int:
        """How many rows the vectors stand for."""
        return int(self.counts.sum())


def packed_width(features: int) -> int:
    """Return the bytes that a packed vector of so many features takes.

    >>> packed_width(0), packed_width(8), packed_width(9)
    (0, 1, 2)
    """
    return (features + 7) // 8


def pack(bits: Bits) -> NDArray[np.uint8]:
    """Pack each row of bits into bytes, the first bit into the least significant bit of the first byte.

    >>> pack(np.array([[True, False, True]])).tolist()
    [[5]]
    """
    return np.packbits(bits, axis=1, bitorder="little")


def unpack(packed: NDArray[np.uint8], features: int) -> Bits:
    """Undo `pack`.

    >>> unpack(np.array([[5]], dtype=np.uint8), 3).tolist()
    [[True, False, True]]
    """
    return np.unpackbits(packed, axis=1, count=features, bitorder="little").astype(np.bool_)


def words(bits: Bits) -> NDArray[np.uint64]:
    """Pack each row of bits into machine words, at least one, for the compiled loops.

    >>> words(np.array([[True, False, True]])).tolist()
    [[5]]
    """
    packed = pack(bits)
    width = max(8, -(-packed.shape[1] // 8) * 8)
    padded = np.zeros((len(packed), width), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.dtype("<u8")).astype(np.uint64, copy=False)


def distinct(bits: Bits, counts: NDArray[np.int64] | None = None) -> tuple[DistinctVectors, NDArray[np.int64]]:
    """Find the distinct vectors and, for each row, which of them it has.

    `counts` says how many rows each row of `bits` stands for, one if it is not given.

    >>> vectors, which = distinct(np.array([[True, False], [False, False], [True, False]]))
    >>> vectors.bits.tolist(), vectors.counts.tolist(), which.tolist()
    ([[False, False], [True, False]], [1, 2], [1, 0, 1])
    """
    first, group = grouped(words(bits))
    # Bytes in the order of the vector's bits: the same order whatever the machine, and that of the packed vectors.
    order = np.lexsort(pack(bits[first]).T[::-1]) if bits.shape[1] else np.arange(len(first))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    which = rank[group]
    each = np.ones(len(bits), dtype=np.int64) if counts is None else counts
    totals = np.zeros(len(first), dtype=np.int64)
    np.add.at(totals, which, each)
    return DistinctVectors(bits[first[order]], totals), which


def unions(bits: Bits, group: NDArray[np.int32] | NDArray[np.int64], groups: int) -> Bits:
    """Return for each group the OR of the vectors of its rows; a group without rows has no bit set.

    >>> unions(np.array([[True, False], [False, False], [False, True]]), np.array([0, 1, 0]), 2).tolist()
    [[True, True], [False, False]]
    """
    united = np.zeros((groups, bits.shape[1]), dtype=np.bool_)
    for feature in range(bits.shape[1]):
        united[group[bits[:, feature]], feature] = True
    return united


def find_words(sought: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return for each sought vector the position of the known one that equals it, or -1. The known ones differ.

    >>> find_words(np.array([[5], [6]], dtype=np.uint64), np.array([[6]], dtype=np.uint64)).tolist()
    [-1, 0]
    """
    return _find(sought, known, _table_size(len(known)))


def union_of_words(rows: NDArray[np.uint64], group: NDArray[np.int64], groups: int) -> NDArray[np.uint64]:
    """Return for each group the OR of its rows' words.

    >>> union_of_words(np.array([[1], [2], [4]], dtype=np.uint64), np.array([0, 1, 0]), 2).tolist()
    [[5], [2]]
    """
    united = np.zeros((groups, rows.shape[1]), dtype=np.uint64)
    _unite(rows, group, united)
    return united


def grouped(rows: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find where each distinct vector appears first and, for each row of words, which of them it has.

    >>> first, group = grouped(np.array([[5], [6], [5]], dtype=np.uint64))
    >>> first.tolist(), group.tolist()
    ([0, 1], [0, 1, 0])
    """
    first, group, found = _group_by_hash(rows)
    return first[:found], group


def _table_size(entries: int) -> int:
    """A power of two that is at most half full, so that runs of collisions stay short."""
    return 1 << max(4, (2 * entries).bit_length())


@njit(cache=True)
def _hash(row: NDArray[np.uint64]) -> int:
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for word in row:
        mixed = (mixed ^ word) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(32))  # type: ignore[return-value]


@njit(cache=True)
def _equal(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> bool:
    for k in range(one.shape[0]):  # noqa: SIM110 (numba compiles the loop, not the generator)
        if one[k] != other[k]:
            return False
    return True


@njit(cache=True)
def _group_by_hash(rows: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Number the distinct rows in the order of their first appearance, with a hash table of open addresses."""
    n = rows.shape[0]
    first = np.empty(n, dtype=np.int64)
    group = np.empty(n, dtype=np.int64)
    size = 1024
    table = np.full(size, -1, dtype=np.int64)
    found = 0
    for i in range(n):
        if 2 * found >= size:
            size *= 4
            table = np.full(size, -1, dtype=np.int64)
            for g in range(found):
                place = _hash(rows[first[g]]) & np.uint64(size - 1)
                while table[place] >= 0:
                    place = (place + np.uint64(1)) & np.uint64(size - 1)
                table[place] = g
        place = _hash(rows[i]) & np.uint64(size - 1)
        while table[place] >= 0 and not _equal(rows[first[table[place]]], rows[i]):
            place = (place + np.uint64(1)) & np.uint64(size - 1)
        if table[place] < 0:
            table[place] = found
            first[found] = i
            found += 1
        group[i] = table[place]
    return first, group, found


@njit(cache=True)
def _find(sought: NDArray[np.uint64], known: NDArray[np.uint64], size: int) -> NDArray[np.int64]:
    table = np.full(size, -1, dtype=np.int64)
    for k in range(known.shape[0]):
        place = _hash(known[k]) & np.uint64(size - 1)
        while table[place] >= 0:
            place = (place + np.uint64(1)) & np.uint64(size - 1)
        table[place] = k
    answer = np.empty(sought.shape[0], dtype=np.int64)
    for i in range(sought.shape[0]):
        place = _hash(sought[i]) & np.uint64(size - 1)
        while table[place] >= 0 and not _equal(known[table[place]], sought[i]):
            place = (place + np.uint64(1)) & np.uint64(size - 1)
        answer[i] = table[place]
    return answer


@njit(cache=True)
def _unite(rows: NDArray[np.uint64], group: NDArray[np.int64], united: NDArray[np.uint64]) -> None:
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            united[group[i], k] |= rows[i, k]
