"""persistence/privacy.py: what was forgotten does not come back, who opted out is not read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot import Parley, create_bot
from config import Settings
from conversation import MessageRecord
from decider import Decision, FollowupRules, Reason
from discord_io.backlog import id_at
from persistence.holders import Forget
from persistence.people import FORGOTTEN_CHANNEL
from state.consent import Consent, Forgotten
from state.message import Appended
from state.optout import UNREAD, OptOut
from tests.support.clock import NOON
from tests.support.lives import on_disk
from tests.support.people import ANNA, BEN, BOT, CHANNEL, CLEO, GUILD, replied, said
from understanding.names import SOMEBODY

OTHER = CHANNEL + 1
EVERYBODY, EVERYWHERE = None, None
SECRET = "a secret"


# What was forgotten up to when


def test_older_words_of_theirs_and_to_them_are_covered() -> None:
    marks: tuple[tuple[tuple[int | None, int | None], bool], ...] = (
        ((CHANNEL, EVERYBODY), True),
        ((OTHER, EVERYBODY), False),
        ((EVERYWHERE, ANNA), True),
        ((EVERYWHERE, BEN), False),
        ((CHANNEL, ANNA), True),
        ((OTHER, ANNA), False),
    )
    for mark, is_covered in marks:
        for record in (said(ANNA), replied(ANNA)):
            forgotten = Forgotten()
            forgotten.mark(*mark, record.message_id - 1)
            assert not Consent(OptOut(), forgotten).is_forgotten(CHANNEL, record)
            forgotten.mark(*mark, record.message_id)
            assert Consent(OptOut(), forgotten).is_forgotten(CHANNEL, record) == is_covered


def test_an_answer_to_a_click_may_have_been_to_anybody() -> None:
    forgotten, answer = Forgotten(), said(BOT, addressees=frozenset({BOT}))
    forgotten.mark(EVERYWHERE, ANNA, answer.message_id)
    assert Consent(OptOut(), forgotten).is_forgotten(CHANNEL, answer)
    assert not Consent(OptOut(), forgotten).is_forgotten(CHANNEL, replied(BEN, message_id=answer.message_id))


def test_marks_are_kept_until_nothing_so_old_is_read_any_more() -> None:
    forgotten, old, young = Forgotten(), said(ANNA), said(BEN)
    forgotten.mark(EVERYWHERE, ANNA, old.message_id)
    forgotten.mark(CHANNEL, EVERYBODY, young.message_id)
    assert forgotten.sweep(old.message_id, 0)
    assert not forgotten.sweep(old.message_id, 0)
    assert not Consent(OptOut(), forgotten).is_forgotten(OTHER, old)
    assert Consent(OptOut(), forgotten).is_forgotten(CHANNEL, young)


def test_marks_of_channels_that_are_gone_are_kept_for_a_shorter_time() -> None:
    forgotten = Forgotten()
    forgotten.mark(CHANNEL, EVERYBODY, 5)
    forgotten.mark(OTHER, EVERYBODY, 5, is_gone=True)
    assert not forgotten.sweep(4, 5)
    assert set(forgotten) == {(CHANNEL, EVERYBODY)}
    forgotten.mark(OTHER, EVERYBODY, 6, is_gone=True)
    forgotten.mark(OTHER, EVERYBODY, 6)  # the bot was invited again, and somebody had it forgotten
    assert forgotten.sweep(5, 6)
    assert set(forgotten) == {(OTHER, EVERYBODY)}
    assert not forgotten.gone


def test_a_mark_never_goes_back() -> None:
    forgotten, record = Forgotten(), said(ANNA)
    forgotten.mark(EVERYWHERE, ANNA, record.message_id)
    forgotten.mark(EVERYWHERE, ANNA, record.message_id - 1)
    assert Consent(OptOut(), forgotten).is_forgotten(CHANNEL, record)


# What goes


class Lifecycle:
    """A bot that is not connected, and what is told it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        settings = Settings(model="demo", state_dir=folder, decision_log="off")
        self.bot: Parley = create_bot(settings, followup=FollowupRules(60))
        self.privacy = self.bot.privacy

    async def said(self, *records: MessageRecord, channel: int = CHANNEL) -> None:
        for record in records:
            if self.bot.conversations.get(channel) is None:
                self.bot.conversations.start(channel, [record])
            else:
                self.bot.conversations.record_message(channel, record)
            self.bot.snapshots.append(Appended(channel, GUILD, record))
        await self.settled()

    async def settled(self) -> None:
        assert await self.bot.snapshots.settled()

    def recorded(self, channel: int = CHANNEL) -> list[str]:
        conversation = self.bot.conversations.get(channel)
        return [message.content for message in conversation.messages] if conversation else []


