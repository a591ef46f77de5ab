"""Holders, which keep something of a channel or person, and the loops over all of them.

A new one is a subclass of Holder, and a line in wiring.py that registers it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol

import orjson

from clock import Clock
from conversation import ConversationManager, LeftStates, MessageRecord, StoredConversation, Unwelcome
from decider import RecentDecisions
from discord_io.backlog import id_at
from discord_io.discord_wire import Wires
from discord_io.inbox import Inbox
from discord_io.prompt_cards import PromptCards
from followup.learning import Learning
from miniapps.router import MiniAppRouter
from offers.offer_channels import OfferChannels
from offers.proactive_offers import ProactiveOffers
from persistence.snapshots import Snapshots
from persistence.stored_state import Encode, Kept, as_json
from place_settings.guild_settings import GuildSettings
from state.awaiting import ConversationStateManager
from state.message import Appended, Source, requoted
from turns.pending_turns import PendingTurns
from turns.records import Records
from understanding.stopping import Stop, read_stop


@dataclass(frozen=True, slots=True)
class Edit:
    """A person's message that changed in Discord.

    message: as it is now. before: as recorded in the channel's conversation; None: it is not in there. is_by_author:
    its author edited it; False: a link was unfurled, or the message was pinned.
    """

    channel_id: int
    guild_id: int
    message: MessageRecord
    before: MessageRecord | None
    is_by_author: bool

    @property
    def is_reworded(self) -> bool:
        """Whether its author changed its words, or the title of the post that it opens."""
        before, here = self.before, self.channel_id
        return before is not None and before.words_in(here) != self.message.words_in(here)

    @property
    def may_be_reworded(self) -> bool:
        """Whether its author changed its words, or may have, as the old words are unknown."""
        return self.is_by_author and (self.before is None or self.is_reworded)


@dataclass(frozen=True, slots=True)
class Forget:
    """A request to forget messages in some channels.

    message_ids: the messages that were deleted; None: all messages up to the id `through`. author_id: only this
    person's; None: everybody's. guild_id: the guild of the channels, if the bot has left it. is_gone: the channels were
    deleted.
    """

    channel_ids: Collection[int]
    message_ids: frozenset[int] | None = None
    author_id: int | None = None
    guild_id: int | None = None
    through: int = 0
    is_gone: bool = False

    def covers(self, message: MessageRecord) -> bool:
        if self.message_ids is not None:
            return message.message_id in self.message_ids
        taken_from = (*message.addressees, *message.drew_on) if message.is_bot else message.forwarded_from
        return self.author_id in (None, message.author_id, *taken_from)

    def covers_quote(self, message: MessageRecord) -> bool:
        if self.message_ids is not None:
            return message.reply_to_id in self.message_ids
        return self.author_id in (None, message.reply_to_author_id, *message.quoted_from)

    @property
    def sources(self) -> list[Source]:
        """The sources of words that agents must not keep, also where they looked them up from another channel."""
        if self.message_ids is not None:
            return [("message", message_id) for message_id in self.message_ids]
        if self.author_id is not None:
            return [("person", self.author_id)]
        return [("channel", channel_id) for channel_id in self.channel_ids]


class Holder(Kept):
    """Keeps something of a channel or person; subclasses override the methods that concern them."""

    def revised(self, edit: Edit) -> bool:  # noqa: ARG002 - most keep nothing of it
        """Applies an edit. Returns whether stored snapshots contain the old words and must be written again."""
        return False

    def forget(self, what: Forget) -> None:
        """Drops what is to be forgotten."""

    def expire(self, before: datetime) -> None:
        """Drops what was said before this time."""


class Stored(Protocol):
    def to_store(self) -> Encode: ...

    def restore(self, stored: Any) -> None: ...


class ProcessHolder(Holder):
    """Stores an object's state once for the process, whatever shards it has."""

    def __init__(self, kept: Stored) -> None:
        self._kept = kept

    def snapshot(self, channel_id: int) -> Encode | None:  # noqa: ARG002 - there is one
        return self._kept.to_store()

    def restore(self, channel_id: int, stored: Any) -> None:  # noqa: ARG002
        self._kept.restore(stored)


