"""Who answers a turn, and from what: the mini-app that it is for, or the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

import structlog

from agents.coordinator import Choice, Why
from agents.gateway import AgentRequest, Answer, Asked, Failure, FailureKind, Outcome, Reply
from agents.team import Team
from conversation import ChannelConversation, MessageRecord
from discord_io.split import clipped
from miniapps.base import FollowUp, MiniAppContext, MiniAppResponse
from miniapps.router import UNKNOWN, MiniAppRouter
from state.awaiting import ConversationStateManager
from state.prompts import ResolutionType
from turns.turn import Cancel, Question, Turn, said_before
from understanding.enrichment import enrich

log = structlog.get_logger()

HISTORY_DEADLINE_SECONDS = 1.5
MAX_NOTE = 500  # characters of soft context that the agent is told
RECENT_MESSAGES = 12  # what the rewriting model is shown

Rewrite = Callable[[MessageRecord, Sequence[MessageRecord]], Awaitable[str | None]]
"""(an incomplete query, what was said before it) -> what it means in full, or None."""


class History(Protocol):
    """What was said in channels."""

    async def before(self, guild_id: int, channel_id: int, asked: MessageRecord) -> Sequence[MessageRecord]:
        """What was said shortly before a message, oldest first."""


class Budget(Protocol):
    """Today's tokens."""

    def has_budget(self) -> bool: ...


class AnswerRecords(Protocol):
    """Is told who answers, and what a mini-app wants to come back to."""

    def picked(self, questions: Sequence[Question], choice: Choice) -> None: ...

    def follow_up(self, question: Question, follow_up: FollowUp) -> None: ...


class Answering:
    """Has turns answered. team: the agents. records: told which was chosen, and of mini-apps' follow-ups.

    rewrite: completes what an incomplete query leaves out; None: that is left to the agent.
    """

    def __init__(
        self,
        *,
        team: Team,
        miniapps: MiniAppRouter,
        states: ConversationStateManager,
        history: History,
        budget: Budget,
        records: AnswerRecords,
        rewrite: Rewrite | None = None,
        clock: Callable[[], datetime],
    ) -> None:
        self._team = team
        self._miniapps = miniapps
        self._states = states
        self._history = history
        self._budget = budget
        self._records = records
        self._rewrite = rewrite
        self._clock = clock

    @property
    def picks(self) -> bool:
        """Whether there are several agents to pick from."""
        return self._team.has_several

    async def answer(
        self, turn: Turn, conversation: ChannelConversation, show: Callable[[str], None]
    ) -> Outcome | Cancel:
        """The turn's outcome; show is given the whole text so far, each time it grows."""
        question = turn.questions[-1]
        if question.by_miniapp:
            return await self._flow(question)
        await self._pick(turn, conversation)
        if turn.is_remote:
            return await self._ask_remote(turn, conversation, show)
        return await self._ask_agent(turn, conversation, show)

    async def _pick(self, turn: Turn, conversation: ChannelConversation) -> None:
        """Who answers: what was said last says. What answers a question of the general agent's is for that one.

        So is what nobody is to keep, as a remote agent does.
        """
        newest = turn.questions[-1]
        if newest.meaning.prompt or turn.is_private:
            return
        *earlier, question = [q.current(conversation) for q in turn.questions if q.is_one_with(newest)]
        choice = await self._team.pick(question, conversation, newest.place, earlier)
        turn.agent = choice.agent
        if choice.why is not Why.ONLY:
            self._records.picked(turn.questions, choice)

    async def _ask_remote(
        self, turn: Turn, conversation: ChannelConversation, show: Callable[[str], None]
    ) -> Outcome | Cancel:
        """It is told the questions, and nothing else of the channel but what all agents are told."""
        pending = [q for q in turn.questions if not conversation.is_deleted(q.message.message_id)]
        if not pending:
            return Cancel.WITHDRAWN
        parts = [part.message_id for part in turn.adopted or ()]
        conversation.left.discard(turn.agent)
        conversation.asked(turn.agent, [*parts, *(q.message.message_id for q in pending)])
        questions, place = [question.current(conversation) for question in pending], pending[-1].place
        turn.request = AgentRequest(
            history=(),
            transcript=(),
            questions=questions,
            place=place,
            now=self._clock(),
            state=conversation.states.get(turn.agent),
            asked=_asked(pending),
            shared=self._team.shared(questions, conversation, place),
            may_decline=turn.may_decline,
        )
        return await self._team[turn.agent].respond(turn.request, show)

    def note(self, question: Question, answer: Answer) -> None:
        """What the answer says of the conversation holds from now on."""
        if answer.soft_context:
            self._states.set_soft_context(question.channel_id, answer.soft_context, question.meaning.miniapp_id)
        if answer.follow_up:
            self._records.follow_up(question, answer.follow_up)

    def interrupted(self, turn: Turn) -> Answer | None:
        """The answer as far as it came; None where no model was asked."""
        return self._team[turn.agent].interrupted(turn.request, turn.text) if turn.request else None

    async def _flow(self, question: Question) -> Answer | Failure:
        """A mini-app's answer, which needs no model."""
        message, meaning = question.message, question.meaning
        ask = meaning.prompt.ask if meaning.prompt else None
        context = MiniAppContext(
            text=meaning.query,
            chat_guid=question.channel_id,
            user_id=message.author_id,
            user_name=message.author,
            message_id=message.message_id,
            now=self._clock(),
            soft_context=self._states.soft_context(question.channel_id),
            source_handler=ask.source_handler if ask else "",
            asked=ask.context if ask else {},
            about=meaning.about,
        )
        response = await self._miniapps.route_to_miniapp_if_applicable(
            context, focus_resolution=meaning.resolution_data, force_miniapp_id=meaning.miniapp_id
        )
        if not isinstance(response, MiniAppResponse):
            sentence = response.sentence if response else UNKNOWN
            return Failure(FailureKind.MINIAPP, f"The mini-app {meaning.miniapp_id} gave no answer.", sentence)
        return Answer(
            response.message,
            [],
            0,
            ask=response.ask,
            soft_context=response.soft_context,
            follow_up=response.follow_up,
        )

    async def _ask_agent(
        self, turn: Turn, conversation: ChannelConversation, show: Callable[[str], None]
    ) -> Outcome | Cancel:
        await self._recall(turn, conversation)
        notes = await self._notes(turn, conversation)
        # One that was trimmed meanwhile is asked all the same.
        pending = [q for q in turn.questions if not conversation.is_deleted(q.message.message_id)]
        questions = [question.current(conversation) for question in pending]
        if not questions:
            return Cancel.WITHDRAWN
        # A question may have been told already, as something said while an earlier turn was being prepared.
        to_tell = {m.message_id for m in (*conversation.untold(), *questions)}
        # What an earlier process had begun to answer is said anew, and not to be taken for said.
        to_tell -= {part.message_id for part in turn.adopted or ()}
        trimmed = [q for q in questions if conversation.find(q.message_id) is None]
        asked = {q.message_id: q for q in questions}
        conversation.begin_turn()
        turn.request = AgentRequest(
            history=conversation.llm_history,
            transcript=[
                *trimmed,
                *(asked.get(m.message_id, m) for m in conversation.messages if m.message_id in to_tell),
            ],
            questions=questions,
            place=turn.questions[-1].place,
            now=self._clock(),
            notes=notes,
            reply=_reply(turn.questions[-1], conversation) if turn.questions else None,
            asked=_asked(pending),
            tell_stage=turn.tell_stage,
            is_private=turn.is_private,
            shared=self._team.shared(questions, conversation, pending[-1].place),
            may_decline=turn.may_decline,
        )

        return await self._team[turn.agent].respond(turn.request, show)

    async def _recall(self, turn: Turn, conversation: ChannelConversation) -> None:
        """At a conversation's start: what was said in the channel before, if it can be had soon."""
        first = next((q for q in turn.questions if q.starts_conversation), None)
        if first is None:
            return
        try:
            async with asyncio.timeout(HISTORY_DEADLINE_SECONDS):
                conversation.precede(await self._history.before(first.guild_id, first.channel_id, first.message))
        except TimeoutError:
            log.info("history_late", channel=conversation.channel_id)

    async def _notes(self, turn: Turn, conversation: ChannelConversation) -> list[str]:
        """What the agent is told beside the words of the questions that are still there when all is known."""
        questions = list(turn.questions)
        full = await asyncio.gather(*(self._in_full(question, conversation) for question in questions))
        notes = []
        for question, query in zip(questions, full, strict=True):
            if question in turn.questions:
                notes += _called_off(question) + _offered(question)
                if query and question.current(conversation) == question.message:
                    notes.append(f'Read in full, the last message of "{question.message.author}" is: {query}')
        if soft_context := self._states.soft_context(conversation.channel_id):
            known = ", ".join(f"{key}: {value}" for key, value in soft_context.items())
            notes.append(f"What was last done in this channel: {_printable(known)}")
        return notes

    async def _in_full(self, question: Question, conversation: ChannelConversation) -> str | None:
        """What an incomplete query means by what is said before it now; None where it is complete or nobody is sure."""
        message, meaning = question.message, question.meaning
        if not meaning.incomplete:
            return None
        query = enrich(meaning.query, said_before(message, conversation)).query
        if query != meaning.query:
            return query
        before = [m for m in conversation.messages if m.message_id < message.message_id][-RECENT_MESSAGES:]
        return await self._rewrite(message, before) if self._rewrite and self._budget.has_budget() else None


