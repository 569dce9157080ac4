"""Costs of column groups and replicas: the papers' examples, and blocks laid out and counted by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from skipstone.layout.grouping.cost import Prices, in_bytes, in_cells, query_costs, storage_cost, workload_cost
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft
from skipstone.layout.grouping.rows_read import ClusteredRows, by_queries, by_ward
from tests.layout.grouping.worlds import problems, small_world


class TestTheExampleOfFigure43:
    """t1 .. t4 with features A = 'm', B < 0, D = 2; the query reads B and D WHERE B < 0 AND D = 2."""

    WORLD = small_world(["110", "001", "100", "011"], [("BD", "011")], columns="ABCD", block_rows=2)

    def rows_read(self, *rows: float) -> NDArray[np.float64]:
        return np.array([rows])

    def test_left_end(self) -> None:
        """One group: no block can be skipped, 8 cells."""
        whole = [LayoutDraft.group(range(4), range(3))]
        assert query_costs(self.WORLD, whole, self.rows_read(4), in_cells(self.WORLD)).tolist() == [8]

    def test_right_end(self) -> None:
        """Every column alone: 4 cells and 4 row ids."""
        single = [LayoutDraft.group([column], range(3)) for column in range(4)]
        rows = self.rows_read(4, 2, 4, 2)
        assert query_costs(self.WORLD, single, rows, in_cells(self.WORLD)).tolist() == [8]
        without_ids = Prices(np.ones(4), row_id=0.0)
        assert query_costs(self.WORLD, single, rows, without_ids).tolist() == [4]

    def test_middle(self) -> None:
        """Groups AC and BD: 4 cells, and no row ids, because one group has all that is asked for."""
        middle = [LayoutDraft.group([0, 2], range(3)), LayoutDraft.group([1, 3], range(3))]
        assert query_costs(self.WORLD, middle, self.rows_read(4, 2), in_cells(self.WORLD)).tolist() == [4]


class TestTheExampleOfFigure54:
    """Rows r1 .. r4 and features f1, f2, f3; L1 holds c1 c2 c3 for f1 and f2, L2 c2 c4 for f3, with c4 the master."""

    WORLD = small_world(["101", "011", "100", "010"], [("bcd", "001")], columns="abcd", block_rows=2)
    SCHEME = (
        LayoutDraft(frozenset([0, 1, 2]), frozenset([0, 1]), frozenset([0, 1, 2])),
        LayoutDraft(frozenset([1, 3]), frozenset([2]), frozenset([3])),
    )

    def test_storage(self) -> None:
        """18 cells in place of 16."""
        assert storage_cost(self.WORLD, self.SCHEME) == 1.125

    def test_the_path_of_section_562(self) -> None:
        """c2 and c4 from L2, whose second block is skipped, c3 from L1, which is read in full: 8 cells, 6 row ids."""
        counter = ClusteredRows(self.WORLD)
        rows = [counter.rows(layout, self.WORLD.readers(layout.columns))[0] for layout in self.SCHEME]
        assert rows == [4, 2]
        assert workload_cost(self.WORLD, self.SCHEME, counter, in_cells(self.WORLD)) == 14

    def test_storage_in_bytes_has_row_ids(self) -> None:
        """A cell of column n takes n bytes here, a row id takes 2."""
        table = 4 * (1 + 2 + 3 + 4)
        stored = 4 * (1 + 2 + 3 + 2) + 2 * (2 + 4 + 2) + 2 * (4 + 2)
        assert storage_cost(self.WORLD, self.SCHEME, in_bytes(self.WORLD)) == pytest.approx(stored / table)


def test_row_ids_always_is_equation_51_to_the_letter() -> None:
    world = small_world(["1", "0"], [("ab", "1")], columns="ab")
    whole = [LayoutDraft.group([0, 1], [0])]
    cells = in_cells(world)
    assert query_costs(world, whole, np.array([[1.0]]), cells).tolist() == [2]
    to_the_letter = Prices(cells.cells, 1.0, row_ids_always=True)
    assert query_costs(world, whole, np.array([[1.0]]), to_the_letter).tolist() == [3]


def test_sorting_costs_where_row_ids_are_read() -> None:
    world = small_world(["1"] * 8, [("ab", "1")], columns="ab")
    apart = [LayoutDraft.group([0]), LayoutDraft.group([1])]
    prices = Prices(np.ones(2), 1.0, sorting=0.5)
    assert query_costs(world, apart, np.array([[8.0, 8.0]]), prices).tolist() == [16 + 16 + 2 * 0.5 * 8 * 3]


def test_a_replica_is_no_way_for_a_query_that_its_features_do_not_subsume() -> None:
    world = small_world(["1", "0"], [("a", "0"), ("a", "1")], columns="a")
    scheme = [LayoutDraft.group([0]), LayoutDraft(frozenset([0]), frozenset([0]), frozenset())]
    rows = np.array([[2.0, 1.0], [2.0, 1.0]])
    assert query_costs(world, scheme, rows, in_cells(world)).tolist() == [2, 1]


@st.composite
def schemes(draw: st.DrawFn, problem: DesignProblem) -> list[LayoutDraft]:
    """Any layouts that together hold every column as a master once; replicas may be anywhere."""
    home = [draw(st.integers(0, 2)) for _ in problem.columns]
    layouts = []
    for number in range(3):
        masters = frozenset(column for column, place in enumerate(home) if place == number)
        columns = masters | draw(st.frozensets(st.integers(0, len(problem.columns) - 1), max_size=3))
        features = draw(st.frozensets(st.integers(0, len(problem.features) - 1))) if problem.features else frozenset()
        if columns and (masters or features):
            layouts.append(LayoutDraft(columns, features, masters))
    return layouts


@settings(max_examples=60)
@given(st.data(), problems(most_columns=4), st.sampled_from([by_ward, by_queries]))
def test_rows_are_those_of_blocks_that_cannot_be_skipped(data: st.DataObject, problem: DesignProblem, how) -> None:  # type: ignore[no-untyped-def]
    """Lay the rows out, in every layout, and count; the vectors of rows are all that the clustering knows."""
    for layout in data.draw(schemes(problem)):
        read = ClusteredRows(problem, how).rows(layout, problem.readers(layout.columns))
        local = sorted(layout.features)
        all_rows = np.repeat(problem.vectors.bits, problem.vectors.counts, axis=0)[:, local]
        for query, features in enumerate(problem.subsumed[:, local]):
            matching = all_rows[:, features].all(axis=1).sum()
            held = len(all_rows) if layout.masters or not features.any() else all_rows.any(axis=1).sum()
            assert matching <= read[query] <= held
            if not features.any():
                assert read[query] == len(all_rows), "a query that no local feature subsumes skips nothing"


@settings(max_examples=60)
@given(st.data(), problems(most_columns=4))
def test_costs_are_those_of_the_best_path(data: st.DataObject, problem: DesignProblem) -> None:
    """Greedy reads the fewest cells of all paths and at most twice the optimum; thrifty lies between the two."""
    scheme = data.draw(schemes(problem))
    counter = ClusteredRows(problem)
    rows = np.column_stack([counter.rows(one, problem.readers(one.columns)) for one in scheme])
    greedy = query_costs(problem, scheme, rows, in_cells(problem))
    thrifty = query_costs(problem, scheme, rows, in_cells(problem), thrifty=True)
    fewest_cells = query_costs(problem, scheme, rows, Prices(np.ones(len(problem.columns)), 0.0))
    for query in range(len(problem.queries)):
        eligible = [
            [
                place
                for place, layout in enumerate(scheme)
                if column in layout.masters
                or (column in layout.columns and problem.subsumed[query, sorted(layout.features)].any())
            ]
            for column in np.flatnonzero(problem.accesses[query])
        ]
        costs, cells = [], []
        for path in itertools.product(*eligible):
            read = sum(rows[query, place] for place in path)
            cells.append(read)
            costs.append(read + (sum(rows[query, place] for place in set(path)) if len(set(path)) > 1 else 0))
        assert fewest_cells[query] == min(cells)
        assert min(costs) <= thrifty[query] <= greedy[query] <= 2 * min(costs)
