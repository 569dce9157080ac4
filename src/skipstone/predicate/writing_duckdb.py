"""Values of the algebra as DuckDB's SQL, where it can say the same as Spark's.

What DuckDB would answer differently for even one value is refused with a reason: letter case outside of ASCII, regular
expressions, JSON, anything that needs the session's time zone, decimals whose results Spark rounds.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from skipstone.errors import InvalidInput
from skipstone.predicate.datatypes import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    as_decimal,
    integer_range,
    logical,
    name_in_duckdb,
)
from skipstone.predicate.expression import Call, Cast, Constant, Expression, Field
from skipstone.predicate.literal import Match, MatchKind, Opaque, Operator
from skipstone.predicate.writing import Writer, clock, shortest_float32

__all__ = ["DuckDBWriter"]


class DuckDBWriter(Writer):
    """Writes DuckDB's SQL, or raises `InvalidInput` with the reason why it cannot say the same."""

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def type_name(self, type_: pa.DataType) -> str:
        name = name_in_duckdb(type_) or _UNSIGNED.get(type_)
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
                return f"CAST({value} AS {self.type_name(type_)})"
            case decimal.Decimal():
                return f"CAST('{format(value, 'f')}' AS {self.type_name(type_)})"
            case float():
                text = shortest_float32(value) if type_ == FLOAT and math.isfinite(value) else repr(value)
                return f"CAST('{text}' AS {self.type_name(type_)})"
            case str():
                return self._text(value)
            case bytes():
                return f"from_hex('{value.hex()}')"
            case datetime.datetime():
                word, zone = ("TIMESTAMPTZ", "+00") if value.tzinfo is not None else ("TIMESTAMP", "")
                return f"{word} '{clock(value)}{zone}'"
            case datetime.date():
                return f"DATE '{value.isoformat()}'"
            case datetime.timedelta():
                raise InvalidInput(f"an interval cannot be written as a constant of a filter: {value!r}")

    def plain_constant(self, constant: Constant) -> str:
        # DuckDB reads 0.05 as a decimal and 1e3 as a double; only whole numbers are alike everywhere.
        value = constant.value
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else self.constant(constant)

    def _text(self, value: str) -> str:
        # A statement may not hold the character NUL.
        parts = ["'" + part.replace("'", "''") + "'" for part in value.split("\0")]
        return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"

    def match(self, value: Match) -> str:
        text, pattern = self.expression(value.expression), self._text(value.pattern)
        negation = "NOT " if value.negated else ""
        match value.kind:
            case MatchKind.PREFIX:
                return f"{negation}starts_with({text}, {pattern})"
            case MatchKind.SUFFIX:
                return f"{negation}ends_with({text}, {pattern})"
            case MatchKind.CONTAINS:
                return f"{negation}contains({text}, {pattern})"
            case MatchKind.LIKE:
                return f"{self.operand(value.expression)} {negation}LIKE {pattern} ESCAPE '\\'"
            case MatchKind.ILIKE:
                raise _refused(f"{text} ILIKE {pattern}", "the two fold the case of some letters differently")
            case MatchKind.RLIKE:
                raise _refused(f"{text} RLIKE {pattern}", "its regular expressions are RE2's, Spark's are Java's")

    def opaque(self, value: Opaque, *, joined: bool) -> str:
        raise InvalidInput(f"DuckDB's SQL cannot express what is known only as Spark SQL: {value.text}")

    def expression(self, value: Expression) -> str:
        match value:
            case Field(base=base, name=name):
                return f"struct_extract({self.expression(base)}, {self._text(name)})"
            case Cast():
                return self._cast(value)
            case Call(name="add" | "sub" | "mul" | "div" | "mod"):
                return self._arithmetic(value)
            case _:
                return super().expression(value)

    def _cast(self, value: Cast) -> str:
        source, target = logical(value.base.type), logical(value.type)
        if value.safe or not _casts_alike(source, target):
            word = "TRY_CAST" if value.safe else "CAST"
            raise _refused(f"{word} of {source} to {target}", "not every value gives the same")
        return f"CAST({self.expression(value.base)} AS {self.type_name(target)})"

    def _arithmetic(self, value: Call) -> str:
        left, right = value.arguments
        exact = not pa.types.is_floating(value.type)
        if pa.types.is_decimal(value.type) and (value.name == "div" or value.type.precision >= MAX_PRECISION):
            raise _refused(f"{value.name} of {left.type} and {right.type}", "Spark rounds the result in its own way")
        if value.name == "mod" and not exact:
            raise _refused("% of floating numbers", "an infinite one gives an error there")
        a, b = (
            self.operand(side) if pa.types.is_decimal(value.type) else self._as(side, value.type)
            for side in value.arguments
        )
        if value.name in ("div", "mod"):
            b = f"nullif({b}, 0)"  # where Spark gives NULL or an error, DuckDB gives an infinity or an error
        return f"{a} {_OPERATORS[value.name]} {b}"

    def _as(self, value: Expression, type_: pa.DataType) -> str:
        """An operand in the type in which Spark computes: whole numbers and decimals are cast to floating ones."""
        if logical(value.type) == type_:
            return self.operand(value)
        return self._cast(Cast(value, type_)) if not isinstance(value, Constant) else self._constant_as(value, type_)

    def _constant_as(self, value: Constant, type_: pa.DataType) -> str:
        assert isinstance(value.value, (int, float, decimal.Decimal))
        return self.constant(Constant(float(value.value) if pa.types.is_floating(type_) else value.value, type_))

    def call(self, value: Call) -> str:
        write = _CALLS.get(value.name)
        text = write(value, [self.expression(argument) for argument in value.arguments]) if write is not None else None
        if text is None:
            kinds = ", ".join(str(argument.type) for argument in value.arguments)
            raise _refused(f"{value.name}({kinds})", "nothing there is known to mean just the same")
        return text

    def element(self, base: Expression, key: Constant) -> str:
        if pa.types.is_map(base.type):
            return f"map_extract_value({self.expression(base)}, {self.constant(key)})"
        # Spark counts from 0 and DuckDB from 1; binding leaves no negative positions.
        assert isinstance(key.value, int)
        return f"list_extract({self.expression(base)}, {key.value + 1})"