@pytest.fixture
async def life(tmp_path: Path) -> AsyncIterator[Lifecycle]:
    made = Lifecycle(tmp_path / "state")
    yield made
    await made.bot.close()


def now(content: str, author: int = ANNA) -> MessageRecord:
    at = datetime.now(UTC)
    return said(author, content, at, message_id=id_at(at) + said(author).message_id)


async def test_a_person_is_forgotten_everywhere_and_others_are_not(life: Lifecycle) -> None:
    for channel in (CHANNEL, OTHER):
        await life.said(now(SECRET), now("a word", BEN), channel=channel)
    await life.privacy.forget_person(ANNA, now("").message_id)
    for channel in (CHANNEL, OTHER):
        assert life.recorded(channel) == ["a word"]
    assert not on_disk(life.folder, SECRET)
    assert on_disk(life.folder, "a word")


async def test_with_whom_somebody_was_talking_is_forgotten(life: Lifecycle) -> None:
    for number, partner in enumerate((ANNA, CLEO)):
        life.bot.decisions.add(number, CHANNEL, BEN, Decision(False, Reason.NO_TRIGGER, partner=partner))
    await life.privacy.forget_person(ANNA, now("").message_id)
    assert life.bot.decisions.find(0) is None
    assert life.bot.decisions.find(1) is not None


@pytest.mark.parametrize("way", ["edit", "delete"])
async def test_what_a_model_said_of_a_message_goes_with_its_words(life: Lifecycle, way: str) -> None:
    message = now(SECRET)
    await life.said(message)
    quoting = Decision(False, Reason.DECLINED, evidence=f"Anna says: {SECRET}")
    for number, channel in enumerate((CHANNEL, OTHER)):
        life.bot.decisions.add(number, channel, BEN, quoting)
    if way == "edit":
        life.bot.parts.holders.revised(CHANNEL, GUILD, replace(message, content="nothing"), is_by_author=True)
    else:
        life.bot.parts.holders.forget(Forget([CHANNEL], frozenset({message.message_id})))
    told = [entry.decision.evidence for number in (0, 1) if (entry := life.bot.decisions.find(number))]
    assert told == ["", quoting.evidence]


async def test_a_channel_or_a_server_with_all_its_channels_is_forgotten_and_others_are_not(life: Lifecycle) -> None:
    third = OTHER + 1
    for channel, text in ((CHANNEL, SECRET), (OTHER, "a word"), (third, "more")):
        await life.said(now(text), now(text, BEN), channel=channel)
    await life.privacy.forget_channel(CHANNEL, now("").message_id)
    assert (life.recorded(), life.recorded(OTHER)) == ([], ["a word"] * 2)
    assert not on_disk(life.folder, SECRET)
    assert on_disk(life.folder, "a word")
    await life.privacy.forget_guild(GUILD, [OTHER, third])
    assert not on_disk(life.folder, "a word") + on_disk(life.folder, "more")
    assert not life.recorded(OTHER) + life.recorded(third)
    assert life.bot.parts.forgotten.gone == {OTHER, third}
    assert [row.id for row in await life.bot.snapshots.rows(FORGOTTEN_CHANNEL)] == [CHANNEL]


