"""Designs as files of a table, so that what is appended later can be laid out by the design that is in force.

A scheme says which columns and features belong together; how rows are clustered is learnt from queries as well, for
each chunk anew. So the queries stay with the table that was laid out for them. A file is named by its design and never
changes; it is small, and never deleted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from skipstone.catalog.location import Location
from skipstone.catalog.schemas import read_schema, schema_json
from skipstone.catalog.schemes import read_scheme, scheme_document
from skipstone.catalog.values import Commit, Note, Snapshot
from skipstone.errors import InvalidInput, SkipstoneError
from skipstone.predicate.literal import ALWAYS, Conjunction
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql
from skipstone.relayout.rewriting import Design
from skipstone.relayout.tracking import tracked_expressions
from skipstone.workload.query import Query

__all__ = ["DESIGN", "design_document", "design_in_force", "keep_design", "kept_design", "read_design"]

DESIGN = "design"
"""The note of a chunk, and of a commit, that names the design they were laid out by."""

_DESIGNS = "_skipstone/designs"


def keep_design(design: Design, name: str, schema: pa.Schema, table: Location) -> None:
    """Store a design with its table; a chunk may name it from then on."""
    table.write(_path(name), design_document(design, schema))


def kept_design(name: str, schema: pa.Schema, table: Location) -> Design:
    """Read a design that is stored with a table, for chunks of this schema."""
    try:
        document = table.read(_path(name))
    except FileNotFoundError as error:
        raise InvalidInput(
            f"the design {name} that chunks of this table were laid out by was not kept with it. "
            "Hint: append without a layout, and optimize with the workload once more"
        ) from error
    return read_design(document, schema)


def design_in_force(snapshot: Snapshot, history: tuple[Commit, ...]) -> str | None:
    """Name the design of the latest commit of which a chunk is still there; else the one with the most rows.

    None where no chunk is laid out by a design. `history` has the latest commit first, and may be cut short.
    """
    rows: Counter[str] = Counter()
    for chunk in snapshot.chunks:
        facts = snapshot.facts(chunk)
        name = _named(facts.notes)
        if name is not None:
            rows[name] += facts.rows
    latest = next((name for commit in history if (name := _named(commit.metrics)) in rows), None)
    return latest or min(rows, key=lambda name: (-rows[name], name), default=None)


def design_document(design: Design, schema: pa.Schema) -> bytes:
    """Write a design: its scheme, its queries as SQL, and its settings.

    What a filter asks for that does not survive being written is left out of it. Designs for chunks of other schemes
    are no part of it, nor is the profile by which columns were ordered: their order is in the scheme.
    """
    columns = sorted({name for query in design.queries for name in query.filter.columns})
    document = {
        "format": 1,
        "scheme": json.loads(scheme_document(design.scheme, schema)),
        "columns": schema_json(pa.schema([schema.field(name) for name in columns])),
        "queries": [
            {
                "columns": list(query.columns),
                "filter": _filter_text(query.filter, schema),
                "weight": query.weight,
                "template": query.template,
            }
            for query in design.queries
        ],
        "block_rows": design.block_rows,
        "sample_rows": design.sample_rows,
        "seed": design.seed,
    }
    return json.dumps(document, ensure_ascii=False).encode()


def read_design(document: bytes, schema: pa.Schema) -> Design:
    """Read back what `design_document` wrote; `schema` says which columns have bounds beside those of the queries.

    >>> from skipstone.layout.scheme import Scheme
    >>> schema = pa.schema([("a", pa.int64())])
    >>> query = Query(("a",), parse_filter("a < 3", schema), 2.0)
    >>> design = Design(Scheme.raw(["a"]), (query,), 100, tracked_expressions(schema, [query.filter]))
    >>> read_design(design_document(design, schema), schema) == design
    True
    """
    found = json.loads(document)
    if found.get("format") != 1:
        raise InvalidInput(f"a design of format {found.get('format')} was written by a newer version; this one reads 1")
    then = read_schema(found["columns"])
    queries = tuple(_read_query(one, then) for one in found["queries"])
    return Design(
        read_scheme(json.dumps(found["scheme"]).encode()),
        queries,
        found["block_rows"],
        tracked_expressions(schema, [query.filter for query in queries]),
        found["sample_rows"],
        found["seed"],
    )


def _path(name: str) -> str:
    return f"{_DESIGNS}/{name}.json"


def _named(notes: tuple[Note, ...]) -> str | None:
    name = dict(notes).get(DESIGN)
    return name if isinstance(name, str) else None


def _filter_text(condition: Conjunction, schema: pa.Schema) -> str | None:
    """The filter as SQL, of those of its predicates that are read back as they were; None where there are none."""
    kept = tuple(one for one in condition if _survives(Conjunction((one,)), schema))
    return sql(Conjunction(kept)) if kept else None


def _survives(condition: Conjunction, schema: pa.Schema) -> bool:
    try:
        return parse_filter(sql(condition), schema) == condition
    except SkipstoneError:
        return False


def _read_query(found: Mapping[str, Any], schema: pa.Schema) -> Query:
    text = found["filter"]
    condition = ALWAYS if text is None else parse_filter(text, schema)
    return Query(tuple(found["columns"]), condition, found["weight"], found["template"])
