"""decider.py: when the bot speaks, tier by tier, and why."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from activity import Observer
from conversation import ChannelConversation, MessageRecord
from decider import (
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
from decision import WITH_SOMEBODY
from followup.model import Eagerness
from place import Place
from place_settings.fields import Level, PlaceSettings
from place_settings.inheritance import Layer, in_force
from tests.support.followups import FixedTier, after, by_rules, decide, talk, trained
from tests.support.models import THRESHOLDS, a_leaf, a_model, a_stump
from tests.support.people import ANNA, BEN, BOT, CHANNEL, CLEO, DAN, EVE, replied, said

pytestmark = pytest.mark.virtual_time


class FakeJudge:
    """Gives the verdicts in order; seconds: how long it thinks."""

    def __init__(self, *verdicts: Verdict | Exception, seconds: float = 0) -> None:
        self.verdicts = deque(verdicts)
        self.asked: list[MessageRecord] = []
        self._seconds = seconds

    async def __call__(
        self,
        message: MessageRecord,
        conversation: ChannelConversation,
        place: Place | None = None,  # noqa: ARG002
    ) -> Verdict:
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


async def test_only_a_mention_or_a_reply_starts_a_conversation() -> None:
    starting = [
        said(ANNA, f"<@{BOT}> hi"),
        said(ANNA, f"hi <@!{BOT}>"),
        said(ANNA, "hi", mentioned=frozenset({BOT, BEN})),
        said(ANNA, "no", reply_to_id=5, reply_to_author_id=BOT),
        said(ANNA, "Parley hi", calls_bot="Parley"),
    ]
    others = [
        said(ANNA, "hi Parley"),
        said(ANNA, "@everyone hi", mentions_group=True),
        said(ANNA, f"<@{BEN}> hi"),
        said(ANNA, "no", reply_to_id=5, reply_to_author_id=BEN),
        said(ANNA, "no", reply_to_id=5),
        replied(ANNA, f"I am <@{BOT}>"),
        said(16, f"<@{BOT}> why?", is_bot=True),
    ]
    decider = trained(Eagerness.EAGER)
    for message in (*starting, *others):
        expected = (True, "explicit_trigger") if message in starting else (False, "no_trigger")
        assert tuple(decider.should_start_conversation(message, BOT)) == expected, message.content
        if message.is_bot:
            assert tuple(await decider.should_respond(message, talk(*JUST_ANSWERED), BOT)) == expected


async def test_a_mention_within_a_conversation_is_answered_whoever_else_is_named() -> None:
    message = said(ANNA, f"<@{BOT}> and <@{BEN}>", mentions_group=True)
    assert tuple(await decide(message, [said(BEN)])) == (True, "explicit_trigger")


async def test_a_reply_that_came_without_its_message_is_looked_up_in_the_conversation() -> None:
    ours, theirs = replied(BEN, message_id=50), said(BEN, message_id=60)
    to_us = await decide(said(ANNA, "no", reply_to_id=50), [ours, theirs])
    to_them = await decide(said(ANNA, "no", reply_to_id=60), [ours, theirs])
    to_whom = await decide(said(ANNA, "no", reply_to_id=70), [ours, theirs])
    assert [d.reason for d in (to_us, to_them, to_whom)] == ["explicit_trigger", "names_others", "names_others"]


# Tier 2


@pytest.mark.parametrize(("make", "reason"), [(trained, "followup"), (by_rules, "answer_due")])
async def test_who_was_spoken_to_last_is_answered(make: Callable[[], ResponseDecider], reason: str) -> None:
    decision = await decide(said(ANNA, "green is fine"), [said(ANNA), replied(ANNA), said(BEN, "lol")], make())
    assert tuple(decision) == (True, reason)
    assert (decision.tier, 0 < decision.score < 1) == (2, True)


async def test_by_the_rules_an_answer_is_due_once_and_for_longer_than_the_window() -> None:
    earlier = [said(ANNA), replied(ANNA)]
    assert (await decide(said(ANNA, "green", at=after(100)), earlier, by_rules())).reason == "answer_due"
    earlier.append(said(ANNA, "green is fine"))
    assert tuple(await decide(said(ANNA, "bye"), earlier, by_rules())) == (False, "no_trigger")


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


LATE = after(301)


@pytest.mark.parametrize(
    ("earlier", "message", "window", "respond"),
    [
        ([ANNA], said(BEN, "why?", at=after(59.9)), 60, True),
        ([ANNA], said(BEN, "why?", at=after(60)), 60, False),
        ([ANNA], said(BEN, "why?", at=after(80)), 90, True),
        ([ANNA], said(BEN, "why?"), 0, False),
        ([ANNA, BEN, CLEO], said(DAN, "why?"), 60, True),
        ([ANNA, BEN, CLEO, EVE], said(DAN, "why?"), 60, False),
        ([ANNA, BEN, CLEO, EVE], said(ANNA, "why?"), 60, True),
    ],
)
async def test_a_second_persons_followup_counts_within_the_window_and_in_a_quiet_channel(
    earlier: list[int], message: MessageRecord, window: float, respond: bool
) -> None:
    """Four people in five minutes, the one who follows up counted."""
    conversation = [*map(said, earlier), replied(earlier[0])]
    assert (await decide(message, conversation, by_rules(window))).respond is respond


async def test_who_spoke_before_does_not_make_a_channel_loud_and_who_spoke_since_closes_the_window() -> None:
    earlier = [*map(said, [ANNA, BEN, CLEO]), said(EVE, at=LATE), replied(EVE, at=LATE)]
    assert (await decide(said(DAN, "why?", at=LATE), earlier, by_rules())).respond
    hm = said(CLEO, "hm", at=LATE)
    assert not (await decide(said(DAN, "why?", at=LATE), [*earlier, hm], by_rules())).respond


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
        (said(ANNA, f"<@{BOT}> shut up"), (False, "told_off")),
        (said(ANNA, "thanks"), (False, "acknowledgement")),
        (said(BEN, "lol"), (False, "acknowledgement")),
        (said(BEN, "ok"), (False, "acknowledgement")),
        (said(BEN, "👍"), (False, "acknowledgement")),
        (said(BEN, "never mind"), (False, "no_trigger")),
        (said(ANNA, "cancel"), None),  # which may be the colour's answer
        (said(BEN, "lol", images=("https://cdn.example/cat.png",)), None),
    ],
)
async def test_a_rule_decides_whatever_the_second_tier_would_say(
    message: MessageRecord, expected: tuple[bool, str] | None
) -> None:
    for score in (0.0, 1.0):
        for more in ({"judge": FakeJudge()}, {"declines": True}):
            decision = await decide(message, ANNAS_TURN, ResponseDecider(followup=FixedTier(score), **more))
            assert tuple(decision) == (expected or (score == 1, decision.reason))
            assert not (expected and decision.may_decline)


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
    assert (await gated(score, message=said(ANNA, "and blue?"))).may_decline is may_decline
    assert decision.evidence == ("so" if respond is (score >= 0.5) else "not so")
    assert not (await gated(score, judge=FakeJudge(Verdict(True)))).may_decline
    assert (await gated(score, limited=True)).may_decline is (0.5 <= score < 0.8)


@pytest.mark.parametrize(
    ("eagerness", "doubt", "limited"),
    [
        (Eagerness.QUIET, (0.5, 0.8), 0.8),
        (Eagerness.BALANCED, (0.2, 0.8), 0.5),
        (Eagerness.EAGER, (0.2, 0.5), 0.5),
    ],
)
def test_doubt_and_gate_lie_between_the_neighbouring_thresholds(
    eagerness: Eagerness, doubt: tuple[float, float], limited: float
) -> None:
    tier = TrainedFollowup(a_model(), eagerness)
    assert (tier.doubt, tier.gate, tier.limited_gate) == (doubt, (doubt[0], tier.model.certain), limited)
    assert tier.open_from == THRESHOLDS[Eagerness.EAGER]


@pytest.mark.parametrize("eagerness", Eagerness)
@pytest.mark.parametrize(("threshold", "respond"), [(0.5, True), (0.5001, False)])
def test_a_score_at_the_threshold_of_its_eagerness_is_enough(
    eagerness: Eagerness, threshold: float, respond: bool
) -> None:
    thresholds = dict.fromkeys(Eagerness, 1.0 - respond) | {eagerness: threshold}
    tier = TrainedFollowup(replace(a_model(), thresholds=thresholds), eagerness)
    decision = tier(said(ANNA, "green is fine", after(20)), talk(*JUST_ANSWERED), BOT)
    assert (decision.respond, decision.tier, decision.score) == (respond, 2, 0.5)


@pytest.mark.parametrize("text", ["ok", "👍", "sure, ok"])
async def test_an_ok_answers_what_the_bot_asked(text: str) -> None:
    decider = ResponseDecider(followup=FixedTier())
    assert (await decide(said(ANNA, text), ANNAS_TURN, decider)).reason == "followup"
    told = [said(ANNA), replied(ANNA, "It is green.")]
    assert (await decide(said(ANNA, "ok"), told, decider)).reason == "acknowledgement"


# Document 003's heuristic, where the second tier is in doubt


def in_doubt(score: float = 0.4) -> ResponseDecider:
    """From 0.4 on the second tier is in doubt; from 0.5 on it answers."""
    return ResponseDecider(followup=FixedTier(score))


@pytest.mark.parametrize("score", [0.39, 0.4, 0.9])
async def test_what_reads_like_a_followup_counts_where_the_second_tier_is_in_doubt(score: float) -> None:
    decision = await decide(said(BEN, "is it far?"), ANNAS_TURN, in_doubt(score))
    assert tuple(decision) == ((True, "recent_followup") if score >= 0.4 else (False, "followup"))
    assert (decision.score, decision.evidence) == (score, "not so" if score == 0.4 else "so")


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
    others = [*told_off, said(BEN, f"<@{BOT}> is it far?"), replied(BEN)]
    assert (await decide(said(BEN, "and then?"), others, in_doubt())).respond
    assert (await decide(said(ANNA, "and then?"), others, in_doubt())).reason == "told_off"


# Document 003's two scenarios, with the model that is shipped

JUST_ANSWERED = [
    said(BEN, "good morning"),
    said(ANNA, f"<@{BOT}> how do I get to Tokyo?", after(5)),
    replied(ANNA, "Take the train, or fly.", after(10)),
]


LUNCH = [said(BEN, f"<@{CLEO}> did you see the film?", after(60)), said(CLEO, f"<@{BEN}> not yet", after(70))]


@pytest.mark.parametrize("eagerness", Eagerness)
async def test_at_every_eagerness_the_scenarios_hold(eagerness: Eagerness) -> None:
    """The same user goes on without a mention, another asks right after, an answer to the bot's question is taken, and
    people who talk to each other are left alone."""
    asked = [said(ANNA, f"<@{BOT}> book me a train"), replied(ANNA, "To which city would you like to go?", after(5))]
    goes_on = ["what about the bus", "and how long is that?", "but I fear planes", "why?", "also to Osaka"]
    another = ["what about the bus", "is it expensive?", "how about Osaka?"]
    answered = [
        *((said(ANNA, text, after(20)), JUST_ANSWERED) for text in goes_on),
        *((said(BEN, text, after(20)), JUST_ANSWERED) for text in another),
        (said(ANNA, "to Tokyo, and on the early train", after(15)), asked),
    ]
    for message, earlier in answered:
        assert (await decide(message, earlier, trained(eagerness))).respond, message.content
    silent = [said(BEN, f"<@{CLEO}> and tomorrow?", after(80))]
    if eagerness is not Eagerness.EAGER:
        silent.append(said(BEN, "Cleo, and tomorrow?", after(80)))
    for message in silent:
        assert not (await decide(message, [*JUST_ANSWERED, *LUNCH], trained(eagerness))).respond


async def test_each_answer_that_was_passed_over_lowers_the_score() -> None:
    guessed = said(BEN, "I am tired", after(20))
    passed_over = replied(BEN, "Have a coffee.", after(24), reply_to_id=guessed.message_id)
    went_on = [said(BEN, "my feet hurt", after(30)), said(CLEO, "so we went home", after(40))]
    tier = TrainedFollowup(replace(a_model(), thresholds=dict.fromkeys(Eagerness, 0.1)))
    scores = [
        tier(said(who, "what a day", after(60)), talk(*JUST_ANSWERED, guessed, *later), BOT).score
        for later in (went_on, [passed_over, *went_on])
        for who in (BEN, DAN)
    ]
    assert scores == [0.5, 0.5, 0.45, 0.45]


async def test_an_answer_to_others_that_nobody_took_up_does_not_raise_the_score() -> None:
    """As if neither it nor what it answered had been said: a tree that goes by how much the bot has said shows it."""
    guessed = said(BEN, "I am tired", after(20))
    pending = replied(BEN, "Have a coffee.", after(24), reply_to_id=guessed.message_id)
    tier = TrainedFollowup(a_model(a_stump("bot_in_window", 1.5, -1, 2)))
    message, conversation = said(ANNA, "what a day", after(60)), talk(*JUST_ANSWERED, guessed, pending)
    assert tier(message, conversation, BOT).score < 0.5 < tier.model.estimate(message, conversation, BOT).probability


# The judge


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


@pytest.mark.parametrize(
    ("judge", "deadline", "reason"),
    [
        (FakeJudge(Verdict(True), seconds=2.9), 3.0, "llm_judge"),
        (FakeJudge(Verdict(True), seconds=3.1), 3.0, "judge_late"),
        (FakeJudge(Verdict(True), seconds=1), 0.5, "judge_late"),
        (FakeJudge(JudgeError("down")), 3.0, "judge_failed"),
    ],
)
async def test_a_judge_that_fails_or_takes_longer_than_its_deadline_means_silence(
    judge: FakeJudge, deadline: float, reason: str
) -> None:
    decider = asking(judge, judge_deadline_seconds=deadline)
    decision = await decide_once(said(BEN, DOUBTFUL), UNSURE, decider)
    assert tuple(decision) == (reason == "llm_judge", reason)


@pytest.mark.parametrize(
    ("message", "is_asked"),
    [(said(BEN, DOUBTFUL), True), (said(BEN, DOUBTFUL, at=after(60)), False), (said(BEN, "Anna, look"), False)],
)
async def test_by_the_rules_doubt_lasts_for_the_window(message: MessageRecord, is_asked: bool) -> None:
    judge = FakeJudge(Verdict(True))
    await decide_once(message, UNSURE, by_rules(judge=judge))
    assert len(judge.asked) == is_asked


# In words, and remembered


def test_a_decision_explains_itself_in_one_line() -> None:
    assert all(reason.answered or reason.silent for reason in Reason)
    yes, no = (Decision(respond, Reason.LLM_JUDGE, evidence="a question") for respond in (True, False))
    assert yes.in_words() == "answered: the judge, a second model, took it as meant for me (a question)"
    assert no.in_words() == "silent: the judge, a second model, took it as not meant for me (a question)"
    assert Decision(False, Reason.NO_TRIGGER).in_words() == "silent: I did not think it was meant for me"
    guess = Decision(True, Reason.FOLLOWUP, tier=2, score=0.875, evidence="you asked")
    assert guess.in_words() == "answered: I thought it was meant for me (you asked: 88% sure)"
    named = replace(Decision(True, Reason.EXPLICIT_TRIGGER), agent="by docs, which you named")
    assert named.in_words() == "answered: you mentioned me or replied to me; by docs, which you named"


@pytest.mark.parametrize(
    ("evidence", "contrary", "words"),
    [
        ("it was short", "you asked a question", "it was short: only 1% sure"),
        ("", "you asked a question", "only 1% sure"),
    ],
)
def test_only_what_spoke_for_the_decision_is_told(evidence: str, contrary: str, words: str) -> None:
    silent = Decision(False, Reason.NO_TRIGGER, tier=2, score=0.01, evidence=evidence, contrary=contrary)
    assert silent.in_words() == f"silent: I did not think it was meant for me ({words})"
    turned = silent.turned(True, Reason.FOLLOWUP)
    assert turned.in_words() == "answered: I thought it might be meant for me (you asked a question: 1% sure)"
    assert turned.turned(False, Reason.NO_TRIGGER) == silent == silent.turned(False, Reason.NO_TRIGGER)


def test_an_answer_and_a_silence_never_tell_the_same_figure() -> None:
    silent, answered = Decision(False, Reason.NO_TRIGGER, 2, 0.3199, "it was short"), Decision(True, Reason.FOLLOWUP)
    assert silent.in_words().endswith("only 31% sure)")
    assert replace(silent, score=0.3204).in_words().endswith("only 32% sure)")
    assert replace(answered, score=0.3208, evidence="you asked").in_words().endswith("33% sure)")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("Parley is nice", "you talked about me, not to me"),
        ("https://example.org", "it was only a link"),
        ("", "I could read no words or picture in it"),
        ("never mind", "a bare “stop” or “never mind” wants no answer"),
    ],
)
async def test_a_silence_by_a_rule_tells_the_rule(words: str, why: str) -> None:
    decision = await decide(said(BEN, words), [said(ANNA), replied(ANNA, "Noon.")])
    assert decision.in_words() == f"silent: I did not think it was meant for me ({why})"


async def test_a_message_outside_any_conversation_is_told_to_be_that() -> None:
    told = ResponseDecider().should_start_conversation(said(ANNA, "hello everybody"), BOT).in_words()
    why = "we were in no conversation here, and you did not call me"
    assert told == f"silent: I did not think it was meant for me ({why})"


async def test_a_call_by_name_is_told_as_that() -> None:
    call = ResponseDecider().should_start_conversation(said(ANNA, "Parley, hi", calls_bot="Parley"), BOT)
    assert call.in_words() == "answered: you called me by my name"


@pytest.mark.parametrize("asks", [-2, 2])
def test_of_a_silence_it_is_told_what_lowered_the_score_and_of_an_answer_what_raised_it(asks: float) -> None:
    model = a_model(a_stump("asks", 0.5, -asks, asks), a_stump("words", 5.5, -asks / 2, asks / 2))
    decision = TrainedFollowup(model)(said(ANNA, "is it far?", after(20)), talk(*JUST_ANSWERED), BOT)
    assert decision.respond is (asks > 0)
    assert (decision.evidence, decision.contrary) == ("you asked a question", "it was short")


def test_a_decision_says_with_whom_somebody_was_talking() -> None:
    silent = Decision(False, Reason.NO_TRIGGER, evidence=f"it was short, and {WITH_SOMEBODY}", score=0.1, partner=BEN)
    told = f"it was short, and you were talking with <@{BEN}>, I think: only 10% sure"
    assert silent.in_words() == f"silent: I did not think it was meant for me ({told})"
    assert "<@" not in replace(silent, partner=None).in_words()


def test_the_log_gives_a_channels_decisions_newest_first() -> None:
    log = RecentDecisions()
    decisions = [Decision(False, reason) for reason in (Reason.STOP, Reason.DELETED, Reason.NO_TRIGGER)]
    for number, decision in enumerate(decisions):
        log.add(number, CHANNEL, ANNA, decision)
        log.add(100 + number, CHANNEL + 1, ANNA, decision, is_ignored=True)
    assert [entry.message_id for entry in log.latest(CHANNEL, 2)] == [2, 1]
    assert [entry.message_id for entry in log.latest(CHANNEL, 9)] == [2, 1, 0]
    assert log.find(1) == LoggedDecision(1, CHANNEL, ANNA, decisions[1])
    assert log.find(50) is None


def test_the_log_is_bounded_and_lets_go_and_what_starts_nothing_crowds_out_nothing() -> None:
    log, no = RecentDecisions(size=100), Decision(False, Reason.NO_TRIGGER)
    for message_id in range(1_000):
        log.add(message_id, message_id % 7, ANNA, no)
        log.add(10_000 + message_id, CHANNEL, BEN, no, is_ignored=True)
    assert (len(log), log.ignored_count) == (200, 1_000)
    assert [bool(log.find(message_id)) for message_id in (899, 900, 999, 10_899, 10_900)] == [
        False,
        True,
        True,
        False,
        True,
    ]
    log.add(10_950, CHANNEL, BEN, replace(no, respond=True))  # an offer is taken up
    for _ in range(2):
        log.drop(lambda entry: entry.message_id in (999, 10_999))
        log.discard(998)
    assert (len(log), log.find(998), log.find(999)) == (196, None, None)
    log.discard(10_950)
    assert log.find(10_950) is None


def test_a_models_words_are_not_noted_once_words_of_the_channel_went_while_it_was_asked() -> None:
    log = RecentDecisions(size=2)
    judged = Decision(False, Reason.LLM_JUDGE, tier=3, evidence="swordfish", agent="by docs (swordfish)")
    before = log.mark
    log.unquote([CHANNEL])
    told = [log.as_noted(channel, judged, since) for channel, since in ((1, before), (CHANNEL, before), (CHANNEL, 1))]
    assert told == [judged, replace(judged, evidence="", agent="by docs"), judged]
    for channel in (2, 3):  # of more channels than it keeps it takes the oldest's for those of all
        log.unquote([channel])
    assert log.as_noted(1, judged, before).evidence == ""
    since = log.mark
    log.unquote()
    assert log.as_noted(1, judged, since).evidence == ""


def test_the_agent_that_was_chosen_is_noted_once_more_and_no_listener_told() -> None:
    heard: list[LoggedDecision] = []

    class Heard(Observer):
        def decided(self, entry: LoggedDecision) -> None:
            heard.append(entry)

    log = RecentDecisions(size=2, listener=Heard())
    log.add(1, CHANNEL, ANNA, Decision(False, Reason.NO_TRIGGER), is_ignored=True)
    decision = Decision(True, Reason.FOLLOWUP, tier=2, score=0.9, evidence="you asked")
    for message_id in (2, 3, 4):
        log.add(message_id, CHANNEL, ANNA, decision)
    for message_id, words in ((1, "by docs"), (2, "by docs"), (3, "by docs"), (3, "by art"), (99, "by docs")):
        log.assigned(message_id, words)
    assert log.find(3) == LoggedDecision(3, CHANNEL, ANNA, replace(decision, agent="by art"))
    assert [(entry.message_id, entry.decision.agent) for entry in log.latest(CHANNEL, 9)] == [
        (4, ""),
        (3, "by art"),
        (1, ""),
    ]
    assert [entry.decision.agent for entry in heard] == [""] * 4
    log.add(5, CHANNEL, ANNA, decision)  # an agent makes no decision newer
    assert log.find(3) is None


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


# What a place has set


def set_so(**values: Any) -> Place:
    """A channel with these settings, as its server's."""
    layers = (Layer(Level.OWNER, 0, PlaceSettings()), Layer(Level.GUILD, 1, PlaceSettings(**values)))
    return Place(1, CHANNEL, held=in_force(layers, (CHANNEL,)))


