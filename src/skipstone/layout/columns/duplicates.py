"""Storing some columns more than once within a headroom of bytes: what a search finds, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skipstone.errors import InvalidInput
from skipstone.layout.columns.choice import StoredOrder
from skipstone.layout.columns.copies import CopiedOrder
from skipstone.layout.columns.cost import order_cost
from skipstone.layout.columns.problem import ColumnProblem
from skipstone.layout.columns.search import Progress, Watch
from skipstone.layout.columns.seek import SeekProfile


@dataclass(frozen=True, slots=True)
class FoundDuplicates:
    """Columns as they are to be stored, by number, some of them several times.

    `original[k]` says that position k holds the column itself; every column has one such position, and the others
    are its duplicates.
    """

    stored: tuple[int, ...]
    original: tuple[bool, ...]
    algorithm: str
    seed: int
    initial_cost: float
    final_cost: float
    duplicate_bytes: float
    headroom_bytes: float
    moves: int = 0
    seconds: float = 0.0
    stopped: bool = False
    trace: tuple[Progress, ...] = ()


def headroom_bytes(problem: ColumnProblem, headroom: float) -> float:
    """Bytes that duplicates may take.

    >>> headroom_bytes(ColumnProblem(np.array([60.0, 40.0]), ((0, 1),), np.ones(1)), 0.05)
    5.0
    """
    if not 0.0 <= headroom < float("inf"):
        raise InvalidInput(
            f"a headroom of {headroom:g} is not a share of the table's bytes; 0.05 allows 5 percent more"
        )
    return headroom * float(problem.sizes.sum())


def stored_cost(problem: ColumnProblem, stored: Sequence[int], profile: SeekProfile) -> float:
    """Weighted seek cost of a workload whose queries each read the best copies.

    >>> from skipstone.layout.columns.seek import LinearSeek
    >>> problem = ColumnProblem(np.array([1e6, 3e6, 1e6]), ((0, 2),), np.array([2.0]))
    >>> stored_cost(problem, [0, 1, 2, 0], LinearSeek())
    0.0
    """
    if len(stored) == len(problem.sizes):
        return order_cost(problem, stored, profile)
    order = StoredOrder(problem.sizes, stored, profile)
    costs = [order.choose(reads).cost for reads in problem.reads]
    return float(np.dot(problem.weights, costs))


def finished(
    problem: ColumnProblem,
    order: Sequence[int],
    copied: CopiedOrder,
    spell: Callable[[int], Sequence[int]],
    unread: Sequence[int],
    *,
    algorithm: str,
    seed: int,
    profile: SeekProfile,
    headroom: float,
    watch: Watch,
) -> FoundDuplicates:
    """Spell a copied order out as columns, price it by the exact choice, and fall back to `order` if it is no better.

    `spell` gives the columns of a group. The copy that most queries read is the column itself.
    """
    initial_cost = order_cost(problem, order, profile)
    read_weight = np.zeros(len(copied.copy_group))
    np.add.at(read_weight, copied.chosen, np.repeat(problem.weights, np.diff(copied.groups.query_start)))
    own = _most_read(copied, read_weight)
    stored = [column for copy in copied.order for column in spell(int(copied.copy_group[copy]))] + list(unread)
    original = [bool(own[copy]) for copy in copied.order for _ in spell(int(copied.copy_group[copy]))]
    original += [True] * len(unread)
    final_cost = stored_cost(problem, stored, profile)
    if final_cost >= initial_cost:
        stored, original, final_cost = list(order), [True] * len(order), initial_cost
    duplicates = [column for column, own_place in zip(stored, original, strict=True) if not own_place]
    return FoundDuplicates(
        stored=tuple(stored),
        original=tuple(original),
        algorithm=algorithm,
        seed=seed,
        initial_cost=initial_cost,
        final_cost=final_cost,
        duplicate_bytes=float(problem.sizes[duplicates].sum()),
        headroom_bytes=headroom,
        moves=watch.moves,
        seconds=watch.seconds,
        stopped=watch.stopped,
        trace=tuple(watch.trace),
    )


def _most_read(copied: CopiedOrder, read_weight: NDArray[np.float64]) -> NDArray[np.bool_]:
    best: dict[int, int] = {}
    for copy in copied.order.tolist():
        group = int(copied.copy_group[copy])
        if group not in best or read_weight[copy] > read_weight[best[group]]:
            best[group] = copy
    own = np.zeros(len(copied.copy_group), bool)
    own[list(best.values())] = True
    return own
