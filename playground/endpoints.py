"""The REST endpoints that a bot uses. Each converts between Discord's JSON and the world."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from playground import body, errors, wire
from playground.commands import Commands
from playground.errors import invalid_form
from playground.gateway import Gateway
from playground.interactions import Interaction, Interactions
from playground.model import Channel, Message, Wire, snowflake
from playground.pins import Pins
from playground.posting import Posting
from playground.rest import Call, Route
from playground.threads import ThreadEndpoints
from playground.world import World

_MESSAGE = "/channels/{channel}/messages/{message}"
_REACTIONS = _MESSAGE + "/reactions"
_WEBHOOK = "/webhooks/{application}/{token}"
_HISTORY, _REACTORS = 50, 25  # entries of a page by default
_MAX_GUILDS = 200  # in the list of the bot's guilds
_SESSION_STARTS = 1_000  # Discord: IDENTIFYs a day
_DAY_MS = 86_400_000

Method = TypeVar("Method", bound=Callable[..., Any])
_ROUTES: list[tuple[str, str, Callable[..., Any], tuple[str | None, bool]]] = []


def _answers(method: str, path: str, limit: str | None = None, *, public: bool = False) -> Callable[[Method], Method]:
    """Registers a method of Endpoints for these requests; limit and public as in Route."""

    def mark(endpoint: Method) -> Method:
        _ROUTES.append((method, path, endpoint, (limit, public)))
        return endpoint

    return mark


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The endpoints, with the parts of the playground that they use."""

    world: World
    posting: Posting
    commands: Commands
    interactions: Interactions
    gateway: Gateway
    message_content: bool
    newest_first: bool = True

    def routes(self) -> list[Route]:
        threads = ThreadEndpoints(self.world, self.posting).routes()
        pins = Pins(self.world, self.posting, self._shown).routes()  # first, or "pins" would be read as a message's id
        own = [Route(method, path, partial(answer, self), *more) for method, path, answer, more in _ROUTES]
        return [*pins, *threads, Route("GET", "/gateway", lambda _: {"url": self.gateway.url}, public=True), *own]

    # The bot itself

    @_answers("GET", "/users/@me")
    def me(self, _: Call) -> Wire:
        return wire.user_object(self.world.bot) | {"verified": True, "mfa_enabled": False, "flags": 0}

    @_answers("GET", "/users/@me/guilds")
    def guilds(self, call: Call) -> list[Wire]:
        after, limit = call.number("after", 0), call.limit(_MAX_GUILDS, _MAX_GUILDS)
        own = sorted(one.id for one in self.world.guilds.values() if one.bot_is_member and one.id > after)
        return [wire.partial_guild_object(self.world, self.world.guilds[one]) for one in own[:limit]]

    @_answers("GET", "/users/{user}")
    def user(self, call: Call) -> Wire:
        return wire.user_object(self.world.user(call.id("user")))

    @_answers("POST", "/users/@me/channels")
    def open_dm(self, call: Call) -> Wire:
        recipient = snowflake(body.mapping(call.json).get("recipient_id"))
        if recipient is None or recipient == self.world.bot.id:
            raise invalid_form("recipient_id", "NUMBER_TYPE_COERCE", "Value is not snowflake.")
        return wire.channel_object(self.world, self.world.open_dm(recipient))

    @_answers("GET", "/applications/@me")
    @_answers("GET", "/oauth2/applications/@me")
    def application(self, _: Call) -> Wire:
        return wire.application_object(self.world, message_content=self.message_content)

    @_answers("GET", "/gateway/bot")
    def gateway_bot(self, _: Call) -> Wire:
        left = max(_SESSION_STARTS - self.gateway.identified, 0)
        limit: Wire = {
            "total": _SESSION_STARTS,
            "remaining": left,
            "reset_after": _DAY_MS,
            "max_concurrency": self.gateway.max_concurrency or 1,
        }
        return {"url": self.gateway.url, "shards": self.gateway.shards or 1, "session_start_limit": limit}

    @_answers("GET", "/channels/{channel}")
    def channel(self, call: Call) -> Wire:
        return wire.channel_object(self.world, self.posting.visible(call.id("channel")))

    @_answers("POST", "/channels/{channel}/typing")
    def typing(self, call: Call) -> None:
        channel = self.posting.writable(call.id("channel"))
        self.world.typing(channel.id, self.world.bot.id)

    @_answers("GET", "/guilds/{guild}/roles")
    def roles(self, call: Call) -> list[Wire]:
        return [wire.role_object(self.world, role) for role in self.posting.guild(call.id("guild")).roles.values()]

    @_answers("GET", "/guilds/{guild}/channels")
    def channels(self, call: Call) -> list[Wire]:
        guild = self.posting.guild(call.id("guild"))
        return [wire.channel_object(self.world, channel) for channel in guild.channels.values()]

    @_answers("GET", "/guilds/{guild}/members/{user}")
    def member(self, call: Call) -> Wire:
        guild = self.posting.guild(call.id("guild"))
        if (user := self.world.users.get(call.id("user"))) is None:
            raise errors.unknown_member()
        return wire.member_object(self.world, guild, user)

    # Messages and reactions

    def _shown(self, message: Message) -> Wire:
        """A message as the bot may see it: redacted without the message content intent."""
        data = wire.message_object(self.world, message)
        return data if self.message_content else wire.redacted(self.world, data)

    @_answers("GET", "/channels/{channel}/messages")
    def history(self, call: Call) -> list[Wire]:
        channel = self.posting.visible(call.id("channel"))
        if not self.world.may(channel, self.world.bot.id, "read_message_history"):
            return []
        ids = _page(channel, call)
        return [self._shown(channel.messages[one]) for one in (reversed(ids) if self.newest_first else ids)]

    @_answers("POST", "/channels/{channel}/messages", "sends")
    def send(self, call: Call) -> Wire:
        parsed = body.parse(body.mapping(call.json), call.files)
        return wire.message_object(self.world, self.posting.send(call.id("channel"), parsed))

    @_answers("GET", _MESSAGE)
    def get(self, call: Call) -> Wire:
        self.posting.visible(call.id("channel"), "read_message_history")
        return self._shown(self.world.message(call.id("channel"), call.id("message")))

    @_answers("PATCH", _MESSAGE, "edits")
    def edit(self, call: Call) -> Wire:
        parsed = body.parse(body.mapping(call.json), call.files)
        return wire.message_object(self.world, self.posting.edit(call.id("channel"), call.id("message"), parsed))

    @_answers("DELETE", _MESSAGE)
    def delete(self, call: Call) -> None:
        self.posting.delete(call.id("channel"), call.id("message"))

    @_answers("PUT", _REACTIONS + "/{emoji}/@me", "reactions")
    def react(self, call: Call) -> None:
        self.posting.react(call.id("channel"), call.id("message"), call.match["emoji"])

    @_answers("DELETE", _REACTIONS + "/{emoji}/{user}", "reactions")
    def unreact(self, call: Call) -> None:
        user_id = self.world.bot.id if call.match["user"] == "@me" else call.id("user")
        self.posting.unreact(call.id("channel"), call.id("message"), call.match["emoji"], user_id)

    @_answers("GET", _REACTIONS + "/{emoji}")
    def reactors(self, call: Call) -> list[Wire]:
        self.posting.visible(call.id("channel"), "read_message_history")
        message = self.world.message(call.id("channel"), call.id("message"))
        limit, after = call.limit(_REACTORS), call.number("after", 0)
        ids = [user_id for one in message.reactions if one.emoji == call.match["emoji"] for user_id in one.users]
        shown = sorted(user_id for user_id in ids if user_id > after)[:limit]
        return [wire.user_object(self.world.user(user_id)) for user_id in shown]

    @_answers("DELETE", _REACTIONS)
    def clear_reactions(self, call: Call) -> None:
        self.posting.visible(call.id("channel"), "manage_messages")
        self.world.clear_reactions(self.world.message(call.id("channel"), call.id("message")))

    # Commands

    def _scope(self, call: Call) -> int | None:
        """Id of the guild in the path; None: the path has none."""
        if call.id("application") != self.world.bot.id:
            raise errors.ApiError(404, 10002, "Unknown Application")
        return self.posting.guild(call.id("guild")).id if "guild" in call.match else None

    @_answers("GET", "/applications/{application}/commands")
    @_answers("GET", "/applications/{application}/guilds/{guild}/commands")
    def registered_commands(self, call: Call) -> list[Wire]:
        return self.commands.listed(self._scope(call))

    @_answers("PUT", "/applications/{application}/commands")
    @_answers("PUT", "/applications/{application}/guilds/{guild}/commands")
    def overwrite_commands(self, call: Call) -> list[Wire]:
        return self.commands.overwrite(call.json, self._scope(call))

    # Interactions

    @_answers("POST", "/interactions/{interaction}/{token}/callback", public=True)
    def callback(self, call: Call) -> Wire | None:
        given = body.mapping(call.json)
        payload = body.mapping(given.get("data") or {})
        made = self.interactions.answer(
            call.id("interaction"), call.match["token"], given.get("type"), payload, call.files
        )
        wanted = call.query.get("with_response") in ("1", "true")
        return self.interactions.callback_object(made) if wanted else None

    def _interaction(self, call: Call) -> Interaction:
        return self.interactions.by_token(call.match["application"], call.match["token"])

    @_answers("POST", _WEBHOOK, public=True)
    def follow_up(self, call: Call) -> Wire:
        message = self.interactions.follow_up(self._interaction(call), body.mapping(call.json), call.files)
        return wire.message_object(self.world, message)

    @_answers("GET", _WEBHOOK + "/messages/{message}", public=True)
    def answer(self, call: Call) -> Wire:
        message = self.interactions.message(self._interaction(call), call.match["message"])
        return wire.message_object(self.world, message)

    @_answers("PATCH", _WEBHOOK + "/messages/{message}", public=True)
    def edit_answer(self, call: Call) -> Wire:
        made, payload = self._interaction(call), body.mapping(call.json)
        return wire.message_object(self.world, self.interactions.edit(made, call.match["message"], payload, call.files))

    @_answers("DELETE", _WEBHOOK + "/messages/{message}", public=True)
    def delete_answer(self, call: Call) -> None:
        self.interactions.delete(self._interaction(call), call.match["message"])


def _page(channel: Channel, call: Call) -> list[int]:
    """The message ids that around, before, after and limit select, oldest first. ApiError 50035 for malformed ones."""
    limit = call.limit(_HISTORY)
    ids: list[int] = list(channel.messages)
    if "around" in call.query:
        start = max(0, bisect_left(ids, call.number("around", 0)) - limit // 2)
        return ids[start : start + limit]
    if "after" in call.query:
        start = bisect_right(ids, call.number("after", 0))
        return ids[start : start + limit]
    end = bisect_left(ids, call.number("before", 0)) if "before" in call.query else len(ids)
    return ids[max(0, end - limit) : end]
