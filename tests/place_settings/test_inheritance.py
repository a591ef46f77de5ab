"""What several levels set, and what holds of it where."""

from __future__ import annotations

import pytest

from place_settings.fields import ABOUT, Level, PlaceSettings, SettingRefusedError, what_works
from place_settings.inheritance import InForce, Layer, Refused, in_force

OWNER = PlaceSettings(answers="follow", eagerness="balanced", threads="join")


def held(*settings: PlaceSettings, path: tuple[int, ...] = (3,), is_thread: bool = False) -> InForce:
    """What holds where the owner, the guild and so on down have set this."""
    layers = (Layer(Level(n), n, one) for n, one in enumerate((OWNER, *settings)))
    return in_force(layers, path, is_thread=is_thread)


def test_the_nearest_level_that_sets_something_counts() -> None:
    here = held(PlaceSettings(eagerness="quiet"), PlaceSettings(), PlaceSettings(answers="mentions"))
    assert (here.settings.eagerness, here.sources["eagerness"]) == ("quiet", (Level.GUILD,))
    assert (here.settings.answers, here.sources["answers"]) == ("mentions", (Level.CHANNEL,))
    assert (here.settings.threads, here.sources["threads"]) == ("join", (Level.OWNER,))
    assert here.settings.persona is None
    assert here.sources["persona"] == ()


def test_whoever_is_blocked_at_one_level_is_blocked_whatever_another_allows() -> None:
    here = held(PlaceSettings(blocked_roles=frozenset({7})), PlaceSettings(allowed_users=frozenset({1})))
    assert here.refuses(1, {7}) == Refused("blocked_roles", Level.GUILD)
    assert here.refuses(1, {8}) is None
    assert here.refuses(2, {8}) == Refused("allowed_users", Level.CATEGORY)


def test_a_level_further_down_opens_nothing_that_is_closed_further_up() -> None:
    here = held(
        PlaceSettings(allowed_roles=frozenset({7})), PlaceSettings(), PlaceSettings(allowed_roles=frozenset({8}))
    )
    assert here.refuses(1, {8}) == Refused("allowed_roles", Level.GUILD)
    assert here.refuses(1, {7}) == Refused("allowed_roles", Level.CHANNEL)
    assert here.refuses(1, {7, 8}) is None


def test_a_category_stands_for_all_channels_in_it() -> None:
    guild = PlaceSettings(allowed_channels=frozenset({20}), blocked_channels=frozenset({31}))
    assert held(guild, path=(30, 20)).silenced is None
    assert held(guild, path=(31, 20)).silenced == Refused("blocked_channels", Level.GUILD)
    assert held(guild, path=(40, 21)).silenced == Refused("allowed_channels", Level.GUILD)


def test_threads_are_switched_off_for_threads_only() -> None:
    guild = PlaceSettings(threads="off")
    assert held(guild).silenced is None
    assert held(guild, is_thread=True).silenced == Refused("threads", Level.GUILD)


@pytest.mark.parametrize(
    ("level", "name", "value", "said"),
    [
        (Level.GUILD, "eagerness", "loud", "Eagerness cannot be that: use quiet, balanced or eager."),
        (Level.CHANNEL, "allowed_channels", {1}, "Allowed channels cannot be set for this channel: use this server."),
        (
            Level.THREAD,
            "offers",
            True,
            "Offers of help cannot be set for this thread: use this server or this category or this channel.",
        ),
        (Level.GUILD, "persona", "x" * 2_001, "Persona cannot be that: use at most 2,000 characters of text."),
        (Level.GUILD, "blocked_users", {-1}, "Blocked members cannot be that: use at most 500 users."),
        (Level.GUILD, "blocked_users", {2**64}, "Blocked members cannot be that: use at most 500 users."),
    ],
)
def test_what_cannot_be_set_is_refused_in_a_sentence(level: Level, name: str, value: object, said: str) -> None:
    with pytest.raises(SettingRefusedError) as refused:
        PlaceSettings().changed(level, {name: value})
    assert str(refused.value) == said


def test_a_value_is_tidied_before_it_is_kept() -> None:
    changed = PlaceSettings(language="German").changed(
        Level.GUILD, {"eagerness": " Quiet ", "judge": "ON", "language": "  ", "blocked_users": []}
    )
    assert changed == PlaceSettings(eagerness="quiet", judge=True)


@pytest.mark.parametrize("name", ABOUT)
def test_every_setting_can_be_shown_in_a_card(name: str) -> None:
    about = ABOUT[name]
    assert len(about.label) <= 45
    assert len(about.meaning) <= 100
    assert what_works(name)
