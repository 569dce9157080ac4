"""From a parsed expression to a typed value, with Spark's types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
from sqlglot import exp

from skipstone.predicate.datatypes import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    is_comparable,
    logical,
)
from skipstone.predicate.expression import Call, Cast, Constant, Element, Expression
from skipstone.predicate.folding import (
    Interval,
    add_interval,
    arithmetic,
    cast_constant,
    decimal_literal,
    interval_of,
    numeric_literal,
)
from skipstone.predicate.functions import arithmetic_type, literal_decimal, result_type
from skipstone.predicate.moments import date_of_parts, from_iso_text, moved, parsed
from skipstone.predicate.names import Names

__all__ = ["NotUnderstood", "Values", "asked_at", "column_parts"]


class NotUnderstood(Exception):
    """Ours alone: what is in hand has no value in the algebra, and the condition around it stays opaque."""


class Values:
    """Turns expressions into typed values of the algebra; raises `NotUnderstood` for what has none."""

    def __init__(self, names: Names, dialect: str, timezone: str) -> None:
        self.names = names
        self.timezone = timezone
        self.spark = dialect.lower() in ("spark", "spark2", "databricks", "hive")
        # In Spark's family of dialects sqlglot reads a plain CAST as a TryCast without `safe`.
        self.try_cast_is_safe = dialect.lower() == "databricks" or not self.spark
        self.zoned_timestamp = self.spark

    def value(self, node: exp.Expression) -> Expression:
        """Type an expression."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise NotUnderstood
        return handler(self, node)

    def column(self, node: exp.Column) -> Expression:
        return self.names.find(column_parts(node), asked_at(node))

    def dot(self, node: exp.Dot) -> Expression:
        if not isinstance(node.expression, exp.Identifier):
            raise NotUnderstood
        found = self.names.field(self.value(node.this), node.expression.name)
        if found is None:
            raise NotUnderstood
        return found

    def bracket(self, node: exp.Bracket) -> Expression:
        base = self.value(node.this)
        if len(node.expressions) != 1:
            raise NotUnderstood
        key = self.value(node.expressions[0])
        if not isinstance(key, Constant) or key.is_null:
            raise NotUnderstood
        if pa.types.is_map(base.type):
            if logical(base.type.key_type) != STRING or not isinstance(key.value, str):
                raise NotUnderstood
            return Element(base, key, base.type.item_type)
        if not (pa.types.is_list(base.type) or pa.types.is_large_list(base.type)) or key.type != INT:
            raise NotUnderstood
        assert isinstance(key.value, int)
        # sqlglot has moved the position to count from 0; element_at, which counts from 1, keeps its offset.
        if node.args.get("offset") or key.value < 0:
            raise NotUnderstood
        return Element(base, Constant(key.value, INT), base.type.value_type)

    def literal(self, node: exp.Literal) -> Expression:
        if node.is_string:
            return Constant(node.this, STRING)
        return _known(numeric_literal(node.this))

    def raw_string(self, node: exp.Expression) -> Expression:
        return Constant(node.this, STRING)

    def boolean(self, node: exp.Boolean) -> Expression:
        return Constant(bool(node.this), BOOLEAN)

    def null(self, node: exp.Null) -> Expression:
        return Constant(None, pa.null())

    def hexadecimal(self, node: exp.HexString) -> Expression:
        if not self.spark:
            raise NotUnderstood
        digits = str(node.this)
        return Constant(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits), BINARY)

    def parenthesis(self, node: exp.Paren) -> Expression:
        return self.value(node.this)

    def negative(self, node: exp.Neg) -> Expression:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return _known(negative_literal(node.this.this))
        base = self.value(node.this)
        type_ = result_type("abs", [base.type])  # the numbers, as for abs
        if type_ is None:
            raise NotUnderstood
        if isinstance(base, Constant):
            if isinstance(base.value, float):
                return Constant(-base.value, base.type)
            return _known(arithmetic("sub", Constant(0, INT), base, type_))
        return Call("neg", (base,), type_)

    def arithmetic(self, node: exp.Expression) -> Expression:
        name = _ARITHMETIC[type(node)]
        if isinstance(node, exp.Div) and node.args.get("typed"):
            raise NotUnderstood  # a dialect in which 7 / 2 is 3
        moved = self._with_interval(name, node)
        if moved is not None:
            return moved
        left, right = self.value(node.this), self.value(node.expression)
        type_ = self._arithmetic_type(name, left, right)
        if isinstance(left, Constant) and isinstance(right, Constant):
            return _known(arithmetic(name, left, right, type_))
        return Call(name, (left, right), type_)

    def _arithmetic_type(self, name: str, left: Expression, right: Expression) -> pa.DataType:
        types = [left.type, right.type]
        for position, (one, other) in enumerate(((left, right), (right, left))):
            if isinstance(one, Constant) and pa.types.is_decimal(other.type):
                digits = literal_decimal(one)
                if digits is not None:
                    types[position] = pa.decimal128(*digits)
        found = arithmetic_type(name, *types)
        if found is None:
            raise NotUnderstood
        return found

    def _with_interval(self, name: str, node: exp.Expression) -> Expression | None:
        if name not in ("add", "sub"):
            return None
        left, right = self.interval(node.this), self.interval(node.expression)
        if left is None and right is None:
            return None
        if right is not None and left is None:
            span, moment = (right if name == "add" else -right), self.value(node.this)
        elif left is not None and right is None and name == "add":
            span, moment = left, self.value(node.expression)
        else:
            raise NotUnderstood
        if not isinstance(moment, Constant):
            raise NotUnderstood
        return _known(add_interval(moment, span, self.timezone))

    def interval(self, node: exp.Expression | None) -> Interval | None:
        """Read an interval, or several added up; None for what is no interval."""
        if isinstance(node, exp.Paren):
            return self.interval(node.this)
        if isinstance(node, exp.Add):
            left, right = self.interval(node.this), self.interval(node.expression)
            return left + right if left is not None and right is not None else None
        if not isinstance(node, exp.Interval):
            return None
        count, unit = node.this, node.args.get("unit")
        sign = ""
        if isinstance(count, exp.Neg):
            count, sign = count.this, "-"
        if not isinstance(count, exp.Literal) or not isinstance(unit, exp.Var):
            raise NotUnderstood
        found = interval_of(sign + str(count.this), unit.name)
        if found is None:
            raise NotUnderstood
        return found

    def cast(self, node: exp.Expression) -> Expression:
        if node.args.get("format") or node.args.get("default"):
            raise NotUnderstood
        safe = isinstance(node, exp.TryCast) and bool(node.args.get("safe") or self.try_cast_is_safe)
        type_ = self.type(node.args["to"])
        # A suffix literal (5L, 0.05BD, 0.5F) reaches us as a cast of its digits.
        literal = node.this
        if isinstance(literal, exp.Literal) and pa.types.is_decimal(type_):
            base: Expression = _known(decimal_literal(literal.this))
        else:
            base = self.value(literal)
        if isinstance(base, Constant):
            return _known(cast_constant(base, type_, self.timezone))
        if not is_comparable(base.type):
            raise NotUnderstood
        return base if logical(base.type) == type_ else Cast(base, type_, safe)

    def type(self, node: exp.DataType) -> pa.DataType:
        """Read the name of a type."""
        kind = node.this
        if kind == exp.DType.DECIMAL:
            sizes = [int(parameter.name) for parameter in node.expressions]
            precision, scale = (sizes + [10, 0][len(sizes) :])[:2]
            if not 0 < precision <= 38 or scale > precision:
                raise NotUnderstood
            return pa.decimal128(precision, scale)
        if kind == exp.DType.TIMESTAMP:
            return TIMESTAMP if self.zoned_timestamp else TIMESTAMP_NTZ
        found = _TYPES.get(kind)
        if found is None or node.expressions:
            raise NotUnderstood
        return found

    def to_date(self, node: exp.TsOrDsToDate) -> Expression:
        if node.args.get("format"):
            raise NotUnderstood
        base = self.value(node.this)
        if logical(base.type) == DATE:
            return base
        if isinstance(base, Constant):
            return _known(cast_constant(base, DATE, self.timezone))
        if logical(base.type) not in (STRING, TIMESTAMP, TIMESTAMP_NTZ):
            raise NotUnderstood
        return Cast(base, DATE)

    def date_of(self, node: exp.Date) -> Expression:
        """DATE(moment) of most dialects; with more arguments it is another function."""
        if {key for key, given in node.args.items() if given} != {"this"}:
            raise NotUnderstood
        return self.to_date(exp.TsOrDsToDate(this=node.this))

    def moved(self, node: exp.Expression) -> Expression:
        """A constant date or time to which a number of units is added."""
        if self.spark and isinstance(node, exp.TimestampAdd):
            raise NotUnderstood  # its result is a timestamp whatever it is given
        moment, count = self.value(node.this), self.value(node.expression)
        if not isinstance(moment, Constant) or not isinstance(count, Constant):
            raise NotUnderstood
        if isinstance(node, exp.AddMonths):
            if not self.spark:
                raise NotUnderstood  # Oracle's and Snowflake's go from the last day of a month to the last day
            node = exp.DateAdd(this=node.this.copy(), unit=exp.var("MONTH"))
        return _known(moved(node, moment, count, self.timezone))

    def date_of_parts(self, node: exp.DateFromParts) -> Expression:
        parts = [self.value(node.args[key]) for key in ("year", "month", "day") if node.args.get(key)]
        return _known(date_of_parts([part for part in parts if isinstance(part, Constant)]))

    def parsed(self, node: exp.Expression) -> Expression:
        """TO_DATE, TO_TIMESTAMP and their like of a constant, with a format."""
        form, text = node.args.get("format"), self.value(node.this)
        if not isinstance(form, exp.Literal) or not isinstance(text, Constant) or node.args.get("zone"):
            raise NotUnderstood
        date_only = isinstance(node, exp.StrToDate)
        return _known(parsed(text, form.name, date_only=date_only, zoned=self.spark, timezone=self.timezone))

    def timestamp_of(self, node: exp.Expression) -> Expression:
        """TIMESTAMP('2024-01-01'), FROM_ISO8601_TIMESTAMP('2024-01-01T00:00:00Z')"""
        if {key for key, given in node.args.items() if given} - {"this", "with_tz"}:
            raise NotUnderstood
        text = self.value(node.this)
        if not isinstance(text, Constant):
            raise NotUnderstood
        if isinstance(node, exp.FromISO8601Timestamp):
            return _known(from_iso_text(text, self.timezone))
        return _known(cast_constant(text, TIMESTAMP if node.args.get("with_tz") else TIMESTAMP_NTZ, self.timezone))

    def converted(self, node: exp.Convert) -> Expression:
        """CONVERT(date, x) of SQL Server is a cast, unless a style is given."""
        if {key for key, given in node.args.items() if given} != {"this", "expression"}:
            raise NotUnderstood
        return self.cast(exp.Cast(this=node.expression, to=node.this))

    def part_of_date(self, node: exp.Expression) -> Expression:
        """year(ts) reaches us as Year(TsOrDsToDate(ts)), which is the same of a timestamp."""
        inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
        return self.call(_DATE_PARTS[type(node)], inner)

    def extract(self, node: exp.Extract) -> Expression:
        name = node.this.name.lower()
        name = {"doy": "dayofyear", "days": "day", "years": "year", "months": "month"}.get(name, name)
        if name not in ("year", "quarter", "month", "day", "hour", "minute", "dayofyear"):
            raise NotUnderstood
        return self.call(name, node.expression)

    def call(self, name: str, *arguments: exp.Expression | None) -> Expression:
        """Type a call by its name in Spark."""
        values = tuple(self.value(argument) for argument in arguments if argument is not None)
        if any(isinstance(value, Constant) and value.is_null for value in values):
            raise NotUnderstood
        type_ = result_type(name, [value.type for value in values])
        if type_ is None or all(isinstance(value, Constant) for value in values):
            raise NotUnderstood
        return Call(name, values, type_)

    def simple(self, node: exp.Expression) -> Expression:
        name, keys = _SIMPLE[type(node)]
        if any(value for key, value in node.args.items() if key not in keys and key not in _HARMLESS):
            raise NotUnderstood
        arguments: list[exp.Expression | None] = []
        for key in keys:
            given = node.args.get(key)
            arguments += given if isinstance(given, list) else [given]
        return self.call(name, *arguments)

    def trim(self, node: exp.Trim) -> Expression:
        if node.args.get("expression") or node.args.get("collation"):
            raise NotUnderstood
        position = str(node.args.get("position") or "BOTH").upper()
        return self.call({"LEADING": "ltrim", "TRAILING": "rtrim"}.get(position, "trim"), node.this)

    def concatenation(self, node: exp.DPipe) -> Expression:
        return self.call("concat", node.this, node.expression)

    def truncated(self, node: exp.Expression) -> Expression:
        unit = node.args.get("unit")
        if unit is None or node.args.get("zone"):
            raise NotUnderstood
        if self.timezone != "UTC":
            raise NotUnderstood
        name = unit.name.upper()
        if name not in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"):
            raise NotUnderstood
        return self.call("date_trunc", exp.Literal.string(name), node.this)

    def json(self, node: exp.Expression) -> Expression:
        path = node.expression
        if not isinstance(path, exp.JSONPath) or node.args.get("expressions"):
            raise NotUnderstood
        written = _json_path(path)
        base = self.value(node.this)
        if logical(base.type) != STRING:
            raise NotUnderstood
        return Call("get_json_object", (base, Constant(written, STRING)), STRING)


