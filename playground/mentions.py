"""Mentions in a message, and which of them may ping (Discord: the allowed mentions object)."""

import re
from dataclasses import dataclass
from typing import Any

from playground.errors import Form

_USER = re.compile(r"<@!?(\d{1,20})>", re.ASCII)
_ROLE = re.compile(r"<@&(\d{1,20})>", re.ASCII)
_EVERYONE = re.compile(r"@(?:everyone|here)\b")
_ID = re.compile(r"\d{1,20}", re.ASCII)
_MAX_IDS = 100
_KINDS = ("everyone", "roles", "users")


@dataclass(frozen=True, slots=True)
class AllowedMentions:
    """What may ping. `users`, `roles`: ids; None: all that the content mentions."""

    users: frozenset[int] | None = None
    roles: frozenset[int] | None = None
    everyone: bool = True
    replied_user: bool = True

    def lets_user(self, user_id: int) -> bool:
        return self.users is None or user_id in self.users

    def lets_role(self, role_id: int) -> bool:
        return self.roles is None or role_id in self.roles


ANY = AllowedMentions()
NOBODY = AllowedMentions(frozenset(), frozenset(), everyone=False, replied_user=False)


@dataclass(frozen=True, slots=True)
class Named:
    """What the content mentions, in order of appearance."""

    users: tuple[int, ...]
    roles: tuple[int, ...]
    everyone: bool


def named(content: str) -> Named:
    return Named(_ids(_USER, content), _ids(_ROLE, content), bool(_EVERYONE.search(content)))


def _ids(pattern: re.Pattern[str], content: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(found) for found in pattern.findall(content)))


def parse_allowed(wire: Any) -> AllowedMentions:
    """Parses allowed_mentions of a request. None: everything may ping. ApiError 50035 if malformed."""
    if wire is None:
        return ANY
    form = Form()
    if not isinstance(wire, dict):
        form.wrong("allowed_mentions", "MODEL_TYPE_CONVERT", "Only dictionaries may be used in a ModelType")
        raise form.error()
    parse = wire.get("parse") or []
    if not isinstance(parse, list) or not all(one in _KINDS for one in parse):
        form.wrong("allowed_mentions.parse", "BASE_TYPE_CHOICES", f"Value must be one of {_KINDS}.")
        raise form.error()
    users = _allowed_ids(form, wire, parse, "users")
    roles = _allowed_ids(form, wire, parse, "roles")
    form.check()
    return AllowedMentions(users, roles, "everyone" in parse, wire.get("replied_user") is True)


def _allowed_ids(form: Form, wire: dict[str, Any], parse: Any, kind: str) -> frozenset[int] | None:
    given = wire.get(kind) or []
    path = f"allowed_mentions.{kind}"
    if not isinstance(given, list) or not all(_ID.fullmatch(str(entry)) for entry in given):
        form.wrong(path, "NUMBER_TYPE_COERCE", "Value is not snowflake.")
        return frozenset()
    form.at_most(path, given, _MAX_IDS, list)
    if kind not in parse:
        return frozenset(int(entry) for entry in given)
    if given:
        form.wrong(path, "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", f"parse and {kind} are mutually exclusive.")
    return None