class Holders:
    """All holders, in the order in which they were registered."""

    def __init__(self, snapshots: Snapshots, conversations: ConversationManager, wires: Wires) -> None:
        self._snapshots = snapshots
        self._conversations = conversations
        self._wires = wires
        self._holders: list[Holder] = []

    def register(self, *holders: Holder, **stored_as: str) -> None:
        """Adds holders. stored_as: the keyword arguments of Snapshots.register(), for a single holder."""
        self._holders += holders
        for holder in holders:
            self._snapshots.register(holder, **stored_as)

    def revised(self, channel_id: int, guild_id: int, message: MessageRecord, *, is_by_author: bool) -> None:
        """Applies an edit to all holders and to the transcript."""
        conversation = self._conversations.get(channel_id)
        before = conversation.find(message.message_id) if conversation else None
        # Its quote has not changed, and what was dropped of that stays dropped.
        quoted = before or requoted(message, None)
        text, files, people = quoted.reply_to_text, quoted.reply_files, quoted.drew_on
        message = replace(message, reply_to_text=text, reply_files=files, drew_on=people)
        if before and before.tells_off:
            # It tells the bot to keep out only as long as it says so.
            stop = read_stop(message.content, message.calls_bot or self._wires.bot()[0])
            says_so = stop is Stop.KEEP_OUT or message.content == before.content
            message = replace(message, tells_off=says_so)
        edit = Edit(channel_id, guild_id, message, before, is_by_author)
        changed = [holder for holder in self._holders if holder.revised(edit)]
        if changed:
            self._snapshots.purge(channel_id)
        self._snapshots.flush()  # before the transcript: after a kill that still shows what has to be done again
        self._snapshots.revised(channel_id, message, is_reworded=edit.may_be_reworded)

    def forget(self, what: Forget) -> None:
        for holder in self._holders:
            holder.forget(what)
        for channel_id in what.channel_ids:
            if what.message_ids is None or self._snapshots.has(channel_id):
                self._snapshots.purge(channel_id)
        self._snapshots.flush()  # as above
        for channel_id in what.channel_ids if what.message_ids else ():
            self._snapshots.removed(channel_id, what.message_ids or ())

    def expire(self, before: datetime) -> None:
        for holder in self._holders:
            holder.expire(before)


class DecisionHolder(Holder):
    """The last decisions, and the decision log."""

    def __init__(self, decisions: RecentDecisions, learning: Learning, records: Records, clock: Clock) -> None:
        self._decisions = decisions
        self._learning = learning
        self._records = records
        self._clock = clock

    def revised(self, edit: Edit) -> bool:
        message = edit.message
        self._learning.revised(message.message_id, edit.channel_id, message.author_id, message.content, edit.guild_id)
        if edit.may_be_reworded:
            self._decisions.unquote([edit.channel_id])
        return False

    def forget(self, what: Forget) -> None:
        if what.message_ids is not None:
            for mark in self._learning.deleted(what.message_ids, self._clock()):
                self._records.unfollow(mark, Unwelcome.DELETED)
            for message_id in what.message_ids:
                self._decisions.discard(message_id)
            self._decisions.unquote(what.channel_ids)
        elif what.author_id is not None:
            self._learning.forgotten(None, what.author_id, through=what.through)
            self._decisions.drop(lambda entry: what.author_id in (entry.author_id, entry.decision.partner))
            self._decisions.unquote()
        else:
            self._decisions.drop(lambda entry: entry.channel_id in what.channel_ids)
            self._decisions.unquote(what.channel_ids)  # decisions still being made
            if what.guild_id is not None:
                self._learning.guild_forgotten(what.guild_id, through=what.through)
            else:
                for channel_id in what.channel_ids:
                    self._learning.forgotten(channel_id, None, through=what.through)

    def expire(self, before: datetime) -> None:
        self._decisions.drop(lambda entry: entry.message_id < id_at(before))
        self._learning.expire(before)


