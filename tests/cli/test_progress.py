"""Bars on a terminal: the stages with how much of each is done; nothing where nobody looks."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from skipstone.cli.progress import Bars
from skipstone.lake import open_lake
from skipstone.workload.reading import Workload


class Terminal(io.StringIO):
    """A standard error that somebody looks at."""

    def isatty(self) -> bool:
        return True


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Put a terminal in place; no fixture, for pytest puts its own files there between set-up and test."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return shown


def test_each_stage_has_a_bar_with_how_much_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with Bars() as bars:
        bars.start("load", 3)
        bars.advance(2)
        bars.start("write", 5)
        bars.advance(5)
    assert "2/3" in terminal.getvalue()
    assert "5/5" in terminal.getvalue()
    assert terminal.getvalue().index("load") < terminal.getvalue().index("write")


def test_nothing_is_drawn_where_that_is_asked_for_or_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with Bars(quiet=True) as bars:
        bars.start("load", 3)
        bars.advance(3)
    assert not terminal.getvalue()
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    with Bars() as bars:
        bars.start("load", 3)
        bars.advance(3)
    assert not file.getvalue().strip()


def test_every_long_step_from_rows_to_a_layout_tells_how_far_it_is(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []

    class Watching:
        def start(self, stage: str, total: int) -> None:
            told.append((stage, total, 0))

        def advance(self, steps: int) -> None:
            stage, total, done = told[-1]
            told[-1] = (stage, total, done + steps)

    rows = pa.table({"id": range(2000), "kind": [number % 10 for number in range(2000)]})
    table = open_lake(tmp_path).create("t", rows, progress=Watching())
    work = Workload.of([f"SELECT id FROM t WHERE kind = {kind} AND id > 9" for kind in range(9)], {"t": rows.schema})
    advice = table.advise(work, clustering="ward", block_rows=100, min_support=0.1, progress=Watching())
    table.optimize(advice, progress=Watching())
    stages = dict.fromkeys(stage for stage, _, _ in told)
    assert list(stages) == ["load", "sample", "try layouts", "fit", "lay out: split", "lay out: write"]
    assert all(done == total > 0 for _, total, done in told), told
