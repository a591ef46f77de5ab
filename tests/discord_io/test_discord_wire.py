"""An answer on its way over the loopback Discord: what nonces give, what is edited in place, who gives way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import discord
import pytest

from discord_io.backlog import Backlog
from discord_io.channel_history import ChannelHistory
from discord_io.channel_wire import Posted, PostError, Problem
from discord_io.discord_wire import DiscordWire
from discord_io.incoming_messages import MessageReader
from discord_io.places import Places
from discord_io.streamed_reply import StreamedReply
from place_settings.fields import PlaceSettings
from place_settings.guild_settings import GuildSettings
from playground.model import Message
from playground.server import Playground
from shards import Shards
from state.consent import Consent, Forgotten
from state.direct_messages import DirectMessages
from state.optout import OptOut
from tests.discord_io.posting import CARD
from tests.discord_io.test_backlog import NothingKept
from tests.playground.support import Bot, point_discord_at
from tests.support.people import said

SENDS = r"/messages$"
EDIT_INTERVAL_SECONDS = 0.02
BEGUN = "It is a kind of"
WHOLE = "It is a kind of bird that cannot fly."
OTHER = "Penguins are birds."


class Process(Bot):
    """One process with our token, and the answer it makes to a question of Ada's."""

    def __init__(self, pg: Playground, question: Message) -> None:
        super().__init__()
        self._pg = pg
        self._question = question
        self.post: StreamedReply | None = None

    def begin(self, adopted: Sequence[Posted] | None = None) -> StreamedReply:
        self.post = StreamedReply(
            DiscordWire(self, self._pg.guild_id, self._question.channel_id),
            said(self._question.author.id, "what is it?", message_id=self._question.id),
            reply_to=lambda: self._question.id,
            bot=("Parley", self._pg.bot_id),
            addressees=frozenset({self._question.author.id}),
            record=lambda _: None,
            adopted=adopted,
            edit_interval_seconds=EDIT_INTERVAL_SECONDS,
        )
        return self.post

    async def on_message(self, message: discord.Message) -> None:
        self._tell(message, message.reference.message_id if message.reference else None)

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        self._tell(payload.message, None)

    def _tell(self, message: discord.Message, reply_to: int | None) -> None:
        if self.post and message.author.id == self._pg.bot_id:
            self.post.overheard(message.id, message.content, reply_to)


@asynccontextmanager
async def running(pg: Playground, question: Message) -> AsyncIterator[Process]:
    process = Process(pg, question)
    task = asyncio.create_task(process.start(pg.token))
    await process.ready.wait()
    yield process
    await process.close()
    await task


@pytest.fixture
def question(pg: Playground, monkeypatch: pytest.MonkeyPatch) -> Message:
    point_discord_at(pg, monkeypatch)
    return pg.post(pg.channel("general"), pg.person("Ada"), "what is it?")


@pytest.fixture
async def one(pg: Playground, question: Message) -> AsyncIterator[Process]:
    async with running(pg, question) as process:
        yield process


@pytest.fixture
async def two(pg: Playground, question: Message) -> AsyncIterator[Process]:
    async with running(pg, question) as process:
        yield process


def answers(pg: Playground, question: Message) -> list[Message]:
    return [m for m in pg.messages(question.channel_id) if m.author.id == pg.bot_id]


def answered(pg: Playground) -> list[str]:
    """The requests to post that were answered."""
    return [
        request.method for request in pg.requests if request.method == "POST" and request.path.endswith("/messages")
    ]


async def adopted_by(process: Process, pg: Playground, question: Message, *later: int) -> list[Posted]:
    """What stands of the answer, as it is found after a restart."""
    places = Places(process, GuildSettings(PlaceSettings()), clock=discord.utils.utcnow)
    consent = Consent(OptOut(), Forgotten())
    reader = MessageReader(process, places, consent, name_calls=False, clock=discord.utils.utcnow)
    history = ChannelHistory(process, reader, consent, NothingKept(), timedelta(days=30))
    backlog = Backlog(process, places, reader, consent, DirectMessages("off", (), lambda: None), Shards(), history)
    messages = await backlog.since(pg.guild_id, question.channel_id, question.id)
    assert messages is not None
    return backlog.answer(messages, question.id, later)


