"""Answers that only the asker sees, outside any conversation; nothing of them is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import structlog

from activity import Activity
from agents.gateway import AgentGateway, AgentRequest, Failure, FailureKind
from agents.models import Models
from agents.tracing import span
from conversation import MessageRecord
from files.reading import FileReader, Reading
from llm_history import Changes, History, reworded
from state.budget import Budget, charge_to
from state.message import Source
from turns.admission import Admission
from turns.endings import agent_fault, final_text, report_of
from turns.turn import Cancel, Question, Turn
from turns.turn_slots import TurnSlots

log = structlog.get_logger()

TOTAL_SECONDS = 840.0  # Discord takes no answer to an interaction after 15 minutes
FAREWELL_SECONDS = 5.0
GONE = "That message is gone, so I do not answer it."


@dataclass(slots=True, eq=False)
class About:
    """What an answer is about. changes, gone: what was edited, deleted or forgotten of it since; is_gone: all of it was
    deleted or forgotten, which ends the answer."""

    channel_id: int
    messages: list[MessageRecord]
    work: asyncio.Task[str] | None = None
    is_gone: bool = False
    changes: Changes = field(default_factory=dict)
    gone: dict[Source, None] = field(default_factory=dict)

    def current(self, history: History) -> History:
        return reworded(history, self.changes)


class PrivateAnswers:
    """Answers questions privately.

    agent: has no tools and asks nothing, as there are no prompts here. models: those that can answer. files: reads
    pictures. activity: its clock gives the time, and it is told how each answer ends.
    """

    def __init__(
        self,
        agent: AgentGateway,
        models: Models,
        files: FileReader,
        admission: Admission,
        budget: Budget,
        slots: TurnSlots,
        activity: Activity,
    ) -> None:
        self._agent = agent
        self._models = models
        self._files = files
        self._admission = admission
        self._budget = budget
        self._slots = slots
        self._activity = activity
        self._asking: set[asyncio.Task[object]] = set()
        self._work: set[asyncio.Task[str]] = set()
        self._told: set[About] = set()

    async def answer(self, question: Question, about: Sequence[MessageRecord] = ()) -> str:
        """The answer to a question, or why there is none. about: the messages that it is about, oldest first."""
        if refusal := self._admission.refuses(question.payer, question.place, self._activity.now(), costs_tokens=True):
            return refusal
        if asking := asyncio.current_task():
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
        turn = Turn([question])
        turn.allowance = self._budget.allowance(turn.payer)
        with self.told_changes(question.channel_id, about) as told:
            work = told.work = asyncio.create_task(self._answer(turn, told))
            self._work.add(work)
            try:
                return await work
            except asyncio.CancelledError:
                if asking and asking.cancelling():  # the caller is cancelled, and not only the answer
                    raise
                return GONE if told.is_gone else final_text(turn, Cancel.SHUTDOWN)
            finally:
                self._work.discard(work)

    @contextmanager
    def told_changes(self, channel_id: int, about: Sequence[MessageRecord]) -> Iterator[About]:
        """Has what becomes of these messages meanwhile noted."""
        told = About(channel_id, [*about])
        self._told.add(told)
        try:
            yield told
        finally:
            self._told.discard(told)

    def changed(self, is_there: Callable[[int], bool], change: Callable[[MessageRecord], MessageRecord | None]) -> None:
        """Applies an edit or a deletion to what running answers are about. is_there: (channel id) -> whether it may be
        there. change: (message) -> the message now, None: deleted."""
        for told in self._told:
            if is_there(told.channel_id):
                now = [(message, change(message)) for message in told.messages]
                changes = {before.message_id: after for before, after in now if after is not before}
                told.messages = [after for _, after in now if after]
                told.changes |= changes
                told.gone |= {("message", message_id): None for message_id in changes}
                if changes and not told.messages and told.work:
                    told.is_gone = told.work.cancel()

    async def _answer(self, turn: Turn, about: About) -> str:
        question, started, tokens = turn.newest, asyncio.get_running_loop().time(), 0
        charge_to(turn.payer, turn.allowance)  # also what is called a picture and is transcribed
        request = AgentRequest(
            history=(),
            transcript=[*about.messages, question.message],
            questions=[question.message],
            place=question.place,
            now=self._activity.now(),
            gone=about.gone.keys(),
            current=about.current,
            is_private=True,
            allowance=turn.allowance,
            model=self._models.named(question.place.held.model).name,
        )
        turn.request, turn.model, ended = request, request.model or "", Cancel.SHUTDOWN.value
        try:
            async with asyncio.timeout(TOTAL_SECONDS), self._slots.taken(turn):
                turn.request = request = replace(request, attached=await self._pictures(turn.model, about))
                with span("answer"):
                    outcome = await self._agent.respond(request, turn.show)
            tokens, ended = outcome.tokens, getattr(outcome, "kind", "answered")
            if isinstance(outcome, Failure):
                log.error("agent_failed", channel=question.channel_id, kind=outcome.kind, detail=outcome.detail)
                self._failed(question, outcome.kind)
            return final_text(turn, outcome)
        except TimeoutError:
            tokens, ended = self._agent.interrupted(request, turn.text).tokens, FailureKind.WAITED
            self._failed(question, FailureKind.WAITED)
            return final_text(turn, Failure(FailureKind.WAITED, "It waited too long.", turn.text))
        except asyncio.CancelledError:
            tokens = self._agent.interrupted(request, turn.text).tokens
            ended = Cancel.WITHDRAWN if about.is_gone else ended
            raise
        except Exception:
            log.exception("turn_failed", channel=question.channel_id, message=question.message.message_id)
            tokens, ended = self._agent.interrupted(request, turn.text).tokens, FailureKind.INTERNAL
            self._failed(question, FailureKind.INTERNAL)
            return final_text(turn, Failure(FailureKind.INTERNAL, "An error of ours ended the answer.", turn.text))
        finally:
            turn.allowance.settle(tokens, is_answer=ended == "answered")
            where = {"guild": question.guild_id, "channel": question.channel_id, "message": question.message.message_id}
            elapsed = asyncio.get_running_loop().time() - started
            log.info("answered_privately", **where, outcome=ended, tokens=tokens, elapsed_ms=round(1000 * elapsed))
            self._activity.turn_ended(report_of(turn, ended, self._activity.now(), elapsed))

    async def _pictures(self, model: str, about: About) -> Mapping[str, Reading]:
        """The pictures of what the answer is about, as this model can be shown them, by key."""
        told = [replace(message, files=(), reply_files=()) for message in about.messages if message.images]

        def stands(key: str) -> bool:
            return any(key in message.attached for message in about.messages)

        asked = [message.message_id for message in told]
        return await self._files.read(told, asked, self._models.named(model).sight, stands)

    def _failed(self, question: Question, failure: FailureKind) -> None:
        kind, says = agent_fault(failure)
        self._activity.fault(kind, failure, says, question.guild_id, question.channel_id)

    async def drain(self, seconds: float) -> None:
        """Lets running answers finish for so many seconds, then cuts off the rest, and tells their askers."""
        if self._asking:
            await asyncio.wait(self._asking, timeout=seconds)
        for work in self._work:
            work.cancel()
        if self._asking:
            await asyncio.wait(self._asking, timeout=FAREWELL_SECONDS)
