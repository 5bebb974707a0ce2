# Everything that a fresh machine needs is Python 3.11 or later and make.

# The first interpreter that is new enough and can make virtual environments: a name on the path may lead nowhere.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
export QUESTION ?= What is in this folder?

# Python versions that are not there are skipped. Interpreters that pyenv keeps off the path are found as well; tox wants commas between them.
empty :=
comma := ,
PYENV_ROOT ?= $(HOME)/.pyenv
export TOX_DISCOVER ?= $(subst $(empty) $(empty),$(comma),$(strip $(wildcard $(PYENV_ROOT)/versions/3.1[1-9]*/bin/python3)))
TEST_ENVIRONMENTS := py311,py312,py313

SOURCES := pyproject.toml README.md $(shell find harness_core harness_plugins/*/src harness_plugins/*/pyproject.toml -name '*.py' -o -name '*.toml')

.PHONY: demo test check types lint api docs bench clean

$(BIN)/tox:
	@test -n '$(PYTHON)' || { echo 'Python 3.11 or later is needed; name one with make PYTHON=/path/to/python.'; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet 'tox>=4.11'

$(VENV)/installed: $(BIN)/tox $(SOURCES)
	$(BIN)/python scripts/install_distributions.py
	touch $@

# The main job: an agent answers a question about this folder, with tools, offline. make demo QUESTION="..." asks another.
demo: $(VENV)/installed
	$(BIN)/harness run --composition docs/examples/demo/harness.toml "$$QUESTION"

test: $(VENV)/installed
	$(BIN)/tox run -e $(TEST_ENVIRONMENTS) --skip-missing-interpreters true

# What is checked besides the tests.
check: lint types api docs

types lint api docs bench: $(BIN)/tox
	$(BIN)/tox run -e $@

clean:
	rm -rf $(VENV) .tox build dist bench-results site ci-test.log
