"""What the pages say is so: every command, option and error is described, and the guide runs as it is written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from skipstone import errors
from skipstone.cli import COMMANDS, CommandHome, load
from skipstone.cli.failures import exit_code
from skipstone.errors import SkipstoneError
from tests.cli.running import printed

DOCS = Path(__file__).parents[2] / "docs"
COMMAND_LINE = (DOCS / "command_line.md").read_text()


def commands(home: CommandHome) -> dict[str, Any]:
    """The commands of a home by the words that call them."""
    found = load(home)
    inside = getattr(found, "commands", None)
    return {f"{home.name} {name}": one for name, one in inside.items()} if inside else {home.name: found}


def options(command: Any) -> set[str]:
    return {name for one in command.params for name in one.opts if name.startswith("--")}


@pytest.mark.parametrize("home", COMMANDS, ids=lambda home: home.name)
def test_every_command_and_option_is_described(home: CommandHome) -> None:
    for words, command in commands(home).items():
        assert re.search(rf"^ +skipstone {words} ", COMMAND_LINE, re.MULTILINE), (
            f"no line that calls: skipstone {words}"
        )
        assert options(command), "a command without options is not what this test looks at"
        missing = sorted(name for name in options(command) if not re.search(rf"{name}\b", COMMAND_LINE))
        assert not missing, f"docs/command_line.md does not speak of {missing} of skipstone {words}"


def test_no_option_is_described_that_is_not_there() -> None:
    known = {name for home in COMMANDS for command in commands(home).values() for name in options(command)}
    known |= {"--help", "--version", "--verbose", "--debug"}
    assert set(re.findall(r"(?<![-\w])--[a-z][a-z-]*", COMMAND_LINE)) <= known


def test_every_error_has_a_section_and_its_exit_code() -> None:
    text = (DOCS / "errors.md").read_text()
    sections = " ".join(re.findall(r"^## (.+)$", text, re.MULTILINE))
    kinds = [getattr(errors, name) for name in errors.__all__ if name != "SkipstoneError"]
    assert all(issubclass(kind, SkipstoneError) for kind in kinds)
    for kind in kinds:
        also = next((base.__name__ for base in kind.__bases__ if base is not SkipstoneError), None)
        row = f"| `{kind.__name__}` | {f'`{also}` ' if also else ''}| {exit_code(kind('x'))} |"
        assert row in text, f"docs/errors.md lacks the row: {row}"
        assert kind.__name__ in sections, f"docs/errors.md has no section on {kind.__name__}"


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", page.read_text()):
        assert link.startswith("http") or (page.parent / link).exists(), f"{page.name} links to {link}"


def blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"```(python|sh)\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_guide_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the query, which `test_tables` runs in Spark."""
    monkeypatch.chdir(tmp_path)
    said: dict[str, str] = {}
    names: dict[str, Any] = {}
    found = blocks(DOCS / "guides" / "getting_started.md")
    assert len(found) > 8
    for language, text in found:
        if language == "python":
            exec(text, names)
            continue
        for line in text.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "skipstone"
            if arguments[0] != "query":
                said[arguments[0]] = printed(*arguments)
    assert said["workload"].splitlines()[:3] == [
        "401 statements: 400 queries understood",
        "  1 not understood:",
        "    queries.sql:401:44: something is missing at '>'",
    ]
    assert said["workload"].endswith("They subsume 100.0 % of all requests to sales.\n")
    assert said["optimize"].splitlines()[-1].startswith("Version 2: 1 chunks, ")
    assert "subsumed by  amount > 100 AND shop = 'Rome'" in said["explain"]
    assert names["found"].num_rows > 0
    assert min(names["found"]["amount"].to_pylist()) > 250
    assert said["restore"] == "sales is at version 4: restore, version 2\n"
