"""What a workload is made of, once its SQL has been understood.

A statement reads from tables; for each reference to a table it makes one request. Equal requests are one query with a
weight. A feature is a conjunction worth laying data out for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from skipstone.predicate.literal import ALWAYS, Conjunction

__all__ = ["Feature", "Query", "Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """What one reference to a table asks for: the columns it reads and the filter that holds for all rows it uses.

    `unknown` says in one sentence each what of the statement's filter could not be used, so that `explain` can tell why
    something was read in full. An unused part only makes the request read more. `mention` numbers the places where the
    statement names tables, from the left, and says which of them this one is; it is no part of what is asked for.
    """

    table: str
    columns: tuple[str, ...]
    filter: Conjunction = ALWAYS
    alias: str = ""
    unknown: tuple[str, ...] = ()
    mention: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Query:
    """Equal requests to one table: the columns read (sorted), the filter, the weight, and a label for reports."""

    columns: tuple[str, ...]
    filter: Conjunction
    weight: float = 1.0
    template: str = ""


@dataclass(frozen=True, slots=True)
class Feature:
    """A conjunction worth laying data out for (papers: F_j with weight w_j and rel-cols).

    `weight` is the weight of the queries that the feature subsumes; `columns` are the columns, sorted, that those
    queries read: the ones whose cells the feature can save.
    """

    filter: Conjunction
    weight: float = 1.0
    columns: tuple[str, ...] = ()
