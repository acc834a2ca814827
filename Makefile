# Everything that people and CI run. `make help` lists it.

.DEFAULT_GOAL := help
SHELL := bash

# A Python that the pinned requirements know; the first that starts. Override: make PYTHON=/path/to/python …
PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,$(shell \
	$(p) -c 'import sys; (3, 11) <= sys.version_info[:2] <= (3, 13) and print("$(p)")' 2>/dev/null)) python3)
PY := $(if $(filter Windows_NT,$(OS)),.venv/Scripts/python,.venv/bin/python)
PORT ?= 8000
# Sources are UTF-8, whatever the machine thinks.
export PYTHONUTF8 := 1
# Many processes load the same modules: the first one compiles them for all, whatever the shell says of other projects.
unexport PYTHONDONTWRITEBYTECODE
# Notebooks are many small operations: one thread each is the fastest, and leaves cores to others.
ONE_THREAD := OMP_NUM_THREADS=1
# Tests run side by side, on as many cores as there are, four at most: each worker loads torch.
JOBS ?= $(shell cores=$$(nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2); echo $$((cores > 4 ? 4 : cores)))
SIDE_BY_SIDE := -n $(JOBS) --dist worksteal

.PHONY: help env book pdf test test-all test-package test-book test-notebooks test-portability notebooks published-notebooks serve \
	links figures bench lint format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env:
	@command -v $(PYTHON) >/dev/null || { echo "Python was not found: install Python 3.11 to 3.13, or name one: make PYTHON=/path/to/python …"; exit 1; }
	@$(PYTHON) tools/setup_env.py

book: env  ## build the book, and say how to read it
	@$(PY) -m tools.build_book

pdf: env  ## build the book and print it as PDFs; needs Chromium or Chrome
	@$(PY) -m tools.pdf

serve: book  ## build the book and serve it on http://localhost:8000 (PORT=…)
	@echo "Serving on http://localhost:$(PORT); stop with Ctrl-C."
	@$(PY) -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

# `make test` leaves out the tests that are marked as thorough; with ALL=1 a step takes all, and counts coverage.
ifdef ALL
CHOSEN := -m "not site"
CHOSEN_OF_SITE := -m site
CHOSEN_CELLS :=
COVERAGE := --cov --cov-report=term
else
CHOSEN := -m "not site and not thorough"
CHOSEN_OF_SITE := -m "site and not thorough"
CHOSEN_CELLS := -m "not thorough"
endif

test: env lint test-package test-book test-notebooks  ## prove what users rely on, in about 9 minutes of two cores

test-all:  ## the same, and every kept solution, attack, notebook and page, in about 55 minutes; what CI runs
	@$(MAKE) --no-print-directory test ALL=1

test-package: env  ## the package, the exercises and the grader (ALL=1: thoroughly, with coverage)
	$(ONE_THREAD) $(PY) -m pytest $(SIDE_BY_SIDE) --durations=15 $(CHOSEN) $(COVERAGE)

test-book: env  ## the built book, in a browser (ALL=1: every page)
	$(ONE_THREAD) $(PY) -m pytest $(SIDE_BY_SIDE) --durations=10 $(CHOSEN_OF_SITE) tests/book tests/browser tests/toolchain

test-notebooks: env  ## run the notebooks of the chapters (ALL=1: all) from the wheel in an empty folder, and compare
	$(ONE_THREAD) $(PY) -m pytest -c tests/notebooks/nbval.ini --rootdir . -n $(JOBS) --dist loadfile $(CHOSEN_CELLS) book tests/notebooks

test-portability: env  ## the notebooks as on other processors: thread counts and instruction sets
	$(PY) -m tools.portability

notebooks: env  ## regenerate the notebooks whose page has changed (FORCE=1: all)
	@$(PY) -m tools.notebooks $(if $(FORCE),--force)

published-notebooks: env  ## write the notebooks with the publisher's links into _build/notebooks
	@$(PY) -m tools.notebooks --publish _build/notebooks

links: env  ## check the book's links to other sites; needs a network
	$(PY) -m tools.build_book --linkcheck

figures: env  ## measure the exercises again and write the table of the page for instructors
	$(ONE_THREAD) $(PY) -m tools.exercise_figures

bench: env  ## speed against PyTorch's own modules, as ratios in one run
	$(PY) -m benchmarks

lint: env  ## style
	@$(PY) -m ruff check --quiet . && $(PY) -m ruff format --check --quiet . && echo "style: fine"

format: env  ## put the style right
	@$(PY) -m ruff check --fix . ; $(PY) -m ruff format .

clean:  ## remove what was built, not the environment
	rm -rf _build build dist .pytest_cache .ruff_cache .coverage *.egg-info
