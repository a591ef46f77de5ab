"""discord_io/message_records.py: what a discord.Message says, read from messages that discord.py made of payloads."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import discord
import pytest

from bot import Parley
from conversation import MessageRecord
from discord_io.message_records import MAX_EXTRA_CHARACTERS, MAX_IMAGE_BYTES, MAX_IMAGES, to_record
from persistence import stored_messages
from place import Place, PlaceKind
from state.message import REPLY_EXCERPT
from tests.support.clock import NOON
from tests.support.discord_payloads import (
    DIRECT,
    OTHER_ROLE,
    OWN_ROLE,
    THREAD,
    a_bot,
    a_message,
    attachment,
    user,
)
from tests.support.people import ANNA, BEN, BOT, CHANNEL, GUILD

REPLY = 19


@pytest.fixture(scope="module")
def bot() -> Parley:
    return a_bot()


def read(bot: Parley, content: str = "hello", author_id: int = ANNA, **more: Any) -> MessageRecord:
    return to_record(a_message(bot, author_id=author_id, content=content, **more), BOT)


def reply_to(author_id: int, content: str, message_id: int = 55) -> dict[str, Any]:
    """What makes a payload a reply, with the replied-to message in it as Discord sends it."""
    answered: dict[str, Any] = {
        "id": str(message_id), "channel_id": str(CHANNEL), "author": user(author_id), "content": content,
        "timestamp": NOON.isoformat(), "edited_timestamp": None, "tts": False, "pinned": False, "type": 0,
        "mention_everyone": False, "mentions": [], "mention_roles": [], "attachments": [], "embeds": [],
    }  # fmt: skip
    reference = {"message_id": str(message_id), "channel_id": str(CHANNEL)}
    return {"type": REPLY, "message_reference": reference, "referenced_message": answered}


# Which count


def test_a_persons_message_and_reply_count(bot: Parley) -> None:
    for more in ({}, reply_to(BEN, "so?"), {"channel_id": THREAD}, {"channel_id": DIRECT}):
        assert bot.parts.reader.hears(a_message(bot, author_id=ANNA, content="hello", **more))


@pytest.mark.parametrize(
    "more",
    [
        {"author_id": BOT},
        {"webhook_id": "9", "application_id": "9"},
        {"type": 7},
        {"type": 6},
    ],
    ids=["a bot", "a webhook", "somebody joined", "something was pinned"],
)
def test_nothing_else_does(bot: Parley, more: dict[str, Any]) -> None:
    assert not bot.parts.reader.hears(a_message(bot, **{"author_id": ANNA, "content": f"<@{BOT}> hi", **more}))


# Where they were said


def place(bot: Parley, author_id: int = ANNA, **more: Any) -> Place:
    return bot.parts.reader.incoming(a_message(bot, author_id=author_id, content="hello", **more), None).place


def test_the_place_is_the_channel_the_thread_with_its_parent_or_the_direct_message(bot: Parley) -> None:
    here = Place(GUILD, CHANNEL, bot_name="Parley", guild="The Guild", channel="general")
    assert place(bot) == here
    thread = replace(here, channel_id=THREAD, kind=PlaceKind.THREAD, channel="a thread")
    thread = replace(thread, parent_id=CHANNEL, parent="general", titled_by=ANNA)
    assert place(bot, BEN, channel_id=THREAD) == thread
    assert place(bot, channel_id=THREAD) == replace(thread, is_opener=True)
    assert place(bot, channel_id=DIRECT).kind is PlaceKind.DIRECT


@pytest.mark.parametrize(("author_id", "people"), [(ANNA, 1), (BEN, 2)])
def test_of_a_thread_that_the_bot_is_in_it_is_known_how_many_people_there_are(author_id: int, people: int) -> None:
    """Discord said that when the bot came; whoever opened it, and whoever speaks since, is there."""
    bot = a_bot()
    thread = a_message(bot, author_id=ANNA, content="hello", channel_id=THREAD).channel
    assert isinstance(thread, discord.Thread)
    thread.me, thread.member_count = cast(Any, SimpleNamespace(joined_at=NOON)), 2
    here = place(bot, author_id, channel_id=THREAD)
    assert (here.people, here.is_with_one) == (people, people == 1)


# What they say


def test_a_plain_message_is_read_as_it_is(bot: Parley) -> None:
    record = read(bot, at=NOON + timedelta(seconds=3))
    assert (record.author, record.author_id, record.content, record.is_bot) == ("Anna", ANNA, "hello", False)
    assert record.timestamp == NOON + timedelta(seconds=3)
    assert (record.readable, record.images, record.mentions) == ("", (), frozenset())
    assert (record.reply_to_id, record.reply_to_author_id, record.mentions_group) == (None, None, False)


def test_mentions_become_names_for_the_reader(bot: Parley) -> None:
    somebody = 123456789012345678  # discord.py takes only ids of Discord's length for one
    record = read(bot, f"<@{somebody}> look", mentions=[somebody])
    assert record.mentions == {somebody}
    assert read(bot, f"<@{somebody}> look", mentions=[somebody]).mentions is record.mentions, "one set for all of them"
    assert (record.content, record.readable) == (f"<@{somebody}> look", f"@user{somebody} look")


def test_the_bots_own_role_is_the_bot(bot: Parley) -> None:
    record = read(bot, f"<@&{OWN_ROLE}> hi", mention_roles=[str(OWN_ROLE)])
    assert (record.mentions, record.mentions_group) == (frozenset({BOT}), False)


def test_another_role_and_everyone_are_a_group(bot: Parley) -> None:
    assert read(bot, "hi", mention_everyone=True).mentions_group
    other = read(bot, f"<@&{OTHER_ROLE}> hi", mention_roles=[str(OTHER_ROLE)])
    assert (other.mentions, other.mentions_group) == (frozenset(), True)
    assert read(bot, "hi", mention_roles=[str(OWN_ROLE), str(OTHER_ROLE)]).mentions_group


def test_a_reply_says_to_whom_and_to_what(bot: Parley) -> None:
    record = read(bot, "no", **reply_to(BEN, "x" * 500))
    assert (record.reply_to_id, record.reply_to_author_id, record.reply_to_author) == (55, BEN, "Ben")
    assert record.reply_to_text == "x" * REPLY_EXCERPT


def test_a_reply_to_a_deleted_message_keeps_its_id(bot: Parley) -> None:
    record = read(bot, "no", **{**reply_to(BEN, ""), "referenced_message": None})
    assert (record.reply_to_id, record.reply_to_author_id, record.reply_to_text) == (55, None, "")


def test_another_bots_message_and_a_webhooks_are_marked_and_call_nobody(bot: Parley) -> None:
    automatic = {**user(99), "bot": True}
    for more in ({"author": automatic}, {"webhook_id": "9"}, {"author": automatic, "type": 20}):
        record = read(bot, "Parley, are you there?", **more)
        assert (record.is_other_bot, record.is_bot, record.calls_bot) == (True, False, "")
    # What answers a command of its own has its own id.
    assert not read(bot, "Done.", author_id=BOT, webhook_id=str(BOT)).is_other_bot


def test_a_reply_to_a_bots_embed_quotes_what_stands_there(bot: Parley) -> None:
    reply = reply_to(BEN, "")
    reply["referenced_message"]["author"]["bot"] = True
    reply["referenced_message"]["embeds"] = [{"type": "rich", "title": "Build 77 failed"}]
    assert read(bot, "why?", **reply).reply_to_text == "[embed] Build 77 failed"


def test_the_bots_own_reply_tells_whom_it_answers(bot: Parley) -> None:
    record = read(bot, "yes", author_id=BOT, **reply_to(BEN, "so?"))
    assert (record.is_bot, record.addressees) == (True, frozenset({BEN}))
    assert read(bot, "yes", **reply_to(BEN, "so?")).addressees == frozenset()


def test_a_forward_is_no_reply_and_its_text_is_read(bot: Parley) -> None:
    snapshot = {
        "type": 0, "content": "the news", "embeds": [], "attachments": [attachment()], "flags": 0,
        "timestamp": NOON.isoformat(), "edited_timestamp": None, "mentions": [], "mention_roles": [],
    }  # fmt: skip
    record = read(
        bot,
        "",
        message_reference={"type": 1, "message_id": "5", "channel_id": "6"},
        message_snapshots=[{"message": snapshot}],
    )
    assert record.reply_to_id is None
    assert record.readable == "[forwarded] the news\n[attachment: cat.png, image/png, 1,000 bytes]"
    assert record.images == ("https://cdn.example/cat.png",)


def test_embeds_attachments_and_stickers_are_told_in_words(bot: Parley) -> None:
    embed = {
        "type": "rich",
        "title": "Train",
        "description": "at noon",
        "author": {"name": "Rail"},
        "fields": [{"name": "to", "value": "Osaka", "inline": False}],
    }
    record = read(
        bot,
        "see",
        embeds=[embed],
        attachments=[attachment("plan.pdf", None, 12_345)],
        sticker_items=[{"id": "3", "name": "wave", "format_type": 1}],
    )
    assert record.readable.splitlines() == [
        "see",
        "[embed] Rail",
        "Train",
        "at noon",
        "to: Osaka",
        "[attachment: plan.pdf, unknown type, 12,345 bytes]",
        "[sticker: wave]",
    ]
    assert record.images == ()


def test_text_in_components_is_read(bot: Parley) -> None:
    text = {"type": 10, "id": 3, "content": "Build 77 failed"}
    button = {"type": 2, "id": 4, "style": 5, "label": "Log", "url": "https://ci.example/77"}
    container = {"type": 17, "id": 1, "components": [{"type": 9, "id": 2, "components": [text], "accessory": button}]}
    assert read(bot, "", components=[container], flags=1 << 15).readable == "Build 77 failed"


def test_long_embeds_are_cut(bot: Parley) -> None:
    record = read(bot, "see", embeds=[{"type": "rich", "description": "x" * 4_000}])
    assert len(record.readable) <= len("see\n") + MAX_EXTRA_CHARACTERS


def test_images_count_by_type_size_and_number(bot: Parley) -> None:
    fitting = [attachment(f"{i}.png") for i in range(6)]
    others = [
        attachment("a.svg", "image/svg+xml"),
        attachment("b.png", None),
        attachment("c.png", size=MAX_IMAGE_BYTES + 1),
    ]
    assert read(bot, attachments=others).images == ()
    assert read(bot, attachments=[*others, *fitting]).images == tuple(
        f"https://cdn.example/{i}.png" for i in range(MAX_IMAGES)
    )
    # Those beyond the number are files, of which it is said that they are not looked at.
    assert len(read(bot, attachments=[*others, *fitting]).files) == len(others) + len(fitting) - MAX_IMAGES
    assert read(bot, attachments=[attachment("p.jpg", "image/jpeg; charset=x", MAX_IMAGE_BYTES)]).images


@pytest.mark.parametrize(
    ("told", "seconds"), [(5.5, 5.5), (None, 0.0), (float("nan"), 0.0), (-1.0, 0.0), (float("inf"), 1e9)]
)
def test_the_length_of_a_voice_message_is_a_number_that_can_be_stored(
    bot: Parley, told: float | None, seconds: float
) -> None:
    voice = attachment("voice.ogg", "audio/ogg") | {"duration_secs": told}
    record = read(bot, attachments=[voice])
    assert record.files[0].seconds == seconds
    assert stored_messages.to_record(stored_messages.to_message(record)) == record


def test_a_name_is_one_short_line(bot: Parley) -> None:
    """Or a name could speak for somebody else in what the model reads."""

    def named(name: str) -> str:
        author = user(99, global_name=name)
        return read(bot, author=author).author

    assert named("Anna\nBen:  hi") == "Anna Ben hi"
    assert len(named("x" * 100)) == 40
    assert named(" \n ") == "somebody"
    assert named("Anna B") is named("Anna B")  # or each message that is kept has a copy


def test_all_messages_of_a_person_share_their_id(bot: Parley) -> None:
    first, second = (read(bot, author=user(99_999)).author_id for _ in range(2))
    assert first is second


@pytest.mark.parametrize(
    "content",
    ["x" * 4_000, "\u200b\u200b", "\u202eolleh", "שלום עולם", "".join(f"<@{i}>" for i in range(50)), "<@>", ""],
)
def test_odd_texts_are_read_without_an_exception(bot: Parley, content: str) -> None:
    assert read(bot, content).content == content
