"""A bot as good tutorials write one, with discord.py and pydantic-ai: it answers mentions, and remembers its channel.

It is what Parley is measured beside, and imports nothing of it. From the environment: DISCORD_TOKEN, MODEL (of an
OpenAI-compatible server), OPENAI_BASE_URL, OPENAI_API_KEY; DISCORD_API_BASE and DISCORD_GATEWAY_URL for another server
than Discord.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import defaultdict

import discord
import yarl
from pydantic_ai import Agent, ModelMessage
from pydantic_ai.models.openai import OpenAIChatModel

MAX_CHARACTERS = 2_000
MAX_MESSAGES = 40  # of the history that the model is given, questions and answers together
APOLOGY = "Sorry, something went wrong. Please try again."


def split(text: str) -> list[str]:
    """Parts that Discord takes, cut at the last line or word that fits."""
    parts = []
    while len(text) > MAX_CHARACTERS:
        cut = max(text.rfind("\n", 0, MAX_CHARACTERS), text.rfind(" ", 0, MAX_CHARACTERS))
        cut = cut if cut > 0 else MAX_CHARACTERS
        parts.append(text[:cut])
        text = text[cut:].lstrip()
    return [*parts, text] if text else parts


class MinimalBot(discord.Client):
    """Answers whoever mentions it; the history of each channel is kept in memory."""

    def __init__(self, agent: Agent) -> None:
        intents = discord.Intents.default()
        intents.message_content = True
        super().__init__(intents=intents, allowed_mentions=discord.AllowedMentions.none())
        self._agent = agent
        self._histories: defaultdict[int, list[ModelMessage]] = defaultdict(list)
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def on_ready(self) -> None:
        logging.getLogger(__name__).info("Logged in as %s", self.user)

    async def on_message(self, message: discord.Message) -> None:
        if message.author.bot or self.user is None or self.user not in message.mentions:
            return
        question = f"{message.author.display_name}: {message.content.replace(self.user.mention, '').strip()}"
        channel_id = message.channel.id
        async with self._locks[channel_id], message.channel.typing():
            try:
                result = await self._agent.run(question, message_history=self._histories[channel_id])
                self._histories[channel_id] = result.all_messages()[-MAX_MESSAGES:]
                answer = result.output
            except Exception:
                logging.getLogger(__name__).exception("No answer")
                answer = APOLOGY
        for number, part in enumerate(split(answer)):
            await (message.reply(part) if number == 0 else message.channel.send(part))


def main() -> None:
    if api_base := os.environ.get("DISCORD_API_BASE"):
        discord.http.Route.BASE = api_base
        discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(os.environ["DISCORD_GATEWAY_URL"])
    model = OpenAIChatModel(os.environ["MODEL"])  # it reads OPENAI_BASE_URL and OPENAI_API_KEY itself
    agent = Agent(model, instructions="You are a helpful assistant in a Discord channel. Answer briefly.")
    MinimalBot(agent).run(os.environ["DISCORD_TOKEN"])


if __name__ == "__main__":
    main()
