"""The people's side of the playground: what they post, edit, click and see. Tests and the page use it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from playground import errors, permissions, wire
from playground.commands import Commands
from playground.errors import invalid_form
from playground.interactions import Interaction, Interactions
from playground.mentions import ANY
from playground.model import (
    CATEGORY,
    PRIVATE_THREAD,
    REPLY,
    TEXT,
    THREAD_KINDS,
    THREADS_ONLY,
    VOICE_MESSAGE,
    Channel,
    Draft,
    Event,
    File,
    Message,
    Reference,
    Role,
    User,
    Wire,
)
from playground.posting import Posting, check_emoji, sticker_objects
from playground.world import World

MAX_CONTENT = 4_000  # characters; Discord: with Nitro
_FORWARD = 1  # type of a message reference
_SNAPSHOT_FIELDS = (
    "type content embeds attachments timestamp edited_timestamp flags mentions mention_roles sticker_items components"
).split()


class People:
    """Actions of people, which take effect at once. Ids are ints. ApiError as for a bot's requests."""

    def __init__(self, world: World, posting: Posting, commands: Commands, interactions: Interactions) -> None:
        self.world = world
        self.posting = posting
        self.commands = commands
        self.interactions = interactions

    # Who and where

    @property
    def bot_id(self) -> int:
        return self.world.bot.id

    @property
    def guild_id(self) -> int:
        """Id of the first guild."""
        return self.world.guild.id

    @property
    def bot_role_id(self) -> int:
        return self.world.guild.bot_role_id

    def channel(self, name: str, guild_id: int | None = None) -> int:
        """Id of a channel or thread by name, by default of the first guild. KeyError: there is none."""
        guild = self.world.guilds[guild_id or self.guild_id]
        return _named(name, (*guild.channels.values(), *self.world.threads_in(guild)))

    def person(self, name: str) -> int:
        """Id of a person by name. KeyError: there is none."""
        return _named(name, self.world.people)

    def role(self, name: str) -> int:
        """Id of a role of the first guild by name. KeyError: there is none."""
        return _named(name, self.world.guild.roles.values())

    def add_guild(self, name: str, channels: Iterable[str] = ("general",)) -> int:
        """Add a guild with channels. The bot and all people are in it."""
        guild = self.world.add_guild(name)
        for channel in channels:
            self.world.add_channel(channel, guild=guild)
        return guild.id

    def add_role(
        self, name: str, *permission_names: str, members: Iterable[int] = (), mentionable: bool = False
    ) -> int:
        """Add a role with further permissions (discord.py's names), and give it to these people."""
        role = self.world.add_role(name, permissions.bits(permission_names), mentionable=mentionable)
        for user_id in members:
            self.give_role(user_id, role.id)
        return role.id

    def change_role(self, role_id: int, name: str, *names: str) -> None:
        """Set a role's name and permissions (discord.py's `names`). The id of the @everyone role is the guild's."""
        self.world.change_role(role_id, name=name, permissions=permissions.bits(names))

    def delete_role(self, role_id: int) -> None:
        self.world.delete_role(role_id)

    def give_role(self, user_id: int, role_id: int) -> None:
        self.world.give_role(user_id, role_id)

    def take_role(self, user_id: int, role_id: int) -> None:
        self.world.give_role(user_id, role_id, given=False)

    def rejoin(self, user_id: int) -> None:
        """Leave the first guild, and come back."""
        self.world.rejoin(user_id, self.guild_id)

    def add_channel(
        self,
        name: str,
        topic: str = "",
        *,
        type: int = TEXT,  # noqa: A002 - Discord's word
        tags: Iterable[str] = (),
        needs_tag: bool = False,
        category: int | None = None,
        guild_id: int | None = None,
    ) -> int:
        """Add a channel to a guild, by default the first; `category`: id of its category, if any.

        `tags` are the names of a forum's tags.
        """
        made: list[Wire] = [
            {"id": str(self.world.next_id()), "name": tag, "moderated": False, "emoji_id": None, "emoji_name": None}
            for tag in tags
        ]
        where = self.world.guilds[guild_id or self.guild_id]
        return self.world.add_channel(
            name, topic, type=type, tags=made, needs_tag=needs_tag, category_id=category, guild=where
        ).id

    def add_category(self, name: str) -> int:
        return self.world.add_channel(name, type=CATEGORY).id

    def move_channel(self, channel_id: int, category: int | None) -> None:
        """Move a channel into a category, or, with None, out of it. Its overwrites stay."""
        self.world.change_channel(self.world.channel(channel_id), parent_id=category)

    def restrict_channel(self, channel_id: int) -> None:
        """Make a channel and its threads age-restricted."""
        self.world.change_channel(self.world.channel(channel_id), nsfw=True)

    def delete_channel(self, channel_id: int) -> None:
        """Delete a channel with its threads, a category without its channels, or a thread."""
        self.world.delete_channel(self.world.channel(channel_id))

    def add_person(self, name: str) -> int:
        return self.world.add_person(name).id

    def add_bot(self, name: str) -> int:
        """Add another bot to the guilds. Its id can be an author in `post`."""
        return self.world.add_bot(name).id

    def add_webhook(self, name: str) -> int:
        """Add a webhook. Its id can be an author in `post`."""
        return self.world.add_webhook(name).id

    def remove_bot(self, guild_id: int | None = None) -> None:
        """Remove the bot from a guild, by default the first."""
        self.world.let_bot_in(self.world.guilds[guild_id or self.guild_id], False)

    def invite_bot(self, guild_id: int | None = None) -> None:
        """Add the bot to a guild again, by default the first."""
        self.world.let_bot_in(self.world.guilds[guild_id or self.guild_id], True)

    def dm(self, person_id: int) -> int:
        """The direct-message channel between a person and the bot."""
        return self.world.open_dm(person_id).id

    def block(self, person_id: int, blocking: bool = True) -> None:
        """Block or unblock the bot's direct messages to a person."""
        (self.world.blocking.add if blocking else self.world.blocking.discard)(self.world.user(person_id).id)

    def install(self, person_id: int, installed: bool = True) -> None:
        """Install the bot's application for a person, or remove it."""
        (self.world.installed.add if installed else self.world.installed.discard)(self.world.user(person_id).id)
        self.world.emit(Event(name="COMMANDS"))

    def group(self, name: str, *person_ids: int) -> int:
        """Add the direct messages of a group without the bot."""
        return self.world.add_elsewhere(name, person_ids).id

    def foreign_channel(self, name: str) -> int:
        """Add a channel of a server without the bot; all people are in it."""
        return self.world.add_elsewhere(name).id

    def messages(self, channel_id: int) -> list[Message]:
        """The channel's messages, oldest first."""
        return list(self.world.channel(channel_id).messages.values())

    # Threads

    def open_thread(
        self,
        channel_id: int,
        author_id: int,
        name: str,
        *,
        message: Message | None = None,
        private: bool = False,
        members: Iterable[int] = (),
    ) -> int:
        """Start a thread, from `message` if that is given. `members`: ids of people to add."""
        channel, author = self.world.channel(channel_id), self.world.user(author_id)
        kinds = THREAD_KINDS.get(channel.type, ())
        kind = PRIVATE_THREAD if private else next(iter(kinds), None)
        if kind not in kinds or kind is None:
            raise errors.wrong_channel_type()
        if message is not None and message.id in self.world.threads:
            raise errors.thread_exists()
        starter = message and self.world.message(channel.id, message.id)
        thread = self.world.open_thread(channel, author, name, type=kind, starter=starter)
        for user_id in members:
            self.world.join_thread(thread, self.world.user(user_id).id, by=author)
        return thread.id

    def forum_post(
        self,
        forum_id: int,
        author_id: int,
        title: str,
        content: str,
        *,
        tags: Sequence[str] = (),
        attachments: Iterable[File] = (),
    ) -> int:
        """Post in a forum, and return the id of its thread. `tags`: names of the forum's tags."""
        forum, author = self.world.channel(forum_id), self.world.user(author_id)
        if forum.type not in THREADS_ONLY:
            raise errors.wrong_channel_type()
        known = {tag["name"]: tag["id"] for tag in forum.tags}
        if not known.keys() >= set(tags):
            raise invalid_form("applied_tags", "BASE_TYPE_CHOICES", "There is no such tag in this channel.")
        applied = [known[tag] for tag in tags]
        if forum.needs_tag and not applied:
            raise errors.tag_required()
        if not _content(content):
            raise errors.empty_message()
        draft = Draft(content=_content(content), attachments=self.posting.upload(forum.id, attachments))
        return self.world.open_thread(forum, author, title, first=draft, tags=applied).id

    def change_thread(self, thread_id: int, actor_id: int | None = None, **changes: Any) -> None:
        """Set a thread's `name`, `archived`, `locked` or `tags` (ids), as `actor_id`, by default the guild's owner."""
        thread, actor = self.world.channel(thread_id), self.world.user(actor_id or self.world.owner_id)
        self.world.change_thread(thread, actor, changes)

    def add_to_thread(self, thread_id: int, user_id: int, by: int | None = None) -> None:
        """Somebody joins a thread, or is added by another, which a system message says."""
        adder = None if by is None else self.world.user(by)
        self.world.join_thread(self.world.channel(thread_id), self.world.user(user_id).id, by=adder)

    def leave_thread(self, thread_id: int, user_id: int, by: int | None = None) -> None:
        """Somebody leaves a thread, or is removed by another."""
        remover = None if by is None else self.world.user(by)
        self.world.leave_thread(self.world.channel(thread_id), self.world.user(user_id).id, by=remover)

    # Messages

    def post(
        self,
        channel_id: int,
        author_id: int,
        content: str = "",
        *,
        reply_to: int | None = None,
        ping: bool = True,
        attachments: Iterable[File] = (),
        embeds: Sequence[Wire] = (),
        stickers: Iterable[str] = (),
        snapshot: Wire | str | None = None,
        forward: Message | None = None,
        webhook: bool = False,
        bot: bool = False,
        type: int = 0,  # noqa: A002 - Discord's word
    ) -> Message:
        """Post as a person, another bot or a webhook; `webhook`, `bot`: as one of these under a person's name.

        `reply_to`: id of a message here; `forward`: a message to forward; `snapshot`: for a forward from elsewhere, the
        content it shows, or Discord's partial message. `type`: Discord's message type.
        """
        channel = self.world.channel(channel_id)
        webhook = webhook or author_id in self.world.webhooks
        author = self.world.webhooks.get(author_id) or self.world.user(author_id)
        attachments = tuple(attachments)
        in_person = author_id in self.world.users
        if in_person and (channel.thread is not None or channel.guild_id is None or channel.type in THREADS_ONLY):
            self.posting.check_writable(channel, author.id)
        reference = None
        if forward is not None:
            reference = Reference(forward.id, forward.channel_id, _FORWARD)
            whole = wire.message_object(self.world, self.world.message(forward.channel_id, forward.id))
            snapshot = {name: whole[name] for name in _SNAPSHOT_FIELDS if name in whole}
        elif snapshot is not None:
            reference = Reference(self.world.next_id(), channel.id, _FORWARD)
        elif reply_to is not None:
            reference = Reference(self.world.message(channel.id, reply_to).id, channel.id)
        draft = Draft(
            content=_content(content),
            embeds=[{"type": "rich"} | embed for embed in embeds],
            attachments=self.posting.upload(channel.id, attachments),
            stickers=sticker_objects(stickers),
            snapshots=() if snapshot is None else [_snapshot(snapshot)],
            reference=reference,
            allowed=replace(ANY, replied_user=ping),
            flags=VOICE_MESSAGE if any(file.waveform for file in attachments) else 0,
            type=REPLY if reply_to is not None and not type else type,
            webhook_id=author_id if webhook else None,
        )
        if type == 0 and not any((draft.content, draft.embeds, draft.attachments, draft.stickers, draft.snapshots)):
            raise errors.empty_message()
        return self.world.post(channel, replace(author, bot=True) if bot or webhook else author, draft)

    def edit(self, message: Message, content: str, *, author_id: int | None = None) -> Message:
        """Change a message's content. `author_id`: who edits, which must be its author; None: not checked."""
        self._check_author(message, author_id)
        if not _content(content) and not message.attachments:
            raise errors.empty_message()
        return self.world.edit(self.world.message(message.channel_id, message.id), {"content": _content(content)})

    def delete(self, message: Message, *, author_id: int | None = None) -> None:
        """Delete a message; `author_id` as in edit."""
        self._check_author(message, author_id)
        self.world.delete(self.world.message(message.channel_id, message.id))

    def _check_author(self, message: Message, author_id: int | None) -> None:
        if author_id not in (None, message.author.id):
            raise errors.not_your_message()

    def react(self, message: Message, user_id: int, emoji: str, *, add: bool = True) -> Message:
        """Put a reaction under a message, or take it back."""
        current = self.world.message(message.channel_id, message.id)
        return self.world.react(current, self.world.user(user_id).id, check_emoji(emoji), add=add)

    def typing(self, channel_id: int, user_id: int) -> None:
        self.world.typing(channel_id, user_id)

    # Commands and components

    def command(
        self,
        channel_id: int,
        author_id: int,
        name: str,
        options: Mapping[str, Any] | None = None,
        target_id: int | None = None,
    ) -> Interaction:
        """Use a command, by its name or id. `target_id`: the message or person of a context-menu command.

        `options` are {name: value}; a subcommand is chosen by its name, `{"on": {}}`, with its own options inside.
        ApiError 50013: the person lacks the command's default_member_permissions in that channel; 10063: the command is
        not available there.
        """
        found = self.commands.find(name, self.world.channel(channel_id).guild_id)
        return self.interactions.use(channel_id, author_id, found, options or {}, target_id)

    def autocomplete(
        self, channel_id: int, author_id: int, name: str, options: Mapping[str, Any], focused: str
    ) -> Interaction:
        """Type the option `focused` of a command. The bot's suggestions are in `suggested` of the interaction.

        `options` as in `command`, with the text typed so far as the value.
        """
        found = self.commands.find(name, self.world.channel(channel_id).guild_id)
        return self.interactions.autocomplete(channel_id, author_id, found, options, focused)

    def click(self, message: Message | int, author_id: int, custom_id: str, values: Sequence[str] = ()) -> Interaction:
        """Press a button, or choose values in a menu, also of an ephemeral message of this person.

        In a menu of people, roles or channels the values are ids.
        """
        message_id = message if isinstance(message, int) else message.id
        found = self.interactions.ephemeral(message_id, author_id) or self.world.find_message(message_id)
        return self.interactions.click(found, author_id, custom_id, values)

    def submit(self, opener: Interaction, values: Mapping[str, Any]) -> Interaction:
        """Submit the form that the bot showed, with {custom_id: value}.

        A value is a text, a list of a menu's values or ids, a radio button's value, or whether a box is checked. Inputs
        left out keep their shown values.
        """
        return self.interactions.submit(opener, values)

    # Permissions

    def deny(self, channel_id: int, *names: str, member: int | None = None) -> None:
        """Deny permissions (discord.py's names) in a channel or category to `member`, by default the bot.

        `member`: id of a member or role.
        """
        self.world.overwrite(channel_id, member or self.bot_id, deny=permissions.bits(names))

    def allow(self, channel_id: int, *names: str, member: int | None = None) -> None:
        """Allow permissions, as in deny. `allow(channel, "manage_channels", member=ben)` makes Ben a manager there.

        Without an overwrite or a role only the first person, who owns the guild, can manage anything.
        """
        self.world.overwrite(channel_id, member or self.bot_id, allow=permissions.bits(names))


def _named(name: str, things: Iterable[Channel | Role | User]) -> int:
    for thing in things:
        if thing.name == name:
            return thing.id
    raise KeyError(name)


def _content(content: str) -> str:
    stripped = content.strip()
    if len(stripped) > MAX_CONTENT:
        raise invalid_form("content", "BASE_TYPE_MAX_LENGTH", f"Must be {MAX_CONTENT} or fewer in length.")
    return stripped


def _snapshot(given: Wire | str) -> Wire:
    message = {"content": given} if isinstance(given, str) else given
    defaults: Wire = {
        "type": 0,
        "content": "",
        "embeds": [],
        "attachments": [],
        "mentions": [],
        "mention_roles": [],
        "flags": 0,
        "timestamp": "2026-01-01T00:00:00+00:00",
        "edited_timestamp": None,
    }
    return {"message": defaults | message}
