"""From sizes and a workload to a layout: a search over numbers, its answer in the table's own names."""

from __future__ import annotations

from collections.abc import Iterable

from skipstone.layout.columns.cost import order_cost
from skipstone.layout.columns.duplicates import FoundDuplicates, stored_cost
from skipstone.layout.columns.duplication import BEST_DUPLICATION, duplicate_algorithm
from skipstone.layout.columns.orders import BEST_ORDER, order_algorithm
from skipstone.layout.columns.problem import ColumnProblem
from skipstone.layout.columns.search import Effort, FoundOrder
from skipstone.layout.columns.seek import SeekProfile
from skipstone.layout.columns.values import ColumnQuery, ColumnSizes, SizedColumn, copy_names


def propose_order(
    sizes: ColumnSizes,
    queries: Iterable[ColumnQuery],
    profile: SeekProfile,
    effort: Effort,
    *,
    algorithm: str = BEST_ORDER,
    seed: int = 0,
) -> tuple[ColumnSizes, FoundOrder]:
    """Find an order for the columns of a table, and say how it was found. Duplicates are left out.

    >>> from skipstone.layout.columns.seek import PowerSeek
    >>> sizes = ColumnSizes(tuple(SizedColumn(name, "int", 1e6) for name in "abc"))
    >>> ordered, found = propose_order(sizes, [ColumnQuery(("a", "c"))], PowerSeek(), Effort(moves=50))
    >>> ordered.layout.columns, found.initial_cost, found.final_cost
    (('a', 'c', 'b'), 5.0, 0.0)
    """
    search = order_algorithm(algorithm)
    found = search(ColumnProblem.of(sizes, queries), profile, effort, seed)
    originals = sizes.originals
    return ColumnSizes(tuple(originals[number] for number in found.order)), found


def propose_duplicates(
    sizes: ColumnSizes,
    queries: Iterable[ColumnQuery],
    headroom: float,
    profile: SeekProfile,
    effort: Effort,
    *,
    algorithm: str = BEST_DUPLICATION,
    seed: int = 0,
) -> tuple[ColumnSizes, FoundDuplicates]:
    """Find columns to store more than once, beginning with the columns as they are ordered now.

    `headroom` is the share of the table's bytes that duplicates may take. Duplicates that are there already are left
    out first.

    >>> from skipstone.layout.columns.seek import PowerSeek
    >>> sizes = ColumnSizes(tuple(SizedColumn(n, "int", size) for n, size in (("a", 10.0), ("b", 1e6), ("c", 1e6))))
    >>> queries = [ColumnQuery(("a", "b")), ColumnQuery(("a", "c")), ColumnQuery(("b", "c"))]
    >>> wider, found = propose_duplicates(sizes, queries, 0.01, PowerSeek(), Effort(moves=500), seed=1)
    >>> found.final_cost, [(column.name, column.source) for column in wider.columns if column.source]
    (0.0, [('a__copy1', 'a')])
    """
    search = duplicate_algorithm(algorithm)
    originals = sizes.originals
    problem = ColumnProblem.of(ColumnSizes(originals), queries)
    found = search(problem, range(len(originals)), headroom, profile, effort, seed)
    copied = [number for number, own in zip(found.stored, found.original, strict=True) if not own]
    names = iter(copy_names([originals[number].name for number in copied], (column.name for column in originals)))
    stored = []
    for number, own in zip(found.stored, found.original, strict=True):
        model = originals[number]
        stored.append(model if own else SizedColumn(next(names), model.type, model.chunk_bytes, source=model.name))
    return ColumnSizes(tuple(stored)), found


def layout_cost(sizes: ColumnSizes, queries: Iterable[ColumnQuery], profile: SeekProfile) -> float:
    """Weighted seek cost of a workload over columns stored as they are; each query reads the best of the duplicates.

    >>> from skipstone.layout.columns.seek import LinearSeek
    >>> sizes = ColumnSizes(tuple(SizedColumn(name, "int", 1e6) for name in "abc"))
    >>> layout_cost(sizes, [ColumnQuery(("a", "c"), weight=2.0)], LinearSeek())
    2.0
    """
    problem = ColumnProblem.of(sizes, queries)
    if len(sizes.originals) == len(sizes.columns):
        return order_cost(problem, range(len(sizes.columns)), profile)
    number = {column.name: index for index, column in enumerate(sizes.originals)}
    return stored_cost(problem, [number[column.logical] for column in sizes.layout.stored], profile)
