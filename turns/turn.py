"""A turn: the questions that it answers together, and its state while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from agents.gateway import AgentRequest, Outcome
from conversation import ChannelConversation, MessageRecord
from decider import EXPLICIT, Decision
from discord_io.card import THREAD_CARD, Card
from discord_io.channel_wire import Posted, Wire
from discord_io.made_files import MadeFile
from discord_io.split import closed
from discord_io.streamed_reply import StreamedReply
from llm_history import History
from place import Place
from state.agent_state import GENERAL, AgentState
from state.awaiting import Meaning, RouteTarget
from state.budget import Allowance
from state.message import NOBODY, requoted
from state.optout import redacted, without_label, without_quote
from state.spending import Payer
from understanding.stopping import Stop

MESSAGES_BEFORE = 10
MAX_REWORDED = 3
MAX_REWORDED_MINIAPP = 10  # which costs no model's tokens, but its channel waits
UNREAD = Meaning(RouteTarget.AGENT)


class Discord(Protocol):
    """The bot's identity, and access to channels."""

    def bot(self) -> tuple[str, int]:
        """The bot's name and user id."""

    def open(self, guild_id: int, channel_id: int) -> Wire: ...


@dataclass(frozen=True, slots=True)
class Question:
    """A message to be answered, with its place.

    starts_conversation: earlier messages of the channel are still to be read. meaning: the prompt it resolves or calls
    off, and who is to answer. card_id: of a click, the message clicked on. is_private: its author opted out, so the
    model is told it for this answer only, and it is kept nowhere. was_offered: the bot had offered to answer it. burst:
    id of the burst's first message; None: it was a single one. parts: ids of the earlier messages of the burst whose
    words its meaning has, too. decision: why it is answered. reads_history: whether its author may read the history of
    the place, as far as was known when it was asked. is_exempt: whether the author's roles exempt them from the
    server's own budgets and the budget of a person.
    """

    message: MessageRecord
    place: Place
    starts_conversation: bool = False
    meaning: Meaning = UNREAD
    card_id: int | None = None
    is_private: bool = False
    was_offered: bool = False
    burst: int | None = None
    parts: tuple[int, ...] = ()
    decision: Decision = EXPLICIT
    reads_history: bool = True
    is_exempt: bool = False

    @property
    def payer(self) -> Payer:
        people = frozenset({self.message.author_id})
        return payer_of(self.place, people, people if self.is_exempt else frozenset())

    @property
    def guild_id(self) -> int:
        return self.place.guild_id

    @property
    def channel_id(self) -> int:
        return self.place.channel_id

    @property
    def stands_alone(self) -> bool:
        """Whether it has a turn of its own, since it answers a prompt or goes to a mini-app."""
        return self.meaning.prompt is not None or self.by_miniapp

    @property
    def by_miniapp(self) -> bool:
        """Whether a mini-app answers it, which needs no model."""
        return self.meaning.route_to is RouteTarget.MINIAPP

    @property
    def said_in(self) -> tuple[int, ...]:
        """The ids of the messages whose words its meaning has."""
        return self.message.message_id, *self.parts

    @property
    def reply_to(self) -> int:
        return self.card_id or self.message.message_id

    def goes_with(self, other: Question) -> bool:
        """Whether one answer may be for both: who may not read the history is told nothing that others ask."""
        if self.stands_alone or other.stands_alone or self.reads_history != other.reads_history:
            return False
        return self.reads_history or self.message.author_id == other.message.author_id

    def is_one_with(self, other: Question) -> bool:
        """Whether it is the same question, or one of the same burst."""
        return self is other or (self.burst is not None and self.burst == other.burst)

    @property
    def addressees(self) -> frozenset[int]:
        """Whom its answer is for: its author, and those whom the bot asked for, if the author answers for them."""
        prompt = self.meaning.prompt
        asked = (prompt.user_id, *prompt.people) if prompt and prompt.user_id else ()
        return frozenset({self.message.author_id, *asked})

    @property
    def as_kept(self) -> Question:
        """The question as it may be kept: without the words of a private one."""
        return self.without_words if self.is_private else self

    @property
    def without_words(self) -> Question:
        return replace(self, message=redacted(self.message), meaning=UNREAD)

    @property
    def as_said(self) -> Question:
        """The question by its words alone, as if nothing had been asked before."""
        return replace(self, meaning=UNREAD)

    @property
    def to_read_anew(self) -> Question:
        """The question without the words that were read in it, some of which have changed; an accepted follow-up's are
        the mini-app's own."""
        if self.meaning.about:
            return self
        meaning = replace(self.meaning, query="", enriched_query="", incomplete=False, resolution_data=None)
        return replace(self, meaning=meaning)

    def in_words_of(self, edited: MessageRecord) -> MessageRecord:
        """Its message after an edit. What it quotes has not changed, and what was dropped of that stays dropped."""
        was = self.message
        name, text, files, people = was.reply_to_author, was.reply_to_text, was.reply_files, was.drew_on
        return replace(edited, reply_to_author=name, reply_to_text=text, reply_files=files, drew_on=people)

    def reworded(self, message: MessageRecord, *, is_called: bool) -> Question:
        """The question after an edit. Only a private one holds its words itself; others' are in the conversation."""
        question = replace(self, decision=EXPLICIT if is_called else self.decision)
        if not self.is_private:
            return question
        question = replace(question, message=self.in_words_of(message))
        return question if message.content == self.message.content else question.to_read_anew

    def requoted(self, edited: MessageRecord | None) -> Question:
        """The question with its quote, if it has one, after the quoted message was edited, or without it and the name
        of its author after that was deleted or forgotten (None); so is a click without its words, which are from there.
        """
        message = self.message
        if edited is None and message.reply_to_author:
            return replace(self, message=without_label(message) if message.is_label else without_quote(message))
        has_quote = message.reply_to_text or message.reply_files
        return replace(self, message=requoted(message, edited)) if has_quote else self

    def current(self, conversation: ChannelConversation) -> MessageRecord:
        """Its message as last edited, also if it was trimmed from the conversation."""
        return (not self.is_private and conversation.latest(self.message.message_id)) or self.message

    def is_as_read(self, conversation: ChannelConversation) -> bool:
        """Whether its author has not changed its words since; what it quotes may have grown."""
        now = self.current(conversation)
        return now is self.message or now.own_words == self.message.own_words


