"""The bot's application commands: checked as Discord checks them at registration, and who may use them."""

from collections.abc import Mapping
from typing import Any

from playground import errors, options, permissions
from playground.errors import Form, invalid_form
from playground.model import Channel, Event, Wire, snowflake
from playground.world import World

SLASH, USER, MESSAGE = 1, 2, 3
_MOST = {SLASH: 100, USER: 5, MESSAGE: 5}  # Discord's limit for each kind


class Commands:
    """Global commands and those of guilds. A guild's command hides a global one of the same name."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._global: list[Wire] = []
        self._of_guilds: dict[int, list[Wire]] = {}

    def listed(self, guild_id: int | None) -> list[Wire]:
        """The commands of a guild; None: the global ones."""
        return self._global if guild_id is None else self._of_guilds.get(guild_id, [])

    def all(self, guild_id: int | None = None) -> list[Wire]:
        """The commands that people see in a guild; None: in the first guild."""
        here = self.listed(guild_id or self._world.guild.id)
        own = {(command["type"], command["name"]) for command in here}
        return here + [one for one in self._global if (one["type"], one["name"]) not in own]

    def overwrite(self, commands: Any, guild_id: int | None = None) -> list[Wire]:
        """Replace all commands of a guild; None: the global ones. ApiError 50035 for malformed commands."""
        checked = _checked(commands)
        before = {(one["type"], one["name"]): one["id"] for one in self.listed(guild_id)}
        place = {"guild_id": str(guild_id)} if guild_id else {}
        made = [self._made(one, before) | place for one in checked]
        if guild_id is None:
            self._global = made
        else:
            self._of_guilds[guild_id] = made
        self._world.emit(Event(name="COMMANDS"))
        return made

    def _made(self, given: Wire, before: Mapping[tuple[int, str], str]) -> Wire:
        kind, name = given.get("type", SLASH), given["name"]
        needed = given.get("default_member_permissions")
        contexts = given.get("contexts")
        if contexts is None:
            contexts = [0] if given.get("dm_permission") is False else [0, 1, 2]
        return {
            "description": "",
            "nsfw": False,
            **given,
            "integration_types": given.get("integration_types") or [0],
            "contexts": contexts,
            "default_member_permissions": None if needed is None else str(needed),
            "id": before.get((kind, name)) or str(self._world.next_id()),
            "type": kind,
            "application_id": str(self._world.bot.id),
            "version": str(self._world.next_id()),
            "options": given.get("options") or [],
        }

    def find(self, name_or_id: str, guild_id: int | None = None) -> Wire:
        """The command with this name or id. ApiError 10063: there is none."""
        for command in self.all(guild_id):
            if name_or_id in (command["id"], command["name"]):
                return command
        raise errors.unknown_command()


def context(channel: Channel) -> int:
    """Discord's interaction context: 0 a server, 1 the direct messages with the bot, 2 those among others."""
    if channel.guild_id is not None:
        return 0
    return 1 if channel.recipient_id is not None else 2


def owners(world: World, channel: Channel, user_id: int, command: Wire | None = None) -> dict[str, str]:
    """The installations that authorize an interaction, {type: id of the owner}; empty: it is not allowed.

    Type 0 is a server's installation (id "0" in the direct messages with the bot), type 1 a person's.
    """
    types = command["integration_types"] if command else (0, 1)
    if command is not None and context(channel) not in command["contexts"]:
        return {}
    found = {}
    if 0 in types and world.bot_shares(channel):
        found["0"] = str(channel.guild_id or 0)
    if 1 in types and user_id in world.installed:
        found["1"] = str(user_id)
    return found


def needed(command: Wire) -> int:
    """The permissions that a person needs to see and use a command (Discord: "0" means administrators only)."""
    stated = command["default_member_permissions"]
    own = 0 if stated is None else int(stated) or permissions.BITS["administrator"]
    return own | permissions.BITS["use_application_commands"]


def _checked(commands: Any) -> list[Wire]:
    form = Form()
    if not isinstance(commands, list) or not all(isinstance(one, dict) for one in commands):
        raise invalid_form("commands", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
    seen: set[tuple[str, str]] = set()
    for number, command in enumerate(commands):
        key = (str(command.get("type", SLASH)), str(command.get("name")))
        if key in seen:
            form.wrong(
                f"{number}.name", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique"
            )
        seen.add(key)
        _check_command(form, str(number), command)
    for kind, most in _MOST.items():
        if sum(key[0] == str(kind) for key in seen) > most:
            raise errors.ApiError(400, 30032, f"Maximum number of application commands reached ({most})")
    form.check()
    return commands


def _check_command(form: Form, path: str, command: Wire) -> None:
    kind, name = command.get("type", SLASH), command.get("name")
    needed = command.get("default_member_permissions")
    if needed is not None and snowflake(needed) is None:
        form.wrong(f"{path}.default_member_permissions", "NUMBER_TYPE_COERCE", "Value is not int.")
    for field, known in (("integration_types", (0, 1)), ("contexts", (0, 1, 2))):
        given = command.get(field)
        if given is not None and not (isinstance(given, list) and given and all(one in known for one in given)):
            form.wrong(f"{path}.{field}", "BASE_TYPE_CHOICES", f"Value must be one of {known}.")
    if not isinstance(kind, int) or kind not in _MOST:
        form.wrong(f"{path}.type", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3}.")
    elif kind == SLASH:
        options.check(form, path, command)
    elif not isinstance(name, str) or not 1 <= len(name) <= 32 or command.get("description"):
        form.wrong(f"{path}.name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 32 in length, without a description.")
