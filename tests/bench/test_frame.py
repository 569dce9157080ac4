"""The frame: paired times, peak memory, reports as JSON, Markdown and plots, comparisons, and the command line."""

from __future__ import annotations

import io
import math
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench.__main__ import main
from bench.compare import Verdict, compare
from bench.experiment import all_experiments, experiment_named
from bench.machine import machine
from bench.measure import PeakMemory, ScanCounts, Timing, break_even_runs, drop_from_cache, paired
from bench.render import cell, markdown, results_page, write_report
from bench.report import (
    MEASURES,
    UNITS,
    Claim,
    Figure,
    Report,
    Series,
    Table,
    from_json,
    read_report,
    scan_values,
    table_of,
    to_json,
)

PNG = b"\x89PNG"


def report_with(rows: float = 100, seconds: float = 2.0, spread: float = 0.1, **changes: Any) -> Report:
    table = table_of(
        "layouts",
        "What each layout reads",
        ["layout"],
        [
            (("plain",), {"rows_read": 1000, "rows_share": 1.0}),
            (
                ("sorted",),
                {
                    "rows_read": rows,
                    "rows_share": rows / 1000,
                    "seconds": seconds,
                    "seconds_low": seconds - spread,
                    "seconds_high": seconds + spread,
                },
            ),
        ],
    )
    figure = Figure(
        "rows",
        "Rows read",
        "bars",
        "layout",
        "share",
        (Series("measured", (("plain", 1.0), ("sorted", 0.1))), Series("paper", (("plain", 1.0),))),
        paper="figure 3.5(a)",
    )
    curve = Figure("curve", "By size", "lines", "size", "share", (Series("sop", ((1.0, 3.0), (2.0, 4.0))),), log_y=True)
    claim = Claim("scan", "share of rows that the sorted layout reads", rows / 1000, at_most=0.2)
    made = Report(
        "example",
        "Compares two layouts.",
        "dissertation, figure 3.5",
        1.0,
        7,
        smoke=False,
        settings=(("rows a block", "1,000"),),
        tables=(table,),
        figures=(figure, curve),
        claims=(claim,),
        notes=("A note.",),
    )
    return replace(made, **changes)


