"""`skipstone columns`: the order and the duplicates of the columns of a wide table."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Self

import typer
from rich.console import Console

from skipstone.cli.options import AsJson, StorageOption, storage_options
from skipstone.cli.progress import Bars
from skipstone.cli.rendering import grid, print_grid, print_json
from skipstone.errors import InvalidInput
from skipstone.layout.columns.duplicates import FoundDuplicates
from skipstone.layout.columns.duplication import BEST_DUPLICATION, DUPLICATIONS
from skipstone.layout.columns.files import read_sizes, require_writable, write_sizes
from skipstone.layout.columns.orders import BEST_ORDER, ORDERS
from skipstone.layout.columns.proposing import layout_cost, propose_duplicates, propose_order
from skipstone.layout.columns.reading import ReadColumns, read_workload
from skipstone.layout.columns.redirect import Redirector
from skipstone.layout.columns.search import DEFAULT_SECONDS, Effort, FoundOrder, Progress
from skipstone.layout.columns.seek import seek_profile
from skipstone.layout.columns.values import ColumnSizes
from skipstone.store.chunk_sizes import chunk_sizes
from skipstone.store.reordering import apply_order
from skipstone.store.seek_evaluator import REPEATS, SCRATCH_BYTES, evaluate_seeks

__all__ = ["columns"]

columns = typer.Typer(add_completion=False, help="Order and duplicate the columns of a wide table.")

PROBLEMS_SHOWN = 5
SECONDS_BETWEEN_LINES = 2.0

Sizes = Annotated[
    Path,
    typer.Option("--schema", metavar="FILE", help="Columns: name, type, mean chunk bytes, with tabs between them."),
]
WorkloadFile = Annotated[
    Path,
    typer.Option(
        "--workload",
        "-w",
        metavar="FILE",
        help="Queries: id, weight, columns with commas; or SQL files, JSON lines, a directory of them.",
    ),
]
TableName = Annotated[
    str | None, typer.Option("--table", metavar="NAME", help="What SQL calls the table, if it reads several.")
]
Dialect = Annotated[str, typer.Option(metavar="D", help="The dialect of SQL queries.")]
Seek = Annotated[
    str,
    typer.Option(
        metavar="PROFILE",
        help="What a gap costs: power, linear, object-store[:latency=MS,throughput=MB/S,gap=BYTES], or a file.",
    ),
]
Seconds = Annotated[
    float | None, typer.Option(metavar="S", help=f"Search for so long; {DEFAULT_SECONDS:g} where --moves is not given.")
]
Moves = Annotated[
    int | None, typer.Option(metavar="N", help="Search until at least so many moves, which gives one answer each time.")
]
Seed = Annotated[int, typer.Option(metavar="N", help="Where random numbers begin.")]


@columns.callback()
def about() -> None:
    """Order and duplicate the columns of a wide table, so that queries read few, long ranges."""


@columns.command()
def sizes(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A directory of Parquet files, or one of them.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file of sizes to write.")],
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Write the name, the type and the mean chunk bytes of every column, from the footers."""
    found = chunk_sizes(path, storage_options=storage_options(storage_option))
    write_sizes(found, out)
    if as_json:
        print_json({"columns": len(found.columns), "row_group_bytes": found.total_bytes, "out": str(out)})
    else:
        typer.echo(f"{out}: {len(found.columns):,} columns, {found.total_bytes:,.0f} bytes in a row group")


@columns.command()
def order(
    schema: Sizes,
    workload: WorkloadFile,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The ordered columns, in the form of --schema.")],
    seek: Seek = "power",
    algorithm: Annotated[str, typer.Option(metavar="A", help=f"One of {', '.join(ORDERS)}.")] = BEST_ORDER,
    seconds: Seconds = None,
    moves: Moves = None,
    seed: Seed = 0,
    table: TableName = None,
    dialect: Dialect = "spark",
    as_json: AsJson = False,
) -> None:
    """Find an order in which the queries seek little. Ctrl-C ends the search with the best found so far."""
    require_writable(out)
    profile = seek_profile(seek)
    table_sizes = read_sizes(schema)
    read = _read(workload, table_sizes, table, dialect, quiet=as_json)
    with _BestSoFar(quiet=as_json) as best:
        effort = Effort(seconds, moves, progress=best)
        ordered, found = propose_order(table_sizes, read.queries, profile, effort, algorithm=algorithm, seed=seed)
    write_sizes(ordered, out)
    if as_json:
        print_json(_plain(found, read, profile.name, out))
    else:
        _print_found(found, out)


