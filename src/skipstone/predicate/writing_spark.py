"""Values of the algebra as Spark SQL: the canonical text."""

from __future__ import annotations

import datetime
import decimal
import functools
import math
from typing import Final

import numpy
import pyarrow as pa

from skipstone.errors import InvalidInput
from skipstone.predicate.datatypes import FLOAT, name_in_spark
from skipstone.predicate.expression import Call, Constant, Expression
from skipstone.predicate.literal import Match, MatchKind, Opaque
from skipstone.predicate.words import words
from skipstone.predicate.writing import Writer, clock, shortest_float32

__all__ = ["SparkWriter", "identifier", "string_literal"]

GREATEST_FLOAT: Final = float(numpy.finfo(numpy.float32).max)

_PLAIN_IDENTIFIER: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_RESERVED: Final = words(
    "all alter and anti any array as between both call case cast check collate collation column connect_by_root "
    "constraint create cross curdate current_catalog current_database current_date current_schema current_time "
    "current_timestamp current_user describe distinct drop else end escape except execute exists false fetch filter "
    "for foreign from full glob grant group having if ilike in inner insert intersect interval into is join lateral "
    "leading left like limit list localtime localtimestamp match_recognize minus natural not notnull null offset on "
    "only or order outer overlaps partitioned_by primary qualify recursive references regexp returning revoke right "
    "rlike rollback select semi serdeproperties session_user setminus some table tablesample then time trailing "
    "true uncache union unique unknown user using values when where with xor"
)
"""Names that Spark (in its strictest mode) or sqlglot does not read as a column everywhere unless quoted."""


_SPARK_ESCAPES: Final = str.maketrans(
    {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\u0000", "\x1a": "\\Z"}
)


def string_literal(value: str) -> str:
    r"""Write a string for Spark, whose parser reads backslash escapes.

    >>> print(string_literal("it's\n50\\%"))
    'it\'s\n50\\%'
    """
    return f"'{value.translate(_SPARK_ESCAPES)}'"


@functools.lru_cache(maxsize=16384)
def identifier(name: str) -> str:
    """Write a name for Spark, in backticks where it needs them.

    >>> identifier("price"), identifier("a.b"), identifier("time")
    ('price', '`a.b`', '`time`')
    """
    if name and not name[0].isdigit() and _PLAIN_IDENTIFIER.issuperset(name) and name.lower() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


class SparkWriter(Writer):
    """Writes Spark SQL, whose text is the canonical one."""

    def quoted(self, name: str) -> str:
        return identifier(name)

    def type_name(self, type_: pa.DataType) -> str:
        name = name_in_spark(type_)
        if name is None:
            raise InvalidInput(f"Spark SQL has no name for the type {type_}")
        return name

    def constant(self, constant: Constant) -> str:
        value, type_ = constant.value, constant.type
        match value:
            case None:
                return f"CAST(NULL AS {self.type_name(type_)})"
            case bool():
                return "TRUE" if value else "FALSE"
            case int():
                return self._integer(value, type_)
            case decimal.Decimal():
                text = format(value, "f")
                natural = natural_decimal(text)
                return text if natural == (type_.precision, type_.scale) else f"CAST({text} AS {self.type_name(type_)})"
            case float():
                return self._float(value, type_)
            case str():
                return string_literal(value)
            case bytes():
                return f"X'{value.hex().upper()}'"
            case datetime.datetime():
                word, zone = ("TIMESTAMP", "Z") if value.tzinfo is not None else ("TIMESTAMP_NTZ", "")
                return f"{word} '{clock(value)}{zone}'"
            case datetime.date():
                return f"DATE '{value.isoformat()}'"
            case datetime.timedelta():
                raise InvalidInput(f"an interval cannot be written as a constant of a filter: {value!r}")

    def _integer(self, value: int, type_: pa.DataType) -> str:
        if value == -(1 << 63):
            return f"CAST({value} AS BIGINT)"  # Spark reads the sign apart from the digits, which then do not fit
        suffix = {"int8": "Y", "int16": "S", "int64": "L"}.get(str(type_), "")
        return f"{value}{suffix}"

    def _float(self, value: float, type_: pa.DataType) -> str:
        word = "FLOAT" if type_ == FLOAT else "DOUBLE"
        if math.isnan(value):
            return f"CAST('NaN' AS {word})"
        if math.isinf(value):
            return f"CAST('{'-' if value < 0 else ''}Infinity' AS {word})"
        if type_ == FLOAT and abs(value) == GREATEST_FLOAT:
            # Its shortest digits are a little above it, and Spark refuses such a literal.
            return f"CAST('{shortest_float32(value)}' AS FLOAT)"
        return f"{shortest_float32(value) if type_ == FLOAT else repr(value).upper()}{word[0]}"

    def match(self, value: Match) -> str:
        left, pattern = self.operand(value.expression), string_literal(value.pattern)
        if value.kind in (MatchKind.PREFIX, MatchKind.SUFFIX, MatchKind.CONTAINS):
            return (
                f"{'NOT ' if value.negated else ''}{value.kind.value}({self.expression(value.expression)}, {pattern})"
            )
        return f"{left} {'NOT ' if value.negated else ''}{value.kind.value} {pattern}"

    def opaque(self, value: Opaque, *, joined: bool) -> str:
        return f"({value.text})" if joined else value.text

    def call(self, value: Call) -> str:
        return f"{value.name}({', '.join(self.expression(argument) for argument in value.arguments)})"

    def element(self, base: Expression, key: Constant) -> str:
        inside = self.plain_constant(key) if isinstance(key.value, int) else self.constant(key)
        return f"{self.operand(base)}[{inside}]"


def natural_decimal(text: str) -> tuple[int, int]:
    """The precision and scale of a decimal literal in Spark.

    >>> natural_decimal("0.05"), natural_decimal("12.50"), natural_decimal("7")
    ((2, 2), (4, 2), (1, 0))
    """
    whole, _, fraction = text.lstrip("+-").partition(".")
    return max(len(whole.lstrip("0")) + len(fraction), len(fraction), 1), len(fraction)
