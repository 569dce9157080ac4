"""`skipstone predicate`: what the algebra of filters says about two conditions."""

from __future__ import annotations

from typing import Annotated

import typer

from skipstone.catalog.schema_files import read_schemas
from skipstone.cli.options import AsJson, SchemaSource, StorageOption, storage_options
from skipstone.cli.rendering import print_json
from skipstone.errors import InvalidInput
from skipstone.predicate.implication import explain_implication
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql

__all__ = ["predicate"]

predicate = typer.Typer(add_completion=False, help="Ask the algebra of filters.")


@predicate.callback()
def about() -> None:
    """Ask the algebra of filters."""


@predicate.command()
def implies(
    p: Annotated[str, typer.Argument(metavar="SQL", help="A condition, as after WHERE.")],
    q: Annotated[str, typer.Argument(metavar="SQL", help="Another one.")],
    schema: SchemaSource,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="The table, where SCHEMA describes several.")
    ] = None,
    dialect: Annotated[
        str, typer.Option(metavar="D", help="The SQL dialect of the conditions and of a DDL file.")
    ] = "spark",
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Say whether every row that makes the first condition TRUE makes the second TRUE, and why.

    Ends with 0 for yes and 1 for no. No also means: not found by the rules that there are.
    """
    found = read_schemas(schema, table=table, dialect=dialect, options=storage_options(storage_option))
    if len(found) > 1:
        raise InvalidInput(f"{schema} describes several tables; name one with --table: {', '.join(found)}")
    (columns,) = found.values()
    first, second = (parse_filter(text, columns, dialect=dialect) for text in (p, q))
    answer = explain_implication(first, second)
    if as_json:
        print_json(
            {
                "implies": answer.holds,
                "p": sql(first),
                "q": sql(second),
                "steps": answer.steps,
                "missing": answer.missing,
            }
        )
    else:
        typer.echo("yes" if answer.holds else "no")
        for sentence in answer.steps if answer.holds else answer.missing:
            typer.echo(f"  {sentence}")
    if not answer.holds:
        raise typer.Exit(1)
