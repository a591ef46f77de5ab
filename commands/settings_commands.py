"""/parley: the settings of a server, a category, a channel or a thread, and what is in force."""

from __future__ import annotations

import discord
from discord import app_commands

from commands.answers import Choices, or_none
from commands.place_edge import PlaceEdge, first_level
from commands.setting_words import holding_in_words
from commands.settings_card import add_groups, add_notes
from commands.settings_clicks import SettingsClicks
from commands.typed_settings import find_setting, read_value, suggest_settings, suggest_values
from discord_io.interactions import respond, whisper
from place_settings.fields import ABOUT, Level, SettingRefusedError

EVERYTHING = "everything"
PLACES = [app_commands.Choice(name=level.in_words, value=int(level)) for level in Level if level is not Level.OWNER]
WHERE = "The place it is set for; default: this channel"


class SettingsCommands(app_commands.Group):
    """The /parley commands. Discord can only hide a whole group, and `show` is for everybody: the others check."""

    def __init__(self, clicks: SettingsClicks) -> None:
        super().__init__(
            name="parley",
            description="What I do here: the settings of this server, this channel or this thread.",
            guild_only=True,
            allowed_contexts=app_commands.AppCommandContext(guild=True),
        )
        self._edge = clicks.edge
        self._clicks = clicks

    @app_commands.command(description="What applies here, and where does each setting come from?")
    async def show(self, interaction: discord.Interaction) -> None:
        nobody = discord.AllowedMentions.none()
        card = holding_card(self._edge, interaction)
        await respond(
            interaction, interaction.response.send_message(embed=card, ephemeral=True, allowed_mentions=nobody)
        )

    @app_commands.command(name="set", description="Change one setting by typing it. For those who manage this place.")
    @app_commands.describe(
        setting="The setting to change",
        value="A choice, a text, or a list of mentions; + or - before a list adds to it or removes from it",
        where=WHERE,
    )
    @app_commands.choices(where=PLACES)
    async def set_(self, interaction: discord.Interaction, setting: str, value: str, where: int | None = None) -> None:
        await self._change(interaction, setting, value, where)

    @app_commands.command(
        description="Set where I answer, whom, how, and with which model. For those who manage this place."
    )
    @app_commands.describe(where=WHERE)
    @app_commands.choices(where=PLACES)
    async def settings(self, interaction: discord.Interaction, where: int = int(Level.CHANNEL)) -> None:
        level = Level(where)
        target = self._edge.target(interaction, level)
        if refusal := self._edge.refusal(interaction, level):
            await whisper(interaction, refusal)
        elif target:
            await self._clicks.open(interaction, target)

    @app_commands.command(
        description="Reset one setting, or all, to what is inherited. For those who manage this place."
    )
    @app_commands.describe(setting="The setting to reset, or everything", where=WHERE)
    @app_commands.choices(where=PLACES)
    async def reset(self, interaction: discord.Interaction, setting: str, where: int | None = None) -> None:
        await self._change(interaction, setting, None, where)

    async def _change(
        self, interaction: discord.Interaction, setting: str, value: str | None, where: int | None
    ) -> None:
        """Changes a setting, and says so. value: None: inherit."""
        is_all = value is None and setting.strip().lower() == EVERYTHING
        try:
            name = EVERYTHING if is_all else find_setting(setting)
            level = Level(where) if where else Level.CHANNEL if is_all else first_level(name)
            target = self._edge.target(interaction, level)
            refusal = self._edge.refusal(interaction, level)
            if refusal or target is None:
                said = refusal or ""
            elif is_all:
                said = await self._edge.reset(interaction, target)
            else:
                own = getattr(self._edge.own(interaction, target).settings, name)
                read = None if value is None else read_value(name, value, own, interaction.guild)
                said = await self._edge.change(interaction, target, name, read)
        except SettingRefusedError as error:
            said = str(error)
        await whisper(interaction, said)

    @set_.autocomplete("setting")
    @or_none
    async def _settings_to_set(self, _interaction: discord.Interaction, typed: str) -> Choices:
        return suggest_settings(typed)

    @reset.autocomplete("setting")
    @or_none
    async def _settings_to_reset(self, _interaction: discord.Interaction, typed: str) -> Choices:
        return suggest_settings(typed, EVERYTHING)

    @set_.autocomplete("value")
    @or_none
    async def _values(self, interaction: discord.Interaction, typed: str) -> Choices:
        if not self._edge.targets(interaction):
            return []
        return suggest_values(self._edge, interaction, str(interaction.namespace.setting or ""), typed)


def holding_card(edge: PlaceEdge, interaction: discord.Interaction) -> discord.Embed:
    """The card of /parley show: what is in force here, and its source. Those who manage the place see all of it."""
    holds, user = edge.holds(interaction), interaction.user
    is_manager = bool(edge.targets(interaction))
    name = getattr(interaction.channel, "name", None) or "this channel"
    embed = discord.Embed(
        title=f"What applies in #{discord.utils.escape_markdown(name)}", colour=discord.Colour.blurple()
    )
    roles = {role.id for role in user.roles} if isinstance(user, discord.Member) else set()
    if holds.silenced:
        embed.description = f"I answer nobody here: {holds.silenced.in_words}."
    elif refused := holds.refuses(user.id, roles):
        embed.description = f"I do not answer you here: {refused.in_words}."
    add_groups(embed, {name: holding_in_words(name, holds, to_manager=is_manager) for name in ABOUT})
    add_notes(embed, edge, holds, {name for layer in holds.layers for name in layer.unread} if is_manager else ())
    return embed
