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

.PHONY: help env book pdf test test-quick test-library test-judging test-exercises test-book test-notebooks test-portability notebooks published-notebooks serve \
	links figures bench lint format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env:
	@command -v $(PYTHON) >/dev/null || { echo "Python was not found: install Python 3.11 to 3.13, or name one: make PYTHON=/path/to/python …"; exit 1; }
	@$(PYTHON) tools/setup_env.py

book: env  ## build the book, and say how to read it
	@$(PY) -m tools.build_book

pdf: env  ## build the book and print it as one PDF; needs Chromium or Chrome
	@$(PY) -m tools.pdf

serve: book  ## build the book and serve it on http://localhost:8000 (PORT=…)
	@echo "Serving on http://localhost:$(PORT); stop with Ctrl-C."
	@$(PY) -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

test: env lint test-library test-judging test-exercises test-book test-notebooks  ## prove everything: style, library, exercises, book, notebooks

test-library: env  ## the package, with coverage
	$(ONE_THREAD) $(PY) -m pytest $(SIDE_BY_SIDE) -m "not slow and not judging" --cov --cov-report=term

test-judging: env  ## thousands of right and wrong solutions to the exercises, judged
	$(ONE_THREAD) $(PY) -m pytest -n $(JOBS) --dist loadgroup -m judging tests/exercises

# Nothing is built, no notebook and no browser is started, no exercise is judged, and nothing is trained for long.
QUICK := tests/test_imports.py tests/test_pages.py tests/toolchain tests/test_attention.py tests/test_scaled_dot_product.py \
	tests/test_multi_head.py tests/test_masking.py tests/test_positional_encoding.py tests/test_transformer.py \
	tests/test_training.py tests/test_decoding.py tests/test_inspection.py tests/test_efficiency.py tests/test_debugging.py tests/test_models.py tests/test_recurrent.py tests/data
test-quick: env lint  ## for the working day: style, imports, pages in step, the chapters' tests; no coverage, no browser
	$(ONE_THREAD) $(PY) -m pytest $(SIDE_BY_SIDE) -q -m "not slow and not judging" $(QUICK)

test-exercises: env  ## what takes longer: attacks, whole classes, a cluster, two training processes, the committed scores
	$(ONE_THREAD) $(PY) -m pytest $(SIDE_BY_SIDE) -m slow tests/grader tests/translator

test-book: env  ## pages, pairs, links, the built book in a browser
	$(ONE_THREAD) $(PY) -m pytest $(SIDE_BY_SIDE) --durations=10 -m slow tests/book tests/browser tests/toolchain

test-notebooks: env  ## run every notebook from the wheel in an empty folder, and compare its outputs, pictures and views
	$(ONE_THREAD) $(PY) -m pytest -c tests/notebooks/nbval.ini --rootdir . -n $(JOBS) --dist loadfile book tests/notebooks

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
