"""What happens while the model is answering: several ask, who are answered together then, and words go meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bench.privacy.asking import Asking
from bench.privacy.ground import Act
from bench.privacy.places import PEOPLE

MOST = 5  # of what happens during one answer
ON_ITS_WAY_SECONDS = 0.05  # of the machine's time, in which a request arrives that has the words of before


class Together(Asking):
    async def _meanwhile(self, who: str, often: Sequence[Act], seldom: Sequence[Act]) -> None:
        """Asks the bot, and while it answers people of that channel do some of this."""
        here = self._places.one(who)
        there = [one for one in PEOPLE if self._places.sees(one, here)]
        self._places.here, self._watch.here = here, here
        known, gate = len(self._scene.stub.requests), asyncio.Event()
        self._watch.held = gate
        self.log.append(f"Meanwhile, in {here}:")
        await self._post(who, here, f"<@{self._pg.bot_id}> tell me about")
        await self._scene.until(lambda: len(self._scene.stub.requests) > known or not len(self._scene.bot.turns))
        for _ in range(self._random.randrange(2, MOST + 1)):
            self._words.step += 1
            act = self._random.choice(often if self._random.random() < 0.7 else seldom)
            await act(self._random.choice(there))
            await asyncio.sleep(ON_ITS_WAY_SECONDS)
        self._words.step += 1
        self._watch.ask_in(here)
        self._watch.held = None
        gate.set()
        self.log.append("The model goes on.")
        await self._scene.at_rest()
        self._places.here = self._watch.here = 0
        self._watch.in_flight.clear()
