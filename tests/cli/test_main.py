"""The frame of the command line: help, version, errors as one screen, exit codes, and how little is loaded for it."""

from __future__ import annotations

import importlib
import logging
import subprocess
import sys

import pytest
import typer

from skipstone import __version__
from skipstone.cli import COMMANDS, CommandHome, tables
from skipstone.cli.failures import SCREEN_LETTERS, SCREEN_LINES, describe, exit_code
from skipstone.errors import (
    CommitConflict,
    ExecutionFailed,
    InvalidInput,
    LayoutInfeasible,
    MissingDependency,
    SkipstoneError,
    SnapshotNotFound,
    TableNotFound,
)
from tests.cli.running import error_of, printed, run


def test_help_lists_every_command_with_its_summary() -> None:
    shown = " ".join(printed("--help").replace("│", " ").split())
    for home in COMMANDS:
        assert f"{home.name} {home.summary}" in shown


def test_without_arguments_help_is_shown_and_nothing_was_done() -> None:
    code, out, _ = run()
    assert code == 2
    assert "[OPTIONS] COMMAND [ARGS]..." in out


@pytest.mark.parametrize("home", COMMANDS, ids=lambda home: home.name)
def test_a_command_is_what_its_summary_says(home: CommandHome) -> None:
    """The list of commands is printed without loading them, so it repeats the first sentence of each."""
    found = getattr(importlib.import_module(f"skipstone.cli.{home.module}"), home.name)
    said = found.info.help if isinstance(found, typer.Typer) else found.__doc__.strip().splitlines()[0]
    assert said == home.summary
    assert home.summary in " ".join(printed(home.name, "--help").replace("│", " ").split())


def test_help_loads_neither_arrow_nor_a_parser_nor_spark() -> None:
    program = (
        "import sys\nfrom skipstone.cli import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\nprint('LOADED', *sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    loaded = {name.split(".")[0] for name in answer.partition("LOADED")[2].split()}
    assert "typer" in loaded, "nothing was loaded, so nothing was checked"
    assert not loaded & {"pyarrow", "numpy", "numba", "sqlglot", "deltalake", "pyspark", "pandas"}


def test_the_version_is_printed_by_the_command_and_by_the_module() -> None:
    assert printed("--version") == f"skipstone {__version__}\n"
    module = subprocess.run(
        [sys.executable, "-m", "skipstone", "--version"], capture_output=True, text=True, check=True
    )
    assert module.stdout == f"skipstone {__version__}\n"


def test_a_command_that_does_not_exist_is_answered_with_the_near_miss() -> None:
    code, error = error_of("optimise")
    assert code == 2
    assert 'no command "optimise". Did you mean "optimize"?' in error


def opening_a_lake_fails_with(failure: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(tables, "open_lake", fail)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (InvalidInput("a file is not there"), 2),
        (TableNotFound("no table"), 2),
        (SnapshotNotFound("no version 3"), 2),
        (CommitConflict("somebody was first"), 1),
        (ExecutionFailed("Spark failed"), 1),
        (MissingDependency("no Java"), 1),
        (LayoutInfeasible("no rows yet"), 1),
    ],
)
def test_an_error_is_one_screen_with_its_name_and_a_code_for_scripts(
    failure: SkipstoneError, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening_a_lake_fails_with(failure, monkeypatch)
    assert error_of("show", "lake") == (code, f"{type(failure).__name__}: {failure}")


def test_an_interrupt_ends_with_130_and_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    opening_a_lake_fails_with(KeyboardInterrupt(), monkeypatch)
    assert error_of("show", "lake") == (130, "Interrupted; what was not committed yet has no effect.")


def test_an_error_of_the_disk_names_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    opening_a_lake_fails_with(PermissionError(13, "Permission denied", "/lake/sales"), monkeypatch)
    assert error_of("show", "lake") == (1, "Permission denied: /lake/sales")


class TestOurOwnBugs:
    @pytest.fixture(autouse=True)
    def _a_bug(self, monkeypatch: pytest.MonkeyPatch) -> None:
        opening_a_lake_fails_with(ZeroDivisionError("division by zero"), monkeypatch)

    def test_a_bug_is_called_ours_and_shows_no_trace(self) -> None:
        assert error_of("show", "lake") == (
            1,
            "This is a bug in Skipstone, not in what you asked for: ZeroDivisionError: division by zero\n"
            "Please report it with the command and the output of `skipstone --debug ...`.",
        )

    def test_debug_shows_the_trace(self) -> None:
        code, error = error_of("--debug", "show", "lake")
        assert code == 1
        assert "Traceback (most recent call last)" in error
        assert error.splitlines()[-1].startswith("Please report it")


def test_a_message_never_fills_more_than_a_screen() -> None:
    many_lines = describe(InvalidInput("\n".join(str(number) for number in range(1000))))
    assert many_lines.splitlines()[-1] == f"... and {1000 - SCREEN_LINES} more lines"
    assert len(describe(InvalidInput("x" * 100_000))) <= SCREEN_LETTERS + 4


def test_every_error_has_a_code_that_is_not_success() -> None:
    kinds: list[type[SkipstoneError]] = [SkipstoneError, *SkipstoneError.__subclasses__()]
    assert len(kinds) > 10
    assert {exit_code(kind("x")) for kind in kinds} == {1, 2}


@pytest.mark.parametrize(
    ("flags", "level"), [((), logging.WARNING), (("-v",), logging.INFO), (("-vv",), logging.DEBUG), (("--debug",), 10)]
)
def test_verbosity_sets_what_is_logged(flags: tuple[str, ...], level: int, tmp_path: object) -> None:
    printed(*flags, "show", tmp_path)
    printed(*flags, "show", tmp_path)
    logger = logging.getLogger("skipstone")
    assert logger.level == level
    assert len(logger.handlers) == 1, "a second run does not print everything twice"
