# Two commands for a newcomer: `make demo` and `make test`. Both create their own environment in .venv.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
OLDEST ?= .venv-oldest

.PHONY: demo test test-anndata test-spark test-torch fuzz lint bench format clean docs docs-check test-oldest release-check

demo: $(VENV)/.installed
	$(BIN)/fairpca demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist loadfile

# Doors whose packages are large or hold others back (anndata: pandas below 3; pyspark: 456 MB, needs Java 17; torch: with CUDA
# on Linux unless an index of CPU builds is given), each in an environment of its own.
test-anndata test-spark test-torch: test-%: .venv-%/.installed
	.venv-$*/bin/python -m pytest -p no:cacheprovider tests/test_$*.py

.venv-%/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.venv-$*/bin/python -m pip install --quiet -e . --group $*
	@touch $@

# Random data sets and malformed files, for long, and 180 killed commands: make fuzz FUZZ_MINUTES=300.
FUZZ_MINUTES ?= 30
fuzz: $(VENV)/.test
	FAIRPCA_FUZZ_MINUTES=$(FUZZ_MINUTES) FAIRPCA_FUZZ_KILLS=20 $(BIN)/python -m pytest tests/properties tests/fuzz tests/audit/command/test_signals.py -rP

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/check_docstrings.py

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.test
	$(BIN)/python benchmarks/run.py

# The site, in build/site: static files. Strict: a broken link or reference, a warning or an error in an example fails. Examples
# run again only after a change of an example or of the code.
docs: $(VENV)/.docs docs/gallery/.run
	$(SPHINX) -W --keep-going -d build/doctrees docs build/site

SPHINX := PYTHONWARNINGS=error::UserWarning,error::RuntimeWarning,error::FutureWarning $(BIN)/python -m sphinx
docs/gallery/.run: $(shell find examples src reproductions -name '*.py')
	rm -rf docs/gallery docs/api/generated build/doctrees
	mkdir -p docs/gallery
	@touch $@

# The finished site: every link and anchor, no address of another machine, and a look at it in a browser.
docs-check: docs $(VENV)/.test
	FAIRPCA_SITE=build/site $(BIN)/python -m pytest tests/docs

# The declared minimums of all dependencies, in an environment of their own.
test-oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python -m pytest -n auto --dist loadfile -p no:cacheprovider

# What can be checked of a release without publishing it.
release-check: $(VENV)/.release
	$(BIN)/python tools/release_check.py

clean:
	rm -rf $(VENV) $(OLDEST) .venv-anndata .venv-spark .venv-torch build dist docs/gallery docs/api/generated .pytest_cache .mypy_cache .ruff_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fairpca needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[audit]"
	@touch $@

$(VENV)/.test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group test
	@touch $@

$(VENV)/.lint: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group lint
	@touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

$(VENV)/.release: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group release
	@touch $@

$(OLDEST)/.installed: pyproject.toml tools/oldest_versions.py
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(OLDEST)/bin/python tools/oldest_versions.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --constraint $(OLDEST)/constraints.txt -e . --group test
	@touch $@
