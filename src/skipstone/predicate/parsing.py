"""SQL text to trees, and filters to values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError, TokenError

from skipstone.errors import InvalidQuery
from skipstone.predicate.binding import bind
from skipstone.predicate.dialects import dialect_named
from skipstone.predicate.literal import Conjunction

__all__ = ["NO_WORDS", "dialect_named", "parse_condition", "parse_filter", "what_was_found"]


def parse_filter(
    text: str, schema: pa.Schema, *, dialect: str = "spark", case_sensitive: bool = False, timezone: str = "UTC"
) -> Conjunction:
    """Read a WHERE condition and bring it into canonical form.

    `timezone` is the session's: it says which instant a timestamp without an offset means.

    >>> from skipstone.predicate.printing import sql
    >>> schema = pa.schema([("price", pa.int64()), ("shipped", pa.date32())])
    >>> print(sql(parse_filter("NOT (price <= 5.5) AND shipped < date '1994-01-01' + interval 1 year", schema)))
    price > 5 AND shipped < DATE '1995-01-01'
    """
    return bind(
        parse_condition(text, dialect=dialect),
        schema,
        dialect=dialect,
        case_sensitive=case_sensitive,
        timezone=timezone,
    )


def parse_condition(text: str, *, dialect: str = "spark") -> exp.Expression:
    """Parse a condition, as it may stand after WHERE.

    >>> parse_condition("a = 1").sql()
    'a = 1'
    """
    # The line break keeps columns of the text as they are; lines are one more.
    try:
        statements = sqlglot.parse(_BEFORE + text, read=dialect_named(dialect))
    except SqlglotError as problem:
        raise _explained(problem, text) from problem
    except RecursionError as problem:
        raise InvalidQuery(f"the condition is nested too deeply to be read ({len(text):,} characters)") from problem
    statement = statements[0] if len(statements) == 1 else None
    where = statement.args.get("where") if statement is not None else None
    if statement is None or where is None or {key for key, value in statement.args.items() if value} - _CONDITION_ONLY:
        raise InvalidQuery.at("expected one condition, as after WHERE", sql=text, line=None, column=None)
    condition: exp.Expression = where.this
    for name in condition.find_all(exp.Identifier):
        if "line" in name.meta:
            name.meta["line"] -= 1
    return condition


_BEFORE = "SELECT 1 WHERE\n"
_CONDITION_ONLY = {"expressions", "where", "kind"}


def _explained(problem: SqlglotError, text: str) -> InvalidQuery:
    """Say in our words what sqlglot found, and point at the beginning of the word where it did."""
    if isinstance(problem, TokenError):
        return InvalidQuery.at(NO_WORDS, sql=text, line=None, column=None)
    errors = getattr(problem, "errors", None)
    if not errors or errors[0].get("line") is None:
        return InvalidQuery.at(f"cannot read the condition: {problem}", sql=text, line=None, column=None)
    first = errors[0]
    found = str(first.get("highlight") or "")
    line, end = int(first["line"]) - 1, int(first["col"])
    if line < 1:
        return InvalidQuery.at("expected a condition", sql=text, line=1, column=1)
    return InvalidQuery.at(what_was_found(first), sql=text, line=line, column=max(end - len(found) + 1, 1))


NO_WORDS: Final = "cannot tell the words apart; a quote or a comment may not be closed"
"""What is said of a text that does not even fall into words: sqlglot gives no place then."""


_TOKEN = re.compile(
    r"but got <Token token_type: (?:TokenType\.)?(?P<kind>\w+), text: (?P<text>.*?), line: .*>$", re.DOTALL
)


def what_was_found(error: Mapping[str, Any]) -> str:
    """Say in our words what sqlglot found wrong at one place of a text.

    >>> what_was_found({"description": "Invalid expression / Unexpected token", "highlight": ")"})
    "did not expect ')' here"
    >>> what_was_found({"description": "Expected a name but got <Token token_type: TokenType.ON, text: ON, line: 1>"})
    "expected a name but found 'ON'"
    """
    found, reason = str(error.get("highlight") or ""), str(error.get("description") or "")
    if reason.startswith(("Required keyword", "Required argument")):
        return f"something is missing at {found!r}"
    if reason.startswith("Invalid expression"):
        return f"did not expect {found!r} here"
    token = _TOKEN.search(reason)
    if token is not None:
        instead = "the text ends" if token["kind"] == "SENTINEL" else f"found {token['text']!r}"
        reason = f"{reason[: token.start()]}but {instead}"
    return reason[:1].lower() + reason[1:].rstrip(".") or "cannot read this"
