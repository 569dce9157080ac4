"""Clusterings that are an order of the rows: none, one column, several columns nested, Z-order, Hilbert.

All rows are one group; the blocks are cut from it in the order of the key, and minimum and maximum do the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skipstone.errors import ColumnNotFound, InvalidInput
from skipstone.layout.clustering.coding import Coder
from skipstone.layout.clustering.conditions import Conditions, bounds_of, conditions_of, true_rows
from skipstone.layout.clustering.curves import KEY_BITS, Curve, OrderKey
from skipstone.layout.clustering.routing import ClusteringProblem, Routing
from skipstone.layout.vectors import Bits, union_of_words, words
from skipstone.predicate.expression import Column, Expression, columns_of
from skipstone.predicate.literal import Comparison, Conjunction
from skipstone.predicate.printing import sql
from skipstone.workload.query import Query

__all__ = ["ByCurve", "ByRanges", "BySort", "KeyRouter", "Unordered", "compared", "dimensions_of"]

MOST_DIMENSIONS = 4
"""A curve through more expressions than this keeps none of them together."""

MOST_CANDIDATES = 12
"""Of so many expressions, the ones that filters compare most, the best to sort by is chosen."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyRouter:
    """One group, ordered by a key."""

    key: OrderKey
    used: tuple[Conjunction, ...] = ()
    groups: int = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the key is computed from."""
        return self.key.columns

    def route(self, batch: pa.RecordBatch, bits: Bits) -> Routing:
        """Put all rows into the one group."""
        return Routing(np.zeros(batch.num_rows, dtype=np.int32), self.key.keys(batch))


@dataclass(frozen=True, slots=True)
class Unordered:
    """`none`: rows stay in the order of their arrival."""

    columns: tuple[str, ...] = ()

    def fit(self, sample: pa.Table, problem: ClusteringProblem) -> KeyRouter:
        """Learn nothing: equal keys keep rows in the order of their ids."""
        return KeyRouter(OrderKey(Curve.NESTED, ()))


@dataclass(frozen=True, slots=True)
class BySort:
    """`sort`: by one column, or by the expression that serves the queries best if no column is named."""

    column: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The column that was named."""
        return (self.column,) if self.column else ()

    def fit(self, sample: pa.Table, problem: ClusteringProblem) -> KeyRouter:
        """Sort the sample by each candidate, cut it into blocks, and take the order in which queries read least."""
        if self.column:
            return KeyRouter(_key_of(sample, [self.column], Curve.NESTED, problem))
        candidates = list(compared(problem.queries))[:MOST_CANDIDATES]
        if not candidates or not sample.num_rows:
            return KeyRouter(OrderKey(Curve.NESTED, ()))
        keys = [OrderKey.learn(Curve.NESTED, (one,), sample, time_zone=problem.time_zone) for one in candidates]
        features = [feature.filter for feature in problem.features]
        conditions = conditions_of(problem.queries, features, time_zone=problem.time_zone, recur=False)
        true = true_rows(conditions.filters, sample, time_zone=problem.time_zone)
        blocks = max(1, problem.rows // problem.block_rows)
        read = [_rows_read(key.keys(sample), blocks, true, conditions) for key in keys]
        return KeyRouter(keys[int(np.argmin(read))])


def _rows_read(keys: NDArray[np.uint64], blocks: int, true: Bits, conditions: Conditions) -> float:
    """Weighted share of blocks that queries read where rows in this order are cut into so many equal blocks."""
    blocks = min(blocks, len(keys))
    block = np.empty(len(keys), dtype=np.int64)
    block[np.argsort(keys, kind="stable")] = np.arange(len(keys)) * blocks // len(keys)
    held = union_of_words(words(true), block, blocks)
    needed = words(conditions.needs)
    read = [float(((needed[q] & ~held) == 0).all(axis=1).mean()) for q in range(len(needed))]
    return float(np.dot(read, conditions.weights))


@dataclass(frozen=True, slots=True)
class ByCurve:
    """`zorder` and `hilbert`: along a curve through columns, or through the expressions that filters compare most.

    `over` names the columns, with commas between them.
    """

    curve: Curve
    over: str = ""
    dimensions: int = MOST_DIMENSIONS

    def __post_init__(self) -> None:
        dimensions = len(_named(self.over)) or self.dimensions
        if not 1 <= dimensions <= KEY_BITS:
            raise InvalidInput(f"a curve goes through 1 to {KEY_BITS} dimensions, not {dimensions}")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that were named."""
        return tuple(sorted(_named(self.over)))

    def fit(self, sample: pa.Table, problem: ClusteringProblem) -> KeyRouter:
        """Learn codes of the columns named, or of the expressions chosen."""
        if self.over:
            return KeyRouter(_key_of(sample, _named(self.over), self.curve, problem))
        chosen = dimensions_of(problem.queries, self.dimensions)
        return KeyRouter(OrderKey.learn(self.curve, chosen, sample, time_zone=problem.time_zone))


@dataclass(frozen=True, slots=True)
class ByRanges:
    """`range`: composite ranges by hand, nested in the order in which they are named.

    `over` is a list such as `order_date:month, region, quantity:5`: dates and timestamps by year, month or day, any
    column in so many parts of equal share, or, with nothing after it, value by value.
    """

    over: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that were named."""
        return tuple(sorted({name for name, _ in self._parts()}))

    def fit(self, sample: pa.Table, problem: ClusteringProblem) -> KeyRouter:
        """Learn the boundaries of the ranges."""
        parts = self._parts()
        bits = OrderKey._bits(len(parts))
        coders = tuple(_ranged(sample, name, how, 1 << bits, problem.time_zone) for name, how in parts)
        return KeyRouter(OrderKey(Curve.NESTED, coders))

    def _parts(self) -> list[tuple[str, str]]:
        named = _named(self.over)
        if not named:
            raise InvalidInput('a range clustering needs its columns, such as "order_date:month, region, quantity:5"')
        if len(named) > KEY_BITS:
            raise InvalidInput(f"ranges nest at most {KEY_BITS} deep, not {len(named)}")
        split = (part.partition(":") for part in named)
        return [(name.strip(), how.strip().lower()) for name, _, how in split]


UNITS = ("year", "month", "day")


def _ranged(sample: pa.Table, name: str, how: str, most: int, time_zone: str | None) -> Coder:
    column = _column(sample, name)
    if not how:
        return Coder.learn(column, sample, most, time_zone=time_zone)
    if how.isdigit() and int(how) > 0:
        return Coder.learn(column, sample, min(int(how), most), time_zone=time_zone)
    if how not in UNITS:
        raise InvalidInput(f'a range on "{name}" is by {", ".join(UNITS)}, or in a number of parts; "{how}" is neither')
    if not pa.types.is_date(column.type) and not pa.types.is_timestamp(column.type):
        raise InvalidInput(f'"{name}" is of type {column.type}, so it has no {how}; name a number of parts instead')
    return Coder.by_unit(column, sample, how, time_zone=time_zone)


def _named(over: str) -> list[str]:
    return [part.strip() for part in over.split(",") if part.strip()]


def _column(sample: pa.Table, name: str) -> Column:
    if name not in sample.schema.names:
        raise ColumnNotFound.among(name, sample.schema.names, where="the sample")
    return Column(name, sample.schema.field(name).type)


def _key_of(sample: pa.Table, names: Sequence[str], curve: Curve, problem: ClusteringProblem) -> OrderKey:
    columns = tuple(_column(sample, name) for name in names)
    return OrderKey.learn(curve, columns, sample, time_zone=problem.time_zone)


def compared(queries: Sequence[Query]) -> dict[Expression, float]:
    """Return the expressions that filters bound, and the weight of the queries that do, the heaviest first.

    >>> from skipstone.predicate.expression import Constant
    >>> from skipstone.predicate.literal import Operator, Predicate
    >>> a, b = Column("a", pa.int64()), Column("b", pa.int64())
    >>> def above(c, v): return Predicate((Comparison(Operator.GREATER, c, Constant(v, pa.int64())),))
    >>> asked = [Query((), Conjunction((above(a, 1), above(b, 2)))), Query((), Conjunction((above(b, 3),)), weight=2)]
    >>> [(one.name, weight) for one, weight in compared(asked).items()]
    [('b', 3.0), ('a', 1.0)]
    """
    weights: dict[Expression, float] = defaultdict(float)
    for query in queries:
        bounds = (bound.literals[0] for predicate in query.filter for bound in bounds_of(predicate))
        for expression in {bound.left for bound in bounds if isinstance(bound, Comparison)}:
            weights[expression] += query.weight
    return {one: weights[one] for one in sorted(weights, key=lambda one: (-weights[one], sql(one)))}


def dimensions_of(queries: Sequence[Query], most: int) -> tuple[Expression, ...]:
    """Choose the expressions to order rows by: those that the most weight compares, one for each column."""
    chosen: list[Expression] = []
    for expression in compared(queries):
        taken = frozenset().union(*(columns_of(one) for one in chosen))
        if not columns_of(expression) & taken and len(chosen) < most:
            chosen.append(expression)
    return tuple(chosen)
