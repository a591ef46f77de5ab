"""Pending turns: accepted questions without a final outcome, and how far they are, for a restart to finish."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from conversation import MessageRecord
from llm_history import History, origin_of, readable, without_words
from state.message import Source
from turns.turn import Question, Ready


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn that was begun: ids of its questions, and of the messages posted for it so far, in order.

    ready: its outcome; None: not known yet.
    """

    questions: tuple[int, ...]
    posted: tuple[int, ...] = ()
    ready: Ready | None = None

    def without(self, gone: Collection[Source]) -> Begun:
        """Without what its outcome keeps of deleted messages for the model; without its whole history, where the model
        was told some of them, as the answer may quote them."""
        if self.ready is None or self.ready.history is None:
            return self
        history = None if origin_of(self.ready.history).is_among(gone) else without_words(self.ready.history, gone)
        return replace(self, ready=replace(self.ready, history=history))


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A channel's unfinished questions, oldest first, and the running turn, which has some of them."""

    questions: tuple[Question, ...] = ()
    turn: Begun | None = None

    @property
    def begun(self) -> list[Question]:
        """The questions of the running turn that are still to be answered."""
        ids = self.turn.questions if self.turn else ()
        return [q for q in self.questions if q.message.message_id in ids]

    @property
    def waiting(self) -> list[Question]:
        ids = self.turn.questions if self.turn else ()
        return [q for q in self.questions if q.message.message_id not in ids]


TAKEN_BACK = Ready("")
UNFINISHED = TypeAdapter(Unfinished)
NOTHING = Unfinished()


@dataclass(slots=True)
class PendingTurns:
    """The unfinished questions of each channel. on_change: called with the channel id on every change."""

    on_change: Callable[[int], None] = lambda _channel_id: None
    _channels: dict[int, Unfinished] = field(default_factory=dict)

    def of(self, channel_id: int) -> Unfinished:
        return self._channels.get(channel_id, NOTHING)

    def waiting_in(self, channel_id: int) -> set[int]:
        """The ids of messages that wait behind the running turn of the channel."""
        return {question.message.message_id for question in self.of(channel_id).waiting}

    @property
    def waiting(self) -> int:
        """How many questions wait behind running turns, in all channels."""
        return sum(len(unfinished.waiting) for unfinished in self._channels.values())

    def asked(self, question: Question) -> None:
        """Adds an accepted question."""
        unfinished = self.of(question.channel_id)
        self._set(question.channel_id, replace(unfinished, questions=(*unfinished.questions, question)))

    def revised(self, question: Question) -> None:
        """Replaces an accepted question, found by its message id."""
        unfinished = self.of(question.channel_id)
        message_id = question.message.message_id
        questions = tuple(question if q.message.message_id == message_id else q for q in unfinished.questions)
        self._set(question.channel_id, replace(unfinished, questions=questions))

    def begun(self, channel_id: int, questions: Sequence[Question]) -> None:
        """Notes that a turn begins with these questions."""
        turn = Begun(tuple(q.message.message_id for q in questions))
        # An undelivered turn before it is dropped, and not tried again.
        self._set(channel_id, Unfinished(tuple(self.of(channel_id).waiting), turn))

    def posted(self, channel_id: int, message_id: int) -> None:
        """Notes a message that was posted for the channel's turn."""
        unfinished = self.of(channel_id)
        if (turn := unfinished.turn) and message_id not in turn.posted:
            self._set(channel_id, replace(unfinished, turn=replace(turn, posted=(*turn.posted, message_id))))

    def ready(self, channel_id: int, ready: Ready | None) -> None:
        """Notes the outcome of the channel's turn; None: it does not hold any more."""
        unfinished = self.of(channel_id)
        if unfinished.turn:
            self._set(channel_id, replace(unfinished, turn=replace(unfinished.turn, ready=ready)))

    def follow(
        self,
        current: Callable[[int, History], History | None],
        find: Callable[[int, int], MessageRecord | None],
    ) -> list[int]:
        """Applies deletions and edits to unrecorded outcomes of turns, and to quotes in questions.

        current: (channel id, history) -> the history with deletions and edits applied; None where it is not needed any
        more. find: (channel id, message id) -> the message as recorded. Returns the channels that changed.
        """
        changed = []
        for channel_id, unfinished in [*self._channels.items()]:
            for question in (q for q in unfinished.questions if q.message.reply_to_text):
                message, recorded = question.message, find(channel_id, question.message.message_id)
                # It may quote what was edited, or an answer of ours that quoted what is gone; so may a button's words.
                if recorded and not message.is_label:
                    quoted = recorded.reply_to_text, recorded.reply_files
                    recorded = replace(message, reply_to_text=quoted[0], reply_files=quoted[1])
                if recorded and recorded != message:
                    self.revised(replace(question, message=recorded))
                    changed.append(channel_id)
            turn = unfinished.turn
            if turn and turn.ready and turn.ready.history is not None:
                history = current(channel_id, turn.ready.history)
                if history != turn.ready.history:
                    turn = replace(turn, ready=replace(turn.ready, history=history))
                    self._set(channel_id, replace(self.of(channel_id), turn=turn))
                    changed.append(channel_id)
        return changed

    def dropped(self, channel_id: int, questions: Collection[Question]) -> None:
        """Drops questions that need no answer. A turn begun with them stays, as it may have to delete its messages."""
        ids = {q.message.message_id for q in questions}
        unfinished = self.of(channel_id)
        left = tuple(q for q in unfinished.questions if q.message.message_id not in ids)
        if left != unfinished.questions:
            self._set(channel_id, replace(unfinished, questions=left))

    def taken_back(self, channel_id: int) -> None:
        """Notes that the channel's turn has no question left: its messages are to be deleted, and no words are kept."""
        unfinished = self.of(channel_id)
        questions = tuple(q.without_words if q in unfinished.begun else q for q in unfinished.questions)
        turn = unfinished.turn and replace(unfinished.turn, ready=TAKEN_BACK)
        self._set(channel_id, replace(unfinished, questions=questions, turn=turn))

    def withdrawn(self, channel_id: int, gone: Callable[[MessageRecord], bool]) -> None:
        """Drops deleted questions in a channel without a running turn."""
        if channel_id not in self._channels:
            return
        self.dropped(channel_id, [q for q in self.of(channel_id).questions if gone(q.message)])
        if not self.of(channel_id).begun:
            self.done(channel_id)

    def requoted(
        self, channel_id: int, quotes: Callable[[MessageRecord], bool], edited: MessageRecord | None = None
    ) -> None:
        """Drops quotes of deleted messages from questions, or updates them. As TurnQueue.requoted()."""
        for question in self.of(channel_id).questions:
            if (anew := question.requoted(edited)) is not question and quotes(question.message):
                self.revised(anew)

    def unread(self, channel_id: int, is_gone: Callable[[Question], bool]) -> None:
        """Drops the meaning of these questions, as it has deleted words in it; the next process reads them anew."""
        for question in filter(is_gone, self.of(channel_id).questions):
            self.revised(question.as_said)

    def reworded(self, channel_id: int, message_id: int, edited: MessageRecord | None = None) -> None:
        """Drops the former words of an edited or deleted message from the questions, also from those of the same burst,
        whose meaning has them; the next process reads them anew. edited: the message now."""
        asked = self.of(channel_id).questions
        bursts = {q.burst for q in asked if q.message.message_id == message_id} - {None}
        for question in asked:
            if message_id == question.message.message_id:
                message = question.in_words_of(edited) if edited else question.message
                self.revised(replace(question.to_read_anew, message=message))
            elif message_id in question.parts:
                self.revised(question.as_said)
            elif question.burst in bursts:
                self.revised(question.to_read_anew)

    def done(self, channel_id: int) -> None:
        """Drops the channel's turn and its questions, as it has ended."""
        self._set(channel_id, Unfinished(tuple(self.of(channel_id).waiting)))

    def adopt(self, channel_id: int, unfinished: Unfinished) -> None:
        """Takes over what an earlier process left."""
        self._set(channel_id, unfinished)

    def taken(self, channel_id: int) -> Callable[[], bytes] | None:
        """A function that encodes the channel's unfinished questions as JSON; None where there are none."""
        unfinished = self._channels.get(channel_id)
        return None if unfinished is None else lambda: UNFINISHED.dump_json(_without_words(unfinished))

    def _set(self, channel_id: int, unfinished: Unfinished) -> None:
        if unfinished == NOTHING:
            self._channels.pop(channel_id, None)
        else:
            self._channels[channel_id] = unfinished
        self.on_change(channel_id)


