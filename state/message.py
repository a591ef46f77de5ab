"""What was said: one message in a channel, free of any Discord type."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from understanding.names import names_at_ends
from understanding.wording import MENTION, Wording, read

GREETING = re.compile(r"\s*(?:(?:hey|hi|hello|yo|ok|okay|so|and|but)[\s,]+)?", re.IGNORECASE)
CALL_FIRST = re.compile(r"@?([^,:\n]{1,40})[,:]")
NOBODY: frozenset[int] = frozenset()  # one for all: each empty set takes 216 bytes
NO_CALLS: frozenset[str] = frozenset()
UNTRACED = 1 << 40  # in drew_on: it may have anybody's words, as nothing tells whose; below all of Discord's ids
LINK = re.compile(r"<?(https?://[^\s/<>]{1,253})/channels/(\d{1,20}|@me)/(\d{1,20})/(\d{1,20})/?>?")
END_MARKS = " \t\n.?!"
MAX_JOINED = 100  # older messages hardly matter to a decision, and take 7 us each to read again
WORDED = 13  # newest messages that cache their wording, 1 kB each; a decision looks at 12 and at a few older ones
REPLY_EXCERPT = 300  # characters of a replied-to message that a reply quotes

Link = tuple[int, int, int]
"""The ids of a message's guild, 0 in a direct message, its channel, and its own."""
Source = tuple[Literal["message", "person", "channel"], int]
"""A source of stored words: when one of their sources is deleted or forgotten, the words are deleted."""


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A file as Discord describes it. kind: its media type, as stated by whoever posted it. seconds: length of a voice
    message; 0: unknown."""

    name: str
    kind: str
    size: int
    url: str
    seconds: float = 0.0

    @property
    def key(self) -> str:
        return file_key(self.url)


def ids_in(match: re.Match[str]) -> Link:
    """The ids in a link that was found by LINK."""
    guild, channel, message = match.groups()[1:]
    return 0 if guild == "@me" else int(guild), int(channel), int(message)


def file_key(url: str) -> str:
    """A file's URL without its signature, which Discord makes anew each time."""
    return url.partition("?")[0]


def _both(some: frozenset[int], others: frozenset[int]) -> frozenset[int]:
    """The union; one of the two sets itself where the other adds nothing, as each set takes 216 bytes."""
    return some if others <= some else others if some <= others else some | others


@lru_cache(64)  # it is asked for several times while a message is decided on, and hardly ever again
def _calls_in(content: str) -> frozenset[str]:
    if "," not in content and ":" not in content:
        return NO_CALLS
    _, comma, last = content.rstrip(END_MARKS).rpartition(",")
    called = {last.strip().removeprefix("@").casefold()} if comma else set()
    for start in {0, GREETING.match(content).end()}:  # type: ignore[union-attr]  # it matches everything
        if first := CALL_FIRST.match(content, start):
            called.add(first[1].strip().casefold())
    return frozenset(called) or NO_CALLS


class _Found:
    """Fields of a message that are computed from the others on first access; slots, as a dict takes 1.5 kB a message.

    addressed: whom it mentions or replies to, and of the bot's own messages, whom they answer; named: whom it is
    addressed to or names in its text by id, whether Discord made that a mention or not. wording: how it is worded.
    at_ends: the words with which it may call somebody by name; kept when the wording is dropped, as to read that again
    takes up to 80 us, and with each edit all messages of a conversation are looked through for names.
    """

    __slots__ = ("addressed", "at_ends", "named", "wording")

    addressed: frozenset[int]
    named: frozenset[int]
    at_ends: Sequence[str]
    wording: Wording


