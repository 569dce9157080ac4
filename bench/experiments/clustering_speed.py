"""How long the searches take by themselves: Ward over thousands of vectors, a tree over millions of rows."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.dataset as pd

import skipstone
from bench.experiment import Experiment
from bench.experiments.rivals import BLOCKS, SMOKE_BLOCKS, sop_workload
from bench.experiments.sop import narrowed, read_columns
from bench.place import ROOT
from bench.report import Claim, Report, Table, table_of
from bench.skipping import data_files
from bench.skipstone_layouts import grouped_blocks_for
from bench.tpch.data import DENORM
from skipstone.layout.clustering import clustering
from skipstone.layout.clustering.bottom_up import ward
from skipstone.layout.clustering.conditions import true_rows
from skipstone.layout.clustering.routing import ClusteringProblem
from skipstone.layout.scheme import ClusteringSpec
from skipstone.layout.vectors import DistinctVectors, distinct
from skipstone.workload.mining import mine

VECTORS = ((3_000, 2.0), (8_000, 10.0))
"""Distinct vectors, and the seconds in which Ward must have clustered them."""

FEATURES = 50
TREE_SECONDS = 60.0
SAMPLE_ROWS = 200_000
RUNS = 3

COMPILE = """
import time
import numpy, pyarrow
from skipstone.layout.clustering import clustering
from skipstone.layout.clustering.routing import ClusteringProblem
from skipstone.layout.scheme import ClusteringSpec
from skipstone.predicate.parsing import parse_filter
from skipstone.workload.query import Feature, Query
rows = pyarrow.table({"x": list(range(200))})
filters = [parse_filter(f"x < {bound}", rows.schema) for bound in (20, 90, 150)]
queries = tuple(Query(("x",), one) for one in filters)
problem = ClusteringProblem(tuple(map(Feature, filters)), queries, rows=200, block_rows=10)
started = time.perf_counter()
for name in ("ward", "qdtree"):
    router = clustering(ClusteringSpec(name)).fit(rows, problem)
    router.route(rows.to_batches()[0], numpy.zeros((200, 3), dtype=bool))
    print(time.perf_counter() - started)
"""


def vectors_of(count: int, seed: int) -> DistinctVectors:
    """Return so many distinct vectors of features that are rare and frequent, and how many rows have each."""
    random = np.random.default_rng(seed)
    shares = random.uniform(0.02, 0.5, FEATURES)
    drawn, _ = distinct(random.random((2 * count, FEATURES)) < shares)
    chosen = random.permutation(len(drawn))[:count]
    return DistinctVectors(drawn.bits[np.sort(chosen)], random.integers(1, 2_000, len(chosen)))


def compile_seconds() -> tuple[float, float]:
    """Compile both searches in a process of its own, without anything kept from before: Ward's seconds, the tree's."""
    with tempfile.TemporaryDirectory() as cache:
        ran = subprocess.run(
            [sys.executable, "-c", COMPILE],
            env=os.environ | {"NUMBA_CACHE_DIR": cache},
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
    for_ward, both = map(float, ran.stdout.split())
    return for_ward, both - for_ward


def _ward_table(seed: int, smoke: bool) -> Table:
    lines = []
    for count, _ in VECTORS:
        vectors = vectors_of(count // 20 if smoke else count, seed)
        weights = np.random.default_rng(seed).integers(1, 100, FEATURES).astype(np.float64)
        min_size = vectors.rows // BLOCKS + 1
        seconds = _median(lambda v=vectors, w=weights, m=min_size: ward(v, w, m), 1 if smoke else RUNS)  # type: ignore[misc]
        lines.append(((f"{count:,} vectors",), {"seconds": seconds, "features": FEATURES, "rows_read": vectors.rows}))
    return table_of("ward", "Ward, numba compiled before", ("search",), lines)


def _tree_table(scale: float, seed: int, smoke: bool) -> Table:
    work = sop_workload(seed, 0.0, smoke)
    table = pd.dataset(data_files(narrowed(scale, read_columns(work))), format="parquet")
    asked = skipstone.Workload.of([query.sql for query in work.train], {DENORM: table.schema}).queries(DENORM)
    features = mine(asked)
    used = sorted({column for query in asked for column in query.filter.columns})
    rows = table.to_table(columns=used).combine_chunks()
    chosen = np.sort(np.random.default_rng(seed).permutation(rows.num_rows)[:SAMPLE_ROWS])
    sample = rows.take(chosen).combine_chunks()
    block_rows = grouped_blocks_for(rows.num_rows, SMOKE_BLOCKS if smoke else BLOCKS)
    problem = ClusteringProblem(features, asked, rows.num_rows, block_rows, seed)
    started = time.perf_counter()
    router = clustering(ClusteringSpec("qdtree")).fit(sample, problem)
    grown = time.perf_counter()
    for batch in rows.to_batches(max_chunksize=262_144):
        router.route(batch, true_rows([feature.filter for feature in features], batch))
    routed = time.perf_counter()
    title = f"qdtree over {rows.num_rows:,} rows and {len(asked)} different queries: {router.groups} leaves"
    return table_of(
        "tree",
        title,
        ("step",),
        [
            ((f"grow over {len(sample):,} sampled rows",), {"seconds": grown - started}),
            (("evaluate features and route all rows",), {"seconds": routed - grown}),
            (("together",), {"seconds": routed - started}),
        ],
    )


def _compile_table() -> Table:
    lines = [
        ((name,), {"seconds": seconds}) for name, seconds in zip(("ward", "qdtree"), compile_seconds(), strict=True)
    ]
    return table_of("compile", "Compiling, once for an installation", ("search",), lines)


def _median(run: Callable[[], object], runs: int) -> float:
    seconds = []
    for _ in range(runs):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return sorted(seconds)[len(seconds) // 2]


def _run(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    ward(vectors_of(20, seed), np.ones(FEATURES), 30)  # compiled, or loaded, before the clock starts
    of_ward, of_tree = _ward_table(seed, smoke), _tree_table(scale, seed, smoke)
    tables = [of_ward, of_tree] if smoke else [of_ward, of_tree, _compile_table()]
    claims = [
        Claim(
            f"ward {count}", f"seconds for {count:,} vectors", of_ward.value("seconds", f"{count:,} vectors"), seconds
        )
        for count, seconds in VECTORS
    ]
    together = of_tree.value("seconds", "together")
    return Report(
        "clustering-speed",
        SENTENCE,
        "Dissertation, section 3.7.3, figure 3.7",
        scale,
        seed,
        smoke,
        settings=(("threads", "one"), ("time", f"median of {1 if smoke else RUNS} runs for Ward, one for the tree")),
        tables=tuple(tables),
        claims=(*claims, Claim("tree", "seconds for the tree, rows routed", together, at_most=TREE_SECONDS)),
    )


SENTENCE = "Seconds that Ward takes for thousands of distinct vectors, and a tree for millions of rows."
EXPERIMENTS = (Experiment("clustering-speed", SENTENCE, "figure 3.7", scale=1.0, minutes=3, function=_run),)
