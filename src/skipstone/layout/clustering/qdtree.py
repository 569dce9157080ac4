"""`qdtree`: a tree of cuts by the conditions that queries ask, grown where it spares them most.

Yang et al., "Qd-tree: Learning Data Layouts for Big Data Analytics", SIGMOD 2020: section 3 (the tree), section 4 (the
greedy construction: the cut that skips most, as long as both sides keep at least b rows).

    b    min_rows          cuts (p_1 ..)    conditions of the workload: bounds and features
    q    a query           skip(q, n)       q needs a condition that no row of node n satisfies

Departs from the paper:

- A leaf is described by what its rows really satisfy (bits for features, minimum and maximum for bounds), not by the
  cuts on the path to it, so cuts on one column narrow the columns that go with it.
- What a cut gains is judged by what queries will read when its sides have been cut further. A greedy tree takes the cut
  that skips most at once; it finds none where a query needs two cuts to gain anything, and it spends the first cuts,
  which all later ones live with, on what looks good today. Here a query that cannot skip a node of n rows, m of which
  match it, is taken to read

      m' + (n - m') (b / n)^mixing        with m' = max(m, b)

  of it in the end: all of it when the node is a block, little more than its matches when there is much room for cuts.
  Matching rows that are spread so thin that they fill no block cost a block wherever they are. `mixing` says how much
  of the remaining cutting will serve one query; trees for several values are grown and the best is taken.
- Growth goes on where no cut gains, as long as some query that reads the node needs a condition that only some of its
  rows satisfy.
- The cuts of the paper are predicates as the workload writes them. Here an equality that does not recur is two bounds,
  so that constants never seen before profit from cuts between those that were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skipstone.errors import InvalidInput
from skipstone.layout.clustering.conditions import Conditions, conditions_of, true_rows
from skipstone.layout.clustering.curves import Curve, OrderKey
from skipstone.layout.clustering.growing import Tree, descend, grow, uncut
from skipstone.layout.clustering.ordered import dimensions_of
from skipstone.layout.clustering.questions import Questions
from skipstone.layout.clustering.routing import ClusteringProblem, Routing
from skipstone.layout.sampling import held_by_blocks, sampled_blocks, shuffled
from skipstone.layout.vectors import Bits, words
from skipstone.predicate.literal import Conjunction

__all__ = ["QueryTree", "TreeRouter", "useful_features"]

MIXINGS = (0.3, 0.4, 0.5)
"""Tried in turn; the tree with which the training queries read least is taken."""

MOST_SCORED = 16_384
"""Cuts of larger nodes are chosen by so many of their sampled rows; more change the choice hardly ever."""

SAFETY = 2.0
"""A leaf is given so many standard deviations more rows than a block: the sample shows its size only roughly."""

MOST_USED = 64
"""The most features that are proposed for block vectors, those that spare most."""

WORTH_A_BIT = 1e-4
"""A feature that spares queries less than this share of the rows is not proposed."""

MOST_DIMENSIONS = 3
"""Rows of a leaf that is more than a block are ordered by so many expressions."""


@dataclass(frozen=True, slots=True, eq=False)
class TreeRouter:
    """Asks each row the questions of a tree, and orders the rows of a leaf along a curve."""

    questions: Questions
    key: OrderKey
    groups: int
    used: tuple[Conjunction, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that questions and order look at."""
        return tuple(sorted({*self.questions.columns, *self.key.columns}))

    def route(self, batch: pa.RecordBatch, bits: Bits) -> Routing:
        """Send each row to its leaf. A condition that is NULL for a row counts as not satisfied."""
        return Routing(self.questions.leaf_of(batch, bits).astype(np.int32), self.key.keys(batch))


