"""Components to choose from: select menus, and in forms also radio buttons and checkboxes.

They are checked against Discord's limits when the bot sends them and when a person chooses (Discord: component
reference).
"""

from collections.abc import Iterable, Sequence
from typing import Any

from playground.errors import Form, invalid_form
from playground.model import Wire, snowflake

STRING, USER, ROLE, MENTIONABLE, CHANNEL = 3, 5, 6, 7, 8
RADIO, CHECKBOXES, CHECKBOX = 21, 22, 23
SELECTS = frozenset((STRING, USER, ROLE, MENTIONABLE, CHANNEL))
IN_FORMS = SELECTS | {RADIO, CHECKBOXES, CHECKBOX}
_LEAST_OPTIONS, _MOST_OPTIONS = {RADIO: 2}, {STRING: 25, RADIO: 10, CHECKBOXES: 10}
_MOST_VALUES = 25
_DEFAULT_TYPES = {USER: ("user",), ROLE: ("role",), MENTIONABLE: ("user", "role"), CHANNEL: ("channel",)}
_MAX_OPTION, _MAX_PLACEHOLDER = 100, 150
_ERRORS = "Only dictionaries may be used in a ModelType"


def check(form: Form, path: str, part: Wire, *, in_form: bool = False) -> None:
    """Notes the errors of a menu or group in the form, except those of its custom_id."""
    kind = part["type"]
    if kind == CHECKBOX:
        return
    form.at_most(f"{path}.placeholder", part.get("placeholder"), _MAX_PLACEHOLDER)
    if in_form and part.get("disabled"):
        form.wrong(f"{path}.disabled", "COMPONENT_INVALID_IN_MODAL", "A select menu in a modal cannot be disabled")
    if kind != RADIO:
        _check_counts(form, path, part)
    if kind in _MOST_OPTIONS:
        _check_options(form, path, part)
    else:
        _check_defaults(form, path, part)


def counts(part: Wire) -> tuple[int, int]:
    """The least and the greatest number of values to choose."""
    if part["type"] == RADIO:
        return 1, 1
    options = part.get("options")
    every = len(options) if part["type"] == CHECKBOXES and isinstance(options, list) else 1
    least, most = part.get("min_values"), part.get("max_values")
    return 1 if least is None else least, every if most is None else most


def _check_counts(form: Form, path: str, part: Wire) -> None:
    most_values = _MOST_OPTIONS.get(part["type"], _MOST_VALUES)
    for name, number, least in zip(("min_values", "max_values"), counts(part), (0, 1), strict=True):
        if not isinstance(number, int) or not least <= number <= most_values:
            form.wrong(f"{path}.{name}", "NUMBER_TYPE_MAX", f"Must be between {least} and {most_values}.")
            return
    least, most = counts(part)
    if least > most:
        form.wrong(f"{path}.min_values", "NUMBER_TYPE_MAX", f"int value should be less than or equal to {most}.")
    if part["type"] == CHECKBOXES and least == 0 and part.get("required") is not False:
        form.wrong(f"{path}.min_values", "NUMBER_TYPE_MIN", "min_values may be 0 only where required is false.")


def _check_options(form: Form, path: str, part: Wire) -> None:
    options: Any = part.get("options")
    kind = part["type"]
    least, most = _LEAST_OPTIONS.get(kind, 1), _MOST_OPTIONS[kind]
    wanted = part.get("max_values")
    if isinstance(wanted, int):  # Discord: a menu with max_values 5 needs 5 options or more
        least = max(least, min(wanted, most))
    if not form.between(f"{path}.options", options, least, most, list):
        return
    for number, option in enumerate(options):
        _check_option(form, f"{path}.options.{number}", option)
    known = [option for option in options if isinstance(option, dict)]
    if len({str(option.get("value")) for option in known}) < len(known):
        text = "The specified option value is already used"
        form.wrong(f"{path}.options", "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", text)
    _check_default_count(form, f"{path}.options", part, sum(bool(option.get("default")) for option in known))


def _check_option(form: Form, path: str, option: Any) -> None:
    if not isinstance(option, dict):
        form.wrong(path, "MODEL_TYPE_CONVERT", _ERRORS)
        return
    for name in ("label", "value"):
        if not option.get(name):
            form.wrong(f"{path}.{name}", "BASE_TYPE_REQUIRED", "This field is required")
        form.at_most(f"{path}.{name}", option.get(name), _MAX_OPTION)
    form.at_most(f"{path}.description", option.get("description"), _MAX_OPTION)


