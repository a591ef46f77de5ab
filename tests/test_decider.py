"""decider.py: when the bot speaks, tier by tier, and why."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from conversation import ChannelConversation, MessageRecord
from decider import (
    IN_WORDS,
    Decision,
    JudgeError,
    LoggedDecision,
    Reason,
    RecentDecisions,
    ResponseDecider,
    TrainedFollowup,
    Verdict,
    looks_like_followup,
)
from followup.evidence import WITH_SOMEBODY
from followup.model import Eagerness
from state.engagement import Engagement, Mark, Standing
from tests.support.clock import NOON
from tests.support.followups import FixedTier, after, by_rules, decide, talk, trained
from tests.support.models import THRESHOLDS, a_model
from tests.support.people import ANNA, BEN, BOT, CHANNEL, CLEO, DAN, EVE, replied, said
from understanding.names import called_by_name

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


async def decide_once(message: MessageRecord, earlier: Sequence[MessageRecord], decider: ResponseDecider) -> Decision:
    """The decision on a message that is recorded already, as the bot does it: the judge is asked once at most."""
    conversation = talk(*earlier)
    conversation.add(message)
    return await decider.should_respond(message, conversation, BOT)


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


@pytest.mark.parametrize(("make", "reason"), [(trained, "followup"), (by_rules, "answer_due")])
async def test_who_was_spoken_to_last_is_answered(make: Callable[[], ResponseDecider], reason: str) -> None:
    decision = await decide(said(ANNA, "green is fine"), [said(ANNA), replied(ANNA), said(BEN, "lol")], make())
    assert tuple(decision) == (True, reason)
    assert (decision.tier, 0 < decision.score < 1) == (2, True)


async def test_by_the_rules_an_answer_is_due_once() -> None:
    earlier = [said(ANNA), replied(ANNA), said(ANNA, "green is fine")]
    assert tuple(await decide(said(ANNA, "bye"), earlier, by_rules())) == (False, "no_trigger")


async def test_by_the_rules_an_answer_stays_due_after_the_window() -> None:
    decision = await decide(said(ANNA, "green", at=after(100)), [said(ANNA), replied(ANNA)], by_rules())
    assert decision.reason == "answer_due"


@pytest.mark.parametrize(
    "message",
    [
        said(ANNA, f"<@{BEN}> and you?"),
        said(ANNA, "and you?", mentions_group=True),
        said(ANNA, "and you?", reply_to_id=3, reply_to_author_id=BEN),
        said(ANNA, "and you?", reply_to_id=3),
    ],
)
@pytest.mark.parametrize("make", [trained, by_rules])
async def test_what_is_addressed_to_another_person_is_not_answered(
    message: MessageRecord, make: Callable[[], ResponseDecider]
) -> None:
    decision = await decide(message, [said(BEN), said(ANNA), replied(ANNA)], make())
    assert tuple(decision) == (False, "names_others")


@pytest.mark.parametrize("text", ["Ben, and you?", "ben: and you?", "@Ben, and you?", "and you, Ben?"])
@pytest.mark.parametrize("make", [trained, by_rules])
async def test_who_calls_another_person_by_name_is_left_alone(text: str, make: Callable[[], ResponseDecider]) -> None:
    """No rule says so, but the second tier; document 003's scenarios, which "and you?" would be one of, wait for it."""
    message, earlier = said(ANNA, text), [said(BEN), said(ANNA), replied(ANNA)]
    decision = await decide(message, earlier, make())
    assert tuple(decision) == (False, "no_trigger")
    assert decision.score < 0.2
    assert make().rule(message, talk(*earlier), BOT) is None


async def test_two_others_who_talk_to_each_other_do_not_talk_to_the_bot() -> None:
    asked, answer = said(ANNA, f"<@{BOT}> which laptop is best?"), replied(ANNA, "What do you need it for?", after(5))
    lunch = [said(BEN, f"<@{CLEO}> lunch today?", after(10)), said(CLEO, f"<@{BEN}> sure, when", after(20))]
    decision = await decide(said(BEN, "at noon", after(30)), [asked, answer, *lunch], trained())
    assert tuple(decision) == (False, "no_trigger")
    assert decision.score < 0.2


