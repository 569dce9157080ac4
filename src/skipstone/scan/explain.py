"""Say what a plan reads, what it skips and by which mechanism, and why something was not skipped: as values.

The numbers are those of the plan itself, so what `explain` says is what a reader then does. `text` renders them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skipstone.errors import listed
from skipstone.predicate.literal import ALWAYS, Conjunction
from skipstone.predicate.printing import sql
from skipstone.scan.path import Path
from skipstone.scan.plan import BlockSetPlan, Counts, ScanPlan

__all__ = ["ChunkReport", "LayoutReport", "ScanReport", "report", "text"]

CHUNKS_IN_TEXT = 12


@dataclass(frozen=True, slots=True)
class LayoutReport:
    """What is read from one layout of a chunk."""

    layout: int
    columns: tuple[str, ...]
    blocks: int
    blocks_read: int
    rows_read: int
    duplicates: tuple[str, ...] = ()
    """Those of the columns of which a duplicate is read, because it is stored closer to the others."""
    cells: int = 0
    row_ids: int = 0


@dataclass(frozen=True, slots=True)
class ChunkReport:
    """What is read of one chunk, and which mechanism ruled out what of it.

    A block counts as skipped by features where they rule it out, and as skipped by bounds where only those do.
    `skipped_whole` are blocks beyond that: of layouts that are not on the path, or of a chunk that has no match at all.
    The rows are those of the blocks; a row that several layouts hold is there several times.
    """

    chunk: str
    scheme: str
    blocks: int
    skipped_by_features: int
    skipped_by_bounds: int
    skipped_whole: int
    rows_skipped_by_features: int
    rows_skipped_by_bounds: int
    rows_skipped_whole: int
    read: Counts
    plain: Counts
    path: tuple[LayoutReport, ...]


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What one request reads of a table.

    `query_vector` has a 0 for each feature of the scheme that subsumes the filter, as in the papers; one entry per
    scheme. `plain` is what a reader without any skipping reads of one copy of the table.
    """

    table: str
    version: int
    columns: tuple[str, ...]
    filter: str
    subsuming: tuple[str, ...]
    query_vectors: tuple[tuple[str, str], ...]
    read: Counts
    plain: Counts
    chunks: tuple[ChunkReport, ...]
    reasons: tuple[str, ...]
    alias: str = ""
    """The name by which the query knows this mention of the table, where it is another one."""


def report(plan: ScanPlan, *, table: str, alias: str = "", unknown: Sequence[str] = ()) -> ScanReport:
    """Describe a plan; `unknown` are parts of the query that could not be used, from whoever read it."""
    chunks = tuple(
        _chunk_report(plan, part, position) for part in plan.parts for position in range(len(part.blocks.chunks))
    )
    subsuming = dict.fromkeys(part.scheme.features[number] for part in plan.parts for number in part.subsuming)
    return ScanReport(
        table,
        plan.snapshot.version,
        plan.columns,
        "" if plan.filter == ALWAYS else sql(plan.filter),
        tuple(sql(feature) for feature in subsuming),
        tuple((part.blocks.scheme, _query_vector(part)) for part in plan.parts if part.scheme.features),
        plan.counts(),
        sum((chunk.plain for chunk in chunks), Counts()),
        tuple(sorted(chunks, key=lambda chunk: chunk.chunk)),
        tuple(_reasons(plan, unknown)),
        "" if alias == table else alias,
    )


def _query_vector(part: BlockSetPlan) -> str:
    return "".join("0" if number in part.subsuming else "1" for number in range(len(part.scheme.features)))


def _chunk_report(plan: ScanPlan, part: BlockSetPlan, position: int) -> ChunkReport:
    blocks = part.blocks
    span = slice(int(blocks.offsets[position]), int(blocks.offsets[position + 1]))
    by_features, by_bounds, read = part.by_features[span], part.by_bounds[span], part.read[span]
    masks = (~by_features, by_features & ~by_bounds, by_features & by_bounds & ~read)
    by_feature, by_bound, whole = (int(mask.sum()) for mask in masks)
    rows_by_feature, rows_by_bound, rows_whole = (int(blocks.rows[span][mask].sum()) for mask in masks)
    total = span.stop - span.start
    return ChunkReport(
        blocks.chunks[position],
        blocks.scheme,
        total,
        by_feature,
        by_bound,
        whole,
        rows_by_feature,
        rows_by_bound,
        rows_whole,
        part.chunk_counts(position),
        _plain(plan, part, span),
        _path_report(part, part.paths[position], span),
    )


def _plain(plan: ScanPlan, part: BlockSetPlan, span: slice) -> Counts:
    """What reading the columns of all rows costs where every column is read from its master."""
    layouts = part.blocks.layout[span]
    rows = part.blocks.rows[span]
    home = {column: number for number, layout in enumerate(part.scheme.layouts) for column in layout.masters}
    columns = plan.read_columns
    some = home[columns[0]]
    row_count = int(rows[layouts == some].sum())
    stored = sum(
        int(np.maximum(part.blocks.column_bytes(column)[span], 0)[layouts == home[column]].sum()) for column in columns
    )
    return Counts(int((layouts == some).sum()), row_count, row_count * len(columns), 0, stored)