_UNSIGNED: Final = {
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
}
_OPERATORS: Final = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}


def _refused(what: str, reason: str) -> InvalidInput:
    return InvalidInput(f"DuckDB cannot be asked for {what} in Spark's sense: {reason}")


def _casts_alike(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast gives the same in both engines for every value that it can be given.

    >>> _casts_alike(INT, DOUBLE), _casts_alike(DOUBLE, INT)
    (True, False)
    """
    if source == target or (source, target) in _ALIKE:
        return True
    if pa.types.is_integer(source) and pa.types.is_integer(target):
        (a, b), (c, d) = integer_range(source), integer_range(target)
        return c <= a and b <= d
    one, other = as_decimal(source), as_decimal(target)
    if one is None:
        return False
    if target == DOUBLE:
        # Up to 15 digits the unscaled number and the power of ten are both exact doubles: one division rounds once.
        return one[0] <= 15 or pa.types.is_integer(source)
    if other is None or pa.types.is_integer(target):
        return bool(target == STRING and pa.types.is_integer(source))
    return one[1] <= other[1] and one[0] - one[1] <= other[0] - other[1]


_ALIKE: Final = {
    (FLOAT, DOUBLE),
    (DATE, TIMESTAMP_NTZ),
    (TIMESTAMP_NTZ, DATE),
    (DATE, STRING),
    (BOOLEAN, STRING),
    (BOOLEAN, INT),
    (BOOLEAN, LONG),
}

_Write = Callable[[Call, list[str]], str | None]


def _named(name: str, *types: pa.DataType) -> _Write:
    """A function of the same name and meaning for a first argument of some types, or of any if none is named."""

    def write(call: Call, arguments: list[str]) -> str | None:
        if types and logical(call.arguments[0].type) not in types:
            return None
        return f"{name}({', '.join(arguments)})"

    return write


def _substring(call: Call, arguments: list[str]) -> str | None:
    """Positions from 1 on and lengths from 0 on mean the same in both."""
    given = [argument.value if isinstance(argument, Constant) else None for argument in call.arguments[1:]]
    start, length = [*given, 0][:2]
    if not isinstance(start, int) or not isinstance(length, int) or start < 1 or length < 0:
        return None
    return f"substring({', '.join(arguments)})"


def _searching(name: str) -> _Write:
    """A search for a text that is known not to be empty."""

    def write(call: Call, arguments: list[str]) -> str | None:
        sought = call.arguments[1]
        if not isinstance(sought, Constant) or not sought.value:
            return None
        return f"{name}({', '.join(arguments)})"

    return write


def _part(name: str, plus: int = 0) -> _Write:
    """A part of a date or of a timestamp without a zone; those with one depend on the session's."""

    def write(call: Call, arguments: list[str]) -> str | None:
        if logical(call.arguments[0].type) == TIMESTAMP:
            return None
        return f"({name}({arguments[0]}) + {plus})" if plus else f"{name}({arguments[0]})"

    return write


_CALLS: Final[dict[str, _Write]] = {
    "length": lambda call, arguments: (
        f"{'length' if logical(call.arguments[0].type) == STRING else 'octet_length'}({arguments[0]})"
    ),
    "substring": _substring,
    "replace": _searching("replace"),
    "instr": _searching("instr"),
    # DuckDB's trim takes away every kind of space unless it is told which, and its concat skips NULL.
    "trim": lambda call, arguments: f"trim({arguments[0]}, ' ')",
    "ltrim": lambda call, arguments: f"ltrim({arguments[0]}, ' ')",
    "rtrim": lambda call, arguments: f"rtrim({arguments[0]}, ' ')",
    "concat": lambda call, arguments: "(" + " || ".join(f"({argument})" for argument in arguments) + ")",
    "coalesce": _named("coalesce"),
    "abs": _named("abs"),
    "year": _part("year"),
    "quarter": _part("quarter"),
    "month": _part("month"),
    "day": _part("day"),
    "dayofyear": _part("dayofyear"),
    "dayofweek": _part("dayofweek", plus=1),
    "weekofyear": _part("week"),
    "hour": _part("hour"),
    "minute": _part("minute"),
    "second": _part("second"),
}
