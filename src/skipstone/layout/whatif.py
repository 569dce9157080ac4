"""What a layout would read, told from a sample: no row is moved to find out.

The rows of a sample are put where a router would put them and cut into as many blocks as the whole would have
(`skipstone.layout.sampling`). Block vectors and bounds of those blocks then skip as the real ones will, by both
mechanisms together. An estimate leans to the low side where a query's rows are too rare for the sample to hold one in
each block that has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import CannotEvaluate
from skipstone.layout.vectors import Bits, unions
from skipstone.predicate.bounds import prepare
from skipstone.predicate.evaluation import select, value
from skipstone.predicate.expression import Expression
from skipstone.predicate.implication import implication_matrix
from skipstone.predicate.literal import Conjunction
from skipstone.predicate.printing import sql

__all__ = ["SampledBlocks", "Shares", "describe_blocks", "matching_shares"]

Shares = npt.NDArray[np.float64]
"""For each filter the estimated share of the rows that a query with it reads."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    minimum: pa.Array
    maximum: pa.Array
    null_count: pa.Array
    nan_count: pa.Array


@dataclass(frozen=True, slots=True, eq=False)
class SampledBlocks:
    """The blocks that a sample falls into: their rows in the sample, their vectors, and their bounds."""

    rows: npt.NDArray[np.int64]
    vectors: Bits
    features: tuple[Conjunction, ...]
    known: Mapping[str, _Bounds]

    def bounds(self, text: str, /) -> _Bounds | None:
        """The bounds of an expression by its canonical text."""
        return self.known.get(text)

    def read_shares(self, filters: Sequence[Conjunction]) -> Shares:
        """Estimate for each filter the share of all rows that are in blocks which may have a match."""
        total = max(1, int(self.rows.sum()))
        subsumed = (
            implication_matrix(filters, self.features) if self.features else np.zeros((len(filters), 0), np.bool_)
        )
        shares: Shares = np.empty(len(filters), np.float64)
        for number, condition in enumerate(filters):
            stays = np.all(self.vectors[:, subsumed[number]], axis=1) & prepare(condition).mask(self)
            shares[number] = self.rows[stays].sum() / total
        return shares


def describe_blocks(
    sample: pa.Table,
    bits: Bits,
    features: Sequence[Conjunction],
    block: npt.NDArray[np.int64],
    tracked: Sequence[Expression],
) -> SampledBlocks:
    """Describe the blocks that sampled rows fall into, as a catalog would: `block` numbers the block of each row."""
    count = int(block.max(initial=-1)) + 1
    known = {}
    for expression in tracked:
        found = _bounds(sample, expression, block, count)
        if found is not None:
            known[sql(expression)] = found
    return SampledBlocks(np.bincount(block, minlength=count), unions(bits, block, count), tuple(features), known)


def matching_shares(sample: pa.Table, filters: Sequence[Conjunction]) -> Shares:
    """The share of rows that satisfy each filter: no layout can read less."""
    matching = [pc.sum(select(condition, sample).mask).as_py() or 0 for condition in filters]
    shares: Shares = np.asarray(matching, np.float64) / max(1, sample.num_rows)
    return shares


def _bounds(sample: pa.Table, expression: Expression, block: npt.NDArray[np.int64], count: int) -> _Bounds | None:
    try:
        values = value(expression, sample)
        nan = pc.is_nan(values) if pa.types.is_floating(values.type) else None
        ordered = values if nan is None else pc.if_else(nan, pa.scalar(None, values.type), values)
        grouped = (
            pa.table({"block": block, "value": ordered})
            .group_by("block")
            .aggregate([("value", "min"), ("value", "max")])
        )
    except (CannotEvaluate, pa.ArrowNotImplementedError):
        return None
    place = np.argsort(grouped["block"].to_numpy())
    nulls = np.bincount(block, weights=pc.is_null(values).to_numpy(zero_copy_only=False), minlength=count)
    is_nan = np.zeros(len(block)) if nan is None else pc.fill_null(nan, False).to_numpy(zero_copy_only=False)
    nans = np.bincount(block, weights=is_nan, minlength=count)
    return _Bounds(
        grouped["value_min"].combine_chunks().take(pa.array(place)),
        grouped["value_max"].combine_chunks().take(pa.array(place)),
        pa.array(nulls.astype(np.int64)),
        pa.array(nans.astype(np.int64)),
    )
