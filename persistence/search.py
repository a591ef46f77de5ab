"""Full-text search in a channel's transcript.

A channel's index is made from its transcript at the first search, and is kept in memory only, for some minutes: no file
holds words a second time, unencrypted. Any edit or deletion in the channel drops the whole index; the next search makes
it again.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from conversation import MessageRecord
from persistence.transcript import PAGE, Transcript
from persistence.writer import Writer
from state.consent import Consent
from state.optout import UNREAD
from storage.store import ANY

MOST_MESSAGES = 20_000  # of a channel, the newest; the index takes about 10 MB then
MOST_CHANNELS = 8
KEPT_SECONDS = 300.0
MAX_CHARACTERS = 500  # of a query
MAX_WORDS = 12
# Kana, Han, Thai, Lao, Burmese and Khmer have no spaces between words: each character is indexed as a word of its own,
# and a query is a sequence of them. Trigrams would miss words of two characters, which most Chinese words are.
DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
PIECE = re.compile(r"\S{1,100}")  # what is normalized at once: thousands of accents on a letter are sorted pair by pair
BETWEEN_WORDS = re.compile(r'[\s,;/|"\0\u3001\u3002]+')

# author and words are indexed; name and text are their original forms, where these differ.
CREATE = """
    CREATE VIRTUAL TABLE said USING fts5 (
        author, words, name UNINDEXED, text UNINDEXED,
        author_id UNINDEXED, at UNINDEXED, is_bot UNINDEXED, is_other_bot UNINDEXED, addressees UNINDEXED,
        drew_on UNINDEXED,
        tokenize = 'unicode61 remove_diacritics 2'
    )
"""
ADD = """
    INSERT OR REPLACE INTO said (
        rowid, author, words, name, text, author_id, at, is_bot, is_other_bot, addressees, drew_on
    )
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# The rank (bm25) is rounded: else hardly any two would be equal, and the newest would not come first.
FIND = "SELECT rowid FROM said WHERE said MATCH ? AND rowid < ? ORDER BY round(rank), rowid DESC LIMIT ?"
GET = """
    SELECT coalesce(name, author), author_id, coalesce(text, words), at, is_bot, is_other_bot, rowid, addressees,
        drew_on
    FROM said WHERE rowid = ?
"""

T = TypeVar("T")


class Index:
    """An index of one channel's messages, in memory. To be used only in the thread in which it is made."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute("PRAGMA temp_store = MEMORY")
        self._db.execute(CREATE)

    def add(self, messages: Iterable[MessageRecord]) -> None:
        """Adds messages; of those with the same id the last counts. Skips those of people who opted out."""
        with self._db:
            self._db.executemany(ADD, (_row(m) for m in messages if 0 < m.message_id < ANY and m.text != UNREAD))

    def find(
        self, wanted: Sequence[str], before: int, limit: int, new: Sequence[MessageRecord] = ()
    ) -> list[MessageRecord]:
        """The results of the first of these expressions that finds anything, the best first.

        before: only messages with a lower id. new: messages to add first.
        """
        self.add(new)
        for expression in wanted:
            if ids := self._db.execute(FIND, (expression, before, limit)).fetchall():
                return [_message(*self._db.execute(GET, each).fetchone()) for each in ids]
        return []

    def close(self) -> None:
        self._db.close()


@dataclass(slots=True)
class _Kept:
    """An index, and the messages still to be added to it."""

    index: Index
    timer: asyncio.TimerHandle
    waiting: list[MessageRecord] = field(default_factory=list)


class Search:
    """The indexes of the channels searched last. To be used in one event loop; a thread does the work."""

    def __init__(self, transcript: Transcript, writer: Writer, consent: Consent) -> None:
        self._transcript = transcript
        self._writer = writer
        self._consent = consent
        self._kept: OrderedDict[int, _Kept] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, "search")
        self._one_at_a_time = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    async def find(
        self, channel_id: int, words: str, limit: int = 8, *, author: str = "", before: int = ANY
    ) -> list[MessageRecord]:
        """The best matches, of equal ones the newest first; their content is what a reader saw.

        All words have to be in the message or its author's name, at least as the beginnings of words; if no message has
        them all, any of them will do. author: words of the author's name. before: only messages with a lower id.
        Raises OSError where the transcript cannot be read, or the index cannot be made.
        """
        wanted = expressions(words, author)
        if not wanted:
            return []
        async with self._one_at_a_time:
            try:
                found = await self._find(channel_id, wanted, before, limit)
            except BaseException:
                self.drop(channel_id)  # waiting messages may be missing from it
                raise
        # What was forgotten may not have been removed yet.
        return [message for message in found if not self._consent.is_forgotten(channel_id, message)]

    async def _find(self, channel_id: int, wanted: Sequence[str], before: int, limit: int) -> list[MessageRecord]:
        while True:
            kept = self._kept.get(channel_id) or await self._make(channel_id)
            if self._kept.get(channel_id) is not kept:
                continue  # it was dropped while it was made, or, below, searched
            self._kept.move_to_end(channel_id)
            new, kept.waiting = kept.waiting, []
            found = await self._do(partial(kept.index.find, wanted, before, limit, new))
            if self._kept.get(channel_id) is kept:
                return found

    async def _make(self, channel_id: int) -> _Kept:
        index = await self._do(Index)
        timer = asyncio.get_running_loop().call_later(KEPT_SECONDS, self.drop, channel_id)
        # It is registered before the transcript is read, so that a drop meanwhile counts, and new messages come after.
        kept = self._kept[channel_id] = _Kept(index, timer)
        if len(self._kept) > MOST_CHANNELS:
            self.drop(next(iter(self._kept)))
        kept.waiting[:0] = await self._read(channel_id)
        return kept

    async def _read(self, channel_id: int) -> list[MessageRecord]:
        """The newest messages of the transcript, with those still to be written, the oldest first."""
        found: list[MessageRecord] = []
        before = ANY
        while len(found) < MOST_MESSAGES:
            page = await self._writer.run(partial(self._transcript.newest, channel_id, before, PAGE))
            if not page:
                break
            found += page
            before = page[-1].message_id
        return found[:MOST_MESSAGES][::-1]

    async def _do(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:  # this Python's SQLite may lack FTS5
            raise OSError(f"the index failed: {error}") from error

    def add(self, channel_id: int, message: MessageRecord) -> None:
        """Adds a message that was appended to the channel's transcript."""
        if kept := self._kept.get(channel_id):
            kept.waiting.append(message)

    def drop(self, channel_id: int | None = None) -> None:
        """Drops a channel's index (None: all), after an edit or deletion in its transcript."""
        for each in list(self._kept) if channel_id is None else [channel_id]:
            if kept := self._kept.pop(each, None):
                kept.timer.cancel()
                self._thread.submit(kept.index.close)

    def close(self) -> None:
        self.drop()
        self._thread.shutdown(wait=False)


