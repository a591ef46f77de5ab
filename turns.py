"""One answer in the making: a queue per channel, taken together, cancelled, drained.

Each channel with something to answer has a lane. A lane makes one turn at a time: it takes all questions that wait,
has the agent answer them together, and sees to it that they end in exactly one visible outcome.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import assert_never

import structlog

from agents.gateway import AgentGateway, AgentRequest, Answer, Failure, FailureKind, Place
from conversation import ChannelConversation, ConversationManager, MessageRecord
from decider import addresses_others
from delivery.post import EDIT_INTERVAL_SECONDS, Post, PostError, Problem, Wire
from delivery.split import closed

log = structlog.get_logger()

MENTIONS = re.compile(r"<@[!&]?\d+>,?")
STOP = re.compile(r"\s*(please\s+)?(stop|stop it|cancel|never ?mind)([\s,]+please)?[\s.!]*", re.IGNORECASE)
HISTORY_DEADLINE_SECONDS = 1.5
FAREWELL_SECONDS = 4.0
NOT_ALLOWED = "🔇"

SENTENCES = {
    FailureKind.BUSY: "My model is overloaded or out of quota. Please ask me again in a moment.",
    FailureKind.MISCONFIGURED: "My model is not set up correctly. Whoever runs me finds the reason in my log.",
    FailureKind.REJECTED: "My model did not accept that. Please put it differently.",
    FailureKind.TOO_LONG: "Our conversation had grown too long for my model. I start afresh: please ask me again.",
    FailureKind.UNAVAILABLE: "My model cannot be reached. Please ask me again in a moment.",
    FailureKind.LATE: "My model took too long. Please ask me again.",
    FailureKind.EMPTY: "My model had no answer to that. Please put it differently.",
    FailureKind.INTERNAL: "Something went wrong on my side. Please ask me again.",
}
CUT = "That is as much as I say in one go."
STOPPED = "Stopped."
OVER_BUDGET = "My budget for today is spent. Please ask me again tomorrow."
RESTARTING = "I am being restarted. Please ask me again in a minute."
UNPOSTABLE = "I had an answer, but Discord did not let me post it."


@dataclass(frozen=True, slots=True)
class Question:
    """A message that wants an answer, and where. starts_conversation: what was said before it is not known yet."""

    message: MessageRecord
    guild_id: int
    channel_id: int
    place: Place
    starts_conversation: bool = False


class Cancel(StrEnum):
    """Why a turn ended before its time."""

    STOPPED = "stopped"
    WITHDRAWN = "withdrawn"
    SHUTDOWN = "shutdown"
    UNDELIVERABLE = "undeliverable"
    OVER_BUDGET = "over_budget"


@dataclass(slots=True)
class _Turn:
    questions: list[Question]
    request: AgentRequest | None = None
    text: str = ""
    cancel: Cancel | None = None
    work: asyncio.Task[Answer | Failure | Cancel] | None = None

    def stop(self, author_id: int) -> bool:
        """Ends it if it is made for this person alone; others who asked with them still get their answer."""
        others = [q for q in self.questions if q.message.author_id != author_id]
        if len(others) == len(self.questions) or (self.work and self.work.done()):
            return False
        if others:
            self.questions[:] = others
        else:
            self.end(Cancel.STOPPED)
        return True

    def end(self, why: Cancel) -> None:
        self.cancel = self.cancel or why
        if self.work:
            self.work.cancel()


@dataclass(slots=True)
class _Lane:
    waiting: list[Question] = field(default_factory=list)
    turn: _Turn | None = None
    task: asyncio.Task[None] | None = None


class Turns:
    """The turns of all channels; channels never wait for each other.

    open_wire: (guild id, channel id) -> the way into a channel. bot: the bot's name and id. spend: told the tokens of
    each turn; has_budget: whether another may begin. load_history: what was said in a channel before a message, oldest
    first.
    """

    def __init__(
        self,
        *,
        conversations: ConversationManager,
        agent: AgentGateway,
        open_wire: Callable[[int, int], Wire],
        bot: Callable[[], tuple[str, int]],
        spend: Callable[[int], None],
        has_budget: Callable[[], bool],
        load_history: Callable[[Question], Awaitable[Sequence[MessageRecord]]],
        clock: Callable[[], datetime],
        edit_interval_seconds: float = EDIT_INTERVAL_SECONDS,
    ) -> None:
        self._conversations = conversations
        self._agent = agent
        self._open_wire = open_wire
        self._bot = bot
        self._spend = spend
        self._has_budget = has_budget
        self._load_history = load_history
        self._clock = clock
        self._edit_interval = edit_interval_seconds
        self._lanes: dict[int, _Lane] = {}
        self._notices: set[asyncio.Task[None]] = set()
        self._cut_off = False
        self.draining = False

    def __len__(self) -> int:
        return len(self._lanes)

    def submit(self, question: Question) -> None:
        """Queues a question; its turn comes as soon as the channel's running one ends."""
        lane = self._lanes.get(question.channel_id)
        if lane is None:
            lane = self._lanes[question.channel_id] = _Lane()
            lane.task = asyncio.create_task(self._run(question.channel_id, lane))
        lane.waiting.append(question)

    def announce(self, question: Question, text: str) -> None:
        """Answers with one line of ours, without a turn."""
        task = asyncio.create_task(self._announce(question, text))
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    def stop(self, message: MessageRecord, channel_id: int) -> bool:
        """If this message calls off an answer that its author waits for, cancels it. Returns whether it does."""
        lane, me = self._lanes.get(channel_id), self._bot()[1]
        if lane is None or addresses_others(message, me) or not STOP.fullmatch(MENTIONS.sub("", message.content)):
            return False
        theirs = [q for q in lane.waiting if q.message.author_id == message.author_id]
        lane.waiting = [q for q in lane.waiting if q not in theirs]
        ends_turn = lane.turn is not None and lane.turn.stop(message.author_id)
        if theirs and not ends_turn:
            self.announce(theirs[-1], STOPPED)
        return ends_turn or bool(theirs)

    def withdraw(self, channel_id: int, gone: Callable[[MessageRecord], bool]) -> None:
        """Questions that are gone need no answer; a turn that has none left is cancelled."""
        if (lane := self._lanes.get(channel_id)) is None:
            return
        lane.waiting = [q for q in lane.waiting if not gone(q.message)]
        if lane.turn:
            # In place: the answer replies to the newest question that is still there.
            lane.turn.questions[:] = [q for q in lane.turn.questions if not gone(q.message)]
            if not lane.turn.questions:
                lane.turn.end(Cancel.WITHDRAWN)

    async def drain(self, seconds: float) -> None:
        """Lets running turns finish for so long, then tells those cut off."""
        self.draining = True
        await self._wait(seconds)
        self._cut_off = True
        for lane in self._lanes.values():
            if lane.turn:
                lane.turn.end(Cancel.SHUTDOWN)
        await self._wait(FAREWELL_SECONDS)

    async def _wait(self, seconds: float) -> None:
        tasks = [*(lane.task for lane in self._lanes.values() if lane.task), *self._notices]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def _announce(self, question: Question, text: str) -> None:
        try:
            await self._open(question, [question]).finish(text)
        except PostError as error:
            log.warning("notice_failed", channel=question.channel_id, problem=error.problem, detail=str(error))

    async def _run(self, channel_id: int, lane: _Lane) -> None:
        try:
            with self._conversations.hold(channel_id):
                while lane.waiting:
                    lane.turn, lane.waiting = _Turn(lane.waiting), []
                    await self._make_safely(lane.turn)
                    lane.turn = None
        finally:
            del self._lanes[channel_id]

    async def _make_safely(self, turn: _Turn) -> None:
        try:
            await self._make(turn)
        except Exception:
            # The outermost edge of a turn: a bug in one must not take the channel's other questions with it.
            log.exception("turn_broken", messages=[q.message.message_id for q in turn.questions])

    async def _make(self, turn: _Turn) -> None:
        newest = turn.questions[-1]
        conversation = self._conversations.get(newest.channel_id)
        started = asyncio.get_running_loop().time()
        post = self._open(newest, turn.questions)
        outcome = await self._outcome(turn, conversation, post)
        tokens = self._account(turn, outcome)
        if outcome is Cancel.STOPPED:
            turn.text = post.shown  # whoever says stop wants to read no more
        ended = await self._conclude(turn, newest, conversation, post, outcome)
        log.info(
            "turn_ended",
            guild=newest.guild_id,
            channel=newest.channel_id,
            message=newest.message.message_id,
            outcome=ended,
            tokens=tokens,
            elapsed_ms=round(1000 * (asyncio.get_running_loop().time() - started)),
        )

    def _open(self, question: Question, questions: Sequence[Question]) -> Post:
        return Post(
            self._open_wire(question.guild_id, question.channel_id),
            question.message,
            reply_to=lambda: questions[-1].message.message_id if questions else question.message.message_id,
            bot=self._bot(),
            addressees=frozenset(q.message.author_id for q in questions),
            record=lambda record: self._conversations.record_message(question.channel_id, record),
            edit_interval_seconds=self._edit_interval,
        )

    async def _outcome(
        self, turn: _Turn, conversation: ChannelConversation | None, post: Post
    ) -> Answer | Failure | Cancel:
        if self._cut_off or conversation is None:
            return Cancel.SHUTDOWN if self._cut_off else Cancel.WITHDRAWN
        if not self._has_budget():
            return Cancel.OVER_BUDGET
        turn.work = asyncio.create_task(self._answer(turn, conversation, post))
        await asyncio.wait({turn.work, post.broken}, return_when=asyncio.FIRST_COMPLETED)
        if not turn.work.done() and not turn.cancel:
            turn.end(Cancel.UNDELIVERABLE)
        try:
            return await turn.work
        except asyncio.CancelledError:
            if turn.cancel is None:  # it is not the turn that is cancelled, but we
                raise
            return turn.cancel
        except Exception:
            log.exception("turn_failed", channel=conversation.channel_id, message=turn.questions[-1].message.message_id)
            return Failure(FailureKind.INTERNAL, "An error of ours ended the turn.", turn.text)

    async def _answer(self, turn: _Turn, conversation: ChannelConversation, post: Post) -> Answer | Failure | Cancel:
        await self._recall(turn, conversation)
        # One that was trimmed meanwhile is asked all the same.
        pending = [q.message for q in turn.questions if not conversation.is_deleted(q.message.message_id)]
        questions = [conversation.find(message.message_id) or message for message in pending]
        if not questions:
            return Cancel.WITHDRAWN
        # A question may have been told already, as something said while an earlier turn was being prepared.
        to_tell = {m.message_id for m in (*conversation.untold(), *questions)}
        trimmed = [q for q in questions if conversation.find(q.message_id) is None]
        turn.request = AgentRequest(
            history=conversation.llm_history,
            transcript=[*trimmed, *(m for m in conversation.messages if m.message_id in to_tell)],
            questions=questions,
            place=turn.questions[-1].place,
            now=self._clock(),
        )

        def show(text: str) -> None:
            turn.text = text
            post.show(text)

        return await self._agent.respond(turn.request, show)

    async def _recall(self, turn: _Turn, conversation: ChannelConversation) -> None:
        """At a conversation's start: what was said in the channel before, if it can be had soon."""
        first = next((q for q in turn.questions if q.starts_conversation), None)
        if first is None:
            return
        try:
            async with asyncio.timeout(HISTORY_DEADLINE_SECONDS):
                conversation.precede(await self._load_history(first))
        except TimeoutError:
            log.info("history_late", channel=conversation.channel_id)

    def _account(self, turn: _Turn, outcome: Answer | Failure | Cancel) -> int:
        if not isinstance(outcome, Cancel):
            tokens = outcome.tokens
        else:
            tokens = self._agent.interrupted(turn.request, turn.text).tokens if turn.request else 0
        self._spend(tokens)
        return tokens

    async def _conclude(
        self,
        turn: _Turn,
        newest: Question,
        conversation: ChannelConversation | None,
        post: Post,
        outcome: Answer | Failure | Cancel,
    ) -> str:
        """Makes the outcome visible and remembers it. Returns it in a word."""
        if isinstance(outcome, Failure):
            log.error("agent_failed", channel=newest.channel_id, kind=outcome.kind, detail=outcome.detail)
        try:
            await post.finish(_final_text(turn, outcome))
            if turn.cancel is Cancel.WITHDRAWN and outcome is not Cancel.WITHDRAWN:
                # The question was deleted while its answer was being posted.
                outcome = Cancel.WITHDRAWN
                await post.finish("")
        except PostError as error:
            await self._report(newest, error)
            return f"undelivered_{error.problem}"
        # A conversation that was ended meanwhile (/forget) must not come back.
        if conversation is not None and self._conversations.get(newest.channel_id) is conversation:
            self._remember(turn, conversation, outcome)
        return outcome if isinstance(outcome, Cancel) else getattr(outcome, "kind", "answered")

    def _remember(self, turn: _Turn, conversation: ChannelConversation, outcome: Answer | Failure | Cancel) -> None:
        match outcome:
            case Answer():
                self._conversations.record_bot_response(conversation.channel_id, outcome.history)
            case Failure(kind=FailureKind.TOO_LONG):
                conversation.llm_history = []
            case Cancel.STOPPED | Cancel.SHUTDOWN if turn.request and turn.text.strip():
                partial = self._agent.interrupted(turn.request, turn.text)
                self._conversations.record_bot_response(conversation.channel_id, partial.history)

    async def _report(self, newest: Question, error: PostError) -> None:
        """Tells the person who waits that there will be no answer, where Discord lets us."""
        message_id = newest.message.message_id
        log.error(
            "post_failed", channel=newest.channel_id, message=message_id, problem=error.problem, detail=str(error)
        )
        wire = self._open_wire(newest.guild_id, newest.channel_id)
        if error.problem in (Problem.REJECTED, Problem.UNREACHABLE):
            try:
                # With the nonce of the answer: should that have arrived after all, this is not posted beside it.
                await wire.send(UNPOSTABLE, nonce=f"{message_id}-0", reply_to=message_id)
                return
            except PostError as again:
                log.error("report_failed", channel=newest.channel_id, problem=again.problem, detail=str(again))
        if error.problem is not Problem.GONE:
            await wire.react(message_id, NOT_ALLOWED)


def _final_text(turn: _Turn, outcome: Answer | Failure | Cancel) -> str:
    """What stands in the channel in the end; empty: nothing."""
    match outcome:
        case Answer():
            return _with_note(outcome.text, CUT) if outcome.was_cut else outcome.text
        case Failure():
            return _with_note(outcome.text, SENTENCES[outcome.kind])
        case Cancel.STOPPED:
            return _with_note(turn.text, STOPPED)
        case Cancel.SHUTDOWN:
            return _with_note(turn.text, RESTARTING)
        case Cancel.OVER_BUDGET:
            return OVER_BUDGET
        case Cancel.WITHDRAWN:
            return ""
        case Cancel.UNDELIVERABLE:
            return turn.text
        case _:
            assert_never(outcome)


def _with_note(text: str, note: str) -> str:
    return f"{closed(text)}\n\n-# {note}" if text.strip() else note
