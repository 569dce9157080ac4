"""What is known of very many blocks, as columns: NULL, NaN and other values, each asked by itself."""

from __future__ import annotations

import functools
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.predicate.bounds_spans import ByteSpan, Mask, NumberSpan, orders_of, span_of
from skipstone.predicate.expression import Call, Cast, Column, Constant, Element, Field
from skipstone.predicate.implication_terms import BOTH_NULL, EQUAL, GREATER, LESS, ONE_NULL, Condition, Subject
from skipstone.predicate.implication_theories import comparable
from skipstone.predicate.intervals import Domain, Family, ValueSet, double_rank
from skipstone.predicate.printing import sql

__all__ = ["BoundsTable", "ColumnBounds", "Columns", "SomeBlocks"]


class ColumnBounds(Protocol):
    """What is known of one expression in each block, as Arrow arrays; NULL is unknown.

    `minimum` and `maximum` are over the values that are neither NULL nor NaN.
    """

    @property
    def minimum(self) -> Any: ...
    @property
    def maximum(self) -> Any: ...
    @property
    def null_count(self) -> Any: ...
    @property
    def nan_count(self) -> Any: ...


class BoundsTable(Protocol):
    """What is known of many blocks."""

    @property
    def rows(self) -> npt.NDArray[Any]:
        """The number of rows of each block."""

    def bounds(self, text: str, /) -> ColumnBounds | None:
        """What is known of the expression with this canonical text, None where nothing is."""


class SomeBlocks:
    """What is known of some of the blocks of a table, by their places in it."""

    def __init__(self, table: BoundsTable, places: npt.NDArray[np.int64]) -> None:
        self._table = table
        self._places = places

    @property
    def rows(self) -> npt.NDArray[Any]:
        """The number of rows of each of these blocks."""
        return np.asarray(self._table.rows)[self._places]

    def bounds(self, text: str, /) -> ColumnBounds | None:
        """What is known of an expression in these blocks."""
        known = self._table.bounds(text)
        return None if known is None else _SomeBounds(known, pa.array(self._places))


class _SomeBounds:
    """The bounds of an expression in some blocks, each picked out when it is asked for."""

    def __init__(self, known: ColumnBounds, places: pa.Array) -> None:
        self._known = known
        self._places = places

    @functools.cached_property
    def minimum(self) -> Any:
        return self._known.minimum.take(self._places)

    @functools.cached_property
    def maximum(self) -> Any:
        return self._known.maximum.take(self._places)

    @functools.cached_property
    def null_count(self) -> Any:
        return self._known.null_count.take(self._places)

    @functools.cached_property
    def nan_count(self) -> Any:
        return self._known.nan_count.take(self._places)


class Columns:
    """The bounds of a table's blocks, brought into comparable form as far as one filter asks for them."""

    def __init__(self, table: BoundsTable, rows: npt.NDArray[np.int64]) -> None:
        self._table = table
        self._rows = rows
        self._facts: dict[Subject, _Facts | None] = {}

    def knows(self, subject: Subject) -> bool:
        """Whether anything is known of a subject in any block."""
        if len(subject.ties) == 2:
            return any(self._of(side) is not None for side in subject.ties)
        return self._of(subject) is not None

    def meets(self, condition: Condition) -> Mask:
        """For each block whether the subject may have a value in the set."""
        subject = condition.subject
        if len(subject.ties) == 2:
            left, right = (self._of(side) or self._nothing_of(side) for side in subject.ties)
            return _orders_meet(condition.values, left, right)
        facts = self._of(subject)
        return np.ones(len(self._rows), dtype=np.bool_) if facts is None else facts.meets(condition.values)

    def _nothing_of(self, subject: Subject) -> _Facts:
        return _Facts(_Unknown(len(self._rows), subject), self._rows, subject.domain)

    def _of(self, subject: Subject) -> _Facts | None:
        if subject not in self._facts:
            of = subject.of
            assert isinstance(of, Column | Field | Element | Constant | Cast | Call)
            bounds = self._table.bounds(sql(of))
            self._facts[subject] = None if bounds is None else _Facts(bounds, self._rows, subject.domain)
        return self._facts[subject]


