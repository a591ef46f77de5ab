"""Clicks on the settings card and its forms. Their whole state is in the custom_ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import discord

from commands.open_cards import OpenCard, OpenCards
from commands.place_edge import PlaceEdge, Target
from commands.setting_words import INHERIT, label
from commands.settings_card import FIELD, PREFIX, Action, Card, CardDrawer
from discord_io.interactions import respond, whisper
from discord_io.split import MAX_LENGTH, clipped
from place_settings.fields import ABOUT, Level, SettingRefusedError
from place_settings.guild_settings import Changed

UNKNOWN = "I no longer know that card: open a new one with /parley settings."

Page = Callable[[CardDrawer], Card]


@dataclass(frozen=True, slots=True)
class SettingsClick:
    """A parsed click on a card. seen: the revision that the card shows; rest: name of the setting, then the page."""

    target: Target
    seen: int
    action: str
    rest: Sequence[str]

    @property
    def name(self) -> str:
        """Name of the setting. Raises LookupError if there is no such setting at this level."""
        name = self.rest[0]
        if name not in ABOUT or self.target.level not in ABOUT[name].levels:
            raise LookupError(name)
        return name

    @property
    def listed(self) -> str:
        """Name of the setting, which must be a list. Raises LookupError."""
        if not ABOUT[self.name].listed:
            raise LookupError(self.name)
        return self.name


class SettingsClicks:
    """Handles the clicks. Users who may not change these settings, or may no longer, are told so at any click."""

    def __init__(self, edge: PlaceEdge) -> None:
        self.edge = edge
        self._cards = OpenCards()
        edge.settings.listener = self._cards.changed

    async def open(self, interaction: discord.Interaction, target: Target) -> None:
        """Responds to a command with the target's card."""
        embed, view = self._drawer(interaction, target).overview()
        nobody = discord.AllowedMentions.none()

        async def show() -> None:
            sent = await interaction.response.send_message(
                embed=embed, view=view, ephemeral=True, allowed_mentions=nobody
            )
            self._opened(sent.message_id or 0, interaction, target, CardDrawer.overview)

        await respond(interaction, show())

    async def answer(self, interaction: discord.Interaction) -> None:
        """Handles a click or a submitted form. Other interactions are ignored."""
        data: Mapping[str, Any] = interaction.data or {}
        if not str(data.get("custom_id")).startswith(PREFIX):
            return
        click = read(data)
        if click is None:
            await whisper(interaction, UNKNOWN)
        elif refusal := self.edge.refusal(interaction, click.target.level, click.target):
            await whisper(interaction, refusal)
        else:
            try:
                await self._carry_out(interaction, click, data)
            except SettingRefusedError as error:
                written = data["components"][0]["component"].get("value") if "components" in data else None
                await whisper(
                    interaction, clipped(f"{error}\nYou wrote:\n{written}" if written else str(error), MAX_LENGTH)
                )
            except (LookupError, TypeError, ValueError):
                await whisper(interaction, UNKNOWN)

    async def _carry_out(self, interaction: discord.Interaction, click: SettingsClick, data: Mapping[str, Any]) -> None:
        if click.action == Action.PICK:
            name = replace(click, rest=data["values"]).name
            if ABOUT[name].listed:
                await self._show(interaction, click.target, _list(name, 0))
            else:
                form = self._drawer(interaction, click.target).form(name)
                await respond(interaction, interaction.response.send_modal(form))
        elif click.action == Action.PLACE:
            level = Level(int(data["values"][0]))
            target = self.edge.target(interaction, level)
            if refusal := self.edge.refusal(interaction, level):
                await whisper(interaction, refusal)
            elif target:
                await self._show(interaction, target, CardDrawer.overview)
        else:
            page, said = await self._outcome(interaction, click, data)
            await self._show(interaction, click.target, page, said)

    async def _outcome(
        self, interaction: discord.Interaction, click: SettingsClick, data: Mapping[str, Any]
    ) -> tuple[Page, str]:
        """Does what was clicked. Returns the page to show and the message above it. Raises SettingRefusedError."""
        target, seen = click.target, click.seen
        match click.action:
            case Action.OVERVIEW:
                return CardDrawer.overview, ""
            case Action.PAGE:
                return _list(click.listed, int(click.rest[1])), ""
            case Action.RESET_ALL:
                return CardDrawer.sure, ""
            case Action.RESET_ALL_SURELY:
                return CardDrawer.overview, await self.edge.reset(interaction, target, seen)
            case Action.RESET:
                return _list(click.listed, 0), await self.edge.change(interaction, target, click.name, None, seen)
            case Action.SAVE:
                said = await self.edge.change(interaction, target, click.name, _sent(data), seen)
                return CardDrawer.overview, said
            case Action.LIST:
                own = getattr(self.edge.own(interaction, target).settings, click.listed) or frozenset()
                ids = (own - _shown(interaction, data)) | frozenset(map(int, data["values"]))
                said = await self.edge.change(interaction, target, click.name, ids, seen)
                return _list(click.name, int(click.rest[1])), said
            case _:
                raise LookupError(click.action)

    async def _show(self, interaction: discord.Interaction, target: Target, page: Page, said: str = "") -> None:
        embed, view = page(self._drawer(interaction, target))
        nobody = discord.AllowedMentions.none()
        shown = interaction.response.edit_message(content=said, embed=embed, view=view, allowed_mentions=nobody)
        if await respond(interaction, shown) and interaction.message:
            self._opened(interaction.message.id, interaction, target, page)

    def _opened(self, message_id: int, interaction: discord.Interaction, target: Target, page: Page) -> None:
        above = {self.edge.target(interaction, level) for level in Level if level <= target.level}

        async def show_anew(changed: Changed) -> None:
            if Target(*changed.node) not in above:
                return
            embed, view = page(self._drawer(interaction, target))
            labels = " and ".join(label(name) for name in changed.names if name in ABOUT) or "a setting"
            said = f"<@{changed.by}> changed {labels} for {changed.node.level.in_words} a moment ago."
            nobody = discord.AllowedMentions.none()
            await interaction.edit_original_response(content=said, embed=embed, view=view, allowed_mentions=nobody)

        self._cards.opened(message_id, OpenCard(interaction, show_anew))

    def _drawer(self, interaction: discord.Interaction, target: Target) -> CardDrawer:
        return CardDrawer(self.edge, interaction, target)


