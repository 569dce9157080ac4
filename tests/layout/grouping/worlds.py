"""Small worlds of bits for column grouping: a table is its rows' feature vectors, a query its columns and features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from skipstone.layout.grouping.problem import DesignProblem
from skipstone.layout.vectors import distinct
from skipstone.predicate.parsing import parse_filter
from skipstone.workload.query import Query


def small_world(
    rows: Sequence[str],
    queries: Sequence[tuple[str, str]],
    *,
    columns: str,
    block_rows: int = 1,
    weights: Sequence[float] | None = None,
    stands_for: int = 1,
) -> DesignProblem:
    """A problem whose rows are written as bits ("101" satisfies the first and third feature).

    A query is the letters of its columns and the bits of the features that subsume it.
    """
    width = len(rows[0])
    bits = np.array([[letter == "1" for letter in row] for row in rows], dtype=bool).reshape(len(rows), width)
    subsumed = np.array([[letter == "1" for letter in query[1]] for query in queries], dtype=bool)
    accesses = np.array([[column in query[0] for column in columns] for query in queries], dtype=bool)
    kinds, kind_of = distinct(subsumed.reshape(len(queries), width))
    vectors, _ = distinct(bits)
    schema = pa.schema([(column, pa.int64()) for column in columns])
    filters = [parse_filter(f"{columns[0]} = {number}", schema) for number in range(max(width, len(queries)))]
    return DesignProblem(
        columns=tuple(columns),
        features=tuple(filters[:width]),
        queries=tuple(
            Query(tuple(sorted(query[0])), filter_) for query, filter_ in zip(queries, filters, strict=False)
        ),
        accesses=accesses,
        kinds=kinds.bits,
        kind_of=kind_of,
        weights=np.ones(len(queries)) if weights is None else np.array(weights, dtype=np.float64),
        vectors=vectors,
        sample=pa.table({column: pa.array([0] * len(rows), pa.int64()) for column in columns}),
        rows=len(rows) * stands_for,
        block_rows=block_rows,
        cell_bytes=np.arange(1, len(columns) + 1, dtype=np.float64),
    )


@st.composite
def problems(draw: st.DrawFn, *, most_columns: int = 6) -> DesignProblem:
    """Any small problem: every query reads a column at least, and may be subsumed by no feature at all."""
    features = draw(st.integers(0, 5))
    columns = "abcdefgh"[: draw(st.integers(1, most_columns))]
    bits = st.text("01", min_size=features, max_size=features)
    rows = draw(st.lists(bits, min_size=1, max_size=24))
    reads = st.sets(st.sampled_from(columns), min_size=1).map(lambda some: "".join(sorted(some)))
    queries = draw(st.lists(st.tuples(reads, bits), min_size=1, max_size=8))
    weights = draw(st.lists(st.integers(1, 5), min_size=len(queries), max_size=len(queries)))
    return small_world(
        rows, queries, columns=columns, block_rows=draw(st.integers(1, 8)), weights=[float(w) for w in weights]
    )
