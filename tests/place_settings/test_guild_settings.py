"""What guilds set is kept, changed by several people, and survives versions and deletions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from place import Place, PlaceKind
from place_settings.document import PAUSED
from place_settings.fields import ABOUT, Level, PlaceSettings, SettingRefusedError
from place_settings.guild_settings import MAX_PLACES, Categories, Changed, GuildSettings
from place_settings.inheritance import Refused
from setting_values import Scope

GUILD, CATEGORY, CHANNEL, OTHER, THREAD = 1, 20, 31, 32, 41
AL, BEA = 501, 502
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWNER = PlaceSettings(answers="follow", eagerness="balanced", threads="join", offers=False)

HERE = Place(GUILD, CHANNEL, category_id=CATEGORY)
THERE = Place(GUILD, OTHER, category_id=CATEGORY)
IN_THREAD = Place(GUILD, THREAD, PlaceKind.THREAD, parent_id=CHANNEL, category_id=CATEGORY)


class Guild:
    """A guild's settings, and how its channels are arranged."""

    def __init__(self, owner: PlaceSettings = OWNER) -> None:
        self.stored: list[int] = []
        self.categories: dict[int, int | None] = {CATEGORY: None, CHANNEL: CATEGORY, OTHER: CATEGORY}
        self.settings = GuildSettings(owner, self.stored.append, self._categories)

    def _categories(self, guild_id: int) -> Categories | None:
        return self.categories if guild_id == GUILD else None

    def set(self, level: Level, place_id: int, *, now: datetime = NOW, by: int = AL, **values: Any) -> Changed:
        return self.settings.change(GUILD, place_id, level, values, by=by, now=now)

    def arrange(self, categories: dict[int, int | None], now: datetime = NOW) -> None:
        self.categories = categories
        self.settings.rearranged(GUILD, now)

    def restarted(self) -> Guild:
        """As another process reads what this one stored."""
        anew = Guild()
        anew.categories = self.categories
        if (stored := self.settings.stored(GUILD)) is not None:
            anew.settings.restore(GUILD, stored)
        return anew


@pytest.fixture
def guild() -> Guild:
    return Guild()


def test_budgets_of_server_channel_and_thread_hold_beside_each_other_from_when_they_are_set(guild: Guild) -> None:
    def budgets() -> list[tuple[Scope, int]]:
        return [(limit.scope, limit.amount) for limit in guild.settings.budgets(GUILD, CHANNEL, THREAD)]

    assert budgets() == []
    guild.set(Level.GUILD, GUILD, budget="$1 a day")
    guild.set(Level.THREAD, THREAD, budget="300 tokens a month")
    assert budgets() == [(Scope.GUILD, 1_000_000), (Scope.THREAD, 300)]
    guild.set(Level.CHANNEL, CHANNEL, budget="20 tokens a day")
    guild.set(Level.GUILD, GUILD, budget=None)
    assert budgets() == [(Scope.CHANNEL, 20), (Scope.THREAD, 300)]
    assert [limit.scope for limit in guild.settings.budgets(GUILD, OTHER, 0)] == []


def test_what_is_set_holds_at_once_and_after_a_restart(guild: Guild) -> None:
    assert guild.settings.at(HERE).settings.eagerness == "balanced"
    guild.set(Level.GUILD, GUILD, eagerness="quiet", blocked_users={7})
    guild.set(Level.CHANNEL, CHANNEL, persona="A pirate.")
    for one in (guild, guild.restarted()):
        held = one.settings.at(IN_THREAD)
        assert (held.settings.eagerness, held.settings.persona) == ("quiet", "A pirate.")
        assert held.refuses(7, frozenset()) == Refused("blocked_users", Level.GUILD)
        assert one.settings.at(THERE).settings.persona is None
    assert guild.stored == [GUILD, GUILD]


def test_a_place_that_is_moved_inherits_from_where_it_is_now(guild: Guild) -> None:
    guild.set(Level.CATEGORY, CATEGORY, eagerness="eager")
    assert guild.settings.at(HERE).settings.eagerness == "eager"
    assert guild.settings.at(Place(GUILD, CHANNEL)).settings.eagerness == "balanced"


