"""The judge: a fast model that decides for whom an unclear message is meant, and whether the bot can help."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

import structlog
from pydantic import BaseModel, Field
from pydantic_ai import Agent
from pydantic_ai.models import Model

from agents.fast import Purse, ruled_by, shown
from agents.gateway import Bot
from agents.models import SETTINGS
from agents.rules import as_name, people_in, spot_of
from conversation import ChannelConversation, MessageRecord
from decider import JUDGE_DEADLINE_SECONDS, JudgeError, Verdict
from place import Place

log = structlog.get_logger()

MESSAGES_SHOWN = 12
ANYWHERE = "a Discord channel"

T = TypeVar("T")


class Ruling(BaseModel):
    """The ruling on the newest message."""

    # The evidence comes before the verdict, so that the model reasons before it decides.
    evidence: str = Field(description="What speaks for or against it, in at most ten words.")
    meant_for_bot: bool = Field(description="Whether the newest message is meant for the bot.")


class Ability(BaseModel):
    """Whether the bot can help with the question."""

    evidence: str = Field(description="What speaks for or against it, in at most ten words.")
    can_help: bool = Field(description="Whether the bot can be of real help.")


class _Service(Generic[T]):
    """Asks a model in one request."""

    form: type[T]
    instructions: str

    def __init__(self, model: Model, *, bot: Bot, purse: Purse) -> None:
        self._model = model
        self._bot = bot
        self._purse = purse

    @cached_property
    def _agent(self) -> Agent[None, T]:
        """Made once it is asked: that takes a while, and most bots are never in doubt."""
        return Agent(self._model, name="judge", output_type=self.form, retries=0, model_settings=SETTINGS)

    async def _ruling(
        self, messages: Sequence[MessageRecord], judged: MessageRecord, name: str, place: Place | None = None
    ) -> T:
        where = f'the {spot_of(place)} of the Discord server named "{as_name(place.guild)}"' if place else ANYWHERE
        people = people_in(place, as_name(judged.author)) if place else ""
        instructions = self.instructions.format(bot_name=self._bot.bot()[0], where=where, people=people)
        return await ruled_by(self._agent, shown(messages, judged, name, MESSAGES_SHOWN), instructions, self._purse)


class ModelJudge(_Service[Ruling]):
    """Decides for whom a message is meant, one message per channel at a time."""

    form = Ruling
    instructions = Path(__file__).with_name("judge.md").read_text(encoding="utf-8")

    def __init__(self, model: Model, *, bot: Bot, purse: Purse) -> None:
        super().__init__(model, bot=bot, purse=purse)
        self._judging: set[int] = set()  # channels

    async def __call__(
        self, message: MessageRecord, conversation: ChannelConversation, place: Place | None = None
    ) -> Verdict:
        """Rules on a message. place: where it was posted; None: not in a guild. Raises JudgeError."""
        channel_id = conversation.channel_id
        if channel_id in self._judging:
            raise JudgeError("It is busy with this channel.")
        self._judging.add(channel_id)
        try:
            ruling = await self._ruling(conversation.messages, message, "The newest message", place)
        finally:
            self._judging.discard(channel_id)
        return Verdict(ruling.meant_for_bot, " ".join(ruling.evidence.split())[:120])


class ModelAnswerable(_Service[Ability]):
    """Decides whether the bot can help with a question that was not meant for it; not if the model cannot be asked."""

    form = Ability
    instructions = Path(__file__).with_name("answerable.md").read_text(encoding="utf-8")

    async def __call__(self, message: MessageRecord, recent: Sequence[MessageRecord]) -> bool:
        """Whether the bot can help. recent: the channel's recent messages, with this one."""
        try:
            async with asyncio.timeout(JUDGE_DEADLINE_SECONDS):
                return (await self._ruling(recent, message, "The question")).can_help
        except (TimeoutError, JudgeError) as error:
            log.info("offer_not_judged", message=message.message_id, detail=str(error) or "it took too long")
            return False
