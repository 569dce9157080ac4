"""How fast the workload reader turns SQL text into requests, cold and once it has seen the templates."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.experiment import Experiment
from bench.query import Query
from bench.report import Claim, Report, table_of
from bench.skipping import data_files
from bench.tpch.data import DENORM, TABLES, denormalised, normalised
from bench.tpch.queries import Schema, queries
from bench.tpch.templates import GSOPR_TEMPLATES
from skipstone.workload.requests import FrontEnd

COLD = 100
"""Queries of each template in the cold runs: 1,400 over the fourteen templates of section 5.7.1."""

MANY = 100_000


def schemas(scale: float) -> dict[str, pa.Schema]:
    """Return the schemas of the wide table and of the eight normalised ones."""
    tables = normalised(scale)
    return {DENORM: pq.read_schema(data_files(denormalised(scale))[0])} | {
        table: pq.read_schema(tables / f"{table}.parquet") for table in TABLES
    }


def read_all(front: FrontEnd, asked: Sequence[Query]) -> dict[str, float]:
    """Read every text and return how long that took and how many were understood."""
    started, started_cpu = time.perf_counter(), time.process_time()
    statements = [front.read(query.sql) for query in asked]
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - started_cpu
    understood = sum(not statement.problem and bool(statement.requests) for statement in statements)
    return {
        "statements": len(asked),
        "understood": understood,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "per_second": len(asked) / seconds,
    }


def _run(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    known = schemas(scale)
    per_template = 2 if smoke else COLD
    many = (10 if smoke else MANY) // len(GSOPR_TEMPLATES) + 1
    wide = queries(GSOPR_TEMPLATES, per_template, seed=seed)
    joined = queries(tuple(Schema.NORMALISED.templates), per_template, seed=seed, schema=Schema.NORMALISED)
    stream = queries(GSOPR_TEMPLATES, many, seed=seed, stream="many")[: 20 if smoke else MANY]
    lines = [
        (("fourteen templates, wide table", "cold"), read_all(FrontEnd(known), wide)),
        (("all templates, normalised", "cold"), read_all(FrontEnd(known), joined)),
        (("fourteen templates, wide table", "a long stream"), read_all(FrontEnd(known), stream)),
    ]
    table = table_of("reading", "From text to requests", ("queries", "front end"), lines)
    asked = sum(line.values[table.measures.index("statements")] or 0 for line in table.lines)
    understood = sum(line.values[table.measures.index("understood")] or 0 for line in table.lines)
    return Report(
        "reading",
        SENTENCE,
        "",
        scale,
        seed,
        smoke,
        settings=(("a long stream", "the same templates with other constants"),),
        tables=(table,),
        claims=(
            Claim("understood", "share of statements that are understood", understood / asked, at_least=1.0),
            Claim("cold", "seconds for 1,400 wide queries, cold", _seconds(lines[0]), at_most=30.0),
            Claim("stream", "seconds for 100,000 queries of known templates", _seconds(lines[2]), at_most=60.0),
        ),
    )


def _seconds(line: tuple[tuple[str, str], dict[str, float]]) -> float:
    return line[1]["seconds"]


SENTENCE = "How fast the workload reader turns SQL text into requests."
EXPERIMENTS = (Experiment("reading", SENTENCE, "", scale=0.01, minutes=2, function=_run),)
