# Everything a fresh machine needs is Python >= 3.11 and make; each target builds its own .venv.
PYTHON ?= python3
# A checkout that cannot be written has its environment, and what is installed into it, elsewhere.
WRITABLE := $(shell test -w . && echo yes)
VENV := $(if $(WRITABLE),.venv,$(or $(TMPDIR),/tmp)/skfair-venv)
BIN := $(VENV)/bin
PIP := --quiet --no-compile --disable-pip-version-check
# make test DEPENDENCIES=oldest: the oldest that pyproject.toml allows, in an environment that has none yet.
ifeq ($(DEPENDENCIES),oldest)
PIP += --constraint $(VENV)/oldest.txt
endif
# The address of the repository, https://HOST/PEOPLE/skfair, for whoever publishes: make release writes it into
# what it builds, and the site links to it. This is the only place.
SKFAIR_REPOSITORY ?=
export SKFAIR_REPOSITORY
# Real data sets, when they lie beside the checkout; without them the tests that want them skip.
SKFAIR_DATA ?= $(if $(wildcard ../shared/data/datasets.json),$(abspath ../shared/data))
export SKFAIR_DATA
WORKERS ?= 2

# What a benchmark needs to know: no threads, so that CPU seconds of competitors compare.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1

.PHONY: help venv demo test test-all engines test-seeds test-tenth coverage test-bounds test-nojit test-processors fuzz lint doc recorded doc-look bench bench-check release clean
help:
	@echo "make venv    build .venv with what tests, linters and formatting need"
	@echo "make demo    audit a model and limit its disparity: audit.html and demo.png"
	@echo "make test    install the test extra and run the tests and doctests; make test-all, the slow ones too"
	@echo "make engines    the tests of tables in Spark, which is installed, and Java where it is missing"
	@echo "make coverage   the same, and at least 95 % of the lines and branches must be run"
	@echo "make lint    style, types, layers, docstrings, spelling and words"
	@echo "make doc     build the site into doc/_build/html; make doc-look opens every page in Chromium"
	@echo "make recorded   run the examples with real data, and keep their outputs for sites that are built without"
	@echo "make bench   compare with peers; NAME=... for one comparison, ONLY=... for one of its tables, QUICK=1 for a short run"
	@echo "make bench-check   did results of benchmarks change? did something become slower, or less accurate?"
	@echo "make fuzz    100 odd inputs and hard fits of each public name; CASES=... SEED=..."
	@echo "make test-bounds, make test-nojit   the tests with checked indices, and kernels as Python"
	@echo "make test-processors   the tests as four processors and a generic one run them: five times make test"
	@echo "make release   build, install elsewhere, test from outside: every Python found, newest and oldest"
	@echo "               dependencies; names missing Pythons and the tag; PYTHON=... DEPENDENCIES=oldest for one"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp per list of extras, renewed when the requirements change. Modules are compiled when they
# are imported: most of them never are, and to compile all doubles the time of an installation.
$(VENV)/.stamp-%: pyproject.toml | $(BIN)/python
	$(BIN)/python .ci/oldest.py > $(VENV)/oldest.txt
ifdef WRITABLE
	$(BIN)/python -m pip install $(PIP) --editable ".[$*]"
else
	rm -rf $(VENV)/source && mkdir $(VENV)/source
	cp -r pyproject.toml setup.cfg README.md LICENSE skfair $(VENV)/source
	$(BIN)/python -m pip install $(PIP) "$(VENV)/source[$*]"
endif
	@touch $@

venv: $(VENV)/.stamp-test,lint,plot,report

demo: $(VENV)/.stamp-plot,report
	MPLBACKEND=Agg $(BIN)/python examples/plot_quickstart.py

# Kernels are compiled before the tests, or every worker would compile the same ones.
test: $(VENV)/.stamp-test
	$(if $(WRITABLE),$(BIN)/python -m skfair warm)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(if $(WRITABLE),,-p no:cacheprovider)

test-all: $(VENV)/.stamp-test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

engines: $(VENV)/.stamp-test
	command -v java || apt-get install --yes --quiet default-jre-headless
	$(BIN)/python -m pip install $(PIP) pyspark
	$(BIN)/python -m pytest tests/groups/test_engine_tables.py -k spark

# The same with other random numbers: SEEDS=20 for twenty seeds.
test-seeds: $(VENV)/.stamp-test
	SKFAIR_TESTS_SEED=1-$(or $(SEEDS),5) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

# A tenth of them, drawn anew, with a seed drawn anew, which pytest prints first.
test-tenth: $(VENV)/.stamp-test
	$(if $(WRITABLE),$(BIN)/python -m skfair warm)
	SKFAIR_TESTS_SEED=any $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" --share 0.1 \
		$(if $(WRITABLE),,-p no:cacheprovider)

