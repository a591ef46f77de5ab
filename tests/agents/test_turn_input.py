"""agents/turn_input.py: what stands beside the words of the channel, and how long."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.messages import ImageUrl, ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agents.gateway import AgentRequest, Answer
from agents.general import GeneralAgent
from agents.turn_input import flat, next_history, turn_content
from files.reading import Picture
from place import Place, PlaceKind
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, said

QUESTION = said(ANNA, "and where is he?")
TURN = AgentRequest([], [QUESTION], [QUESTION], Place(bot_name="Parley", guild="The Guild", channel="general"), NOON)
SHARED = {"last_mentioned_user": "John", "last_mentioned_location": "Paris"}


def test_what_people_mentioned_last_is_a_note_before_the_others() -> None:
    assert flat(turn_content(replace(TURN, shared=SHARED, notes=["a note", "two\nlines"]))) == (
        "It is Monday, 2026-03-02 12:00 UTC. New in the channel:\n"
        "Anna: and where is he?\n"
        "(Note: Last mentioned in the channel, in people's own words: "
        '{"last_mentioned_user": "John", "last_mentioned_location": "Paris"})\n'
        "(Note: a note)\n(Note: two\n    lines)\n"
        'Now answer "Anna".'
    )


def test_the_history_keeps_none_of_it() -> None:
    history = next_history(replace(TURN, shared=SHARED, notes=["a note"]), ModelResponse(parts=[TextPart("here")]))
    assert isinstance(history[0], ModelRequest)
    (prompt,) = history[0].parts
    assert isinstance(prompt, UserPromptPart)
    assert flat(prompt.content) == flat(turn_content(TURN))


@pytest.mark.parametrize("is_newcomer", [False, True])
async def test_the_history_keeps_what_a_newcomer_was_not_sent_and_no_note_that_was(is_newcomer: bool) -> None:
    sent: list[str] = []

    async def answer(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        sent.append(str(messages))
        yield "Nothing."

    before = said(BEN, "the key is under the mat")
    asked = said(ANNA, "what is new?")
    said_of = {asked.message_id: asked} if is_newcomer else None
    turn = replace(TURN, transcript=[before, asked], questions=[asked], notes=["a note"], said=said_of)
    outcome = await GeneralAgent(FunctionModel(stream_function=answer)).respond(turn, lambda _: None)
    assert isinstance(outcome, Answer)
    (read,), kept = sent, str(outcome.history)
    assert ("under the mat" in read, "a note" in read) == (not is_newcomer, True)
    assert ("under the mat" in kept, "a note" in kept) == (True, False)


def test_whoever_may_decline_is_told_how_many_are_in_the_thread_and_whether_the_author_opened_it() -> None:
    def told(**place: Any) -> str:
        where = Place(bot_name="Parley", **place)
        return str(flat(turn_content(replace(TURN, place=where, may_decline=True))))

    thread = {"kind": PlaceKind.THREAD, "people": 3}
    assert '3 people are in this thread, which "Anna" opened. You were not mentioned.' in told(**thread, is_opener=True)
    assert "3 people are in this thread. You were not mentioned." in told(**thread)
    assert "thread" not in told()


def test_the_pictures_that_were_read_are_shown_whatever_else_stands_in_the_channel() -> None:
    pictures = [f"https://cdn.discordapp.com/attachments/1/{number}.png" for number in range(6)]
    asked, later = said(ANNA, "what are these?", images=tuple(pictures[:2])), said(ANNA, "", images=tuple(pictures[2:]))
    read = {url: Picture(url) for url in pictures[:4]} | {pictures[4]: "(You cannot read it.)", pictures[5]: ""}
    turn = replace(TURN, transcript=[asked, later], questions=[asked], attached=read)
    content = turn_content(turn)
    assert [item.url for item in content if isinstance(item, ImageUrl)] == pictures[:4]
    assert "(You cannot read it.)" in str(flat(content, images=False))
