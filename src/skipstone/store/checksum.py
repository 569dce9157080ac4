"""Checksums of columns that do not depend on the order of rows, for every type that Arrow and Parquet share.

Each value is hashed to 64 bits; a checksum is the sum of the hashes, and the sum of the hashes mixed once more, modulo
2^64. Sums do not see order, count every duplicate (an exclusive or would lose pairs), and add up over parts.

Values are what is hashed, not how they are held: `string` and `large_string`, plain and dictionary-encoded arrays give
equal sums, and so do integers of different widths. NULL, an empty text and an empty list are three values. -0.0 and 0.0
are two, all NaN are one, because the bits of a NaN do not survive every engine.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipstone.catalog.values import RESERVED_PREFIX, Checksum
from skipstone.compiled import njit
from skipstone.errors import InvalidInput, VerificationFailed, listed

__all__ = ["WHOLE_ROWS", "Checksums", "checksum", "checksums", "hash_values", "merge_checksums", "require_equal"]

Checksums: TypeAlias = tuple[tuple[str, Checksum], ...]
"""Checksums by column, in the order of the names."""

WHOLE_ROWS = f"{RESERVED_PREFIX}whole_rows"
"""The name under which the checksum of whole rows is kept."""

Hashes: TypeAlias = npt.NDArray[np.uint64]

# Any odd constants will do; these are the first 64 bits of the fractions of the square roots of 2, 3, 5, 7 and 11.
_NULL = np.uint64(0x6A09E667F3BCC909)
_BYTES = np.uint64(0xBB67AE8584CAA73B)
_LIST = np.uint64(0x3C6EF372FE94F82B)
_STRUCT = np.uint64(0xA54FF53A5F1D36F1)
_SECOND = np.uint64(0x510E527FADE682D1)


def checksums(batch: pa.RecordBatch | pa.Table, *, whole_rows: Sequence[str] = ()) -> Checksums:
    """Checksum every column; with `whole_rows` also the rows as such, made of those columns, under `WHOLE_ROWS`.

    The checksum of whole rows sees values that have moved to another row, which those of columns do not.

    >>> one = pa.table({"a": [1, 2], "b": ["x", None]})
    >>> other = pa.table({"a": [2, 1], "b": ["x", None]})
    >>> checksums(one) == checksums(other)
    True
    >>> checksums(one, whole_rows=["a", "b"]) == checksums(other, whole_rows=["a", "b"])
    False
    """
    sums: dict[str, Checksum] = {}
    for piece in _pieces(batch):
        hashes = {name: hash_values(piece.column(name)) for name in piece.schema.names}
        if whole_rows:
            hashes[WHOLE_ROWS] = _hash_rows([(name, hashes[name]) for name in whole_rows], piece.num_rows)
        for name, values in hashes.items():
            sums[name] = sums.get(name, Checksum()) + _total(values)
    for name in (*batch.schema.names, *([WHOLE_ROWS] if whole_rows else ())):
        sums.setdefault(name, Checksum())
    return tuple(sorted(sums.items()))


def checksum(values: pa.Array | pa.ChunkedArray) -> Checksum:
    """Checksum the values of one column.

    >>> checksum(pa.array(["", None])) == checksum(pa.array([None, ""]).dictionary_encode())
    True
    """
    pieces = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    return sum((_total(hash_values(piece)) for piece in pieces), Checksum())


def merge_checksums(parts: Iterable[Checksums]) -> Checksums:
    """Add up the checksums of parts, column by column."""
    sums: dict[str, Checksum] = {}
    for part in parts:
        for name, one in part:
            sums[name] = sums.get(name, Checksum()) + one
    return tuple(sorted(sums.items()))


def require_equal(read: Checksums, written: Checksums, *, what: str) -> None:
    """Raise VerificationFailed, saying what differs, unless every checksum of `read` is also in `written`.

    >>> sums = checksums(pa.table({"a": [1, 2]}))
    >>> require_equal(sums, sums, what="chunk c")
    """
    there = dict(written)
    wrong = [_difference(name, one, there.get(name, Checksum())) for name, one in read if there.get(name) != one]
    if wrong:
        raise VerificationFailed(
            f"{what}: what was written is not what was read, so nothing was committed. {listed(wrong)}. "
            "Does the source give the same rows each time it is read? If it does, please report this as a bug"
        )


def _difference(name: str, read: Checksum, written: Checksum) -> str:
    shown = "whole rows" if name == WHOLE_ROWS else name
    if read.rows != written.rows:
        return f"{shown}: {read.rows} rows read, {written.rows} written"
    return f"{shown}: other values"


def hash_values(values: pa.Array) -> Hashes:
    """Hash each value of an array to 64 bits."""
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return hash_values(values.storage)
    if pa.types.is_null(kind):
        return np.full(len(values), _NULL, dtype=np.uint64)
    hashes = _hash_slots(values, kind)
    if values.null_count:
        hashes[values.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _hash_slots(values: pa.Array, kind: pa.DataType) -> Hashes:
    """Hash each slot; what a NULL's slot gives does not matter."""
    if pa.types.is_dictionary(kind):
        return _hash_dictionary(values)
    if pa.types.is_struct(kind):
        return _hash_struct(values)
    if pa.types.is_map(kind):
        return _hash_lists(values.offsets, [values.keys, values.items])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _hash_lists(values.offsets, [values.values])
    if pa.types.is_fixed_size_list(kind):
        offsets = (np.arange(len(values) + 1, dtype=np.int64) + values.offset) * kind.list_size
        return _hash_lists(pa.array(offsets), [values.values])
    if pa.types.is_boolean(kind):
        return _mixed(values.cast(pa.uint8()).fill_null(0).to_numpy().astype(np.uint64))
    if pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        return _hash_fixed_bytes(values, kind)
    if _is_text(kind):
        return _hash_bytes(values, kind)
    return _hash_numbers(values, kind)