@pytest.mark.parametrize("make", [trained, by_rules])
async def test_naming_oneself_is_naming_nobody(make: Callable[[], ResponseDecider]) -> None:
    earlier = [said(ANNA), replied(ANNA)]
    for text in (f"it is for <@{ANNA}>", "it is for me, Anna"):
        assert (await decide(said(ANNA, text), earlier, make())).respond


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("Ben, look", True),
        ("BEN: look", True),
        ("look at this, ben.", True),
        ("look at this ben", True),
        ("look, @Ben !?", True),
        ("I like Ben", False),
        ("Benno, look", False),
        ("so, look", False),
        ("Anna, look", False),
        ("", False),
    ],
)
def test_people_are_called_by_name_at_either_end(text: str, calls: bool) -> None:
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
        ("the train is nice", False),
        ("", False),
    ],
)
async def test_document_003s_heuristic_holds_for_a_second_person(text: str, followup: bool) -> None:
    assert looks_like_followup(text) is followup
    decision = await decide(said(BEN, text), [said(ANNA), replied(ANNA)], by_rules())
    assert tuple(decision) == ((True, "recent_followup") if followup else (False, "no_trigger"))


@pytest.mark.parametrize(("seconds", "respond"), [(59.9, True), (60, False), (61, False)])
async def test_a_second_persons_followup_counts_within_the_window(seconds: float, respond: bool) -> None:
    decision = await decide(said(BEN, "why?", at=after(seconds)), [said(ANNA), replied(ANNA)], by_rules())
    assert decision.respond is respond


async def test_the_window_can_be_set_and_be_none_at_all() -> None:
    earlier = [said(ANNA), replied(ANNA)]
    wide, none = by_rules(90), by_rules(0)
    assert (await decide(said(BEN, "why?", at=after(80)), earlier, wide)).respond
    assert not (await decide(said(BEN, "why?"), earlier, none)).respond


async def test_a_second_persons_followup_needs_the_bot_to_have_spoken_last() -> None:
    earlier = [said(ANNA), replied(ANNA), said(CLEO, "hm")]
    assert not (await decide(said(BEN, "why?"), earlier, by_rules())).respond


@pytest.mark.parametrize(("speakers", "respond"), [([ANNA, BEN, CLEO], True), ([ANNA, BEN, CLEO, EVE], False)])
async def test_a_second_persons_followup_needs_a_quiet_channel(speakers: list[int], respond: bool) -> None:
    """Four people in five minutes, the one who follows up counted."""
    earlier = [*map(said, speakers), replied(speakers[-1])]
    assert (await decide(said(DAN, "why?"), earlier, by_rules())).respond is respond


async def test_who_spoke_more_than_five_minutes_ago_does_not_make_a_channel_loud() -> None:
    late = after(301)
    earlier = [*map(said, [ANNA, BEN, CLEO]), said(EVE, at=late), replied(EVE, at=late)]
    assert (await decide(said(DAN, "why?", at=late), earlier, by_rules())).respond


async def test_the_rules_work_on_an_engagement_built_by_hand() -> None:
    spoke = Mark(5, NOON)
    stands = Engagement(number=6, bot_messages=1, bot_spoke=spoke, people={ANNA: Standing(spoke=Mark(4, NOON))})
    to_ben = replace(stands, people={BEN: Standing(spoken_to=spoke)})
    message, reasons = said(BEN, "the train is nice"), []
    for engagement in (stands, to_ben, Engagement()):
        conversation = talk()
        conversation.engagement = engagement
        decision = await by_rules().should_respond(message, conversation, BOT)
        reasons.append((decision.reason, decision.score > 0))
    assert reasons == [("no_trigger", True), ("answer_due", True), ("no_trigger", False)]


