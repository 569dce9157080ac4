"""Exact bounds of columns and expressions over the rows of a block, computed on the data itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skipstone.catalog.values import ExpressionBounds
from skipstone.errors import CannotEvaluate
from skipstone.predicate.evaluation import value
from skipstone.predicate.expression import Column, Expression, columns_of
from skipstone.predicate.printing import sql

__all__ = ["MAX_BOUND_BYTES", "BlockBounds", "Tracked", "bounds_column", "bounds_of"]

MAX_BOUND_BYTES = 64
"""Bounds of texts longer than this are cut to a prefix that still bounds all values, and marked as not exact."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """An expression whose bounds are kept for every block, under its canonical text."""

    text: str
    expression: Expression

    @classmethod
    def of(cls, expression: Expression) -> Tracked:
        """Track an expression under its canonical text.

        >>> Tracked.of(Column("price", pa.int64())).text
        'price'
        """
        return cls(sql(expression), expression)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the expression reads."""
        return columns_of(self.expression)

    @property
    def type(self) -> pa.DataType:
        """The type of the expression's values, as its bounds have it."""
        kind = self.expression.type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def values(self, rows: pa.Table) -> pa.ChunkedArray | None:
        """The expression's value for each row, or None where Arrow cannot compute it as Spark would.

        No time zone is given: what depends on the reader's has no bounds that hold for all readers.
        """
        if isinstance(self.expression, Column):
            return rows.column(self.expression.name)
        try:
            return value(self.expression, rows)
        except CannotEvaluate:
            return None


@dataclass(frozen=True, slots=True)
class BlockBounds:
    """What is known of one expression in one block; None means unknown. See `ExpressionBounds` for the meaning."""

    minimum: pa.Scalar | None = None
    maximum: pa.Scalar | None = None
    null_count: int | None = None
    nan_count: int | None = None
    minimum_exact: bool | None = None
    maximum_exact: bool | None = None


def bounds_of(values: pa.Array | pa.ChunkedArray) -> BlockBounds:
    """Find the bounds of the values of one block.

    >>> found = bounds_of(pa.array([2.5, None, float("nan"), -1.0]))
    >>> found.minimum.as_py(), found.maximum.as_py(), found.null_count, found.nan_count
    (-1.0, 2.5, 1, 1)
    """
    kind = values.type
    if pa.types.is_dictionary(kind):
        return bounds_of(values.cast(kind.value_type))
    nulls, nans = values.null_count, 0
    if pa.types.is_floating(kind):
        is_nan = pc.is_nan(values)
        nans = pc.sum(is_nan).as_py() or 0
        if nans:
            values = pc.if_else(is_nan, pa.scalar(None, kind), values)
    if not _is_ordered(kind):
        return BlockBounds(null_count=nulls, nan_count=nans)
    if nulls + nans == len(values):
        return BlockBounds(null_count=nulls, nan_count=nans, minimum_exact=True, maximum_exact=True)
    least, greatest = _extremes(values, kind)
    least, least_exact = _cut_minimum(least)
    greatest, greatest_exact = _cut_maximum(greatest)
    return BlockBounds(least, greatest, nulls, nans, least_exact, greatest_exact)


