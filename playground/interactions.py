"""Interactions: a person uses a command, component or form, and the bot responds by Discord's rules and timeouts."""

import asyncio
import contextlib
import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from playground import body, choices, commands, errors, forms, interaction_wire, options, wire
from playground.body import EPHEMERAL, Body
from playground.changes import Changes
from playground.ephemerals import Ephemerals
from playground.errors import ApiError, invalid_form
from playground.model import Clock, Event, File, Message, Wire, snowflake
from playground.posting import Posting
from playground.world import World

_COMMAND, _COMPONENT, _AUTOCOMPLETE, _MODAL = 2, 3, 4, 5  # interaction types
_REPLY, _DEFER, _DEFER_UPDATE, _UPDATE, _SUGGEST, _FORM = 4, 5, 6, 7, 8, 9  # callback types
_LOADING = 1 << 7
_ANSWER_SECONDS, _TOKEN_SECONDS = 3.0, 15 * 60.0
_MAX_KEPT = 1_000
_MAX_FOLLOW_UPS = 5  # Discord's limit if only a person's own installation authorizes the interaction
_COMMAND_TYPES = {commands.SLASH: 20, commands.USER: 23, commands.MESSAGE: 23}  # message types of the responses


@dataclass(slots=True, eq=False)
class Interaction:
    """An interaction and its state. `callback`: type of the bot's first response; None: no response yet.

    `messages`: those that the responses made, as last edited; `original_id`: id of the first. `suggested`: the choices
    of an autocomplete response.
    """

    id: int
    type: int
    token: str
    channel_id: int
    user_id: int
    data: Wire
    created: float
    owners: dict[str, str]
    source: Message | None = None
    callback: int | None = None
    form: Wire | None = None
    suggested: list[Wire] | None = None
    original_id: int | None = None
    messages: dict[int, Message] = field(default_factory=dict)
    follow_ups: int = 0

    @property
    def reply(self) -> Message | None:
        """The first response. None: there is none yet, or it is still "thinking"."""
        original = self.messages.get(self.original_id or 0)
        return None if original is None or original.flags & _LOADING else original