def read_unfinished(stored: Any) -> Unfinished:
    """Reads the stored questions of an earlier process. Raises ValueError for anything else."""
    read = UNFINISHED.validate_python(_with_places(stored), strict=False)
    if not (read.turn and read.turn.ready and read.turn.ready.history):
        return read
    ready = replace(read.turn.ready, history=[readable(message) for message in read.turn.ready.history])
    return replace(read, turn=replace(read.turn, ready=ready))


def _with_places(stored: Any) -> Any:
    """Converts the form stored until 2026-11, in which a place's ids were fields of the question."""
    if not (isinstance(stored, dict) and isinstance(stored.get("questions"), list)):
        return stored
    ids = ("guild_id", "channel_id")
    questions = [
        {**q, "place": {**q["place"], **{name: q[name] for name in ids}}}
        if isinstance(q, dict) and {*ids, "place"} <= q.keys()
        else q
        for q in stored["questions"]
    ]
    return {**stored, "questions": questions}


def _without_words(unfinished: Unfinished) -> Unfinished:
    """Drops the words of people who opted out, which the next process reads in Discord again.

    Also drops what is not needed once a question was accepted: a judge's words, which may quote anybody, a thread's
    title, and what was known of the conversation when the question was read.
    """
    kept = (
        replace(
            q.as_kept,
            place=q.place.untitled,
            decision=replace(q.decision, evidence=""),
            meaning=replace(q.as_kept.meaning, soft_context={}, enriched_query=""),
        )
        for q in unfinished.questions
    )
    return replace(unfinished, questions=tuple(kept))
