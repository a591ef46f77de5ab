"""decider.py: when the bot speaks, tier by tier, and why."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from conversation import ChannelConversation, Engagement, MessageRecord
from decider import (
    IN_WORDS,
    Decision,
    DecisionLog,
    FollowupRules,
    JudgeError,
    LoggedDecision,
    Reason,
    ResponseDecider,
    Verdict,
    looks_like_followup,
)
from state.message import called_by_name
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, BOT, CHANNEL, CLEO, DAN, EVE, replied, said

pytestmark = pytest.mark.virtual_time


class FakeJudge:
    """Gives the verdicts in order; seconds: how long it thinks."""

    def __init__(self, *verdicts: Verdict | Exception, seconds: float = 0) -> None:
        self.verdicts = deque(verdicts)
        self.asked: list[MessageRecord] = []
        self._seconds = seconds

    async def __call__(self, message: MessageRecord, conversation: ChannelConversation) -> Verdict:
        assert message in conversation.messages
        self.asked.append(message)
        await asyncio.sleep(self._seconds)
        verdict = self.verdicts.popleft()
        if isinstance(verdict, Exception):
            raise verdict
        return verdict


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def talk(*messages: MessageRecord) -> ChannelConversation:
    return ChannelConversation(CHANNEL, NOON, NOON, messages=list(messages))


async def decide(
    message: MessageRecord, earlier: Sequence[MessageRecord], decider: ResponseDecider | None = None
) -> Decision:
    """The decision on a message, which must be the same whether the message is recorded already or not."""
    conversation = talk(*earlier)
    before = None if decider else await ResponseDecider().should_respond(message, conversation, BOT)
    conversation.add(message)
    decision = await (decider or ResponseDecider()).should_respond(message, conversation, BOT)
    assert before in (None, decision)
    return decision


# Tier 1


@pytest.mark.parametrize(
    ("message", "starts"),
    [
        (said(ANNA, f"<@{BOT}> hi"), True),
        (said(ANNA, f"hi <@!{BOT}>"), True),
        (said(ANNA, "hi", mentioned=frozenset({BOT, BEN})), True),
        (said(ANNA, "no", reply_to_id=5, reply_to_author_id=BOT), True),
        (said(ANNA, "hi Parley"), False),
        (said(ANNA, "@everyone hi", mentions_group=True), False),
        (said(ANNA, f"<@{BEN}> hi"), False),
        (said(ANNA, "no", reply_to_id=5, reply_to_author_id=BEN), False),
        (said(ANNA, "no", reply_to_id=5), False),
        (replied(ANNA, f"I am <@{BOT}>"), False),
    ],
)
def test_only_a_mention_or_a_reply_starts_a_conversation(message: MessageRecord, starts: bool) -> None:
    decision = ResponseDecider().should_start_conversation(message, BOT)
    assert tuple(decision) == (starts, Reason.EXPLICIT_TRIGGER if starts else Reason.NO_TRIGGER)


async def test_a_mention_within_a_conversation_is_answered_whoever_else_is_named() -> None:
    message = said(ANNA, f"<@{BOT}> and <@{BEN}>", mentions_group=True)
    assert tuple(await decide(message, [said(BEN)])) == (True, "explicit_trigger")


async def test_a_reply_that_came_without_its_message_is_looked_up_in_the_conversation() -> None:
    ours, theirs = replied(BEN, message_id=50), said(BEN, message_id=60)
    to_us = await decide(said(ANNA, "no", reply_to_id=50), [ours, theirs])
    to_them = await decide(said(ANNA, "no", reply_to_id=60), [ours, theirs])
    to_whom = await decide(said(ANNA, "no", reply_to_id=70), [ours, theirs])
    assert [d.reason for d in (to_us, to_them, to_whom)] == ["explicit_trigger", "names_others", "names_others"]


async def test_the_bots_own_words_trigger_nothing() -> None:
    assert tuple(await decide(replied(ANNA, f"<@{BOT}>?"), [said(ANNA), replied(ANNA)])) == (False, "no_trigger")


# Tier 2


async def test_who_was_spoken_to_last_is_answered() -> None:
    decision = await decide(said(ANNA, "green is fine"), [said(ANNA), replied(ANNA), said(BEN, "lol")])
    assert tuple(decision) == (True, "answer_due")
    assert (decision.tier, 0 < decision.score < 1) == (2, True)


async def test_an_answer_is_due_once() -> None:
    earlier = [said(ANNA), replied(ANNA), said(ANNA, "thanks a lot")]
    assert tuple(await decide(said(ANNA, "bye"), earlier)) == (False, "no_trigger")


async def test_an_answer_stays_due_after_the_window() -> None:
    assert (await decide(said(ANNA, "green", at=after(100)), [said(ANNA), replied(ANNA)])).reason == "answer_due"


@pytest.mark.parametrize(
    "message",
    [
        said(ANNA, f"<@{BEN}> and you?"),
        said(ANNA, "and you?", mentions_group=True),
        said(ANNA, "and you?", reply_to_id=3, reply_to_author_id=BEN),
        said(ANNA, "Ben, and you?"),
        said(ANNA, "ben: and you?"),
        said(ANNA, "@Ben, and you?"),
        said(ANNA, "and you, Ben?"),
    ],
)
async def test_what_is_addressed_to_another_person_is_not_answered(message: MessageRecord) -> None:
    decision = await decide(message, [said(BEN), said(ANNA), replied(ANNA)])
    assert tuple(decision) == (False, "names_others")


async def test_naming_oneself_is_naming_nobody() -> None:
    earlier = [said(ANNA), replied(ANNA)]
    assert (await decide(said(ANNA, f"it is for <@{ANNA}>"), earlier)).reason == "answer_due"
    assert (await decide(said(ANNA, "it is for me, Anna"), earlier)).reason == "answer_due"


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("Ben, look", True),
        ("BEN: look", True),
        ("look at this, ben.", True),
        ("look, @Ben !?", True),
        ("I like Ben", False),
        ("Benno, look", False),
        ("so, look", False),
        ("Anna, look", False),
        ("", False),
    ],
)
def test_people_are_called_by_name_at_either_end_with_a_comma(text: str, calls: bool) -> None:
    assert bool(called_by_name(said(ANNA, text), {ANNA: "Anna", BEN: "Ben"})) is calls


async def test_a_call_where_nothing_is_due_is_no_trigger() -> None:
    assert (await decide(said(ANNA, "Ben, hi"), [said(BEN), said(ANNA)])).reason == "no_trigger"


@pytest.mark.parametrize(
    ("text", "followup"),
    [
        ("what about Osaka", True),
        ("  And then", True),
        ("BUT why", True),
        ("how about tea", True),
        ("also", True),
        ("Is it far?", True),
        ("one two three four five six seven eight nine?", True),
        ("one two three four five six seven eight nine ten?", False),
        ("android phones are nice", False),
        ("butter", False),
        ("nice", False),
        ("", False),
    ],
)
async def test_document_003s_heuristic_holds_for_a_second_person(text: str, followup: bool) -> None:
    assert looks_like_followup(text) is followup
    decision = await decide(said(BEN, text), [said(ANNA), replied(ANNA)])
    assert tuple(decision) == ((True, "recent_followup") if followup else (False, "no_trigger"))


@pytest.mark.parametrize(("seconds", "respond"), [(59.9, True), (60, False), (61, False)])
async def test_a_second_persons_followup_counts_within_the_window(seconds: float, respond: bool) -> None:
    decision = await decide(said(BEN, "why?", at=after(seconds)), [said(ANNA), replied(ANNA)])
    assert decision.respond is respond


async def test_the_window_can_be_set_and_be_none_at_all() -> None:
    earlier = [said(ANNA), replied(ANNA)]
    wide, none = (ResponseDecider(followup=FollowupRules(seconds)) for seconds in (90, 0))
    assert (await decide(said(BEN, "why?", at=after(80)), earlier, wide)).respond
    assert not (await decide(said(BEN, "why?"), earlier, none)).respond


async def test_a_second_persons_followup_needs_the_bot_to_have_spoken_last() -> None:
    assert not (await decide(said(BEN, "why?"), [said(ANNA), replied(ANNA), said(CLEO, "hm")])).respond


@pytest.mark.parametrize(("speakers", "respond"), [([ANNA, BEN, CLEO], True), ([ANNA, BEN, CLEO, EVE], False)])
async def test_a_second_persons_followup_needs_a_quiet_channel(speakers: list[int], respond: bool) -> None:
    """Four people in five minutes, the one who follows up counted."""
    earlier = [*map(said, speakers), replied(speakers[-1])]
    assert (await decide(said(DAN, "why?"), earlier)).respond is respond


async def test_who_spoke_more_than_five_minutes_ago_does_not_make_a_channel_loud() -> None:
    late = after(301)
    earlier = [*map(said, [ANNA, BEN, CLEO]), said(EVE, at=late), replied(EVE, at=late)]
    assert (await decide(said(DAN, "why?", at=late), earlier)).respond


def test_the_rules_work_on_an_engagement_built_by_hand() -> None:
    stands = Engagement(bot_spoke_at=NOON, bot_spoke_last=True, last_spoke={ANNA: NOON})
    rules = FollowupRules()
    reasons = [
        decision and decision.reason
        for engagement in (stands, replace(stands, unanswered_by={BEN: NOON}), Engagement())
        if (decision := rules(said(BEN, "why?"), talk(), engagement, BOT))
    ]
    assert reasons == ["recent_followup", "answer_due", "no_trigger"]
    assert rules(said(BEN, "nice"), talk(), stands, BOT) is None


async def test_another_second_tier_can_take_the_rules_place() -> None:
    always = Decision(True, Reason.RECENT_FOLLOWUP, tier=2, score=0.9)
    assert await decide(said(BEN), [said(ANNA)], ResponseDecider(followup=lambda *_: always)) is always


# Tier 3

UNSURE = [said(ANNA), replied(ANNA)]


@pytest.mark.parametrize("yes", [True, False])
async def test_the_judge_decides_where_the_rules_are_unsure(yes: bool) -> None:
    judge = FakeJudge(Verdict(yes, "it is about the train"))
    decision = await decide(message := said(BEN, "nice"), UNSURE, ResponseDecider(judge=judge))
    assert decision == Decision(yes, Reason.LLM_JUDGE, tier=3, score=float(yes), evidence="it is about the train")
    assert judge.asked == [message]


@pytest.mark.parametrize(
    "message",
    [
        said(BEN, f"<@{BOT}> nice"),
        said(BEN, "why?"),
        said(BEN, f"<@{CLEO}> nice"),
        said(BEN, "nice, Anna"),
        said(BEN, "nice", at=after(60)),
    ],
)
async def test_the_judge_is_not_asked_where_the_rules_are_sure(message: MessageRecord) -> None:
    judge = FakeJudge()
    await decide(message, UNSURE, ResponseDecider(judge=judge))
    assert judge.asked == []


@pytest.mark.parametrize(("seconds", "reason"), [(2.9, "llm_judge"), (3.1, "judge_late")])
async def test_a_judge_has_three_seconds(seconds: float, reason: str) -> None:
    judge = FakeJudge(Verdict(True), seconds=seconds)
    decision = await decide(said(BEN, "nice"), UNSURE, ResponseDecider(judge=judge))
    assert (decision.respond, decision.reason) == (reason == "llm_judge", reason)


async def test_the_judges_deadline_can_be_given() -> None:
    judge = FakeJudge(Verdict(True), seconds=1)
    decider = ResponseDecider(judge=judge, judge_deadline_seconds=0.5)
    assert (await decide(said(BEN, "nice"), UNSURE, decider)).reason == "judge_late"


async def test_a_judge_that_fails_means_silence() -> None:
    decider = ResponseDecider(judge=FakeJudge(JudgeError("down")))
    assert tuple(await decide(said(BEN, "nice"), UNSURE, decider)) == (False, "judge_failed")


# In words, and remembered


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_words(reason: Reason) -> None:
    assert any(IN_WORDS[reason])


def test_a_decision_explains_itself_in_one_line() -> None:
    yes, no = (Decision(respond, Reason.LLM_JUDGE, evidence="a question") for respond in (True, False))
    assert yes.in_words() == "answered: the judge took it as meant for me (a question)"
    assert no.in_words() == "silent: the judge took it as not meant for me (a question)"
    assert Decision(False, Reason.NO_TRIGGER).in_words() == "silent: nothing suggested that it was meant for me"


def test_the_log_gives_a_channels_decisions_newest_first() -> None:
    log = DecisionLog()
    decisions = [Decision(False, reason) for reason in (Reason.STOP, Reason.DELETED, Reason.NO_TRIGGER)]
    for number, decision in enumerate(decisions):
        log.add(number, CHANNEL, ANNA, decision)
        log.add_ignored(100 + number, CHANNEL + 1, ANNA, decision)
    assert [entry.message_id for entry in log.latest(CHANNEL, 2)] == [2, 1]
    assert [entry.message_id for entry in log.latest(CHANNEL, 9)] == [2, 1, 0]
    assert log.find(1) == LoggedDecision(1, CHANNEL, ANNA, decisions[1])
    assert log.find(50) is None


def test_the_log_is_bounded_and_lets_go() -> None:
    log = DecisionLog(size=100)
    for message_id in range(10_000):
        log.add(message_id, message_id % 7, ANNA, Decision(False, Reason.NO_TRIGGER))
    assert len(log) == 100
    assert log.find(9_899) is None
    log.drop(lambda entry: entry.message_id == 9_999)
    log.drop(lambda entry: entry.message_id == 9_999)
    assert log.find(9_999) is None
    assert len(log) == 99


def test_a_listener_is_told_of_each_decision() -> None:
    heard: list[LoggedDecision] = []
    log = DecisionLog(listener=heard.append)
    log.add(1, CHANNEL, ANNA, Decision(True, Reason.EXPLICIT_TRIGGER))
    assert heard == [log.find(1)]


def test_messages_that_start_nothing_crowd_out_nothing() -> None:
    log = DecisionLog(size=100)
    log.add(1, CHANNEL, ANNA, Decision(True, Reason.EXPLICIT_TRIGGER))
    for message_id in range(2, 1_000):
        log.add_ignored(message_id, CHANNEL + 1, BEN, Decision(False, Reason.NO_TRIGGER))
    assert [entry.message_id for entry in log.latest(CHANNEL, 5)] == [1]
    assert log.ignored_count == 998
    assert len(log) == 101


def test_a_message_made_to_be_slow_to_read_is_not() -> None:
    """Time would tell on a slow machine only: what must not happen is a search that starts anew at every character."""
    names = {BEN: "Ben"}
    for text in ("hey," + " " * 200_000 + ",", "," * 200_000, "a" * 200_000 + ",", "? " * 100_000):
        assert not called_by_name(said(ANNA, text), names)


def test_an_answer_is_not_due_for_ever() -> None:
    engagement = Engagement().after(said(ANNA)).after(replied(ANNA))
    assert engagement.is_answer_due(said(ANNA, at=NOON + timedelta(minutes=4, seconds=59)))
    assert not engagement.is_answer_due(said(ANNA, at=NOON + timedelta(minutes=5)))


def test_an_answer_is_no_longer_due_from_somebody_whom_others_address() -> None:
    engagement = Engagement().after(said(ANNA)).after(replied(ANNA)).after(said(BEN, f"<@{ANNA}> lunch?"))
    assert not engagement.is_answer_due(said(ANNA, "sure"))


def test_an_answer_is_no_longer_due_from_somebody_whom_others_call_by_name() -> None:
    conversation = talk(said(ANNA), said(BEN, "hm"), replied(ANNA), said(BEN, "hey Anna, shall we take the train?"))
    assert not conversation.engagement.is_answer_due(said(ANNA, "yes, the early one"))