def column_parts(node: exp.Column) -> list[str]:
    """The names of a column reference, outermost first."""
    return [part.name for part in node.parts]


def asked_at(node: exp.Column) -> str:
    """Say for an error where a column was looked for, with its place in the text if it is known."""
    place = node.this.meta if isinstance(node.this, exp.Identifier) else {}
    line, end = place.get("line"), place.get("col")
    if line is None or end is None:
        return "the schema"
    quotes = 2 if node.this.args.get("quoted") else 0
    return f"the schema (line {line}, column {max(end - len(node.name) - quotes + 1, 1)})"


def _known(found: Constant | None) -> Constant:
    if found is None:
        raise NotUnderstood
    return found


def negative_literal(text: str) -> Constant | None:
    """Type a number with a minus before it; the least BIGINT is one only with it.

    >>> negative_literal("9223372036854775808").type
    DataType(int64)
    """
    found = numeric_literal("-" + text) if not text.isdigit() else None
    if text.isdigit():
        value = -int(text)
        positive = numeric_literal(text)
        if positive is not None and positive.type == INT:
            return Constant(value, INT)
        if value >= -(1 << 63):
            return Constant(value, LONG)
        return decimal_literal("-" + text)
    return found


def _json_path(path: exp.JSONPath) -> str:
    """Write a path as get_json_object takes it: keys and positions, nothing else."""
    text = "$"
    for part in path.expressions:
        match part:
            case exp.JSONPathRoot():
                continue
            case exp.JSONPathKey() if isinstance(part.this, str):
                plain = part.this.isidentifier()
                if not plain and any(letter in part.this for letter in "'\"\\[]"):
                    raise NotUnderstood
                text += f".{part.this}" if plain else f"['{part.this}']"
            case exp.JSONPathSubscript() if isinstance(part.this, int):
                text += f"[{part.this}]"
            case _:
                raise NotUnderstood
    return text