def _asked(questions: Sequence[Question]) -> Asked:
    newest, people = questions[-1], frozenset(q.message.author_id for q in questions)
    return Asked(newest.guild_id, newest.channel_id, newest.message.author_id, newest.reply_to, people)


def _printable(text: str) -> str:
    """Clipped, and without half characters, which no provider takes."""
    return clipped(text, MAX_NOTE).encode(errors="replace").decode()


def _called_off(question: Question) -> list[str]:
    """That the question calls off what a mini-app asked; the agent's own run is told by its reply."""
    meaning = question.meaning
    if not (meaning.prompt and meaning.prompt.miniapp_id and meaning.resolution_type is ResolutionType.CANCEL):
        return []
    return [f'"{question.message.author}" has just called this question of yours off: {meaning.prompt.question}']


def _offered(question: Question) -> list[str]:
    """That it is answered although much may have been said since, and nobody had asked the bot."""
    if not question.was_offered:
        return []
    message = question.message
    asked = _printable(message.text)
    return [
        f'You offered to answer what "{message.author}" had asked, and they have just said yes. They asked: {asked}'
    ]


def _reply(question: Question, conversation: ChannelConversation) -> Reply | None:
    """How the question resolves what the agent had asked, if it does; what was edited since is read by the agent."""
    meaning = question.meaning
    if meaning.prompt is None or meaning.prompt.miniapp_id or meaning.resolution_type is None:
        return None
    if question.current(conversation) != question.message:
        return None
    ask_id = str(meaning.prompt.ask.context.get("ask_id"))
    return Reply(ask_id, meaning.resolution_type, meaning.resolution_data or {})
