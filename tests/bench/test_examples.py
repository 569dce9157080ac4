"""The examples in the docstrings of the benchmarks are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import bench

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(bench.__path__, "bench.") if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(importlib.import_module(name), optionflags=flags).failed == 0
