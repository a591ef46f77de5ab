"""discord_io/actions.py over the loopback Discord: what is done, for whom, and in which sentence it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from datetime import timedelta
from typing import Any

import discord
import pytest

from agents.gateway import Asked
from agents.tools import Actions, Poll
from conversation import MessageRecord
from discord_io import actions as module
from discord_io.actions import (
    CANNOT_READ,
    GONE,
    NO_EMOJI,
    NOT_TOLD,
    READ_BY_FEWER,
    REFUSALS,
    REFUSED,
    UNREAD,
    UNSURE,
    DiscordActions,
)
from playground.model import Message
from playground.server import Playground
from state.consent import Consent, Forgotten
from state.optout import OptOut
from tests.playground.support import Bot
from tests.support.people import BOT, said

OWN = "1573787725184630791"  # an emoji of the guild's
POLL = Poll("Which day?", ("Monday", "Friday"), 3, False)
Doing = Callable[[Actions, Asked, int], Awaitable[object]]
DOINGS: dict[str, Doing] = {
    "read": lambda actions, asked, message_id: actions.read(asked, asked.channel_id, message_id),
    "react": lambda actions, asked, message_id: actions.react(asked, message_id, "🎉"),
    "pin": lambda actions, asked, message_id: actions.pin(asked, message_id),
    "poll": lambda actions, asked, _: actions.poll(asked, POLL, "n1"),
}
# What each takes beside reading: of the bot, and of the person.
NEEDED = [
    ("react", "add_reactions", "add_reactions"),
    ("pin", "pin_messages", "manage_messages"),
    ("poll", "send_polls", "send_polls"),
    ("poll", "send_messages", "send_messages"),
]


@pytest.fixture
def doing(request: pytest.FixtureRequest) -> Doing:
    return DOINGS[request.param]


each = pytest.mark.parametrize("doing", list(DOINGS), indirect=True)


class Scene:
    """Ada owns the guild; Ben, who asks, is one of its people. His message is the question."""

    def __init__(self, pg: Playground, bot: Bot) -> None:
        self.pg = pg
        self.bot = bot
        self.channel = pg.channel("general")
        self.ben = pg.person("Ben")
        self.question = pg.post(self.channel, self.ben, "which key?")
        self.asked = Asked(pg.guild_id, self.channel, self.ben, self.question.id)
        self.now = discord.utils.utcnow()
        self.own: dict[int, MessageRecord] = {}  # what is kept of the bot's
        self.opted_out, self.forgotten = OptOut(), Forgotten()
        self.actions = DiscordActions(bot, Consent(self.opted_out, self.forgotten), self, lambda: self.now)
        pg.allow(self.channel, "pin_messages")
        pg.allow(self.channel, "manage_messages", member=self.ben)
        self.changes = 2

    async def kept(self, _channel_id: int, message_ids: Collection[int]) -> dict[int, MessageRecord]:
        return {one: self.own[one] for one in message_ids if one in self.own}

    async def settled(self) -> None:
        """Once the bot has heard of each change of a channel so far."""
        await self.bot.event("guild_channel_update", self.changes)

    async def deny(self, *names: str, member: int | None = None, channel: int | None = None) -> None:
        self.pg.deny(channel or self.channel, *names, member=member)
        self.changes += 1
        await self.settled()

    @property
    def standing(self) -> Message:
        """The question as it stands now."""
        return self.pg.world.message(self.channel, self.question.id)

    @property
    def polls(self) -> list[Message]:
        return [m for m in self.pg.messages(self.channel) if m.poll]


@pytest.fixture
async def scene(pg: Playground, bot: Bot) -> Scene:
    scene = Scene(pg, bot)
    await scene.settled()
    return scene


def sent(pg: Playground, method: str, ending: str) -> int:
    return sum(one.method == method and one.path.endswith(ending) for one in pg.requests)


# What is done


async def test_a_message_is_read_as_the_conversation_would_record_it(scene: Scene) -> None:
    there = scene.pg.post(scene.pg.channel("help"), scene.pg.person("Ada"), f"<@{scene.ben}> under the mat")
    found = await scene.actions.read(scene.asked, there.channel_id, there.id)
    assert isinstance(found, MessageRecord)
    assert (found.author, found.text, found.message_id) == ("Ada", "@Ben under the mat", there.id)


async def test_what_may_be_told_of_a_message_is_for_its_author_to_say(scene: Scene) -> None:
    scene.opted_out.add(scene.ben)
    found = await DOINGS["read"](scene.actions, scene.asked, scene.question.id)
    assert isinstance(found, MessageRecord)
    assert found.content == ""
    scene.forgotten.mark(scene.channel, scene.ben, scene.question.id)
    assert await DOINGS["read"](scene.actions, scene.asked, scene.question.id) == NOT_TOLD


async def test_of_the_bots_own_words_those_are_read_that_it_keeps(scene: Scene) -> None:
    quoting = scene.pg.post(scene.channel, scene.pg.bot_id, "Ada says: under the mat", bot=True)
    assert await scene.actions.read(scene.asked, scene.channel, quoting.id) == NOT_TOLD
    scene.own[quoting.id] = said(BOT, quoting.content, message_id=quoting.id, drew_on=frozenset({7}))
    assert await scene.actions.read(scene.asked, scene.channel, quoting.id) == scene.own[quoting.id]
    scene.forgotten.mark(None, 7, quoting.id)
    assert await scene.actions.read(scene.asked, scene.channel, quoting.id) == NOT_TOLD


@pytest.mark.parametrize("emoji", ["👍", " 🎉 ", "1️⃣", "🏳️‍🌈"])
async def test_a_reaction_stands_under_the_message_once(scene: Scene, emoji: str) -> None:
    for _ in range(2):
        assert await scene.actions.react(scene.asked, scene.question.id, emoji) is None
    [reaction] = scene.standing.reactions
    assert (reaction.emoji, reaction.users) == (emoji.strip(), (scene.pg.bot_id,))


@pytest.mark.parametrize("given", [f"<:parley:{OWN}>", f"<a:another_name:{OWN}>", ":parley:", "parley"])
async def test_an_emoji_of_the_server_is_known_by_its_name_or_id(scene: Scene, given: str) -> None:
    guild = scene.bot.get_guild(scene.pg.guild_id)
    assert guild
    data: Any = {"id": OWN, "name": "parley", "roles": [], "animated": False}
    guild.emojis = (discord.Emoji(guild=guild, state=scene.bot._connection, data=data),)
    assert await scene.actions.react(scene.asked, scene.question.id, given) is None
    assert [one.emoji for one in scene.standing.reactions] == [f"parley:{OWN}"]


@pytest.mark.parametrize("given", ["", "thumbsup", "<:foreign:1573787725184630792>", "a" * 5_000, "👍" * 20, "\n"])
async def test_what_is_no_emoji_is_told(scene: Scene, given: str) -> None:
    assert await scene.actions.react(scene.asked, scene.question.id, given) == NO_EMOJI
    assert scene.standing.reactions == ()


async def test_a_message_is_pinned_once(scene: Scene) -> None:
    for _ in range(2):
        assert await scene.actions.pin(scene.asked, scene.question.id) is None
    assert scene.standing.pinned_at
    assert [m.type for m in scene.pg.messages(scene.channel)] == [0, 6]


async def test_a_poll_is_posted_as_it_is_and_pings_nobody(scene: Scene) -> None:
    poll = Poll("Which day, @everyone?", ("Monday", f"<@{scene.ben}>"), 3, True)
    assert await scene.actions.poll(scene.asked, poll, "n1") is None
    [posted] = scene.polls
    assert posted.poll == {
        "question": poll.question,
        "answers": list(poll.options),
        "duration": 3,
        "allow_multiselect": True,
    }
    assert (posted.nonce, posted.content, posted.pinged) == ("n1", "", frozenset())
    # A reply would pass for the answer to the question.
    assert posted.reference is None


@pytest.mark.parametrize("nonce", ["n1", "n2"])
async def test_a_poll_that_stands_is_not_posted_again(scene: Scene, nonce: str) -> None:
    """By its nonce while Discord knows that; else by what it says."""
    await scene.actions.poll(scene.asked, POLL, "n1")
    for number in range(50):
        scene.pg.post(scene.channel, scene.ben, str(number))
    again = replace(scene.asked, message_id=scene.pg.messages(scene.channel)[-1].id)
    assert await scene.actions.poll(again, POLL, nonce) is None
    assert len(scene.polls) == 1
    assert sent(scene.pg, "POST", "/messages") == 1


async def test_a_poll_whose_answer_was_lost_is_there_once(scene: Scene) -> None:
    scene.pg.faults.add("POST", "/messages$", drop=True, after_effect=True)
    assert await scene.actions.poll(scene.asked, POLL, "n1") == UNSURE
    assert await scene.actions.poll(scene.asked, POLL, "n1") is None
    assert len(scene.polls) == 1


@pytest.mark.parametrize(
    "other",
    [
        replace(POLL, question="Which week?"),
        replace(POLL, options=("Friday", "Monday")),
        replace(POLL, hours=4),
        replace(POLL, multiple=True),
    ],
)
async def test_another_poll_is_posted_beside_it(scene: Scene, other: Poll) -> None:
    await scene.actions.poll(scene.asked, POLL, "n1")
    assert await scene.actions.poll(scene.asked, other, "n2") is None
    assert len(scene.polls) == 2


async def test_a_poll_that_is_over_can_be_posted_again(scene: Scene) -> None:
    await scene.actions.poll(scene.asked, POLL, "n1")
    scene.now += timedelta(hours=POLL.hours, minutes=1)
    await scene.actions.poll(scene.asked, POLL, "n2")
    assert len(scene.polls) == 2


async def test_somebody_elses_poll_is_not_ours(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    await scene.actions.poll(scene.asked, POLL, "n1")
    [ours] = scene.polls
    foreign = replace(ours, author=scene.pg.world.user(scene.ben))
    monkeypatch.setitem(scene.pg.world.channel(scene.channel).messages, ours.id, foreign)
    await scene.actions.poll(scene.asked, POLL, "n2")
    assert len(scene.polls) == 2


# Who may


@each
async def test_nothing_is_done_where_the_person_cannot_read(scene: Scene, doing: Doing) -> None:
    await scene.deny("read_message_history", member=scene.ben)
    assert await doing(scene.actions, scene.asked, scene.question.id) == CANNOT_READ
    assert (scene.standing, scene.polls) == (scene.question, [])


@pytest.mark.parametrize("permission", ["view_channel", "read_message_history"])
async def test_nothing_is_read_where_the_bot_cannot(scene: Scene, permission: str) -> None:
    await scene.deny(permission)
    assert await scene.actions.read(scene.asked, scene.channel, scene.question.id) == UNREAD
    assert not await scene.actions.can_search(scene.asked)


async def test_a_channel_that_only_the_bot_can_see_stays_hidden(scene: Scene) -> None:
    secret = scene.pg.post(scene.pg.channel("help"), scene.pg.person("Ada"), "secret")
    await scene.deny("view_channel", member=scene.ben, channel=secret.channel_id)
    unseen = await scene.actions.read(scene.asked, secret.channel_id, secret.id)
    assert unseen == await scene.actions.read(scene.asked, 1, 1) == CANNOT_READ


@pytest.mark.parametrize(("doing", "ours", "theirs"), NEEDED, indirect=["doing"])
async def test_what_the_person_may_not_do_is_not_done_for_them(
    scene: Scene, doing: Doing, ours: str, theirs: str
) -> None:
    await scene.deny(theirs, member=scene.ben)
    told = await doing(scene.actions, scene.asked, scene.question.id)
    assert told == f"Not done: the person who asks lacks the permission '{ours}' in this channel."
    assert (scene.standing, scene.polls) == (scene.question, [])


@pytest.mark.parametrize(("doing", "ours"), [needed[:2] for needed in NEEDED], indirect=["doing"])
async def test_what_the_bot_may_not_do_is_told(scene: Scene, doing: Doing, ours: str) -> None:
    await scene.deny(ours)
    told = await doing(scene.actions, scene.asked, scene.question.id)
    assert told == f"Not done: I lack the permission '{ours}' in this channel."
    assert not any(one.method in ("PUT", "POST") for one in scene.pg.requests)


async def test_it_is_not_searched_where_somebody_may_see_and_not_read_what_was_said(scene: Scene) -> None:
    """Not even for others, whom they may have had ask."""
    assert await scene.actions.can_search(scene.asked)
    await scene.deny("read_message_history", member=scene.pg.person("Chloe"))
    assert not await scene.actions.can_search(scene.asked)
    assert (await scene.actions.read(scene.asked, scene.channel, scene.question.id)) != READ_BY_FEWER


async def test_who_has_left_has_nothing_done(scene: Scene) -> None:
    gone = replace(scene.asked, user_id=404)
    assert await scene.actions.pin(gone, scene.question.id) == REFUSALS[10007]


async def test_what_one_of_those_who_ask_together_may_not_none_of_them_gets(scene: Scene) -> None:
    both = replace(scene.asked, user_id=scene.pg.person("Ada"), people=frozenset({scene.ben}))
    assert await scene.actions.can_search(both)
    await scene.deny("view_channel", member=scene.ben)
    assert await scene.actions.pin(both, scene.question.id) == CANNOT_READ
    assert await scene.actions.pin(replace(both, people=frozenset()), scene.question.id) is None


# What Discord refuses


@pytest.mark.parametrize("doing", ["read", "react", "pin"], indirect=True)
async def test_a_message_that_is_gone_is_told(scene: Scene, doing: Doing) -> None:
    scene.pg.delete(scene.question)
    assert await doing(scene.actions, scene.asked, scene.question.id) == GONE


@pytest.mark.parametrize("doing", ["read", "poll"], indirect=True)
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ({"status": 403}, REFUSED),
        ({"status": 400, "code": 90001}, REFUSALS[90001]),
        ({"status": 404}, GONE),
        ({"status": 501}, UNSURE),
        ({"drop": True, "times": 2}, UNSURE),
    ],
)
async def test_each_refusal_is_a_sentence(scene: Scene, doing: Doing, fault: dict[str, Any], told: str) -> None:
    scene.pg.faults.add("*", "/channels/", **fault)
    assert await doing(scene.actions, scene.asked, scene.question.id) == told


async def test_a_discord_that_says_nothing_is_not_waited_for(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CALL_SECONDS", 0.05)
    never = asyncio.Event()
    scene.pg.faults.add("GET", "/members/", delay_event=never)
    assert await scene.actions.pin(scene.asked, scene.question.id) == UNSURE
    never.set()
