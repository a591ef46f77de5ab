"""What holds in a place: what the levels above it and its own have set, combined, and where each of it comes from.

Two rules. A setting comes from the nearest level that sets it. But whoever is blocked at one level is blocked, and
whoever is not among those whom one level allows is not allowed, whatever the other levels say: deny beats allow, and
nobody opens further down what is closed further up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from place_settings.document import PAUSED
from place_settings.fields import ABOUT, Combining, Level, PlaceSettings

MAX_NAME = 45  # characters of a setting's name that this version does not know


@dataclass(frozen=True, slots=True)
class Layer:
    """What one level of a place has set. place_id: of the guild, category, channel or thread; 0 of the owner.

    unread: the names of settings that a newer version of the bot has set, and this one cannot read. closed_by: which of
    them may say who is answered, or where, so that nobody is; empty: none does. is_paused: nobody is until it ends.
    """

    level: Level
    place_id: int
    settings: PlaceSettings
    unread: tuple[str, ...] = ()
    closed_by: str = ""
    is_paused: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """Why somebody is not answered: the setting, and the level at which it is set.

    is_unread: a newer version of the bot has set it, or it is damaged.
    """

    name: str
    level: Level
    is_unread: bool = False

    @property
    def in_words(self) -> str:
        if self.name == PAUSED:
            return f"the pause that {self.level.in_words} has set"
        label = ABOUT[self.name].label if self.name in ABOUT else self.name[:MAX_NAME]
        form = " in a form that I cannot read" if self.is_unread else ""
        by = "by" if self.level is Level.OWNER else "for"
        return f"“{label}”, set {by} {self.level.in_words}{form}"


@dataclass(frozen=True, slots=True)
class InForce:
    """What holds in a place.

    settings: what all levels come to. sources: by setting, the level it comes from; of a list, each that has one.
    layers: from the owner's down. silenced: by which setting the bot answers nobody there.
    """

    settings: PlaceSettings
    sources: Mapping[str, tuple[Level, ...]]
    layers: Sequence[Layer]
    silenced: Refused | None = None

    @property
    def model(self) -> str | None:
        """Which model a server has chosen; None: the owner's."""
        return None if self.sources["model"] in ((), (Level.OWNER,)) else self.settings.model

    @property
    def refuses_unasked(self) -> Refused | None:
        """Why it says nothing there that nobody called it for."""
        mentions_only = self.settings.answers == "mentions"
        return self.silenced or (Refused("answers", self.sources["answers"][0]) if mentions_only else None)

    def makes_offers(self, *, is_wanted: bool = False) -> bool:
        """Whether it offers help there. is_wanted: so it does, unless a server has set something else."""
        if not self.settings.offers and not (is_wanted and self.sources["offers"] in ((), (Level.OWNER,))):
            return False
        return self.refuses_unasked is None

    def refuses(self, user_id: int, role_ids: Set[int] | None) -> Refused | None:
        """Why somebody with these roles is not answered there. role_ids: None where they are not known."""
        if self.silenced:
            return self.silenced
        for layer in self.layers:
            at, level = layer.settings, layer.level
            if at.blocked_users and user_id in at.blocked_users:
                return Refused("blocked_users", level)
            if at.blocked_roles and (role_ids is None or not at.blocked_roles.isdisjoint(role_ids)):
                return Refused("blocked_roles", level)
            if (
                at.limits_people
                and user_id not in (at.allowed_users or ())
                and (at.allowed_roles or frozenset()).isdisjoint(role_ids or ())
            ):
                return Refused("allowed_users" if at.allowed_roles is None else "allowed_roles", level)
        return None


def in_force(layers: Iterable[Layer], path: Iterable[int], *, is_thread: bool = False) -> InForce:
    """Combines what the levels have set. path: the ids of the place, of the channel it is a thread of, of its category.

    The owner's level, the first, sets all that has a default.
    """
    layers = tuple(layers)
    combined: dict[str, Any] = {}
    sources: dict[str, tuple[Level, ...]] = {}
    for name, about in ABOUT.items():
        said = [(layer.level, value) for layer in layers if (value := getattr(layer.settings, name)) is not None]
        if not said:
            sources[name] = ()
        elif about.combining in (Combining.NEAREST, Combining.EACH):
            combined[name], sources[name] = said[-1][1], (said[-1][0],)
        else:
            lists = [value for _, value in said]
            is_allowing = about.combining is Combining.EVERY
            combined[name] = frozenset.intersection(*lists) if is_allowing else frozenset.union(*lists)
            sources[name] = tuple(level for level, _ in said)
    settings = PlaceSettings.model_construct(**combined)
    return InForce(
        settings, sources, layers, _silenced(layers, frozenset(path), settings, sources, is_thread=is_thread)
    )


def _silenced(
    layers: Sequence[Layer],
    path: Set[int],
    settings: PlaceSettings,
    sources: Mapping[str, tuple[Level, ...]],
    *,
    is_thread: bool,
) -> Refused | None:
    for layer in layers:
        if layer.is_paused:
            return Refused(PAUSED, layer.level)
        if layer.closed_by:
            return Refused(layer.closed_by, layer.level, is_unread=True)
        blocked, allowed = layer.settings.blocked_channels, layer.settings.allowed_channels
        if blocked and not blocked.isdisjoint(path):
            return Refused("blocked_channels", layer.level)
        if allowed is not None and allowed.isdisjoint(path):
            return Refused("allowed_channels", layer.level)
    if settings.answers == "off":
        return Refused("answers", sources["answers"][0])
    if is_thread and settings.threads == "off":
        return Refused("threads", sources["threads"][0])
    return None


NOTHING_SET = in_force((), ())
"""What holds where nobody has set anything."""
