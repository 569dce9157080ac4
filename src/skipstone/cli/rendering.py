"""What all commands share when they print: JSON, and tables that take data for data."""

from __future__ import annotations

import base64
import json
import math
import numbers
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["cell", "grid", "print_grid", "print_json"]

WIDTH_OF_FILES = 120
"""Letters in a line where the output is no terminal, and nothing says otherwise."""


def print_json(value: object) -> None:
    """Print one JSON document. What JSON has no numbers or letters for is written as Spark's `to_json` does."""
    json.dump(_plain(value), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def _plain(value: object) -> object:
    """Reduce a value to what JSON can say.

    >>> import decimal
    >>> _plain({"n": (float("nan"), decimal.Decimal("1.50")), "b": b"ab", "s": frozenset({"y", "x"})})
    {'n': ['NaN', '1.50'], 'b': 'YWI=', 's': ['x', 'y']}
    """
    match value:
        case None | bool() | int() | str():
            return value
        case numbers.Integral():  # numpy's
            return int(value)
        case float():
            return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case datetime():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case Mapping():
            return {str(name): _plain(one) for name, one in value.items()}
        case frozenset() | set():
            return sorted((_plain(one) for one in value), key=str)
        case list() | tuple():
            return [_plain(one) for one in value]
    return str(value)


def grid(*columns: str, numbers: Iterable[str] = ()) -> Table:
    """Begin a table; columns in `numbers` are set to the right. Names are shown as they are: `[x]` is no markup."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    right = set(numbers)
    for name in columns:
        table.add_column(Text(name), justify="right" if name in right else "left", overflow="fold")
    return table


def cell(value: object, *, style: str = "") -> Text:
    """Show a value in a table, whatever letters are in it."""
    return Text("NULL" if value is None else str(value), style=style)


def print_grid(table: Table, rows: Iterable[Sequence[object]]) -> None:
    """Fill a table with values and print it."""
    for row in rows:
        table.add_row(*(value if isinstance(value, Text) else cell(value) for value in row))
    console = Console(width=_width())
    with console.capture() as captured:
        console.print(table)
    lines = (line.rstrip() for line in captured.get().splitlines())
    typer.echo("\n".join(line for line in lines if line))


def _width() -> int | None:
    """The width of a terminal is its own; a file has room."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return shutil.get_terminal_size().columns
    return WIDTH_OF_FILES