def _is_text(kind: pa.DataType) -> bool:
    views = pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)
    return bool(
        views
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _hash_dictionary(values: pa.DictionaryArray) -> Hashes:
    by_code = np.append(hash_values(values.dictionary), _NULL)
    codes = values.indices.cast(pa.int64()).fill_null(len(by_code) - 1).to_numpy()
    return np.asarray(by_code[codes], dtype=np.uint64)


def _hash_struct(values: pa.StructArray) -> Hashes:
    hashes = np.full(len(values), _STRUCT, dtype=np.uint64)
    for position in range(values.type.num_fields):
        _fold(hashes, hash_values(values.field(position)))
    return hashes


def _hash_lists(offsets: pa.Array, children: Sequence[pa.Array]) -> Hashes:
    bounds = offsets.to_numpy().astype(np.int64)
    first, last = int(bounds[0]), int(bounds[-1])
    items = [hash_values(child.slice(first, last - first)) for child in children]
    for more in items[1:]:
        _fold(items[0], more)
    return _fold_lists(items[0], bounds - first)


def _hash_fixed_bytes(values: pa.Array, kind: pa.DataType) -> Hashes:
    width = kind.bit_width // 8
    content = _content(values.buffers()[1], values.offset * width, len(values) * width)
    offsets = np.arange(len(values) + 1, dtype=np.int64) * width
    return _hash_spans(_words(content), offsets)


def _hash_bytes(values: pa.Array, kind: pa.DataType) -> Hashes:
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        values, kind = values.cast(pa.large_binary()), pa.large_binary()
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if len(values) == 0:
        return np.zeros(0, dtype=np.uint64)
    _, offsets_buffer, content_buffer = values.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64 if wide else np.int32)
    offsets = offsets[values.offset : values.offset + len(values) + 1].astype(np.int64)
    content = _content(content_buffer, int(offsets[0]), int(offsets[-1] - offsets[0]))
    return _hash_spans(_words(content), offsets - offsets[0])


def _hash_numbers(values: pa.Array, kind: pa.DataType) -> Hashes:
    if pa.types.is_floating(kind):
        numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
        bits = numbers.view(f"u{numbers.dtype.itemsize}").astype(np.uint64)
        bits[np.isnan(numbers)] = np.uint64(0x7FF8000000000000)
        return _mixed(bits)
    width = kind.bit_width if _has_width(kind) else 0
    if width not in (8, 16, 32, 64):
        raise InvalidInput(f"columns of type {kind} cannot be stored; convert the column first")
    letter = "u" if pa.types.is_unsigned_integer(kind) else "i"
    content = values.buffers()[1]
    numbers = np.frombuffer(content or b"", dtype=f"{letter}{width // 8}")[values.offset : values.offset + len(values)]
    return _mixed(numbers.astype(np.int64).view(np.uint64) if letter == "i" else numbers.astype(np.uint64))


