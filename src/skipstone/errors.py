"""Everything that Skipstone raises on purpose.

    SkipstoneError                      something was asked that cannot be done; the message says what to try
    ├── InvalidQuery (ValueError)       SQL that cannot be parsed, resolved or bound, with its place in the text
    ├── ColumnNotFound (KeyError)       a column that the schema does not have, with the near misses
    ├── InvalidInput (ValueError)       a file, option or value that does not have the required form
    ├── TableNotFound (LookupError)     no table of this name here
    ├── TableExists (ValueError)        a table of this name is already here
    ├── SnapshotNotFound (LookupError)  a version that never was, or that has been vacuumed
    ├── CommitConflict                  another writer changed the same chunks first; nothing was lost
    ├── StorageFailed (OSError)         a disk or an object store did not do what it was asked to do
    ├── VerificationFailed              what was written is not what was read; nothing was committed
    ├── LayoutInfeasible (ValueError)   the data or the limits leave no layout to choose
    ├── CannotEvaluate                  Arrow cannot give Spark's answer for these rows; they must be read, not judged
    ├── MissingDependency (ImportError) an optional package or Java is not there, with the line that installs it
    └── ExecutionFailed                 Spark failed while it worked for us; the cause in one line, no Java stack

Messages say what was asked, what was found, what would be accepted, and the next thing to try. The facts stay on the
exception as attributes, so that a console renders fields and does not parse prose.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

__all__ = [
    "CannotEvaluate",
    "ColumnNotFound",
    "CommitConflict",
    "ExecutionFailed",
    "InvalidInput",
    "InvalidQuery",
    "LayoutInfeasible",
    "MissingDependency",
    "SkipstoneError",
    "SnapshotNotFound",
    "StorageFailed",
    "TableExists",
    "TableNotFound",
    "VerificationFailed",
]

NAMES_LISTED = 12
"""A message lists at most this many names; a longer list is cut and says by how much."""


WIDTH = 100
"""A line of the user's text is shown with at most so many letters, those around the place in question."""


class SkipstoneError(Exception):
    """Base class of everything that Skipstone raises on purpose."""

    def __str__(self) -> str:
        # KeyError would print the repr of its argument; a sentence should be printed as a sentence.
        return str(self.args[0]) if self.args else type(self).__name__


class InvalidQuery(SkipstoneError, ValueError):
    """SQL that cannot be parsed, resolved or bound; `line` and `column` count from 1 where they are known."""

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None, sql: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.column = column
        self.sql = sql

    @classmethod
    def at(cls, reason: str, *, sql: str, line: int | None, column: int | None) -> InvalidQuery:
        """Point into the user's text.

        >>> print(InvalidQuery.at("expected an expression", sql="a = = 1", line=1, column=5))
        expected an expression (line 1, column 5)
          a = = 1
              ^
        """
        if line is None or column is None:
            return cls(f"{reason}\n  {_shorten(sql)}" if sql.strip() else reason, sql=sql)
        lines = sql.splitlines() or [""]
        shown, place = _around(lines[min(line, len(lines)) - 1].replace("\t", " "), column - 1)
        pointer = " " * place + "^"
        return cls(
            f"{reason} (line {line}, column {column})\n  {shown}\n  {pointer}", line=line, column=column, sql=sql
        )


class ColumnNotFound(SkipstoneError, KeyError):
    """A column that the schema does not have."""

    def __init__(
        self, message: str, *, name: str = "", available: Sequence[str] = (), nearest: str | None = None
    ) -> None:
        super().__init__(message)
        self.name = name
        self.available = tuple(available)
        self.nearest = nearest

    @classmethod
    def among(cls, name: str, available: Iterable[str], *, where: str = "the schema") -> ColumnNotFound:
        """Name what was asked for, what there is, and the near miss.

        >>> print(ColumnNotFound.among("l_shipdat", ["l_shipdate", "l_tax"], where="table lineitem"))
        no column "l_shipdat" in table lineitem. Did you mean "l_shipdate"? It has: l_shipdate, l_tax
        """
        names = list(available)
        nearest = near_miss(name, names)
        hint = f' Did you mean "{nearest}"?' if nearest else ""
        return cls(
            f'no column "{name}" in {where}.{hint} It has: {listed(names)}', name=name, available=names, nearest=nearest
        )


