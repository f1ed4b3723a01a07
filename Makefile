# Two commands for a newcomer: `make demo` and `make test`. Both create their own environment in .venv.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test fuzz lint bench format clean

demo: $(VENV)/.installed
	$(BIN)/fairpca demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist loadfile

# Properties on random data, for long: make fuzz FUZZ_EXAMPLES=3000. Whatever is put into tests/properties takes part.
FUZZ_EXAMPLES ?= 300
FUZZ_SECONDS  ?= 300
fuzz: $(VENV)/.test
	FAIRPCA_FUZZ=1 FAIRPCA_FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(BIN)/python -m pytest tests/properties
	FAIRPCA_FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest tests/fuzz -q -s
	FAIRPCA_FUZZ_KILLS=20 $(BIN)/python -m pytest tests/cli/test_signals.py -q -rP

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.test
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fairpca needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e .
	@touch $@

$(VENV)/.test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group test
	@touch $@

$(VENV)/.lint: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group lint
	@touch $@
