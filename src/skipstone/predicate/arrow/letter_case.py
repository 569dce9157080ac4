r"""Text whose letter case Arrow folds as Java does.

Java maps `İ` to two characters and `ß` to `SS`, and looks at the neighbours of a final sigma; Arrow maps one code point
to one. Below are ranges of code points in which every letter has the same lower and upper case in both, whatever
stands beside it; the suite checks each of them against Spark. Text with other characters is refused as a whole.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import CannotEvaluate
from skipstone.predicate.arrow.conversions import Datum
from skipstone.predicate.arrow.texts import is_ascii, validated

__all__ = ["PLAIN_CASE_RANGES", "has_plain_case", "lowered", "uppered"]

PLAIN_CASE_RANGES: tuple[tuple[int, int], ...] = (
    (0x0000, 0x007F),  # ASCII
    (0x00A0, 0x00B4),  # Latin-1 without the micro sign, whose upper case is Greek, and the sharp s
    (0x00B6, 0x00DE),
    (0x00E0, 0x00FF),
    (0x0100, 0x012F),  # Latin Extended-A without the dotted and dotless i, the n after an apostrophe, and the long s
    (0x0132, 0x0148),
    (0x014A, 0x017E),
    (0x0400, 0x045F),  # Cyrillic
    (0x0900, 0x0DFF),  # the Indic scripts have no case
    (0x2010, 0x2027),  # dashes, quotes, bullets
    (0x20A0, 0x20BF),  # currencies
    (0x3040, 0x30FF),  # kana
    (0x4E00, 0x9FFF),  # Han
    (0xAC00, 0xD7A3),  # Hangul
)
_CLASS = "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in PLAIN_CASE_RANGES)
_PLAIN_CASE = rf"\A[{_CLASS}]*\z"


def has_plain_case(text: str) -> bool:
    """Whether a constant text folds alike in Java and Arrow.

    >>> has_plain_case("Smörgås"), has_plain_case("İstanbul"), has_plain_case("straße")
    (True, False, False)
    """
    return all(any(first <= ord(letter) <= last for first, last in PLAIN_CASE_RANGES) for letter in text)


def lowered(text: Datum) -> Datum:
    """Fold to lower case as Java does, or raise CannotEvaluate where some letter may be folded otherwise."""
    if is_ascii(text):
        return pc.ascii_lower(text)
    _refuse_unless_case_is_plain(text)
    return pc.utf8_lower(text)


def uppered(text: Datum) -> Datum:
    """Fold to upper case as Java does, or raise CannotEvaluate where some letter may be folded otherwise."""
    if is_ascii(text):
        return pc.ascii_upper(text)
    _refuse_unless_case_is_plain(text)
    return pc.utf8_upper(text)


def _refuse_unless_case_is_plain(text: Datum) -> None:
    if isinstance(text, pa.Scalar):
        plain = has_plain_case(text.as_py())
    else:
        plain = pc.all(pc.match_substring_regex(validated(text), _PLAIN_CASE), min_count=0).as_py() is not False
    if not plain:
        raise CannotEvaluate("a text has letters whose case Java and Arrow may see differently")
