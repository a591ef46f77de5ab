"""Polls: checked against Discord's limits, and as Discord's JSON (Discord: poll resource). Nobody votes."""

from typing import Any

from playground.errors import Form
from playground.model import Wire

_MAX_QUESTION, _MAX_ANSWER = 300, 55
_MAX_ANSWERS = 10
_MAX_HOURS = 32 * 24
_DEFAULT_HOURS = 24
_DEFAULT_LAYOUT = 1


def check_poll(form: Form, value: Any) -> Wire | None:
    """The poll in a message body, with defaults: question and answers as texts, duration in hours. None: no poll."""
    if value is None:
        return None
    if not isinstance(value, dict):
        form.wrong("poll", "MODEL_TYPE_CONVERT", "Only dictionaries may be used in a ModelType")
        return None
    hours = value.get("duration", _DEFAULT_HOURS)
    if not isinstance(hours, int | float) or hours != int(hours) or not 1 <= hours <= _MAX_HOURS:
        form.wrong("poll.duration", "NUMBER_TYPE_MAX", f"int value should be between 1 and {_MAX_HOURS}.")
    if value.get("layout_type", _DEFAULT_LAYOUT) != _DEFAULT_LAYOUT:
        form.wrong("poll.layout_type", "BASE_TYPE_CHOICES", f"Value must be one of ({_DEFAULT_LAYOUT},).")
    answers: Any = value.get("answers")
    if not form.between("poll.answers", answers, 1, _MAX_ANSWERS, list):
        answers = []
    given = [one.get("poll_media") if isinstance(one, dict) else None for one in answers]
    return {
        "question": _text(form, "poll.question", value.get("question"), _MAX_QUESTION),
        "answers": [_text(form, f"poll.answers.{n}.poll_media", media, _MAX_ANSWER) for n, media in enumerate(given)],
        "duration": hours,
        "allow_multiselect": value.get("allow_multiselect") is True,
    }


def _text(form: Form, path: str, media: Any, most: int) -> str:
    text = media.get("text") if isinstance(media, dict) else None
    text = text.strip() if isinstance(text, str) else ""
    form.between(f"{path}.text", text, 1, most)
    return text


def poll_object(poll: Wire, expiry: str) -> Wire:
    """Discord's poll object. poll: as check_poll returns it; expiry: its end, in Discord's time format."""
    return {
        "question": {"text": poll["question"]},
        "answers": [
            {"answer_id": number, "poll_media": {"text": text}} for number, text in enumerate(poll["answers"], start=1)
        ],
        "expiry": expiry,
        "allow_multiselect": poll["allow_multiselect"],
        "layout_type": _DEFAULT_LAYOUT,
        "results": {"is_finalized": False, "answer_counts": []},
    }
