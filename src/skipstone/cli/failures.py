"""An error as a person at a terminal should see it: one screen, and an exit code that a script can act on."""

from __future__ import annotations

from skipstone.errors import (
    ColumnNotFound,
    InvalidInput,
    InvalidQuery,
    SkipstoneError,
    SnapshotNotFound,
    TableExists,
    TableNotFound,
)

__all__ = ["BAD_INPUT", "FAILED", "INTERRUPTED", "describe", "exit_code"]

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
"""As shells have it: 128 and the number of the signal."""

SCREEN_LINES = 20
SCREEN_LETTERS = 1600
"""What fits a terminal of 80 by 24; a message beyond that is cut, and says so."""

_BAD_INPUT = (InvalidQuery, InvalidInput, ColumnNotFound, TableNotFound, TableExists, SnapshotNotFound)


def exit_code(error: BaseException) -> int:
    """The exit code that an error ends the process with.

    >>> exit_code(InvalidInput("no such option")), exit_code(OSError("disk full"))
    (2, 1)
    """
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return BAD_INPUT if isinstance(error, _BAD_INPUT) else FAILED


def describe(error: BaseException) -> str:
    """Word an error for a terminal.

    >>> print(describe(InvalidQuery.at("did not expect '='", sql="a = = 1", line=1, column=5)))
    InvalidQuery: did not expect '=' (line 1, column 5)
      a = = 1
          ^
    """
    if isinstance(error, KeyboardInterrupt):
        return "Interrupted; what was not committed yet has no effect."
    if isinstance(error, SkipstoneError):
        return _one_screen(f"{type(error).__name__}: {error}")
    if isinstance(error, OSError):
        # Arrow's and delta-rs's have a text only, which names what was asked of which store.
        where = f": {error.filename}" if error.filename else ""
        return _one_screen(f"{error.strerror}{where}" if error.strerror else str(error).strip())
    return _one_screen(
        f"This is a bug in Skipstone, not in what you asked for: {type(error).__name__}: {error}\n"
        "Please report it with the command and the output of `skipstone --debug ...`."
    )


def _one_screen(text: str) -> str:
    lines = text.splitlines()
    if len(lines) > SCREEN_LINES:
        lines = [*lines[:SCREEN_LINES], f"... and {len(lines) - SCREEN_LINES:,} more lines"]
    shown = "\n".join(lines)
    return shown if len(shown) <= SCREEN_LETTERS else f"{shown[:SCREEN_LETTERS]} ..."
