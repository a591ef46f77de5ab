"""What holds where several levels set something: the rows of inheritance.txt, and what holds whatever is set."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from place import Place, PlaceKind
from place_settings.fields import ABOUT, Level, Listed, PlaceSettings, choices
from place_settings.guild_settings import GuildSettings
from place_settings.inheritance import InForce, Refused

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWNER: dict[str, Any] = {
    "answers": "follow",
    "eagerness": "balanced",
    "threads": "join",
    "offers": False,
    "judge": False,
    "decline": True,
    "tools": True,
}
IDS = {name: 10 + n for n, name in enumerate(["lobby", "yard", "general", "random", "shed", "lone", "names"])}
IDS |= {"server": 1, "everyone": 1, "helpers": 101, "guests": 102, "Ada": 201, "Ben": 202}
CATEGORIES = {"general": "lobby", "random": "lobby", "names": "lobby", "shed": "yard"}
LEVELS = {"server": Level.GUILD, "lobby": Level.CATEGORY, "yard": Level.CATEGORY, "names": Level.THREAD}
WHERE = ["general", "random", "shed", "lone", "names"]
LEVEL_WORDS = dict(zip(Level, ("owner", "server", "category", "channel", "thread"), strict=True))
ROWS = [
    tuple(part.strip() for part in line.split("|"))
    for line in Path(__file__).with_name("inheritance.txt").read_text(encoding="utf-8").splitlines()
    if line.strip() and not line.startswith("#")
]
FEW = settings(max_examples=40)  # each sets things for a whole server
Said = dict[str, dict[str, Any]]
"""By the name of a place what is set for it."""


def place(name: str) -> Place:
    if name == "direct":
        return Place(0, 77, PlaceKind.DIRECT)
    category = IDS.get(CATEGORIES.get(name, ""))
    if name == "names":
        return Place(IDS["server"], IDS[name], PlaceKind.THREAD, parent_id=IDS["general"], category_id=category)
    return Place(IDS["server"], IDS[name], category_id=category)


def held(said: Said, where: str) -> InForce:
    settings = GuildSettings(PlaceSettings(**OWNER | said.get("owner", {})))
    for name, values in said.items():
        if name != "owner":
            level = LEVELS.get(name, Level.CHANNEL)
            settings.change(IDS["server"], IDS[name], level, values, by=0, now=NOW)
    return settings.at(place(where))


def read(text: str) -> Said:
    said: Said = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, _, values = part.partition(": ")
        said[name] = {}
        for one in values.split():
            setting, _, value = one.partition("=")
            is_list = ABOUT[setting].listed
            said[name][setting] = frozenset(IDS[i] for i in value.split("+")) if is_list else value
    return said


def told(here: InForce, asked: str) -> str:
    if asked in ABOUT:
        value, sources = getattr(here.settings, asked), here.sources[asked]
        shown = {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value
        return f"{shown}, {LEVEL_WORDS[sources[-1]]}" if sources else "nobody"
    who, *roles = asked.split("+")
    refused = here.refuses(IDS[who], None if roles == ["?"] else {IDS[role] for role in roles})
    return f"{refused.name}, {LEVEL_WORDS[refused.level]}" if refused else "answered"


def test_what_holds() -> None:
    found = [(said, where, asked, told(held(read(said), where), asked)) for said, where, asked, _ in ROWS]
    assert [row for row, expected in zip(found, ROWS, strict=True) if row != expected] == []


# Whatever is set

LISTS = {Listed.CHANNELS: [*WHERE, "lobby", "yard"], Listed.ROLES: ["helpers", "guests"], Listed.USERS: ["Ada", "Ben"]}


def values_at(level: Level) -> st.SearchStrategy[dict[str, Any]]:
    """What can be set at a level."""
    kinds: dict[str, st.SearchStrategy[Any]] = {}
    for name, about in ABOUT.items():
        if level in about.levels:
            listed = [IDS[one] for one in LISTS[about.listed]] if about.listed else None
            kinds[name] = (
                st.frozensets(st.sampled_from(listed), min_size=1)
                if listed
                else st.sampled_from(choices(name) or ("$1 a day", "2000 tokens a month"))
            )
    return st.fixed_dictionaries({}, optional=kinds)


SAID = st.fixed_dictionaries(
    {}, optional={name: values_at(LEVELS.get(name, Level.CHANNEL)) for name in ("server", "lobby", "yard", *WHERE)}
)
ANYWHERE = st.sampled_from(WHERE)
ROLES = st.frozensets(st.sampled_from([IDS["helpers"], IDS["guests"]]))
PEOPLE = st.sampled_from([IDS["Ada"], IDS["Ben"]])


def levels_of(where: str) -> list[str]:
    """The places whose settings hold there."""
    return ["server", CATEGORIES.get(where, ""), *(["general"] if where == "names" else []), where]


@FEW
@given(SAID, ANYWHERE, PEOPLE, ROLES)
def test_whoever_is_blocked_anywhere_above_is_refused(said: Said, where: str, who: int, roles: frozenset[int]) -> None:
    above = [said.get(name, {}) for name in levels_of(where)]
    is_blocked = any(
        who in values.get("blocked_users", ()) or roles & values.get("blocked_roles", frozenset()) for values in above
    )
    blocked = said.get("server", {}).get("blocked_channels", frozenset())
    if is_blocked or blocked & {IDS[name] for name in levels_of(where) if name}:
        assert held(said, where).refuses(who, roles)


@FEW
@given(SAID, ANYWHERE, ANYWHERE, st.data())
def test_what_is_set_for_one_channel_changes_no_other(said: Said, here: str, there: str, data: st.DataObject) -> None:
    if here in levels_of(there):
        return
    more = said | {here: data.draw(values_at(LEVELS.get(here, Level.CHANNEL)))}
    assert held(more, there) == held(said, there)


@FEW
@given(SAID, ANYWHERE, st.sampled_from(["server", "lobby", "yard", *WHERE]))
def test_what_is_reset_is_as_if_it_had_never_been_set(said: Said, where: str, reset: str) -> None:
    settings = GuildSettings(PlaceSettings(**OWNER))
    for name, values in said.items():
        settings.change(IDS["server"], IDS[name], LEVELS.get(name, Level.CHANNEL), values, by=0, now=NOW)
    settings.reset(IDS["server"], IDS[reset], LEVELS.get(reset, Level.CHANNEL), by=0, now=NOW)
    never = {name: values for name, values in said.items() if name != reset}
    assert settings.at(place(where)) == held(never, where)


@FEW
@given(SAID, ANYWHERE, PEOPLE, ROLES)
def test_who_is_left_out_further_up_is_let_in_by_nothing_further_down(
    said: Said, where: str, who: int, roles: frozenset[int]
) -> None:
    levels = levels_of(where)
    for depth in range(1, len(levels)):
        above = {name: values for name, values in said.items() if name in levels[:depth]}
        refused = held(above, where).refuses(who, roles)
        if refused and refused.name not in ("answers", "threads"):  # of which the nearest level counts
            assert held(said, where).refuses(who, roles)


@FEW
@given(SAID)
def test_what_is_stored_and_read_again_holds_as_before(said: Said) -> None:
    settings, again = GuildSettings(PlaceSettings(**OWNER)), GuildSettings(PlaceSettings(**OWNER))
    for name, values in said.items():
        settings.change(IDS["server"], IDS[name], LEVELS.get(name, Level.CHANNEL), values, by=0, now=NOW)
    if (stored := settings.stored(IDS["server"])) is not None:
        again.restore(IDS["server"], stored)
    for where in WHERE:
        assert again.at(place(where)) == settings.at(place(where))


def test_a_refusal_names_its_setting_and_its_level() -> None:
    assert Refused("blocked_users", Level.OWNER).in_words == "“Blocked members”, set by my owner"