def read(data: Mapping[str, Any]) -> SettingsClick | None:
    """Parses the custom_id of a settings card. None: it is not valid."""
    try:
        level, place_id, seen, *what = str(data["custom_id"]).removeprefix(PREFIX).split(":")
        return SettingsClick(Target(Level(int(level)), int(place_id)), int(seen), what[0], what[1:])
    except (LookupError, ValueError):
        return None


def _list(name: str, page: int) -> Page:
    return lambda drawer: drawer.list_page(name, page)


def _sent(data: Mapping[str, Any]) -> str | None:
    """The value chosen or written in a form; None: inherit. Raises LookupError, TypeError."""
    field = data["components"][0]["component"]
    if field["custom_id"] != FIELD:
        raise LookupError(FIELD)
    [value] = field["values"] if "values" in field else [field.get("value")]
    return None if value in (None, INHERIT) else str(value)


def _shown(interaction: discord.Interaction, data: Mapping[str, Any]) -> frozenset[int]:
    """The ids that the clicked menu showed. The list's other ids are on other pages, and stay."""
    rows = interaction.message.components if interaction.message else []
    menus = (part for row in rows if isinstance(row, discord.ActionRow) for part in row.children)
    found = (m for m in menus if isinstance(m, discord.SelectMenu) and m.custom_id == data["custom_id"])
    # discord.py leaves the ids as text.
    return frozenset(int(value.id) for menu in found for value in menu.default_values)
