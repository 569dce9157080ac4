"""Real reads of a wide table: the default order, ours, and ours with duplicates, from a disk and from an object store.

The table has the columns and chunk sizes that the authors of the wide-table paper published, where they are present,
else generated ones; its bytes are random, so that nothing compresses and a chunk is as large as it should be. The other
orders are stored by the package's own `apply_order`. Reads are pyarrow's, of a sample of the queries, drawn by weight.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from bench.columns_workload import published_workload, wide_workload
from bench.experiment import Experiment
from bench.measure import drop_from_cache, paired
from bench.object_store import BUCKET, ObjectStore, Requests
from bench.place import cached
from bench.report import Claim, Report, Table, table_of, timing_values
from skipstone.layout.columns.proposing import propose_duplicates, propose_order
from skipstone.layout.columns.redirect import Redirector
from skipstone.layout.columns.search import Effort
from skipstone.layout.columns.seek import SeekProfile, seek_profile
from skipstone.layout.columns.values import ColumnLayout, ColumnQuery, ColumnSizes
from skipstone.store.ranges import OBJECT_STORE, RangeLimits, coalesced
from skipstone.store.reordering import apply_order

ROWS = 64
"""Rows of a row group: with few, a value is as wide as it takes to make the chunk as large as it should be."""

GROUPS = 24
"""Row groups of the table, each a file: 24 of 44 MB are a gigabyte."""

STORE_GROUPS = 2
"""Of these, so many are on the object store as well: moto copies an object for every request to it."""

HEADROOM = 0.05
SEARCH_MOVES = 20_000
DUPLICATE_MOVES = 10_000
FIRST_BYTE_MILLISECONDS = 30.0
MEGABYTES_PER_SECOND = 50.0
PYARROW_GAP = 8192
"""What pyarrow reads through when nobody says otherwise."""

STORE_PROFILE = f"object-store:gap={OBJECT_STORE.gap_bytes}"


@dataclass(frozen=True, slots=True)
class Subject:
    """One way to store the table, with what says which physical columns a query reads."""

    name: str
    layout: ColumnLayout
    redirector: Redirector
    directory: Path

    def stored(self, query: ColumnQuery) -> list[str]:
        return [column.name for column in self.redirector.redirect(query.columns).reads]

    @property
    def files(self) -> list[Path]:
        return sorted(self.directory.glob("*.parquet"))


@dataclass(frozen=True, slots=True)
class Plan:
    """How large an experiment is."""

    sizes: ColumnSizes
    queries: tuple[ColumnQuery, ...]
    source: str
    groups: int
    sample: int
    store_sample: int
    runs: int
    moves: int


def plan_of(scale: float, seed: int, smoke: bool) -> Plan:
    """The published table, or a generated one where it is not present; a tiny one for a smoke run."""
    if smoke:
        sizes, queries = wide_workload(120, 60, seed)
        return Plan(sizes, queries, "generated", 2, 3, 2, 1, 300)
    published = published_workload()
    sizes, queries = published or wide_workload(1000, 2000, seed)
    source = "published by the paper's authors" if published else "generated"
    return Plan(sizes, queries, source, max(1, round(GROUPS * scale)), 40, 20, 3, SEARCH_MOVES)


def write_table(sizes: ColumnSizes, groups: int, seed: int, directory: Path) -> None:
    """Write random bytes: each row group has of each column a chunk of about the size that it should have."""
    widths = [max(1, round((column.chunk_bytes - 40) / ROWS)) for column in sizes.columns]
    schema = pa.schema(
        [pa.field(c.name, pa.binary(width), nullable=False) for c, width in zip(sizes.columns, widths, strict=True)]
    )
    rng = np.random.default_rng(seed)
    for number in range(groups):
        columns = [
            pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), ROWS, [None, pa.py_buffer(rng.bytes(width * ROWS))])
            for width in widths
        ]
        rows = pa.Table.from_arrays(columns, schema=schema)
        path = directory / f"{number:03}.parquet"
        pq.write_table(rows, path, compression="none", use_dictionary=False, write_statistics=False)


def subjects(plan: Plan, seed: int) -> list[Subject]:
    """Store the table in every order that is compared."""
    recipe = {"from": plan.source, "columns": len(plan.sizes.columns), "files": plan.groups, "seed": seed}
    default = cached("wide", recipe, lambda place: write_table(plan.sizes, plan.groups, seed, place))
    found = [_subject("default", plan.sizes.layout, plan, seek_profile("power"), default)]
    wanted = (
        ("power", "power", 0.0),
        (f"power +{HEADROOM:.0%}", "power", HEADROOM),
        (f"store, {_size(PYARROW_GAP)}", f"object-store:gap={PYARROW_GAP}", 0.0),
        (f"store, {_size(OBJECT_STORE.gap_bytes)}", STORE_PROFILE, 0.0),
        (f"store, {_size(OBJECT_STORE.gap_bytes)} +{HEADROOM:.0%}", STORE_PROFILE, HEADROOM),
    )
    for name, text, headroom in wanted:
        profile = seek_profile(text)
        layout = _layout(plan, profile, headroom, seed)
        kind = recipe | {"order": name, "moves": plan.moves, "layout": hash_of(layout)}
        place = cached("wide", kind, _storing(default, layout))
        found.append(_subject(name, layout, plan, profile, place))
    return found


def hash_of(layout: ColumnLayout) -> str:
    """A short name for a layout."""
    return hashlib.sha256(repr(layout.stored).encode()).hexdigest()[:12]


def _storing(source: Path, layout: ColumnLayout) -> Callable[[Path], None]:
    def make(place: Path) -> None:
        apply_order(source, layout, place)

    return make


def _subject(name: str, layout: ColumnLayout, plan: Plan, profile: SeekProfile, place: Path) -> Subject:
    return Subject(name, layout, Redirector(plan.sizes.arranged(layout), plan.queries, profile), place)


def _layout(plan: Plan, profile: SeekProfile, headroom: float, seed: int) -> ColumnLayout:
    sizes, _ = propose_order(plan.sizes, plan.queries, profile, Effort(moves=plan.moves), seed=seed)
    if headroom:
        effort = Effort(moves=min(plan.moves, DUPLICATE_MOVES))
        sizes, _ = propose_duplicates(sizes, plan.queries, headroom, profile, effort, seed=seed)
    return sizes.layout


def sampled(queries: Sequence[ColumnQuery], count: int, seed: int) -> list[ColumnQuery]:
    """Draw different queries by weight."""
    rng = np.random.default_rng(seed)
    weights = np.array([query.weight for query in queries])
    chosen = rng.choice(len(queries), size=min(count, len(queries)), replace=False, p=weights / weights.sum())
    return [queries[number] for number in sorted(chosen.tolist())]


def chunk_ranges(footer: Any, columns: Sequence[str]) -> list[tuple[int, int]]:
    """Where the chunks of these columns are, in all row groups of a file."""
    number = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
    ranges = []
    for group in range(footer.num_row_groups):
        for column in columns:
            chunk = footer.row_group(group).column(number[column])
            ranges.append((chunk.data_page_offset, chunk.data_page_offset + chunk.total_compressed_size))
    return ranges


def from_disk(found: Sequence[Subject], queries: Sequence[ColumnQuery], runs: int) -> Table:
    """Read from files that are not in the page cache; pyarrow reads each chunk as it is asked to."""
    footers = {file: pq.read_metadata(file) for subject in found for file in subject.files}
    asked = {query.name: query for query in queries}

    def reading(subject: Subject) -> Callable[[str], object]:
        def read(name: str) -> int:
            rows = 0
            for file in subject.files:
                with pq.ParquetFile(file, metadata=footers[file]) as opened:
                    rows += opened.read(columns=subject.stored(asked[name])).num_rows
            return rows

        return read

    by_name = {subject.name: subject for subject in found}
    times = paired(
        {name: reading(subject) for name, subject in by_name.items()},
        list(asked),
        runs,
        warm_up=False,
        before_each=lambda name, _: _forget(by_name[name]),
    )
    lines = []
    for subject in found:
        ranges = [chunk_ranges(footers[file], subject.stored(query)) for query in queries for file in subject.files]
        lines.append(
            (
                (subject.name,),
                {
                    "queries": len(queries),
                    "ranges_read": sum(len(coalesced(of_file, NEIGHBOURS)) for of_file in ranges),
                    "bytes_read": sum(end - start for of_file in ranges for start, end in of_file),
                    "layout_bytes": sum(file.stat().st_size for file in subject.files),
                }
                | timing_values(times.total[subject.name]),
            )
        )
    return table_of("disk", "From a local disk, cold", ("stored as",), lines)


def _forget(subject: Subject) -> None:
    drop_from_cache([subject.directory])


def from_store(found: Sequence[Subject], queries: Sequence[ColumnQuery]) -> Table:
    """Read the first files of each subject from an object store that counts its requests."""
    lines: list[tuple[tuple[str, str], dict[str, float]]] = []
    with ObjectStore(FIRST_BYTE_MILLISECONDS) as store:
        filesystem = store.filesystem()
        keys: dict[str, list[str]] = {}
        for number, subject in enumerate(found):
            for file in subject.files[:STORE_GROUPS]:
                keys.setdefault(subject.name, []).append(f"{BUCKET}/{number}-{file.name}")
                with filesystem.open_output_stream(keys[subject.name][-1]) as sink:
                    sink.write(file.read_bytes())
        for gap in (PYARROW_GAP, OBJECT_STORE.gap_bytes):
            fragments = {name: [_fragment(filesystem, key, gap) for key in of] for name, of in keys.items()}
            store.counted()
            asked: dict[str, list[tuple[Requests, float]]] = {subject.name: [] for subject in found}
            for turn, query in enumerate(queries):
                for subject in [*found[turn % len(found) :], *found[: turn % len(found)]]:
                    started = time.perf_counter()
                    for fragment in fragments[subject.name]:
                        fragment.to_table(columns=subject.stored(query))
                    asked[subject.name].append((store.counted(), time.perf_counter() - started))
            lines += [((_size(gap), name), _store_values(answers)) for name, answers in asked.items()]
    return table_of("store", "From an object store", ("gaps read through", "stored as"), lines)


def _fragment(filesystem: Any, key: str, gap: int) -> Any:
    options = pa.CacheOptions(
        hole_size_limit=gap, range_size_limit=OBJECT_STORE.request_bytes, lazy=False, prefetch_limit=0
    )
    scan = ds.ParquetFragmentScanOptions(pre_buffer=True, cache_options=options)
    fragment = ds.ParquetFileFormat(default_fragment_scan_options=scan).make_fragment(key, filesystem)
    fragment.ensure_complete_metadata()
    return fragment


def _store_values(answers: Sequence[tuple[Requests, float]]) -> dict[str, float]:
    gets, read = sum(one.gets for one, _ in answers), sum(one.bytes for one, _ in answers)
    return {
        "queries": len(answers),
        "requests_sent": gets,
        "bytes_read": read,
        "cost_ms": gets * FIRST_BYTE_MILLISECONDS + read / (MEGABYTES_PER_SECOND * 1000),
        "seconds": sum(seconds for _, seconds in answers),
    }


def _size(gap: int) -> str:
    return f"{gap // 1024} KiB"


def _run(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    plan = plan_of(scale, seed, smoke)
    found = subjects(plan, seed)
    disk = from_disk(found, sampled(plan.queries, plan.sample, seed), plan.runs)
    store = from_store(found, sampled(plan.queries, plan.store_sample, seed))
    default, power, small, ours = (found[number].name for number in (0, 1, 3, 4))
    wide, narrow = _size(OBJECT_STORE.gap_bytes), _size(PYARROW_GAP)

    def fewer(table: Table, measure: str, than: tuple[str, ...], name: tuple[str, ...]) -> float:
        return table.value(measure, *than) / table.value(measure, *name)

    return Report(
        "wide-reads",
        SENTENCE,
        "",
        scale,
        seed,
        smoke,
        settings=(
            ("columns", str(len(plan.sizes.columns))),
            ("column sizes and queries", plan.source),
            ("row groups", f"{plan.groups} on disk, {min(plan.groups, STORE_GROUPS)} on the object store"),
            ("queries", f"{plan.sample} and {plan.store_sample} of {len(plan.queries)}, drawn by weight"),
            ("stored as", "the profile that the order was searched with, and the headroom of duplicates"),
            ("first byte", f"{FIRST_BYTE_MILLISECONDS:g} ms, added by the server that counts"),
            ("modelled cost", f"first bytes one after the other, and {MEGABYTES_PER_SECOND:g} MB/s"),
        ),
        tables=(disk, store),
        claims=(
            Claim(
                "requests",
                f"times fewer requests than the default order, gaps of {wide} read through",
                fewer(store, "requests_sent", (wide, default), (wide, ours)),
                at_least=3.0,
            ),
            Claim(
                "requests-pyarrow",
                f"times fewer requests than the default order, with pyarrow's own limit of {narrow}",
                fewer(store, "requests_sent", (narrow, default), (narrow, small)),
                at_least=3.0,
            ),
            Claim(
                "profile",
                "modelled cost on the object store of the order for a disk, over that of the order for an object store",
                fewer(store, "cost_ms", (wide, power), (wide, ours)),
                at_least=1.0,
            ),
            Claim(
                "profile-pyarrow",
                f"the same with pyarrow's own limit of {narrow}",
                fewer(store, "cost_ms", (narrow, power), (narrow, small)),
                at_least=1.0,
            ),
            Claim(
                "ranges",
                "times fewer ranges than the default order on a disk",
                fewer(disk, "ranges_read", (default,), (power,)),
                at_least=2.0,
            ),
            Claim(
                "disk-time",
                "time of the default order over ours, from a cold disk",
                fewer(disk, "seconds", (default,), (power,)),
                at_least=1.0,
            ),
        ),
    )


NEIGHBOURS = RangeLimits(gap_bytes=0, request_bytes=1 << 60)
SENTENCE = "Real reads of a wide table: requests, bytes and time in the default order, in ours, and with duplicates."
EXPERIMENTS = (Experiment("wide-reads", SENTENCE, "", scale=1.0, minutes=8, function=_run),)
