# Every target works from nothing but Python 3.11, make and a checkout.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: run doctor setup test check lint format bench kill week picture settings eval train clean

run: .venv/run.stamp
	@exec $(BIN)/python bot.py

# What is wrong, and how to mend it. With 1 it ends where there are only warnings: no error of make's.
doctor: .venv/run.stamp
	@$(BIN)/python bot.py doctor || test $$? -eq 1

# Asks for token, server and model, tries each out, and writes .env.
setup: .venv/run.stamp
	@exec $(BIN)/python bot.py doctor --setup

test: .venv/dev.stamp
	$(BIN)/python -m pytest -q -n auto --dist worksteal --hypothesis-profile ci -m "not slow"

# The tests that make test leaves out: with processes, browsers, servers and kills, or long. Two minutes.
check: .venv/dev.stamp
	$(BIN)/python -m pytest -q -n auto --dist worksteal --hypothesis-profile ci -m slow

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

# The pictures of the docs, by the tests that look at the same. Needs chromium and chromedriver.
picture: .venv/dev.stamp
	PICTURES=docs $(BIN)/python -m pytest -q tests/e2e/test_picture.py
	PICTURE=docs/console.png $(BIN)/python -m pytest -q tests/e2e/test_console_in_browser.py -k week

# docs/settings.md, .env.example and README's table, from the fields of `Settings` in config.py.
settings: .venv/run.stamp
	$(BIN)/python -m docs.settings

# Where the labelled rooms, decisions and replies are, which are no part of this repository.
ROOMS ?= ../shared/rooms
DECISIONS ?= ../shared/decisions
RESOLUTIONS ?= ../shared/resolutions
LEFT_OUT := .left-out
TRAIN = $(BIN)/python -m evals.train $(DECISIONS)/train.jsonl.gz $(wildcard $(ROOMS)/*.jsonl) --left-out $(LEFT_OUT)

# All are shown, also where one is below its floor. A file of rooms is scored by a model that has not seen it.
eval: .venv/dev.stamp $(if $(wildcard $(ROOMS)/*.jsonl),$(LEFT_OUT)/irc.json)
	@$(BIN)/python -m evals.measure_rooms $(ROOMS) $(LEFT_OUT); rooms=$$?; \
	$(BIN)/python -m evals.measure $(DECISIONS); decisions=$$?; \
	$(BIN)/python -m evals.measure_resolutions $(RESOLUTIONS) && exit $$((rooms + decisions))

$(LEFT_OUT)/irc.json: evals/train.py evals/rows.py evals/data/rooms.jsonl followup/features.py followup/text_features.py
	@echo "Training the models that have not seen a file of rooms: some 20 minutes."
	@$(TRAIN) --out $(LEFT_OUT)/model.json >/dev/null

train: .venv/dev.stamp
	$(TRAIN)

.venv/run.stamp: pyproject.toml constraints.txt
	@echo "Making a Python environment in .venv ..."
	@$(PYTHON) -m venv .venv
	@echo "Installing what Parley needs into it: about a minute, once ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@echo "Installed."
	@touch $@

.venv/dev.stamp: .venv/run.stamp
	@echo "Installing what tests and measurements need as well: about a minute, once ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,evals]'
	@touch $@

clean:
	rm -rf .venv build *.egg-info .mypy_cache .pytest_cache .ruff_cache
