"""Open prompts and soft context of each channel, and where a message is routed: the document "Conversation State
Manager".

Three priorities: an open prompt that the message resolves, then soft context that is attached, then an incomplete query
that is completed. A prompt belongs to one channel and to one user, or, if opened so, to anyone in the channel. Its
deadline is extended while its user is typing or talking, up to a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from time import perf_counter
from typing import Any
from uuid import uuid4

from pydantic import AwareDatetime, JsonValue, TypeAdapter

from clock import Clock, utc_now
from state.metrics import Metrics
from state.prompts import Ask, AwaitingType, ChatGuid, Prompt, ResolutionType, read_state
from state.resolution import resolve
from understanding.enrichment import enrich

TYPING_SECONDS = 15.0  # Discord shows typing for 10 s; the message still has to arrive
MISSES_BEFORE_ASKING_AGAIN = 2
ON_ITS_WAY = timedelta(seconds=2)  # how long a message or a click may take to come here
NOTHING: Mapping[str, Any] = {}


class RouteTarget(StrEnum):
    """Who answers. GPT5 is the document's name for the agent."""

    MINIAPP = "miniapp"
    AGENT = "agent"
    GPT5 = "agent"


class Miss(Enum):
    """What happens to a prompt after a message of its user was answered without resolving it."""

    STAYS_OPEN = "stays_open"
    ASKS_AGAIN = "asks_again"
    LETS_GO = "lets_go"


@dataclass(frozen=True, slots=True)
class Meaning:
    """How a message relates to the open prompts and offers of its channel, and where it is routed.

    query: the message. enriched_query: the query completed from earlier messages, as far as that is certain.
    incomplete: it cannot be understood alone. prompt: the one that it resolves, which stays open until it is cleared.
    about: the subject of a mini-app's follow-up that was accepted. offer: its reply to an open offer of ours.
    chose_none_of: the ids of prompts of whose options it chooses none.
    """

    route_to: RouteTarget
    miniapp_id: str | None = None
    resolution_type: ResolutionType | None = None
    resolution_data: Mapping[str, Any] | None = None
    enriched_query: str = ""
    soft_context: Mapping[str, Any] = field(default_factory=dict)
    incomplete: bool = False
    prompt: Prompt | None = None
    query: str = ""
    about: str = ""
    offer: str | None = None
    chose_none_of: frozenset[str] = frozenset()


ProcessingResult = Meaning  # the document's name


@dataclass(frozen=True, slots=True)
class _SoftContext:
    content: Mapping[str, Any]
    expires: AwareDatetime


@dataclass(slots=True)
class _Chat:
    """What is kept and stored of a channel: at most one prompt for each user. Only the manager changes it."""

    used: AwareDatetime
    prompts: list[Prompt]
    soft_context: _SoftContext | None

    def put(self, prompt: Prompt) -> None:
        """Adds a prompt, or replaces the one of the same user."""
        self.prompts = [*({p.user_id: p for p in self.prompts} | {prompt.user_id: prompt}).values()]


STORED = TypeAdapter(_Chat)


