"""From a query's columns to the physical columns it should read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.errors import ColumnNotFound, InvalidInput
from skipstone.layout.columns.redirect import RedirectedBy, Redirector
from skipstone.layout.columns.values import ColumnQuery, ColumnSizes, SizedColumn


def wide_table(columns: int, copies: int, seed: int) -> ColumnSizes:
    """Columns c0, c1, ... with some duplicates strewn among them."""
    rng = np.random.default_rng(seed)
    made = [SizedColumn(f"c{n}", "int", float(size)) for n, size in enumerate(rng.lognormal(8, 2, columns))]
    for number, source in enumerate(rng.integers(0, columns, copies)):
        model = made[[column.name for column in made].index(f"c{source}")]
        at = int(rng.integers(0, len(made) + 1))
        made.insert(at, SizedColumn(f"d{number}", "int", model.chunk_bytes, model.name))
    return ColumnSizes(tuple(made))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_redirect_reads_exactly_the_columns_asked_for_each_once(data: st.DataObject) -> None:
    sizes = wide_table(12, data.draw(st.integers(0, 10)), data.draw(st.integers(0, 50)))
    subset = st.sets(st.integers(0, 11), min_size=1).map(lambda chosen: tuple(f"c{n}" for n in sorted(chosen)))
    queries = [ColumnQuery(columns) for columns in data.draw(st.lists(subset, max_size=5))]
    redirector = Redirector(sizes, queries)
    position = {column.name: number for number, column in enumerate(sizes.columns)}
    for asked in data.draw(st.lists(subset, min_size=1, max_size=4)):
        for _ in range(2):
            found = redirector.redirect(asked)
            assert sorted(column.logical for column in found.reads) == sorted(asked)
            places = [position[column.name] for column in found.reads]
            assert places == sorted(places), "Columns are read in stored order"
            if any(set(asked) == set(query.columns) for query in queries):
                assert found.by is RedirectedBy.KNOWN
            elif any(set(asked) < set(query.columns) for query in queries):
                assert found.by is RedirectedBy.SUPERSET
            else:
                assert found.by is RedirectedBy.NEAREST


def duplicated() -> ColumnSizes:
    """a b | c d | and a again beside d."""
    big = 1e7
    return ColumnSizes(
        (
            SizedColumn("a", "int", 10.0),
            SizedColumn("b", "int", 10.0),
            SizedColumn("wall", "string", big),
            SizedColumn("c", "int", 10.0),
            SizedColumn("d", "int", 10.0),
            SizedColumn("a__copy1", "int", 10.0, "a"),
        )
    )


def names(redirector: Redirector, *columns: str) -> list[str]:
    return [column.name for column in redirector.redirect(columns).reads]


def test_the_smallest_superset_is_the_pattern() -> None:
    redirector = Redirector(
        duplicated(), [ColumnQuery(("a", "b", "c", "d", "wall")), ColumnQuery(("a", "c", "d")), ColumnQuery(("a", "b"))]
    )
    assert names(redirector, "a", "d") == ["d", "a__copy1"]
    assert names(redirector, "a", "wall") == ["a", "wall"]


def test_without_a_superset_the_most_columns_in_common_decide_and_the_rest_take_their_first_copy() -> None:
    redirector = Redirector(duplicated(), [ColumnQuery(("a", "d")), ColumnQuery(("b",))])
    assert names(redirector, "a", "d", "wall") == ["wall", "d", "a__copy1"]
    assert names(redirector, "a", "b") == ["b", "a__copy1"]
    assert names(redirector, "wall", "c") == ["wall", "c"]


def test_new_sets_are_learned() -> None:
    redirector = Redirector(duplicated(), [ColumnQuery(("a", "d"))])
    assert names(redirector, "a", "b") == ["b", "a__copy1"]
    assert redirector.learn() == 1
    assert redirector.known_sets == 2
    assert redirector.redirect(["b", "a"]).by is RedirectedBy.KNOWN
    assert names(redirector, "a", "b") == ["a", "b"]
    assert redirector.learn() == 0


def test_without_a_workload_the_first_copies_are_read() -> None:
    assert names(Redirector(duplicated(), []), "d", "a") == ["a", "d"]


def test_an_unknown_column_is_named() -> None:
    redirector = Redirector(duplicated(), [])
    with pytest.raises(ColumnNotFound) as raised:
        redirector.redirect(["a", "walls"])
    assert str(raised.value) == ('no column "walls" in the layout. Did you mean "wall"? It has: a, b, wall, c, d')
    with pytest.raises(ColumnNotFound, match='no column "a__copy1" in the layout'):
        redirector.redirect(["a__copy1"])
    with pytest.raises(InvalidInput, match='column "a" is asked for twice'):
        redirector.redirect(["a", "b", "a"])
    with pytest.raises(InvalidInput, match="no column to redirect"):
        redirector.redirect([])
