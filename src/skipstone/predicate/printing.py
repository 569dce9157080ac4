"""Values of the algebra written as SQL, for Spark (the canonical text) and for DuckDB.

The Spark text is the canonical one: two values are equal exactly if their texts are, and
`parse_filter(sql(c), schema) == c`. A constant that is compared with something of its own type is written plainly
(`price > 5`), because binding gives it that type again; elsewhere it carries its type (`5L`, `0.5D`).
"""

from __future__ import annotations

import datetime
import decimal
import functools
import math
from collections.abc import Callable, Iterable
from typing import Final

import numpy
import pyarrow as pa

from skipstone.errors import InvalidInput
from skipstone.predicate.datatypes import DOUBLE, FLOAT, LONG, logical, name_in_duckdb, name_in_spark
from skipstone.predicate.expression import Call, Cast, Column, Constant, Element, Expression, Field
from skipstone.predicate.literal import (
    Comparison,
    Conjunction,
    InSet,
    Literal,
    Match,
    MatchKind,
    NullTest,
    Opaque,
    Operator,
    Predicate,
)
from skipstone.predicate.words import words

__all__ = ["identifier", "sql", "string_literal"]


def sql(value: Conjunction | Predicate | Literal | Expression, dialect: str = "spark") -> str:
    r"""Write a value as SQL.

    >>> name = Column("first name", pa.string())
    >>> print(sql(Comparison(Operator.EQUAL, name, Constant("O'Neill", pa.string()))))
    `first name` = 'O\'Neill'
    >>> print(sql(Comparison(Operator.EQUAL, name, Constant("O'Neill", pa.string())), dialect="duckdb"))
    "first name" = 'O''Neill'
    """
    try:
        printer = _PRINTERS[dialect]
    except KeyError:
        raise InvalidInput(
            f'cannot print SQL for "{dialect}"; known dialects: {", ".join(sorted(_PRINTERS))}'
        ) from None
    match value:
        case Conjunction():
            return printer.conjunction(value)
        case Predicate():
            return printer.predicate(value)
        case Comparison() | InSet() | Match() | NullTest() | Opaque():
            return printer.literal(value)
        case _:
            return printer.expression(value)


GREATEST_FLOAT: Final = float(numpy.finfo(numpy.float32).max)

_OPERATORS_OF_CALLS: Final = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}
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


