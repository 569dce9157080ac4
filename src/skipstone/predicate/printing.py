"""Values of the algebra written as SQL, for Spark (the canonical text) and for DuckDB.

The Spark text is the canonical one: two values are equal exactly if their texts are, and
`parse_filter(sql(c), schema) == c`. A constant that is compared with something of its own type is written plainly
(`price > 5`), because binding gives it that type again; elsewhere it carries its type (`5L`, `0.5D`).
"""

from __future__ import annotations

from typing import Final

from skipstone.errors import InvalidInput
from skipstone.predicate.expression import Expression
from skipstone.predicate.literal import Comparison, Conjunction, InSet, Literal, Match, NullTest, Opaque, Predicate
from skipstone.predicate.writing import Writer
from skipstone.predicate.writing_duckdb import DuckDBWriter
from skipstone.predicate.writing_spark import SparkWriter

__all__ = ["sql"]

_WRITERS: Final[dict[str, Writer]] = {"spark": SparkWriter(), "duckdb": DuckDBWriter()}


def sql(value: Conjunction | Predicate | Literal | Expression, dialect: str = "spark") -> str:
    r"""Write a value as SQL.

    >>> import pyarrow as pa
    >>> from skipstone.predicate.expression import Column, Constant
    >>> from skipstone.predicate.literal import Operator
    >>> name = Column("first name", pa.string())
    >>> print(sql(Comparison(Operator.EQUAL, name, Constant("O'Neill", pa.string()))))
    `first name` = 'O\'Neill'
    >>> print(sql(Comparison(Operator.EQUAL, name, Constant("O'Neill", pa.string())), dialect="duckdb"))
    "first name" = 'O''Neill'
    """
    try:
        writer = _WRITERS[dialect]
    except KeyError:
        raise InvalidInput(f'cannot print SQL for "{dialect}"; known dialects: {", ".join(sorted(_WRITERS))}') from None
    match value:
        case Conjunction():
            return writer.conjunction(value)
        case Predicate():
            return writer.predicate(value)
        case Comparison() | InSet() | Match() | NullTest() | Opaque():
            return writer.literal(value)
        case _:
            return writer.expression(value)
