"""Loops in machine code: numba's compiler, with what it has compiled kept on disk where there is a place for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["njit"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def njit(**options: Any) -> Callable[[_Function], _Function]:
    """Compile a function when it is first called; `options` are numba's.

    With `cache=True` numba looks for a directory at once: beside the source, then in the user's home. Where neither can
    be written to, as in a container that runs as nobody, it raises; then the function is compiled in each process anew.

    >>> @njit(cache=True)
    ... def doubled(number):
    ...     return 2 * number
    >>> doubled(21)
    42
    """

    def compiled(function: _Function) -> _Function:
        try:
            return numba.njit(**options)(function)  # type: ignore[no-any-return]
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            return numba.njit(**{**options, "cache": False})(function)  # type: ignore[no-any-return]

    return compiled
