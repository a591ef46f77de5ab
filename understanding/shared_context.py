"""Context shared by agents that do not see each other's history: the person, place and link mentioned last.

It is read from the messages each time and not stored, so that deletions, edits and /forget apply to it. Only what
Discord marks, or what can hardly be anything else, counts as a mention. If the newest one may not be passed on, none
is: an older one would be taken for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, Self
from urllib.parse import urlsplit

from understanding.enrichment import TIME
from understanding.names import SOMEBODY
from understanding.places import last_place
from understanding.wording import MENTION, NOT_WORDS, TOO_COMMON, words_of

MAX_MESSAGES = 50
MAX_CHARACTERS = 2_000  # of a message that are read: Discord's limit for most people
MAX_IN_ALL = 20_000  # characters of all these messages: 1,000 of hostile text block the event loop for 0.7 ms
MAX_VALUE = 100  # characters; longer values are left out: cut, they would be another name or link
MIN_NAME = 3

CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
TAGS = re.compile(r"(<(?:@[!&]?|#)\d{1,20}>)")
BORDERS = re.compile(r"(?<![\w#/.-])"), re.compile(r"(?![\w/-]|\.\w)")  # before and after a name
SENTENCE_START = re.compile(r"(?:^|[.!?:;…\n])[\s\"'“”(\[*_>-]*\Z")
LINK = re.compile(r"https?://[^\s<>\"]+")
AFTER_LINKS = ".,;:!?'*_~|]}"
OF_DISCORD = re.compile(r"(?:.*\.)?discord(?:app)?\.(?:com|gg|net)")  # they have ids, and only members can open them


class Message(Protocol):
    """The fields of a message that are read here."""

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
    """Up to three values by name: last_mentioned_user, last_mentioned_location, last_mentioned_link.

    messages: oldest first; the newest 50 are read, as far as they have 20,000 characters together. A value is one line
    of at most 100 characters in people's own words, to be treated as data. Messages of bots and mentions of the bot do
    not count.
    """
    spoken = [m for m in messages[-MAX_MESSAGES:] if not m.is_bot]
    sizes = accumulate(min(len(m.content), MAX_CHARACTERS) for m in reversed(spoken))
    spoken = spoken[len(spoken) - sum(size <= MAX_IN_ALL for size in sizes) :]
    people = _People.of(spoken, bot_id, bot_name)
    found = {
        "last_mentioned_user": _newest(people.last_user, spoken),
        "last_mentioned_location": _newest(people.last_place, spoken),
        "last_mentioned_link": _newest(_last_link, spoken),
    }
    return {kind: value for kind, value in found.items() if value}


def in_words(shared: Mapping[str, str]) -> str:
    """One line for an agent, with the values as JSON, so that none can pass for an instruction."""
    return f"Last mentioned in the channel, in people's own words: {json.dumps(dict(shared), ensure_ascii=False)}"


def mentioning(values: Collection[str], messages: Collection[Message]) -> Callable[[Message], bool]:
    """Returns a function that tells whether any of these values may have been mentioned in one of these messages: as
    shown to readers, as it was written, or by a person's id."""
    folded = [value.casefold() for value in values]
    authors = {(m.author_id, m.author) for m in messages}
    names = authors | {(m.reply_to_author_id or 0, m.reply_to_author) for m in messages}
    named = {who for who, name in names if _line(name) in values}

    def may_mention(message: Message) -> bool:
        text = _line(f"{message.content} {message.readable}").casefold()
        return not named.isdisjoint(map(int, MENTION.findall(message.content))) or any(
            value in text for value in folded
        )

    return may_mention


def _newest(find: Callable[[Message], str | None], messages: Sequence[Message]) -> str:
    return _tidy(next((value for m in reversed(messages) if (value := find(m)) is not None), ""))


def _tidy(value: str) -> str:
    """The value on one line, as _line(); empty if too long."""
    return line if len(line := _line(value)) <= MAX_VALUE else ""


def _line(text: str) -> str:
    """The text on one line, without invisible characters and surrogates."""
    line = " ".join(text.split())
    return line if line.isprintable() else " ".join("".join(c if c.isprintable() else " " for c in line).split())


@dataclass(frozen=True, slots=True)
class _People:
    """The participants. names: user id -> name, empty if opted out; forms: spelling in a text -> name."""

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
    """The spellings of a name that can hardly be another word: not "will", not "May"."""
    if len(name) < MIN_NAME or TOO_COMMON.issuperset(words_of(name)) or TIME.search(f"in {name}"):
        return set()
    return {form for form in (name, name[0].upper() + name[1:]) if not (form.islower() and form.isalpha())}


def _places_of(form: str, text: str) -> Iterator[int]:
    """Positions of a name in a text. Not by patterns: Python caches those, and with them names that were forgotten."""
    at = text.find(form)
    while at >= 0:
        end = at + len(form)
        if BORDERS[0].match(text, at) and BORDERS[1].match(text, end):
            # At the start of a sentence any word has a capital letter; "Bill's" and "Bill," are still names.
            begins = SENTENCE_START.search(text, max(0, at - 20), at)
            if begins is None or text.startswith((",", ":", "'s ", "’s "), end):
                yield at
        at = text.find(form, end)


def _shown_name(user_id: int, message: Message) -> str:
    """The name that readers see in place of a mention; "" if that is unclear."""
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
    """The last link. "": it may not be passed on; None: there is none."""
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
    """The text with mentions, links and custom emoji blanked, so that positions stay the same."""
    return NOT_WORDS.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])
