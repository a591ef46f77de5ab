"""The playground's world: guilds, their channels, people and messages, and every change to them.

Everything is synchronous and in memory. Each change is sent once as an `Event` to the listeners (gateway, page). Every
collection is bounded; the oldest entries are dropped first.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from playground import errors
from playground.access import Access
from playground.mentions import ANY, NOBODY, AllowedMentions, named
from playground.model import (
    HAS_THREAD,
    NAME_CHANGE,
    PINS_ADD,
    PRIVATE_THREAD,
    PUBLIC_THREAD,
    RECIPIENT_ADD,
    RECIPIENT_REMOVE,
    REPLY,
    SILENT,
    THREAD_CREATED,
    THREAD_STARTER,
    Channel,
    Draft,
    Event,
    Message,
    Reaction,
    Reference,
    Thread,
    User,
)

_MAX_THREADS = 2_000  # archived ones are dropped first
AUTO_ARCHIVE_MINUTES = 4_320  # the default of a thread


class World(Access):
    """Messages and threads in the places, and every change to them. Ids are ints here, and strings in JSON."""

    # Threads

    def open_thread(
        self,
        parent: Channel,
        owner: User,
        name: str,
        *,
        type: int = PUBLIC_THREAD,  # noqa: A002 - Discord's word
        starter: Message | None = None,
        first: Draft | None = None,
        tags: Iterable[str] = (),
        minutes: int = AUTO_ARCHIVE_MINUTES,
        invitable: bool = True,
    ) -> Channel:
        """Start a thread, from the message `starter` if that is given. `first`: the message of a forum post."""
        now = self._now()
        state = Thread(
            owner_id=owner.id,
            created=now,
            archived_at=now,
            auto_archive_minutes=minutes,
            invitable=invitable,
            tags=tuple(tags),
            members={owner.id: now},
        )
        thread = Channel(starter.id if starter else self.next_id(), name, type=type, parent_id=parent.id, thread=state)
        thread.guild_id = parent.guild_id
        if len(self.threads) >= _MAX_THREADS:
            del self.threads[min(self.threads, key=lambda one: not self.thread(self.threads[one]).archived)]
        self.threads[thread.id] = thread
        self.emit(Event(name="THREAD_CREATE", channel=thread, data={"newly_created": True}))
        self._members_changed(thread, owner.id)
        if starter is not None:
            self.replace_message(replace(starter, flags=starter.flags | HAS_THREAD))
            reference = Reference(starter.id, parent.id)
            self.post(thread, owner, Draft(type=THREAD_STARTER, reference=reference, allowed=NOBODY))
        elif first is not None:
            parent.last_message_id = thread.id
            self.post(thread, owner, first, message_id=thread.id)
        elif type != PRIVATE_THREAD:
            reference = Reference(None, thread.id)
            self.post(parent, owner, Draft(content=name, type=THREAD_CREATED, reference=reference, allowed=NOBODY))
        return thread

    def thread(self, channel: Channel) -> Thread:
        """The thread's own fields. ApiError 50024: the channel is no thread."""
        if channel.thread is None:
            raise errors.wrong_channel_type()
        return channel.thread

    def change_thread(self, thread: Channel, actor: User, changes: Mapping[str, Any]) -> None:
        """Set a thread's `name`, or fields of model.Thread."""
        state, renamed = self.thread(thread), changes.get("name", thread.name) != thread.name
        if not changes.keys().isdisjoint(("archived", "auto_archive_minutes")):
            state.archived_at = self._now()
        for field, value in changes.items():
            setattr(thread if field == "name" else state, field, value)
        self.emit(Event(name="THREAD_UPDATE", channel=thread))
        if renamed and not state.archived:
            self.post(thread, actor, Draft(content=thread.name, type=NAME_CHANGE, allowed=NOBODY))

    def join_thread(self, thread: Channel, user_id: int, by: User | None = None) -> None:
        """Make somebody a member. by: who adds them, which a system message says."""
        members = self.thread(thread).members
        if user_id in members:
            return
        members[user_id] = self._now()
        if user_id == self.bot.id:
            self.emit(Event(name="THREAD_CREATE", channel=thread))
            self.emit(Event(name="THREAD_MEMBER_UPDATE", channel=thread, user_id=user_id))
        self._members_changed(thread, user_id)
        if by is not None:
            self.post(thread, by, Draft(type=RECIPIENT_ADD, recipient_id=user_id))

    def leave_thread(self, thread: Channel, user_id: int, by: User | None = None) -> None:
        """Remove a member. by: who removes them, which a system message says."""
        if self.thread(thread).members.pop(user_id, None) is None:
            return
        self._members_changed(thread, user_id)
        if by is not None:
            self.post(thread, by, Draft(type=RECIPIENT_REMOVE, recipient_id=user_id))

    def _members_changed(self, thread: Channel, user_id: int) -> None:
        self.emit(Event(name="THREAD_MEMBERS_UPDATE", channel=thread, ids=(user_id,)))

    # Messages

    def compose(self, channel: Channel, author: User, draft: Draft, message_id: int | None = None) -> Message:
        """The message made of a draft, without posting it."""
        mentioned = self._mentioned(channel, author, draft)
        return Message(
            id=message_id or self.next_id(),
            channel_id=channel.id,
            author=author,
            content=draft.content,
            created=self._now(),
            type=draft.type,
            flags=draft.flags,
            reference=draft.reference,
            embeds=tuple(draft.embeds),
            components=tuple(draft.components),
            attachments=tuple(draft.attachments),
            stickers=tuple(draft.stickers),
            snapshots=tuple(draft.snapshots),
            nonce=draft.nonce,
            webhook_id=draft.webhook_id,
            interaction=draft.interaction,
            poll=draft.poll,
            pinged=frozenset() if draft.flags & SILENT else self._pinged(channel, author, mentioned),
            **mentioned,
        )

    def post(self, channel: Channel, author: User, draft: Draft, message_id: int | None = None) -> Message:
        """Post a message. In a thread this unarchives it, and makes the author and mentioned people members."""
        message = self.compose(channel, author, draft, message_id)
        added = self._enter_thread(channel, message) if channel.thread is not None else []
        channel.messages[message.id] = message
        channel.last_message_id = message.id
        if len(channel.messages) > self.history:
            del channel.messages[next(iter(channel.messages))]
        self.emit(Event(name="MESSAGE_CREATE", channel=channel, message=message))
        for user_id in added:
            self.post(channel, author, Draft(type=RECIPIENT_ADD, recipient_id=user_id))
        return message

    def _enter_thread(self, channel: Channel, message: Message) -> list[int]:
        """Unarchives the thread for a new message. Returns ids of the mentioned people who become members by it."""
        thread, parent = self.thread(channel), self.channels[channel.parent_id or 0]
        thread.sent += 1
        if thread.archived:
            self.change_thread(channel, message.author, {"archived": False})
        if message.webhook_id is None:
            self.join_thread(channel, message.author.id)
        named = message.mentions if message.type in (0, REPLY) else ()
        added = [one for one in named if one not in thread.members and self.may(parent, one, "view_channel")]
        for user_id in added:
            self.join_thread(channel, user_id)
        return added

    def revise(self, message: Message, changes: Mapping[str, Any], allowed: AllowedMentions = ANY) -> Message:
        """The message with other fields, marked as edited. An edit pings nobody again."""
        edited = replace(message, **changes, edited=self._now())
        reference = message.reference if message.reference and message.reference.type == 0 else None
        draft = Draft(content=edited.content, reference=reference, allowed=allowed)
        mentioned = self._mentioned(self.channel(message.channel_id), message.author, draft)
        return replace(edited, **mentioned)

    def edit(self, message: Message, changes: Mapping[str, Any], allowed: AllowedMentions = ANY) -> Message:
        return self.replace_message(self.revise(message, changes, allowed))

    def replace_message(self, message: Message) -> Message:
        """Replace the message with the same id, and send the event."""
        channel = self.channel(message.channel_id)
        channel.messages[message.id] = message
        self.emit(Event(name="MESSAGE_UPDATE", channel=channel, message=message))
        return message

    def delete(self, message: Message) -> None:
        channel = self.channel(message.channel_id)
        channel.messages.pop(message.id, None)
        self.emit(Event(name="MESSAGE_DELETE", channel=channel, ids=(message.id,)))

    def delete_bulk(self, channel_id: int, message_ids: Iterable[int]) -> None:
        channel = self.channel(channel_id)
        gone = tuple(one for one in message_ids if channel.messages.pop(one, None))
        self.emit(Event(name="MESSAGE_DELETE_BULK", channel=channel, ids=gone))

    def repeat(self, message: Message) -> None:
        """Send a message's MESSAGE_CREATE once more."""
        channel = self.channel(message.channel_id)
        self.emit(Event(name="MESSAGE_CREATE", channel=channel, message=message))

    def react(self, message: Message, user_id: int, emoji: str, *, add: bool) -> Message:
        """Add or remove a reaction. Nothing happens if it is there, or not there, already."""
        counts = {reaction.emoji: reaction.users for reaction in message.reactions}
        users = counts.get(emoji, ())
        if (user_id in users) == add:
            return message
        counts[emoji] = (*users, user_id) if add else tuple(one for one in users if one != user_id)
        reactions = tuple(Reaction(name, ids) for name, ids in counts.items() if ids)
        channel = self.channel(message.channel_id)
        changed = channel.messages[message.id] = replace(message, reactions=reactions)
        name = "MESSAGE_REACTION_ADD" if add else "MESSAGE_REACTION_REMOVE"
        self.emit(Event(name=name, channel=channel, message=changed, user_id=user_id, emoji=emoji))
        return changed

    def clear_reactions(self, message: Message) -> None:
        channel = self.channel(message.channel_id)
        changed = channel.messages[message.id] = replace(message, reactions=())
        self.emit(Event(name="MESSAGE_REACTION_REMOVE_ALL", channel=channel, message=changed))

    def pin(self, message: Message, actor: User) -> None:
        """Pin a message, with Discord's system message. Nothing happens if it is pinned already."""
        if message.pinned_at is not None:
            return
        channel = self.channel(message.channel_id)
        self.replace_message(replace(message, pinned_at=self._now()))
        self.emit(Event(name="CHANNEL_PINS_UPDATE", channel=channel))
        self.post(channel, actor, Draft(type=PINS_ADD, reference=Reference(message.id, channel.id), allowed=NOBODY))

    def unpin(self, message: Message) -> None:
        if message.pinned_at is not None:
            self.replace_message(replace(message, pinned_at=None))
            self.emit(Event(name="CHANNEL_PINS_UPDATE", channel=self.channel(message.channel_id)))

    def typing(self, channel_id: int, user_id: int) -> None:
        channel = self.channel(channel_id)
        self.emit(Event(name="TYPING_START", channel=channel, user_id=self.user(user_id).id, at=self._now()))

    # Mentions

    def _mentioned(self, channel: Channel, author: User, draft: Draft) -> dict[str, Any]:
        if draft.recipient_id is not None:
            return {"mentions": (draft.recipient_id,), "mention_roles": (), "mention_everyone": False}
        names, allowed = named(draft.content), draft.allowed
        users = {one for one in names.users if one in self.users and allowed.lets_user(one)}
        replied = self._replied_author(draft.reference)
        ordered = [one for one in names.users if one in users]
        if replied is not None and allowed.replied_user and replied not in users:
            ordered.append(replied)
        may_all = self.may(channel, author.id, "mention_everyone")
        guild = self.guild_of(channel)
        offered = guild.roles if guild else {}
        known = [offered[one] for one in names.roles if one in offered and one != channel.guild_id]
        roles = tuple(one.id for one in known if allowed.lets_role(one.id) and (may_all or one.mentionable))
        everyone = names.everyone and allowed.everyone and may_all
        return {"mentions": tuple(ordered), "mention_roles": roles, "mention_everyone": everyone}

    def _replied_author(self, reference: Reference | None) -> int | None:
        if reference is None or reference.type != 0 or reference.message_id is None:
            return None
        try:
            author_id = self.message(reference.channel_id, reference.message_id).author.id
        except errors.ApiError:
            return None
        return author_id if author_id in self.users else None

    def _pinged(self, channel: Channel, author: User, mentioned: Mapping[str, Any]) -> frozenset[int]:
        pinged = set(mentioned["mentions"])
        if mentioned["mention_everyone"]:
            pinged |= {one for one in self.users if self.may(channel, one, "view_channel")}
        guild = self.guild_of(channel)
        for user_id, own in guild.member_roles.items() if guild else ():
            if not own.isdisjoint(mentioned["mention_roles"]):
                pinged.add(user_id)
        return frozenset(pinged - {author.id})
