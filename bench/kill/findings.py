"""Counts what went wrong in a day: from what stands in the channels, what the log said, and what the sessions hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bench.kill.marked_model import TOKEN
from playground.model import Message

WHAT = ("questions lost", "questions answered twice", "acknowledged messages missing from the sessions")


@dataclass(frozen=True, slots=True)
class Asked:
    """Something that wants an answer, if it is accepted: a message, or a click on a card.

    id: the message's or the interaction's. mark: the number in its text. reply_to: the message that the answer replies
    to. is_accepted: whether it must be answered.
    """

    id: int
    channel_id: int
    reply_to: int
    is_accepted: bool
    mark: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What went wrong, of which message or interaction."""

    id: int
    channel_id: int
    what: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """asked: without what was deleted. said: by channel, what of the bot's stands there, oldest first.

    acknowledged: (channel id, message id) of what the log named as decided, without what was deleted. recorded: by
    channel, the message ids in its sessions. deleted: the marks of what was deleted; an answer to that may tell of it,
    and so is kept in no session.
    """

    asked: Sequence[Asked]
    said: Mapping[int, Sequence[Message]]
    acknowledged: Collection[tuple[int, int]] = ()
    recorded: Mapping[int, Collection[int]] = field(default_factory=dict)
    deleted: Collection[int] = ()


class Count(NamedTuple):
    """What went wrong, by the kinds that WHAT names."""

    lost: Sequence[Finding]
    doubled: Sequence[Finding]
    missing: Sequence[Finding]


def count(evidence: Evidence) -> Count:
    return Count(lost(evidence), doubled(evidence), missing(evidence))


class _ChannelAnswers:
    """The bot's words in one channel, by what they answer."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.tokens = [
            (kind, int(number), int(mark), message)
            for message in messages
            for kind, number, mark in TOKEN.findall(message.content)
        ]
        self._replies: dict[int, list[Message]] = {}
        self._begun: dict[int, list[tuple[int, Message]]] = {}
        for message in messages:
            if message.points_at is not None:
                self._replies.setdefault(message.points_at, []).append(message)
        for kind, number, mark, message in self.tokens:
            if kind == "b":
                self._begun.setdefault(mark, []).append((number, message))
        self._ended = {(number, mark) for kind, number, mark, _ in self.tokens if kind == "e"}

    def answers(self, asked: Asked) -> set[int]:
        """The ids of the messages with which answers to it begin."""
        replies = self._replies.get(asked.reply_to, [])
        return {message.id for message in replies} | {message.id for _, message in self._marked(asked)}

    def is_whole(self, asked: Asked) -> bool:
        """Whether what was begun for it was finished."""
        return all((number, asked.mark) in self._ended for number, _ in self._marked(asked))

    def _marked(self, asked: Asked) -> list[tuple[int, Message]]:
        """The answers of the model that name it, by their numbers.

        One to an older question was told of it at most, as of something said meanwhile; so was any where nobody had to
        answer it, or where a mini-app did, whose answers name nothing.
        """
        by_miniapp = any(not TOKEN.search(message.content) for message in self._replies.get(asked.reply_to, ()))
        begun = self._begun.get(asked.mark, []) if asked.mark and asked.is_accepted and not by_miniapp else []
        return [(n, m) for n, m in begun if m.points_at is None or m.points_at >= asked.id]


def _by_channel(evidence: Evidence) -> Mapping[int, _ChannelAnswers]:
    return {channel_id: _ChannelAnswers(messages) for channel_id, messages in evidence.said.items()}


def lost(evidence: Evidence) -> list[Finding]:
    """What was accepted and has no answer, or only half of one."""
    said, found = _by_channel(evidence), []
    for asked in evidence.asked:
        here = said[asked.channel_id]
        if asked.is_accepted and not here.answers(asked):
            found.append(Finding(asked.id, asked.channel_id, "no answer"))
        elif asked.is_accepted and not here.is_whole(asked):
            found.append(Finding(asked.id, asked.channel_id, "half an answer"))
    return found


def doubled(evidence: Evidence) -> list[Finding]:
    """What is answered by two messages, and messages with words twice or of an answer that was replaced."""
    said = _by_channel(evidence)
    twice = [
        Finding(asked.id, asked.channel_id, f"answered by {sorted(answers)}")
        for asked in evidence.asked
        if len(answers := said[asked.channel_id].answers(asked)) > 1
    ]
    return twice + [finding for channel_id, here in said.items() for finding in _remains(channel_id, here)]


def _remains(channel_id: int, said: _ChannelAnswers) -> Iterator[Finding]:
    times = Counter((kind, number, mark) for kind, number, mark, _ in said.tokens)
    begun = {number for kind, number, _, _ in said.tokens if kind == "b"}
    wrong = {
        message.id: f"words twice, or of an answer that was replaced: {kind}{number}k{mark}"
        for kind, number, mark, message in reversed(said.tokens)
        if number not in begun or times[kind, number, mark] > 1
    }
    for message_id, what in wrong.items():
        yield Finding(message_id, channel_id, what)


def missing(evidence: Evidence) -> list[Finding]:
    """What the log named as decided, and what the bot said, that the channel's sessions do not have."""
    heard = [(channel_id, message_id, "heard") for channel_id, message_id in sorted(evidence.acknowledged)]
    own = [
        (channel_id, message.id, "said")
        for channel_id, messages in evidence.said.items()
        for message in messages
        if not any(int(mark) in evidence.deleted for _, _, mark in TOKEN.findall(message.content))
    ]
    return [
        Finding(message_id, channel_id, f"{how}, but in no session")
        for channel_id, message_id, how in heard + own
        if message_id not in evidence.recorded.get(channel_id, ())
    ]
