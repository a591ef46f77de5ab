"""The lower half of the wiring: storage, and the state of channels and people."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import discord

from activity import Activity, Observer
from clock import Clock
from config import Settings
from conversation import ConversationManager
from counts import Counts, Faults
from decider import RecentDecisions
from discord_io.discord_wire import Wires
from discord_io.incoming_messages import MessageReader
from discord_io.other_process import OtherProcess
from discord_io.places import Places, categories_of, guild_of
from discord_io.prompt_cards import PromptCards
from discord_io.readers import Readers
from followup.decision_log import DecisionLog
from followup.learning import Learning
from health import Health
from miniapps.router import MiniAppRouter
from offers.offer_channels import OfferChannels
from owner import installed, offer_limits, owners_layer, owners_limits, where
from persistence.lifecycle import PLACES
from persistence.open_store import find_seal, open_stores
from persistence.people import People
from persistence.snapshots import Snapshots
from place_settings.guild_settings import GuildSettings
from shards import Shards
from state.awaiting import ON_ITS_WAY, ConversationStateManager
from state.budget import Budget
from state.consent import Consent, Forgotten
from state.direct_messages import DirectMessages
from state.ledger import Ledger
from state.optout import OptOut
from turns.gate import Gate
from turns.pending_turns import PendingTurns

if TYPE_CHECKING:
    from cluster.accounts import Accounts
    from cluster.connection import Cluster

CONVERSATION, PROMPTS, MINIAPPS, UNFINISHED = "conversation", "prompts", "miniapps", "unfinished"
OFFERS, DIRECT, NOTICES = "initiative", "direct_messages", "notices"


class StateParts:
    """The parts that the others are built on. Arguments: as of Parts."""

    def __init__(
        self,
        settings: Settings,
        client: discord.Client,
        health: Health,
        observer: Observer | None,
        clock: Clock,
        shards: Shards,
        cluster: Cluster | None,
    ) -> None:
        self.shards, self.cluster = shards, cluster
        self._settings = settings
        self._client = client
        self._health = health
        self._clock = clock
        self._build_storage()
        self._build_state(observer)

    def _build_storage(self) -> None:
        """Storage, and people's consent to it."""
        self.forgotten, self.opted_out = Forgotten(), OptOut()
        self.consent = Consent(self.opted_out, self.forgotten)
        session_size = self._settings.max_messages_per_session
        self.activity = Activity(self._clock)
        opened = open_stores(*where(self._settings), self.cluster.leases if self.cluster else None)
        look_up_guild = partial(guild_of, self._client)
        self.snapshots = Snapshots(
            opened, self.consent, session_size, self.activity, shards=self.shards, look_up_guild=look_up_guild
        )
        stores = self.shards.has if self.cluster else lambda _user_id: True
        self.people = People(self.opted_out, self.forgotten, self.snapshots, stores, self._clock)
        seal = find_seal(*where(self._settings))
        self.decision_log = DecisionLog(self._settings.state_dir, seal, is_on=self._settings.decision_log != "off")

    def _build_state(self, observer: Observer | None) -> None:
        """The state of channels and people, which is stored as it changes."""
        settings, snapshots = self._settings, self.snapshots
        self.gate = Gate(self.shards, self.cluster.leases if self.cluster else None, self._health)
        self.counts, self.faults = Counts(self._clock), Faults(self._clock)
        self.activity.watch(self.counts)
        self.activity.watch(self.faults)
        if observer:
            self.activity.watch(observer)
        self.decisions = RecentDecisions(listener=self.activity)
        self.learning = Learning(self.decision_log.add, keeps_content=settings.decision_log == "content")
        self.guild_settings = GuildSettings(
            owners_layer(settings), partial(snapshots.touch, PLACES), partial(categories_of, self._client)
        )
        self.places = Places(self._client, self.guild_settings, forum_tags=settings.forum_tags, clock=self._clock)
        ledger = Ledger(self.opted_out)
        self.accounts: Accounts | None = None
        if self.cluster is not None:
            from cluster.accounts import Accounts  # noqa: PLC0415 - a process alone needs no Redis

            self.accounts = Accounts(self.cluster, ledger)
        self.limits = owners_limits(settings, self.guild_settings, ledger, self.accounts)
        self.budget = Budget(self.limits, self._clock, snapshots, self.activity, self.accounts)
        self.direct = DirectMessages(settings.direct_messages, settings.users, partial(snapshots.touch, DIRECT))
        self.pending = PendingTurns(on_change=partial(snapshots.touch, UNFINISHED))
        # Stored together with the answer, so that a repeated turn does not do the same again.
        self.miniapps = MiniAppRouter(installed(settings), on_change=lambda guid: snapshots.mark(MINIAPPS, int(guid)))
        self.states = ConversationStateManager(
            awaiting_ttl_seconds=settings.awaiting_ttl_seconds,
            soft_context_ttl_seconds=settings.soft_context_ttl_seconds,
            cache_ttl_seconds=settings.cache_ttl_seconds,
            clock=self._clock,
            wants=lambda text, soft_context: self.miniapps.pick(text, soft_context) is not None,
            is_behind=lambda guid: self._is_behind(int(guid)),
            on_change=lambda guid: snapshots.touch(PROMPTS, int(guid)),
        )
        limits = offer_limits(settings)
        self.offer_channels = OfferChannels(
            limits, clock=self._clock, on_change=partial(snapshots.touch, OFFERS), settled=snapshots.settled
        )
        self.conversations = ConversationManager(
            settings.conversation_timeout_seconds,
            clock=self._clock,
            agent_state_seconds=settings.agent_state_seconds,
            keeps_open=self._keeps_open,
            is_behind=self._is_behind,
            on_change=partial(snapshots.touch, CONVERSATION),
        )
        self.other_process = OtherProcess(self._client, self.shards, self._clock)
        self.wires = Wires(self._client, self.learning, self.other_process)
        self.readers = Readers(self._client)
        self.reader = MessageReader(
            self._client, self.places, self.consent, name_calls=settings.name_calls, clock=self._clock
        )
        self.prompts = PromptCards(self.states, self.wires, clock=self._clock, said=self.miniapps.said)

    def _is_behind(self, channel_id: int) -> bool:
        return self.gate.is_behind(channel_id, self.snapshots.guild_of(channel_id))

    def _keeps_open(self, channel_id: int, at: datetime) -> bool:
        """Whether a conversation outlives its timeout at that time, since a prompt or an offer is open there."""
        if self.states.is_awaiting(channel_id, at - ON_ITS_WAY):
            return True
        channel = self.offer_channels.get(channel_id)
        return channel is not None and channel.offer is not None and not channel.is_overdue(at)
