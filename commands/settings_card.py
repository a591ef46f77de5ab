"""The card of a place's settings and its forms, generated from the types of the settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import discord

from commands.place_edge import PlaceEdge, Target
from commands.setting_words import DEFAULT_IS, INHERIT, NOT_SET, WORDS, holding_in_words, label, value_in_words
from discord_io.split import clipped
from place_settings.fields import ABOUT, Level, Listed, PlaceSettings, choices
from place_settings.inheritance import InForce

PREFIX = "parley:settings:"

# Discord's limits.
MAX_OPTIONS, MAX_RADIOS = 25, 10
MAX_OPTION, MAX_TITLE, MAX_DESCRIPTION, MAX_FIELD, MAX_INPUT = 100, 45, 100, 1_024, 4_000
PAUSED = "Whoever runs me has paused me in this server: whatever is set here, I answer nobody until that ends."
MAX_SELECTS = 3  # of the five rows; the others are for the places and the buttons

FIELD = "value"
DEFAULTS = {
    Listed.CHANNELS: discord.SelectDefaultValueType.channel,
    Listed.ROLES: discord.SelectDefaultValueType.role,
    Listed.USERS: discord.SelectDefaultValueType.user,
}
CHANNEL_TYPES = [
    discord.ChannelType.text,
    discord.ChannelType.news,
    discord.ChannelType.voice,
    discord.ChannelType.stage_voice,
    discord.ChannelType.forum,
    discord.ChannelType.media,
    discord.ChannelType.category,
]


class Action(StrEnum):
    """What a click does; part of the custom_id, after the place and the revision."""

    OVERVIEW = "overview"
    PLACE = "place"
    PICK = "pick"
    SAVE = "save"
    LIST = "list"
    PAGE = "page"
    RESET = "reset"
    RESET_ALL = "reset_all"
    RESET_ALL_SURELY = "reset_all_surely"


Card = tuple[discord.Embed, discord.ui.View]


class CardDrawer:
    """Draws the cards of one target for one user, with the current settings."""

    def __init__(self, edge: PlaceEdge, interaction: discord.Interaction, target: Target) -> None:
        self._edge = edge
        self._interaction = interaction
        self._target = target
        self._own = edge.own(interaction, target)
        self._holds = edge.holds(interaction, target.level)
        self._revision = edge.revision(interaction)

    # The pages

    def overview(self) -> Card:
        """The page with all settings: what is in force, and where it comes from."""
        embed = discord.Embed(title=f"Settings of {self._titled}", colour=discord.Colour.blurple())
        names = [name for name, about in ABOUT.items() if self._target.level in about.levels]
        add_groups(embed, {name: self._line(name) for name in names})
        here = [layer for layer in self._holds.layers if layer.level is self._target.level]
        unread = [name for layer in here for name in layer.unread]  # a server's layer includes its whole document
        add_notes(embed, self._edge, self._holds, unread)
        view = _view()
        for start in range(0, min(len(names), MAX_SELECTS * MAX_OPTIONS), MAX_OPTIONS):
            some = names[start : start + MAX_OPTIONS]
            options = [
                discord.SelectOption(label=label(name), value=name, description=ABOUT[name].meaning) for name in some
            ]
            view.add_item(_menu(self._id(Action.PICK, str(start)), options, "Change a setting"))
        places = [
            discord.SelectOption(
                label=clipped(f"For {self._named(target)}", MAX_OPTION),
                value=str(int(target.level)),
                default=target == self._target,
            )
            for target in self._edge.targets(self._interaction)
        ]
        view.add_item(_menu(self._id(Action.PLACE), places, "For …"))
        is_bare = self._own.is_empty and not unread
        view.add_item(_button(self._id(Action.RESET_ALL), "Inherit everything", disabled=is_bare))
        return embed, view

    def list_page(self, name: str, page: int) -> Card:
        """The page of one list of ids, 25 at a time, with a menu to pick them."""
        about, ids = ABOUT[name], sorted(getattr(self._own.settings, name) or ())
        pages = len(ids) // MAX_OPTIONS + 1  # a page more, so that ids can always be added
        page = max(0, min(page, pages - 1))
        embed = discord.Embed(
            title=f"{about.label} for {self._titled}",
            description=f"{about.meaning}.",
            colour=discord.Colour.blurple(),
        )
        own = value_in_words(name, ids or None, to_manager=True)
        embed.add_field(name="Set here", value=own if ids else "nothing: inherited", inline=False)
        embed.add_field(name="What applies", value=self._line(name), inline=False)
        shown = ids[page * MAX_OPTIONS :][:MAX_OPTIONS]
        view = _view()
        view.add_item(self._select(name, page, shown))
        if page:
            view.add_item(_button(self._id(Action.PAGE, name, str(page - 1)), "◀ Previous 25"))
        if page + 1 < pages:
            is_last = (page + 1) * MAX_OPTIONS >= len(ids)
            view.add_item(_button(self._id(Action.PAGE, name, str(page + 1)), "Add more ▶" if is_last else "Next 25 ▶"))
        view.add_item(_button(self._id(Action.RESET, name), "Inherit", disabled=not ids))
        view.add_item(_button(self._id(Action.OVERVIEW), "All settings"))
        return embed, view

    def sure(self) -> Card:
        """The page that asks to confirm that all settings of the place are reset."""
        embed = discord.Embed(
            title=f"Inherit everything for {self._titled}?",
            description="Everything set here is removed; what is set above it applies then.",
            colour=discord.Colour.red(),
        )
        view = _view()
        view.add_item(_button(self._id(Action.RESET_ALL_SURELY), "Inherit everything", discord.ButtonStyle.danger))
        view.add_item(_button(self._id(Action.OVERVIEW), "Keep it"))
        return embed, view

    def form(self, name: str) -> discord.ui.Modal:
        """The form for a choice or a text, filled with the current value."""
        about = ABOUT[name]
        modal = discord.ui.Modal(title=clipped(about.label, MAX_TITLE), custom_id=self._id(Action.SAVE, name))
        modal.add_item(
            discord.ui.Label(
                text=clipped(f"For {self._named(self._target)}", MAX_TITLE),
                description=clipped(about.meaning, MAX_DESCRIPTION),
                component=self._input(name),
            )
        )
        modal.stop()
        return modal

    # Their parts

    def _input(self, name: str) -> discord.ui.Item[Any]:
        own = getattr(self._own.settings, name)
        offered = choices(name) or self._edge.suggestions(name)
        if not offered or len(offered) >= MAX_OPTIONS:
            limits = (getattr(item, "max_length", None) for item in PlaceSettings.model_fields[name].metadata)
            longest = min([MAX_INPUT, *filter(None, limits)])
            style = discord.TextStyle.paragraph if longest > MAX_OPTION else discord.TextStyle.short
            return discord.ui.TextInput(
                custom_id=FIELD,
                style=style,
                default=own,
                required=False,
                max_length=longest,
                placeholder=clipped(f"Empty: inherited. Now: {self._inherited(name)}", MAX_OPTION),
            )
        chosen = INHERIT if own is None else value_in_words(name, own, to_manager=True) if own in (True, False) else own
        labels = {INHERIT: clipped(f"Inherit ({self._inherited(name)})", MAX_OPTION)} | {one: one for one in offered}
        if len(labels) <= MAX_RADIOS:
            radios = [
                discord.RadioGroupOption(label=text, value=one, default=one == chosen) for one, text in labels.items()
            ]
            return discord.ui.RadioGroup(custom_id=FIELD, options=radios)
        options = [discord.SelectOption(label=text, value=one, default=one == chosen) for one, text in labels.items()]
        return discord.ui.Select(custom_id=FIELD, options=options)

    def _inherited(self, name: str) -> str:
        """What is in force if nothing is set here."""
        above = Level(self._target.level - 1)
        return holding_in_words(name, self._edge.holds(self._interaction, above), to_manager=True)

    def _select(self, name: str, page: int, ids: Sequence[int]) -> discord.ui.Item[Any]:
        """A menu of the server's channels, roles or members, with Discord's search. It cannot show deleted ones."""
        listed = ABOUT[name].listed or Listed.USERS
        kind, guild = DEFAULTS[listed], self._interaction.guild
        there = [
            one for one in ids if listed is Listed.USERS or (guild and (guild.get_channel(one) or guild.get_role(one)))
        ]
        how: dict[str, Any] = {
            "custom_id": self._id(Action.LIST, name, str(page)),
            "min_values": 0,
            "max_values": MAX_OPTIONS,
            "default_values": [discord.SelectDefaultValue(id=one, type=kind) for one in there],
            "placeholder": f"Pick {WORDS[listed]}s",
        }
        match listed:
            case Listed.ROLES:
                return discord.ui.RoleSelect(**how)
            case Listed.USERS:
                return discord.ui.UserSelect(**how)
            case Listed.CHANNELS:
                return discord.ui.ChannelSelect(channel_types=CHANNEL_TYPES, **how)

    def _line(self, name: str) -> str:
        held = holding_in_words(name, self._holds, to_manager=True, here=self._target.level)
        is_own = getattr(self._own.settings, name, None) is not None
        value, _, source = held.partition(" · ")
        return f"**{value}** · {source}" if is_own else held

    def _named(self, target: Target) -> str:
        """The place's level and name."""
        guild = self._interaction.guild
        place = guild.get_channel_or_thread(target.place_id) if guild else None
        if target.level is Level.GUILD or place is None:
            return target.level.in_words
        mark = "" if target.level is Level.CATEGORY else "#"
        return f"{target.level.in_words}, {mark}{place.name}"

    @property
    def _titled(self) -> str:
        return discord.utils.escape_markdown(self._named(self._target))

    def _id(self, *what: str) -> str:
        return f"{PREFIX}{int(self._target.level)}:{self._target.place_id}:{self._revision}:{':'.join(what)}"


