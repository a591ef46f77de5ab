"""What a turn is made of: the questions that it answers together, and how far it has come."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from agents.gateway import AgentRequest, Answer, Declined, Outcome
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
from state.optout import redacted
from state.spending import Payer
from understanding.stopping import Stop

MESSAGES_BEFORE = 10
MAX_REWORDED = 3
UNREAD = Meaning(RouteTarget.AGENT)


class Discord(Protocol):
    """Who the bot is, and ways into channels."""

    def bot(self) -> tuple[str, int]:
        """Its name and id."""

    def open(self, guild_id: int, channel_id: int) -> Wire: ...


@dataclass(frozen=True, slots=True)
class Question:
    """A message that wants an answer, and where. starts_conversation: what was said before it is not known yet.

    meaning: what it answers or calls off, and who is to answer it. card_id: of a click, the message it was made on.
    is_private: its author does not want to be read: the model is told it for this answer, and nothing
    keeps it. was_offered: the bot had offered to answer it. burst: of several that were said in one go, the id of the
    first. decision: why it is answered. reads_history: whether its author may read what was said in the channel before
    they came. is_exempt: whether their roles free them of the server's own budgets, and of a person's.
    """

    message: MessageRecord
    place: Place
    starts_conversation: bool = False
    meaning: Meaning = UNREAD
    card_id: int | None = None
    is_private: bool = False
    was_offered: bool = False
    burst: int | None = None
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
    def is_unprompted(self) -> bool:
        """Whether nobody had called the bot, or been asked by it."""
        return self.decision.is_unprompted

    @property
    def may_decline(self) -> bool:
        """Whether the agent decides whether to answer."""
        return self.decision.may_decline

    @property
    def stands_alone(self) -> bool:
        """Whether it has a turn of its own: what it answers is nobody else's question."""
        return self.meaning.prompt is not None or self.by_miniapp

    @property
    def by_miniapp(self) -> bool:
        """Whether a mini-app answers it, which needs no model."""
        return self.meaning.route_to is RouteTarget.MINIAPP

    @property
    def reply_to(self) -> int:
        return self.card_id or self.message.message_id

    def is_one_with(self, other: Question) -> bool:
        """Whether it is the same question, or was said in one go with it."""
        return self is other or (self.burst is not None and self.burst == other.burst)

    @property
    def addressees(self) -> frozenset[int]:
        """Whom its answer is for: whoever asked, and whose question of ours it answers in their place."""
        prompt = self.meaning.prompt
        return frozenset({self.message.author_id} | ({prompt.user_id} if prompt and prompt.user_id else set()))

    @property
    def as_kept(self) -> Question:
        """The question as it may be kept."""
        return self.without_words if self.is_private else self

    @property
    def without_words(self) -> Question:
        return replace(self, message=redacted(self.message), meaning=UNREAD)

    @property
    def as_said(self) -> Question:
        """The question by its words alone, as if nothing had been asked before."""
        return replace(self, meaning=UNREAD)

    def reworded(self, message: MessageRecord, *, is_called: bool) -> Question:
        """The question once its message was edited. Of a private one nobody else keeps the words."""
        decision = EXPLICIT if is_called else self.decision
        return replace(self, message=message if self.is_private else self.message, decision=decision)

    def current(self, conversation: ChannelConversation) -> MessageRecord:
        """Its message with the words that count now: it may have been edited, or trimmed from the conversation."""
        recorded = None if self.is_private else conversation.find(self.message.message_id)
        return recorded or self.message


