"""The session's time zone, where it is a fixed distance from UTC.

Spark takes a zone's rules from Java's time zone data, Arrow from the machine's. The two differ (Java's merges zones
that agree since 1970, so Stockholm in 1900 is Berlin there), and both change with releases. Only zones without rules
are the same everywhere; for all others whatever depends on the wall clock is left to Spark.
"""

from __future__ import annotations

import re
import zoneinfo
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import InvalidInput, near_miss

__all__ = ["MICROSECONDS", "fixed_offset", "require_zone", "shift"]

MICROSECONDS = 1_000_000
_UTC = frozenset({"utc", "z", "gmt", "ut", "etc/utc", "etc/gmt", "zulu", "etc/zulu", "universal", "etc/universal"})
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")


def fixed_offset(zone: str | None) -> int | None:
    """Say how many seconds east of Greenwich a zone lies, if it lies there all the time.

    >>> fixed_offset("UTC"), fixed_offset("+05:30"), fixed_offset("Europe/Stockholm"), fixed_offset(None)
    (0, 19800, None, None)
    """
    if zone is None:
        return None
    if zone.lower() in _UTC:
        return 0
    found = _OFFSET.fullmatch(zone)
    if not found:
        return None
    sign, hours, minutes = found.groups()
    seconds = int(hours) * 3600 + int(minutes or 0) * 60
    if int(hours) > 18 or int(minutes or 0) > 59 or seconds > 18 * 3600:
        return None
    return -seconds if sign == "-" else seconds


def require_zone(zone: str) -> None:
    """Raise InvalidInput for what names no time zone.

    >>> require_zone("Europe/Pariss")
    Traceback (most recent call last):
    ...
    skipstone.errors.InvalidInput: no time zone "Europe/Pariss". Did you mean "Europe/Paris"? Offsets are as in +02:00
    """
    if fixed_offset(zone) is not None:
        return
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        nearest = near_miss(zone, sorted(zoneinfo.available_timezones()))
        hint = f' Did you mean "{nearest}"?' if nearest else ""
        raise InvalidInput(f'no time zone "{zone}".{hint} Offsets are as in +02:00') from None


def shift(moments: Any, seconds: int, target: pa.DataType) -> Any:
    """Move timestamps in microseconds by whole seconds and read them as `target`; past the range Arrow raises."""
    if seconds == 0:
        return moments.cast(target)  # Arrow reads a wall clock without a zone as UTC, and gives it back the same
    ticks = pc.add_checked(moments.cast(pa.int64()), pa.scalar(seconds * MICROSECONDS, pa.int64()))
    return ticks.cast(target)
