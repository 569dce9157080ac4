"""Whether a block may hold a row that satisfies a filter, from the least and greatest values in it.

A filter is turned once into what a block must allow: for each of its conjuncts one of some alternatives, each a list of
sets that the values of expressions must reach into. A block then fails only if, for some conjunct, every alternative
has a set that the block's values are known not to reach. What is not known never makes a block fail.

The same plan is asked of one block at a time (`may_match`) or of very many (`MaskPlan.mask`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from skipstone.predicate.bounds_columns import BoundsTable, Columns, SomeBlocks
from skipstone.predicate.bounds_spans import Mask
from skipstone.predicate.expression import Call, Cast, Column, Constant, Element, Expression, Field, Scalar
from skipstone.predicate.implication_premise import premise_of
from skipstone.predicate.implication_terms import BOTH_NULL, EQUAL, GREATER, LESS, ONE_NULL, Condition, Subject
from skipstone.predicate.implication_theories import comparable, impossible_orders
from skipstone.predicate.intervals import Domain, Family, ValueSet, double_rank, union_of
from skipstone.predicate.literal import Conjunction, Predicate

__all__ = ["Alternative", "BlockStatistics", "Bounds", "MaskPlan", "may_match", "prepare"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of one expression in one block; None is unknown.

    `minimum` is at most, and `maximum` at least, every value that is neither NULL nor NaN. They need not occur: a long
    text may be cut short (and the maximum raised accordingly). `nan_count` matters for floats alone.
    """

    minimum: Scalar = None
    maximum: Scalar = None
    null_count: int | None = None
    nan_count: int | None = None


class BlockStatistics(Protocol):
    """What is known of one block."""

    @property
    def rows(self) -> int | None:
        """The number of rows; None where that is unknown."""

    def bounds(self, expression: Expression) -> Bounds | None:
        """What is known of an expression, None where nothing is."""


Alternative = tuple[Condition, ...]
"""Conditions that one row must meet together."""

FEW = 0.5
"""Where less than this share of the blocks is still open, picking those out costs less than asking all."""


def may_match(c: Conjunction | Predicate, statistics: BlockStatistics) -> bool:
    """Whether a block may hold a row for which the filter is TRUE; unknown means yes.

    >>> import pyarrow as pa
    >>> from skipstone.predicate.literal import Comparison, Operator
    >>> price = Column("price", pa.int32())
    >>> class Block:
    ...     rows = 100
    ...     def bounds(self, expression: Expression) -> Bounds | None:
    ...         return Bounds(10, 20, null_count=0) if expression == price else None
    >>> over = lambda n: Predicate((Comparison(Operator.GREATER, price, Constant(n, pa.int32())),))
    >>> may_match(over(19), Block()), may_match(over(20), Block())
    (True, False)
    """
    return prepare(c).may_match(statistics)


@dataclass(frozen=True, slots=True)
class MaskPlan:
    """A filter made ready to be asked of blocks: every requirement must have an alternative that the block allows.

    `is_impossible` tells that no row at all satisfies the filter.
    """

    requirements: tuple[tuple[Alternative, ...], ...]
    is_impossible: bool = False

    def may_match(self, statistics: BlockStatistics) -> bool:
        """Whether one block may hold a row that satisfies the filter."""
        if self.is_impossible:
            return False
        known: dict[Subject, ValueSet | None] = {}

        def allows(condition: Condition) -> bool:
            if condition.subject not in known:
                known[condition.subject] = _values_in_block(condition.subject, statistics)
            values = known[condition.subject]
            return values is None or values.meets(condition.values)

        return all(
            any(all(allows(condition) for condition in alternative) for alternative in alternatives)
            for alternatives in self.requirements
        )

    def mask(self, table: BoundsTable, among: Mask | None = None) -> Mask:
        """For each block whether it may hold a row that satisfies the filter; only blocks `among` those are asked.

        The others are False. Each requirement is asked of the blocks that are still open after those before it.
        """
        rows = np.asarray(table.rows, dtype=np.int64)
        if self.is_impossible:
            return np.zeros(len(rows), dtype=np.bool_)
        left = np.ones(len(rows), dtype=np.bool_) if among is None else among.copy()
        columns, places = Columns(table, rows), np.arange(len(rows))
        for alternatives in self.requirements:
            # An alternative of which nothing is known is always open, and then so is the whole requirement.
            if not all(any(columns.knows(condition.subject) for condition in one) for one in alternatives):
                continue
            if np.count_nonzero(left) < len(places) * FEW:
                places = np.flatnonzero(left)
                columns = Columns(SomeBlocks(table, places), rows[places])
            left[places] &= functools.reduce(np.logical_or, (_together(columns, one) for one in alternatives))
        return left


