"""Schemas and schemes survive being written as JSON, to the last detail; names are those of their content."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given

from skipstone.catalog.schemas import read_schema, read_type, schema_json, type_json
from skipstone.catalog.schemes import read_scheme, scheme_document, scheme_hash
from skipstone.errors import InvalidInput
from skipstone.layout.scheme import ClusteringSpec, Layout, Scheme
from skipstone.predicate.literal import Opaque
from skipstone.predicate.parsing import parse_filter
from tests.store.strategies import kinds, tables

SCHEMA = pa.schema([("a", pa.int64()), ("B c", pa.decimal128(9, 2)), ("t", pa.timestamp("us", "UTC"))])


@given(kinds(depth=3))
def test_types_of_every_kind_are_restored_exactly(kind: pa.DataType) -> None:
    again = read_type(json.loads(json.dumps(type_json(kind))))
    assert again.equals(kind, check_metadata=True)


@given(tables(max_rows=0))
def test_schemas_are_restored_exactly(table: pa.Table) -> None:
    again = read_schema(json.loads(json.dumps(schema_json(table.schema))))
    assert again.equals(table.schema, check_metadata=True)
    assert [field.nullable for field in again] == [field.nullable for field in table.schema]


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("ns", "America/Argentina/Buenos_Aires"),
        pa.timestamp("s", "+05:30"),
        pa.decimal32(9, 9),
        pa.decimal64(18, -2),
        pa.decimal256(76, 10),
        pa.map_(pa.string(), pa.int64(), keys_sorted=True),
        pa.dictionary(pa.uint8(), pa.string(), ordered=True),
        pa.string_view(),
        pa.large_list(pa.field("x", pa.date64(), nullable=False)),
    ],
)
def test_rare_types_are_restored_exactly(kind: pa.DataType) -> None:
    assert read_type(type_json(kind)).equals(kind)


@pytest.mark.parametrize("document", ["int65", {"set": []}, 7, None, {"struct": [{"name": "a"}]}])
def test_what_is_no_type_is_said_to_be_none(document: object) -> None:
    with pytest.raises(InvalidInput):
        read_type(document)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="a schema is a list of fields"):
        read_schema({"a": 1})


def scheme() -> Scheme:
    texts = ("a > 5", "`B c` IN (1.25, 3) AND t >= TIMESTAMP '2024-01-01 00:00:00'", "a IS NULL OR a <=> 3")
    features = tuple(parse_filter(text, SCHEMA) for text in texts)
    spec = ClusteringSpec("qdtree", (("blocks", 3), ("share", 0.5), ("soft", True), ("why", "x")))
    layouts = (
        Layout(
            ("t", "a"), (0, 2), frozenset("t"), spec, (("_skipstone_copy1_a", "a"),), ("_skipstone_copy1_a", "t", "a")
        ),
        Layout(("a", "B c"), (1,), frozenset(["a", "B c"])),
    )
    return Scheme(layouts, features).validate(SCHEMA.names)


def test_a_scheme_is_restored_exactly() -> None:
    assert read_scheme(scheme_document(scheme(), SCHEMA)) == scheme()


def test_equal_schemes_have_equal_names_and_others_do_not() -> None:
    document = scheme_document(scheme(), SCHEMA)
    assert scheme_hash(document) == scheme_hash(scheme_document(scheme(), SCHEMA.append(pa.field("new", pa.int8()))))
    assert scheme_hash(document) != scheme_hash(scheme_document(Scheme.raw(["a"]), SCHEMA))


def test_a_feature_that_cannot_be_read_any_more_skips_nothing() -> None:
    found = json.loads(scheme_document(scheme(), SCHEMA))
    found["features"] = ["a > ) 5", "5 < a", "no_such_column = 1"]
    for feature in read_scheme(json.dumps(found).encode()).features:
        (literal,) = feature.predicates[0].literals
        assert isinstance(literal, Opaque)
        assert not literal.deterministic


def test_a_scheme_of_a_newer_format_is_refused() -> None:
    found = json.loads(scheme_document(scheme(), SCHEMA))
    with pytest.raises(InvalidInput, match="format 2 was written by a newer version"):
        read_scheme(json.dumps({**found, "format": 2}).encode())