async def test_to_type_and_react_while_the_client_is_being_closed_fails_quietly(
    pg: Playground, question: Message, one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for the tasks in which that is done."""

    async def closed(*_: object, **__: object) -> None:
        raise RuntimeError("Session is closed")

    wire = DiscordWire(one, pg.guild_id, question.channel_id)
    monkeypatch.setattr(one.http, "request", closed)
    await wire.keep_typing()
    await wire.react(question.id, "👍")


async def test_what_was_sent_comes_back_as_it_stands(pg: Playground, question: Message, one: Process) -> None:
    wire = DiscordWire(one, pg.guild_id, question.channel_id)
    first = await wire.send(f"  {BEGUN} ", nonce="1", reply_to=question.id)
    await wire.edit(first.message_id, WHOLE)
    again = await wire.send(OTHER, nonce="1", reply_to=question.id)
    assert (first.content, again.content) == (BEGUN, WHOLE)
    assert first.message_id == again.message_id


async def test_a_429_is_not_now_also_where_a_proxy_says_it(pg: Playground, question: Message, one: Process) -> None:
    pg.faults.add("POST", SENDS, status=429, retry_after=7, via=False)
    with pytest.raises(PostError) as refused:
        await DiscordWire(one, pg.guild_id, question.channel_id).send(WHOLE, nonce="1", reply_to=None)
    assert (refused.value.problem, refused.value.retry_after) == (Problem.UNREACHABLE, 7)


async def test_what_may_have_arrived_is_found_by_what_it_replies_to_or_says(
    pg: Playground, question: Message, one: Process
) -> None:
    wire = DiscordWire(one, pg.guild_id, question.channel_id)
    other = pg.post(question.channel_id, pg.person("Ben"), BEGUN)
    await wire.send(BEGUN, nonce="1", reply_to=other.id)
    assert await wire.find({BEGUN}, after=question.id, reply_to=question.id) is None
    first = await wire.send(WHOLE, nonce="2", reply_to=question.id)
    second = await wire.send(OTHER, nonce="3", reply_to=None)
    assert await wire.find(set(), after=question.id, reply_to=question.id) == first
    assert await wire.find({OTHER}, after=first.message_id, reply_to=None) == second
    assert await wire.find({OTHER}, after=second.message_id, reply_to=None) is None


async def test_where_the_history_may_not_be_read_nobody_knows_what_arrived(
    pg: Playground, question: Message, one: Process
) -> None:
    pg.deny(question.channel_id, "read_message_history")
    await one.event("guild_channel_update")
    with pytest.raises(PostError) as refused:
        await DiscordWire(one, pg.guild_id, question.channel_id).find({WHOLE}, after=question.id, reply_to=None)
    assert refused.value.problem is Problem.FORBIDDEN


async def test_an_answer_that_was_begun_is_found_and_finished_in_its_place(
    pg: Playground, question: Message, one: Process, two: Process
) -> None:
    begun = one.begin()
    begun.show("\n".join(["It is a kind of bird."] * 150))
    await pg.wait_for(lambda: len(answers(pg, question)) == 2)
    begun.broken.cancel()
    found = await adopted_by(two, pg, question, *(m.id for m in answers(pg, question)))
    assert [posted.content for posted in found] == [m.content for m in answers(pg, question)]
    message_id = await two.begin(found).finish(WHOLE, CARD)
    [answer] = answers(pg, question)
    assert (answer.id, answer.content) == (message_id, WHOLE)
    assert answer.components


async def test_a_process_that_hears_of_another_answer_sends_none(
    pg: Playground, question: Message, one: Process, two: Process
) -> None:
    waiting = two.begin()
    await one.begin().finish(OTHER)
    await asyncio.wait({waiting.broken}, timeout=5)
    with pytest.raises(PostError) as refused:
        await waiting.finish(WHOLE)
    assert refused.value.problem is Problem.ELSEWHERE
    assert len(answered(pg)) == len(answers(pg, question)) == 1


async def test_the_events_of_its_own_doings_never_stop_an_answer(
    pg: Playground, question: Message, one: Process
) -> None:
    post = one.begin()
    for text in ("It", BEGUN, f"{BEGUN} bird", WHOLE):
        post.show(text)
        await pg.wait_for(lambda text=text: [text] == [m.content for m in answers(pg, question)])  # type: ignore[misc]
    await one.event("raw_message_edit", 3)
    await post.finish("Sorry.")
    await one.event("raw_message_edit", 4)
    assert [m.content for m in answers(pg, question)] == ["Sorry."]
    assert not post.broken.exception()


async def test_what_is_taken_back_leaves_no_buttons_of_its_own(pg: Playground, question: Message, one: Process) -> None:
    arrived = asyncio.Event()
    pg.faults.add("POST", SENDS, delay_event=arrived, after_effect=True)
    post = one.begin()
    asking = asyncio.create_task(post.finish("Which one?", CARD))
    await pg.wait_for(lambda: answers(pg, question))
    assert post.take_back(is_finished=True)
    with pytest.raises(PostError):
        await asking
    arrived.set()
    await post.finish(WHOLE)
    [answer] = answers(pg, question)
    assert (answer.content, answer.components) == (WHOLE, ())
