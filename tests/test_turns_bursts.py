"""Bursts: how long who is heard out, what joins them, and what becomes of those who turn away."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from conversation import ChannelConversation, ConversationManager, MessageRecord
from decider import Decision, FollowupTier, Judge, JudgeError, Reason, ResponseDecider, Verdict
from place import Place
from tests.support.clock import FakeClock
from tests.support.followups import FixedTier
from tests.support.people import ANNA, BEN, BOT, CHANNEL, GUILD, replied, said
from tests.support.turns_bench import Bench
from tests.support.virtual_time import settle
from turns.bursts import MAX_DECIDED_CHARACTERS, Bursts
from turns.turn import Question

pytestmark = pytest.mark.virtual_time
LISBON = "<@1> find me a train to Lisbon"


class Room:
    """A channel in which the bot has spoken, and who is heard out there as the bot does it.

    went: when, by the loop's clock, which words went their way together, and why.
    """

    def __init__(self, followup: FollowupTier | None = None, judge: Judge | None = None, seconds: float = 2.5) -> None:
        self.conversations = ConversationManager(60, clock=FakeClock())
        self.conversation = self.conversations.start(CHANNEL, [said(BEN, "hello"), replied(BEN)])
        decider = ResponseDecider(followup=followup or FixedTier(), judge=judge)
        self.bursts = Bursts(
            seconds,
            conversations=self.conversations,
            decider=decider,
            discord=Bench().around,
            is_forgotten=lambda _channel, _message: False,
        )
        self.went: list[tuple[float, list[str], Reason]] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def say(self, author: int, text: str, **more: Any) -> MessageRecord:
        message = said(author, text, **more)
        self.conversations.record_message(CHANNEL, message)
        self.tasks.append(asyncio.create_task(self._hear(message)))
        await settle()
        return message

    def question(self, message: MessageRecord) -> Question:
        return Question(message, Place(GUILD, CHANNEL, bot_name="Parley", guild="The Guild", channel="general"))

    async def _hear(self, message: MessageRecord) -> None:
        question = self.question(message)
        decision = await self.bursts.decide(question, self.conversation)
        if decision and self.bursts.may_go_on(question, decision):
            self._note(await self.bursts.hear_out(question, decision))
        elif decision:
            self._note([(question, decision)])

    def _note(self, heard: list[tuple[Question, Decision]]) -> None:
        at = round(asyncio.get_running_loop().time(), 3)
        for reason in dict.fromkeys(decision.reason for _, decision in heard):
            words = [question.message.content for question, its in heard if its.reason is reason]
            self.went.append((at, words, reason))

    async def over(self) -> list[tuple[float, list[str], Reason]]:
        await asyncio.gather(*self.tasks)
        assert not len(self.bursts)
        return self.went


async def test_several_messages_are_heard_out_until_their_author_pauses() -> None:
    room = Room()
    await room.say(ANNA, LISBON)
    await asyncio.sleep(1)
    await room.say(ANNA, "tomorrow")
    assert await room.over() == [(2.25, [LISBON, "tomorrow"], Reason.EXPLICIT_TRIGGER)]


async def test_nobody_is_heard_out_for_longer_than_that() -> None:
    room = Room()
    for word in (LISBON, "two", "three"):
        await room.say(ANNA, word)
        await asyncio.sleep(1)
    await room.say(ANNA, "four")
    assert await room.over() == [
        (2.5, [LISBON, "two", "three"], Reason.EXPLICIT_TRIGGER),
        (4.25, ["four"], Reason.FOLLOWUP),
    ]


async def test_whoever_is_typing_is_heard_out_to_the_end() -> None:
    room = Room()
    await room.say(ANNA, LISBON)
    room.bursts.typing(CHANNEL, ANNA)
    room.bursts.typing(CHANNEL, BEN)
    assert await room.over() == [(2.5, [LISBON], Reason.EXPLICIT_TRIGGER)]


@pytest.mark.parametrize(
    ("text", "calls_bot"),
    [
        ("<@1> what is the time?", ""),
        ("what is the time? <@1>", ""),
        ("<@1> 今何時？", ""),
        ("Parley what is the time?", "Parley"),
        ("what is the time? @parley!", "Parley"),
    ],
)
async def test_a_call_that_ends_in_a_question_mark_does_not_wait(text: str, calls_bot: str) -> None:
    room = Room()
    await room.say(ANNA, text, calls_bot=calls_bot)
    assert room.went == [(0, [text], Reason.EXPLICIT_TRIGGER)]


async def test_a_question_mark_ends_what_began_with_a_mention() -> None:
    room = Room()
    await room.say(ANNA, "<@1> hey")
    await room.say(ANNA, "what is the time?")
    assert room.went == [(0, ["<@1> hey", "what is the time?"], Reason.EXPLICIT_TRIGGER)]


async def test_of_long_messages_only_the_newest_words_are_decided_on() -> None:
    lengths = list[int]()

    class MessageReader(FixedTier):
        def __call__(self, message: MessageRecord, conversation: ChannelConversation, me: int, /) -> Decision:
            lengths.append(len(message.content))
            return FixedTier.__call__(self, message, conversation, me)

    room = Room(MessageReader())
    for number in range(20):
        await room.say(ANNA, f"{number} " + "word " * 700)
    await room.over()
    assert len(lengths) == 20
    assert max(lengths) <= MAX_DECIDED_CHARACTERS
    assert sum(len(words) for _, words, _ in room.went) == 20


async def test_a_call_before_long_messages_counts_on() -> None:
    room = Room(FixedTier(score=0.1))
    await room.say(ANNA, LISBON)
    await room.say(ANNA, "word " * 800)
    await room.say(ANNA, "word " * 800)
    [(_, words, reason)] = await room.over()
    assert (len(words), reason) == (3, Reason.EXPLICIT_TRIGGER)


async def test_what_is_left_alone_does_not_wait() -> None:
    room = Room(FixedTier(score=0.1))
    await room.say(ANNA, "lovely weather today")
    assert room.went == [(0, ["lovely weather today"], Reason.FOLLOWUP)]


async def test_without_seconds_nobody_is_heard_out() -> None:
    room = Room(seconds=0)
    await room.say(ANNA, LISBON)
    assert room.went == [(0, [LISBON], Reason.EXPLICIT_TRIGGER)]


async def test_bursts_of_two_people_do_not_mix() -> None:
    room = Room()
    await room.say(ANNA, LISBON)
    await asyncio.sleep(0.5)
    await room.say(BEN, "<@1> tell me a joke")
    await room.say(ANNA, "tomorrow")
    await room.say(BEN, "about cats")
    assert await room.over() == [
        (1.75, [LISBON, "tomorrow"], Reason.EXPLICIT_TRIGGER),
        (1.75, ["<@1> tell me a joke", "about cats"], Reason.EXPLICIT_TRIGGER),
    ]


class Told:
    """A second tier that keeps what it was shown, and lets through what asks for a train."""

    doubt = gate = (1.0, 1.0)
    limited_gate = open_from = 1.0

    def __init__(self) -> None:
        self.shown: list[tuple[str, list[str]]] = []

    def __call__(self, message: MessageRecord, conversation: ChannelConversation, _bot_user_id: int, /) -> Decision:
        assert conversation.engagement_at(message).number == len(conversation.messages) - 1
        self.shown.append((message.content, [m.content for m in conversation.messages[2:]]))
        return Decision("train" in message.content, Reason.FOLLOWUP, tier=2)


async def test_the_newest_is_decided_with_the_others_as_one_utterance() -> None:
    tier = Told()
    room = Room(tier)
    await room.say(ANNA, "the early train is full")
    await room.say(BEN, "oh well")
    await room.say(ANNA, "is there another")
    assert tier.shown[-1] == (
        "the early train is full\nis there another",
        ["oh well", "the early train is full\nis there another"],
    )
    assert (await room.over())[-1] == (1.25, ["the early train is full", "is there another"], Reason.FOLLOWUP)
    assert len(room.conversation.messages) == room.conversation.engagement.number == 5
    assert room.conversation.participants == {ANNA, BEN}


@pytest.mark.parametrize(
    ("text", "more"),
    [("<@1>", {}), ("hey Parley", {"calls_bot": "Parley"}), ("one", {"reply_to_id": 5, "reply_to_author_id": BOT})],
)
async def test_a_mention_name_or_reply_in_any_of_them_counts_for_all(text: str, more: dict[str, Any]) -> None:
    for score, words in ((0.1, [(text, more), ("find me a train", {})]), (0.9, [("find a train", {}), (text, more)])):
        room = Room(FixedTier(score))
        for each, how in words:
            await room.say(ANNA, each, **how)
        assert [(said, reason) for _, said, reason in await room.over()] == [
            ([each for each, _ in words], Reason.EXPLICIT_TRIGGER)
        ]


@pytest.mark.parametrize("to_ben", ["Ben, what do you think", f"<@{BEN}>"])
async def test_whoever_turns_to_somebody_else_had_been_speaking_to_them(to_ben: str) -> None:
    room = Room()
    await room.say(ANNA, "shall we take the early train")
    await room.say(ANNA, to_ben)
    await room.over()
    assert (0, ["shall we take the early train"], Reason.NAMES_OTHERS) in room.went


async def test_whoever_called_the_bot_and_turns_to_somebody_else_is_answered_at_once() -> None:
    room = Room()
    await room.say(ANNA, LISBON)
    await room.say(ANNA, f"<@{BEN}> are you coming")
    await room.over()
    assert sorted(room.went) == [
        (0, [f"<@{BEN}> are you coming"], Reason.NAMES_OTHERS),
        (0, [LISBON], Reason.EXPLICIT_TRIGGER),
    ]


async def test_what_is_called_off_gets_no_answer() -> None:
    room = Room()
    await room.say(ANNA, LISBON)
    await room.say(ANNA, "tomorrow")
    await room.say(BEN, LISBON)
    waiting = room.bursts.heard_out(CHANNEL)
    assert [question.message.content for question in waiting] == [LISBON, "tomorrow", LISBON]
    assert not room.bursts.heard_out(CHANNEL + 1)
    room.bursts.stop([room.question(said(BEN, "hello")), *waiting[:2]])
    assert await room.over() == [
        (0, [LISBON, "tomorrow"], Reason.STOP),
        (1.25, [LISBON], Reason.EXPLICIT_TRIGGER),
    ]


async def test_what_waits_is_known_as_unprompted_where_nobody_called_the_bot() -> None:
    room = Room()
    await room.say(ANNA, "find me a train")
    await room.say(BEN, LISBON)
    assert [question.decision.is_unprompted for question in room.bursts.heard_out(CHANNEL)] == [True, False]
    await room.over()


async def test_what_is_deleted_meanwhile_is_left_out() -> None:
    room = Room()
    await room.say(ANNA, LISBON)
    gone = await room.say(ANNA, "oops")
    room.conversations.forget_messages(CHANNEL, [gone.message_id])
    assert await room.over() == [(1.25, ["oops"], Reason.DELETED), (1.25, [LISBON], Reason.EXPLICIT_TRIGGER)]


async def test_what_is_left_of_it_is_decided_anew() -> None:
    room = Room(FixedTier(score=0.1))
    mention = await room.say(ANNA, "<@1>")
    await room.say(ANNA, "brb dinner")
    room.conversations.forget_messages(CHANNEL, [mention.message_id])
    assert (await room.over())[-1] == (1.25, ["brb dinner"], Reason.FOLLOWUP)


async def test_what_is_edited_meanwhile_is_decided_as_it_stands() -> None:
    room = Room()
    message = await room.say(ANNA, LISBON)
    room.conversations.revise(CHANNEL, replace(message, content=f"<@{BEN}> find me a train"))
    assert await room.over() == [(1.25, [f"<@{BEN}> find me a train"], Reason.NAMES_OTHERS)]


async def test_what_is_edited_behind_others_words_is_decided_as_what_was_said_last() -> None:
    tier = Told()
    room = Room(tier)
    message = await room.say(ANNA, "the early trian is a train")
    await room.say(BEN, "oh well")
    room.conversations.revise(CHANNEL, replace(message, content="the early train"))
    assert (await room.over())[-1] == (1.25, ["the early train"], Reason.FOLLOWUP)
    assert tier.shown[-1] == ("the early train", ["oh well", "the early train"])


async def test_where_nobody_is_waited_for_any_more_all_go_their_way() -> None:
    room = Room()
    await room.say(ANNA, LISBON)
    await room.say(BEN, LISBON)
    await room.bursts.end()
    assert [(at, reason) for at, _, reason in room.went] == [(0, Reason.EXPLICIT_TRIGGER)] * 2


async def test_a_conversation_does_not_expire_while_somebody_is_heard_out() -> None:
    room = Room()
    await room.say(ANNA, LISBON)
    clock = room.conversations._clock
    assert isinstance(clock, FakeClock)
    clock.advance(3_600)
    assert room.conversations.get(CHANNEL)
    await room.over()


class OnceAsked:
    """Thinks for so many seconds each time. It finds the first message meant for the bot; after that it is busy."""

    def __init__(self, *seconds: float) -> None:
        self._seconds = iter(seconds)
        self._verdicts = iter([Verdict(True)])

    async def __call__(
        self,
        message: MessageRecord,
        conversation: ChannelConversation,
        place: Place | None = None,  # noqa: ARG002
    ) -> Verdict:
        assert message in conversation.messages
        verdict = next(self._verdicts, None)
        await asyncio.sleep(next(self._seconds))
        if verdict is None:
            raise JudgeError("it is busy")
        return verdict


async def test_what_is_called_off_as_soon_as_it_is_over_gets_no_answer() -> None:
    room = Room()
    await room.say(ANNA, LISBON)
    for burst in [*room.bursts._open.values()]:
        room.bursts._end(burst)
    room.bursts.stop(room.bursts.heard_out(CHANNEL))
    assert await room.over() == [(0, [LISBON], Reason.STOP)]


async def test_what_is_called_off_while_a_judge_reads_its_edit_gets_no_answer() -> None:
    async def judge(
        message: MessageRecord,
        conversation: ChannelConversation,
        place: Place | None = None,  # noqa: ARG001
    ) -> Verdict:
        assert message in conversation.messages
        await asyncio.sleep(1)
        return Verdict(True)

    room = Room(FixedTier(score=0.5), judge)
    message = await room.say(ANNA, "find me a train")
    await asyncio.sleep(1)
    room.conversations.revise(CHANNEL, replace(message, content="find me a bus"))
    await asyncio.sleep(1.5)
    await room.say(ANNA, "<@1> to Lisbon")
    assert [question.message.content for question in room.bursts.heard_out(CHANNEL)] == [
        "<@1> to Lisbon",
        "find me a train",
    ]
    room.bursts.stop(room.bursts.heard_out(CHANNEL)[1:])
    assert await room.over() == [
        (3.25, ["find me a bus"], Reason.STOP),
        (3.75, ["<@1> to Lisbon"], Reason.EXPLICIT_TRIGGER),
    ]
    assert not room.bursts.heard_out(CHANNEL)


async def test_what_is_called_off_while_a_judge_is_asked_about_it_gets_no_answer() -> None:
    room = Room(FixedTier(score=0.5), OnceAsked(1))
    await room.say(ANNA, "find me a train")
    for author, text in ((BEN, "stop"), (ANNA, "stop it ben")):
        room.bursts.call_off(room.question(said(author, text)), room.conversation)
    assert room.bursts._judged
    room.bursts.call_off(room.question(said(ANNA, "stop")), room.conversation)
    assert await room.over() == [(1, ["find me a train"], Reason.STOP)]


async def test_a_judge_that_cannot_be_asked_again_changes_nothing() -> None:
    room = Room(FixedTier(score=0.5), OnceAsked(0, 0.1))
    await room.say(ANNA, "find me a train")
    await room.say(ANNA, "to Lisbon")
    assert await room.over() == [(1.25, ["find me a train", "to Lisbon"], Reason.LLM_JUDGE)]


async def test_nobody_waits_for_a_judge_who_is_asked_about_what_came_later() -> None:
    room = Room(FixedTier(score=0.5), OnceAsked(0, 2))
    await room.say(ANNA, "find me a train")
    await room.say(ANNA, "to Lisbon")
    assert await room.over() == [
        (1.25, ["find me a train"], Reason.LLM_JUDGE),
        (2, ["to Lisbon"], Reason.JUDGE_FAILED),
    ]


async def test_what_the_judge_thought_about_for_longer_joins_what_came_later() -> None:
    room = Room(FixedTier(score=0.5), OnceAsked(0.5))
    await room.say(ANNA, "find me a train")
    await room.say(ANNA, "<@1> to Lisbon")
    assert await room.over() == [(1.25, ["find me a train", "<@1> to Lisbon"], Reason.EXPLICIT_TRIGGER)]
