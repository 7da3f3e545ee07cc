# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
EXTRAS := dev,train,nuplan,evaluate,slurm,onnx
TORCH_INDEX ?=
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: setup demo docs test test-all test-docs test-engines fuzz audit lint mutants clean

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

# The documentation as a site that opens from the file system: site/index.html.
docs: setup
	$(PIP) -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html"

test: setup
	$(BIN)/python -m pytest -q -p tests.compile_first -n 2 --dist worksteal -m "not slow and not browser"

test-all: setup
	$(PIP) -e ".[ray]"
	$(BIN)/python -m pytest -q

# The notebooks and the tutorial, every cell and every command. Part of test-all.
test-docs: setup
	$(BIN)/python -m pytest -q tests/test_notebooks.py tests/test_tutorial.py

# Workers, actors, nodes, jobs and drivers that are killed: Ray, and SLURM's jobs as processes. With Debian's slurm-wlm and
# munge (and as root) also a real SLURM cluster of two nodes on this machine. Part of test-all.
test-engines: setup
	$(PIP) -e ".[ray]"
	$(BIN)/python -m pytest -q tests/runs tests/cli/test_engine_verbs.py tests/cli/test_engine_kills.py tests/training/test_srun.py

# Mutated files against every reader of the project: `make fuzz FUZZ="--inputs 50000 --seed 7"`; docs/reliability.md.
FUZZ ?= --inputs 10000 --seed 0
fuzz: setup
	$(BIN)/python -m tests.fuzz $(FUZZ)

# Known vulnerabilities of what is installed. pip-audit skips what its service does not know, and where that does not answer
# it calls everything sound: its list says which packages were skipped.
audit: setup
	@if $(PIP) pip-audit; then $(BIN)/pip-audit --skip-editable --desc off; \
	else echo "audit: pip-audit cannot be installed here; nothing was checked"; fi

lint: setup
	$(BIN)/ruff check src tests examples
	$(BIN)/ruff format --check src tests examples
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile

# Change the code in one spot at a time: do the tests notice? (docs/reliability.md)
mutants: setup
	$(BIN)/python scripts/mutants.py

clean:
	rm -rf .venv demo site .pytest_cache .ruff_cache .mypy_cache
