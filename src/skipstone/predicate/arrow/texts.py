"""What the bytes of texts are: ASCII only, or at least valid UTF-8."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from skipstone.errors import CannotEvaluate
from skipstone.predicate.arrow.conversions import Datum

__all__ = ["is_ascii", "validated"]


def is_ascii(text: Datum) -> bool:
    """Whether all texts are plain ASCII, seen in one pass over their bytes (a fraction of what Arrow's test takes).

    Bytes behind a NULL are looked at as well, so the answer may be a cautious no.

    >>> is_ascii(pa.array(["abc", None])), is_ascii(pa.array(["abc", "é"])), is_ascii(pa.array(["é", "abc"])[1:])
    (True, False, True)
    """
    if isinstance(text, pa.Scalar):
        return not text.is_valid or text.as_py().isascii()
    offset_type = np.int64 if pa.types.is_large_string(text.type) else np.int32
    _, offsets, data = text.buffers()
    if len(text) == 0 or data is None or offsets is None:
        return True
    ends = np.frombuffer(offsets, offset_type)[text.offset : text.offset + len(text) + 1]
    used = np.frombuffer(data, np.int8)[ends[0] : ends[-1]]
    return used.size == 0 or int(used.min()) >= 0  # as a signed number, a byte of a longer letter is negative


def validated(text: Datum) -> Datum:
    """Refuse bytes that are not UTF-8, which a file may hold all the same: Spark reads them in ways of its own."""
    if not isinstance(text, pa.Scalar) and not is_ascii(text):
        try:
            text.validate(full=True)
        except pa.ArrowInvalid as error:
            raise CannotEvaluate("a text is not valid UTF-8") from error
    return text