class _Facts:
    """What is known of one expression: whether NULL, NaN or other values may occur, and between which bounds."""

    def __init__(self, bounds: ColumnBounds, rows: npt.NDArray[np.int64], domain: Domain) -> None:
        self.domain = domain
        self._bounds = bounds
        self._rows = rows

    @functools.cached_property
    def may_hold_null(self) -> Mask:
        """Whether there may be NULLs."""
        return np.not_equal(_counts(self._bounds.null_count), 0)

    @functools.cached_property
    def may_hold_nan(self) -> Mask:
        """Whether there may be NaNs."""
        if self.domain.family is not Family.FLOAT:
            return np.zeros(len(self._rows), dtype=np.bool_)
        return np.not_equal(_counts(self._bounds.nan_count), 0)

    @functools.cached_property
    def may_hold_values(self) -> Mask:
        """Whether there may be values that are neither NULL nor NaN."""
        nulls = _counts(self._bounds.null_count)
        if self.domain.family is not Family.FLOAT:
            return np.less(nulls, self._rows)  # an unknown count is negative
        nans = _counts(self._bounds.nan_count)
        return np.logical_or(nulls + nans < self._rows, np.minimum(nulls, nans) < 0)

    @functools.cached_property
    def may_be_known(self) -> Mask:
        """Whether there may be values that are not NULL."""
        return self.may_hold_values | self.may_hold_nan

    @functools.cached_property
    def span(self) -> NumberSpan | ByteSpan | None:
        """The bounds of the values that are neither NULL nor NaN; None where they cannot be compared."""
        return span_of(self._bounds.minimum, self._bounds.maximum, self.domain)

    def meets(self, values: ValueSet) -> Mask:
        """Whether there may be a value in the set."""
        cuts = self.domain.below(_NAN_RANK).cuts if self.domain.family is Family.FLOAT else self.domain.known.cuts
        inside = (values & ValueSet(cuts)).cuts
        found = np.zeros(len(self._rows), dtype=np.bool_)
        if inside:
            found = self.may_hold_values
            if inside != cuts and self.span is not None:
                found = found & self.span.reaches(inside)
        if values.null:
            found = found | self.may_hold_null
        if self.domain.family is Family.FLOAT and values.meets(ValueSet((_NAN_RANK, _NAN_RANK + 1))):
            found = found | self.may_hold_nan
        return found


class _Unknown:
    """Nothing is known of an expression."""

    def __init__(self, blocks: int, subject: Subject) -> None:
        of = subject.of
        assert isinstance(of, Column | Field | Element | Constant | Cast | Call)
        self.minimum = self.maximum = pa.nulls(blocks, of.type)
        self.null_count = self.nan_count = pa.nulls(blocks, pa.int64())


def _orders_meet(states: ValueSet, left: _Facts, right: _Facts) -> Mask:
    """Whether the values of two expressions may stand to each other in one of these states."""
    found = np.zeros(len(left.may_hold_null), dtype=np.bool_)
    for state, possible in _possible_orders(left, right).items():
        if states.meets(ValueSet((state, state + 1))):
            found |= possible
    if states.meets(ValueSet((ONE_NULL, ONE_NULL + 1))):
        found |= left.may_hold_null & right.may_be_known
        found |= left.may_be_known & right.may_hold_null
    if states.meets(ValueSet((BOTH_NULL, BOTH_NULL + 1))):
        found |= left.may_hold_null & right.may_hold_null
    return found


def _possible_orders(left: _Facts, right: _Facts) -> dict[int, Mask]:
    """Where the left may be less than, equal to and greater than the right; NaN is above all and equal to itself."""
    orders = None
    if comparable(left.domain, right.domain) and left.span is not None and right.span is not None:
        orders = orders_of(left.span, right.span)
    both_known = left.may_be_known & right.may_be_known
    if orders is None:
        return dict.fromkeys((LESS, EQUAL, GREATER), both_known)
    both_values = left.may_hold_values & right.may_hold_values
    less, equal, greater = (both_values & order for order in orders)
    return {
        LESS: less | (left.may_hold_values & right.may_hold_nan),
        EQUAL: equal | (left.may_hold_nan & right.may_hold_nan),
        GREATER: greater | (left.may_hold_nan & right.may_hold_values),
    }


def _counts(array: Any) -> npt.NDArray[np.int64]:
    """Counts as numbers, `_UNKNOWN` where they are NULL."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return np.asarray(pc.fill_null(array.cast(pa.int64()), _UNKNOWN))


_UNKNOWN = -1
_NAN_RANK = double_rank(float("nan"))
