"""Sets of values of one ordered type, with NULL a member or not: the algebra under implication and block bounds.

Every ordered type is mapped onto keys that have an exact order and a next key, so that one representation serves all:

    integers, decimals      the unscaled integer            -0.05 at scale 2 -> -5
    booleans                0 and 1
    dates, timestamps       days, microseconds (nanoseconds where the type has them) since 1970
    floats                  the rank of the double; -0.0 and 0.0 have one rank, NaN has the one after infinity
    strings, binary         the bytes (UTF-8); the next key of b is b + NUL

A set is then a sorted tuple of cuts `(a, b, c, d)` that means `[a, b) and [c, d)`, whatever the type. `x <= 5` and
`x < 6` are one set over integers and two over decimals, as they should be.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import functools
import struct
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa

from skipstone.predicate.expression import Constant, Scalar

__all__ = ["TOP", "Cuts", "Domain", "Family", "Key", "ValueSet", "domain_of", "prefix_end", "union_of"]


class Key(Protocol):
    """A place in the order of one domain: an `int`, or `bytes`, or `TOP`; never two kinds in one domain."""

    def __lt__(self, other: Any, /) -> bool: ...
    def __le__(self, other: Any, /) -> bool: ...
    def __gt__(self, other: Any, /) -> bool: ...
    def __ge__(self, other: Any, /) -> bool: ...


Cuts: TypeAlias = tuple[Key, ...]
"""Sorted, distinct, even in number: each pair is an interval that holds its lower end and not its upper end."""


class _Top:
    """The cut above every string: no byte string is the greatest one."""

    __slots__ = ()

    def __lt__(self, other: Any, /) -> bool:
        return False

    def __le__(self, other: Any, /) -> bool:
        return other is self

    def __gt__(self, other: Any, /) -> bool:
        return other is not self

    def __ge__(self, other: Any, /) -> bool:
        return True

    def __repr__(self) -> str:
        return "TOP"

    def __reduce__(self) -> str:
        return "TOP"


TOP: Final = _Top()


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A set of values of one domain, given by its cuts, and whether NULL belongs to it.

    >>> ages = domain_of(pa.int32())
    >>> adults, teens = ages.at_least(18), ages.at_least(13) & ages.below(20)
    >>> teens <= adults, (adults & teens).cuts, (adults | teens).cuts[0]
    (False, (18, 20), 13)
    """

    cuts: Cuts
    null: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing belongs to the set, not even NULL."""
        return not self.cuts and not self.null

    def __and__(self, other: ValueSet) -> ValueSet:
        return ValueSet(_intersection(self.cuts, other.cuts), self.null and other.null)

    def __or__(self, other: ValueSet) -> ValueSet:
        return ValueSet(_union([self.cuts, other.cuts]), self.null or other.null)

    def __le__(self, other: ValueSet) -> bool:
        return (not self.null or other.null) and _within(self.cuts, other.cuts)

    def meets(self, other: ValueSet) -> bool:
        """Whether the two sets have a member in common."""
        return (self.null and other.null) or _overlap(self.cuts, other.cuts)


class Family(enum.Enum):
    """Types whose values can be compared exactly with each other."""

    BOOLEAN = "boolean"
    NUMBER = "number"
    """Integers and decimals."""
    FLOAT = "float"
    DATE = "date"
    LOCAL = "timestamp without zone"
    INSTANT = "timestamp with zone"
    DURATION = "duration"
    TEXT = "string"
    BINARY = "binary"
    UNORDERED = "unordered"
    """Structs, lists, maps and whatever else: only being NULL or not can be told."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The keys of one type: where they begin and end, and how a Python value finds its place among them.

    `unit` is how many keys make one of the natural unit (10**scale for decimals, 1000 for nanosecond timestamps).

    >>> cents = domain_of(pa.decimal128(9, 2))
    >>> cents.place(decimal.Decimal("1.005"))  # between 100 and 101 cents: at least 101, above it 101
    (101, 101)
    """

    family: Family
    bottom: Key
    top: Key
    unit: int = 1
    everything: ValueSet = field(init=False, compare=False)
    known: ValueSet = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "everything", ValueSet((self.bottom, self.top), True))
        object.__setattr__(self, "known", ValueSet((self.bottom, self.top)))

    def place(self, value: Scalar) -> tuple[Key, Key] | None:
        """Give the first key at or above `value` and the first key above it; None where the two cannot be compared."""
        return _PLACES[self.family](self, value)

    def complement(self, values: ValueSet) -> ValueSet:
        """Give everything of the domain, NULL included, that is not in `values`."""
        cuts = values.cuts
        if not cuts:
            return ValueSet((self.bottom, self.top), not values.null)
        cuts = cuts[1:] if cuts[0] == self.bottom else (self.bottom, *cuts)
        cuts = cuts[:-1] if cuts[-1] == self.top else (*cuts, self.top)
        return ValueSet(cuts, not values.null)

    def interval(self, low: Key, high: Key) -> ValueSet:
        """Give `[low, high)`, which is empty where low is not below high."""
        return ValueSet((low, high) if low < high else ())

    def below(self, key: Key) -> ValueSet:
        """Give the keys before `key`."""
        return self.interval(self.bottom, key)

    def at_least(self, key: Key) -> ValueSet:
        """Give the keys from `key` on."""
        return self.interval(key, self.top)

    def next(self, key: Any) -> Key:
        """Give the key right after `key`."""
        following: Key = key + b"\0" if isinstance(key, bytes) else key + 1
        return following

    def last(self, high: Any) -> Key | None:
        """Give the greatest key below `high`; None where there is none such (strings are dense nearly everywhere)."""
        if isinstance(high, int):
            return high - 1
        return high[:-1] if isinstance(high, bytes) and high.endswith(b"\0") else None

    def points(self, values: ValueSet, limit: int) -> tuple[Key, ...] | None:
        """List the known members of a set of at most `limit`; None where there are more.

        >>> domain_of(pa.int32()).points(ValueSet((1, 3, 7, 8)), 10)
        (1, 2, 7)
        """
        found: list[Key] = []
        for low, high in zip(values.cuts[::2], values.cuts[1::2], strict=True):
            key = low
            while key < high:
                if len(found) == limit:
                    return None
                found.append(key)
                if self.family in _DENSE and self.next(key) != high:
                    return None
                key = self.next(key)
        return tuple(found)

    def constant(self, constant: Constant, type_: pa.DataType) -> tuple[Key, Key] | None:
        """Place a constant that a value of this domain (of type `type_`) is compared with, as Spark compares the two.

        Spark converts both sides to one type first. Where that conversion loses digits of the value, comparing exactly
        would give another answer (the DECIMAL 0.1 equals the DOUBLE 0.1 there), so there is no place for it here.
        """
        value, family = constant.value, domain_of(constant.type).family
        if family is Family.FLOAT and self.family is Family.NUMBER:
            if not pa.types.is_integer(type_) or not _integer_meets_double_exactly(type_, value):
                return None
        elif family is Family.NUMBER and self.family is Family.FLOAT:
            value = _as_double(value, type_)
            if value is None:
                return None
        elif family is not self.family and {family, self.family} != {Family.DATE, Family.LOCAL}:
            return None
        return self.place(value)


@functools.lru_cache(maxsize=4096)
def domain_of(type_: pa.DataType) -> Domain:
    """Give the domain of an Arrow type.

    >>> domain_of(pa.int8()).known.cuts
    (-128, 128)
    >>> domain_of(pa.list_(pa.int8())).family.name
    'UNORDERED'
    """
    types = pa.types
    if types.is_dictionary(type_):
        return domain_of(type_.value_type)
    if types.is_boolean(type_):
        return Domain(Family.BOOLEAN, 0, 2)
    if types.is_integer(type_):
        half = 1 << (type_.bit_width - 1)
        return (
            Domain(Family.NUMBER, -half, half) if types.is_signed_integer(type_) else Domain(Family.NUMBER, 0, 2 * half)
        )
    if types.is_decimal(type_):
        reach = 10**type_.precision
        return Domain(Family.NUMBER, 1 - reach, reach, 10 ** max(type_.scale, 0)) if type_.scale >= 0 else _UNORDERED
    if types.is_floating(type_):
        return Domain(Family.FLOAT, -_INFINITY_RANK, _NAN_RANK + 1)
    if types.is_date(type_):
        return Domain(Family.DATE, -(1 << 31), 1 << 31)
    if types.is_timestamp(type_):
        family = Family.LOCAL if type_.tz is None else Family.INSTANT
        return Domain(family, -_TIME_REACH[type_.unit], _TIME_REACH[type_.unit], 1000 if type_.unit == "ns" else 1)
    if types.is_duration(type_):
        reach = _TIME_REACH[type_.unit]
        return Domain(Family.DURATION, -reach, reach, 1000 if type_.unit == "ns" else 1)
    if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_):
        return Domain(Family.TEXT, b"", TOP)
    if (
        types.is_binary(type_)
        or types.is_large_binary(type_)
        or types.is_fixed_size_binary(type_)
        or types.is_binary_view(type_)
    ):
        return Domain(Family.BINARY, b"", TOP)
    return _UNORDERED


def prefix_end(prefix: bytes) -> Key:
    """Give the least key above everything that begins with `prefix`.

    Bytes, not letters, are counted up: the letter after U+D7FF is U+E000, and none follows U+10FFFF, but their bytes
    have a next one either way.

    >>> prefix_end(b"abc"), prefix_end(b"a" + b"\\xff"), prefix_end(b"\\xff")
    (b'abd', b'b', TOP)
    """
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else TOP


def union_of(sets: list[ValueSet]) -> ValueSet:
    """Unite many sets at once.

    >>> union_of([ValueSet((1, 2)), ValueSet((2, 3)), ValueSet((7, 8), True)])
    ValueSet(cuts=(1, 3, 7, 8), null=True)
    """
    return ValueSet(_union([values.cuts for values in sets]), any(values.null for values in sets))


def double_rank(value: float) -> int:
    """Give the rank of a double in Spark's order, where -0.0 equals 0.0 and NaN is the greatest.

    >>> double_rank(-0.0) == double_rank(0.0), double_rank(float("nan")) > double_rank(float("inf"))
    (True, True)
    """
    if value != value:
        return _NAN_RANK
    (bits,) = struct.unpack(">q", struct.pack(">d", value))
    rank: int = bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)
    return rank


def double_of_rank(rank: int) -> float:
    """Give the double of a rank: the inverse of `double_rank`.

    >>> double_of_rank(double_rank(-1.5))
    -1.5
    """
    if rank > _INFINITY_RANK:
        return float("nan")
    (value,) = struct.unpack(">d", struct.pack(">q", abs(rank)))
    return -float(value) if rank < 0 else float(value)


_INFINITY_RANK = 0x7FF0_0000_0000_0000
_NAN_RANK = _INFINITY_RANK + 1
_TIME_REACH = {unit: (1 << 63) * by for unit, by in {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}.items()}
"""How far 64 bits reach in each unit, told in microseconds (nanoseconds in their own)."""
_DOUBLE_EXACT = 1 << 53  # from here on, neighbouring integers become the same double
_UNORDERED = Domain(Family.UNORDERED, 0, 1)  # one key that stands for any known value
_DENSE = {Family.TEXT, Family.BINARY}
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_DAY_MICROSECONDS = 86_400_000_000


def _integer_meets_double_exactly(type_: pa.DataType, value: Scalar) -> bool:
    if type_.bit_width <= 32:
        return True
    # A BIGINT becomes a double before it is compared with one, so 2**53 + 1 equals 2**53 there.
    return isinstance(value, float) and (
        abs(value) < _DOUBLE_EXACT or value in (float("inf"), float("-inf")) or value != value
    )


def _as_double(value: Scalar, type_: pa.DataType) -> float | None:
    """Convert an integer or decimal constant as Spark does before it compares it with a double or a float."""
    assert isinstance(value, int | decimal.Decimal)
    try:
        converted = float(value)
    except OverflowError:
        return None
    if type_.bit_width < 64 and (converted != value or _as_float32(converted) != converted):
        return None  # FLOAT with INT: converted to FLOAT or to DOUBLE, depending on the ANSI setting
    return converted


def _as_float32(value: float) -> float:
    try:
        (narrowed,) = struct.unpack(">f", struct.pack(">f", value))
    except OverflowError:
        return float("inf")
    return float(narrowed)


def _place_number(domain: Domain, value: Scalar) -> tuple[Key, Key] | None:
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        return None
    if value != value:
        return (domain.top, domain.top)  # NaN is above every number
    if value in (float("inf"), float("-inf")):
        end = domain.top if value > 0 else domain.bottom
        return (end, end)
    numerator, denominator = value.as_integer_ratio()
    return _clipped(domain, numerator * domain.unit, denominator)


def _place_boolean(domain: Domain, value: Scalar) -> tuple[Key, Key] | None:
    return (int(value), int(value) + 1) if isinstance(value, bool) else None


def _place_float(domain: Domain, value: Scalar) -> tuple[Key, Key] | None:
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        return None
    if isinstance(value, float) or value != value:
        rank = double_rank(float(value))
        return (rank, rank + 1)
    try:
        near = float(value)
    except OverflowError:
        near = float("inf") if value > 0 else float("-inf")
    rank = double_rank(near)
    # Python compares int and Decimal with float exactly, so the nearest double is put on its true side.
    return (rank if near >= value else rank + 1, rank + 1 if near <= value else rank)


def _place_date(domain: Domain, value: Scalar) -> tuple[Key, Key] | None:
    if not isinstance(value, datetime.date):
        return None
    if isinstance(value, datetime.datetime):
        microseconds = _microseconds(value, aware=False)
        return None if microseconds is None else _clipped(domain, microseconds, _DAY_MICROSECONDS)
    day = value.toordinal() - _EPOCH.toordinal()
    return (day, day + 1)


def _place_local(domain: Domain, value: Scalar) -> tuple[Key, Key] | None:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    microseconds = _microseconds(value, aware=False)
    return None if microseconds is None else _clipped(domain, microseconds * domain.unit, 1)


def _place_instant(domain: Domain, value: Scalar) -> tuple[Key, Key] | None:
    microseconds = _microseconds(value, aware=True)
    return None if microseconds is None else _clipped(domain, microseconds * domain.unit, 1)


def _place_duration(domain: Domain, value: Scalar) -> tuple[Key, Key] | None:
    return _clipped(domain, value // _MICROSECOND * domain.unit, 1) if isinstance(value, datetime.timedelta) else None


def _place_text(domain: Domain, value: Scalar) -> tuple[Key, Key] | None:
    if not isinstance(value, str):
        return None
    key = value.encode("utf-8", "surrogatepass")
    return (key, key + b"\0")


def _place_binary(domain: Domain, value: Scalar) -> tuple[Key, Key] | None:
    return (value, value + b"\0") if isinstance(value, bytes) else None


def _place_nowhere(domain: Domain, value: Scalar) -> tuple[Key, Key] | None:
    return None


_PLACES = {
    Family.BOOLEAN: _place_boolean,
    Family.NUMBER: _place_number,
    Family.FLOAT: _place_float,
    Family.DATE: _place_date,
    Family.LOCAL: _place_local,
    Family.INSTANT: _place_instant,
    Family.DURATION: _place_duration,
    Family.TEXT: _place_text,
    Family.BINARY: _place_binary,
    Family.UNORDERED: _place_nowhere,
}


def _microseconds(value: Scalar, *, aware: bool) -> int | None:
    if not isinstance(value, datetime.datetime) or (value.tzinfo is not None) != aware:
        return None
    return (value - (_EPOCH_UTC if aware else _EPOCH)) // _MICROSECOND


def _clipped(domain: Domain, numerator: int, denominator: int) -> tuple[Key, Key]:
    """Place the fraction between the keys around it, and what lies outside of the domain at its end."""
    floor, rest = divmod(numerator, denominator)
    bottom, top = domain.bottom, domain.top
    assert isinstance(bottom, int)
    assert isinstance(top, int)
    return (min(max(floor + (rest > 0), bottom), top), min(max(floor + 1, bottom), top))


def _intersection(one: Cuts, other: Cuts) -> Cuts:
    if one == other:
        return one
    if len(one) == 2 == len(other):
        low = one[0] if one[0] > other[0] else other[0]
        high = one[1] if one[1] < other[1] else other[1]
        return (low, high) if low < high else ()
    found: list[Key] = []
    i = j = 0
    while i < len(one) and j < len(other):
        low = one[i] if one[i] > other[j] else other[j]
        high = one[i + 1] if one[i + 1] < other[j + 1] else other[j + 1]
        if low < high:
            found += (low, high)
        if one[i + 1] < other[j + 1]:
            i += 2
        else:
            j += 2
    return tuple(found)


def _union(sets: list[Cuts]) -> Cuts:
    intervals = sorted(
        ((cuts[i], cuts[i + 1]) for cuts in sets for i in range(0, len(cuts), 2)), key=lambda pair: pair[0]
    )
    found: list[Key] = []
    for low, high in intervals:
        if found and low <= found[-1]:
            if high > found[-1]:
                found[-1] = high
        else:
            found += (low, high)
    return tuple(found)


def _within(inner: Cuts, outer: Cuts) -> bool:
    if len(outer) == 2:
        return not inner or (outer[0] <= inner[0] and inner[-1] <= outer[1])
    for i in range(0, len(inner), 2):
        place = bisect_right(outer, inner[i])
        if place % 2 == 0 or inner[i + 1] > outer[place]:
            return False
    return True


def _overlap(one: Cuts, other: Cuts) -> bool:
    if len(one) == 2 == len(other):
        return one[0] < other[1] and other[0] < one[1]
    if len(one) > len(other):
        one, other = other, one
    for i in range(0, len(one), 2):
        # The first cut of `other` above the lower end: inside an interval, or the next interval may begin in time.
        place = bisect_right(other, one[i])
        if place % 2 or (place < len(other) and other[place] < one[i + 1]):
            return True
    return False