async def decided_in(place: Place, decider: ResponseDecider, message: MessageRecord = TRAIN) -> Decision:
    return await decider.should_respond(message, talk(*ANNAS_TURN, message), BOT, place)


@pytest.mark.parametrize(("eagerness", "responds"), [("quiet", False), ("balanced", True), ("eager", True)])
async def test_a_place_is_decided_as_eagerly_as_it_has_set(eagerness: str, responds: bool) -> None:
    thresholds = {Eagerness.QUIET: 0.9, Eagerness.BALANCED: 0.5, Eagerness.EAGER: 0.5}
    for own in (Eagerness.QUIET, Eagerness.EAGER):
        decider = ResponseDecider(followup=TrainedFollowup(replace(a_model(), thresholds=thresholds), own))
        assert (await decided_in(set_so(eagerness=eagerness), decider)).respond is responds


async def test_a_tier_decides_itself_where_a_place_has_set_its_own_eagerness() -> None:
    class Silent(TrainedFollowup):
        def __call__(self, *_: object) -> Decision:
            return Decision(False, Reason.NO_TRIGGER)

    decider = ResponseDecider(followup=Silent(a_model(a_leaf(9.0)), Eagerness.QUIET))
    assert [(await decided_in(set_so(eagerness=one), decider)).respond for one in Eagerness] == [False, True, True]


