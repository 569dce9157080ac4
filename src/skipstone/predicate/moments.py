"""Dates and times that functions give of constants, in the forms that dashboards write them.

    DATEADD(month, 2, DATE '2024-01-01')
    DATE_SUB('2024-02-01', INTERVAL 7 DAY)
    DATE(2024, 1, 31)
    PARSE_DATE('%Y%m%d', '20240101')
    TO_TIMESTAMP('2024-01-01 00:00:00', 'YYYY-MM-DD HH24:MI:SS')

All engines agree on these as long as the texts are written out in full; whatever else stays as it was written.
"""

from __future__ import annotations

import datetime
import re
from typing import Final

from sqlglot import exp

from skipstone.predicate.datatypes import DATE, TIMESTAMP, TIMESTAMP_NTZ
from skipstone.predicate.expression import Constant
from skipstone.predicate.folding import add_interval, cast_constant, interval_of, timestamp_from_text

__all__ = ["date_of_parts", "from_iso_text", "moved", "parsed"]


def moved(node: exp.Expr, moment: Constant, count: Constant, timezone: str) -> Constant | None:
    """Add to a constant date or time, or take away from it, so many units.

    >>> import sqlglot
    >>> node = sqlglot.parse_one("DATEADD(month, 1, DATE '2024-01-31')", read="snowflake")
    >>> day, one = Constant(datetime.date(2024, 1, 31), DATE), Constant("1", DATE)
    >>> moved(node, day, one, "UTC").value
    datetime.date(2024, 2, 29)
    """
    unit = node.args.get("unit")
    interval = interval_of(str(count.value), unit.name if unit is not None else "DAY")
    if interval is None or not isinstance(moment.value, (str, datetime.date)):
        return None
    if isinstance(moment.value, str):
        # A text that is a day, written out: the engines disagree on what type the result is, and not on the moment.
        if interval.microseconds or not _DAY.fullmatch(moment.value):
            return None
        day = cast_constant(moment, DATE, timezone)
        if day is None:
            return None
        moment = day
    return add_interval(moment, -interval if isinstance(node, _BACKWARDS) else interval, timezone)


def date_of_parts(parts: list[Constant]) -> Constant | None:
    """Make a date of a year, a month and a day.

    >>> import pyarrow as pa
    >>> date_of_parts([Constant(number, pa.int32()) for number in (2024, 2, 30)]) is None
    True
    """
    numbers = [part.value for part in parts if type(part.value) is int]
    try:
        return Constant(datetime.date(*numbers), DATE) if len(numbers) == len(parts) == 3 else None
    except ValueError:
        return None


def parsed(text: Constant, form: str, *, date_only: bool, zoned: bool, timezone: str) -> Constant | None:
    """Read a text by a format, in sqlglot's spelling; only formats that name all parts from the year on, in full.

    >>> import pyarrow as pa
    >>> text = Constant("2024-01-01 12:30:00.5", pa.string())
    >>> parsed(text, "%Y-%m-%d %H:%M:%S.%f", date_only=False, zoned=False, timezone="UTC").value
    datetime.datetime(2024, 1, 1, 12, 30, 0, 500000)
    """
    shape = _FORMATS.get(form)
    if shape is None or not isinstance(text.value, str) or not shape.fullmatch(text.value):
        return None
    digits = text.value
    if form == "%Y%m%d":
        digits = f"{digits[:4]}-{digits[4:6]}-{digits[6:]}"
    if date_only:
        return cast_constant(Constant(digits, text.type), DATE, timezone)
    moment = timestamp_from_text(digits, zoned=zoned, timezone=timezone)
    return Constant(moment, TIMESTAMP if zoned else TIMESTAMP_NTZ) if moment is not None else None


def from_iso_text(text: Constant, timezone: str) -> Constant | None:
    """Read a moment in ISO 8601 with its offset.

    >>> import pyarrow as pa
    >>> from_iso_text(Constant("2024-01-01T00:00:00Z", pa.string()), "UTC").value.isoformat()
    '2024-01-01T00:00:00+00:00'
    """
    if not isinstance(text.value, str) or not text.value.endswith("Z"):
        return None
    moment = timestamp_from_text(text.value, zoned=True, timezone=timezone)
    return Constant(moment, TIMESTAMP) if moment is not None else None


_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_BACKWARDS: Final = (exp.DateSub, exp.DatetimeSub, exp.TimestampSub)
_FORMATS: Final = {
    "%Y-%m-%d": _DAY,
    "%Y%m%d": re.compile(r"\d{8}"),
    "%Y-%m-%d %H:%M:%S": re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}"),
    "%Y-%m-%d %H:%M:%S.%f": re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\.\d{1,6}"),
}
