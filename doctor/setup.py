"""`make setup`, or `python bot.py doctor --setup`: the first set-up, step by step: token, server, model.

Each answer is tried out at once and then written to `.env`. What works already is not asked for again.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import string
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agents.models import DEMO
from agents.providers import PROVIDERS, Provider, meant, provider_of
from config import Settings
from doctor.checks_discord import PORTAL, Application, check_application, check_guilds
from doctor.checks_models import check_models
from doctor.discord_rest import DiscordRest
from doctor.env_file import EnvFile
from doctor.findings import Finding, State, bounded
from doctor.terminal import Terminal, is_terminal
from owner import loaded
from state.prices import Prices, load_prices

POLL_SECONDS = 3.0
BY_HAND = (
    "The set-up asks at a terminal, and this is not one. Set these in the environment or in .env instead: "
    "DISCORD_TOKEN "
    f"(the bot's token, from {PORTAL}), MODEL (such as openai:gpt-5-mini), and the key of its provider (such as "
    "OPENAI_API_KEY); docs/quickstart.md has the steps.\n"
)
EXAMPLE = "openai:gpt-5-mini"
ASKED_FIRST = ("openai", "anthropic", "google", "groq", "openrouter", "ollama")
QUOTES = "\"'`“”‘’"
BEFORE = re.compile(rf"\A(?:\s|[{QUOTES}]|(?:export\s++)?DISCORD_(?:BOT_)?TOKEN\s*+=|Bot\s)*+", re.IGNORECASE)
# Other values in the developer portal that are copied by mistake, and their form.
MISTAKEN = {"an id": r"\d{17,20}", "the public key": r"[0-9a-f]{64}", "the client secret": r"[\w-]{32}"}
OPEN = re.compile(r"_(URL|ENDPOINT|VERSION|REGION|PROFILE)$")  # variables that hold no secret


class SetUpError(Exception):
    """Raised if the set-up cannot go on. Its text is one sentence."""


def bare(given: str) -> str:
    """A token without what is often copied with it: quotes, "Bot", the variable's name."""
    return BEFORE.sub("", given, count=1).rstrip(QUOTES + string.whitespace)


def set_up(settings: Settings) -> int:
    """Asks for what is missing. Returns the exit code: 0, also if it is stopped; 2 if nobody can answer."""
    if not is_terminal():
        sys.stderr.write(BY_HAND)
        return 2
    terminal = Terminal()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        prices = Prices(dict(loaded(load_prices, settings.prices)))
        with asyncio.Runner() as runner:
            SetUp(settings, prices, terminal, EnvFile(Path.cwd() / ".env"), runner).run()
    except SetUpError as error:
        terminal.say(f"\n{error}")
        return 2
    except EOFError:
        sys.stderr.write(f"\n{BY_HAND}")
        return 2
    except KeyboardInterrupt:
        terminal.say("\nStopped. What works so far is in .env; `make setup` asks for the rest.")
    return 0


