"""The questions that were accepted and have not come to their end: what a restart has to finish, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from conversation import MessageRecord
from llm_history import History, readable
from state.message import requoted
from turns.turn import Question, Ready


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn that was begun: the ids of its questions, and of the messages posted for it so far, in their order."""

    questions: tuple[int, ...]
    posted: tuple[int, ...] = ()
    ready: Ready | None = None

    @property
    def without_history(self) -> Begun:
        return replace(self, ready=self.ready and replace(self.ready, history=None))


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What is unfinished in a channel: all questions, oldest first, and the turn that some of them are in."""

    questions: tuple[Question, ...] = ()
    turn: Begun | None = None

    @property
    def begun(self) -> list[Question]:
        """The questions of the turn that are still to be answered."""
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
    """Keeps what is unfinished in each channel. on_change: told of the channel each time."""

    on_change: Callable[[int], None] = lambda _channel_id: None
    _channels: dict[int, Unfinished] = field(default_factory=dict)

    def of(self, channel_id: int) -> Unfinished:
        return self._channels.get(channel_id, NOTHING)

    def waiting_in(self, channel_id: int) -> set[int]:
        """The messages that wait behind the turn of the channel."""
        return {question.message.message_id for question in self.of(channel_id).waiting}

    @property
    def waiting(self) -> int:
        """How many questions wait behind the turn of their channel."""
        return sum(len(unfinished.waiting) for unfinished in self._channels.values())

    def asked(self, question: Question) -> None:
        """A question was accepted."""
        unfinished = self.of(question.channel_id)
        self._set(question.channel_id, replace(unfinished, questions=(*unfinished.questions, question)))

    def revised(self, question: Question) -> None:
        """What is known of an accepted question has changed."""
        unfinished = self.of(question.channel_id)
        message_id = question.message.message_id
        questions = tuple(question if q.message.message_id == message_id else q for q in unfinished.questions)
        self._set(question.channel_id, replace(unfinished, questions=questions))

    def begun(self, channel_id: int, questions: Sequence[Question]) -> None:
        """A turn begins with these."""
        turn = Begun(tuple(q.message.message_id for q in questions))
        # One that could not be delivered is not tried again behind it.
        self._set(channel_id, Unfinished(tuple(self.of(channel_id).waiting), turn))

    def posted(self, channel_id: int, message_id: int) -> None:
        """A message was posted for the channel's turn."""
        turn = self.of(channel_id).turn
        if turn and message_id not in turn.posted:
            self._set_turn(channel_id, replace(turn, posted=(*turn.posted, message_id)))

    def ready(self, channel_id: int, ready: Ready | None) -> None:
        """What the channel's turn comes to is known; None: it is not any more."""
        if turn := self.of(channel_id).turn:
            self._set_turn(channel_id, replace(turn, ready=ready))

    def follow(
        self,
        current: Callable[[int, History], History | None],
        find: Callable[[int, int], MessageRecord | None],
    ) -> list[int]:
        """Words were taken back: what turns came to, and is not recorded yet, follows, and what questions quote.

        current: (channel id, what the model was told and said) -> the same as it is now; None where nobody needs it.
        find: (channel id, message id) -> a message as it is recorded. Returns the channels where that makes a
        difference.
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
                    self._set_turn(channel_id, replace(turn, ready=replace(turn.ready, history=history)))
                    changed.append(channel_id)
        return changed

    def dropped(self, channel_id: int, questions: Collection[Question]) -> None:
        """These need no answer any more; a turn that was begun with them may still have to take back what it posted."""
        ids = {q.message.message_id for q in questions}
        unfinished = self.of(channel_id)
        left = tuple(q for q in unfinished.questions if q.message.message_id not in ids)
        if left != unfinished.questions:
            self._set(channel_id, replace(unfinished, questions=left))

    def taken_back(self, channel_id: int) -> None:
        """The channel's turn has no question left: what was posted for it goes, and what it was asked is not kept."""
        unfinished = self.of(channel_id)
        questions = tuple(q.without_words if q in unfinished.begun else q for q in unfinished.questions)
        turn = unfinished.turn and replace(unfinished.turn, ready=TAKEN_BACK)
        self._set(channel_id, replace(unfinished, questions=questions, turn=turn))

    def withdrawn(self, channel_id: int, gone: Callable[[MessageRecord], bool]) -> None:
        """Questions that are gone, in a channel where no turn is made."""
        if channel_id not in self._channels:
            return
        self.dropped(channel_id, [q for q in self.of(channel_id).questions if gone(q.message)])
        if not self.of(channel_id).begun:
            self.done(channel_id)

    def unquoted(self, channel_id: int, quotes: Callable[[MessageRecord], bool]) -> None:
        """What some questions quote is gone."""
        for question in self.of(channel_id).questions:
            if question.message.reply_to_text and quotes(question.message):
                self.revised(replace(question, message=requoted(question.message, None)))

    def unread(self, channel_id: int, is_gone: Callable[[Question], bool]) -> None:
        """What some questions mean has words that are gone: the next process would read them as any other."""
        for question in filter(is_gone, self.of(channel_id).questions):
            self.revised(question.as_said)

    def done(self, channel_id: int) -> None:
        """The channel's turn has ended, and its questions with it."""
        self._set(channel_id, Unfinished(tuple(self.of(channel_id).waiting)))

    def adopt(self, channel_id: int, unfinished: Unfinished) -> None:
        """What an earlier process left."""
        self._set(channel_id, unfinished)

    def taken(self, channel_id: int) -> Callable[[], bytes] | None:
        """What is unfinished there, to be made JSON; None where nothing is."""
        unfinished = self._channels.get(channel_id)
        return None if unfinished is None else lambda: UNFINISHED.dump_json(_without_words(unfinished))

    def _set_turn(self, channel_id: int, turn: Begun) -> None:
        self._set(channel_id, replace(self.of(channel_id), turn=turn))

    def _set(self, channel_id: int, unfinished: Unfinished) -> None:
        if unfinished == NOTHING:
            self._channels.pop(channel_id, None)
        else:
            self._channels[channel_id] = unfinished
        self.on_change(channel_id)


def read_unfinished(stored: Any) -> Unfinished:
    """What an earlier process had not finished. Raises ValueError for what is none."""
    read = UNFINISHED.validate_python(_with_places(stored), strict=False)
    if not (read.turn and read.turn.ready and read.turn.ready.history):
        return read
    ready = replace(read.turn.ready, history=[readable(message) for message in read.turn.ready.history])
    return replace(read, turn=replace(read.turn, ready=ready))


def _with_places(stored: Any) -> Any:
    """With each question's place as one value; until 2026-11 its ids stood beside it."""
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
    """Without the words of those who do not want to be kept: whoever goes on finds them in Discord.

    Nor with a judge's, which may quote anybody, nor with a thread's title, nor with what was known when it was read:
    neither is any word of the question's, nor needed once that was accepted.
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
