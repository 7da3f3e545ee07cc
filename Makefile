# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
EXTRAS := dev,train,nuplan,evaluate,onnx
TORCH_INDEX ?=
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: setup demo test test-all fuzz audit lint mutants clean

setup: $(STAMP)

# torch is pinned in constraints.txt. On Linux, pip takes its CUDA build (gigabytes) unless the package index offers a
# CPU build. To get the small CPU build from PyTorch itself:
#   make setup TORCH_INDEX=https://download.pytorch.org/whl/cpu
$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(if $(TORCH_INDEX),$(PIP) --index-url $(TORCH_INDEX) torch)
	$(PIP) -e ".[$(EXTRAS)]"
	@touch $(STAMP)

demo: setup
	$(BIN)/radp demo --out demo

test: setup
	$(BIN)/python -m pytest -q -p tests.compile_first -n 2 --dist worksteal -m "not slow and not browser"

test-all: setup
	$(BIN)/python -m pytest -q

# Mutated files against every reader of the project: `make fuzz FUZZ="--inputs 50000 --seed 7"`; docs/reliability.md.
FUZZ ?= --inputs 10000 --seed 0
fuzz: setup
	$(BIN)/python -m tests.fuzz $(FUZZ)

# Known vulnerabilities of what is installed. Needs a network: without one it says so and passes.
audit: setup
	@if $(PIP) pip-audit; then $(BIN)/pip-audit --skip-editable; \
	else echo "audit: pip-audit cannot be installed here (no network?); nothing was checked"; fi

lint: setup
	$(BIN)/ruff check src tests examples
	$(BIN)/ruff format --check src tests examples
	$(BIN)/mypy
	$(BIN)/lint-imports

# Change the code in one spot at a time: do the tests notice? (docs/reliability.md)
mutants: setup
	$(BIN)/python scripts/mutants.py

clean:
	rm -rf .venv demo .pytest_cache .ruff_cache .mypy_cache
