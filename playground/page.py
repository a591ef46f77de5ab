"""The server side of the chat page: its files, its event stream, and people's actions.

The page acts for people without a password. So that no other site in the browser can do the same, `guard` refuses
requests for foreign hosts (DNS rebinding) or from foreign origins, on the whole port.
"""

import asyncio
import contextlib
import ipaddress
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
from aiohttp import web

from playground import errors, wire
from playground.commands import needed
from playground.errors import ApiError
from playground.gateway import Gateway
from playground.model import CATEGORY, Channel, Event, User, Wire
from playground.page_request import field, identity, place, read, speaker, texts
from playground.page_threads import PageThreads
from playground.people import People
from playground.scenes import Stage
from playground.world import World

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_FILES = Path(__file__).parent / "page"
_MAX_QUEUED = 5_000  # frames waiting for a page that does not read
_MAX_ANNOTATIONS = 5_000
_SHOWN = 200  # messages per channel that a page gets at first
_INLINE = ("image/png", "image/jpeg", "image/gif", "image/webp")
_ACTIVE = ("html", "xml", "javascript")
_UNKNOWN = "application/octet-stream"
_CONTENT_POLICY = "default-src 'self'; img-src 'self' http: https: data:; frame-ancestors 'none'"
_HEADERS = {
    "Content-Security-Policy": _CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


def guard(host: str) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Middleware that lets in only requests for this machine (or the host listened on), from its own pages."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        origin = request.headers.get("Origin", f"http://{request.host}")
        if not _is_ours(request.host, host) or origin != f"http://{request.host}":
            return _json({"error": "This address may only be used from its own page."}, status=403)
        return await handler(request)

    return middleware


def _is_ours(asked: str, bound: str) -> bool:
    try:
        name = urlsplit(f"//{asked}").hostname or ""
        if name in ("localhost", bound):
            return True
        address = ipaddress.ip_address(name)
    except ValueError:  # neither a host name nor an address
        return False
    # Listening on all interfaces, any literal address is accepted: rebinding needs a name.
    return address.is_loopback or bound in ("0.0.0.0", "::")  # noqa: S104 - compared, not bound


class Page:
    """Serves the page, sends events to open ones, and keeps the annotations of messages."""

    def __init__(self, people: People, gateway: Gateway, stage: Stage, decisions: bool) -> None:
        self._people = people
        self._world = people.world
        self._gateway = gateway
        self._stage = stage
        self._decisions = decisions
        self._feeds: set[asyncio.Queue[bytes | None]] = set()
        self._annotations: OrderedDict[int, Wire] = OrderedDict()

    def routes(self) -> list[web.RouteDef]:
        message = "/page/channels/{channel}/messages/{message}"
        reaction = message + "/reactions/{emoji}"
        acts: list[tuple[str, str, Callable[[web.Request, Wire], Any]]] = [
            ("POST", "/page/channels/{channel}/messages", self._post),
            ("PATCH", message, self._edit),
            ("DELETE", message, self._delete),
            (
                "POST",
                "/page/channels/{channel}/typing",
                lambda request, given: self._people.typing(place(request, "channel"), speaker(self._world, given).id),
            ),
            ("PUT", reaction, self._react),
            ("DELETE", reaction, partial(self._react, add=False)),
            ("POST", "/page/channels/{channel}/commands", self._command),
            ("POST", "/page/channels/{channel}/autocomplete", self._autocomplete),
            ("POST", "/page/channels/{channel}/components", self._click),
            ("POST", "/page/channels/{channel}/forms", self._submit),
            (
                "PUT",
                "/page/channels/{channel}/scene",
                lambda request, given: self._stage.play(place(request, "channel"), field(given, "title", str)),
            ),
            (
                "DELETE",
                "/page/channels/{channel}/scene",
                lambda request, _: self._stage.stop(place(request, "channel")),
            ),
            *PageThreads(self._people).acts(),
            ("DELETE", "/page/bot", lambda *_: self._people.remove_bot()),
            ("PUT", "/page/bot", lambda *_: self._people.invite_bot()),
        ]
        return [
            web.get("/", self._file),
            web.get("/page/events", self._events),
            web.get("/page/{file}", self._file),
            web.get("/oauth2/authorize", self._authorize),
            web.get("/attachments/{channel}/{id}/{name}", self._attachment),
            *(web.route(method, path, _acting(act, self._world)) for method, path, act in acts),
        ]

    # Files

    async def _file(self, request: web.Request) -> web.StreamResponse:
        files = {path.name: path for path in _FILES.iterdir()}
        wanted = request.match_info.get("file", "index.html")
        if wanted not in files:
            raise web.HTTPNotFound
        return web.FileResponse(files[wanted], headers=_HEADERS | {"Cache-Control": "no-cache"})

    async def _attachment(self, request: web.Request) -> web.StreamResponse:
        file_id = request.match_info["id"]
        file = self._world.files.get(int(file_id)) if file_id.isdecimal() else None
        if file is None:
            raise web.HTTPNotFound
        inline = file.content_type in _INLINE  # anything else could be a page with scripts
        headers = _HEADERS | {"Content-Disposition": "inline" if inline else "attachment"}
        headers |= {"Content-Security-Policy": "sandbox; default-src 'none'"}
        active = any(kind in file.content_type for kind in _ACTIVE)
        headers["Content-Type"] = _UNKNOWN if active else file.content_type or _UNKNOWN
        return web.Response(body=file.data, headers=headers)

    async def _authorize(self, request: web.Request) -> web.StreamResponse:
        """The invitation link: adds the bot without asking, and shows the page."""
        if request.query.get("client_id") != str(self._world.bot.id):
            raise web.HTTPNotFound
        self._people.invite_bot()
        raise web.HTTPFound("/")

    # Events

    async def _events(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(heartbeat=30.0)
        await socket.prepare(request)
        feed: asyncio.Queue[bytes | None] = asyncio.Queue()
        feed.put_nowait(orjson.dumps(self._snapshot()))
        self._feeds.add(feed)
        writer = asyncio.create_task(_write(socket, feed))
        try:
            async for _ in socket:
                pass  # the page only listens here
        finally:
            self._feeds.discard(feed)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
        return socket

    def close(self) -> None:
        """End all event streams."""
        for feed in self._feeds:
            feed.put_nowait(None)

    def _snapshot(self) -> Wire:
        """The first guild and the direct messages, in the form of the page."""
        world, bot = self._world, self._world.bot
        for person in world.people:
            world.open_dm(person.id)
        guild = world.guild
        threads = world.threads_in(guild)
        channels = [*guild.channels.values(), *threads, *world.dms.values()]
        return {
            "type": "world",
            "guild": {
                "id": str(guild.id),
                "name": guild.name,
                "owner_id": str(world.owner_id),
                "roles": [{"id": str(one.id), "name": one.name} for one in guild.roles.values()],
            },
            "categories": [
                {"id": str(one.id), "name": one.name, "type": one.type}
                for one in guild.channels.values()
                if one.type == CATEGORY
            ],
            "channels": [self._channel(one) for one in guild.channels.values() if one.type != CATEGORY],
            "threads": [self._channel(one) for one in threads],
            "dms": [self._channel(one) for one in world.dms.values()],
            "people": [self._person(one) for one in world.people],
            "bots": [self._person(one) for one in world.users.values() if one.bot and one.id != bot.id],
            "bot": {
                "id": str(bot.id),
                "name": bot.name,
                "connected": self._gateway.connected,
                "member": guild.bot_is_member,
            },
            "commands": self._commands(),
            "decisions": self._decisions,
            "scenes": [{"title": scene.title, "look": scene.look} for scene in self._stage.scenes],
            "messages": {
                str(one.id): [wire.message_object(world, message) for message in list(one.messages.values())[-_SHOWN:]]
                for one in channels
            },
            "annotations": {str(message_id): note for message_id, note in self._annotations.items()},
        }

    def _person(self, user: User) -> Wire:
        roles = [str(role.id) for role in self._world.guild.roles_of(user.id)]
        return {"id": str(user.id), "name": user.name, "color": user.color, "roles": roles}

    def _channel(self, channel: Channel) -> Wire:
        allowed = {str(one.id): str(self._world.permissions(channel, one.id)) for one in self._world.users.values()}
        told: Wire = {
            "id": str(channel.id),
            "name": channel.name,
            "topic": channel.topic,
            "type": channel.type,
            "permissions": allowed,
            "scene": self._playing(channel),
            "tags": [tag["name"] for tag in channel.tags],
        }
        if channel.thread is None and channel.parent_id is not None:
            told["category_id"] = str(channel.parent_id)
        if channel.recipient_id is not None:
            told["recipient_id"] = str(channel.recipient_id)
        if (thread := channel.thread) is not None:
            names = {tag["id"]: tag["name"] for tag in self._world.channel(channel.parent_id or 0).tags}
            told |= {
                "parent_id": str(channel.parent_id),
                "owner_id": str(thread.owner_id),
                "archived": thread.archived,
                "locked": thread.locked,
                "members": [str(one) for one in thread.members],
                "tags": [names[tag] for tag in thread.tags],
            }
        return told

    def _playing(self, channel: Channel) -> str | None:
        """Title of the scene that is played there; None: none."""
        scene = self._stage.playing(channel.id)
        return scene.title if scene else None

    def _commands(self) -> list[Wire]:
        """The commands with the permissions that each needs, so that the page can hide them as Discord does."""
        shown = self._people.commands.all() if self._world.guild.bot_is_member else []
        return [command | {"needed": str(needed(command))} for command in shown]

    def publish(self, event: Event) -> None:
        """Send an event to the open pages."""
        guild = self._world.guild_of(event.channel) if event.channel else event.guild
        if self._feeds and guild in (None, self._world.guild) and (frame := self._frame(event)) is not None:
            self._send(frame)

    def _send(self, frame: Wire) -> None:
        data = orjson.dumps(frame)
        for feed in self._feeds:
            if feed.qsize() < _MAX_QUEUED:
                feed.put_nowait(data)
            else:
                feed.put_nowait(None)  # closes it; it gets a new snapshot when it reconnects

    def _frame(self, event: Event) -> Wire | None:
        match event.name:
            case "MESSAGE_CREATE" | "MESSAGE_UPDATE":
                return {"type": event.name.lower(), "message": wire.payload(self._world, event)}
            case "MESSAGE_DELETE" | "EPHEMERAL_DELETE" if event.channel:
                return {"type": "message_delete", "channel_id": str(event.channel.id), "id": str(event.ids[0])}
            case "TYPING_START" if event.channel:
                return {"type": "typing", "channel_id": str(event.channel.id), "user_id": str(event.user_id)}
            case "SCENE" if event.channel:
                told = {"type": "scene", "channel_id": str(event.channel.id), "title": self._playing(event.channel)}
                return told | (event.data or {})
            case "THREAD_CREATE" | "THREAD_UPDATE" | "THREAD_MEMBERS_UPDATE" if event.channel:
                return {"type": "thread", "thread": self._channel(event.channel)}
            case "THREAD_DELETE" if event.channel:
                return {"type": "thread_delete", "id": str(event.channel.id)}
            case "COMMANDS":
                return {"type": "commands", "commands": self._commands()}
            case "BOT":
                return {"type": "bot", "connected": self._gateway.connected}
            case (
                "PEOPLE"
                | "CHANNEL_CREATE"
                | "CHANNEL_UPDATE"
                | "CHANNEL_DELETE"
                | "MESSAGE_DELETE_BULK"
                | "GUILD_CREATE"
                | "GUILD_DELETE"
                | "GUILD_ROLE_CREATE"
                | "GUILD_ROLE_UPDATE"
                | "GUILD_ROLE_DELETE"
                | "GUILD_MEMBER_UPDATE"
            ):
                return self._snapshot()
        return _reactions(event) if event.name.startswith("MESSAGE_REACTION") else self._private_frame(event)

    def _private_frame(self, event: Event) -> Wire | None:
        """The frame of an event that only one person sees."""
        place = {"user_id": str(event.user_id), "channel_id": str(event.channel.id if event.channel else None)}
        match event.name:
            case "EPHEMERAL" if event.message:
                return {"type": "ephemeral", **place, "message": wire.message_object(self._world, event.message)}
            case "FORM" | "SUGGESTIONS" if event.data:
                return {"type": event.name.lower(), **place, **event.data}
            case "INTERACTION_FAILED" if event.message:
                return {"type": "interaction_failed", **place, "message_id": str(event.message.id)}
        return None

    def annotate(self, message_id: int, *, respond: bool, reason: str, text: str) -> None:
        """Show the bot's decision beside a message. `text`: a line for people."""
        note: Wire = {"respond": respond, "reason": reason, "text": text}
        self._annotations[message_id] = note
        if len(self._annotations) > _MAX_ANNOTATIONS:
            self._annotations.popitem(last=False)
        if self._feeds:
            self._send({"type": "annotation", "message_id": str(message_id), "annotation": note})

    # What people do on the page

    def _post(self, request: web.Request, given: Wire) -> Any:
        reply_to = identity(given, "reply_to") if given.get("reply_to") is not None else None
        ping = field(given, "ping", bool, True)
        content, author_id = field(given, "content", str), speaker(self._world, given).id
        where, files = place(request, "channel"), given["files"]
        message = self._people.post(where, author_id, content, reply_to=reply_to, ping=ping, attachments=files)
        return wire.message_object(self._world, message)

    def _edit(self, request: web.Request, given: Wire) -> Any:
        message = self._world.message(place(request, "channel"), place(request, "message"))
        content, author_id = field(given, "content", str), speaker(self._world, given).id
        return wire.message_object(self._world, self._people.edit(message, content, author_id=author_id))

    def _delete(self, request: web.Request, given: Wire) -> Any:
        message = self._world.message(place(request, "channel"), place(request, "message"))
        self._people.delete(message, author_id=speaker(self._world, given).id)

    def _react(self, request: web.Request, given: Wire, *, add: bool = True) -> Any:
        message = self._world.message(place(request, "channel"), place(request, "message"))
        self._people.react(message, speaker(self._world, given).id, request.match_info["emoji"], add=add)

    def _command(self, request: web.Request, given: Wire) -> Any:
        options: Wire = field(given, "options", dict, {})
        target_id = identity(given, "target_id") if given.get("target_id") is not None else None
        name = str(identity(given, "command_id"))
        made = self._people.command(place(request, "channel"), speaker(self._world, given).id, name, options, target_id)
        return {"id": str(made.id)}

    def _autocomplete(self, request: web.Request, given: Wire) -> Any:
        options, focused = field(given, "options", dict), field(given, "focused", str)
        name, author_id = str(identity(given, "command_id")), speaker(self._world, given).id
        return {"id": str(self._people.autocomplete(place(request, "channel"), author_id, name, options, focused).id)}

    def _click(self, request: web.Request, given: Wire) -> Any:
        self._world.channel(place(request, "channel"))
        values = texts(given, "values")
        custom_id, author_id = field(given, "custom_id", str), speaker(self._world, given).id
        return {"id": str(self._people.click(identity(given, "message_id"), author_id, custom_id, values).id)}

    def _submit(self, request: web.Request, given: Wire) -> Any:
        self._world.channel(place(request, "channel"))
        opener = self._people.interactions.shown_form(identity(given, "interaction_id"), speaker(self._world, given).id)
        return {"id": str(self._people.submit(opener, field(given, "values", dict)).id)}


async def _write(socket: web.WebSocketResponse, feed: asyncio.Queue[bytes | None]) -> None:
    with contextlib.suppress(ConnectionError):
        while (data := await feed.get()) is not None:
            await socket.send_str(data.decode())
        await socket.close(code=1001)


def _reactions(event: Event) -> Wire | None:
    if event.message is None:
        return None
    shown = [{"emoji": one.emoji, "users": [str(user) for user in one.users]} for one in event.message.reactions]
    place = {"channel_id": str(event.message.channel_id), "message_id": str(event.message.id)}
    return {"type": "reactions", **place, "reactions": shown}


def _acting(act: Callable[[web.Request, Wire], Any], world: World) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return _json(act(request, await read(request, world.upload_limit)) or {})
        except ApiError as error:
            return _json({"error": _sentence(error, world)}, status=error.status)

    return handle


def _sentence(error: ApiError, world: World) -> str:
    """The error as one sentence for the page. Of a form error the first field is named."""
    if error.code == errors.too_large().code:
        return f"That is too large: a file may have {world.upload_limit >> 20} MB at most."
    found, path = error.errors or {}, []
    while found and "_errors" not in found:
        key = next(iter(found))
        path.append(key)
        found = found[key]
    if not found:
        return f"{error.message.rstrip('.')}."
    return f"{'.'.join(path)}: {found['_errors'][0]['message'].rstrip('.')}."


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(value), content_type="application/json", headers=_HEADERS)
