"""Advice on the order of columns: what it would save on queries that it was not made for, and whether that pays.

It goes with the advice on rows, from the same workload: what is advised there gets an order; where the rows stay as
they are, every chunk keeps its scheme and gets an order alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from skipstone.catalog.values import Snapshot
from skipstone.layout.scheme import Scheme
from skipstone.relayout.advising import SMALLEST_GAIN, Advice, Wishes, bytes_per_row, held_out, judged_on
from skipstone.relayout.column_design import (
    WORTH_REORDERING,
    ColumnForecast,
    ColumnWishes,
    arranged,
    column_cost,
    drifts,
    duplicate_share,
    mean_chunk_bytes,
)
from skipstone.relayout.rewriting import Design
from skipstone.relayout.tracking import tracked_expressions
from skipstone.workload.query import Query

__all__ = ["advise_columns"]


def advise_columns(
    advice: Advice, snapshot: Snapshot, queries: Sequence[Query], wishes: Wishes, columns: ColumnWishes
) -> Advice:
    """Order the columns of what is advised or, where the rows stay as they are, of every scheme that there is.

    An order is judged as rows are: made for some queries, it is priced on others; the one that is advised is made for
    all.
    """
    training, judging = held_out(queries)
    targets = _column_targets(advice, snapshot, queries, wishes)
    rows = sum(target.rows for target in targets)

    def cost(schemes: Sequence[Scheme]) -> float:
        return sum(
            target.rows / rows * column_cost(scheme, judging, target.chunk_bytes, columns.profile)
            for target, scheme in zip(targets, schemes, strict=True)
        )

    now = cost([target.design.scheme for target in targets])
    then = cost([arranged(target.design.scheme, training, target.chunk_bytes, columns) for target in targets])
    drift = max((one.ratio for one in drifts(snapshot, queries)), default=None)
    # An order that does not serve any more is worth replacing as soon as that undoes the loss.
    least_gain = SMALLEST_GAIN if drift is None or drift <= WORTH_REORDERING else 1 - 1 / WORTH_REORDERING
    advised = now > 0 and 1 - then / now >= least_gain
    made = [
        arranged(target.design.scheme, queries, target.chunk_bytes, columns) if advised else target.design.scheme
        for target in targets
    ]
    forecast = ColumnForecast(
        columns.profile.name,
        now,
        then,
        sum(len(layout.duplicates) for scheme in made for layout in scheme.layouts),
        max(duplicate_share(scheme, target.chunk_bytes) for scheme, target in zip(made, targets, strict=True)),
        advised,
        drift,
    )
    advice = replace(
        advice, columns=forecast, reasons=(*advice.reasons, *_column_reasons(forecast, judged_on(queries, judging)))
    )
    if not advised:
        return advice
    designs = [
        replace(target.design, scheme=scheme, profile=columns.profile)
        for target, scheme in zip(targets, made, strict=True)
    ]
    if advice.design is not None:
        return replace(advice, design=designs[0])
    by_scheme = tuple((target.scheme, design) for target, design in zip(targets, designs, strict=True))
    return replace(advice, design=replace(designs[0], by_scheme=by_scheme))


@dataclass(frozen=True, slots=True, eq=False)
class _ColumnTarget:
    """A design whose columns can be ordered, for the chunks of a scheme (all where that is empty)."""

    scheme: str
    design: Design
    rows: int
    chunk_bytes: dict[str, float]


def _column_targets(
    advice: Advice, snapshot: Snapshot, queries: Sequence[Query], wishes: Wishes
) -> list[_ColumnTarget]:
    if advice.design is not None:
        sizes = {name: size * wishes.block_rows for name, size in bytes_per_row(snapshot).items()}
        return [_ColumnTarget("", advice.design, advice.rows, sizes)]
    targets: dict[str, _ColumnTarget] = {}
    tracked = tracked_expressions(snapshot.schema, [query.filter for query in queries])
    for blocks in snapshot.block_sets:
        scheme = snapshot.scheme(blocks.scheme)
        rows = sum(snapshot.facts(chunk).rows for chunk in blocks.chunks)
        # Blocks of a layout have from one to two times as many rows as it is asked for.
        block_rows = max(1, int(blocks.rows.mean())) if len(blocks) else wishes.block_rows
        design = Design(scheme, tuple(queries), block_rows, tracked, wishes.sample_rows, wishes.seed)
        targets.setdefault(blocks.scheme, _ColumnTarget(blocks.scheme, design, rows, mean_chunk_bytes(blocks, scheme)))
    # The largest first: chunks of a scheme that is not here yet are given its design.
    return sorted(targets.values(), key=lambda target: (-target.rows, target.scheme))


def _column_reasons(found: ColumnForecast, judges: str) -> list[str]:
    reasons = []
    if found.drift is not None and found.drift > WORTH_REORDERING:
        reasons.append(
            f"columns: this workload seeks {found.drift:.2f} times as long as the one that the order was made for, "
            f"which is past {WORTH_REORDERING}: re-order"
        )
    share = f"{100 * (1 - found.then / found.now):.0f} %" if found.now > found.then else "nothing"
    cost = (
        f"columns: by the profile {found.profile}, an order made for this workload seeks {found.then:.1f} ms "
        f"a row group where the present one seeks {found.now:.1f}"
    )
    if found.advised:
        more = f", with {found.duplicates} duplicates ({100 * found.duplicate_share:.1f} % more bytes)"
        return [*reasons, f"{cost}{more if found.duplicates else ''}, {judges}"]
    return [*reasons, f"{cost}: {share} is saved, which is not worth the rewrite"]
