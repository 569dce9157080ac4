"""What every test of the command line leaves as it was: the loggers, whose handler belongs to the run."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    logger = logging.getLogger("skipstone")
    level, handlers = logger.level, list(logger.handlers)
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers
