"""From SQL text to features: how fast, in how much memory, and whether they serve the queries they came from."""

from __future__ import annotations

import gc
import itertools
import random
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from bench.experiment import Experiment
from bench.experiments.reading import COLD, MANY, schemas
from bench.query import Query as Asked
from bench.report import Claim, Report, table_of
from bench.tpch.data import DENORM
from bench.tpch.queries import queries
from bench.tpch.templates import GSOPR_TEMPLATES, SOP_TEMPLATES
from skipstone.predicate.literal import Predicate
from skipstone.predicate.normalising import conjunction
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql
from skipstone.workload.mining import Mining, mine_features
from skipstone.workload.query import Feature, Query
from skipstone.workload.reading import Workload
from skipstone.workload.subsumption import subsumption

DISTINCT_PREDICATES = 10_000
QUERIES_IN_MATRIX = 2_000
PREDICATES_PER_QUERY = 5

REPEATED = 2_000
"""Distinct statements of the memory run; they arrive once, and then twenty times."""
TIMES = 20

BYTES_OF_AN_ARRIVAL = 64
"""What a statement that has been seen before may add: it is counted, and its place in the order is kept."""


def _speed(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    known = {DENORM: schemas(scale)[DENORM]}
    cold = queries(GSOPR_TEMPLATES, 2 if smoke else COLD, seed=seed)
    stream = queries(GSOPR_TEMPLATES, (50 if smoke else MANY) // len(GSOPR_TEMPLATES) + 1, seed=seed, stream="many")
    lines = [
        (("fourteen templates, cold",), _to_features(cold, known)),
        (("a long stream of the same",), _to_features(stream[: 50 if smoke else MANY], known)),
    ]
    features = table_of("features", "From text to features", ("queries",), lines)
    count = 100 if smoke else DISTINCT_PREDICATES
    matrix_line = _matrix(known[DENORM], count, count // PREDICATES_PER_QUERY, seed)
    matrix = table_of(
        "matrix", "Which features subsume which queries", ("predicates",), [((f"{count:,}",), matrix_line)]
    )
    once, often = _memory(known, 20 if smoke else REPEATED, 2 if smoke else TIMES, seed)
    memory = table_of(
        "memory",
        "What a workload holds in memory",
        ("statements",),
        [(("each once",), once), ((f"each {TIMES} times",), often)],
    )
    added = (often["memory_bytes"] - once["memory_bytes"]) / (often["statements"] - once["statements"])
    return Report(
        "workload-speed",
        SPEED_SENTENCE,
        "",
        scale,
        seed,
        smoke,
        settings=(
            ("matrix", f"{count:,} distinct predicates, queries of {PREDICATES_PER_QUERY}"),
            ("memory", "what the workload keeps once it has been read, counted by Python's allocator"),
        ),
        tables=(features, matrix, memory),
        claims=(
            Claim("cold", "seconds from 1,400 queries to features", lines[0][1]["seconds"], at_most=30.0),
            Claim("stream", "seconds from 100,000 queries to features", lines[1][1]["seconds"], at_most=60.0),
            Claim("matrix", "seconds for the matrix of 10,000 predicates", matrix_line["seconds"], at_most=10.0),
            Claim("memory", "bytes that a repeated statement adds", added, at_most=BYTES_OF_AN_ARRIVAL),
        ),
    )


def _to_features(asked: Sequence[Asked], known: dict[str, pa.Schema]) -> dict[str, float]:
    """Read texts and mine features, and say how long each took."""
    started, started_cpu = time.perf_counter(), time.process_time()
    work = Workload.of((query.sql for query in asked), known)
    read = time.perf_counter()
    mining = mine_features(work.queries(DENORM))
    done = time.perf_counter()
    return {
        "statements": len(asked),
        "distinct_requests": len(work.queries(DENORM)),
        "features": len(mining.features),
        "reading_seconds": read - started,
        "mining_seconds": done - read,
        "seconds": done - started,
        "cpu_seconds": time.process_time() - started_cpu,
    }


def _matrix(schema: pa.Schema, count: int, how_many_queries: int, seed: int) -> dict[str, float]:
    """Ask of `count` distinct predicates, each a feature, which queries they subsume."""
    predicates = _predicates(schema, count)
    rng = random.Random(f"{seed}/matrix")
    mixed = [conjunction(rng.sample(predicates, PREDICATES_PER_QUERY)) for _ in range(how_many_queries)]
    features = [conjunction([one]) for one in predicates]
    asked = [Query((), filter_) for filter_ in mixed]
    started, started_cpu = time.perf_counter(), time.process_time()
    matrix = subsumption(features, asked)
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - started_cpu,
        "subsumed_pairs": int(matrix.sum()),
    }


def _predicates(schema: pa.Schema, count: int) -> list[Predicate]:
    """Distinct predicates as queries have them: ranges, equalities, lists, patterns, over ten columns."""
    texts = itertools.chain.from_iterable(
        (
            f"l_quantity > {number}",
            f"l_extendedprice <= {number * 10}",
            f"l_discount >= 0.{number:05}",
            f"p_size = {number}",
            f"p_size IN ({number}, {number + 1}, {number + 7})",
            f"p_name LIKE '%{number:x}%'",
            f"p_brand = 'Brand#{number}'",
            f"s_acctbal BETWEEN {number} AND {number + 100}",
            f"c_mktsegment = 'segment {number}' OR o_shippriority = {number}",
            f"o_totalprice > {number} OR l_shipmode = 'mode {number}'",
        )
        for number in itertools.count(1)
    )
    found: dict[Predicate, None] = {}
    for text in texts:
        for predicate in parse_filter(text, schema):
            found[predicate] = None
            if len(found) == count:
                return list(found)
    raise AssertionError("the texts never end")


def _memory(
    known: dict[str, pa.Schema], distinct: int, times: int, seed: int
) -> tuple[dict[str, float], dict[str, float]]:
    texts = [query.sql for query in queries(GSOPR_TEMPLATES, distinct // len(GSOPR_TEMPLATES) + 1, seed=seed)]
    lines = []
    for repeats in (1, times):
        gc.collect()
        tracemalloc.start()
        work = Workload.of(texts * repeats, known)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        lines.append(
            {
                "statements": work.statements,
                "distinct_requests": float(len(work.queries(DENORM))),
                "memory_bytes": float(kept),
            }
        )
    return lines[0], lines[1]


def _sop(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    schema = schemas(scale)[DENORM]
    asked = queries(SOP_TEMPLATES, 5 if smoke else 100, seed=seed)
    work = Workload.of((query.sql for query in asked), {DENORM: schema})
    mining = mine_features(work.queries(DENORM))
    features = [one.feature for one in mining.features]
    lines = [
        (
            (template,),
            _served(
                Workload.of((query.sql for query in asked if query.template == template), {DENORM: schema}), features
            ),
        )
        for template in SOP_TEMPLATES
    ]
    with_filter = sum(line["beyond_dates"] for _, line in lines)
    share = sum(line["served"] for _, line in lines) / with_filter
    return Report(
        "sop-features",
        SOP_SENTENCE,
        "dissertation, section 3.7.3",
        scale,
        seed,
        smoke,
        settings=(("queries", f"{len(asked)} of the eight templates that SOP is evaluated with"),),
        tables=(
            table_of("templates", "Queries that a feature subsumes", ("template",), lines),
            table_of("features", "The features", ("feature",), _listed(mining)),
        ),
        claims=(
            Claim("served", "share of the queries with more than dates that a feature subsumes", share, at_least=1.0),
        ),
    )


def _served(work: Workload, features: Sequence[Feature]) -> dict[str, float]:
    """Count the queries of a workload, those with more than a filter on dates, and those of these that are subsumed."""
    asked = work.queries(DENORM)
    matrix = subsumption(features, asked)
    subsumed = [bool(matrix[:, number].any()) for number in range(len(asked))]
    beyond = [_has_more_than_dates(query, work.tables[DENORM]) for query in asked]
    return {
        "queries": sum(query.weight for query in asked),
        "beyond_dates": sum(query.weight for query, more in zip(asked, beyond, strict=True) if more),
        "served": sum(query.weight for query, more, found in zip(asked, beyond, subsumed, strict=True) if more * found),
    }


def _has_more_than_dates(query: Query, schema: pa.Schema) -> bool:
    return any(
        not pa.types.is_date(schema.field(column).type) for predicate in query.filter for column in predicate.columns
    )


def _listed(mining: Mining) -> list[tuple[tuple[str, ...], dict[str, float]]]:
    return [
        ((sql(one.feature.filter),), {"weight": one.feature.weight, "additional": one.additional})
        for one in mining.features
    ]


SPEED_SENTENCE = "How fast queries become features, and what a workload keeps in memory."
SOP_SENTENCE = "The features of the eight templates that SOP is evaluated with, and which queries they serve."
EXPERIMENTS = (
    Experiment("workload-speed", SPEED_SENTENCE, "", scale=0.01, minutes=4, function=_speed),
    Experiment("sop-features", SOP_SENTENCE, "3.7.3", scale=0.01, minutes=0.2, function=_sop),
)
