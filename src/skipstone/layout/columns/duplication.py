"""All searches for duplicates, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from skipstone.errors import InvalidInput, listed, near_miss
from skipstone.layout.columns.duplicates import FoundDuplicates
from skipstone.layout.columns.insertion import insertion
from skipstone.layout.columns.problem import ColumnProblem
from skipstone.layout.columns.refill import refill
from skipstone.layout.columns.search import Effort
from skipstone.layout.columns.seek import SeekProfile


class DuplicateAlgorithm(Protocol):
    """Adds duplicates to an order of the columns, of at most `headroom` times the bytes of the table."""

    def __call__(
        self,
        problem: ColumnProblem,
        order: Sequence[int],
        headroom: float,
        profile: SeekProfile,
        effort: Effort,
        seed: int,
    ) -> FoundDuplicates:
        """Search for as long as `effort` says, with randomness from `seed` alone."""
        ...


DUPLICATIONS: dict[str, DuplicateAlgorithm] = {"refill": refill, "insertion": insertion}
"""Ours first; it is the one to use."""

BEST_DUPLICATION = "refill"


def duplicate_algorithm(name: str) -> DuplicateAlgorithm:
    """Find a search for duplicates by name.

    >>> duplicate_algorithm("reffil")
    Traceback (most recent call last):
    skipstone.errors.InvalidInput: no algorithm "reffil" for duplicates. Did you mean "refill"? There are: refill, ...
    """
    if name not in DUPLICATIONS:
        nearest = near_miss(name, DUPLICATIONS)
        hint = f' Did you mean "{nearest}"?' if nearest else ""
        raise InvalidInput(f'no algorithm "{name}" for duplicates.{hint} There are: {listed(list(DUPLICATIONS))}')
    return DUPLICATIONS[name]