@dataclass(frozen=True, slots=True)
class MessageRecord(_Found):
    """One message in a channel, free of any Discord type.

    content: as posted, with mentions in their raw form `<@id>`. readable: the text that the model is shown instead,
    with names resolved, and embeds and attachments in words; empty: the content. timestamp: aware.
    is_bot: this bot posted it; is_other_bot: another bot or a webhook. is_direct: a person's direct message to the bot.
    mentioned: the users that it mentions by Discord; None: those in the content. calls_bot: the name by which it calls
    the bot; empty: none. tells_off: it ended an answer of the bot's, and tells the bot to keep out.
    addressees: of a message of the bot's, the people whom it answers. unasked: an offer that nobody had asked for.
    drew_on: the people whose words it may contain: of a message of the bot's, all those whose words the model was told,
    and the ids of other channels in which tools read some; of others, those whose words it
    forwards, those in a message of the bot's from before the conversation that it quotes, or on a clicked button.
    is_label: a click, whose words are not its author's but those of the button or option; is_form: the text that its
    author entered in a form. Neither stands in the channel.
    images: the addresses of its pictures; files: its other attachments; reply_files: all attachments of the message
    that it replies to.
    """

    author: str
    author_id: int
    content: str
    timestamp: datetime
    is_bot: bool
    message_id: int = 0
    mentioned: frozenset[int] | None = None
    mentions_group: bool = False
    reply_to_id: int | None = None
    reply_to_author_id: int | None = None
    reply_to_author: str = ""
    reply_to_text: str = ""
    readable: str = ""
    images: tuple[str, ...] = ()
    addressees: frozenset[int] = frozenset()
    drew_on: frozenset[int] = frozenset()
    unasked: bool = False
    tells_off: bool = False
    calls_bot: str = ""
    is_label: bool = False
    is_form: bool = False
    files: tuple[AttachedFile, ...] = ()
    reply_files: tuple[AttachedFile, ...] = ()
    is_other_bot: bool = False
    is_direct: bool = False

    @property
    def is_persons(self) -> bool:
        """Whether a person said it."""
        return not (self.is_bot or self.is_other_bot)

    @property
    def own_words(self) -> tuple[str, frozenset[str]]:
        """The text and the attachments of its author: a person's without what Discord adds to links, a bot's with its
        embeds."""
        return self.text if self.is_other_bot else self.content, self.attached

    def words_in(self, channel_id: int) -> tuple[str, str, frozenset[str]]:
        """Its own_words as it stands in a channel: with the title of the post that it opens, which has its id."""
        title = self.text.partition("\n")[0] if self.message_id == channel_id else ""
        return title, *self.own_words

    @property
    def mentions(self) -> frozenset[int]:
        """The ids of the users it mentions."""
        return self.ids_in_text if self.mentioned is None else self.mentioned

    @property
    def ids_in_text(self) -> frozenset[int]:
        """The ids of the users mentioned in its content."""
        return frozenset(map(int, MENTION.findall(self.content))) if "<@" in self.content else NOBODY

    def _find(self, name: str) -> Any:
        """Computes a field of _Found, and keeps it."""
        found: frozenset[int] | Sequence[str] | Wording
        if name == "wording":
            found = read(self.content)
        elif name == "at_ends":
            found = names_at_ends(self.wording)
        elif name == "addressed":
            found = _both(self.mentions, self.addressees)
            if self.reply_to_author_id is not None:
                found |= {self.reply_to_author_id}
            if self.author_id in found:
                found -= {self.author_id}
        elif name == "named":
            found = _both(self.addressed, self.ids_in_text - {self.author_id})
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        object.__setattr__(self, name, found)
        return found

    if not TYPE_CHECKING:  # else mypy would accept any attribute
        __getattr__ = _find

    @property
    def calls(self) -> frozenset[str]:
        """The parts that may be names it calls, casefolded: "Ben, ...", "hey ben: ...", "..., Ben?"."""
        return _calls_in(self.content)

    def forget_wording(self, *, whole: bool = True) -> None:
        """Drops what was computed, about a kilobyte; on the next access it is computed again.

        whole: also drops what decisions need for longer than the next few messages.
        """
        try:  # noqa: SIM105 - suppress() takes twice as long, three times a message
            object.__delattr__(*((self, "wording") if whole else (object.__getattribute__(self, "wording"), "grams")))
        except AttributeError:  # it was not read
            pass

    @property
    def links(self) -> Sequence[Link]:
        """The messages that its author links to in the content: not in what they forward, reply to or click."""
        if self.is_label:
            return []
        return [ids_in(match) for match in LINK.finditer(self.content)]

    @property
    def taken_from(self) -> frozenset[int]:
        """The people whose words a person's message may contain, because it quotes the bot, or as it forwards them."""
        return NOBODY if self.is_bot or self.is_label else self.drew_on

    @property
    def quoted_from(self) -> frozenset[int]:
        """The people whose words a person's message may contain because it quotes the bot."""
        return NOBODY if self.reply_to_id is None else self.taken_from

    @property
    def forwarded_from(self) -> frozenset[int]:
        """The people whose words a person's message forwards, as far as they are known. A forward is no reply."""
        return self.taken_from if self.reply_to_id is None else NOBODY

    @property
    def said_by(self) -> tuple[int, ...]:
        """The author, and whose words the message forwards, with the channel from which they are."""
        return self.author_id, *self.forwarded_from

    @property
    def text(self) -> str:
        """The text as a reader of the channel sees it."""
        return self.readable or self.content

    @property
    def attached(self) -> frozenset[str]:
        """The keys of its own files and pictures."""
        return frozenset(file_key(url) for url in (*self.images, *(file.url for file in self.files)))

    @property
    def size(self) -> int:
        """About how many characters it takes to store and to show the model."""
        return (
            len(self.content)
            + len(self.readable)
            + len(self.reply_to_text)
            + 100 * (1 + len(self.images) + len(self.files))
        )


def newest_within(messages: Sequence[MessageRecord], count: int, size: int) -> list[MessageRecord]:
    """The newest messages, at most so many and of this size together, but at least one; oldest first."""
    kept: list[MessageRecord] = []
    for message in reversed(messages):
        size -= message.size
        if kept and (len(kept) >= count or size < 0):
            break
        kept.append(message)
    return kept[::-1]