@dataclass(frozen=True, slots=True)
class QueryTree:
    """The clustering. `mixing` fixes that parameter; 0 tries several values."""

    mixing: float = 0.0
    columns: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.mixing <= 1:
            raise InvalidInput(f"mixing is a number from 0 to 1 (0 tries several), not {self.mixing}")

    def fit(self, sample: pa.Table, problem: ClusteringProblem) -> TreeRouter:
        """Grow trees over the sample and take the one with which the queries read least."""
        features = [feature.filter for feature in problem.features]
        conditions = conditions_of(problem.queries, features, time_zone=problem.time_zone, bounded=problem.bounded)
        dimensions = dimensions_of(problem.queries, MOST_DIMENSIONS)
        key = OrderKey.learn(Curve.HILBERT, dimensions, sample, time_zone=problem.time_zone)
        rows = sample.take(pa.array(shuffled(sample.num_rows, problem.seed)))
        true = true_rows(conditions.filters, rows, time_zone=problem.time_zone)
        matching = true_rows(conditions.queries, rows, time_zone=problem.time_zone)
        order = key.keys(rows)
        grown = [
            _grown(conditions, true, matching, problem, mixing)
            for mixing in ((self.mixing,) if self.mixing else MIXINGS)
        ]
        # One leaf along the curve is the least that a tree must be better than.
        tried = [_Trial.of(tree, conditions, true, order, problem) for tree in (*grown, uncut())]
        best = min(tried, key=lambda trial: trial.read)
        return TreeRouter(
            Questions.of(best.tree, conditions.filters, features, problem.time_zone),
            key,
            int(best.tree.leaf.max()) + 1,
            useful_features(conditions, best.held, best.sizes, given=features),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """A tree, the blocks that a sample makes with it, and the weighted rows of the sample that the queries read."""

    tree: Tree
    held: Bits
    sizes: NDArray[np.float64]
    read: float

    @classmethod
    def of(
        cls,
        tree: Tree,
        conditions: Conditions,
        true: Bits,
        order: NDArray[np.uint64],
        problem: ClusteringProblem,
    ) -> _Trial:
        """Cut the sample into blocks."""
        leaf = descend(tree, np.arange(true.shape[1]), true)
        block = sampled_blocks(leaf.astype(np.int32), order, rows=problem.rows, block_rows=problem.block_rows)
        held = held_by_blocks(true, block)
        sizes = np.bincount(block, minlength=len(held)).astype(np.float64)
        return cls(tree, held, sizes, float(conditions.weights @ (_readings(conditions.needs, held) @ sizes)))


def _readings(needs: Bits, held: Bits) -> Bits:
    """For each query and block whether the block holds all that the query needs."""
    missing = needs.astype(np.float32) @ (~held).astype(np.float32).T
    return np.asarray(missing == 0)


def _grown(conditions: Conditions, true: Bits, matching: Bits, problem: ClusteringProblem, mixing: float) -> Tree:
    """Grow one tree, with leaves a little larger than blocks, so that chance leaves few of them too small."""
    fills = problem.block_rows * len(true) / max(problem.rows, 1)
    return grow(
        words(np.concatenate([true, matching], axis=1)),
        len(conditions.filters),
        np.concatenate([[0], np.cumsum(conditions.needs.sum(axis=1))]).astype(np.int64),
        np.nonzero(conditions.needs)[1].astype(np.int64),
        conditions.weights,
        min_rows=fills + SAFETY * np.sqrt(fills),
        mixing=mixing,
        most_scored=MOST_SCORED,
    )


def useful_features(
    conditions: Conditions, held: Bits, sizes: NDArray[np.float64], *, given: Sequence[Conjunction] = ()
) -> tuple[Conjunction, ...]:
    """Choose the stored conditions that spare the queries most rows, one after the other.

    Bounds and the given features are there anyhow; a feature counts for what it spares beyond those chosen before it.
    """
    known = set(given)
    bound = np.array(
        [not stored or one in known for one, stored in zip(conditions.filters, conditions.stored, strict=True)],
        dtype=np.bool_,
    )
    reads = _readings(conditions.needs[:, bound], held[:, bound])
    candidates = np.flatnonzero(~bound)
    least = WORTH_A_BIT * float(conditions.weights.sum() * sizes.sum())
    spared = (~held[:, candidates]).astype(np.float64) * sizes[:, None]
    asked = conditions.needs[:, candidates] * conditions.weights[:, None]
    chosen: list[int] = []
    while len(chosen) < MOST_USED and len(candidates):
        gains = np.einsum("qf,qb,bf->f", asked, reads.astype(np.float64), spared, optimize=True)
        best = int(np.argmax(gains))
        if gains[best] <= least:
            break
        chosen.append(int(candidates[best]))
        reads &= ~(conditions.needs[:, chosen[-1]][:, None] & ~held[:, chosen[-1]][None, :])
    return tuple(conditions.filters[number] for number in chosen)
