"""Blocks of a few rows with what may be known of them: exact, vague, or nothing; one by one and as columns."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipstone.predicate.bounds import Bounds
from skipstone.predicate.expression import Expression
from skipstone.predicate.printing import sql
from tests.predicate.oracle import Row, value


@dataclass(frozen=True)
class Block:
    """The statistics of one block: what `BlockStatistics` asks for."""

    rows: int | None
    known: Mapping[Expression, Bounds]

    def bounds(self, expression: Expression) -> Bounds | None:
        return self.known.get(expression)


@dataclass(frozen=True)
class Columns:
    """The bounds of one expression in many blocks."""

    minimum: pa.Array
    maximum: pa.Array
    null_count: pa.Array
    nan_count: pa.Array


@dataclass(frozen=True)
class Table:
    """The statistics of many blocks: what `BoundsTable` asks for."""

    rows: npt.NDArray[np.int64]
    known: dict[str, Columns] = field(default_factory=dict)

    def bounds(self, text: str) -> Columns | None:
        return self.known.get(text)


def bounds_of(expression: Expression, rows: Sequence[Row]) -> Bounds:
    """The exact bounds of an expression over some rows."""
    values = [value(expression, row) for row in rows]
    known = [one for one in values if one is not None]
    numbers = [one for one in known if one == one]
    ordered = sorted(numbers, key=lambda one: one.encode("utf-8", "surrogatepass") if isinstance(one, str) else one)
    return Bounds(
        ordered[0] if ordered else None,
        ordered[-1] if ordered else None,
        null_count=len(values) - len(known),
        nan_count=len(known) - len(numbers),
    )


def vaguer(bounds: Bounds, chance: random.Random) -> Bounds:
    """Forget parts of what is known, and cut texts short."""

    def kept(one: Any) -> Any:
        return None if chance.random() < 0.25 else one

    low, high = bounds.minimum, bounds.maximum
    if isinstance(low, str) and isinstance(high, str) and chance.random() < 0.4:
        low, high = low[:1], high[:1] + "\U0010ffff"  # at or above every text with this first letter that is in use
        if isinstance(bounds.maximum, str) and high < bounds.maximum:
            high = bounds.maximum
    return Bounds(kept(low), kept(high), kept(bounds.null_count), kept(bounds.nan_count))


def block_of(rows: Sequence[Row], expressions: Sequence[Expression]) -> Block:
    """A block of which everything is known about some expressions."""
    return Block(len(rows), {expression: bounds_of(expression, rows) for expression in expressions})


def table_of(blocks: Sequence[Block], expressions: Sequence[Expression]) -> Table:
    """The same blocks as columns."""
    table = Table(np.array([block.rows for block in blocks], dtype=np.int64))
    for expression in expressions:
        each = [block.known.get(expression, Bounds()) for block in blocks]
        table.known[sql(expression)] = Columns(
            pa.array([bounds.minimum for bounds in each], expression.type),
            pa.array([bounds.maximum for bounds in each], expression.type),
            pa.array([bounds.null_count for bounds in each], pa.int64()),
            pa.array([bounds.nan_count for bounds in each], pa.int64()),
        )
    return table
