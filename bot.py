"""Entry point and Discord edge: events come in here, become our own values, and everything is wired together."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from time import perf_counter
from typing import Any

import discord
import structlog
import yarl
from discord import app_commands

from agents.gateway import Place
from agents.general import GeneralAgent
from agents.judge import ModelJudge
from agents.models import DEMO, UnusableModelError, build_model
from agents.rewriter import ModelRewriter
from commands import Clicks, add_commands, sync
from config import SettingError, Settings, load_settings, secrets_of
from conversation import ChannelConversation, ConversationManager, MessageRecord
from decider import (
    AWAITED,
    EXPLICIT,
    NOT_JUDGED,
    NOTHING,
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
)
from delivery.discord_wire import DiscordWire
from delivery.history import read_before
from delivery.noted_wire import NotedWire
from delivery.prompts import Prompts
from delivery.reading import clicked_record, is_persons, is_said_by_people, may_address, to_record
from followup.decision_log import DecisionLog
from followup.learning import Learning
from followup.model import Eagerness, ModelFileError, load_model
from miniapps.base import MiniApp
from miniapps.router import MiniAppRouter, discover
from miniapps.trip_planner import TripPlanner
from miniapps.venues import NominatimVenues, SampleVenues
from service import INTENTS, RefusedError, playground, serve, shown_in
from state.awaiting import ConversationStateManager, ProcessingResult, Prompt
from state.limits import Cap, Limits, Refusal
from turns.answering import Answering
from turns.intake import Intake
from turns.lanes import Turns
from turns.turn import Question
from turns.wording import NOT_ALLOWED, RESTARTING
from web.health import Health
from web.logs import configure_logging

log = structlog.get_logger()

NOT_LISTED = Decision(False, Reason.CHANNEL_NOT_LISTED)
THUMBS_DOWN = "👎"
SEEN_IDS = 4_000
HISTORY_MESSAGES = 20
USER_AGENT = "parley (Discord bot)"
HISTORY_AGE = timedelta(hours=1)
SWEEP_SECONDS = 15.0
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
        **client_options: Any,
    ) -> None:
        ours = {
            "intents": INTENTS,
            "allowed_mentions": discord.AllowedMentions.none(),
            # Discord: seconds. A rate limit beyond that is an outage; without this the library waits for hours.
            "max_ratelimit_timeout": 60.0,
        }
        super().__init__(**{**ours, **client_options})
        self._channels = settings.channels
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._forgotten: dict[tuple[int, int | None], int] = {}
        self._judging: set[int] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._models = AsyncExitStack()
        self.health = health or Health()
        self._set_up_memory(settings, listener)
        self._set_up_decider(settings, followup)
        self._set_up_turns(settings)
        self.clicks = Clicks(self.states, self.prompts, refuse=self._refuse_click, submit=self._submit_click)
        self.tree = app_commands.CommandTree(self)
        add_commands(self.tree, self.decisions, self.forget)

    def _set_up_memory(self, settings: Settings, listener: Callable[[LoggedDecision], None] | None) -> None:
        self.decisions = RecentDecisions(listener=listener)
        self.decision_log = DecisionLog(settings.state_dir, is_on=settings.decision_log != "off")
        self.learning = Learning(self.decision_log, keeps_content=settings.decision_log == "content")
        self.limits = Limits(turns_per_user_minute=settings.turns_per_user_minute, daily_tokens=settings.daily_tokens)
        self.miniapps = MiniAppRouter(_miniapps(settings))
        self.states = ConversationStateManager(
            awaiting_ttl_seconds=settings.awaiting_ttl_seconds,
            soft_context_ttl_seconds=settings.soft_context_ttl_seconds,
            cache_ttl_seconds=settings.cache_ttl_seconds,
            wants=lambda text, soft_context: self.miniapps.pick(text, soft_context) is not None,
        )
        self.prompts = Prompts(self.states, self._open_wire, clock=_now)
        self.conversations = ConversationManager(
            settings.conversation_timeout_seconds, keeps_open=self.states.is_awaiting
        )

    def _set_up_decider(self, settings: Settings, followup: FollowupTier | None) -> None:
        self._model = build_model("MODEL", settings.model)
        self._judge_model = build_model("JUDGE_MODEL", settings.judge_model) if settings.judge_model else self._model
        self._judge = ModelJudge(self._judge_model, bot_name=lambda: self._me()[0], spend=self._spend)
        self.decider = ResponseDecider(
            followup=followup or _followup(settings),
            judge=self._ask_judge if settings.use_llm_judge else None,
            window_seconds=settings.followup_window_seconds,
        )

    def _set_up_turns(self, settings: Settings) -> None:
        self._rewrite_model = build_model("REWRITE_MODEL", settings.rewrite_model) if settings.rewrite_model else None
        answering = Answering(
            agent=GeneralAgent(self._model, instructions=settings.instructions),
            miniapps=self.miniapps,
            states=self.states,
            load_history=self._load_history,
            has_budget=self._has_budget,
            clock=_now,
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
        )
        self.intake = Intake(
            conversations=self.conversations,
            states=self.states,
            prompts=self.prompts,
            miniapps=self.miniapps,
            turns=self.turns,
            bot=self._me,
        )

    # What Discord tells us

    async def setup_hook(self) -> None:
        for model in filter(None, (self._model, self._judge_model, self._rewrite_model)):
            await self._models.enter_async_context(model)
        self.decision_log.start()
        self._spawn(self.prompts.keep())
        self._spawn(self._sweep())
        self._spawn(sync(self.tree))

    async def on_ready(self) -> None:
        self.health.gateway_up()
        log.info("ready", bot=str(self.user), guilds=len(self.guilds))

    async def on_resumed(self) -> None:
        self.health.gateway_up()
        log.info("resumed")

    async def on_disconnect(self) -> None:
        self.health.gateway_down()

    async def on_message(self, message: discord.Message) -> None:
        if not is_said_by_people(message) or not self._is_new(message.id):
            return
        channel_id, me = message.channel.id, self._me()[1]
        is_active = self.conversations.get(channel_id) is not None
        if not is_active and not may_address(message, me):
            # Nearly every message of every channel ends here.
            self.decisions.add_ignored(message.id, channel_id, message.author.id, NOTHING)
            if log.is_enabled_for(logging.DEBUG):
                log_decision(log.debug, message, NOTHING, 0.0)
            return
        started = perf_counter()
        record = to_record(message, me)
        decision = await self._decide(message, record)
        is_news = is_active or decision not in (NOTHING, NOT_LISTED)
        note = self.decisions.add if is_news else self.decisions.add_ignored
        note(message.id, channel_id, message.author.id, decision)
        log_decision(log.info if is_news else log.debug, message, decision, perf_counter() - started)
        self._learn(record, _guild_id(message), channel_id, decision)
        if decision.respond:
            self.intake.submit(self._question(message, record, starts_conversation=not is_active))

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        await self.clicks.answer(interaction)

    async def on_raw_typing(self, payload: discord.RawTypingEvent) -> None:
        self.states.typing(payload.channel_id, payload.user_id)

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        message, channel_id, me = payload.message, payload.channel_id, self._me()[1]
        if message.author.bot:
            return
        self.learning.revised(message.id, channel_id, message.author.id, message.content)
        if self.conversations.get(channel_id):
            self.conversations.revise(channel_id, to_record(message, me))

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        self._messages_gone(payload.channel_id, {payload.message_id})

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        self._messages_gone(payload.channel_id, payload.message_ids)

    async def on_raw_reaction_add(self, payload: discord.RawReactionActionEvent) -> None:
        by_person = payload.member is not None and not payload.member.bot
        if by_person and payload.emoji.name.startswith(THUMBS_DOWN):  # the tone of the skin comes behind it
            self.learning.disliked(payload.message_id, _now())

    async def on_guild_channel_delete(self, channel: discord.abc.GuildChannel) -> None:
        self.forget(channel.id, None, discord.utils.time_snowflake(_now()))

    async def on_guild_remove(self, guild: discord.Guild) -> None:
        for channel in guild.channels:
            self.forget(channel.id, None, discord.utils.time_snowflake(_now()))

    def forget(self, channel_id: int, author_id: int | None, at: int) -> None:
        """Drops what is remembered of one person in a channel, or of the whole conversation.

        at: the id of what asked for it. By ids, as by Discord's own clock, older messages are told from newer ones.
        """
        self._forgotten[channel_id, author_id] = at
        self.learning.forgotten(channel_id, author_id, through=at)
        self.turns.withdraw(channel_id, lambda message: author_id in (None, message.author_id))
        self.prompts.forget(channel_id, author_id)
        self.miniapps.forget(channel_id, author_id)
        self.decisions.drop(lambda entry: entry.channel_id == channel_id and author_id in (None, entry.author_id))
        if author_id is None:
            self.conversations.end(channel_id)
        else:
            self.conversations.forget_author(channel_id, author_id)

    async def shut_down(self) -> None:
        """Finishes what is being answered, tells those cut off, and closes."""
        await self.turns.drain(DRAIN_SECONDS)
        await self.close()
        log.info("stopped", ignored_messages=self.decisions.ignored_count)

    async def close(self) -> None:
        for task in self._background:
            task.cancel()
        try:
            await super().close()
            await self._models.aclose()
        finally:
            await self.decision_log.close()

    # From a message to a decision

    async def _decide(self, message: discord.Message, record: MessageRecord) -> Decision:
        channel_id, me = message.channel.id, self._me()[1]
        if self._channels and channel_id not in self._channels:
            return NOT_LISTED
        conversation = self.conversations.get(channel_id)
        if conversation is None:
            decision = self._permit(message, record, self.decider.should_start_conversation(record, me))
            if decision.respond:
                self.conversations.start(channel_id, [record])
            return decision
        self._record(conversation, record)
        if self.turns.stop(record, channel_id):
            return Decision(False, Reason.STOP)
        if self.intake.resolves(record, conversation):
            return self._permit(message, record, AWAITED)
        decision = await self.decider.should_respond(record, conversation, me)
        if conversation.is_deleted(record.message_id):
            return Decision(False, Reason.DELETED)
        return self._permit(message, record, decision)

    def _learn(self, record: MessageRecord, guild_id: int, channel_id: int, decision: Decision) -> None:
        conversation = self.conversations.get(channel_id)
        if conversation is None or decision.reason is Reason.DELETED or self._is_forgotten(channel_id, record):
            return
        is_explicit, is_judgement = decision.tier == EXPLICIT.tier, decision.reason not in NOT_JUDGED
        self.learning.decided(
            record, guild_id, conversation, decision, is_explicit=is_explicit, is_judgement=is_judgement
        )

    def _record(self, conversation: ChannelConversation, record: MessageRecord) -> None:
        was_told_off = conversation.engagement.standing(record.author_id).told_off
        self.conversations.record_message(conversation.channel_id, record)
        if conversation.engagement.standing(record.author_id).told_off and not was_told_off:
            self.learning.told_off(conversation.channel_id, record.timestamp)

    def _permit(self, message: discord.Message, record: MessageRecord, decision: Decision) -> Decision:
        """The decision, unless something outside the conversation forbids to answer."""
        if not decision.respond:
            return decision
        if self.turns.draining:
            return replace(decision, respond=False, reason=Reason.SHUTTING_DOWN)
        allowed = _permissions(message)
        explicit = decision.reason in (Reason.EXPLICIT_TRIGGER, Reason.AWAITED)
        refusal = self.limits.admit(
            message.author.id,
            message.channel.id,
            explicit=explicit,
            now=_now(),
            # As long as there is budget it does not matter whether a model is needed, and is not found out.
            costs_tokens=self.limits.may_judge(_now()) or self.intake.needs_model(record, message.channel.id),
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
            self.turns.announce(self._question(message, to_record(message, self._me()[1])), _refusal_line(refusal))
        return replace(decision, respond=False, reason=reason)

    # Clicks

    def _refuse_click(self, interaction: discord.Interaction, prompt: Prompt) -> str | None:
        """Why a click cannot be taken now, in a sentence."""
        if self.turns.draining:
            return RESTARTING
        refusal = self.limits.admit(
            interaction.user.id,
            interaction.channel_id or 0,
            explicit=True,
            now=_now(),
            costs_tokens=prompt.miniapp_id is None,
        )
        return _refusal_line(refusal) if refusal else None

    def _submit_click(self, interaction: discord.Interaction, meaning: ProcessingResult) -> None:
        """Queues what somebody clicked, as if they had said it in reply to the card."""
        channel_id = interaction.channel_id or 0
        record = clicked_record(interaction, meaning.query, self._me()[1])
        self.conversations.record_message(channel_id, record)
        place = Place(
            self._me()[0], interaction.guild.name if interaction.guild else "", getattr(interaction.channel, "name", "")
        )
        question = Question(record, interaction.guild_id or 0, channel_id, place, card_id=record.reply_to_id)
        self.intake.resolve(question, meaning)

    # Parts for the wiring

    def _open_wire(self, guild_id: int, channel_id: int) -> NotedWire:
        return NotedWire(self, guild_id, channel_id, self.learning.outcomes)

    async def _ask_judge(self, message: MessageRecord, conversation: ChannelConversation) -> Verdict:
        if conversation.channel_id in self._judging or not self.limits.may_judge(_now()):
            raise JudgeError("it is busy with this channel, or today's token budget is nearly spent")
        self._judging.add(conversation.channel_id)
        try:
            return await self._judge(message, conversation)
        finally:
            self._judging.discard(conversation.channel_id)

    def _me(self) -> tuple[str, int]:
        """The bot's name and id."""
        return (self.user.name, self.user.id) if self.user else ("Parley", 0)

    def _has_budget(self) -> bool:
        return self.limits.has_budget(_now())

    def _spend(self, tokens: int) -> None:
        self.limits.spend(tokens, _now())

    def _question(
        self, message: discord.Message, record: MessageRecord, *, starts_conversation: bool = False
    ) -> Question:
        guild = message.guild.name if message.guild else ""
        place = Place(self._me()[0], guild, getattr(message.channel, "name", ""))
        return Question(record, _guild_id(message), message.channel.id, place, starts_conversation)

    def _is_new(self, message_id: int) -> bool:
        """Whether it is seen for the first time: after a RESUME Discord can send one twice."""
        if message_id in self._seen:
            return False
        self._seen[message_id] = None
        if len(self._seen) > SEEN_IDS:
            self._seen.popitem(last=False)
        return True

    def _messages_gone(self, channel_id: int, message_ids: Collection[int]) -> None:
        self.turns.withdraw(channel_id, lambda message: message.message_id in message_ids)
        self.prompts.messages_gone(channel_id, message_ids)
        self.miniapps.retract(channel_id, message_ids)
        self.learning.deleted(message_ids, _now())
        self.conversations.forget_messages(channel_id, message_ids)
        for message_id in message_ids:
            self.decisions.discard(message_id)

    async def _load_history(self, question: Question) -> Sequence[MessageRecord]:
        """What was said shortly before a question, from the cache or, where that is thin, from Discord."""
        asked, me = question.message, self._me()[1]
        earlier = await read_before(self, question.guild_id, question.channel_id, asked.message_id, HISTORY_MESSAGES)
        recent = [m for m in earlier if asked.timestamp - m.created_at < HISTORY_AGE]
        records = [to_record(m, me) for m in recent if m.author.id == me or is_persons(m)]
        return [r for r in records if not self._is_forgotten(question.channel_id, r)]

    def _is_forgotten(self, channel_id: int, record: MessageRecord) -> bool:
        """Whether its author, whom it answers, or the whole channel was forgotten since: it must not come back.

        Our answer to a click replies to our own card: whom it answers is not known, so any who was forgotten counts.
        """
        who = {None, record.author_id, *record.addressees}
        answers_ourselves = record.is_bot and record.addressees <= {record.author_id}
        marks = (
            at
            for (channel, whose), at in self._forgotten.items()
            if channel == channel_id and (answers_ourselves or whose in who)
        )
        return any(record.message_id <= at for at in marks)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = _now()
            self.conversations.sweep()
            self.states.sweep()
            self.limits.sweep(now)
            self.learning.outcomes.sweep(now.timestamp())
            # Older messages are not read from a channel's history anyway.
            oldest = discord.utils.time_snowflake(now - HISTORY_AGE)
            self._forgotten = {key: at for key, at in self._forgotten.items() if at > oldest}


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
    try:
        settings = load_settings()
        configure_logging(settings.log_level, secrets_of(settings))
        _warn_of(settings)
        return asyncio.run(run(settings))
    except (SettingError, UnusableModelError, RefusedError) as error:
        sys.stderr.write(f"{error}\n")
        return 2


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
    if settings.redis_url:
        log.warning("redis_unused", meaning="this version keeps nothing in Redis")


def _permissions(message: discord.Message) -> discord.Permissions:
    """What the bot may do where the message stands, as far as the cache knows."""
    if message.guild is None or message.guild.me is None or not isinstance(message.channel, discord.abc.GuildChannel):
        return discord.Permissions.all()
    return message.channel.permissions_for(message.guild.me)


def log_decision(write: Callable[..., object], message: discord.Message, decision: Decision, seconds: float) -> None:
    """The one line on a message. Not to begin a conversation is an everyday matter, written at debug level."""
    write(
        "decided",
        guild=_guild_id(message),
        channel=message.channel.id,
        message=message.id,
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


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    sys.exit(main())
