"""Least and greatest values of many blocks, as they lie in Arrow's memory, compared with cuts and with each other.

Whole numbers, dates, timestamps, booleans and decimals of up to 18 digits are 64-bit integers here, floats doubles,
texts and longer decimals byte strings. A bound that is unknown, or that cannot be trusted (NaN, or a minimum above its
maximum), passes every question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.predicate.bounds_search import bytes_reach
from skipstone.predicate.intervals import TOP, Cuts, Domain, Family, Key, domain_of, double_of_rank

__all__ = ["Mask", "Span", "orders_of", "span_of"]

Mask: TypeAlias = npt.NDArray[np.bool_]

FEW_INTERVALS = 6
"""A set of at most this many intervals is asked interval by interval; a larger one is searched for each block."""


class Span(Protocol):
    """The bounds of one expression in every block."""

    def reaches(self, cuts: Cuts, /) -> Mask:
        """Whether a value between the bounds may lie in one of the intervals."""


@dataclass(frozen=True, slots=True)
class NumberSpan:
    """Bounds as numbers; an unknown one is the end of the domain.

    A key times `numerator` by `denominator` is a number here: a timestamp in seconds has a millionth for each of ours.
    """

    minimum: npt.NDArray[Any]
    maximum: npt.NDArray[Any]
    numerator: int
    denominator: int

    def reaches(self, cuts: Cuts, /) -> Mask:
        numbers = [self._cut(cut) for cut in cuts]
        if len(cuts) > 2 * FEW_INTERVALS:
            return self._search(numbers)
        found = np.zeros(len(self.minimum), dtype=np.bool_)
        for low, high in zip(numbers[::2], numbers[1::2], strict=True):
            reached = self.maximum >= low
            if high == high:  # NaN as the end of an interval means that there is none among numbers
                reached &= self.minimum < high
            found |= reached
        return found

    def _search(self, numbers: list[Any]) -> Mask:
        """For each block the first cut above its minimum: inside an interval, or the next one begins in time."""
        numbers = [number for number in numbers if number <= self._greatest]
        if not numbers:
            return np.zeros(len(self.minimum), dtype=np.bool_)
        cuts = np.array(numbers, dtype=self.minimum.dtype)
        places = np.searchsorted(cuts, self.minimum, side="right")
        following = cuts[np.minimum(places, len(cuts) - 1)]
        return np.equal(places % 2, 1) | ((places < len(cuts)) & (following <= self.maximum))

    @property
    def _greatest(self) -> Any:
        return float("inf") if self.minimum.dtype.kind == "f" else np.iinfo(self.minimum.dtype).max

    def _cut(self, key: Any) -> Any:
        """The least number here that is at or above a key."""
        if self.minimum.dtype.kind == "f":
            return double_of_rank(key)
        return max(-(-key * self.numerator // self.denominator), int(np.iinfo(self.minimum.dtype).min))


@dataclass(frozen=True, slots=True)
class ByteSpan:
    """Bounds as byte strings, in arrays of type large_binary; the keys of a long decimal are made into such strings."""

    minimum: Any
    maximum: Any
    numerator: int = 1
    denominator: int = 1

    def reaches(self, cuts: Cuts, /) -> Mask:
        keys = [self._cut(cut) for cut in cuts]
        known = [key for key in keys if isinstance(key, bytes)]
        if len(cuts) > 2 * FEW_INTERVALS:
            return bytes_reach(self.minimum, self.maximum, known)
        # Told by what cannot be, because a comparison with an unknown bound is NULL, and NULL is not impossible.
        impossible = pc.fill_null(pc.less_equal(self.minimum, self.maximum), True)
        for low, high in zip(keys[::2], keys[1::2], strict=True):
            before = pc.less(self.maximum, pa.scalar(low, pa.large_binary()))
            if isinstance(high, bytes):
                after = pc.greater_equal(self.minimum, pa.scalar(high, pa.large_binary()))
                before = pc.or_kleene(before, after)
            impossible = pc.and_kleene(impossible, before)
        return ~_true(impossible)

    def _cut(self, key: Any) -> Key:
        if key is TOP or isinstance(key, bytes):
            cut: Key = key
            return cut
        return _long_decimal(-(-key * self.numerator // self.denominator))


def span_of(minimum: Any, maximum: Any, domain: Domain) -> NumberSpan | ByteSpan | None:
    """Bring bounds into comparable form; None where their type is another kind of thing than the expression.

    >>> cents = pa.array([100, 200], pa.int32()).cast(pa.decimal128(12, 2))
    >>> span = span_of(cents, cents, domain_of(pa.decimal128(18, 4)))
    >>> span.reaches((1_999_900, 2_000_100)).tolist()  # from 199.99 to 200.01 at four digits
    [False, True]
    """
    minimum, maximum = _whole(minimum), _whole(maximum)
    if minimum.type != maximum.type:
        return None
    own = domain_of(minimum.type)
    if own.family is not domain.family or own.family is Family.UNORDERED:
        return None
    numerator, denominator = _ratio(minimum.type, own, domain)
    if own.family in (Family.TEXT, Family.BINARY):
        return ByteSpan(*(array.cast(pa.large_binary()) for array in (minimum, maximum)))
    if pa.types.is_decimal(minimum.type) and minimum.type.precision > _DIGITS_IN_64_BITS:
        if minimum.type.bit_width != 128:
            return None
        return ByteSpan(_long_decimals(minimum), _long_decimals(maximum), numerator, denominator)
    return _number_span(minimum, maximum, domain, numerator, denominator)


def orders_of(left: NumberSpan | ByteSpan, right: NumberSpan | ByteSpan) -> tuple[Mask, Mask, Mask] | None:
    """Whether in each block a value of the left may be less than, equal to and greater than one of the right."""
    if (left.numerator, left.denominator) != (right.numerator, right.denominator):
        return None
    if isinstance(left, NumberSpan) and isinstance(right, NumberSpan) and left.minimum.dtype == right.minimum.dtype:
        less = left.minimum < right.maximum
        greater = left.maximum > right.minimum
        equal = (left.minimum <= right.maximum) & (right.minimum <= left.maximum)
        return less, equal, greater
    if isinstance(left, ByteSpan) and isinstance(right, ByteSpan):
        # A comparison with an unknown bound is NULL: told by what cannot be, as above.
        low, high = _trusted(left), _trusted(right)
        less = ~_true(pc.greater_equal(low[0], high[1]))
        greater = ~_true(pc.less_equal(low[1], high[0]))
        equal = ~(_true(pc.greater(low[0], high[1])) | _true(pc.greater(high[0], low[1])))
        return less, equal, greater
    return None


_DIGITS_IN_64_BITS = 18
_TICKS = {"s": (1, 1_000_000), "ms": (1, 1_000), "us": (1, 1), "ns": (1_000, 1)}
"""Numbers that a timestamp counts up for so many microseconds."""


def _whole(array: Any) -> Any:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _ratio(type_: pa.DataType, own: Domain, domain: Domain) -> tuple[int, int]:
    """How a key of the expression's domain becomes a number as it lies in memory."""
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_):
        numerator, denominator = _TICKS[type_.unit]
        return numerator, denominator * domain.unit
    return own.unit, domain.unit


