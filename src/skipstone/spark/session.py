"""A Spark session for those who bring none, and the check for Java that Spark itself words badly."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from skipstone.errors import MissingDependency
from skipstone.predicate.arrow.zones import fixed_offset

__all__ = ["local_session", "require_java", "session_zone"]

OLDEST_JAVA = 17


def local_session(threads: int | None = None, *, settings: dict[str, str] | None = None) -> SparkSession:
    """Find the Spark session of this process, or start one on this machine: quiet, in UTC, workers with this Python.

    A session that is found stays as it is; its owner has set it up.
    """
    found = SparkSession.getActiveSession()
    if found is not None and not settings:
        return found
    require_java()
    # Workers are found through PATH otherwise, and then lack the packages of a virtual environment.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.master(f"local[{threads or os.cpu_count() or 1}]")
        .appName("skipstone")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "8")
    )
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def session_zone(spark: SparkSession) -> str:
    """The time zone in which a session reads timestamps without an offset; UTC by that name, whatever it is called."""
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    return "UTC" if fixed_offset(zone) == 0 else zone


def require_java() -> None:
    """Raise a message that helps where Java is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    found = _java_version(java) if java else None
    if found is None or found < OLDEST_JAVA:
        what = f"Java {found}" if found else "no Java"
        raise MissingDependency(
            f"Spark needs Java {OLDEST_JAVA} or newer; {what} was found. "
            "On Debian or Ubuntu: sudo apt-get install openjdk-17-jre-headless. "
            "Elsewhere: install a JDK and set JAVA_HOME."
        )


def _java_version(java: str) -> int | None:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return None
    match = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match else None
