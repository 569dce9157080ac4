"""Ask rows the questions of a tree, quickly.

Most cuts are bounds on a handful of expressions. Each expression is computed once and its values are placed among all
the constants it is compared with, so that a question becomes a comparison of small numbers. Other conditions are
evaluated as they are, or taken from the bits that come with the rows where they are features.

Where a row goes decides only how well blocks skip, never what they answer: what a block holds is told by its own
vector and bounds. So text may be told apart by its first bytes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skipstone.compiled import njit
from skipstone.errors import CannotEvaluate
from skipstone.layout.clustering.coding import sortable
from skipstone.layout.clustering.conditions import true_rows
from skipstone.layout.clustering.growing import Tree
from skipstone.layout.vectors import Bits
from skipstone.predicate.evaluation import value
from skipstone.predicate.expression import Constant, Expression, columns_of
from skipstone.predicate.literal import Comparison, Conjunction, Operator
from skipstone.predicate.printing import sql

__all__ = ["Questions"]

ROWS_AT_ONCE = 65_536

MOST_CODES = 2**15 - 2


@dataclass(frozen=True, slots=True, eq=False)
class _Scale:
    """An expression and the constants that questions compare it with, ascending.

    The code of a value is 2 i + 2 if it is constant i, 2 i + 1 if it lies below constant i and above the one before,
    and 0 if it is NULL.
    """

    expression: Expression
    points: NDArray[np.generic]
    time_zone: str | None

    def codes(self, batch: pa.RecordBatch) -> NDArray[np.uint16]:
        """Place each row's value among the constants; where it cannot be computed it counts as NULL."""
        try:
            array = value(self.expression, batch, time_zone=self.time_zone)
        except CannotEvaluate:
            return np.zeros(batch.num_rows, dtype=np.uint16)
        values = sortable(array)
        left = np.searchsorted(self.points, values, side="left")
        right = np.searchsorted(self.points, values, side="right")
        return np.where(array.is_valid(), left + right + 1, 0).astype(np.uint16)


@dataclass(frozen=True, slots=True, eq=False)
class Questions:
    """A tree whose nodes ask whether the code in a column lies in a range.

    Columns are first those of the scales, then the conditions evaluated as they are, then the bits of features; for
    the latter two the code is 1 where the condition is TRUE.
    """

    scales: tuple[_Scale, ...]
    conditions: tuple[Conjunction, ...]
    features: NDArray[np.int64]
    """Which of the problem's features are asked for."""
    column: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    yes: NDArray[np.int64]
    no: NDArray[np.int64]
    leaf: NDArray[np.int64]
    time_zone: str | None = None

    @classmethod
    def of(
        cls, tree: Tree, conditions: Sequence[Conjunction], features: Sequence[Conjunction], time_zone: str | None
    ) -> Questions:
        """Prepare the questions of a tree that was grown over these conditions."""
        asked = [conditions[number] for number in np.unique(tree.cut[tree.cut >= 0])]
        place_of_feature = {feature: place for place, feature in enumerate(features)}
        rays = {one: ray for one in asked if one not in place_of_feature and (ray := _ray(one)) is not None}
        scales = _scales(list(rays.values()), time_zone)
        from_bits = [one for one in asked if one in place_of_feature]
        evaluated = [one for one in asked if one not in rays and one not in place_of_feature]
        asks = {one: _range_of(ray, scales) for one, ray in rays.items()}
        for number, one in enumerate([*evaluated, *from_bits]):
            asks[one] = (len(scales) + number, 1, 1)
        of_nodes = np.array([asks[conditions[cut]] if cut >= 0 else (-1, 0, 0) for cut in tree.cut.tolist()], np.int64)
        return cls(
            tuple(scales.values()),
            tuple(evaluated),
            np.array([place_of_feature[one] for one in from_bits], dtype=np.int64),
            of_nodes[:, 0],
            of_nodes[:, 1],
            of_nodes[:, 2],
            tree.yes,
            tree.no,
            tree.leaf,
            time_zone,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are looked at, sorted."""
        of_scales = (columns_of(scale.expression) for scale in self.scales)
        of_conditions = (condition.columns for condition in self.conditions)
        return tuple(sorted(frozenset().union(*of_scales, *of_conditions)))

    def leaf_of(self, batch: pa.RecordBatch, bits: Bits) -> NDArray[np.int64]:
        """Return the leaf of each row."""
        leaves = np.empty(batch.num_rows, dtype=np.int64)
        for start in range(0, batch.num_rows, ROWS_AT_ONCE):
            part = batch.slice(start, ROWS_AT_ONCE)
            codes = np.empty((part.num_rows, len(self.scales) + len(self.conditions) + len(self.features)), np.uint16)
            for number, scale in enumerate(self.scales):
                codes[:, number] = scale.codes(part)
            after = len(self.scales) + len(self.conditions)
            codes[:, len(self.scales) : after] = true_rows(self.conditions, part, time_zone=self.time_zone)
            codes[:, after:] = bits[start : start + part.num_rows, self.features]
            leaves[start : start + part.num_rows] = _descend(
                codes, self.column, self.low, self.high, self.yes, self.no, self.leaf
            )
        return leaves


def _ray(condition: Conjunction) -> Comparison | None:
    """The comparison with a constant that a condition is, if it is one whose constant has the expression's type."""
    match condition.predicates:
        case (only,) if len(only.literals) == 1:
            literal = only.literals[0]
            if isinstance(literal, Comparison) and isinstance(literal.right, Constant) and literal.operator in _SIDES:
                return literal if literal.right.type == literal.left.type else None
    return None


_SIDES = frozenset({Operator.LESS, Operator.LESS_EQUAL, Operator.GREATER, Operator.GREATER_EQUAL})


def _scales(rays: Sequence[Comparison], time_zone: str | None) -> dict[Expression, _Scale]:
    constants: dict[Expression, list[Constant]] = {}
    for ray in rays:
        assert isinstance(ray.right, Constant)
        constants.setdefault(ray.left, []).append(ray.right)
    return {
        expression: _Scale(expression, np.unique(_place(constants[expression])), time_zone)
        for expression in sorted(constants, key=sql)
    }


def _place(constants: Sequence[Constant]) -> NDArray[np.generic]:
    return sortable(pa.array([constant.value for constant in constants], constants[0].type))


def _range_of(ray: Comparison, scales: dict[Expression, _Scale]) -> tuple[int, int, int]:
    """The column of the scale, and the first and last code for which the comparison is TRUE."""
    assert isinstance(ray.right, Constant)
    scale = scales[ray.left]
    column = list(scales).index(ray.left)
    at = 2 * int(np.searchsorted(scale.points, _place([ray.right])[0])) + 2
    match ray.operator:
        case Operator.GREATER_EQUAL:
            return column, at, MOST_CODES
        case Operator.GREATER:
            return column, at + 1, MOST_CODES
        case Operator.LESS_EQUAL:
            return column, 1, at
        case _:
            return column, 1, at - 1


@njit(cache=True)
def _descend(
    codes: NDArray[np.uint16],
    column: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    yes: NDArray[np.int64],
    no: NDArray[np.int64],
    leaf: NDArray[np.int64],
) -> NDArray[np.int64]:
    found = np.empty(codes.shape[0], dtype=np.int64)
    for row in range(codes.shape[0]):
        node = 0
        while column[node] >= 0:
            code = codes[row, column[node]]
            node = yes[node] if low[node] <= code <= high[node] else no[node]
        found[row] = leaf[node]
    return found
