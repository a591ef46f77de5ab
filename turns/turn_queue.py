"""Queues of turns: a channel's queue runs one turn at a time, which answers all waiting questions together and ends in
exactly one visible outcome. Messages and clicks are queued by Intake.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

import structlog

from activity import Activity, FaultKind
from agents.gateway import FailureKind
from agents.run import most_of
from conversation import ConversationManager, MessageRecord
from decider import addresses_others, is_called, names_others
from discord_io.channel_wire import Posted, PostError
from discord_io.prompt_cards import PromptCards, ending_of
from discord_io.streamed_reply import EDIT_INTERVAL_SECONDS, StreamedReply
from state.awaiting import ConversationStateManager, Meaning
from state.message import REPLY_EXCERPT, as_one
from turns.endings import STOPPED, report_of
from turns.meanings import Meanings
from turns.pending_turns import PendingTurns
from turns.records import Records
from turns.turn import UNREAD, Cancel, Discord, Question, Stopped, Turn
from turns.turn_making import TurnMaker
from understanding.stopping import Stop, read_stop

log = structlog.get_logger()

FAREWELL_SECONDS = 4.0
MAX_TOGETHER = 20_000  # tokens of questions that are answered together; TURN_TOKENS is 100,000
OF_A_MESSAGE = 50  # tokens beside its words


@dataclass(slots=True)
class _ChannelQueue:
    """A channel's queue. resumed: a turn that an earlier process began, to be made first. stood: messages that it had
    posted for the waiting questions, by the id of the message that they reply to. asked_at: by the loop's clock, when
    each waiting question was queued, by the id of its message.
    """

    waiting: list[Question] = field(default_factory=list)
    asked_at: dict[int, float] = field(default_factory=dict)
    stood: Mapping[int, Sequence[Posted]] = field(default_factory=dict)
    resumed: Turn | None = None
    turn: Turn | None = None
    task: asyncio.Task[None] | None = None


class TurnQueue:
    """The turns of all channels; channels never wait for each other.

    maker: makes each turn. meanings: reads questions that changed while they waited. discord: opens channels. pending:
    the unfinished questions. records: records what is announced. activity: told of the bot's own errors, and of turns
    that they broke off. picks: whether there are several agents to pick from.
    """

    def __init__(
        self,
        *,
        conversations: ConversationManager,
        maker: TurnMaker,
        meanings: Meanings,
        discord: Discord,
        pending: PendingTurns,
        records: Records,
        activity: Activity,
        picks: bool = False,
        edit_interval_seconds: float = EDIT_INTERVAL_SECONDS,
    ) -> None:
        self.pending = pending
        self._records = records
        self._conversations = conversations
        self._maker = maker
        self._meanings = meanings
        self._discord = discord
        self._activity = activity
        self._picks = picks
        self._edit_interval = edit_interval_seconds
        self._queues: dict[int, _ChannelQueue] = {}
        self._notices: set[asyncio.Task[None]] = set()
        self._cut_off = self._is_leaving = False

    def __len__(self) -> int:
        return len(self._queues)

    def submit(self, question: Question) -> None:
        """Queues a question for the channel's next turn."""
        self.pending.asked(question)
        queue = self._queue(question.channel_id)
        queue.waiting.append(question)
        queue.asked_at[question.message.message_id] = asyncio.get_running_loop().time()

    def resume(
        self,
        channel_id: int,
        turn: Turn | None,
        waiting: Sequence[Question],
        stood: Mapping[int, Sequence[Posted]] | None = None,
    ) -> None:
        """Continues an earlier process' turn, and queues the questions behind it, all of which are pending already.

        stood: messages posted for questions whose turn that process had not stored when it was killed, by the id of the
        message that they reply to.
        """
        queue = self._queue(channel_id)
        queue.resumed, queue.stood = turn, stood or {}
        queue.waiting[:0] = waiting

    def _queue(self, channel_id: int) -> _ChannelQueue:
        if channel_id not in self._queues:
            queue = self._queues[channel_id] = _ChannelQueue()
            held = ExitStack()  # entered at once, as missed messages may be handled before the task begins
            held.enter_context(self._conversations.hold(channel_id))
            queue.task = asyncio.create_task(self._run(channel_id, queue, held))
        return self._queues[channel_id]

    def is_busy(self, channel_id: int) -> bool:
        return channel_id in self._queues

    def busy_guilds(self) -> set[int]:
        """The guilds with a queue; 0: direct messages."""
        turns = [turn for queue in self._queues.values() for turn in (queue.resumed, queue.turn) if turn]
        waiting = (question for queue in self._queues.values() for question in queue.waiting)
        return {question.guild_id for question in (*waiting, *(turn.newest for turn in turns))}

    def overheard(self, channel_id: int, message_id: int, content: str, reply_to: int | None = None) -> None:
        """Notes a message that the bot's user posted or edited, from this process or another with the same token."""
        queue = self._queues.get(channel_id)
        if queue and queue.turn and queue.turn.post:
            queue.turn.post.overheard(message_id, content, reply_to)

    def announce(self, question: Question, text: str) -> None:
        """Replies with a fixed line, without a turn."""
        self._spawn(self._announce(question, text))

    def react(self, question: Question, emoji: str) -> None:
        """Reacts to a message, for channels where the bot may not write."""
        wire = self._discord.open(question.guild_id, question.channel_id)
        self._spawn(wire.react(question.message.message_id, emoji))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    def stop(
        self, message: MessageRecord, channel_id: int, *, manages: bool = False, heard_out: Sequence[Question] = ()
    ) -> Stopped | None:
        """Ends at once the answers to the author of this message, if it says stop. Returns None where it ends none.

        If it tells the bot to keep out, it also ends all answers in the channel where its author manages messages, and
        the unprompted ones while an unprompted turn runs. heard_out: questions in bursts; those among the ended must
        not be submitted.
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
            may_end = manages or (is_unprompted and question.decision.is_unprompted)
            return is_own or (stop is Stop.KEEP_OUT and may_end)

        running = list(filter(is_unwanted, queue.turn.questions)) if queue.turn else []
        ended = running if queue.turn and queue.turn.stop(running) else []
        queued = list(filter(is_unwanted, queue.waiting))
        waiting = [*queued, *filter(is_unwanted, heard_out)]
        self.pending.dropped(channel_id, ended)
        self._drop_waiting(channel_id, queue, waiting)
        told = {question.message.author_id for question in ended}
        called = [q for q in waiting if not q.decision.is_unprompted and q.message.author_id not in told]
        newest = {q.message.author_id: q for q in called}
        for question in newest.values():
            self.announce(question, STOPPED)
        if not (ended or waiting):
            return None
        silently, seen = [q for q in queued if q is not newest.get(q.message.author_id)], called
        if queue.turn and queue.turn.ends_silently:
            silently += ended
        else:
            seen += ended
        is_unprompted = is_unprompted and bool(ended)
        return Stopped(stop, [*ended, *waiting], is_unprompted=is_unprompted, silently=silently, seen=seen)

    def reworded(self, channel_id: int, message: MessageRecord) -> None:
        """Applies an edit. If the message now calls the bot, its answer must not be declined."""
        if (queue := self._queues.get(channel_id)) is None:
            self.changed(channel_id, message.message_id, message)
            return
        if queue.turn:
            queue.turn.ask_anew(message.message_id, message)
        is_now_called = is_called(message, self._discord.bot()[1])
        for questions in (queue.waiting, queue.turn.questions if queue.turn else []):
            for place, question in enumerate(questions):
                if question.message.message_id == message.message_id:
                    now = questions[place] = question.reworded(message, is_called=is_now_called)
                    self.pending.revised(now)
                    # The conversation, which has no words of a private one, does not see that they have changed.
                    if now.message.own_words != question.message.own_words and queue.turn and queue.turn.conversation:
                        queue.turn.conversation.take_back([("message", message.message_id)])
        self.changed(channel_id, message.message_id, message)

    def changed(self, channel_id: int, message_id: int, edited: MessageRecord | None = None) -> None:
        """Drops the former words of an edited or deleted message from what is stored of the questions, and from what
        was read in those that have them. edited: the message now."""
        self.pending.reworded(channel_id, message_id, edited)
        if queue := self._queues.get(channel_id):
            if queue.turn:
                queue.turn.ask_anew(message_id)
            for questions in (queue.waiting, queue.turn.questions if queue.turn else []):
                bursts = {q.burst for q in questions if q.message.message_id == message_id} - {None}
                questions[:] = [
                    q.to_read_anew if q.burst in bursts or (q.stands_alone and message_id in q.said_in) else q
                    for q in questions
                ]

    def requoted(
        self, channel_id: int, quotes: Callable[[MessageRecord], bool], edited: MessageRecord | None = None
    ) -> None:
        """Drops what questions quote of a deleted message, or updates it to an edited one. A private one is told as it
        is held here. quotes: (question's message) -> whether it quotes it."""
        self.pending.requoted(channel_id, quotes, edited)
        if queue := self._queues.get(channel_id):
            for questions in (queue.waiting, queue.turn.questions if queue.turn else []):
                for place, question in enumerate(questions):
                    if quotes(question.message):
                        questions[place] = question.requoted(edited)
                        self._note_trimmed(questions[place], edited)

    def _note_trimmed(self, question: Question, edited: MessageRecord | None) -> None:
        """Notes for a running turn a changed quote of a question that the conversation does not have any more."""
        conversation, message_id = self._conversations.get(question.channel_id), question.message.message_id
        if conversation and conversation.find(message_id) is None and not conversation.is_deleted(message_id):
            now = replace(question, message=question.current(conversation)).requoted(edited).as_kept.message
            conversation.revisions.note({message_id: now})

    def unread(self, channel_id: int, is_gone: Callable[[Question], bool]) -> None:
        """Drops the meaning of these questions, as it has deleted words in it, but not of those for a mini-app."""
        self.pending.unread(channel_id, is_gone)
        if queue := self._queues.get(channel_id):
            for questions in (queue.waiting, queue.turn.questions if queue.turn else []):
                questions[:] = [q.as_said if is_gone(q) and not q.by_miniapp else q for q in questions]

    def withdraw(self, channel_id: int, gone: Callable[[MessageRecord], bool]) -> None:
        """Drops deleted questions; cancels a turn that has none left. gone: (message) -> whether it is deleted."""
        if (queue := self._queues.get(channel_id)) is None:
            self.pending.withdrawn(channel_id, gone)
            return
        self._drop_waiting(channel_id, queue, [q for q in queue.waiting if gone(q.message)])
        if (turn := queue.turn) is None:
            return
        withdrawn = [q for q in turn.questions if gone(q.message)]
        turn.is_tainted |= bool(withdrawn)
        # In place, as the open reply reads this list: it replies to the newest question left.
        turn.questions[:] = [q for q in turn.questions if q not in withdrawn]
        if turn.questions:
            self.pending.dropped(channel_id, withdrawn)
        else:
            self.pending.taken_back(channel_id)
            turn.end(Cancel.WITHDRAWN)

    def _drop_waiting(self, channel_id: int, queue: _ChannelQueue, dropped: Sequence[Question]) -> None:
        gone = {q.message.message_id for q in dropped}  # to compare thousands with each other takes seconds
        queue.waiting = [q for q in queue.waiting if q.message.message_id not in gone]
        for question in dropped:
            queue.asked_at.pop(question.message.message_id, None)
        self._meanings.dropped(dropped)
        self.pending.dropped(channel_id, dropped)

    async def drain(self, seconds: float, *, leaves: bool = False) -> None:
        """Lets running turns finish for so many seconds, then cuts off the rest and says so in the channel.

        leaves: the rest is left to another process instead, which finds it pending and continues it, as after a kill.
        """
        await self._wait(seconds)
        self._cut_off, self._is_leaving = not leaves, leaves
        for queue in self._queues.values():
            if leaves and not (queue.turn and queue.turn.has_acted):  # else a tool's action would be repeated
                if queue.turn and queue.task:  # one that has not begun finds out by itself, and closes what it holds
                    queue.turn.leave()
                    queue.task.cancel()
            elif queue.turn:
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

    async def _run(self, channel_id: int, queue: _ChannelQueue, held: ExitStack) -> None:
        try:
            with held:
                while (queue.resumed or queue.waiting) and not self._is_leaving:
                    turn = queue.turn = queue.resumed or self._begin(channel_id, queue)
                    queue.resumed, started = None, asyncio.get_running_loop().time()
                    if self._cut_off and not turn.ready:
                        turn.end(Cancel.SHUTDOWN)
                    try:
                        await self._maker.make(turn, self._open(turn.newest, turn.questions, turn))
                    except Exception:
                        # The outermost edge of a turn: a bug in one must not affect the channel's other questions.
                        log.exception("turn_broken", messages=[q.message.message_id for q in turn.questions])
                        turn.leave()
                        says = "An error of the bot's own broke off an answer: its log has the details."
                        guild_id = turn.newest.guild_id
                        self._activity.fault(FaultKind.INTERNAL, "turn_broken", says, guild_id, channel_id)
                        elapsed = asyncio.get_running_loop().time() - started
                        self._activity.turn_ended(report_of(turn, FailureKind.INTERNAL, self._activity.now(), elapsed))
                    queue.turn = None
        finally:
            del self._queues[channel_id]

    def _begin(self, channel_id: int, queue: _ChannelQueue) -> Turn:
        """Takes the next questions for a turn: one that stands alone, or all up to the next one that does not go with
        it, or does not fit."""
        first = queue.waiting[0] = self._maker.anew(queue.waiting[0])
        if self._picks:  # with several agents each burst has its own turn, as each may go to another agent
            together = [*takewhile(first.is_one_with, queue.waiting)]
        else:
            together = [first, *takewhile(first.goes_with, queue.waiting[1:])]
        together = self._that_fit(together)
        if queue.stood and any(q.reply_to in queue.stood for q in together):
            while together[-1].reply_to not in queue.stood:
                together.pop()
        queue.waiting = queue.waiting[len(together) :]
        self.pending.begun(channel_id, together)
        now = asyncio.get_running_loop().time()
        asked_at = min(queue.asked_at.pop(question.message.message_id, now) for question in together)
        return Turn(together, adopted=queue.stood.get(together[-1].reply_to), asked_at=asked_at)

    def _that_fit(self, questions: Sequence[Question]) -> list[Question]:
        """The first question, and those behind it that leave each other room: what one person asks at length must not
        take from others what their answer may use, nor a file what may be read for another's question."""
        fit, size = list[Question](), 0
        conversation = self._conversations.get(questions[0].channel_id)
        for question in questions:
            message = question.current(conversation) if conversation else question.message
            quoted = f"{message.reply_to_author}{message.reply_to_text[:REPLY_EXCERPT]}"
            size += most_of(f"{message.author}{quoted}{message.text}") + OF_A_MESSAGE
            of_several = len({q.message.author_id for q in (*fit, question)}) > 1
            has_files = any(q.message.files or q.message.reply_files for q in (*fit, question))
            if fit and (size > MAX_TOGETHER or (of_several and has_files)):
                break
            fit.append(question)
        return fit

    def _open(self, question: Question, questions: Sequence[Question], turn: Turn | None = None) -> StreamedReply:
        def record(message: MessageRecord) -> None:
            if turn:
                self.pending.posted(question.channel_id, message.message_id)
            # An answer that an earlier process had ready may be missing from the model's history.
            is_unknown = turn is not None and turn.ready is not None and turn.ready.history is None
            by_miniapp = (turn.newest if turn else question).by_miniapp  # an edit may have changed that meanwhile
            by_model = not (by_miniapp or (turn and turn.is_remote) or is_unknown)
            if turn and turn.is_remote and (conversation := self._conversations.get(question.channel_id)):
                conversation.remote.ask(turn.agent, [message.message_id])
            self._conversations.record_message(question.channel_id, message, by_model=by_model)

        return StreamedReply(
            self._discord.open(question.guild_id, question.channel_id),
            question.message,
            reply_to=lambda: questions[-1].reply_to if questions else question.reply_to,
            bot=self._discord.bot(),
            addressees=frozenset(who for q in questions for who in q.addressees),
            record=record,
            retract=lambda message_id: self._conversations.retract(question.channel_id, message_id),
            answers=lambda: (questions[-1] if questions else question).message.message_id,
            adopted=turn.adopted if turn else None,
            types=turn is None,
            edit_interval_seconds=self._edit_interval,
        )


class Intake:
    """Queues messages and clicks with their meaning, and closes the prompts that they resolve."""

    def __init__(
        self,
        *,
        meanings: Meanings,
        states: ConversationStateManager,
        prompts: PromptCards,
        turns: TurnQueue,
        discord: Discord,
    ) -> None:
        self._meanings = meanings
        self._states = states
        self._prompts = prompts
        self._turns = turns
        self._discord = discord

    def submit(self, *questions: Question, is_read: bool = False) -> None:
        """Queues a message for the prompt that it resolves, the mini-app that wants it, or the agent.

        Several questions are one burst of one person, with one meaning. is_read: whether it was read just now, and
        nothing can have come up since.
        """
        if len(questions) > 1:
            questions = tuple(replace(q, burst=questions[0].message.message_id) for q in questions)
        *earlier, question = questions
        if not is_read:
            utterance = as_one([q.message for q in questions], self._discord.bot()[1])
            question = self._meanings.as_one(question, utterance)
        if question.stands_alone:  # it carries the words of all
            question = replace(question, parts=tuple(part.message.message_id for part in earlier))
        else:
            for part in earlier:
                self._turns.submit(replace(part, meaning=UNREAD))
        self.resolve(question, question.meaning)
        prompt, data = question.meaning.prompt, question.meaning.resolution_data
        if prompt and data:
            self._prompts.settle([prompt], ending_of(data, prompt.ask))

    def resolve(self, question: Question, meaning: Meaning) -> None:
        """Queues a message or a click, and closes the prompt that it resolves."""
        self._turns.submit(replace(question, meaning=meaning))
        if meaning.prompt:
            self._states.clear_prompt(meaning.prompt)