@dataclass(frozen=True, slots=True)
class Ready:
    """A turn's outcome, before all of it is posted. prompt_id: of the prompt that its card shows.

    history: the model's new history; None: unchanged. agent: who answered; state: a remote agent's state for its next
    question. files: to be posted with the text. people: those whose words it may have.
    """

    text: str
    prompt_id: str | None = None
    history: History | None = None
    agent: str = GENERAL
    state: AgentState | None = None
    files: tuple[MadeFile, ...] = ()
    people: frozenset[int] = NOBODY


@dataclass(frozen=True, slots=True)
class Stopped:
    """The questions whose answers a stop ended. is_unprompted: whether the ended turn was.

    silently: those among them whose authors are not told of it, and whose decisions were noted. seen: those whose
    authors are told, or saw that they were being answered.
    """

    stop: Stop
    questions: Sequence[Question]
    is_unprompted: bool = False
    silently: Sequence[Question] = ()
    seen: Sequence[Question] = ()

    @property
    def tells_off(self) -> bool:
        return self.stop is Stop.KEEP_OUT

    def in_words(self, author_id: int) -> str:
        """The evidence for /why, addressed to the author of the stop."""
        names = {q.message.author_id: q.message.author for q in self.questions} | {author_id: "you"}
        whom = [names[who] for who in dict.fromkeys(q.message.author_id for q in self.questions)]
        return f"I ended the answer{'s' if len(whom) > 1 else ''} to {' and '.join(whom)}"


class Cancel(StrEnum):
    """Why a turn ended early."""

    STOPPED = "stopped"
    WITHDRAWN = "withdrawn"
    SHUTDOWN = "shutdown"
    UNDELIVERABLE = "undeliverable"
    OVER_BUDGET = "over_budget"