def test_direct_messages_have_what_the_owner_set_without_lists_of_channels() -> None:
    settings = Guild(PlaceSettings(eagerness="quiet", allowed_channels=frozenset({9}))).settings
    direct = settings.at(Place(0, 77, PlaceKind.DIRECT))
    assert direct.settings.eagerness == "quiet"
    assert direct.silenced is None
    assert settings.at(HERE).silenced == Refused("allowed_channels", Level.OWNER)


def test_of_two_who_change_a_place_the_last_one_wins_and_both_are_told(guild: Guild) -> None:
    told: list[Changed] = []
    guild.settings.listener = told.append
    seen = guild.settings.revision(GUILD)
    guild.set(Level.CHANNEL, CHANNEL, by=BEA, eagerness="eager")
    guild.set(Level.CHANNEL, OTHER, by=BEA, eagerness="eager")
    changed = guild.settings.change(GUILD, CHANNEL, Level.CHANNEL, {"eagerness": "quiet"}, by=AL, now=NOW, seen=seen)
    assert [(edit.by, edit.names) for edit in changed.overtaken] == [(BEA, ("eagerness",))]
    assert guild.settings.at(HERE).settings.eagerness == "quiet"
    assert [(one.by, one.node.place_id, one.names) for one in told][-1] == (AL, CHANNEL, ("eagerness",))
    again = guild.settings.change(GUILD, CHANNEL, Level.CHANNEL, {"judge": True}, by=AL, now=NOW, seen=changed.revision)
    assert again.overtaken == ()


def test_what_changes_nothing_is_no_change(guild: Guild) -> None:
    guild.set(Level.GUILD, GUILD, eagerness="eager")
    unchanged = guild.set(Level.GUILD, GUILD, eagerness=" Eager ")
    assert unchanged.names == ()
    assert guild.stored == [GUILD]


def test_a_reset_level_is_as_if_it_had_set_nothing(guild: Guild) -> None:
    guild.set(Level.GUILD, GUILD, eagerness="eager", answers="off")
    changed = guild.settings.reset(GUILD, GUILD, Level.GUILD, by=AL, now=NOW)
    assert set(changed.names) == {"eagerness", "answers"}
    assert guild.settings.at(HERE) == Guild().settings.at(HERE)


def test_a_guild_has_no_endless_list_of_places(guild: Guild) -> None:
    guild.categories = {}
    for channel_id in range(MAX_PLACES):
        guild.set(Level.CHANNEL, 1_000 + channel_id, judge=True)
    with pytest.raises(SettingRefusedError, match="reset one of them"):
        guild.set(Level.CHANNEL, CHANNEL, judge=True)
    guild.set(Level.CHANNEL, 1_000, judge=False)


def test_what_is_known_of_a_person_who_is_forgotten_is_not_that_they_changed_something(guild: Guild) -> None:
    guild.set(Level.GUILD, GUILD, by=BEA, eagerness="eager")
    guild.settings.forget_person(BEA)
    assert str(BEA) not in str(guild.settings.stored(GUILD))
    assert guild.settings.at(HERE).settings.eagerness == "eager"


def test_a_guild_that_is_left_is_forgotten(guild: Guild) -> None:
    guild.set(Level.GUILD, GUILD, eagerness="eager")
    guild.settings.drop(GUILD)
    assert guild.settings.stored(GUILD) is None
    assert guild.settings.at(HERE).settings.eagerness == "balanced"


# Documents of another version, and bad ones

FUTURE = {
    "version": 9,
    "colour": "blue",
    "revision": 3,
    "places": {
        "guild:1": {"settings": {"eagerness": "quiet", "mood": "sunny"}, "closing": []},
        "channel:31": {"settings": {"answers": "whispers", "judge": True}, "closing": ["answers"]},
        "channel:32": {"settings": {"hours": "9-17", "decline": False}, "closing": ["hours"]},
    },
    "members": {},
    "edits": [],
}


