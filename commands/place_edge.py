"""Finds the place whose settings an interaction is about, checks that its user may change them, and changes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import discord
from discord.utils import format_dt

from commands.answers import plain
from commands.items import CLICK_PATIENCE_SECONDS
from commands.setting_words import holding_in_words, label, value_in_words
from discord_io.places import Places, category_of
from place_settings.document import Own
from place_settings.fields import ABOUT, Level, SettingRefusedError
from place_settings.guild_settings import Changed
from place_settings.inheritance import InForce, in_force

NOT_THE_SERVERS = "Only those who manage this server can set what holds for it or for a category."
NOT_THE_CHANNELS = "Only those who manage this channel can set what holds in it."
NO_CATEGORY = "This channel is not in a category: choose another place."
NO_THREAD = "This is not a thread: choose another place."
GONE = "That place is gone, and so is what was set for it."
ELSEWHERE = "That card is for another place: open one here with /parley settings."
MAX_CHOICE = 100  # characters of a choice; Discord's limit
MAX_NAMED = 18  # choices in a sentence
COUNTS_FROM = "This applies from the next message on."


class ModelNames(Protocol):
    """The models that may be chosen, the default first."""

    @property
    def names(self) -> Sequence[str]: ...


class Store(Protocol):
    """Stores the settings."""

    async def noted(self, seconds: float) -> None:
        """Waits until all changes are stored, at most this long."""


@dataclass(frozen=True, slots=True)
class Target:
    """The place whose settings are shown or changed, and its level."""

    level: Level
    place_id: int


class PlaceEdge:
    """Finds the settings that an interaction is about, and changes them for users who may."""

    def __init__(self, places: Places, models: ModelNames, store: Store) -> None:
        self.settings = places.settings
        self.models = models
        self._places = places
        self._store = store

    def target(self, interaction: discord.Interaction, level: Level) -> Target | None:
        """The place of that level in which the interaction is. None: there is none, as outside of threads."""
        channel = interaction.channel
        ids = {
            Level.GUILD: interaction.guild_id,
            Level.CATEGORY: category_of(channel),
            Level.CHANNEL: channel.parent_id if isinstance(channel, discord.Thread) else interaction.channel_id,
            Level.THREAD: channel.id if isinstance(channel, discord.Thread) else None,
        }
        return Target(level, place_id) if (place_id := ids.get(level)) else None

    def targets(self, interaction: discord.Interaction) -> list[Target]:
        """The places here whose settings the user may change, from the server down."""
        found = (self.target(interaction, level) for level in Level if level is not Level.OWNER)
        return [target for target in found if target and _may_set(interaction, target.level)]

    def refusal(self, interaction: discord.Interaction, level: Level, target: Target | None = None) -> str | None:
        """The reason its user cannot change settings of that level now, as a sentence; None: they can.

        target: that of the clicked card.
        """
        if not _may_set(interaction, level):
            return NOT_THE_SERVERS if level in (Level.GUILD, Level.CATEGORY) else NOT_THE_CHANNELS
        here = self.target(interaction, level)
        if target and target != here:
            guild = interaction.guild
            is_gone = guild and not (guild.get_channel_or_thread(target.place_id) or guild.id == target.place_id)
            return GONE if is_gone else ELSEWHERE
        if here is None:
            return NO_CATEGORY if level is Level.CATEGORY else NO_THREAD
        return None

    def holds(self, interaction: discord.Interaction, level: Level | None = None) -> InForce:
        """The settings in force in the interaction's place. level: only those set at this level and above."""
        holds = self._places.held(interaction.channel)
        if level is None:
            return holds
        return in_force([layer for layer in holds.layers if layer.level <= level], ())

    def own(self, interaction: discord.Interaction, target: Target) -> Own:
        """What is set for the place itself, without what it inherits."""
        return self.settings.own(interaction.guild_id or 0, target.place_id, target.level)

    def revision(self, interaction: discord.Interaction) -> int:
        return self.settings.revision(interaction.guild_id or 0)

    async def change(
        self, interaction: discord.Interaction, target: Target, name: str, value: Any, seen: int | None = None
    ) -> str:
        """Sets a value there and returns a sentence about the result. Raises SettingRefusedError.

        value: None: inherit; seen: the revision that the user saw.
        """
        if name == "model" and value and value.strip() not in self.models.names:
            raise SettingRefusedError(f"{quoted(value)} is not among my models: use {one_of(self.models.names)}.")
        thread = interaction.channel if target.level is Level.THREAD else None
        changed = self.settings.change(
            interaction.guild_id or 0,
            target.place_id,
            target.level,
            {name: value},
            by=interaction.user.id,
            now=interaction.created_at,
            seen=seen,
            parent_id=thread.parent_id if isinstance(thread, discord.Thread) else 0,
        )
        left_out = self._left_out_in_words(interaction) if ABOUT[name].listed and value else []
        said = " ".join([self._set_in_words(interaction, target, name), *left_out, *_overtaken(changed)])
        await self._store.noted(CLICK_PATIENCE_SECONDS)
        return said

    async def reset(self, interaction: discord.Interaction, target: Target, seen: int | None = None) -> str:
        """Makes the place inherit everything, and returns a sentence about that."""
        by, now = interaction.user.id, interaction.created_at
        changed = self.settings.reset(
            interaction.guild_id or 0, target.place_id, target.level, by=by, now=now, seen=seen
        )
        await self._store.noted(CLICK_PATIENCE_SECONDS)
        said = f"All settings of {target.level.in_words} are inherited again. {COUNTS_FROM}"
        return " ".join([said, *_overtaken(changed)])

    def _set_in_words(self, interaction: discord.Interaction, target: Target, name: str) -> str:
        where = target.level.in_words
        own = getattr(self.own(interaction, target).settings, name)
        if own is not None:
            return f"{label(name)}, for {where}: {value_in_words(name, own, to_manager=True)}. {COUNTS_FROM}"
        holds = holding_in_words(name, self.holds(interaction, target.level), to_manager=True)
        return f"{label(name)}, for {where}: inherited again, {holds}. {COUNTS_FROM}"

    def _left_out_in_words(self, interaction: discord.Interaction) -> list[str]:
        """A warning if the change keeps the bot from answering the user who made it."""
        user = interaction.user
        roles = {role.id for role in user.roles} if isinstance(user, discord.Member) else set()
        refused = self.holds(interaction).refuses(user.id, roles)
        return [f"Note that I do not answer you here: {refused.in_words}."] if refused else []

    def gone_model(self, holds: InForce) -> str | None:
        """A warning if the model set there may no longer be chosen. None: it may, or none is set."""
        model = holds.settings.model
        if model is None or model in self.models.names:
            return None
        return f"{quoted(model)} can no longer be chosen, so the default answers: {self.models.names[0]}."

    def suggestions(self, name: str) -> Sequence[str]:
        """The choices of a setting that its type does not list: the models."""
        return [one for one in self.models.names if len(one) <= MAX_CHOICE] if name == "model" else ()


def _may_set(interaction: discord.Interaction, level: Level) -> bool:
    may = interaction.permissions
    return may.manage_guild if level in (Level.GUILD, Level.CATEGORY) else may.manage_channels


def _overtaken(changed: Changed) -> list[str]:
    """A sentence about the last change that somebody else made there since the user looked."""
    said = []
    for edit in changed.overtaken[-1:]:
        labels = " and ".join(label(name) for name in edit.names if name in ABOUT) or "something"
        said.append(f"Before you, <@{edit.by}> had changed {labels} {format_dt(edit.at, 'R')}.")
    return said


def first_level(name: str) -> Level:
    """The level at which a setting is set if the user names none."""
    return Level.CHANNEL if Level.CHANNEL in ABOUT[name].levels else min(ABOUT[name].levels)


def quoted(text: str) -> str:
    return f"“{plain(text)[:100]}”"


def one_of(names: Sequence[str]) -> str:
    """The names as "a, b or c"; of more than 18 the first 18 "or another"."""
    shown = names if len(names) <= MAX_NAMED else [*names[:MAX_NAMED], "another"]
    return " or ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
