"""Forms (Discord: modals): checked against Discord's limits, and filled in by people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from playground import choices
from playground.errors import Form, invalid_form
from playground.model import Wire

_ROW, _TEXT_INPUT, _TEXT, _LABEL = 1, 4, 10, 18
_MAX_TITLE = _MAX_LABEL = 45
_MAX_ID = _MAX_PLACEHOLDER = _MAX_DESCRIPTION = 100
_MAX_PARTS, _MAX_TEXT = 5, 4_000


def checked(payload: Wire) -> Wire:
    """The form as it is shown. ApiError 50035 with every wrong field. File uploads are not supported."""
    form = Form()
    form.between("data.title", payload.get("title"), 1, _MAX_TITLE)
    form.between("data.custom_id", payload.get("custom_id"), 1, _MAX_ID)
    parts: Any = payload.get("components")
    if form.between("data.components", parts, 1, _MAX_PARTS, list):
        for number, part in enumerate(parts):
            _check_part(form, f"data.components.{number}", part)
        names = [str(box.get("custom_id")) for part in parts if (box := _input(part))]
        if len(set(names)) < len(names):
            form.wrong("data.components", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
    form.check()
    shown: Wire = choices.told(payload)
    return shown


def _check_part(form: Form, path: str, part: Any) -> None:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == _TEXT:
        form.between(f"{path}.content", part.get("content"), 1, _MAX_TEXT)
        return
    box = _input(part)
    if box is None:
        form.wrong(
            f"{path}.type", "UNION_TYPE_CHOICES", "A part is a text, a row with a text input, or a label with an input."
        )
        return
    if kind == _LABEL:
        form.between(f"{path}.description", part.get("description") or "", 0, _MAX_DESCRIPTION)
    form.between(f"{path}.label", (part if kind == _LABEL else box).get("label"), 1, _MAX_LABEL)
    form.between(f"{path}.component.custom_id", box.get("custom_id"), 1, _MAX_ID)
    if box["type"] == _TEXT_INPUT:
        _check_input(form, f"{path}.component", box)
    else:
        choices.check(form, f"{path}.component", box, in_form=True)


def _check_input(form: Form, path: str, box: Wire) -> None:
    form.between(f"{path}.placeholder", box.get("placeholder") or "", 0, _MAX_PLACEHOLDER)
    form.between(f"{path}.value", box.get("value") or "", 0, _MAX_TEXT)
    if box.get("style") not in (1, 2):
        form.wrong(f"{path}.style", "BASE_TYPE_CHOICES", "Value must be one of {1, 2}.")
    for name, least, default in (("min_length", 0, 0), ("max_length", 1, _MAX_TEXT)):
        limit = box.get(name, default)
        if not isinstance(limit, int) or not least <= limit <= _MAX_TEXT:
            form.wrong(f"{path}.{name}", "NUMBER_TYPE_MAX", f"Must be between {least} and {_MAX_TEXT}.")


def _input(part: Any) -> Wire | None:
    """The input in a label, or the text input in a row. None: the part has no input."""
    if not isinstance(part, dict):
        return None
    inside = part.get("components") if part.get("type") == _ROW else [part.get("component")]
    if part.get("type") not in (_ROW, _LABEL) or not isinstance(inside, list) or len(inside) != 1:
        return None
    box = inside[0]
    known = (_TEXT_INPUT, *(choices.IN_FORMS if part["type"] == _LABEL else ()))
    return box if isinstance(box, dict) and box.get("type") in known else None


def filled(form: Wire, values: Mapping[str, Any]) -> list[Wire]:
    """The components of a modal submit, from a form and what a person entered.

    `values` are {custom_id: a text, a list of chosen values, a radio button's value, or whether a box is checked}.
    Inputs left out keep their shown values. ApiError 50035 for values that do not fit.
    """
    boxes = [box for part in form["components"] if (box := _input(part))]
    for name in values.keys() - {box["custom_id"] for box in boxes}:
        raise invalid_form("values", "COMPONENT_UNKNOWN", f"There is no input {name}.")
    made: dict[str, Any] = {}
    for box in boxes:
        name, is_text = box["custom_id"], box["type"] == _TEXT_INPUT
        shown = box.get("value") or "" if is_text else choices.untouched(box)
        entered = made[name] = values.get(name, shown)
        if not is_text:
            choices.check_chosen(box, entered, in_form=True)
            continue
        least, most = max(box.get("min_length") or 0, 1), box.get("max_length") or _MAX_TEXT
        left_out = entered == "" and box.get("required") is False
        if not left_out and not (isinstance(entered, str) and least <= len(entered) <= most):
            raise invalid_form("values", "BASE_TYPE_BAD_LENGTH", f"Must be between {least} and {most} in length.")
    return [_answered(part, made) for part in form["components"]]


def chosen(form: Wire, components: Sequence[Wire]) -> Iterator[tuple[Wire, list[str]]]:
    """The inputs with lists of values, each with its chosen values. `components` are those that `filled` returned."""
    for part, answer in zip(form["components"], components, strict=True):
        box, values = _input(part), answer.get("component", {}).get("values")
        if box is not None and values is not None:
            yield box, values


def _answered(part: Wire, values: Mapping[str, Any]) -> Wire:
    box = _input(part)
    if box is None:
        return {"type": _TEXT}
    value = values[box["custom_id"]]
    several = box["type"] in choices.SELECTS or box["type"] == choices.CHECKBOXES
    answer: Wire = {"type": box["type"], "custom_id": box["custom_id"]}
    answer |= {"values": list(value)} if several else {"value": value}
    return {"type": _ROW, "components": [answer]} if part["type"] == _ROW else {"type": _LABEL, "component": answer}
