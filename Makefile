# One entry per thing a person does. Everything installs into .venv, once; a second run reinstalls nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OUT ?= runs
# One thread per process: small matrix products get slower, not faster, when threads outnumber cores.
export OMP_NUM_THREADS ?= 1
WORKERS ?= 2

.PHONY: setup demo test test-slow check format bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "isthmus needs Python >= 3.11, found " + sys.version.split()[0] + ": run make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,tables]"
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/isthmus discover builtin:kuramoto_sivashinsky --autoencode --ordered --control --out $(OUT)/kuramoto_sivashinsky --replace

# a file stays in one worker, where what its tests share is made once; files go in order, so that no long one comes last
test: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not slow and not gpu"

test-slow: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m slow

check: $(STAMP)
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/architecture/test_imports.py
	$(BIN)/pyright

format: $(STAMP)
	$(BIN)/ruff format src tests benchmarks examples
	$(BIN)/ruff check --fix src tests benchmarks examples

bench: $(STAMP)
	$(BIN)/python benchmarks/theory.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/rank_recovery.py
	$(BIN)/python benchmarks/diagnose.py

clean:
	rm -rf $(VENV) runs .pytest_cache .ruff_cache
