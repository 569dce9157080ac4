"""Filters over Arrow batches, with SQL's three-valued logic and Spark's meaning of every value.

    evaluate(filter, rows)     TRUE, FALSE or null for each row
    select(filter, rows)       which rows can be kept, and the predicates that somebody else must still check
    value(expression, rows)    the value of an expression, for statistics and cuts
    cannot_evaluate(predicate) why Arrow cannot give Spark's answer, None where it can

A filter is prepared once as an `Evaluator`, which is small, can be pickled, and is used for many batches. What cannot
be evaluated exactly as Spark would is never guessed: the predicate is handed back and its rows are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import CannotEvaluate
from skipstone.predicate.arrow.conversions import Datum, spark_type
from skipstone.predicate.arrow.expressions import Compiler
from skipstone.predicate.arrow.families import Family, family_of
from skipstone.predicate.arrow.literals import compile_literal
from skipstone.predicate.arrow.steps import Frame, Step, broadcast
from skipstone.predicate.arrow.zones import fixed_offset
from skipstone.predicate.expression import Call, Cast, Expression, walk
from skipstone.predicate.literal import Comparison, Conjunction, InSet, Literal, Match, NullTest, Opaque, Predicate

__all__ = ["Evaluator", "Rows", "Selection", "cannot_evaluate", "evaluate", "select", "value"]

Rows: TypeAlias = pa.RecordBatch | pa.Table
"""Rows to be judged; a table gives chunked results, a batch plain ones."""

FEW_VALUES = 4
"""A dictionary is judged value by value where each stands for at least so many rows on average."""

FEW_SURVIVORS = 0.2
"""Below this share of rows alive it pays to copy them out before a costly predicate is evaluated (measured)."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows may satisfy a filter: `mask` has no nulls and is TRUE for every row that does.

    Where `residual` is empty the mask is exact; else the predicates in it were not evaluated, and who uses the rows
    must still apply them.
    """

    mask: pa.BooleanArray | pa.ChunkedArray
    residual: tuple[Predicate, ...] = ()


class Evaluator:
    """A filter prepared for many batches.

    `time_zone` is the session's; parts of a timestamp (year, hour, the date) are computed only where it is given and
    is UTC or a fixed offset.

    >>> from skipstone.predicate.expression import Column, Constant
    >>> from skipstone.predicate.literal import Operator
    >>> x = Column("x", pa.float64())
    >>> above = Predicate((Comparison(Operator.GREATER, x, Constant(1.5, pa.float64())),))
    >>> evaluator = Evaluator(Conjunction((above,)))
    >>> evaluator.evaluate(pa.table({"x": [1.0, 2.0, None, float("nan")]})).to_pylist()
    [False, True, None, True]
    """

    def __init__(self, filter: Conjunction | Predicate, *, time_zone: str | None = None) -> None:  # noqa: A002
        self.filter = filter if isinstance(filter, Conjunction) else Conjunction((filter,))
        self.time_zone = time_zone
        compiler = Compiler(fixed_offset(time_zone))
        prepared = [_prepare(predicate, compiler) for predicate in self.filter.predicates]
        # A stable order: what costs less comes first, equal costs stay as they are written.
        self._prepared = sorted(prepared, key=lambda one: one.cost)

    def __reduce__(self) -> tuple[Callable[..., Evaluator], tuple[Conjunction, str | None]]:
        return _rebuilt, (self.filter, self.time_zone)

    @property
    def residual(self) -> tuple[Predicate, ...]:
        """The predicates that are never evaluated, whatever the rows."""
        return self._in_order(one.predicate for one in self._prepared if one.step is None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the evaluated predicates read, sorted."""
        return tuple(sorted({name for one in self._prepared if one.step is not None for name in one.predicate.columns}))

    def evaluate(self, rows: Rows) -> pa.BooleanArray | pa.ChunkedArray:
        """Give TRUE, FALSE or null for each row, or raise CannotEvaluate if that takes more than Arrow can do."""
        if isinstance(rows, pa.Table):
            return pa.chunked_array([self.evaluate(batch) for batch in rows.to_batches()], pa.bool_())
        frame = Frame(rows)
        result: Datum = pa.scalar(True)
        for one in self._prepared:
            result = pc.and_kleene(result, one.mask(frame))
        return broadcast(result, rows.num_rows)

    def select(self, rows: Rows) -> Selection:
        """Find the rows that may satisfy the filter; a predicate that fails on these rows is handed back."""
        if isinstance(rows, pa.Table):
            parts = [self.select(batch) for batch in rows.to_batches()]
            left = {*self.residual, *(predicate for part in parts for predicate in part.residual)}
            return Selection(pa.chunked_array([part.mask for part in parts], pa.bool_()), self._in_order(left))
        selecting = _Selecting(rows)
        for one in self._prepared:
            selecting.apply(one)
        return Selection(selecting.mask(), self._in_order(selecting.residual))

    def _in_order(self, predicates: Iterable[Predicate]) -> tuple[Predicate, ...]:
        wanted = list(predicates)
        return tuple(predicate for predicate in self.filter.predicates if predicate in wanted)


