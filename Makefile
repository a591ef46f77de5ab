# Every target works from nothing but Python 3.11, make and a checkout.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: run test lint format bench eval train clean

run: .venv/run.stamp
	@exec $(BIN)/python bot.py

test: .venv/dev.stamp
	$(BIN)/python -m pytest -q

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .

format: .venv/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/dev.stamp
	$(BIN)/python -m bench

# Where the examples of decisions are, which are no part of this repository.
DECISIONS ?= ../shared/decisions

eval: .venv/dev.stamp
	$(BIN)/python -m evals.measure $(DECISIONS)

train: .venv/dev.stamp
	$(BIN)/python -m evals.train $(DECISIONS)/train.jsonl.gz

.venv/run.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	@touch $@

.venv/dev.stamp: .venv/run.stamp
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,evals]'
	@touch $@

clean:
	rm -rf .venv build *.egg-info .mypy_cache .pytest_cache .ruff_cache