@columns.command()
def duplicate(
    schema: Sizes,
    workload: WorkloadFile,
    headroom: Annotated[
        float, typer.Option(metavar="SHARE", help="Bytes for duplicates, as a share of the table: 0.05 is 5 percent.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Columns as they are to be stored; a fourth field names the source.")
    ],
    seek: Seek = "power",
    algorithm: Annotated[str, typer.Option(metavar="A", help=f"One of {', '.join(DUPLICATIONS)}.")] = BEST_DUPLICATION,
    seconds: Seconds = None,
    moves: Moves = None,
    seed: Seed = 0,
    table: TableName = None,
    dialect: Dialect = "spark",
    as_json: AsJson = False,
) -> None:
    """Find columns to store more than once, beginning with the order of --schema; its own duplicates are left out."""
    require_writable(out)
    profile = seek_profile(seek)
    table_sizes = read_sizes(schema)
    read = _read(workload, table_sizes, table, dialect, quiet=as_json)
    with _BestSoFar(quiet=as_json) as best:
        effort = Effort(seconds, moves, progress=best)
        wider, found = propose_duplicates(
            table_sizes, read.queries, headroom, profile, effort, algorithm=algorithm, seed=seed
        )
    write_sizes(wider, out)
    if as_json:
        own = {
            "headroom_bytes": found.headroom_bytes,
            "duplicate_bytes": found.duplicate_bytes,
            "duplicates": len(wider.layout.duplicates),
        }
        print_json(_plain(found, read, profile.name, out) | own)
    else:
        _print_found(found, out)
        typer.echo(
            f"{len(wider.layout.duplicates):,} duplicates of {found.duplicate_bytes:,.0f} bytes; "
            f"the headroom is {found.headroom_bytes:,.0f}"
        )


@columns.command()
def redirect(
    layout: Annotated[Path, typer.Option(metavar="FILE", help="Columns as they are stored, duplicates included.")],
    workload: WorkloadFile,
    asked: Annotated[str, typer.Option("--columns", metavar="A,B,...", help="What a query reads.")],
    seek: Seek = "power",
    table: TableName = None,
    dialect: Dialect = "spark",
    as_json: AsJson = False,
) -> None:
    """Say which of the stored columns a query should read, by what the queries of the workload read."""
    stored = read_sizes(layout)
    read = _read(workload, stored, table, dialect, quiet=as_json)
    redirector = Redirector(stored, read.queries, seek_profile(seek), lazily=True)
    found = redirector.redirect(_names(asked))
    if as_json:
        reads = [{"name": column.name, "column": column.logical} for column in found.reads]
        print_json({"reads": reads, "by": found.by.value})
    else:
        for column in found.reads:
            typer.echo(column.name if column.source is None else f"{column.name}\t{column.source}")


@columns.command()
def cost(
    schema: Sizes,
    workload: WorkloadFile,
    seek: Seek = "power",
    table: TableName = None,
    dialect: Dialect = "spark",
    as_json: AsJson = False,
) -> None:
    """Price a workload over columns stored as they are: the weighted cost of its seeks in one row group."""
    profile = seek_profile(seek)
    stored = read_sizes(schema)
    read = _read(workload, stored, table, dialect, quiet=as_json)
    found = layout_cost(stored, read.queries, profile)
    weight = sum(query.weight for query in read.queries)
    if as_json:
        print_json({"cost": found, "seek": profile.name, **_about(read, stored), "weight": weight})
    else:
        typer.echo(f"{found:,.1f} ms by the profile {profile.name}, {found / weight:,.3f} ms a query in one row group")


