"""Settings in force in a place: those of its own level and all levels above, combined, with the source of each.

Two rules. A setting comes from the nearest level that sets it. But who is blocked at one level is blocked, and who is
missing in one level's list of allowed ones is not allowed, whatever the other levels say. So deny beats allow, and a
lower level cannot open what a higher one has closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from place_settings.document import PAUSED
from place_settings.fields import ABOUT, Combining, Level, PlaceSettings

MAX_NAME = 45  # characters shown of the name of an unknown setting


@dataclass(frozen=True, slots=True)
class Layer:
    """The settings of one level of a place. place_id: of the guild, category, channel or thread; 0: the owner's level.

    unread: names of settings that this version cannot read. closed_by: one of them that may limit who is answered, or
    where, so that nobody is; empty: none. is_paused: nobody is answered until the owner resumes.
    """

    level: Level
    place_id: int
    settings: PlaceSettings
    unread: tuple[str, ...] = ()
    closed_by: str = ""
    is_paused: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """Why somebody is not answered: the name of a setting, and the level at which it is set.

    is_unread: this version cannot read the setting: a newer one has set it, or it is damaged.
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
    """The settings in force in a place.

    settings: all levels combined. sources: name of the setting -> the level it comes from, or, of a list, all levels
    that have one; empty: not set. layers: from the owner's down. silenced: the setting by which the bot answers nobody
    there; None: it answers. refuses_unasked: the setting by which it does not speak there without being called; None:
    it may. model: the model chosen in the server; None: the owner's.
    """

    settings: PlaceSettings
    sources: Mapping[str, tuple[Level, ...]]
    layers: Sequence[Layer]
    silenced: Refused | None
    refuses_unasked: Refused | None
    model: str | None

    def refuses(self, user_id: int, role_ids: Set[int] | None) -> Refused | None:
        """The setting by which somebody is not answered there. None: they are. role_ids: None: not known."""
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
    """Combines the settings of the levels. path: ids of the place, of a thread's channel, and of the category.

    layers: from the top; the first is the owner's, which sets everything that has a default.
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
    silenced = _silenced(layers, frozenset(path), settings, sources, is_thread=is_thread)
    by_mentions = Refused("answers", sources["answers"][0]) if settings.answers == "mentions" else None
    model = None if sources["model"] in ((), (Level.OWNER,)) else settings.model
    return InForce(settings, sources, layers, silenced, silenced or by_mentions, model)


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


def source_in_words(levels: Sequence[Level], here: Level | None = None) -> str:
    """The source of a value; what the bot's owner has set is "default". here: the level that is shown."""
    if set(levels) <= {Level.OWNER}:
        return "default"
    return "set here" if tuple(levels) == (here,) else f"from {' and '.join(level.in_words for level in levels)}"


NOTHING_SET = in_force((), ())
"""The settings in force where nobody has set anything."""