def test_of_a_document_from_the_future_what_is_known_holds_and_what_may_limit_people_closes(guild: Guild) -> None:
    guild.settings.restore(GUILD, FUTURE)
    here, there = guild.settings.at(HERE), guild.settings.at(THERE)
    assert here.silenced == Refused("answers", Level.CHANNEL, is_unread=True)
    assert there.silenced == Refused("hours", Level.CHANNEL, is_unread=True)
    assert "hours" in there.silenced.in_words
    assert "in a form that I cannot read" in there.silenced.in_words
    assert guild.settings.at(IN_THREAD).silenced == here.silenced
    elsewhere = guild.settings.at(Place(GUILD, 99))
    assert (elsewhere.silenced, elsewhere.settings.eagerness) == (None, "quiet")
    assert (here.settings.judge, there.settings.decline) == (True, False)


def test_a_place_stays_closed_until_the_last_of_what_closes_it_is_set_anew(guild: Guild) -> None:
    own = {"blocked_users": "all", "hours": "9-17", "allowed_roles": "none"}
    node = {"settings": own, "closing": ["blocked_users", "hours", "allowed_roles"]}
    guild.settings.restore(GUILD, {"version": 2, "places": {f"channel:{CHANNEL}": node}})

    guild.set(Level.CHANNEL, CHANNEL, blocked_users=[BEA])
    for there in (guild, guild.restarted()):
        assert there.settings.at(HERE).silenced == Refused("hours", Level.CHANNEL, is_unread=True)
    guild.set(Level.CHANNEL, CHANNEL, allowed_roles=None)
    for there in (guild, guild.restarted()):
        assert there.settings.at(HERE).silenced == Refused("hours", Level.CHANNEL, is_unread=True)


@pytest.mark.parametrize("closing", [[{"name": "hours"}], [["hours"]], [None], [1]])
def test_closing_names_in_a_form_of_the_future_stop_no_start(guild: Guild, closing: list[Any]) -> None:
    node = {"settings": {"hours": "9-17"}, "closing": closing}
    guild.settings.restore(GUILD, {"version": 2, "places": {f"channel:{CHANNEL}": node}})
    assert guild.settings.at(HERE).silenced


def test_a_document_from_the_future_is_written_back_whole(guild: Guild) -> None:
    guild.categories = {}
    guild.settings.restore(GUILD, FUTURE)
    assert guild.settings.stored(GUILD) == {**FUTURE, "places": guild.settings.stored(GUILD)["places"]}  # type: ignore[index]
    guild.set(Level.CHANNEL, OTHER, decline=True)
    stored = guild.settings.stored(GUILD)
    assert stored
    assert stored["places"]["channel:32"]["settings"] == {"hours": "9-17", "decline": True}
    assert (stored["version"], stored["colour"]) == (9, "blue")
    assert stored["places"]["guild:1"]["settings"] == {"eagerness": "quiet", "mood": "sunny"}


def test_what_cannot_be_read_goes_once_it_is_set_anew_or_reset(guild: Guild) -> None:
    guild.settings.restore(GUILD, FUTURE)
    guild.set(Level.CHANNEL, CHANNEL, answers="mentions")
    assert guild.settings.at(HERE).silenced is None
    guild.settings.reset(GUILD, OTHER, Level.CHANNEL, by=AL, now=NOW)
    assert guild.settings.at(THERE).silenced is None


