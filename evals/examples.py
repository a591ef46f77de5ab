"""Examples of decisions: read, checked, and turned into the conversation that the bot would have seen.

One JSON object a line, as in the README of the data: a message, the 12 messages before it and a few older ones,
counters of what those cannot show, and whether people linked the message to the bot's words.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from conversation import ChannelConversation
from state.engagement import RECENT, Engagement, Mark, Standing
from state.message import MessageRecord

BOT = 1
BOT_NAME = "Parley"
CHANNEL = 1
PEOPLE = 1_000  # where people's ids begin
NUMBER = 100_000  # of the message to decide on: how many were said before it
FIRST_DAY = datetime(2000, 1, 1, tzinfo=UTC)
LONG_AGO = timedelta(hours=1)
NAMED = re.compile(r"<@(BOT|U\d+)>")

Name = Annotated[str, Field(pattern=r"^(BOT|U\d{1,9})$")]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[int, Field(ge=0, le=10_000_000)]
Line = TypeVar("Line", bound=BaseModel)


class ExampleError(ValueError):
    """An example that cannot be read. Its text names the file, the line and the field."""


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Past(Strict):
    """An earlier message. ago: messages back, 1 is the one directly before; dt: seconds back."""

    ago: Annotated[int, Field(ge=1, lt=NUMBER)]
    dt: Seconds


class PastMessage(Past):
    """to: of the bot's own messages, whom it answered."""

    author: Name
    is_bot: bool
    text: str
    to: list[Name] = Field(default_factory=list)


class Counters(Strict):
    """Counted up to but excluding the message."""

    msgs_since_bot: Annotated[int, Field(ge=0, lt=NUMBER)]
    authors_since_bot: Count
    s_since_bot: Seconds
    min_since_bot: Count
    author_msgs_since_bot: Count
    bot_to_author: Past | None
    author_named_bot: Past | None
    bot_msgs_since_author: Annotated[int, Field(ge=0, lt=NUMBER)] | None
    msgs_5m: Count
    authors_5m: Count
    bot_msgs_5m: Count
    bot_partners_5m: Count


class Example(Strict):
    """One message to decide on. label, cont: it replies to the bot, it goes on with something that does."""

    id: str
    log: str
    bot: str
    label: Annotated[int, Field(ge=0, le=1)]
    explicit: bool
    cont: bool
    t: Seconds
    author: Annotated[str, Field(pattern=r"^U\d{1,9}$")]
    text: str
    mentions: list[Name]
    state: Counters
    context: list[PastMessage]

    @property
    def is_directed(self) -> bool:
        """Whether it was said to the bot."""
        return bool(self.label) or self.cont

    @property
    def now(self) -> datetime:
        return FIRST_DAY + timedelta(seconds=self.t)


def read_examples(path: Path) -> Iterator[Example]:
    """The examples of a file. Raises ExampleError as read_lines does."""
    return read_lines(path, Example)


def read_lines(path: Path, kind: type[Line]) -> Iterator[Line]:
    """The lines of a file, `.gz` or not. Raises ExampleError where it cannot be read, at the first broken line."""
    number = 0
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                number += 1
                if line.strip():
                    yield kind.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the whole line"
        raise ExampleError(f"{path}, line {number}, field {field}: {first['msg']}.") from None
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise ExampleError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None


def message_of(example: Example) -> MessageRecord:
    """The message. On IRC a name is no mention, only a name; the bot's own counts as the mention that it would be."""
    content = _content(example.text)
    return MessageRecord(
        author=example.author,
        author_id=_id(example.author),
        content=content,
        timestamp=example.now,
        is_bot=False,
        message_id=NUMBER,
        mentioned=_mentions(content),
    )


def conversation_of(example: Example) -> ChannelConversation:
    """The conversation before the message. What its messages cannot show is set from the counters."""
    conversation = ChannelConversation(CHANNEL, FIRST_DAY, example.now)
    for past in example.context:
        # Messages were left out in between: they count all the same.
        heard = conversation.heard
        heard.engagement = replace(heard.engagement, number=NUMBER - past.ago)
        conversation.add(record_of(past, example.now))
    conversation.heard.engagement = _completed(conversation.engagement, example)
    return conversation


def record_of(past: PastMessage, now: datetime) -> MessageRecord:
    content = _content(past.text)
    return MessageRecord(
        author=BOT_NAME if past.is_bot else past.author,
        author_id=BOT if past.is_bot else _id(past.author),
        content=content,
        timestamp=now - timedelta(seconds=past.dt),
        is_bot=past.is_bot,
        message_id=NUMBER - past.ago,
        mentioned=_mentions(content),
        addressees=frozenset(map(_id, past.to)),
    )


def _completed(seen: Engagement, example: Example) -> Engagement:
    """The engagement as the bot would have it that saw more than the messages of the context."""
    state = example.state
    spoke = Mark(NUMBER - 1 - state.msgs_since_bot, example.now - timedelta(seconds=state.s_since_bot))
    standing, to = seen.standing(_id(example.author)), state.bot_to_author
    before = Mark(0, example.now - LONG_AGO) if state.bot_msgs_since_author is not None else None
    author = replace(
        standing,
        spoke=standing.spoke or before,
        spoken_to=Mark(NUMBER - to.ago, example.now - timedelta(seconds=to.dt)) if to else None,
        bot_messages=NUMBER - (state.bot_msgs_since_author or 0),
    )
    known = {**seen.people, _id(example.author): author}
    return replace(
        seen,
        number=NUMBER,
        bot_messages=NUMBER,
        bot_spoke=spoke,
        bot=BOT,
        bot_name=BOT_NAME,
        people=known | _unseen(known, spoke, example),
    )


def _unseen(known: dict[int, Standing], spoke: Mark, example: Example) -> dict[int, Standing]:
    """People whom the counters count and the context does not show, each with an id of their own."""
    state, recent = example.state, example.now - RECENT
    people = known.values()
    since = sum(p.spoke is not None and p.spoke.number > spoke.number for p in people)
    lately = sum(p.spoke is not None and p.spoke.at >= recent for p in people)
    missing_since = max(0, state.authors_since_bot - since)
    missing_lately = max(0, state.authors_5m - bool(state.bot_msgs_5m) - lately - missing_since)
    after, before = Standing(spoke=Mark(spoke.number + 1, spoke.at)), Standing(spoke=Mark(0, recent))
    return dict(zip(count(-1, -1), [after] * missing_since + [before] * missing_lately, strict=False))


def _id(name: str) -> int:
    return BOT if name == "BOT" else PEOPLE + int(name[1:])


def _mentions(content: str) -> frozenset[int]:
    return frozenset({BOT} if f"<@{BOT}>" in content else ())


def _content(text: str) -> str:
    return NAMED.sub(lambda named: f"<@{_id(named[1])}>", text)
