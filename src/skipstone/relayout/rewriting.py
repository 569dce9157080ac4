"""Rewrite chunks in a new scheme: learn how each is clustered, move its rows, check, and hand it over for one commit.

Dissertation 3.2.2 and 4.3.3, with each step per chunk, so that no row ever leaves its chunk:

1. fit      a sample of the chunk's rows decides how its rows are grouped (`fitting`)
2. split    every row gets its feature vector and goes to the bucket of its group (`splitting`)
3. gather   a bucket becomes blocks (`gathering`)
4. verify   what was written is what was read
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from skipstone.catalog.location import Location
from skipstone.catalog.schemes import scheme_document
from skipstone.catalog.values import Blocks, ChunkFacts, NewChunk, Note, Snapshot
from skipstone.errors import LayoutInfeasible
from skipstone.layout.columns.seek import SeekProfile
from skipstone.layout.scheme import Scheme
from skipstone.predicate.printing import sql
from skipstone.relayout.column_design import with_column_cost
from skipstone.relayout.executor import Executor, Progress
from skipstone.relayout.fitting import ChunkFit, FitTask, LayoutFit, fit_chunk, with_used_features
from skipstone.relayout.gathering import Gather, Gathered, verify
from skipstone.relayout.loading import renumbered
from skipstone.relayout.splitting import LayoutRoute, SplitTask, parts_of, split
from skipstone.scan.plan import plan_scan
from skipstone.scan.read import ReadTask, read_tasks
from skipstone.store.statistics import Tracked
from skipstone.store.writer import BlockTarget, Written
from skipstone.workload.query import Query

__all__ = ["Design", "read_whole_chunk", "rewrite_chunks", "with_features_kept"]

BUCKET_BLOCKS = 8
"""A bucket holds about so many blocks: few enough for a task's memory, enough that its sort and its file pay."""

SMALLEST_BUCKET_ROWS = 50_000
LARGEST_BUCKET_ROWS = 1_000_000

ROWS_MOVED_AT_ONCE = 200_000_000
"""Chunks are rewritten in turns of about so many rows, which bounds what a shuffle holds; the commit is still one."""


@dataclass(frozen=True, slots=True)
class Design:
    """What chunks are to become: the scheme, the queries it is for, the size of blocks, and what is tracked of each.

    With `profile`, the order of columns was made for the queries, and what it costs them is noted with each chunk.
    `by_scheme` are other designs for the chunks of some schemes, by their hash: where the rows are well laid out,
    chunks keep that and get another order of columns.
    """

    scheme: Scheme
    queries: tuple[Query, ...]
    block_rows: int
    tracked: tuple[Tracked, ...]
    sample_rows: int = 300_000
    seed: int = 0
    profile: SeekProfile | None = None
    by_scheme: tuple[tuple[str, Design], ...] = ()

    def name(self, schema: pa.Schema) -> str:
        """Name the design by all that decides what chunks become, so that it can be told that they are that already."""
        queries = [[sql(one.filter), list(one.columns), one.weight] for one in self.queries]
        tracked = [one.text for one in self.tracked]
        others = [[scheme, one.name(schema)] for scheme, one in self.by_scheme]
        settings = [self.block_rows, self.sample_rows, self.seed, repr(self.profile), queries, tracked, others]
        document = scheme_document(self.scheme, schema) + json.dumps(settings).encode()
        return hashlib.sha256(document).hexdigest()[:16]


def with_features_kept(design: Design) -> Design:
    """The same design with the features stored as columns, in the layout that has every row whole."""
    scheme = design.scheme
    names = {name for layout in scheme.layouts for name in layout.masters}
    if not any(layout.masters == names for layout in scheme.layouts):
        raise LayoutInfeasible(
            f"features can be kept as columns only beside all columns of all rows; this scheme has "
            f"{len(scheme.layouts)} layouts, none of them complete. Hint: ask for an advice with one layout"
        )
    layouts = tuple(replace(layout, keeps_features=layout.masters == names) for layout in scheme.layouts)
    by_scheme = tuple((name, with_features_kept(one)) for name, one in design.by_scheme)
    return replace(design, scheme=replace(scheme, layouts=layouts), by_scheme=by_scheme)


def rewrite_chunks(
    snapshot: Snapshot,
    chunks: Sequence[str],
    design: Design,
    *,
    table: Location,
    executor: Executor,
    progress: Progress,
    notes: tuple[Note, ...] = (),
) -> tuple[NewChunk, ...]:
    """Write these chunks of a snapshot anew, under the same names; nothing is committed."""
    if design.by_scheme:
        return tuple(
            chunk
            for one, of_one in _chunks_by_design(snapshot, chunks, design)
            for chunk in rewrite_chunks(
                snapshot, of_one, one, table=table, executor=executor, progress=progress, notes=notes
            )
        )
    design.scheme.validate(snapshot.schema.names)
    sources = {chunk: read_whole_chunk(snapshot, chunk, table) for chunk in chunks}
    tasks = [
        FitTask(
            tuple(sources[chunk]),
            chunk,
            snapshot.facts(chunk).rows,
            design.scheme,
            design.queries,
            design.block_rows,
            design.sample_rows,
            design.seed,
            _bucket_rows(design),
        )
        for chunk in chunks
    ]
    fits = executor.map(fit_chunk, tasks, stage="fit", progress=progress)
    scheme = with_used_features(design.scheme, fits, snapshot.schema)
    rewritten: list[NewChunk] = []
    for turn in _turns(fits, snapshot):
        rewritten += _rewrite_turn(turn, sources, scheme, snapshot, design, table, executor, progress, notes)
    if design.profile is None:
        return tuple(rewritten)
    return tuple(with_column_cost(chunk, design.queries, design.profile) for chunk in rewritten)


