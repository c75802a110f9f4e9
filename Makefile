# `make demo` and `make test` do everything on a machine that has only Python, git and make.

PYTHON ?= python3
# One exact build, because an open range may fetch several GB of CUDA libraries. setup.cfg keeps the range.
TORCH ?= torch==2.13.0

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := demo
.PHONY: demo test test-all fuzz sanitize lint format tables docs bench clean help

demo: $(INSTALLED)  ## neighbours of ambiguous words in context, then NER with and without ELMo (the default)
	$(BIN)/python scripts/demo.py

# A process per core and one thread in each: the networks in the tests are so small that a second thread only waits.
test: $(INSTALLED)  ## the tests, without those marked slow
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto -m "not slow" $(PYTEST)

test-all: $(INSTALLED)  ## all tests once: also the browser, the site, notebooks, projects, pip, faults
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal $(PYTEST)

# New seeds each time; `make test-all` has a few of each.
MINUTES ?= 10
fuzz: $(INSTALLED)  ## damaged weights files, checkpoints and corpora, for MINUTES=10
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --minutes $(MINUTES)

# KINDS=best takes the newest kind alone.
sanitize: $(INSTALLED)  ## the tests of the C files with sanitizers, for all kinds of processor that this one runs
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.bilm.kernels.sanitize $(KINDS)

lint: $(INSTALLED)  ## style, format, types and the directions of imports, changing nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

format: $(INSTALLED)  ## sort imports and format in place
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

tables: $(INSTALLED)  ## the tables of the pages and cards from evidence/scores, and the page of options from docstrings
	$(BIN)/python -m scripts.tables
	$(BIN)/python -m scripts.model_cards
	$(BIN)/python -m scripts.reference

docs: $(INSTALLED)  ## the site of the documentation, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# The stamp is newer than the files that name the requirements and those that are compiled: a second call installs nothing.
$(INSTALLED): setup.cfg setup.py pyproject.toml $(wildcard spacy_elmo/bilm/kernels/*.[ch])
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

# AllenNLP is a rival only: without it, as without a network, its lines are left out.
TEXT ?= corpus/sample/pretrain-en/train-00.txt
bench: $(INSTALLED)  ## speeds of this machine, in ten minutes, to bench.json; TEXT=... is better than the sample
	test -d allennlp || $(BIN)/python -m pip install --quiet --no-deps --target allennlp allennlp==2.10.1 || true
	$(BIN)/python -m benchmarks.bench --text "$(TEXT)" --allennlp allennlp --out bench.json

clean:  ## remove what the commands made; .venv, assets and runs stay
	rm -rf build dist site *.egg-info training metrics packages project.lock
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find spacy_elmo tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 16
