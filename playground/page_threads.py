"""The page's requests about threads, forum posts and other bots."""

from collections.abc import Callable
from typing import Any

from aiohttp import web

from playground import errors
from playground.model import THREADS_ONLY, Channel, User, Wire
from playground.page_request import field, identity, place, speaker, texts
from playground.people import People

MAX_NAME = 100


class PageThreads:
    """Handles these requests with the permissions of the user who acts."""

    def __init__(self, people: People) -> None:
        self._people = people
        self._world = people.world

    def acts(self) -> list[tuple[str, str, Callable[[web.Request, Wire], Any]]]:
        channel = "/page/channels/{channel}"
        member = channel + "/members/{user}"
        return [
            ("POST", channel + "/threads", self._open),
            ("PATCH", channel, self._change),
            ("DELETE", channel, self._delete),
            ("PUT", member, self._add),
            ("DELETE", member, self._remove),
            ("POST", "/page/bots", lambda _, given: {"id": str(self._people.add_bot(_name(given)))}),
        ]

    def _open(self, request: web.Request, given: Wire) -> Wire:
        channel, author = self._world.channel(place(request, "channel")), speaker(self._world, given)
        private, name = field(given, "private", bool, False), _name(given)
        if channel.type in THREADS_ONLY:
            self._check(channel, author, "send_messages")
            content, tags = field(given, "content", str), texts(given, "tags")
            files = given["files"]
            made = self._people.forum_post(channel.id, author.id, name, content, tags=tags, attachments=files)
        else:
            self._check(channel, author, "create_private_threads" if private else "create_public_threads")
            starter = given.get("message_id")
            message = None if starter is None else self._world.message(channel.id, identity(given, "message_id"))
            made = self._people.open_thread(channel.id, author.id, name, message=message, private=private)
        return {"id": str(made)}

    def _check(self, channel: Channel, author: User, permission: str) -> None:
        if not self._world.may(channel, author.id, "view_channel", permission):
            raise errors.missing_permissions()

    def _thread(self, request: web.Request) -> Channel:
        channel = self._world.channel(place(request, "channel"))
        self._world.thread(channel)
        return channel

    def _change(self, request: web.Request, given: Wire) -> None:
        thread, actor = self._thread(request), speaker(self._world, given)
        changes: dict[str, Any] = {name: field(given, name, bool) for name in ("archived", "locked") if name in given}
        if "name" in given:
            changes["name"] = _name(given)
        state = self._world.thread(thread)
        if "locked" in changes or state.locked or state.owner_id != actor.id:
            self._check(thread, actor, "manage_threads")
        self._people.change_thread(thread.id, actor.id, **changes)

    def _delete(self, request: web.Request, given: Wire) -> None:
        thread = self._thread(request)
        self._check(thread, speaker(self._world, given), "manage_threads")
        self._people.delete_channel(thread.id)

    def _add(self, request: web.Request, given: Wire) -> None:
        thread, by = self._thread(request), speaker(self._world, given)
        self._check(thread, by, "send_messages_in_threads")
        user_id = place(request, "user")
        self._people.add_to_thread(thread.id, user_id, by=None if user_id == by.id else by.id)

    def _remove(self, request: web.Request, given: Wire) -> None:
        thread, by, user_id = self._thread(request), speaker(self._world, given), place(request, "user")
        if user_id == by.id:
            self._people.leave_thread(thread.id, user_id)
            return
        if self._world.thread(thread).owner_id != by.id:
            self._check(thread, by, "manage_threads")
        self._people.leave_thread(thread.id, user_id, by=by.id)


def _name(given: Wire) -> str:
    name = field(given, "name", str).strip()
    if not 1 <= len(name) <= MAX_NAME:
        raise errors.invalid_form("name", "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {MAX_NAME} in length.")
    return name
