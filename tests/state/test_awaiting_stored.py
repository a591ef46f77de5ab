"""state/awaiting.py: what a restart leaves of prompts and soft context, and that every change is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from state import ConversationStateManager, ResolutionType
from state.prompts import ChatGuid, Prompt
from tests.support.clock import NOON, FakeClock
from tests.support.people import ANNA, BEN, CHANNEL

WHICH = {
    "awaiting_type": "awaiting_selection",
    "options": [{"name": "Shake Shack", "district": "Shibuya", "tags": ["hot"]}, "Ichiran"],
    "context": {"original_query": "Shake Shack", "ids": [1, 2]},
    "source_handler": "trip_planner._add_single_venue",
    "soft_context": {"last_action": "searched"},
}
DELETE_ALL = {"awaiting_type": "awaiting_confirmation", "source_handler": "trip_planner._delete_all"}


class Process:
    """A manager, and which channels it said have changed."""

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.changed: list[ChatGuid] = []
        self.manager = ConversationStateManager(clock=self.clock, on_change=self.changed.append)

    def ask(self, state: dict[str, Any] = WHICH, user: int | None = ANNA, chat: ChatGuid = CHANNEL) -> Prompt:
        return self.manager.set_awaiting(
            chat, state, user_id=user, question="Which one?", guild_id=70, source_id=5, source_miniapp_id="trip_planner"
        )

    def resolution(self, text: str, user: int = ANNA) -> ResolutionType | None:
        return self.manager.process_message(
            text, CHANNEL, user_id=user, message_id=100, keeps_prompt=True
        ).resolution_type

    def die(self, seconds: float = 0, chat: ChatGuid = CHANNEL) -> Process:
        """The next process, which knows what was stored."""
        later = Process(self.clock)
        stored = json.loads(json.dumps(self.manager.stored(chat)))
        self.clock.advance(seconds)
        later.manager.restore(chat, stored)
        return later


@pytest.fixture
def process() -> Process:
    return Process()


# What outlives a restart


@pytest.mark.parametrize("chat", [CHANNEL, "chat_123", "700"])
def test_prompts_come_back_as_they_were(process: Process, chat: ChatGuid) -> None:
    annas, anyones = process.ask(chat=chat), process.ask({**DELETE_ALL, "anyone": True}, BEN, chat)
    process.manager.shown(annas, 77, "Which one?\n1. Shibuya")
    process.clock.advance(50)
    process.manager.missed(chat, ANNA)
    before = process.manager.prompts(chat)
    later = process.die(chat=chat)
    assert later.manager.prompts(chat) == before == [process.manager.find(chat, annas.id), anyones]
    assert later.manager.soft_context(chat) == {"last_action": "searched", "source_miniapp_id": "trip_planner"}
    assert later.manager.stored(chat) == process.manager.stored(chat)
    assert later.manager.next_deadline() == process.manager.next_deadline()
    assert later.changed == []


def test_one_past_its_deadline_is_there_to_be_expired(process: Process) -> None:
    prompt = process.ask()
    assert process.die(119).resolution("the first one", BEN) is None
    later = process.die()
    assert later.resolution("the first one") is ResolutionType.SELECTION
    later = later.die(1)
    assert later.resolution("the first one") is None
    assert not later.manager.is_awaiting(CHANNEL)
    assert later.die(2).manager.expire() == [prompt]


@pytest.mark.parametrize(("seconds", "known"), [(299, True), (300, False)])
def test_soft_context_comes_back_unless_it_has_expired(process: Process, seconds: float, *, known: bool) -> None:
    process.manager.set_soft_context(CHANNEL, {"last_action": "searched"})
    later = process.die(seconds)
    assert bool(later.manager.soft_context(CHANNEL)) is known
    assert (later.manager.stored(CHANNEL) is not None) is known


def test_where_nothing_is_kept_nothing_is_stored(process: Process) -> None:
    assert process.manager.stored(CHANNEL) is None
    process.manager.clear_prompt(process.ask(DELETE_ALL))
    assert process.manager.stored(CHANNEL) is None
    process.manager.set_soft_context(CHANNEL, {"last_action": "searched"})
    assert process.manager.stored(CHANNEL)
    process.clock.advance(300)
    assert process.manager.stored(CHANNEL) is None


def test_what_is_there_already_stays(process: Process) -> None:
    process.ask()
    later = Process(process.clock)
    asked = later.ask({**DELETE_ALL, "soft_context": {"last_action": "asked"}})
    later.ask(DELETE_ALL, BEN)
    later.manager.restore(CHANNEL, process.manager.stored(CHANNEL))
    assert later.manager.prompts(CHANNEL)[0] == asked
    assert len(later.manager.prompts(CHANNEL)) == 2
    assert later.manager.soft_context(CHANNEL)["last_action"] == "asked"


def test_what_is_stored_belongs_to_the_channel_that_it_is_restored_in(process: Process) -> None:
    prompt = process.ask()
    process.manager.restore("elsewhere", process.manager.stored(CHANNEL))
    assert process.manager.prompts("elsewhere") == [replace(prompt, chat_guid="elsewhere")]


def test_what_cannot_be_read_is_refused_and_changes_nothing(process: Process) -> None:
    process.ask()
    stored: Any = process.manager.stored(CHANNEL)
    (prompt,) = stored["prompts"]
    wrong: list[dict[str, Any]] = [{"deadline": "2026-03-02T12:00:00"}, {"deadline": "soon"}, {"ask": {}}]
    changes: list[dict[str, Any]] = [
        {"prompts": None},
        {"prompts": [{}]},
        {"soft_context": "busy"},
        {"used": "2026-03-02T12:00:00"},
    ]
    changes += [{"prompts": [{**prompt, **each}]} for each in wrong]
    later = Process(process.clock)
    refused: list[Any] = [None, [], {}, *({**stored, **change} for change in changes)]
    for nonsense in refused:
        with pytest.raises(ValueError, match="validation error"):
            later.manager.restore(CHANNEL, nonsense)
    assert len(later.manager) == 0


# What is told of changes

Change = Callable[[ConversationStateManager, Prompt], object]


@pytest.mark.parametrize(
    "change",
    [
        lambda manager, _: manager.set_awaiting(CHANNEL, DELETE_ALL, user_id=BEN),
        lambda manager, _: manager.set_soft_context(CHANNEL, {"last_action": "added"}),
        lambda manager, _: manager.drop_soft_context(CHANNEL),
        lambda manager, prompt: manager.clear_prompt(prompt),
        lambda manager, _: manager.clear_awaiting(CHANNEL),
        lambda manager, _: manager.process_message("nevermind", CHANNEL, user_id=ANNA),
        lambda manager, prompt: manager.shown(prompt, 77, "Which one?"),
        lambda manager, prompt: manager.extend(prompt, 300),
        lambda manager, _: manager.missed(CHANNEL, ANNA),
        lambda manager, _: manager.forget(CHANNEL, ANNA),
        lambda manager, _: (manager._clock.advance(601), manager.expire()),
    ],
)
def test_what_changes_is_told(process: Process, change: Change) -> None:
    prompt = process.ask()
    process.changed.clear()
    before = process.manager.stored(CHANNEL)
    change(process.manager, prompt)
    assert set(process.changed) == {CHANNEL}
    assert process.manager.stored(CHANNEL) != before


@pytest.mark.parametrize(
    "change",
    [
        lambda manager, _: manager.process_message("hello", CHANNEL, user_id=ANNA),
        lambda manager, _: manager.process_message("the first one", CHANNEL, user_id=ANNA),
        lambda manager, _: manager.typing(CHANNEL, ANNA),
        lambda manager, prompt: manager.extend(prompt, 1),
        lambda manager, prompt: manager.shown(replace(prompt, id="gone"), 77, "Which one?"),
        lambda manager, prompt: manager.clear_prompt(replace(prompt, id="gone")),
        lambda manager, _: manager.missed(CHANNEL, BEN),
        lambda manager, _: manager.drop_soft_context("elsewhere"),
        lambda manager, _: manager.forget("elsewhere", None),
        lambda manager, _: (manager.expire(), manager.sweep()),
    ],
)
def test_nothing_is_told_where_nothing_changes(process: Process, change: Change) -> None:
    prompt = process.ask()
    process.changed.clear()
    before = process.manager.stored(CHANNEL)
    change(process.manager, prompt)
    assert process.changed == []
    assert process.manager.stored(CHANNEL) == before


def test_every_extension_by_typing_is_told_or_the_deadline_would_drift(process: Process) -> None:
    process.ask()
    process.clock.advance(115)
    process.changed.clear()
    for _ in range(3):
        process.manager.typing(CHANNEL, ANNA)
        process.clock.advance(8)
    assert process.changed == [CHANNEL] * 3
    assert process.die().manager.next_deadline() == NOON + timedelta(seconds=115 + 16 + 15)
