"""One answer as it is streamed to a channel: posted as soon as there is text, edited as it grows, split if too long."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from conversation import MessageRecord
from discord_io.card import Card
from discord_io.channel_wire import Posted, PostError, Problem, Wire
from discord_io.made_files import MAX_FILES, MadeFile, with_files
from discord_io.sent_texts import SentTexts
from discord_io.split import length, split
from state.message import NOBODY

# Discord allows 5 edits in 5 s for each message; fewer read as well, and leave room for other requests.
EDIT_INTERVAL_SECONDS = 1.0
# Nobody sees the difference, and the request to the model is sent first.
TYPING_DELAY_SECONDS = 0.01
# After an outage longer than discord.py's own five tries: each wait is so many times the one before.
RETRY_INTERVALS = 2
MAX_RETRY_INTERVALS = 30
DELIVERY_SECONDS = 600.0  # how long posting a complete answer is tried
# At the end of what is posted, a place in the queue, or what is being done: no part of the answer itself.
NOTE = re.compile(r"(?:\A|\n\n)-# [^\n]* …\Z")
# Discord: a nonce is known for "the past few minutes".
NONCE_SECONDS = 120.0


class _Content(NamedTuple):
    text: str
    card: Card | None = None
    files: tuple[str, ...] = ()


@dataclass(slots=True)
class _Part:
    """A message of the answer. found: it was posted before, and we have not edited it since."""

    message: Posted
    content: _Content
    next_edit: float
    found: bool = False


class StreamedReply:
    """One answer. show() is called as the text grows, finish() once.

    question: the message that is answered; nonces are made from its id. reply_to: returns the id of the message that
    the first part replies to, when that is posted. addressees: ids of those who are answered. record: called with each
    part when it is posted or edited; retract: with the id of a part before it is deleted. answers: returns the id of
    the message that it counts as an answer to, as the question may be withdrawn while others are answered with it;
    None: the question. adopted: None for a new answer; for one that an earlier process began, its posted parts in
    order: they are edited, not sent again. types: whether the bot is shown as typing from the start until something is
    posted.

    If another process with our token answers the same question, the one with the longer text goes on. The other leaves
    its messages as they are, and fails with Problem.ELSEWHERE. broken: the task that posts; done early if posting has
    failed for good.
    """

    def __init__(
        self,
        wire: Wire,
        question: MessageRecord,
        *,
        reply_to: Callable[[], int],
        bot: tuple[str, int],
        addressees: frozenset[int],
        record: Callable[[MessageRecord], None],
        retract: Callable[[int], None] = lambda _message_id: None,
        answers: Callable[[], int] | None = None,
        adopted: Sequence[Posted] | None = None,
        types: bool = True,
        edit_interval_seconds: float = EDIT_INTERVAL_SECONDS,
    ) -> None:
        self._wire = wire
        self._question = question
        self._reply_to = reply_to
        self._bot = bot
        self._addressees = addressees
        self._record = record
        self._retract = retract
        self._answers = answers or (lambda: question.message_id)
        self._interval = edit_interval_seconds
        self._parts: list[_Part] = []
        self._sent: defaultdict[int, SentTexts] = defaultdict(SentTexts)
        self._first_sent: dict[int, float] = {}  # when each part was sent, arrived or not
        self.stood_at: float | None = None  # by the loop's clock, when our first text of the answer was posted
        self._carded: dict[int, Card] = {}  # the card that each part was sent last, arrived or not
        self._resumes = adopted is not None
        self._text = ""
        self._card: Card | None = None
        self._extra: Sequence[MadeFile] = ()
        self._made: dict[str, MadeFile] = {}
        self._attaches = wire.attaches
        self._changed = asyncio.Event()
        self._gives_way = asyncio.Event()
        self._final = False
        self._give_up_at: float | None = None
        self.is_refused = False  # Discord could not be reached at the last try
        self._taken_back = asyncio.get_running_loop().create_future()
        self._now = asyncio.get_running_loop().time
        for index, message in enumerate(adopted or ()):
            self._take(index, message, _Content(message.content, None, message.files), self._now(), found=True)
        self.shown = self._text_standing() if adopted else ""
        self._typing: asyncio.Task[None] | None = None
        if types:
            self.begin_typing()
        self.broken = asyncio.create_task(self._publish())

    @property
    def standing(self) -> list[MessageRecord]:
        """The messages of this answer, as they are in the channel."""
        return [self._record_of(part.message, part.content.text) for part in self._parts]

    @property
    def last_text(self) -> str:
        """The text of its last message."""
        return self._parts[-1].content.text if self._parts else ""

    def begin_typing(self) -> None:
        """Shows the bot as typing until something is posted."""
        if self._typing is None:
            self._typing = asyncio.create_task(self._wire.keep_typing(after=TYPING_DELAY_SECONDS))

    def show(self, text: str) -> None:
        """Shows this text: the whole answer so far."""
        self._text = text
        self._changed.set()

    def leave(self) -> None:
        """Stops posting. Messages that are posted stay as they are."""
        self.broken.cancel()
        if self._typing:
            self._typing.cancel()

    def overheard(self, message_id: int, content: str, reply_to: int | None) -> None:
        """Must be called for every message of our own user that is posted or edited in this channel, by any process.

        content: the whole text; empty: the event has none. reply_to: the message that a new one replies to, if any.
        """
        # While resuming, it may be our own from before: the nonce of the first part will tell.
        is_first_move = not self._sent and not self._resumes
        if is_first_move and reply_to is not None and reply_to == self._reply_to():
            self._give_way()
        for index, part in enumerate(self._parts):
            sent = self._sent[index]
            if part.message.message_id != message_id or content in sent:
                continue
            # We never wrote this text. If we go on, our next edit replaces it.
            if part.found:
                sent.add(content)
            elif sent.falls_short_of(content):
                self._give_way()
                continue
            else:
                sent.overrule(content)
            part.content = part.content._replace(text=content)
            self._changed.set()

    def _give_way(self) -> None:
        self._stop_typing()
        self._gives_way.set()
        self._changed.set()

    def _check(self) -> None:
        if self._gives_way.is_set():
            raise PostError(Problem.ELSEWHERE, "another process answers this")

    def take_back(self, *, is_finished: bool, is_begun: bool = False) -> bool:
        """Withdraws the answer before it is posted. Returns False if something of it is posted already.

        is_begun: anything may be, and not only what it waits for. is_finished: finish() has been called, or is about to
        be. It then raises Problem.TAKEN_BACK, and is to be called again with another answer. A text that is being sent
        at this moment is replaced by an edit.
        """
        stands = not is_begun and not all(NOTE.fullmatch(part.content.text) for part in self._parts)
        is_over = self.broken.done() and not (is_begun and self.is_refused)  # else the reason is still to be posted
        if stands or is_over:
            return False
        self._final, self._card, self._extra = False, None, ()
        self.show("")
        if is_finished and not self._taken_back.done():
            self._taken_back.set_result(None)
        return True

    async def finish(self, text: str, card: Card | None = None, files: Sequence[MadeFile] = ()) -> int | None:
        """Posts the rest, with the card and the files on the last message; long code and wide tables become files, too.
        An empty text deletes what was posted.

        Returns the id of the last message; None: there is none. Raises PostError.
        """
        if not self._taken_back.done():
            self._final, self._card, self._extra = True, card, files
            self.show(text)
            if self.broken.done() and not self.broken.exception():  # another ending was posted already
                self.broken = asyncio.create_task(self._publish())
            await asyncio.wait({self.broken, self._taken_back}, return_when=asyncio.FIRST_COMPLETED)
        if self._taken_back.done():
            self._taken_back = asyncio.get_running_loop().create_future()
            raise PostError(Problem.TAKEN_BACK, "its question was edited or called off")
        try:
            await self.broken
        finally:
            self._stop_typing()
        return self._parts[-1].message.message_id if self._parts else None

    async def explain(self, text: str) -> bool:
        """Posts a line that says why the answer ends. Returns whether it was posted. Raises PostError.

        It has the nonce of the missing part: if that has arrived after all, nothing is posted in addition. It is tried
        for what is left of DELIVERY_SECONDS, unless it is called off.
        """
        nonce, failures = self._nonce(len(self._parts)), 0
        while True:
            try:
                return (await self._wire.send(text, nonce=nonce, reply_to=self._reply_to())).content == text
            except PostError as error:
                failures, self.is_refused = failures + 1, True
                await asyncio.wait({self._taken_back}, timeout=self._wait(error, failures))
                if self._taken_back.done():
                    raise PostError(Problem.TAKEN_BACK, "it was called off") from error

    async def react(self, emoji: str) -> None:
        """Reacts to the message that would have been replied to."""
        await self._wire.react(self._reply_to(), emoji)

    def _stop_typing(self) -> None:
        if self._typing:
            self._typing.cancel()
            self._typing = None

    async def _publish(self) -> None:
        """Posts and edits as fast as the edit interval and Discord allow, until the whole answer is posted.

        A complete answer is given up after DELIVERY_SECONDS in which Discord accepted nothing of it.
        """
        failures = 0
        while True:
            self._changed.clear()
            self._check()
            text, is_final, wanted = self._text, self._final, self._wanted()
            # People have read what an earlier process posted: while the answer is made again, it is not shortened.
            is_held = False
            if self._resumes and not is_final and self._text_standing():
                stands = sum(length(part.content.text) for part in self._parts)
                is_held = sum(length(content.text) for content in wanted) < stands
            try:
                waits = [await self._bring(*content) for content in enumerate(() if is_held else wanted)]
                wait = min(filter(None, waits), default=None)
                if is_final and wait is None:
                    await self._cut(len(wanted))
                failures, self._give_up_at, self.is_refused = 0, None, False
            except PostError as error:
                failures, self.is_refused = failures + 1, error.problem is Problem.UNREACHABLE
                if not self.is_refused:
                    if not self._made or error.problem not in (Problem.FORBIDDEN, Problem.REJECTED):
                        raise
                    self._attaches = False  # Discord may have refused the files: the whole text goes into messages
                    continue
                wait = self._wait(error, failures, is_final=is_final)
            if wait is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._gives_way.wait()
                continue
            self.shown = self._text_standing() if is_held else text
            if not self._changed.is_set():
                if is_final:
                    return
                await self._changed.wait()

    def _wanted(self) -> list[_Content]:
        """The messages as they should be now. Files are attached to the last one, once the answer is complete."""
        self._made = {}
        if not self._text:
            return []
        shown, made = with_files(self._text) if self._attaches else (self._text, [])
        if self._final and self._attaches:
            self._made = {file.name: file for file in [*made, *self._extra][:MAX_FILES]}
        wanted = [_Content(part) for part in split(shown)]
        if wanted:
            wanted[-1] = _Content(wanted[-1].text, self._card, tuple(self._made))
        return wanted

    def _wait(self, error: PostError, failures: int, *, is_final: bool = True) -> float:
        """The seconds until the next try: what Discord says, unless that is after DELIVERY_SECONDS.

        Raises the error where another try makes no sense, or a complete answer has been tried long enough.
        """
        if error.problem is not Problem.UNREACHABLE:
            raise error
        if is_final and self._give_up_at is None:
            self._give_up_at = self._now() + DELIVERY_SECONDS
        left = DELIVERY_SECONDS if self._give_up_at is None else self._give_up_at - self._now()
        if left <= 0:
            raise error
        if 0 < error.retry_after <= left:
            return error.retry_after
        intervals = MAX_RETRY_INTERVALS if error.retry_after else RETRY_INTERVALS**failures
        return min(self._interval * min(intervals, MAX_RETRY_INTERVALS), left)

    async def _cut(self, count: int) -> None:
        """Deletes the messages after the first so many, and one that may have arrived after them."""
        index = len(self._parts)
        if index in self._first_sent and (found := await self._find(index)):
            self._take(index, found, _Content(found.content, None, found.files), self._now(), found=True)
        while len(self._parts) > count:
            self._check()
            message_id = self._parts[-1].message.message_id
            self._retract(message_id)  # else the event would look as if somebody had deleted the answer
            await self._wire.delete(message_id)
            self._parts.pop()

    def _text_standing(self) -> str:
        """The text of the answer that is posted."""
        return NOTE.sub("", "\n\n".join(part.content.text for part in self._parts))

    async def _bring(self, index: int, content: _Content) -> float | None:
        """Posts or edits one part. Returns the seconds until it may be edited, if it is too early; else None."""
        self._check()
        if index >= len(self._parts):
            await self._send(index, content)
        part = self._parts[index]
        wait = part.next_edit - self._now()
        if part.content == content or wait > 0:
            return None if part.content == content else wait
        stood, part.found = part.content, False
        self._sent[index].add(content.text)
        if content.card is None and index in self._carded:  # the card of an answer that was withdrawn
            await self._wire.settle(part.message.message_id, content.text)
        else:
            if content.card:
                self._carded[index] = content.card
            files = self._made.values() if content.files else ()
            changed = None if content.files == stood.files else [*files]
            await self._wire.edit(part.message.message_id, content.text, content.card, changed)
        self._stop_typing()
        part.next_edit = self._now() + self._interval
        self._note_standing(content.text)
        if part.content is stood:  # else another process edited it meanwhile, before or after this edit
            part.content = content
        self._record(self._record_of(part.message, content.text))
        return None

    async def _send(self, index: int, content: _Content) -> None:
        """Posts one part, or adopts the message with its nonce: of an earlier try, or of an earlier process."""
        # When resuming, looking for it may have failed, or may have come before it arrived.
        is_again = index in self._first_sent or (self._resumes and index == 0)
        sent = self._sent[index]
        sent.add(content.text)
        self._first_sent.setdefault(index, self._now())
        message = await self._find(index) if is_again else None
        if message is None:
            if content.card:
                self._carded[index] = content.card
            message = await self._wire.send(
                content.text,
                nonce=self._nonce(index),
                reply_to=None if index else self._reply_to(),
                card=content.card,
                files=[*self._made.values()] if content.files else (),
            )
        is_ours = message.content in sent
        if not (is_ours or self._resumes):
            raise PostError(Problem.ELSEWHERE, "another process has answered this")
        self._stop_typing()
        text = content.text if sent.ends_with(message.content) else message.content
        # An earlier try may have had no card, or one that was withdrawn, and another process' message another prompt's.
        unlike = None if content.card else self._carded.get(index)
        stands = _Content(text, unlike if is_again or self._resumes else content.card, message.files)
        self._take(index, message, stands, self._now() + self._interval, found=not is_ours)
        self._note_standing(text)

    def _note_standing(self, text: str) -> None:
        if self.stood_at is None and not NOTE.fullmatch(text):
            self.stood_at = self._now()

    async def _find(self, index: int) -> Posted | None:
        """Looks for a part that was sent before: it may have arrived after all."""
        after = self._parts[-1].message.message_id if self._parts else self._question.message_id
        try:
            reply_to = None if index else self._reply_to()
            return await self._wire.find(self._sent[index], after=after, reply_to=reply_to)
        except PostError as error:
            if error.problem not in (Problem.FORBIDDEN, Problem.UNKNOWN):
                raise
            # When an earlier process may have sent it is unknown.
            is_old = self._now() > self._first_sent[index] + NONCE_SECONDS
            if is_old or (self._resumes and error.problem is Problem.UNKNOWN):
                raise PostError(Problem.UNKNOWN, str(error)) from error
            return None  # the nonce prevents a second message

    def _nonce(self, index: int) -> str:
        return f"{self._question.message_id}-{index}"

    def _take(self, index: int, message: Posted, content: _Content, next_edit: float, *, found: bool) -> None:
        """Adds a message as the next part."""
        if found:
            self._sent[index].add(content.text)
        self._parts.append(_Part(message, content, next_edit, found))
        self._record(self._record_of(message, content.text))

    def _record_of(self, message: Posted, text: str) -> MessageRecord:
        name, user_id = self._bot
        return MessageRecord(
            author=name,
            author_id=user_id,
            content=text,
            timestamp=message.at,
            is_bot=True,
            message_id=message.message_id,
            mentioned=NOBODY,
            reply_to_id=self._answers(),
            addressees=self._addressees,
        )
