"""A user's query with the conditions that its filter implies, for engines that know nothing of us.

A published table can have a BOOLEAN column for each feature (`Layout.keeps_features`). Where a feature subsumes what a
query asks of a mention of the table, every row that the query can use is TRUE in the feature's column; so the mention
may as well be of those rows alone, and any engine with min and max per row group then skips the groups that are FALSE
throughout:

    FROM sales            ->  FROM (SELECT day, amount FROM sales
                                    WHERE _skipstone_feature_1f... IS DISTINCT FROM FALSE) AS sales

`IS DISTINCT FROM FALSE`, and not the column by itself, because files that were added without the column are NULL there:
nothing is known of their rows, and they must be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from skipstone.catalog.values import Snapshot
from skipstone.layout.scheme import feature_column
from skipstone.predicate.dialects import dialect_named
from skipstone.predicate.implication import implies
from skipstone.predicate.literal import Conjunction
from skipstone.predicate.printing import sql
from skipstone.workload.places import TablePlace
from skipstone.workload.query import Request

__all__ = ["MentionRewritten", "Rewritten", "rewritten", "usable_features"]


@dataclass(frozen=True, slots=True)
class MentionRewritten:
    """What was added to one mention of a table: the features by their filters, or the reasons why there are none."""

    table: str
    alias: str
    features: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A query that gives the same answer and lets other engines skip, and what was done to each mention of a table."""

    sql: str
    mentions: tuple[MentionRewritten, ...]


def usable_features(snapshot: Snapshot, published: frozenset[str]) -> tuple[Conjunction, ...]:
    """The features that chunks keep as columns and that the published table shows."""
    found: dict[Conjunction, None] = {}
    for blocks in snapshot.block_sets:
        scheme = snapshot.scheme(blocks.scheme)
        for layout in scheme.layouts:
            for name, number in scheme.feature_columns(layout):
                if name in published:
                    found.setdefault(scheme.features[number])
    return tuple(found)


def rewritten(
    text: str,
    mentions: Sequence[tuple[TablePlace, Request, Sequence[Conjunction], Sequence[str]]],
    *,
    dialect: str,
) -> Rewritten:
    """Replace each mention of a table by the rows that the features leave, where some subsume what is asked of it.

    Mentions come in the order of the text, each with its request, the usable features, and all columns of its table.
    """
    pieces: list[str] = []
    found: list[MentionRewritten] = []
    done = 0
    for place, request, features, columns in mentions:
        subsuming = [feature for feature in features if implies(request.filter, feature)]
        found.append(_told(place, request, features, subsuming))
        if subsuming:
            wanted = [name for name in columns if name in request.columns] or list(columns[:1])
            pieces += [text[done : place.start], _narrowed(text, place, wanted, subsuming, dialect)]
            done = place.end
    return Rewritten("".join([*pieces, text[done:]]), tuple(found))


def _told(
    place: TablePlace, request: Request, features: Sequence[Conjunction], subsuming: Sequence[Conjunction]
) -> MentionRewritten:
    reasons = list(request.unknown)
    if not features:
        reasons.append("the published table has no columns of features; optimize with them kept, and export")
    elif not subsuming:
        reasons.append("no feature that is kept as a column subsumes what is asked of this mention")
    return MentionRewritten(place.table, place.alias, tuple(sql(feature) for feature in subsuming), tuple(reasons))


def _narrowed(
    text: str, place: TablePlace, columns: Sequence[str], features: Sequence[Conjunction], dialect: str
) -> str:
    listed = ", ".join(_quoted(name, dialect) for name in columns)
    conditions = " AND ".join(f"{_quoted(feature_column(one), dialect)} IS DISTINCT FROM FALSE" for one in features)
    alias = f" AS {_quoted(place.alias, dialect)}" if place.needs_alias else ""
    return f"(SELECT {listed} FROM {text[place.start : place.end]} WHERE {conditions}){alias}"


def _quoted(name: str, dialect: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect=dialect_named(dialect))
