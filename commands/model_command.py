"""/model: shows which model answers in a channel, and chooses another."""

from __future__ import annotations

import discord
from discord import app_commands

from commands.answers import Choices, or_none
from commands.place_edge import PlaceEdge
from commands.settings_commands import PLACES, WHERE
from commands.typed_settings import suggest
from discord_io.interactions import whisper
from place_settings.fields import Level, SettingRefusedError
from place_settings.inheritance import source_in_words

DEFAULT = "default"
ANOTHER = "/model with a name chooses another."
NO_OTHER = "There is no other to choose: my owner can add more in MODELS."
NOT_IN_A_TURN = "An answer that is already being written is finished by the model that began it."


def add_model(tree: app_commands.CommandTree, edge: PlaceEdge) -> None:
    @tree.command(description="Which model answers here? Those who manage this place can choose another.")
    @app_commands.guild_only()
    @app_commands.default_permissions(manage_channels=True)
    @app_commands.describe(name="The model that should answer; default: the inherited one", where=WHERE)
    @app_commands.choices(where=PLACES)
    async def model(interaction: discord.Interaction, name: str | None = None, where: int = int(Level.CHANNEL)) -> None:
        level = Level(where)
        target = edge.target(interaction, level)
        if refusal := edge.refusal(interaction, level):
            said = refusal
        elif target is None:
            return
        elif name is None:
            said = answering(edge, interaction)
        else:
            wanted = name.strip()
            try:
                changed = await edge.change(interaction, target, "model", None if wanted.lower() == DEFAULT else wanted)
                said = f"{changed} {NOT_IN_A_TURN}"
            except SettingRefusedError as error:
                said = str(error)
        await whisper(interaction, said)

    @model.autocomplete("name")
    @or_none
    async def names(interaction: discord.Interaction, typed: str) -> Choices:
        may = interaction.permissions
        return suggest([*edge.models.names, DEFAULT], typed) if may.manage_guild or may.manage_channels else []


def answering(edge: PlaceEdge, interaction: discord.Interaction) -> str:
    """Which model answers here, and why."""
    holds = edge.holds(interaction)
    if note := edge.gone_model(holds):
        return f"{note} The choice is {source_in_words(holds.sources['model'])}."
    name = holds.settings.model or edge.models.names[0]
    how = ANOTHER if len(edge.models.names) > 1 else NO_OTHER
    return f"The model here is {name} ({source_in_words(holds.sources['model'])}). {how}"
