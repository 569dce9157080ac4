#!/usr/bin/env bash
# Make a working environment on a bare machine: a virtual environment with pinned versions, and Java for Spark.
# Called by make; a second run does nothing because make compares .venv/.ready with the files it was made from.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*"; }

debian_root() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

apt_install() {
    say "installing $* with apt-get"
    apt-get install -y --no-install-recommends "$@" >/dev/null 2>&1 ||
        { apt-get update >/dev/null && apt-get install -y --no-install-recommends "$@" >/dev/null; }
}

find_python() {
    local name
    for name in python3.11 python3.12 python3.13 python3; do
        if command -v "$name" >/dev/null 2>&1 &&
            "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    echo "setup: no Python 3.11, 3.12 or 3.13 found. On Debian: sudo apt-get install python3 python3-venv" >&2
    return 1
}

make_venv() {
    local python
    python=$(find_python)
    [ -x .venv/bin/python ] && .venv/bin/python -c '' 2>/dev/null && return
    rm -rf .venv
    if ! "$python" -m venv .venv >/dev/null 2>&1; then
        # Debian ships venv apart from Python.
        if debian_root; then apt_install python3-venv && rm -rf .venv && "$python" -m venv .venv
        else
            say "cannot make a virtual environment. On Debian: sudo apt-get install python3-venv" >&2
            exit 1
        fi
    fi
}

java_major() {
    local java=${JAVA_HOME:+$JAVA_HOME/bin/}java
    "$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

need_java() {
    local major
    major=$(java_major || true)
    if [ "${major:-0}" -ge 17 ]; then return; fi
    if debian_root; then
        apt_install openjdk-17-jre-headless
        major=$(java_major || true)
        if [ "${major:-0}" -ge 17 ]; then return; fi
    fi
    say "Spark needs Java 17 or newer, found: ${major:-none}." >&2
    say "On Debian or Ubuntu: sudo apt-get install openjdk-17-jre-headless" >&2
    say "Elsewhere: install any JDK 17+ and set JAVA_HOME to it." >&2
    exit 1
}

make_venv
say "installing packages (a minute or two the first time)"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' 2>&1 | { grep -v WARNING || true; }
.venv/bin/python -m pip install --quiet --constraint constraints.txt --group dev --editable '.[console,duckdb,polars]' 2>&1 | { grep -v WARNING || true; }
need_java
touch .venv/.ready
say "ready: $(.venv/bin/python -m pip list 2>/dev/null | grep -c .) packages, Java $(java_major)"
