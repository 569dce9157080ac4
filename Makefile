# Everything a newcomer types. `make help` prints the lines that carry a ## comment.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PY := .venv/bin/python

.PHONY: help setup test test-fast test-long lint format demo constraints clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.ready ## create the virtual environment and check for Java

.venv/.ready: pyproject.toml constraints.txt tools/setup.sh
	@bash tools/setup.sh

lint: .venv/.ready ## style, import borders and types
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy

format: .venv/.ready ## rewrite the code in the one style
	@.venv/bin/ruff check --fix-only -q . ; .venv/bin/ruff format .

test: lint ## everything that must hold: style, types, tests, doctests
	@$(PY) -m pytest -n 2 --dist loadgroup -m "not slow"

test-fast: .venv/.ready ## the tests that need no Java
	@$(PY) -m pytest -n 2 -q -m "not slow and not spark"

test-long: .venv/.ready ## the long runs of the properties (SKIPSTONE_CASES=200000 for more)
	@$(PY) -m pytest -n 2 -m slow

demo: .venv/.ready ## generate TPC-H data, lay it out, and show what each query read before and after
	@$(PY) -m bench demo

constraints: ## pin the versions that are installed now
	@.venv/bin/python -m pip freeze --exclude-editable | grep -v '^pip==' > constraints.txt

clean: ## remove what was made here, the virtual environment included
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .bench .demo spark-warehouse
