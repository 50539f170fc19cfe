# The two commands to know: `make demo` and `make test`. Each builds .venv first if it is not there.

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
FUZZ_CASES ?= 6000

INTEGRATIONS := .venv-integrations

.PHONY: help setup demo test test-slow test-integrations fuzz lint format bench bench-scale docs dist lock audit clean

help:  ## show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup: $(READY)  ## build .venv with the tested versions and all extras

# First every version with the hashes of its files, and nothing beside them. Then the package itself, with the build
# backend that came with them; what is still missing are libraries that only some builds of torch and some systems need.
$(READY): pyproject.toml constraints.txt requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "sparsevae needs Python 3.11 or later; got $$($(PYTHON) --version). Name another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Building $(VENV) with the versions of requirements.lock: a few minutes, once."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --require-hashes --no-deps -r requirements.lock
	@$(PIP) -c constraints.txt --no-build-isolation -e '.[all,docs,dev]'
	@touch $@

demo: $(READY)  ## generate data with known factors, fit, compare: about a minute
	$(BIN)/sparsevae demo

# One thread per worker: two workers with two threads each would fight over two cores.
test: $(READY)  ## run the tests and the examples in docstrings: some minutes
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --doctest-modules src/sparsevae

test-slow: $(READY)  ## run the tests that take minutes each
	$(BIN)/python -m pytest -m slow

test-integrations: $(INTEGRATIONS)/.ready  ## run the recipes with scanpy, TensorBoard, MLflow and Optuna
	OMP_NUM_THREADS=1 $(INTEGRATIONS)/bin/python -m pytest tests/integrations

$(INTEGRATIONS)/.ready: pyproject.toml constraints-integrations.txt
	@echo "Building $(INTEGRATIONS) with the versions of constraints-integrations.txt: a few minutes, once."
	@test -x $(INTEGRATIONS)/bin/python || $(PYTHON) -m venv $(INTEGRATIONS)
	@$(INTEGRATIONS)/bin/python -m pip install -qq --disable-pip-version-check -c constraints-integrations.txt \
	  -e '.[anndata,integrations]' pytest hypothesis
	@touch $@

fuzz: $(READY)  ## attack with thousands of odd tables and damaged files: up to 20 minutes
	OMP_NUM_THREADS=1 $(BIN)/python -m fuzz --cases $(FUZZ_CASES) --workers $(WORKERS) --minutes 19

lint: $(READY)  ## check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## rewrite the code in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## measure speed and recovery; results in bench-results/
	$(BIN)/python -m benchmarks

bench-scale: $(READY)  ## measure tables on disk, checkpoints and several processes: hours
	for what in memory answers growth rate quality checkpoints kills processes whole sums agreement exits; do \
	  OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.scale $$what --out bench-results/scale || exit 1; done

docs: $(READY)  ## build the documentation in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# Without a build environment of its own: the locked hatchling builds.
dist: $(READY)  ## build the wheel and the source archive in dist/, and check both
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m twine check dist/*

lock: $(READY)  ## write requirements.lock anew from constraints.txt
	$(BIN)/python tools/lock.py

audit: $(READY)  ## compare the locked versions with the known vulnerabilities, where that can be asked
	$(BIN)/python tools/audit.py

clean:  ## remove .venv and everything that was built
	rm -rf $(VENV) $(INTEGRATIONS) .audit build dist docs/_build docs/gallery docs/results bench-results .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
