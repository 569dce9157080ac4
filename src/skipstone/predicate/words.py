"""Long lists of names, written as running text so that they stay readable."""

from __future__ import annotations

__all__ = ["words"]


def words(text: str) -> frozenset[str]:
    """The set of words in a text.

    >>> sorted(words("now rand uuid"))
    ['now', 'rand', 'uuid']
    """
    return frozenset(text.split())
