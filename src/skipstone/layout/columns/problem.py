"""A workload over columns as arrays: who reads what, queries with equal columns merged, columns that move as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skipstone.errors import ColumnNotFound
from skipstone.layout.columns.sweep_kernels import Items
from skipstone.layout.columns.values import ColumnQuery, ColumnSizes


@dataclass(frozen=True, slots=True)
class ColumnProblem:
    """Items with sizes, and the distinct sets of items that queries read, with their summed weights.

    The items are the columns of the table or groups of them; `reads[q]` are the items of query q, ascending.
    """

    sizes: NDArray[np.float64]
    reads: tuple[tuple[int, ...], ...]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, sizes: ColumnSizes, queries: Iterable[ColumnQuery]) -> ColumnProblem:
        """Number the columns of the table in stored order and merge queries that read the same set.

        >>> from skipstone.layout.columns.values import SizedColumn
        >>> sizes = ColumnSizes((SizedColumn("a", "int", 1.0), SizedColumn("b", "int", 2.0)))
        >>> problem = ColumnProblem.of(sizes, [ColumnQuery(("b", "a")), ColumnQuery(("a", "b"), weight=2.0)])
        >>> problem.reads, problem.weights.tolist()
        (((0, 1),), [3.0])
        """
        originals = sizes.originals
        number = {column.name: index for index, column in enumerate(originals)}
        merged: dict[tuple[int, ...], float] = {}
        for query in queries:
            for name in query.columns:
                if name not in number:
                    raise ColumnNotFound.among(name, list(number), where="the schema")
            reads = tuple(sorted(number[name] for name in query.columns))
            merged[reads] = merged.get(reads, 0.0) + query.weight
        return cls(
            np.array([column.chunk_bytes for column in originals], np.float64),
            tuple(merged),
            np.array(list(merged.values()), np.float64),
        )

    def items(self) -> Items:
        """The form that compiled loops take."""
        readers: list[list[int]] = [[] for _ in self.sizes]
        for query, reads in enumerate(self.reads):
            for item in reads:
                readers[item].append(query)
        query_start, query_items = compressed(self.reads)
        item_start, item_queries = compressed(readers)
        return Items(self.sizes, query_start, query_items, item_start, item_queries, self.weights)


def compressed(lists: Sequence[Sequence[int]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Lay lists end to end, with the offsets where each begins.

    >>> [array.tolist() for array in compressed([[5], [], [7, 8]])]
    [[0, 1, 1, 3], [5, 7, 8]]
    """
    start = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(entries) for entries in lists], out=start[1:])
    return start, np.array([entry for entries in lists for entry in entries], np.int32)


@dataclass(frozen=True, slots=True)
class GroupedProblem:
    """The same problem over groups: columns read by exactly the same queries, which move as one.

    `groups[g]` are the columns of item g of `problem`, in stored order; `unread` are the columns no query reads.
    """

    problem: ColumnProblem
    groups: tuple[tuple[int, ...], ...]
    unread: tuple[int, ...]

    @classmethod
    def of(cls, problem: ColumnProblem) -> GroupedProblem:
        """Group the columns by their readers.

        Two columns with the same readers lie in the same gaps or in none; keeping them adjacent costs nothing
        between them, and a search has fewer things to place.

        >>> import numpy as np
        >>> grouped = GroupedProblem.of(ColumnProblem(np.array([1.0, 2.0, 4.0, 8.0]), ((0, 2), (0, 1, 2)), np.ones(2)))
        >>> grouped.groups, grouped.problem.sizes.tolist(), grouped.unread
        (((0, 2), (1,)), [5.0, 2.0], (3,))
        """
        readers: list[list[int]] = [[] for _ in problem.sizes]
        for query, columns_read in enumerate(problem.reads):
            for column in columns_read:
                readers[column].append(query)
        members: dict[tuple[int, ...], list[int]] = {}
        for column, queries in enumerate(readers):
            if queries:
                members.setdefault(tuple(queries), []).append(column)
        reads_of: list[list[int]] = [[] for _ in problem.reads]
        for group, readers_of_group in enumerate(members):
            for query in readers_of_group:
                reads_of[query].append(group)
        groups = tuple(tuple(columns) for columns in members.values())
        grouped = ColumnProblem(
            np.array([problem.sizes[list(columns)].sum() for columns in groups], np.float64),
            tuple(tuple(reads) for reads in reads_of),
            problem.weights,
        )
        return cls(grouped, groups, tuple(column for column, queries in enumerate(readers) if not queries))

    def columns_of(self, order: Iterable[int]) -> list[int]:
        """Spell an order of the groups out as an order of all columns, those that nobody reads at the end."""
        return [column for group in order for column in self.groups[group]] + list(self.unread)
