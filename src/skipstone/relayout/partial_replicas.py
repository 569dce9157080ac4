"""`gsop-r`: advice on partial replicas, layouts that may hold the same cells twice within a storage budget.

The budget is the paper's (dissertation, equation 5.2): cells stored over cells of the table, of which row ids are none.
What is saved by it is priced in bytes. A sample says how many rows each layout will hold; what was really written is
counted by `stored_cells`, and `Table.optimize` commits nothing that is past the budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from skipstone.catalog.values import NewChunk, Snapshot
from skipstone.layout.grouping.cost import in_bytes, in_cells, query_costs, storage_cost
from skipstone.layout.grouping.problem import DesignProblem, design_problem, scheme_of, with_queries
from skipstone.layout.replication.families import general_features
from skipstone.layout.replication.fitted_rows import FittedRows, rows_of_scheme
from skipstone.layout.replication.served_rows import ServedRows
from skipstone.layout.replication.serving import serve_families
from skipstone.layout.sampling import shuffled
from skipstone.predicate.literal import Conjunction
from skipstone.relayout.column_groups import GroupTrial, shares_of_wanted
from skipstone.workload.query import Feature, Query

__all__ = ["GSOP_R", "present_storage", "stored_cells", "try_replicas"]

GSOP_R = "gsop-r"

SEARCHED_ROWS = 20_000
"""The search looks at so many rows; it makes hundreds of clusterings of them."""

JUDGED_ROWS = 60_000
"""What its result reads is told from so many."""


def try_replicas(
    sample: pa.Table,
    features: Sequence[Feature],
    training: Sequence[Query],
    judging: Sequence[Query],
    cell_bytes: Mapping[str, float],
    budget: float,
    *,
    rows: int,
    block_rows: int,
    seed: int,
    exclude: Sequence[str] = (),
) -> GroupTrial:
    """Find layouts that store `budget` times the table at most, and say what the judging queries would read of them.

    They are searched for among all features and those that the queries of each family have in common.
    """
    order = shuffled(sample.num_rows, seed)
    general = [one for one in general_features(training) if one.columns.isdisjoint(exclude)]
    filters = tuple(dict.fromkeys([*(feature.filter for feature in features), *general]))

    def problem_of(of: pa.Table, filters: Sequence[Conjunction]) -> DesignProblem:
        return design_problem(
            of, filters, training, tuple(cell_bytes), rows=rows, block_rows=block_rows, cell_bytes=cell_bytes, seed=seed
        )

    def drawn(count: int) -> pa.Table:
        return sample.take(pa.array(np.sort(order[:count]))).combine_chunks()

    served = ServedRows(problem_of(drawn(SEARCHED_ROWS), filters))
    found = serve_families(served, budget, reading=in_bytes(served.problem))
    layouts, problem = found.designed.layouts, problem_of(drawn(JUDGED_ROWS), found.problem.features)
    judged = with_queries(problem, judging)
    table = rows_of_scheme(problem, layouts, found.specs, FittedRows(judged))
    cells = query_costs(judged, layouts, table, in_cells(judged), thrifty=True)
    bytes_ = query_costs(judged, layouts, table, in_bytes(judged), thrifty=True)
    return GroupTrial(
        scheme_of(problem, layouts, found.specs),
        *shares_of_wanted(problem, judging, cells, bytes_),
        storage_cost(problem, layouts),
        storage_cost(problem, layouts, in_bytes(problem)),
    )


def stored_cells(chunks: Iterable[NewChunk]) -> int:
    """Count the cells that chunks hold as they were written; row ids and duplicates of columns are none."""
    cells = 0
    for chunk in chunks:
        blocks = chunk.blocks
        layout, rows = (blocks.rows[name].to_numpy(zero_copy_only=False) for name in ("layout", "rows"))
        for number, one in enumerate(chunk.scheme.layouts):
            for column in one.columns:
                sizes = blocks.bytes_of(blocks.columns.index(column)).to_numpy(zero_copy_only=False)
                # A block of rows that no feature of the layout is for holds master columns only.
                cells += int(rows[(layout == number) & (sizes >= 0)].sum())
    return cells


def present_storage(snapshot: Snapshot) -> tuple[float, int]:
    """How many times the table a snapshot stores, in cells, and the bytes of all that it stores but row ids."""
    cells = bytes_ = 0
    for blocks in snapshot.block_sets:
        for number, layout in enumerate(snapshot.scheme(blocks.scheme).layouts):
            for column in layout.columns:
                sizes = blocks.column_bytes(column)
                held = (blocks.layout == number) & (sizes >= 0)
                cells += int(blocks.rows[held].sum())
                bytes_ += int(sizes[held].sum())
    table = sum(snapshot.facts(chunk).rows for chunk in snapshot.chunks) * len(snapshot.schema.names)
    return (cells / table if table else 1.0), bytes_