class MessageHolder(Holder):
    """Messages that wait to be handled: those that are forgotten are skipped."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def forget(self, what: Forget) -> None:
        if what.message_ids:
            self._inbox.skip(what.message_ids)


class PromptHolder(Holder):
    """Prompts and soft context. conversations: know whose words a prompt of the agent may quote."""

    def __init__(
        self, prompts: PromptCards, states: ConversationStateManager, conversations: ConversationManager
    ) -> None:
        self._prompts = prompts
        self._states = states
        self._conversations = conversations

    def revised(self, edit: Edit) -> bool:
        return edit.may_be_reworded and self._prompts.reworded(edit.channel_id, edit.message.message_id)

    def forget(self, what: Forget) -> None:
        for channel_id in what.channel_ids:
            if what.message_ids is None:
                self._prompts.forget(channel_id, what.author_id)
                if what.author_id is not None and (conversation := self._conversations.get(channel_id)):
                    self._prompts.withdraw(channel_id, partial(conversation.may_quote, author_id=what.author_id))
            else:
                answered = self._conversations.answered_by(channel_id, what.message_ids)
                self._prompts.messages_gone(channel_id, what.message_ids, answered)

    def snapshot(self, channel_id: int) -> Encode | None:
        return as_json(self._states.stored(channel_id))

    def restore(self, channel_id: int, stored: Any) -> None:
        self._prompts.restore(channel_id, stored)

    def leave(self, channel_id: int) -> None:
        self._states.forget(channel_id, None)


class MiniAppHolder(Holder):
    """The state of mini-apps."""

    def __init__(self, miniapps: MiniAppRouter, snapshots: Snapshots) -> None:
        self._miniapps = miniapps
        self._snapshots = snapshots

    def revised(self, edit: Edit) -> bool:
        is_quoted = edit.may_be_reworded and self._miniapps.quotes(edit.channel_id, edit.message.message_id)
        if is_quoted:
            self._miniapps.retract(edit.channel_id, {edit.message.message_id})
        return is_quoted

    def forget(self, what: Forget) -> None:
        for channel_id in what.channel_ids:
            if what.message_ids is None:
                self._miniapps.forget(channel_id, what.author_id)
            elif self._snapshots.has(channel_id):
                self._miniapps.retract(channel_id, what.message_ids)

    def expire(self, before: datetime) -> None:
        for channel_id in self._snapshots.channels:
            kept = self._miniapps.stored(channel_id)
            self._miniapps.expire(channel_id, id_at(before))
            if self._miniapps.stored(channel_id) != kept:
                self._snapshots.purge(channel_id)

    def snapshot(self, channel_id: int) -> Encode | None:
        return as_json(self._miniapps.stored(channel_id) or None)

    def restore(self, channel_id: int, stored: Any) -> None:
        self._miniapps.restore(channel_id, stored)

    def leave(self, channel_id: int) -> None:
        self._miniapps.forget(channel_id, None)


class OfferHolder(Holder):
    """Recent messages where offers are on, open offers, and notes for offers to be made."""

    def __init__(
        self,
        proactive_offers: ProactiveOffers,
        offer_channels: OfferChannels,
        snapshots: Snapshots,
        settings: GuildSettings,
    ) -> None:
        self._settings = settings
        self._proactive_offers = proactive_offers
        self._offer_channels = offer_channels
        self._snapshots = snapshots

    def revised(self, edit: Edit) -> bool:
        return self._proactive_offers.listens(edit.channel_id) and self._proactive_offers.revised(
            edit.channel_id, edit.message, is_reworded=edit.may_be_reworded
        )

    def forget(self, what: Forget) -> None:
        # What a person said in threads may be known in memory alone.
        heard_in = [] if what.author_id is None else [*self._offer_channels]
        for channel_id in dict.fromkeys([*what.channel_ids, *heard_in]):
            if what.message_ids is not None:
                self._proactive_offers.messages_gone(channel_id, what.message_ids)
            else:
                self._proactive_offers.forget(channel_id, what.author_id)
            if what.guild_id is not None or what.is_gone:
                self._proactive_offers.leave(channel_id)
        if what.guild_id is not None:  # also archived threads, of which only an offer may be kept
            self._proactive_offers.leave_guild(what.guild_id)

    def expire(self, before: datetime) -> None:
        for channel_id in self._snapshots.channels:
            self._proactive_offers.expire(channel_id, id_at(before))

    def snapshot(self, channel_id: int) -> Encode | None:
        stored = self._offer_channels.stored(channel_id)
        return stored.to_json if stored else None

    def restore(self, channel_id: int, stored: Any) -> None:
        kept = self._offer_channels.restore(channel_id, stored)
        if (kept.is_on or kept.is_off) and not (kept.follows_settings or kept.parent_id):
            self._settings.adopt_offers(kept.guild_id, channel_id, on=kept.is_on, now=self._offer_channels.clock())

    def leave(self, channel_id: int) -> None:
        self._offer_channels.drop(channel_id)


class SettingsHolder(Holder):
    """The settings of guilds for their places: one snapshot for each guild, under its own id."""

    def __init__(self, settings: GuildSettings) -> None:
        self._settings = settings

    def forget(self, what: Forget) -> None:
        if what.author_id is not None:
            self._settings.forget_person(what.author_id)
        if what.guild_id is not None:
            self._settings.drop(what.guild_id)

    def snapshot(self, channel_id: int) -> Encode | None:
        return as_json(self._settings.stored(channel_id))

    def restore(self, channel_id: int, stored: Any) -> None:
        self._settings.restore(channel_id, stored)

    def leave(self, channel_id: int) -> None:
        self._settings.leave(channel_id)


class ConversationHolder(Holder):
    """The conversations, with the state of agents in them, and the state that remote agents need in the next ones.

    restored: stored conversations by channel, which are resumed once their messages are read, too.
    """

    def __init__(self, conversations: ConversationManager, pending: PendingTurns, snapshots: Snapshots) -> None:
        self._conversations = conversations
        self._pending = pending
        self._snapshots = snapshots
        self.restored: dict[int, StoredConversation] = {}
        snapshots.when_gone(self._store_anew)

    def _store_anew(self) -> None:
        """Appends the conversations' messages to the transcripts again, as the store has lost those."""
        for channel_id in self._snapshots.channels:
            conversation, guild_id = self._conversations.get(channel_id), self._snapshots.guild_of(channel_id)
            for message in conversation.messages if conversation else ():
                self._snapshots.append(Appended(channel_id, guild_id, message))

    def revised(self, edit: Edit) -> bool:
        has_changed = self._conversations.revise(edit.channel_id, edit.message, is_by_author=edit.is_by_author)
        if edit.may_be_reworded:
            self._take_back(("message", edit.message.message_id))
        return has_changed and edit.before is None

    def forget(self, what: Forget) -> None:
        for channel_id in what.channel_ids:
            if what.message_ids is not None:
                self._conversations.forget_messages(channel_id, what.message_ids)
            elif what.author_id is not None:
                self._conversations.forget_author(channel_id, what.author_id)
                # The answer being made is stored last: nothing there tells yet whose words replies to it quote.
                posted = turn.posted if (turn := self._pending.of(channel_id).turn) else ()
                unknown = [one for one in posted if self._conversations.find(channel_id, one) is None]
                self._snapshots.removed(channel_id, unknown)
            else:
                self._conversations.end(channel_id)
        self._take_back(*what.sources)

    def _take_back(self, *sources: Source) -> None:
        for channel_id in {
            *self._conversations.take_back(*sources),
            *self._pending.follow(self._conversations.current, self._conversations.find),
        }:
            self._snapshots.purge(channel_id)

    def expire(self, before: datetime) -> None:
        """Drops old messages, from active conversations too."""
        for channel_id in self._snapshots.channels:
            told = [i for i in self._conversations.told_before(channel_id) if i < id_at(before)]
            self._conversations.forget_messages(channel_id, told)
            conversation = self._conversations.get(channel_id)
            if conversation and conversation.started_at < before:
                old = [m.message_id for m in conversation.messages if m.timestamp < before]
                self._conversations.forget_messages(channel_id, old)
                self._conversations.forget_history(channel_id)
                self._snapshots.purge(channel_id)

    def snapshot(self, channel_id: int) -> Encode | None:
        stored = self._conversations.stored(channel_id) or self._conversations.left_states(channel_id)
        return stored.to_json if stored else None

    def restore(self, channel_id: int, stored: Any) -> None:
        if isinstance(stored, dict) and "told" in stored:
            self._conversations.restore_left(channel_id, LeftStates.from_json(orjson.dumps(stored)))
            return
        self.restored[channel_id] = StoredConversation.from_json(orjson.dumps(stored))

    def leave(self, channel_id: int) -> None:
        self.restored.pop(channel_id, None)
        self._conversations.end(channel_id)