def _chunks_by_design(
    snapshot: Snapshot, chunks: Sequence[str], design: Design
) -> list[tuple[Design, tuple[str, ...]]]:
    """The chunks that each design is for, in the order of the first of them; those of no other keep `design` itself."""
    own = replace(design, by_scheme=())
    by_hash = dict(design.by_scheme)
    gathered: dict[str, list[str]] = {}
    for chunk in chunks:
        here = snapshot.blocks_of(chunk)[0].scheme
        gathered.setdefault(here if here in by_hash else "", []).append(chunk)
    return [(by_hash.get(here, own), tuple(names)) for here, names in gathered.items()]


def read_whole_chunk(snapshot: Snapshot, chunk: str, table: Location) -> list[ReadTask]:
    """Tasks that read a chunk whole, with its row ids."""
    plan = plan_scan(snapshot, chunks=[chunk])
    return read_tasks(plan, table, row_ids=True)


def _bucket_rows(design: Design) -> int:
    return min(
        max(BUCKET_BLOCKS * design.block_rows, SMALLEST_BUCKET_ROWS), max(LARGEST_BUCKET_ROWS, design.block_rows)
    )


def _turns(fits: Sequence[ChunkFit], snapshot: Snapshot) -> list[list[ChunkFit]]:
    turns: list[list[ChunkFit]] = []
    rows = ROWS_MOVED_AT_ONCE
    for fit in fits:
        if rows >= ROWS_MOVED_AT_ONCE:
            turns.append([])
            rows = 0
        turns[-1].append(fit)
        rows += snapshot.facts(fit.chunk).rows
    return turns


def _rewrite_turn(
    fits: Sequence[ChunkFit],
    sources: dict[str, list[ReadTask]],
    scheme: Scheme,
    snapshot: Snapshot,
    design: Design,
    table: Location,
    executor: Executor,
    progress: Progress,
    notes: tuple[Note, ...],
) -> list[NewChunk]:
    routes = _routes(fits, scheme, design)
    parts = [
        part for of_chunk in routes.values() for route in of_chunk for part in (route.clustered, route.rest) if part
    ]
    parts.sort(key=lambda part: part.first_bucket)
    targets = [
        BlockTarget.of(
            table, part.chunk, snapshot.schema, scheme, layout=part.layout, part=part.part, tracked=design.tracked
        )
        for part in parts
    ]
    tally_bucket = parts[-1].first_bucket + parts[-1].buckets
    splits = [
        SplitTask(source, scheme.features, routes[fit.chunk], tally_bucket)
        for fit in fits
        for source in sources[fit.chunk]
    ]
    gathered = executor.shuffle(
        split,
        splits,
        Gather(tuple(parts), tuple(targets), design.block_rows, tally_bucket),
        buckets=tally_bucket + 1,
        stage="lay out",
        progress=progress,
    )
    return [_assemble(fit.chunk, gathered, scheme, snapshot, notes) for fit in fits]


def _routes(fits: Sequence[ChunkFit], scheme: Scheme, design: Design) -> dict[str, tuple[LayoutRoute, ...]]:
    routes: dict[str, tuple[LayoutRoute, ...]] = {}
    next_bucket = 0
    for fit in fits:
        of_chunk = []
        for number, layout in enumerate(scheme.layouts):
            fitted: LayoutFit = fit.layouts[number]
            rest_buckets = max(1, fitted.rest_rows // _bucket_rows(design))
            clustered, rest = parts_of(fit.chunk, scheme, number, fitted.plan.count, rest_buckets, next_bucket)
            of_chunk.append(
                LayoutRoute(layout, fitted.router, fitted.plan, clustered, rest, max(1, -(-fit.rows // rest_buckets)))
            )
            next_bucket += clustered.buckets + (rest.buckets if rest else 0)
        routes[fit.chunk] = tuple(of_chunk)
    return routes


def _assemble(
    chunk: str, gathered: Sequence[Gathered], scheme: Scheme, snapshot: Snapshot, notes: tuple[Note, ...]
) -> NewChunk:
    """Put together what the buckets of a chunk became, and check that it is what was read."""
    by_part: dict[tuple[int, int], list[Written]] = {}
    for one in gathered:
        if one.part is not None and one.written is not None and one.part.chunk == chunk:
            by_part.setdefault(one.part.key, []).append(one.written)
    written = {
        key: Written.merge(
            [Written(blocks, part.checksums) for blocks, part in zip(renumbered(parts), parts, strict=True)]
        )
        for key, parts in by_part.items()
    }
    tally = next(tally for one in gathered for tally in one.tallies if tally.chunk == chunk)
    facts = snapshot.facts(chunk)
    verify(tally, written, facts.checksums, {number: layout.masters for number, layout in enumerate(scheme.layouts)})
    blocks = Blocks.concat([written[key].blocks for key in sorted(written)]).sorted()
    return NewChunk(chunk, scheme, blocks, ChunkFacts(facts.rows, facts.checksums, facts.source, notes))