class _Printer:
    """What the two dialects share: precedence, literals, and where a constant may be written plainly."""

    dialect: str

    def conjunction(self, value: Conjunction) -> str:
        if not value.predicates:
            return "TRUE"
        if len(value.predicates) == 1:
            return self.predicate(value.predicates[0])
        return " AND ".join(
            f"({self.predicate(p)})" if len(p.literals) > 1 else self.predicate(p, joined=True)
            for p in value.predicates
        )

    def predicate(self, value: Predicate, *, joined: bool = False) -> str:
        if not value.literals:
            return "FALSE"
        if len(value.literals) == 1:
            return self.literal(value.literals[0], joined=joined)
        return " OR ".join(self.literal(literal, joined=True) for literal in value.literals)

    def literal(self, value: Literal, *, joined: bool = False) -> str:
        match value:
            case Comparison():
                return self.comparison(value)
            case InSet(expression=expression, values=values, negated=negated):
                word = "NOT IN" if negated else "IN"
                plain = self.plainly(expression)
                return f"{self.operand(expression)} {word} ({', '.join(plain(v) for v in values)})"
            case Match():
                return self.match(value)
            case NullTest(expression=expression, negated=negated):
                return f"{self.operand(expression)} IS {'NOT ' if negated else ''}NULL"
            case Opaque():
                return self.opaque(value, joined=joined)

    def comparison(self, value: Comparison) -> str:
        left, right = value.left, value.right
        constant = self.plainly(left)(right) if isinstance(right, Constant) else self.operand(right)
        return f"{self.operand(left)} {self.operator(value.operator)} {constant}"

    def operator(self, operator: Operator) -> str:
        return operator.value

    def plainly(self, beside: Expression) -> Callable[[Constant], str]:
        """How to write a constant that stands beside an expression in a comparison."""
        type_ = logical(beside.type)

        def write(constant: Constant) -> str:
            if constant.type != type_ or isinstance(beside, Constant):
                return self.constant(constant)
            return self.plain_constant(constant)

        return write

    def plain_constant(self, constant: Constant) -> str:
        value = constant.value
        if isinstance(value, bool) or value is None:
            return self.constant(constant)
        if isinstance(value, int):
            return str(value)
        if isinstance(value, decimal.Decimal):
            return format(value, "f")
        if isinstance(value, float) and constant.type == DOUBLE and math.isfinite(value):
            return repr(value).upper()
        return self.constant(constant)

    def operand(self, value: Expression) -> str:
        """An expression as one side of an operator."""
        text = self.expression(value)
        return f"({text})" if isinstance(value, Call) and value.name in (*_OPERATORS_OF_CALLS, "neg") else text

    def expression(self, value: Expression) -> str:
        match value:
            case Column(name=name):
                return self.quoted(name)
            case Field(base=base, name=name):
                return f"{self.operand(base)}.{self.quoted(name)}"
            case Element(base=base, key=key):
                return self.element(base, key)
            case Constant():
                return self.constant(value)
            case Cast(base=base, type=type_, safe=safe):
                return f"{'TRY_CAST' if safe else 'CAST'}({self.expression(base)} AS {self.type_name(type_)})"
            case Call(name="neg", arguments=(base,)):
                return f"-({self.expression(base)})"
            case Call(name=name, arguments=(left, right)) if name in _OPERATORS_OF_CALLS:
                return f"{self.operand(left)} {_OPERATORS_OF_CALLS[name]} {self.operand(right)}"
            case Call():
                return self.call(value)

    def quoted(self, name: str) -> str:
        raise AssertionError  # pragma: no cover - each dialect has its own

    def constant(self, constant: Constant) -> str:
        raise AssertionError  # pragma: no cover - each dialect has its own

    def match(self, value: Match) -> str:
        raise AssertionError  # pragma: no cover - each dialect has its own

    def opaque(self, value: Opaque, *, joined: bool) -> str:
        raise AssertionError  # pragma: no cover - each dialect has its own

    def call(self, value: Call) -> str:
        raise AssertionError  # pragma: no cover - each dialect has its own

    def element(self, base: Expression, key: Constant) -> str:
        raise AssertionError  # pragma: no cover - each dialect has its own

    def type_name(self, type_: pa.DataType) -> str:
        raise AssertionError  # pragma: no cover - each dialect has its own


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


class _SparkPrinter(_Printer):
    dialect = "spark"

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
                return f"{word} '{_clock(value)}{zone}'"
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