class Turns:
    """Subjects that note in which order they were called, on a clock that they move themselves."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.now = 0.0

    def subject(self, name: str, seconds: float) -> object:
        def work(task: str) -> None:
            self.calls.append((name, task))
            self.now += seconds

        return work

    def clock(self) -> float:
        return self.now


def test_paired_subjects_take_turns_and_rotate() -> None:
    turns = Turns()
    subjects = {"a": turns.subject("a", 1.0), "b": turns.subject("b", 3.0)}
    times = paired(subjects, ["t"], 2, clock=turns.clock)  # type: ignore[arg-type]
    assert [name for name, _ in turns.calls] == ["b", "a", "a", "b", "b", "a"], "warm-up, then two runs"
    assert times.by_task["a", "t"] == Timing(1.0, 1.0, 1.0, 2)
    assert times.total["b"].median == 3.0


def test_totals_are_taken_within_a_run() -> None:
    turns = Turns()
    times = paired({"a": turns.subject("a", 0.5)}, ["t1", "t2"], 3, warm_up=False, clock=turns.clock)  # type: ignore[dict-item]
    assert times.total["a"] == Timing(1.0, 1.0, 1.0, 3)
    assert len(turns.calls) == 6


def test_preparation_is_not_timed() -> None:
    turns = Turns()

    def prepare(name: str, task: str) -> None:
        turns.now += 100.0

    times = paired({"a": turns.subject("a", 1.0)}, ["t"], 2, before_each=prepare, clock=turns.clock)  # type: ignore[dict-item]
    assert times.total["a"].high == 1.0


def test_peak_memory_sees_this_process_and_its_children() -> None:
    program = "x = bytearray(80_000_000); import time; time.sleep(0.6)"
    with PeakMemory(0.01) as peak:
        held = bytearray(60_000_000)
        subprocess.run([sys.executable, "-c", program], check=True)
        del held
    assert peak.descendant_bytes > 80_000_000
    assert peak.own_bytes > 60_000_000
    assert max(peak.own_bytes, peak.descendant_bytes) < peak.total_bytes <= peak.own_bytes + peak.descendant_bytes


def test_dropping_files_from_the_cache_keeps_what_is_in_them(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for name in ("a", "below/b"):
        (tmp_path / name).write_bytes(b"kept")
    assert drop_from_cache([tmp_path]) == 2
    assert (tmp_path / "below" / "b").read_bytes() == b"kept"


def test_a_layout_that_gains_nothing_never_pays() -> None:
    assert break_even_runs(10.0, 5.0, 3.0) == 5.0
    assert math.isinf(break_even_runs(10.0, 3.0, 3.0))
    assert math.isinf(break_even_runs(10.0, 3.0, 4.0))


def test_scan_values_relate_counts_to_table_and_bound() -> None:
    values = scan_values(ScanCounts(rows=50, cells=100, matching_rows=10), table_rows=100, queries=2)
    assert (values["rows_share"], values["bound_share"], values["times_bound"]) == (0.25, 0.05, 5.0)


def test_a_scan_without_matches_has_no_finite_ratio_to_the_bound() -> None:
    assert math.isinf(scan_values(ScanCounts(rows=50), table_rows=100, queries=1)["times_bound"])


def test_every_measure_has_a_known_unit() -> None:
    assert {measure.unit for measure in MEASURES.values()} <= set(UNITS)


def test_a_table_refuses_measures_that_nobody_defined() -> None:
    with pytest.raises(ValueError, match=r"table 't' has measures that bench.report does not define: \['speed'\]"):
        table_of("t", "T", ["layout"], [(("plain",), {"speed": 1.0})])
    with pytest.raises(ValueError, match="does not define"):
        Table("t", "T", ("layout",), ("speed",), ())


def test_values_are_found_by_label() -> None:
    table = report_with().table("layouts")
    assert table.value("rows_read", "sorted") == 100
    with pytest.raises(KeyError, match="no seconds for plain"):
        table.value("seconds", "plain")


def test_a_report_survives_json() -> None:
    report = report_with(claims=(Claim("c", "C.", math.inf, at_least=1.0),)).on({"cores": "2"}, 3.5)
    assert from_json(to_json(report)) == report


def test_a_file_that_is_no_report_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ValueError, match=r"x\.json is not a report that `python -m bench run` wrote"):
        read_report(tmp_path / "x.json")


def test_a_written_report_has_a_table_plots_and_a_verdict(tmp_path: Path) -> None:
    written = write_report(report_with(), tmp_path)
    page = (tmp_path / "example.md").read_text()
    assert read_report(written) == report_with()
    assert "| sorted | 100 | 10.0 % |" in page
    assert "![Rows read](example-rows.png)" in page
    assert "Beside it in the paper: figure 3.5(a)" in page
    assert "share of rows that the sorted layout reads: 0.1 (at most 0.2): holds" in page
    for name in ("rows", "curve"):
        assert (tmp_path / f"example-{name}.png").read_bytes()[:4] == PNG


def test_a_figure_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="figure 'pie' is of kind 'cake'; there are bars and lines"):
        write_report(report_with(figures=(Figure("pie", "", "cake", "", "", ()),)), tmp_path)


def test_a_smoke_run_says_that_its_figures_mean_nothing() -> None:
    assert "SMOKE RUN" in markdown(report_with(smoke=True))


@pytest.mark.parametrize(
    ("value", "measure", "text"),
    [
        (0.00123, "rows_share", "0.12 %"),
        (0.5, "rows_share", "50.0 %"),
        (999, "bytes_read", "999 B"),
        (1_500, "bytes_read", "1.5 kB"),
        (2.5e15, "bytes_read", "2,500.0 TB"),
        (0.01234, "seconds", "0.012 s"),
        (1234.5, "seconds", "1,234.5 s"),
        (1.234, "planning_ms", "1.2 ms"),
        (math.inf, "break_even_runs", "never"),
        (math.inf, "times_bound", "∞"),
    ],
)
def test_values_are_written_in_their_unit(value: float, measure: str, text: str) -> None:
    assert cell(value, measure) == text


def test_equal_reports_do_not_differ() -> None:
    assert compare(report_with(), report_with()) == ()


def test_one_row_more_is_worse() -> None:
    changes = compare(report_with(rows=100), report_with(rows=101))
    assert {(change.measure, change.verdict) for change in changes} == {
        ("rows_read", Verdict.WORSE),
        ("rows_share", Verdict.WORSE),
    }


def test_fewer_rows_are_better_and_no_regression() -> None:
    assert not any(change.verdict.is_regression for change in compare(report_with(rows=100), report_with(rows=50)))


@pytest.mark.parametrize(
    ("after", "spread", "verdict"),
    [
        (2.1, 0.01, None),
        (2.5, 0.01, Verdict.WORSE),
        (2.5, 0.4, None),
        (1.0, 0.01, Verdict.BETTER),
    ],
    ids=["within tolerance", "beyond both spreads", "spreads overlap", "faster"],
)
def test_times_are_judged_by_their_spread(after: float, spread: float, verdict: Verdict | None) -> None:
    changes = compare(report_with(seconds=2.0, spread=spread), report_with(seconds=after, spread=spread))
    assert [change.verdict for change in changes if change.measure == "seconds"] == ([verdict] if verdict else [])


def test_what_is_no_longer_measured_is_a_regression() -> None:
    changes = compare(report_with(), report_with(tables=()))
    assert {change.verdict for change in changes} == {Verdict.MISSING}
    assert {change.verdict for change in compare(report_with(tables=()), report_with())} == {Verdict.NEW}


@pytest.mark.parametrize(("what", "value"), [("experiment", "other"), ("scale", 2.0), ("seed", 8), ("smoke", True)])
def test_reports_of_different_runs_are_not_compared(what: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"the reports are not of the same {what}"):
        compare(report_with(), report_with(**{what: value}))


def test_the_page_of_results_gives_reasons_for_what_fell_short() -> None:
    missed = report_with(rows=900).on({"cores": "2"}, 5.0)
    page = results_page([missed], {"example": {"scan": "The data is not sorted by anything useful."}})
    assert "## example" in page
    assert "0.9 (at most 0.2): **falls short**. The data is not sorted by anything useful." in page
    assert page.endswith("## Machine\n\n- cores: 2\n")


def test_results_of_several_machines_say_which() -> None:
    reports = [report_with().on({"cores": "2"}, 5.0), report_with(seed=8).on({"cores": "4"}, 5.0)]
    page = results_page(reports, {})
    assert "Machine 1." in page
    assert "Machine 2." in page
    assert page.endswith("## Machines\n\n- cores: 2\n\n- cores: 4\n")


def test_the_machine_is_described_without_its_name() -> None:
    import socket

    described = machine()
    assert {"processor", "cores", "memory", "system", "python", "java", "pyspark", "duckdb"} <= set(described)
    assert not any(socket.gethostname() in value or "/" in value for value in described.values())


def on_the_command_line(*arguments: str) -> tuple[int, str]:
    shown = io.StringIO()
    code = main(arguments, Console(file=shown, width=200, color_system=None))
    return code, shown.getvalue()


def test_listing_names_every_experiment_with_its_duration() -> None:
    code, text = on_the_command_line("list")
    assert code == 0
    for experiment in all_experiments():
        assert experiment.name in text
        assert experiment.minutes > 0
        assert experiment.sentence.endswith(".")


def test_an_unknown_experiment_gets_a_suggestion() -> None:
    code, text = on_the_command_line("run", "rival")
    assert code == 2
    assert text == "there is no experiment 'rival'. Did you mean rivals or rivals-skewed?\n"
    with pytest.raises(LookupError, match=r"There are rivals, "):
        experiment_named("zzzz")


def test_a_scale_of_nothing_is_refused() -> None:
    assert on_the_command_line("run", "rivals", "--scale", "0") == (2, "--scale must be above zero, not 0\n")


def test_comparing_on_the_command_line_fails_on_a_regression(tmp_path: Path) -> None:
    before, after = tmp_path / "a.json", tmp_path / "b.json"
    before.write_text(to_json(report_with(rows=100)))
    after.write_text(to_json(report_with(rows=200)))
    assert on_the_command_line("compare", str(before), str(before)) == (0, "nothing changed\n")
    code, text = on_the_command_line("compare", str(before), str(after))
    assert code == 1
    assert "2 differences, 2 to look at" in text
    assert on_the_command_line("compare", str(after), str(before))[0] == 0


def test_results_are_written_from_reports_and_not_from_smoke_runs(tmp_path: Path) -> None:
    write_report(report_with(), tmp_path / "one")
    page = tmp_path / "RESULTS.md"
    assert on_the_command_line("results", str(tmp_path / "one"), "--to", str(page))[0] == 0
    assert "## example" in page.read_text()
    write_report(report_with(smoke=True), tmp_path / "two")
    code, text = on_the_command_line("results", str(tmp_path), "--to", str(page))
    assert (code, text) == (2, "smoke runs are not results: example\n")
    code, text = on_the_command_line("results", str(tmp_path / "none"), "--to", str(page))
    assert code == 2
    assert "run an experiment with --out first" in text


def test_waiting_is_measured_by_the_real_clock() -> None:
    times = paired({"sleep": lambda task: time.sleep(0.01)}, ["t"], 2, warm_up=False)
    assert times.total["sleep"].median >= 0.01
