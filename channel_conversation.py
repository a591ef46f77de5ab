"""One channel's conversation: what was said, who takes part, and what the model has been told of it.

Pure and synchronous, and bounded: by a count and a size of messages, and by a token budget for the model's history.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic_ai.messages import ModelMessage, ModelRequest

from history_cut import Cut, as_context, cut
from llm_history import (
    Changes,
    History,
    people_in,
    people_told,
    reworded,
    sound,
    tags_in,
    told_in,
    unsaid,
    waits_for,
    without_words,
)
from remote_memory import RemoteMemory
from state.declines import Declines
from state.engagement import Engagement, Heard, Standing
from state.message import NOBODY, MessageRecord, Source, forget_older_wordings, newest_within, requoted
from state.optout import without_label, without_quote
from state.revisions import MAX_REVISIONS, Revisions
from stored_conversation import NO_DECLINES, LeftStates, Unwelcome, maybe_answered, people_of
from understanding.names import add_to, called_by_name, index_of

LONG_ANSWERS = 4  # answers after which a conversation may move to a thread


@dataclass(slots=True)
class ChannelConversation:
    """A channel's active stretch of messages. Mutable; changed through its manager.

    since: id of its first message, not counting earlier ones put before it. remote: what remote agents were told.
    names: user id to the author's name; called: a word to the user called by it, 0 where several share it. waits:
    whether a run in the history waits for an answer. taken_back: deleted messages and forgotten people since the turn
    began, with an id above all then; tainted: those people whose words its answer may have. looked_up: people whose
    words it has or had elsewhere than in its messages: in messages that were trimmed or changed, or read by tools, also
    from other channels, whose ids are here, too. unsaid: questions whose answers were dropped during the turn.
    told_off: people who told it off in trimmed messages. has_asked_for_thread: whether it offered to go on in a thread.
    came_from: the channel it moved here from, and the last message there. unwelcome: what was done to an unprompted
    answer; follow-ups are off until somebody calls the bot. has_answered: whether the current or last turn has recorded
    its history. passed_over: messages older than told_through that the model was not told, since each waited for a turn
    of its own, or whoever asked may not read them. is_revived: it had expired, and was restored for a missed message.
    """

    channel_id: int
    started_at: datetime
    last_activity: datetime
    messages: list[MessageRecord] = field(default_factory=list)
    llm_history: list[ModelMessage] = field(default_factory=list)
    told_through: int = -1
    passed_over: frozenset[int] = NOBODY
    names: dict[int, str] = field(default_factory=dict)
    called: dict[str, int] = field(default_factory=dict)
    own: frozenset[int] = NOBODY
    revisions: Revisions = field(default_factory=Revisions)
    unsaid: frozenset[int] = NOBODY
    looked_up: frozenset[int] = NOBODY
    tainted: frozenset[int] = NOBODY
    taken_back: OrderedDict[Source, int] = field(default_factory=OrderedDict)
    size: int = 0
    since: int = 0
    remote: RemoteMemory = field(default_factory=RemoteMemory)
    waits: bool = False
    told_off: frozenset[int] = frozenset()
    unwelcome: Unwelcome | None = None
    declines: Declines = NO_DECLINES
    has_answered: bool = False
    has_asked_for_thread: bool = False
    came_from: tuple[int, int] | None = None
    has_other_bots: bool = False
    is_revived: bool = False
    _heard: Heard = field(default_factory=Heard)
    _is_heard: bool = False

    def __post_init__(self) -> None:
        self.looked_up = self.looked_up.union(*(m.taken_from for m in self.messages)) or NOBODY
        self._hold([*self.messages])
        self._hear_again()
        self.since = self.since or next((m.message_id for m in self.messages), 0)

    def add(self, message: MessageRecord, *, by_model: bool = True) -> None:
        """Appends a message; replaces one of the bot's own that is there already, as a streamed answer grows.

        by_model: of the bot's own messages, whether the model wrote it, and so need not be told it.
        """
        if message.is_bot:
            message = self.drawing(message)
            self.own = self.own | {message.message_id} if by_model else self.own - {message.message_id} or NOBODY
            self.declines = self.declines if message.unasked else self.declines.answered()
        if others := message.taken_from:
            self.looked_up |= others
        if message.is_bot and self.tainted:  # it grows with words of the forgotten, and could be quoted until it ends
            self.remote.leave(self.remote.told([message.message_id]))
            self._unsay({message.reply_to_id} if message.reply_to_id else set())
            self._change({message.message_id: None})
            self._hear_again()
            return
        if message.is_bot and message.message_id and self.find(message.message_id):
            self.revise(message)
            return
        self.since = self.since or message.message_id
        self._hear(message, self.heard)

    def drawing(self, said: MessageRecord) -> MessageRecord:
        """One of the bot's messages, with the people whose words it may have."""
        people = self.people_told_of().union(self.remote.told_earlier(said.message_id), self.tainted)
        same = (m.drew_on for m in reversed(self.messages) if m.drew_on == people)
        return replace(said, drew_on=next(same, people))

    def _hear(self, message: MessageRecord, heard: Heard) -> None:
        self.messages.append(message)
        forget_older_wordings(self.messages)
        self.size += message.size
        self.has_other_bots |= message.is_other_bot
        if message.is_other_bot:
            return  # it is told, and no more: neither does it take part, nor does the bot stand in any way with it
        if not message.is_bot and self.names.get(message.author_id) != message.author:
            self.names[message.author_id] = message.author
            add_to(self.called, message.author_id, message.author)
        told_whom = message
        if message.reply_to_id is not None and message.reply_to_author_id is None:
            # Discord sent the reply without the message it answers: only the conversation knows its author.
            answered = self.find(message.reply_to_id)
            told_whom = replace(message, reply_to_author_id=answered.author_id) if answered else message
        called = called_by_name(message, self.names, self.called)
        if named := told_whom.named | called if called else told_whom.named:
            heard.named[message.message_id] = named
        heard.before = heard.engagement
        # An offer is addressed to nobody until it is accepted: what people say after it they say to each other.
        if not message.unasked:
            heard.engagement = heard.engagement.after(told_whom, called)

    def precede(self, earlier: Sequence[MessageRecord]) -> None:
        """Puts earlier messages before those of the conversation."""
        known = {m.message_id for m in self.messages}
        # What was edited or deleted while it was being read is so here, too.
        current = [now for m in earlier if m.message_id not in known and (now := self.revisions.get(m.message_id, m))]
        self.looked_up |= people_in(current)  # else unknown after a restart
        self._hold(current + self.messages)
        self._hear_again()

    def asks_for_thread(self, reply_to: int) -> bool:
        """Whether it is long enough for a thread; true only once. reply_to: the question about to be answered."""
        own = (m for m in self.messages if m.is_bot and m.message_id >= self.since)
        answered = {m.reply_to_id for m in own if m.reply_to_id is not None} | {reply_to}
        if self.has_asked_for_thread or len(answered) < LONG_ANSWERS:
            return False
        self.has_asked_for_thread = True
        return True

    def engagement_at(self, message: MessageRecord) -> Engagement:
        """The engagement before this message, whether or not it is already recorded."""
        return self.heard.before if self._is_newest(message) else self.engagement

    def before(self, message: MessageRecord, count: int) -> Sequence[MessageRecord]:
        """At most `count` messages of people and the bot before this one, whether or not it is already recorded."""
        end = len(self.messages) - self._is_newest(message)
        if self.has_other_bots:
            return [m for m in self.messages[:end] if not m.is_other_bot][-count:]
        return self.messages[max(end - count, 0) : end]

    def named_by(self, message: MessageRecord) -> frozenset[int]:
        """Whom a message mentions, replies to or calls by name, whether or not it is already recorded."""
        if self._is_newest(message):
            return self.heard.named.get(message.message_id, NOBODY)
        return message.named | called_by_name(message, self.names, self.called)

    @property
    def participants(self) -> Collection[int]:
        """The people who spoke."""
        return self.names.keys()

    def _is_newest(self, message: MessageRecord) -> bool:
        return bool(self.messages) and (self.messages[-1] is message or self.messages[-1] == message)

    def last_words_to(self, author_id: int) -> MessageRecord | None:
        """The bot's last message to this person."""
        return next((m for m in reversed(self.messages) if m.is_bot and author_id in m.addressees), None)

    def find(self, message_id: int) -> MessageRecord | None:
        for message in reversed(self.messages):  # most often it is the newest: a generator takes longer than the search
            if message.message_id == message_id:
                return message
        return None

    def latest(self, message_id: int) -> MessageRecord | None:
        """A message as it is, or was last edited after it was trimmed; None where that is not known."""
        return self.find(message_id) or self.revisions.get(message_id)

    def is_deleted(self, message_id: int) -> bool:
        """Whether a recorded message was deleted since, and not only trimmed."""
        return self.find(message_id) is None and self.revisions.get(message_id, self) is None

    def untold(self) -> list[MessageRecord]:
        """What the model was not told, oldest first, except its own messages and what other agents were asked."""
        known, through, passed = self.own | self.remote.asked.keys(), self.told_through, self.passed_over
        return [
            m for m in self.messages if (m.message_id > through or m.message_id in passed) and m.message_id not in known
        ]

    def people_told_of(self) -> frozenset[int]:
        """The people whom an answer given now may quote: the speakers, and those whom earlier answers may quote."""
        return people_in(self.messages) | self.looked_up | people_told(self.llm_history)

    def may_quote(self, message_id: int | None, author_id: int) -> bool:
        """Whether a message of the bot's may quote this person; True if the message is not known here."""
        said = self.find(message_id or 0)
        return said is None or author_id in said.drew_on

    def revise(self, message: MessageRecord, *, is_by_author: bool = True) -> None:
        """Applies an edit to the record, to replies that quote the message, and to the model's history.

        is_by_author: else its words, if they are not recorded here any more, are as they were.
        """
        before = self.find(message.message_id)
        self._change({message.message_id: message}, is_by_author=is_by_author)
        # The bot edits its own message many times as it streams, and Discord sends an edit for each unfurled link.
        is_edited = before.words_in(self.channel_id) != message.words_in(self.channel_id) if before else is_by_author
        if is_edited and not message.is_bot:
            self.remote.leave(self.remote.told([message.message_id]))
        if before and not message.is_bot and (before.content, before.mentions) != (message.content, message.mentions):
            self._hear_again()

    def remove(self, message_ids: Collection[int]) -> None:
        """Drops messages for good: from the record, from replies that quote them, and from the model's history.

        Of a message that the model wrote, the answer in the history goes too, and what may quote it: what tools were
        asked since, and waiting runs.
        """
        self.remote.leave(self.remote.told(message_ids))
        own = {m.reply_to_id or 0 for m in self.messages if m.message_id in self.own and m.message_id in message_ids}
        first = self.messages[0].message_id if self.messages else max(message_ids, default=0) + 1
        answered = own - {0} | maybe_answered(self.llm_history, message_ids, first)
        self._unsay(answered)
        self.take_back(("message", question) for question in answered)
        before = self.messages
        self._change(dict.fromkeys(message_ids))
        if len(self.messages) < len(before):
            self._hear_again()

    def forget(self, author_id: int) -> None:
        """Drops everything one person said, quotes of it, answers to this person, and answers that may quote them."""
        self.take_back([("person", author_id)])
        if self.remote.asked:  # the author of a trimmed message is not known any more
            others = {m.message_id for m in self.messages if author_id not in people_in([m])}
            self.remote.leave(agent for message_id, agent in self.remote.asked.items() if message_id not in others)
        self.remote.forget(author_id)
        self.declines = self.declines.forget(author_id)
        people = self.people_told_of().union(self.told_off, people_of(self.remote.told_before.values()))
        if author_id not in people:  # to go through all conversations of all channels would block the event loop
            return
        self.told_off -= {author_id}
        self.tainted |= {author_id}
        known = (*self.revisions.edited, *self.messages)  # those edited may be trimmed, and still be told
        replies = [m for m in known if m.reply_to_id is not None]
        # A quote of what is not recorded any more may be of an answer of the bot's with their words.
        here = {m.message_id for m in self.messages}
        unsure = [m for m in replies if m.reply_to_id not in here] if author_id in self.looked_up else []
        changes: Changes = {m.message_id: requoted(m, None) for m in unsure}
        changes |= {m.message_id: without_quote(m) for m in replies if m.reply_to_author_id == author_id}
        changes |= {m.message_id: without_label(m) for m in known if m.is_label and author_id in m.drew_on}
        theirs = {m.message_id for m in known if author_id in (m.author_id, *m.forwarded_from)}
        answers = [m for m in known if m.is_bot and author_id in m.drew_on | m.addressees]
        self._unsay({m.reply_to_id for m in answers if m.reply_to_id is not None})
        self._change(changes | dict.fromkeys(theirs) | dict.fromkeys(m.message_id for m in answers))
        self.looked_up -= {author_id}
        self.llm_history = reworded(self._sound(self.llm_history), self._lost_from(self.llm_history))
        self.waits = any(map(waits_for, self.llm_history))
        self._hear_again()

    def _sound(self, history: History) -> History:
        """A history with only those answers of which it is recorded that they have no words of the forgotten."""
        return sound(history, [m for m in self.messages if m.is_bot], self.tainted) if self.tainted else history

    def _lost_from(self, history: History) -> Changes:
        """The messages of a history that are not recorded any more, so that they may have words of the forgotten."""
        if not self.tainted:
            return {}
        # An edit tells neither whose words the bot's message has, nor from where the one is with which a thread began.
        edited = [m for m in self.revisions.edited if not m.is_bot and m.message_id != self.channel_id]
        known = {m.message_id: m for m in (*edited, *self.messages)}
        lost: Changes = dict.fromkeys({tag["message_id"] for tag in tags_in(history)} - known.keys())
        return lost | {message_id: m for message_id, m in known.items() if m.reply_to_id in lost}

    def left_states(self) -> LeftStates:
        """The remote agents' states for the channel's next conversation."""
        people = {m.message_id: (*m.addressees,) if m.is_bot else m.said_by for m in self.messages}
        return self.remote.left_states(people, self.looked_up, self.last_activity)

    def _unsay(self, questions: set[int]) -> None:
        self.unsaid |= questions
        self.llm_history = self._unsaid(self.llm_history)

    def _unsaid(self, history: History) -> History:
        return unsaid(history, lambda told: not told.isdisjoint(self.unsaid)) if self.unsaid else history

    def _change(self, changes: Changes, *, is_by_author: bool = True) -> None:
        quoting = {
            m.message_id: requoted(m, changed) if changed or not m.is_label else without_label(m)
            for m in (*self.revisions.edited, *self.messages)  # those edited may be trimmed, and still be told
            if m.reply_to_id in changes and (changed := changes[m.reply_to_id]) is not m
        }
        changes = {**quoting, **changes}
        # A message that differs only by an unfurled link or a quotation has the same words.
        here = self.channel_id
        words = {m.message_id: m.words_in(here) for m in self.messages if m.message_id in changes}
        gone = [
            i
            for i, new in changes.items()
            if new is None or (words[i] != new.words_in(here) if i in words else is_by_author)
        ]
        self._keep([new for m in self.messages if (new := changes.get(m.message_id, m))])
        # A running turn was told the old words, and will bring them back in its history.
        self.revisions.note(changes)
        self.llm_history = reworded(self.llm_history, changes)
        self.take_back(("message", i) for i in gone)

    def begin_turn(self) -> None:
        """Begins to note what is taken back from now on; a turn that begins is not told what was taken back before."""
        self.taken_back, self.tainted, self.has_answered = OrderedDict(), NOBODY, False

    def take_back(self, sources: Iterable[Source]) -> bool:
        """Drops what the agent keeps of these sources, now and when the turn ends. Returns whether it kept any."""
        until = max((m.message_id + 1 for m in self.messages), default=0)  # an id above those of its messages
        gone = {source: max(until, self.taken_back.get(source, 0)) for source in sources}
        self.taken_back.update(gone)
        while len(self.taken_back) > MAX_REVISIONS:
            self.taken_back.popitem(last=False)
        before, self.llm_history = self.llm_history, without_words(self.llm_history, gone)
        changed = any(old is not new for old, new in zip(before, self.llm_history, strict=True))
        self.waits = any(map(waits_for, self.llm_history)) if changed else self.waits
        return changed

    def trim(self, max_messages: int, max_characters: int) -> None:
        """Drops the oldest messages once a cap is passed: down to three quarters of it, so that this is rare."""
        if len(self.messages) <= max_messages and self.size <= max_characters:
            return
        kept = newest_within(self.messages, max_messages * 3 // 4, max_characters * 3 // 4)
        told_off = {who for who, person in self.engagement.people.items() if person.told_off}
        self._keep(kept)
        if told_off:
            left = ChannelConversation(self.channel_id, self.started_at, self.last_activity, [*self.messages])
            told_off = {who for who in told_off if not left.engagement.standing(who).told_off}
        self.told_off = frozenset(told_off)

    def current(self, llm_history: History, asked: Sequence[MessageRecord] = ()) -> History:
        """A running turn's history with the deletions and edits made since the turn began. asked: its questions as they
        are now, of which some, or their words, are not recorded here."""
        # Only the history knows whose a trimmed message was that somebody forgotten had said, or that quotes them.
        tags = tags_in(llm_history)
        said = ((t["message_id"], who) for t in tags for who in (t["author_id"], t["reply_to_author_id"] or 0))
        gone = dict.fromkeys(i for i, who in said if i < self.taken_back.get(("person", who), 0))
        lost, kept = self._lost_from(llm_history), self._sound(llm_history)
        changes: Changes = {**gone, **self.revisions, **lost}
        trimmed = {i for i in lost if self.revisions.get(i, self) is not None}
        stay = {m.message_id for m in asked if m.message_id in trimmed and people_in([m]).isdisjoint(self.tainted)}
        changes |= {m.message_id: m for m in asked if m.message_id in stay or changes.get(m.message_id)}
        return without_words(reworded(self._unsaid(kept), changes), self.taken_back)

    def answered(self, llm_history: list[ModelMessage]) -> None:
        """Takes over a finished turn's history, with the deletions and edits made since the turn began."""
        self.llm_history = self.current(llm_history)
        self.unsaid, self.has_answered = NOBODY, bool(self.llm_history)
        self.waits = any(map(waits_for, self.llm_history))
        told = {one for message in llm_history if isinstance(message, ModelRequest) for one in told_in(message)}
        self.told_through = max([self.told_through, *told])
        self.passed_over = self.passed_over and self.passed_over - told

    def cut(self, max_tokens: int) -> Cut | None:
        """What to cut from the model's history so that it fits this many tokens; None where it fits."""
        made = cut(self.llm_history, max_tokens, own := [m for m in self.messages if m.is_bot])
        if made and made.start:  # its answers may have words in them that were looked up, or that are deleted by now
            left = {tag["message_id"] for tag in tags_in(self.llm_history[made.start :])}
            drawn_on = (m.drew_on for m in own if m.reply_to_id not in left)
            people = made.origin.people.union(self.looked_up, *drawn_on)
            return replace(made, origin=replace(made.origin, people=people))
        return made

    def shorten(self, made: Cut, summary: str = "") -> str:
        """Cuts the model's history and begins it with this summary of what was cut. Returns the summary; empty where
        some of what it was made of has been taken back since, so that it is not used."""
        if len(self.llm_history) != made.length:  # the whole history was forgotten
            return ""
        if made.origin.is_among(self.taken_back):
            summary = ""
        self.llm_history = made.after(self.llm_history, as_context(summary, made.origin) if summary else [])
        self.waits = any(map(waits_for, self.llm_history))
        return summary

    def let_go(self, is_waiting: Callable[[str], bool]) -> bool:
        """Drops the state of waiting runs that nobody will resume. Returns whether there were any."""
        gone = {ask_id for m in self.llm_history if (ask_id := waits_for(m)) and not is_waiting(ask_id)}
        if gone:
            self.llm_history = [replace(m, metadata=None) if waits_for(m) in gone else m for m in self.llm_history]
        self.waits = any(map(waits_for, self.llm_history))
        return bool(gone)

    def _keep(self, messages: list[MessageRecord]) -> None:
        left = {m.message_id: m for m in messages}
        for before in self.messages:
            if (now := left.get(before.message_id)) is not before:  # also a reply whose quote goes
                self.looked_up |= people_in([before]) - people_in([now] if now else [])
        self._hold(messages)
        self.own, self.passed_over = (kept and kept.intersection(left) for kept in (self.own, self.passed_over))
        self._heard.named = {message_id: named for message_id, named in self._heard.named.items() if message_id in left}

    def _hold(self, messages: list[MessageRecord]) -> None:
        self.messages = messages
        self.size = sum(m.size for m in messages)
        self.has_other_bots = any(m.is_other_bot for m in messages)
        self.names = {m.author_id: m.author for m in messages if m.is_persons}
        self.called = index_of(self.names)

    def _hear_again(self) -> None:
        """Drops what is derived from the messages until it is next used: to read them all takes milliseconds, and
        somebody may be forgotten in many conversations at once."""
        trimmed, before = Engagement(), self._heard.engagement
        if self.told_off:  # the only thing still known of trimmed messages
            people = {who: Standing(told_off=True) for who in self.told_off}
            trimmed = Engagement(bot=before.bot, bot_name=before.bot_name, people=people)
        self._heard, self._is_heard = Heard(trimmed, trimmed), False

    @property
    def heard(self) -> Heard:
        """Whom its messages name, and how people stand with the bot after them."""
        if not self._is_heard:
            self._is_heard = True
            messages, self.messages, self.size, self.names, self.called = self.messages, [], 0, {}, {}
            for message in messages:
                self._hear(message, self._heard)
        return self._heard

    @property
    def engagement(self) -> Engagement:
        return self.heard.engagement