def evaluate(
    filter: Conjunction | Predicate,  # noqa: A002
    rows: Rows,
    *,
    time_zone: str | None = None,
) -> pa.BooleanArray | pa.ChunkedArray:
    """Judge each row once; prepare an `Evaluator` for many batches."""
    return Evaluator(filter, time_zone=time_zone).evaluate(rows)


def select(
    filter: Conjunction | Predicate,  # noqa: A002
    rows: Rows,
    *,
    time_zone: str | None = None,
) -> Selection:
    """Find the rows that may satisfy a filter, and the predicates that were not evaluated."""
    return Evaluator(filter, time_zone=time_zone).select(rows)


def value(expression: Expression, rows: Rows, *, time_zone: str | None = None) -> pa.Array | pa.ChunkedArray:
    """Compute an expression for each row, in its own type, or raise CannotEvaluate.

    >>> from skipstone.predicate.expression import Column
    >>> rows = pa.table({"c": ["a", "bcd", None]})
    >>> value(Call("length", (Column("c", pa.string()),), pa.int32()), rows).to_pylist()
    [1, 3, None]
    """
    step = Compiler(fixed_offset(time_zone)).value(expression)
    declared = spark_type(expression.type)
    if isinstance(rows, pa.Table):
        return pa.chunked_array([_value_of(step, batch, declared) for batch in rows.to_batches()], declared)
    return _value_of(step, rows, declared)


def cannot_evaluate(predicate: Predicate, *, time_zone: str | None = None) -> str | None:
    """Say why a predicate cannot be evaluated on any batch, None where it can (single batches may still refuse).

    >>> cannot_evaluate(Predicate((Opaque("my_udf(c)", frozenset({"c"})),)))
    'my_udf(c) is left to Spark'
    """
    return _prepare(predicate, Compiler(fixed_offset(time_zone))).reason


@dataclass(frozen=True, slots=True)
class _Prepared:
    """One predicate, its compiled step (None where it cannot be evaluated, with the reason) and what it costs."""

    predicate: Predicate
    step: Step | None
    reason: str | None
    cost: float

    def mask(self, frame: Frame) -> Datum:
        """Compute the predicate; whatever Arrow refuses is unknown."""
        if self.step is None:
            raise CannotEvaluate(self.reason)
        over_values = _over_dictionary(self.step, self.predicate.columns, frame)
        return _refusing(self.step, frame) if over_values is None else over_values


def _over_dictionary(step: Step, columns: frozenset[str], frame: Frame) -> Datum | None:
    """Judge the values of a dictionary instead of the rows that use them, where one small dictionary is all there is.

    None where that does not pay or does not work: a value that no row uses may be one on which Spark would fail.
    """
    if len(columns) != 1:
        return None
    (name,) = columns
    place = frame.batch.schema.get_field_index(name)
    if place < 0 or not pa.types.is_dictionary(frame.batch.schema.field(place).type):
        return None
    encoded = frame.batch.column(place)
    size = len(encoded.dictionary)
    if size * FEW_VALUES > len(encoded):
        return None
    values = pa.concat_arrays([encoded.dictionary, pa.nulls(1, encoded.dictionary.type)])  # NULL comes last
    try:
        answers = broadcast(_refusing(step, Frame(pa.record_batch([values], names=[name]))), size + 1)
    except CannotEvaluate:
        return None
    indices = encoded.indices
    return answers.take(pc.fill_null(indices.cast(pa.int64()), size) if indices.null_count else indices)


def _refusing(step: Step, frame: Frame) -> Datum:
    try:
        return step(frame)
    except pa.ArrowException as error:
        # A checked kernel met an overflow or a value out of range: Spark would fail, or wrap, or give NULL.
        raise CannotEvaluate(f"Arrow refused these rows: {str(error).splitlines()[0]}") from error


def _rebuilt(filter: Conjunction, time_zone: str | None) -> Evaluator:  # noqa: A002
    return Evaluator(filter, time_zone=time_zone)


def _value_of(step: Step, batch: pa.RecordBatch, declared: pa.DataType) -> pa.Array:
    computed = broadcast(_refusing(step, Frame(batch)), batch.num_rows)
    if computed.type.equals(declared) or family_of(declared) is Family.NESTED:
        return computed
    return computed.cast(declared)


