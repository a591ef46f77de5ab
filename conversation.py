"""The active conversations: a channel has one at most, which lives while somebody speaks at least once per timeout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial

from pydantic_ai.messages import ModelMessage

from channel_conversation import ChannelConversation
from clock import Clock, utc_now
from history_cut import Cut
from llm_history import History, waits_for
from remote_memory import RemoteMemory
from state.agent_state import AgentState
from state.message import NOBODY, MessageRecord, Source
from stored_conversation import NO_DECLINES, UNKNOWN, LeftStates, StoredConversation, Unwelcome, people_of
from understanding.shared_context import mentioning

__all__ = [
    "ChannelConversation",
    "ConversationManager",
    "LeftStates",
    "MessageRecord",
    "StoredConversation",
    "Unwelcome",
]


class ConversationManager:
    """The active conversations, one per channel at most.

    clock: returns the time as an aware datetime. max_messages, max_characters: caps of one conversation.
    agent_state_seconds: how long remote agents' states outlive a conversation, for the channel's next one.
    keeps_open: (channel id, time) -> whether its conversation outlives the timeout, as an answer is awaited there then.
    is_behind: (channel id) -> whether missed messages there are still to be read, by this process or the next. Until
    then it is not known whether somebody continued the conversation in time, so it does not expire.
    on_change: called with the channel id on every change except a recorded message.
    """

    def __init__(
        self,
        timeout_seconds: float = 120,
        *,
        clock: Clock = utc_now,
        max_messages: int = 500,
        max_characters: int = 200_000,
        agent_state_seconds: float = 86_400,
        keeps_open: Callable[[int, datetime], bool] = lambda _channel_id, _at: False,
        is_behind: Callable[[int], bool] = lambda _channel_id: False,
        on_change: Callable[[int], None] = lambda _channel_id: None,
    ) -> None:
        self._timeout = timedelta(seconds=timeout_seconds)
        self._clock = clock
        self._max_messages = max_messages
        self._max_characters = max_characters
        self._agent_state = timedelta(seconds=agent_state_seconds)
        self._keeps_open = keeps_open
        self._is_behind = is_behind
        self._on_change = on_change
        self._conversations: dict[int, ChannelConversation] = {}
        self._left: dict[int, LeftStates] = {}
        self._holds: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._conversations)

    def get(self, channel_id: int) -> ChannelConversation | None:
        """The channel's conversation; None when there is none or it has expired, which frees it."""
        conversation = self._conversations.get(channel_id)
        if conversation is None or not self._expired(conversation):
            return conversation
        self._expire(conversation)
        return None

    def names_of(self, people: Collection[int]) -> dict[int, str]:
        """The names of those of these people who have spoken in an active conversation, by user id."""
        wanted = frozenset(people)
        found = (conversation.names for conversation in self._conversations.values())
        return {who: names[who] for names in found for who in wanted & names.keys()}

    def start(
        self,
        channel_id: int,
        initial_messages: Sequence[MessageRecord],
        told_off: frozenset[int] = frozenset(),
    ) -> ChannelConversation:
        """Begins a conversation. told_off: people who told the bot to keep out in messages that are not included."""
        now = self._clock()
        conversation = ChannelConversation(channel_id, now, now, messages=list(initial_messages), told_off=told_off)
        left = self.left_states(channel_id)
        self._left.pop(channel_id, None)
        if left:
            conversation.remote = RemoteMemory(states=dict(left.states), told_before=dict(left.told))
        self._conversations[channel_id] = conversation
        self._on_change(channel_id)
        return conversation

    def record_message(self, channel_id: int, message: MessageRecord, *, by_model: bool = True) -> None:
        """Adds a message to the channel's conversation and restarts its timeout. Does nothing where there is none."""
        if conversation := self.get(channel_id):
            self.record_in(conversation, message, by_model=by_model)

    def record_in(self, conversation: ChannelConversation, message: MessageRecord, *, by_model: bool = True) -> None:
        """Adds a message to an active conversation and restarts its timeout."""
        conversation.add(message, by_model=by_model)
        conversation.trim(self._max_messages, self._max_characters)
        conversation.last_activity = self._clock()

    def current(self, channel_id: int, llm_history: History) -> History | None:
        """As ChannelConversation.current; None where there is no conversation any more."""
        conversation = self.get(channel_id)
        return conversation.current(llm_history) if conversation else None

    def find(self, channel_id: int, message_id: int) -> MessageRecord | None:
        """The message as recorded in the channel's conversation."""
        conversation = self.get(channel_id)
        return conversation.find(message_id) if conversation else None

    def read_or_answered(self, channel_id: int) -> frozenset[int]:
        """The people whom the bot answered in the channel's conversation, and those whose words tools or earlier
        answers brought there."""
        if (conversation := self.get(channel_id)) is None:
            return NOBODY
        return conversation.looked_up.union(*(m.addressees for m in conversation.messages if m.is_bot))

    def answered_by(self, channel_id: int, message_ids: Collection[int]) -> set[int]:
        """The ids of the questions that any of these messages of the bot's answer, as far as recorded."""
        conversation = self.get(channel_id)
        own = [m for m in conversation.messages if m.is_bot and m.message_id in message_ids] if conversation else []
        return {m.reply_to_id for m in own if m.reply_to_id is not None}

    def touch(self, channel_id: int) -> None:
        """Restarts the timeout of the channel's conversation, if there is one."""
        if conversation := self.get(channel_id):
            conversation.last_activity = self._clock()

    def record_bot_response(self, channel_id: int, llm_history: list[ModelMessage]) -> None:
        """Replaces the model's history once a turn has ended."""
        if conversation := self.get(channel_id):
            conversation.answered(llm_history)
            conversation.last_activity = self._clock()
            self._on_change(channel_id)

    def shorten(self, channel_id: int, cut: Cut, summary: str) -> str:
        """As ChannelConversation.shorten; empty where there is no conversation any more."""
        if (conversation := self.get(channel_id)) is None:
            return ""
        summary = conversation.shorten(cut, summary)
        self._on_change(channel_id)
        return summary

    def record_declined(self, channel_id: int, authors: Collection[int]) -> None:
        """Notes that the agent declined a turn with messages of these people."""
        if conversation := self.get(channel_id):
            conversation.declines = conversation.declines.after(authors, self._clock())
            self._on_change(channel_id)

    def record_call(self, channel_id: int, author_id: int) -> None:
        """Notes that this person mentioned the bot or replied to it."""
        if (conversation := self.get(channel_id)) and conversation.declines != NO_DECLINES:
            conversation.declines = conversation.declines.called(author_id)
            self._on_change(channel_id)

    def revise(self, channel_id: int, message: MessageRecord, *, is_by_author: bool = True) -> bool:
        """Applies a changed message, as ChannelConversation.revise does. Returns whether anything changed."""
        if is_by_author:
            self._drop_left(channel_id, lambda message_id, _: message_id == message.message_id)
        return self._change(channel_id, lambda talk: talk.revise(message, is_by_author=is_by_author))

    def forget_messages(self, channel_id: int, message_ids: Collection[int]) -> None:
        """Applies a deletion."""
        self._drop_left(channel_id, lambda message_id, _: message_id in message_ids)
        self._change(channel_id, lambda conversation: conversation.remove(message_ids))

    def retract(self, channel_id: int, message_id: int) -> None:
        """Drops a message of an answer that the bot itself deleted. The answer stays in the model's history, since its
        other messages hold the text."""
        if conversation := self.get(channel_id):
            conversation.own -= {message_id}
            conversation.remote.asked.pop(message_id, None)
        self.forget_messages(channel_id, [message_id])

    def forget_author(self, channel_id: int, author_id: int) -> None:
        """Drops everything one person said in the channel."""
        self._drop_left(channel_id, lambda _, people: author_id in people or UNKNOWN in people)
        self._change(channel_id, lambda conversation: conversation.forget(author_id))

    def record_agent_state(self, channel_id: int, agent: str, state: AgentState | None) -> None:
        """Keeps a remote agent's state for its next question; None: there is none to keep."""
        if conversation := self.get(channel_id):
            if state is not None and agent not in conversation.remote.left:
                conversation.remote.states[agent] = state
            conversation.remote.left -= {agent}
            conversation.last_activity = self._clock()
            self._on_change(channel_id)

    def record_looked_up(self, channel_id: int, sources: Iterable[Source]) -> None:
        """Notes whose words tools gave the agent, and from which other channels."""
        found = [(kind, one) for kind, one in sources if kind == "person" or (kind == "channel" and one != channel_id)]
        origins = {one for _, one in found}
        if (conversation := self.get(channel_id)) and not origins <= conversation.looked_up:
            # One of them may have been forgotten after the tool read these words.
            conversation.tainted |= {source[1] for source in found if source in conversation.taken_back}
            conversation.looked_up |= origins
            self._on_change(channel_id)

    def drawing_on(self, channel_id: int) -> list[int]:
        """The other channels whose conversations have words that tools read in this one, or whose remote agents know
        some that were forwarded from it."""
        told = {i: c.remote.told_before for i, c in self._conversations.items()} | {
            i: s.told for i, s in self._left.items()
        }
        known = {i for i, by_agent in told.items() if channel_id in people_of(by_agent.values())}
        return [*known.union(c.channel_id for c in self._conversations.values() if channel_id in c.looked_up)]

    def record_shared(self, channel_id: int, agent: str, words: Collection[str]) -> None:
        """Notes words that a remote agent is told beside its questions. When a message with one of them is deleted, the
        agent begins a new conversation."""
        if conversation := self.get(channel_id):
            spoken = [m for m in conversation.messages if not m.is_bot]
            conversation.remote.tell_beside(agent, [*filter(mentioning(words, spoken), spoken)])
            self._on_change(channel_id)

    def follow(self, channel_id: int, unwelcome: Unwelcome | None = None) -> None:
        """Follows the channel's conversation again, or, with `unwelcome`, stops following it for this reason."""
        conversation = self._conversations.get(channel_id)
        if conversation is not None and conversation.unwelcome is not unwelcome:
            conversation.unwelcome = unwelcome
            self._on_change(channel_id)

    def let_go(self, is_waiting: Callable[[int, str], bool]) -> list[int]:
        """Drops the state of waiting runs that nobody will resume. Returns the channels where there were any."""
        waiting = [c for c in self._conversations.values() if c.waits]
        return self._changed(c.channel_id for c in waiting if c.let_go(partial(is_waiting, c.channel_id)))

    def take_back(self, *sources: Source) -> list[int]:
        """Drops what the agent keeps of these sources in every channel, as a running turn may have looked them up.

        Returns the channels where it kept any.
        """
        concerned = [c for c in self._conversations.values() if c.waits or self._holds[c.channel_id]]
        return self._changed(c.channel_id for c in concerned if c.take_back(sources))

    def _changed(self, channel_ids: Iterable[int]) -> list[int]:
        changed = list(channel_ids)
        for channel_id in changed:
            self._on_change(channel_id)
        return changed

    def forget_history(self, channel_id: int) -> None:
        """Drops the model's history; the messages stay."""
        self._change(channel_id, lambda conversation: conversation.answered([]))

    def _change(self, channel_id: int, change: Callable[[ChannelConversation], None]) -> bool:
        if (conversation := self.get(channel_id)) is None:
            return False
        before = conversation.messages, conversation.llm_history, conversation.remote.left
        change(conversation)
        if before == (conversation.messages, conversation.llm_history, conversation.remote.left):
            return False
        self._on_change(channel_id)
        return True

    def end_if_silent(self, channel_id: int, until: datetime) -> None:
        """Ends the channel's conversation if it had expired by then, unless somebody waits for an answer in it."""
        conversation = self._conversations.get(channel_id)
        if conversation is None or self._holds[channel_id]:
            return
        active = conversation.last_activity
        if active > until and conversation.is_revived:
            active = max((m.timestamp for m in conversation.messages), default=until)
        if self.is_over(channel_id, until - active, until):
            self._expire(conversation)

    def move(self, channel_id: int, thread_id: int) -> None:
        """Moves the conversation to a thread, or back, with its messages; there the model is told all of them again."""
        if conversation := self.get(channel_id):
            last = conversation.messages[-1:]
            moved = self.start(thread_id, conversation.messages, conversation.told_off)
            # Not the first of the messages put before the conversation, which are not stored with it.
            moved.since = conversation.since
            moved.unwelcome, moved.declines = conversation.unwelcome, conversation.declines
            moved.looked_up = conversation.looked_up  # it may stand in what replies quote
            is_back = conversation.came_from is not None and conversation.came_from[0] == thread_id
            moved.came_from = (channel_id, last[0].message_id) if last and not is_back else None
            self.end(channel_id)

    def unopened(self) -> list[tuple[int, int]]:
        """The threads to which a conversation moved and where nothing was said yet, each with the channel before it."""
        found = ((c, c.came_from, c.messages[-1:]) for c in self._conversations.values())
        return [(c.channel_id, came[0]) for c, came, last in found if came and last and last[0].message_id <= came[1]]

    def moved_from(self, channel_id: int) -> list[int]:
        """The ids of the places to which conversations of this channel moved."""
        return [c.channel_id for c in self._conversations.values() if c.came_from and c.came_from[0] == channel_id]

    def end(self, channel_id: int) -> None:
        """Drops everything kept of the channel."""
        conversation, left = self._conversations.pop(channel_id, None), self._left.pop(channel_id, None)
        if conversation or left:
            self._on_change(channel_id)

    def stored(self, channel_id: int) -> StoredConversation | None:
        """What its messages do not tell of the channel's conversation, for restore(); None where none is alive."""
        kept = self._conversations.get(channel_id)
        if kept is None or self._expired(kept):
            return None
        return StoredConversation(
            started_at=kept.started_at,
            last_activity=kept.last_activity,
            since=max(kept.since, min((m.message_id for m in kept.messages), default=0)),
            told_through=kept.told_through,
            passed_over=kept.passed_over,
            own=kept.own,
            llm_history=kept.llm_history,  # which is replaced, and never changed
            remote=dict(kept.remote.asked),
            states=dict(kept.remote.states),
            left=kept.remote.left,
            told_before=dict(kept.remote.told_before),
            unwelcome=kept.unwelcome,
            declines=kept.declines,
            looked_up=kept.looked_up,
            has_asked_for_thread=kept.has_asked_for_thread,
            came_from=kept.came_from,
        )

    def left_states(self, channel_id: int) -> LeftStates | None:
        """Remote agents' states for the channel's next conversation; None where there are none, or one is active."""
        conversation = self._conversations.get(channel_id)
        left = conversation.left_states() if conversation and self._expired(conversation) else None
        left = left or self._left.get(channel_id)
        return left if left and left.states and abs(self._clock() - left.at) <= self._agent_state else None

    def restore_left(self, channel_id: int, left: LeftStates) -> None:
        """Restores what left_states() gave."""
        self._left[channel_id] = left

    def told_before(self, channel_id: int) -> Collection[int]:
        """The ids of the messages that remote agents were told in earlier conversations of the channel."""
        known = self._left.get(channel_id) or self._conversations.get(channel_id)
        if known is None:
            return []
        told = known.told if isinstance(known, LeftStates) else known.remote.told_before
        return {message_id for ids in told.values() for message_id in ids}

    def _expire(self, conversation: ChannelConversation) -> None:
        self._conversations.pop(conversation.channel_id, None)
        if conversation.remote.states:
            self._left[conversation.channel_id] = conversation.left_states()
        self._on_change(conversation.channel_id)

    def _drop_left(self, channel_id: int, is_gone: Callable[[int, Collection[int]], bool]) -> None:
        self.get(channel_id)  # frees an expired conversation, whose states then are in _left
        if (left := self._left.get(channel_id)) and (rest := left.without(is_gone)) is not left:
            self._left[channel_id] = rest
            self._on_change(channel_id)

    def restore(
        self,
        channel_id: int,
        stored: StoredConversation,
        messages: Sequence[MessageRecord],
        *,
        at: datetime | None = None,
    ) -> ChannelConversation | None:
        """Restores a stored conversation, unless the channel has one; None if it has expired since.

        messages: its own, oldest first. at: the time at which it must not have expired, None: now. With a time given,
        its timeout restarts now.
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
            passed_over=stored.passed_over or NOBODY,
            own=stored.own,
            since=stored.since,
            remote=RemoteMemory(dict(stored.remote), dict(stored.states), stored.left, dict(stored.told_before)),
            unwelcome=stored.unwelcome,
            declines=stored.declines,
            looked_up=stored.looked_up,
            has_asked_for_thread=stored.has_asked_for_thread,
            came_from=stored.came_from,
            waits=any(map(waits_for, stored.llm_history)),
        )
        now = self._clock()
        idle = at - conversation.last_activity if at else abs(now - conversation.last_activity)
        if self.is_over(channel_id, idle, at or now) and (at or not self._holds[channel_id]):
            if conversation.remote.states:
                self._left[channel_id] = conversation.left_states()
            return None
        self._left.pop(channel_id, None)
        if at is not None:
            # It continues with messages that are only read now.
            conversation.last_activity, conversation.is_revived = now, True
        conversation.trim(self._max_messages, self._max_characters)
        self._conversations[channel_id] = conversation
        return conversation

    @contextmanager
    def hold(self, channel_id: int) -> Iterator[None]:
        """Keeps the channel's conversation from expiring while somebody waits for an answer."""
        self._holds[channel_id] += 1
        try:
            yield
        finally:
            self._holds[channel_id] -= 1
            self._holds += Counter()  # drops the counts of zero
            if conversation := self._conversations.get(channel_id):
                conversation.last_activity = max(conversation.last_activity, self._clock())

    def sweep(self) -> int:
        """Frees expired conversations, and outdated states of remote agents. Returns how many conversations."""
        expired = [conversation for conversation in self._conversations.values() if self._expired(conversation)]
        for conversation in expired:
            self._expire(conversation)
        for channel_id in [channel_id for channel_id in self._left if not self.left_states(channel_id)]:
            del self._left[channel_id]
            self._on_change(channel_id)
        return len(expired)

    def _expired(self, conversation: ChannelConversation) -> bool:
        now, channel_id = self._clock(), conversation.channel_id
        idle = abs(now - conversation.last_activity)  # a clock that was set back must not keep it for ever
        if idle <= self._timeout:  # as nearly always, several times a message
            return False
        return self.is_over(channel_id, idle, now) and not (self._holds[channel_id] or self._is_behind(channel_id))

    def is_over(self, channel_id: int, idle: timedelta, at: datetime) -> bool:
        """Whether the channel's conversation expires at this time, after this long a silence."""
        return idle > self._timeout and not self._keeps_open(channel_id, at)