async def test_another_second_tier_can_take_the_models_place() -> None:
    tier = FixedTier()
    message = said(BEN)
    decision = await decide(message, [said(ANNA)], ResponseDecider(followup=tier))
    assert decision == tier(message, talk(), BOT)


# Rules, which stand before the second tier

ANNAS_TURN = [said(BEN), said(ANNA), replied(ANNA, "Which colour do you want?")]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (said(ANNA, ""), (False, "no_trigger")),
        (said(ANNA, f"<@{BEN}>, stop"), (False, "names_others")),
        (said(ANNA, "!help"), (False, "names_others")),
        (said(ANNA, "stop"), (False, "told_off")),
        (said(ANNA, "shut up, Parley"), (False, "told_off")),
        (said(ANNA, "thanks"), (False, "acknowledgement")),
        (said(BEN, "lol"), (False, "acknowledgement")),
        (said(BEN, "ok"), (False, "acknowledgement")),
        (said(BEN, "👍"), (False, "acknowledgement")),
    ],
)
async def test_a_rule_decides_whatever_the_second_tier_would_say(
    message: MessageRecord, expected: tuple[bool, str]
) -> None:
    for score in (0.0, 0.5, 1.0):
        decider = ResponseDecider(followup=FixedTier(score), judge=FakeJudge())
        decision = await decide(message, ANNAS_TURN, decider)
        assert tuple(decision) == expected
        assert decider.guess(message, talk(*ANNAS_TURN), BOT).score == score


async def test_a_mention_that_tells_it_off_is_no_call() -> None:
    assert tuple(await decide(said(ANNA, f"<@{BOT}> shut up"), ANNAS_TURN)) == (False, "told_off")


# An agent that may decline

TRAIN = said(BEN, "I would rather take the train", at=after(100))


async def gated(score: float, *, limited: bool = False, message: MessageRecord = TRAIN, **more: Any) -> Decision:
    """The decision on a message that the second tier gives this score. limited: the agent has just declined one."""
    conversation = talk(*ANNAS_TURN)
    if limited:
        conversation.declines = conversation.declines.after([message.author_id], message.timestamp)
    conversation.add(message)
    decider = ResponseDecider(followup=FixedTier(score), **{"declines": True, **more})
    return await decider.should_respond(message, conversation, BOT)


@pytest.mark.parametrize(
    ("score", "respond", "may_decline"),
    [(0.29, False, False), (0.3, True, True), (0.79, True, True), (0.8, True, False), (1.0, True, False)],
)
async def test_within_the_gate_the_agent_is_asked_and_above_it_answers(
    score: float, respond: bool, may_decline: bool
) -> None:
    decision = await gated(score)
    assert (decision.respond, decision.may_decline, decision.score) == (respond, may_decline, score)
    assert decision.reason is (Reason.FOLLOWUP if respond else Reason.NO_TRIGGER)
    assert ("did not decline" in decision.in_words()) is may_decline


@pytest.mark.parametrize(("score", "may_decline"), [(0.49, False), (0.5, True)])
async def test_shortly_after_a_decline_it_takes_more_for_the_agent_to_be_asked(score: float, may_decline: bool) -> None:
    decision = await gated(score, limited=True)
    assert decision.respond is decision.may_decline is may_decline


async def test_document_003s_heuristic_asks_no_agent_that_the_gate_does_not() -> None:
    for score, is_asked in ((0.29, False), (0.3, True)):
        assert (await gated(score, message=said(ANNA, "and blue?"))).may_decline is is_asked


@pytest.mark.parametrize("message", [said(ANNA, "thanks"), said(ANNA, "stop"), said(BEN, f"<@{BOT}> hm")])
async def test_what_other_rules_say_is_not_left_to_the_agent(message: MessageRecord) -> None:
    assert await gated(0.5, message=message) == await gated(0.5, message=message, declines=False)


async def test_where_a_judge_is_asked_nothing_may_be_declined() -> None:
    for score in (0.3, 0.5, 0.7):
        assert not (await gated(score, judge=FakeJudge(Verdict(True)))).may_decline