def _check_default_count(form: Form, path: str, part: Wire, chosen: int) -> None:
    most = counts(part)[1]
    if isinstance(most, int) and chosen > most:
        text = f"No more than {most} may be chosen, and {chosen} are by default."
        form.wrong(path, "SELECT_COMPONENT_TOO_MANY_DEFAULT_VALUES", text)


def _check_defaults(form: Form, path: str, part: Wire) -> None:
    """Checks the default values of a menu of people, roles or channels, and its channel types."""
    defaults, types = part.get("default_values") or [], part.get("channel_types") or []
    if not isinstance(defaults, list) or not isinstance(types, list):
        form.wrong(f"{path}.default_values", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
        return
    known = _DEFAULT_TYPES[part["type"]]
    for number, value in enumerate(defaults):
        at = f"{path}.default_values.{number}"
        if not isinstance(value, dict):
            form.wrong(at, "MODEL_TYPE_CONVERT", _ERRORS)
        elif value.get("type") not in known:
            form.wrong(f"{at}.type", "BASE_TYPE_CHOICES", f"Value must be one of {known}.")
        elif snowflake(value.get("id")) is None:
            form.wrong(f"{at}.id", "NUMBER_TYPE_COERCE", "Value is not snowflake.")
    _check_default_count(form, f"{path}.default_values", part, len(defaults))
    if types and (part["type"] != CHANNEL or not all(isinstance(one, int) for one in types)):
        form.wrong(f"{path}.channel_types", "BASE_TYPE_CHOICES", "Channel types are for menus of channels.")


def told(part: Any) -> Any:
    """A component, with those in it, as Discord sends it back: ids as strings."""
    if not isinstance(part, dict):
        return part
    told_part = dict(part)
    if part.get("default_values"):
        told_part["default_values"] = [one | {"id": str(one["id"])} for one in part["default_values"]]
    if isinstance(part.get("components"), list):
        told_part["components"] = [told(one) for one in part["components"]]
    if "component" in part:
        told_part["component"] = told(part["component"])
    return told_part


# What a person chooses


def untouched(part: Wire) -> Any:
    """The value of a form's component that nobody has changed: a bool, a value or None, or a list of values."""
    if part["type"] == CHECKBOX:
        return bool(part.get("default"))
    chosen = [option["value"] for option in part.get("options") or () if option.get("default")]
    chosen += [str(one["id"]) for one in part.get("default_values") or ()]
    return (chosen or [None])[0] if part["type"] == RADIO else chosen


def check_chosen(part: Wire, chosen: Any, *, in_form: bool = False) -> None:
    """ApiError 50035 for values that cannot be chosen. Does not check that people, roles and channels exist."""
    if part["type"] == CHECKBOX:
        if not isinstance(chosen, bool):
            raise invalid_form("values", "BOOLEAN_TYPE_CONVERT", "A checkbox is checked or not.")
        return
    values = listed(part, chosen)
    if values is None or len(set(values)) < len(values):
        raise invalid_form("values", "LIST_TYPE_CONVERT", "Choose each value once.")
    offered = {option["value"] for option in part.get("options") or []}
    if part["type"] in _MOST_OPTIONS and not offered.issuperset(values):
        raise invalid_form("values", "BASE_TYPE_CHOICES", "Choose from the options of the menu.")
    least, most = counts(part)
    if in_form:
        least = max(least, 1) if part.get("required") is not False else 0 if not values else least
    if not least <= len(values) <= most:
        raise invalid_form("values", "BASE_TYPE_BAD_LENGTH", f"Must be between {least} and {most} in length.")


def listed(part: Wire, chosen: Any) -> list[str] | None:
    """The chosen values as a list. None: malformed."""
    if part["type"] == RADIO:
        chosen = [] if chosen is None else [chosen]
    is_list = isinstance(chosen, Sequence) and not isinstance(chosen, str)
    return list(chosen) if is_list and all(isinstance(one, str) for one in chosen) else None


def of_objects(chosen: Iterable[tuple[Wire, Any]]) -> list[tuple[Wire, int]]:
    """The chosen people, roles and channels as (part, id), from (part, its chosen values). ApiError for a bad id."""
    found = []
    for part, values in chosen:
        for value in values if part["type"] in _DEFAULT_TYPES else ():
            if (given := snowflake(value)) is None:
                raise invalid_form("values", "NUMBER_TYPE_COERCE", "Value is not snowflake.")
            found.append((part, given))
    return found