class _DuckDBPrinter(_Printer):
    dialect = "duckdb"

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def type_name(self, type_: pa.DataType) -> str:
        name = name_in_duckdb(type_)
        if name is None:
            raise InvalidInput(f"DuckDB's SQL has no name here for the type {type_}")
        return name

    def operator(self, operator: Operator) -> str:
        return "IS NOT DISTINCT FROM" if operator is Operator.NULL_SAFE_EQUAL else operator.value

    def constant(self, constant: Constant) -> str:
        value, type_ = constant.value, constant.type
        match value:
            case None:
                return f"CAST(NULL AS {self.type_name(type_)})"
            case bool():
                return "TRUE" if value else "FALSE"
            case int():
                return f"CAST({value} AS {self.type_name(type_)})" if type_ != LONG else f"CAST({value} AS BIGINT)"
            case decimal.Decimal():
                return f"CAST('{format(value, 'f')}' AS {self.type_name(type_)})"
            case float():
                text = repr(value) if type_ == DOUBLE or not math.isfinite(value) else shortest_float32(value)
                return f"CAST('{text}' AS {self.type_name(type_)})"
            case str():
                return self.text(value)
            case bytes():
                return f"from_hex('{value.hex()}')"
            case datetime.datetime():
                word, zone = ("TIMESTAMPTZ", "+00") if value.tzinfo is not None else ("TIMESTAMP", "")
                return f"{word} '{_clock(value)}{zone}'"
            case datetime.date():
                return f"DATE '{value.isoformat()}'"
            case datetime.timedelta():
                raise InvalidInput(f"an interval cannot be written as a constant of a filter: {value!r}")

    def plain_constant(self, constant: Constant) -> str:
        # DuckDB reads 0.05 as a decimal and 1e3 as a double; only whole numbers are alike everywhere.
        value = constant.value
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else self.constant(constant)

    def text(self, value: str) -> str:
        parts = value.split("\0")
        quoted = ["'" + part.replace("'", "''") + "'" for part in parts]
        return quoted[0] if len(quoted) == 1 else "(" + " || chr(0) || ".join(quoted) + ")"

    def match(self, value: Match) -> str:
        text = self.expression(value.expression)
        pattern = self.text(value.pattern)
        negation = "NOT " if value.negated else ""
        match value.kind:
            case MatchKind.PREFIX:
                return f"{negation}starts_with({text}, {pattern})"
            case MatchKind.SUFFIX:
                return f"{negation}ends_with({text}, {pattern})"
            case MatchKind.CONTAINS:
                return f"{negation}contains({text}, {pattern})"
            case MatchKind.LIKE | MatchKind.ILIKE:
                left = self.operand(value.expression)
                return f"{left} {negation}{value.kind.value} {pattern} ESCAPE '\\'"
            case MatchKind.RLIKE:
                raise InvalidInput(
                    f"DuckDB's regular expressions are RE2's and Spark's are Java's, so {text} RLIKE {pattern} "
                    "may not mean the same there"
                )

    def opaque(self, value: Opaque, *, joined: bool) -> str:
        raise InvalidInput(f"DuckDB's SQL cannot express what is known only as Spark SQL: {value.text}")

    def call(self, value: Call) -> str:
        template = _DUCKDB_CALLS.get(value.name)
        if template is None:
            raise InvalidInput(f"DuckDB's SQL has no function here that means Spark's {value.name}")
        return template([self.expression(argument) for argument in value.arguments])

    def element(self, base: Expression, key: Constant) -> str:
        if pa.types.is_map(base.type):
            return f"map_extract_value({self.expression(base)}, {self.constant(key)})"
        # Spark counts from 0 and has nothing before the first; DuckDB counts from 1, and from the end below 0.
        return f"{self.operand(base)}[{int(key.value) + 1}]" if isinstance(key.value, int) else "NULL"


def _function(name: str) -> Callable[[list[str]], str]:
    return lambda arguments: f"{name}({', '.join(arguments)})"


_DUCKDB_CALLS: Final[dict[str, Callable[[list[str]], str]]] = {
    **{
        name: _function(name)
        for name in ("length", "year", "month", "day", "quarter", "hour", "minute", "coalesce", "abs", "dayofyear")
    },
}


def natural_decimal(text: str) -> tuple[int, int]:
    """The precision and scale of a decimal literal in Spark.

    >>> natural_decimal("0.05"), natural_decimal("12.50"), natural_decimal("7")
    ((2, 2), (4, 2), (1, 0))
    """
    whole, _, fraction = text.lstrip("+-").partition(".")
    return max(len(whole.lstrip("0")) + len(fraction), len(fraction), 1), len(fraction)


def shortest_float32(value: float) -> str:
    """The shortest digits that read as the given single float.

    >>> shortest_float32(0.05000000074505806)
    '0.05'
    """
    return str(numpy.float32(value)).upper()


def _clock(value: datetime.datetime) -> str:
    text = f"{value.year:04}-{value.month:02}-{value.day:02} {value.hour:02}:{value.minute:02}:{value.second:02}"
    return f"{text}.{value.microsecond:06}".rstrip("0") if value.microsecond else text


_PRINTERS: Final[dict[str, _Printer]] = {"spark": _SparkPrinter(), "duckdb": _DuckDBPrinter()}


def texts(values: Iterable[Literal]) -> list[str]:
    """Write several literals for Spark."""
    printer = _PRINTERS["spark"]
    return [printer.literal(value) for value in values]