@pytest.mark.parametrize(
    ("eagerness", "low", "limited"),
    [
        (Eagerness.QUIET, Eagerness.BALANCED, Eagerness.QUIET),
        (Eagerness.BALANCED, Eagerness.EAGER, Eagerness.BALANCED),
        (Eagerness.EAGER, Eagerness.EAGER, Eagerness.BALANCED),
    ],
)
def test_the_gate_is_one_step_more_eager_than_the_owner_and_closes_to_the_owners_own_point(
    eagerness: Eagerness, low: Eagerness, limited: Eagerness
) -> None:
    tier = TrainedFollowup(a_model(), eagerness)
    assert tier.gate == (THRESHOLDS[low], tier.model.certain)
    assert tier.limited_gate == THRESHOLDS[limited]


@pytest.mark.parametrize("text", ["ok", "👍", "sure, ok"])
async def test_an_ok_answers_what_the_bot_asked(text: str) -> None:
    decider = ResponseDecider(followup=FixedTier())
    assert (await decide(said(ANNA, text), ANNAS_TURN, decider)).reason == "followup"
    told = [said(ANNA), replied(ANNA, "It is green.")]
    assert (await decide(said(ANNA, "ok"), told, decider)).reason == "acknowledgement"


async def test_a_picture_is_no_bare_acknowledgement() -> None:
    picture = said(BEN, "lol", images=("https://cdn.example/cat.png",))
    assert (await decide(picture, ANNAS_TURN, ResponseDecider(followup=FixedTier()))).reason == "followup"


# Document 003's heuristic, where the second tier is in doubt

GOES_ON = said(BEN, "is it far?")


def in_doubt(score: float = 0.4) -> ResponseDecider:
    """From 0.4 on the second tier is in doubt; from 0.5 on it answers."""
    return ResponseDecider(followup=FixedTier(score))


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (0.39, (False, "followup")),
        (0.4, (True, "recent_followup")),
        (0.5, (True, "recent_followup")),
        (0.9, (True, "recent_followup")),
    ],
)
async def test_what_reads_like_a_followup_counts_where_the_second_tier_is_in_doubt(
    score: float, expected: tuple[bool, str]
) -> None:
    decision = await decide(GOES_ON, ANNAS_TURN, in_doubt(score))
    assert tuple(decision) == expected
    assert (decision.score, decision.evidence) == (score, "it was told so")


@pytest.mark.parametrize(
    ("later", "message"),
    [
        ([], said(BEN, "has anyone seen my keys?")),
        ([], said(BEN, "and you guys")),
        ([], said(BEN, "anna are you coming tonight?")),
        ([], said(BEN, "are you coming, Anna?")),
        ([], said(BEN, "the train is nice")),
        ([], said(BEN, "is it far?", after(61))),
        ([said(CLEO, "I had soup")], said(BEN, "is it far?")),
        ([*map(said, (CLEO, DAN, EVE)), replied(EVE)], said(BEN, "is it far?")),
        ([said(ANNA, "Ben, lunch?"), replied(ANNA, "Yes.")], said(BEN, "why?")),
        ([said(ANNA, f"<@{BEN}> lunch?"), replied(ANNA, "Yes.")], said(BEN, "why?")),
    ],
)
async def test_what_is_for_the_room_or_a_person_or_comes_late_is_left_to_the_score(
    later: list[MessageRecord], message: MessageRecord
) -> None:
    assert not (await decide(message, [*ANNAS_TURN, *later], in_doubt())).respond
    assert (await decide(message, [*ANNAS_TURN, *later], in_doubt(0.5))).reason == "followup"


