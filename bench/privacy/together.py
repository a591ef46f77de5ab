"""What happens while the bot is busy: several ask, who are answered together then, and words go meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from bench.privacy.asking import Asking
from bench.privacy.ground import LOOK_SECONDS, Act
from bench.privacy.messages import Messages
from bench.privacy.places import PEOPLE
from bench.privacy.watch import words_in

MOST = 5  # of what happens during one answer
UNANSWERED_SECONDS = 90  # then the bot may offer to answer
TRIP = (
    "start a trip called {}", "rename the trip to {}", "add {} Cafe to the trip", "add Shake Shack Shibuya to the trip",
    "add a note for Shake Shack Shibuya: {}", "list our trip, {}", "list our trip", "export the trip",
)  # fmt: skip
ON_ITS_WAY_SECONDS = 0.05  # of the machine's time, in which what the bot has begun to answer reaches the model


class Together(Asking, Messages):
    @contextmanager
    def _all_in(self, channel: int) -> Iterator[list[str]]:
        """All that people do until the end they do in this channel. Returns who sees it. Whom an answer is for is read
        from the request."""
        self._places.here = self._watch.here = channel
        yield [one for one in PEOPLE if self._places.sees(one, channel)]
        self._places.here = self._watch.here = 0
        self._watch.in_flight.clear()

    async def _some(self, people: Sequence[str], often: Sequence[Act], seldom: Sequence[Act], most: int = MOST) -> None:
        """People do some of this."""
        for _ in range(self._random.randrange(2, most + 1)):
            self._begin_step()
            act = self._random.choice(often if self._random.random() < 0.7 else seldom)
            await act(self._random.choice(people))
            await asyncio.sleep(ON_ITS_WAY_SECONDS)

    async def _one_by_one(self, who: str, acts: Sequence[Act]) -> None:
        """For a while people do some of this in one place, each once the bot is at rest again."""
        with self._all_in(here := self._places.one(who)) as there:
            self.log.append(f"One by one, in {here}:")
            for _ in range(self._random.randrange(MOST, 2 * MOST)):
                self._begin_step()
                await self._random.choice(acts)(self._random.choice(there))
                await self._at_rest()
                self._watch.bot_was_told()
                self._watch.in_flight.clear()

    async def _meanwhile(self, who: str, often: Sequence[Act], seldom: Sequence[Act]) -> None:
        """Asks the bot, and while it answers people of that channel do some of this."""
        with self._all_in(here := self._places.one(who)) as there:
            known, gate = self._requests(), asyncio.Event()
            if stands := self._random.random() < 0.5:  # it has posted the beginning of its answer
                self._watch.gate = gate
            else:
                self._watch.held = gate
            self.log.append(f"Meanwhile, {'as it writes, ' * stands}in {here}:")
            asks = "ask the docs agent about" if self._random.random() < 0.3 else "tell me about"
            await self._post(who, here, f"<@{self._pg.bot_id}> {asks}")
            if self._random.random() < 0.7:
                await self._hear_out()
            await self._scene.until(lambda: self._requests() > known or not len(self._scene.bot.turns))
            if stands:
                await asyncio.sleep(ON_ITS_WAY_SECONDS)
                self._begin_step()
                await self._reply(replier := self._random.choice(there), among=1)
                await self._forget_whose_words_stand(here, but=(who, replier))
            await self._some(there, often, seldom)
            self._begin_step()
            self._watch.ask_in(here)
            self._watch.held = self._watch.gate = None
            gate.set()
            self.log.append("The model goes on.")
            await self._at_rest()

    async def _forget_whose_words_stand(self, channel: int, but: Collection[str]) -> None:
        """Somebody but these has the bot forget what they said, if something of that stands in its newest message."""
        own = [message for message in self._pg.messages(channel) if message.author.id == self._pg.bot_id]
        whose = {self._words.first[word].author_id for message in own[-1:] for word in words_in([message.content])}
        if people := [who for who in PEOPLE if who not in but and self._ids[who] in whose]:
            self._begin_step()
            await self._forget(self._random.choice(people))

    def _requests(self) -> int:
        """How many requests to the models that answer, and to the remote agent, there were."""
        return len(self._scene.stub.requests) + len(self._servers.openai.requests) + len(self._servers.docs.contents)

    async def _go_on(self, who: str, often: Sequence[Act], seldom: Sequence[Act]) -> None:
        """Somebody writes several messages in one breath, and takes some of them back, and others of that channel do
        something meanwhile. What calls nobody, where the bot takes part, is for a judge."""
        talks = [id_ for id_ in self._places.channels if self._scene.bot.conversations.get(id_)]
        calls = not (seen := [id_ for id_ in talks if self._places.sees(who, id_)]) or self._random.random() < 0.4
        with self._all_in(here := self._places.one(who) if calls else self._random.choice(seen)) as there:
            self.log.append(f"In one breath, in {here}:")
            before, self._places.posted[who] = self._places.posted[who], []
            await self._post(who, here, f"{f'<@{self._pg.bot_id}> ' if calls else ''}tell me about")
            await self._some([who, who, self._random.choice(there)], often if calls else often[:2], seldom)
            self._places.posted[who] = [*before, *self._places.posted[who]]
            self._begin_step()
            self._watch.ask_in(here)
            self.log.append("All pause.")
            await self._at_rest()

    # The trip planner, which looks places up

    async def _plan(self, who: str) -> None:
        """Asks the trip planner for something."""
        text = self._random.choice(TRIP).format(word := self._words.new())
        also = [word] if word in text else []
        await self._post(who, self._places.one(who), f"<@{self._pg.bot_id}> {text}", also=also, new=False)

    async def _plan_meanwhile(self, who: str, meanwhile: Sequence[Act]) -> None:
        """Has a place looked up for a trip, and while that takes its time people of that channel do some of this."""
        with self._all_in(here := self._places.one(who)) as there:
            known, gate = len(self._servers.venues.asked), asyncio.Event()
            self._servers.venues.held = gate
            self.log.append(f"While a place is looked up, in {here}:")
            word = self._words.new()
            await self._post(who, here, f"<@{self._pg.bot_id}> add {word} Cafe to the trip", also=[word], new=False)
            await self._hear_out()
            await self._scene.until(lambda: len(self._servers.venues.asked) > known or not len(self._scene.bot.turns))
            await self._some([who, *there], meanwhile, meanwhile, 3)
            self._begin_step()
            self._watch.ask_in(here)
            self._servers.venues.held = None
            gate.set()
            self.log.append("The place is found.")
            await self._at_rest()

    # Offers

    async def _ask_everybody(self, who: str) -> None:
        """Asks what the bot may offer to answer, as nobody does."""
        await self._post(who, self._places.one(who), "does anybody know how to renew a certificate with")
        if self._is_running:
            await self._at_rest()
            self._clock.advance(UNANSWERED_SECONDS)
            offers = self._scene.bot.proactive_offers
            offers.pulse()
            channel = offers._channels.get(self._watch.channel)  # noqa: SLF001 - nothing tells of it
            while channel and channel.is_busy:
                await asyncio.sleep(LOOK_SECONDS)

    async def _drop_connection(self, who: str, acts: Sequence[Act]) -> None:
        """The bot's connection to the gateway drops, and until it is back people of a channel do some of this."""
        with self._all_in(here := self._places.one(who)) as there:
            self.log.append(f"The connection drops. Until it is back, in {here}:")
            self._ask_in(who, here)
            self._pg.cut()
            self._is_running, self._is_cut = False, True
            for _ in range(self._random.randrange(1, MOST + 1)):  # without a moment in which it could come back
                self._begin_step()
                await self._random.choice(acts)(self._random.choice(there))
            self._is_running = True
            self.log.append("It is back.")
            self._begin_step()
            await self._post(who, here, "so,")  # before which the bot hears all the rest
            self._is_cut = False
            self._watch.ask_in(here)
            await self._at_rest()
