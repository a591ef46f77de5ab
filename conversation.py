"""The conversation of each channel: what was said, who takes part, and what the model has been told of it.

Pure and synchronous. A conversation lives while somebody speaks at least once per timeout, and is bounded besides: by a
count and a size of messages, and by a token budget for the model's history.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import orjson
from pydantic import AwareDatetime, BeforeValidator, TypeAdapter
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from llm_history import (
    Changes,
    History,
    fits,
    readable,
    reworded,
    tags_in,
    trim_history,
    unsaid,
    waits_for,
    without_words,
)
from state.agent_state import GENERAL, AgentState, read_agent_state
from state.declines import Declines
from state.engagement import Engagement, Standing
from state.message import MessageRecord, Source
from understanding.names import add_to, called_by_name, index_of

__all__ = [
    "ChannelConversation",
    "ConversationManager",
    "Engagement",
    "MessageRecord",
    "StoredConversation",
    "Unwelcome",
]

HISTORY_TOKENS = 12_000
MAX_REMOTE = 2_000  # messages of which it is known that they are another agent's business
MAX_JOINED = 100  # what was said before hardly matters to a decision, and takes 7 us a message to read again
MAX_REVISIONS = 1_000  # edits and deletions remembered while a turn runs
MAX_TAKEN_BACK = 20_000  # the same of all channels, by their ids alone
NO_DECLINES = Declines()


def _known_states(states: Any) -> Any:
    """Without those that cannot be read: the others, and the conversation, are of use yet."""
    if not isinstance(states, dict):
        return {}
    return {name: state for name, state in states.items() if fits(read_agent_state, state)}


class Unwelcome(StrEnum):
    """What somebody did to an answer that nobody had asked for."""

    TOLD_OFF = "told_off"
    DELETED = "deleted"
    DISLIKED = "disliked"


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """What its messages do not tell of a conversation.

    since: no message that belongs to it has a lower id; those put in front of it have. own: ids of what the model said.
    remote, states, unwelcome, declines: as of ChannelConversation.
    """

    started_at: AwareDatetime
    last_activity: AwareDatetime
    since: int
    told_through: int
    own: frozenset[int]
    llm_history: History
    remote: dict[int, str] = field(default_factory=dict)
    states: Annotated[dict[str, AgentState], BeforeValidator(_known_states)] = field(default_factory=dict)
    unwelcome: Unwelcome | None = None
    declines: Declines = NO_DECLINES

    def to_json(self) -> bytes:
        head = STORED.dump_python(self, mode="json", exclude={"llm_history"})
        # Its own adapter knows what to do with bytes, wherever they are.
        history = ModelMessagesTypeAdapter.dump_json(self.llm_history)
        return orjson.dumps({**head, "llm_history": orjson.Fragment(history)})

    @staticmethod
    def from_json(text: bytes) -> StoredConversation:
        """Raises ValueError for what cannot be read."""
        stored = STORED.validate_json(text)
        return replace(stored, llm_history=[readable(message) for message in stored.llm_history])


STORED = TypeAdapter(StoredConversation)


@dataclass(slots=True)
class ChannelConversation:
    """A channel's active stretch of messages. Mutable; changed through its manager.

    since: the id of its first message, not counting those put in front of it. remote: of the messages that a remote
    agent was asked, or answered, by their ids which one; states: by its name what each of those needs back; left:
    those whose conversation is not to be gone on with, though one of them may still be answering in it. names: of those
    who spoke; called: whom which word calls; named: by a message's id, to whom it is by mention, reply or name. waits:
    whether a run of the agent's waits for somebody, or has. taken_back: whose words, and which, went since the turn
    began.
    told_off: who told the bot to keep out in messages that are trimmed.
    unwelcome: what became of an unprompted answer, since when nothing is followed until somebody calls the bot.
    """

    channel_id: int
    started_at: datetime
    last_activity: datetime
    messages: list[MessageRecord] = field(default_factory=list)
    llm_history: list[ModelMessage] = field(default_factory=list)
    participants: set[int] = field(default_factory=set)
    engagement: Engagement = field(default_factory=Engagement)
    engagement_before: Engagement = field(default_factory=Engagement)
    told_through: int = -1
    names: dict[int, str] = field(default_factory=dict)
    called: dict[str, int] = field(default_factory=dict)
    named: dict[int, frozenset[int]] = field(default_factory=dict)
    own: set[int] = field(default_factory=set)
    revisions: Changes = field(default_factory=dict)
    unsaid: set[int] = field(default_factory=set)
    taken_back: OrderedDict[Source, None] = field(default_factory=OrderedDict)
    size: int = 0
    since: int = 0
    remote: dict[int, str] = field(default_factory=dict)
    states: dict[str, AgentState] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    waits: bool = False
    told_off: frozenset[int] = frozenset()
    unwelcome: Unwelcome | None = None
    declines: Declines = NO_DECLINES

    def __post_init__(self) -> None:
        self._replay(self.messages)
        self.since = self.since or next((m.message_id for m in self.messages), 0)

    def add(self, message: MessageRecord, *, by_model: bool = True) -> None:
        """Appends a message; one that is there already (the bot's own, as it grows) is replaced.

        by_model: of the bot's own, whether the model said it, and so need not be told it.
        """
        if message.is_bot and message.message_id and self.find(message.message_id):
            self.revise(message)
            return
        if message.is_bot and by_model:
            self.own.add(message.message_id)
        if message.is_bot and not message.unasked:
            self.declines = self.declines.answered()
        self.since = self.since or message.message_id
        self._append(message)

    def _append(self, message: MessageRecord) -> None:
        self.messages.append(message)
        self.size += message.size
        if not message.is_bot:
            self.participants.add(message.author_id)
            if self.names.get(message.author_id) != message.author:
                self.names[message.author_id] = message.author
                add_to(self.called, message.author_id, message.author)
        told_whom = self._told_whom(message)
        called = called_by_name(message, self.names, self.called)
        self.named[message.message_id] = told_whom.named | called
        self.engagement_before = self.engagement
        # An offer is no word to anybody until it is taken up: what people say behind it they say to each other.
        if not message.unasked:
            self.engagement = self.engagement.after(told_whom, called)

    def _told_whom(self, message: MessageRecord) -> MessageRecord:
        """The message with the author of what it replies to, where only the conversation knows that."""
        if message.reply_to_id is None or message.reply_to_author_id is not None:
            return message
        answered = self.find(message.reply_to_id)
        return replace(message, reply_to_author_id=answered.author_id) if answered else message

    def precede(self, earlier: Sequence[MessageRecord]) -> None:
        """Puts what was said before the conversation in front of it."""
        known = {m.message_id for m in self.messages}
        # What was edited or deleted while it was being read is so here, too.
        current = [self.revisions.get(m.message_id, m) for m in earlier if m.message_id not in known]
        self._replay([m for m in current if m] + self.messages)

    def engagement_at(self, message: MessageRecord) -> Engagement:
        """The engagement before this message, whether it is recorded already or not."""
        return self.engagement_before if self._is_newest(message) else self.engagement

    def before(self, message: MessageRecord, count: int) -> Sequence[MessageRecord]:
        """The messages before this one, so many at most, whether it is recorded already or not."""
        return self.messages[-count - 1 : -1] if self._is_newest(message) else self.messages[-count:]

    def joined(self, messages: Sequence[MessageRecord], utterance: MessageRecord) -> ChannelConversation:
        """A copy of the latest messages in which these are one, the newest."""
        ids = {m.message_id for m in messages}
        others = [m for m in self.messages[-MAX_JOINED:] if m.message_id not in ids]
        return replace(self, messages=[*others, utterance], participants=set(), names={}, called={}, own=set(self.own))

    def _is_newest(self, message: MessageRecord) -> bool:
        return bool(self.messages) and (self.messages[-1] is message or self.messages[-1] == message)

    def last_words_to(self, author_id: int) -> MessageRecord | None:
        """What the bot said last to this person."""
        return next((m for m in reversed(self.messages) if m.is_bot and author_id in m.addressees), None)

    def agent_of(self, message_id: int) -> str:
        """Which agent said a message of the bot's: a remote one by its name, else the general one."""
        return self.remote.get(message_id, GENERAL)

    def find(self, message_id: int) -> MessageRecord | None:
        return next((m for m in reversed(self.messages) if m.message_id == message_id), None)

    def is_deleted(self, message_id: int) -> bool:
        """Whether a message that was recorded was deleted since, and not merely trimmed."""
        return self.find(message_id) is None and self.revisions.get(message_id, self) is None

    def untold(self) -> list[MessageRecord]:
        """The messages that the model has not been told, oldest first; what it said in this conversation it knows.

        What other agents were asked and answered is none of its business.
        """
        known = self.own | self.remote.keys()
        return [m for m in self.messages if m.message_id > self.told_through and m.message_id not in known]

    def asked(self, agent: str, message_ids: Collection[int]) -> None:
        """A remote agent is asked these, or answers by them."""
        self.remote = dict([*self.remote.items(), *dict.fromkeys(message_ids, agent).items()][-MAX_REMOTE:])

    def revise(self, message: MessageRecord) -> None:
        """Follows an edit: in the record, in replies that quote it, and in what the model is told."""
        before = self.find(message.message_id)
        self._change({message.message_id: message})
        # Its own it edits many times while it speaks, and Discord sends an edit for each link that it unfurls.
        is_edited = before is None or before.content != message.content
        if is_edited and not message.is_bot and message.message_id in self.remote:
            self._leave([self.remote[message.message_id]])
        if before and not message.is_bot and (before.content, before.mentions) != (message.content, message.mentions):
            self._replay(self.messages)

    def remove(self, message_ids: Collection[int]) -> None:
        """Drops messages for good: from the record, from replies that quote them, and from what the model is told.

        With one that the model said goes what the model is told that it said.
        """
        self._leave(self.remote[i] for i in message_ids if i in self.remote)
        own = (m.reply_to_id for m in self.messages if m.message_id in self.own and m.message_id in message_ids)
        self._unsay({question for question in own if question is not None})
        count = len(self.messages)
        self._change(dict.fromkeys(message_ids))
        if len(self.messages) < count:
            self._replay(self.messages)

    def forget(self, author_id: int) -> None:
        """Drops all that one person said, what others' replies quote of it, and what was answered to them."""
        told_of = {tag["message_id"] for tag in tags_in(self.llm_history) if tag["author_id"] == author_id}
        quoting = {tag["message_id"] for tag in tags_in(self.llm_history) if tag["reply_to_author_id"] == author_id}
        changes: Changes = dict.fromkeys(quoting)
        changes |= {i: None for i, m in self.revisions.items() if m and m.author_id == author_id}
        changes |= {
            m.message_id: replace(m, reply_to_text="") for m in self.messages if m.reply_to_author_id == author_id
        }
        theirs = {m.message_id for m in self.messages if author_id in (m.author_id, *m.addressees)}
        there = {m.message_id for m in self.messages}
        # Of a message that was trimmed it is not known whose it was.
        self._leave(agent for i, agent in self.remote.items() if i in theirs or i not in there)
        self._unsay(theirs | told_of)
        self._change(changes | dict.fromkeys(theirs | told_of))
        self.take_back([("person", author_id)])
        self.declines = self.declines.forget(author_id)
        self.told_off -= {author_id}
        self._replay(self.messages)

    def _leave(self, agents: Iterable[str]) -> None:
        """What they were told is to be forgotten, which they cannot be made to: with them it begins anew."""
        for agent in set(agents):
            self.states.pop(agent, None)
            self.left.add(agent)

    def _unsay(self, questions: set[int]) -> None:
        self.llm_history = unsaid(self.llm_history, questions)
        self.unsaid |= questions

    def _change(self, changes: Changes) -> None:
        quoting = {
            m.message_id: replace(m, reply_to_text=changed.text if changed else "")
            for m in self.messages
            if m.reply_to_id in changes and (changed := changes[m.reply_to_id]) is not m
        }
        changes = {**quoting, **changes}
        taken_back: list[Source] = [
            ("message", i) for i, new in changes.items() if not (new and self._has_words_of(new))
        ]
        self._keep([new for m in self.messages if (new := changes.get(m.message_id, m))])
        # A turn that runs was told the old words, and brings them back in its history.
        self.revisions = dict([*self.revisions.items(), *changes.items()][-MAX_REVISIONS:])
        self.llm_history = reworded(self.llm_history, changes)
        self.take_back(taken_back)

    def begin_turn(self) -> None:
        """From now on it counts what is taken back: what was before, the turn is not told."""
        self.taken_back = OrderedDict()

    def take_back(self, sources: Iterable[Source]) -> bool:
        """The agent keeps nothing of these, nor does it when the turn that runs has ended. Returns whether it did."""
        gone = dict.fromkeys(sources)
        self.taken_back.update(gone)
        while len(self.taken_back) > MAX_TAKEN_BACK:
            self.taken_back.popitem(last=False)
        before, self.llm_history = self.llm_history, without_words(self.llm_history, gone)
        changed = any(old is not new for old, new in zip(before, self.llm_history, strict=True))
        self.waits = any(map(waits_for, self.llm_history)) if changed else self.waits
        return changed

    def _has_words_of(self, message: MessageRecord) -> bool:
        """Whether the message is recorded with these words, and differs by an unfurled link or a quotation at most."""
        recorded = self.find(message.message_id)
        return recorded is not None and recorded.content == message.content

    def trim(self, max_messages: int, max_characters: int) -> None:
        """Drops the oldest messages once a cap is passed, down to three quarters of it, so that this is rare."""
        if len(self.messages) <= max_messages and self.size <= max_characters:
            return
        kept: list[MessageRecord] = []
        size = 0
        for message in reversed(self.messages):
            size += message.size
            if kept and (len(kept) >= max_messages * 3 // 4 or size > max_characters * 3 // 4):
                break
            kept.append(message)
        told_off = {who for who, person in self.engagement.people.items() if person.told_off}
        self._keep(kept[::-1])
        if told_off:
            left = ChannelConversation(self.channel_id, self.started_at, self.last_activity, [*self.messages])
            told_off = {who for who in told_off if not left.engagement.standing(who).told_off}
        self.told_off = frozenset(told_off)

    def current(self, llm_history: History) -> History:
        """What the model was told and said in the turn that runs, less what was deleted or edited while it spoke."""
        return without_words(reworded(unsaid(llm_history, self.unsaid), self.revisions), self.taken_back)

    def answered(self, llm_history: list[ModelMessage]) -> None:
        """Takes over what the model was told and said, as it is now."""
        self.llm_history = trim_history(self.current(llm_history), HISTORY_TOKENS)
        self.unsaid = set()
        self.waits = any(map(waits_for, self.llm_history))
        self.told_through = max([self.told_through, *(tag["message_id"] for tag in tags_in(llm_history))])

    def let_go(self, is_waiting: Callable[[str], bool]) -> bool:
        """Drops what runs keep that nobody will go on with. Returns whether there were any."""
        gone = {ask_id for m in self.llm_history if (ask_id := waits_for(m)) and not is_waiting(ask_id)}
        if gone:
            self.llm_history = [replace(m, metadata=None) if waits_for(m) in gone else m for m in self.llm_history]
        self.waits = any(map(waits_for, self.llm_history))
        return bool(gone)

    def stored(self) -> StoredConversation:
        return StoredConversation(
            started_at=self.started_at,
            last_activity=self.last_activity,
            since=max(self.since, min((m.message_id for m in self.messages), default=0)),
            told_through=self.told_through,
            own=frozenset(self.own),
            llm_history=self.llm_history,  # which is replaced, and never changed
            remote=dict(self.remote),
            states=dict(self.states),
            unwelcome=self.unwelcome,
            declines=self.declines,
        )

    def _keep(self, messages: list[MessageRecord]) -> None:
        self.messages = messages
        self.size = sum(m.size for m in messages)
        self.own &= {m.message_id for m in messages}
        self.names = {m.author_id: m.author for m in messages if not m.is_bot}
        self.called = index_of(self.names)
        self.named = {m.message_id: self.named.get(m.message_id, frozenset()) for m in messages}
        self.participants = set(self.names)

    def _engagement_of_trimmed(self) -> Engagement:
        """What is still known of messages that are trimmed."""
        if not self.told_off:
            return Engagement()
        people = {who: Standing(told_off=True) for who in self.told_off}
        return Engagement(bot=self.engagement.bot, bot_name=self.engagement.bot_name, people=people)

    def _replay(self, messages: Sequence[MessageRecord]) -> None:
        self.messages, self.size, self.named = [], 0, {}
        self.engagement = self.engagement_before = self._engagement_of_trimmed()
        for message in messages:
            self._append(message)


class ConversationManager:
    """The active conversations, one per channel at most.

    clock: gives the time as an aware datetime. max_messages, max_characters: what one conversation keeps at most.
    keeps_open: (channel id) -> whether its conversation outlasts the timeout, since an answer is awaited there.
    on_change: told the channel whose conversation changed by anything but a message that was recorded.
    """

    def __init__(
        self,
        timeout_seconds: float = 120,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        max_messages: int = 500,
        max_characters: int = 200_000,
        keeps_open: Callable[[int], bool] = lambda _channel_id: False,
        on_change: Callable[[int], None] = lambda _channel_id: None,
    ) -> None:
        self.timeout = timeout_seconds
        self._clock = clock
        self._max_messages = max_messages
        self._max_characters = max_characters
        self._keeps_open = keeps_open
        self._on_change = on_change
        self._conversations: dict[int, ChannelConversation] = {}
        self._holds: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._conversations)

    def get(self, channel_id: int) -> ChannelConversation | None:
        """The channel's conversation; None when there is none or it has expired, which frees it."""
        conversation = self._conversations.get(channel_id)
        if conversation is None or not self._expired(conversation):
            return conversation
        self.end(channel_id)
        return None

    def start(self, channel_id: int, initial_messages: Sequence[MessageRecord]) -> ChannelConversation:
        now = self._clock()
        conversation = ChannelConversation(channel_id, now, now, messages=list(initial_messages))
        self._conversations[channel_id] = conversation
        self._on_change(channel_id)
        return conversation

    def record_message(self, channel_id: int, message: MessageRecord, *, by_model: bool = True) -> None:
        """Adds a message to the channel's conversation, which lives on from now; without one, nothing."""
        conversation = self.get(channel_id)
        if conversation is None:
            return
        conversation.add(message, by_model=by_model)
        conversation.trim(self._max_messages, self._max_characters)
        conversation.last_activity = self._clock()

    def current(self, channel_id: int, llm_history: History) -> History | None:
        """As ChannelConversation.current; None where there is no conversation to have it."""
        conversation = self.get(channel_id)
        return conversation.current(llm_history) if conversation else None

    def touch(self, channel_id: int) -> None:
        """Something happened there: the channel's conversation, if there is one, lives on from now."""
        if conversation := self.get(channel_id):
            conversation.last_activity = self._clock()

    def record_bot_response(self, channel_id: int, llm_history: list[ModelMessage]) -> None:
        """Replaces what the model is given back next time."""
        conversation = self.get(channel_id)
        if conversation is not None:
            conversation.answered(llm_history)
            conversation.last_activity = self._clock()
            self._on_change(channel_id)

    def record_declined(self, channel_id: int, authors: Collection[int]) -> None:
        """The agent declined a turn with messages of these people."""
        if conversation := self.get(channel_id):
            conversation.declines = conversation.declines.after(authors, self._clock())
            self._on_change(channel_id)

    def record_call(self, channel_id: int, author_id: int) -> None:
        """This person mentioned the bot or replied to it."""
        if (conversation := self.get(channel_id)) and conversation.declines != NO_DECLINES:
            conversation.declines = conversation.declines.called(author_id)
            self._on_change(channel_id)

    def revise(self, channel_id: int, message: MessageRecord) -> bool:
        """Follows an edit of a recorded message. Returns whether anything changed."""
        return self._change(channel_id, lambda conversation: conversation.revise(message))

    def forget_messages(self, channel_id: int, message_ids: Collection[int]) -> None:
        """Follows a deletion."""
        self._change(channel_id, lambda conversation: conversation.remove(message_ids))

    def forget_author(self, channel_id: int, author_id: int) -> None:
        """Drops all that one person said in the channel."""
        self._change(channel_id, lambda conversation: conversation.forget(author_id))

    def record_agent_state(self, channel_id: int, agent: str, state: AgentState | None) -> None:
        """What a remote agent needs back next time; None: nothing."""
        conversation = self.get(channel_id)
        if conversation is None:
            return
        if state is not None and agent not in conversation.left:
            conversation.states[agent] = state
        conversation.left.discard(agent)
        conversation.last_activity = self._clock()
        self._on_change(channel_id)

    def follow(self, channel_id: int, unwelcome: Unwelcome | None = None) -> None:
        """Follows the channel's conversation again; unwelcome: no longer, since an unprompted answer was that."""
        conversation = self._conversations.get(channel_id)
        if conversation is not None and conversation.unwelcome is not unwelcome:
            conversation.unwelcome = unwelcome
            self._on_change(channel_id)

    def let_go(self, is_waiting: Callable[[int, str], bool]) -> list[int]:
        """Drops what runs keep that nobody will go on with. Returns the channels where there were any."""
        waiting = [c for c in self._conversations.values() if c.waits]
        changed = [c.channel_id for c in waiting if c.let_go(partial(is_waiting, c.channel_id))]
        for channel_id in changed:
            self._on_change(channel_id)
        return changed

    def take_back(self, *sources: Source) -> list[int]:
        """The agent keeps nothing of these anywhere, whatever channel they are of.

        Returns the channels where it did. Where a turn runs, it may have looked them up.
        """
        concerned = [c for c in self._conversations.values() if c.waits or self._holds[c.channel_id]]
        changed = [c.channel_id for c in concerned if c.take_back(sources)]
        for channel_id in changed:
            self._on_change(channel_id)
        return changed

    def forget_history(self, channel_id: int) -> None:
        """Drops what the model is given back; the messages stay."""
        self._change(channel_id, lambda conversation: conversation.answered([]))

    def _change(self, channel_id: int, change: Callable[[ChannelConversation], None]) -> bool:
        if (conversation := self.get(channel_id)) is None:
            return False
        before = conversation.messages, conversation.llm_history
        change(conversation)
        if before == (conversation.messages, conversation.llm_history):
            return False
        self._on_change(channel_id)
        return True

    def end_if_silent(self, channel_id: int, until: datetime) -> None:
        """Ends the channel's conversation if it had expired by then; holds do not count, which are about now."""
        conversation = self._conversations.get(channel_id)
        if conversation and self._was_left(conversation, until - conversation.last_activity):
            self.end(channel_id)

    def end(self, channel_id: int) -> None:
        if self._conversations.pop(channel_id, None):
            self._on_change(channel_id)

    def stored(self, channel_id: int) -> StoredConversation | None:
        """What its messages do not tell of the channel's conversation, for restore(); None where none is alive."""
        conversation = self._conversations.get(channel_id)
        return None if conversation is None or self._expired(conversation) else conversation.stored()

    def restore(
        self,
        channel_id: int,
        stored: StoredConversation,
        messages: Sequence[MessageRecord],
        *,
        at: datetime | None = None,
    ) -> ChannelConversation | None:
        """Takes up the conversation where it was left, unless the channel has one; None if it has expired since.

        messages: its own, oldest first. at: when it must have been alive, where not now; it then lives on from now.
        """
        if there := self.get(channel_id):
            return there
        conversation = ChannelConversation(
            channel_id,
            stored.started_at,
            max([stored.last_activity, *(m.timestamp for m in messages)]),
            messages=list(messages),
            llm_history=stored.llm_history,
            told_through=stored.told_through,
            own=set(stored.own),
            since=stored.since,
            remote=dict(stored.remote),
            states=dict(stored.states),
            unwelcome=stored.unwelcome,
            declines=stored.declines,
            waits=any(map(waits_for, stored.llm_history)),
        )
        if self._expired(conversation) if at is None else self._was_left(conversation, at - conversation.last_activity):
            return None
        if at is not None:
            conversation.last_activity = self._clock()  # it goes on with what is heard of only now
        conversation.trim(self._max_messages, self._max_characters)
        self._conversations[channel_id] = conversation
        return conversation

    @contextmanager
    def hold(self, channel_id: int) -> Iterator[None]:
        """Keeps the channel's conversation from expiring meanwhile: somebody is owed an answer."""
        self._holds[channel_id] += 1
        try:
            yield
        finally:
            self._holds[channel_id] -= 1
            self._holds += Counter()  # drops the counts of zero
            if conversation := self._conversations.get(channel_id):
                conversation.last_activity = max(conversation.last_activity, self._clock())

    def sweep(self) -> int:
        """Frees the expired conversations, touched again or not. Returns how many."""
        expired = [channel for channel, conversation in self._conversations.items() if self._expired(conversation)]
        for channel_id in expired:
            self.end(channel_id)
        return len(expired)

    def _expired(self, conversation: ChannelConversation) -> bool:
        idle = abs(self._clock() - conversation.last_activity)  # a clock that was set back must not keep it for ever
        return self._was_left(conversation, idle) and not self._holds[conversation.channel_id]

    def _was_left(self, conversation: ChannelConversation, idle: timedelta) -> bool:
        return idle > timedelta(seconds=self.timeout) and not self._keeps_open(conversation.channel_id)
