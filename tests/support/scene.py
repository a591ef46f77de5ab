"""The real bot in the loopback Discord, with a stub for its model: a stage for the end-to-end tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import structlog

from activity import Observer
from bot import Parley, create_bot
from config import Settings
from decider import Decision, LoggedDecision
from health import Health
from playground.interactions import Interaction
from playground.limits import Limits
from playground.model import Message
from playground.rest import Sent
from playground.server import Playground
from tests.support.clock import FakeClock
from tests.support.stub_model import Reply, StubModel, texts

PATIENCE_SECONDS = 60.0  # for what never comes: on a machine with much to do, what comes took more than 10
EDIT_INTERVAL_SECONDS = 0.02
T = TypeVar("T")
Entry = MutableMapping[str, Any]


class Journal:
    """Keeps what is logged, and tells when something is."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.entries: list[Entry] = []
        self._changed = changed

    def __call__(self, _logger: Any, level: str, event: Entry) -> Entry:
        self.entries.append({**event, "level": level})
        self._changed()
        raise structlog.DropEvent

    def find(self, event: str, **fields: Any) -> list[Entry]:
        """The entries of this name in which these fields stand so."""
        return [e for e in self.entries if e["event"] == event and fields.items() <= e.items()]


class Scene(Observer):
    """People speak by name in channels by name; whatever is waited for comes by an event."""

    def __init__(
        self, pg: Playground, stub: StubModel, journal: Journal, folder: Path, clock: FakeClock | None = None
    ) -> None:
        self.pg = pg
        self.clock = clock  # by which the bot and its Discord go; None: the machine's
        self.folder = folder  # where the bot keeps things
        self.stub = stub
        self.journal = journal
        self.decisions: dict[int, list[Decision]] = {}
        self.bot: Parley

    def decided(self, entry: LoggedDecision) -> None:
        self.decisions.setdefault(entry.message_id, []).append(entry.decision)
        notify(self.pg)

    # What people do

    def say(self, who: str, text: str = "", *, channel: str = "general", **how: Any) -> Message:
        """Posts a message; `how` as for Playground.post."""
        return self.pg.post(self.pg.channel(channel), self.pg.person(who), text, **how)

    def mention(self, who: str, text: str = "", *, channel: str = "general", **how: Any) -> Message:
        """Posts a message that begins with a mention of the bot."""
        return self.say(who, f"<@{self.pg.bot_id}> {text}", channel=channel, **how)

    async def flood(self) -> None:
        """Ada says so much to Ben that a conversation of few messages has nothing else any more."""
        for number in range(8):
            await self.decision(self.say("Ada", f"<@{self.pg.person('Ben')}> number {number}"))

    async def ask(self, who: str, text: str, *, channel: str = "general", **how: Any) -> Message:
        """Mentions the bot and waits for its whole answer."""
        return await self.answer_to(self.mention(who, text, channel=channel, **how))

    def press(self, who: str, card: Message, label: str) -> Interaction:
        """Presses the button, or chooses the option of a menu, whose label begins so."""
        custom_id, values = next(found[1:] for found in choices(card) if found[0].startswith(label))
        return self.pg.click(card, self.pg.person(who), custom_id, values)

    async def edit(self, message: Message, text: str) -> None:
        """Edits a message, and waits until the bot has heard of it."""
        heard = self.heard("raw_message_edit", message)
        self.pg.edit(message, text)
        await heard

    async def delete(self, message: Message) -> None:
        """Deletes a message, and waits until the bot has heard of it."""
        heard = self.heard("raw_message_delete", message)
        self.pg.delete(message)
        await heard

    def heard(self, event: str, message: Message) -> Awaitable[object]:
        return self.bot.wait_for(
            event, check=lambda payload: payload.message_id == message.id, timeout=PATIENCE_SECONDS
        )

    async def use(
        self, who: str, name: str, *, target: Message | None = None, channel: str = "general", **options: Any
    ) -> Message:
        """Uses a command, on a message where that is its target, and returns the bot's answer."""
        target_id = target.id if target else None
        used = self.pg.command(self.pg.channel(channel), self.pg.person(who), name, options, target_id)
        return await self.pg.reply_to(used, timeout=PATIENCE_SECONDS)

    async def react(self, message: Message, who: str, emoji: str) -> None:
        """Puts a reaction under a message, and waits until the bot has heard of it."""
        heard = self.heard("raw_reaction_add", message)
        self.pg.react(message, self.pg.bot_id if who == "Parley" else self.pg.person(who), emoji)
        await heard

    # What the model does

    def held(self, text: str = "Never seen.", **how: Any) -> asyncio.Event:
        """The model's next answer waits before its first word until this event."""
        gate = asyncio.Event()
        self.stub.replies.append(Reply(text, before=gate, **how))
        return gate

    def halted(self, text: str = "First words, and the rest.", chunk: int = 12) -> asyncio.Event:
        """The model's next answer waits after its first piece until this event."""
        gate = asyncio.Event()
        self.stub.replies.append(Reply(text, gate=gate, chunk=chunk))
        return gate

    # What is to be seen

    def said(self, channel: str = "general") -> list[Message]:
        """What of the bot's stands in the channel."""
        return [m for m in self.pg.messages(self.pg.channel(channel)) if m.author.id == self.pg.bot_id]

    def sent(self, method: str, path_end: str) -> list[Sent]:
        """The bot's requests by this method to paths that end so."""
        return [request for request in self.pg.requests if request.method == method and request.path.endswith(path_end)]

    def told(self) -> str:
        """All that the newest request gave the model."""
        return "\n".join(texts(self.stub.requests[-1]))

    # What is waited for

    async def until(self, predicate: Callable[[], T]) -> T:
        return await self.pg.wait_for(predicate, PATIENCE_SECONDS)

    async def decision(self, message: Message) -> Decision:
        """The one decision on a message."""
        decisions = await self.until(lambda: self.decisions.get(message.id))
        assert decisions is not None
        assert len(decisions) == 1
        return decisions[0]

    async def card(self, text: str, channel: str = "general") -> Message:
        """The bot's newest message that contains this and has buttons or a menu, once there is one."""
        return await self.shows(text, channel, lambda message: bool(message.components))

    async def shows(
        self, text: str, channel: str = "general", also: Callable[[Message], bool] = lambda _message: True
    ) -> Message:
        """The bot's newest message that contains this, once there is one."""
        return (await self.until(lambda: [m for m in self.said(channel) if text in m.content and also(m)]))[-1]

    async def ready(self, question: Message) -> None:
        """Until the whole answer to it is known, which nothing tells of."""
        pending = self.bot.parts.pending
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not ((turn := pending.of(question.channel_id).turn) and turn.ready):  # noqa: ASYNC110
                await asyncio.sleep(0)

    async def outcome(self, question: Message) -> str:
        """How the turn ended whose newest question is this."""
        entries = await self.until(lambda: self.journal.find("turn_ended", message=question.id))
        return str(entries[0]["outcome"])

    async def answer_to(self, question: Message) -> Message:
        """The bot's only message, or the first of them, that replies to the question, once the turn has ended."""
        await self.outcome(question)
        replies = [
            m
            for m in self.pg.messages(question.channel_id)
            if m.author.id == self.pg.bot_id and m.reference and m.reference.message_id == question.id
        ]
        assert len(replies) == 1
        return replies[0]

    async def streaming(self, channel: str = "general") -> Message:
        """The bot's newest message, once there is one."""
        return (await self.until(lambda: self.said(channel)))[-1]

    async def at_rest(self) -> None:
        """No turn is running or waiting."""
        await self.until(lambda: not len(self.bot.turns))