@columns.command("seek")
def measure_seek(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A file, or a directory to write a scratch file to; a path or a URI.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The profile: bytes, a tab, milliseconds.")],
    scratch_bytes: Annotated[int, typer.Option(metavar="N", help="Size of the scratch file.", min=1)] = SCRATCH_BYTES,
    repeats: Annotated[int, typer.Option(metavar="N", help="Seeks at each distance.", min=1)] = REPEATS,
    seed: Seed = 0,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Measure what a gap between two reads costs on a disk or an object store, and write it as a seek profile."""
    with Bars(quiet=as_json) as bars:
        begun = False

        def show(done: int, total: int) -> None:
            nonlocal begun
            if not begun:
                bars.start("seeks", total)
                begun = True
            bars.advance(1)

        profile = evaluate_seeks(
            path,
            scratch_bytes=scratch_bytes,
            repeats=repeats,
            seed=seed,
            storage_options=storage_options(storage_option),
            progress=show,
        )
    profile.write(out)
    if as_json:
        print_json({"points": profile.points, "out": str(out)})
    else:
        table = grid("gap", "ms", numbers=("gap", "ms"))
        print_grid(table, ((f"{distance:,.0f}", f"{cost:.3f}") for distance, cost in profile.points))
        typer.echo(f"written: {out}")


@columns.command("apply")
def apply_layout(
    source: Annotated[str, typer.Argument(metavar="PARQUET_DIR", help="Parquet files that are no table of ours.")],
    layout: Annotated[Path, typer.Option(metavar="FILE", help="Columns as they are to be stored.")],
    out: Annotated[str, typer.Option(metavar="DIR", help="A new directory for the files.")],
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Store Parquet files again in a layout, row group by row group, verified, without making a table of them."""
    stored = read_sizes(layout).layout
    with Bars(quiet=as_json) as bars:
        done_before = 0

        def show(done: int, total: int) -> None:
            nonlocal done_before
            if not done_before:
                bars.start("row groups", total)
            bars.advance(done - done_before)
            done_before = done

        done = apply_order(source, stored, out, storage_options=storage_options(storage_option), progress=show)
    if as_json:
        print_json(
            {
                "files": done.files,
                "row_groups": done.row_groups,
                "rows": done.rows,
                "bytes_read": done.bytes_read,
                "bytes_written": done.bytes_written,
                "columns": len(stored.stored),
                "duplicates": len(stored.duplicates),
                "out": out,
            }
        )
    else:
        typer.echo(
            f"{out}: {done.files:,} files, {done.row_groups:,} row groups, {done.rows:,} rows, "
            f"{done.bytes_written:,} bytes ({done.bytes_read:,} before)"
        )


class _BestSoFar:
    """Shows the best cost so far on standard error: in one line of a terminal, else now and then for those who ask."""

    def __init__(self, *, quiet: bool) -> None:
        console = Console(stderr=True)
        shown = console.is_terminal and not quiet
        self._status = console.status("preparing; the first search of all compiles for a while") if shown else None
        self._logger = logging.getLogger(__name__)
        self._last = 0.0

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, progress: Progress) -> None:
        """Take what a search tells, some dozen times a second."""
        now = time.monotonic()
        if now - self._last < (0.1 if self._status is not None else SECONDS_BETWEEN_LINES):
            return
        self._last = now
        text = f"{progress.seconds:,.0f} s, {progress.moves:,} moves, best cost {progress.best_cost:,.1f} ms"
        if self._status is not None:
            self._status.update(f"{text}; Ctrl-C takes it")
        else:
            self._logger.info("%s", text)


def _read(path: Path, table_sizes: ColumnSizes, table: str | None, dialect: str, *, quiet: bool) -> ReadColumns:
    read = read_workload(path, table_sizes, table=table, dialect=dialect)
    if read.problems and not quiet:
        typer.echo(f"{len(read.problems):,} statements were not understood and do not count:", err=True)
        for problem in read.problems[:PROBLEMS_SHOWN]:
            typer.echo(f"  {problem}", err=True)
        if len(read.problems) > PROBLEMS_SHOWN:
            typer.echo(f"  ... and {len(read.problems) - PROBLEMS_SHOWN:,} more; --json lists them", err=True)
    return read


def _names(asked: str) -> list[str]:
    names = [name.strip() for name in asked.split(",")]
    if "" in names:
        raise InvalidInput(f'--columns takes names with single commas between them; in "{asked}" one is empty')
    return names


def _about(read: ReadColumns, stored: ColumnSizes) -> dict[str, Any]:
    return {
        "queries": len(read.queries),
        "column_sets": len({frozenset(query.columns) for query in read.queries}),
        "columns": len(stored.originals),
        "duplicates": len(stored.layout.duplicates),
        "problems": [str(problem) for problem in read.problems],
    }


def _plain(found: FoundOrder | FoundDuplicates, read: ReadColumns, seek: str, out: Path) -> dict[str, Any]:
    return {
        "algorithm": found.algorithm,
        "seed": found.seed,
        "seek": seek,
        "initial_cost": found.initial_cost,
        "final_cost": found.final_cost,
        "moves": found.moves,
        "seconds": found.seconds,
        "stopped": found.stopped,
        "queries": len(read.queries),
        "problems": [str(problem) for problem in read.problems],
        "trace": [
            {"seconds": point.seconds, "moves": point.moves, "best_cost": point.best_cost} for point in found.trace
        ],
        "out": str(out),
    }


def _print_found(found: FoundOrder | FoundDuplicates, out: Path) -> None:
    saved = 1 - found.final_cost / found.initial_cost if found.initial_cost else 0.0
    typer.echo(
        f"{out}: {found.initial_cost:,.1f} ms before, {found.final_cost:,.1f} ms now ({100 * saved:.1f} % less); "
        f"{found.algorithm}, seed {found.seed}, {found.moves:,} moves in {found.seconds:.1f} s"
        + (", stopped" if found.stopped else "")
    )
