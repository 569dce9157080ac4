"""Statements that differ in their constants only.

Two things are made here. `shape` cuts a text at what looks like a constant, by one regular expression and in
microseconds, so that statements of one shape can be parsed once. `template_text` is for people: it asks the dialect's
own tokenizer, drops comments, folds case and shortens lists, so that a report can say "this query ran 4,000 times".

`shape` may be wrong about what a constant is (it does not know comments or quoted names); that is why a constant is
only ever exchanged after the parser has been seen to make a literal of exactly that piece of text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType

__all__ = ["Shape", "free_constants", "shape", "template_text", "without_comments_around"]

_CONSTANT = re.compile(r"""((?<!')'[^'\\]*'(?!')|(?<![\w.$@"`#:])\d+(?:\.\d+)?(?![\w.]))""")
# A quote beside a quote is no end: 'it''s' is one text to the parser, and so it must not be cut in two.
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_LEADING_COMMENTS = re.compile(r"(?:\s+|--[^\n]*(?:\n|\Z)|/\*(?![+!])[^*]*\*+(?:[^/*][^*]*\*+)*/)+")


@dataclass(frozen=True, slots=True)
class Shape:
    """A text cut into what stays and the pieces that look like constants; `starts` are the places of the latter."""

    key: tuple[str, ...]
    constants: tuple[str, ...]

    @property
    def starts(self) -> tuple[int, ...]:
        """Where in the text each constant begins."""
        place, found = 0, []
        for fixed, constant in zip(self.key[::2], self.constants, strict=False):
            place += len(fixed)
            found.append(place)
            place += len(constant)
        return tuple(found)


def shape(text: str) -> Shape:
    """Cut a text at its constants.

    >>> shape("SELECT a FROM t WHERE b = 'x' AND c < 3.5")
    Shape(key=('SELECT a FROM t WHERE b = ', "'", ' AND c < ', '0', ''), constants=("'x'", '3.5'))
    """
    pieces = _CONSTANT.split(text)
    constants = pieces[1::2]
    # Text and number are told apart in the key: a parser may treat them differently.
    pieces[1::2] = ["'" if constant[0] == "'" else "0" for constant in constants]
    return Shape(tuple(pieces), tuple(constants))


def without_comments_around(text: str) -> str:
    """Drop the comments that tools put before and after a statement, and nothing that may be a hint.

    >>> without_comments_around("-- user 17\\n/* dashboard 4 */ SELECT 1 /* end */ ")
    'SELECT 1'
    """
    start = _LEADING_COMMENTS.match(text)
    text = text[start.end() :] if start else text
    text = text.rstrip()
    end = text.rfind("/*") if text.endswith("*/") else -1
    if end >= 0 and text[end + 2 : end + 3] not in ("+", "!") and "*/" not in text[end:-2]:
        text = text[:end].rstrip()
    return text


_FREE_UNDER: tuple[type[exp.Expr], ...] = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like, exp.ILike, exp.Paren, exp.Neg,
    exp.Add, exp.Sub, exp.And, exp.Or, exp.Not,
)  # fmt: skip
"""Constructs that a parser builds without looking at the value of a literal in them."""


def free_constants(tree: exp.Expr) -> dict[int, bool]:
    """Find the literals of a freshly parsed statement whose value decides nothing about how it is read.

    Those are operands of comparisons in WHERE and ON, and nothing else: a number in GROUP BY names a column, the text
    of an interval is taken apart, a LIMIT stops conditions from passing. The result gives for the place of each in the
    text whether it must look like a date.

    >>> import sqlglot
    >>> free_constants(sqlglot.parse_one("SELECT 1 FROM t WHERE a = 2 AND d < DATE '2020-01-01' LIMIT 3"))
    {26: False, 41: True}
    """
    free = {}
    for literal in tree.find_all(exp.Literal):
        start = literal.meta.get("start")
        if start is None:
            continue
        node: exp.Expr = literal
        is_date = False
        if isinstance(node.parent, exp.Cast) and node.parent.to.this == exp.DataType.Type.DATE:
            node, is_date = node.parent, True
        while isinstance(node.parent, _FREE_UNDER) and node.arg_key not in ("query", "escape", "unnest", "field"):
            node = node.parent
        if isinstance(node.parent, exp.Where) or (isinstance(node.parent, exp.Join) and node.arg_key == "on"):
            free[start] = is_date
    return dict(sorted(free.items()))


def looks_like_date(constant: str) -> bool:
    """Whether a quoted constant is a plain date, whose text no dialect takes for anything else."""
    return _DATE.fullmatch(constant, 1, len(constant) - 1) is not None


_LIST = re.compile(r"\(\s*\?(?:\s*,\s*\?)+\s*\)")


def template_text(text: str, dialect: Dialect) -> str:
    """Write a statement with `?` for its constants, on one line, without comments, in lower case.

    >>> template_text("SELECT A -- all\\nFROM t WHERE b IN (1, 2, 3) AND C = 'x'", Dialect.get_or_raise("spark"))
    'select a from t where b in (?, ...) and c = ?'
    """
    parts: list[str] = []
    end = -1
    for token in dialect.tokenize(text):
        if parts and token.start > end + 1:
            parts.append(" ")
        end = token.end
        if token.token_type in (TokenType.STRING, TokenType.NUMBER):
            parts.append("?")
        elif token.token_type == TokenType.IDENTIFIER:
            parts.append(text[token.start : token.end + 1])
        else:
            parts.append(text[token.start : token.end + 1].lower())
    return _LIST.sub("(?, ...)", "".join(parts).rstrip("; "))