@dataclass(frozen=True, slots=True)
class Ready:
    """What a turn comes to, before all of it is posted. prompt_id: the prompt that its card shows.

    history: what the model is given back from then on; None: as it was. agent: who answered; state: what a remote one
    needs back. files: what is posted with it.
    """

    text: str
    prompt_id: str | None = None
    history: History | None = None
    agent: str = GENERAL
    state: AgentState | None = None
    files: tuple[MadeFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Stopped:
    """What somebody's stop ended: the answers to these questions. is_unprompted: as of the turn that it ended.

    silently: those of them of whose end nobody is told anything.
    """

    stop: Stop
    questions: Sequence[Question]
    is_unprompted: bool = False
    silently: Sequence[Question] = ()

    @property
    def tells_off(self) -> bool:
        return self.stop is Stop.KEEP_OUT

    def in_words(self, author_id: int) -> str:
        """For whoever said it."""
        names = {q.message.author_id: q.message.author for q in self.questions} | {author_id: "you"}
        whom = [names[who] for who in dict.fromkeys(q.message.author_id for q in self.questions)]
        return f"I ended the answer{'s' if len(whom) > 1 else ''} to {' and '.join(whom)}"


class Cancel(StrEnum):
    """Why a turn ended before its time."""

    STOPPED = "stopped"
    WITHDRAWN = "withdrawn"
    SHUTDOWN = "shutdown"
    UNDELIVERABLE = "undeliverable"
    OVER_BUDGET = "over_budget"


@dataclass(slots=True)
class Turn:
    """adopted: None, or what an earlier process had posted for it, and ready: what it had come to there.

    newest: the newest of its questions as it began; others may be taken back later. allowance: what its model's calls
    draw on. is_tainted: one of them was taken back after it had begun, so that its answer may tell of that. agent: who
    answers, once that is known. text: what it has said so far; stage: what it is doing since. times_reworded: how often
    it was asked anew because a question was edited; is_reworded: it is about to be. has_acted: a tool was used, which
    must not be done twice. number: of its place in the queue, 0 as long as it has none; place: what is shown of that,
    which is nothing of the answer. instructions: by which it was answered. mark: of Records, from when it was asked.
    model: the name of the general agent's, once it has begun; it keeps that one. tools: the names of those it used.
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
    has_acted: bool = False
    number: int = 0
    place: str = ""
    instructions: str = ""
    mark: int = 0
    model: str = ""
    tools: list[str] = field(default_factory=list)
    work: asyncio.Task[Outcome | Cancel] | None = None

    def __post_init__(self) -> None:
        self.newest = self.questions[-1]

    @property
    def payer(self) -> Payer:
        exempt = frozenset(q.message.author_id for q in self.questions if q.is_exempt)
        return payer_of(self.newest.place, frozenset(q.message.author_id for q in self.questions), exempt)

    def settle(self, outcome: object, told: Outcome | None) -> int:
        """Counts what an attempt used, as its outcome tells, or what it would have come to. Returns the tokens."""
        is_answer, is_declined = isinstance(outcome, Answer), isinstance(outcome, Declined)
        return self.allowance.settle(told.tokens if told else 0, is_answer=is_answer, is_declined=is_declined)

    @property
    def by_miniapp(self) -> bool:
        return any(question.by_miniapp for question in self.questions)

    @property
    def is_private(self) -> bool:
        return any(question.is_private for question in self.questions)

    @property
    def may_quote_forgotten(self) -> bool:
        """Whether an agent makes its answer, and may have the words of somebody who was forgotten since."""
        return bool(self.request and self.conversation and self.conversation.tainted)

    @property
    def newcomers(self) -> set[int]:
        """Those who asked and may not read what was said before they came."""
        return {q.message.author_id for q in self.questions if not q.reads_history}

    @property
    def may_decline(self) -> bool:
        """Whether nobody it answers called the bot, and nothing of it was posted by an earlier process."""
        return not self.adopted and all(q.may_decline and not q.stands_alone for q in self.questions)

    @property
    def is_remote(self) -> bool:
        """Whether an agent beside the general one answers."""
        return self.agent != GENERAL

    @property
    def is_unprompted(self) -> bool:
        """Whether the bot speaks although nobody had called it; where it may decline, not before something is shown."""
        is_heard = bool(self.text.strip()) or not self.may_decline
        return is_heard and all(question.is_unprompted for question in self.questions)

    @property
    def ends_silently(self) -> bool:
        """Whether those who stopped it, or their part in it, are told nothing of that and have read nothing of it."""
        is_unheard = not (self.text.strip() or self.adopted)
        return is_unheard and (self.cancel is None or all(question.is_unprompted for question in self.questions))

    def take_thread_card(self) -> Card | None:
        """The button by which a longer conversation goes on in a thread, once in each."""
        is_answer = self.work and self.work.done() and not self.work.cancelled() and self.cancel is None
        if not (is_answer and self.newest.place.opens_threads and self.conversation):
            return None
        return THREAD_CARD if self.conversation.asks_for_thread(self.newest.reply_to) else None

    def begin_typing(self) -> None:
        """Shows the bot typing until something stands, unless it may decline."""
        if self.post and not self.may_decline:
            self.post.begin_typing()

    def show(self, text: str) -> None:
        """The whole answer so far."""
        self.text, self.stage = text, ""
        if self.post:
            self.post.show(text)

    def tell_stage(self, stage: str) -> None:
        """What is being done meanwhile, in a line below that goes as soon as there is more to say."""
        self.stage, self.has_acted = stage, True
        if self.post and (self.text.strip() or not self.may_decline):
            self.post.show(with_note(self.text, f"{stage} …") if self.text.strip() else f"-# {stage} …")

    def tell_place(self, place: str) -> None:
        """Its place in the queue, until there is something to say."""
        self.stage = place
        if self.post and not self.may_decline:
            self.place = f"-# {place} …"
            self.post.show(self.place)

    def stop(self, unwanted: Collection[Question]) -> bool:
        """Ends it if it answers these alone; others that were asked with them are still answered."""
        others = [q for q in self.questions if q not in unwanted]
        is_whole = self.work and self.work.done() and not self.is_reworded
        if not unwanted or (is_whole and (others or not self._call_back())):
            return False
        if others:
            self.questions[:] = others
        else:
            self.end(Cancel.STOPPED)
        return True

    def _call_back(self) -> bool:
        """Takes back an answer that is whole, and which Discord has not taken. Returns whether that was so."""
        return bool(self.post and self.post.is_refused and self.post.take_back(is_finished=True, is_begun=True))

    def ask_anew(self, message: MessageRecord) -> None:
        """Asks anew if this message, which was edited, is one of its questions and nothing of it stands yet."""
        asked = [q for q in self.questions if q.message.message_id == message.message_id and not q.by_miniapp]
        is_same = all(q.is_private and q.message.content == message.content for q in asked)
        if is_same or self.adopted or self.has_acted or self.cancel or self.times_reworded == MAX_REWORDED:
            return
        if not (self.request and self.work and self.post):
            return
        if self.post.take_back(is_finished=self.work.done(), place=self.place):
            self.is_reworded, self.text = True, ""
            self.times_reworded += 1
            self.work.cancel()

    def leave(self) -> None:
        """Nothing more is done for it here, and nothing of it is taken for its end."""
        if self.work:
            self.work.cancel()
        if self.post:
            self.post.leave()

    def end(self, why: Cancel) -> None:
        self.cancel = self.cancel or why
        if why is Cancel.WITHDRAWN and self.post:  # which may still be waiting for Discord
            self.post.show("")
        if self.work:
            self.work.cancel()


def payer_of(place: Place, people: frozenset[int], exempt: frozenset[int] = frozenset()) -> Payer:
    """Who pays for what is asked in a place: of a thread, its channel too."""
    # What is asked in a thread to be answered in private has its channel, too, though it is told as no thread.
    is_thread = place.is_thread or place.parent_id
    channel, thread = (place.parent_id or 0, place.channel_id) if is_thread else (place.channel_id, 0)
    return Payer(place.guild_id, people, channel, thread, exempt)


def said_before(message: MessageRecord, messages: Sequence[MessageRecord]) -> list[Mapping[str, str]]:
    """What the author and the bot said before a message, and what the bot answered, oldest first.

    In the form in which an incomplete query's missing words are looked for.
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
    """The text with a small line below it; without a text the note alone."""
    return f"{closed(text)}\n\n-# {note}" if text.strip() else note
