"""Spark's exceptions become ours at the border: one line about the cause, and no Java stack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException

from skipstone import errors
from skipstone.errors import ExecutionFailed, InvalidQuery, SkipstoneError

__all__ = ["spark_failures_as_ours"]

LONGEST_CAUSE = 300
_SQLSTATE = re.compile(r"\bSQLSTATE: .*")
"""A number that says less than the name of the condition, and a place in a text with other names than the user's."""

_TRACEBACK = "Traceback (most recent call last)"
_JAVA_STACK = ("at ", "Caused by: org.apache.spark")

WORKER_ERROR = "skipstone.errors."
"""How the last line of a worker's traceback begins where it was an error of ours."""


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
        cause = _cause(str(error))
        ours = _raised_in_a_worker(cause)
        if ours is not None:
            raise ours from error
        raise ExecutionFailed(f"{doing}: Spark failed. {cause}", condition=error.getCondition()) from error
    except Py4JError as error:
        # What Spark does not expect itself comes as Java raised it.
        raise ExecutionFailed(f"{doing}: Spark failed. {_cause(_without_call(str(error)))}") from error


def _raised_in_a_worker(cause: str) -> SkipstoneError | None:
    """The error of ours that ended a task, if it was one of ours.

    >>> _raised_in_a_worker("skipstone.errors.InvalidInput: rows.csv cannot be read as CSV")
    InvalidInput('rows.csv cannot be read as CSV')
    """
    name, _, message = cause.removeprefix(WORKER_ERROR).partition(": ")
    kind = getattr(errors, name, None) if cause.startswith(WORKER_ERROR) else None
    if not (isinstance(kind, type) and issubclass(kind, SkipstoneError)):
        return None
    return kind(message)


def _without_call(text: str) -> str:
    """Leave out which call of ours it was that Java answered with an error.

    >>> _without_call("An error occurred while calling o33.sql.\\n: java.lang.Error: [INTERNAL_ERROR] x")
    'java.lang.Error: [INTERNAL_ERROR] x'
    """
    return re.sub(r"\AAn error occurred while calling \S+\s*:?\s*", "", text)


def _cause(text: str) -> str:
    """Find the line that says why: the last line of a Python traceback, else Spark's own first line.

    >>> _cause("[UDF]\\nTraceback (most recent call last):\\n  File\\n    raise E('a: b')\\nOSError: disk full\\n")
    'OSError: disk full'
    """
    told = [line for line in _SQLSTATE.sub("", text).splitlines() if line.strip()]
    begun = [number for number, line in enumerate(told) if line.startswith(_TRACEBACK)]
    if begun:
        # The frames of a traceback are indented; the error that ends it is not.
        cause = next((line for line in told[begun[-1] + 1 :] if not line[0].isspace()), told[-1]).strip()
    else:
        lines = [line.strip() for line in told]
        cause = next((line for line in lines if not line.startswith(_JAVA_STACK)), "no reason given")
    return cause if len(cause) <= LONGEST_CAUSE else cause[: LONGEST_CAUSE - 4] + " ..."