@pytest.mark.parametrize(
    "stored",
    [
        [],
        "nonsense",
        None,
        {"places": 3},
        {"places": {"guild:1": 3}},
        {"places": {"galaxy:1": {"settings": {}}}},
        {"places": {"guild": {"settings": {}}}},
        {"places": {"guild:1": {"settings": {"hours": 1}}}},
        {"places": {"guild:1": {"settings": {"blocked_users": ["all"]}, "closing": []}}},
    ],
)
def test_a_document_that_cannot_be_read_closes_the_guild_until_it_is_reset(guild: Guild, stored: Any) -> None:
    guild.settings.restore(GUILD, stored)
    held = guild.settings.at(HERE)
    assert held.silenced
    assert held.silenced.is_unread
    guild.set(Level.GUILD, GUILD, persona="A pirate.")
    guild.set(Level.GUILD, GUILD, persona=None)
    assert guild.settings.at(HERE).silenced == held.silenced
    guild.settings.reset(GUILD, GUILD, Level.GUILD, by=AL, now=NOW)
    assert guild.settings.at(HERE).silenced is None


@pytest.mark.parametrize("broken", [{"edits": [3]}, {"edits": 3}, {"members": [1]}, {"revision": "x"}])
def test_a_fault_beside_the_settings_costs_none_of_them(guild: Guild, broken: dict[str, Any]) -> None:
    places = {"guild:1": {"settings": {"eagerness": "quiet"}, "closing": []}}
    guild.settings.restore(GUILD, {"version": 1, "places": places, **broken})
    assert guild.settings.at(HERE).settings.eagerness == "quiet"
    assert guild.settings.at(HERE).silenced is None


@pytest.mark.parametrize("broken", [{"edits": [[1, "guild:1", 2, 3, [], "new"]]}, {"edits": 3}, {"revision": "x"}])
def test_a_fault_beside_the_settings_opens_nothing_once_a_category_is_gone(
    guild: Guild, broken: dict[str, Any]
) -> None:
    guild.set(Level.CATEGORY, CATEGORY, answers="off")
    stored = guild.settings.stored(GUILD)
    guild.settings.restore(GUILD, {**(stored or {}), **broken})
    guild.arrange({CHANNEL: None, OTHER: None})
    assert guild.settings.at(Place(GUILD, CHANNEL)).silenced == Refused("answers", Level.CHANNEL)


# What is deleted

UPDATED_FIRST = [{CATEGORY: None, CHANNEL: None, OTHER: CATEGORY}, {CATEGORY: None, CHANNEL: None, OTHER: None}]
ALL_GONE: dict[int, int | None] = {CHANNEL: None, OTHER: None}


@pytest.mark.parametrize("steps", [[ALL_GONE], [*UPDATED_FIRST, ALL_GONE]])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_what_a_deleted_category_had_set_passes_on_to_the_channels_in_it(
    guild: Guild, steps: list[dict[int, int | None]], is_restarted: bool
) -> None:
    guild.set(Level.CATEGORY, CATEGORY, allowed_roles={5}, eagerness="quiet", blocked_users={8})
    guild.set(Level.CHANNEL, OTHER, eagerness="eager", blocked_users={9})
    guild.set(Level.GUILD, GUILD, blocked_channels={CATEGORY})
    if is_restarted:
        guild = guild.restarted()
    for seconds, step in enumerate(steps):
        guild.arrange(step, NOW + timedelta(seconds=seconds))
    here, there = (guild.settings.at(replace_category(place)) for place in (HERE, THERE))
    assert here.silenced == there.silenced == Refused("blocked_channels", Level.GUILD)
    guild.set(Level.GUILD, GUILD, blocked_channels=None)
    here, there = (guild.settings.at(replace_category(place)) for place in (HERE, THERE))
    assert here.refuses(AL, {6}) == there.refuses(AL, {6}) == Refused("allowed_roles", Level.CHANNEL)
    assert (here.settings.eagerness, there.settings.eagerness) == ("quiet", "eager")
    assert there.refuses(8, {5}) == there.refuses(9, {5}) == Refused("blocked_users", Level.CHANNEL)
    assert "category:20" not in guild.settings.stored(GUILD)["places"]  # type: ignore[index]


def replace_category(place: Place) -> Place:
    return Place(place.guild_id, place.channel_id)


