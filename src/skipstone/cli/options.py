"""Options that several commands have in the same form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from skipstone.errors import InvalidInput

__all__ = ["AsJson", "SchemaDialect", "SchemaSource", "StorageOption", "storage_options"]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
SchemaSource = Annotated[
    str,
    typer.Option(
        "--schema",
        metavar="SCHEMA",
        help="The columns: a Parquet file or directory, a Delta table, a DDL file, or a JSON schema.",
    ),
]
SchemaDialect = Annotated[
    str, typer.Option("--dialect", metavar="D", help="The dialect of the SQL, DDL files included.")
]

StorageOption = Annotated[
    list[str] | None, typer.Option("--storage-option", metavar="NAME=VALUE", help="How to open an object store.")
]


def storage_options(given: Sequence[str] | None) -> Mapping[str, str]:
    """Read options of the form NAME=VALUE.

    >>> storage_options(["AWS_REGION=eu-west-1"])
    {'AWS_REGION': 'eu-west-1'}
    """
    pairs = [one.partition("=") for one in given or ()]
    wrong = [name for name, equals, _ in pairs if not equals]
    if wrong:
        raise InvalidInput(f'a storage option has the form NAME=VALUE; this one has no "=": {wrong[0]}')
    return {name: value for name, _, value in pairs}
