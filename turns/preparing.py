"""Prepares what an agent is told of a conversation: earlier messages, incomplete questions in full, notes, files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from agents.models import Models
from conversation import ChannelConversation, MessageRecord
from discord_io.split import clipped
from files.reading import FileReader, Reading
from state.awaiting import ConversationStateManager
from state.budget import Budget
from state.message import sources_of_reading, told_to, unquoting
from state.prompts import ResolutionType
from turns.compaction import Compaction
from turns.turn import Question, Turn, said_before
from understanding.enrichment import enrich

log = structlog.get_logger()

HISTORY_DEADLINE_SECONDS = 1.5
MAX_NOTE = 500  # characters of soft context that the agent is told
RECENT_MESSAGES = 12  # what an incomplete query is completed from

Rewrite = Callable[[MessageRecord, Sequence[MessageRecord]], Awaitable[str | None]]
"""(an incomplete query, the messages before it) -> the complete query, or None."""


class History(Protocol):
    """The channel's history in Discord."""

    async def before(self, guild_id: int, channel_id: int, asked: MessageRecord) -> Sequence[MessageRecord]:
        """The messages shortly before this one, oldest first."""


@dataclass(frozen=True, slots=True)
class InFull:
    """An incomplete query as completed. made_of: its message, and those that were read before it."""

    query: str
    made_of: Sequence[MessageRecord]

    def stands(self, conversation: ChannelConversation) -> bool:
        """Whether nothing of what it is made of has been edited, deleted or forgotten since."""
        where, gone = conversation.channel_id, conversation.taken_back
        return not any(source in gone for message in self.made_of for source in sources_of_reading(message, where))


