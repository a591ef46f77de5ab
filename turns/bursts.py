"""Bursts: several short messages of one person in a channel are decided as one, and answered together.

Only a message that would be answered waits: until its author pauses, and at most BURST_SECONDS after the burst's first
message. Messages of the same author until then join the burst.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from agents.bounded_client import not_repeating
from conversation import ChannelConversation, ConversationManager, MessageRecord
from decider import (
    CALLING,
    NOT_OURS,
    Decision,
    Reason,
    ResponseDecider,
    addresses_others,
    is_called,
    is_explicit_trigger,
    names_others,
)
from state.message import MAX_JOINED, as_one
from turns.records import STOPPED
from turns.turn import Discord, Question
from understanding.stopping import read_stop
from understanding.wording import MENTION

PAUSE_SHARE = 0.5  # of BURST_SECONDS: a silence this long is a pause
MAX_DECIDED_CHARACTERS = 4_000  # newest characters of a burst that the decider reads; all its mentions count
QUESTION_MARKS = ("?", "？", "؟")
DELETED = Decision(False, Reason.DELETED)
WITH_A_CALL = "you wrote it in one breath with a message that called me"
UNJUDGED = (Reason.JUDGE_FAILED, Reason.JUDGE_LATE)


@dataclass(slots=True)
class _Burst:
    """A burst that waits for its author's pause. decision: on all its messages. since: when it began, in loop time."""

    questions: list[Question]
    decision: Decision
    since: float
    over: asyncio.Future[None]
    timer: asyncio.TimerHandle | None = None

    def add(self, question: Question) -> None:
        """Adds a message, in order of posting: a judge can take longer over one than over the next."""
        self.questions = sorted([*self.questions, question], key=lambda q: q.message.message_id)


