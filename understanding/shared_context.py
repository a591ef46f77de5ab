"""What agents that do not see each other's history are told in common: what people here mentioned last.

It is read from the messages each time and kept nowhere: what is deleted, edited or forgotten is gone from it, too. Only
what Discord marks, or what can hardly be anything else, is a mention. The newest one of a kind counts even where it
cannot be told, as an older one would be taken for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self
from urllib.parse import urlsplit

from understanding.enrichment import TIME
from understanding.names import SOMEBODY
from understanding.places import last_place
from understanding.wording import MENTION, NOT_WORDS, TOO_COMMON, words_of

MAX_MESSAGES = 50
MAX_CHARACTERS = 2_000  # of a message that are read: Discord's limit for most people
MAX_VALUE = 100  # what is longer is left out: cut, it would be another name or link
MIN_NAME = 3

CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
TAGS = re.compile(r"(<(?:@[!&]?|#)\d{1,20}>)")
BORDERS = re.compile(r"(?<![\w#/.-])"), re.compile(r"(?![\w/-]|\.\w)")  # before and behind a name
SENTENCE_START = re.compile(r"(?:^|[.!?:;…\n])[\s\"'“”(\[*_>-]*\Z")
LINK = re.compile(r"https?://[^\s<>\"]+")
AFTER_LINKS = ".,;:!?'*_~|]}"
OF_DISCORD = re.compile(r"(?:.*\.)?discord(?:app)?\.(?:com|gg|net)")  # ids, and open to those only who may read there


class Message(Protocol):
    """What is read of a message here."""

    @property
    def author(self) -> str: ...
    @property
    def author_id(self) -> int: ...
    @property
    def content(self) -> str: ...
    @property
    def readable(self) -> str: ...
    @property
    def is_bot(self) -> bool: ...
    @property
    def mentions(self) -> frozenset[int]: ...
    @property
    def reply_to_author(self) -> str: ...
    @property
    def reply_to_author_id(self) -> int | None: ...


def shared_context(messages: Sequence[Message], *, bot_id: int, bot_name: str) -> dict[str, str]:
    """Up to three things: last_mentioned_user, last_mentioned_location, last_mentioned_link.

    messages: oldest first; the newest 50 are read. A value is one line of at most 100 characters in people's own words,
    which are data whatever they say. What the bot says does not count, and neither does a mention of the bot.
    """
    spoken = [m for m in messages[-MAX_MESSAGES:] if not m.is_bot]
    people = _People.of(spoken, bot_id, bot_name)
    found = {
        "last_mentioned_user": _newest(people.last_user, spoken),
        "last_mentioned_location": _newest(people.last_place, spoken),
        "last_mentioned_link": _newest(_last_link, spoken),
    }
    return {kind: value for kind, value in found.items() if value}


def in_words(shared: Mapping[str, str]) -> str:
    """One line for an agent, in which no value can pass for anything but a value."""
    return f"Last mentioned in the channel, in people's own words: {json.dumps(dict(shared), ensure_ascii=False)}"


def _newest(find: Callable[[Message], str | None], messages: Sequence[Message]) -> str:
    return _tidy(next((value for m in reversed(messages) if (value := find(m)) is not None), ""))


def _tidy(value: str) -> str:
    """On one line, without invisible and half characters; empty where it is too long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in value).split())
    return line if len(line) <= MAX_VALUE else ""


@dataclass(frozen=True, slots=True)
class _People:
    """Who takes part. names: by id, empty for those who do not want to be read; forms: by how a text may write them."""

    bot_id: int
    names: Mapping[int, str]
    forms: Mapping[str, str]

    @classmethod
    def of(cls, spoken: Iterable[Message], bot_id: int, bot_name: str) -> Self:
        names: dict[int, str] = {}
        for message in spoken:
            if message.reply_to_author_id is not None:
                names[message.reply_to_author_id] = message.reply_to_author
            names[message.author_id] = "" if message.author == SOMEBODY else message.author
        others = {name for user_id, name in names.items() if user_id != bot_id} - {bot_name}
        return cls(bot_id, names, {form: name for name in others for form in _forms(name)})

    def last_user(self, message: Message) -> str | None:
        text = _without_code(message)
        plain = _plain(text)
        named = max(((at, name) for form, name in self.forms.items() for at in _places_of(form, plain)), default=None)
        mentions = [m for m in MENTION.finditer(text) if int(m[1]) != self.bot_id]
        if mentions and (named is None or named[0] < mentions[-1].start()):
            user_id = int(mentions[-1][1])
            return self.names[user_id] if user_id in self.names else _shown_name(user_id, message)
        return named[1] if named else None

    def last_place(self, message: Message) -> str | None:
        place = last_place(_plain(_without_code(message)))
        return "" if place in self.forms else place


def _forms(name: str) -> set[str]:
    """How a text may write a name so that it can hardly be another word: not "will", not "May"."""
    if len(name) < MIN_NAME or TOO_COMMON.issuperset(words_of(name)) or TIME.search(f"in {name}"):
        return set()
    return {form for form in (name, name[0].upper() + name[1:]) if not (form.islower() and form.isalpha())}


def _places_of(form: str, text: str) -> Iterator[int]:
    """Where a text has a name. Not by patterns made of names, which Python would keep for longer than we may."""
    at = text.find(form)
    while at >= 0:
        end = at + len(form)
        if BORDERS[0].match(text, at) and BORDERS[1].match(text, end):
            # Any word like it may begin a sentence, which "Bill's" and "Bill," hardly do.
            begins = SENTENCE_START.search(text, max(0, at - 20), at)
            if begins is None or text.startswith((",", ":", "'s ", "’s "), end):
                yield at
        at = text.find(form, end)


def _shown_name(user_id: int, message: Message) -> str:
    """The name that readers see in place of a mention, or "" where that is not clear."""
    if user_id not in message.mentions:
        return ""
    told, *rest = TAGS.split(message.content)
    shown, found = f"{message.readable}\n", ""
    for tag, literal in zip(rest[::2], rest[1::2], strict=True):
        name = shown[len(told) + 1 : shown.find(literal or "\n", len(told))]
        told += f"{'#' if tag[1] == '#' else '@'}{name}{literal}"
        if (mention := MENTION.match(tag)) and int(mention[1]) == user_id:
            found = name
    return found if shown.startswith(f"{told}\n") else ""


def _last_link(message: Message) -> str | None:
    """The link, "" where it is none to pass on, None where there is none."""
    links = LINK.findall(_without_code(message))
    if not links:
        return None
    link: str = links[-1].rstrip(AFTER_LINKS if "(" in links[-1] else f"{AFTER_LINKS})")
    try:
        parts = urlsplit(link)
        host = parts.hostname or ""
    except ValueError:
        return ""
    is_fit = "." in host and "@" not in parts.netloc and not OF_DISCORD.fullmatch(host) and _tidy(link) == link
    return link if is_fit else ""


def _without_code(message: Message) -> str:
    return CODE.sub(_blank, message.content[:MAX_CHARACTERS])


def _plain(text: str) -> str:
    """Without mentions, links and custom emoji. Everything else stays at its place."""
    return NOT_WORDS.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])
