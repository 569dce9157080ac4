"""SQL text to trees, and filters to values.

Spark's text is read with a dialect of our own, for three things in which Spark 4 differs from what sqlglot knows:
`'it''s'` is one string, `col:path` reads JSON, and a plain CAST is told from a TRY_CAST.
"""

from __future__ import annotations

import functools
from typing import ClassVar

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from skipstone.errors import InvalidInput, InvalidQuery
from skipstone.predicate.binding import bind
from skipstone.predicate.literal import Conjunction

__all__ = ["dialect_named", "parse_condition", "parse_filter"]


class SkipstoneSpark(Databricks):
    """Spark SQL as Spark 4 reads it."""

    class Tokenizer(Databricks.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']


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
    try:
        return bind(
            parse_condition(text, dialect=dialect),
            schema,
            dialect=dialect,
            case_sensitive=case_sensitive,
            timezone=timezone,
        )
    except InvalidQuery as problem:
        if problem.sql or problem.line is None:
            raise
        raise InvalidQuery.at(str(problem), sql=text, line=problem.line, column=problem.column) from problem


def parse_condition(text: str, *, dialect: str = "spark") -> exp.Expression:
    """Parse a condition, as it may stand after WHERE.

    >>> parse_condition("a = 1").sql()
    'a = 1'
    """
    prefix = "SELECT 1 WHERE "
    try:
        statements = sqlglot.parse(prefix + text, read=dialect_named(dialect))
    except SqlglotError as problem:
        raise _explained(problem, text, len(prefix)) from problem
    except RecursionError as problem:
        raise InvalidQuery(f"the condition is nested too deeply to be read ({len(text):,} characters)") from problem
    statement = statements[0] if len(statements) == 1 else None
    where = statement.args.get("where") if statement is not None else None
    if statement is None or where is None or {key for key, value in statement.args.items() if value} - _CONDITION_ONLY:
        raise InvalidQuery.at("expected one condition, as after WHERE", sql=text, line=None, column=None)
    condition: exp.Expression = where.this
    return condition


_CONDITION_ONLY = {"expressions", "where", "kind"}


def _explained(problem: SqlglotError, text: str, shift: int) -> InvalidQuery:
    errors = getattr(problem, "errors", None)
    if not errors:
        return InvalidQuery.at(f"cannot read the condition: {problem}", sql=text, line=None, column=None)
    first = errors[0]
    line, column = first.get("line"), first.get("col")
    if line == 1 and column is not None:
        column = max(column - shift, 1)
    reason = str(first.get("description") or "cannot be read").rstrip(".")
    return InvalidQuery.at(reason, sql=text, line=line, column=column)


@functools.cache
def dialect_named(name: str) -> Dialect:
    """The sqlglot dialect for a name; `spark` is Spark 4's.

    >>> dialect_named("postgers")
    Traceback (most recent call last):
    ...
    skipstone.errors.InvalidInput: no SQL dialect "postgers". Did you mean "postgres"?
    """
    if name.lower() in ("spark", "databricks"):
        return SkipstoneSpark()
    try:
        return Dialect.get_or_raise(name)
    except ValueError:
        from skipstone.errors import near_miss

        nearest = near_miss(name, [each for each in Dialect.classes if each])
        hint = f' Did you mean "{nearest}"?' if nearest else ""
        raise InvalidInput(f'no SQL dialect "{name}".{hint}') from None
