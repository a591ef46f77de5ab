"""Who said which words where, and what became of them: by the script's own knowledge, without asking the bot.

The rules are those of docs/privacy.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

ANYWHERE = 0
"""In place of a channel, where it is not known which is asked in."""
WORD = re.compile(r"qx[a-p]{6}xq")


@dataclass(slots=True)
class Said:
    """A message that holds a word, also in its file: a person's own, a forward of it, or the bot's answer. Or the title
    of a thread, with its id below zero.

    at: the step in which it was said, or came in by an edit. to: whom the bot's answer is for. stands: it has not been
    deleted or edited since. private: its author had opted out.
    """

    word: str
    author_id: int
    channel_id: int
    message_id: int
    at: int
    stands: bool = True
    private: bool = False
    to: frozenset[int] = frozenset()


@dataclass(slots=True)
class Words:
    """All words, by who said them first, and where they stand by forwards and the bot's answers since.

    people_forgotten, channels_forgotten: the step in which they were last. readers: of each channel, who may read it;
    guilds: of each, its server, 0 for direct messages. parents: of threads, their channels. unread: of channels, who
    may not read there what others said. step: the current one.
    """

    readers: dict[int, frozenset[int]]
    guilds: dict[int, int]
    first: dict[str, Said] = field(default_factory=dict)
    forwards: list[Said] = field(default_factory=list)
    answers: list[Said] = field(default_factory=list)
    people_forgotten: dict[int, int] = field(default_factory=dict)
    channels_forgotten: dict[int, int] = field(default_factory=dict)
    opted_out: set[int] = field(default_factory=set)
    parents: dict[int, int] = field(default_factory=dict)
    unread: dict[int, frozenset[int]] = field(default_factory=dict)
    step: int = 0
    _numbers: count[int] = field(default_factory=count)

    def new(self) -> str:
        """A word that nobody has said yet."""
        number, letters = next(self._numbers), ""
        for _ in range(6):
            number, letter = divmod(number, 16)
            letters += "abcdefghijklmnop"[letter]
        return f"qx{letters}xq"

    def gone(self, message_id: int, words: Iterable[str] | None = None) -> None:
        """Notes that a message was deleted, or these words in it by an edit."""
        for said in (*self.first.values(), *self.forwards, *self.answers):
            if said.message_id == message_id and (words is None or said.word in words):
                said.stands = False

    def channel_gone(self, channel_id: int) -> None:
        """Notes that a thread was deleted."""
        for said in (*self.first.values(), *self.forwards, *self.answers):
            if said.channel_id == channel_id:
                said.stands = False

    def month_passed(self) -> None:
        """Notes that nothing is kept any more: what stands in Discord may be read again, if somebody asks about it."""
        self.people_forgotten.clear()
        self.channels_forgotten.clear()
        for said in (*self.first.values(), *self.forwards):
            said.private &= said.author_id in self.opted_out

    def is_only_in(self, guild_id: int, word: str) -> bool:
        """Whether it was said in this server alone."""
        said = (self.first[word], *(said for said in (*self.forwards, *self.answers) if said.word == word))
        return all(self.guilds[one.channel_id] == guild_id for one in said)

    def may_not_be_kept(self, word: str) -> str:
        """Why it must not be stored; empty: it may be. A tool call may repeat a title that a thread had."""
        return "" if self.is_former_title(word) else self.may_not_be_told(word, ANYWHERE)

    def is_former_title(self, word: str) -> bool:
        """Whether a thread that is no post had it in its title, and nothing else is wrong with it."""
        first = self.first[word]
        is_title = first.message_id == -first.channel_id
        is_post = any(said.message_id == said.channel_id == first.channel_id for said in self.first.values())
        return is_title and not is_post and self.may_not_be_told(word, ANYWHERE) == "deleted"

    def is_erased(self, word: str) -> bool:
        """Whether its author was forgotten since they last said or forwarded it, or all that was said there."""
        first = self.first[word]
        # A forward whose original is gone counts as said by whoever forwards it.
        own = (f for f in self.forwards if f.word == word and (f.author_id == first.author_id or not first.stands))
        return all(self._is_forgotten(said) for said in (first, *own))

    def _is_forgotten(self, said: Said) -> bool:
        return said.at < max(
            self.people_forgotten.get(said.author_id, 0), self.channels_forgotten.get(said.channel_id, 0)
        )

    def unread_in(self, channel_id: int) -> frozenset[int]:
        return self.unread.get(self.parents.get(channel_id, channel_id), frozenset())

    def _may_be_read(self, said: Said, here: int, by: int) -> bool:
        """Whether what was said may be told to somebody here: they may read the history, said it themselves, or were
        answered so; or all who read here may read all that was said there, in the same server."""
        there, parent = said.channel_id, self.parents.get(here, here)
        if here == ANYWHERE:
            return True
        is_title = said.message_id == -there
        if is_title and self.parents.get(there) == here and self.readers[here] <= self.readers[there]:
            there = here  # where a message says that the thread was begun
        if there in (here, parent):
            is_title = said.message_id == -here  # which all who see a thread see
            return is_title or by in {said.author_id, *said.to} or by not in self.unread_in(here)
        guild, readers = self.guilds[there], self.readers[there] - self.unread_in(there)
        return guild != 0 and guild == self.guilds[here] and self.readers[here] <= readers

    def may_not_be_told(self, word: str, channel_id: int, asked: Iterable[int] = (), by: int = 0) -> str:
        """Why it must not be told to the model that answers these messages in a channel; empty: it may be. by: who gets
        the answer."""
        first = self.first[word]
        others = [said for said in (*self.forwards, *self.answers) if said.word == word]
        if any(said.message_id in asked and said.stands for said in (first, *others)):
            return ""
        if self.is_erased(word):
            return "forgotten"
        standing = [said for said in others if said.stands and not said.private and not self._is_forgotten(said)]
        if first.stands and not first.private:
            standing.append(first)
        if not standing:
            return "private" if first.private else "deleted"
        is_read = any(self._may_be_read(said, channel_id, by) for said in standing)
        return "" if is_read else "not to be read there"