class ConversationStateManager:
    """The prompts and soft context of all channels, dropped once they have expired.

    clock: returns the time as an aware datetime. The TTLs, in seconds: of a prompt; of soft context; and of an idle
    channel's state, which also bounds how far a prompt's deadline can be extended. wants: whether a mini-app starts
    from this text and soft context; then the text is no free answer to a prompt. is_behind: whether messages of a
    channel are still to be read; until then its prompts are kept, as one may answer a prompt in time. on_change: called
    with a channel whose prompts or soft context have changed.
    """

    AWAITING_TTL_SECONDS = 120.0
    SOFT_CONTEXT_TTL_SECONDS = 300.0
    CACHE_TTL_SECONDS = 600.0

    def __init__(
        self,
        *,
        clock: Clock = utc_now,
        awaiting_ttl_seconds: float = AWAITING_TTL_SECONDS,
        soft_context_ttl_seconds: float = SOFT_CONTEXT_TTL_SECONDS,
        cache_ttl_seconds: float = CACHE_TTL_SECONDS,
        wants: Callable[[str, Mapping[str, Any]], bool] = lambda _text, _soft_context: False,
        is_behind: Callable[[ChatGuid], bool] = lambda _chat_guid: False,
        on_change: Callable[[ChatGuid], None] = lambda _chat_guid: None,
    ) -> None:
        self._clock = clock
        self._awaiting_ttl = timedelta(seconds=awaiting_ttl_seconds)
        self._soft_ttl = timedelta(seconds=soft_context_ttl_seconds)
        self._cache_ttl = timedelta(seconds=cache_ttl_seconds)
        self._wants = wants
        self._is_behind = is_behind
        self._on_change = on_change
        self._chats: dict[ChatGuid, _Chat] = {}
        self._metrics = Metrics()

    def __len__(self) -> int:
        return len(self._chats)

    # What a message means

    def process_message(
        self,
        message: str,
        chat_guid: ChatGuid,
        recent_messages: Sequence[Mapping[str, Any]] = (),
        *,
        user_id: int | None = None,
        message_id: int | None = None,
        is_direct: bool = False,
        is_for_others: bool = False,
        keeps_prompt: bool = False,
        before: Meaning | None = None,
        at: datetime | None = None,
        prompt: Prompt | None = None,
    ) -> Meaning:
        """Finds out what a message means and where it is routed. Without user_id, only prompts open to anyone resolve.

        recent_messages: earlier messages, oldest first, as {"role", "content"}. message_id: the message cannot answer
        a prompt that a later message shows. is_direct: the message mentions the bot or replies to it. is_for_others: it
        names or replies to somebody else, and so resolves nothing. keeps_prompt: a cancel, too, leaves its prompt open,
        for the caller to clear. before: what it meant when it was counted. at: when it was posted; None: now.
        prompt: the one that it may answer, even if it was cleared; None: those that are open.
        """
        started = perf_counter()
        soft_context = self.soft_context(chat_guid)
        tried = before.chose_none_of if before and before.query == message else frozenset[str]()
        asked = [] if is_for_others else self._open(chat_guid, user_id, at) if prompt is None else [prompt]
        asked = [each for each in asked if each.id not in tried and _can_be_known(each, message_id)]
        results = (self._resolved(message, each, soft_context, is_direct=is_direct) for each in asked)
        if (result := next(filter(None, results), None)) is None:
            whole = enrich(message, recent_messages)
            result = Meaning(
                RouteTarget.AGENT,
                enriched_query=whole.query,
                incomplete=whole.incomplete,
                soft_context=soft_context,
                query=message,
                chose_none_of=tried | {each.id for each in asked if each.ask.awaiting_type is AwaitingType.SELECTION},
            )
        if before is None:
            self._metrics.add(
                perf_counter() - started,
                routed_to_miniapp=result.route_to is RouteTarget.MINIAPP,
                awaiting_resolutions=result.resolution_type is not None,
                soft_context_hits=bool(result.soft_context),
                queries_enriched=result.enriched_query != result.query,
                cache_hits=chat_guid in self._chats,
            )
        if result.prompt and result.resolution_type is ResolutionType.CANCEL and not keeps_prompt:
            self.clear_prompt(result.prompt)
        return result

    def _resolved(
        self, message: str, prompt: Prompt, soft_context: Mapping[str, Any], *, is_direct: bool
    ) -> Meaning | None:
        found = resolve(message, prompt.ask, prompt.question, is_direct=is_direct)
        is_free = found is not None and found.type in (ResolutionType.INPUT, ResolutionType.METADATA)
        if found is None or (is_free and self._wants(message, soft_context)):
            return None
        to_agent = found.type is ResolutionType.CANCEL or prompt.miniapp_id is None
        return Meaning(
            RouteTarget.AGENT if to_agent else RouteTarget.MINIAPP,
            miniapp_id=prompt.miniapp_id,
            resolution_type=found.type,
            resolution_data=found.data,
            enriched_query=message,
            soft_context=soft_context,
            prompt=prompt,
            query=message,
        )

    # Prompts

    def set_awaiting(
        self,
        chat_guid: ChatGuid,
        conversation_state: Mapping[str, Any] | Ask,
        *,
        user_id: int | None = None,
        source_miniapp_id: str | None = None,
        question: str = "",
        guild_id: int = 0,
        source_id: int = 0,
        source_parts: tuple[int, ...] = (),
        people: frozenset[int] = frozenset(),
        said: Mapping[int, int] | None = None,
    ) -> Prompt:
        """Opens a prompt, which replaces one of the same user, and sets the soft context in its conversation_state.

        user_id: who may answer; None: anyone. source_miniapp_id: who gets the answer; None: the mini-app that
        source_handler names before its dot, or the agent. source_id: the message that led to the question;
        source_parts: the earlier messages of its burst. people, said: as of Prompt.
        Raises ConversationStateError.
        """
        soft_context = NOTHING
        if not isinstance(conversation_state, Ask):
            conversation_state, soft_context = read_state(conversation_state, source_miniapp_id or "a mini-app")
        ask, now = conversation_state, self._clock()
        handler = ask.source_handler.partition(".")[0]
        prompt = Prompt(
            id=uuid4().hex,
            chat_guid=chat_guid,
            user_id=None if ask.anyone else user_id,
            ask=ask,
            miniapp_id=source_miniapp_id or (None if handler == RouteTarget.AGENT else handler),
            opened_at=now,
            deadline=now + min(self._awaiting_ttl, self._cache_ttl),
            question=question,
            guild_id=guild_id,
            source_id=source_id,
            source_user_id=user_id,
            source_parts=source_parts,
            people=people,
            said=dict(said or {}),
        )
        self._touch(chat_guid).put(prompt)
        if soft_context:
            self.set_soft_context(chat_guid, soft_context, source_miniapp_id or handler)
        self._on_change(chat_guid)
        return prompt

    def clear_awaiting(self, chat_guid: ChatGuid, user_id: int | None = None) -> None:
        """Drops a user's prompt in a channel, or, without user_id, all of the channel's."""
        for prompt in self.prompts(chat_guid):
            if user_id in (None, prompt.user_id):
                self.clear_prompt(prompt)

    def clear_prompt(self, prompt: Prompt) -> bool:
        """Drops this prompt; False if it was resolved, replaced or dropped before."""
        kept = self.find(prompt.chat_guid, prompt.id)
        if kept is None:
            return False
        self._chats[prompt.chat_guid].prompts.remove(kept)
        self._on_change(prompt.chat_guid)
        return True

    def find(self, chat_guid: ChatGuid, prompt_id: str) -> Prompt | None:
        """The prompt as it stands now, expired or not; None once it was resolved, replaced or dropped."""
        return next((p for p in self.prompts(chat_guid) if p.id == prompt_id), None)

    def prompts(self, chat_guid: ChatGuid) -> list[Prompt]:
        """The channel's prompts, with those past their deadline until expire() drops them."""
        chat = self._chats.get(chat_guid)
        return list(chat.prompts) if chat else []

    def is_open(self, prompt: Prompt, at: datetime | None = None) -> bool:
        """Whether a prompt from find() can be answered, at this time or now."""
        return (at or self._clock()) < prompt.deadline

    def awaited_of(self, chat_guid: ChatGuid, user_id: int | None) -> Prompt | None:
        """The open prompt that this user may answer: their own before one open to anyone."""
        return next(iter(self._open(chat_guid, user_id)), None)

    def is_awaiting(self, chat_guid: ChatGuid, at: datetime | None = None) -> bool:
        """Whether anything is awaited in the channel, at this time or now."""
        chat = self._chats.get(chat_guid)
        return chat is not None and any(self.is_open(prompt, at) for prompt in chat.prompts)

    def shown(self, prompt: Prompt, message_id: int, question: str) -> None:
        """Records which message of ours shows a prompt, and its text."""
        self._replace(prompt, message_id=message_id, question=question)

    def not_shown(self, prompt: Prompt) -> None:
        """Takes back a miss: the prompt was to be shown again, but could not be posted."""
        self._replace(prompt, misses=prompt.misses - 1)

    def typing(self, chat_guid: ChatGuid, user_id: int) -> None:
        """Extends the prompts that this user may answer, since they are typing."""
        for prompt in self._open(chat_guid, user_id):
            self.extend(prompt, TYPING_SECONDS)

    def extend(self, prompt: Prompt, seconds: float) -> Prompt:
        """Keeps a prompt open for at least so many seconds from now, up to the cache's TTL since it was opened."""
        until = min(self._clock() + timedelta(seconds=seconds), prompt.opened_at + self._cache_ttl)
        return self._replace(prompt, deadline=max(prompt.deadline, until))

    def missed(self, chat_guid: ChatGuid, user_id: int) -> tuple[Prompt, Miss] | None:
        """Counts a message of this user that was answered without resolving their prompt, and extends the prompt.

        After the second the prompt is to be asked again; the third drops it.
        """
        prompt = self.awaited_of(chat_guid, user_id)
        if prompt is None or prompt.user_id is None:
            return None
        prompt = self.extend(prompt, self._awaiting_ttl.total_seconds())
        prompt = self._replace(prompt, misses=prompt.misses + 1)
        if prompt.misses > MISSES_BEFORE_ASKING_AGAIN:
            self.clear_prompt(prompt)
            return prompt, Miss.LETS_GO
        return prompt, Miss.ASKS_AGAIN if prompt.misses == MISSES_BEFORE_ASKING_AGAIN else Miss.STAYS_OPEN

    def expire(self) -> list[Prompt]:
        """Drops the prompts that nobody can have answered in time any more, and returns them."""
        at = self._clock() - ON_ITS_WAY
        late = [p for chat in self._chats.values() for p in chat.prompts if not self.is_open(p, at)]
        due = [p for p in late if not self._is_behind(p.chat_guid)]
        for prompt in due:
            self.clear_prompt(prompt)
        return due

    def next_deadline(self) -> datetime | None:
        """When the next prompt expires."""
        return min((p.deadline for chat in self._chats.values() for p in chat.prompts), default=None)

    # Soft context

    def set_soft_context(
        self, chat_guid: ChatGuid, context: Mapping[str, Any], source_miniapp_id: str | None = None
    ) -> None:
        """Sets what the channel's conversation is about, as a mini-app says; each Meaning carries it."""
        source = {"source_miniapp_id": source_miniapp_id} if source_miniapp_id else {}
        chat = self._touch(chat_guid)
        chat.soft_context = _SoftContext({**context, **source}, self._clock() + self._soft_ttl)
        self._on_change(chat_guid)

    def soft_context(self, chat_guid: ChatGuid) -> Mapping[str, Any]:
        chat = self._chats.get(chat_guid)
        soft = chat.soft_context if chat else None
        return soft.content if soft and self._clock() < soft.expires else NOTHING

    def drop_soft_context(self, chat_guid: ChatGuid) -> None:
        if (chat := self._chats.get(chat_guid)) and chat.soft_context:
            chat.soft_context = None
            self._on_change(chat_guid)

    # The whole

    def forget(self, chat_guid: ChatGuid, user_id: int | None) -> list[Prompt]:
        """Drops the soft context, and a user's prompts with those they led to (None: all). Returns the prompts."""
        dropped = [p for p in self.prompts(chat_guid) if user_id in (None, p.user_id, p.source_user_id)]
        for prompt in dropped:
            self.clear_prompt(prompt)
        for prompt in self.prompts(chat_guid):
            if user_id in prompt.people:
                self._replace(prompt, people=prompt.people - {user_id})
        self.drop_soft_context(chat_guid)
        return dropped

    def sweep(self) -> None:
        """Drops the state of channels in which nothing was asked or set for the cache's TTL."""
        oldest = self._clock() - self._cache_ttl
        idle = [guid for guid, chat in self._chats.items() if not chat.prompts and chat.used <= oldest]
        for guid in idle:
            self.drop_soft_context(guid)
            del self._chats[guid]

    def stored(self, chat_guid: ChatGuid) -> JsonValue | None:
        """The channel's prompts and soft context, for restore() after a restart; None where there is neither."""
        chat = self._chats.get(chat_guid)
        is_alive = bool(self.soft_context(chat_guid))
        if chat is None or not (chat.prompts or is_alive):
            return None
        kept = replace(chat, soft_context=chat.soft_context if is_alive else None)
        stored: JsonValue = STORED.dump_python(kept, mode="json")
        return stored

    def restore(self, chat_guid: ChatGuid, stored: JsonValue) -> None:
        """Adds what stored() returned; what the channel has already stays.

        Prompts past their deadline are added too, for expire() to return. Raises ValueError for what cannot be read.
        """
        read = STORED.validate_python(stored)
        chat = self._chats.setdefault(chat_guid, _Chat(read.used, [], None))
        asked = {p.user_id for p in chat.prompts}
        chat.prompts += [replace(p, chat_guid=chat_guid) for p in read.prompts if p.user_id not in asked]
        chat.soft_context = chat.soft_context or read.soft_context

    def get_metrics(self) -> dict[str, int | float | str]:
        """The document's figures."""
        return self._metrics.figures()

    def _touch(self, chat_guid: ChatGuid) -> _Chat:
        chat = self._chats.setdefault(chat_guid, _Chat(self._clock(), [], None))
        chat.used = self._clock()
        return chat

    def _open(self, chat_guid: ChatGuid, user_id: int | None, at: datetime | None = None) -> list[Prompt]:
        """The open prompts that a user may answer, their own first."""
        chat = self._chats.get(chat_guid)
        mine = [p for p in chat.prompts if p.user_id in (user_id, None) and self.is_open(p, at)] if chat else []
        return sorted(mine, key=lambda prompt: prompt.user_id is None)

    def _replace(self, prompt: Prompt, **changes: Any) -> Prompt:
        """Returns the changed prompt, and stores it if the prompt is still kept."""
        changed = replace(prompt, **changes)
        kept = self.find(prompt.chat_guid, prompt.id)
        if kept and kept != changed:
            self._chats[prompt.chat_guid].put(changed)
            self._on_change(prompt.chat_guid)
        return changed


def _can_be_known(prompt: Prompt, message_id: int | None) -> bool:
    """Whether the message's author can have seen the question. A yes must not count for a question still unseen."""
    if prompt.message_id is None:  # it is being posted right now
        return message_id is None or prompt.ask.awaiting_type is not AwaitingType.CONFIRMATION
    return message_id is None or message_id > prompt.message_id
