# Each target sets up what it needs by itself; a second run is instant.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
DEMO ?= demo
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: help demo test check fast format bench clean

help:
	@echo "make demo    speak a corpus, train a recogniser on it, measure it (about 8 minutes after the first set-up)"
	@echo "make check   format, lint, types, imports, fast tests (under 2 minutes)"
	@echo "make test    all of that and the slow tests (under 20 minutes)"
	@echo "make format  let the formatter and linter mend what they can"
	@echo "make bench   measure the figures that README and docs claim"

demo: $(VENV)/.demo
	$(BIN)/sonant prepare --from demo $(DEMO)/corpus --hours 3
	$(BIN)/sonant train demo $(DEMO)/corpus --run $(DEMO)/run
	$(BIN)/sonant evaluate $(DEMO)/run/bundle $(DEMO)/corpus --split test --by severity --report $(DEMO)/report.html
	$(BIN)/sonant transcribe $(DEMO)/run/bundle $(DEMO)/corpus/recordings/demo-000019.flac --out $(DEMO)/texts --format ctm,srt --again
	@cat $(DEMO)/texts/demo-000019.ctm
	@echo "Word errors, the worst utterances and where they go wrong: $(DEMO)/report.html"
	@echo "Next: $(BIN)/sonant transcribe $(DEMO)/run/bundle YOUR-RECORDING.wav"

test: lint
	$(PYTEST) tests

check: lint
	$(PYTEST) tests -m "not slow"

.PHONY: lint
lint: $(VENV)/.dev
	$(BIN)/ruff format --check src tests bench
	$(BIN)/ruff check src tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.dev
	$(BIN)/ruff check --fix src tests bench
	$(BIN)/ruff format src tests bench

bench: $(VENV)/.dev
	$(BIN)/python bench/prepare.py
	$(BIN)/python bench/loading.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(VENV)/.torch: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Sonant needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV): torch first (a few minutes, once)"
	$(PIP) install --constraint constraints.txt torch
	touch $@

$(VENV)/.demo: $(VENV)/.torch pyproject.toml
	$(PIP) install --constraint constraints.txt --editable '.[demo]'
	touch $@

$(VENV)/.dev: $(VENV)/.demo
	@echo "Setting up $(VENV): everything that the tests need (a minute, once)"
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	touch $@