def _path_report(part: BlockSetPlan, path: Path, span: slice) -> tuple[LayoutReport, ...]:
    layouts, rows, read = part.blocks.layout[span], part.blocks.rows[span], part.read[span]
    reports = []
    for number in sorted(set(path.values())):
        columns = tuple(column for column, home in path.items() if home == number)
        stored = part.stored(number, columns)
        rows_read = int(rows[read & (layouts == number)].sum())
        reports.append(
            LayoutReport(
                number,
                columns,
                int((layouts == number).sum()),
                int((read & (layouts == number)).sum()),
                rows_read,
                tuple(column for column in columns if stored[column] != column),
                rows_read * len(columns),
                rows_read if len(set(path.values())) > 1 else 0,
            )
        )
    return tuple(reports)


def _reasons(plan: ScanPlan, unknown: Sequence[str]) -> list[str]:
    """Why not more was skipped, in sentences."""
    reasons = list(unknown)
    if plan.filter == ALWAYS:
        reasons.append("the query has no filter on this table that holds for all rows it uses")
        return reasons
    if not plan.skipping.features:
        reasons.append("skipping by features is switched off")
    if not plan.skipping.bounds:
        reasons.append("skipping by bounds is switched off")
    raw = sum(len(part.blocks.chunks) for part in plan.parts if not part.scheme.features)
    if raw:
        reasons.append(f"{raw} chunks are raw: not laid out for any workload yet")
    laid_out = [part for part in plan.parts if part.scheme.features]
    if plan.skipping.features and laid_out and not any(part.subsuming for part in laid_out):
        reasons.append("no feature of the layout subsumes the filter")
    reasons.extend(_untracked(plan.filter, plan.parts))
    return reasons


def _untracked(condition: Conjunction, parts: Sequence[BlockSetPlan]) -> list[str]:
    tracked = {text for part in parts for text in part.blocks.tracked}
    names = sorted(name for name in condition.columns if not any(name in text for text in tracked))
    return [f"no bounds are kept of {name}" for name in names]


def text(found: ScanReport) -> str:
    """Render a report for a terminal."""
    lines = [
        f"table {found.table}{f' AS {found.alias}' if found.alias else ''}, version {found.version}",
        f"  filter    {found.filter or 'none'}",
        f"  columns   {', '.join(found.columns) or 'none'}",
    ]
    lines += [f"  feature   {feature}" for feature in found.subsuming]
    lines += [f"  vector    {vector}  in scheme {scheme[:8]}" for scheme, vector in found.query_vectors]
    lines += [
        f"  {name:<9} {of_read:>15,} of {of_plain:,} ({_share(of_read, of_plain)})"
        for name, of_read, of_plain in (
            ("blocks", found.read.blocks, sum(chunk.blocks for chunk in found.chunks)),
            ("rows", found.read.rows, found.plain.rows),
            ("cells", found.read.cells, found.plain.cells),
            ("bytes", found.read.bytes, found.plain.bytes),
        )
    ]
    if found.read.row_ids:
        lines.append(f"  row ids   {found.read.row_ids:>15,}")
    lines += _skipped_lines(found)
    lines += _chunk_lines(found)
    lines += [f"  note: {reason}" for reason in found.reasons]
    return "\n".join(lines)


def _skipped_lines(found: ScanReport) -> list[str]:
    """How much each mechanism skips, over all chunks."""
    mechanisms = (
        ("features", "skipped_by_features", "rows_skipped_by_features"),
        ("bounds", "skipped_by_bounds", "rows_skipped_by_bounds"),
        ("path", "skipped_whole", "rows_skipped_whole"),
    )
    totals = [
        (name, *(sum(getattr(chunk, fact) for chunk in found.chunks) for fact in (blocks, rows)))
        for name, blocks, rows in mechanisms
    ]
    return [f"  skipped   {blocks:>15,} blocks of {rows:,} rows by {name}" for name, blocks, rows in totals if blocks]


def _chunk_lines(found: ScanReport) -> list[str]:
    lines = []
    for chunk in found.chunks[:CHUNKS_IN_TEXT]:
        lines.append(
            f"  chunk {chunk.chunk}: {chunk.read.blocks:,} of {chunk.blocks:,} blocks, {chunk.read.rows:,} rows read; "
            f"skipped {chunk.skipped_by_features:,} by features, {chunk.skipped_by_bounds:,} by bounds"
            + (f", {chunk.skipped_whole:,} off the path" if chunk.skipped_whole else "")
        )
        if len(chunk.path) > 1 or any(one.blocks < chunk.blocks for one in chunk.path):
            lines += [
                f"    layout {one.layout}: {one.blocks_read:,} of {one.blocks:,} blocks, {one.rows_read:,} rows, "
                + f"{one.cells:,} cells{f', {one.row_ids:,} row ids' if one.row_ids else ''}, "
                + f"for {', '.join(one.columns)}"
                for one in chunk.path
            ]
        duplicates = [column for one in chunk.path for column in one.duplicates]
        if duplicates and chunk.read.blocks:
            lines.append(f"    duplicates are read of {listed(duplicates)}: they lie closer to the other columns")
    if len(found.chunks) > CHUNKS_IN_TEXT:
        lines.append(f"  ... and {len(found.chunks) - CHUNKS_IN_TEXT:,} more chunks")
    return lines


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "nothing to read"