@functools.lru_cache(maxsize=4096)
def prepare(c: Conjunction | Predicate) -> MaskPlan:
    """Turn a filter into what a block must allow.

    The predicates are taken together first: `x >= 1 AND x <= 5` asks once for [1, 5], and a disjunct that contradicts
    the rest is dropped.
    """
    premise = premise_of(c)
    if premise.is_impossible:
        return MaskPlan((), is_impossible=True)
    requirements: list[tuple[Alternative, ...]] = [
        ((Condition(subject, values),),) for subject, values in premise.knowledge.sets.items() if _can_be_told(subject)
    ]
    for clause in premise.clauses:
        alternatives = tuple(
            tuple(
                Condition(condition.subject, condition.values & premise.knowledge[condition.subject])
                for condition in term.if_true
                if _can_be_told(condition.subject)
            )
            for term in clause
        )
        if all(alternatives):
            requirements.append(alternatives)
    return MaskPlan(tuple(requirements))


def _together(columns: Columns, alternative: Alternative) -> Mask:
    return functools.reduce(np.logical_and, (columns.meets(c) for c in alternative if columns.knows(c.subject)))


def _can_be_told(subject: Subject) -> bool:
    """Whether bounds can say anything about a subject: expressions and their order, not what is carried unread."""
    return len(subject.ties) == 2 or isinstance(subject.of, Column | Field | Element | Constant | Cast | Call)


def _values_in_block(subject: Subject, statistics: BlockStatistics) -> ValueSet | None:
    """A set that holds every value that the subject has in the block; None where nothing is known."""
    if len(subject.ties) == 2:
        return _orders_in_block(*subject.ties, statistics)
    of = subject.of
    assert isinstance(of, Column | Field | Element | Constant | Cast | Call)
    bounds = statistics.bounds(of)
    return None if bounds is None else _values(bounds, statistics.rows, subject.domain)


def _values(bounds: Bounds, rows: int | None, domain: Domain) -> ValueSet:
    nan_count = bounds.nan_count if domain.family is Family.FLOAT else 0
    null = bounds.null_count != 0
    if rows is not None and bounds.null_count is not None and nan_count is not None:
        has_values = bounds.null_count + nan_count < rows
    else:
        has_values = True
    parts = [ValueSet((), null)]
    if has_values:
        parts.append(_between(bounds.minimum, bounds.maximum, domain))
    if domain.family is Family.FLOAT and nan_count != 0:
        parts.append(ValueSet((NAN_RANK, NAN_RANK + 1)))
    return union_of(parts)


NAN_RANK = double_rank(float("nan"))
"""Where NaN stands in the order of floats."""


def _between(minimum: Scalar, maximum: Scalar, domain: Domain) -> ValueSet:
    """The values between two bounds; everything (but NaN) where the bounds cannot be trusted."""
    everything = domain.below(NAN_RANK) if domain.family is Family.FLOAT else domain.known
    if minimum != minimum or maximum != maximum:
        return everything  # NaN as a bound: its writer let NaN into the comparisons, and the other bound is no better
    low = None if minimum is None else domain.place(minimum)
    high = None if maximum is None else domain.place(maximum)
    begin: Any = domain.bottom if low is None else low[0]
    end: Any = domain.top if high is None else high[1]
    if high is not None and domain.unit == 1000 and domain.family in (Family.LOCAL, Family.INSTANT, Family.DURATION):
        end += 999  # nanoseconds do not fit into a Python datetime, which leaves them off
    return everything & ValueSet((begin, end)) if begin < end else everything


def _orders_in_block(left: Subject, right: Subject, statistics: BlockStatistics) -> ValueSet:
    """How two expressions may stand to each other in the rows of a block."""
    one = _values_in_block(left, statistics) or left.domain.everything
    other = _values_in_block(right, statistics) or right.domain.everything
    possible = set()
    if one.cuts and other.cuts:
        possible = {LESS, EQUAL, GREATER}
        if comparable(left.domain, right.domain):
            possible -= impossible_orders(left.domain, one, other)
    if (one.null and other.cuts) or (one.cuts and other.null):
        possible.add(ONE_NULL)
    if one.null and other.null:
        possible.add(BOTH_NULL)
    return union_of([ValueSet((state, state + 1)) for state in possible])
