"""Each channel with something to answer has a queue, which makes one turn at a time: it takes all questions that wait,
has the agent answer them together, and sees to it that they end in exactly one visible outcome.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

import structlog

from agents.gateway import Answer, Declined, Failure, FailureKind, Outcome
from conversation import ConversationManager, MessageRecord
from decider import addresses_others, is_called, names_others
from discord_io.channel_wire import PostError, Problem
from discord_io.prompt_cards import PromptCards, card_of
from discord_io.split import closed
from discord_io.streamed_reply import EDIT_INTERVAL_SECONDS, StreamedReply
from state.agent_state import GENERAL, AgentState
from state.awaiting import Prompt
from state.budget import Budget
from turns.answering import Answering
from turns.ending_texts import NOT_ALLOWED, STOPPED, posted_text, silence_of, undelivered
from turns.pending_turns import PendingTurns
from turns.records import Records
from turns.turn import Cancel, Discord, Question, Ready, Stopped, Turn
from understanding.stopping import Stop, read_stop

log = structlog.get_logger()

FAREWELL_SECONDS = 4.0


@dataclass(slots=True)
class _ChannelQueue:
    """resumed: a turn that an earlier process began, to be made first."""

    waiting: list[Question] = field(default_factory=list)
    resumed: Turn | None = None
    turn: Turn | None = None
    task: asyncio.Task[None] | None = None


class TurnQueue:
    """The turns of all channels; channels never wait for each other.

    discord: ways into channels. budget: what turns draw on. pending: the questions that are unfinished.
    records: told how turns end.
    """

    def __init__(
        self,
        *,
        conversations: ConversationManager,
        answering: Answering,
        prompts: PromptCards,
        discord: Discord,
        budget: Budget,
        pending: PendingTurns,
        records: Records,
        edit_interval_seconds: float = EDIT_INTERVAL_SECONDS,
    ) -> None:
        self.pending = pending
        self._records = records
        self._conversations = conversations
        self._answering = answering
        self._prompts = prompts
        self._discord = discord
        self._budget = budget
        self._edit_interval = edit_interval_seconds
        self._queues: dict[int, _ChannelQueue] = {}
        self._notices: set[asyncio.Task[None]] = set()
        self._cut_off = False

    def __len__(self) -> int:
        return len(self._queues)

    def submit(self, question: Question) -> None:
        """Queues a question; its turn comes as soon as the channel's running one ends."""
        self.pending.asked(question)
        self._queue(question.channel_id).waiting.append(question)

    def resume(self, channel_id: int, turn: Turn | None, waiting: Sequence[Question]) -> None:
        """Goes on with an earlier process' turn, and the questions behind it; all are among the pending ones."""
        queue = self._queue(channel_id)
        queue.resumed = turn
        queue.waiting[:0] = waiting

    def _queue(self, channel_id: int) -> _ChannelQueue:
        if channel_id not in self._queues:
            queue = self._queues[channel_id] = _ChannelQueue()
            queue.task = asyncio.create_task(self._run(channel_id, queue))
        return self._queues[channel_id]

    def is_busy(self, channel_id: int) -> bool:
        return channel_id in self._queues

    def overheard(self, channel_id: int, message_id: int, content: str, reply_to: int | None = None) -> None:
        """A message of our own user was posted or edited: by us, or by another process with our token."""
        queue = self._queues.get(channel_id)
        if queue and queue.turn and queue.turn.post:
            queue.turn.post.overheard(message_id, content, reply_to)

    def announce(self, question: Question, text: str) -> None:
        """Answers with one line of ours, without a turn."""
        self._spawn(self._announce(question, text))

    def react(self, question: Question, emoji: str) -> None:
        """Reacts to a message, where the bot may not write."""
        wire = self._discord.open(question.guild_id, question.channel_id)
        self._spawn(wire.react(question.message.message_id, emoji))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    def stop(
        self, message: MessageRecord, channel_id: int, *, manages: bool = False, heard_out: Sequence[Question] = ()
    ) -> Stopped | None:
        """Ends the answers that this message calls off, at once: those its author waits for.

        Told to keep out, also all of the channel's where the author manages messages, and the unprompted ones for
        anybody while the bot speaks unprompted. None where it ends nothing. heard_out: questions that wait to be
        submitted, which must not be where they are among those ended.
        """
        if not (heard_out or self.is_busy(channel_id)):
            return None
        (name, me), conversation = self._discord.bot(), self._conversations.get(channel_id)
        stop = read_stop(message.content, message.calls_bot or name)
        is_for_others = addresses_others(message, me) or (conversation and names_others(message, conversation, me))
        if stop is None or is_for_others:
            return None
        queue = self._queues.get(channel_id) or _ChannelQueue()
        is_unprompted = queue.turn is not None and queue.turn.is_unprompted

        def is_unwanted(question: Question) -> bool:
            is_own = question.message.author_id == message.author_id
            may_end = manages or (is_unprompted and question.is_unprompted)
            return is_own or (stop is Stop.KEEP_OUT and may_end)

        running = list(filter(is_unwanted, queue.turn.questions)) if queue.turn else []
        ended = running if queue.turn and queue.turn.stop(running) else []
        queued = list(filter(is_unwanted, queue.waiting))
        waiting = [*queued, *filter(is_unwanted, heard_out)]
        self.pending.dropped(channel_id, ended)
        self._drop_waiting(channel_id, queue, waiting)
        told = {question.message.author_id for question in ended}
        newest = {q.message.author_id: q for q in waiting if not q.is_unprompted and q.message.author_id not in told}
        for question in newest.values():
            self.announce(question, STOPPED)
        if not (ended or waiting):
            return None
        silently = [q for q in queued if q is not newest.get(q.message.author_id)]
        if queue.turn and queue.turn.ends_silently:
            silently += ended
        return Stopped(stop, [*ended, *waiting], is_unprompted=is_unprompted and bool(ended), silently=silently)

    def reworded(self, channel_id: int, message: MessageRecord) -> None:
        """A message was edited. If it is being answered, and nothing of that stands yet, the turn is asked anew.

        Where it calls the bot by now, that may not be declined.
        """
        if (queue := self._queues.get(channel_id)) is None:
            return
        if queue.turn:
            queue.turn.ask_anew(message)
        is_now_called = is_called(message, self._discord.bot()[1])
        for questions in (queue.waiting, queue.turn.questions if queue.turn else []):
            for place, question in enumerate(questions):
                if question.message.message_id == message.message_id:
                    questions[place] = question.reworded(message, is_called=is_now_called)
                    self.pending.revised(questions[place])

    def withdraw(self, channel_id: int, gone: Callable[[MessageRecord], bool]) -> None:
        """Questions that are gone need no answer; a turn that has none left is cancelled."""
        if (queue := self._queues.get(channel_id)) is None:
            self.pending.withdrawn(channel_id, gone)
            return
        self._drop_waiting(channel_id, queue, [q for q in queue.waiting if gone(q.message)])
        if (turn := queue.turn) is None:
            return
        withdrawn = [q for q in turn.questions if gone(q.message)]
        turn.is_tainted |= bool(withdrawn)
        # In place: the answer replies to the newest question that is still there.
        turn.questions[:] = [q for q in turn.questions if q not in withdrawn]
        if turn.questions:
            self.pending.dropped(channel_id, withdrawn)
        else:
            self.pending.taken_back(channel_id)
            turn.end(Cancel.WITHDRAWN)

    def _drop_waiting(self, channel_id: int, queue: _ChannelQueue, dropped: Sequence[Question]) -> None:
        queue.waiting = [q for q in queue.waiting if q not in dropped]
        self.pending.dropped(channel_id, dropped)

    async def drain(self, seconds: float) -> None:
        """Lets running turns finish for so long, then tells those cut off."""
        await self._wait(seconds)
        self._cut_off = True
        for queue in self._queues.values():
            if queue.turn:
                queue.turn.end(Cancel.SHUTDOWN)
        await self._wait(FAREWELL_SECONDS)

    async def _wait(self, seconds: float) -> None:
        tasks = [*(queue.task for queue in self._queues.values() if queue.task), *self._notices]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def _announce(self, question: Question, text: str) -> None:
        post = self._open(question, [question])
        try:
            await post.finish(text)
            for record in post.standing if self._conversations.get(question.channel_id) else ():
                self._records.said(question, record)
        except PostError as error:
            log.warning("notice_failed", channel=question.channel_id, problem=error.problem, detail=str(error))

    # Making a turn

    async def _run(self, channel_id: int, queue: _ChannelQueue) -> None:
        try:
            with self._conversations.hold(channel_id):
                while queue.resumed or queue.waiting:
                    turn = queue.turn = queue.resumed or self._begin(channel_id, queue)
                    queue.resumed = None
                    try:
                        await self._make(turn)
                    except Exception:
                        # The outermost edge of a turn: a bug in one must not take the channel's other questions along.
                        log.exception("turn_broken", messages=[q.message.message_id for q in turn.questions])
                    queue.turn = None
        finally:
            del self._queues[channel_id]

    def _begin(self, channel_id: int, queue: _ChannelQueue) -> Turn:
        """The turn of the first questions that wait: one that stands alone, or all up to the next that does."""
        first = queue.waiting[0]
        if self._answering.picks:  # among several agents what was said in one go has a turn of its own
            together = [*takewhile(first.is_one_with, queue.waiting)]
        else:
            together = [first, *takewhile(lambda q: not (first.stands_alone or q.stands_alone), queue.waiting[1:])]
        queue.waiting = queue.waiting[len(together) :]
        self.pending.begun(channel_id, together)
        return Turn(together)

    async def _make(self, turn: Turn) -> None:
        newest, started = turn.newest, asyncio.get_running_loop().time()
        turn.conversation = self._conversations.get(newest.channel_id)
        turn.allowance = self._budget.allowance(turn.payer)
        post = turn.post = self._open(newest, turn.questions, turn)
        tokens, silence, ended = 0, None, await self._go_on(turn, turn.ready, post) if turn.ready else ""
        while not ended:
            outcome = await self._outcome(turn, post)
            tokens += self._account(turn, outcome)
            if outcome is Cancel.STOPPED:
                # Whoever says stop wants to read no more.
                turn.text = turn.text if turn.stage else post.shown
            if isinstance(outcome, Failure):
                log.error("agent_failed", channel=newest.channel_id, kind=outcome.kind, detail=outcome.detail)
            silence = silence_of(turn, outcome)
            ended = await self._conclude(turn, outcome, post, is_silent=silence is not None)
        self._records.ended(turn, silence)
        self._records.answered(turn, () if turn.is_tainted else post.standing)
        if ended != f"undelivered_{Problem.UNREACHABLE}":  # which Discord may be told after a restart
            self.pending.done(newest.channel_id)
        where = {"guild": newest.guild_id, "channel": newest.channel_id, "message": newest.message.message_id}
        elapsed = asyncio.get_running_loop().time() - started
        log.info("turn_ended", **where, outcome=ended, tokens=tokens, elapsed_ms=round(1000 * elapsed))

    def _open(self, question: Question, questions: Sequence[Question], turn: Turn | None = None) -> StreamedReply:
        def record(message: MessageRecord) -> None:
            if turn:
                self.pending.posted(question.channel_id, message.message_id)
            by_model = not (question.by_miniapp or (turn and turn.is_remote))
            if turn and turn.is_remote and (conversation := self._conversations.get(question.channel_id)):
                conversation.asked(turn.agent, [message.message_id])
            self._conversations.record_message(question.channel_id, message, by_model=by_model)

        return StreamedReply(
            self._discord.open(question.guild_id, question.channel_id),
            question.message,
            reply_to=lambda: questions[-1].reply_to if questions else question.reply_to,
            bot=self._discord.bot(),
            addressees=frozenset(who for q in questions for who in q.addressees),
            record=record,
            retract=lambda message_id: self._conversations.retract(question.channel_id, message_id),
            adopted=turn.adopted if turn else None,
            types=turn is None,
            edit_interval_seconds=self._edit_interval,
        )

    async def _outcome(self, turn: Turn, post: StreamedReply) -> Outcome | Cancel:
        # What is edited, or stopped, from here on is seen below: an answer that was taken back is over.
        turn.request, turn.work, turn.is_reworded, turn.agent = None, None, False, GENERAL
        await self._records.stored()
        if turn.cancel:  # before it had begun
            return turn.cancel
        if self._cut_off or turn.conversation is None:
            return Cancel.SHUTDOWN if self._cut_off else Cancel.WITHDRAWN
        while turn.by_miniapp or self._budget.has_budget():
            outcome = await self._attempt(turn, post)
            # Who called the bot by an edit while it was asked, behind a tool or too often to be asked anew.
            is_called_since = isinstance(outcome, Declined) and not turn.may_decline
            if outcome and not (is_called_since and turn.request and turn.request.may_decline):
                return outcome
            self._account(turn, outcome)
            turn.request, turn.is_reworded = None, False
        return Cancel.OVER_BUDGET

    async def _attempt(self, turn: Turn, post: StreamedReply) -> Outcome | Cancel | None:
        """The turn's outcome; None where a question was edited before anything of it stood."""
        turn.work = asyncio.create_task(self._answering.answer(turn))
        await asyncio.wait({turn.work, post.broken}, return_when=asyncio.FIRST_COMPLETED)
        if not turn.work.done() and not turn.cancel:
            turn.end(Cancel.UNDELIVERABLE)
        try:
            return await turn.work
        except asyncio.CancelledError:
            if turn.cancel is None and not turn.is_reworded:  # it is not the turn that is cancelled, but we
                raise
            return turn.cancel
        except Exception:
            log.exception("turn_failed", channel=turn.newest.channel_id, message=turn.newest.message.message_id)
            return Failure(FailureKind.INTERNAL, "An error of ours ended the turn.", turn.text)

    def _account(self, turn: Turn, outcome: Outcome | Cancel | None) -> int:
        told = outcome if isinstance(outcome, Outcome) else self._answering.interrupted(turn)
        return turn.settle(outcome, told)

    async def _conclude(self, turn: Turn, outcome: Outcome | Cancel, post: StreamedReply, *, is_silent: bool) -> str:
        """Makes the outcome visible, unless it is silence, and remembers it. Returns it in a word; "": to ask anew."""
        newest, conversation = turn.newest, turn.conversation
        told = self._answering.interrupted(turn) if isinstance(outcome, Cancel) else outcome
        state = told.state if told and turn.is_remote else None  # what a remote agent needs back, however it ended
        ready, prompt, history = Ready(""), None, None
        if not is_silent:
            prompt, text = self._prompt(turn, outcome), posted_text(turn, outcome)
            if prompt and prompt.question:
                text = f"{closed(text)}\n\n{prompt.question}"
            if isinstance(outcome, Answer):
                self._answering.note(newest, outcome)
                if conversation and turn.request and not (turn.is_private or turn.is_remote):
                    history = conversation.current(outcome.history)
            ready = Ready(text, getattr(prompt, "id", None), history, turn.agent, state, getattr(outcome, "files", ()))
            self.pending.ready(newest.channel_id, None if turn.may_quote_forgotten else ready)
            await self._records.stored()
        if problem := await self._finish(turn, post, ready, prompt):
            if problem is Problem.TAKEN_BACK:
                self.pending.ready(newest.channel_id, None)
                return ""
            return f"undelivered_{problem}"
        outcome = Cancel.WITHDRAWN if turn.cancel is Cancel.WITHDRAWN else outcome
        # A conversation that was ended meanwhile (/forget) must not come back.
        if conversation and self._conversations.get(newest.channel_id) is conversation:
            self._remember(turn, outcome, state)
        if isinstance(outcome, Cancel):
            return outcome
        if is_silent:
            self._conversations.record_declined(newest.channel_id, {q.message.author_id for q in turn.questions})
        return getattr(outcome, "kind", "declined" if is_silent else "answered")

    async def _go_on(self, turn: Turn, ready: Ready, post: StreamedReply) -> str:
        """Posts what is left of an answer that an earlier process knew already. Returns how that ended in a word."""
        channel_id, turn.agent = turn.newest.channel_id, ready.agent
        prompt = self._prompts.reopen(channel_id, ready.prompt_id) if ready.prompt_id else None
        if problem := await self._finish(turn, post, ready, prompt):
            return f"undelivered_{problem}"
        if turn.conversation and turn.is_remote:
            self._conversations.record_agent_state(channel_id, turn.agent, ready.state)
        elif turn.conversation and ready.history is not None and turn.cancel is None:
            self._conversations.record_bot_response(channel_id, ready.history)
        return turn.cancel or "finished"

    async def _finish(self, turn: Turn, post: StreamedReply, ready: Ready, prompt: Prompt | None) -> Problem | None:
        """Brings the channel to the whole answer. Returns why that could not be done, once it is reported."""
        card_id, failed = None, None
        try:
            card_id = await post.finish(ready.text, card_of(prompt) if prompt else turn.take_thread_card(), ready.files)
            if turn.cancel is Cancel.WITHDRAWN and ready.text:
                # The question was deleted while its answer was being posted.
                card_id = await post.finish("")
        except PostError as error:
            card_id, failed = None, error
        if prompt:
            self._prompts.shown(prompt, card_id, post.last_text)
        if failed and failed.problem is not Problem.TAKEN_BACK:
            await self._report(turn.newest, post, failed)
        return failed.problem if failed else None

    def _prompt(self, turn: Turn, outcome: Outcome | Cancel) -> Prompt | None:
        """What is awaited from this answer on: something it asks, or what was asked before and is put once more."""
        if not isinstance(outcome, Answer) or not turn.questions:
            return None
        if outcome.ask and not turn.may_quote_forgotten:
            newest = turn.questions[-1]  # others may have been withdrawn meanwhile
            miniapp_id, where = newest.meaning.miniapp_id if newest.by_miniapp else None, newest.channel_id
            opened = self._prompts.open(
                outcome.ask, newest.message, guild_id=newest.guild_id, channel_id=where, miniapp_id=miniapp_id
            )
            if opened:
                return opened
        # The prompt that these questions missed often enough; one for each answer.
        for author_id in dict.fromkeys(q.message.author_id for q in turn.questions if not q.meaning.prompt):
            if again := self._prompts.missed(turn.newest.channel_id, author_id):
                return again
        return None

    def _remember(self, turn: Turn, outcome: Outcome | Cancel, state: AgentState | None) -> None:
        channel_id = turn.newest.channel_id
        for question in turn.questions:
            if question.is_private and turn.conversation:  # so that the history does not keep its words either
                turn.conversation.revise(question.as_kept.message)
        if turn.is_remote:
            self._conversations.record_agent_state(channel_id, turn.agent, state)
            return
        match outcome:
            case Answer() if turn.request:  # a mini-app's answer is told the model as what was said
                history = outcome.history
                if turn.is_private:  # nor what the agent keeps for itself of the last answer
                    history = [*history[:-1], replace(history[-1], metadata=None)]
                self._conversations.record_bot_response(channel_id, history)
            case Failure(kind=FailureKind.TOO_LONG):
                self._conversations.forget_history(channel_id)
            case Cancel.STOPPED | Cancel.SHUTDOWN if turn.text.strip() and (
                interrupted := self._answering.interrupted(turn)
            ):
                self._conversations.record_bot_response(channel_id, interrupted.history)

    async def _report(self, newest: Question, post: StreamedReply, error: PostError) -> None:
        """Tells the person who waits that there is no more of the answer, where Discord lets us."""
        message_id = newest.message.message_id
        where = {"channel": newest.channel_id, "message": message_id, "detail": str(error)}
        if error.problem is Problem.ELSEWHERE:
            log.warning("answered_elsewhere", **where)
            return
        log.error("post_failed", problem=error.problem, **where)
        if error.problem in (Problem.REJECTED, Problem.UNREACHABLE, Problem.UNKNOWN):
            try:
                if await post.explain(undelivered(error.problem, stands=bool(post.standing))):
                    self.pending.done(newest.channel_id)
                    return
            except PostError as again:
                log.error("report_failed", channel=newest.channel_id, problem=again.problem, detail=str(again))
        if error.problem not in (Problem.GONE, Problem.LOCKED, Problem.BLOCKED):
            await self._discord.open(newest.guild_id, newest.channel_id).react(newest.reply_to, NOT_ALLOWED)
