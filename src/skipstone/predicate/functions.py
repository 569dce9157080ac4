"""The functions whose result types we know, by the name Spark gives them.

A call that is not in these tables is not typed; the condition around it stays opaque. So being absent here costs
skipping and never an answer, and an entry must be right about both the arguments it takes and the type it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
from sqlglot import exp

from skipstone.predicate.datatypes import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    as_decimal,
    bounded_decimal,
    logical,
)
from skipstone.predicate.expression import Constant
from skipstone.predicate.words import words

__all__ = [
    "CONTEXT_DEPENDENT_NAMES",
    "CONTEXT_DEPENDENT_NODES",
    "KEPT_BY_NAME",
    "WRITTEN_AS_READ",
    "arithmetic_type",
    "literal_decimal",
    "result_type",
]

Types = Sequence[pa.DataType]
Typing = Callable[[Types], pa.DataType | None]


def _all_strings(types: Types) -> bool:
    return all(logical(type_) == STRING for type_ in types)


def _text_to(result: pa.DataType, *counts: int) -> Typing:
    return lambda types: result if len(types) in counts and _all_strings(types) else None


def _part_of_date(types: Types) -> pa.DataType | None:
    return INT if len(types) == 1 and logical(types[0]) in (DATE, TIMESTAMP_NTZ, TIMESTAMP) else None


def _part_of_time(types: Types) -> pa.DataType | None:
    return INT if len(types) == 1 and logical(types[0]) in (TIMESTAMP_NTZ, TIMESTAMP) else None


def _length(types: Types) -> pa.DataType | None:
    return INT if len(types) == 1 and logical(types[0]) in (STRING, pa.binary()) else None


def _absolute(types: Types) -> pa.DataType | None:
    return types[0] if len(types) == 1 and _is_number(types[0]) else None


def _substring(types: Types) -> pa.DataType | None:
    if len(types) not in (2, 3) or logical(types[0]) != STRING:
        return None
    return STRING if all(type_ == INT for type_ in types[1:]) else None


def _first_known(types: Types) -> pa.DataType | None:
    kinds = {logical(type_) for type_ in types}
    return kinds.pop() if len(kinds) == 1 else None


def _truncated_moment(types: Types) -> pa.DataType | None:
    # Whatever is truncated is cast to TIMESTAMP first.
    if len(types) == 2 and logical(types[0]) == STRING and logical(types[1]) in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return TIMESTAMP
    return None


def _is_number(type_: pa.DataType) -> bool:
    return type_ in (DOUBLE, FLOAT) or as_decimal(type_) is not None


_RESULTS: Final[dict[str, Typing]] = {
    "length": _length,
    "upper": _text_to(STRING, 1),
    "lower": _text_to(STRING, 1),
    "trim": _text_to(STRING, 1),
    "ltrim": _text_to(STRING, 1),
    "rtrim": _text_to(STRING, 1),
    "reverse": _text_to(STRING, 1),
    "concat": lambda types: STRING if types and _all_strings(types) else None,
    "replace": _text_to(STRING, 3),
    "instr": _text_to(INT, 2),
    "substring": _substring,
    "get_json_object": _text_to(STRING, 2),
    "year": _part_of_date,
    "quarter": _part_of_date,
    "month": _part_of_date,
    "day": _part_of_date,
    "dayofyear": _part_of_date,
    "dayofweek": _part_of_date,
    "weekofyear": _part_of_date,
    "hour": _part_of_time,
    "minute": _part_of_time,
    "second": _part_of_time,
    "date_trunc": _truncated_moment,
    "abs": _absolute,
    "coalesce": _first_known,
}


def result_type(name: str, types: Types) -> pa.DataType | None:
    """The type that Spark gives a call, or None where the call is not one we know.

    >>> result_type("length", [pa.large_string()]), result_type("length", [pa.int64()])
    (DataType(int32), None)
    """
    typing = _RESULTS.get(name)
    return typing(types) if typing is not None else None


_RANK: Final = {pa.int8(): 1, pa.int16(): 2, INT: 3, LONG: 4}


def arithmetic_type(name: str, left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type of `left name right` in Spark (ArithmeticOperators and DecimalPrecision in its sources).

    >>> arithmetic_type("add", pa.int32(), pa.int64()), arithmetic_type("div", pa.int32(), pa.int32())
    (DataType(int64), DataType(double))
    >>> arithmetic_type("mul", pa.decimal128(15, 2), pa.decimal128(15, 2))
    Decimal128Type(decimal128(31, 4))
    """
    if not (_is_number(left) and _is_number(right)):
        return None
    if left in _RANK and right in _RANK:
        return DOUBLE if name == "div" else max(left, right, key=lambda type_: _RANK[type_])
    if left in (DOUBLE, FLOAT) or right in (DOUBLE, FLOAT):
        # FLOAT with anything but DOUBLE is FLOAT under legacy rules and DOUBLE under ANSI ones.
        if FLOAT in (left, right) and (DOUBLE not in (left, right)):
            return FLOAT if left == right and name != "div" else DOUBLE if left == right else None
        return DOUBLE
    a, b = as_decimal(left), as_decimal(right)
    return _decimal_type(name, *a, *b) if a is not None and b is not None else None


