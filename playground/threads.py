"""The endpoints of threads and forum posts (Discord: channel resource, threads)."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from playground import body, errors, wire
from playground.errors import Form, invalid_form
from playground.model import (
    ANNOUNCEMENT_THREAD,
    PRIVATE_THREAD,
    PUBLIC_THREAD,
    REPLY,
    THREAD_KINDS,
    THREADS_ONLY,
    Channel,
    Wire,
)
from playground.posting import Posting
from playground.rest import Call, Route
from playground.world import AUTO_ARCHIVE_MINUTES, World

MAX_ACTIVE = 1_000  # Discord's limit for a guild
_MAX_NAME = 100
_MAX_TAGS = 5
_MINUTES = (60, 1_440, 4_320, 10_080)
_CHANNEL, _MEMBERS = "/channels/{channel}", "/channels/{channel}/thread-members"
# The fields that a thread's owner may set, too -> their names in World.change_thread.
_OWN = {"name": "name", "archived": "archived", "auto_archive_duration": "auto_archive_minutes", "applied_tags": "tags"}
_FIELDS = _OWN | {"locked": "locked", "invitable": "invitable"}


@dataclass(frozen=True, slots=True)
class ThreadEndpoints:
    """The endpoints, with the parts that they use."""

    world: World
    posting: Posting

    def routes(self) -> list[Route]:
        archived = _CHANNEL + "/threads/archived"
        return [
            Route("POST", _CHANNEL + "/threads", self._open),
            Route("POST", _CHANNEL + "/messages/{message}/threads", self._open_at),
            Route("PATCH", _CHANNEL, self._change),
            Route("DELETE", _CHANNEL, self._delete),
            Route("PUT", _MEMBERS + "/@me", lambda call: self._join(call, self.world.bot.id)),
            Route("DELETE", _MEMBERS + "/@me", lambda call: self._leave(call, self.world.bot.id)),
            Route("PUT", _MEMBERS + "/{user}", lambda call: self._join(call, self.world.user(call.id("user")).id)),
            Route("DELETE", _MEMBERS + "/{user}", lambda call: self._leave(call, call.id("user"))),
            Route("GET", _MEMBERS + "/{user}", self._member),
            Route("GET", _MEMBERS, self._members),
            Route("GET", "/guilds/{guild}/threads/active", self._active),
            Route("GET", archived + "/public", lambda call: self._archived(call, PUBLIC_THREAD, ANNOUNCEMENT_THREAD)),
            Route("GET", archived + "/private", lambda call: self._archived(call, PRIVATE_THREAD)),
            Route("GET", _CHANNEL + "/users/@me/threads/archived/private", self._joined_archived),
        ]

    # Opening

    def _open(self, call: Call) -> Wire:
        channel, given = self.posting.visible(call.id("channel")), body.mapping(call.json)
        if channel.type in THREADS_ONLY:
            return self._open_post(channel, given, call)
        kind = given.get("type", PRIVATE_THREAD)
        if kind not in THREAD_KINDS.get(channel.type, ()):
            raise errors.wrong_channel_type()
        self._check_may(channel, "create_private_threads" if kind == PRIVATE_THREAD else "create_public_threads")
        invitable = kind != PRIVATE_THREAD or given.get("invitable") is not False
        how = self._checked(given)
        thread = self.world.open_thread(channel, self.world.bot, type=kind, invitable=invitable, **how)
        return wire.channel_object(self.world, thread)

    def _open_at(self, call: Call) -> Wire:
        channel = self.posting.visible(call.id("channel"), "read_message_history")
        if channel.type not in THREAD_KINDS:
            raise errors.wrong_channel_type()
        starter = self.world.message(channel.id, call.id("message"))
        self._check_may(channel, "create_public_threads")
        if starter.type not in (0, REPLY, 20, 23):
            raise errors.wrong_message_type()
        if starter.id in self.world.threads:
            raise errors.thread_exists()
        how = self._checked(body.mapping(call.json))
        thread = self.world.open_thread(
            channel, self.world.bot, type=THREAD_KINDS[channel.type][0], starter=starter, **how
        )
        return wire.channel_object(self.world, thread)

    def _open_post(self, forum: Channel, given: Wire, call: Call) -> Wire:
        self._check_may(forum, "send_messages")
        how = self._checked(given)
        if not isinstance(given.get("message"), dict):
            raise invalid_form("message", "BASE_TYPE_REQUIRED", "This field is required")
        tags = self._checked_tags(forum, given.get("applied_tags") or [])
        if forum.needs_tag and not tags:
            raise errors.tag_required()
        parsed = body.parse(given["message"], call.files)
        if parsed.empty:
            raise errors.empty_message()
        self.posting.check_rich(forum, parsed)
        draft = self.posting.draft(forum, parsed)
        thread = self.world.open_thread(forum, self.world.bot, first=draft, tags=tags, **how)
        first = wire.message_object(self.world, thread.messages[thread.id])
        return wire.channel_object(self.world, thread) | {"message": first}

    def _check_may(self, channel: Channel, permission: str) -> None:
        if not self.world.may(channel, self.world.bot.id, permission):
            raise errors.missing_permissions()
        self._check_active()

    def _check_active(self) -> None:
        if sum(not self.world.thread(one).archived for one in self.world.threads.values()) >= MAX_ACTIVE:
            raise errors.too_many_threads()

    def _checked(self, given: Wire) -> dict[str, Any]:
        form = Form()
        name, minutes = given.get("name"), given.get("auto_archive_duration", AUTO_ARCHIVE_MINUTES)
        _check_name(form, name)
        _check_minutes(form, minutes)
        form.check()
        return {"name": str(name).strip(), "minutes": minutes}

    def _checked_tags(self, forum: Channel, given: Any) -> tuple[str, ...]:
        known = {tag["id"]: tag for tag in forum.tags}
        if not isinstance(given, list) or len(given) > _MAX_TAGS:
            raise invalid_form("applied_tags", "BASE_TYPE_MAX_LENGTH", f"Must be {_MAX_TAGS} or fewer in length.")
        wanted = tuple(str(one) for one in given)
        if not known.keys() >= set(wanted):
            raise invalid_form("applied_tags", "BASE_TYPE_CHOICES", "There is no such tag in this channel.")
        moderated = any(known[one].get("moderated") for one in wanted)
        if moderated and not self.world.may(forum, self.world.bot.id, "manage_threads"):
            raise errors.missing_permissions()
        return wanted

    # Changing

    def _change(self, call: Call) -> Wire:
        channel, given = self.posting.visible(call.id("channel")), body.mapping(call.json)
        if channel.thread is None:
            raise errors.missing_permissions()  # the bot manages no channels
        self._check_may_change(channel, given)
        form = Form()
        if "name" in given:
            _check_name(form, given["name"])
        if "auto_archive_duration" in given:
            _check_minutes(form, given["auto_archive_duration"])
        for field in ("archived", "locked", "invitable"):
            if not isinstance(given.get(field, False), bool):
                form.wrong(field, "BOOLEAN_TYPE_CONVERT", "Must be either true or false.")
        form.check()
        changes = {_FIELDS[field]: value for field, value in given.items() if field in _FIELDS}
        if "tags" in changes:
            changes["tags"] = self._checked_tags(self.world.channel(channel.parent_id or 0), changes["tags"])
        self.world.change_thread(channel, self.world.bot, changes)
        return wire.channel_object(self.world, channel)

    def _check_may_change(self, channel: Channel, given: Mapping[str, Any]) -> None:
        """ApiError unless allowed. Discord: who may write may unarchive, the owner may change, managers may lock."""
        thread, bot_id = self.world.thread(channel), self.world.bot.id
        if thread.archived and given.get("archived") is not False:
            raise errors.thread_archived()
        if thread.archived:
            self._check_active()
        if self.world.may(channel, bot_id, "manage_threads"):
            return
        if thread.locked and given.get("archived") is False:
            raise errors.thread_locked()
        if given.keys() == {"archived"} and given["archived"] is False:
            self.posting.check_writable(channel, bot_id)
        elif thread.owner_id != bot_id or not given.keys() <= _OWN.keys():
            raise errors.missing_permissions()

    def _delete(self, call: Call) -> Wire:
        channel = self.posting.visible(call.id("channel"))
        needed = "manage_channels" if channel.thread is None else "manage_threads"
        if channel.recipient_id is None:
            self.posting.visible(channel.id, needed)
            self.world.delete_channel(channel)
        return wire.channel_object(self.world, channel)

    # Members

    def _thread(self, call: Call) -> Channel:
        """The thread in the path. ApiError 50083: it is archived."""
        channel = self.posting.changeable(call.id("channel"))
        self.world.thread(channel)
        return channel

    def _join(self, call: Call, user_id: int) -> None:
        channel, bot = self._thread(call), self.world.bot
        thread = self.world.thread(channel)
        if user_id == bot.id:
            self.world.join_thread(channel, user_id)
            return
        self.posting.check_writable(channel, bot.id)
        invites = thread.invitable or thread.owner_id == bot.id or self.world.may(channel, bot.id, "manage_threads")
        if not invites or not self.world.may(self.world.channel(channel.parent_id or 0), user_id, "view_channel"):
            raise errors.missing_permissions()
        self.world.join_thread(channel, user_id, by=bot)

    def _leave(self, call: Call, user_id: int) -> None:
        channel, bot = self._thread(call), self.world.bot
        own = channel.type == PRIVATE_THREAD and self.world.thread(channel).owner_id == bot.id
        if user_id == bot.id:
            self.world.leave_thread(channel, user_id)
        elif own or self.world.may(channel, bot.id, "manage_threads"):
            self.world.leave_thread(channel, user_id, by=bot)
        else:
            raise errors.missing_permissions()

    def _member(self, call: Call) -> Wire:
        channel = self.posting.visible(call.id("channel"))
        self.world.thread(channel)
        user_id = self.world.bot.id if call.match["user"] == "@me" else call.id("user")
        found = wire.thread_member(channel, user_id)
        if found is None:
            raise errors.unknown_member()
        return found

    def _members(self, call: Call) -> None:
        self.world.thread(self.posting.visible(call.id("channel")))
        raise errors.missing_access()  # Discord: needs the members intent, which this application does not have

    # Lists

    def _active(self, call: Call) -> Wire:
        return wire.active_threads(self.world, self.world.threads_in(self.posting.guild(call.id("guild"))))

    def _archived(self, call: Call, *kinds: int) -> Wire:
        needed = ("manage_threads",) if PRIVATE_THREAD in kinds else ()
        channel = self.posting.visible(call.id("channel"), "read_message_history", *needed)
        found = [one for one in self._archived_in(channel) if one.type in kinds]
        found.sort(key=lambda one: self.world.thread(one).archived_at, reverse=True)
        if "before" in call.query:
            try:
                before = dt.datetime.fromisoformat(call.query["before"]).timestamp()
            except ValueError:
                raise invalid_form("before", "DATETIME_TYPE_PARSE", "Value is not a time.") from None
            found = [one for one in found if self.world.thread(one).archived_at < before]
        return self._page(call, found)

    def _joined_archived(self, call: Call) -> Wire:
        channel = self.posting.visible(call.id("channel"), "read_message_history")
        before = call.number("before", 1 << 63)
        found = [
            one
            for one in reversed(self._archived_in(channel))
            if one.type == PRIVATE_THREAD and wire.thread_member(one, self.world.bot.id) and one.id < before
        ]
        return self._page(call, found)

    def _archived_in(self, channel: Channel) -> list[Channel]:
        return [one for one in self.world.threads_of(channel) if self.world.thread(one).archived]

    def _page(self, call: Call, found: list[Channel]) -> Wire:
        limit = call.limit(50)
        return wire.thread_list(self.world, found[:limit]) | {"has_more": len(found) > limit}


def _check_name(form: Form, name: Any) -> None:
    if not isinstance(name, str) or not 1 <= len(name.strip()) <= _MAX_NAME:
        form.wrong("name", "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {_MAX_NAME} in length.")


def _check_minutes(form: Form, minutes: Any) -> None:
    if minutes not in _MINUTES:
        form.wrong("auto_archive_duration", "BASE_TYPE_CHOICES", f"Value must be one of {_MINUTES}.")
