"""What the follow-up model is trained on: a row for each message, of rooms and of IRC."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from conversation import ChannelConversation
from decider import is_explicit_trigger
from evals.examples import (
    BOT,
    CHANNEL,
    FIRST_DAY,
    NAMED,
    Example,
    conversation_of,
    message_of,
    record_of,
)
from evals.rooms import Moment, Room, play
from followup.features import before_it, features
from followup.text_features import Group, groups
from state.message import MessageRecord

MENTION = re.compile(r"<@\d+>[,:]?")
CALL = re.compile(r"^\s*<@(BOT|U\d+)>\s*[:,]?\s*(-\s)?")
STRIPPED_WEIGHT = 0.3
NOISY_WEIGHT = 0.4
NOISE = ((0.05, 0.2), (0.3, 0.08))  # how often the bot is made to butt in, and to be deaf, in a noisy room
EXPLICIT_WEIGHT = 0.3
QUIET_NEGATIVES = 0.25
QUIET_WEIGHT = 0.3
UNNAMED = 0.8  # how often a name in front is left out in a quiet room


@dataclass(frozen=True, slots=True)
class Row:
    """One message, ready to train on. said: to the bot; wants: an answer, None: not known, or open to taste.

    words: of text_features; group: the conversation or log that it is of; is_judged: it stands as it was said, and no
    rule decides it, so that it counts in what is measured.
    """

    values: list[float]
    words: list[Group]
    said: bool
    wants: bool | None
    group: str
    weight: float = 1.0
    is_room: bool = True
    is_judged: bool = True


def _row(message: MessageRecord, conversation: ChannelConversation, **more: object) -> Row:
    found = features(message, conversation, BOT)
    words = list(groups(message.wording, message.content, before_it(found)))
    return Row([float(value) for value in found.values()], words, **more)  # type: ignore[arg-type]


def of_rooms(rooms: list[Room]) -> Iterator[Row]:
    """The rows of rooms: as they are, without the mentions that show to whom a message is, and with a bot that errs."""
    for room in rooms:
        for moment in play(room):
            if moment.conversation is None or moment.conversation.messages[0] is moment.message:
                continue
            if moment.is_open:
                yield _of(moment)
            if (moment.message.named or moment.message.reply_to_id) and (stripped := _stripped(moment)):
                yield stripped
        for butts_in, is_deaf in NOISE:
            chance = random.Random(room.id)
            for moment in play(room, free=True):
                errs = chance.random() < (is_deaf if moment.line.answer == "yes" else butts_in)
                moment.responds = moment.is_direct or (moment.line.answer == "yes") is not errs
                if moment.conversation and moment.is_open:
                    yield replace(_of(moment), weight=NOISY_WEIGHT, is_judged=False)


def _of(moment: Moment) -> Row:
    assert moment.conversation is not None
    line = moment.line
    wants = None if line.answer == "either" else line.answer == "yes"
    return _row(moment.message, moment.conversation, said=line.is_to_bot, wants=wants, group=moment.room.id)


def _stripped(moment: Moment) -> Row | None:
    """The message without its mentions and without Discord's reply."""
    content = " ".join(MENTION.sub("", moment.message.content).split()).strip(" ,")
    conversation = moment.conversation
    if not content or conversation is None:
        return None
    bare = replace(moment.message, content=content, mentioned=None, reply_to_id=None, reply_to_author_id=None)
    before = replace(conversation, messages=conversation.messages[:-1])
    line = moment.line
    wants = None if line.answer == "either" else line.answer == "yes"
    row = _row(bare, before, said=line.is_to_bot, wants=wants, group=moment.room.id)
    return replace(row, weight=STRIPPED_WEIGHT, is_judged=False)


def of_irc(example: Example) -> Iterator[Row]:
    """The rows of an example: as it is, and for some as if its people had a room to themselves."""
    chance = random.Random(example.id)
    message, conversation = message_of(example), conversation_of(example)
    is_explicit = is_explicit_trigger(message, BOT)
    # Nobody annotated what wants an answer there; hardly anything that is said to a helper wants none.
    kind = {"said": example.is_directed, "wants": example.is_directed, "group": example.log, "is_room": False}
    if example.is_directed and not (is_explicit and chance.random() > EXPLICIT_WEIGHT):
        yield _row(message, conversation, **kind, weight=EXPLICIT_WEIGHT if is_explicit else 1.0)
    elif not example.is_directed:
        yield _row(message, conversation, **kind)
    if example.is_directed or chance.random() < QUIET_NEGATIVES:
        message, conversation = _quiet(example, chance)
        if any(m.is_bot for m in conversation.messages) and not is_explicit_trigger(message, BOT):
            yield _row(message, conversation, **kind, weight=QUIET_WEIGHT, is_judged=False)


def _quiet(example: Example, chance: random.Random) -> tuple[MessageRecord, ChannelConversation]:
    """The message among those of its author and of whom that one talks with, most of the names in front left out."""
    partners = {example.author, "BOT", *NAMED.findall(example.text)}
    for past in example.context:
        named = NAMED.findall(past.text)
        partners |= {*past.to} | ({*named} if past.author == example.author else set())
        partners |= {past.author} if example.author in named else set()
    conversation = ChannelConversation(CHANNEL, FIRST_DAY, example.now)
    kept = [past for past in example.context if past.author in partners]
    for number, past in enumerate(kept):
        text = CALL.sub("", past.text) if chance.random() < UNNAMED else past.text
        earlier = past.model_copy(update={"text": text or past.text, "ago": len(kept) - number})
        conversation.add(record_of(earlier, example.now))
    call = CALL.match(example.text)
    is_left_out = call and ("BOT" in call[1] or chance.random() < UNNAMED)
    text = (CALL.sub("", example.text) if is_left_out else example.text) or example.text
    return message_of(example.model_copy(update={"text": text})), conversation
