"""Options and subcommands of slash commands: checked at registration, and filled in by people.

A command has plain options, or subcommands and groups of them, never both. One with subcommands cannot be used by
itself: exactly one of them is chosen, and its options are inside it (Discord: Subcommands).
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from playground.errors import Form, invalid_form
from playground.model import Wire, snowflake

_SUBCOMMAND, _GROUP = 1, 2
_NESTING = frozenset((_SUBCOMMAND, _GROUP))
_PLAIN = frozenset((3, 4, 5, 6, 7, 8, 9, 10, 11))
_ANY = _NESTING | _PLAIN
_MAY_HOLD = {_GROUP: frozenset((_SUBCOMMAND,)), _SUBCOMMAND: _PLAIN}
_NAME = re.compile(r"[-_'\w]{1,32}")
_MAX_DESCRIPTION, _MAX_OPTIONS, _MAX_CHOICES = 100, 25, 25
_VALUES: Mapping[int, tuple[type, ...]] = {3: (str,), 4: (int,), 5: (bool,), 10: (int, float)}
_WITH_CHOICES = (3, 4, 10)
_MAX_CHOICE = 100  # characters of a choice's name, and of a value that is text


def check(form: Form, path: str, part: Wire, may_hold: frozenset[int] = _ANY) -> None:
    """Notes the errors of a slash command or option in the form. `may_hold`: the types that its options may have."""
    name, description = part.get("name"), part.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name != name.lower():
        form.wrong(f"{path}.name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
    form.between(f"{path}.description", description, 1, _MAX_DESCRIPTION)
    options = part.get("options") or []
    if not form.at_most(f"{path}.options", options, _MAX_OPTIONS, list):
        return
    for number, option in enumerate(options):
        _check_option(form, f"{path}.options.{number}", option, may_hold)
    _check_side_by_side(form, f"{path}.options", options)


def _check_option(form: Form, path: str, option: Any, types: frozenset[int]) -> None:
    if not isinstance(option, dict):
        form.wrong(path, "MODEL_TYPE_CONVERT", "Only dictionaries may be used in a ModelType")
        return
    kind = option.get("type")
    if not isinstance(kind, int) or kind not in types:
        form.wrong(f"{path}.type", "BASE_TYPE_CHOICES", f"Value must be one of {sorted(types)}.")
        return
    choices, is_completed = option.get("choices") or [], bool(option.get("autocomplete"))
    if (choices or is_completed) and kind not in _WITH_CHOICES:
        text = f"Only options of the types {_WITH_CHOICES} may have choices or autocomplete."
        form.wrong(f"{path}.choices", "BASE_TYPE_CHOICES", text)
    elif choices and is_completed:
        form.wrong(f"{path}.choices", "BASE_TYPE_CHOICES", "An option has choices or autocomplete, not both.")
    else:
        _check_choice_list(form, f"{path}.choices", kind, choices)
    check(form, path, option, _MAY_HOLD.get(kind, frozenset()))


def _check_choice_list(form: Form, path: str, kind: int, choices: Any) -> None:
    if not isinstance(choices, list) or not all(isinstance(one, dict) and "value" in one for one in choices):
        form.wrong(path, "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
        return
    form.at_most(path, choices, _MAX_CHOICES, list)
    for number, choice in enumerate(choices):
        value = choice["value"]
        form.between(f"{path}.{number}.name", choice.get("name"), 1, _MAX_CHOICE)
        if kind in _VALUES and (not _fits(kind, value) or (isinstance(value, str) and len(value) > _MAX_CHOICE)):
            text = f"The value does not fit the option, or is longer than {_MAX_CHOICE}."
            form.wrong(f"{path}.{number}.value", "BASE_TYPE_BAD_LENGTH", text)


def checked_choices(option: Wire, choices: Any) -> list[Wire]:
    """The choices of an autocomplete response. ApiError 50035 for choices that Discord refuses."""
    form = Form()
    _check_choice_list(form, "data.choices", option["type"], choices)
    form.check()
    return list(choices)


def _check_side_by_side(form: Form, path: str, options: list[Any]) -> None:
    """Checks the options of one command or subcommand against each other."""
    known = [one if isinstance(one, dict) else {} for one in options]
    for number, (before, option) in enumerate(pairwise(known), start=1):
        at = f"{path}.{number}"
        if _nests(option) != _nests(before):
            text = "Sub-command and sub-command group option types are mutually exclusive to all other types"
            form.wrong(at, "APPLICATION_COMMAND_OPTIONS_TYPE_INVALID", text)
        if option.get("required") and not before.get("required"):
            text = "Required options must be placed before non-required options"
            form.wrong(at, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", text)
        if any(option.get("name") == other.get("name") for other in known[:number]):
            form.wrong(f"{at}.name", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Option names must be unique")


def _nests(option: Wire) -> bool:
    return option.get("type") in tuple(_NESTING)  # a tuple, since a type that a bot sends may be unhashable


def filled(known: list[Wire], given: Mapping[str, Any]) -> list[Wire]:
    """The options of an interaction, from {name: value}; the value of a subcommand is again such a mapping.

    ApiError 50035 for an unknown or missing option, a value of the wrong type, or not exactly one subcommand.
    """
    by_name = {option["name"]: option for option in known}
    for name in given:
        if name not in by_name:
            raise invalid_form(f"options.{name}", "OPTION_UNKNOWN", f"There is no option {name}.")
    if any(option["type"] in _NESTING for option in known) and len(given) != 1:
        raise invalid_form("options", "BASE_TYPE_BAD_LENGTH", f"Choose one of the subcommands {', '.join(by_name)}.")
    for name, option in by_name.items():
        if option.get("required") and name not in given:
            raise invalid_form(f"options.{name}", "BASE_TYPE_REQUIRED", f"The option {name} is required.")
    return [_filled_option(by_name[name], value) for name, value in given.items()]


def _filled_option(option: Wire, value: Any) -> Wire:
    name, kind = option["name"], option["type"]
    if kind in _NESTING:
        if not isinstance(value, Mapping):
            raise invalid_form(f"options.{name}", "MODEL_TYPE_CONVERT", f"{name} is a subcommand, it has no value.")
        return {"name": name, "type": kind, "options": filled(option.get("options") or [], value)}
    choices = [choice["value"] for choice in option.get("choices") or []]
    if not _fits(kind, value) or not _in_bounds(option, value) or (choices and value not in choices):
        raise invalid_form(f"options.{name}", "BASE_TYPE_CHOICES", f"The value of the option {name} does not fit.")
    return {"name": name, "type": kind, "value": value}


def _fits(kind: int, value: Any) -> bool:
    if kind in _VALUES:
        return isinstance(value, _VALUES[kind]) and isinstance(value, bool) == (kind == 5)
    return snowflake(value) is not None  # a user, channel, role, ...: its id


def _in_bounds(option: Wire, value: Any) -> bool:
    """Whether a text's length or a number is within the option's limits."""
    kind = option["type"]
    size, unit = (len(value), "length") if kind == 3 else (value, "value")
    least, most = option.get(f"min_{unit}"), option.get(f"max_{unit}")
    return kind not in _WITH_CHOICES or ((least is None or size >= least) and (most is None or size <= most))


def typed(known: list[Wire], given: Mapping[str, Any], name: str) -> list[Wire]:
    """The options of an autocomplete interaction for the option `name`.

    ApiError 50035 if there is no such option, or it has no autocomplete.
    """
    found = []
    for option in known:
        if option["name"] not in given:
            continue
        value = given[option["name"]]
        if option["type"] in _NESTING:
            if not isinstance(value, Mapping):
                raise invalid_form(f"options.{option['name']}", "MODEL_TYPE_CONVERT", "A subcommand has no value.")
            inside = typed(option.get("options") or [], value, name)
            found.append({"name": option["name"], "type": option["type"], "options": inside})
        elif option["name"] != name:
            found.append(_filled_option(option, value))
        elif option.get("autocomplete"):
            found.append({"name": name, "type": option["type"], "value": str(value), "focused": True})
    focused(found)
    return found


def focused(options: list[Wire]) -> Wire:
    """The option that is being typed. ApiError 50035: there is none."""
    for option in options:
        if option.get("focused"):
            return option
        if option["type"] in _NESTING:
            return focused(option["options"])
    raise invalid_form("options", "OPTION_UNKNOWN", "There is no such option with autocomplete.")


def chosen(data: Wire) -> list[str]:
    """The names of a used command and its chosen subcommands: ["offers", "on"]."""
    names = [data["name"]]
    options = data.get("options", [])
    while options and options[0]["type"] in _NESTING:
        names.append(options[0]["name"])
        options = options[0]["options"]
    return names


def ids(options: list[Wire], kind: int) -> list[int]:
    """The ids in options of a type, including those of subcommands."""
    found = [int(option["value"]) for option in options if option["type"] == kind]
    for option in options:
        found += ids(option.get("options", []), kind)
    return found
