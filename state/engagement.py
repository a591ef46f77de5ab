"""Engagement: what a decision needs to know about a channel's past messages, as one small value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from state.message import MessageRecord
from understanding.stopping import Stop, read_stop

RECENT = timedelta(minutes=5)
MAX_PEOPLE = 200
TRAIL = 0xFF


@dataclass(frozen=True, slots=True)
class Mark:
    """A message's place in its channel. number: how many messages came before it; at: when it was posted."""

    number: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Standing:
    """One person's history with the bot. Each mark is of the newest message of its kind; None: there was none.

    spoke: their own; spoken_to: the bot's to them; addressed: somebody else's to them. bot_messages: how many the bot
    had posted when they last spoke. told_off: they told the bot to keep out. said: how many messages they posted;
    answered: how many of these the bot answered; trail: which of the last 8 it answered, one bit each, the newest
    lowest.
    """

    spoke: Mark | None = None
    spoken_to: Mark | None = None
    addressed: Mark | None = None
    bot_messages: int = 0
    told_off: bool = False
    said: int = 0
    answered: int = 0
    trail: int = 0

    @property
    def due_since(self) -> Mark | None:
        """The bot's last words to them, where they have said nothing since and nobody else has addressed them since."""
        if self.spoken_to is None:
            return None
        later = (mark.number for mark in (self.spoke, self.addressed) if mark)
        return self.spoken_to if max(later, default=-1) < self.spoken_to.number else None

    @property
    def is_addressed_by_others(self) -> bool:
        """Whether somebody else addressed them last: they have said nothing since, nor has the bot to them."""
        if self.addressed is None:
            return False
        earlier = (mark.number for mark in (self.spoke, self.spoken_to) if mark)
        return self.addressed.number > max(earlier, default=-1)

    @property
    def last_heard(self) -> int:
        """The number of the newest message by them or to them; -1: none."""
        return max((mark.number for mark in (self.spoke, self.spoken_to, self.addressed) if mark), default=-1)

    def after_answer(self, mark: Mark) -> Standing:
        """Returns the standing after the bot has spoken to them."""
        is_first = self.said > 0 and not self.trail & 1
        return replace(self, spoken_to=mark, answered=self.answered + is_first, trail=self.trail | (self.said > 0))


STRANGER = Standing()


@dataclass(frozen=True, slots=True)
class Engagement:
    """When the bot spoke in a channel, to whom, and who else is talking. Can be built by hand.

    number: how many messages were posted; bot_messages: how many of them by the bot; bot_spoke: its newest. bot,
    bot_name: its id and name, once it has spoken. people: by user id, at most the 200 last heard of. last_author: the
    last person who spoke.
    """

    number: int = 0
    bot_messages: int = 0
    bot_spoke: Mark | None = None
    bot: int | None = None
    bot_name: str = ""
    people: Mapping[int, Standing] = field(default_factory=dict)
    last_author: int | None = None

    def after(self, message: MessageRecord, called: Collection[int] = ()) -> Engagement:
        """Returns the engagement after this message. called: the ids of the users it calls by name."""
        mark, author, people = Mark(self.number, message.timestamp), message.author_id, dict(self.people)
        if message.is_bot:
            spoken_to = message.addressees or {self.last_author}
            people |= {who: self.standing(who).after_answer(mark) for who in spoken_to if who is not None}
            return replace(
                self,
                number=self.number + 1,
                bot_messages=self.bot_messages + 1,
                bot_spoke=mark,
                bot=author,
                bot_name=message.author,
                people=_newest(people),
            )
        if message.named or called:
            # An id that is merely written in the text can be anything: it counts only if it is a known person's.
            known = message.named & people.keys()
            for person in (known | message.addressed | frozenset(called)) - {self.bot}:
                people[person] = replace(self.standing(person), addressed=mark)
        standing = self.standing(author)
        is_calling_back = self.bot in message.addressed or bool(message.calls_bot) or message.is_direct
        told_off = self.is_telling_off(message, called) or (standing.told_off and not is_calling_back)
        people[author] = Standing(
            mark,
            standing.spoken_to,
            standing.addressed,
            self.bot_messages,
            told_off,
            said=standing.said + 1,
            answered=standing.answered,
            trail=standing.trail << 1 & TRAIL,
        )
        return Engagement(
            self.number + 1, self.bot_messages, self.bot_spoke, self.bot, self.bot_name, _newest(people), author
        )

    def is_telling_off(self, message: MessageRecord, called: Collection[int] = ()) -> bool:
        """Whether the message tells the bot to keep out: it calls the bot, or follows a message of the bot's, and says
        so."""
        if message.tells_off:
            return True
        others = (message.named | frozenset(called)) - {self.bot}
        if others or message.mentions_group or self.bot_spoke is None:
            return False
        is_to_bot = (
            self.bot in message.addressed
            or bool(message.calls_bot)
            or message.is_direct
            or self.bot_spoke.number == self.number - 1  # it spoke last
            or self.is_answer_due(message)
        )
        return is_to_bot and read_stop(message.content, message.calls_bot or self.bot_name) is Stop.KEEP_OUT

    def standing(self, author_id: int) -> Standing:
        return self.people.get(author_id, STRANGER)

    def is_answer_due(self, message: MessageRecord) -> bool:
        """Whether the author has not answered the bot's last message to them yet, of the last 5 minutes."""
        due = self.standing(message.author_id).due_since
        return due is not None and message.timestamp - due.at < RECENT

    def people_since(self, start: datetime) -> frozenset[int]:
        """The ids of those who spoke since then, without the bot."""
        return frozenset(who for who, person in self.people.items() if person.spoke and person.spoke.at >= start)


@dataclass(slots=True)
class Heard:
    """What a channel's messages, read in order, say about who speaks to whom.

    engagement, before: after the newest message, and before it. named: message id to the users it mentions, names or
    replies to.
    """

    engagement: Engagement = field(default_factory=Engagement)
    before: Engagement = field(default_factory=Engagement)
    named: dict[int, frozenset[int]] = field(default_factory=dict)


def _newest(people: dict[int, Standing]) -> dict[int, Standing]:
    """All people, or, above MAX_PEOPLE, the last heard of: three quarters of MAX_PEOPLE."""
    if len(people) <= MAX_PEOPLE:
        return people
    newest_last = sorted(people.items(), key=lambda item: item[1].last_heard)
    return dict(newest_last[-MAX_PEOPLE * 3 // 4 :])
