"""Clicks on the button that moves a longer conversation into a thread."""

from __future__ import annotations

import discord
import structlog

from commands.clicks import ClickEdge
from conversation import ChannelConversation, ConversationManager
from discord_io.channel_history import FAILURES
from discord_io.interactions import settle, whisper
from discord_io.split import clipped
from discord_io.who_may_read import has_rules, is_read_by_all_of
from state.awaiting import ConversationStateManager
from turns.bursts import Bursts
from turns.turn_queue import TurnQueue
from understanding.wording import MENTION

log = structlog.get_logger()

TOO_LATE = "That conversation is over."
NOT_YOURS = "Only those who take part in the conversation can move it."
BUSY = "I am writing an answer: please click again once it is done."
ASKED = "I have asked something here: please answer that first, and click again then."
SWITCHED_OFF = "Going on in threads has been switched off here since then."
REFUSED = "Discord did not let me open a thread, so we go on here."
MAX_TITLE = 100  # Discord
UNTITLED = "Conversation"


class ThreadClicks:
    """Moves a conversation into a new thread, started from the message with the button, whose id it gets."""

    def __init__(
        self,
        conversations: ConversationManager,
        turns: TurnQueue,
        bursts: Bursts,
        states: ConversationStateManager,
        edge: ClickEdge,
    ) -> None:
        self._edge = edge
        self._conversations = conversations
        self._turns = turns
        self._bursts = bursts
        self._states = states

    async def answer(self, interaction: discord.Interaction) -> None:
        """Handles a click. Earlier messages are not repeated in the thread."""
        card, channel_id = interaction.message, interaction.channel_id or 0
        conversation = self._conversations.get(channel_id)
        if card is None or conversation is None or conversation.find(card.id) is None:
            await whisper(interaction, TOO_LATE)
            return
        if refusal := self._refusal(interaction, conversation):
            await whisper(interaction, refusal)
            return
        # At once, so that nothing is said in the channel meanwhile that the conversation would be gone on with for.
        is_for_all = has_rules(card.channel) and is_read_by_all_of(card.channel, card.channel)
        title = title_of(conversation) if is_for_all else UNTITLED  # whoever sees the channel reads it
        self._conversations.move(channel_id, card.id)
        await settle(interaction, card.content)
        try:
            thread = await card.create_thread(name=title)
        except FAILURES as error:
            log.warning("thread_not_opened", channel=channel_id, detail=str(error))
            if not (interaction.guild and await _stands(interaction.guild, card.id)):
                if self._conversations.get(channel_id) is None:  # no new conversation has begun there meanwhile
                    self._conversations.move(card.id, channel_id)
                await interaction.followup.send(REFUSED, ephemeral=True)
            return
        try:
            await thread.add_user(interaction.user)
        except FAILURES as error:  # they still find the thread below the message
            log.warning("thread_member_not_added", channel=channel_id, detail=str(error))

    def _refusal(self, interaction: discord.Interaction, conversation: ChannelConversation) -> str | None:
        """The reason the conversation cannot move now, as a sentence; None: it can."""
        channel_id = conversation.channel_id
        if interaction.user.id not in conversation.participants:
            return NOT_YOURS
        if refusal := self._edge.not_allowed(interaction):
            return refusal
        if self._edge.place(interaction).held.settings.threads != "open":
            return SWITCHED_OFF
        if self._turns.is_busy(channel_id) or self._bursts.undecided(channel_id):
            return BUSY
        # The pending question's turn waits for the answer in this channel.
        return ASKED if self._states.is_awaiting(channel_id) else None


async def _stands(guild: discord.Guild, thread_id: int) -> bool:
    """Whether the thread exists although creating it failed: the response was lost, or somebody else created it."""
    try:
        return bool(guild.get_thread(thread_id) or await guild.fetch_channel(thread_id))
    except FAILURES:
        return False


def title_of(conversation: ChannelConversation) -> str:
    """Title of the thread: the conversation's first question without mentions."""
    first = next((m for m in conversation.messages if m.is_persons and m.message_id >= conversation.since), None)
    words = " ".join(MENTION.sub("", first.content).split()) if first else ""
    return clipped(words, MAX_TITLE) or UNTITLED
