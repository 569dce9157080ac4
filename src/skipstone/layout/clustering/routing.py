"""What a clustering is given and what it gives: a problem, a router, and where the router sends rows.

A clustering looks at a sample of a chunk and answers with a router. The router then sees every row of the chunk, batch
by batch and in many tasks at once, and says for each to which group it belongs and where it stands in its group. Rows
are sorted by group and order, and each group is cut into blocks of equal size, so that a block holds between
`block_rows` and twice as many rows; a group that has fewer stays one small block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skipstone.errors import InvalidInput
from skipstone.layout.vectors import Bits
from skipstone.predicate.literal import Conjunction
from skipstone.workload.query import Feature, Query

__all__ = ["Clustering", "ClusteringProblem", "Router", "Routing"]


@dataclass(frozen=True, slots=True)
class ClusteringProblem:
    """What there is to lay out: a chunk of `rows` rows for these queries, in blocks of at least `block_rows` rows.

    The features are those whose bits accompany every row; a clustering may propose more (`Router.used`).
    """

    features: tuple[Feature, ...]
    queries: tuple[Query, ...]
    rows: int
    block_rows: int
    seed: int = 0
    time_zone: str | None = None
    """The time zone of parts of timestamps (their date, their hour); without it they are left out of consideration."""
    bounded: frozenset[str] | None = None
    """The columns whose bounds the blocks will have, because the layout holds them; None: all."""

    def __post_init__(self) -> None:
        if self.block_rows < 1 or self.rows < 0:
            raise InvalidInput(
                f"a chunk of {self.rows:,} rows in blocks of at least {self.block_rows:,}: blocks need one row or more"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Routing:
    """For each row of a batch the group it belongs to and the key by which its group is sorted."""

    group: NDArray[np.int32]
    order: NDArray[np.uint64]


class Router(Protocol):
    """Says where rows belong. Small, picklable, and the same answer for the same row in whatever batch it comes."""

    @property
    def groups(self) -> int:
        """How many groups there are; some may stay empty."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that `route` reads, sorted."""
        ...

    @property
    def used(self) -> tuple[Conjunction, ...]:
        """Filters that blocks should keep a bit for, beyond the features of the problem, the most useful first.

        The groups were formed by them, and a query that implies one can skip the blocks without its bit.
        """
        ...

    def route(self, batch: pa.RecordBatch, bits: Bits) -> Routing:
        """Give every row its place, also rows with values that the sample did not have, with NULL, with NaN.

        `bits` are those of the problem's features, in their order.
        """
        ...


class Clustering(Protocol):
    """A way to form groups, with its parameters."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the parameters name, sorted; the sample needs them beside those of filters and features."""
        ...

    def fit(self, sample: pa.Table, problem: ClusteringProblem) -> Router:
        """Learn from a sample how to route all rows of the chunk."""
        ...