def choices(card: Message) -> list[tuple[str, str, list[str]]]:
    """What can be pressed or chosen on a message: its label, the custom_id, the values."""
    parts = [part for row in card.components for part in row["components"]]
    buttons = [(part["label"], part["custom_id"], list[str]()) for part in parts if "label" in part]
    options = [
        (option["label"], part["custom_id"], [option["value"]]) for part in parts for option in part.get("options", ())
    ]
    return buttons + options


def notify(pg: Playground) -> None:
    """Has all who wait for the playground look again, also at what is not in it."""
    pg._changes.notify()


@asynccontextmanager
async def recorded(pg: Playground) -> AsyncIterator[Journal]:
    """Takes the place of the log, for loggers that exist already too."""
    journal = Journal(lambda: notify(pg))
    processors = structlog.get_config()["processors"]
    before = list(processors)
    processors[:] = [structlog.contextvars.merge_contextvars, journal]
    structlog.configure(processors=processors)
    try:
        yield journal
    finally:
        processors[:] = before


@asynccontextmanager
async def open_scene(
    stub: StubModel,
    *,
    limits: Limits | None = None,
    prepare: Callable[[Playground], object] = lambda _: None,
    **settings: Any,
) -> AsyncIterator[Scene]:
    """A playground with the bot in it, ready and its commands known. prepare: told of it before the bot comes."""
    # What an event still stores when the bot is closed may be written a moment later.
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        async with Playground(limits=limits or Limits.off()) as pg, recorded(pg) as journal:
            scene = Scene(pg, stub, journal, Path(folder))
            stub.on_request = lambda: notify(pg)
            prepare(pg)
            async with running(scene, **settings):
                yield scene


@asynccontextmanager
async def running(scene: Scene, **settings: Any) -> AsyncIterator[None]:
    """Runs the bot in the scene; no event may have broken it."""
    bot = scene.bot = make_bot(scene, settings)
    faults = _collect_faults(bot)
    connection = asyncio.create_task(bot.start(scene.pg.token))
    try:
        await scene.until(lambda: scene.sent("PUT", "/commands") and scene.journal.find("ready"))
        yield
        assert not faults
        assert not [*scene.journal.find("turn_broken"), *scene.journal.find("interaction_broken")]
    finally:
        await bot.turns.drain(0)
        await bot.close()
        await asyncio.gather(connection, return_exceptions=True)


def make_bot(scene: Scene, settings: Mapping[str, Any] | None = None, **client_options: Any) -> Parley:
    """The bot as main() makes it, but with quicker edits."""
    given = {
        "model": "openai-chat:stub",
        "decision_log": "off",
        "burst_seconds": 0,
        "state_dir": scene.folder,
        **(settings or {}),
    }
    here = Settings(discord_api_base=scene.pg.api_base, discord_gateway_url=scene.pg.gateway_url, **given)
    if scene.clock:
        client_options["clock"] = scene.clock
    client_options.setdefault("health", Health(lambda: 0.0))  # nobody ticks it here, as the service does
    bot = create_bot(here, guild_ready_timeout=0.001, observer=scene, **client_options)
    bot.turns._edit_interval = EDIT_INTERVAL_SECONDS
    return bot


def _collect_faults(bot: Parley) -> list[str]:
    """The events whose handlers raised: discord.py only logs them."""
    faults: list[str] = []

    async def on_error(event: str, *_: Any, **__: Any) -> None:
        faults.append(event)

    async def identify_at_once(_shard: int | None, *, initial: bool = False) -> None:
        """Discord takes one IDENTIFY in 5 s."""

    bot.on_error = on_error  # type: ignore[method-assign]
    bot.before_identify_hook = identify_at_once  # type: ignore[method-assign,assignment]
    bot.may_identify = identify_at_once  # type: ignore[method-assign,assignment]
    return faults
