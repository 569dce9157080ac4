"""Values as small numbers in the same order: how far up in the sample a value stands.

A coder learns quantiles of an expression from a sample. It gives every value a code, also values the sample did not
have: NULL comes first, NaN last, and a greater value never has a smaller code. Text is told apart by its first bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skipstone.errors import CannotEvaluate
from skipstone.predicate.evaluation import value
from skipstone.predicate.expression import Expression

__all__ = ["Coder", "sortable"]

TEXT_BYTES = 64
"""Longer text is told apart by this many bytes; a block's own bounds are exact whatever the order of its rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Coder:
    """Codes of an expression: 0 is NULL, code k + 1 the values from `lows[k]` up to the next.

    `positions[code]` is the share of the sample's rows that stand below the code, so that codes can be spread evenly.
    """

    expression: Expression
    lows: NDArray[np.generic]
    positions: NDArray[np.float64]
    time_zone: str | None = None

    @classmethod
    def learn(cls, expression: Expression, sample: pa.Table, levels: int, *, time_zone: str | None = None) -> Coder:
        """Learn at most `levels` quantiles of equal share; a value that fills several is one level.

        >>> from skipstone.predicate.expression import Column
        >>> x = Column("x", pa.int64())
        >>> rows = pa.table({"x": [30, 10, 20, 40, None]})
        >>> coder = Coder.learn(x, rows, levels=2)
        >>> coder.codes(pa.table({"x": [5, 10, 30, 99, None]})).tolist()
        [1, 1, 2, 2, 0]
        """
        present, values = _values(expression, sample, time_zone)
        ordered = np.sort(values[present])
        quantiles = np.unique(ordered[np.arange(levels) * len(ordered) // levels]) if len(ordered) else ordered
        return cls._between(expression, quantiles, ordered, len(values), time_zone)

    @classmethod
    def by_unit(cls, expression: Expression, sample: pa.Table, unit: str, *, time_zone: str | None = None) -> Coder:
        """Learn which years, months or days there are; every one is a level. Instants are truncated in UTC."""
        array = _array(value(expression, sample, time_zone=time_zone))
        present = np.asarray(array.is_valid())
        starts = np.unique(sortable(pc.floor_temporal(array, unit=unit))[present])
        return cls._between(expression, starts, np.sort(sortable(array)[present]), len(array), time_zone)

    @classmethod
    def _between(
        cls,
        expression: Expression,
        lows: NDArray[np.generic],
        ordered: NDArray[np.generic],
        rows: int,
        time_zone: str | None,
    ) -> Coder:
        missing = rows - len(ordered)
        below = np.searchsorted(ordered, lows, side="left")
        positions = np.concatenate([[0.0], missing + below if len(lows) else [missing]]) / max(rows, 1)
        # Values below the least of the sample share the code of the least.
        return cls(expression, lows[1:], positions, time_zone)

    @property
    def levels(self) -> int:
        """How many codes there are, that of NULL included."""
        return len(self.lows) + 2

    def codes(self, rows: pa.Table | pa.RecordBatch) -> NDArray[np.int64]:
        """Give each row its code; where an expression cannot be computed, that of NULL."""
        present, values = _values(self.expression, rows, self.time_zone)
        if not len(self.lows) or not present.any():
            return present.astype(np.int64)
        return np.where(present, np.searchsorted(self.lows, values, side="right") + 1, 0)

    def spread(self, rows: pa.Table | pa.RecordBatch, bits: int) -> NDArray[np.uint64]:
        """Give each row the place of its code in the sample, as a number of so many bits.

        >>> from skipstone.predicate.expression import Column
        >>> x = Column("x", pa.int64())
        >>> rows = pa.table({"x": [1, 2, 3, 4]})
        >>> Coder.learn(x, rows, levels=4).spread(rows, bits=8).tolist()
        [0, 64, 128, 192]
        """
        places = np.minimum(self.positions * 2.0**bits, 2.0**bits - 1).astype(np.uint64)
        return np.asarray(places[self.codes(rows)])


def _values(
    expression: Expression, rows: pa.Table | pa.RecordBatch, time_zone: str | None
) -> tuple[NDArray[np.bool_], NDArray[np.generic]]:
    try:
        computed = value(expression, rows, time_zone=time_zone)
    except CannotEvaluate:
        return np.zeros(rows.num_rows, dtype=np.bool_), np.zeros(rows.num_rows, dtype=np.int64)
    array = _array(computed)
    return np.asarray(array.is_valid()), sortable(array)


def _array(computed: pa.Array | pa.ChunkedArray) -> pa.Array:
    return computed.combine_chunks() if isinstance(computed, pa.ChunkedArray) else computed


def sortable(array: pa.Array) -> NDArray[np.generic]:
    """Return numbers or bytes that numpy sorts as Spark sorts the values; what stands for NULL is arbitrary.

    Values may become equal that were not (long text, decimals of more than 18 digits) but never change sides. Types
    without an order become all equal.

    >>> sortable(pa.array(["b", None, "a"])).tolist()
    [b'b', b'', b'a']
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        return sortable(array.dictionary_decode())
    if pa.types.is_floating(kind):
        return _numbers(array, pa.float64(), np.float64)
    if pa.types.is_uint64(kind):
        return _numbers(array, pa.uint64(), np.uint64)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return _numbers(array, pa.int64(), np.int64)
    if pa.types.is_decimal(kind):
        return _decimals(array)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return _numbers(array.view(pa.int32()), pa.int64(), np.int64)
    if pa.types.is_temporal(kind) and kind.bit_width == 64:
        return _numbers(array.view(pa.int64()), pa.int64(), np.int64)
    if _is_text(kind):
        return _texts(array)
    return np.zeros(len(array), dtype=np.int64)


def _is_text(kind: pa.DataType) -> bool:
    return any(
        is_one(kind)
        for is_one in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_string_view,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_binary_view,
            pa.types.is_fixed_size_binary,
        )
    )


def _numbers(array: pa.Array, kind: pa.DataType, dtype: type[np.generic]) -> NDArray[np.generic]:
    plain = array.cast(kind)
    if plain.null_count:
        plain = pc.fill_null(plain, pa.scalar(0, kind))
    return np.asarray(plain.to_numpy(zero_copy_only=False), dtype=dtype)


def _decimals(array: pa.Array) -> NDArray[np.generic]:
    if array.type.bit_width == 128 and array.type.precision <= 18:
        # The low half of a little-endian 128-bit number holds all of it.
        halves = np.frombuffer(array.buffers()[1], dtype="<i8") if len(array) else np.zeros(0, dtype=np.int64)
        return halves[2 * array.offset : 2 * (array.offset + len(array)) : 2].astype(np.int64, copy=False)
    return _numbers(array, pa.float64(), np.float64)


def _texts(array: pa.Array) -> NDArray[np.generic]:
    encoded = array.dictionary_encode()
    distinct = encoded.dictionary.cast(pa.large_binary())
    starts = pc.binary_slice(distinct, 0, TEXT_BYTES).to_pylist()
    table = np.array([*starts, b""], dtype=f"S{TEXT_BYTES}")
    return np.asarray(table[pc.fill_null(encoded.indices, len(starts)).to_numpy(zero_copy_only=False)])