def _has_width(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind)) and not pa.types.is_interval(kind)


def _content(buffer: Any, start: int, length: int) -> npt.NDArray[np.uint8]:
    if buffer is None or length == 0:
        return np.zeros(0, dtype=np.uint8)
    return np.frombuffer(buffer, dtype=np.uint8)[start : start + length]


def _words(content: npt.NDArray[np.uint8]) -> Hashes:
    # Copied with room at the end, so that the kernel may read whole words from any byte on.
    padded = np.zeros((len(content) // 8 + 2) * 8, dtype=np.uint8)
    padded[: len(content)] = content
    return padded.view("<u8")


def _hash_rows(columns: Sequence[tuple[str, Hashes]], rows: int) -> Hashes:
    hashes = np.zeros(rows, dtype=np.uint64)
    for name, values in columns:
        # A sum over columns, each salted with its name: the order of the columns does not matter, the names do.
        _add_salted(hashes, values, np.uint64(zlib.crc32(name.encode()) + 1))
    return hashes


def _pieces(batch: pa.RecordBatch | pa.Table) -> list[pa.RecordBatch]:
    return batch.to_batches() if isinstance(batch, pa.Table) else [batch]


def _total(hashes: Hashes) -> Checksum:
    values, mixed = _sums(hashes)
    return Checksum(len(hashes), int(values), int(mixed))


@njit(cache=True, inline="always")
def _mix(x: np.uint64) -> np.uint64:
    # The finalizer of splitmix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True)
def _mixed(numbers: Hashes) -> Hashes:
    hashes = np.empty(len(numbers), dtype=np.uint64)
    for i in range(len(numbers)):
        # Mixing maps 0 to 0, which a sum would not see.
        hashes[i] = _mix(numbers[i] + np.uint64(0x9E3779B97F4A7C15))
    return hashes


@njit(cache=True)
def _fold(hashes: Hashes, more: Hashes) -> None:
    for i in range(len(hashes)):
        hashes[i] = _mix(hashes[i] * np.uint64(31) + more[i])


@njit(cache=True)
def _add_salted(hashes: Hashes, more: Hashes, salt: np.uint64) -> None:
    for i in range(len(hashes)):
        hashes[i] += _mix(more[i] ^ (salt * np.uint64(0x9E3779B97F4A7C15)))


@njit(cache=True)
def _fold_lists(items: Hashes, offsets: npt.NDArray[np.int64]) -> Hashes:
    hashes = np.empty(len(offsets) - 1, dtype=np.uint64)
    for i in range(len(hashes)):
        value = _mix(_LIST + np.uint64(offsets[i + 1] - offsets[i]))
        for j in range(offsets[i], offsets[i + 1]):
            value = _mix(value * np.uint64(31) + items[j])
        hashes[i] = value
    return hashes


@njit(cache=True)
def _hash_spans(words: Hashes, offsets: npt.NDArray[np.int64]) -> Hashes:
    hashes = np.empty(len(offsets) - 1, dtype=np.uint64)
    for i in range(len(hashes)):
        start, end = offsets[i], offsets[i + 1]
        value = _mix(_BYTES + np.uint64(end - start))
        position = start
        while position < end:
            word = position >> 3
            shift = np.uint64((position & 7) << 3)
            found = words[word] >> shift
            if shift:
                found |= words[word + 1] << (np.uint64(64) - shift)
            left = end - position
            if left < 8:
                found &= (np.uint64(1) << np.uint64(left << 3)) - np.uint64(1)
            value = (value ^ found) * np.uint64(0x9FB21C651E98DF25)
            value ^= value >> np.uint64(32)
            position += 8
        hashes[i] = _mix(value)
    return hashes


@njit(cache=True)
def _sums(hashes: Hashes) -> tuple[np.uint64, np.uint64]:
    values = np.uint64(0)
    mixed = np.uint64(0)
    for i in range(len(hashes)):
        values += hashes[i]
        mixed += _mix(hashes[i] ^ _SECOND)
    return values, mixed
