"""Bursts: several short messages of one person in a channel are decided as one, and answered together.

Only a message that would be answered waits: until its author pauses, but no longer than BURST_SECONDS from the first
message of the burst on. What they post until then joins the burst.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from conversation import ChannelConversation, ConversationManager, MessageRecord
from decider import (
    CALLING,
    NOT_OURS,
    Decision,
    Reason,
    ResponseDecider,
    addresses_others,
    is_explicit_trigger,
    names_others,
)
from state.message import as_one
from turns.records import STOPPED
from turns.turn import Discord, Question
from understanding.stopping import read_stop
from understanding.wording import MENTION

PAUSE_SHARE = 0.5  # of BURST_SECONDS: whoever says nothing for so long has paused
MAX_DECIDED_CHARACTERS = 4_000  # of a burst; whom its earlier messages mention counts all the same
QUESTION_MARKS = ("?", "？", "؟")
DELETED = Decision(False, Reason.DELETED)
UNJUDGED = (Reason.JUDGE_FAILED, Reason.JUDGE_LATE)


@dataclass(slots=True)
class _Burst:
    """Messages that wait, the decision on all of them, and when the first of them came, by the loop's clock."""

    questions: list[Question]
    decision: Decision
    since: float
    over: asyncio.Future[None]
    timer: asyncio.TimerHandle | None = None

    def add(self, question: Question) -> None:
        """In the order in which they were posted: a judge can take longer over one than over the next."""
        self.questions = sorted([*self.questions, question], key=lambda q: q.message.message_id)