def _row(message: MessageRecord) -> tuple[Any, ...]:
    name, text = _storable(message.author), _storable(message.text)
    author, words = _spread(name), _spread(text)
    return (
        message.message_id,
        author,
        words,
        None if author == name else name,
        None if words == text else text,
        message.author_id,
        message.timestamp.timestamp(),
        message.is_bot,
        message.is_other_bot,
        " ".join(map(str, message.addressees)),
        " ".join(map(str, message.drew_on)),
    )


def _message(
    author: str,
    author_id: int,
    text: str,
    at: float,
    is_bot: int,
    is_other_bot: int,
    message_id: int,
    addressees: str,
    drew_on: str,
) -> MessageRecord:
    return MessageRecord(
        author,
        author_id,
        text,
        datetime.fromtimestamp(at, UTC),
        bool(is_bot),
        message_id,
        addressees=frozenset(map(int, addressees.split())),
        drew_on=frozenset(map(int, drew_on.split())),
        is_other_bot=bool(is_other_bot),
    )


def _storable(text: str) -> str:
    """Replaces lone surrogates, which JSON can hold and SQLite cannot."""
    return text.encode(errors="replace").decode()


def _spread(text: str) -> str:
    """The text as it is indexed: in one form of several that look alike, its words apart."""
    if text.isascii():
        return text
    return DENSE.sub(r" \g<0> ", PIECE.sub(lambda piece: unicodedata.normalize("NFKC", piece[0]), text))


def expressions(words: str, author: str) -> list[str]:
    """The FTS5 expressions to try, in order, until one finds something; none where a text has no words.

    Nothing in the texts is read as syntax. author: words of the author's name; empty: anybody.
    """
    wanted, by = _terms(words), _terms(author)
    if not wanted or (author and not by):
        return []
    whose = f" AND author : ({' AND '.join(by)})" if by else ""
    return [f"({together.join(wanted)}){whose}" for together in (" AND ", " OR ")][: len(wanted)]


def _terms(text: str) -> list[str]:
    """Each word as a quoted string of FTS5, in which nothing is syntax; one of several parts is a phrase."""
    parts = BETWEEN_WORDS.split(unicodedata.normalize("NFKC", _storable(text[:MAX_CHARACTERS])))
    words = [word for word in parts if any(map(str.isalnum, word))][:MAX_WORDS]
    # A short word only matches itself: "an" is not meant to find "answer".
    return [f'"{_spread(word)}"{"" if word.isascii() and len(word) < 3 else "*"}' for word in words]
