"""Writes docs/settings.md, .env.example and the tables of settings on other pages: `make settings`.

Run it as `python -m docs.settings`. A test fails where they are not what it writes.
"""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import fill

from agents.providers import PROVIDERS
from config import Settings, what_works
from place_settings.fields import ABOUT
from place_settings.fields import what_works as place_values

ROOT = Path(__file__).parent.parent
IN_README = (
    "discord_token",
    "model",
    "instructions",
    "channels",
    "followup_eagerness",
    "name_calls",
    "mcp_config",
    "budgets",
    "retention_days",
    "state_key",
)
PROVIDERS_IN_README = ("openai", "anthropic", "google", "groq", "openrouter", "ollama")
TABLE = re.compile(r"(?<=<!-- by make settings -->\n).*?(?=<!-- end -->)", re.DOTALL)
MODELS = re.compile(r"(?<=<!-- providers, by make settings -->\n).*?(?=<!-- end -->)", re.DOTALL)
# The first setting of each section, its heading, and the text below it on the page.
SECTIONS = {
    "discord_token": ("Discord", "How to get a token: [quick start](quickstart.md#2-make-a-bot-at-discord-3-minutes)."),
    "model": (
        "Models",
        "The providers' own variables (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, ...) count too: "
        "[which models you can use](models.md).",
    ),
    "conversation_timeout_seconds": ("When the bot speaks", "More: [when the bot speaks](deciding.md)."),
    "awaiting_ttl_seconds": (
        "Questions from the bot, and mini-apps",
        "More: [prompts and mini-apps](prompts-and-mini-apps.md).",
    ),
    "agents": (
        "Agents and tools",
        "More: [what the agent can do](agents-and-tools.md). Paths are relative to the working directory.",
    ),
    "offer_timeout_seconds": ("Offers", "More: [offers](offers.md)."),
    "turns_per_user_minute": ("Caps", "More: [what the caps do](deciding.md#what-the-caps-do), [budgets](budgets.md)."),
    "state_dir": (
        "Stored data",
        "More: [reliability](reliability.md), [privacy](privacy.md), [the decision log](decision-log.md). "
        "This command makes a `STATE_KEY`:\n\n"
        '    .venv/bin/python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"',
    ),
    "port": ("The process", "More: [deploy](deploy.md)."),
    "shards": (
        "Several processes",
        "For a bot too large for one process; most bots never need these. More: [scaling](scaling.md).",
    ),
}
KEYS = "# The providers' own variables: docs/models.md.\n#OPENAI_API_KEY=\n#OPENAI_BASE_URL=\n#ANTHROPIC_API_KEY=\n"


def written() -> dict[Path, str]:
    """Each file and its contents."""
    readme, models = ROOT / "README.md", ROOT / "docs" / "models.md"
    places = ROOT / "docs" / "place-settings.md"
    table = f"\n{_table(IN_README, with_values=False)}\n"
    used_most = f"\n{_providers(PROVIDERS_IN_README)}\n"
    return {
        ROOT / "docs" / "settings.md": _page(),
        ROOT / ".env.example": _example(),
        readme: MODELS.sub(lambda _: used_most, TABLE.sub(lambda _: table, readme.read_text(encoding="utf-8"))),
        models: MODELS.sub(lambda _: f"\n{_providers(tuple(PROVIDERS))}\n", models.read_text(encoding="utf-8")),
        places: TABLE.sub(lambda _: f"\n{_of_places()}\n", places.read_text(encoding="utf-8")),
    }


def _page() -> str:
    parts = [
        "# Settings\n\n"
        "Set these variables in the environment, or in the file `.env` in the working directory (copy\n"
        "`.env.example`). All are optional; an empty one counts as unset. If a value cannot work, the bot does not\n"
        "start, and says in one sentence which values do. `make settings` writes this page from `Settings` in\n"
        "`config.py`.\n"
    ]
    for names in _sections():
        title, text = SECTIONS[names[0]]
        parts.append(f"\n## {title}\n\n{text}\n\n{_table(names, with_values=True)}")
    return "".join(parts)


def _table(names: tuple[str, ...], *, with_values: bool) -> str:
    heads = ["variable", "default", "meaning", *(["values"] if with_values else [])]
    rows = [heads, ["---"] * len(heads)]
    for name in names:
        default = _default(name)
        row = [f"`{name.upper()}`", default and f"`{default}`", Settings.model_fields[name].description or ""]
        rows.append([*row, what_works(name)] if with_values else row)
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _providers(prefixes: tuple[str, ...]) -> str:
    rows = [["provider", "`MODEL`, for example", "variables", "extra"], ["---"] * 4]
    for prefix in prefixes:
        provider = PROVIDERS[prefix]
        extra = f"`{provider.extra}`" if provider.extra else ""
        first, *others = (f"`{variable}`" for variable in provider.variables)
        such = f" (such as {provider.address})" if provider.address else ""
        instead = f" or `{provider.instead}`" if provider.instead else ""
        variables = ", ".join([f"{first}{such}", *others]) + instead
        rows.append([provider.name, f"`{prefix}:{provider.example}`", variables, extra])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _of_places() -> str:
    heads = ["", "setting", "meaning", "values", "can be set for"]
    rows, group = [heads, ["---"] * len(heads)], ""
    for name, about in ABOUT.items():
        where = ", ".join(level.in_words.removeprefix("this ") for level in sorted(about.levels))
        new_group, group = about.group if about.group != group else "", about.group
        rows.append([new_group, about.label, about.meaning, place_values(name), where])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _example() -> str:
    parts = [
        "# Copy this file to .env and fill in what you need, or let `make setup` ask you. All are optional: without\n"
        "# DISCORD_TOKEN the playground starts, without MODEL the demo model answers. `make settings` writes this.\n"
    ]
    for names in _sections():
        parts.append(f"\n# {SECTIONS[names[0]][0]}\n")
        for name in names:
            field = Settings.model_fields[name]
            told = f"{field.description} Use {what_works(name)}."
            comment = fill(told, 118, initial_indent="# ", subsequent_indent="# ")
            parts.append(f"\n{comment}\n#{name.upper()}={field.examples[0] if field.examples else _default(name)}\n")
        if "model" in names:
            parts.append(f"\n{KEYS}")
    return "".join(parts)


def _sections() -> list[tuple[str, ...]]:
    """The names of the settings, in the order of `Settings`, section by section."""
    sections: list[list[str]] = []
    for name in Settings.model_fields:
        if name in SECTIONS:
            sections.append([])
        sections[-1].append(name)
    return [tuple(names) for names in sections]


def _default(name: str) -> str:
    """As it is written in the environment."""
    default = Settings.model_fields[name].default
    if isinstance(default, bool):
        return what_works(name).split(" or ")[0 if default else 1]
    return "" if default in (None, frozenset(), ()) else str(default)


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
