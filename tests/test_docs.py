"""README and docs/: what is generated is up to date, and what they point to and name is there."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.providers import PROVIDERS
from config import Settings, load_settings
from decider import TrainedFollowup
from followup.model import Eagerness, load_model
from setting_values import Period, Scope, dollars
from state.prices import Prices

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\((?!https?://)([^)#]*)(?:#([^)]+))?\)")
NOT_OURS = re.compile(r"(RAILWAY|OPENAI|ANTHROPIC)_\w+|DISCORD_BOT_TOKEN|OTEL_.*")
OF_PROVIDERS = {name for provider in PROVIDERS.values() for name in (*provider.variables, provider.instead)}


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^(    [^\n]*|```.*?^```)$", "", text, flags=re.MULTILINE | re.DOTALL)


def quoted(page: Path, form: str) -> list[str]:
    """What stands in backticks and has this form."""
    return [found for found in re.findall(r"`([^`\n]+)`", prose(page)) if re.fullmatch(form, found)]


def anchors(page: Path) -> Iterator[str]:
    """The anchors that GitHub gives to the headings."""
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_settings_pages_are_what_make_settings_writes() -> None:
    for path, text in runpy.run_module("docs.settings")["written"]().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `make settings`"


def test_the_example_names_every_setting_and_works_uncommented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    values = dict(line.removeprefix("#").split("=", 1) for line in lines if re.match("#[A-Z_]+=", line))
    assert {name.lower() for name in values} >= set(Settings.model_fields)
    monkeypatch.chdir(tmp_path)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    assert load_settings().model == values["MODEL"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    for path, anchor in LINK.findall(prose(page)):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_row_of_a_table_has_its_line(page: Path) -> None:
    heads = [line for line in prose(page).splitlines() if re.search(r"\| ?---", line)]
    assert [line for line in heads if not re.fullmatch(r"[ |:-]+", line)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_settings_and_commands_that_a_page_names_are_there(page: Path) -> None:
    for path in quoted(page, r"\w[\w/]*/[\w.]+\.\w+"):
        assert (ROOT / path).exists(), path
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for variable in quoted(page, r"[A-Z]+(_[A-Z]+)*(=\S*)?"):
        name = variable.partition("=")[0]
        is_ours = name.lower() in Settings.model_fields or f"\n{name} ?=" in makefile
        assert is_ours or name in OF_PROVIDERS or NOT_OURS.fullmatch(name), name
    text = page.read_text(encoding="utf-8")
    for module in re.findall(r"python -m ([\w.]+)", text):
        path = ROOT / module.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").exists(), module
    for target in re.findall(r"(?:^ {4}|`)make ([\w-]+)", text, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("name", ["deciding.md", "troubleshooting.md"])
def test_the_reasons_and_log_events_that_a_page_names_are_the_codes(name: str) -> None:
    rooms = [room.parent for room in ROOT.glob("*/__init__.py") if room.parent.name != "tests"]
    files = [*ROOT.glob("*.py"), *(path for room in rooms for path in room.rglob("*.py"))]
    code = "".join(path.read_text(encoding="utf-8") for path in files)
    named = quoted(ROOT / "docs" / name, "[a-z]+(_[a-z]+)+")
    assert named
    assert [event for event in named if f'"{event}"' not in code and f"def {event}(" not in code] == []


def test_deciding_has_the_scores_of_the_model() -> None:
    text, model = (ROOT / "docs" / "deciding.md").read_text(encoding="utf-8"), load_model()
    for eagerness in Eagerness:
        tier, least = TrainedFollowup(model, eagerness), model.thresholds[eagerness]
        between = (f"{low:.2f} and {high:.2f}" for low, high in (tier.doubt, tier.gate))
        assert " | ".join((f"`{eagerness}`", f"{least:.2f}", *between)) in text
    assert f"the score below is at least {model.thresholds[Eagerness.EAGER]:.2f}" in text


def test_the_tests_that_security_names_are_there() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = quoted(ROOT / "docs" / "security.md", r"test_\w+")
    assert len(named) > 40
    assert [name for name in named if f"def {name}(" not in tests] == []


def test_readme_says_what_it_costs_at_worst_with_the_model_of_its_example() -> None:
    text, settings = README.read_text(encoding="utf-8"), Settings()
    model = re.findall(r"MODEL=(\S+)", text)[0]
    limits = {limit.period: limit for limit in settings.budgets if limit.in_money and limit.scope is Scope.TOTAL}
    assert set(limits) == set(Period)
    by_tokens, last = (Prices().dearest((model,), 0, most) for most in (settings.daily_tokens, settings.turn_tokens))
    a_day, a_month = min(by_tokens, limits[Period.DAY].amount), limits[Period.MONTH].amount
    worst = (
        f"with `{model}`: {dollars(a_day)} a day, {dollars(a_month)} a month, and {dollars(last)} for the last answer."
    )
    assert worst in " ".join(text.split())
    assert f"{settings.daily_tokens:,} tokens a day" in text


def test_readme_leads_to_every_page_and_is_read_in_three_minutes() -> None:
    text = README.read_text(encoding="utf-8")
    assert [page.name for page in PAGES[1:] if f"(docs/{page.name})" not in text] == []
    assert len(text.splitlines()) <= 150