class Preparing:
    """Prepares what the agent is told of the conversation beside its messages.

    rewrite: completes an incomplete query; None: that is left to the agent. compaction: keeps the model's history
    within its token budget. models: those that can answer a turn.
    """

    def __init__(
        self,
        history: History,
        states: ConversationStateManager,
        budget: Budget,
        rewrite: Rewrite | None,
        compaction: Compaction,
        files: FileReader,
        models: Models,
    ) -> None:
        self._files = files
        self._models = models
        self._history = history
        self._states = states
        self._budget = budget
        self._rewrite = rewrite
        self._compaction = compaction

    async def in_full(self, turn: Turn, conversation: ChannelConversation) -> Mapping[int, InFull]:
        """The incomplete queries among the questions, completed, by the ids of their messages, once what the agent is
        told before them is ready."""
        # At a conversation's start it reads earlier messages, if they come soon.
        if first := next((q for q in turn.questions if q.starts_conversation), None):
            try:
                async with asyncio.timeout(HISTORY_DEADLINE_SECONDS):
                    conversation.precede(await self._history.before(first.guild_id, first.channel_id, first.message))
            except TimeoutError:
                log.info("history_late", channel=conversation.channel_id)
        await self._compaction.run(turn, conversation)
        questions = list(turn.questions)
        said = told_of(turn, conversation)
        queries = await asyncio.gather(*(self._in_full(q, conversation, said) for q in questions))
        asked = (question.message.message_id for question in questions)
        return {one: query for one, query in zip(asked, queries, strict=True) if query}

    def notes(self, turn: Turn, conversation: ChannelConversation, in_full: Mapping[int, InFull]) -> list[str]:
        """The notes for the agent beside the questions."""
        notes, said = list[str](), told_of(turn, conversation)
        for question in turn.questions:
            author, meaning = question.message.author, question.meaning
            if meaning.prompt and meaning.prompt.miniapp_id and meaning.resolution_type is ResolutionType.CANCEL:
                # A waiting run of the agent's learns it from the request's `reply` instead.
                # Anybody may call some questions off.
                is_told = said is None or meaning.prompt.message_id in said
                which = f"this question of yours off: {meaning.prompt.question}" if is_told else "off what you asked"
                notes.append(f'"{author}" has just called {which}')
            is_as_read = question.is_as_read(conversation)
            if is_as_read and meaning.prompt and (ends_with := meaning.prompt.ask.ends_with):
                notes.append(
                    f'Your answer to "{author}" was cut off at its greatest length, and they want the rest. Go on '
                    f"right behind its last words, in the middle of a word if need be, and repeat nothing: {ends_with}"
                )
            if question.was_offered:  # the question may be far back, and was not put to the bot
                asked = _quoted(question.current(conversation).text)
                notes.append(
                    f'You offered to answer what "{author}" had asked, and they have just said yes. They asked: {asked}'
                )
            full = in_full.get(question.message.message_id)
            if is_as_read and full and full.stands(conversation):
                notes.append(f'Read in full, the last message of "{author}" is: {full.query}')
        if said is None and (soft_context := self._states.soft_context(conversation.channel_id)):
            known = ", ".join(f"{key}: {value}" for key, value in soft_context.items())
            notes.append(f"What was last done in this channel: {_quoted(known)}")
        return notes

    async def attached(self, turn: Turn, conversation: ChannelConversation) -> Mapping[str, Reading]:
        """The files attached to the messages that the agent is about to be told, as the turn's model can read them, by
        key. Also fixes that model: the place's."""
        turn.model = turn.model or self._models.named(turn.newest.place.held.model).name
        asked = {q.message.message_id: q.current(conversation) for q in turn.questions}
        told = {m.message_id: m for m in untold(turn, conversation)} | asked
        if (said := told_of(turn, conversation)) is not None:
            told = {one: said[one] for one in told}  # without the files of others that they quote
        if not any(m.images or m.files or m.reply_files for m in told.values()):
            return {}
        sight = self._models.named(turn.model).sight

        def stands(key: str) -> bool:
            now = (*conversation.messages, *(question.current(conversation) for question in turn.questions))
            return any(key in m.attached or any(key == file.key for file in m.reply_files) for m in now)

        return await self._files.read([message for _, message in sorted(told.items())], asked, sight, stands)

    async def _in_full(
        self, question: Question, conversation: ChannelConversation, said: Mapping[int, MessageRecord] | None
    ) -> InFull | None:
        """An incomplete query completed from the messages before it; None where it is complete, or cannot be, or its
        author has changed its words.

        said: as told_of() returns it.
        """
        message, meaning = question.current(conversation), question.meaning
        if not (meaning.incomplete and question.is_as_read(conversation)):
            return None
        messages: Iterable[MessageRecord] = conversation.messages
        if said is not None:
            message, messages = said.get(message.message_id, message), said.values()
        before = [m for m in messages if m.message_id < message.message_id][-RECENT_MESSAGES:]
        query: str | None = enrich(meaning.query, said_before(message, before)).query
        if query == meaning.query:
            query = await self._rewrite(message, before) if self._rewrite and self._budget.has_budget() else None
        return InFull(query, [*before, message]) if query else None


def told_of(turn: Turn, conversation: ChannelConversation) -> Mapping[int, MessageRecord] | None:
    """The messages, by id, that the model is told where one whom it answers may not read the history; else None.

    As told_to(), and what is asked now.
    """
    newcomers = turn.newcomers
    if not newcomers:
        return None
    asked = {part for question in turn.questions for part in question.parts}
    said = told_to(newcomers, conversation.messages, asked)
    questions = (question.current(conversation) for question in turn.questions)
    return said | {m.message_id: unquoting(m, said) for m in questions}


def untold(turn: Turn, conversation: ChannelConversation) -> list[MessageRecord]:
    """What the model was not told yet, and may be told in this turn, oldest first."""
    said = told_of(turn, conversation)
    return [m for m in conversation.untold() if said is None or m.message_id in said]


def _quoted(text: str) -> str:
    """People's words as a JSON string, so that they cannot pass for the bot's instructions; clipped, and without lone
    surrogates, which providers refuse."""
    return json.dumps(clipped(text, MAX_NOTE).encode(errors="replace").decode(), ensure_ascii=False)
