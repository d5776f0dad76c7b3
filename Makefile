# Two commands do all the set-up: `make demo` runs the main job, `make test` passes the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# On Linux without a GPU: make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu
PIP_INDEX := $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX),)
SOURCES := bertkit tests proofs bench demo.py
ROOMS := $(filter-out tests/__pycache__/,$(sort $(wildcard tests/*/)))

.PHONY: demo test proofs bench bench-install install lint types imports pytest format clean

demo: install  ## from the documentation inside Python to a vocabulary, a corpus, and a BERT that fills gaps
	@$(BIN)/python demo.py $(DEMO)

test: lint types imports pytest  ## everything CI runs

install: $(VENV)/installed  ## build .venv alone

$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bertkit needs Python 3.11 or newer, this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(PIP_INDEX) -e '.[dev]'
	@touch $@

lint: install
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

types: install
	$(BIN)/mypy

imports: install
	$(BIN)/lint-imports --no-cache

pytest: install  ## a process for each room; all in one crashed twice in tests/runtime, and not since engines share no memory
	set -e; for room in $(ROOMS) bertkit "$(wildcard tests/test_*.py)"; do $(BIN)/python -m pytest $$room; done

proofs: install  ## the full counts and long comparisons; restartable; writes docs/proofs.md
	$(BIN)/python -m proofs.run

bench: install  ## side by side with peers, on a machine that does nothing else; BENCH="forward --quick" chooses
	$(BIN)/python -m bench.run $(BENCH)

bench-install: install  ## an environment in .bench for each peer that cannot live in .venv
	$(if $(TORCH_INDEX),PIP_EXTRA_INDEX_URL=$(TORCH_INDEX)) $(BIN)/python -m bench.install

format: install
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

clean:
	rm -rf $(VENV) .bench .mypy_cache .ruff_cache .proofs dist
