"""One channel and its people: what they say to each other, hour by hour, whether the bot is there or not."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from random import Random
from typing import TypeVar

from bench.week import words
from bench.week.record import Asked, Record, Shown
from playground.model import Message
from playground.server import Playground
from tests.support.scene import choices

Steps = Generator[float, None, None]
"""What somebody does, step by step: each gives the seconds until the next."""

MINUTE, HOUR = 60.0, 3_600.0
T = TypeVar("T")


class Place:
    """A channel whose people play one scene after another. clock: seconds by the wall clock."""

    def __init__(self, pg: Playground, record: Record, random: Random, clock: Callable[[], float]) -> None:
        self.record = record
        self.random = random
        self.clock = clock
        self._pg = pg
        self._people = random.sample([user.id for user in pg.world.people][1:], 5)
        self._topics = 0
        self._venues = [*words.VENUES, words.CHAIN]
        self._planners: dict[str, int] = {}  # who put a venue on the list
        self._scenes: dict[Callable[[], Steps], int] = {
            self._talk: 14,
            self._answered: 24,
            self._unanswered: 18,
            self._asked_again: 8,
            self._error: 8,
            self._fast: 6,
            self._bot_is_asked: 8,
            self._trip: 4,
            self._deleted: 6,
            self._edited: 6,
        }

    def life(self) -> Steps:
        """Plays scenes, more of them by day."""
        while True:
            hour = self.clock() % (24 * HOUR) / HOUR
            pause = 40 * MINUTE if 8 <= hour < 22 else 90 * MINUTE if hour >= 6 else 4 * HOUR
            yield 2 * MINUTE + self.random.expovariate(1 / pause)
            [scene] = self.random.choices(list(self._scenes), list(self._scenes.values()))
            yield from scene()

    # Scenes

    def _talk(self) -> Steps:
        """Several people talk; some of them address one another."""
        for _ in range(self.random.randint(2, 6)):
            author, other = self.random.sample(self._people, 2)
            aside = f"<@{other}> {self.one(words.ASIDES)}"
            self.say(author, self.one((aside, self.one(words.CHAT), self.one(words.CHAT))))
            yield self.random.uniform(15, 90)

    def _unanswered(self) -> Steps:
        yield from self._talk()
        self._ask(self.one(self._people), "unanswered")
        yield self.random.uniform(3, 20) * MINUTE

    def _answered(self) -> Steps:
        """A question is answered soon, or so late that the bot may have made an offer."""
        yield from self._talk()
        asker, helper = self.random.sample(self._people, 2)
        asked = self._ask(asker, "answered")
        yield self.one((self.random.uniform(8, 85), self.random.uniform(95, 400)))
        here, to = self.record.channel_id, asked.message
        ways: tuple[Callable[[], object], ...] = (
            lambda: self.say(helper, self.one(words.ANSWERS), reply_to=to.id),
            lambda: self.say(helper, self.one(words.ANSWERS)),
            lambda: self._pg.open_thread(here, helper, "answers", message=to),
            lambda: self._pg.post(here, helper, self.one(words.ANSWERS), reply_to=to.id, bot=True),  # another bot
            lambda: self.say(asker, self.one(words.SETTLED)),
        )
        self.one(ways)()
        asked.answered_at = self.clock()
        yield MINUTE

    def _asked_again(self) -> Steps:
        """A question is asked again in the same words, or its author only asks for an answer."""
        if self.random.random() < 0.5:
            yield from self._talk()
        asker = self.one(self._people)
        first = self._ask(asker, "asked twice")
        yield self.random.uniform(40, 400)
        again = self.one((first.message.content, self.one(words.NUDGES)))
        second = self.say(asker, again)
        if again == first.message.content:
            self.record.asked[second.id] = Asked(second, self.clock(), "asked twice")
        yield self.random.uniform(3, 15) * MINUTE

    def _error(self) -> Steps:
        author, helper = self.random.sample(self._people, 2)
        asked = self._ask(author, "error pasted", self.one(words.ERRORS).format(self._topic()))
        if self.random.random() < 0.4:
            yield self.random.uniform(10, 300)
            self.say(helper, self.one(words.ANSWERS), reply_to=asked.message.id)
            asked.answered_at = self.clock()
        yield self.random.uniform(3, 15) * MINUTE

    def _fast(self) -> Steps:
        """Two or three people answer each other within seconds; somebody else's question is lost in between."""
        asker, *talkers = self.random.sample(self._people, self.random.randint(3, 4))
        before = self.say(talkers[-1], self.one(words.CHAT))
        for number in range(self.random.randint(30, 50)):
            if number == 6:
                yield self.random.uniform(2, 10)
                self._ask(asker, "in a fast exchange")
            yield self.random.uniform(2, 10)
            before = self.say(talkers[number % len(talkers)], self.one(words.CHAT), reply_to=before.id)
        yield self.random.uniform(2, 8) * MINUTE

    def _bot_is_asked(self) -> Steps:
        author = self.one(self._people)
        self.say(author, f"<@{self._pg.bot_id}> {self.one(words.ASKED_OF_BOT).format(self.one(words.TOWNS))}")
        yield self.random.uniform(10, 40)
        self.say(author, self.one(words.FOLLOW_UPS))
        yield self.random.uniform(1, 5) * MINUTE

    def _trip(self) -> Steps:
        """A venue is put on the trip's list: when it should have been visited, the trip planner asks how it was."""
        if not self._venues:
            return
        author, name = self.one(self._people), self._venues.pop()
        self._planners[name.casefold()] = author
        self.say(author, f"<@{self._pg.bot_id}> add {name}")
        yield self.random.uniform(5, 60)
        cards = [
            m for m in self._pg.messages(self.record.channel_id) if m.author.id == self._pg.bot_id and m.components
        ]
        options = [choice for choice in choices(cards[-1]) if choice[0].startswith("1.")] if cards else []
        if options:
            self._pg.click(cards[-1], author, *options[0][1:])
        yield 3 * MINUTE

    def _deleted(self) -> Steps:
        yield from self._talk()
        asked = self._ask(self.one(self._people), "deleted")
        yield self.one((self.random.uniform(8, 85), self.random.uniform(95, 400)))
        self.delete(asked)
        yield MINUTE

    def _edited(self) -> Steps:
        """A question is edited: to say that it is solved, or to change a word."""
        yield from self._talk()
        asked = self._ask(self.one(self._people), "edited")
        yield self.one((self.random.uniform(8, 85), self.random.uniform(95, 400)))
        is_solved = self.random.random() < 0.5
        before = asked.message.content
        self._pg.edit(asked.message, f"[SOLVED] {before}" if is_solved else before.replace("the", "our"))
        if is_solved:
            asked.answered_at = self.clock()
        yield self.random.uniform(2, 10) * MINUTE

    # What they do

    def say(self, author_id: int, text: str, reply_to: int | None = None) -> Message:
        return self._pg.post(self.record.channel_id, author_id, text, reply_to=reply_to)

    def offered_to(self, offer: Shown) -> int:
        """The id of the person to whom an offer is made: who asked, or who put the venue on the list."""
        if offer.about:
            return self.record.asked[offer.about].message.author.id
        content = offer.message.content.casefold()
        return next(user_id for name, user_id in self._planners.items() if name in content)

    def delete(self, asked: Asked) -> None:
        self._pg.delete(asked.message)
        asked.deleted_at = self.clock()

    def one(self, options: Sequence[T]) -> T:
        return self.random.choice(options)

    def _ask(self, author_id: int, how: str, text: str | None = None) -> Asked:
        message = self.say(author_id, text or self.one(words.QUESTIONS).format(self._topic()))
        asked = self.record.asked[message.id] = Asked(message, self.clock(), how)
        return asked

    def _topic(self) -> str:
        """The next topic in turn, so that nobody else asks the same within the hour."""
        self._topics += 1
        return words.TOPICS[self._topics % len(words.TOPICS)]