def test_a_channel_that_left_a_category_long_before_has_nothing_of_it(guild: Guild) -> None:
    guild.set(Level.CATEGORY, CATEGORY, eagerness="quiet")
    guild.arrange({CATEGORY: None, CHANNEL: None, OTHER: CATEGORY})
    guild.arrange({CHANNEL: None, OTHER: None}, NOW + timedelta(hours=1))
    assert guild.settings.at(Place(GUILD, CHANNEL)).settings.eagerness == "balanced"
    assert guild.settings.at(Place(GUILD, OTHER)).settings.eagerness == "quiet"


def test_both_lists_of_whom_is_answered_hold_once_a_category_is_gone(guild: Guild) -> None:
    guild.set(Level.CATEGORY, CATEGORY, allowed_roles={5}, allowed_users={AL})
    guild.set(Level.CHANNEL, CHANNEL, allowed_roles={5, 6})
    guild.arrange(ALL_GONE)
    here = guild.settings.at(Place(GUILD, CHANNEL))
    assert here.refuses(BEA, {6})
    assert here.refuses(AL, frozenset())
    assert here.refuses(BEA, {5}) is None


def test_what_was_set_for_what_is_deleted_is_not_kept(guild: Guild) -> None:
    guild.set(Level.CHANNEL, CHANNEL, eagerness="quiet")
    guild.settings.change(GUILD, THREAD, Level.THREAD, {"judge": True}, by=AL, now=NOW, parent_id=CHANNEL)
    guild.settings.change(GUILD, 42, Level.THREAD, {"judge": True}, by=AL, now=NOW, parent_id=OTHER)
    guild.set(Level.GUILD, GUILD, allowed_channels={CHANNEL})
    guild.arrange({CATEGORY: None, OTHER: CATEGORY})
    assert set(guild.settings.stored(GUILD)["places"]) == {"guild:1", "thread:42"}  # type: ignore[index]
    assert guild.settings.at(THERE).silenced == Refused("allowed_channels", Level.GUILD)  # no list became empty
    guild.settings.thread_deleted(GUILD, 42)
    assert set(guild.settings.stored(GUILD)["places"]) == {"guild:1"}  # type: ignore[index]


@pytest.mark.parametrize("one", [0, 1 << 64])
def test_what_is_no_id_is_refused(guild: Guild, one: int) -> None:
    with pytest.raises(SettingRefusedError):  # JSON has no integers beyond 64 bits: nothing would be stored any more
        guild.set(Level.CHANNEL, CHANNEL, blocked_users=[one])


def test_a_setting_of_every_kind_is_stored_and_read(guild: Guild) -> None:
    samples: dict[str, Any] = {
        name: {5} if about.listed else "quiet" if name == "eagerness" else None for name, about in ABOUT.items()
    }
    samples |= {"answers": "mentions", "threads": "open", "decline": False, "judge": True, "offers": True}
    samples |= {"persona": "A pirate.", "language": "German", "model": "demo", "tools": False, "budget": "$1 a day"}
    guild.set(Level.GUILD, GUILD, **samples)
    own = guild.settings.own(GUILD, GUILD, Level.GUILD).settings
    assert guild.restarted().settings.own(GUILD, GUILD, Level.GUILD).settings == own
    assert own.chosen.keys() == ABOUT.keys()


def test_a_pause_silences_all_that_is_set_to_speak_and_ends_as_if_it_had_not_been(guild: Guild) -> None:
    guild.set(Level.CHANNEL, CHANNEL, answers="follow", persona="A pirate.")
    before = guild.settings.at(HERE), guild.settings.at(THERE), guild.settings.stored(GUILD)
    guild.settings.pause(GUILD)
    guild.settings.reset(GUILD, GUILD, Level.GUILD, by=AL, now=NOW)
    for one in (guild, guild.restarted()):
        assert one.settings.at(HERE).silenced == one.settings.at(THERE).silenced == Refused(PAUSED, Level.OWNER)
        assert one.settings.at(HERE).settings.persona == "A pirate."
        assert one.settings.at(Place(2, 99)).silenced is None
        one.settings.pause(GUILD, on=False)
        assert (one.settings.at(HERE), one.settings.at(THERE), one.settings.stored(GUILD)) == before
