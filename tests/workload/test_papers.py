"""The worked examples of the papers, from SQL text to vectors.

Sun, "Skipping-oriented Data Design for Large-Scale Analytics", PhD thesis, UC Berkeley, 2017 (the dissertation), and
"Fragment Skipper", the reproduction of its first part. The augmented workload of Example 1 and the features of figure
3.1(b) are in `test_mining.py`, the clustering of figure 3.1 in `tests/layout/clustering`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from skipstone.layout.vectors import unions
from skipstone.predicate.evaluation import evaluate
from skipstone.predicate.implication import implies
from skipstone.predicate.literal import Conjunction
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql
from skipstone.workload.mining import is_minable, mine, mine_features
from skipstone.workload.query import Query
from skipstone.workload.reading import Workload
from skipstone.workload.requests import requests
from skipstone.workload.subsumption import subsumption

EVENTS = pa.schema(
    [
        ("tid", pa.string()),
        ("time", pa.string()),
        ("user", pa.int32()),
        ("event", pa.string()),
        ("product", pa.string()),
        ("publisher", pa.string()),
        ("revenue", pa.float64()),
    ]
)
FIGURE_3_1_A = pa.Table.from_pylist(
    [
        dict(zip(EVENTS.names, row, strict=True))
        for row in (
            ("t1", "08:01:01", 102, "click", "jeans", "groupon", 0.0),
            ("t2", "08:01:01", 103, "click", "shirts", "google", -0.5),
            ("t3", "08:01:01", 104, "click", "shirts", "groupon", 0.0),
            ("t4", "08:01:02", 105, "buy", "jeans", "google", 12.0),
            ("t5", "08:01:03", 106, "click", "jeans", "google", -0.5),
            ("t6", "08:01:04", 107, "buy", "shoes", "shoedeal", 30.0),
        )
    ],
    schema=EVENTS,
)
F1, F2, F3 = "event = 'buy'", "product = 'jeans'", "publisher = 'google' AND revenue < 0"
P1, P2, P3 = ("t1", "t4"), ("t2", "t5"), ("t3", "t6")


def features() -> list[Conjunction]:
    """The three features of figure 3.1(b), mined from the text of queries that ask for them so often."""
    statements = [
        f"SELECT * FROM events WHERE {text}" for text, times in ((F1, 50), (F2, 20), (F3, 10)) for _ in range(times)
    ]
    work = Workload.of(statements, {"events": EVENTS})
    return [feature.filter for feature in mine(work.queries("events"))]


def vectors() -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    columns = [
        evaluate(feature, FIGURE_3_1_A, time_zone="UTC").to_numpy(zero_copy_only=False) for feature in features()
    ]
    return np.array(columns, dtype=np.bool_).T


def block_vectors() -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    names = FIGURE_3_1_A["tid"].to_pylist()
    block_of = {name: number for number, block in enumerate((P1, P2, P3)) for name in block}
    return unions(vectors(), np.array([block_of[name] for name in names]), 3)


def skipped(filter_: str) -> set[int]:
    """The blocks, from 1, that a query skips: those in which a feature that subsumes it is absent."""
    subsuming = subsumption(features(), [Query((), parse_filter(filter_, EVENTS))])[:, 0]
    return {number for number, vector in enumerate(block_vectors(), start=1) if (subsuming & ~vector).any()}


class TestFigure31:
    def test_b_the_features(self) -> None:
        assert [sql(feature) for feature in features()] == [
            "event = 'buy'",
            "product = 'jeans'",
            "publisher = 'google' AND revenue < 0.0",
        ]

    def test_c_the_vectors(self) -> None:
        assert vectors().astype(int).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 0]]

    def test_d_the_union_vectors(self) -> None:
        assert block_vectors().astype(int).tolist() == [[1, 1, 0], [0, 1, 1], [1, 0, 0]]

    def test_a_query_on_f3_skips_p1_and_p3(self) -> None:
        """Section 3.1.2."""
        assert skipped(F3) == {1, 3}

    def test_a_query_that_two_features_subsume_skips_for_both(self) -> None:
        """Section 3.1.2: event = 'buy' and product = 'jeans' skips P2 for F1 and P3 for F2."""
        assert skipped("event = 'buy' AND product = 'jeans'") == {2, 3}

    def test_a_stricter_filter_skips_as_much(self) -> None:
        assert skipped("publisher = 'google' AND revenue < -0.2 AND user = 106") == {1, 3}

    def test_a_query_that_no_feature_subsumes_skips_nothing(self) -> None:
        assert skipped("revenue < 0") == set()


SALES = pa.schema(
    [("product", pa.string()), ("publisher", pa.string()), ("revenue", pa.int64()), ("price", pa.int64())]
)


class TestSubsumption:
    @pytest.mark.parametrize(
        ("stricter", "general"),
        [
            ("price > 5", "price > 3"),  # section 1.3
            ("product = 'shoes'", "product IN ('shoes', 'shirts')"),  # section 3.3.1
            ("revenue > 100", "revenue > 0"),  # section 3.1.3
            ("revenue > 32", "revenue > 21"),  # section 3.3.3
            ("publisher = 'google' AND revenue < 0", "revenue < 0"),  # section 3.3.3
        ],
    )
    def test_the_dissertations_examples(self, stricter: str, general: str) -> None:
        p, q = parse_filter(stricter, SALES), parse_filter(general, SALES)
        assert implies(p, q)
        assert not implies(q, p)

    @pytest.mark.parametrize(
        ("stricter", "general"), [("age >= 50", "age >= 18"), ("name LIKE 'John' AND age >= 50", "age >= 50")]
    )
    def test_fragment_skippers_examples(self, stricter: str, general: str) -> None:
        """Section III."""
        people = pa.schema([("name", pa.string()), ("age", pa.int32())])
        assert implies(parse_filter(stricter, people), parse_filter(general, people))

    def test_the_number_of_queries_that_a_set_subsumes_is_not_how_often_it_occurs(self) -> None:
        """Section 3.3.2: revenue > 21 and product in (shoes, shirts) occur once each, and subsume two and three.

        The text says two of the latter; that is before product = 'shirts' of the third query is counted, which the
        augmented workload below it does.
        """
        texts = (
            "product = 'shoes'",
            "product IN ('shoes', 'shirts') AND revenue > 32",
            "product = 'shirts' AND revenue > 21",
        )
        asked = [Query((), parse_filter(text, SALES)) for text in texts]
        sets = [parse_filter(text, SALES) for text in ("revenue > 21", "product IN ('shoes', 'shirts')")]
        assert subsumption(sets, asked).astype(int).tolist() == [[0, 1, 1], [1, 1, 1]]


def test_predicates_that_bounds_of_columns_cannot_serve_are_features() -> None:
    """Section 1.4: string matching, comparison of columns, and functions that nobody has heard of."""
    schema = pa.schema(
        [
            ("message", pa.string()),
            ("page_viewer_id", pa.int64()),
            ("page_creator_id", pa.int64()),
            ("jstr", pa.string()),
        ]
    )
    for text in (
        "message LIKE '%iphone%'",
        "page_viewer_id <> page_creator_id",
        "get_json_object(jstr, 'conn_type') = 'wifi'",
        "my_function(message)",
    ):
        (predicate,) = parse_filter(text, schema)
        assert is_minable(predicate), text


TPCH = {
    "customer": pa.schema([("c_custkey", pa.int64()), ("c_mktsegment", pa.string())]),
    "orders": pa.schema([("o_orderkey", pa.int64()), ("o_custkey", pa.int64()), ("o_orderdate", pa.date32())]),
    "lineitem": pa.schema(
        [
            ("l_orderkey", pa.int64()),
            ("l_shipdate", pa.date32()),
            ("l_quantity", pa.decimal128(15, 2)),
            ("l_discount", pa.decimal128(15, 2)),
            ("l_shipmode", pa.string()),
        ]
    ),
}


class TestFragmentSkipper:
    def test_of_a_join_only_the_predicate_on_line_items_is_lineitems(self) -> None:
        """Section IV.A."""
        statement = requests(
            """SELECT l_orderkey FROM customer, orders, lineitem
               WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
                 AND o_orderdate < date '1995-03-01' AND l_shipdate > date '1995-03-01'""",
            TPCH,
        )
        found = {request.table: sql(request.filter) for request in statement.requests}
        assert found["lineitem"] == "l_shipdate > DATE '1995-03-01'"
        assert found["orders"] == "o_orderdate < DATE '1995-03-01'"

    def test_a_predicate_that_another_of_the_set_implies_is_redundant(self) -> None:
        """Section IV.B.3: {l_quantity > 20, l_quantity > 30} is {l_quantity > 30}."""
        queries = [Query((), parse_filter(f"l_quantity > {least}", TPCH["lineitem"])) for least in (20, 30, 30)]
        found = [sql(feature.filter) for feature in mine(queries, min_support=1)]
        assert found == ["l_quantity > 30.00", "l_quantity > 20.00"]

    @pytest.mark.parametrize("method", ["paper", "closed"])
    def test_a_more_general_set_counts_for_what_it_subsumes_beyond_the_more_special(self, method: str) -> None:
        """Section IV.B.3: f1 = {l_quantity > 20, l_discount > 0.2} and f2, which has l_shipmode = 'AIR' as well."""
        general, special = (
            "l_quantity > 20 AND l_discount > 0.2",
            "l_quantity > 20 AND l_discount > 0.2 AND l_shipmode = 'AIR'",
        )
        queries = [
            Query((), parse_filter(text, TPCH["lineitem"])) for text in (general, general, special, special, special)
        ]
        mined = mine_features(queries, min_support=2, method=method).features
        assert [(one.feature.weight, one.additional) for one in mined] == [(3.0, 3.0), (5.0, 2.0)]
