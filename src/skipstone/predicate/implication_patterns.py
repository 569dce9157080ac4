"""Text patterns: which strings they match, and when every string that one matches is matched by another.

All kinds (prefix, suffix, contains, LIKE, ILIKE) are read into one list of tokens: a letter, any one letter, any run of
letters. Regular expressions are not looked into.
"""

from __future__ import annotations

import enum
import functools
import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from skipstone.predicate.literal import MatchKind

__all__ = ["ANY", "RUN", "Pattern", "Token", "pattern_of"]


class _Wild(enum.Enum):
    ANY = "_"
    RUN = "%"


ANY: Final = _Wild.ANY
"""Exactly one letter."""
RUN: Final = _Wild.RUN
"""Any number of letters, none included."""

Token: TypeAlias = str | _Wild
"""A letter, or a wildcard."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern over whole texts. With `fold` the text is put in lower case first, and the tokens are in lower case."""

    tokens: tuple[Token, ...]
    fold: bool = False

    @property
    def head(self) -> str:
        """The letters that every matching text begins with."""
        letters: list[str] = []
        for token in self.tokens:
            if not isinstance(token, str):
                break
            letters.append(token)
        return "" if self.fold else "".join(letters)

    @property
    def is_text(self) -> bool:
        """Whether exactly one text matches: there is no wildcard in it."""
        return not self.fold and all(isinstance(token, str) for token in self.tokens)

    @property
    def is_prefix(self) -> bool:
        """Whether the pattern is letters and then anything: a range of texts."""
        return (
            not self.fold and self.tokens[-1:] == (RUN,) and all(isinstance(token, str) for token in self.tokens[:-1])
        )

    def matches(self, text: str) -> bool | None:
        """Whether a text matches; None where letter case is not plain enough to tell (outside of ASCII).

        >>> pattern_of(MatchKind.LIKE, "a%c_").matches("abbcd")
        True
        """
        if self.fold:
            if not text.isascii() or not all(isinstance(token, _Wild) or token.isascii() for token in self.tokens):
                return None
            text = text.lower()
        return _expression(self.tokens).fullmatch(text) is not None

    def within(self, other: Pattern) -> bool:
        """Whether every text that this pattern matches is matched by `other` (False also where that is not found).

        The tokens of this pattern are read as if they were a text in which a run is a letter that only a run of
        `other` can swallow: x LIKE 'ab%c' is x LIKE 'a%c', and x LIKE '%bc_d%' is x LIKE '%c_d%'.

        >>> pattern_of(MatchKind.LIKE, "ab%c").within(pattern_of(MatchKind.LIKE, "a%c"))
        True
        >>> pattern_of(MatchKind.PREFIX, "abc").within(pattern_of(MatchKind.CONTAINS, "bc"))
        True
        >>> pattern_of(MatchKind.LIKE, "a%").within(pattern_of(MatchKind.LIKE, "a_%"))
        False
        """
        if self.fold and not other.fold:
            return False
        return _covers(other.tokens, self.tokens, folds=other.fold and not self.fold)


@functools.lru_cache(maxsize=65536)
def pattern_of(kind: MatchKind, text: str) -> Pattern | None:
    """Read a pattern; None for regular expressions and for escapes that SQL does not define.

    >>> pattern_of(MatchKind.LIKE, r"50\\%_").tokens == ("5", "0", "%", ANY)
    True
    """
    match kind:
        case MatchKind.PREFIX:
            return Pattern((*text, RUN))
        case MatchKind.SUFFIX:
            return Pattern((RUN, *text))
        case MatchKind.CONTAINS:
            return Pattern(_canonical([RUN, *text, RUN]))
        case MatchKind.LIKE | MatchKind.ILIKE:
            tokens = _like_tokens(text)
            if tokens is None:
                return None
            if kind is MatchKind.LIKE:
                return Pattern(_canonical(tokens))
            # Lower case of one letter may be two letters outside of ASCII; then the folded pattern would be a guess.
            if not text.isascii():
                return None
            return Pattern(
                _canonical([token.lower() if isinstance(token, str) else token for token in tokens]), fold=True
            )
        case MatchKind.RLIKE:
            return None


def _like_tokens(text: str) -> list[Token] | None:
    tokens: list[Token] = []
    letters = iter(text)
    for letter in letters:
        if letter == "\\":
            escaped = next(letters, "")
            if escaped not in ("%", "_", "\\"):
                return None
            tokens.append(escaped)
        else:
            tokens.append({"%": RUN, "_": ANY}.get(letter, letter) if letter in "%_" else letter)
    return tokens


def _canonical(tokens: list[Token]) -> tuple[Token, ...]:
    """Put the wildcards between two letters in one order: the single ones first, then at most one run."""
    ordered: list[Token] = []
    run = False
    for token in tokens:
        if token is RUN:
            run = True
        elif token is ANY:
            ordered.append(token)
        else:
            if run:
                ordered.append(RUN)
                run = False
            ordered.append(token)
    return (*ordered, RUN) if run else tuple(ordered)


@functools.lru_cache(maxsize=4096)
def _expression(tokens: tuple[Token, ...]) -> re.Pattern[str]:
    parts = (("." if token is ANY else ".*") if isinstance(token, _Wild) else re.escape(token) for token in tokens)
    return re.compile("".join(parts), re.DOTALL)


def _covers(general: tuple[Token, ...], special: tuple[Token, ...], *, folds: bool) -> bool:
    """Simulate `general` over the tokens of `special`; `places` are the positions in `general` that may come next."""
    places = _with_runs({0}, general)
    for token in special:
        following = set()
        for place in places:
            if place == len(general):
                continue
            wanted = general[place]
            if wanted is RUN or (token is not RUN and _takes(wanted, token, folds=folds)):
                following.add(place if wanted is RUN else place + 1)
        places = _with_runs(following, general)
        if not places:
            return False
    return len(general) in places


def _takes(wanted: Token, token: Token, *, folds: bool) -> bool:
    if not folds:
        return wanted is ANY or wanted == token
    # One letter outside of ASCII may become two in lower case, and then a single wildcard does not take it.
    if not isinstance(token, str) or not token.isascii():
        return False
    return wanted is ANY or wanted == token.lower()


def _with_runs(places: set[int], general: tuple[Token, ...]) -> set[int]:
    """Add the places after runs, which may also stand for nothing."""
    reached = set(places)
    for place in places:
        step = place
        while step < len(general) and general[step] is RUN:
            step += 1
            reached.add(step)
    return reached
