"""Compiled loops work where nothing can be written, as in a container that runs as nobody."""

from __future__ import annotations

import pytest
from numba.core import caching

from skipstone.compiled import njit


def one_more(number: int) -> int:
    return number + 1


def test_without_a_place_for_what_was_compiled_it_is_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    assert njit(cache=True)(one_more)(41) == 42


def test_other_failures_of_the_compiler_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("numba.njit", fail)
    with pytest.raises(RuntimeError, match="out of order"):
        njit(cache=True)(one_more)
