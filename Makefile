# `make demo` and `make test` need Python 3.11 or newer and nothing else: they make their own virtual environment.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt

NANO   ?= nano-work

.PHONY: demo test check lint types imports wheel nano nano-smoke clean
.DEFAULT_GOAL := test

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.core
	$(PIP) --editable '.[test,lint]'
	@touch $@

demo: $(VENV)/.core  ## all tasks on the committed photo; prints where the pictures are
	$(BIN)/sapiens2 demo --output demo-output

test: $(VENV)/.test  ## the test suite, two processes
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal --quiet

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

imports: $(VENV)/.test
	$(BIN)/python scripts/check_import_direction.py

check: lint types imports test  ## what CI runs

wheel: $(VENV)/.test
	$(BIN)/python -m build --wheel

nano: $(VENV)/.test  ## generate people, train the checkpoints of the package, measure them: hours; what was stopped goes on
	$(BIN)/python -m scripts.nano.train all --work $(NANO)
	$(BIN)/python -m scripts.nano.export --work $(NANO)
	$(BIN)/python -m scripts.nano.report --pictures $(NANO)/report
	$(BIN)/python -m scripts.nano.pages
	$(BIN)/python -m scripts.nano.pictures

nano-smoke: $(VENV)/.test  ## two minutes: the loss of every task falls by half on eight pictures
	$(BIN)/python -m scripts.nano.smoke

clean:
	rm -rf $(VENV) dist demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
