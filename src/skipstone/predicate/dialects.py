"""The dialects of SQL that are read, by name.

Spark's text is read with a dialect of our own, for what Spark 4 reads differently from sqlglot's: `'it''s'` is one
string, `col:path` reads JSON, a plain CAST is told from a TRY_CAST, and functions keep their names.
"""

from __future__ import annotations

import functools
import logging
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.dialects.dialect import Dialect
from sqlglot.parsers.databricks import DatabricksParser

from skipstone.errors import InvalidInput, near_miss
from skipstone.predicate.functions import KEPT_BY_NAME

__all__ = ["SkipstoneSpark", "dialect_named"]

# sqlglot logs what we count and report ourselves; without a handler anywhere Python would print it on the terminal.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())


def _json_by_path(args: list[exp.Expression], dialect: Dialect) -> exp.Expression:
    """Read get_json_object only with a path that begins with $; with any other, Spark finds nothing."""
    path = args[1] if len(args) == 2 else None
    if isinstance(path, exp.Literal) and path.is_string and str(path.this).startswith("$"):
        known: exp.Expression = DatabricksParser.FUNCTIONS["GET_JSON_OBJECT"](args, dialect=dialect)
        return known
    return exp.Anonymous(this="get_json_object", expressions=args)


class SkipstoneSpark(Databricks):
    """Spark SQL as Spark 4 reads it.

    Functions that sqlglot would write in another way than they were read (TO_CHAR without its format, ARRAY_SIZE as
    SIZE) stay calls by name, so that a condition that is carried as text keeps its meaning.
    """

    class Tokenizer(Databricks.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(DatabricksParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            **{name: build for name, build in DatabricksParser.FUNCTIONS.items() if name.lower() not in KEPT_BY_NAME},
            "GET_JSON_OBJECT": _json_by_path,
        }


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
        known = sorted({each for each in Dialect.classes if each} - {SkipstoneSpark.__name__.lower()})
        nearest = near_miss(name, known)
        hint = f' Did you mean "{nearest}"?' if nearest else f" There are: {', '.join(known)}"
        raise InvalidInput(f'no SQL dialect "{name}".{hint}') from None
