# Every target works from nothing but Python 3.11, make and a checkout.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: run test lint format bench kill week picture eval train train-incompleteness clean

run: .venv/run.stamp
	@exec $(BIN)/python bot.py

test: .venv/dev.stamp
	$(BIN)/python -m pytest -q -n auto

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .

format: .venv/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/dev.stamp
	$(BIN)/python -m bench

# Takes some ten minutes.
KILLS ?= 200
kill: .venv/dev.stamp
	$(BIN)/python -m bench.kill --kills $(KILLS)

# Two minutes: seven days of 50 channels.
week: .venv/dev.stamp
	$(BIN)/python -m bench.week

# README's picture, by the test that replays its conversation. Needs chromium and chromedriver.
picture: .venv/dev.stamp
	PICTURE=docs/playground.png $(BIN)/python -m pytest -q tests/e2e/test_picture.py

# Where the examples of decisions and of replies are, which are no part of this repository.
DECISIONS ?= ../shared/decisions
RESOLUTIONS ?= ../shared/resolutions

# Both are shown, also where the first is below its floor.
eval: .venv/dev.stamp
	@$(BIN)/python -m evals.measure $(DECISIONS); decisions=$$?; \
	$(BIN)/python -m evals.measure_resolutions $(RESOLUTIONS) && exit $$decisions

train: .venv/dev.stamp
	$(BIN)/python -m evals.train $(DECISIONS)/train.jsonl.gz

# Prints the weights for state/incompleteness.py.
train-incompleteness: .venv/dev.stamp
	$(BIN)/python -m evals.train_incompleteness $(RESOLUTIONS)/incomplete.jsonl

.venv/run.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	@touch $@

.venv/dev.stamp: .venv/run.stamp
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,evals]'
	@touch $@

clean:
	rm -rf .venv build *.egg-info .mypy_cache .pytest_cache .ruff_cache
