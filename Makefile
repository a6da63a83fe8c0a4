# Everything a newcomer needs: `make test` and `make demo` build .venv from this clone, then run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Packages are installed uncompiled: processes that may not write bytecode would compile torch at every start.
unexport PYTHONDONTWRITEBYTECODE
# $(call environment,python,folder): a new pip resolves in half the time of the one that Python brings
environment = $(1) -m venv $(2) && $(2)/bin/python -m pip install -q --no-compile --upgrade pip
PIP := $(BIN)/python -m pip install -q --no-compile -c constraints.txt
# Two processes install what is largest. Then the modules that most tests need, and the tests, are compiled while pip waits
# for the other packages: each process of pytest would compile them at its start.
FIRST := torch scikit-learn matplotlib typer rich pytest hypothesis
LARGE := ray pyarrow polars polars-runtime-32 playwright transformers moto botocore mypy mkdocs-material

.PHONY: help test test-oldest test-label-studio demo check lint types bench results docs release-check clean
help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(INSTALLED): pyproject.toml constraints.txt
	$(call environment,$(PYTHON),$(VENV))
	$(PIP) --no-deps $(LARGE) & $(PIP) $(FIRST) && wait
	$(BIN)/python -m pytest --collect-only >/dev/null 2>&1 & $(PIP) -e '.[dev]' && wait
	@touch $(INSTALLED)

# One process more than there are cores: some tests wait for a browser, a cluster or a process that they started.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
PYTEST := -m pytest -n $(WORKERS)
test: $(INSTALLED)  ## the whole test suite
	OMP_NUM_THREADS=1 $(BIN)/python $(PYTEST)

OLDEST := .venv-oldest
OLDEST_PYTHON ?= $(shell python3.10 --version >/dev/null 2>&1 && echo python3.10 || echo $(PYTHON))
# Ray 2.60, the oldest that works, needs newer versions of others: it is tested with the current ones.
OLDEST_EXTRAS ?= study,hf,parquet,xlsx,label
OLDEST_TOOLS ?= skorch peft pandas polars tensorboard playwright
# Only torch is looked up there: where that page cannot be reached, pip tries it again for every package.
TORCH_CPU := https://download.pytorch.org/whl/cpu/torch/
$(OLDEST)/.installed: pyproject.toml constraints-oldest.txt
	$(call environment,$(OLDEST_PYTHON),$(OLDEST))
	$(OLDEST)/bin/python -m pip install -q --no-compile -c constraints-oldest.txt --find-links $(TORCH_CPU) --no-deps torch
	$(OLDEST)/bin/python -m pip install -q --no-compile -c constraints-oldest.txt \
	  -e '.[$(OLDEST_EXTRAS)]' pytest pytest-xdist hypothesis $(OLDEST_TOOLS)
	@touch $@

test-oldest: $(OLDEST)/.installed  ## the suite, or TESTS of it, with the oldest versions that are supported
	OMP_NUM_THREADS=1 $(OLDEST)/bin/python $(PYTEST) $(TESTS)

STUDIO := .venv-label-studio
$(STUDIO)/.installed:
	$(call environment,$(PYTHON),$(STUDIO))
	$(STUDIO)/bin/python -m pip install -q --no-compile 'label-studio==1.23.*'
	@touch $@

test-label-studio: $(INSTALLED) $(STUDIO)/.installed  ## against a real Label Studio, in an environment of its own
	BADGE_LABEL_STUDIO=$(CURDIR)/$(STUDIO)/bin/label-studio $(BIN)/python -m pytest tests/labelling/test_label_studio_server.py

demo: $(INSTALLED)  ## the product at work on scikit-learn's digits
	$(BIN)/badge demo

lint: $(INSTALLED)  ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)  ## mypy: the package strictly, the tests less so
	$(BIN)/mypy

check: lint types test  ## lint + types + tests

bench: $(INSTALLED)  ## ours against the plain loop, peers and the bare matrix product
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[bench]'
	$(BIN)/python -m benchmarks $(ARGS)

results: $(INSTALLED)  ## docs/results.md and its figures from results/runs.csv.gz
	$(BIN)/python -m results build

docs: $(INSTALLED)  ## the documentation site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet --site-dir site

release-check: $(INSTALLED)  ## sdist and wheel, checked; the wheel alone and with each extra, in clean environments
	$(BIN)/python -m pip install -q -c constraints.txt build twine
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python .ci/release_check.py dist/*.whl

clean:  ## remove the environment and caches
	rm -rf $(VENV) $(OLDEST) $(STUDIO) site .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
