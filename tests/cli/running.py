"""How tests call the command line: one verb that runs a command, and one that expects it to succeed."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner

from skipstone.cli import app

_RUNNER = CliRunner(env={"COLUMNS": "120", "SKIPSTONE_DEBUG": None})


def run(*arguments: object) -> tuple[int, str, str]:
    """Run a command; its exit code, what it printed, and what it printed as an error."""
    result = _RUNNER.invoke(app, [str(one) for one in arguments])
    return result.exit_code, result.stdout, result.stderr


def printed(*arguments: object) -> str:
    """Run a command that must succeed, and give what it printed."""
    code, out, err = run(*arguments)
    assert code == 0, f"{arguments} ended with {code}: {err}"
    return out


def json_of(*arguments: object) -> Any:
    """Run a command with --json; all that it prints must be one document."""
    return json.loads(printed(*arguments, "--json"))


def error_of(*arguments: object) -> tuple[int, str]:
    """Run a command that must fail without printing anything but its error."""
    code, out, err = run(*arguments)
    assert code != 0, f"{arguments} succeeded: {out}"
    assert not out, "nothing is printed before an error"
    return code, err.rstrip("\n")
