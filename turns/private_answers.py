"""Answers that only the asker sees, outside any conversation; nothing of them is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from activity import Activity
from agents.gateway import AgentGateway, AgentRequest, Failure, FailureKind
from agents.models import Models
from agents.tracing import span
from conversation import MessageRecord
from state.budget import Budget
from turns.admission import Admission
from turns.endings import agent_fault, final_text, report_of
from turns.turn import Cancel, Question, Turn
from turns.turn_slots import TurnSlots

log = structlog.get_logger()

TOTAL_SECONDS = 840.0  # Discord takes no answer to an interaction after 15 minutes
FAREWELL_SECONDS = 5.0


class PrivateAnswers:
    """Answers questions privately.

    agent: has no tools and asks nothing, as there are no prompts here. models: those that can answer. activity: its
    clock gives the time, and it is told how each answer ends.
    """

    def __init__(
        self,
        agent: AgentGateway,
        models: Models,
        admission: Admission,
        budget: Budget,
        slots: TurnSlots,
        activity: Activity,
    ) -> None:
        self._agent = agent
        self._models = models
        self._admission = admission
        self._budget = budget
        self._slots = slots
        self._activity = activity
        self._asking: set[asyncio.Task[object]] = set()
        self._work: set[asyncio.Task[str]] = set()

    async def answer(self, question: Question, about: Sequence[MessageRecord] = ()) -> str:
        """The answer to a question, or why there is none. about: the messages that it is about, oldest first."""
        if refusal := self._admission.refuses(question.payer, question.place, self._activity.now(), costs_tokens=True):
            return refusal
        if asking := asyncio.current_task():
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
        turn = Turn([question])
        turn.allowance = self._budget.allowance(turn.payer)
        work = asyncio.create_task(self._answer(turn, about))
        self._work.add(work)
        try:
            return await work
        except asyncio.CancelledError:
            if asking and asking.cancelling():  # the caller is cancelled, and not only the answer
                raise
            return final_text(turn, Cancel.SHUTDOWN)
        finally:
            self._work.discard(work)

    async def _answer(self, turn: Turn, about: Sequence[MessageRecord]) -> str:
        question, started, tokens = turn.newest, asyncio.get_running_loop().time(), 0
        request = AgentRequest(
            history=(),
            transcript=[*about, question.message],
            questions=[question.message],
            place=question.place,
            now=self._activity.now(),
            is_private=True,
            allowance=turn.allowance,
            model=self._models.named(question.place.held.model).name,
        )
        turn.request, turn.model, ended = request, request.model or "", "shutdown"
        try:
            async with asyncio.timeout(TOTAL_SECONDS), self._slots.taken(turn):
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
