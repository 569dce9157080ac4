"""LIKE patterns read as what they say: an equality, a prefix, a suffix, a substring, or a pattern proper."""

from __future__ import annotations

from typing import Final

from skipstone.predicate.datatypes import STRING
from skipstone.predicate.expression import Constant, Expression
from skipstone.predicate.formula import NEVER_TRUE, Formula
from skipstone.predicate.literal import Comparison, Match, MatchKind, NullTest, Operator
from skipstone.predicate.words import words

__all__ = ["backslash_escapes", "like", "matching"]

_BACKSLASH_DIALECTS: Final = words(
    "spark spark2 databricks hive mysql doris starrocks singlestore postgres redshift materialize risingwave "
    "bigquery clickhouse"
)


def backslash_escapes(dialect: str) -> bool:
    """Whether LIKE without ESCAPE takes a backslash for an escape there.

    >>> backslash_escapes("spark"), backslash_escapes("duckdb")
    (True, False)
    """
    return dialect.lower() in _BACKSLASH_DIALECTS


def like(kind: MatchKind, value: Expression, pattern: str, escape: str | None, negated: bool) -> Formula | None:
    """Say `value [NOT] LIKE pattern` in the simplest way, or None for a pattern that Spark refuses.

    >>> import pyarrow as pa
    >>> from skipstone.predicate.expression import Column
    >>> like(MatchKind.LIKE, Column("c", pa.string()), "a!%b%", "!", False).pattern
    'a%b'
    """
    pieces = _pieces(pattern, escape)
    if pieces is None:
        return None
    if kind is MatchKind.ILIKE:
        # A single wildcard matters too: the one letter 'İ' is two in lower case, and so not ILIKE '_'.
        if pieces != [_MANY]:
            return Match(kind, value, _written(pieces), negated)
        kind = MatchKind.LIKE
    words = [piece for piece in pieces if isinstance(piece, str)]
    shape = "".join("x" if isinstance(piece, str) else piece.sign for piece in pieces)
    match shape:
        case "" | "x":
            operator = Operator.NOT_EQUAL if negated else Operator.EQUAL
            return Comparison(operator, value, Constant("".join(words), STRING))
        case "%":
            return matching(MatchKind.PREFIX, value, "", negated)
        case "x%":
            return matching(MatchKind.PREFIX, value, words[0], negated)
        case "%x":
            return matching(MatchKind.SUFFIX, value, words[0], negated)
        case "%x%":
            return matching(MatchKind.CONTAINS, value, words[0], negated)
        case _:
            return Match(MatchKind.LIKE, value, _written(pieces), negated)


def matching(kind: MatchKind, value: Expression, pattern: str, negated: bool) -> Formula:
    """Say that a text begins with, ends with or contains another; with an empty one it always does."""
    if not pattern and kind in (MatchKind.PREFIX, MatchKind.SUFFIX, MatchKind.CONTAINS):
        return NEVER_TRUE if negated else NullTest(value, negated=True)
    return Match(kind, value, pattern, negated)


class _Wildcard:
    def __init__(self, sign: str) -> None:
        self.sign = sign


_MANY, _ONE = _Wildcard("%"), _Wildcard("_")
_Piece = str | _Wildcard


def _pieces(pattern: str, escape: str | None) -> list[_Piece] | None:
    """Split a pattern into texts and wildcards; a run of % is one. None for an escape that Spark refuses."""
    pieces: list[_Piece] = []
    text = ""
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            escaped = next(letters, None)
            # Spark raises an error for an escape at the end, or before anything but a wildcard or itself.
            if escaped is None or escaped not in ("%", "_", escape):
                return None
            text += escaped
        elif letter in "%_":
            if text:
                pieces.append(text)
                text = ""
            wildcard = _MANY if letter == "%" else _ONE
            if not (wildcard is _MANY and pieces and pieces[-1] is _MANY):
                pieces.append(wildcard)
        else:
            text += letter
    if text:
        pieces.append(text)
    return pieces


def _written(pieces: list[_Piece]) -> str:
    """Write a pattern with a backslash for the escape."""
    return "".join(
        "".join(f"\\{letter}" if letter in "%_\\" else letter for letter in piece)
        if isinstance(piece, str)
        else piece.sign
        for piece in pieces
    )
