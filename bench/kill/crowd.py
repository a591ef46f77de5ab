"""The people of the day: what they ask, say to each other, choose, edit and delete, whether the bot is there or not."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from playground.errors import ApiError
from playground.interactions import Interaction
from playground.model import Message
from playground.server import Playground
from tests.support.scene import choices

PEOPLE = ("Ada", "Ben", "Chloe", "Dan", "Eve")
CHANNELS = ("general", "help", "random", "trips")
PAUSE_SECONDS, PAUSE_SECONDS_WITHOUT_BOT = 0.2, 0.6
QUESTIONS = (
    "when does {} leave?",
    "is {} late today?",
    "how long does {} take to the coast?",
    "which platform is {} on?",
    "tell me about {} in detail, please",
)
FOLLOW_UPS = ("and {}?", "what about {}?", "and {} tomorrow?", "is {} on time too?", "how much is {}?")
TALK = ("I was on {} yesterday, it was full", "shall we take {} together?", "{} smells of cheese again")
TRIP = ("add shake shack", "put Shake Shack on our trip", "delete all venues", "list our trip", "start a trip")
# What somebody types in answer to a card. It has to be these words alone, so the mark comes as a sticker.
TYPED = ("2", "the first one", "yes", "Coast in spring", "get the shroom burger")
FORM = re.compile(r"Answer|Add a note")
CALLED_OFF = "Skip"


@dataclass(frozen=True, slots=True)
class PersonsMessage:
    """A person's message. mark: its number. to_bot: whether it mentions the bot."""

    message: Message
    mark: int
    to_bot: bool


@dataclass(frozen=True, slots=True)
class Clicked:
    """A click on a card. is_answer: whether it wants an answer in the channel."""

    interaction: Interaction
    card: Message
    is_answer: bool


class Crowd:
    """People who talk at random. said, clicked: what they did, in order; deleted: the ids of messages deleted since."""

    def __init__(self, pg: Playground, random: Random) -> None:
        self.said: list[PersonsMessage] = []
        self.clicked: list[Clicked] = []
        self.deleted: set[int] = set()
        self._pg = pg
        self._random = random
        self._is_there = asyncio.Event()
        self._channels = [pg.channel(name) for name in CHANNELS]
        self._people = [pg.person(name) for name in PEOPLE]
        self._acts: dict[Callable[[int], object], int] = {
            self._ask: 28,
            self._follow_up: 22,
            self._ask_in_quick_succession: 8,
            self._talk: 14,
            self._reply: 8,
            partial(self._ask, texts=TRIP): 12,
            self._answer_card: 16,
            self._edit: 6,
            self._delete: 2,
        }

    def asked_by(self, mark: int) -> int:
        """The id of the message with this mark."""
        return self.said[mark - 1].message.id

    def arrives(self) -> None:
        """Lets the people begin to talk."""
        self._is_there.set()

    async def talk(self) -> None:
        """Has the people talk until cancelled, more slowly while the bot is away."""
        await self._is_there.wait()
        while True:
            self.act()
            seconds = PAUSE_SECONDS if self._pg.connected else PAUSE_SECONDS_WITHOUT_BOT
            await asyncio.sleep(self._random.expovariate(1 / seconds))

    def act(self) -> None:
        """Has a random person do something in a random channel."""
        [act] = self._random.choices(list(self._acts), list(self._acts.values()))
        act(self._random.choice(self._channels))

    def _somebody(self) -> int:
        return self._random.choice(self._people)

    def _ask(self, channel_id: int, texts: Sequence[str] = QUESTIONS) -> None:
        self._say(channel_id, self._somebody(), f"<@{self._pg.bot_id}> {self._random.choice(texts)}")

    def _follow_up(self, channel_id: int) -> None:
        """Posts a follow-up, mostly by the person whom the bot answered last."""
        answered = None
        if self._random.random() < 0.7:
            own = (m for m in reversed(self._pg.messages(channel_id)) if m.author.bot and m.reference)
            answered = self._asked_by(next(own, None))
        self._say(channel_id, answered or self._somebody(), self._random.choice(FOLLOW_UPS))

    def _ask_in_quick_succession(self, channel_id: int) -> None:
        for _ in range(self._random.randint(2, 5)):
            self._random.choice((self._ask, self._follow_up))(channel_id)

    def _talk(self, channel_id: int) -> None:
        author, other = self._random.sample(self._people, 2)
        self._say(channel_id, author, f"<@{other}> {self._random.choice(TALK)}")

    def _reply(self, channel_id: int) -> None:
        if standing := self._pg.messages(channel_id)[-6:]:
            to = self._random.choice(standing)
            self._say(channel_id, self._somebody(), self._random.choice(QUESTIONS), reply_to=to.id)

    def _answer_card(self, channel_id: int) -> None:
        cards = [message for message in self._pg.messages(channel_id)[-30:] if message.components]
        if not cards:
            return
        card = cards[-1]
        person = self._asked_by(card) or self._somebody()
        if self._random.random() < 0.5:
            self._say(channel_id, person, self._random.choice(TYPED))
            return
        options = [choice for choice in choices(card) if not FORM.match(choice[0])]
        if options:
            label, custom_id, values = self._random.choice(options)
            click = self._pg.click(card, person, custom_id, values)
            self.clicked.append(Clicked(click, card, is_answer=label != CALLED_OFF))

    def _edit(self, channel_id: int) -> None:
        if said := self._recent(channel_id):
            self._pg.edit(said.message, f"{self._pg.world.find_message(said.message.id).content} please")

    def _delete(self, channel_id: int) -> None:
        if said := self._recent(channel_id):
            self.deleted.add(said.message.id)
            self._pg.delete(said.message)

    def _say(self, channel_id: int, author_id: int, text: str, reply_to: int | None = None) -> None:
        mark = len(self.said) + 1
        stickers = () if "{}" in text else (f"k{mark}",)
        message = self._pg.post(channel_id, author_id, text.format(f"k{mark}"), reply_to=reply_to, stickers=stickers)
        self.said.append(PersonsMessage(message, mark, self._pg.bot_id in message.mentions))

    def _recent(self, channel_id: int) -> PersonsMessage | None:
        """One of the last messages that people posted there, without deleted ones and stickers; None: there is none."""
        latest = [said for said in self.said[-12:] if said.message.channel_id == channel_id]
        standing = [s for s in latest if s.message.id not in self.deleted and not s.message.stickers]
        return self._random.choice(standing) if standing else None

    def _asked_by(self, message: Message | None) -> int | None:
        """The id of the person whom a message of the bot answers; after a click on a card, of who clicked."""
        if message is None or (to := message.points_at) is None:
            return None
        clickers = [clicked.interaction.user_id for clicked in self.clicked if clicked.card.id == to]
        if clickers:
            return clickers[-1]
        try:
            return self._pg.world.find_message(to).author.id
        except ApiError:  # deleted since
            return None
