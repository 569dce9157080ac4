"""Schemes as JSON, named by their content, so that equal schemes are one file and a file never changes."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pyarrow as pa

from skipstone.catalog.schemas import read_schema, schema_json
from skipstone.errors import InvalidInput, SkipstoneError
from skipstone.layout.scheme import ClusteringSpec, Layout, Scheme
from skipstone.predicate.literal import Conjunction, Opaque, Predicate
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql

__all__ = ["read_scheme", "scheme_document", "scheme_hash"]


def scheme_document(scheme: Scheme, schema: pa.Schema) -> bytes:
    """Write a scheme; features are canonical SQL, with the types that their columns had in `schema`.

    >>> text = scheme_document(Scheme.raw(["a"]), pa.schema([("a", pa.int64())]))
    >>> read_scheme(text) == Scheme.raw(["a"])
    True
    """
    columns = sorted({name for feature in scheme.features for name in feature.columns})
    narrowed = pa.schema([schema.field(name) for name in columns])
    document = {
        "format": 1,
        "columns": schema_json(narrowed),
        "features": [_feature_text(feature, narrowed) for feature in scheme.features],
        "layouts": [_layout_json(layout) for layout in scheme.layouts],
    }
    return json.dumps(document, sort_keys=True, ensure_ascii=False, indent=1).encode()


def scheme_hash(document: bytes) -> str:
    """Name a scheme by its content.

    >>> scheme_hash(b"{}")
    '44136fa355b3678a1146ad16f7e8649e'
    """
    return hashlib.sha256(document).hexdigest()[:32]


def read_scheme(document: bytes) -> Scheme:
    """Read back what `scheme_document` wrote.

    A feature that this version of the program does not read as the writer meant it becomes an opaque one, which
    skips nothing.
    """
    found = json.loads(document)
    if found.get("format") != 1:
        raise InvalidInput(f"a scheme of format {found.get('format')} was written by a newer version; this one reads 1")
    schema = read_schema(found["columns"])
    return Scheme(
        tuple(_read_layout(layout) for layout in found["layouts"]),
        tuple(_read_feature(text, schema) for text in found["features"]),
    )


def _feature_text(feature: Conjunction, schema: pa.Schema) -> str:
    text = sql(feature)
    if parse_filter(text, schema) != feature:
        raise InvalidInput(
            f"the feature {text} does not survive being written down; leave it out, and please report it"
        )
    return text


def _read_feature(text: str, schema: pa.Schema) -> Conjunction:
    try:
        feature = parse_filter(text, schema)
        if sql(feature) == text:
            return feature
    except SkipstoneError:
        pass
    return Conjunction((Predicate((Opaque(text, frozenset(schema.names), deterministic=False),)),))


def _layout_json(layout: Layout) -> dict[str, Any]:
    # Only where it says something: a scheme without duplicates keeps the name that it always had.
    order = {"order": list(layout.order)} if layout.order else {}
    keeps_features = {"keeps_features": True} if layout.keeps_features else {}
    return {
        **order,
        **keeps_features,
        "columns": list(layout.columns),
        "features": list(layout.features),
        "masters": sorted(layout.masters),
        "clustering": {
            "name": layout.clustering.name,
            "parameters": [list(one) for one in layout.clustering.parameters],
        },
        "duplicates": [list(one) for one in layout.duplicates],
    }


def _read_layout(found: dict[str, Any]) -> Layout:
    clustering = found["clustering"]
    return Layout(
        tuple(found["columns"]),
        tuple(found["features"]),
        frozenset(found["masters"]),
        ClusteringSpec(clustering["name"], tuple((name, value) for name, value in clustering["parameters"])),
        tuple((stored, source) for stored, source in found["duplicates"]),
        tuple(found.get("order", ())),
        found.get("keeps_features", False),
    )
