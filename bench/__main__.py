"""The command line of the benchmarks: list, run, compare, demo, results."""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table as TerminalTable

from bench.compare import Verdict, compare
from bench.experiment import all_experiments, experiment_named, run
from bench.place import ROOT, cache_root
from bench.render import cell, print_report, results_page, write_report
from bench.report import read_report

REMARKS = ROOT / "bench" / "remarks.toml"
DEMO_SCALE = 0.3
RESULTS = ROOT / "bench" / "RESULTS.md"


def main(arguments: Sequence[str] | None = None, console: Console | None = None) -> int:
    """Run one command and return its exit code: 0, 1 for a regression, 2 for a wrong request."""
    console = console or Console()
    asked = _parser().parse_args(arguments)
    try:
        return int(asked.command(asked, console))
    except (LookupError, ValueError) as problem:
        console.print(str(problem.args[0] if problem.args else problem), style="red", markup=False, highlight=False)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    listing = commands.add_parser("list", help="name all experiments with their expected duration")
    listing.set_defaults(command=_list)

    running = commands.add_parser("run", help="run one experiment and write its report")
    running.add_argument("name", metavar="NAME")
    running.add_argument("--scale", type=float, help="scale factor; each experiment has its own default")
    running.add_argument("--seed", type=int, default=1)
    running.add_argument("--out", type=Path, help="directory for the report; default .bench/reports/NAME")
    running.add_argument("--smoke", action="store_true", help="a run of seconds that only shows that it works")
    running.set_defaults(command=_run)

    comparing = commands.add_parser("compare", help="show what changed between two reports of one experiment")
    comparing.add_argument("before", type=Path, metavar="A.json")
    comparing.add_argument("after", type=Path, metavar="B.json")
    comparing.set_defaults(command=_compare)

    showing = commands.add_parser("demo", help="generate TPC-H, lay it out, show what queries read before and after")
    showing.add_argument("--scale", type=float, default=DEMO_SCALE, help=f"scale factor, {DEMO_SCALE:g} by default")
    showing.add_argument("--seed", type=int, default=1)
    showing.set_defaults(command=_demo)

    collecting = commands.add_parser("results", help="write RESULTS.md from the reports in directories")
    collecting.add_argument("directories", type=Path, nargs="+", metavar="DIR")
    collecting.add_argument("--to", type=Path, default=RESULTS, help="the page to write")
    collecting.set_defaults(command=_results)
    return parser


def _list(asked: argparse.Namespace, console: Console) -> int:
    shown = TerminalTable(header_style="bold")
    for head in ("experiment", "what it shows", "paper", "scale", "minutes"):
        shown.add_column(
            head, no_wrap=head == "experiment", justify="right" if head in ("scale", "minutes") else "left"
        )
    for experiment in all_experiments():
        shown.add_row(
            experiment.name,
            experiment.sentence,
            experiment.paper,
            f"{experiment.scale:g}",
            f"{experiment.minutes:g}",
        )
    console.print(shown)
    return 0


def _run(asked: argparse.Namespace, console: Console) -> int:
    experiment = experiment_named(asked.name)
    scale = asked.scale if asked.scale is not None else experiment.smoke_scale if asked.smoke else experiment.scale
    if scale <= 0:
        raise ValueError(f"--scale must be above zero, not {scale:g}")
    out = asked.out or cache_root() / "reports" / experiment.name
    report = run(experiment, scale=scale, seed=asked.seed, out=out, smoke=asked.smoke)
    written = write_report(report, out)
    print_report(report, console)
    console.print(f"written: {written}", style="dim", soft_wrap=True, highlight=False)
    return 0


def _demo(asked: argparse.Namespace, console: Console) -> int:
    # The demonstration needs Spark, which the other commands should not have to load.
    from bench.demo import demonstrate

    if asked.scale <= 0:
        raise ValueError(f"--scale must be above zero, not {asked.scale:g}")
    demonstrate(asked.scale, asked.seed, console)
    return 0


def _compare(asked: argparse.Namespace, console: Console) -> int:
    changes = compare(read_report(asked.before), read_report(asked.after))
    if not changes:
        console.print("nothing changed")
        return 0
    shown = TerminalTable(header_style="bold")
    for head in ("table", "what", "measure", "before", "after", "ratio", "verdict"):
        shown.add_column(head, justify="right" if head in ("before", "after", "ratio") else "left")
    colours = {Verdict.WORSE: "red", Verdict.MISSING: "red", Verdict.CHANGED: "yellow", Verdict.BETTER: "green"}
    for change in changes:
        shown.add_row(
            change.table,
            " ".join(change.labels),
            change.measure,
            cell(change.before, change.measure),
            cell(change.after, change.measure),
            "" if change.ratio is None else f"{change.ratio:.2f}",
            change.verdict.value,
            style=colours.get(change.verdict, ""),
        )
    console.print(shown)
    regressions = sum(change.verdict.is_regression for change in changes)
    console.print(f"{len(changes)} differences, {regressions} to look at")
    return 1 if regressions else 0


def _results(asked: argparse.Namespace, console: Console) -> int:
    files = [file for directory in asked.directories for file in sorted(directory.rglob("*.json"))]
    reports = [read_report(file) for file in files]
    if not reports:
        raise ValueError(f"no reports in {', '.join(map(str, asked.directories))}: run an experiment with --out first")
    smoke = [report.experiment for report in reports if report.smoke]
    if smoke:
        raise ValueError(f"smoke runs are not results: {', '.join(sorted(smoke))}")
    remarks = tomllib.loads(REMARKS.read_text()) if REMARKS.exists() else {}
    asked.to.write_text(results_page(reports, remarks))
    console.print(f"{len(reports)} reports written to {asked.to}", soft_wrap=True, highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
