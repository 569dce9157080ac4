r"""LIKE and RLIKE patterns as RE2 reads them, where that is provably what Java's regular expressions find.

Both engines agree on the plain core of regular expressions once four things are spelt out: what `.` leaves out (Java:
every line terminator, not only \n), what `$` finds (Java: also before a last line terminator), what `\s` holds (Java:
also \v) and what `\d` and `\w` hold (ASCII in both, written out to be sure). A pattern outside of that core is refused.
Whether a text holds a match does not depend on greed, so lazy quantifiers are as good as greedy ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from skipstone.errors import CannotEvaluate
from skipstone.predicate.literal import MatchKind

__all__ = ["LikeParts", "like_as_re2", "like_parts", "rlike_as_re2"]

LINE_TERMINATORS = r"\n\r\x{85}\x{2028}\x{2029}"
_SHORTHANDS = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r"\t\n\x0b\f\r "}
_CONTROLS = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f"}
_MAX_REPEAT = 100  # RE2 refuses 1000 and more, and a nest of repeats long before
_META = frozenset("\\^$.|?*+()[]{}")


@dataclass(frozen=True, slots=True)
class LikeParts:
    """A LIKE pattern that is no more than one text with or without % on either side."""

    kind: MatchKind | None
    """PREFIX, SUFFIX or CONTAINS; None where the whole text must be equal."""
    text: str


def like_tokens(pattern: str) -> list[str]:
    r"""Split a pattern into `%`, `_` and escaped or plain letters, each of the latter with a leading backslash.

    >>> like_tokens(r"a\%%_")
    ['\\a', '\\%', '%', '_']
    """
    tokens: list[str] = []
    letters = iter(pattern)
    for letter in letters:
        if letter == "\\":
            escaped = next(letters, "")
            if escaped not in ("%", "_", "\\"):
                raise CannotEvaluate("in a LIKE pattern a backslash may stand before %, _ and itself only")
            tokens.append("\\" + escaped)
        elif letter in "%_":
            tokens.append(letter)
        else:
            tokens.append("\\" + letter)
    return tokens


def like_parts(pattern: str) -> LikeParts | None:
    """Read a simple LIKE pattern as a comparison of bytes, None where it is not that simple.

    >>> like_parts("abc%")
    LikeParts(kind=<MatchKind.PREFIX: 'startswith'>, text='abc')
    >>> like_parts("a%c") is None
    True
    """
    tokens = like_tokens(pattern)
    inner = tokens
    opens = bool(inner) and inner[0] == "%"
    while inner and inner[0] == "%":
        inner = inner[1:]
    closes = len(tokens) > 0 and tokens[-1] == "%"
    while inner and inner[-1] == "%":
        inner = inner[:-1]
    if any(token in ("%", "_") for token in inner):
        return None
    text = "".join(token[1:] for token in inner)
    kinds = {
        (False, False): None,
        (False, True): MatchKind.PREFIX,
        (True, False): MatchKind.SUFFIX,
        (True, True): MatchKind.CONTAINS,
    }
    return LikeParts(kinds[opens, closes], text)


def like_as_re2(pattern: str) -> str:
    r"""Write a LIKE pattern as RE2; % and _ also stand for line ends.

    >>> like_as_re2(r"a%_")
    '(?s)\\Aa.*.\\z'
    """
    parts = {"%": ".*", "_": "."}
    return "(?s)\\A" + "".join(parts.get(token) or _quoted(token[1:]) for token in like_tokens(pattern)) + "\\z"


def _quoted(letter: str) -> str:
    if letter in _META:
        return "\\" + letter
    return letter if letter.isprintable() else f"\\x{{{ord(letter):x}}}"


def rlike_as_re2(pattern: str) -> str:
    r"""Translate a Java pattern, to be found anywhere in a text, or raise CannotEvaluate.

    >>> rlike_as_re2(r"^a.\d+")
    '\\Aa[^\\n\\r\\x{85}\\x{2028}\\x{2029}][0-9]+'
    >>> rlike_as_re2(r"(?i)abc")
    Traceback (most recent call last):
    skipstone.errors.CannotEvaluate: the pattern uses (?i, which Java and RE2 may read differently
    """
    return _Translation(pattern).translate()


class _Translation:
    """One pass over a pattern, by recursive descent."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.place = 0
        self.may_eat_carriage_return = False
        self.ends_with_dollar = False

    def translate(self) -> str:
        text = self.alternatives(depth=0)
        if self.place < len(self.pattern):
            raise self.refused(self.pattern[self.place])
        if self.ends_with_dollar:
            if self.may_eat_carriage_return:
                # Java finds no end between \r and \n; a part before $ that takes the \r would find one here.
                raise self.refused("$ after a part that may take a carriage return")
            text += rf"(?:\r\n|[{LINE_TERMINATORS}])?\z"
        return text

    def refused(self, what: str) -> CannotEvaluate:
        return CannotEvaluate(f"the pattern uses {what}, which Java and RE2 may read differently")

    def peek(self, width: int = 1) -> str:
        return self.pattern[self.place : self.place + width]

    def alternatives(self, depth: int) -> str:
        branches = [self.sequence(depth)]
        while self.peek() == "|":
            self.place += 1
            branches.append(self.sequence(depth))
        if depth == 0 and self.ends_with_dollar and len(branches) > 1:
            raise self.refused("$ in an alternative")
        return "|".join(branches)

    def sequence(self, depth: int) -> str:
        parts: list[str] = []
        while (letter := self.peek()) and letter not in "|)":
            if letter == "^":
                self.place += 1
                parts.append("\\A")
                self.refuse_repeat("^")
            elif letter == "$":
                self.place += 1
                if depth > 0 or self.place < len(self.pattern):
                    raise self.refused("$ before the end")
                self.ends_with_dollar = True
            else:
                parts.append(self.atom(depth) + self.repeat())
        return "".join(parts)

    def atom(self, depth: int) -> str:
        letter = self.peek()
        if letter == "(":
            return self.group(depth)
        if letter == "[":
            return self.letter_class()
        self.place += 1
        if letter == ".":
            return f"[^{LINE_TERMINATORS}]"
        if letter == "\\":
            return self.escape()
        if letter in "*+?{}]":
            raise self.refused(letter)
        return self.plain(letter)

    def plain(self, letter: str) -> str:
        if letter == "\r":
            self.may_eat_carriage_return = True
        return _quoted(letter)

    def group(self, depth: int) -> str:
        self.place += 1
        if self.peek() == "?":
            if self.peek(2) != "?:":
                raise self.refused("(" + self.peek(2))
            self.place += 2
        if depth > 20:
            raise self.refused("groups nested more than 20 deep")
        inner = self.alternatives(depth + 1)
        if self.peek() != ")":
            raise self.refused("a group without its end")
        self.place += 1
        return f"(?:{inner})"

    def escape(self) -> str:
        letter = self.peek()
        self.place += 1
        if letter in _SHORTHANDS:
            if letter == "s":
                self.may_eat_carriage_return = True
            return f"[{_SHORTHANDS[letter]}]"
        if letter.lower() in _SHORTHANDS and letter:
            self.may_eat_carriage_return = True
            return f"[^{_SHORTHANDS[letter.lower()]}]"
        return self.escaped_letter(letter)

    def escaped_letter(self, letter: str) -> str:
        if letter in _CONTROLS:
            if letter == "r":
                self.may_eat_carriage_return = True
            return _CONTROLS[letter]
        if not letter or not letter.isascii() or letter.isalnum() or not letter.isprintable():
            raise self.refused("\\" + letter)
        return f"\\x{{{ord(letter):x}}}"

    def letter_class(self) -> str:
        """`[a-z_]` and `[^a-z_]` of letters, ranges, shorthands and escapes; no sets in sets, no intersections."""
        self.place += 1
        negated = self.peek() == "^"
        self.place += negated
        parts: list[str] = []
        while (letter := self.peek()) != "]":
            if not letter or letter in "[&^":
                raise self.refused(f"{letter or 'no end'} in a letter class")
            parts.append(self.class_item())
        self.place += 1
        if not parts:
            raise self.refused("an empty letter class")
        if negated:
            self.may_eat_carriage_return = True
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def class_item(self) -> str:
        first = self.class_letter()
        if len(first) > 1 or self.peek() != "-" or self.peek(2) == "-]":
            return first if len(first) > 1 else f"\\x{{{ord(first):x}}}"
        self.place += 1
        last = self.class_letter()
        if len(last) > 1 or last < first:
            raise self.refused("a range in a letter class that is not from one letter up to another")
        if first <= "\r" <= last:
            self.may_eat_carriage_return = True
        return f"\\x{{{ord(first):x}}}-\\x{{{ord(last):x}}}"

    def class_letter(self) -> str:
        """One letter as it is, or the inside of a shorthand (longer than one letter)."""
        letter = self.peek()
        self.place += 1
        if letter != "\\":
            if not letter or letter in "[]&^":
                raise self.refused(f"{letter or 'no end'} in a letter class")
            self.may_eat_carriage_return |= letter == "\r"
            return letter
        escaped = self.peek()
        self.place += 1
        if escaped in _SHORTHANDS:
            self.may_eat_carriage_return |= escaped == "s"
            return _SHORTHANDS[escaped]
        if escaped in _CONTROLS:
            self.may_eat_carriage_return |= escaped == "r"
            return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}[escaped]
        if not escaped or not escaped.isascii() or escaped.isalnum() or not escaped.isprintable():
            raise self.refused("\\" + escaped + " in a letter class")
        return escaped

    def repeat(self) -> str:
        letter = self.peek()
        if letter in ("*", "+", "?"):
            self.place += 1
            text = letter
        elif letter == "{":
            text = self.counted_repeat()
        else:
            return ""
        if self.peek() == "?":
            self.place += 1
        if self.peek() in ("+", "*", "?", "{"):
            raise self.refused("a possessive or doubled quantifier")
        return text

    def counted_repeat(self) -> str:
        end = self.pattern.find("}", self.place)
        low, comma, high = self.pattern[self.place + 1 : end].partition(",") if end > 0 else ("", "", "")
        numbers = [number for number in (low, high) if number]
        if not low or any(
            not (number.isascii() and number.isdigit()) or int(number) > _MAX_REPEAT for number in numbers
        ):
            raise self.refused("a quantifier in braces that is not small and plain")
        if high and int(high) < int(low):
            raise self.refused("a quantifier in braces that is not small and plain")
        self.place = end + 1
        return f"{{{int(low)}{comma}{int(high) if high else ''}}}"

    def refuse_repeat(self, after: str) -> None:
        if self.peek() in ("*", "+", "?", "{"):
            raise self.refused(f"a quantifier after {after}")
