"""Spark's exceptions become ours at the border: one line about the cause, and no Java stack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, PySparkException

from skipstone.errors import ExecutionFailed, InvalidQuery, SkipstoneError

__all__ = ["spark_failures_as_ours"]

LONGEST_CAUSE = 300
_SQLSTATE = re.compile(r"\bSQLSTATE: .*")
"""A number that says less than the name of the condition, and a place in a text with other names than the user's."""

WORKER_ERROR = "skipstone.errors."


@contextmanager
def spark_failures_as_ours(doing: str) -> Iterator[None]:
    """Translate what Spark raises inside the block; `doing` says what was going on."""
    try:
        yield
    except SkipstoneError:
        raise
    except AnalysisException as error:
        raise InvalidQuery(f"{doing}: Spark does not accept this. {_cause(str(error))}") from error
    except PySparkException as error:
        condition = error.getCondition()
        raise ExecutionFailed(f"{doing}: Spark failed. {_cause(str(error))}", condition=condition) from error


def _cause(text: str) -> str:
    """Find the line that says why: the last line of a Python traceback, else Spark's own first line.

    >>> _cause("[UDF] failed\\nTraceback (most recent call last):\\n  File x\\nOSError: disk full\\n")
    'OSError: disk full'
    """
    told = (_SQLSTATE.sub("", line).strip() for line in text.splitlines())
    lines = [line for line in told if line]
    lines = [line for line in lines if not line.startswith(("at ", "Caused by: org.apache.spark"))]
    traceback = [number for number, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    cause = (
        next(
            (line for line in lines[traceback[-1] + 1 :] if not line.startswith(("File ", "^")) and ": " in line),
            lines[-1],
        )
        if traceback
        else (lines[0] if lines else "no reason given")
    )
    return cause if len(cause) <= LONGEST_CAUSE else cause[: LONGEST_CAUSE - 4] + " ..."