# Counting lines makes tests nearly twice as slow, so it is done apart.
coverage: $(VENV)/.stamp-test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --cov --cov-report=term --cov-fail-under=95

# Kernels are compiled anew with checks of every index, and kept apart from the usual ones.
test-bounds: $(VENV)/.stamp-test
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=build/numba-bounds $(BIN)/python -m pytest -n $(WORKERS) tests

# Sums are rounded differently by the kernels of another processor, and each run draws other numbers.
# Those that this one cannot run end in an error; each run takes as long as make test, and the last
# compiles all kernels first.
test-processors: $(VENV)/.stamp-test
	seed=1; for core in Prescott Haswell SkylakeX Zen; do echo "OPENBLAS_CORETYPE=$$core"; \
		SKFAIR_TESTS_SEED=$$seed OPENBLAS_CORETYPE=$$core \
		$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" tests || exit 1; \
		seed=$$((seed + 1)); done
	SKFAIR_TESTS_SEED=5 NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=build/numba-generic \
		$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" tests

# Kernels run as Python, so that their lines count. Where they need minutes that way, tests are left out.
NOJIT := tests/test_kernels.py tests/metrics tests/problems tests/constraints tests/cluster/spectral \
	tests/cluster/assignment \
	$(addprefix tests/enforcement/,test_cuts.py decisions/test_decisions.py) \
	$(addprefix tests/partial_parity/test_,constraints_of_intervals.py pairwise_constraints.py ranks_in_groups.py \
	surrogates.py problem.py pair_losses.py repair.py thresholds.py) \
	tests/cluster/kmeans/test_prices.py tests/papers/safairkm/test_swap.py
test-nojit: $(VENV)/.stamp-test
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n $(WORKERS) $(NOJIT) --cov=skfair._kernels --cov=skfair.cluster.assignment._kernels --cov=skfair.cluster.spectral._kernels --cov=skfair.papers._kernels --cov=skfair.partial_parity._kernels --cov-report=term

fuzz: $(VENV)/.stamp-test
	SKFAIR_FUZZ=$(or $(CASES),100) SKFAIR_SEED=$(or $(SEED),0) \
		$(BIN)/python -m pytest -n $(WORKERS) tests/fuzz --hypothesis-seed=$(or $(SEED),0)

# What linters remember of the last run.
CACHES := $(if $(WRITABLE),.,$(VENV))
lint: export RUFF_CACHE_DIR = $(CACHES)/.ruff_cache
lint: export MYPY_CACHE_DIR = $(CACHES)/.mypy_cache
lint: $(VENV)/.stamp-lint,plot,report
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file= --strict --explicit-package-bases --ignore-missing-imports --follow-imports=silent \
		--cache-dir=$(CACHES)/.mypy_cache/calls $$(find tests -name typed_calls.py)
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/codespell .ci .github benchmarks conda doc examples skfair tests conftest.py Makefile *.cff *.cfg *.md *.toml
	$(BIN)/python .ci/source_rules.py
	$(BIN)/python .ci/docstrings.py

# The examples of the pages on what can be added are run first; make test runs those of all pages.
# All pages are written anew (-a): the search forgets the entries of those that are not.
doc: $(VENV)/.stamp-doc
	$(BIN)/python -m doctest -o ELLIPSIS -o NORMALIZE_WHITESPACE doc/developer/add_a_*.rst
	$(BIN)/python -m sphinx -a -W --keep-going -b html -d doc/_build/doctrees doc doc/_build/html
	$(BIN)/python doc/built_pages.py

# For sites that are built without real data: needs SKFAIR_DATA.
recorded: $(VENV)/.stamp-doc
	$(ONE_THREAD) $(BIN)/python doc/recorded.py

# axe-core judges contrast; without npm the rest is looked at all the same.
doc-look: $(VENV)/.stamp-doc
	npm install --silent --no-save --prefix doc/_build axe-core || echo "no axe-core"
	$(BIN)/python doc/look.py
	$(BIN)/python doc/look_audits.py

bench: $(VENV)/.stamp-bench
	$(ONE_THREAD) $(BIN)/python -m benchmarks $(NAME) $(if $(ONLY),--only "$(ONLY)") $(if $(QUICK),--quick) $(if $(KEEP),--keep)

bench-check: $(VENV)/.stamp-bench
	failed=0; for part in canaries check frontier; do \
		$(ONE_THREAD) $(BIN)/python -m benchmarks.$$part $(if $(KEEP),--keep) || failed=1; done; exit $$failed

# One Python and one set of dependencies if they are named; else each newest, and the oldest once.
release:
	.ci/release $(if $(filter-out file,$(origin PYTHON)),$(PYTHON),all) $(DEPENDENCIES)

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache doc/_build doc/generated
