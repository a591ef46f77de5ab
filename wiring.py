"""Builds the parts of the bot bottom up: storage and state, agents, offers, deciding, turns, intake, persistence."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import discord
from discord import app_commands

from activity import Observer
from agents.general import GeneralAgent
from agents.models import DEMO
from clock import Clock
from commands import add_commands
from commands.answers import break_off
from commands.ask import Asking
from commands.clicks import ClickEdge, Clicks
from commands.items import answer_clicks
from commands.offer_clicks import OfferClicks
from commands.place_edge import PlaceEdge
from commands.settings_card import PREFIX as SETTINGS
from commands.settings_clicks import SettingsClicks
from commands.status import Status
from commands.thread_clicks import ThreadClicks
from commands.usage import Usage
from config import Settings
from decider import FollowupTier, ResponseDecider, load_followup
from discord_io.actions import DiscordActions
from discord_io.backlog import Backlog
from discord_io.channel_history import HISTORY_AGE, ChannelHistory
from discord_io.inbox import Inbox
from discord_io.incoming_messages import why_mute
from discord_io.notices import Notices
from discord_io.replay import Replays
from discord_io.seen_places import SeenPlaces
from discord_io.view import OFFER_PREFIX as OFFER
from discord_io.view import PREFIX as PROMPT
from discord_io.view import THREAD_PREFIX as THREAD
from health import Health
from offers.open_offers import OpenOffers
from offers.proactive_offers import NOT_READY, OVER_BUDGET, ProactiveOffers
from offers.triggers import TRIGGERS
from owner import practices, public_address
from owners_agents import OwnersAgents
from persistence.catchup import AT_ONCE, CatchUp
from persistence.catchup_by_shard import CatchUpByShard
from persistence.changes import Changes
from persistence.counts import register_counts
from persistence.holders import (
    ConversationHolder,
    DecisionHolder,
    Holders,
    MessageHolder,
    MiniAppHolder,
    OfferHolder,
    ProcessHolder,
    PromptHolder,
    SettingsHolder,
)
from persistence.kept_sizes import KeptSizes
from persistence.lifecycle import ALIVE, PLACES, Lifecycle
from persistence.privacy import Privacy
from persistence.spending import register_spending
from persistence.turn_holder import PrivateHolder, TurnHolder
from persistence.unfinished_questions import UnfinishedQuestions
from persistence.watch import Watch
from shards import Shards
from state.spending import Payer
from turns.admission import Admission
from turns.answering import Answering
from turns.bursts import Bursts
from turns.compaction import Compaction
from turns.meanings import Meanings
from turns.message_handler import MessageHandler
from turns.offer_turns import OfferReplies, record_offer
from turns.preparing import Preparing
from turns.private_answers import PrivateAnswers
from turns.records import Records
from turns.turn_making import TurnMaker
from turns.turn_queue import Intake, TurnQueue
from turns.turn_slots import TurnSlots
from web.console.feed import Feed
from web.shown import Shown
from wiring_state import CONVERSATION, DIRECT, MINIAPPS, NOTICES, OFFERS, PROMPTS, UNFINISHED, StateParts

if TYPE_CHECKING:
    from cluster.connection import Cluster
    from persistence.cluster_privacy import ClusterPrivacy


class Parts(StateParts):
    """All parts of a bot. client: not connected yet. health: of its connection.

    observer: told of what happens. followup: the decider's second tier; None: by the settings. shards: those of
    this process. cluster: the other processes, which have the other shards and share the store; None: there are none.
    """

    def __init__(
        self,
        settings: Settings,
        client: discord.Client,
        *,
        health: Health,
        observer: Observer | None,
        followup: FollowupTier | None,
        clock: Clock,
        shards: Shards,
        cluster: Cluster | None = None,
    ) -> None:
        super().__init__(settings, client, health, observer, clock, shards, cluster)
        self._build_agents()
        self._build_offers()
        self._build_deciding(followup)
        self._build_turns()
        self._build_way_in()
        self._build_keeping()
        self._build_commands()
        self.shown = Shown(
            activity=self.activity,
            counts=self.counts,
            faults=self.faults,
            health=health,
            decisions=self.decisions,
            conversations=self.conversations,
            states=self.states,
            turns=self.turns,
            slots=self.slots,
            limits=self.limits,
            guild_settings=self.guild_settings,
            opted_out=self.opted_out,
            servers=SeenPlaces(client, self.reader),
            shards=shards,
            cluster=cluster,
            feed=self.feed,
            sizes=KeptSizes(
                settings.state_dir,
                self.snapshots,
                in_redis=settings.redis_url is not None,
                has_own_key=settings.state_key is not None,
                retention_days=settings.retention_days,
            ),
            noted=self.snapshots.noted,
            clock=clock,
            started_at=clock(),
            model=settings.model,
            practices=practices(settings),
        )

    def _build_agents(self) -> None:
        """The agents."""
        actions, search = DiscordActions(self._client, self.consent, self.snapshots, self._clock), self.snapshots.search
        self.agents = OwnersAgents(self._settings, self.budget, self.wires, actions, search, self.activity)
        self.models, self.mcp, self.connections = self.agents.models, self.agents.mcp, self.agents.connections

    def _build_offers(self) -> None:
        """Proactive offers."""
        self.offers = OpenOffers(
            self.offer_channels,
            self.wires,
            stands=partial(record_offer, self.conversations, self.snapshots, self.decisions, self.wires, self.miniapps),
            site=self._settings.site,
            is_behind=self._is_behind,
        )
        self.proactive_offers = ProactiveOffers(
            self.offer_channels,
            self.offers,
            self.places,
            triggers=TRIGGERS,
            forbids=self._why_mute,
            miniapps=self.miniapps,
            newcomers=self.readers.newcomers,
            answerable=self.agents.side.offer_judge,
        )

    def _build_deciding(self, followup: FollowupTier | None) -> None:
        """Whether a message is answered."""
        settings = self._settings
        self.decider = ResponseDecider(
            followup=followup or load_followup(settings.followup_eagerness, settings.followup_window_seconds),
            judge=self.agents.side.judge,
            window_seconds=settings.followup_window_seconds,
            declines=settings.model != DEMO,
        )
        self.bursts = Bursts(
            settings.burst_seconds,
            conversations=self.conversations,
            decider=self.decider,
            discord=self.wires,
            is_forgotten=self.consent.is_forgotten,
        )

    def _build_turns(self) -> None:
        """Answers, and the queue of turns."""
        self.records = Records(
            self.conversations,
            self.snapshots,
            self.decisions,
            self.learning,
            self.limits,
            self.consent,
            self.proactive_offers,
        )
        reread = timedelta(days=self._settings.retention_days)
        self.history = ChannelHistory(self._client, self.reader, self.consent, self.snapshots, reread)
        agents, side = self.agents, self.agents.side
        compaction = Compaction(self.conversations, self.records, side.summarizer, self._settings.session_tokens)
        preparing = Preparing(
            self.history, self.states, self.budget, side.rewriter, compaction, agents.files, self.models
        )
        slots = self.slots = TurnSlots(self._settings.turns_at_once)
        answering = Answering(
            agents.team,
            self.miniapps,
            self.states,
            preparing,
            self.records,
            slots,
            self.readers,
            waiting=lambda channel_id: self.pending.waiting_in(channel_id) | self.bursts.undecided(channel_id),
            clock=self._clock,
        )
        self.meanings = Meanings(
            conversations=self.conversations,
            states=self.states,
            prompts=self.prompts,
            miniapps=self.miniapps,
            offers=self.offers,
            discord=self.wires,
        )
        maker = TurnMaker(
            self.conversations,
            answering,
            self.prompts,
            self.budget,
            self.meanings,
            self.pending,
            self.records,
            self.activity,
        )
        self.turns = TurnQueue(
            conversations=self.conversations,
            maker=maker,
            meanings=self.meanings,
            discord=self.wires,
            pending=self.pending,
            records=self.records,
            activity=self.activity,
            picks=agents.team.has_several,
        )

    def _build_way_in(self) -> None:
        """Handling of incoming messages, up to the queue."""
        settings = self._settings
        intake = Intake(
            meanings=self.meanings, states=self.states, prompts=self.prompts, turns=self.turns, discord=self.wires
        )
        self.admission = Admission(self.limits, self.gate, self.turns, self.direct, self.guild_settings, self.slots)
        asked, models = GeneralAgent(self.models, instructions=settings.instructions, asks=False), self.models
        self.private_answers = PrivateAnswers(
            asked, models, self.agents.files, self.admission, self.budget, self.slots, self.activity
        )
        self.handler = MessageHandler(
            consent=self.consent,
            records=self.records,
            bursts=self.bursts,
            meanings=self.meanings,
            intake=intake,
            admission=self.admission,
            turns=self.turns,
            offers=OfferReplies(self.proactive_offers, self.offers, intake, self.decisions),
        )
        self.inbox = Inbox(
            self.reader,
            self.places,
            self.conversations,
            self.proactive_offers,
            self.records,
            self.handler,
            self.history,
        )

    def _build_keeping(self) -> None:
        """The holders of data about channels and people; edits, privacy, catch-up and storage for all of them."""
        settings, snapshots = self._settings, self.snapshots
        self.holders = holders = Holders(snapshots, self.conversations, self.wires)
        conversations = ConversationHolder(self.conversations, self.pending, snapshots)
        self.privacy = Privacy(
            holders=holders,
            snapshots=snapshots,
            conversations=self.conversations,
            decision_log=self.decision_log,
            people=self.people,
            reread=timedelta(days=settings.retention_days),
            catches_up=max(HISTORY_AGE, timedelta(seconds=settings.catch_up_seconds)),
            clock=self._clock,
        )
        self.requests = self._requests_of_all(self.cluster) if self.cluster else None
        backlog = Backlog(self._client, self.places, self.reader, self.consent, self.direct, self.shards, self.history)
        self.changes = Changes(
            backlog,
            self.conversations,
            self.pending,
            self.offer_channels,
            snapshots,
            holders,
            self.privacy,
        )
        self.replays = Replays(self.cluster.sessions, self._clock) if self.cluster else None
        slots = asyncio.Semaphore(AT_ONCE)
        unfinished = UnfinishedQuestions(
            slots,
            backlog=backlog,
            conversations=self.conversations,
            turns=self.turns,
            snapshots=snapshots,
            changes=self.changes,
            clock=self._clock,
        )
        catch_up = partial(
            CatchUp,
            slots=slots,
            seconds=settings.catch_up_seconds,
            burst_seconds=settings.burst_seconds,
            backlog=backlog,
            conversations=self.conversations,
            unfinished=unfinished,
            snapshots=snapshots,
            gate=self.gate,
            changes=self.changes,
            inbox=self.inbox,
            clock=self._clock,
            replays=self.replays,
        )
        self.catch_up = CatchUpByShard(self.shards, catch_up)
        holders.register(DecisionHolder(self.decisions, self.learning, self.records, self._clock))
        self.feed = Feed()
        self.activity.watch(self.feed)
        holders.register(self.feed)
        holders.register(MessageHolder(self.inbox))
        holders.register(self.catch_up, of_shards=ALIVE)
        holders.register(TurnHolder(self.turns, self.pending, self.conversations), of_channels=UNFINISHED)
        holders.register(PrivateHolder(self.private_answers))
        holders.register(PromptHolder(self.prompts, self.states, self.conversations), of_channels=PROMPTS)
        holders.register(MiniAppHolder(self.miniapps, snapshots), of_channels=MINIAPPS)
        offers = OfferHolder(self.proactive_offers, self.offer_channels, snapshots, self.guild_settings)
        holders.register(offers, of_channels=OFFERS)
        holders.register(SettingsHolder(self.guild_settings), of_guilds=PLACES, if_damaged="damaged")
        holders.register(conversations, of_channels=CONVERSATION)
        register_spending(holders, self.limits, snapshots, self.accounts)
        self.watch = Watch(self.activity, self._health, snapshots)
        self.activity.watch(self.watch)
        self.notices = None
        if channel_id := settings.notice_channel:
            touch = partial(snapshots.touch, NOTICES)
            self.notices = Notices(channel_id, self.wires, self.limits, self.activity, touch, self.cluster)
            self.activity.watch(self.notices)
            holders.register(ProcessHolder(self.notices), of_process=NOTICES)
        self.stored_counts = register_counts(holders, self.counts, self.faults, snapshots, self.shards, self._clock)
        holders.register(ProcessHolder(self.direct), of_process=DIRECT)
        self.lifecycle = Lifecycle(
            snapshots=snapshots,
            conversations=conversations,
            catch_up=self.catch_up,
            people=self.people,
            requests=self.requests,
            privacy=self.privacy,
            health=self._health,
            gate=self.gate,
            shards=self.shards,
            retention=timedelta(days=settings.retention_days),
            clock=self._clock,
        )

    def _requests_of_all(self, cluster: Cluster) -> ClusterPrivacy:
        """People's requests to all processes, by Redis, whose client a single process never imports."""
        from cluster.events import Events  # noqa: PLC0415
        from persistence.cluster_privacy import ClusterPrivacy  # noqa: PLC0415

        return ClusterPrivacy(self.privacy, self.people, self.snapshots, self.shards, Events(cluster))

    def _build_commands(self) -> None:
        """Slash commands and clicks."""
        edge = ClickEdge(self.reader, self.conversations, self.admission, self.handler, self.snapshots)
        self.clicks = Clicks(self.states, self.prompts, edge)
        offer_clicks = OfferClicks(self.proactive_offers, self.offers, edge)
        moves = ThreadClicks(self.conversations, self.turns, self.bursts, self.states, edge)
        self.settings_clicks = SettingsClicks(PlaceEdge(self.places, self.models, self.snapshots))
        clicks = {PROMPT: self.clicks.answer, OFFER: offer_clicks.answer, THREAD: moves.answer}
        clicks[SETTINGS] = self.settings_clicks.answer
        self.break_off = partial(break_off, self.activity)
        answer_clicks(self._client, self.gate, clicks, self.break_off)
        place_edge = self.settings_clicks.edge
        status = Status(self.counts, self.faults, self.limits, self._health, place_edge, self.shards, self._clock)
        self.tree = app_commands.CommandTree(self._client)
        self.tree.error(self.break_off)
        add_commands(
            self.tree,
            self.decisions,
            self.requests or self.privacy,
            Asking(self.reader, self.consent, self.history, self.private_answers),
            self.settings_clicks,
            offers=self.proactive_offers,
            usage=Usage(self.limits, self._clock),
            status=status,
            practices=practices(self._settings),
            public_address=public_address(self._settings),
            retention_days=self._settings.retention_days,
            site=self._settings.site,
        )

    async def sent_form(self, interaction: discord.Interaction) -> None:
        """Answers a submitted modal: each of these ignores modals that are not its own."""
        await self.clicks.answer(interaction)
        await self.settings_clicks.answer(interaction)

    # Called by the parts above

    def sweep(self) -> None:
        """Drops expired state."""
        now = self._clock()
        self.conversations.sweep()
        for channel_id in self.conversations.let_go(self.is_waiting):
            self.snapshots.purge(channel_id)
        self.states.sweep()
        self.limits.sweep(now)
        self.learning.sweep(now)
        self.privacy.sweep()
        self.stored_counts.sweep()
        self.watch.look()

    def is_waiting(self, channel_id: int, ask_id: str) -> bool:
        """Whether a run of the agent's still waits there for an answer, or is about to resume."""
        open_ids = (prompt.ask.context.get("ask_id") for prompt in self.states.prompts(channel_id))
        return self.turns.is_busy(channel_id) or ask_id in open_ids

    def _why_mute(self, guild_id: int, channel_id: int) -> str | None:
        """Why the bot may not speak unasked in a channel, in one word; None where it may."""
        if self.gate.is_behind(channel_id, guild_id):
            return NOT_READY
        parent_id = getattr(self._client.get_channel(channel_id), "parent_id", None)  # of a thread
        payer = Payer(guild_id, channel_id=parent_id or channel_id, thread_id=channel_id if parent_id else 0)
        if not self.budget.may_judge(payer):
            return OVER_BUDGET  # the rest of the budget is for mentions
        return why_mute(self._client, self.places, channel_id)