@pytest.mark.parametrize(
    ("values", "is_judged", "may_decline"),
    [
        ({"judge": True}, True, False),
        ({"judge": False}, False, True),
        ({"judge": False, "decline": False}, False, False),
        ({"judge": True, "decline": True}, True, False),
    ],
)
async def test_a_place_has_the_judge_asked_or_the_agent_decline_as_it_has_set(
    values: dict[str, Any], is_judged: bool, may_decline: bool
) -> None:
    judge = FakeJudge(Verdict(True))
    decision = await decided_in(set_so(**values), asking(judge, declines=True))
    assert (bool(judge.asked), decision.may_decline) == (is_judged, may_decline)


async def test_where_it_answers_mentions_only_nothing_else_is_answered_not_even_somebody_alone() -> None:
    place = replace(set_so(answers="mentions"), people=1)
    alone = said(ANNA, "and what is a good name for a cat?")
    decider = ResponseDecider(followup=FixedTier(1.0))
    assert decider.should_start_conversation(alone, BOT, place).reason is Reason.MENTIONS_ONLY
    decision = await decided_in(place, decider)
    assert (decision.reason, decision.evidence) == (Reason.MENTIONS_ONLY, "“When it answers”, set for this server")
    assert (await decided_in(place, decider, said(ANNA, f"<@{BOT}> and now?"))).respond
