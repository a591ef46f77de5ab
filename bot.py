"""Entry point and Discord edge: events come in here, become our own values, and everything is wired together."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import discord
import structlog
import yarl
from discord import app_commands

from agents.coordinator import Candidate, Choice, Picker
from agents.gateway import Place
from agents.general import OWN_TOOLS, GeneralAgent
from agents.judge import ModelAnswerable, ModelJudge
from agents.mcp_file import McpError, McpServer, load_mcp
from agents.mcp_servers import McpTools
from agents.models import DEMO, UnusableModelError, build_model
from agents.rewriter import ModelRewriter
from agents.roster import AgentEntry, RosterError, load_roster
from agents.searching import search_tool
from agents.server_state import server_state
from agents.team import Team
from agents.tools import own_tools
from agents.ums import UMSAgent
from commands import Clicks, OfferClicks, Tours, add_commands, sync
from commands.offer_clicks import NEVER_HERE
from config import SettingError, Settings, load_settings, secrets_of
from conversation import ChannelConversation, ConversationManager, MessageRecord, Unwelcome
from decider import (
    AWAITED,
    EXPLICIT,
    JUDGE_DEADLINE_SECONDS,
    NOT_JUDGED,
    NOTHING,
    OFFER_ACCEPTED,
    OFFER_DECLINED,
    Decision,
    FollowupRules,
    FollowupTier,
    JudgeError,
    LoggedDecision,
    Reason,
    RecentDecisions,
    ResponseDecider,
    TrainedFollowup,
    Verdict,
    is_explicit_trigger,
)
from delivery.backlog import Backlog
from delivery.discord_wire import DiscordWire
from delivery.hands import DiscordHands
from delivery.history import read_before
from delivery.noted_wire import NotedWire
from delivery.prompts import Prompts
from delivery.reading import (
    SAID_BY_PEOPLE,
    clicked_record,
    is_persons,
    is_said_by_people,
    may_address,
    replied_to_id,
    to_record,
)
from delivery.tour import TourFacts
from followup.decision_log import DecisionLog
from followup.learning import Learning
from followup.model import Eagerness, ModelFileError, load_model
from followup.outcomes import Mark
from initiative.book import Book
from initiative.initiative import NOT_READY, OVER_BUDGET, Initiative
from initiative.offer import LABELS, Reply
from initiative.offer_turns import OfferTurns, note_of
from initiative.offers import Offers
from initiative.restraint import Restraint
from initiative.triggers import TRIGGERS
from memory.catchup import CatchUp
from memory.keeper import Keeper
from memory.layers import CONVERSATION, INITIATIVE, MINIAPPS, PROMPTS, UNFINISHED, ChannelLayers, as_json
from memory.life import ALIVE, Life
from memory.lock import InUseError, in_use
from memory.privacy import FORGOTTEN, OPTED_OUT, Forgotten, Privacy
from memory.stores import check_stores, mark_of, open_stores
from miniapps.base import FollowUp, MiniApp
from miniapps.router import MiniAppRouter, discover
from miniapps.trip_planner import TripPlanner
from miniapps.venues import NominatimVenues, SampleVenues
from service import INTENTS, RefusedError, playground, serve, shown_in
from state.agent_state import GENERAL
from state.awaiting import ConversationStateManager, ProcessingResult
from state.limits import Cap, Limits, Refusal
from state.message import Source
from state.optout import OptOut
from state.stopping import Stop, read_stop
from state.store import StoreError, WrongKeyError
from turns.answering import Answering
from turns.bursts import STOPPED, Bursts
from turns.intake import Intake
from turns.lanes import Turns
from turns.ledger import Ledger
from turns.turn import Question
from turns.wording import NOT_ALLOWED, RESTARTING
from web.health import Health
from web.logs import configure_logging

log = structlog.get_logger()

NOT_LISTED = Decision(False, Reason.CHANNEL_NOT_LISTED)
NOT_READ = Decision(False, Reason.OPTED_OUT)
THUMBS_DOWN = "👎"
SEEN_IDS = 4_000
HISTORY_MESSAGES = 20
LIMITS = "limits"
USER_AGENT = "parley (Discord bot)"
HISTORY_AGE = timedelta(hours=1)
SWEEP_SECONDS = 15.0
# Discord waits 3 s for the answer to a click.
CLICK_PATIENCE_SECONDS = 1.5
DRAIN_SECONDS = 25.0


class Parley(discord.Client):
    """The bot. Its conversations, turns and limits are its own; several can live in one process."""

    def __init__(
        self,
        settings: Settings,
        *,
        health: Health | None = None,
        listener: Callable[[LoggedDecision], None] | None = None,
        followup: FollowupTier | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        **client_options: Any,
    ) -> None:
        self._now = clock
        ours = {
            "intents": INTENTS,
            "allowed_mentions": discord.AllowedMentions.none(),
            # Discord: seconds. A rate limit beyond that is an outage; without this the library waits for hours.
            "max_ratelimit_timeout": 60.0,
            # What was missed is taken up once no server has been told of for so long; the library waits 2 s.
            "guild_ready_timeout": 1.0,
        }
        super().__init__(**{**ours, **client_options})
        self._channels = settings.channels
        self._name_calls = settings.name_calls
        self._retention_days = settings.retention_days
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._judging: set[int] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._models = AsyncExitStack()
        self.health = health or Health()
        self._set_up_memory(settings, listener)
        self._set_up_decider(settings, followup)
        self._set_up_turns(settings)
        self._set_up_initiative(settings)
        self._set_up_keeping(settings)
        self.clicks = Clicks(
            self.states,
            self.prompts,
            refuse=lambda interaction, prompt: self._refuse_click(interaction, costs_tokens=prompt.miniapp_id is None),
            submit=self._submit_click,
            stored=self._click_stored,
        )
        self.tree = app_commands.CommandTree(self)
        add_commands(self.tree, self.decisions, self.privacy, offers=self.initiative, tours=self.tours)

    def _set_up_memory(self, settings: Settings, listener: Callable[[LoggedDecision], None] | None) -> None:
        self.decisions = RecentDecisions(listener=listener)
        self.decision_log = DecisionLog(settings.state_dir, is_on=settings.decision_log != "off")
        self.learning = Learning(self.decision_log, keeps_content=settings.decision_log == "content")
        self.limits = Limits(turns_per_user_minute=settings.turns_per_user_minute, daily_tokens=settings.daily_tokens)
        self.opted_out = OptOut()
        self.forgotten = Forgotten()
        self.ledger = Ledger(on_change=lambda channel_id: self.keeper.touch(UNFINISHED, channel_id))
        self.miniapps = MiniAppRouter(
            # Stored together with the answer, so that a turn that is made anew does not do the same again.
            _miniapps(settings),
            on_change=lambda channel_id: self.keeper.mark(MINIAPPS, int(channel_id)),
        )
        self.states = ConversationStateManager(
            awaiting_ttl_seconds=settings.awaiting_ttl_seconds,
            soft_context_ttl_seconds=settings.soft_context_ttl_seconds,
            cache_ttl_seconds=settings.cache_ttl_seconds,
            clock=self._now,
            wants=lambda text, soft_context: self.miniapps.pick(text, soft_context) is not None,
            on_change=lambda channel_id: self.keeper.touch(PROMPTS, int(channel_id)),
        )
        self.prompts = Prompts(self.states, self._open_wire, clock=self._now)
        self.conversations = ConversationManager(
            settings.conversation_timeout_seconds,
            clock=self._now,
            keeps_open=lambda channel_id: self.states.is_awaiting(channel_id) or self.offers.is_open(channel_id),
            on_change=lambda channel_id: self.keeper.touch(CONVERSATION, channel_id),
        )

    def _set_up_decider(self, settings: Settings, followup: FollowupTier | None) -> None:
        self._model = build_model("MODEL", settings.model)
        self._judge_model = build_model("JUDGE_MODEL", settings.judge_model) if settings.judge_model else self._model
        self._judge = ModelJudge(self._judge_model, bot_name=lambda: self._me()[0], spend=self._spend)
        self.decider = ResponseDecider(
            followup=followup or _followup(settings),
            judge=self._ask_judge if settings.use_llm_judge else None,
            window_seconds=settings.followup_window_seconds,
            declines=settings.decline and settings.model != DEMO,
        )

    def _set_up_turns(self, settings: Settings) -> None:
        self._rewrite_model = build_model("REWRITE_MODEL", settings.rewrite_model) if settings.rewrite_model else None
        answering = Answering(
            team=self._team(settings),
            miniapps=self.miniapps,
            states=self.states,
            load_history=self._load_history,
            has_budget=self._has_budget,
            clock=self._now,
            follow_up=self._follow_up,
            picked=self._picked,
            rewrite=ModelRewriter(self._rewrite_model, spend=self._spend) if self._rewrite_model else None,
        )
        self.turns = Turns(
            conversations=self.conversations,
            answering=answering,
            prompts=self.prompts,
            open_wire=self._open_wire,
            bot=self._me,
            spend=self._spend,
            has_budget=self._has_budget,
            ledger=self.ledger,
            settled=self._settled,
            keep=lambda question, said: self.keeper.said(question.channel_id, question.guild_id, said),
            ended=self._turn_ended,
        )
        self.intake = Intake(
            conversations=self.conversations,
            states=self.states,
            prompts=self.prompts,
            miniapps=self.miniapps,
            turns=self.turns,
            bot=self._me,
        )
        self.bursts = Bursts(
            settings.burst_seconds, conversations=self.conversations, decider=self.decider, bot=self._me
        )

    def _team(self, settings: Settings) -> Team:
        """The agents, of which the general one is always there."""
        roster = _roster(settings)
        self._remotes = [UMSAgent(entry.name, entry.url, entry.about, entry.headers) for entry in roster]
        names = settings.coordinator_model
        self._coordinator_model = build_model("COORDINATOR_MODEL", names) if names else self._judge_model
        picker = Picker(
            [Candidate(entry.name, entry.about) for entry in roster],
            model=self._coordinator_model,
            has_budget=lambda: self.limits.may_judge(self._now()),
            spend=self._spend,
        )
        hands = DiscordHands(self, self._tellable, self._now)
        own = [*own_tools(hands, self._now), search_tool(self._find, hands.can_read)]
        self.mcp = McpTools(_mcp_servers(settings), taken={tool.name for tool in (*OWN_TOOLS, *own)})
        general = GeneralAgent(
            self._model,
            instructions=settings.instructions,
            tools=own,
            toolsets=[self.mcp.toolset],
            definitions=self.mcp.definitions,
            keep_turns=settings.gpa_keep_turns,
            server_state=server_state(settings.openai_state, self._model),
            has_budget=self._has_budget,
        )
        others = {agent.name: agent for agent in self._remotes}
        return Team(general, others, picker, bot_id=lambda: self._me()[1], shares=settings.shared_context)

    def _set_up_initiative(self, settings: Settings) -> None:
        self.offer_turns = OfferTurns(
            conversations=self.conversations,
            intake=self.intake,
            decisions=self.decisions,
            keep=self._said,
            bot=self._me,
        )
        self._model_answerable = ModelAnswerable(self._judge_model, bot_name=lambda: self._me()[0], spend=self._spend)
        restraint = Restraint(
            settings.offer_timeout_seconds,
            settings.offer_cooldown_seconds,
            settings.offers_per_day,
            settings.offer_quiet_hours,
        )
        self.book = Book(
            restraint, clock=self._now, on_change=lambda channel_id: self.keeper.touch(INITIATIVE, channel_id)
        )
        self.offers = Offers(
            self.book,
            open_wire=lambda guild_id, channel_id: DiscordWire(self, guild_id, channel_id),
            bot=self._me,
            stands=self.offer_turns.stands,
            settled=self._stored,
        )
        self.initiative = Initiative(
            self.book,
            self.offers,
            triggers=TRIGGERS,
            forbids=self._why_mute,
            still_stands=self.miniapps.still_stands,
            settled=self._stored,
            answerable=self._ask_answerable if settings.use_llm_judge else None,
        )
        self.offer_clicks = OfferClicks(
            self.initiative,
            self.offers,
            refuse=lambda interaction, offer: self._refuse_click(interaction, costs_tokens=offer.occasion.note is None),
            accept=self._accept_by_click,
            stored=self._click_stored,
        )
        self.tours = Tours(guide=self.initiative, facts=self._tour_facts)

    def _set_up_keeping(self, settings: Settings) -> None:
        layers = ChannelLayers(self.conversations, self.states, self.miniapps, self.ledger, self.book)
        self.keeper = Keeper(
            open_stores(*_where(settings)),
            sealed_by=mark_of(_where(settings)[2]),
            is_gone=self.forgotten.covers,
            channel=layers.takes,
            process={
                ALIVE: lambda _: as_json(self.catch_up.stored()),
                LIMITS: lambda _: as_json(self.limits.stored()),
                OPTED_OUT: lambda _: as_json(self.opted_out.stored()),
                FORGOTTEN: lambda _: as_json(self.forgotten.stored()),
            },
        )
        self._set_up_privacy(settings)
        self._set_up_life(settings, layers)

    def _set_up_privacy(self, settings: Settings) -> None:
        self.privacy = Privacy(
            keeper=self.keeper,
            conversations=self.conversations,
            turns=self.turns,
            prompts=self.prompts,
            miniapps=self.miniapps,
            initiative=self.initiative,
            decisions=self.decisions,
            decision_log=self.decision_log,
            learning=self.learning,
            opted_out=self.opted_out,
            forgotten=self.forgotten,
            clock=self._now,
            reread=max(HISTORY_AGE, timedelta(seconds=settings.catch_up_seconds)),
            changed=self._changed,
            take_back=self._take_back,
        )

    def _set_up_life(self, settings: Settings, layers: ChannelLayers) -> None:
        self.catch_up = CatchUp(
            seconds=settings.catch_up_seconds,
            burst_seconds=settings.burst_seconds,
            backlog=Backlog(self, settings.channels, lambda message: self.privacy.unquoted(self._read(message))),
            conversations=self.conversations,
            turns=self.turns,
            ledger=self.ledger,
            keeper=self.keeper,
            take=self._take,
            gone=self._messages_gone,
            clock=self._now,
        )
        self.life = Life(
            keeper=self.keeper,
            channels=layers,
            restores={
                ALIVE: self.catch_up.restore,
                LIMITS: self.limits.restore,
                OPTED_OUT: self.opted_out.restore,
                FORGOTTEN: self.forgotten.restore,
            },
            catch_up=self.catch_up,
            privacy=self.privacy,
            is_well=lambda: self.health.problem() is None and not self.turns.draining,
            retention=timedelta(days=settings.retention_days),
            clock=self._now,
        )

    # What Discord tells us

    async def setup_hook(self) -> None:
        await self.life.restore()
        for model in filter(None, (self._model, self._judge_model, self._coordinator_model, self._rewrite_model)):
            await self._models.enter_async_context(model)
        for agent in self._remotes:
            await self._models.enter_async_context(agent)
        await self._models.enter_async_context(self.mcp)
        self.decision_log.start()
        self._spawn(self.prompts.keep())
        self._spawn(self._sweep())
        self._spawn(self.initiative.keep())
        self._spawn(self.life.beat())
        self._spawn(self.life.expire())
        self._spawn(sync(self.tree))

    async def on_ready(self) -> None:
        self.health.gateway_up()
        log.info("ready", bot=str(self.user), guilds=len(self.guilds))
        self.catch_up.expect()
        self._spawn(self.life.catch_up({guild.id for guild in self.guilds}))

    async def on_resumed(self) -> None:
        self.health.gateway_up()
        log.info("resumed")

    async def on_disconnect(self) -> None:
        self.health.gateway_down()

    async def on_message(self, message: discord.Message) -> None:
        if not is_said_by_people(message):
            answered_id = replied_to_id(message)
            if self.user and message.author.id == self.user.id:
                self.turns.overheard(message.channel.id, message.id, message.content, answered_id)
            elif answered_id:
                self.initiative.dealt_with(message.channel.id, answered_id)
            return
        if self.catch_up.is_busy(message.channel.id):
            await self.catch_up.turn_of(message.channel.id)
        await self._take(message, hears_out=True)

    async def _take(self, message: discord.Message, *, hears_out: bool = False) -> None:
        """A person's message goes its way, once. hears_out: first with what else they say in one go."""
        if not is_said_by_people(message) or not self._is_new(message.id):
            return
        channel_id, me = message.channel.id, self._me()[1]
        conversation = self.conversations.get(channel_id)
        listens = self.initiative.listens(channel_id)
        if not (conversation or listens or may_address(message, me, self._names(message.guild))):
            # Nearly every message of every channel ends here.
            self.decisions.add_ignored(message.id, channel_id, message.author.id, NOTHING)
            if log.is_enabled_for(logging.DEBUG):
                log_decision(log.debug, _guild_id(message), channel_id, message.id, NOTHING, 0.0)
            return
        started = perf_counter()
        record = self.privacy.readable(self._read(message))
        if self.privacy.is_forgotten(channel_id, record):
            return  # it is taken up after a restart, and was said before somebody had it forgotten
        if listens:
            self.initiative.heard(channel_id, record)
        # One that an earlier process had begun with this message, and heard out, begins with it still.
        starts_conversation = conversation is None or message.id <= conversation.since
        question = self._question(message, record, starts_conversation=starts_conversation)
        decision = await self._decide(message, record, question)
        if decision is None:
            return  # it goes its way with what it goes on from
        seconds = perf_counter() - started
        said = [(question, decision)]
        if hears_out and self.bursts.may_go_on(question, decision):
            heard = await self.bursts.hear_out(question, decision)
            said = [each for each in heard if not self.privacy.is_forgotten(channel_id, each[0].message)]
        self._conclude(said, seconds)

    def _conclude(self, said: Sequence[tuple[Question, Decision]], seconds: float) -> None:
        """What one person said in one go is noted, with the decision on each message, and answered together."""
        for question, decision in said:
            channel_id, message_id = question.channel_id, question.message.message_id
            is_news = not question.starts_conversation or decision not in (NOTHING, NOT_LISTED)
            note = self.decisions.add if is_news else self.decisions.add_ignored
            note(message_id, channel_id, question.message.author_id, decision)
            if decision.tier == EXPLICIT.tier:
                self.conversations.record_call(channel_id, question.message.author_id)
            write = log.info if is_news else log.debug
            log_decision(write, question.guild_id, channel_id, message_id, decision, seconds)
            self._learn(question, decision)
        if answered := [(question, decision) for question, decision in said if decision.respond]:
            self._submit(answered)
        for question, decision in said:
            # Behind the question: whoever finds a message in the transcript after a kill takes it for dealt with.
            if decision.reason is not Reason.SHUTTING_DOWN:  # the next process takes it up
                self._keep(question)

    def _submit(self, answered: Sequence[tuple[Question, Decision]]) -> None:
        """Has messages answered together, or, where one takes up an offer, what that is about."""
        newest, decision = answered[-1]
        channel_id = newest.channel_id
        if decision.reason is Reason.EXPLICIT_TRIGGER:
            self.conversations.follow(channel_id)
        if decision.reason is not Reason.OFFER_ACCEPTED:
            questions = [
                replace(question, is_unprompted=each.is_unprompted, may_decline=each.may_decline)
                for question, each in answered
            ]
            self.intake.submit(*questions)
            self._answered(question for question in questions if not question.may_decline)
        elif offer := self.offers.accept(channel_id):
            self.offer_turns.take_up(offer, newest)
            self.offers.settle(channel_id, offer)

    def _answered(self, questions: Iterable[Question]) -> None:
        for question in questions:
            self.initiative.answered(question.channel_id, question.guild_id, question.message)

    def _turn_ended(self, questions: Sequence[Question], silence: Decision | None) -> None:
        """Of messages that the agent might have declined it is known only now whether they are answered."""
        if silence is None:
            self._answered(question for question in questions if question.may_decline)
        else:
            self._silence(questions, silence)

    def _silence(self, questions: Iterable[Question], silence: Decision) -> None:
        """These were to be answered, and are not."""
        for question in questions:
            message, channel_id = question.message, question.channel_id
            noted = self.decisions.find(message.message_id)
            before = noted.decision if noted else silence
            if noted and not before.respond:
                continue  # somebody's stop has ended it
            decision = replace(before, respond=False, reason=silence.reason, evidence=silence.evidence)
            self.decisions.add(message.message_id, channel_id, message.author_id, decision)
            if question.burst in (None, message.message_id):  # what was said in one go was counted once
                self.limits.give_back(message.author_id)
            is_judgement = silence.reason not in NOT_JUDGED
            self.learning.silent(message, channel_id, silence.reason, is_judgement=is_judgement)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(CLICK_PATIENCE_SECONDS):
                await self.catch_up.turn_of(interaction.channel_id or 0)
        if not (await self.offer_clicks.answer(interaction) or await self.tours.answer(interaction)):
            await self.clicks.answer(interaction)

    async def on_raw_typing(self, payload: discord.RawTypingEvent) -> None:
        self.states.typing(payload.channel_id, payload.user_id)
        self.bursts.typing(payload.channel_id, payload.user_id)

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        message, channel_id, me = payload.message, payload.channel_id, self._me()[1]
        if message.author.bot:
            if message.author.id == me:
                self.turns.overheard(channel_id, message.id, message.content)
            return
        content = "" if self.privacy.is_opted_out(message.author.id) else message.content
        self.learning.revised(message.id, channel_id, message.author.id, content, payload.guild_id or 0)
        conversation = self.conversations.get(channel_id)
        before = conversation.find(message.id) if conversation else None
        listens = self.initiative.listens(channel_id)
        if conversation or listens or self.keeper.may_hold(channel_id, message.id):
            record = self.privacy.readable(self._read(message))
            self._follow_edit(channel_id, self._as_stop(record, before), before)
        # A link that is unfurled, or a pin, is no edit; of words that are not here it is not known whether they differ.
        if message.edited_at and (before is None or before.content != content):
            self._take_back(("message", message.id))

    def _as_stop(self, record: MessageRecord, before: MessageRecord | None) -> MessageRecord:
        """An edited message, which goes on telling the bot to keep out where it did and still says so."""
        if before is None or not before.tells_off:
            return record
        says_so = read_stop(record.content, record.calls_bot or self._me()[0]) is Stop.KEEP_OUT
        return replace(record, tells_off=says_so or record.content == before.content)

    def _follow_edit(self, channel_id: int, record: MessageRecord, before: MessageRecord | None) -> None:
        self.catch_up.changed(channel_id)
        was_offered = self.initiative.listens(channel_id) and self.initiative.revised(channel_id, record)
        is_told_otherwise = self.conversations.revise(channel_id, record) and before is None
        self.keeper.revised(channel_id, record)
        is_reworded = before is not None and before.content != record.content
        if was_offered or is_told_otherwise or is_reworded:
            self.keeper.purge(channel_id)
        if is_reworded:
            self.turns.reworded(channel_id, record)

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        self._messages_gone(payload.channel_id, {payload.message_id})

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        self._messages_gone(payload.channel_id, payload.message_ids)

    async def on_raw_reaction_add(self, payload: discord.RawReactionActionEvent) -> None:
        by_person = payload.member is not None and not payload.member.bot
        if by_person and payload.emoji.name.startswith(THUMBS_DOWN):  # the tone of the skin comes behind it
            self._unfollow(self.learning.disliked(payload.message_id, self._now()), Unwelcome.DISLIKED)
        if by_person and payload.message_author_id == self._me()[1]:
            self.initiative.reacted(payload.channel_id)

    async def on_thread_create(self, thread: discord.Thread) -> None:
        self.initiative.dealt_with(thread.parent_id, thread.id)  # it has the id of the message that it was begun at

    async def on_guild_channel_delete(self, channel: discord.abc.GuildChannel) -> None:
        self.initiative.leave(channel.id)
        await self.privacy.forget_channel(channel.id, discord.utils.time_snowflake(self._now()))

    async def on_guild_remove(self, guild: discord.Guild) -> None:
        channel_ids = [channel.id for channel in guild.channels]
        await self.privacy.forget_guild(guild.id, channel_ids, discord.utils.time_snowflake(self._now()))

    async def shut_down(self) -> None:
        """Finishes what is being answered, tells those cut off, and closes."""
        await self.bursts.end()
        await self.turns.drain(DRAIN_SECONDS)
        await self.close()
        log.info("stopped", ignored_messages=self.decisions.ignored_count)

    async def close(self) -> None:
        for task in self._background:
            task.cancel()
        self.bursts.drop()
        try:
            await super().close()
            await self._models.aclose()
        finally:
            await self.decision_log.close()
            await self.keeper.close()

    # From a message to a decision

    async def _decide(self, message: discord.Message, record: MessageRecord, question: Question) -> Decision | None:
        """None where it is decided with what its author said just before, which waits for that."""
        channel_id, me = message.channel.id, self._me()[1]
        if self._channels and channel_id not in self._channels:
            return NOT_LISTED
        conversation = self.conversations.get(channel_id)
        if conversation is None:
            decision = self._permit(message, record, self.decider.should_start_conversation(record, me))
            if decision.respond:
                self.conversations.start(channel_id, [record])
            return decision
        if stopped := self._stop(message, record, conversation):
            return stopped
        self._record(conversation, record)
        return await self._decide_within(conversation, message, record, question)

    async def _decide_within(
        self, conversation: ChannelConversation, message: discord.Message, record: MessageRecord, question: Question
    ) -> Decision | None:
        me = self._me()[1]
        if self.privacy.is_opted_out(record.author_id) and not is_explicit_trigger(record, me):
            return NOT_READ
        if answer := self._answer_to_us(message, record, conversation):
            return answer
        if (judged := await self.bursts.decide(question, conversation)) is None:
            return None
        if conversation.is_deleted(record.message_id):
            return Decision(False, Reason.DELETED)
        return self._permit(message, record, judged)

    def _stop(
        self, message: discord.Message, record: MessageRecord, conversation: ChannelConversation
    ) -> Decision | None:
        """Ends the answers that a message calls off, and records it; None where it ends none, and nothing happened."""
        channel_id = conversation.channel_id
        heard_out = self.bursts.heard_out(channel_id)
        if not (heard_out or self.turns.is_busy(channel_id)):
            return None
        # Whoever does not want to be read may call an answer off all the same: no word of that is kept.
        said = self._read(message) if self.privacy.is_opted_out(record.author_id) else record
        stopped = self.turns.stop(said, channel_id, manages=_manages_messages(message), heard_out=heard_out)
        if stopped is None:
            return None
        self.bursts.stop(stopped.questions)
        self._silence(stopped.silently, STOPPED)  # before anybody asks which answer was told off
        self._record(conversation, replace(record, tells_off=stopped.tells_off))
        if stopped.tells_off and stopped.is_unprompted:
            self.conversations.follow(channel_id, Unwelcome.TOLD_OFF)
        return Decision(False, Reason.STOP, evidence=stopped.in_words(record.author_id))

    def _answer_to_us(
        self, message: discord.Message, record: MessageRecord, conversation: ChannelConversation
    ) -> Decision | None:
        """What becomes of a message that answers an offer or a question of ours; None of any other."""
        if reply := self.offers.reply_of(conversation.channel_id, record):
            return self._reply_to_offer(message, record, reply)
        return self._permit(message, record, AWAITED) if self.intake.resolves(record, conversation) else None

    def _reply_to_offer(self, message: discord.Message, record: MessageRecord, reply: Reply) -> Decision:
        if reply is Reply.YES:
            return self._permit(message, record, OFFER_ACCEPTED)
        if reply is Reply.NOT_NOW:
            self.offers.decline(message.channel.id)
        else:
            self.initiative.switch_off(message.channel.id)
            self.turns.announce(self._question(message, record), NEVER_HERE)
        return OFFER_DECLINED

    def _learn(self, question: Question, decision: Decision) -> None:
        record, channel_id = question.as_kept.message, question.channel_id
        conversation = self.conversations.get(channel_id)
        if conversation is None or decision.reason is Reason.DELETED or self.privacy.is_opted_out(record.author_id):
            return
        if self.privacy.is_forgotten(channel_id, record):
            return
        is_explicit, is_judgement = decision.tier == EXPLICIT.tier, decision.reason not in NOT_JUDGED
        if decision.reason is Reason.STOP:  # whose evidence names people, who may want to be forgotten
            decision = replace(decision, evidence="")
        self.learning.decided(
            record, question.guild_id, conversation, decision, is_explicit=is_explicit, is_judgement=is_judgement
        )

    def _keep(self, question: Question) -> None:
        """What is recorded in a conversation stands in the channel's transcript."""
        conversation = self.conversations.get(question.channel_id)
        if conversation and (current := conversation.find(question.message.message_id)):
            self.keeper.said(question.channel_id, question.guild_id, current)

    def _record(self, conversation: ChannelConversation, record: MessageRecord) -> None:
        was_told_off = conversation.engagement.standing(record.author_id).told_off
        self.conversations.record_message(conversation.channel_id, record)
        if not conversation.engagement.standing(record.author_id).told_off:
            return
        if not was_told_off:
            self.learning.told_off(conversation.channel_id, record.timestamp)
        if conversation.engagement_at(record).is_telling_off(record):
            answered = self.learning.outcomes.told_off(conversation.channel_id, record.timestamp.timestamp())
            self._unfollow(answered, Unwelcome.TOLD_OFF)

    def _unfollow(self, mark: Mark | None, unwelcome: Unwelcome) -> None:
        """Follows no longer where an answer was not welcome, if nobody had called the bot or been asked by it.

        What becomes of an earlier conversation's is no word on this one.
        """
        answered = self.decisions.find(mark.message_id) if mark else None
        conversation = self.conversations.get(answered.channel_id) if answered else None
        if answered and conversation and answered.message_id >= conversation.since and answered.decision.is_unprompted:
            self.conversations.follow(answered.channel_id, unwelcome)

    def _permit(self, message: discord.Message, record: MessageRecord, decision: Decision) -> Decision:
        """The decision, unless something outside the conversation forbids to answer."""
        if not decision.respond:
            return decision
        if self.turns.draining:
            return replace(decision, respond=False, reason=Reason.SHUTTING_DOWN)
        allowed = _permissions(message)
        explicit = decision.reason in (Reason.EXPLICIT_TRIGGER, Reason.AWAITED, Reason.OFFER_ACCEPTED)
        refusal = self.limits.admit(
            message.author.id,
            message.channel.id,
            explicit=explicit,
            now=self._now(),
            # As long as there is budget it does not matter whether a model is needed, and is not found out.
            costs_tokens=self.limits.may_judge(self._now()) or self.intake.needs_model(record, message.channel.id),
            tells=not decision.may_decline,
        )
        if not allowed.send_messages:
            if allowed.add_reactions and not refusal:
                self._spawn(DiscordWire(self, _guild_id(message), message.channel.id).react(message.id, NOT_ALLOWED))
            return replace(decision, respond=False, reason=Reason.MISSING_PERMISSION)
        return self._refuse(message, decision, refusal) if refusal else decision

    def _refuse(self, message: discord.Message, decision: Decision, refusal: Refusal) -> Decision:
        reason = Reason.USER_CAP if refusal.cap is Cap.USER else Reason.DAILY_CAP
        if refusal.announce:
            log.warning("cap_reached", cap=refusal.cap.value, guild=_guild_id(message), channel=message.channel.id)
            self.turns.announce(self._question(message, self._read(message)), _refusal_line(refusal))
        return replace(decision, respond=False, reason=reason)

    # Clicks

    def _refuse_click(self, interaction: discord.Interaction, *, costs_tokens: bool) -> str | None:
        """Why a click cannot be taken now, in a sentence."""
        if self.turns.draining or self.catch_up.is_busy(interaction.channel_id or 0):
            return RESTARTING
        refusal = self.limits.admit(
            interaction.user.id,
            interaction.channel_id or 0,
            explicit=True,
            now=self._now(),
            costs_tokens=costs_tokens,
        )
        return _refusal_line(refusal) if refusal else None

    def _submit_click(self, interaction: discord.Interaction, meaning: ProcessingResult) -> None:
        """Queues what somebody clicked, as if they had said it in reply to the card."""
        question = self._clicked(interaction, meaning.query)
        self.conversations.record_message(question.channel_id, question.message)
        self.intake.resolve(question, meaning)
        self.initiative.clicked(question.channel_id, question.guild_id)
        self.keeper.said(question.channel_id, question.guild_id, question.message)

    def _accept_by_click(self, interaction: discord.Interaction) -> None:
        question = self._clicked(interaction, LABELS[Reply.YES])
        self.conversations.touch(question.channel_id)  # which the open offer has kept alive until now
        if offer := self.offers.accept(question.channel_id):
            if offer.occasion.note:  # else what is answered is the question, and not the Yes
                self.conversations.record_message(question.channel_id, question.message)
            self.offer_turns.take_up(offer, question)
        self.keeper.said(question.channel_id, question.guild_id, question.message)

    def _clicked(self, interaction: discord.Interaction, words: str) -> Question:
        channel_id = interaction.channel_id or 0
        record = self.privacy.readable(clicked_record(interaction, words, self._me()[1]))
        place = Place(
            self._me()[0], interaction.guild.name if interaction.guild else "", getattr(interaction.channel, "name", "")
        )
        return Question(record, interaction.guild_id or 0, channel_id, place, card_id=record.reply_to_id)

    async def _click_stored(self) -> None:
        await self.keeper.noted(CLICK_PATIENCE_SECONDS)

    # Parts for the wiring

    def _why_mute(self, _guild_id: int, channel_id: int) -> str | None:
        """Why the bot may not speak of itself in a channel, in a word; None where it may."""
        if self.turns.draining or not self.is_ready() or self.catch_up.is_busy(channel_id):
            return NOT_READY
        if not self.limits.may_judge(self._now()):
            return OVER_BUDGET  # what is left is for those who mention it
        if self._channels and channel_id not in self._channels:
            return "not_listed"
        channel = self.get_channel(channel_id)
        if not isinstance(channel, discord.abc.GuildChannel):
            return "no_channel"
        allowed = channel.permissions_for(channel.guild.me)
        return None if allowed.view_channel and allowed.send_messages else "missing_permission"

    def _tour_facts(self, interaction: discord.Interaction) -> TourFacts:
        status = self.initiative.status(interaction.channel_id or 0)
        return TourFacts(
            bot_name=self._me()[0],
            may_speak=status.may_speak,
            offers_on=status.is_on,
            offers_per_day=status.per_day,
            can_plan_trips=True,
            retention_days=self._retention_days,
        )

    def _open_wire(self, guild_id: int, channel_id: int) -> NotedWire:
        return NotedWire(self, guild_id, channel_id, self.learning.outcomes)

    async def _ask_judge(self, message: MessageRecord, conversation: ChannelConversation) -> Verdict:
        if conversation.channel_id in self._judging or not self.limits.may_judge(self._now()):
            raise JudgeError("it is busy with this channel, or today's token budget is nearly spent")
        self._judging.add(conversation.channel_id)
        try:
            return await self._judge(message, conversation)
        finally:
            self._judging.discard(conversation.channel_id)

    async def _ask_answerable(self, question: MessageRecord, recent: Sequence[MessageRecord]) -> bool:
        if not self.limits.may_judge(self._now()):
            return False
        try:
            async with asyncio.timeout(JUDGE_DEADLINE_SECONDS):
                return await self._model_answerable(question, recent)
        except (TimeoutError, JudgeError) as error:
            log.info("offer_not_judged", message=question.message_id, detail=str(error) or "it took too long")
            return False

    def _me(self) -> tuple[str, int]:
        """The bot's name and id."""
        return (self.user.name, self.user.id) if self.user else ("Parley", 0)

    def _names(self, guild: discord.Guild | None) -> tuple[str, ...]:
        """By which it may be called there: as it is called now."""
        if not (self._name_calls and self.user):
            return ()
        me = guild.me if guild else None
        return (me.display_name, self.user.name) if me else (self.user.name,)

    def _read(self, message: discord.Message) -> MessageRecord:
        return to_record(message, self._me()[1], self._names(message.guild))

    async def _settled(self) -> None:
        await self.keeper.noted()

    async def _stored(self) -> bool:
        return await self.keeper.settled()

    def _said(self, channel_id: int, guild_id: int, record: MessageRecord) -> None:
        self.keeper.said(channel_id, guild_id, record)

    def _tellable(self, channel_id: int, record: MessageRecord) -> MessageRecord | None:
        """A message as the model may be told it; None: not at all."""
        return None if self.privacy.is_forgotten(channel_id, record) else self.privacy.readable(record)

    async def _find(self, channel_id: int, words: str, limit: int, *, author: str, before: int) -> list[MessageRecord]:
        return await self.keeper.search.find(channel_id, words, limit, author=author, before=before)

    def _picked(self, questions: Sequence[Question], choice: Choice) -> None:
        """Among several agents one was chosen for these."""
        ids = [question.message.message_id for question in questions]
        log.info("agent_picked", messages=ids, agent=choice.agent, reason=choice.why)
        self.learning.assigned(ids, "" if choice.agent == GENERAL else choice.agent, choice.why)
        for message_id in ids:
            self.decisions.assigned(message_id, choice.in_words())

    def _follow_up(self, question: Question, follow_up: FollowUp) -> None:
        if not self.privacy.is_opted_out(question.message.author_id):
            self.initiative.note(question.channel_id, note_of(question, follow_up, self._now()))

    def _changed(self, channel_id: int) -> None:
        self.catch_up.changed(channel_id)

    def _has_budget(self, used: int = 0) -> bool:
        return self.limits.has_budget(self._now(), used)

    def _spend(self, tokens: int) -> None:
        self.limits.spend(tokens, self._now())
        self.keeper.touch_process(LIMITS)

    def _question(
        self, message: discord.Message, record: MessageRecord, *, starts_conversation: bool = False
    ) -> Question:
        guild = message.guild.name if message.guild else ""
        place = Place(self._me()[0], guild, getattr(message.channel, "name", ""))
        is_private = self.privacy.is_opted_out(message.author.id)
        asked = self.privacy.unquoted(self._read(message)) if is_private else record
        return Question(
            asked, _guild_id(message), message.channel.id, place, starts_conversation, is_private=is_private
        )

    def _is_new(self, message_id: int) -> bool:
        """Whether it is seen for the first time: after a RESUME Discord can send one twice."""
        if message_id in self._seen:
            return False
        self._seen[message_id] = None
        if len(self._seen) > SEEN_IDS:
            self._seen.popitem(last=False)
        return True

    def _messages_gone(self, channel_id: int, message_ids: Collection[int]) -> None:
        for mark in self.learning.deleted(message_ids, self._now()):
            self._unfollow(mark, Unwelcome.DELETED)
        self.keeper.removed(channel_id, message_ids)
        if self.keeper.has(channel_id):
            self.catch_up.changed(channel_id)
            self.turns.withdraw(channel_id, lambda message: message.message_id in message_ids)
            self.prompts.messages_gone(channel_id, message_ids)
            self.miniapps.retract(channel_id, message_ids)
            self.initiative.messages_gone(channel_id, message_ids)
            self.conversations.forget_messages(channel_id, message_ids)
            self.keeper.purge(channel_id)
        self._take_back(*(("message", message_id) for message_id in message_ids))
        for message_id in message_ids:
            self._is_new(message_id)  # what still waits to be taken up is not taken any more
            self.decisions.discard(message_id)

    def _take_back(self, *sources: Source) -> None:
        """Agents keep nothing of these, which they may have looked up from another channel."""
        for channel_id in {*self.conversations.take_back(*sources), *self.ledger.follow(self.conversations.current)}:
            self.keeper.purge(channel_id)

    async def _load_history(self, question: Question) -> Sequence[MessageRecord]:
        """What was said shortly before a question, from the cache or, where that is thin, from Discord."""
        asked, me = question.message, self._me()[1]
        earlier = await read_before(self, question.guild_id, question.channel_id, asked.message_id, HISTORY_MESSAGES)
        recent = [m for m in earlier if asked.timestamp - m.created_at < HISTORY_AGE]
        said = (m for m in recent if (m.author.id == me and m.type in SAID_BY_PEOPLE) or is_persons(m))
        records = [self._read(m) for m in said]
        return [self.privacy.readable(r) for r in records if not self.privacy.is_forgotten(question.channel_id, r)]

    def _is_waiting(self, channel_id: int, ask_id: str) -> bool:
        """Whether a run of the agent's still waits there for somebody, or is about to go on."""
        open_ids = (prompt.ask.context.get("ask_id") for prompt in self.states.prompts(channel_id))
        return self.turns.is_busy(channel_id) or ask_id in open_ids

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = self._now()
            self.conversations.sweep()
            for channel_id in self.conversations.let_go(self._is_waiting):
                self.keeper.purge(channel_id)
            self.states.sweep()
            self.limits.sweep(now)
            self.learning.outcomes.sweep(now.timestamp())
            self.privacy.sweep()


