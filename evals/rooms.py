"""`python -m evals.rooms ROOMS.jsonl > PREDICTIONS.jsonl`: the decider's decision on each message of the rooms.

One JSON object a line for every message of a person, in order: c (the conversation's id), i (the message's index),
respond, reason, and score: what the decision goes by; said: how sure it is that it was said to the bot at all.

Teacher-forced, the bot's past is the one in the file, whatever was decided. With --free its scripted words appear only
where it decided to answer, and where it answered what it should not, a neutral line of its own stands there.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Self

import orjson
from pydantic import Field, model_validator

from conversation import ChannelConversation, ConversationManager
from decider import Decision, ResponseDecider, TrainedFollowup, is_explicit_trigger
from evals.examples import BOT, BOT_NAME, FIRST_DAY, PEOPLE, ExampleError, Strict, read_lines
from followup.model import Eagerness, FollowupModel, ModelFileError, load_model
from state.message import MessageRecord

CHANNEL = 1
HISTORY = timedelta(hours=1)
HISTORY_MESSAGES = 20  # as the bot reads them when a conversation begins
ANSWER_SECONDS = 4.0  # after which a neutral line stands there
NEUTRAL = (
    "That depends on what you are after.",
    "Hard to say from here, but it sounds plausible.",
    "There is more than one way to look at that.",
    "It varies a lot, so take it with a grain of salt.",
    "Good to know. I would leave it as it is.",
)


class Line(Strict):
    """One message. t: seconds since the start; reply_to: index of what it replies to; to: for whom it is."""

    t: Annotated[float, Field(ge=0, le=10_000_000, strict=False)]
    speaker: Annotated[str, Field(alias="from")]
    text: str
    reply_to: int | None = None
    to: list[str]
    answer: Literal["yes", "no", "either"] | None = None
    why: str = ""

    @property
    def is_bot(self) -> bool:
        return self.speaker == "BOT"

    @property
    def is_to_bot(self) -> bool:
        return "BOT" in self.to


class Room(Strict):
    """One conversation, as in the README of the data."""

    id: str
    kind: str
    people: list[str]
    messages: list[Line]

    @model_validator(mode="after")
    def _refers_to_what_is_there(self) -> Self:
        known = {"", "bot", BOT_NAME.casefold(), *(name.strip().casefold() for name in self.people)}
        if len(known) != len(self.people) + 3:
            raise ValueError(f"people: two have one name, or one has none, or that of the bot (BOT, {BOT_NAME})")
        for index, line in enumerate(self.messages):
            if not line.is_bot and (line.speaker not in self.people or line.answer is None):
                raise ValueError(f"message {index}: its author is none of the people, or it has no answer label")
            if line.reply_to is not None and not 0 <= line.reply_to < index:
                raise ValueError(f"message {index}: it replies to no earlier message")
        return self

    @cached_property
    def ids(self) -> dict[str, int]:
        return {"BOT": BOT, **{name: PEOPLE + place for place, name in enumerate(self.people)}}

    @cached_property
    def _names(self) -> re.Pattern[str]:
        names = sorted((BOT_NAME, *self.people), key=len, reverse=True)
        return re.compile("@(" + "|".join(map(re.escape, names)) + ")", re.IGNORECASE)

    def _mention(self, at: re.Match[str]) -> str:
        ids = {BOT_NAME.casefold(): BOT, **{name.casefold(): self.ids[name] for name in self.people}}
        # To a regular expression "İ" is an "i", which it is not when it is folded.
        found = ids.get(at[1].casefold())
        return at[0] if found is None else f"<@{found}>"

    def record(self, index: int) -> MessageRecord:
        """The message as the bot would have it."""
        line = self.messages[index]
        content = self._names.sub(self._mention, line.text)
        answered = None if line.reply_to is None else self.messages[line.reply_to]
        return MessageRecord(
            author=BOT_NAME if line.is_bot else line.speaker,
            author_id=self.ids[line.speaker],
            content=content,
            timestamp=FIRST_DAY + timedelta(seconds=line.t),
            is_bot=line.is_bot,
            message_id=_message_id(index),
            mentioned=frozenset() if line.is_bot else None,
            mentions_group="@everyone" in content or "@here" in content,
            reply_to_id=None if line.reply_to is None else _message_id(line.reply_to),
            reply_to_author_id=None if answered is None else self.ids[answered.speaker],
            addressees=frozenset(self.ids[name] for name in line.to if name in self.ids)
            if line.is_bot
            else frozenset(),
        )

    @cached_property
    def scripted(self) -> frozenset[int]:
        """The messages that the file has an answer to."""
        return frozenset(
            to for index, line in enumerate(self.messages) if line.is_bot for to in self.answered_by(index)
        )

    def answered_by(self, index: int) -> Sequence[int]:
        """The messages that a scripted answer is to: what it replies to, and what that person asked just before."""
        asked = self.messages[index].reply_to
        if asked is None:
            return ()
        found = [asked]
        for earlier in range(asked - 1, -1, -1):
            line = self.messages[earlier]
            if line.is_bot and self.messages[asked].speaker in line.to:
                break
            if line.answer == "yes" and line.speaker == self.messages[asked].speaker:
                found.append(earlier)
        return found


def _message_id(index: int) -> int:
    return 10 * (index + 1)


@dataclass(slots=True)
class Moment:
    """A person's message, and the conversation it is said in, in which it is recorded; None: outside of any.

    is_open: somebody has called the bot before, and this message does not. responds: what was decided, to be set by
    whoever plays the room free.
    """

    room: Room
    index: int
    message: MessageRecord
    conversation: ChannelConversation | None
    is_open: bool
    responds: bool = False

    @property
    def line(self) -> Line:
        return self.room.messages[self.index]

    @property
    def is_direct(self) -> bool:
        """Whether it calls the bot."""
        return is_explicit_trigger(self.message, BOT)


def play(room: Room, *, free: bool = False, timeout_seconds: float = 120) -> Iterator[Moment]:
    """The messages of people, in order, in conversations as the bot keeps them.

    free: the bot says what `responds` comes to; otherwise what it says in the file.
    """
    now = FIRST_DAY
    manager = ConversationManager(timeout_seconds, clock=lambda: now)
    said: list[MessageRecord] = []
    answered: set[int] = set()
    has_begun = False
    for index, line in enumerate(room.messages):
        if line.is_bot and free and answered.isdisjoint(room.answered_by(index)):
            continue
        record, now = room.record(index), FIRST_DAY + timedelta(seconds=line.t)
        if line.is_bot:
            manager.record_message(CHANNEL, record)
            said.append(record)
            continue
        conversation = manager.get(CHANNEL)
        if conversation:
            manager.record_message(CHANNEL, record)
        elif is_explicit_trigger(record, BOT):
            conversation = manager.start(CHANNEL, [record])
            conversation.precede([m for m in said[-HISTORY_MESSAGES:] if now - m.timestamp < HISTORY])
        said.append(record)
        calls = is_explicit_trigger(record, BOT)
        has_begun |= calls
        moment = Moment(room, index, record, conversation, is_open=has_begun and not calls)
        yield moment
        if not (free and moment.responds):
            continue
        answered.add(index)
        if index not in room.scripted:
            neutral = _neutral(room, index, now)
            manager.record_message(CHANNEL, neutral)
            said.append(neutral)


def _neutral(room: Room, index: int, now: datetime) -> MessageRecord:
    """What the bot says where the file has no words for it."""
    later = room.messages[index + 1].t if index + 1 < len(room.messages) else float("inf")
    wait = min(ANSWER_SECONDS, later - room.messages[index].t)
    return MessageRecord(
        author=BOT_NAME,
        author_id=BOT,
        content=NEUTRAL[index % len(NEUTRAL)],
        timestamp=now + timedelta(seconds=wait),
        is_bot=True,
        message_id=_message_id(index) + 1,
        mentioned=frozenset(),
        reply_to_id=_message_id(index),
        reply_to_author_id=room.ids[room.messages[index].speaker],
        addressees=frozenset({room.ids[room.messages[index].speaker]}),
    )


def read_rooms(path: Path) -> list[Room]:
    """The rooms of a file. Raises ExampleError as read_lines does."""
    return list(read_lines(path, Room))


def decide(rooms: Iterable[Room], decider: ResponseDecider, *, free: bool = False) -> Iterator[tuple[Moment, Decision]]:
    """What the decider makes of each message of people, in order, as the running bot would take it."""
    with asyncio.Runner() as runner:
        for room in rooms:
            for moment in play(room, free=free):
                decision = runner.run(_decision(moment, decider))
                moment.responds = decision.respond
                yield moment, decision


async def _decision(moment: Moment, decider: ResponseDecider) -> Decision:
    if moment.conversation is None or len(moment.conversation.messages) == 1:
        return decider.should_start_conversation(moment.message, BOT)
    return await decider.should_respond(moment.message, moment.conversation, BOT)


def predict(
    rooms: Iterable[Room], model: FollowupModel, eagerness: Eagerness, *, free: bool = False
) -> Iterator[bytes]:
    """The lines of predictions."""
    for moment, decision in decide(rooms, ResponseDecider(followup=TrainedFollowup(model, eagerness)), free=free):
        said = 0.0
        if moment.conversation and not moment.is_direct:
            said = model.estimate(moment.message, moment.conversation, BOT).said
        row = {
            "c": moment.room.id,
            "i": moment.index,
            "respond": decision.respond,
            "reason": decision.reason,
            "score": decision.score,
            "said": 1.0 if moment.is_direct else said,
        }
        yield orjson.dumps(row) + b"\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m evals.rooms", description=__doc__)
    parser.add_argument("rooms", type=Path, help="rooms, one JSON object a line; .gz or not")
    parser.add_argument("--eagerness", type=Eagerness, choices=list(Eagerness), default=Eagerness.BALANCED)
    parser.add_argument("--free", action="store_true", help="the bot's own decisions shape what comes after them")
    arguments = parser.parse_args()
    try:
        for line in predict(read_rooms(arguments.rooms), load_model(), arguments.eagerness, free=arguments.free):
            sys.stdout.buffer.write(line)
    except (ExampleError, ModelFileError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