class SetUp:
    """The steps. _outside: names of variables that .env cannot change; _loop: one for all checks, as clients need."""

    def __init__(
        self, settings: Settings, prices: Prices, terminal: Terminal, env: EnvFile, loop: asyncio.Runner
    ) -> None:
        self._settings = settings
        self._prices = prices
        self._terminal = terminal
        self._env = env
        self._loop = loop
        self._outside = {name for name, value in os.environ.items() if value and env.values().get(name) != value}
        self._token = settings.discord_token.get_secret_value() if settings.discord_token else ""

    def run(self) -> None:
        say = self._terminal.say
        say(
            "The first set-up: a token, a server, a model. Each answer is tried out, and what works is kept in .env, "
            "which only you may read. Ctrl-C stops; `make setup` goes on from there."
        )
        say("\n1. The bot's token\n")
        application = self._application()
        is_in_server = False
        if application:
            say("\n2. Your server\n")
            is_in_server = self._is_in_server(application)
        say("\n3. The model that answers\n")
        self._model()
        say("\nThat is all. Start the bot:\n\n    make run\n")
        if application is None and self._token:
            say("It will not start before Discord accepts the token.")
        elif application is None:
            say("Open the address that it prints, a Discord on this machine, and write: @Parley hello")
        elif is_in_server:
            say(f"Once it says `ready`, write in your server, in a channel that it sees: @{application.bot_name} hello")
        else:
            say(f"Add it to your server, and mention it there:\n\n    {application.invite}")

    def _keep(self, values: Mapping[str, str]) -> None:
        """Writes those that are new or changed to .env."""
        new = {name: value for name, value in values.items() if self._env.values().get(name) != value}
        new = {name: value for name, value in new.items() if name not in self._outside}
        if new:
            try:
                self._env.set(new)
            except OSError as error:
                raise SetUpError(
                    f"{self._env.path} cannot be written ({error.strerror}): make it a file that you may write to."
                ) from None
            self._terminal.say(f"Kept in .env: {', '.join(new)}.")

    def _check_inside(self, name: str) -> None:
        if name in self._outside:
            raise SetUpError(
                f"{name} is set in the environment, which overrides .env: correct it or unset it there, and run "
                "`make setup` again."
            )

    # The token

    def _application(self) -> Application | None:
        """The token's application. None: there is no token, or one that Discord refuses is kept."""
        token = self._token
        if not token:
            self._terminal.say(
                f"Make an application at\n\n    {PORTAL}\n\nand there, under Bot, press Reset Token, and copy it.\n"
            )
            token = self._read_token("skip: none, the bot stays on this machine")
        application = self._tried(token) if token else None
        while token and application is None:
            token = self._read_token("Enter: try the same again; skip: leave it", token)
            application = self._tried(token) if token else None
        if application is None:
            return None
        if token != self._token:
            self._keep({"DISCORD_TOKEN": token})
            self._token = token
        return self._reading_content(application)

    def _read_token(self, instead: str, same: str = "") -> str:
        """Asks for a token until one has a possible form; "": none. same: the token that Enter stands for."""
        self._check_inside("DISCORD_BOT_TOKEN" if os.environ.get("DISCORD_BOT_TOKEN") else "DISCORD_TOKEN")
        while True:
            given = self._terminal.ask_secret(f"Token (it is not shown; {instead}):")
            if given.lower() == "skip":
                return ""
            token = bare(given) or same
            self._terminal.hide(token)
            if given not in ("", token):
                self._terminal.say("Removed what was around it: quotes, “Bot” or the variable's name.")
            if re.search(r"\s", token):
                self._terminal.say("There is white space in it: copy the whole token, and nothing else.")
            elif token:
                return token

    def _tried(self, token: str) -> Application | None:
        """The application, if Discord accepts the token."""
        self._terminal.hide(token)
        findings, application = self._loop.run(self._asked(token))
        for finding in findings:
            if finding.check != "intents" and finding.fix:
                self._terminal.show(finding)
        if application:
            self._terminal.say(f"Discord accepts the token: it is {application.bot_name}'s.")
        elif looks := [name for name, form in MISTAKEN.items() if re.fullmatch(form, token)]:
            self._terminal.say(f"That looks like {looks[0]}, not like the token.")
        return application

    def _reading_content(self, application: Application) -> Application:
        """Waits until the message content intent is on, or the user skips that."""
        while not application.reads_content:
            self._terminal.say(
                "\nThe Message Content Intent is off: the bot sees only messages that mention it or reply to it. "
                f"Switch it on, under Privileged Gateway Intents, and save:\n\n    {PORTAL}/{application.id}/bot\n"
            )
            if self._terminal.ask("Enter: look again; skip: go on without it:").lower() == "skip":
                return application
            findings, found = self._loop.run(self._asked(self._token))
            if found is None:
                self._terminal.show(findings[0])
            application = found or application
        self._terminal.say("The Message Content Intent is on.")
        return application

    async def _asked(self, token: str) -> tuple[list[Finding], Application | None]:
        async with DiscordRest(token, self._settings.discord_api_base) as rest:
            return await check_application(rest)

    # The server

    def _is_in_server(self, application: Application) -> bool:
        """Waits until the bot is in a server, or the user skips that."""
        shown: Finding | None = None
        while True:
            first, *others = self._loop.run(self._servers(application))
            if first.state is State.OK:
                for finding in (first, *others):
                    self._terminal.show(finding)
                return True
            if shown is None:
                self._terminal.say(f"Open this address, and choose your server:\n\n    {application.invite}\n")
                self._terminal.say("Waiting until the bot is there (Enter: look at once; skip: later) ...")
            if first != shown and first.state is State.FAULT:
                self._terminal.show(first)
            shown = first
            if (self._terminal.wait(POLL_SECONDS) or "").lower() == "skip":
                return False

    async def _servers(self, application: Application) -> list[Finding]:
        settings = self._settings
        async with DiscordRest(self._token, settings.discord_api_base) as rest:
            return await bounded("servers", check_guilds(rest, application, settings.channels, settings.threads))

    # The model

    def _model(self) -> None:
        """Chooses a model until one answers."""
        name = self._settings.model if os.environ.get("MODEL") else self._choose()
        values = self._values(name)
        while values is None or not self._answers(name, values):
            again = None if values is None else self._values(name, is_again=True)
            if again is None:
                name = self._choose()
                values = self._values(name)
            else:
                values = {**(values or {}), **again}
        self._keep({"MODEL": name, **values})

    def _choose(self) -> str:
        """Asks for a model, and returns its name with the provider."""
        self._check_inside("MODEL")
        rows = [f"  {number}  {PROVIDERS[prefix].name}" for number, prefix in enumerate(ASKED_FIRST, 2)]
        self._terminal.say("\n".join(["  1  The demo model: no key, it only repeats what is said", *rows]))
        while True:
            answer = self._terminal.ask("Number, or any model as provider:name (Enter: 1):")
            if answer in ("", "1", DEMO):
                return DEMO
            if answer.isdecimal() and 2 <= int(answer) <= len(ASKED_FIRST) + 1:
                prefix = ASKED_FIRST[int(answer) - 2]
                example = f"{prefix}:{PROVIDERS[prefix].example}"
                name = self._terminal.ask(f"Model (Enter: {example}):") or example
                return name if name.startswith(f"{prefix}:") else f"{prefix}:{name}"
            if ":" in answer:
                return answer
            guess = meant(answer)
            self._terminal.say(f"Did you mean {guess}?" if guess else f"Write a number, or a model such as {EXAMPLE}.")

    def _values(self, name: str, *, is_again: bool = False) -> dict[str, str] | None:
        """Asks for the variables that the model's providers need. None: the user goes back to the choice."""
        providers = [provider_of(one.strip()) for one in name.split(",")]
        asked = {
            variable: provider
            for provider in providers
            if provider
            for variable in provider.variables
            if is_again or not os.environ.get(variable)
        }
        if is_again and not asked:
            return None
        values: dict[str, str] = {}
        for variable, provider in asked.items():
            self._check_inside(variable)
            if (value := self._value(variable, provider, is_again=is_again)) is None:
                return None
            values |= {variable: value} if value else {}
        return values

    def _value(self, variable: str, provider: Provider, *, is_again: bool) -> str | None:
        """Asks for one variable. None: the user goes back; "": it stays as it is."""
        default = provider.address if variable == provider.variables[0] else ""
        is_open = OPEN.search(variable)
        instead = "the same again" if is_again else default
        if not instead and os.environ.get(provider.instead):
            instead = f"none, as {provider.instead} is set"
        notes = [*([] if is_open else ["it is not shown"]), *([f"Enter: {instead}"] if instead else [])]
        question = f"{variable} ({'; '.join([*notes, 'back: another model'])}):"
        while True:
            value = (self._terminal.ask if is_open else self._terminal.ask_secret)(question)
            if value.lower() == "back":
                return None
            if value or instead:
                return value or ("" if is_again else default)

    def _answers(self, name: str, values: Mapping[str, str]) -> bool:
        """Whether the model answers with these variables, which stay set if it does."""
        before = {variable: os.environ.get(variable) for variable in values}
        os.environ.update(values)
        if name != DEMO:
            self._terminal.say(f"Asking {name} ...")
        findings = self._loop.run(check_models("MODEL", name, self._prices))
        for finding in findings:
            self._terminal.show(finding if finding.state is State.FAULT else replace(finding, fix=""))
        if all(finding.state is not State.FAULT for finding in findings):
            return True
        for variable, value in before.items():
            if value is None:
                del os.environ[variable]
            else:
                os.environ[variable] = value
        return False
