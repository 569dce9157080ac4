"""All searches for a column order, by name."""

from __future__ import annotations

from typing import Protocol

from skipstone.errors import InvalidInput, listed, near_miss
from skipstone.layout.columns.autopart import autopart_c
from skipstone.layout.columns.genetic import genetic
from skipstone.layout.columns.problem import ColumnProblem
from skipstone.layout.columns.scoa import scoa, scoa_shipped
from skipstone.layout.columns.search import Effort, FoundOrder
from skipstone.layout.columns.seek import SeekProfile
from skipstone.layout.columns.simple_orders import default, naive
from skipstone.layout.columns.sweep import sweep


class OrderAlgorithm(Protocol):
    """Finds an order of the columns of a problem; never one that costs more than the table's own, but `naive` may."""

    def __call__(self, problem: ColumnProblem, profile: SeekProfile, effort: Effort, seed: int) -> FoundOrder:
        """Search for as long as `effort` says, with randomness from `seed` alone."""
        ...


ORDERS: dict[str, OrderAlgorithm] = {
    "sweep": sweep,
    "scoa": scoa,
    "scoa-shipped": scoa_shipped,
    "autopart-c": autopart_c,
    "genetic": genetic,
    "naive": naive,
    "default": default,
}
"""Ours first; it is the one to use."""

BEST_ORDER = "sweep"


def order_algorithm(name: str) -> OrderAlgorithm:
    """Find an algorithm by name.

    >>> order_algorithm("sweeep")
    Traceback (most recent call last):
    skipstone.errors.InvalidInput: no algorithm "sweeep". Did you mean "sweep"? There are: sweep, scoa, ...
    """
    if name not in ORDERS:
        nearest = near_miss(name, ORDERS)
        hint = f' Did you mean "{nearest}"?' if nearest else ""
        raise InvalidInput(f'no algorithm "{name}".{hint} There are: {listed(list(ORDERS))}')
    return ORDERS[name]