class Bursts:
    """The open bursts, one per person and channel at most. seconds: longest duration of one; 0: nothing waits.

    is_forgotten: (channel id, message) -> whether the message was forgotten, also if the conversation has trimmed it.
    """

    def __init__(
        self,
        seconds: float,
        *,
        conversations: ConversationManager,
        decider: ResponseDecider,
        discord: Discord,
        is_forgotten: Callable[[int, MessageRecord], bool],
    ) -> None:
        self._is_forgotten = is_forgotten
        self._seconds = seconds
        self._conversations = conversations
        self._decider = decider
        self._discord = discord
        self._open: dict[tuple[int, int], _Burst] = {}
        self._over: list[_Burst] = []  # ended, and not handled yet
        self._judged: dict[int, Question] = {}  # by message id: those being decided

    def __len__(self) -> int:
        return len(self._open)

    @property
    def is_idle(self) -> bool:
        """Whether no message is being decided or waits for its author's pause, in any channel."""
        return not (self._judged or self._open or self._over)

    def begins(self, question: Question) -> Decision:
        """The decision on a message outside any conversation."""
        return self._decider.should_start_conversation(question.as_kept.message, self._discord.bot()[1], question.place)

    async def decide(self, question: Question, conversation: ChannelConversation) -> Decision | None:
        """The decision on a recorded message; None where it joined its author's burst, and is decided with it."""
        burst = self._open.get(_key(question))
        if burst and self._ends(burst, question.as_kept.message, conversation):
            burst = None
        if burst:
            self._arm(burst, PAUSE_SHARE * self._seconds)
        self._judged[question.message.message_id] = question
        try:
            earlier = self._left(burst.questions, conversation) if burst else []
            decision = await self._decided([*earlier, question], conversation)
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
        """Ends a burst if its author's next message is addressed to somebody else. Returns whether it is."""
        me = self._discord.bot()[1]
        is_for_others = addresses_others(message, me) or names_others(message, conversation, me)
        if is_explicit_trigger(message, me) or not is_for_others:
            return False
        if burst.decision.reason not in CALLING:
            burst.decision = NOT_OURS  # the burst was probably meant for that person, too
        self._end(burst)
        return True

    async def _decided(self, questions: Sequence[Question], conversation: ChannelConversation) -> Decision:
        """The decision on messages of one person, as if they were a single one, the newest."""
        messages, me = [question.as_kept.message for question in questions], self._discord.bot()[1]
        utterance = as_one(messages, me)
        if len(messages) > 1:
            utterance = replace(utterance, content=_newest_words(messages))
        live, told = conversation, conversation.messages[-MAX_JOINED:]

        def stands(message: MessageRecord) -> bool:
            if message.is_bot:
                return not live.is_deleted(message.message_id)
            now, here = live.latest(message.message_id), live.channel_id
            if now is None:
                return False
            # Not by identity: a link that Discord has unfurled since is no reason for silence.
            return (now.words_in(here), now.reply_to_text) == (message.words_in(here), message.reply_to_text)

        def is_outdated() -> bool:
            """Whether a judge that has to be asked once more would be told what was taken back since."""
            return not all(map(stands, told))

        if conversation.messages[-1:] != messages:  # several, or others have spoken since
            ids = {m.message_id for m in messages}
            others = [m for m in conversation.messages[-MAX_JOINED:] if m.message_id not in ids]
            conversation = replace(conversation, messages=[*others, utterance], names={}, called={})
        with not_repeating(is_outdated):
            return await self._decider.should_respond(
                utterance,
                conversation,
                me,
                questions[-1].place,
                reads_history=all(question.reads_history for question in questions),
            )

    def _left(self, questions: Sequence[Question], conversation: ChannelConversation) -> list[Question]:
        """Those whose message was neither deleted nor forgotten meanwhile, with their messages as last edited."""
        left = (q for q in questions if not self._is_gone(q, conversation))
        return [replace(q, message=q.current(conversation)) for q in left]

    def _is_gone(self, question: Question, conversation: ChannelConversation) -> bool:
        is_deleted = conversation.is_deleted(question.message.message_id)
        return is_deleted or self._is_forgotten(question.channel_id, question.message)

    def may_go_on(self, question: Question, decision: Decision) -> bool:
        """Whether its answer is to wait for further messages of its author."""
        if not decision.respond or not self._seconds or question.is_private:
            return False
        if decision.reason in (Reason.AWAITED, Reason.OFFER_ACCEPTED):
            return False
        words = MENTION.sub("", question.message.content).rstrip(" \n!").casefold()
        words = words.removesuffix(question.message.calls_bot.casefold()).rstrip(" \n!,@")
        return not (decision.reason in CALLING and words.endswith(QUESTION_MARKS))

    async def hear_out(self, question: Question, decision: Decision) -> list[tuple[Question, Decision]]:
        """Waits until the author pauses. Returns their messages from this one on, each with its decision.

        Returns nothing where a burst of theirs was opened while this message was decided: it joins that one.
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
        """The burst's messages with their decision, made again if one was edited or deleted while it waited."""
        conversation = self._conversations.get(burst.questions[0].channel_id)
        if conversation is None:
            return [(question, burst.decision) for question in burst.questions]
        gone = [q for q in burst.questions if self._is_gone(q, conversation)]
        left = self._left(burst.questions, conversation)
        decision = burst.decision
        if left and decision.respond and _words(left) != _words(burst.questions):
            decision = await self._decided(left, conversation)
            if burst.decision is STOPPED:  # stopped while a judge was asked
                decision = STOPPED
        me, joined = self._discord.bot()[1], decision  # the decision on those that did not call the bot themselves
        if decision.reason is Reason.EXPLICIT_TRIGGER:
            joined = replace(decision, evidence=WITH_A_CALL)
        return [(q, DELETED) for q in gone] + [(q, decision if is_called(q.message, me) else joined) for q in left]

    def heard_out(self, channel_id: int) -> list[Question]:
        """The questions in a channel that wait for their author's pause."""
        return [
            replace(question, decision=burst.decision)
            for burst in (*self._open.values(), *self._over)
            for question in burst.questions
            if question.channel_id == channel_id
        ]

    def undecided(self, channel_id: int) -> set[int]:
        """The ids of messages there that are being decided, or wait for their author's pause."""
        if self.is_idle:
            return set()
        return {question.message.message_id for question in self._unsettled() if question.channel_id == channel_id}

    def busy_guilds(self) -> set[int]:
        """The guilds with a message that is being decided or waits for its author's pause; 0: direct messages."""
        return {question.guild_id for question in self._unsettled()}

    def _unsettled(self) -> list[Question]:
        heard_out = (question for burst in (*self._open.values(), *self._over) for question in burst.questions)
        return [*self._judged.values(), *heard_out]

    def call_off(self, question: Question, conversation: ChannelConversation) -> None:
        """Cancels the author's messages that a judge is being asked about, if this message says stop."""
        message, (name, me) = question.message, self._discord.bot()
        judged = [m for m, q in self._judged.items() if _key(q) == _key(question)]
        if not judged or addresses_others(message, me) or names_others(message, conversation, me):
            return
        if read_stop(message.content, message.calls_bot or name):
            for message_id in judged:
                del self._judged[message_id]

    def stop(self, questions: Iterable[Question]) -> None:
        """Ends, without an answer, the bursts that begin with one of these questions."""
        called_off = {question.message.message_id for question in questions}
        for burst in (*self._open.values(), *self._over):
            if burst.questions[0].message.message_id in called_off:
                burst.decision = STOPPED
                self._end(burst)

    def typing(self, channel_id: int, author_id: int) -> None:
        """Extends the open burst of somebody who is typing to its longest duration."""
        if burst := self._open.get((channel_id, author_id)):
            self._arm(burst, self._seconds)

    def _arm(self, burst: _Burst, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if burst.timer:
            burst.timer.cancel()
        burst.timer = loop.call_at(min(loop.time() + seconds, burst.since + self._seconds), self._end, burst)

    def _end(self, burst: _Burst) -> None:
        """Closes a burst: nothing joins it any more."""
        if burst.timer:
            burst.timer.cancel()
        if not burst.over.done():
            del self._open[_key(burst.questions[0])]
            self._over.append(burst)
            burst.over.set_result(None)

    async def end(self) -> None:
        """Ends all bursts. When it returns, they have been handled, unless a judge is being asked."""
        for burst in [*self._open.values()]:
            self._end(burst)
        await asyncio.sleep(0)

    def drop(self) -> None:
        """Drops the open bursts, whose messages are left to the next process."""
        for burst in self._open.values():
            if burst.timer:
                burst.timer.cancel()
            burst.over.cancel()
        self._open.clear()


def _key(question: Question) -> tuple[int, int]:
    return question.channel_id, question.message.author_id


def _newest_words(messages: Sequence[MessageRecord]) -> str:
    """The newest messages' text up to MAX_DECIDED_CHARACTERS, and at least the newest message's: each message that
    joins is decided with all those before it."""
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
