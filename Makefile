# Everything a fresh machine needs is Python >= 3.11 and make; each target builds its own .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Real data sets, when they lie beside the checkout; without them the tests that want them skip.
SKFAIR_DATA ?= $(if $(wildcard ../shared/data/datasets.json),$(abspath ../shared/data))
export SKFAIR_DATA
WORKERS ?= 2

.PHONY: help demo test lint doc bench clean
help:
	@echo "make demo    run the quick start: audit, choose and train; tables and a picture"
	@echo "make test    install the test extra and run every test and doctest"
	@echo "make lint    ruff and mypy"
	@echo "make doc     build the site into doc/_build/html"
	@echo "make bench   compare with peers; NAME=... for one comparison, QUICK=1 for a short run"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# One stamp per extra, renewed when the requirements change.
$(VENV)/.stamp-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	@touch $@

demo: $(VENV)/.stamp-plot
	MPLBACKEND=Agg $(BIN)/python examples/plot_quickstart.py

test: $(VENV)/.stamp-test
	$(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=term --cov-fail-under=95

lint: $(VENV)/.stamp-lint $(VENV)/.stamp-plot
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

doc: $(VENV)/.stamp-doc
	$(BIN)/python -m sphinx -W --keep-going -b html doc doc/_build/html

bench: $(VENV)/.stamp-bench
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 \
	$(BIN)/python -m benchmarks $(NAME) $(if $(QUICK),--quick)

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache doc/_build doc/generated
