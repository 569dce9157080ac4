"""Clusterings that are an order of the rows: what they sort by, what they choose, and what they refuse."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from skipstone.errors import ColumnNotFound, InvalidInput
from skipstone.layout.clustering import CLUSTERINGS, clustering
from skipstone.layout.clustering.curves import Curve
from skipstone.layout.clustering.ordered import ByCurve, ByRanges, BySort, KeyRouter, Unordered, dimensions_of
from skipstone.layout.clustering.routing import ClusteringProblem
from skipstone.layout.scheme import ClusteringSpec
from skipstone.predicate.printing import sql
from tests.layout.clustering.worlds import asked, groups, routed, rows_read

DAYS = [
    datetime.date(1994, 3, 9),
    datetime.date(1994, 1, 30),
    None,
    datetime.date(1994, 3, 1),
    datetime.date(1993, 12, 31),
]
ORDERS = pa.table({
    "day": pa.array([*DAYS, *DAYS], pa.date32()),
    "region": ["n", "s", "n", "s", "s", "s", "n", "s", "n", "n"],
    "quantity": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
})  # fmt: skip
NEITHER = 'a range on "day" is by year, month, day, or in a number of parts'
PLAIN = ClusteringProblem((), (), rows=10, block_rows=2)


def order_of(
    by: BySort | ByRanges | ByCurve | Unordered, rows: pa.Table, problem: ClusteringProblem = PLAIN
) -> list[int]:
    """The order in which the rows of the one group are stored."""
    [rows_in_order] = groups(routed(by.fit(rows, problem), rows, problem))
    return rows_in_order


def test_none_keeps_the_order_of_arrival() -> None:
    assert order_of(Unordered(), ORDERS) == list(range(10))


def test_a_sort_by_a_column_puts_null_first_and_keeps_equal_values_in_order_of_arrival() -> None:
    assert order_of(BySort("day"), ORDERS) == [2, 7, 4, 9, 1, 6, 3, 8, 0, 5]


def test_ranges_by_hand_nest_in_the_order_in_which_they_are_named() -> None:
    """The month, then the region, then halves of the quantity, as somebody would write them down."""
    expected = sorted(
        range(10),
        key=lambda row: (
            DAYS[row % 5] is not None,
            (DAYS[row % 5] or datetime.date(1, 1, 1)).replace(day=1),
            ORDERS["region"][row].as_py(),
            ORDERS["quantity"][row].as_py() > 5,
        ),
    )
    assert order_of(ByRanges("day:month, region, quantity:2"), ORDERS) == expected


def test_rows_of_one_month_have_one_key_and_months_do_not_share_one() -> None:
    routing = routed(ByRanges("day:month").fit(ORDERS, PLAIN), ORDERS, PLAIN)
    of_month: dict[tuple[int, int] | None, set[int]] = {}
    for row, key in enumerate(routing.order.tolist()):
        day = DAYS[row % 5]
        of_month.setdefault((day.year, day.month) if day else None, set()).add(key)
    assert all(len(keys) == 1 for keys in of_month.values())
    assert len(set.union(*of_month.values())) == len(of_month) == 4


@pytest.mark.parametrize(
    ("over", "sentence"),
    [
        ("", 'a range clustering needs its columns, such as "order_date:month, region, quantity:5"'),
        ("day:week", f'{NEITHER}; "week" is neither'),
        ("day:0", f'{NEITHER}; "0" is neither'),
        ("quantity:month", '"quantity" is of type int64, so it has no month; name a number of parts instead'),
        (", ".join(["day"] * 65), "ranges nest at most 64 deep, not 65"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(over: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ByRanges(over).fit(ORDERS, PLAIN)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("by", [BySort("regoin"), ByRanges("regoin"), ByCurve(Curve.HILBERT, "day, regoin")])
def test_a_column_that_is_not_there_is_named_with_the_nearest(by: BySort | ByRanges | ByCurve) -> None:
    with pytest.raises(ColumnNotFound, match=r'"regoin".*"region"'):
        by.fit(ORDERS, PLAIN)


def test_the_best_column_to_sort_by_is_the_one_that_skips_most_not_the_one_asked_most() -> None:
    """Filters ask for `wide` more often, but almost all rows satisfy them."""
    chance = np.random.default_rng(0)
    rows = pa.table({"wide": chance.permutation(1000), "narrow": chance.permutation(1000)})
    queries = asked(
        *(f"wide > {number}" for number in range(30)),
        *(f"narrow BETWEEN {number} AND {number + 20}" for number in range(0, 1000, 50)),
        schema=rows.schema,
    )
    problem = ClusteringProblem((), queries, rows=1000, block_rows=50)
    order = order_of(BySort(), rows, problem)
    assert rows["narrow"].take(order).to_pylist() == list(range(1000))


@pytest.mark.parametrize("name", ["zorder", "hilbert"])
def test_a_curve_serves_two_columns_where_a_sort_serves_one(name: str) -> None:
    chance = np.random.default_rng(1)
    rows = pa.table({"x": chance.permutation(4096), "y": chance.permutation(4096)})
    filters = [f"{column} BETWEEN {low} AND {low + 200}" for column in ("x", "y") for low in range(0, 4000, 400)]
    problem = ClusteringProblem((), asked(*filters, schema=rows.schema), rows=4096, block_rows=64)
    by_curve = rows_read(ClusteringSpec(name), rows, problem)
    by_sort = rows_read(ClusteringSpec("sort"), rows, problem)
    assert by_curve < 0.5 * by_sort


def test_expressions_are_chosen_by_weight_and_one_for_each_column() -> None:
    queries = (
        *asked("year(day) = 1994", schema=ORDERS.schema, weight=3.0),
        *asked("day > DATE '1994-01-01'", schema=ORDERS.schema, weight=2.0),
        *asked("quantity < 5", schema=ORDERS.schema, weight=1.0),
    )
    assert [sql(one) for one in dimensions_of(queries, 3)] == ["year(day)", "quantity"]


def test_no_filter_compares_anything_so_rows_stay_as_they_are() -> None:
    queries = asked("region LIKE '%n%'", schema=ORDERS.schema)
    problem = ClusteringProblem((), queries, rows=10, block_rows=2)
    assert order_of(BySort(), ORDERS, problem) == list(range(10))
    assert order_of(ByCurve(Curve.Z_ORDER), ORDERS, problem) == list(range(10))


@pytest.mark.parametrize(
    ("name", "parameters", "sentence"),
    [
        (
            "qdtre",
            (),
            'there is no clustering "qdtre". Did you mean "qdtree"? There are: none, sort, range, zorder, hilbert, '
            "ward, ward-queries, qdtree",
        ),
        ("sort", (("by", "day"),), 'clustering "sort" has no parameter "by"; it has: column'),
        ("none", (("by", "day"),), 'clustering "none" has no parameter "by"; it takes none'),
        ("range", (), 'clustering "range" needs the parameter "over"'),
        ("qdtree", (("mixing", 1.5),), "mixing is a number from 0 to 1 (0 tries several), not 1.5"),
        ("qdtree", (("mixing", -0.1),), "mixing is a number from 0 to 1 (0 tries several), not -0.1"),
        ("zorder", (("dimensions", 0),), "a curve goes through 1 to 64 dimensions, not 0"),
        ("hilbert", (("dimensions", 65),), "a curve goes through 1 to 64 dimensions, not 65"),
    ],
)
def test_a_clustering_that_cannot_be_made_is_refused(
    name: str, parameters: tuple[tuple[str, object], ...], sentence: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        clustering(ClusteringSpec(name, parameters))  # type: ignore[arg-type]
    assert str(caught.value) == sentence


def test_every_name_makes_a_clustering_that_knows_its_columns() -> None:
    needed = {"range": (("over", "day, region"),)}
    for name in CLUSTERINGS:
        made = clustering(ClusteringSpec(name, needed.get(name, ())))
        assert made.columns == (("day", "region") if name == "range" else ())


@pytest.mark.parametrize(("rows", "block_rows"), [(-1, 5), (10, 0)])
def test_a_problem_needs_rows_and_blocks(rows: int, block_rows: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        ClusteringProblem((), (), rows=rows, block_rows=block_rows)
    assert str(caught.value) == (
        f"a chunk of {rows:,} rows in blocks of at least {block_rows:,}: blocks need one row or more"
    )


def test_the_router_of_an_order_is_one_group() -> None:
    router = Unordered().fit(ORDERS, PLAIN)
    assert isinstance(router, KeyRouter)
    assert (router.groups, router.columns, router.used) == (1, (), ())
