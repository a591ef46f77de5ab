"""The application commands that the bot registered, checked as Discord checks them, and the options people fill in."""

import re
from collections.abc import Mapping
from typing import Any

from playground import errors
from playground.errors import Form, invalid_form
from playground.model import Event, Wire, snowflake
from playground.world import World

SLASH, USER, MESSAGE = 1, 2, 3
_SUBCOMMANDS = (1, 2)
_NAME = re.compile(r"[-_'\w]{1,32}")
_OPTION_TYPES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
_MAX_DESCRIPTION, _MAX_OPTIONS = 100, 25
_MOST = {SLASH: 100, USER: 5, MESSAGE: 5}  # Discord: commands of a kind
_VALUES: Mapping[int, tuple[type, ...]] = {3: (str,), 4: (int,), 5: (bool,), 10: (int, float)}


class Commands:
    """Global commands and those of the guild. In a clash of names the guild's shadows the global one."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._global: list[Wire] = []
        self._guild: list[Wire] = []

    def listed(self, *, guild: bool) -> list[Wire]:
        return self._guild if guild else self._global

    def all(self) -> list[Wire]:
        """What people see in the guild."""
        own = {(command["type"], command["name"]) for command in self._guild}
        return self._guild + [one for one in self._global if (one["type"], one["name"]) not in own]

    def overwrite(self, commands: Any, *, guild: bool) -> list[Wire]:
        """Put these in place of all others of that scope. ApiError 50035 for malformed ones."""
        checked = _checked(commands)
        before = {(one["type"], one["name"]): one["id"] for one in self.listed(guild=guild)}
        made = [self._command(one, before, guild=guild) for one in checked]
        if guild:
            self._guild = made
        else:
            self._global = made
        self._world.emit(Event(name="COMMANDS"))
        return made

    def _command(self, given: Wire, before: Mapping[tuple[int, str], str], *, guild: bool) -> Wire:
        kind, name = given.get("type", SLASH), given["name"]
        made = {
            "description": "",
            "default_member_permissions": None,
            "nsfw": False,
            **given,
            "id": before.get((kind, name)) or str(self._world.next_id()),
            "type": kind,
            "application_id": str(self._world.bot.id),
            "version": str(self._world.next_id()),
            "options": given.get("options") or [],
        }
        return made | {"guild_id": str(self._world.guild_id)} if guild else made

    def find(self, name_or_id: str) -> Wire:
        """ApiError 10063 for none."""
        for command in self.all():
            if name_or_id in (command["id"], command["name"]):
                return command
        raise errors.unknown_command()


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
    if not isinstance(kind, int) or kind not in _MOST:
        form.wrong(f"{path}.type", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3}.")
    elif kind == SLASH:
        _check_named(form, path, command)
    elif not isinstance(name, str) or not 1 <= len(name) <= 32 or command.get("description"):
        form.wrong(f"{path}.name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 32 in length, without a description.")


def _check_named(form: Form, path: str, part: Wire) -> None:
    """A slash command or an option of one."""
    name, description = part.get("name"), part.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name != name.lower():
        form.wrong(f"{path}.name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
    if not isinstance(description, str) or not 1 <= len(description) <= _MAX_DESCRIPTION:
        form.wrong(f"{path}.description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
    options = part.get("options") or []
    if not isinstance(options, list) or len(options) > _MAX_OPTIONS:
        form.wrong(f"{path}.options", "BASE_TYPE_MAX_LENGTH", f"Must be {_MAX_OPTIONS} or fewer in length.")
        return
    for number, option in enumerate(options):
        _check_option(form, f"{path}.options.{number}", option)


def _check_option(form: Form, path: str, option: Any) -> None:
    if not isinstance(option, dict):
        form.wrong(path, "MODEL_TYPE_CONVERT", "Only dictionaries may be used in a ModelType")
        return
    if option.get("type") not in _OPTION_TYPES:
        form.wrong(f"{path}.type", "BASE_TYPE_CHOICES", f"Value must be one of {_OPTION_TYPES}.")
    choices = option.get("choices") or []
    if not isinstance(choices, list) or not all(isinstance(one, dict) and "value" in one for one in choices):
        form.wrong(f"{path}.choices", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
    _check_named(form, path, option)


def filled(known: list[Wire], given: Mapping[str, Any]) -> list[Wire]:
    """A person's {name: value} as the options of an interaction; a subcommand's value is again such a mapping.

    ApiError 50035 for an unknown option, a missing one, or a value of the wrong type.
    """
    by_name = {option["name"]: option for option in known}
    for name in given:
        if name not in by_name:
            raise invalid_form(f"options.{name}", "OPTION_UNKNOWN", f"There is no option {name}.")
    for name, option in by_name.items():
        if option.get("required") and name not in given:
            raise invalid_form(f"options.{name}", "BASE_TYPE_REQUIRED", f"The option {name} is required.")
    return [_filled_option(by_name[name], value) for name, value in given.items()]


def _filled_option(option: Wire, value: Any) -> Wire:
    name, kind = option["name"], option["type"]
    if kind in _SUBCOMMANDS:
        nested = value if isinstance(value, Mapping) else {}
        return {"name": name, "type": kind, "options": filled(option.get("options") or [], nested)}
    choices = [choice["value"] for choice in option.get("choices") or []]
    if not _fits(kind, value) or (choices and value not in choices):
        raise invalid_form(f"options.{name}", "BASE_TYPE_CHOICES", f"The value of the option {name} does not fit.")
    return {"name": name, "type": kind, "value": value}


def _fits(kind: int, value: Any) -> bool:
    if kind in _VALUES:
        return isinstance(value, _VALUES[kind]) and isinstance(value, bool) == (kind == 5)
    return snowflake(value) is not None  # a user, channel, role, ...: its id
