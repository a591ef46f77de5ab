"""The conversation state manager: document 000's flows, and what holds beyond it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from state import ConversationStateManager, ProcessingResult, ResolutionType, RouteTarget
from state.awaiting import Miss
from state.prompts import Prompt
from tests.support.clock import FakeClock
from tests.support.people import ANNA, BEN

CHAT = "chat_123"
WHICH = {
    "awaiting_type": "awaiting_selection",
    "options": [{"name": "Shake Shack", "district": "Shibuya"}, {"name": "Shake Shack", "district": "Shinjuku"}],
    "context": {"original_query": "Shake Shack", "selection_type": "venue"},
    "source_handler": "trip_planner._add_single_venue",
}
ANY_TIPS = {
    "awaiting_type": "awaiting_metadata",
    "context": {"target_item_id": "v_abc123", "target_item_name": "Shake Shack"},
    "source_handler": "trip_planner._finalize_venue_add",
    "soft_context": {"last_action": "added_venue", "last_item_id": "v_abc123", "last_item_name": "Shake Shack"},
}
DELETE_ALL = {"awaiting_type": "awaiting_confirmation", "source_handler": "trip_planner._delete_all"}
TRIP_NAME = {"awaiting_type": "awaiting_input", "source_handler": "trip_planner._create"}


class Stage:
    def __init__(self, **how: Any) -> None:
        self.clock = FakeClock()
        self.manager = ConversationStateManager(clock=self.clock, **how)

    def ask(self, state: dict[str, Any] = WHICH, user: int | None = ANNA, chat: str = CHAT) -> Prompt:
        return self.manager.set_awaiting(chat, state, user_id=user)

    def say(self, text: str, user: int | None = ANNA, chat: str = CHAT, **how: Any) -> ProcessingResult:
        return self.manager.process_message(text, chat, how.pop("recent", ()), user_id=user, **how)


@pytest.fixture
def stage() -> Stage:
    return Stage()


# Document 000's flows


def test_flow_1_a_venue_is_selected_by_a_refinement_then_noted_on(stage: Stage) -> None:
    prompt = stage.ask()
    chosen = stage.say("in Shibuya")
    assert chosen.route_to is RouteTarget.MINIAPP
    assert chosen.miniapp_id == "trip_planner"
    assert chosen.resolution_type is ResolutionType.SELECTION
    assert chosen.resolution_data == {
        "type": "selection",
        "selection_index": 1,
        "selected_option": {"name": "Shake Shack", "district": "Shibuya"},
    }
    stage.manager.clear_awaiting(CHAT, ANNA)
    assert not stage.manager.clear_prompt(prompt)
    stage.ask(ANY_TIPS)
    noted = stage.say("get the shroom burger")
    assert (noted.route_to, noted.resolution_type) == (RouteTarget.MINIAPP, ResolutionType.METADATA)
    assert noted.resolution_data
    assert noted.resolution_data["metadata_type"] == "must_try"
    assert noted.resolution_data["target_item_id"] == "v_abc123"
    assert noted.soft_context["last_action"] == "added_venue"


def test_flow_2_an_incomplete_query_is_completed(stage: Stage) -> None:
    first = stage.say("What's the weather in Tokyo?")
    assert (first.route_to, first.enriched_query) == (RouteTarget.AGENT, "What's the weather in Tokyo?")
    assert not first.incomplete
    recent = [
        {"role": "user", "content": "What's the weather in Tokyo?"},
        {"role": "assistant", "content": "Sunny, 21 degrees."},
    ]
    second = stage.say("And tomorrow?", recent=recent)
    assert (second.route_to, second.enriched_query) == (RouteTarget.AGENT, "What's the weather in Tokyo tomorrow?")
    assert second.incomplete
    assert second.query == "And tomorrow?"


def test_flow_3_a_cancel_clears_the_prompt_and_goes_to_the_agent(stage: Stage) -> None:
    stage.ask()
    result = stage.say("nevermind")
    assert (result.route_to, result.resolution_type) == (RouteTarget.AGENT, ResolutionType.CANCEL)
    assert stage.say("2").resolution_type is None


# Whose prompt it is


def test_another_users_reply_never_resolves_it(stage: Stage) -> None:
    stage.ask(DELETE_ALL)
    assert stage.say("yes", BEN).resolution_type is None
    assert stage.say("yes", None).resolution_type is None
    assert stage.say("yes", chat="elsewhere").resolution_type is None
    assert stage.say("yes").resolution_data == {"type": "confirmation", "confirmed": True}


def test_one_opened_to_anyone_is_resolved_by_anyone(stage: Stage) -> None:
    stage.ask({**WHICH, "anyone": True})
    assert stage.say("2", BEN).resolution_type is ResolutionType.SELECTION
    assert stage.say("2", None).resolution_type is ResolutionType.SELECTION


def test_ones_own_comes_before_one_open_to_anyone(stage: Stage) -> None:
    stage.ask(DELETE_ALL, user=None)
    own = stage.ask(WHICH, user=ANNA)
    assert stage.manager.awaited_of(CHAT, ANNA) == own
    assert stage.say("2").resolution_type is ResolutionType.SELECTION
    assert stage.say("yes").resolution_type is ResolutionType.CONFIRMATION


def test_a_new_question_takes_the_place_of_the_same_users_last(stage: Stage) -> None:
    first = stage.ask(DELETE_ALL)
    second = stage.ask(WHICH)
    assert stage.say("yes").resolution_type is None
    assert stage.manager.find(CHAT, first.id) is None
    assert stage.manager.find(CHAT, second.id) == second


def test_a_message_for_others_resolves_nothing(stage: Stage) -> None:
    stage.ask(TRIP_NAME)
    assert stage.say("Tokyo Trip 2024", is_for_others=True).resolution_type is None
    assert stage.say("Tokyo Trip 2024").resolution_data == {"type": "input", "content": "Tokyo Trip 2024"}


def test_what_asks_for_a_flow_of_its_own_is_no_free_answer() -> None:
    stage = Stage(wants=lambda text, _: text.startswith("add "))
    for state in (TRIP_NAME, ANY_TIPS):
        stage.ask(state)
        assert stage.say("add a place I must try").resolution_type is None
    stage.ask(WHICH)
    assert stage.say("add the second one").resolution_type is ResolutionType.SELECTION


def test_the_agents_own_prompt_goes_back_to_the_agent(stage: Stage) -> None:
    stage.ask({"awaiting_type": "awaiting_confirmation", "source_handler": "agent"})
    stage.ask(DELETE_ALL, user=BEN)
    result = stage.say("yes")
    assert (result.route_to, result.miniapp_id) == (RouteTarget.AGENT, None)
    assert result.resolution_type is ResolutionType.CONFIRMATION


def test_a_message_from_before_the_question_could_be_read_answers_nothing(stage: Stage) -> None:
    def means(text: str, message_id: int) -> ResolutionType | None:
        return stage.manager.process_message(text, CHAT, user_id=ANNA, message_id=message_id).resolution_type

    prompt = stage.ask(DELETE_ALL)
    assert means("yes", 70) is None
    stage.manager.shown(prompt, 77, "Delete all?")
    assert means("yes", 76) is None
    assert means("yes", 78) is ResolutionType.CONFIRMATION
    stage.ask(WHICH)
    assert means("2", 79) is ResolutionType.SELECTION


def test_a_cancel_can_leave_its_prompt_open(stage: Stage) -> None:
    stage.ask()
    assert stage.say("nevermind", keeps_prompt=True).resolution_type is ResolutionType.CANCEL
    assert stage.say("2").resolution_type is ResolutionType.SELECTION


# Exactly once


def test_clearing_one_users_leaves_the_others(stage: Stage) -> None:
    stage.ask(DELETE_ALL, user=ANNA)
    stage.ask(user=BEN)
    assert stage.say("2", ANNA).resolution_type is None
    assert stage.say("yes", ANNA).resolution_type is ResolutionType.CONFIRMATION
    stage.manager.clear_awaiting(CHAT, ANNA)
    assert stage.say("yes", ANNA).resolution_type is None
    assert stage.say("2", BEN).resolution_type is ResolutionType.SELECTION
    stage.manager.clear_awaiting(CHAT)
    assert stage.say("2", BEN).resolution_type is None


# Its one deadline


def test_a_prompt_is_open_for_two_minutes(stage: Stage) -> None:
    prompt = stage.ask()
    stage.clock.advance(119)
    assert stage.manager.is_awaiting(CHAT)
    stage.clock.advance(1)
    assert not stage.manager.is_awaiting(CHAT)
    assert stage.say("2").resolution_type is None
    assert stage.manager.expire() == []  # what was said in time may still be on its way
    stage.clock.advance(2)
    assert stage.manager.expire() == [prompt]
    assert stage.manager.expire() == []
    assert stage.manager.next_deadline() is None


def test_typing_extends_it_but_does_not_shorten_it(stage: Stage) -> None:
    prompt = stage.ask()
    stage.manager.typing(CHAT, ANNA)
    assert stage.manager.next_deadline() == prompt.deadline
    stage.clock.advance(115)
    stage.manager.typing(CHAT, BEN)
    assert stage.manager.next_deadline() == prompt.deadline
    stage.manager.typing(CHAT, ANNA)
    stage.clock.advance(10)
    assert stage.say("2").resolution_type is ResolutionType.SELECTION


def test_nobody_can_keep_it_open_for_ever(stage: Stage) -> None:
    short = Stage(awaiting_ttl_seconds=60, cache_ttl_seconds=30)
    assert short.ask().deadline == short.clock.now + timedelta(seconds=30)
    stage.ask()
    for _ in range(100):
        stage.clock.advance(10)
        stage.manager.typing(CHAT, ANNA)
    assert not stage.manager.is_awaiting(CHAT)


def test_whoever_may_answer_extends_a_prompt_open_to_anyone(stage: Stage) -> None:
    prompt = stage.ask({**WHICH, "anyone": True})
    stage.clock.advance(110)
    stage.manager.typing(CHAT, BEN)
    assert stage.manager.next_deadline() == prompt.deadline + timedelta(seconds=5)


# Misses


def test_after_two_misses_it_asks_again_then_lets_go(stage: Stage) -> None:
    stage.ask()
    stage.clock.advance(100)
    assert stage.manager.missed(CHAT, BEN) is stage.manager.missed("elsewhere", ANNA) is None
    outcomes = [stage.manager.missed(CHAT, ANNA)]
    stage.clock.advance(100)  # a miss keeps it open for its whole time again
    assert stage.say("2").resolution_type is ResolutionType.SELECTION
    outcomes += [stage.manager.missed(CHAT, ANNA) for _ in range(3)]
    assert [found and found[1] for found in outcomes] == [Miss.STAYS_OPEN, Miss.ASKS_AGAIN, Miss.LETS_GO, None]
    assert stage.say("2").resolution_type is None


# Soft context


def test_soft_context_outlives_the_prompt_and_overrides_nothing(stage: Stage) -> None:
    context = {"last_action": "added_venue", "last_item_id": "v_abc123", "last_item_name": "Shake Shack"}
    stage.manager.set_soft_context(chat_guid=CHAT, context=context, source_miniapp_id="trip_planner")
    stage.clock.advance(299)
    result = stage.say("what else is there?")
    assert result.route_to is RouteTarget.AGENT
    assert result.soft_context == {**context, "source_miniapp_id": "trip_planner"}
    stage.clock.advance(1)
    assert not stage.say("what else is there?").soft_context


def test_what_chose_nothing_before_is_compared_again_in_other_words_and_with_other_prompts(stage: Stage) -> None:
    stage.ask()
    before = stage.say("what is the weather?")
    assert stage.say("what is the weather?", before=before).prompt is None
    assert stage.say("in Shibuya", before=before).resolution_type is ResolutionType.SELECTION
    before = stage.say("Osaka")
    assert before.prompt is None
    stage.ask({**WHICH, "options": ["Osaka", "Kyoto"]})
    assert stage.say("Osaka", before=before).resolution_type is ResolutionType.SELECTION


# Metrics and bounds


def test_the_metrics_are_the_documents_twelve_and_count_each_message_once(stage: Stage) -> None:
    stage.ask(ANY_TIPS)
    stage.say("get the fries")
    stage.manager.clear_awaiting(CHAT)
    stage.say("And tomorrow?", recent=[{"role": "user", "content": "What's the weather in Tokyo?"}])
    stage.say("hello", chat="elsewhere", before=stage.say("hello", chat="elsewhere"))
    metrics = stage.manager.get_metrics()
    assert float(metrics.pop("avg_processing_time_ms")) > 0
    assert metrics == {
        "total_processed": 3,
        "routed_to_miniapp": 1,
        "routed_to_agent": 2,
        "routed_to_gpt5": 2,
        "awaiting_resolutions": 1,
        "soft_context_hits": 2,
        "queries_enriched": 1,
        "cache_hits": 2,
        "cache_misses": 1,
        "miniapp_route_rate": "33.3%",
        "enrichment_rate": "33.3%",
        "cache_hit_rate": "66.7%",
    }


def test_idle_channels_are_dropped_after_ten_minutes(stage: Stage) -> None:
    for number in range(10_000):
        stage.say("hello", chat=f"chat {number}")
        assert len(stage.manager) == number
        stage.ask(ANY_TIPS, chat=f"chat {number}")
    stage.clock.advance(602)
    stage.manager.sweep()
    assert len(stage.manager) == 10_000  # each has a prompt that nobody expired
    stage.manager.expire()
    stage.manager.sweep()
    assert len(stage.manager) == 0


def test_forgetting_a_person_drops_their_prompt_and_the_soft_context(stage: Stage) -> None:
    annas, bens = stage.ask(ANY_TIPS), stage.ask(user=BEN)
    assert stage.manager.forget(CHAT, ANNA) == [annas]
    assert not stage.say("hm", ANNA).soft_context
    assert stage.manager.forget(CHAT, None) == [bens]


def test_forgetting_a_person_leaves_their_id_in_no_prompt_that_comes_from_others_too(stage: Stage) -> None:
    stage.manager.set_awaiting(
        CHAT, {"awaiting_type": "awaiting_confirmation"}, user_id=BEN, people=frozenset({ANNA, BEN})
    )
    stage.manager.forget(CHAT, ANNA)
    assert [p.people for p in stage.manager.prompts(CHAT)] == [{BEN}]


def test_forgetting_a_person_drops_what_they_led_to_though_anyone_may_answer_it(stage: Stage) -> None:
    prompt = stage.ask({**WHICH, "anyone": True}, user=ANNA)
    assert stage.manager.forget(CHAT, BEN) == []
    assert stage.manager.forget(CHAT, ANNA) == [prompt]
