"""Groups for families of queries: what a search that counts features alone cannot see."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from skipstone.layout.grouping.column_grouping import one_group, singles
from skipstone.layout.grouping.cost import in_cells
from skipstone.layout.grouping.local_features import LocalFeatures
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft, design_problem, scheme_of
from skipstone.layout.replication.family_groups import family_groups
from skipstone.layout.replication.served_rows import ServedRows
from skipstone.layout.scheme import ClusteringSpec
from skipstone.predicate.parsing import parse_filter
from skipstone.workload.query import Query

ROWS = 4_000
SCHEMA = pa.schema([("size", pa.int64()), ("brand", pa.int64()), ("day", pa.int64()), ("price", pa.float64())])


@pytest.fixture(scope="module")
def world() -> DesignProblem:
    """One family asks for lists of sizes, another for days; no two queries name the same constants."""
    values, chance = np.random.default_rng(3), random.Random(3)
    sample = pa.table({"size": values.integers(0, 50, ROWS), "day": values.integers(0, 1000, ROWS)})
    filters = [f"size IN ({', '.join(map(str, chance.sample(range(50), 5)))})" for _ in range(24)]
    days = [f"day BETWEEN {low} AND {low + 30}" for low in chance.sample(range(970), 24)]
    queries = [Query(("brand", "size"), parse_filter(text, SCHEMA)) for text in filters]
    queries += [Query(("day", "price"), parse_filter(text, SCHEMA)) for text in days]
    return design_problem(sample, (), queries, SCHEMA.names, rows=ROWS * 100, block_rows=8_000)


def groups(problem: DesignProblem, columns: tuple[tuple[int, ...], ...]) -> list[LayoutDraft]:
    local = LocalFeatures(problem)
    return [LayoutDraft.group(some, local.of(problem.readers(some))) for some in columns]


@pytest.mark.parametrize("start", [one_group, singles], ids=lambda find: find.__name__)
def test_families_whose_constants_never_recur_get_columns_of_their_own(world: DesignProblem, start: object) -> None:
    """No feature subsumes any of these queries, so that features would leave all columns together, or apart."""
    found = family_groups(world, groups(world, start(world)), in_cells(world))  # type: ignore[operator]
    names = sorted(sorted(world.columns[column] for column in group.columns) for group in found)
    assert names == [["brand", "size"], ["day", "price"]]
    scheme_of(world, found, ClusteringSpec("qdtree")).validate(world.columns)


def test_the_same_problem_has_the_same_answer(world: DesignProblem) -> None:
    start = groups(world, one_group(world))
    assert family_groups(world, start, in_cells(world)) == family_groups(world, start, in_cells(world))


def test_no_more_is_clustered_than_is_allowed(world: DesignProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ServedRows] = []

    class Counting(ServedRows):
        def __init__(self, *given: object) -> None:
            super().__init__(*given)  # type: ignore[arg-type]
            made.append(self)

    monkeypatch.setattr("skipstone.layout.replication.family_groups.ServedRows", Counting)
    start = groups(world, one_group(world))
    assert family_groups(world, start, in_cells(world), most_served=1) == tuple(start), "nothing could be tried"
    assert made[0].fitted == 1