@pytest.mark.parametrize(
    ("acknowledgements", "counts"),
    [
        ([said(ANNA, "thanks")], True),
        ([said(ANNA, "thanks"), said(CLEO, "lol")], True),
        ([said(ANNA, "thanks") for _ in range(5)], True),
        ([said(ANNA, "thanks") for _ in range(6)], False),
        ([said(ANNA, "thanks"), said(CLEO, "I had soup")], False),
    ],
)
async def test_thanks_and_laughs_of_others_do_not_close_the_window(
    acknowledgements: list[MessageRecord], counts: bool
) -> None:
    assert (await decide(said(BEN, "what about K2?"), [*ANNAS_TURN, *acknowledgements], in_doubt())).respond is counts


# Told off


async def test_who_told_the_bot_off_is_left_alone_until_they_mention_it() -> None:
    told_off = [*ANNAS_TURN, said(ANNA, "shut up")]
    for text in ("and blue?", "Parley, is it far?", "why?"):
        assert tuple(await decide(said(ANNA, text), told_off)) == (False, "told_off")
    called_back = [*told_off, replied(BEN), said(ANNA, f"<@{BOT}> sorry"), replied(ANNA)]
    assert (await decide(said(ANNA, f"<@{BOT}> sorry"), told_off)).reason == "explicit_trigger"
    assert (await decide(said(ANNA, "and blue?"), called_back, in_doubt())).respond


async def test_others_are_answered_when_one_person_told_the_bot_off() -> None:
    told_off = [*ANNAS_TURN, said(ANNA, "shut up"), said(BEN, f"<@{BOT}> is it far?"), replied(BEN)]
    assert (await decide(said(BEN, "and then?"), told_off, in_doubt())).respond
    assert (await decide(said(ANNA, "and then?"), told_off, in_doubt())).reason == "told_off"


# Document 003's two scenarios, with the model that is shipped

JUST_ANSWERED = [
    said(BEN, "good morning"),
    said(ANNA, f"<@{BOT}> how do I get to Tokyo?", after(5)),
    replied(ANNA, "Take the train, or fly.", after(10)),
]


@pytest.mark.parametrize("eagerness", Eagerness)
@pytest.mark.parametrize(
    "text", ["what about the bus", "and how long is that?", "but I fear planes", "why?", "also to Osaka"]
)
async def test_at_every_eagerness_the_same_user_goes_on_without_a_mention(text: str, eagerness: Eagerness) -> None:
    assert (await decide(said(ANNA, text, after(20)), JUST_ANSWERED, trained(eagerness))).respond


@pytest.mark.parametrize("eagerness", Eagerness)
@pytest.mark.parametrize("text", ["what about the bus", "is it expensive?", "how about Osaka?"])
async def test_at_every_eagerness_another_user_asks_right_after(text: str, eagerness: Eagerness) -> None:
    assert (await decide(said(BEN, text, after(20)), JUST_ANSWERED, trained(eagerness))).respond


@pytest.mark.parametrize("eagerness", Eagerness)
async def test_at_every_eagerness_the_answer_to_the_bots_question_is_taken(eagerness: Eagerness) -> None:
    asked = [said(ANNA, f"<@{BOT}> book me a train"), replied(ANNA, "To which city would you like to go?", after(5))]
    assert (await decide(said(ANNA, "to Tokyo, and on the early train", after(15)), asked, trained(eagerness))).respond


@pytest.mark.parametrize("eagerness", Eagerness)
async def test_at_every_eagerness_people_who_talk_to_each_other_are_left_alone(eagerness: Eagerness) -> None:
    between = [
        *JUST_ANSWERED,
        said(BEN, f"<@{CLEO}> did you see the film?", after(60)),
        said(CLEO, f"<@{BEN}> not yet", after(70)),
    ]
    assert not (await decide(said(BEN, f"<@{CLEO}> and tomorrow?", after(80)), between, trained(eagerness))).respond
    by_name = said(BEN, "Cleo, and tomorrow?", after(80))
    assert eagerness is Eagerness.EAGER or not (await decide(by_name, between, trained(eagerness))).respond


