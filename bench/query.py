"""A query of a benchmark: its SQL, and which template made it with which constants."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Query:
    """One SELECT statement of a workload."""

    template: str
    sql: str
    parameters: tuple[tuple[str, str], ...] = ()
