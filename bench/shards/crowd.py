"""The people of thousands of servers: who says what where, and what became of each question.

Every message carries a mark of its own, so that each answer can be matched (bench/kill/marked_model.py). Of most that
is said nothing is kept but its id; of the bot, what stands in the end.
"""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection
from random import Random
from time import perf_counter

from bench.kill.findings import Asked, Evidence
from bench.kill.marked_model import TOKEN
from bench.shards.loopback import Loopback
from playground.model import Event, Message

STEP_SECONDS = 0.02
FOLLOW_UP_SHARE, FOLLOW_UP_SECONDS = 0.5, (1.0, 6.0)
QUESTIONS = ("when does {} leave?", "is {} late today?", "how long does {} take to the coast?", "where does {} stop?")
FOLLOW_UPS = ("and {}?", "what about {}?", "and {} tomorrow?", "is {} on time too?")
TALK = ("I was on {} yesterday, it was full", "{} smells of cheese again", "we took {} in the end, it was fine")
WORKING = "-# "  # begins a line on what is being done meanwhile


class Crowd:
    """asked_share: how many of the messages ask the bot. first_texts: seconds until an answer's first words stood."""

    def __init__(self, pg: Loopback, random: Random, asked_share: float) -> None:
        self.first_texts: list[float] = []
        self.answered: set[int] = set()
        self._pg = pg
        self._random = random
        self._asked_share = asked_share
        self._people = [person.id for person in pg.world.people]
        self._channels = list(pg.world.channels)
        self._ids = array("Q")  # of all messages, by mark
        self._places = array("Q")
        self._asked: dict[int, float] = {}  # message id -> when
        self._said: defaultdict[int, dict[int, Message]] = defaultdict(dict)
        pg.world.listen(self._listen)

    @property
    def counted(self) -> dict[str, int]:
        return {"sent": len(self._ids), "asked": len(self._asked), "answered": len(self.answered)}

    def asked_by(self, mark: int) -> int:
        """The id of the message with this mark."""
        return self._ids[mark - 1]

    async def talk(self, rate: float) -> None:
        """Posts so many messages a second until cancelled."""
        begun, before = perf_counter(), len(self._ids)
        while True:
            for _ in range(int((perf_counter() - begun) * rate) - len(self._ids) + before):
                if self._random.random() < self._asked_share:
                    self.ask(self._random.choice(self._channels))
                else:
                    self._say(self._random.choice(self._channels), self._random.choice(TALK))
            await asyncio.sleep(STEP_SECONDS)

    def ask(self, channel_id: int) -> None:
        question = f"<@{self._pg.bot_id}> {self._random.choice(QUESTIONS)}"
        self._asked[self._say(channel_id, question).id] = perf_counter()

    def ask_on(self, shard_id: int) -> None:
        """Asks the bot in a random server of this shard."""
        guilds = self._pg.guilds_on(shard_id)
        self.ask(next(iter(self._random.choice(guilds).channels)))

    def _say(self, channel_id: int, text: str, author_id: int | None = None) -> Message:
        author_id = author_id or self._random.choice(self._people)
        message = self._pg.post(channel_id, author_id, text.format(f"k{len(self._ids) + 1}"))
        self._ids.append(message.id)
        self._places.append(channel_id)
        return message

    def _listen(self, event: Event) -> None:
        if event.name == "MESSAGE_DELETE" and event.channel:
            self._said[event.channel.id].pop(event.ids[0], None)
        message = event.message
        if message is None or message.author.id != self._pg.bot_id or event.name not in _POSTED:
            return
        self._said[message.channel_id][message.id] = message
        asked = message.points_at
        if (
            asked is None
            or asked in self.answered
            or not any(kind == "b" for kind, *_ in TOKEN.findall(message.content))
        ):
            return
        self.answered.add(asked)
        if asked in self._asked:
            self.first_texts.append(perf_counter() - self._asked[asked])
            place = message.channel_id
            question = self._pg.world.channel(place).messages.get(asked)
            if self._random.random() < FOLLOW_UP_SHARE and question is not None:
                text, seconds = self._random.choice(FOLLOW_UPS), self._random.uniform(*FOLLOW_UP_SECONDS)
                asyncio.get_running_loop().call_later(seconds, self._say, place, text, question.author.id)

    def evidence(self, followed: Collection[int], failed: Collection[int] = ()) -> Evidence:
        """followed, failed: the ids of the messages of which a log says that they are answered, or could not be."""
        replied = {m.points_at for said in self._said.values() for m in said.values() if m.points_at is not None}
        accepted = {*self._asked, *followed} - {*failed}
        asked = []
        for message_id in sorted(accepted | replied):
            mark = bisect_left(self._ids, message_id)
            if mark < len(self._ids) and self._ids[mark] == message_id:
                place = self._places[mark]
                asked.append(Asked(message_id, place, message_id, message_id in accepted, mark + 1))
        places = {one.channel_id for one in asked} | self._said.keys()
        return Evidence(asked, {place: [*self._said[place].values()] for place in places})


_POSTED = ("MESSAGE_CREATE", "MESSAGE_UPDATE")