@pytest.mark.parametrize("text", ["why?", f"<@{BOT}> why?", "and then?"])
async def test_another_bot_is_never_answered(text: str) -> None:
    other_bot = said(16, text, after(20), is_bot=True)
    assert tuple(await trained(Eagerness.EAGER).should_respond(other_bot, talk(*JUST_ANSWERED), BOT)) == (
        False,
        "no_trigger",
    )


# The trained tier


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_each_eagerness_has_its_threshold(threshold: float) -> None:
    message, conversation = said(ANNA, "green is fine", after(20)), talk(*JUST_ANSWERED)
    for eagerness in Eagerness:
        thresholds = {e: threshold if e is eagerness else 1 - threshold for e in Eagerness}
        model = replace(a_model(), thresholds=thresholds)
        decision = TrainedFollowup(model, eagerness)(message, conversation, BOT)
        reason = Reason.FOLLOWUP if threshold == 0 else Reason.NO_TRIGGER
        assert (decision.respond, decision.reason, decision.tier) == (threshold == 0, reason, 2)
        assert decision.score == 0.5


@pytest.mark.parametrize(("threshold", "respond"), [(0.5, True), (0.5001, False)])
def test_a_score_at_the_threshold_is_enough(threshold: float, respond: bool) -> None:
    tier = TrainedFollowup(a_model(thresholds=dict.fromkeys(Eagerness, threshold)))
    assert tier(said(ANNA, "green is fine", after(20)), talk(*JUST_ANSWERED), BOT).respond is respond


@pytest.mark.parametrize(
    ("eagerness", "doubt"),
    [(Eagerness.QUIET, (0.5, 0.8)), (Eagerness.BALANCED, (0.2, 0.8)), (Eagerness.EAGER, (0.2, 0.5))],
)
def test_doubt_lies_between_the_neighbouring_thresholds(eagerness: Eagerness, doubt: tuple[float, float]) -> None:
    assert TrainedFollowup(a_model(), eagerness).doubt == doubt


@pytest.mark.parametrize("message", [said(ANNA, "green is fine"), said(BEN, "I saw a film"), said(CLEO, "Ben, lunch")])
def test_the_trained_tier_gives_three_clauses_of_evidence(message: MessageRecord) -> None:
    evidence = trained().guess(message, talk(*JUST_ANSWERED), BOT).evidence
    assert evidence.count(", ") == 2
    assert ", and " in evidence


# Tier 3

UNSURE = [said(ANNA), replied(ANNA)]
DOUBTFUL = "the train is nice"


def asking(judge: FakeJudge, score: float = 0.5, **more: Any) -> ResponseDecider:
    """A decider that asks the judge from 0.4 up to but without 0.6."""
    return ResponseDecider(followup=FixedTier(score), judge=judge, **more)


@pytest.mark.parametrize("yes", [True, False])
async def test_the_judge_decides_where_the_second_tier_is_unsure(yes: bool) -> None:
    judge = FakeJudge(Verdict(yes, "it is about the train"))
    decision = await decide_once(message := said(BEN, DOUBTFUL), UNSURE, asking(judge))
    assert decision == Decision(yes, Reason.LLM_JUDGE, tier=3, score=float(yes), evidence="it is about the train")
    assert judge.asked == [message]


@pytest.mark.parametrize(
    ("score", "is_asked"), [(0.0, False), (0.39, False), (0.4, True), (0.59, True), (0.6, False), (1.0, False)]
)
async def test_the_judge_is_asked_within_the_doubt_only(score: float, is_asked: bool) -> None:
    judge = FakeJudge(Verdict(True))
    decision = await decide_once(said(BEN, DOUBTFUL), UNSURE, asking(judge, score))
    assert (len(judge.asked), decision.tier) == ((1, 3) if is_asked else (0, 2))


@pytest.mark.parametrize(
    ("eagerness", "is_asked"), [(Eagerness.QUIET, True), (Eagerness.BALANCED, True), (Eagerness.EAGER, False)]
)
async def test_the_judge_is_asked_within_the_doubt_of_the_trained_tier(eagerness: Eagerness, is_asked: bool) -> None:
    """The score is 0.5, which is where the eager bot's doubt ends."""
    judge = FakeJudge(Verdict(True))
    tier = TrainedFollowup(a_model(), eagerness)
    await decide_once(said(BEN, DOUBTFUL), UNSURE, ResponseDecider(followup=tier, judge=judge))
    assert len(judge.asked) == is_asked