def _decimal_type(name: str, p1: int, s1: int, p2: int, s2: int) -> pa.DataType | None:
    match name:
        case "add" | "sub":
            scale = max(s1, s2)
            return bounded_decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "mul":
            return bounded_decimal(p1 + p2 + 1, s1 + s2)
        case "div":
            scale = max(6, s1 + p2 + 1)
            return bounded_decimal(p1 - s1 + s2 + scale, scale)
        case "mod":
            scale = max(s1, s2)
            return bounded_decimal(min(p1 - s1, p2 - s2) + scale, scale)
        case _:
            return None


def literal_decimal(constant: Constant) -> tuple[int, int] | None:
    """Precision and scale of a whole constant beside a decimal: only the digits that it has.

    >>> literal_decimal(Constant(12, pa.int32()))
    (2, 0)
    """
    value = constant.value
    return (len(str(abs(value))), 0) if constant.type in (INT, LONG) and isinstance(value, int) else None


CONTEXT_DEPENDENT_NODES: Final = tuple(
    node
    for node in (
        getattr(exp, name, None)
        for name in sorted(
            words(
                "Rand Randn Uuid CurrentDate CurrentTime CurrentTimestamp CurrentTimestampLTZ CurrentDatetime "
                "CurrentUser CurrentSchema CurrentDatabase CurrentCatalog CurrentRole CurrentTimezone SessionUser "
                "Localtime Localtimestamp Systimestamp UtcDate UtcTime UtcTimestamp UnixTimestamp Shuffle Randstr "
                "Uniform Parameter SessionParameter Placeholder RowNumber Window NextValueFor Query AggFunc"
            )
        )
    )
    if node is not None
)
"""Nodes whose value depends on more than the row: chance, the clock, the session, other rows, other tables."""

CONTEXT_DEPENDENT_NAMES: Final = words(
    "rand random randn uuid shuffle randstr uniform now current_date current_time current_timestamp "
    "current_timezone curdate localtimestamp localtime unix_timestamp to_unix_timestamp current_user "
    "session_user user current_database current_schema current_catalog current_metastore version "
    "spark_partition_id monotonically_increasing_id input_file_name input_file_block_start "
    "input_file_block_length getdate sysdate systimestamp today clock_timestamp transaction_timestamp "
    "statement_timestamp gen_random_uuid generateuuidv4 newid nextval currval row_number rank dense_rank lag "
    "lead ntile read_files reflect java_method try_reflect kll_sketch session_window is_member "
    "is_account_group_member ai_query secret try_secret http_request timeofday pg_sleep"
)

KEPT_BY_NAME: Final = words(
    "aggregate array_append array_insert array_prepend array_remove array_size array_slice array_sort array_sum "
    "bit_get cast_to_str_type char chr date_format element_at from_unixtime from_utc_timestamp getbit hex initcap "
    "last_day ln localtime log log10 log2 lpad map map_from_arrays named_struct overlay parse_json pow power "
    "reduce regexp_extract regexp_extract_all rpad sequence sha sha1 shiftleft shiftright shiftrightunsigned sign "
    "signum size slice sort_array space str_to_map struct time_trunc to_char to_json to_number to_timestamp_ltz "
    "to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar transform try_element_at try_to_number "
    "try_to_timestamp unix_date unix_timestamp"
)
"""Functions that sqlglot knows but would write differently from how it read them; they are left alone instead."""

WRITTEN_AS_READ: Final = words(
    "Abs Acos Acosh AddMonths Array ArrayCompact ArrayContains ArrayDistinct ArrayExcept ArrayFilter "
    "ArrayIntersect ArrayMax ArrayMin ArrayPosition ArrayToString ArraysZip Ascii Asin Asinh Atan Atan2 Atanh "
    "BitLength BitmapBitPosition BitmapBucketNumber BitmapCount BitwiseCount Cbrt Ceil Coalesce Concat ConcatWs "
    "Contains Cos Cosh Cot Csc DateFromUnixDate Day DayOfMonth DayOfWeek DayOfYear Dayname Decode DecodeCase "
    "Degrees Elt Encode EndsWith EqualNull Exists Exp Factorial Flatten Floor Format FromBase32 FromBase64 "
    "Greatest Hour If IsNan JSONKeys Least Left Length Levenshtein Lower MD5 MapContainsKey MapFromEntries "
    "MapKeys Minute Month Monthname MonthsBetween Nanvl Negative NextDay Nullif Nvl2 ParseUrl Pi Quarter Radians "
    "RegexpCount RegexpInstr RegexpReplace RegexpSplit RegexpSubstr Repeat Replace Reverse Right Rint Round SHA2 "
    "Sec Second Sin Sinh Soundex SplitPart Sqrt StartsWith Substring SubstringIndex Tan Tanh ToBase32 ToBase64 "
    "ToBinary Translate Typeof Unhex UnixMicros UnixMillis UnixSeconds Upper WeekOfYear WidthBucket Year"
)
"""Function nodes that sqlglot writes for Spark under the name, and with the arguments, under which it read them."""
