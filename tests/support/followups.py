"""Deciders with one second tier or the other, and what is decided on one message after others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from conversation import ChannelConversation, MessageRecord
from decider import Decision, FollowupRules, Reason, ResponseDecider, TrainedFollowup
from followup.features import Features, features
from followup.model import Eagerness, FollowupModel, load_model
from tests.support.clock import NOON
from tests.support.people import BOT, CHANNEL


@cache
def shipped_model() -> FollowupModel:
    return load_model()


@dataclass(frozen=True)
class FixedTier:
    """A second tier that is always as sure as it is told."""

    score: float = 0.9
    doubt: tuple[float, float] = (0.4, 0.6)
    gate: tuple[float, float] = (0.3, 0.8)
    limited_gate: float = 0.5
    open_from: float = 0.4

    def __call__(self, _message: MessageRecord, _conversation: ChannelConversation, _bot_user_id: int, /) -> Decision:
        return Decision(self.score >= 0.5, Reason.FOLLOWUP, tier=2, score=self.score, evidence="so", contrary="not so")


def trained(eagerness: Eagerness = Eagerness.BALANCED, **more: Any) -> ResponseDecider:
    """The decider as the bot has it."""
    return ResponseDecider(followup=TrainedFollowup(shipped_model(), eagerness), **more)


def by_rules(window_seconds: float = 60, **more: Any) -> ResponseDecider:
    """The decider as the bot has it where its model cannot be used."""
    return ResponseDecider(followup=FollowupRules(window_seconds), window_seconds=window_seconds, **more)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def talk(*messages: MessageRecord) -> ChannelConversation:
    return ChannelConversation(CHANNEL, NOON, NOON, messages=list(messages))


async def decide(
    message: MessageRecord, earlier: Sequence[MessageRecord], decider: ResponseDecider | None = None
) -> Decision:
    """The decision on a message, which must be the same whether the message is recorded already or not."""
    decider, conversation = decider or trained(), talk(*earlier)
    before = await decider.should_respond(message, conversation, BOT)
    conversation.add(message)
    decision = await decider.should_respond(message, conversation, BOT)
    assert before == decision
    return decision


def look_at(message: MessageRecord, *earlier: MessageRecord) -> Features:
    """The message's features, which must be the same whether it is recorded already or not."""
    conversation = talk(*earlier)
    before = features(message, conversation, BOT)
    conversation.add(message)
    assert features(message, conversation, BOT) == before
    return before
