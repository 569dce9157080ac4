"""A table and a query log shaped like the Star table of the Sloan Digital Sky Survey (dissertation, section 4.7.2).

The real log is public but large and elsewhere. What is kept of it: about 450 columns, most of them measured once per
colour band; 2,340 queries in the order of time, three quarters of them for training; select lists of 3 to 23 columns
with a mean of 13.6 and a standard deviation of 5.13; interest concentrated on a small set of columns (section 4.7.6);
and filters of which few are used often.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.place import cached
from bench.query import Query
from bench.tpch.data import write_batches

TABLE = "star"
ROWS_AT_SCALE_ONE = 4_000_000
"""Rows of one Parquet file in section 4.7.2; a scale below one makes fewer."""

QUERIES_IN_THE_PAPER = 2_340
TRAINING_SHARE = 0.75
FEWEST_COLUMNS, MOST_COLUMNS = 3, 23
CENTRE, WIDTH = 14.04, 6.78
"""A normal distribution cut to 3..23 with these parameters has the mean and deviation that the paper prints."""

ROWS_PER_BATCH = 20_000
ROWS_PER_ROW_GROUP = 20_000
PROJECTS = 24
"""Groups of users with interests of their own; their popularity follows Zipf."""

MAKER_VERSION = 1

BANDS = ("u", "g", "r", "i", "z")
_GENERAL = (
    "objid skyversion run rerun camcol field obj mode nchild type clean probpsf insidemask flags rowc colc ra dec "
    "cx cy cz htmid status specobjid ndetect"
)
_PER_BAND = (
    "psfmag psfmagerr petromag petromagerr petrorad petroraderr petror50 petror90 modelmag modelmagerr fibermag "
    "fibermagerr devmag devmagerr devrad devraderr devab devphi expmag expmagerr exprad expraderr expab expphi "
    "cmodelmag cmodelmagerr extinction dered sky skyerr airmass bandrowc bandcolc offsetra offsetdec q u me1 me2 "
    "me1e1err me2e2err mrrcc mcr4 lnlstar lnlexp lnldev fracdev bandflags bandtype bandprob texture psffwhm signal "
    "nprof calibstatus"
)
_PROFILES = 15
GENERAL_COLUMNS = tuple(_GENERAL.split())
BAND_QUANTITIES = (
    *_PER_BAND.split(),
    *(f"profmean{ring:02d}" for ring in range(_PROFILES)),
    *(f"proferr{ring:02d}" for ring in range(_PROFILES)),
)
COLUMNS = (*GENERAL_COLUMNS, *(f"{quantity}_{band}" for quantity in BAND_QUANTITIES for band in BANDS))

_POPULAR = (
    *("objid", "ra", "dec", "type", "flags", "run", "camcol", "field"),
    *(f"{quantity}_{band}" for quantity in ("psfmag", "modelmag", "psfmagerr", "extinction") for band in BANDS),
)
"""The small set of columns on which most queries concentrate."""


@dataclass(frozen=True, slots=True)
class Project:
    """One group of users: the columns it likes, most liked first, and the filters it uses, most used first."""

    columns: tuple[str, ...]
    filters: tuple[str, ...]


def star(scale: float, seed: int = 0, root: Path | None = None) -> Path:
    """Return a directory with the Star-like table; scale factor 1 is four million rows."""
    recipe = {"sf": scale, "seed": seed, "maker": MAKER_VERSION}
    return cached("sdss", recipe, lambda directory: _generate(scale, seed, directory), root)


def queries(count: int = QUERIES_IN_THE_PAPER, *, seed: int, table: str = TABLE) -> tuple[Query, ...]:
    """Return the log in the order of time; `split` cuts it into training and test."""
    rng = random.Random(f"sdss/{seed}")
    projects = [_project(random.Random(f"sdss/{seed}/project {number}")) for number in range(PROJECTS)]
    popularity = [1 / rank**1.2 for rank in range(1, PROJECTS + 1)]
    sizes = range(FEWEST_COLUMNS, MOST_COLUMNS + 1)
    size_weights = [exp(-((size - CENTRE) ** 2) / (2 * WIDTH**2)) for size in sizes]
    log = []
    for _ in range(count):
        [number] = rng.choices(range(PROJECTS), popularity)
        [size] = rng.choices(sizes, size_weights)
        log.append(_query(number, projects[number], size, rng, table))
    return tuple(log)


def split(log: Sequence[Query]) -> tuple[tuple[Query, ...], tuple[Query, ...]]:
    """Return the first three quarters of the log for training and the rest for tests."""
    cut = round(len(log) * TRAINING_SHARE)
    return tuple(log[:cut]), tuple(log[cut:])


def _project(rng: random.Random) -> Project:
    liked = rng.sample(_POPULAR, 18)
    rest = [column for column in COLUMNS if column not in liked]
    return Project((*liked, *rng.sample(rest, 12)), tuple(_filter(rng) for _ in range(8)))


def _query(number: int, project: Project, size: int, rng: random.Random, table: str) -> Query:
    """Choose columns that the project likes, and of its filters; one query in ten asks for a place in the sky."""
    liking = [1 / (1 + rank) for rank in range(len(project.columns))]
    chosen: dict[str, None] = {}
    while len(chosen) < size:
        chosen.setdefault(rng.choices(project.columns, liking)[0])
    usage = [1 / rank**1.5 for rank in range(1, len(project.filters) + 1)]
    filters = sorted(set(rng.choices(project.filters, usage, k=rng.choice((1, 1, 2, 3)))))
    if rng.random() < 0.1:
        ra, dec = round(rng.uniform(0, 350), 2), round(rng.uniform(-10, 60), 2)
        filters.append(f"ra between {ra} and {ra + 5:.2f} and dec between {dec} and {dec + 5:.2f}")
    sql = f"select {', '.join(sorted(chosen, key=COLUMNS.index))} from {table} where {' and '.join(filters)}"
    return Query(f"p{number:02d}", sql)


def _filter(rng: random.Random) -> str:
    """Return a filter of one of the kinds that the log is full of: kinds of object, brightness, colour, flags."""
    band, redder = rng.choice((("u", "g"), ("g", "r"), ("r", "i"), ("i", "z")))
    bright = rng.randrange(14, 21)
    return rng.choice(
        (
            f"type = {rng.choice((3, 6))}",
            f"mode = 1 and clean = {rng.choice((0, 1))}",
            f"psfmag_{band} between {bright} and {bright + rng.choice((1, 2))}",
            f"modelmag_{band} < {bright}.5",
            f"psfmag_{band} - psfmag_{redder} > {rng.choice((0.5, 1.0, 1.5))}",
            f"(flags & {1 << rng.randrange(12)}) = 0",
            f"camcol = {rng.randint(1, 6)}",
            f"run = {rng.choice((94, 752, 756, 1231, 1737, 2583, 3325, 4136))}",
        )
    )


def _generate(scale: float, seed: int, directory: Path) -> None:
    rows = max(1_000, round(scale * ROWS_AT_SCALE_ONE))
    schema = _batch(1, 0, np.random.default_rng(seed)).schema
    write_batches(_batches(rows, seed), schema, directory, ROWS_PER_ROW_GROUP, rows_per_file=200_000)


def _batches(rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, ROWS_PER_BATCH):
        yield _batch(min(ROWS_PER_BATCH, rows - start), start, np.random.default_rng([seed, start]))


def _batch(rows: int, start: int, rng: np.random.Generator) -> pa.RecordBatch:
    """Make objects whose brightness agrees between bands and between ways of measuring it."""
    columns: dict[str, Any] = _general(rows, start, rng)
    brightness = np.clip(rng.normal(19.5, 2.2, rows), 12, 26)
    redness = rng.gamma(2.0, 0.35, rows)
    for quantity in BAND_QUANTITIES:
        for shift, band in zip((1.6, 0.6, 0.0, -0.2, -0.3), BANDS, strict=True):
            value: Any
            if quantity.endswith("mag"):
                value = brightness + shift * redness + rng.normal(0, 0.05, rows)
            elif quantity.endswith("magerr"):
                value = 0.002 * np.exp(0.35 * (brightness - 14)) + rng.random(rows) * 0.01
            elif quantity in ("bandflags", "bandtype", "nprof", "calibstatus"):
                value = rng.geometric(0.4, rows)
            else:
                value = rng.normal(len(quantity), 1.0, rows)
            columns[f"{quantity}_{band}"] = np.round(value, 3).astype(np.float32)
    return pa.RecordBatch.from_pydict({name: columns[name] for name in COLUMNS})


def _general(rows: int, start: int, rng: np.random.Generator) -> dict[str, Any]:
    """Make the columns that do not belong to a band; objects come run by run, as a telescope sweeps the sky."""
    number = np.arange(start, start + rows)
    runs = np.array([94, 125, 752, 756, 1033, 1231, 1737, 2583, 3325, 4136])
    ra, dec = rng.random(rows) * 360, np.degrees(np.arcsin(rng.random(rows) * 1.2 - 0.25))
    columns: dict[str, Any] = {
        "objid": 587_722_981_736_120_000 + number,
        "run": runs[(number // 5_000) % len(runs)],
        "camcol": 1 + (number // 800) % 6,
        "field": 11 + (number // 100) % 800,
        "obj": number % 100,
        "mode": 1 + (rng.random(rows) < 0.1),
        "nchild": rng.geometric(0.8, rows) - 1,
        "type": np.where(rng.random(rows) < 0.55, 6, 3),
        "clean": (rng.random(rows) < 0.8).astype(np.int64),
        "flags": rng.integers(0, 1 << 12, rows) & rng.integers(0, 1 << 12, rows),
        "ra": np.round(ra, 6),
        "dec": np.round(dec, 6),
        "htmid": (ra * 1e6).astype(np.int64) * 1_000 + (dec + 90).astype(np.int64),
        "specobjid": np.where(rng.random(rows) < 0.95, 0, number),
    }
    for name in GENERAL_COLUMNS:
        if name not in columns:
            columns[name] = np.round(rng.random(rows), 3) if name in ("cx", "cy", "cz") else rng.integers(0, 8, rows)
    return columns