@pytest.mark.parametrize(
    ("message", "is_asked"),
    [(said(BEN, DOUBTFUL), True), (said(BEN, DOUBTFUL, at=after(60)), False), (said(BEN, "Anna, look"), False)],
)
async def test_by_the_rules_doubt_lasts_for_the_window(message: MessageRecord, is_asked: bool) -> None:
    judge = FakeJudge(Verdict(True))
    await decide_once(message, UNSURE, by_rules(judge=judge))
    assert len(judge.asked) == is_asked


@pytest.mark.parametrize(
    "message",
    [
        said(BEN, f"<@{BOT}> nice"),
        said(BEN, f"<@{CLEO}> the train is nice"),
        said(BEN, "nice"),
        said(BEN, "stop"),
        said(BEN, ""),
        said(16, DOUBTFUL, is_bot=True),
    ],
)
async def test_the_judge_is_not_asked_where_no_guess_is_needed(message: MessageRecord) -> None:
    judge = FakeJudge()
    assert (await decide_once(message, UNSURE, asking(judge))).tier < 3
    assert judge.asked == []


@pytest.mark.parametrize(("seconds", "reason"), [(2.9, "llm_judge"), (3.1, "judge_late")])
async def test_a_judge_has_three_seconds(seconds: float, reason: str) -> None:
    judge = FakeJudge(Verdict(True), seconds=seconds)
    decision = await decide_once(said(BEN, DOUBTFUL), UNSURE, asking(judge))
    assert (decision.respond, decision.reason) == (reason == "llm_judge", reason)


async def test_the_judges_deadline_can_be_given() -> None:
    judge = FakeJudge(Verdict(True), seconds=1)
    decider = asking(judge, judge_deadline_seconds=0.5)
    assert (await decide_once(said(BEN, DOUBTFUL), UNSURE, decider)).reason == "judge_late"


async def test_a_judge_that_fails_means_silence() -> None:
    decider = asking(FakeJudge(JudgeError("down")))
    assert tuple(await decide_once(said(BEN, DOUBTFUL), UNSURE, decider)) == (False, "judge_failed")


# In words, and remembered


def test_every_reason_has_words() -> None:
    assert all(any(IN_WORDS[reason]) for reason in Reason)


def test_a_decision_explains_itself_in_one_line() -> None:
    yes, no = (Decision(respond, Reason.LLM_JUDGE, evidence="a question") for respond in (True, False))
    assert yes.in_words() == "answered: the judge took it as meant for me (a question)"
    assert no.in_words() == "silent: the judge took it as not meant for me (a question)"
    assert Decision(False, Reason.NO_TRIGGER).in_words() == "silent: I did not take it as said to me"
    guess = Decision(True, Reason.FOLLOWUP, tier=2, score=0.875, evidence="you asked")
    assert guess.in_words() == "answered: I took it as said to me (you asked: 0.88)"


def test_a_decision_says_with_whom_somebody_was_talking() -> None:
    silent = Decision(False, Reason.NO_TRIGGER, evidence=f"it was short, and {WITH_SOMEBODY}", score=0.1, partner=BEN)
    line = f"silent: I did not take it as said to me (it was short, and you were talking with <@{BEN}>, I think: 0.10)"
    assert silent.in_words() == line
    assert "<@" not in replace(silent, partner=None).in_words()


def test_a_decision_says_which_agent_was_chosen() -> None:
    named = replace(Decision(True, Reason.EXPLICIT_TRIGGER), agent="by docs, which you named")
    assert named.in_words() == "answered: you mentioned me or replied to me; by docs, which you named"
    judged = Decision(True, Reason.LLM_JUDGE, evidence="a question", agent="by docs, which fits best")
    assert judged.in_words() == "answered: the judge took it as meant for me (a question); by docs, which fits best"