@dataclass(slots=True)
class Turn:
    """A turn in the making.

    adopted: messages that an earlier process had posted for it, None: no such turn; ready: its outcome there. newest:
    the newest question at its start; questions may be deleted later. allowance: the budget of its model calls.
    is_tainted: a question was deleted after the start, so the answer may quote it. agent: who answers, once picked.
    text: the answer so far; stage: what it has been doing since then. times_reworded: how often it was restarted
    because a question was edited; is_reworded: a restart is due. newcomers: those whom it is for who may not read the
    history, as its answer began. has_acted: a tool was used, so it must not be restarted. asked_at: by the loop's
    clock, when its first question was queued; None: by an earlier process. number: its place in the queue for a slot,
    0: none yet. instructions: the model's. mark: of Records, when it was asked. model: name of the general agent's
    model, fixed once begun. tools: names of the tools used.
    """

    questions: list[Question]
    adopted: Sequence[Posted] | None = None
    ready: Ready | None = None
    newest: Question = field(init=False)
    allowance: Allowance = field(init=False)
    conversation: ChannelConversation | None = None
    post: StreamedReply | None = None
    is_tainted: bool = False
    agent: str = GENERAL
    request: AgentRequest | None = None
    text: str = ""
    stage: str = ""
    cancel: Cancel | None = None
    times_reworded: int = 0
    is_reworded: bool = False
    newcomers: frozenset[int] = NOBODY
    has_acted: bool = False
    asked_at: float | None = None
    number: int = 0
    instructions: str = ""
    mark: int = 0
    model: str = ""
    tools: list[str] = field(default_factory=list)
    work: asyncio.Task[Outcome | Cancel] | None = None

    def __post_init__(self) -> None:
        self.newest = self.questions[-1]
        if self.ready:  # known before the messages of an earlier process are recorded again
            self.agent = self.ready.agent

    @property
    def payer(self) -> Payer:
        exempt = frozenset(q.message.author_id for q in self.questions if q.is_exempt)
        return payer_of(self.newest.place, frozenset(q.message.author_id for q in self.questions), exempt)

    @property
    def is_private(self) -> bool:
        return any(question.is_private for question in self.questions)

    @property
    def may_quote_forgotten(self) -> bool:
        """Whether an agent answers, and may quote somebody who was forgotten since the start."""
        return bool(self.request and self.conversation and self.conversation.tainted)

    @property
    def may_decline(self) -> bool:
        """Whether all its questions may be declined, and no earlier process posted a part of the answer."""
        return not self.adopted and all(q.decision.may_decline and not q.stands_alone for q in self.questions)

    @property
    def is_remote(self) -> bool:
        """Whether a remote agent answers."""
        return self.agent != GENERAL

    @property
    def is_unprompted(self) -> bool:
        """Whether the bot answers without having been called; where it may decline, only once text is shown."""
        is_heard = bool(self.text.strip()) or not self.may_decline
        return is_heard and all(question.decision.is_unprompted for question in self.questions)

    @property
    def ends_silently(self) -> bool:
        """Whether a stop of it, or of some of its questions, goes unmentioned, since nothing of it was posted."""
        is_unheard = not (self.text.strip() or self.adopted)
        return is_unheard and (self.cancel is None or all(q.decision.is_unprompted for q in self.questions))

    def take_thread_card(self) -> Card | None:
        """The button that continues a longer conversation in a thread; shown once in each conversation."""
        is_answer = self.work and self.work.done() and not self.work.cancelled() and self.cancel is None
        if not (is_answer and self.newest.place.opens_threads and self.conversation):
            return None
        return THREAD_CARD if self.conversation.asks_for_thread(self.newest.reply_to) else None

    def begin_typing(self) -> None:
        """Shows the bot typing until something is posted, unless it may decline."""
        if self.post and not self.may_decline:
            self.post.begin_typing()

    def show(self, text: str) -> None:
        """Shows the whole answer so far."""
        self.text, self.stage = text, ""
        if self.post:
            self.post.show(text)

    def tell_stage(self, stage: str) -> None:
        """Shows what a tool is doing, in a line below the text, until there is more text."""
        self.stage, self.has_acted = stage, True
        if self.post and (self.text.strip() or not self.may_decline):
            self.post.show(with_note(self.text, f"{stage} …") if self.text.strip() else f"-# {stage} …")

    def tell_place(self, place: str) -> None:
        """Shows its place in the queue, until there is more text."""
        self.stage = place
        if self.post and self.text.strip():
            self.post.show(with_note(self.text, f"{place} …"))
        elif self.post and not self.may_decline:
            self.post.show(f"-# {place} …")

    def stop(self, unwanted: Collection[Question]) -> bool:
        """Drops these questions, and ends the turn if no others are left. Returns whether it did anything."""
        others = [q for q in self.questions if q not in unwanted]
        # Without work, what an earlier process had ready is being posted.
        is_whole = self.work.done() and not self.is_reworded if self.work else self.ready is not None
        if not unwanted or (is_whole and others):
            return False
        # A complete answer can be taken back as long as Discord has not accepted it.
        post = self.post
        if is_whole and not (post and post.is_refused and post.take_back(is_finished=True, is_begun=True)):
            return False
        if others:
            self.questions[:] = others
        else:
            self.end(Cancel.STOPPED)
        return True

    def ask_anew(self, message_id: int, edited: MessageRecord | None = None) -> None:
        """Restarts the turn if this message, which was edited or deleted (None), is among what it answers, and no part
        of the answer is posted yet; a mini-app's only until the mini-app is done. A mini-app's that was restarted often
        ends instead."""
        asked = [q for q in self.questions if message_id in (q.parts if edited is None else q.said_in)]
        is_same = all(q.is_private and edited and q.message.content == edited.content for q in asked)
        is_read = self.request or self.newest.stands_alone  # else it is still to be told in its new words
        by_miniapp = self.newest.by_miniapp
        if is_same or not is_read:
            return
        if self.times_reworded < (MAX_REWORDED_MINIAPP if by_miniapp else MAX_REWORDED):
            self.times_reworded += self._restart()
        elif by_miniapp and self.work and not (self.is_reworded or self.work.done()):
            self.end(Cancel.STOPPED)

    def _restart(self) -> bool:
        """Has the answer made again, if that is still possible. Returns whether it is."""
        if self.is_reworded or self.cancel or not (self.work and self.post):
            return False
        is_done, may_restart = self.work.done(), not (self.adopted or self.has_acted)
        if not is_done if self.newest.by_miniapp else may_restart and self.post.take_back(is_finished=is_done):
            self.is_reworded, self.text = True, ""
            self.work.cancel()
        return self.is_reworded

    def leave(self) -> None:
        """Abandons the turn, without marking it as ended: to another process, or after a bug has broken it off."""
        if self.work:
            self.work.cancel()
        if self.post:
            self.post.leave()

    def end(self, why: Cancel) -> None:
        self.cancel = self.cancel or why
        if why is Cancel.WITHDRAWN and self.post:  # the post may still be waiting for Discord
            self.post.show("")
        if self.work:
            self.work.cancel()