def _number_span(minimum: Any, maximum: Any, domain: Domain, numerator: int, denominator: int) -> NumberSpan:
    low, high = _numbers(minimum), _numbers(maximum)
    low_unknown, high_unknown = _unknown(minimum), _unknown(maximum)
    unsound = (low > high) & ~(low_unknown | high_unknown)
    if low.dtype.kind == "f":
        ends: tuple[Any, Any] = (float("-inf"), float("inf"))
        # NaN as a bound: whoever wrote it let NaN into the comparisons, and the other bound is no better.
        unsound |= np.isnan(low) | np.isnan(high)
    else:
        bottom, top = domain.bottom, domain.top
        assert isinstance(bottom, int)
        assert isinstance(top, int)
        info = np.iinfo(low.dtype)
        ends = (
            max(-(-bottom * numerator // denominator), info.min),
            min((top - 1) * numerator // denominator, info.max),
        )
    low_unknown, high_unknown = low_unknown | unsound, high_unknown | unsound
    if low_unknown.any():
        low = np.where(low_unknown, ends[0], low)
    if high_unknown.any():
        high = np.where(high_unknown, ends[1], high)
    return NumberSpan(low, high, numerator, denominator)


def _numbers(array: Any) -> npt.NDArray[Any]:
    """The numbers of an array as 64-bit integers or doubles; anything where it is NULL."""
    type_ = array.type
    if pa.types.is_decimal(type_):
        if type_.bit_width != 128:
            array = array.cast(pa.decimal128(type_.precision, type_.scale))
        words = np.frombuffer(array.buffers()[1], dtype=np.int64)  # the low word of each pair holds up to 18 digits
        return words[2 * array.offset : 2 * (array.offset + len(array)) : 2]
    if pa.types.is_floating(type_):
        return np.asarray(pc.fill_null(array.cast(pa.float64()), 0.0))
    if pa.types.is_date64(type_):
        array = array.cast(pa.date32())
    if pa.types.is_date(array.type):
        array = array.view(pa.int32())
    elif pa.types.is_timestamp(type_) or pa.types.is_duration(type_):
        array = array.view(pa.int64())
    wide = pa.uint64() if type_ == pa.uint64() else pa.int64()
    return np.asarray(pc.fill_null(array.cast(wide), 0))


def _unknown(array: Any) -> Mask:
    if not array.null_count:
        return np.zeros(len(array), dtype=np.bool_)
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False))


def _long_decimals(array: Any) -> Any:
    """Write each decimal as sixteen bytes in the order of the numbers: high byte first, the sign turned round."""
    pairs = np.frombuffer(array.buffers()[1], dtype=np.uint64)[2 * array.offset : 2 * (array.offset + len(array))]
    pairs = pairs.reshape(-1, 2)
    words = np.empty((len(array), 2), dtype=">u8")
    words[:, 0] = pairs[:, 1] ^ np.uint64(1 << 63)
    words[:, 1] = pairs[:, 0]
    validity = pa.array(array.is_valid()).buffers()[1] if array.null_count else None
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), len(array), [validity, pa.py_buffer(words.tobytes())]
    ).cast(pa.large_binary())


def _long_decimal(key: int) -> bytes:
    half = 1 << 127
    return (min(max(key, -half), half - 1) + half).to_bytes(16, "big")


def _trusted(span: ByteSpan) -> tuple[Any, Any]:
    """The bounds, where they are not the wrong way round; an unknown minimum of texts is the empty one."""
    sound = pc.fill_null(pc.less_equal(span.minimum, span.maximum), True)
    nothing, empty = pa.scalar(None, pa.large_binary()), pa.scalar(b"", pa.large_binary())
    return pc.if_else(sound, pc.fill_null(span.minimum, b""), empty), pc.if_else(sound, span.maximum, nothing)


def _true(mask: Any) -> Mask:
    return np.asarray(pc.fill_null(mask, False).to_numpy(zero_copy_only=False))