def _prepare(predicate: Predicate, compiler: Compiler) -> _Prepared:
    cost = sum(_cost(literal) for literal in predicate.literals)
    try:
        steps = [compile_literal(literal, compiler) for literal in predicate.literals]
    except CannotEvaluate as error:
        return _Prepared(predicate, None, str(error), cost)
    return _Prepared(predicate, _any_of(steps), None, cost)


def _any_of(steps: list[Step]) -> Step:
    def disjunction(frame: Frame) -> Datum:
        result: Datum = pa.scalar(False)
        for step in steps:
            result = pc.or_kleene(result, step(frame))
        return result

    return steps[0] if len(steps) == 1 else disjunction


COST_OF_A_NUMBER = 1.0
COST_OF_A_TEXT = 6.0
COST_OF_A_LOOKUP = 10.0
COST_OF_A_SEARCH = 15.0
COST_OF_A_PATTERN = 50.0
COST_OF_A_CALL = 8.0


def _cost(literal: Literal) -> float:
    """Estimate the time a literal takes, in that of comparing a number (about 0.5 ns a row)."""
    match literal:
        case Comparison(left=left, right=right):
            return _cost_of_value(left) + _cost_of_value(right)
        case InSet(expression=expression):
            return COST_OF_A_LOOKUP + _cost_of_value(expression)
        case Match(expression=expression, pattern=pattern):
            plain = literal.kind.name in ("PREFIX", "SUFFIX", "CONTAINS") and bool(pattern)
            return (COST_OF_A_SEARCH if plain else COST_OF_A_PATTERN) + _cost_of_value(expression)
        case NullTest(expression=expression):
            return _cost_of_value(expression)
        case Opaque():
            return 0.0


def _cost_of_value(expression: Expression) -> float:
    own = COST_OF_A_NUMBER if family_of(expression.type).is_number else COST_OF_A_TEXT
    return own + COST_OF_A_CALL * sum(isinstance(part, Call | Cast) for part in walk(expression))


class _Selecting:
    """The rows of one batch that are still alive, while predicate after predicate is applied."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.frame = Frame(batch)
        self.alive: Datum = pa.scalar(True)  # never null
        self.residual: list[Predicate] = []

    def apply(self, prepared: _Prepared) -> None:
        """Keep the rows for which one more predicate is TRUE, all of them if it cannot be evaluated."""
        if prepared.step is None:
            self.residual.append(prepared.predicate)
            return
        count = self._alive_count()
        if count == 0:
            return
        if prepared.cost >= COST_OF_A_SEARCH and count < FEW_SURVIVORS * self.batch.num_rows:
            self._apply_to_survivors(prepared)
            return
        try:
            mask = prepared.mask(self.frame)
        except CannotEvaluate:
            # A row on which Spark would fail may be one that another predicate has already left out.
            self._apply_to_survivors(prepared)
            return
        self.alive = pc.and_(self.alive, _true(mask))

    def mask(self) -> pa.BooleanArray:
        """Give the rows that are alive."""
        return broadcast(self.alive, self.batch.num_rows)

    def _alive_count(self) -> int:
        if isinstance(self.alive, pa.Scalar):
            return int(self.batch.num_rows) if self.alive.as_py() else 0
        return int(self.alive.true_count)

    def _apply_to_survivors(self, prepared: _Prepared) -> None:
        columns = sorted(prepared.predicate.columns & set(self.batch.schema.names))
        survivors = self.batch if isinstance(self.alive, pa.Scalar) else self._survivors(columns)
        try:
            mask = broadcast(_true(prepared.mask(Frame(survivors))), survivors.num_rows)
        except CannotEvaluate:
            self.residual.append(prepared.predicate)
            return
        if survivors is self.batch:
            self.alive = mask
            return
        alive = self.alive.to_numpy(zero_copy_only=False)
        alive[alive] = mask.to_numpy(zero_copy_only=False)
        self.alive = pa.array(alive)

    def _survivors(self, columns: list[str]) -> pa.RecordBatch:
        places = np.flatnonzero(self.alive.to_numpy(zero_copy_only=False))
        return self.batch.select(columns).take(pa.array(places))


def _true(mask: Datum) -> Datum:
    """Count NULL as not TRUE."""
    if isinstance(mask, pa.Scalar):
        return pc.fill_null(mask, False)
    if not mask.null_count:
        return mask
    known, values = mask.buffers()
    if mask.offset or known is None:
        return pc.fill_null(mask, False)
    # The two bitmaps as they are: a third of the time that fill_null takes.
    both = np.bitwise_and(np.frombuffer(known, np.uint8), np.frombuffer(values, np.uint8))
    return pa.BooleanArray.from_buffers(pa.bool_(), len(mask), [None, pa.py_buffer(both)])