class Interactions:
    """The last 1,000 interactions. Those without a response in time fail, by the event loop's clock."""

    def __init__(self, world: World, posting: Posting, clock: Clock, changes: Changes) -> None:
        self._world = world
        self._posting = posting
        self._clock = clock
        self._changes = changes
        self._by_token: OrderedDict[str, Interaction] = OrderedDict()
        self._ephemerals = Ephemerals(world)

    # People's side

    def use(
        self, channel_id: int, user_id: int, command: Wire, given: Mapping[str, Any], target_id: int | None = None
    ) -> Interaction:
        """A person uses a command. `given` as in options.filled, `target_id` as in People.command.

        ApiError 50013: the person may not use it.
        """
        channel, data = self._world.channel(channel_id), self._usable(channel_id, user_id, command)
        owners = commands.owners(self._world, channel, user_id, command)
        data["options"] = options.filled(command["options"], given)
        data["resolved"] = interaction_wire.resolved(self._world, channel, user_id, data, target_id)
        if target_id is not None:
            data["target_id"] = str(target_id)
        return self._begin(_COMMAND, channel_id, user_id, data, owners)

    def _usable(self, channel_id: int, user_id: int, command: Wire) -> Wire:
        """The command's fields in an interaction. ApiError 50013: the person may not use it."""
        channel, needed = self._world.channel(channel_id), commands.needed(command)
        if channel.guild_id is not None and self._world.permissions(channel, user_id) & needed != needed:
            raise errors.missing_permissions()
        return {name: command[name] for name in ("id", "name", "type", "guild_id") if name in command}

    def autocomplete(
        self, channel_id: int, user_id: int, command: Wire, given: Mapping[str, Any], focused: str
    ) -> Interaction:
        """A person types the option `focused` of a command. `given`: all options filled in so far."""
        channel, data = self._world.channel(channel_id), self._usable(channel_id, user_id, command)
        data["options"] = options.typed(command["options"], given, focused)
        data["resolved"] = interaction_wire.resolved(self._world, channel, user_id, data, None)
        owners = commands.owners(self._world, channel, user_id, command)
        return self._begin(_AUTOCOMPLETE, channel_id, user_id, data, owners)

    def click(self, message: Message, user_id: int, custom_id: str, values: Sequence[str] = ()) -> Interaction:
        """A person uses a component. ApiError if it does not exist, is disabled, or lacks such an option."""
        parts = (part for row in message.components for part in row["components"])
        part = next((one for one in parts if one.get("custom_id") == custom_id and not one.get("disabled")), None)
        if part is None:
            raise invalid_form("custom_id", "COMPONENT_UNKNOWN", "That component is not there, or is disabled.")
        data: Wire = {"custom_id": custom_id, "component_type": part["type"]}
        if part["type"] in choices.SELECTS:
            choices.check_chosen(part, values)
            data["values"] = list(values)
        if part["type"] in choices.SELECTS - {choices.STRING}:
            channel = self._world.channel(message.channel_id)
            data["resolved"] = interaction_wire.chosen(self._world, channel, user_id, [(part, values)])
        # The installations that authorize a component are those of the interaction to which its message responds.
        owners = (message.interaction or {}).get("authorizing_integration_owners") or commands.owners(
            self._world, self._world.channel(message.channel_id), user_id
        )
        return self._begin(_COMPONENT, message.channel_id, user_id, data, owners, message)

    def submit(self, opener: Interaction, values: Mapping[str, Any]) -> Interaction:
        """The person to whom a form was shown submits it. `values` as in forms.filled."""
        form = opener.form
        if form is None:
            raise errors.unknown_interaction()
        data: Wire = {"custom_id": form["custom_id"], "components": forms.filled(form, values)}
        channel, given = self._world.channel(opener.channel_id), forms.chosen(form, data["components"])
        data["resolved"] = interaction_wire.chosen(self._world, channel, opener.user_id, given)
        return self._begin(_MODAL, opener.channel_id, opener.user_id, data, opener.owners, opener.source)

    def _begin(
        self,
        kind: int,
        channel_id: int,
        user_id: int,
        data: Wire,
        owners: Mapping[str, str],
        source: Message | None = None,
    ) -> Interaction:
        channel, user = self._world.channel(channel_id), self._world.user(user_id)
        if not owners:
            raise errors.unknown_command() if self._world.bot_is_member else errors.missing_access()
        if not self._world.may(channel, user.id, "use_application_commands"):
            raise errors.missing_permissions()
        if channel.thread is not None and channel.thread.archived:
            raise errors.thread_archived()
        token, now = secrets.token_urlsafe(32), self._clock()
        made = Interaction(self._world.next_id(), kind, token, channel.id, user.id, data, now, dict(owners), source)
        self._by_token[token] = made
        if len(self._by_token) > _MAX_KEPT:
            self._by_token.popitem(last=False)
        own: Wire = {"id": str(made.id), "type": kind, "token": token, "data": data}
        own["authorizing_integration_owners"] = made.owners
        payload = interaction_wire.interaction_object(self._world, channel, user, own, source)
        self._world.emit(Event(name="INTERACTION_CREATE", channel=channel, data=payload))
        asyncio.get_running_loop().call_later(_ANSWER_SECONDS, self._give_up, made)
        return made

    def _give_up(self, made: Interaction) -> None:
        """Reports to the person that the interaction failed, if the bot has not responded."""
        if made.callback is not None or made.type == _AUTOCOMPLETE:
            return
        with contextlib.suppress(ApiError):  # if the channel was deleted meanwhile, nobody waits
            channel = self._world.channel(made.channel_id)
            event = Event(name="INTERACTION_FAILED", channel=channel, message=made.source, user_id=made.user_id)
            self._world.emit(event)

    def shown_form(self, interaction_id: int, user_id: int) -> Interaction:
        """The interaction that showed a form to this person. ApiError 10062: there is none."""
        for made in self._by_token.values():
            if made.id == interaction_id and made.user_id == user_id and made.form is not None:
                return made
        raise errors.unknown_interaction()

    def recent(self) -> list[Interaction]:
        """The interactions, oldest first."""
        return list(self._by_token.values())

    def ephemeral(self, message_id: int, user_id: int) -> Message | None:
        """The current version of an ephemeral message of this person. None: there is none."""
        return self._ephemerals.find(message_id, user_id)

    # The bot's side

    def answer(self, interaction_id: int, token: str, kind: Any, payload: Wire, files: tuple[File, ...]) -> Interaction:
        """The first response. ApiError 10062: unknown interaction, or after 3 s; 40060: second response."""
        made = self._by_token.get(token)
        if made is None or made.id != interaction_id:
            raise errors.unknown_interaction()
        if made.callback is not None:
            raise errors.already_acknowledged()
        if self._clock() - made.created > _ANSWER_SECONDS:
            raise errors.unknown_interaction()
        self._take_answer(made, kind, payload, files)
        made.callback = kind
        self._changes.notify()
        return made

    def _take_answer(self, made: Interaction, kind: Any, payload: Wire, files: tuple[File, ...]) -> None:
        if (made.type == _AUTOCOMPLETE) is not (kind == _SUGGEST):
            raise invalid_form("type", "BASE_TYPE_CHOICES", "Choices are what an autocomplete is answered with.")
        if kind == _SUGGEST:
            made.suggested = options.checked_choices(options.focused(made.data["options"]), payload.get("choices"))
            data: Wire = {"interaction_id": str(made.id), "choices": made.suggested}
            channel = self._world.channel(made.channel_id)
            self._world.emit(Event(name="SUGGESTIONS", channel=channel, user_id=made.user_id, data=data))
        elif kind == _REPLY:
            made.original_id = self._post(made, body.parse(payload, files)).id
        elif kind == _DEFER:
            made.original_id = self._post(made, body.parse({"flags": payload.get("flags")}), extra=_LOADING).id
        elif kind == _FORM and made.type != _MODAL:
            made.form = forms.checked(payload)
            data = {"interaction_id": str(made.id), "form": made.form}
            channel = self._world.channel(made.channel_id)
            self._world.emit(Event(name="FORM", channel=channel, user_id=made.user_id, data=data))
        elif kind in (_UPDATE, _DEFER_UPDATE) and made.source is not None:
            source = self._as_it_stands(made.source, made.user_id)
            if kind == _UPDATE:
                source = self._edit(made, source, body.parse(payload, files))
            made.original_id, made.messages[source.id] = source.id, source  # it counts as the response
        else:
            raise invalid_form("type", "BASE_TYPE_CHOICES", "Value must be one of {4, 5, 6, 7, 8, 9}.")

    def _as_it_stands(self, message: Message, user_id: int) -> Message:
        """The current version of a message. ApiError 10008: it was deleted."""
        return self.ephemeral(message.id, user_id) or self._world.message(message.channel_id, message.id)

    def by_token(self, application_id: str, token: str) -> Interaction:
        """The interaction of a token. ApiError 10015: other application; 50027: unknown, unanswered or expired."""
        if application_id != str(self._world.bot.id):
            raise errors.unknown_webhook()
        made = self._by_token.get(token)
        if made is None or made.callback is None or self._clock() - made.created > _TOKEN_SECONDS:
            raise errors.invalid_webhook_token()
        return made

    def follow_up(self, made: Interaction, payload: Wire, files: tuple[File, ...]) -> Message:
        """A further message. As in Discord, the first one after a deferral replaces "thinking"."""
        parsed = body.parse(payload, files)
        original = made.messages.get(made.original_id or 0)
        if original is not None and original.flags & _LOADING:
            return self._edit(made, original, parsed)
        if "0" not in made.owners:
            made.follow_ups += 1
            if made.follow_ups > _MAX_FOLLOW_UPS:
                raise errors.too_many_follow_ups()
        return self._post(made, parsed)

    def _post(self, made: Interaction, parsed: Body, extra: int = 0) -> Message:
        if parsed.empty and not extra:
            raise errors.empty_message()
        channel = self._world.channel(made.channel_id)
        user = wire.user_object(self._world.user(made.user_id))
        metadata: Wire = {
            "id": str(made.id),
            "type": made.type,
            "user": user,
            "authorizing_integration_owners": made.owners,
        }
        kind = 0
        if made.type == _COMMAND:
            kind = _COMMAND_TYPES[made.data["type"]]
            metadata["name"] = " ".join(options.chosen(made.data))
        bot = self._world.bot
        draft = self._posting.draft(channel, parsed, type=kind, webhook_id=bot.id, interaction=metadata)
        if channel.id in self._world.elsewhere and not self._world.may(channel, made.user_id, "use_external_apps"):
            extra |= EPHEMERAL
        draft = replace(draft, flags=draft.flags | extra, nonce=None)
        if not draft.flags & EPHEMERAL:
            return self._keep(made, self._world.post(channel, bot, draft))
        message = self._world.compose(channel, bot, draft)
        self._ephemerals.show(channel, made.user_id, message)
        return self._keep(made, message)

    def _keep(self, made: Interaction, message: Message) -> Message:
        made.messages[message.id] = message
        self._changes.notify()
        return message

    def message(self, made: Interaction, name: str) -> Message:
        """One of its messages, by id or "@original". ApiError 10008: there is none."""
        message_id = made.original_id if name == "@original" else snowflake(name)
        message = made.messages.get(message_id or 0)
        if message is None:
            raise errors.unknown_message()
        return self._as_it_stands(message, made.user_id)

    def edit(self, made: Interaction, name: str, payload: Wire, files: tuple[File, ...]) -> Message:
        return self._edit(made, self.message(made, name), body.parse(payload, files))

    def _edit(self, made: Interaction, message: Message, parsed: Body) -> Message:
        revised = self._world.revise(message, self._posting.changes(message, parsed), parsed.allowed)
        if message.flags & _LOADING:  # replacing "thinking" does not count as an edit
            revised = replace(revised, flags=revised.flags & ~_LOADING, edited=None)
        if message.flags & EPHEMERAL:
            self._ephemerals.show(self._world.channel(message.channel_id), made.user_id, revised)
        else:
            self._world.replace_message(revised)
        return self._keep(made, revised)

    def delete(self, made: Interaction, name: str) -> None:
        message = self.message(made, name)
        del made.messages[message.id]
        if message.flags & EPHEMERAL:
            self._ephemerals.delete(message)
        else:
            self._world.delete(message)
        self._changes.notify()

    def callback_object(self, made: Interaction) -> Wire:
        """The response body that `with_response` asks for."""
        original = made.messages.get(made.original_id or 0)
        interaction: Wire = {"id": str(made.id), "type": made.type}
        resource: Wire = {"type": made.callback}
        if original is not None:
            interaction |= {
                "response_message_id": str(original.id),
                "response_message_loading": bool(original.flags & _LOADING),
                "response_message_ephemeral": bool(original.flags & EPHEMERAL),
            }
            resource["message"] = wire.message_object(self._world, original)
        return {"interaction": interaction, "resource": resource}