class Bursts:
    """The open bursts, one for each person in a channel at most. seconds: what one takes at most; 0: nothing waits."""

    def __init__(
        self,
        seconds: float,
        *,
        conversations: ConversationManager,
        decider: ResponseDecider,
        discord: Discord,
    ) -> None:
        self._seconds = seconds
        self._conversations = conversations
        self._decider = decider
        self._discord = discord
        self._open: dict[tuple[int, int], _Burst] = {}
        self._over: list[_Burst] = []  # which have not gone their way yet
        self._judged: dict[int, Question] = {}  # by message: what a judge is asked about

    def __len__(self) -> int:
        return len(self._open)

    def begins(self, question: Question) -> Decision:
        """The decision on a message outside any conversation."""
        return self._decider.should_start_conversation(question.as_kept.message, self._discord.bot()[1], question.place)

    async def decide(self, question: Question, conversation: ChannelConversation) -> Decision | None:
        """The decision on a recorded message; None where it joins its author's burst, and is decided with that."""
        burst = self._open.get(_key(question))
        if burst and self._ends(burst, question.as_kept.message, conversation):
            burst = None
        if burst:
            self._arm(burst, PAUSE_SHARE * self._seconds)
        self._judged[question.message.message_id] = question
        try:
            decision = await self._decided([*(burst.questions if burst else ()), question], conversation)
        finally:
            is_called_off = self._judged.pop(question.message.message_id, None) is None
        if decision.respond and is_called_off:
            return STOPPED
        if burst is None or burst.over.done():
            return decision
        burst.add(question)
        if decision.reason not in UNJUDGED:
            burst.decision = decision
        if not self.may_go_on(question, burst.decision):
            self._end(burst)
        return None

    def _ends(self, burst: _Burst, message: MessageRecord, conversation: ChannelConversation) -> bool:
        """Ends a burst before a message of its author's that is no part of it. Returns whether it is none."""
        me = self._discord.bot()[1]
        is_for_others = addresses_others(message, me) or names_others(message, conversation, me)
        if is_explicit_trigger(message, me) or not is_for_others:
            return False
        if burst.decision.reason not in CALLING:
            burst.decision = NOT_OURS  # whoever turns to somebody else was speaking to them
        self._end(burst)
        return True

    async def _decided(self, questions: Sequence[Question], conversation: ChannelConversation) -> Decision:
        """The decision on messages of one person, as if they were one that was said last."""
        messages, me = [question.as_kept.message for question in questions], self._discord.bot()[1]
        utterance = as_one(messages, me)
        if len(messages) > 1:
            utterance = replace(utterance, content=_newest_words(messages))
        if conversation.messages[-1:] != messages:  # several, or others have spoken since
            conversation = conversation.joined(messages, utterance)
        return await self._decider.should_respond(utterance, conversation, me, questions[-1].place)

    def may_go_on(self, question: Question, decision: Decision) -> bool:
        """Whether an answer to it is to wait for what else its author says."""
        if not decision.respond or not self._seconds or question.is_private:
            return False
        if decision.reason in (Reason.AWAITED, Reason.OFFER_ACCEPTED):
            return False
        words = MENTION.sub("", question.message.content).rstrip(" \n!").casefold()
        words = words.removesuffix(question.message.calls_bot.casefold()).rstrip(" \n!,@")
        return not (decision.reason in CALLING and words.endswith(QUESTION_MARKS))

    async def hear_out(self, question: Question, decision: Decision) -> list[tuple[Question, Decision]]:
        """Waits until the author pauses. Returns all that they said from this message on, each with its decision.

        That is nothing where a burst of theirs was opened while this message was decided: it joins that.
        """
        if burst := self._open.get(_key(question)):
            burst.add(question)
            return []
        loop = asyncio.get_running_loop()
        burst = self._open[_key(question)] = _Burst([question], decision, loop.time(), loop.create_future())
        with self._conversations.hold(question.channel_id):
            self._arm(burst, PAUSE_SHARE * self._seconds)
            await burst.over
            try:
                return await self._settled(burst)
            finally:
                self._over.remove(burst)

    async def _settled(self, burst: _Burst) -> list[tuple[Question, Decision]]:
        """What was edited or deleted while it waited is decided as it stands now."""
        conversation = self._conversations.get(burst.questions[0].channel_id)
        if conversation is None:
            return [(question, burst.decision) for question in burst.questions]
        gone = [q for q in burst.questions if conversation.is_deleted(q.message.message_id)]
        left = [replace(q, message=q.current(conversation)) for q in burst.questions if q not in gone]
        decision = burst.decision
        if left and decision.respond and _words(left) != _words(burst.questions):
            decision = await self._decided(left, conversation)
            if burst.decision is STOPPED:  # while a judge was asked
                decision = STOPPED
        return [(question, DELETED) for question in gone] + [(question, decision) for question in left]

    def heard_out(self, channel_id: int) -> list[Question]:
        """What waits in a channel for its author to pause."""
        bursts = [burst for burst in self._waiting() if burst.questions[0].channel_id == channel_id]
        return [replace(q, decision=burst.decision) for burst in bursts for q in burst.questions]

    def undecided(self, channel_id: int) -> set[int]:
        """The messages there that may still be to be answered: each is being decided, or heard out."""
        judged = {message_id for message_id, question in self._judged.items() if question.channel_id == channel_id}
        return judged | {question.message.message_id for question in self.heard_out(channel_id)}

    def busy_guilds(self) -> set[int]:
        """Those in which something is being decided, or heard out; 0: direct messages."""
        heard_out = (question for burst in self._waiting() for question in burst.questions)
        return {question.guild_id for question in (*self._judged.values(), *heard_out)}

    def call_off(self, question: Question, conversation: ChannelConversation) -> None:
        """Whoever says stop while a judge is asked about what they said gets no answer to that."""
        message, (name, me) = question.message, self._discord.bot()
        judged = [m for m, q in self._judged.items() if _key(q) == _key(question)]
        if not judged or addresses_others(message, me) or names_others(message, conversation, me):
            return
        if read_stop(message.content, message.calls_bot or name):
            for message_id in judged:
                del self._judged[message_id]

    def stop(self, questions: Iterable[Question]) -> None:
        """These were called off: what waits of them needs no answer."""
        called_off = {question.message.message_id for question in questions}
        for burst in [b for b in self._waiting() if b.questions[0].message.message_id in called_off]:
            burst.decision = STOPPED
            self._end(burst)

    def _waiting(self) -> list[_Burst]:
        return [*self._open.values(), *self._over]

    def typing(self, channel_id: int, author_id: int) -> None:
        """Somebody is typing: if they have an open burst, they are heard for as long as it may take."""
        if burst := self._open.get((channel_id, author_id)):
            self._arm(burst, self._seconds)

    def _arm(self, burst: _Burst, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if burst.timer:
            burst.timer.cancel()
        burst.timer = loop.call_at(min(loop.time() + seconds, burst.since + self._seconds), self._end, burst)

    def _end(self, burst: _Burst) -> None:
        """From now on nothing joins it."""
        if burst.timer:
            burst.timer.cancel()
        if not burst.over.done():
            del self._open[_key(burst.questions[0])]
            self._over.append(burst)
            burst.over.set_result(None)

    async def end(self) -> None:
        """Nobody is waited for any more; what waited has gone its way when this returns, unless a judge is asked."""
        for burst in [*self._open.values()]:
            self._end(burst)
        await asyncio.sleep(0)

    def drop(self) -> None:
        """What waits is left to the next process."""
        for burst in self._open.values():
            if burst.timer:
                burst.timer.cancel()
            burst.over.cancel()
        self._open.clear()


def _key(question: Question) -> tuple[int, int]:
    return question.channel_id, question.message.author_id


def _newest_words(messages: Sequence[MessageRecord]) -> str:
    """What was said last, and at least the newest message: each one that joins is decided with all before it."""
    kept = len(messages[-1].content)
    newest = [messages[-1].content]
    for message in reversed(messages[:-1]):
        kept += len(message.content)
        if kept > MAX_DECIDED_CHARACTERS:
            break
        newest.append(message.content)
    return "\n".join(reversed(newest))


def _words(questions: Sequence[Question]) -> list[tuple[str, frozenset[int]]]:
    return [(question.message.content, question.message.mentions) for question in questions]