_ARITHMETIC: Final[dict[type[exp.Expression], str]] = {
    exp.Add: "add",
    exp.Sub: "sub",
    exp.Mul: "mul",
    exp.Div: "div",
    exp.Mod: "mod",
}
_DATE_PARTS: Final[dict[type[exp.Expression], str]] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfYear: "dayofyear",
    exp.DayOfWeek: "dayofweek",
    exp.WeekOfYear: "weekofyear",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}
_MOVING: Final[tuple[type[exp.Expression], ...]] = (
    exp.DateAdd, exp.DateSub, exp.TsOrDsAdd, exp.AddMonths, exp.DatetimeAdd, exp.DatetimeSub, exp.TimestampAdd,
    exp.TimestampSub,
)  # fmt: skip
_SIMPLE: Final[dict[type[exp.Expression], tuple[str, tuple[str, ...]]]] = {
    exp.Length: ("length", ("this",)),
    exp.Upper: ("upper", ("this",)),
    exp.Lower: ("lower", ("this",)),
    exp.Reverse: ("reverse", ("this",)),
    exp.Abs: ("abs", ("this",)),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.Concat: ("concat", ("expressions",)),
    exp.Coalesce: ("coalesce", ("this", "expressions")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.StrPosition: ("instr", ("this", "substr")),
}
_HARMLESS: Final = frozenset({"safe", "is_nvl", "is_null"})
_TYPES: Final = {
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: INT,
    exp.DType.BIGINT: LONG,
    exp.DType.FLOAT: FLOAT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.TEXT: STRING,
    exp.DType.VARCHAR: STRING,
    exp.DType.BINARY: BINARY,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
}
Handler = Callable[[Values, exp.Expression], Expression]
_HANDLERS: Final[dict[type[exp.Expression], Handler]] = {
    exp.Column: Values.column,  # type: ignore[dict-item]
    exp.Dot: Values.dot,  # type: ignore[dict-item]
    exp.Bracket: Values.bracket,  # type: ignore[dict-item]
    exp.Literal: Values.literal,  # type: ignore[dict-item]
    exp.RawString: Values.raw_string,
    exp.National: Values.raw_string,
    exp.Boolean: Values.boolean,  # type: ignore[dict-item]
    exp.Null: Values.null,  # type: ignore[dict-item]
    exp.HexString: Values.hexadecimal,  # type: ignore[dict-item]
    exp.Paren: Values.parenthesis,  # type: ignore[dict-item]
    exp.Neg: Values.negative,  # type: ignore[dict-item]
    **dict.fromkeys(_ARITHMETIC, Values.arithmetic),
    exp.Cast: Values.cast,
    exp.TryCast: Values.cast,
    exp.TsOrDsToDate: Values.to_date,  # type: ignore[dict-item]
    exp.Date: Values.date_of,  # type: ignore[dict-item]
    **dict.fromkeys(_MOVING, Values.moved),
    exp.DateFromParts: Values.date_of_parts,  # type: ignore[dict-item]
    exp.StrToDate: Values.parsed,
    exp.StrToTime: Values.parsed,
    exp.Timestamp: Values.timestamp_of,
    exp.FromISO8601Timestamp: Values.timestamp_of,
    exp.Convert: Values.converted,  # type: ignore[dict-item]
    **dict.fromkeys(_DATE_PARTS, Values.part_of_date),
    exp.Extract: Values.extract,  # type: ignore[dict-item]
    **dict.fromkeys(_SIMPLE, Values.simple),
    exp.Trim: Values.trim,  # type: ignore[dict-item]
    exp.DPipe: Values.concatenation,  # type: ignore[dict-item]
    exp.TimestampTrunc: Values.truncated,
    exp.JSONExtract: Values.json,
    exp.JSONExtractScalar: Values.json,
}
