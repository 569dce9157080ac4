"""What the pages say is so: every command, option and error is described, and the guide runs as it is written."""

from __future__ import annotations

import doctest
import re
import shlex
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Page:
    """What a guide did when it was run: the output of its commands, the names of its Python."""

    said: list[tuple[str, str]]
    names: dict[str, Any]

    def last(self, command: str) -> str:
        """What a command printed when it was last run."""
        return [text for name, text in self.said if name == command][-1]


def run_guide(name: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    """Run all blocks of a guide in their order, but for queries, which `test_tables` runs in Spark."""
    monkeypatch.chdir(directory)
    page = Page([], {})
    found = blocks(DOCS / "guides" / name)
    assert len(found) > 5
    for language, text in found:
        if language == "python":
            exec(text, page.names)
            continue
        for line in text.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "skipstone"
            if arguments[0] != "query":
                page.said.append((arguments[0], printed(*arguments)))
    return page


def test_getting_started_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = run_guide("getting_started.md", tmp_path, monkeypatch)
    said, names = dict(page.said), page.names
    assert said["workload"].splitlines()[:3] == [
        "401 statements: 400 queries understood",
        "  1 not understood:",
        "    queries.sql:401:44: something is missing at '>'",
    ]
    assert said["workload"].endswith("They subsume 100.0 % of all requests to sales.\n")
    assert said["optimize"].splitlines()[-1].startswith("Version 2: 1 chunks, ")
    assert "feature   amount > 100 AND shop = 'Rome'" in said["explain"]
    assert names["found"].num_rows > 0
    assert min(names["found"]["amount"].to_pylist()) > 250
    assert said["restore"] == "sales is at version 4: restore, version 2\n"


def test_the_guide_to_workloads_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = run_guide("own_workload.md", tmp_path, monkeypatch)
    assert page.last("workload").splitlines()[:2] == [
        "674 statements: 672 queries understood",
        "  1 not a query but DELETE",
    ]
    assert page.names["done"].version == 2
    assert page.names["errors"].num_rows > 0
    assert page.names["promise"].logged_queries == 1
    assert 0 < page.names["promise"].read_rows_share < 0.5
    assert len(page.names["again"].queries("events")) == 1
    assert "1 logged: " in page.last("show")
    assert "kind = 'error' AND country = 'NO'" in " ".join(page.last("log").split())


def test_the_guide_to_running_it_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = run_guide("operating.md", tmp_path, monkeypatch)
    assert [line.split()[3] for line in page.last("history").splitlines()] == [
        "append", "append", "optimize", "create", "create",
    ]  # fmt: skip
    assert (page.names["before"], page.names["now"], page.names["same"]) == (20_000, 30_000, True)
    assert page.last("restore") == "sales is at version 5: restore, version 2\n"
    assert page.last("vacuum").endswith("deleted\n")


def test_the_guide_to_other_engines_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = run_guide("other_engines.md", tmp_path, monkeypatch)
    expected = [number for number in range(40_000) if number * 37 % 1000 % 20 == 7]
    assert page.names["frame"].height == len(expected)
    assert page.names["answers"] == [[(sum(expected),)]] * 2
    all_, few = page.names["groups_read"]
    assert few * 4 < all_, "the rewritten query lets DuckDB leave most row groups out"
    assert page.names["exported"].height == sum(number * 37 % 1000 > 980 for number in range(40_000))
    assert "IS DISTINCT FROM FALSE" in page.last("rewrite")


@pytest.mark.parametrize(
    "page",
    [page for page in sorted(DOCS.rglob("*.md")) if re.search(r"^    >>> ", page.read_text(), re.MULTILINE)],
    ids=lambda page: str(page.relative_to(DOCS)),
)
def test_examples_on_pages_are_true(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert done.attempted > 0
    assert done.failed == 0


def test_every_page_is_in_the_list_of_pages() -> None:
    listed = (DOCS / "README.md").read_text()
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"}
    assert not sorted(page for page in pages if f"({page})" not in listed)


def test_the_architecture_speaks_of_every_module() -> None:
    """By its name between backquotes, by that of its package with a star, or with those that begin like it."""
    source = Path(errors.__file__).parent
    text = (DOCS / "architecture.md").read_text()
    named = set(re.findall(r"`([\w/*]+)`", text))
    modules = {str(file.relative_to(source).with_suffix("")) for file in source.rglob("*.py")}
    modules -= {one for one in modules if one.endswith(("__init__", "__main__"))}
    assert len(modules) > 150
    families = {one for line in text.splitlines() for one in re.findall(r"`([\w/]+)` and those whose names", line)}
    described = named | {one for one in modules for family in families if one.startswith(f"{family}_")}
    missing = sorted(one for one in modules if one not in described and f"{one.rpartition('/')[0]}/*" not in named)
    assert not missing, f"docs/architecture.md does not speak of {missing}"
    gone = {one for one in named if "/" in one and not one.endswith(("/", "/*"))} - modules
    assert not gone, f"docs/architecture.md speaks of modules that are not there: {sorted(gone)}"
