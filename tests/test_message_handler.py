"""turns/message_handler.py: what becomes of a message, from its record to a queued turn; without a Discord."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from agents.gateway import FailureKind
from conversation import MessageRecord
from decider import Decision, Reason, RecentDecisions, ResponseDecider
from followup.decision_log import DecisionLog
from followup.learning import Learning
from incoming import Incoming
from offers.offer import Reply
from offers.open_offers import OpenOffers
from offers.proactive_offers import ProactiveOffers
from place import Place
from place_settings.fields import PlaceSettings
from place_settings.guild_settings import GuildSettings
from state.consent import Consent, Forgotten
from state.direct_messages import DirectMessages
from state.limits import Limits
from state.message import Appended
from state.optout import OptOut
from state.prompts import Ask, AwaitingType
from storage.sealing import Seal
from tests.support.fake_agent import Script
from tests.support.followups import FixedTier
from tests.support.people import ANNA, BEN, BOT, CHANNEL, GUILD, said
from tests.support.turns_bench import Bench, FakeOffers, asked
from tests.support.virtual_time import settle, until
from turns.admission import Admission
from turns.bursts import Bursts
from turns.endings import SENTENCES
from turns.gate import Gate
from turns.message_handler import MessageHandler
from turns.offer_turns import NEVER_HERE, OfferReplies
from turns.records import Records
from turns.turn import Question

pytestmark = pytest.mark.virtual_time

HELLO = "<@1> hello"
SOAP = Ask(AwaitingType.CONFIRMATION, context={"ask_id": "call-1"}, source_handler="agent")


class FakeReplies(FakeOffers):
    """Offers, as the handler and the records know them."""

    def __init__(self) -> None:
        super().__init__()
        self.heard_messages: list[str] = []
        self.accepted: list[str] = []
        self.answered_messages: list[str] = []

    def heard(self, _channel_id: int, message: MessageRecord, *, is_refused: bool = False) -> None:
        if not is_refused:
            self.heard_messages.append(message.content)

    def decline(self, _channel_id: int, reply: Reply, *, by: int) -> str | None:  # noqa: ARG002
        return None if reply is Reply.NOT_NOW else NEVER_HERE

    def accept(self, question: Question) -> None:
        self.accepted.append(question.message.content)

    def answered(self, _channel_id: int, _guild_id: int, message: MessageRecord) -> None:
        self.answered_messages.append(message.content)


class Stage(Bench):
    """The handler, over turns with all around them faked."""

    def __init__(self, score: float = 0.0, channels: frozenset[int] = frozenset(), per_minute: int = 10) -> None:
        super().__init__()
        self.opted_out, self.forgotten = OptOut(), Forgotten()
        self.decisions = RecentDecisions()
        self.offers: FakeReplies = FakeReplies()
        self.meanings._offers = cast(OpenOffers, self.offers)
        self.gate = Gate()
        consent = Consent(self.opted_out, self.forgotten)
        limits = Limits(turns_per_user_minute=per_minute, daily_tokens=None)
        learning = Learning(DecisionLog(Path("unused"), Seal([]), is_on=False).add, keeps_content=False)
        offers = cast(ProactiveOffers, self.offers)
        records = Records(self.conversations, self, self.decisions, learning, limits, consent, offers)
        decider = ResponseDecider(followup=FixedTier(score))
        self.transcript: list[str] = []
        settings = GuildSettings(PlaceSettings(allowed_channels=channels or None))
        self.place = replace(place := Place(GUILD, CHANNEL, bot_name="Parley"), held=settings.at(place))
        self.handler = MessageHandler(
            consent=consent,
            records=records,
            bursts=Bursts(
                0,
                conversations=self.conversations,
                decider=decider,
                discord=self.around,
                is_forgotten=consent.is_forgotten,
            ),
            meanings=self.meanings,
            intake=self.intake,
            admission=Admission(
                limits, self.gate, self.turns, DirectMessages("off", (), lambda: None), settings, self.slots
            ),
            turns=self.turns,
            offers=cast(OfferReplies, self.offers),
        )

    def append(self, appended: Appended) -> None:
        self.transcript.append(appended.record.content)

    def removed(self, *_: Any) -> None:
        """Nothing that goes is looked at."""

    def note(self, *_: Any) -> None:
        """Nothing but dialogue is looked at."""

    async def noted(self) -> None:
        """All is."""

    async def hear(self, text: str, author: int = ANNA, **there: Any) -> Decision:
        """Has a message handled, and gives the decision on it."""
        record = said(author, text)
        incoming = Incoming(record, self.conversations.get(CHANNEL), self.place, BOT, self.clock())
        await self.handler.handle(replace(incoming, **there))
        noted = self.decisions.find(record.message_id)
        assert noted
        return noted.decision


async def test_a_mention_begins_a_conversation_and_is_answered() -> None:
    stage = Stage()
    assert tuple(await stage.hear(HELLO)) == (True, Reason.EXPLICIT_TRIGGER)
    await stage.idle()
    assert asked(stage) == [[HELLO]]
    assert stage.transcript == [HELLO]
    assert stage.offers.answered_messages == [HELLO]


async def test_what_mentions_nobody_begins_none() -> None:
    stage = Stage()
    assert tuple(await stage.hear("hello")) == (False, Reason.NO_TRIGGER)
    assert stage.conversations.get(CHANNEL) is None
    assert not stage.transcript
    assert stage.offers.heard_messages == ["hello"]


@pytest.mark.parametrize(("score", "answered"), [(0.9, True), (0.0, False)])
async def test_within_a_conversation_the_second_tier_decides(score: float, answered: bool) -> None:
    stage = Stage(score)
    await stage.hear(HELLO)
    await stage.idle()
    assert (await stage.hear("I would like a longer one of those")).respond is answered
    await stage.idle()
    assert len(asked(stage)) == 1 + answered
    assert stage.transcript == [HELLO, "I would like a longer one of those"]


async def test_a_channel_that_is_not_listed_hears_nothing() -> None:
    stage = Stage(channels=frozenset({CHANNEL + 1}))
    assert (await stage.hear(HELLO)).reason is Reason.CHANNEL_NOT_LISTED
    assert (stage.conversations.get(CHANNEL), stage.offers.heard_messages) == (None, [])


async def test_who_opted_out_is_read_when_they_mention_the_bot_and_kept_never() -> None:
    stage = Stage(0.9)
    await stage.hear(HELLO, BEN)
    await stage.idle()
    stage.opted_out.add(ANNA)
    assert (await stage.hear("a secret")).reason is Reason.OPTED_OUT
    assert (await stage.hear("<@1> a question")).respond
    await stage.idle()
    assert asked(stage) == [[HELLO], ["<@1> a question"]]
    assert stage.transcript == [HELLO, "", ""]


async def test_what_was_forgotten_since_is_not_handled() -> None:
    stage = Stage()
    stage.forgotten.mark(None, ANNA, 2**62)
    with pytest.raises(AssertionError):
        await stage.hear(HELLO)
    assert not stage.offers.heard_messages


async def test_an_answer_to_a_prompt_resolves_it() -> None:
    stage = Stage()
    await stage.hear(HELLO)
    await stage.idle()
    prompt = stage.states.set_awaiting(CHANNEL, SOAP, user_id=ANNA, question="Soap?")
    stage.states.shown(prompt, 1, "Soap?")
    assert (await stage.hear("yes", BEN)).reason is not Reason.AWAITED
    assert (await stage.hear("yes")).reason is Reason.AWAITED
    assert not stage.states.prompts(CHANNEL)
    await stage.idle()
    assert asked(stage)[-1] == ["yes"]


async def test_a_message_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(0.9)
    await stage.hear(HELLO)
    read = Mock(wraps=stage.states.process_message)
    monkeypatch.setattr(stage.states, "process_message", read)
    assert (await stage.hear("I would like a longer one of those")).respond
    await stage.idle()
    assert read.call_count == 1


async def test_a_question_that_is_posted_while_a_message_is_judged_is_answered_by_it() -> None:
    stage = Stage()
    await stage.hear(HELLO)
    await stage.idle()

    class Slow(FixedTier):
        def __call__(self, *asked: Any) -> Decision:
            stage.states.shown(stage.states.set_awaiting(CHANNEL, SOAP, user_id=ANNA, question="Soap?"), 1, "Soap?")
            return super().__call__(*asked)

    stage.states.set_awaiting(CHANNEL, SOAP, user_id=BEN, question="Soap, Ben?")  # so that it is read before, too
    stage.handler._bursts._decider = ResponseDecider(followup=Slow())
    assert (await stage.hear("yes please, I would like that")).respond
    await stage.idle()
    assert stage.agent.requests[-1].reply
    assert [prompt.user_id for prompt in stage.states.prompts(CHANNEL)] == [BEN]


async def test_stop_ends_the_answer_that_its_author_waits_for() -> None:
    stage = Stage()
    gate = asyncio.Event()
    stage.script(Script(first="One", gate=gate))
    await stage.hear(HELLO)
    await until(lambda: stage.wire.texts)
    assert (await stage.hear("stop")).reason is Reason.STOP
    await stage.idle()
    assert "Stopped." in stage.wire.texts[-1]


@pytest.mark.parametrize(
    ("reply", "reason", "accepted"),
    [
        (Reply.YES, Reason.OFFER_ACCEPTED, ["reply"]),
        (Reply.NOT_NOW, Reason.OFFER_DECLINED, []),
        (Reply.NOT_HERE, Reason.OFFER_DECLINED, []),
    ],
)
async def test_a_reply_to_an_offer_is_one(reply: Reply, reason: Reason, accepted: list[str]) -> None:
    stage = Stage()
    await stage.hear(HELLO)
    await stage.idle()
    stage.offers.reply = reply
    assert (await stage.hear("reply")).reason is reason
    await asyncio.sleep(1)
    assert stage.offers.accepted == accepted
    assert (NEVER_HERE in stage.wire.texts) == (reply is Reply.NOT_HERE)
    assert len(asked(stage)) == 1


async def test_where_it_may_not_write_it_reacts() -> None:
    stage = Stage()
    assert (await stage.hear(HELLO, may_send=False)).reason is Reason.MISSING_PERMISSION
    await asyncio.sleep(1)
    assert [call.kind for call in stage.wire.calls] == ["react"]
    assert not asked(stage)


async def test_whoever_asks_too_much_is_told_once() -> None:
    stage = Stage(per_minute=1)
    assert (await stage.hear(HELLO)).respond
    assert (await stage.hear(HELLO, may_send=False)).reason is Reason.MISSING_PERMISSION  # where nobody can be told
    assert [(await stage.hear(HELLO)).reason for _ in range(2)] == [Reason.USER_CAP] * 2
    await stage.idle()
    await asyncio.sleep(1)
    assert len([text for text in stage.wire.texts if "a lot at once" in text]) == 1


async def test_whoever_asks_while_too_many_wait_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turns.turn_slots.MAX_TURNS", 1)
    stage, gate = Stage(), asyncio.Event()
    stage.script(*[Script(gate=gate)] * 65)
    for channel in range(64):  # all that are made at once
        stage.ask(ANNA, "what?", channel=1_000 + channel)
    await settle()
    assert [(await stage.hear(HELLO)).reason for _ in range(2)] == [Reason.QUEUE_FULL] * 2
    await settle()
    assert stage.wire.texts == [SENTENCES[FailureKind.WAITED]]
    stage.ask(ANNA, "what?", channel=2_000, guild=GUILD + 1)
    place = replace(stage.place, guild_id=GUILD + 1)
    assert (await stage.hear(HELLO, place=place)).respond  # of a server that has fewer of them than the other
    gate.set()
    await stage.idle()
    assert (await stage.hear(HELLO)).respond
    await stage.idle()


async def test_what_comes_while_it_shuts_down_is_left_to_the_next_process() -> None:
    stage = Stage()
    await stage.hear(HELLO)
    stage.gate.is_shutting_down = True
    assert (await stage.hear("<@1> and now?")).reason is Reason.SHUTTING_DOWN
    assert stage.transcript == [HELLO]
    await stage.idle()
