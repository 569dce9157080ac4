"""The borders between the packages: who may import whom, and that the core runs without Spark."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import skipstone

SOURCE = Path(skipstone.__file__).parent
ORDER = (
    "errors", "compiled", "predicate", "workload", "layout", "catalog", "store", "scan", "relayout", "spark", "lake",
    "cli", "__main__",
)  # fmt: skip
"""A module imports only from its own package and from those to the left of it."""

CORE = ("predicate", "workload", "layout", "catalog", "store", "scan")
"""What runs without a Java virtual machine, a command line or a terminal."""

ONLY_IN = {"pyspark": {"spark"}, "py4j": {"spark"}, "typer": {"cli"}, "rich": {"cli"}}
"""The packages that one of ours alone may import."""


def modules() -> Iterator[tuple[str, Path]]:
    """Every module with the package it belongs to; the root's own `__init__` belongs to none."""
    for path in sorted(SOURCE.rglob("*.py")):
        inside = path.relative_to(SOURCE)
        if inside != Path("__init__.py"):
            yield inside.parts[0].removesuffix(".py"), path


def imported(path: Path, *, when_running: bool = False) -> Iterator[tuple[str, int]]:
    """The absolute names that a module imports, wherever in it, with their lines.

    `when_running` leaves out what is imported for the type checker alone.
    """
    tree: ast.AST = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(_RuntimeOnly().visit(tree) if when_running else tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            assert node.module is not None
            if node.module == "skipstone":
                yield from ((f"skipstone.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield node.module, node.lineno


class _RuntimeOnly(ast.NodeTransformer):
    """Takes out the blocks under `if TYPE_CHECKING:`."""

    def visit_If(self, node: ast.If) -> ast.AST:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return ast.Pass()
        return self.generic_visit(node)


def test_every_package_has_its_place_in_the_order() -> None:
    homeless = {package for package, _ in modules()} - set(ORDER)
    assert not homeless, f"give {sorted(homeless)} a place in ORDER: what may it import, and who may import it?"


def test_modules_import_only_from_packages_before_their_own() -> None:
    wrong = []
    for package, path in modules():
        allowed = set(ORDER[: ORDER.index(package) + 1])
        for name, line in imported(path):
            parts = name.split(".")
            if parts[0] == "skipstone" and (len(parts) == 1 or (parts[1] not in allowed and parts[1] in ORDER)):
                wrong.append(f"{path.relative_to(SOURCE)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("library", sorted(ONLY_IN))
def test_a_heavy_library_is_imported_by_one_package_only(library: str) -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{line} imports {name}"
        for package, path in modules()
        if package not in ONLY_IN[library]
        for name, line in imported(path, when_running=True)
        if name.split(".")[0] == library
    ]
    assert not wrong, "\n".join(wrong)


def test_no_package_of_the_core_loads_spark_or_the_command_line() -> None:
    names = [
        ".".join(("skipstone", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        for package, path in modules()
        if package in CORE
    ]
    program = f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\nprint(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    loaded = {name.split(".")[0] for name in result.stdout.split()}
    assert "pyarrow" in loaded, "nothing was imported, so nothing was checked"
    assert not loaded & ONLY_IN.keys()