def forget_older_wordings(messages: Sequence[MessageRecord]) -> None:
    """Frees the cached wording of the message that leaves the newest ones of a channel. Where its author has not spoken
    since, all but its runs of letters stays twice as long, since a decision reads what the author said before."""
    if len(messages) <= WORDED:
        return
    leaving, newest = messages[-WORDED - 1], messages[-WORDED:]
    leaving.forget_wording(whole=leaving.author_id in [m.author_id for m in newest])
    older = (m for m in reversed(messages[-MAX_JOINED:-WORDED]) if m.author_id == newest[-1].author_id)
    for message in (*messages[-2 * WORDED - 1 : -2 * WORDED], *islice(older, 1, 2)):
        message.forget_wording()


class Appended(NamedTuple):
    """A message as it is appended to the transcript of its channel. tokens: as the provider counted.

    parent_id: of a thread, its channel; None: as recorded before. is_moved: a conversation of that channel moved here.
    """

    channel_id: int
    guild_id: int
    record: MessageRecord
    tokens: int = 0
    parent_id: int | None = None
    is_moved: bool = False


def sources_of(message: MessageRecord) -> list[Source]:
    """The sources of a message's words: the message, its author, whom it answers and whom it may quote."""
    people = dict.fromkeys((message.author_id, *message.addressees, *message.drew_on))
    return [("message", message.message_id), *(("person", one) for one in people)]


def sources_of_reading(message: MessageRecord, channel_id: int) -> list[Source]:
    """The same as it is read in a channel: also the channel, and the message that it replies to and quotes."""
    quoted: list[Source] = []
    if message.reply_to_id is not None:
        quoted.append(("message", message.reply_to_id))
    if message.reply_to_author_id is not None:
        quoted.append(("person", message.reply_to_author_id))
    return [*sources_of(message), *quoted, ("channel", channel_id)]


def as_one(messages: Sequence[MessageRecord], user_id: int) -> MessageRecord:
    """Joins messages of one person, oldest first, into one with the time and id of the newest.

    It mentions everyone whom any of them mentions. If one of them replies to this user, so does it; else it replies to
    what the newest reply replies to.
    """
    newest = messages[-1]
    if len(messages) == 1:
        return newest
    replies = [m for m in reversed(messages) if m.reply_to_id is not None]
    reply = next((m for m in replies if m.reply_to_author_id == user_id), replies[0] if replies else newest)
    return replace(
        newest,
        content="\n".join(m.content for m in messages),
        readable="\n".join(m.text for m in messages),
        mentioned=frozenset[int]().union(*(m.mentions for m in messages)),
        mentions_group=any(m.mentions_group for m in messages),
        reply_to_id=reply.reply_to_id,
        reply_to_author_id=reply.reply_to_author_id,
        reply_to_author=reply.reply_to_author,
        reply_to_text=reply.reply_to_text,
        images=tuple(image for m in messages for image in m.images),
        files=tuple(file for m in messages for file in m.files),
        reply_files=reply.reply_files,
        tells_off=any(m.tells_off for m in messages),
        calls_bot=next((m.calls_bot for m in messages if m.calls_bot), ""),
    )


def requoted(message: MessageRecord, replied_to: MessageRecord | None) -> MessageRecord:
    """A reply with its quote updated after the quoted message was edited, or, if None, deleted."""
    attached = replied_to.attached if replied_to else frozenset[str]()
    files = tuple(file for file in message.reply_files if file.key in attached)
    drew_on = message.drew_on if replied_to else message.drew_on - message.quoted_from
    text = replied_to.text[:REPLY_EXCERPT] if replied_to else ""
    return replace(message, reply_to_text=text, reply_files=files, drew_on=drew_on)


def unquoting(message: MessageRecord, told: Container[int] = ()) -> MessageRecord:
    """The message without its quote, and the quoted files, unless it replies to one of those told."""
    return message if message.reply_to_id is None or message.reply_to_id in told else requoted(message, None)


def told_to(
    people: Set[int], messages: Iterable[MessageRecord], asked: Container[int] = ()
) -> dict[int, MessageRecord]:
    """Those of the messages, by id, that a model may be told for people who may not read the history: of one person
    their own and the answers to them, of several the answers to all of them; without quotes of other messages.

    asked: the ids of messages that it is told all the same.
    """
    said = {
        m.message_id: m
        for m in messages
        if m.message_id in asked or (m.addressees if m.is_bot else frozenset({m.author_id})).issuperset(people)
    }
    return {one: unquoting(message, said) for one, message in said.items()}


def without_call(content: str, user_id: int, name: str) -> str:
    """The content without what only calls this user: mentions, and their name at its start."""
    rest = re.sub(rf"<@!?{user_id}>[,:]?", "", content).strip()
    call = re.match(rf"(?:(?:hey|hi|ok|okay)[\s,]+)?@?{re.escape(name)}(?:[,:]\s*|\s+)", rest, re.IGNORECASE)
    return rest[call.end() :] if call else rest
