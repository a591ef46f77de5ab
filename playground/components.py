"""Message components, checked against Discord's limits (Discord: component reference)."""

from typing import Any

from playground import choices
from playground.errors import Form
from playground.model import Wire

_ROW, _BUTTON = 1, 2
_LINK, _PREMIUM = 5, 6  # button styles without a custom_id
_STYLES = (1, 2, 3, 4, 5, 6)
_MAX_ROWS, _MAX_BUTTONS = 5, 5
_MAX_LABEL, _MAX_ID = 80, 100


def check_components(form: Form, rows: Any) -> tuple[Wire, ...]:
    """Checks action rows and returns them. Errors are noted in the form."""
    if rows is None:
        return ()
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        form.wrong("components", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
        return ()
    if len(rows) > _MAX_ROWS:
        form.wrong("components", "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {_MAX_ROWS} in length.")
    seen: set[str] = set()
    for number, row in enumerate(rows):
        _check_row(form, f"components.{number}", row, seen)
    return tuple(rows)


def _check_row(form: Form, path: str, row: Wire, seen: set[str]) -> None:
    parts = row.get("components")
    if row.get("type") != _ROW or not isinstance(parts, list):
        form.wrong(f"{path}.type", "UNION_TYPE_CHOICES", f'Value of field "type" must be one of ({_ROW},).')
        return
    # A select menu takes all five places of a row.
    if not 1 <= sum(_MAX_BUTTONS if _kind(part) in choices.SELECTS else 1 for part in parts) <= _MAX_BUTTONS:
        form.wrong(f"{path}.components", "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {_MAX_BUTTONS} in length.")
    for number, part in enumerate(parts):
        at = f"{path}.components.{number}"
        if _kind(part) == _BUTTON:
            _check_button(form, at, part, seen)
        elif _kind(part) in choices.SELECTS:
            _check_custom_id(form, at, part, seen)
            choices.check(form, at, part)
        else:
            form.wrong(f"{at}.type", "UNION_TYPE_CHOICES", 'Value of field "type" must be one of (2, 3, 5, 6, 7, 8).')


def _kind(part: Any) -> int:
    """The component's type; 0 if it has none."""
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, int) else 0


def _check_button(form: Form, path: str, button: Wire, seen: set[str]) -> None:
    form.at_most(f"{path}.label", button.get("label"), _MAX_LABEL)
    if button.get("style") not in _STYLES:
        form.wrong(f"{path}.style", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5, 6}.")
    if not (button.get("label") or button.get("emoji") or button.get("sku_id")):
        form.wrong(path, "BUTTON_COMPONENT_LABEL_REQUIRED", "A button needs a label or an emoji.")
    if button.get("style") == _LINK:
        if not str(button.get("url", "")).startswith(("http://", "https://", "discord://")):
            form.wrong(f"{path}.url", "URL_TYPE_INVALID_URL", "Not a well formed URL.")
    elif button.get("style") != _PREMIUM:
        _check_custom_id(form, path, button, seen)


def _check_custom_id(form: Form, path: str, part: Wire, seen: set[str]) -> None:
    custom_id = part.get("custom_id")
    if not isinstance(custom_id, str) or not custom_id:
        form.wrong(f"{path}.custom_id", "BASE_TYPE_REQUIRED", "This field is required")
        return
    form.at_most(f"{path}.custom_id", custom_id, _MAX_ID)
    if custom_id in seen:
        form.wrong(f"{path}.custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
    seen.add(custom_id)