def add_groups(embed: discord.Embed, lines: Mapping[str, str]) -> None:
    """Adds a field for each group of settings, with a line for each setting that has a value.

    lines: name of the setting -> its text.
    """
    groups: dict[str, list[str]] = {}
    for name in lines:
        groups.setdefault(ABOUT[name].group, []).append(name)
    for group, names in groups.items():
        shown = [f"{label(name)}: {lines[name]}" for name in names if lines[name] != NOT_SET]
        rest = ", ".join(label(name).lower() for name in names if lines[name] == NOT_SET)
        text = "\n".join([*shown, *([f"-# Not set: {rest}"] if rest else [])])
        embed.add_field(name=group, value=clipped(text, MAX_FIELD), inline=False)


def add_notes(embed: discord.Embed, edge: PlaceEdge, holds: InForce, unread: Iterable[str]) -> None:
    """Adds warnings, and what "default" means. unread: names of settings whose stored form cannot be read."""
    found = [edge.gone_model(holds)]
    if any(layer.is_paused for layer in holds.layers):
        found.append(PAUSED)
    if names := discord.utils.escape_markdown(clipped(", ".join(sorted(unread)), MAX_DESCRIPTION)):
        found.append(f"Set in a form that I cannot read, and kept until it is set again or reset: {names}.")
    for note in filter(None, found):
        embed.add_field(name="Mind", value=note, inline=False)
    embed.set_footer(text=DEFAULT_IS)


def _view() -> discord.ui.View:
    """An empty view that is stopped, so that discord.py does not keep it: clicks are read from the raw interaction."""
    view = discord.ui.View(timeout=None)
    view.stop()
    return view


def _menu(custom_id: str, options: list[discord.SelectOption], placeholder: str) -> discord.ui.Select[Any]:
    return discord.ui.Select(custom_id=custom_id, options=options, placeholder=placeholder)


def _button(
    custom_id: str,
    text: str,
    style: discord.ButtonStyle = discord.ButtonStyle.secondary,
    *,
    disabled: bool = False,
) -> discord.ui.Button[Any]:
    return discord.ui.Button(custom_id=custom_id, label=text, style=style, disabled=disabled)
