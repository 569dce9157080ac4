"""What it costs to plan a query over many blocks: from a parsed request to the list of what is read.

The catalog is a real one, written and read by the package; only the data files that it speaks of are empty, because
planning never opens them. Blocks carry vectors of the features that are mined from the workload, and bounds of the
columns that it filters on: a date is known to within a month, everything else covers much of its domain.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.experiment import Experiment
from bench.experiments.rivals import sop_workload
from bench.measure import Timing
from bench.query import Query
from bench.report import Claim, Report, table_of
from bench.skipping import data_files
from bench.tpch.data import DENORM, denormalised
from skipstone.catalog.location import Location
from skipstone.catalog.native import NativeCatalog
from skipstone.catalog.values import (
    BLOCK_SCHEMA,
    Blocks,
    Change,
    ChunkFacts,
    ExpressionBounds,
    NewChunk,
    Snapshot,
    fixed_lists,
)
from skipstone.layout.scheme import ClusteringSpec, Layout, Scheme
from skipstone.layout.vectors import pack
from skipstone.scan.plan import plan_scan
from skipstone.workload.mining import mine
from skipstone.workload.query import Feature, Request
from skipstone.workload.reading import Workload
from skipstone.workload.requests import FrontEnd

SIZES = ((1, 1_000, 20.0), (1_000, 1_000, 150.0))
"""Chunks, blocks of each, and the milliseconds within which a query must be planned."""

SMOKE_SIZES = ((1, 50, 20.0), (4, 50, 150.0))
BLOCK_ROWS = 10_000
BLOCKS_PER_FILE = 100
RUNS = 10

PRESENT = 0.3
"""The share of blocks that hold a row for any one feature."""


def synthetic_table(
    place: Path, schema: pa.Schema, features: Sequence[Feature], chunks: int, blocks: int, seed: int
) -> NativeCatalog:
    """Write a block catalog of so many chunks and blocks, and open it as another process would."""
    shutil.rmtree(place, ignore_errors=True)
    location = Location.at(place)
    catalog = NativeCatalog(location)
    empty = catalog.create(schema)
    scheme = Scheme(
        (
            Layout(
                tuple(schema.names),
                tuple(range(len(features))),
                frozenset(schema.names),
                ClusteringSpec("qdtree"),
            ),
        ),
        tuple(feature.filter for feature in features),
    )
    chance = np.random.default_rng(seed)
    added = tuple(
        NewChunk(
            f"chunk-{number:05}",
            scheme,
            _blocks(f"chunk-{number:05}", schema, len(features), blocks, chance),
            ChunkFacts(blocks * BLOCK_ROWS),
        )
        for number in range(chunks)
    )
    # A commit asks whether its files are there; nobody opens them here.
    for file in (file for chunk in added for file in chunk.blocks.files):
        location.write(file, b"")
    catalog.commit(Change("create", added=added), base=empty.version)
    return NativeCatalog(location)


def _blocks(chunk: str, schema: pa.Schema, features: int, count: int, chance: np.random.Generator) -> Blocks:
    numbers = np.arange(count)
    vectors = pack(chance.random((count, features)) < PRESENT)
    files = pa.array([f"data/{chunk}/0/{number}.parquet" for number in range(-(-count // BLOCKS_PER_FILE))])
    rows = pa.table(
        {
            "layout": pa.array(np.zeros(count, np.int16)),
            "part": pa.array(np.zeros(count, np.int8)),
            "block": pa.array(numbers.astype(np.int32)),
            "file": files.take(pa.array(numbers // BLOCKS_PER_FILE)),
            "row_group": pa.array((numbers % BLOCKS_PER_FILE).astype(np.int32)),
            "rows": pa.array(np.full(count, BLOCK_ROWS)),
            "vector": pa.array([row.tobytes() for row in vectors], pa.binary()),
            "first_row_id": pa.array(np.full(count, -1)),
            "last_row_id": pa.array(np.full(count, -1)),
            "column_bytes": fixed_lists(chance.integers(1_000, 50_000, (count, len(schema)))),
        },
        schema=BLOCK_SCHEMA,
    )
    bounds = tuple((field.name, _bounds(field.type, count, chance)) for field in schema)
    return Blocks(rows, tuple(schema.names), bounds)


def _bounds(kind: pa.DataType, count: int, chance: np.random.Generator) -> ExpressionBounds:
    """Bounds of a column: a month for dates, from the first to the last tenth of a made-up domain for others."""
    if pa.types.is_date(kind):
        start = chance.integers(8_036, 10_562, count)  # the days of TPC-H, counted from 1970
        least, greatest = (pa.array(days.astype(np.int32)).cast(kind) for days in (start, start + 30))
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        words = np.array([f"{letter}{number}" for letter in "ABCDEFGH" for number in range(100)])
        low = chance.integers(0, 400, count)
        least, greatest = (pa.array(words[places]).cast(kind) for places in (low, low + 300))
    else:
        low = chance.integers(0, 10, count)
        least, greatest = (pa.array(values.astype(np.int32)).cast(kind) for values in (low, low + 40))
    zeros, flags = pa.array(np.zeros(count, np.int64)), pa.array(np.ones(count, np.bool_))
    return ExpressionBounds(least, greatest, zeros, zeros, flags, flags)


def planned(snapshot: Snapshot, request: Request) -> int:
    """Plan a request down to the row groups of files, and count the chunks that are read."""
    plan = plan_scan(snapshot, request.columns, request.filter)
    plan.counts()
    return sum(1 for _ in plan.reads())


def _requests(asked: Sequence[Query], schema: pa.Schema) -> dict[str, Request]:
    """What the first query of each template asks of the wide table."""
    front = FrontEnd({DENORM: schema})
    first = {query.template: query.sql for query in reversed(asked)}
    return {template: front.read(text).requests[0] for template, text in sorted(first.items())}


def _milliseconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return 1_000 * (time.perf_counter() - started)


def _run(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    whole = pq.read_schema(data_files(denormalised(scale))[0])
    asked = sop_workload(seed, 0.0, smoke)
    log = out / "workload.sql"
    log.write_text(";\n".join(query.sql for query in asked.train))
    work = Workload.read(log, {DENORM: whole})
    queries = work.queries(DENORM)
    used = {name for query in queries for name in query.columns}
    schema = pa.schema([field for field in whole if field.name in used])
    features = mine(queries)
    requests = _requests(asked.test, schema)
    lines: list[tuple[tuple[str, ...], Mapping[str, float]]] = []
    claims = []
    for chunks, blocks, most in SMOKE_SIZES if smoke else SIZES:
        catalog = synthetic_table(out / f"lake-{chunks}", schema, features, chunks, blocks, seed)
        size = f"{chunks * blocks:,} blocks in {chunks:,} chunks"
        snapshot = catalog.snapshot()
        slowest = 0.0
        for name, request in requests.items():
            first, *later = [_milliseconds(partial(planned, snapshot, request)) for _ in range(1 + RUNS)]
            timing = Timing.of(later)
            plan = plan_scan(snapshot, request.columns, request.filter)
            values = {"blocks": float(chunks * blocks), "blocks_read": float(plan.counts().blocks)}
            lines.append(((size, name), values | {"planning_ms": timing.median, "first_planning_ms": first}))
            slowest = max(slowest, timing.median)
        claims.append(
            Claim(f"blocks-{chunks * blocks}", f"milliseconds for the slowest template, {size}", slowest, at_most=most)
        )
    return Report(
        "planning",
        SENTENCE,
        "",
        scale,
        seed,
        smoke,
        settings=(
            ("blocks", f"vectors of {len(features)} features, bounds of {len(schema)} columns"),
            ("planning", f"from a parsed request to the row groups to read; median of {RUNS} runs, catalog loaded"),
            ("first", "the same with columns of the catalog still to be loaded from disk"),
        ),
        tables=(table_of("planning", "Planning a query", ("catalog", "query"), lines),),
        claims=tuple(claims),
    )


SENTENCE = "How long it takes to plan a query over a thousand and over a million blocks."
EXPERIMENTS = (Experiment("planning", SENTENCE, "", scale=0.01, minutes=2, function=_run),)
