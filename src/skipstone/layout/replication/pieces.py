"""The scheme transformations of GSOP-R, as functions from values to values.

Sun, "Skipping-oriented Data Design for Large-Scale Analytics", dissertation, 2017, section 5.5: a search moves from
scheme to scheme by three operations on pairs of columns and local features; masters follow by two rules.

    (C_i, F_i)     Piece(columns, features)        M_i      drafts(pieces, share)
    L              Pieces                          |R_i|    share(features), of all rows
    rel-cols(f)    relevant[f]

No two pieces have the same features: such layouts are merged at once (5.5.2), for it costs nothing and saves row ids.
Columns and features are numbers, their positions in a `DesignProblem`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft

__all__ = [
    "Columns",
    "Features",
    "Piece",
    "Pieces",
    "Relevant",
    "drafts",
    "initial_pieces",
    "merge",
    "merge_repl",
    "merged",
    "relevant_columns",
    "repl",
]

Columns: TypeAlias = frozenset[int]

Features: TypeAlias = frozenset[int]

Relevant: TypeAlias = Mapping[int, Columns]
"""For each feature its relevant columns: those that some query which it subsumes reads."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A layout before its masters are known: some columns, for the rows that satisfy one of its features."""

    columns: Columns
    features: Features


Pieces: TypeAlias = tuple[Piece, ...]
"""A scheme before its masters are known: no two pieces with the same features, in the order of those."""


def relevant_columns(problem: DesignProblem) -> dict[int, Columns]:
    """Look up rel-cols(f) of every feature."""
    return {
        feature: frozenset(columns.nonzero()[0].tolist())
        for feature, columns in enumerate(problem.relevant)
        if columns.any()
    }


def initial_pieces(columns: Iterable[int], relevant: Relevant) -> Pieces:
    """Make the initial scheme of 5.5.1: every column by itself, for the features that it is relevant to.

    As in figure 5.5(a), with a fifth column that no query reads:

    >>> relevant = {1: frozenset({1, 3}), 2: frozenset({2, 3}), 3: frozenset({2, 4})}
    >>> for piece in initial_pieces([1, 2, 3, 4, 5], relevant):
    ...     print(sorted(piece.columns), sorted(piece.features))
    [5] []
    [1] [1]
    [3] [1, 2]
    [2] [2, 3]
    [4] [3]
    """
    return merged(
        Piece(frozenset({column}), frozenset(feature for feature, of in relevant.items() if column in of))
        for column in columns
    )


def merged(pieces: Iterable[Piece]) -> Pieces:
    """Merge the pieces that have the same features (5.5.2), and put them in order.

    >>> same = [Piece(frozenset({7}), frozenset({1})), Piece(frozenset({8}), frozenset({1}))]
    >>> [sorted(piece.columns) for piece in merged(same)]
    [[7, 8]]
    """
    by_features: dict[Features, Columns] = {}
    for piece in pieces:
        if piece.columns:
            by_features[piece.features] = by_features.get(piece.features, frozenset()) | piece.columns
    return tuple(Piece(by_features[features], features) for features in sorted(by_features, key=sorted))


def repl(pieces: Pieces, piece: Piece, feature: int, relevant: Relevant) -> Pieces:
    """Replicate the cells that a feature asks for, and rid the piece of that feature.

    repl(L, L_i, f_j) = L - L_i + L'_i + L_{k+1}, with L'_i = (C_i, F_i - f_j), L_{k+1} = (rel-cols(f_j) n C_i, {f_j}).
    """
    rid = Piece(piece.columns, piece.features - {feature})
    replica = Piece(relevant[feature] & piece.columns, frozenset({feature}))
    return merged((*_without(pieces, piece), rid, replica))


def merge(pieces: Pieces, one: Piece, other: Piece) -> Pieces:
    """Align the columns of two pieces, for the features of both.

    merge(L, L_i, L_j) = L - L_i - L_j + L_{k+1}, with L_{k+1} = (C_i u C_j, F_i u F_j).
    """
    return merged((*_without(pieces, one, other), Piece(one.columns | other.columns, one.features | other.features)))


def merge_repl(pieces: Pieces, one: Piece, other: Piece, relevant: Relevant) -> Pieces:
    """Align the columns of two pieces for the features that they share, and replicate the cells that the others ask.

    merge-repl(L, L_i, L_j) = L - L_i - L_j + L_{k+1} + L_{k+2} + L_{k+3}, with L_{k+1} = (C_i u C_j, F_i n F_j) and
    L_{k+2} = (C_i n rel-cols of F_i - F_j, F_i - F_j); L_{k+3} is the same the other way round.
    """
    shared = Piece(one.columns | other.columns, one.features & other.features)
    rest = (_remainder(one, other, relevant), _remainder(other, one, relevant))
    return merged((*_without(pieces, one, other), shared, *rest))


def drafts(pieces: Sequence[Piece], share: Callable[[Features], float]) -> tuple[LayoutDraft, ...]:
    """Choose the masters: each column is one where it has most rows, for there it takes the fewest more (5.5.3).

    `share` gives the share of all rows that satisfy one of some features, |R_i| / |R|. Of equal pieces it is the first.

    >>> two = (Piece(frozenset({7, 8}), frozenset({1})), Piece(frozenset({8}), frozenset({2})))
    >>> [sorted(draft.masters) for draft in drafts(two, lambda features: 0.9 if 2 in features else 0.5)]
    [[7], [8]]
    """
    home: dict[int, int] = {}
    most: dict[int, float] = {}
    for number, piece in enumerate(pieces):
        held = share(piece.features)
        for column in piece.columns:
            if column not in home or held > most[column]:
                home[column], most[column] = number, held
    return tuple(
        LayoutDraft(piece.columns, piece.features, frozenset(one for one in piece.columns if home[one] == number))
        for number, piece in enumerate(pieces)
    )


def _without(pieces: Pieces, *gone: Piece) -> list[Piece]:
    return [piece for piece in pieces if piece not in gone]


def _remainder(one: Piece, other: Piece, relevant: Relevant) -> Piece:
    """What `one` alone asks of its columns; no columns where it asks for nothing of its own."""
    features = one.features - other.features
    asked: Columns = frozenset().union(*(relevant[feature] for feature in features))
    return Piece(one.columns & asked, features)