def create_bot(settings: Settings | None = None, **client_options: Any) -> Parley:
    """The bot, ready for `.start(token)`. Needs no token and touches no network.

    settings: read from the environment when None. client_options: discord.Client's, which win over ours, and health,
    listener (told of each decision) and followup (the second tier). Raises SettingError and UnusableModelError.
    """
    settings = settings or load_settings()
    if settings.discord_api_base and settings.discord_gateway_url:
        use_server(settings.discord_api_base, settings.discord_gateway_url)
    return Parley(settings, **client_options)


def use_server(api_base: str, gateway_url: str) -> None:
    """Has discord.py, in the whole process, talk to this server: by three attributes, public though undocumented."""
    discord.http.Route.BASE = api_base
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway_url)
    discord.asset.Asset.BASE = str(yarl.URL(api_base).origin())


def main() -> int:
    """Runs the bot until it is told to stop. Returns the exit code: 0, 2 for what the owner must mend, 1 otherwise."""
    for number in (signal.SIGTERM, signal.SIGINT):  # until the bot is in service, which takes them over
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        settings = load_settings()
        if settings.discord_token is None:
            # What it keeps is of a server that lasts as long as the process, and apart from a real bot's.
            settings = settings.model_copy(
                update={"state_dir": settings.state_dir / "playground", "redis_url": None, "state_key": None}
            )
        configure_logging(settings.log_level, secrets_of(settings))
        _warn_of(settings)
        state_dir, redis_url, _ = _where(settings)
        with in_use(state_dir, redis_url):
            _check_stores(settings)
            return asyncio.run(run(settings))
    except (SettingError, UnusableModelError, RefusedError, WrongKeyError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except (InUseError, StoreError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


async def run(settings: Settings) -> int:
    """Keeps the bot in service, in the playground where there is no token. Returns the exit code."""
    make_bot = partial(create_bot, followup=_followup(settings))
    make_bot(settings)  # a model that cannot be built ends the start before anything else begins
    if settings.discord_token:
        return await serve(partial(make_bot, settings), settings.discord_token.get_secret_value(), settings.port)
    async with playground(settings.playground_host, settings.playground_port) as loopback:
        here = {"discord_api_base": loopback.api_base, "discord_gateway_url": loopback.gateway_url}
        there = settings.model_copy(update=here)
        return await serve(partial(make_bot, there, listener=shown_in(loopback)), loopback.token, settings.port)


def _check_stores(settings: Settings) -> None:
    """Raises SettingError and what check_stores() raises."""
    try:
        check_stores(*_where(settings))
    except ValueError as error:
        raise SettingError(f"{error}.") from None


def _where(settings: Settings) -> tuple[Path, str | None, str | None]:
    """Where what is kept is stored, and with which keys."""
    redis_url, keys = (s.get_secret_value() if s else None for s in (settings.redis_url, settings.state_key))
    return settings.state_dir, redis_url, keys


def _roster(settings: Settings) -> tuple[AgentEntry, ...]:
    """The remote agents. Raises SettingError."""
    if settings.agents is None:
        return ()
    try:
        return load_roster(settings.agents, os.environ)
    except RosterError as error:
        raise SettingError(str(error)) from None


def _mcp_servers(settings: Settings) -> tuple[McpServer, ...]:
    """The servers that lend the general agent tools. Raises SettingError."""
    if settings.mcp_config is None:
        return ()
    try:
        return load_mcp(settings.mcp_config, os.environ)
    except McpError as error:
        raise SettingError(str(error)) from None


def _followup(settings: Settings) -> FollowupTier:
    """The trained model, or, where its file cannot be used, rules of thumb."""
    try:
        return TrainedFollowup(load_model(), Eagerness(settings.followup_eagerness))
    except ModelFileError as error:
        log.warning("followup_model_unusable", detail=str(error), meaning="rules of thumb follow conversations instead")
        return FollowupRules(settings.followup_window_seconds)


def _miniapps(settings: Settings) -> list[MiniApp]:
    """The trip planner, and what else is installed."""
    venues = NominatimVenues(settings.nominatim_url, USER_AGENT) if settings.nominatim_url else SampleVenues()
    return [TripPlanner(venues), *discover()]


def _warn_of(settings: Settings) -> None:
    if settings.model == DEMO:
        log.warning("demo_model", meaning="answers only repeat what was said", remedy="set MODEL and its key")


def _permissions(message: discord.Message) -> discord.Permissions:
    """What the bot may do where the message stands, as far as the cache knows."""
    if message.guild is None or message.guild.me is None or not isinstance(message.channel, discord.abc.GuildChannel):
        return discord.Permissions.all()
    return message.channel.permissions_for(message.guild.me)


def _manages_messages(message: discord.Message) -> bool:
    """Whether its author may delete what others say where it stands."""
    if not (isinstance(message.author, discord.Member) and isinstance(message.channel, discord.abc.GuildChannel)):
        return False
    return message.channel.permissions_for(message.author).manage_messages


def log_decision(
    write: Callable[..., object], guild_id: int, channel_id: int, message_id: int, decision: Decision, seconds: float
) -> None:
    """The one line on a message. Not to begin a conversation is an everyday matter, written at debug level."""
    write(
        "decided",
        guild=guild_id,
        channel=channel_id,
        message=message_id,
        decision="respond" if decision.respond else "silent",
        reason=decision.reason,
        tier=decision.tier,
        score=decision.score,
        elapsed_ms=round(1000 * seconds, 2),
    )


def _guild_id(message: discord.Message) -> int:
    return message.guild.id if message.guild else 0


def _refusal_line(refusal: Refusal) -> str:
    again = f"<t:{int(refusal.resets_at.timestamp())}:R>"
    if refusal.cap is Cap.USER:
        return f"That was a lot at once. I answer you only sparingly for a moment; ask me again {again}."
    return f"My budget for today is nearly spent. I answer mentions only, as long as it lasts; it is renewed {again}."


if __name__ == "__main__":
    sys.exit(main())