def payer_of(place: Place, people: frozenset[int], exempt: frozenset[int] = frozenset()) -> Payer:
    """Who pays for a question in a place; in a thread, its channel too."""
    # The place of a private answer in a thread has a parent_id, too, though its kind is no thread's.
    is_thread = place.is_thread or place.parent_id
    channel, thread = (place.parent_id or 0, place.channel_id) if is_thread else (place.channel_id, 0)
    return Payer(place.guild_id, people, channel, thread, exempt)


def said_before(message: MessageRecord, messages: Sequence[MessageRecord]) -> list[Mapping[str, str]]:
    """Messages of the author and the bot before this one, and those that the bot answered, oldest first.

    In the form that is searched for an incomplete query's missing words.
    """
    latest = messages[-3 * MESSAGES_BEFORE :]
    before = [m for m in latest if m.message_id < message.message_id][-MESSAGES_BEFORE:]
    answered = {m.reply_to_id for m in before if m.is_bot}
    return [
        {"role": "assistant" if m.is_bot else "user", "content": m.content}
        for m in before
        if m.is_bot or m.author_id == message.author_id or m.message_id in answered
    ]


def with_note(text: str, note: str) -> str:
    """The text with a small line below it; for an empty text the note alone."""
    return f"{closed(text)}\n\n-# {note}" if text.strip() else note
