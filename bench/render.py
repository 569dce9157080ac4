"""A report for people: tables in a terminal, and Markdown with plots."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as TerminalTable

from bench.report import MEASURES, Claim, Figure, Report, Table, to_json

_SIZES = ("B", "kB", "MB", "GB", "TB")


def cell(value: float | None, measure: str) -> str:
    """Write a measured value in its unit.

    >>> [cell(0.0712, "rows_share"), cell(1234567, "rows_read"), cell(2.5e6, "bytes_read"), cell(None, "seconds")]
    ['7.1 %', '1,234,567', '2.5 MB', '']
    """
    if value is None:
        return ""
    if math.isinf(value):
        return "never" if measure == "break_even_runs" else "∞"
    unit = MEASURES[measure].unit
    if unit == "share":
        return f"{value:.2%}".replace("%", " %") if value < 0.01 else f"{value:.1%}".replace("%", " %")
    if unit == "bytes":
        return _size(value)
    if unit == "seconds":
        return f"{value:.3f} s" if value < 10 else f"{value:,.1f} s"
    if unit == "milliseconds":
        return f"{value:,.1f} ms"
    if unit == "ratio":
        return f"{value:,.2f}"
    return f"{value:,.0f}"


def print_report(report: Report, console: Console) -> None:
    """Print the tables and claims of a report."""
    console.print(f"[bold]{report.experiment}[/bold]  {report.sentence}")
    console.print(_circumstances(report), style="dim")
    for table in report.tables:
        shown = TerminalTable(title=table.title, title_justify="left", header_style="bold")
        for label in table.labels:
            shown.add_column(label)
        for measure in table.measures:
            shown.add_column(MEASURES[measure].title, justify="right")
        for line in table.lines:
            shown.add_row(*line.labels, *map(cell, line.values, table.measures))
        console.print(shown)
    for claim in report.claims:
        colour = "green" if claim.holds else "red"
        console.print(f"[{colour}]{'holds' if claim.holds else 'falls short'}[/{colour}]  {claim_text(claim)}")
    for note in report.notes:
        console.print(f"note  {note}", style="dim")


def write_report(report: Report, out: Path) -> Path:
    """Write `<experiment>.json`, `<experiment>.md` and a PNG for each figure into `out`; return the JSON file."""
    out.mkdir(parents=True, exist_ok=True)
    plots = {}
    for figure in report.figures:
        plots[figure.name] = out / f"{report.experiment}-{figure.name}.png"
        draw(figure, plots[figure.name])
    (out / f"{report.experiment}.md").write_text(markdown(report, {name: file.name for name, file in plots.items()}))
    written = out / f"{report.experiment}.json"
    written.write_text(to_json(report) + "\n")
    return written


def markdown(report: Report, plots: Mapping[str, str] | None = None, remarks: Mapping[str, str] | None = None) -> str:
    """Return a report as Markdown; `plots` maps figure names to image files, `remarks` claim names to a sentence."""
    parts = [f"# {report.experiment}", report.sentence, _circumstances(report)]
    if report.settings:
        parts.append("\n".join(f"- {name}: {value}" for name, value in report.settings))
    for table in report.tables:
        parts += [f"**{table.title}**", markdown_table(table)]
    for figure in report.figures:
        if plots and figure.name in plots:
            parts.append(f"![{figure.title}]({plots[figure.name]})")
            if figure.paper:
                parts.append(f"Beside it in the paper: {figure.paper}")
    if report.claims:
        parts.append("\n".join(_claim_line(claim, (remarks or {}).get(claim.name, "")) for claim in report.claims))
    if report.notes:
        parts.append("\n".join(f"- {note}" for note in report.notes))
    if report.machine:
        parts.append("Machine: " + ", ".join(f"{name} {value}" for name, value in report.machine) + ".")
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    """Return a table as Markdown, numbers to the right."""
    heads = [*table.labels, *(MEASURES[measure].title for measure in table.measures)]
    rule = ["---"] * len(table.labels) + ["---:"] * len(table.measures)
    rows = [[*line.labels, *map(cell, line.values, table.measures)] for line in table.lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, rule, *rows])


def claim_text(claim: Claim) -> str:
    """Return a claim with what was measured and what was wanted.

    >>> claim_text(Claim("scan", "share of rows read", 0.065, at_most=0.07))
    'share of rows read: 0.065 (at most 0.07)'
    """
    limits = [f"at most {claim.at_most:g}"] if claim.at_most is not None else []
    limits += [f"at least {claim.at_least:g}"] if claim.at_least is not None else []
    return f"{claim.sentence}: {claim.measured:.4g}" + (f" ({', '.join(limits)})" if limits else "")


def draw(figure: Figure, file: Path) -> None:
    """Draw a figure as PNG."""
    # matplotlib takes most of a second to import; only those who draw should wait for it.
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    plot, axes = pyplot.subplots(figsize=(7.0, 4.0), layout="constrained")
    if figure.kind == "bars":
        _bars(figure, axes)
    elif figure.kind == "lines":
        for series in figure.series:
            axes.plot([x for x, _ in series.points], [y for _, y in series.points], marker="o", label=series.name)
    else:
        raise ValueError(f"figure {figure.name!r} is of kind {figure.kind!r}; there are bars and lines")
    axes.set(xlabel=figure.x, ylabel=figure.y, title=figure.title)
    if figure.log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.3)
    if len(figure.series) > 1:
        axes.legend(frameon=False, fontsize="small")
    # Without the version of matplotlib in its metadata, one report gives one file.
    plot.savefig(file, dpi=110, metadata={"Software": None})
    pyplot.close(plot)


def _bars(figure: Figure, axes: Any) -> None:
    """Draw grouped bars; each series keeps its place in every group, also where it has no value."""
    groups = list(dict.fromkeys(x for series in figure.series for x, _ in series.points))
    width = 0.8 / len(figure.series)
    for number, series in enumerate(figure.series):
        heights = dict(series.points)
        places = [place + (number - (len(figure.series) - 1) / 2) * width for place in range(len(groups))]
        bars = axes.bar(places, [heights.get(group, 0.0) for group in groups], width, label=series.name)
        if len(groups) * len(figure.series) <= 24:
            texts = [f"{heights[group]:.3g}" if group in heights else "" for group in groups]
            axes.bar_label(bars, texts, fontsize="x-small")
    slant = {"rotation": 20, "ha": "right"} if len(groups) > 6 else {}
    axes.set_xticks(range(len(groups)), [str(group) for group in groups], **slant)


def _circumstances(report: Report) -> str:
    words = [f"Scale {report.scale:g}", f"seed {report.seed}", f"{report.seconds:,.0f} s"]
    if report.paper:
        words.insert(0, report.paper)
    if report.smoke:
        words.append("SMOKE RUN: the figures mean nothing")
    return ", ".join(words) + "."


def _claim_line(claim: Claim, remark: str) -> str:
    verdict = "holds" if claim.holds else "**falls short**"
    return f"- {claim_text(claim)}: {verdict}" + (f". {remark}" if remark else "")


def _size(value: float) -> str:
    for unit in _SIZES[:-1]:
        if abs(value) < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} {_SIZES[-1]}"


def results_page(reports: list[Report], remarks: Mapping[str, Mapping[str, str]]) -> str:
    """Return the page of all results: one section for each experiment, the machines at the end."""
    machines = list(dict.fromkeys(report.machine for report in reports if report.machine))
    parts = [
        "# Results",
        "Written by `python -m bench results`. Targets that were not reached stay here, with a sentence why.",
    ]
    ordered = sorted(reports, key=lambda report: (report.experiment, report.scale, report.seed))
    for _, same in groupby(ordered, key=lambda report: report.experiment):
        for report in same:
            body = markdown(_without_machine(report), remarks=remarks.get(report.experiment))
            where = f"Machine {machines.index(report.machine) + 1}.\n" if len(machines) > 1 and report.machine else ""
            parts.append(body.replace("# ", "## ", 1).rstrip() + "\n" + (f"\n{where}" if where else ""))
    parts.append("## Machines" if len(machines) > 1 else "## Machine")
    parts += ["\n".join(f"- {name}: {value}" for name, value in machine) for machine in machines]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _without_machine(report: Report) -> Report:
    return report.on({}, report.seconds)
