# Everything that a fresh machine needs is Python 3.11 or later and make.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
# Interpreters that pyenv keeps out of the path are found as well.
export TOX_DISCOVER := $(wildcard $(HOME)/.pyenv/versions/3.1[1-9].*/bin/python3)
QUESTION ?= What is in this folder?

.PHONY: demo test bench docs types lint clean

$(BIN)/tox:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet 'tox>=4.11'

$(VENV)/installed: $(BIN)/tox pyproject.toml $(wildcard harness_plugins/*/pyproject.toml)
	$(BIN)/python -m pip install --quiet . && $(BIN)/python scripts/install_plugins.py
	touch $@

demo: $(VENV)/installed
	$(BIN)/harness run --composition docs/examples/demo/harness.toml "$(QUESTION)"

test: $(VENV)/installed
	$(BIN)/tox run -e py311,py312,py313 --skip-missing-interpreters true

types lint docs bench: $(BIN)/tox
	$(BIN)/tox run -e $@

clean:
	rm -rf $(VENV) .tox build dist bench-results
