# The two commands: `make run` and `make test`. Each sets up .venv first.
# TORCH picks the build of torch; for a GPU: `make run TORCH="torch==2.13.0 --extra-index-url URL"`
# with the index of PyTorch for your CUDA.

PYTHON ?= python3.11
TORCH ?= torch==2.13.0
BIN := .venv/bin

.PHONY: run test lint types set-up clean

run: set-up
	$(BIN)/dtca run --config configs/embedded.yaml

test: set-up lint types
	$(BIN)/python -m pytest --cov=dtca_core --cov-report=term-missing:skip-covered --cov-fail-under=90

lint: set-up
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: set-up
	$(BIN)/pyright

set-up: .venv/.installed

# torch is named in every install: left to the resolver, a CPU machine gets a GPU build.
.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet $(TORCH) -c constraints.txt
	$(BIN)/pip install --quiet $(TORCH) -c constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv
