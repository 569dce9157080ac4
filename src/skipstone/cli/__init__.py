"""The command line: parse a request, call one use case, render one result.

A command's module is loaded when the command is called, so that help and a typing error are answered at once. To add a
command, write a function with Typer's annotations, or a `typer.Typer` of several, and give it a line in `COMMANDS`.
"""

from __future__ import annotations

import importlib
import logging
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from skipstone.cli.failures import describe, exit_code
from skipstone.errors import near_miss

__all__ = ["COMMANDS", "CommandHome", "app", "load", "main"]


@dataclass(frozen=True, slots=True)
class CommandHome:
    """A command, the module of this package that has a function or application of its name, and its summary."""

    name: str
    module: str
    summary: str


COMMANDS = (
    CommandHome("create", "tables", "Make a table of the rows of a source; it can be queried at once."),
    CommandHome("append", "tables", "Add the rows of a source to a table, as new chunks."),
    CommandHome("advise", "tables", "Say what each layout would read for a workload, and which one pays."),
    CommandHome("optimize", "tables", "Lay a table out for a workload, if that pays, in one atomic commit."),
    CommandHome("query", "tables", "Run a query in Spark, reading only what can matter."),
    CommandHome("explain", "tables", "Say which blocks a query would read, which it would skip, and why."),
    CommandHome("show", "tables", "List the tables of a lake, or describe one."),
    CommandHome("history", "tables", "List the commits of a table, latest first."),
    CommandHome("restore", "tables", "Make a table what it was at a version, as a new commit."),
    CommandHome("vacuum", "tables", "Delete the files that no snapshot uses any more."),
    CommandHome("export", "tables", "Publish a table in place, without copying, so that other engines read it."),
    CommandHome("rewrite", "engines", "Print a query with the conditions that its filter implies, for other engines."),
    CommandHome("log", "engines", "List what was asked of a table, and what it read."),
    CommandHome("workload", "workload", "Look at a query log: what it asks for, and the features in it."),
    CommandHome("predicate", "predicate", "Ask the algebra of filters."),
    CommandHome("columns", "columns", "Order and duplicate the columns of a wide table."),
)
"""All commands, in the order of the list: tables first, then what works on workloads and filters alone."""


class _Commands(TyperGroup):
    """The commands of `COMMANDS`, each loaded when it is called; every error that they raise becomes one screen."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [home.name for home in COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Stand in for a command in a list: its name and summary."""
        home = _home(cmd_name)
        return TyperCommand(home.name, help=home.summary) if home else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the command that the first argument names."""
        name, *rest = args
        home = _home(name)
        if home is None:
            nearest = near_miss(name, self.list_commands(ctx))
            raise typer.BadParameter(f'no command "{name}".' + (f' Did you mean "{nearest}"?' if nearest else ""), ctx)
        return home.name, load(home), rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt as interrupt:
            raise typer.Exit(_report(interrupt, ctx)) from interrupt
        except Exception as error:
            if hasattr(error, "exit_code"):
                raise  # the option parser's own, which knows how to show itself
            raise typer.Exit(_report(error, ctx)) from error


def _home(name: str) -> CommandHome | None:
    return next((home for home in COMMANDS if home.name == name), None)


def load(home: CommandHome) -> Any:
    """Import a command's module and give the command itself."""
    found = getattr(importlib.import_module(f"skipstone.cli.{home.module}"), home.name)
    if not isinstance(found, typer.Typer):
        single = typer.Typer(add_completion=False)
        single.command(home.name)(found)
        found = single
    return typer.main.get_command(found)


def _report(error: BaseException, ctx: Any) -> int:
    debug = bool(ctx.params.get("debug"))
    if debug:
        logging.getLogger(__name__).error("the trace that --debug asks for", exc_info=error)
    typer.echo(describe(error), err=True)
    return exit_code(error)


app = typer.Typer(
    cls=_Commands, add_completion=False, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]}
)
"""The application; `COMMANDS` are its commands."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from skipstone import __version__

        typer.echo(f"skipstone {__version__}")
        raise typer.Exit


@app.callback()
def root(
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, show_default=False, help="Say what is done; -vv also why.")
    ] = 0,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", envvar="SKIPSTONE_DEBUG", help="Print the whole trace of an error, and all that Spark prints."
        ),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Lay lakehouse tables out for the queries people really run, so that they skip almost all of the data."""
    levels = (logging.WARNING, logging.INFO, logging.DEBUG)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s", "%H:%M:%S"))
    logger = logging.getLogger("skipstone")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.DEBUG if debug else levels[min(verbose, 2)])


def main() -> None:
    """Run the command line with the arguments of the process."""
    app(prog_name="skipstone")