def bounds_column(found: Sequence[BlockBounds], kind: pa.DataType) -> ExpressionBounds:
    """Put the bounds of several blocks, of one expression, into columns."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind

    def column(get: Callable[[BlockBounds], Any], of: pa.DataType) -> pa.Array:
        return pa.array([get(one) for one in found], of)

    def scalars(get: Callable[[BlockBounds], pa.Scalar | None]) -> pa.Array:
        if all(get(one) is None for one in found):
            return pa.nulls(len(found), kind)
        # Through arrays of one value, because Python's values cannot hold nanoseconds.
        unknown = pa.nulls(1, kind)
        return pa.concat_arrays([unknown if get(one) is None else _one(get(one), kind) for one in found])

    return ExpressionBounds(
        scalars(lambda one: one.minimum),
        scalars(lambda one: one.maximum),
        column(lambda one: one.null_count, pa.int64()),
        column(lambda one: one.nan_count, pa.int64()),
        column(lambda one: one.minimum_exact, pa.bool_()),
        column(lambda one: one.maximum_exact, pa.bool_()),
    )


def _one(value: pa.Scalar | None, kind: pa.DataType) -> pa.Array:
    return pa.repeat(value, 1).cast(kind)


def _is_ordered(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind) or isinstance(kind, pa.BaseExtensionType))


def _extremes(values: Any, kind: pa.DataType) -> tuple[pa.Scalar, pa.Scalar]:
    if pa.types.is_float16(kind):
        least, greatest = _extremes(values.cast(pa.float32()), pa.float32())
        return least.cast(kind), greatest.cast(kind)
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        least, greatest = _extremes(values.cast(pa.large_binary()), pa.large_binary())
        return least.cast(kind), greatest.cast(kind)
    if pa.types.is_duration(kind):
        least, greatest = _extremes(values.cast(pa.int64()), pa.int64())
        return least.cast(kind), greatest.cast(kind)
    if pa.types.is_string_view(kind):
        least, greatest = _extremes(values.cast(pa.large_string()), pa.large_string())
        return least.cast(kind), greatest.cast(kind)
    found = pc.min_max(values)
    least, greatest = found["min"], found["max"]
    if pa.types.is_floating(kind):
        # Zeros of both signs are equal; whichever was met first must not make the other seem out of bounds.
        least = pa.scalar(-0.0, kind) if least.as_py() == 0 else least
        greatest = pa.scalar(0.0, kind) if greatest.as_py() == 0 else greatest
    return least, greatest


def _cut_minimum(value: pa.Scalar) -> tuple[pa.Scalar | None, bool]:
    content = _long_content(value)
    if content is None:
        return value, True
    if _is_bytes(value.type):
        return pa.scalar(content[:MAX_BOUND_BYTES], value.type), False
    prefix = _whole_characters(content[:MAX_BOUND_BYTES])
    return None if prefix is None else pa.scalar(prefix, value.type), False


def _cut_maximum(value: pa.Scalar) -> tuple[pa.Scalar | None, bool]:
    content = _long_content(value)
    if content is None:
        return value, True
    if _is_bytes(value.type):
        bytes_up = bytes_above(content[:MAX_BOUND_BYTES])
        return None if bytes_up is None else pa.scalar(bytes_up, value.type), False
    prefix = _whole_characters(content[:MAX_BOUND_BYTES])
    above = None if prefix is None else text_above(prefix)
    return None if above is None else pa.scalar(above, value.type), False


def _long_content(value: pa.Scalar) -> bytes | None:
    if not (_is_text(value.type) or _is_bytes(value.type)):
        return None
    content = bytes(value.as_buffer())
    return content if len(content) > MAX_BOUND_BYTES else None


def text_above(prefix: str) -> str | None:
    """The least text we can easily name that is greater than every text with this prefix; None where there is none.

    Order is that of UTF-8 bytes, which is that of code points. Surrogates are no characters and are jumped over.

    >>> text_above("ab"), text_above("a" + chr(0x10FFFF)), text_above(chr(0xD7FF)), text_above(chr(0x10FFFF))
    ('ac', 'b', '\\ue000', None)
    """
    while prefix:
        last = ord(prefix[-1])
        if last < sys.maxunicode:
            after = 0xE000 if last + 1 == 0xD800 else last + 1
            return prefix[:-1] + chr(after)
        prefix = prefix[:-1]
    return None


def bytes_above(prefix: bytes) -> bytes | None:
    """The least byte string greater than every one with this prefix; None where there is none.

    >>> bytes_above(b"a\\xff"), bytes_above(b"\\xff")
    (b'b', None)
    """
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


def _whole_characters(content: bytes) -> str | None:
    # The cut may have gone through the last character, of at most four bytes; what is left of it is dropped. Text that
    # is not UTF-8, as some writers let through, has no prefix we could put into a bound.
    for dropped in range(4):
        try:
            return content[: len(content) - dropped].decode()
        except UnicodeDecodeError:
            continue
    return None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))
