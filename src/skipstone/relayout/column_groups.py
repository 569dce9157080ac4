"""`gsop`: advice on column groups, each laid out for the queries that read it, as a candidate beside one layout.

The groups are searched for with the paper's procedure (`layout.grouping.column_grouping`), pricing cells and row ids in
bytes, and from there by what families of queries read of real blocks (`layout.replication.family_groups`); then each
chooses its clustering. What queries would read counts the row ids, and the columns of a filter that
stand in several groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipstone.layout.grouping.column_grouping import alike, column_groups
from skipstone.layout.grouping.cost import in_bytes, in_cells, storage_cost
from skipstone.layout.grouping.estimate import BlockEstimate
from skipstone.layout.grouping.fitted_groups import fit_groups, fitted_costs
from skipstone.layout.grouping.local_features import LocalFeatures
from skipstone.layout.grouping.problem import DesignProblem, design_problem, scheme_of
from skipstone.layout.grouping.rows_read import ClusteredRows, by_queries
from skipstone.layout.replication.family_groups import family_groups
from skipstone.layout.sampling import shuffled
from skipstone.layout.scheme import Scheme
from skipstone.relayout.tracking import tracked_expressions
from skipstone.workload.mining import mine
from skipstone.workload.query import Feature, Query

__all__ = ["GSOP", "GroupTrial", "group_features", "shares_of_wanted", "try_groups"]

GSOP = "gsop"

SEARCHED_ROWS = 60_000
"""The search for groups looks at so many rows; what its result reads is then told from the whole sample."""

REFINED_ROWS = 10_000
"""The search by families clusters so many rows, over and over."""

FINER = 4
"""Groups share the features out among them, so that so many times as many, and rarer ones, are of use."""

Shares = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class GroupTrial:
    """A scheme of several layouts, and for each judging query the share it would read of its columns' cells and bytes.

    `storage` is how many times the table's cells are stored (equation 5.2), `stored_bytes` how many times its bytes,
    row ids included.
    """

    scheme: Scheme
    cells: Shares
    bytes: Shares
    storage: float
    stored_bytes: float


def group_features(
    queries: Sequence[Query], *, max_features: int, min_support: float, exclude: Sequence[str] = ()
) -> tuple[Feature, ...]:
    """Mine features for groups: those that serve one layout, and finer ones beside them.

    The general ones stay because they subsume queries that nobody has seen yet.
    """
    general = mine(queries, min_support=min_support, max_features=max_features, exclude=exclude)
    finer = mine(queries, min_support=min_support / FINER, max_features=max_features * FINER, exclude=exclude)
    return tuple({feature.filter: feature for feature in (*finer, *general)}.values())


def try_groups(
    sample: pa.Table,
    features: Sequence[Feature],
    training: Sequence[Query],
    judging: Sequence[Query],
    cell_bytes: Mapping[str, float],
    *,
    rows: int,
    block_rows: int,
    seed: int,
) -> GroupTrial:
    """Find groups for the training queries and say what the judging ones would read; `cell_bytes` names all columns."""
    order = shuffled(sample.num_rows, seed)
    columns = tuple(cell_bytes)

    def drawn(count: int) -> pa.Table:
        return sample.take(pa.array(np.sort(order[:count]))).combine_chunks()

    def problem_of(of: pa.Table) -> DesignProblem:
        return design_problem(
            of, features, training, columns, rows=rows, block_rows=block_rows, cell_bytes=cell_bytes, seed=seed
        )

    searched, whole = problem_of(drawn(SEARCHED_ROWS)), problem_of(sample)
    found = column_groups(
        searched,
        exact=ClusteredRows(searched, by_queries),
        estimate=BlockEstimate(searched),
        local=LocalFeatures(searched),
        prices=in_bytes(searched),
        start=alike(searched),
    )
    refined = problem_of(drawn(REFINED_ROWS))
    groups = family_groups(refined, found.groups, in_bytes(refined))
    tracked = [one.expression for one in tracked_expressions(sample.schema, [query.filter for query in training])]
    chosen = fit_groups(searched, groups, tracked)
    fitted = [fit_groups(whole, [one.layout], tracked, fits=(one.clustering,))[0] for one in chosen]
    cells, bytes_ = (fitted_costs(whole, fitted, judging, prices) for prices in (in_cells(whole), in_bytes(whole)))
    layouts = [one.layout for one in fitted]
    return GroupTrial(
        scheme_of(whole, layouts, [one.clustering for one in fitted]),
        *shares_of_wanted(whole, judging, cells, bytes_),
        storage_cost(whole, layouts),
        storage_cost(whole, layouts, in_bytes(whole)),
    )


def shares_of_wanted(
    problem: DesignProblem, queries: Sequence[Query], cells: Shares, bytes_: Shares
) -> tuple[Shares, Shares]:
    """What queries read, as shares of all cells and of all bytes of the columns that they want."""
    place = {name: number for number, name in enumerate(problem.columns)}
    reads = np.zeros((len(queries), len(problem.columns)), dtype=np.float64)
    for number, query in enumerate(queries):
        reads[number, [place[name] for name in query.columns]] = 1.0
    return (
        cells / np.maximum(reads.sum(axis=1) * problem.rows, 1),
        bytes_ / np.maximum(reads @ problem.cell_bytes * problem.rows, 1),
    )
