"""A lake laid out by what the package itself chooses, for experiments that read it with engines."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import skipstone
from bench.query import Query

__all__ = ["ChosenLake", "chosen_lake"]


@dataclass(frozen=True, slots=True)
class ChosenLake:
    """A lake of one table, the clustering that was chosen, and the seconds that advising and writing took."""

    home: Path
    table: str
    chosen: str
    seconds: float

    @property
    def data(self) -> Path:
        """The directory with the data files of the latest version, and of no other."""
        return self.home / self.table / "data"


def chosen_lake(source: Path, table: str, train: Sequence[Query], home: Path, block_rows: int) -> ChosenLake:
    """Load a dataset, lay it out for the training queries, publish it as Delta, and drop the files as they came."""
    shutil.rmtree(home, ignore_errors=True)
    made = skipstone.open(home).create(table, source)
    started = time.perf_counter()
    work = skipstone.Workload.of([query.sql for query in train], {table: made.schema})
    advice = made.advise(work, block_rows=block_rows)
    made.optimize(advice)
    seconds = time.perf_counter() - started
    made.export()
    made.vacuum(timedelta(0), dry_run=False, allow_short_retention=True)
    return ChosenLake(home, table, advice.chosen, seconds)
