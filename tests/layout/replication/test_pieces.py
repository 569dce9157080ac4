"""The transformations of section 5.5, on the running example of chapter 5 (figures 5.1, 5.2, 5.4 and 5.5).

Four rows r1 .. r4, columns c1 .. c4; f1: c1 = 'x' qualifies r1 and r3, f2: c2 > 1 qualifies r2 and r4, f3: c4 % 2 = 0
qualifies r1 and r2. The columns' features are those of figure 5.5(a).
"""

from __future__ import annotations

import pytest

from skipstone.layout.grouping.problem import LayoutDraft
from skipstone.layout.replication.pieces import (
    Features,
    Piece,
    Pieces,
    drafts,
    initial_pieces,
    merge,
    merge_repl,
    merged,
    repl,
)

ROWS: dict[int, set[str]] = {1: {"r1", "r3"}, 2: {"r2", "r4"}, 3: {"r1", "r2"}}
RELEVANT = {1: frozenset({1, 3}), 2: frozenset({2, 3}), 3: frozenset({2, 4})}


def share(features: Features) -> float:
    return len(set().union(*(ROWS[feature] for feature in features))) / 4


def as_sets(pieces: Pieces) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    return {(tuple(sorted(piece.columns)), tuple(sorted(piece.features))) for piece in pieces}


def piece_of(pieces: Pieces, column: int) -> Piece:
    [found] = [piece for piece in pieces if column in piece.columns]
    return found


@pytest.fixture
def initial() -> Pieces:
    return initial_pieces([1, 2, 3, 4], RELEVANT)


def test_the_initial_scheme_has_each_column_with_the_features_it_is_relevant_to(initial: Pieces) -> None:
    assert as_sets(initial) == {((1,), (1,)), ((2,), (2, 3)), ((3,), (1, 2)), ((4,), (3,))}


def test_columns_that_no_query_reads_are_one_layout_without_features() -> None:
    assert as_sets(initial_pieces([7, 8], {})) == {((7, 8), ())}


def test_replicating_gives_a_feature_its_own_cells_and_merges_what_has_equal_features(initial: Pieces) -> None:
    """Figure 5.5(b), and 5.5.2: the new layout for f3 has the features of c4's layout, so the two become one."""
    found = repl(initial, piece_of(initial, 2), 3, RELEVANT)
    assert as_sets(found) == {((1,), (1,)), ((2,), (2,)), ((3,), (1, 2)), ((2, 4), (3,))}


def test_merging_takes_the_union_of_columns_and_of_features(initial: Pieces) -> None:
    """Figure 5.5(c)."""
    found = merge(initial, piece_of(initial, 2), piece_of(initial, 3))
    assert as_sets(found) == {((1,), (1,)), ((4,), (3,)), ((2, 3), (1, 2, 3))}


def test_merge_replicating_keeps_common_features_and_replicates_the_others(initial: Pieces) -> None:
    """Figure 5.5(d); the replicas for f1 and f3 join the layouts of c1 and c4, which have the same features."""
    found = merge_repl(initial, piece_of(initial, 2), piece_of(initial, 3), RELEVANT)
    assert as_sets(found) == {((2, 3), (2,)), ((2, 4), (3,)), ((1, 3), (1,))}


def test_a_replica_has_only_columns_that_its_features_ask_for() -> None:
    wide = (Piece(frozenset({1, 2, 3}), frozenset({1, 2})), Piece(frozenset({4}), frozenset({2, 3})))
    found = merge_repl(wide, *wide, {1: frozenset({1, 2}), 2: frozenset({3, 4}), 3: frozenset({4})})
    assert as_sets(found) == {((1, 2, 3, 4), (2,)), ((1, 2), (1,)), ((4,), (3,))}


def test_a_column_is_a_master_where_it_has_most_rows() -> None:
    """c2 has three rows with f2 and f3 and two with f3 alone, so its master is the former."""
    pieces = merged([Piece(frozenset({2}), frozenset({2, 3})), Piece(frozenset({2, 4}), frozenset({3}))])
    assert drafts(pieces, share) == (
        LayoutDraft(frozenset({2}), frozenset({2, 3}), frozenset({2})),
        LayoutDraft(frozenset({2, 4}), frozenset({3}), frozenset({4})),
    )


def test_of_layouts_with_as_many_rows_the_first_has_the_master() -> None:
    pieces = (Piece(frozenset({2}), frozenset({1})), Piece(frozenset({2}), frozenset({2})))
    assert [sorted(draft.masters) for draft in drafts(pieces, share)] == [[2], []]


def test_the_scheme_of_figure_5_4_stores_18_cells_of_16() -> None:
    """Section 5.4.3: twelve cells in L1, six in L2."""
    pieces = (
        Piece(frozenset({1, 2, 3}), frozenset({1, 2})),
        Piece(frozenset({2, 4}), frozenset({3})),
    )
    layouts = drafts(pieces, share)
    cells = [
        4 * (share(one.features) * len(one.columns) + (1 - share(one.features)) * len(one.masters)) for one in layouts
    ]
    assert cells == [12.0, 6.0]
