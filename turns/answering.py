"""Who answers a turn, and from what: the mini-app that it is for, or the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import structlog

from agents.gateway import AgentGateway, AgentRequest, Answer, Failure, FailureKind, Reply
from conversation import ChannelConversation, MessageRecord, indented
from miniapps.base import MiniAppContext, MiniAppResponse
from miniapps.router import UNKNOWN, MiniAppRouter
from state.awaiting import ConversationStateManager
from state.prompts import ResolutionType
from turns.turn import Cancel, Question, Turn

log = structlog.get_logger()

HISTORY_DEADLINE_SECONDS = 1.5
RECENT_MESSAGES = 12  # what the rewriting model is shown

Rewrite = Callable[[MessageRecord, Sequence[MessageRecord]], Awaitable[str | None]]
"""(an incomplete query, what was said before it) -> what it means in full, or None."""


class Answering:
    """Has turns answered. load_history: what was said in a channel before a message, oldest first.

    rewrite: completes what an incomplete query leaves out; None: that is left to the agent. has_budget: whether a model
    may be asked.
    """

    def __init__(
        self,
        *,
        agent: AgentGateway,
        miniapps: MiniAppRouter,
        states: ConversationStateManager,
        load_history: Callable[[Question], Awaitable[Sequence[MessageRecord]]],
        has_budget: Callable[[], bool],
        clock: Callable[[], datetime],
        rewrite: Rewrite | None = None,
    ) -> None:
        self._agent = agent
        self._miniapps = miniapps
        self._states = states
        self._load_history = load_history
        self._has_budget = has_budget
        self._clock = clock
        self._rewrite = rewrite

    async def answer(
        self, turn: Turn, conversation: ChannelConversation, show: Callable[[str], None]
    ) -> Answer | Failure | Cancel:
        """The turn's outcome; show is given the whole text so far, each time it grows."""
        question = turn.questions[-1]
        if question.by_miniapp:
            return await self._flow(question)
        return await self._ask_agent(turn, conversation, show)

    def interrupted(self, turn: Turn) -> Answer | None:
        """The answer as far as it came; None where no model was asked."""
        return self._agent.interrupted(turn.request, turn.text) if turn.request else None

    async def _flow(self, question: Question) -> Answer | Failure | Cancel:
        """A mini-app's answer, which needs no model."""
        message, meaning = question.message, question.meaning
        ask = meaning.prompt.ask if meaning.prompt else None
        context = MiniAppContext(
            text=meaning.enriched_query,
            chat_guid=question.channel_id,
            user_id=message.author_id,
            user_name=message.author,
            message_id=message.message_id,
            now=self._clock(),
            soft_context=meaning.soft_context,
            source_handler=ask.source_handler if ask else "",
            asked=ask.context if ask else {},
        )
        response = await self._miniapps.route_to_miniapp_if_applicable(
            context, focus_resolution=meaning.resolution_data, force_miniapp_id=meaning.miniapp_id
        )
        if not isinstance(response, MiniAppResponse):
            sentence = response.sentence if response else UNKNOWN
            return Failure(FailureKind.MINIAPP, f"The mini-app {meaning.miniapp_id} gave no answer.", sentence)
        if response.soft_context:
            self._states.set_soft_context(question.channel_id, response.soft_context, meaning.miniapp_id)
        return Answer(response.message, [], 0, ask=response.ask)

    async def _ask_agent(
        self, turn: Turn, conversation: ChannelConversation, show: Callable[[str], None]
    ) -> Answer | Failure | Cancel:
        await self._recall(turn, conversation)
        notes = [note for question in turn.questions for note in await self._notes(question, conversation)]
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
            notes=notes,
            reply=_reply(turn.questions[-1]),
        )

        return await self._agent.respond(turn.request, show)

    async def _recall(self, turn: Turn, conversation: ChannelConversation) -> None:
        """At a conversation's start: what was said in the channel before, if it can be had soon."""
        first = next((q for q in turn.questions if q.starts_conversation), None)
        if first is None:
            return
        try:
            async with asyncio.timeout(HISTORY_DEADLINE_SECONDS):
                conversation.precede(await self._load_history(first))
        except TimeoutError:
            log.info("history_late", channel=conversation.channel_id)

    async def _notes(self, question: Question, conversation: ChannelConversation) -> list[str]:
        """What the agent is told of a question beside its words."""
        message, meaning = question.message, question.meaning
        notes = []
        if meaning.prompt and meaning.resolution_type is ResolutionType.CANCEL and meaning.prompt.miniapp_id:
            asked = indented(meaning.prompt.question)
            notes.append(f'"{message.author}" has just called this question of yours off: {asked}')
        if full := await self._in_full(question, conversation):
            notes.append(f'Read in full, the last message of "{message.author}" is: {full}')
        if meaning.soft_context:
            known = ", ".join(f"{key}: {value}" for key, value in meaning.soft_context.items())
            notes.append(f"What was last done in this channel: {indented(known)}")
        return notes

    async def _in_full(self, question: Question, conversation: ChannelConversation) -> str | None:
        """What an incomplete query means; None where it is complete, where nobody is sure, or where it was edited."""
        message, meaning = question.message, question.meaning
        if not meaning.incomplete or conversation.find(message.message_id) not in (message, None):
            return None
        if meaning.enriched_query != meaning.query:
            return meaning.enriched_query
        before = [m for m in conversation.messages if m.message_id < message.message_id][-RECENT_MESSAGES:]
        return await self._rewrite(message, before) if self._rewrite and self._has_budget() else None


def _reply(question: Question) -> Reply | None:
    """How the question resolves what the agent had asked, if it does."""
    meaning = question.meaning
    if meaning.prompt is None or meaning.prompt.miniapp_id or meaning.resolution_type is None:
        return None
    ask_id = str(meaning.prompt.ask.context.get("ask_id"))
    return Reply(ask_id, meaning.resolution_type, meaning.resolution_data or {})
