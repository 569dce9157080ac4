"""A mention of a table in a text and the request that describes it are known by one number."""

from __future__ import annotations

import pyarrow as pa
import pytest

from skipstone.predicate.printing import sql
from skipstone.workload.places import table_places
from skipstone.workload.requests import requests

TABLES = {"t": pa.schema([("a", pa.int64())]), "u": pa.schema([("a", pa.int64())])}


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("SELECT a FROM t WHERE a = 1 UNION ALL SELECT a FROM t WHERE a = 2", ["a = 1", "a = 2"]),
        (" UNION ALL ".join(f"SELECT a FROM t WHERE a = {n}" for n in range(5)), [f"a = {n}" for n in range(5)]),
        ("SELECT x.a FROM (SELECT a FROM t WHERE a = 1) x JOIN t ON x.a < t.a WHERE t.a = 7", ["a = 1", "a = 7"]),
        ("WITH c AS (SELECT a FROM t WHERE a = 1) SELECT 1 FROM t, c WHERE t.a = 2", ["a = 1", "a = 2"]),
        ("SELECT 1 FROM t WHERE a = 1 AND EXISTS (SELECT 1 FROM u WHERE a = 2)", ["a = 1", "a = 2"]),
        ("INSERT INTO v SELECT u.a FROM u WHERE a = 1", ["a = 1"]),
    ],
)
def test_the_request_for_a_mention_is_the_one_that_stands_there(text: str, filters: list[str]) -> None:
    places = table_places(text, TABLES)
    assert places is not None
    by_mention = {request.mention: request for request in requests(text, TABLES).requests}
    assert [sql(by_mention[place.mention].filter) for place in places] == filters