def test_the_log_gives_a_channels_decisions_newest_first() -> None:
    log = RecentDecisions()
    decisions = [Decision(False, reason) for reason in (Reason.STOP, Reason.DELETED, Reason.NO_TRIGGER)]
    for number, decision in enumerate(decisions):
        log.add(number, CHANNEL, ANNA, decision)
        log.add_ignored(100 + number, CHANNEL + 1, ANNA, decision)
    assert [entry.message_id for entry in log.latest(CHANNEL, 2)] == [2, 1]
    assert [entry.message_id for entry in log.latest(CHANNEL, 9)] == [2, 1, 0]
    assert log.find(1) == LoggedDecision(1, CHANNEL, ANNA, decisions[1])
    assert log.find(50) is None


def test_the_log_is_bounded_and_lets_go() -> None:
    log = RecentDecisions(size=100)
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
    log = RecentDecisions(listener=heard.append)
    log.add(1, CHANNEL, ANNA, Decision(True, Reason.EXPLICIT_TRIGGER))
    assert heard == [log.find(1)]


def test_the_agent_that_was_chosen_is_noted_and_no_listener_told() -> None:
    heard: list[LoggedDecision] = []
    log = RecentDecisions(listener=heard.append)
    decision = Decision(True, Reason.FOLLOWUP, tier=2, score=0.9, evidence="you asked")
    for message_id in (1, 2, 3):
        log.add(message_id, CHANNEL, ANNA, decision)
    log.assigned(2, "by docs, which you named")
    log.assigned(2, "by the general agent, which you named")
    assigned = replace(decision, agent="by the general agent, which you named")
    assert [entry.decision for entry in log.latest(CHANNEL, 5)] == [decision, assigned, decision]
    assert log.find(2) == LoggedDecision(2, CHANNEL, ANNA, assigned)
    assert [entry.decision for entry in heard] == [decision] * 3


def test_an_agent_is_noted_of_no_decision_that_is_gone() -> None:
    log = RecentDecisions(size=2)
    log.add_ignored(1, CHANNEL, ANNA, Decision(False, Reason.NO_TRIGGER))
    for message_id in (2, 3, 4):
        log.add(message_id, CHANNEL, ANNA, Decision(True, Reason.EXPLICIT_TRIGGER))
    log.discard(3)
    for message_id in (1, 2, 3, 99):
        log.assigned(message_id, "by docs, which you named")
    assert [(entry.message_id, entry.decision.agent) for entry in log.latest(CHANNEL, 9)] == [(4, ""), (1, "")]


def test_an_agent_makes_no_decision_newer() -> None:
    log = RecentDecisions(size=2)
    for message_id in (1, 2):
        log.add(message_id, CHANNEL, ANNA, Decision(True, Reason.EXPLICIT_TRIGGER))
    log.assigned(1, "by docs, which you named")
    log.add(3, CHANNEL, ANNA, Decision(True, Reason.EXPLICIT_TRIGGER))
    assert log.find(1) is None


def test_messages_that_start_nothing_crowd_out_nothing() -> None:
    log = RecentDecisions(size=100)
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


async def test_an_edit_can_take_back_a_telling_off() -> None:
    asked, answered, off = said(ANNA), replied(ANNA), said(ANNA, "stop")
    conversation = talk(asked, answered, off)
    assert conversation.engagement.standing(ANNA).told_off
    conversation.revise(replace(off, content="stop the train at five, what is next?"))
    assert not conversation.engagement.standing(ANNA).told_off


async def test_a_reply_that_came_without_its_message_calls_the_bot_back() -> None:
    conversation = talk(said(ANNA), answer := replied(ANNA), said(ANNA, "stop"))
    conversation.add(said(ANNA, "sorry, go on", reply_to_id=answer.message_id))
    assert not conversation.engagement.standing(ANNA).told_off
