"""Options that several commands have in the same form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from skipstone.errors import InvalidInput
from skipstone.layout.clustering import CLUSTERINGS
from skipstone.layout.scheme import ClusteringSpec
from skipstone.relayout.advising import AUTO

__all__ = [
    "AsJson",
    "BlockRows",
    "Budget",
    "Clusterings",
    "CutBy",
    "Dialect",
    "Excluded",
    "Headroom",
    "LakeAt",
    "MaxFeatures",
    "MinSupport",
    "SampleRows",
    "SchemaDialect",
    "SchemaSource",
    "Seed",
    "SeekOption",
    "SourceAt",
    "SourceFormat",
    "Statement",
    "StorageOption",
    "TableName",
    "WithColumns",
    "WithSpark",
    "Workloads",
    "chosen_clusterings",
    "clustering_spec",
    "storage_options",
]

LakeAt = Annotated[str, typer.Argument(metavar="LAKE", help="The directory of tables: a path or a URI.")]
SourceAt = Annotated[
    str, typer.Argument(metavar="SOURCE", help="A Parquet file or directory, a CSV file, or a Delta table.")
]
CutBy = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Rows that differ in this never share a chunk: a column, or month(c), day(c) or year(c) of a date.",
    ),
]
SourceFormat = Annotated[str | None, typer.Option("--format", help="parquet, csv or delta; else the path tells.")]
Statement = Annotated[str, typer.Argument(metavar="SQL", help="A SELECT in Spark's SQL.")]
TableName = Annotated[str, typer.Argument(metavar="TABLE", help="The table's name.")]
WithSpark = Annotated[
    bool, typer.Option("--spark", help="Move rows with Spark tasks instead of the threads of this process.")
]
Workloads = Annotated[
    list[Path], typer.Option("--workload", "-w", help="SQL or JSON-lines files, or directories, of queries.")
]
Dialect = Annotated[str, typer.Option(metavar="D", help="The SQL dialect of the workload.")]
Clusterings = Annotated[
    list[str] | None,
    typer.Option(
        "--clustering",
        metavar="NAME",
        help=f"One to choose from, may be given several times: {', '.join(CLUSTERINGS)}; with parameters as in "
        f"'zorder(over=day,shop; dimensions=2)'. Without it: {', '.join(AUTO)}.",
    ),
]
BlockRows = Annotated[int, typer.Option(min=1, help="Rows of a block, at least.")]
SampleRows = Annotated[int, typer.Option(min=1, help="Rows to look at.")]
MinSupport = Annotated[
    float, typer.Option(metavar="T", help="A feature subsumes at least so many requests; below 1, a share of them.")
]
MaxFeatures = Annotated[int, typer.Option(metavar="K", min=0, help="At most so many features.")]
Excluded = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="COL", help="No features on this column; may be given several times."),
]
Seed = Annotated[int, typer.Option(help="What random choices begin with; the same seed gives the same layout.")]

WithColumns = Annotated[
    bool, typer.Option("--columns", help="Find an order of the columns inside every layout, too, if that pays.")
]
Headroom = Annotated[
    float, typer.Option(metavar="SHARE", min=0.0, help="Bytes that duplicates of columns may take: 0.05 is 5 percent.")
]
SeekOption = Annotated[
    str | None,
    typer.Option(
        "--seek",
        metavar="PROFILE",
        help="What a gap between columns costs: power, linear, object-store[:latency=MS,throughput=MB/S,gap=BYTES], "
        "or a file. Without it, what fits the place where the table lies.",
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        "--storage",
        metavar="TIMES",
        help="Try groups of columns and partial replicas, too; cells may be stored so many times, as in 1.2.",
    ),
]

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


def chosen_clusterings(given: Sequence[str] | None) -> str | tuple[ClusteringSpec, ...]:
    """Read the clusterings to choose from; `auto` where none is named.

    >>> chosen_clusterings(None), chosen_clusterings(["auto"])
    ('auto', 'auto')
    """
    if not given or list(given) == ["auto"]:
        return "auto"
    return tuple(clustering_spec(text) for text in given)


_SPEC = re.compile(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*", re.DOTALL)


def clustering_spec(text: str) -> ClusteringSpec:
    """Read the name of a clustering, and its parameters in parentheses.

    >>> clustering_spec("zorder(over=day, shop; dimensions=2)")
    ClusteringSpec(name='zorder', parameters=(('dimensions', 2), ('over', 'day, shop')))
    """
    found = _SPEC.fullmatch(text)
    if found is None:
        raise InvalidInput(f'a clustering is written NAME or NAME(PARAMETER=VALUE; ...), not "{text}"')
    pairs = [part.partition("=") for part in (found[2] or "").split(";") if part.strip()]
    if any(not equals for _, equals, _ in pairs):
        raise InvalidInput(f'the parameters of a clustering have the form PARAMETER=VALUE; found "{found[2]}"')
    return ClusteringSpec(found[1], tuple(sorted((name.strip(), _scalar(value.strip())) for name, _, value in pairs)))


def _scalar(text: str) -> str | int | float | bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