class InvalidInput(SkipstoneError, ValueError):
    """A file, an option or a value that does not have the required form."""


class TableNotFound(SkipstoneError, LookupError):
    """No table of this name here."""

    @classmethod
    def among(cls, name: str, available: Iterable[str], *, where: str) -> TableNotFound:
        """Name what was asked for, what there is, and the near miss."""
        names = sorted(available)
        nearest = near_miss(name, names)
        hint = f' Did you mean "{nearest}"?' if nearest else ""
        return cls(f'no table "{name}" in {where}.{hint} Tables there: {listed(names)}')


class TableExists(SkipstoneError, ValueError):
    """A table of this name is already here."""


class SnapshotNotFound(SkipstoneError, LookupError):
    """A version that never was, or whose files have been vacuumed."""


class CommitConflict(SkipstoneError):
    """Another writer changed the same chunks first. Nothing was lost, and nothing of ours was committed."""


class StorageFailed(SkipstoneError, OSError):
    """A disk or an object store did not do what it was asked to do. Nothing was committed."""


class VerificationFailed(SkipstoneError):
    """What was written is not what was read. Nothing was committed."""


class LayoutInfeasible(SkipstoneError, ValueError):
    """The data or the limits leave no layout to choose."""

    @classmethod
    def past_the_storage_budget(cls, stored: float, budget: float, predicted: float) -> LayoutInfeasible:
        """Say by how much, and why that could not be foreseen.

        >>> print(str(LayoutInfeasible.past_the_storage_budget(1.2345, 1.2, 1.19))[:61])
        laid out, these rows take 1.2345 times the cells of the table
        """
        return cls(
            f"laid out, these rows take {stored:.4f} times the cells of the table, which is more than the budget of "
            f"{budget:g}; a sample showed {predicted:.4f}. Nothing was committed. "
            f"Hint: advise again, with more sample rows or a larger budget"
        )


class CannotEvaluate(SkipstoneError):
    """Arrow cannot give Spark's answer for an expression, ever or for these rows; unknown means read.

    The message is one sentence without a full stop that a plan can show: what it is, and why.
    """


class MissingDependency(SkipstoneError, ImportError):
    """An optional package, or Java, is not there."""

    @classmethod
    def extra(cls, package: str, extra: str, *, purpose: str) -> MissingDependency:
        """Print the line that installs it.

        >>> print(MissingDependency.extra("polars", "polars", purpose="Scan.to_polars()"))
        Scan.to_polars() needs the package polars, which is not installed. Try: pip install 'skipstone[polars]'
        """
        return cls(
            f"{purpose} needs the package {package}, which is not installed. Try: pip install 'skipstone[{extra}]'"
        )


class ExecutionFailed(SkipstoneError):
    """Spark failed while it worked for us; `condition` is Spark's own name for it where it has one."""

    def __init__(self, message: str, *, condition: str | None = None) -> None:
        super().__init__(message)
        self.condition = condition


def near_miss(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a person most likely meant, if any is close.

    >>> near_miss("L_Shipdate", ["l_shipdate", "l_tax"])
    'l_shipdate'
    """
    by_folded = {candidate.lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def listed(names: Sequence[str]) -> str:
    """A list for a sentence, cut where it gets long.

    >>> listed([f"c{i}" for i in range(100)])
    'c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, ... and 88 more'
    """
    if not names:
        return "none"
    shown = ", ".join(names[:NAMES_LISTED])
    rest = len(names) - NAMES_LISTED
    return f"{shown}, ... and {rest} more" if rest > 0 else shown


def _around(line: str, place: int) -> tuple[str, int]:
    """Cut a long line to what stands around a place, and say where the place is in that.

    >>> _around("a" * 500, 250) == ("..." + "a" * 94 + "...", 50)
    True
    """
    if len(line) <= WIDTH:
        return line, place
    start = max(0, min(place - WIDTH // 2, len(line) - WIDTH))
    shown = line[start : start + WIDTH]
    if start > 0:
        shown = "..." + shown[3:]
    if start + WIDTH < len(line):
        shown = shown[:-3] + "..."
    return shown, place - start


def _shorten(text: str, width: int = 160) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= width else folded[: width - 4] + " ..."
