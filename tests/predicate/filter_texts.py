r"""Filters as people and tools write them: the same condition as Spark SQL and, written out in full, for DuckDB.

What DuckDB gets says what Spark's rules make of the text (which casts, which reading of a constant), so it may be run
as the oracle of what parsing, binding and normalising did. Everything is drawn from a `random.Random`: Hypothesis lends
one that it can shrink, and long runs seed their own.
"""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import strategies as st

SCHEMA = pa.schema(
    [
        ("tiny", pa.int8()),
        ("whole", pa.int32()),
        ("long", pa.int64()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("money", pa.decimal128(9, 2)),
        ("Wide", pa.decimal128(18, 4)),
        ("name", pa.string()),
        ("other name", pa.large_string()),
        ("day", pa.date32()),
        ("clock", pa.timestamp("us")),
        ("moment", pa.timestamp("us", "UTC")),
        ("flag", pa.bool_()),
    ]
)

D = decimal.Decimal
NAN, INFINITY = float("nan"), float("inf")
_CLOCKS = (
    datetime.datetime(1994, 1, 1),
    datetime.datetime(1994, 1, 1, 0, 0, 0, 1),
    datetime.datetime(1993, 12, 31, 23, 59, 59, 999_999),
    datetime.datetime(1994, 1, 1, 12, 30),
)
VALUES: dict[str, Sequence[object]] = {
    "tiny": (-128, -1, 0, 1, 5, 6, 127),
    "whole": (-(2**31), -5, 0, 1, 5, 6, 7, 2**31 - 1),
    "long": (-(2**63), 0, 5, 6, 2**53, 2**53 + 1, 3_000_000_000, 2**63 - 1),
    "single": (-INFINITY, -5.5, -0.0, 0.0, 0.05, 0.5, 5.0, 5.5, 3.4028234663852886e38, INFINITY, NAN),
    "double": (-INFINITY, -5.5, -0.0, 0.0, 5e-324, 0.05, 5.0, 5.5, 2.0**53, 1e300, INFINITY, NAN),
    "money": (D("-9999999.99"), D("-0.05"), D("0.00"), D("0.05"), D("0.06"), D("5.00"), D("5.50"), D("9999999.99")),
    "Wide": (D("-1.0000"), D("0.0500"), D("0.0550"), D("5.0000"), D("5.5000"), D("99999999999999.9999")),
    "name": ("", "a", "ab", "abc", "b", "A", "a%", "a_", "a\\", "5", "x\ny", "it's", "é", "\uffff", "\U0001f600"),
    "other name": ("", "a", "ab", "abc", "b"),
    "day": tuple(datetime.date(1994, 1, 1) + datetime.timedelta(days) for days in (-366, -1, 0, 1, 2, 31)),
    "clock": _CLOCKS,
    "moment": tuple(clock.replace(tzinfo=datetime.UTC) for clock in _CLOCKS),
    "flag": (True, False),
}
KINDS = {
    "tiny": "exact",
    "whole": "exact",
    "long": "exact",
    "money": "exact",
    "Wide": "exact",
    "single": "float",
    "double": "float",
    "name": "text",
    "other name": "text",
    "day": "day",
    "clock": "clock",
    "moment": "moment",
    "flag": "flag",
}
OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
EXACT = (
    "0", "1", "5", "6", "-1", "-5", "5.0", "5.5", "0.05", "0.055", "0.5", "127", "128", "-128", "-129", "2147483647",
    "2147483648", "-2147483649", "3000000000", "-5.5", "5.500", "9223372036854775807", "9999999.99", "10000000",
    "99999999999999.9999", "9007199254740993",
)  # fmt: skip
FLOATS = ("5e0", "5.5e0", "5e-2", "0e0", "1e300", "-5.5e0", "9007199254740992e0")
PATTERNS = ("a%", "%a", "%b%", "a_", "ab", "%", "", "_", r"a\%", r"a\_%", "%%a", "_%", "%_", "a%b", r"a\\", "é%", "%'%")
PLAIN = ("", "a", "ab", "abc", "A", "5", "é", "it's", "x\ny", "a\\")


@dataclass(frozen=True, slots=True)
class Written:
    """One condition, or one value, in two dialects."""

    spark: str
    duckdb: str

    def __str__(self) -> str:
        return self.spark


def same(text: str) -> Written:
    return Written(text, text)


def form(pattern: str, *parts: Written) -> Written:
    """Put parts into the same place in both dialects."""
    return Written(pattern.format(*(p.spark for p in parts)), pattern.format(*(p.duckdb for p in parts)))


def text(value: str) -> Written:
    spark = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return Written(f"'{spark}'", "'" + value.replace("'", "''") + "'")


class Texts:
    """Draws filters over `SCHEMA`."""

    def __init__(self, draws: random.Random) -> None:
        self.draws = draws

    def table(self, rows: int = 40) -> pa.Table:
        columns = [
            pa.array([self.draws.choice((*VALUES[f.name], None)) for _ in range(rows)], type=f.type) for f in SCHEMA
        ]
        return pa.table(columns, schema=SCHEMA)

    def chance(self, share: float) -> bool:
        return self.draws.random() < share

    def condition(self, depth: int = 2) -> Written:
        if depth == 0 or self.chance(0.3):
            return self.leaf()
        if self.chance(0.2):
            return form("NOT ({})", self.condition(depth - 1))
        if self.chance(0.12):
            what = self.draws.choice(("TRUE", "FALSE", "NOT TRUE", "NOT FALSE"))
            return form("({}) IS " + what, self.condition(depth - 1))
        parts = [self.condition(depth - 1) for _ in range(self.draws.randint(2, 3))]
        word = self.draws.choice((" AND ", " OR "))
        return form("(" + word.join(["{}"] * len(parts)) + ")", *parts)

    def leaf(self) -> Written:
        draw = self.draws.random()
        if draw < 0.04:
            return same(
                self.draws.choice(("flag", "NOT flag", "TRUE", "FALSE", "NULL", "flag = TRUE", "flag <> FALSE"))
            )
        kind = self.draws.choice(tuple(KINDS.values()))
        if kind == "text" and draw < 0.4:
            return self.match()
        if draw < 0.5:
            operator = self.draws.choice(OPERATORS)
            flip = self.chance(0.15)
            left, right = self.pair(kind)
            left, right = (right, left) if flip else (left, right)
            return Written(
                f"{left.spark} {operator} {right.spark}",
                f"{left.duckdb} {'IS NOT DISTINCT FROM' if operator == '<=>' else operator} {right.duckdb}",
            )
        negation = self.draws.choice(("", "NOT "))
        value = self.value(kind)
        if draw < 0.62:
            return form(f"{{}} {negation}BETWEEN {{}} AND {{}}", value, self.constant(kind), self.constant(kind))
        if draw < 0.8:
            listed = [self.constant(kind) for _ in range(self.draws.randint(1, 4))]
            return form(f"{{}} {negation}IN (" + ", ".join(["{}"] * len(listed)) + ")", value, *listed)
        if draw < 0.9:
            return form(f"{{}} IS {negation}NULL", value)
        return self.distinct(kind, negation)

    def distinct(self, kind: str, negation: str) -> Written:
        return form(f"{{}} IS {negation}DISTINCT FROM {{}}", *self.pair(kind))

    def match(self) -> Written:
        value = self.value("text")
        negation = self.draws.choice(("", "NOT "))
        if self.chance(0.3):
            spark, duckdb = self.draws.choice(
                (("startswith", "starts_with"), ("endswith", "ends_with"), ("contains", "contains"))
            )
            sought = text(self.draws.choice(PLAIN))
            return Written(
                f"{negation}{spark}({value.spark}, {sought.spark})",
                f"{negation}{duckdb}({value.duckdb}, {sought.duckdb})",
            )
        pattern = text(self.draws.choice(PATTERNS))
        return Written(
            f"{value.spark} {negation}LIKE {pattern.spark}",
            f"{value.duckdb} {negation}LIKE {pattern.duckdb} ESCAPE '\\'",
        )

    def pair(self, kind: str) -> tuple[Written, Written]:
        """Two things of one kind that may be compared, the second mostly a constant."""
        left = self.value(kind)
        return left, self.value(kind) if self.chance(0.15) else self.constant(kind)

    def value(self, kind: str) -> Written:
        if self.chance(0.15):
            found = self.computed(kind)
            if found is not None:
                return found
        name = self.draws.choice([name for name, its in KINDS.items() if its == kind])
        quoted = '"' + name + '"'
        # Spark compares a FLOAT with anything but a FLOAT as doubles.
        duckdb = f"CAST({quoted} AS DOUBLE)" if name == "single" else quoted
        written = name.upper() if name == "whole" else f"`{name}`" if " " in name else name
        return Written(f"t.{written}" if self.chance(0.1) else written, duckdb)

    def computed(self, kind: str) -> Written | None:
        choices = {
            "exact": (
                same("length(name)"),
                Written("(tiny + 1)", "(CAST(tiny AS INTEGER) + 1)"),
                Written("(tiny * 2)", "(CAST(tiny AS INTEGER) * 2)"),
                same("coalesce(whole, 0)"),
                same("CAST(tiny AS BIGINT)"),
                Written("year(day)", "year(day)"),
                Written("month(clock)", "month(clock)"),
                Written("dayofweek(day)", "(dayofweek(day) + 1)"),
                same("(money * 2)"),
                same("(money + tiny)"),
                same("abs(money)"),
            ),
            "float": (
                same("(double + 1)"),
                same("(double * 2)"),
                same("CAST(money AS DOUBLE)"),
                same("CAST(tiny AS DOUBLE)"),
            ),
            "text": (
                same("substring(name, 1, 2)"),
                Written("left(name, 1)", "substring(name, 1, 1)"),
                Written("trim(name)", "trim(name, ' ')"),
                Written("concat(name, `other name`)", '(name || "other name")'),
                Written("name || 'x'", "(name || 'x')"),
                same("coalesce(name, 'z')"),
                same("CAST(tiny AS STRING)"),
            ),
            "day": (same("CAST(clock AS DATE)"), Written("to_date(clock)", "CAST(clock AS DATE)")),
            "clock": (Written("CAST(day AS TIMESTAMP_NTZ)", "CAST(day AS TIMESTAMP)"),),
        }.get(kind)
        return self.draws.choice(choices) if choices else None

    def constant(self, kind: str) -> Written:
        if self.chance(0.05):
            return same("NULL")
        match kind:
            case "exact":
                number = self.draws.choice(EXACT)
                return Written("1 + 4" if number == "5" and self.chance(0.3) else number, number)
            case "float":
                number = self.draws.choice((*EXACT, *FLOATS, "NaN", "Infinity", "-Infinity"))
                cast = f"CAST('{number}' AS DOUBLE)"
                return Written(cast if number[-1].isalpha() else number, cast)
            case "text":
                return text(self.draws.choice(PLAIN))
            case "flag":
                return same(self.draws.choice(("TRUE", "FALSE")))
            case _:
                return self.time(kind)

    def time(self, kind: str) -> Written:
        day = datetime.date(1994, 1, 1) + datetime.timedelta(self.draws.choice((-1, 0, 1)))
        hour = self.draws.choice(("00:00:00", "00:00:00.000001", "12:30:00", "23:59:59.999999"))
        if kind == "day":
            duckdb = f"DATE '{day}'"
            spark = self.draws.choice(
                (
                    f"DATE '{day}'",
                    f"date '{day - datetime.timedelta(1)}' + interval 1 day",
                    f"cast('{day}' as date)",
                    f"to_date('{day}')",
                )
            )
            if self.chance(0.2):
                return Written(f"TIMESTAMP_NTZ '{day} {hour}'", f"TIMESTAMP '{day} {hour}'")
            return Written(spark, duckdb)
        if self.chance(0.2):
            # A date is compared with a timestamp as its midnight, in UTC here.
            return Written(f"DATE '{day}'", f"TIMESTAMP{'TZ' if kind == 'moment' else ''} '{day} 00:00:00'")
        if kind == "clock":
            word = self.draws.choice(("TIMESTAMP_NTZ ", "TIMESTAMP "))
            return Written(f"{word}'{day} {hour}'", f"TIMESTAMP '{day} {hour}'")
        zone = self.draws.choice(("", "+00:00", "Z"))
        return Written(f"TIMESTAMP '{day} {hour}{zone}'", f"TIMESTAMPTZ '{day} {hour}+00'")


def texts() -> st.SearchStrategy[Texts]:
    """Generators that Hypothesis can shrink."""
    return st.randoms(use_true_random=False).map(Texts)
