# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
EXTRAS := dev,train,nuplan

.PHONY: setup demo test test-all lint clean

setup: $(STAMP)

# torch is pinned in constraints.txt: its plain CPU build is small, a free choice would pull gigabytes of CUDA packages.
$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$(EXTRAS)]"
	@touch $(STAMP)

demo: setup
	$(BIN)/radp demo --out demo

test: setup
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not browser"

test-all: setup
	$(BIN)/python -m pytest -q

lint: setup
	$(BIN)/ruff check src tests examples
	$(BIN)/ruff format --check src tests examples
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf .venv demo .pytest_cache .ruff_cache .mypy_cache
