"""`gsop-r-families`: what families of queries are, which rows they can ask for, and the search that serves them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from skipstone.errors import InvalidInput
from skipstone.layout.grouping.cost import in_bytes, storage_cost
from skipstone.layout.grouping.problem import DesignProblem, design_problem
from skipstone.layout.replication.families import cover_of, families_of, general_features
from skipstone.layout.replication.fitted_rows import scheme_costs
from skipstone.layout.replication.served_rows import ServedRows
from skipstone.layout.replication.serving import ServedScheme, serve_families
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql
from skipstone.workload.query import Query

SCHEMA = pa.schema([(name, pa.int64()) for name in ("town", "day", "kind", "price", "note", "rest")])


def rows(count: int = 3_000) -> pa.Table:
    random_ = np.random.default_rng(7)
    sizes = {"town": 5, "day": 100, "kind": 40, "price": 1_000, "note": 3, "rest": 9}
    return pa.table({name: random_.integers(0, most, count) for name, most in sizes.items()}, schema=SCHEMA)


def asked(columns: str, texts: Sequence[str]) -> list[Query]:
    return [Query(tuple(sorted(columns.split())), parse_filter(text, SCHEMA)) for text in texts]


def of_days(count: int = 40, seed: int = 1) -> list[Query]:
    """Always the same town, never the same days."""
    chance = random.Random(seed)
    starts = [chance.randrange(90) for _ in range(count)]
    return asked("town day price note", [f"town = 2 AND day BETWEEN {low} AND {low + 5}" for low in starts])


def of_kinds(count: int = 40, seed: int = 2) -> list[Query]:
    chance = random.Random(seed)
    return asked("kind price note", [f"kind = {chance.randrange(40)}" for _ in range(count)])


def problem_of(queries: Sequence[Query], cell_bytes: dict[str, float] | None = None) -> DesignProblem:
    return design_problem(
        rows(), general_features(queries), queries, SCHEMA.names, rows=30_000, block_rows=250, cell_bytes=cell_bytes
    )


def served(queries: Sequence[Query], budget: float) -> ServedScheme:
    return serve_families(ServedRows(problem_of(queries)), budget)


def names(problem: DesignProblem, columns: frozenset[int]) -> set[str]:
    return {problem.columns[column] for column in columns}


def test_a_family_reads_and_filters_the_same_columns() -> None:
    problem = problem_of([*of_days(), *of_kinds()])
    families = families_of(problem)
    assert [names(problem, one.columns) for one in families] == [
        {"town", "day", "price", "note"},
        {"kind", "price", "note"},
    ]
    assert sorted(number for one in families for number in one.queries) == list(range(80))


def test_the_rarest_families_join_those_that_are_most_like_them() -> None:
    odd = asked("town day price", ["town = 1 AND day < 3"])
    problem = problem_of([*of_days(), *of_kinds(), *odd])
    families = families_of(problem, most=2)
    assert 80 in families[0].queries, "it reads three of the four columns of the days"


def test_a_cover_is_what_recurs_where_ranges_never_do() -> None:
    """Ranges of days that were seen say nothing of those to come; the town is always the same."""
    problem = problem_of(of_days())
    [family] = families_of(problem)
    cover = cover_of(problem, family)
    assert cover.features is not None
    assert [sql(problem.features[one]) for one in cover.features] == ["town = 2"]


def test_a_cover_of_ranges_is_good_where_the_same_few_recur() -> None:
    years = [f"town < 4 AND day >= {20 * one} AND day < {20 * one + 20}" for one in range(2)]
    other = [f"{year} AND kind <> {kind}" for year in years for kind in range(10)]
    problem = problem_of(asked("town day kind price", other))
    [family] = families_of(problem)
    cover = cover_of(problem, family)
    assert cover.features is not None
    assert problem.share(cover.features) == pytest.approx(0.4 * 0.8, abs=0.03)


def test_there_is_no_cover_of_what_nobody_asks_twice() -> None:
    problem = problem_of(of_kinds())
    [family] = families_of(problem)
    assert cover_of(problem, family).features is None


@pytest.mark.parametrize(("times", "is_covered"), [(1, False), (5, True)])
def test_few_filters_are_trusted_where_they_are_asked_again_and_again(times: int, is_covered: bool) -> None:
    filters = [f"town = 1 AND day > {day}" for day in (3, 50, 77)]
    problem = problem_of(asked("town day price", filters * times))
    [family] = families_of(problem)
    assert (cover_of(problem, family).features is not None) is is_covered


def test_a_cover_that_holds_nearly_all_rows_is_none() -> None:
    problem = problem_of(asked("rest price", [f"rest < 9 AND price > {one}" for one in range(20)]))
    [family] = families_of(problem)
    assert cover_of(problem, family).features is None


@pytest.mark.parametrize("budget", [1.0, 1.1, 1.3, 1.6, 3.0])
def test_the_budget_holds_and_every_column_is_a_master_once(budget: float) -> None:
    found = served([*of_days(), *of_kinds()], budget)
    found.scheme()  # which validates
    stored = storage_cost(found.problem, found.designed.layouts)
    assert stored <= found.designed.storage + 1e-9, "the margin is on the safe side"
    assert found.designed.storage <= budget + 1e-9


def test_more_storage_never_reads_more() -> None:
    queries = [*of_days(), *of_kinds()]
    costs = [served(queries, budget).designed.query_cost for budget in (1.0, 1.1, 1.3, 1.6)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < 0.6 * costs[0]


def test_with_room_every_family_reads_one_layout_made_for_it() -> None:
    found = served([*of_days(), *of_kinds()], 3.0)
    problem = found.problem
    held = [names(problem, one.columns) for one in found.designed.layouts]
    assert {"town", "day", "price", "note"} in held
    assert {"kind", "price", "note"} in held
    days = found.designed.layouts[held.index({"town", "day", "price", "note"})]
    assert problem.share(days.features) == pytest.approx(0.2, abs=0.03), "it holds the rows of the town"
    assert names(problem, days.masters) == {"town", "day"}


def test_what_was_found_serves_queries_that_it_was_not_made_for() -> None:
    found = served([*of_days(), *of_kinds()], 1.6)
    unseen = [*of_days(seed=5), *of_kinds(seed=6)]
    prices = in_bytes(found.problem)
    read = scheme_costs(found.problem, found.designed.layouts, found.specs, unseen, prices)
    whole = np.array([30_000 * 4.0 * len(query.columns) for query in unseen])
    assert float((read / whole).mean()) < 0.1


def test_wide_columns_are_spared_where_bytes_count() -> None:
    """A replica of `note` costs as many cells as one of `price`, and here a hundred times the bytes."""
    queries = [*of_days(), *of_kinds()]
    sizes = dict.fromkeys(SCHEMA.names, 1.0) | {"note": 100.0}
    problem = problem_of(queries, sizes)
    rows_ = ServedRows(problem)
    by_cells = serve_families(rows_, 1.15)
    by_bytes = serve_families(rows_, 1.15, reading=in_bytes(rows_.problem), storing=in_bytes(rows_.problem))
    stored = [storage_cost(one.problem, one.designed.layouts, in_bytes(problem)) for one in (by_cells, by_bytes)]
    assert stored[1] <= 1.15 < stored[0]


def test_a_budget_below_the_table_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a storage budget is a multiple"):
        served(of_kinds(), 0.5)
