"""The settings of a place. A new setting is one field of PlaceSettings.

The card, the checks, the table in the docs and the inheritance are derived from the field. Its type says which values
can be chosen; its About has its texts, its levels, and how the values of several levels are combined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from setting_values import Scope, budget_limits

MAX_IDS = 500  # in one list: no server has more channels, and few more roles


class Level(IntEnum):
    """Where a setting is set, from the top. Each level inherits what it does not set from the one above."""

    OWNER = 0
    GUILD = 1
    CATEGORY = 2
    CHANNEL = 3
    THREAD = 4

    @property
    def in_words(self) -> str:
        return ("my owner", "this server", "this category", "this channel", "this thread")[self]


class Combining(Enum):
    """How the values of several levels are combined.

    NEAREST: the value of the level nearest to the place counts. EVERY, of lists of allowed ids: an id must be in the
    list of every level that has one. ANY, of lists of blocked ids: being in the list of one level is enough. EACH: the
    value of every level counts by itself.
    """

    NEAREST = "nearest"
    EVERY = "every"
    ANY = "any"
    EACH = "each"


class Listed(Enum):
    """What the ids of a list are of. CHANNELS: channels, and categories, which stand for all their channels."""

    CHANNELS = "channels"
    ROLES = "roles"
    USERS = "users"


class SettingRefusedError(ValueError):
    """Raised for an invalid value of a setting. Its text is one sentence that says what is valid."""


EVERYWHERE = frozenset({Level.GUILD, Level.CATEGORY, Level.CHANNEL, Level.THREAD})
NOT_IN_THREADS = EVERYWHERE - {Level.THREAD}
GUILD_ONLY = frozenset({Level.GUILD})


@dataclass(frozen=True, slots=True)
class About:
    """Describes a setting, in addition to its type.

    label: its name for people, at most 45 characters; meaning: at most 100, both Discord's limits. use: the valid
    values, as the end of the sentence "use ..."; group: the heading under which it is shown.
    """

    label: str
    meaning: str
    group: str
    use: str = ""
    levels: frozenset[Level] = EVERYWHERE
    combining: Combining = Combining.NEAREST
    listed: Listed | None = None
    is_for_managers: bool = False


WHERE, WHO, HOW, MODEL, MONEY = "Where and when", "Who", "How it takes part", "What answers", "What it may cost"
Id = Annotated[int, Field(gt=0, lt=1 << 64)]  # as Discord's; the store holds no greater integers
Ids = Annotated[frozenset[Id], Field(max_length=MAX_IDS)]


class PlaceSettings(BaseModel):
    """The settings of one level. None: inherited."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    answers: Annotated[
        Literal["follow", "mentions", "off"] | None,
        About("When it answers", "follow: mentions and conversations; mentions: only when called; off: never", WHERE),
    ] = None
    allowed_channels: Annotated[
        Ids | None,
        About(
            "Allowed channels",
            "The bot speaks only in these channels and categories; none chosen: in all that are not blocked",
            WHERE,
            levels=GUILD_ONLY,
            combining=Combining.EVERY,
            listed=Listed.CHANNELS,
        ),
    ] = None
    blocked_channels: Annotated[
        Ids | None,
        About(
            "Blocked channels",
            "The bot never speaks in these channels and categories, whatever else is set",
            WHERE,
            levels=GUILD_ONLY,
            combining=Combining.ANY,
            listed=Listed.CHANNELS,
        ),
    ] = None
    threads: Annotated[
        Literal["off", "join", "open"] | None,
        About(
            "Threads",
            "off: not in threads; join: in threads too; open: it also offers to move a long talk to a thread",
            WHERE,
        ),
    ] = None

    allowed_roles: Annotated[
        Ids | None,
        About(
            "Allowed roles",
            "The bot answers only members with one of these roles, and allowed members; none chosen: everybody",
            WHO,
            combining=Combining.EVERY,
            listed=Listed.ROLES,
        ),
    ] = None
    allowed_users: Annotated[
        Ids | None,
        About(
            "Allowed members",
            "The bot answers only these members, and those with an allowed role; none chosen: everybody",
            WHO,
            combining=Combining.EVERY,
            listed=Listed.USERS,
        ),
    ] = None
    blocked_roles: Annotated[
        Ids | None,
        About(
            "Blocked roles",
            "The bot never answers members with one of these roles, whatever else is set",
            WHO,
            combining=Combining.ANY,
            listed=Listed.ROLES,
        ),
    ] = None
    blocked_users: Annotated[
        Ids | None,
        About(
            "Blocked members",
            "The bot never answers these members, whatever else is set",
            WHO,
            combining=Combining.ANY,
            listed=Listed.USERS,
        ),
    ] = None

    eagerness: Annotated[
        Literal["quiet", "balanced", "eager"] | None,
        About("Eagerness", "How sure the bot must be that a message without a mention is meant for it", HOW),
    ] = None
    decline: Annotated[
        bool | None,
        About("May decline", "Whether the model is asked about doubtful messages, and may decide not to answer", HOW),
    ] = None
    judge: Annotated[
        bool | None,
        About("Judge", "Whether a second, fast model judges doubtful messages first", HOW),
    ] = None
    offers: Annotated[
        bool | None,
        About(
            "Offers of help", "Whether the bot offers help when nobody answers a question", HOW, levels=NOT_IN_THREADS
        ),
    ] = None

    persona: Annotated[
        str | None,
        Field(max_length=2_000),
        About(
            "Persona",
            "Who the bot is here, and how it should speak",
            MODEL,
            use="at most 2,000 characters of text",
            is_for_managers=True,
        ),
    ] = None
    language: Annotated[
        str | None,
        Field(max_length=60),
        About(
            "Language",
            "The language of the answers, such as German; empty: the language of the question",
            MODEL,
            use="the name of a language, such as German",
        ),
    ] = None
    model: Annotated[
        str | None,
        Field(max_length=100),
        About("Model", "The model that answers here", MODEL, use="one of the models that /model lists"),
    ] = None
    tools: Annotated[
        bool | None,
        About("Tools", "Whether the model may search, react, pin, make polls and use other tools", MODEL),
    ] = None

    budget: Annotated[
        str | None,
        Field(max_length=100),
        About(
            "Budget",
            "The most that answers here may cost, such as: $1 a day, 2000000 tokens a month",
            MONEY,
            levels=EVERYWHERE - {Level.CATEGORY},
            combining=Combining.EACH,
            use='amounts such as "$1 a day" or "200000 tokens a month", separated by commas',
            is_for_managers=True,
        ),
    ] = None
    exempt_roles: Annotated[
        Ids | None,
        About(
            "Roles without a budget",
            "Members with these roles get answers even when the server's budget, or their own, is used up",
            MONEY,
            levels=GUILD_ONLY,
            combining=Combining.ANY,
            listed=Listed.ROLES,
        ),
    ] = None

    @field_validator("budget")
    @classmethod
    def _is_budget(cls, value: str | None) -> str | None:
        if value is not None:
            budget_limits(value, of=Scope.GUILD)
        return value

    def changed(self, level: Level, values: Mapping[str, Any]) -> PlaceSettings:
        """These settings with other values; None: inherit. Raises SettingRefusedError for values not valid there.

        Choices are read without regard to case, and texts without white space around them.
        """
        for name in values:
            if name not in ABOUT:
                raise SettingRefusedError(f"There is no setting {name!r}: use one of {', '.join(ABOUT)}.")
            if level not in ABOUT[name].levels:
                where = " or ".join(at.in_words for at in sorted(ABOUT[name].levels))
                raise SettingRefusedError(f"{ABOUT[name].label} cannot be set for {level.in_words}: use {where}.")
        tidied = {name: _tidied(name, value) for name, value in values.items()}
        try:
            return PlaceSettings.model_validate({**self.model_dump(), **tidied})
        except ValidationError as error:
            name = str(error.errors()[0]["loc"][0])
            raise SettingRefusedError(f"{ABOUT[name].label} cannot be that: use {what_works(name)}.") from None

    @property
    def chosen(self) -> dict[str, Any]:
        """The values that are set, by name."""
        return {name: value for name in ABOUT if (value := getattr(self, name)) is not None}

    @property
    def limits_people(self) -> bool:
        """Whether it has a list of those who are answered."""
        return self.allowed_roles is not None or self.allowed_users is not None


ABOUT: Mapping[str, About] = {
    name: next(item for item in field.metadata if isinstance(item, About))
    for name, field in PlaceSettings.model_fields.items()
}
"""The settings by name, in the order in which they are shown."""


def choices(name: str) -> tuple[str, ...]:
    """The choices of a setting; empty for a text or a list."""
    kinds = [kind for kind in get_args(PlaceSettings.model_fields[name].annotation) if kind is not type(None)]
    return ("on", "off") if kinds == [bool] else () if ABOUT[name].listed else get_args(kinds[0])


def what_works(name: str) -> str:
    """The values that a setting takes, in words that follow "use"."""
    if found := choices(name):
        return f"{', '.join(found[:-1])} or {found[-1]}"
    about = ABOUT[name]
    return f"at most {MAX_IDS} {about.listed.value}" if about.listed else about.use


def _tidied(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return frozenset(value) or None if ABOUT[name].listed and value is not None else value
    value = value.strip()
    if choices(name):
        value = value.lower()
        return {"on": True, "off": False}.get(value, value) if choices(name) == ("on", "off") else value
    return value or None