async def test_what_is_too_old_goes_also_from_a_conversation_that_is_alive(life: Lifecycle) -> None:
    await life.said(now(SECRET))
    await life.privacy.expire(datetime.now(UTC) - timedelta(days=1))
    assert life.recorded() == [SECRET]
    await life.privacy.expire(datetime.now(UTC) + timedelta(seconds=1))
    await life.settled()
    assert life.recorded() == []
    assert not on_disk(life.folder, SECRET)


async def test_the_reasons_of_what_is_too_old_go(life: Lifecycle) -> None:
    for message_id in (id_at(NOON) - 1, id_at(NOON)):
        life.bot.decisions.add(message_id, CHANNEL, ANNA, Decision(False, Reason.DECLINED, evidence=SECRET))
    await life.privacy.expire(NOON)
    assert [entry.message_id for entry in life.bot.decisions.latest(CHANNEL, 9)] == [id_at(NOON)]


async def test_what_was_forgotten_before_a_restart_is_known_after_it(life: Lifecycle) -> None:
    old = now(SECRET)
    await life.privacy.forget_person(ANNA, old.message_id + 1)
    await life.privacy.opt_out(BEN, 1)
    await life.bot.close()
    later = Lifecycle(life.folder)
    await later.bot.lifecycle.take([0])
    assert later.bot.parts.consent.is_forgotten(CHANNEL, old)
    assert later.privacy.is_opted_out(BEN)
    await later.privacy.opt_in(BEN, 2)
    await later.bot.close()
    last = Lifecycle(life.folder)
    await last.bot.lifecycle.take([0])
    assert not last.privacy.is_opted_out(BEN)
    await last.bot.close()


async def test_a_disk_that_fails_is_told_and_memory_is_cleared_all_the_same(
    life: Lifecycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    await life.said(now(SECRET), now("a word", BEN))

    async def fail(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(life.bot.snapshots, "forget_person", fail)
    with pytest.raises(OSError, match="no room"):
        await life.privacy.forget_person(ANNA, now("").message_id)
    assert life.recorded() == ["a word"]


# Who is not read


async def test_who_opted_out_is_not_read_and_not_quoted(life: Lifecycle) -> None:
    await life.privacy.opt_out(ANNA, 1)
    theirs = life.bot.parts.consent.readable(CHANNEL, said(ANNA, SECRET))
    assert (theirs.author, theirs.content, theirs.text) == (SOMEBODY, "", UNREAD)
    quote = said(BEN, "really?", NOON, reply_to_author="Anna", reply_to_author_id=ANNA, reply_to_text=SECRET)
    for reading in (life.bot.parts.consent.readable, life.bot.parts.consent.unquoted):
        reply = reading(CHANNEL, quote)
        assert (reply.content, reply.reply_to_author, reply.reply_to_text) == ("really?", "", "")
    assert life.bot.parts.consent.unquoted(CHANNEL, said(ANNA, SECRET)).content == SECRET
    other = said(CLEO, "hm", reply_to_author="Ben", reply_to_author_id=BEN, reply_to_text="a word")
    assert life.bot.parts.consent.readable(CHANNEL, other) == other


async def test_one_export_is_made_at_a_time_however_many_are_asked_for(
    life: Lifecycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes some times the memory of all that somebody said."""
    making: list[int] = []

    async def export(user_id: int) -> bytes:
        making.append(user_id)
        await asyncio.sleep(0)
        assert len(making) == 1
        making.clear()
        return b"%d" % user_id

    monkeypatch.setattr(life.bot.snapshots, "export", export)
    asked = [ANNA, BEN, ANNA]
    assert await asyncio.gather(*map(life.bot.privacy.export, asked)) == [b"%d" % one for one in asked]
