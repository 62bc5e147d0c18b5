# One entry per thing a person does. Everything installs into .venv, once; a second run reinstalls nothing. Of
# 20,000 modules that are installed 1,500 are imported by a command: Python compiles these then, pip would compile all.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OUT ?= runs
# One thread per process: small matrix products get slower, not faster, when threads outnumber cores.
export OMP_NUM_THREADS ?= 1
# Bytecode is kept even where the environment says otherwise: the tests start hundreds of processes, and each would
# compile the whole library anew.
export PYTHONDONTWRITEBYTECODE =
WORKERS ?= 2

.PHONY: setup demo docs test test-matrix test-portable test-slow check format bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "isthmus needs Python >= 3.11, found " + sys.version.split()[0] + ": run make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e ".[dev,docs,tables]"
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/isthmus discover builtin:kuramoto_sivashinsky --autoencode --ordered --control --out $(OUT)/kuramoto_sivashinsky --replace

# the site in build/docs: its examples are run, of several pages at once, and a warning is an error
docs: $(STAMP)
	rm -rf build/docs build/docs-extra build/docs-ipython
	$(BIN)/python -m sphinx -W --keep-going -q -E -j $(WORKERS) -b html docs build/docs

# a file stays in one worker, where what its tests share is made once; files go in order, so that no long one comes last
TIER = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not slow and not gpu"

test: $(STAMP)
	$(TIER)

# the same tests with the kernels of other processors and from other initial weights: half an hour. One run is one word,
# its settings joined by commas, of as many libraries at once as each has an older kernel for. MKL heeds
# MKL_ENABLE_INSTRUCTIONS on Intel alone, MKL_CBWR on all; SkylakeX ends in an illegal instruction without AVX-512
PORTABLE ?= \
	ATEN_CPU_CAPABILITY=default,MKL_CBWR=COMPATIBLE,ONEDNN_MAX_CPU_ISA=SSE41,OPENBLAS_CORETYPE=Haswell,SEED_SHIFT=0 \
	ATEN_CPU_CAPABILITY=avx2,MKL_CBWR=AVX2,ONEDNN_MAX_CPU_ISA=AVX2,OPENBLAS_CORETYPE=Zen,SEED_SHIFT=1000 \
	MKL_ENABLE_INSTRUCTIONS=SSE4_2$(if $(shell grep -m1 avx512f /proc/cpuinfo 2>/dev/null),$(COMMA)OPENBLAS_CORETYPE=SkylakeX),SEED_SHIFT=2000 \
	MKL_ENABLE_INSTRUCTIONS=AVX2,OMP_NUM_THREADS=2,SEED_SHIFT=0
COMMA := ,

test-portable: $(STAMP)
	@failed=; for run in $(PORTABLE); do echo "== $$run"; \
	env CHECK_TYPES=1 $$(echo $$run | tr , ' ') sh -c '$(TIER) -q --seed-shift $${SEED_SHIFT:-0}' || failed="$$failed $$run"; done; \
	test -z "$$failed" || { echo "test-portable: failed under$$failed"; exit 1; }

# the fast tests with the oldest and the newest versions that are said to do, each in an environment of its own
MATRIX ?= constraints-oldest.txt constraints.txt

test-matrix:
	@failed=; for file in $(MATRIX); do echo "== $$file"; place=.venv-matrix/$$(basename $$file .txt); \
	test -x $$place/bin/python || $(PYTHON) -m venv $$place; \
	$$place/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c $$file -e ".[dev,tables]" && \
	CHECK_TYPES=1 $$place/bin/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not slow and not gpu" -q \
	|| failed="$$failed $$file"; done; \
	test -z "$$failed" || { echo "test-matrix: failed under$$failed"; exit 1; }

# hours of tests: those of one file go to all workers, as one breaks a hundred thousand files of every format
test-slow: $(STAMP)
	CHECK_TYPES=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m slow

check: $(STAMP)
	$(BIN)/ruff format --check src tests benchmarks examples docs
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/architecture/test_imports.py
	$(BIN)/pyright

format: $(STAMP)
	$(BIN)/ruff format src tests benchmarks examples docs
	$(BIN)/ruff check --fix src tests benchmarks examples docs

bench: $(STAMP)
	$(BIN)/python benchmarks/theory.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/rank_recovery.py
	$(BIN)/python benchmarks/diagnose.py

clean:
	rm -rf $(VENV) .venv-matrix runs .pytest_cache .ruff_cache
