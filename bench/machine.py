"""The machine that a benchmark ran on, described without names of hosts or paths."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = ("pyspark", "pyarrow", "duckdb", "polars", "deltalake", "numpy", "numba", "sqlglot")


def machine() -> dict[str, str]:
    """Return what a reader needs to judge the figures: processor, memory, system, versions."""
    described = {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "python": platform.python_version(),
        "java": _java(),
    }
    for library in LIBRARIES:
        try:
            described[library] = version(library)
        except PackageNotFoundError:
            described[library] = "not installed"
    return described


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1).strip() if found else platform.machine()


def _java() -> str:
    program = shutil.which("java")
    if program is None:
        return "not installed"
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "([^"]+)"', said)
    return found.group(1) if found else "unknown"
