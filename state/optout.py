"""Who opted out of being read, and what is still kept of their messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field, TypeAdapter

from state.message import NOBODY, MessageRecord, requoted
from understanding.names import SOMEBODY

UNREAD = "(a message of somebody who does not want to be read)"
FORGOTTEN = "(forgotten at somebody's request)"
IDS = TypeAdapter(list[Annotated[int, Field(strict=True, gt=0)]])


class OptOut(set[int]):
    """The ids of those who opted out."""


def redacted(record: MessageRecord) -> MessageRecord:
    """The part of a message by somebody who opted out that may be kept: its place, its ids and whom it addresses."""
    return without_quote(
        replace(record, author=SOMEBODY, content="", mentioned=record.mentions, readable=UNREAD, images=(), files=())
    )


def without_quote(record: MessageRecord) -> MessageRecord:
    """A message that replies to somebody who opted out, without their name and words."""
    return replace(requoted(record, None), reply_to_author="")


def without_label(record: MessageRecord) -> MessageRecord:
    """A click without the words of its button, which were the bot's and may be somebody's who was forgotten."""
    return replace(requoted(record, None), content="", readable=FORGOTTEN, drew_on=NOBODY)
