"""turns/offer_turns.py: what an offer is to its conversation, and the turn that a Yes to it becomes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest

from conversation import MessageRecord
from decider import Reason, RecentDecisions
from discord_io.channel_wire import Posted
from offers.offer import Note, Offer
from offers.open_offers import OpenOffers
from offers.proactive_offers import ProactiveOffers
from place import Place
from state.awaiting import ProcessingResult, RouteTarget
from state.message import Appended
from tests.support.clock import NOON
from tests.support.offers import note_at, opportunity
from tests.support.people import ANNA, BEN, BOT, CHANNEL, GUILD, IDS, said
from tests.support.turns_bench import Bench
from turns.offer_turns import OfferReplies, record_offer
from turns.turn import Question

PLACE = Place(GUILD, CHANNEL, bot_name="Parley", guild="The Guild", channel="general")


class Fixture:
    """Offer turns over turns with all around them faked."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.decisions = RecentDecisions()
        self.kept: list[Appended] = []
        self.open: Offer | None = None
        offers = cast(OpenOffers, self)
        self.replies = OfferReplies(cast(ProactiveOffers, None), offers, self.bench.intake, self.decisions)

    def append(self, appended: Appended) -> None:
        self.kept.append(appended)

    def removed(self, *_: Any) -> None:
        """Nothing that goes is looked at."""

    def note(self, *_: Any) -> None:
        """Nothing but dialogue is looked at."""

    async def noted(self) -> None:
        """All is."""

    def accept(self, _channel_id: int) -> Offer | None:
        return self.open

    def settle(self, _channel_id: int, _offer: Offer) -> None:
        """Its card says so."""

    def take_up(self, offer: Offer, accepting: Question) -> None:
        self.open = offer
        self.replies.accept(accepting)

    def offer(self, subject: MessageRecord | None = None, note: Note | None = None) -> Offer:
        about = opportunity(subject, note)
        return Offer("o1", about, NOON, GUILD, "Shall I try?", message_id=next(IDS))

    def stands(self, offer: Offer) -> None:
        assert offer.message_id
        posted = Posted(offer.message_id, NOON + timedelta(seconds=1))
        bench = self.bench
        record_offer(bench.conversations, self, self.decisions, bench.around, bench.miniapps, CHANNEL, offer, posted)

    def messages(self) -> list[int]:
        return [message.message_id for message in self.bench.conversation.messages]

    def yes(self, card_id: int | None = None) -> Question:
        return Question(said(ANNA, "yes please"), PLACE, card_id=card_id)


@pytest.fixture
def fixture() -> Fixture:
    return Fixture()


def test_an_offer_begins_a_conversation_with_what_it_is_about(fixture: Fixture) -> None:
    question = said(ANNA, "how?")
    offer = fixture.offer(question)
    fixture.stands(offer)
    assert fixture.messages() == [question.message_id, offer.message_id]
    assert [kept.record.message_id for kept in fixture.kept] == fixture.messages()
    assert {(kept.channel_id, kept.guild_id) for kept in fixture.kept} == {(CHANNEL, GUILD)}


def test_the_offer_of_a_note_begins_one_alone(fixture: Fixture) -> None:
    offer = fixture.offer(note=note_at(NOON))
    fixture.stands(offer)
    assert fixture.messages() == [offer.message_id]
    assert len(fixture.kept) == 1


def test_in_a_conversation_its_question_comes_first_unless_it_is_there(fixture: Fixture) -> None:
    before = said(ANNA, "how?")
    there = fixture.bench.say(BEN, "hello")
    offer = fixture.offer(before)
    fixture.stands(offer)
    assert fixture.messages() == [before.message_id, there.message_id, offer.message_id]
    again = fixture.offer(there)
    fixture.stands(again)
    assert fixture.messages() == [before.message_id, there.message_id, offer.message_id, again.message_id]
    assert [kept.record.message_id for kept in fixture.kept].count(there.message_id) == 0


def test_it_stands_as_the_bots_unasked_words_to_one_person(fixture: Fixture) -> None:
    offer = fixture.offer(said(ANNA, f"<@{BEN}> how?"))
    fixture.stands(offer)
    record = fixture.kept[-1].record
    assert (record.author, record.author_id, record.is_bot, record.unasked) == ("Parley", BOT, True, True)
    assert (record.content, record.timestamp) == ("Shall I try?", NOON + timedelta(seconds=1))
    assert record.addressees == {ANNA}
    assert not record.mentions
    assert record.reply_to_id is None
    conversation = fixture.bench.conversation
    assert record.message_id not in conversation.own, "the model did not say it"


def test_why_it_was_made_can_be_asked(fixture: Fixture) -> None:
    offer = fixture.offer(said(ANNA, "how?"))
    fixture.stands(offer)
    entry = fixture.decisions.find(offer.message_id or 0)
    assert entry
    assert (entry.channel_id, entry.author_id) == (CHANNEL, ANNA)
    assert (entry.decision.respond, entry.decision.reason) == (True, Reason.OFFERED)
    assert entry.decision.evidence == "nobody has answered"


@pytest.mark.parametrize("by_click", [True, False])
async def test_a_yes_has_the_question_answered_in_reply_to_it(fixture: Fixture, *, by_click: bool) -> None:
    question = said(ANNA, "how do I renew it?")
    offer = fixture.offer(question)
    fixture.stands(offer)
    fixture.take_up(offer, fixture.yes(offer.message_id if by_click else None))
    await fixture.bench.idle()
    (sent,) = fixture.bench.wire.done("send")
    assert sent.reply_to == question.message_id
    (request,) = fixture.bench.agent.requests
    assert question.content in [message.content for message in request.transcript]
    assert fixture.bench.recalled == [question.message_id], "what was said around it is looked up"


class Resolved:
    """An intake that remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[tuple[Question, ProcessingResult]] = []

    def resolve(self, question: Question, meaning: ProcessingResult) -> None:
        self.given.append((question, meaning))


def test_a_yes_to_a_note_is_for_its_mini_app_which_learns_what_it_is_about(fixture: Fixture) -> None:
    fixture.replies._intake = intake = Resolved()  # type: ignore[assignment]
    note = note_at(NOON)
    said_yes = fixture.yes(5)
    fixture.take_up(fixture.offer(note=note), said_yes)
    ((question, meaning),) = intake.given
    assert question == said_yes
    assert (meaning.route_to, meaning.miniapp_id, meaning.about) == (RouteTarget.MINIAPP, "dining", note.about)
    assert (meaning.query, meaning.enriched_query) == ("burger", "burger")
    assert meaning.prompt is None


async def test_an_offer_about_nothing_has_nothing_answered(fixture: Fixture) -> None:
    fixture.take_up(fixture.offer(), fixture.yes())
    await fixture.bench.idle()
    assert fixture.bench.wires == {}
