"""What an expression is compiled to: steps, which compute a value for a frame of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import pyarrow as pa

from skipstone.errors import ColumnNotFound, InvalidInput
from skipstone.predicate.arrow.conversions import Datum
from skipstone.predicate.expression import Expression

__all__ = ["Always", "Frame", "Step", "Steps", "broadcast"]


class Frame:
    """Some rows, and what has been computed of them so far, so that a shared expression is computed once."""

    __slots__ = ("batch", "computed")

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.computed: dict[int, Datum] = {}

    def column(self, name: str) -> pa.Array:
        """Find a column by its exact name."""
        schema = self.batch.schema
        places = schema.get_all_field_indices(name)
        if not places:
            raise ColumnNotFound.among(name, schema.names, where="these rows")
        if len(places) > 1:
            raise InvalidInput(f'these rows have {len(places)} columns named "{name}"; which is meant is not clear')
        return self.batch.column(places[0])


Step: TypeAlias = Callable[[Frame], Datum]


class Steps(Protocol):
    """What a function's rule may ask of the compiler that calls it."""

    @property
    def offset(self) -> int | None:
        """The session's time zone in seconds east of Greenwich, or None where it is not known or not fixed."""

    def value(self, expression: Expression) -> Step:
        """Compile an expression to its value."""

    def converted(self, expression: Expression, target: pa.DataType) -> Step:
        """Compile an expression to its value in another type."""


class Always:
    """The step of a constant: one scalar for all rows."""

    __slots__ = ("value",)

    def __init__(self, value: pa.Scalar) -> None:
        self.value = value

    def __call__(self, frame: Frame) -> Datum:
        return self.value


def broadcast(datum: Datum, rows: int) -> pa.Array:
    """Give a value for each row, also where it is the same for all."""
    return pa.repeat(datum, rows) if isinstance(datum, pa.Scalar) else datum
