"""What people ask of the bot beside its answers in a conversation: another agent, private answers, forms, figures."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import ClientSession, CookieJar

from bench.privacy.ground import Ground
from bench.privacy.places import MANAGER
from bench.privacy.watch import words_in
from bench.privacy.words import ANYWHERE, Said
from place_settings.fields import Level
from playground.interactions import Interaction
from web.site import Site

LOOKS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("usage", {}), ("usage", {"of": "server"}), ("parley", {"show": {}}), ("tour", {}), ("status", {}), ("privacy", {}),
)  # fmt: skip
PAGES = ("", "places", "people", "errors", "storage")
SET: tuple[tuple[str, str], ...] = (
    ("When it answers", "mentions"), ("When it answers", "off"), ("Threads", "join"), ("Threads", "off"),
    ("Eagerness", "eager"), ("Eagerness", "quiet"), ("Judge", "off"), ("May decline", "on"),
    ("Offers of help", "on"), ("Tools", "off"),
)  # fmt: skip

LISTS = (
    ("Blocked members", "+ <@{person}>"), ("Blocked members", "- <@{person}>"), ("Blocked roles", "@Team"),
    ("Blocked roles", "inherit"), ("Allowed channels", "#general, random, team"), ("Allowed channels", "inherit"),
    ("Blocked channels", "#nowhere"), ("Roles without a budget", "<@&{role}>"),
)  # fmt: skip


class Asking(Ground):
    async def _ask_docs(self, who: str) -> None:
        """Asks the remote agent, by its name."""
        call = self._random.choice(("ask the docs agent about", "docs: what is", "docs: how is the weather in"))
        await self._post(who, self._places.one(who), f"<@{self._pg.bot_id}> {call}")

    async def _ask_alone(self, who: str) -> None:
        """Has something answered that only they see."""
        if self._random.random() < 0.5:
            said = self._write(who, channel := self._places.one(who))
            said.private = True  # nothing of it is kept
            await self._use(who, "ask", channel, said.message_id, question=f"what is {said.word}")
        elif seen := [message for message in self._places.seen(who) if message.content]:
            message = self._random.choice(seen)
            await self._use(who, "Answer this", message.channel_id, target=message)

    def _write(self, who: str, channel: int) -> Said:
        """A new word of somebody's that stands in no message."""
        said = Said(self._words.new(), self._ids[who], channel, -self._words.step, self._words.step)
        self._note(said)
        return said

    async def _fill_in(self, who: str, opener: Interaction) -> None:
        """Sends the form that a click has opened."""
        said = self._write(who, opener.channel_id)
        self._ask_in(who, opener.channel_id, said.message_id)
        self.log.append(f"{who} fills in the form: {said.word}")
        sent = self._pg.submit(opener, {"text": f"it is {said.word}"})
        await self._scene.until(lambda: sent.callback is not None)

    async def _look(self, _who: str) -> None:
        """The manager looks at what the bot shows of itself in a server."""
        name, options = self._random.choice(LOOKS)
        channel = self._random.choice([*self._places.channels, *self._places.threads])
        answer = await self._use(MANAGER, name, channel, **options)
        title = -channel  # which Discord shows there
        self._watch.check_shown(f"by /{name}", words_in([answer.content, json.dumps(answer.embeds)]), [title])

    async def _set(self, _who: str) -> None:
        """The manager sets the bot up in another way, mostly as it was."""
        channel = self._random.choice(self._places.channels)
        setting, value = self._random.choice(SET)
        if self._random.random() < 0.5:
            await self._use(MANAGER, "parley", channel, reset={"setting": "everything"})
        elif self._random.random() < 0.5:
            await self._use(MANAGER, "parley", channel, set={"setting": setting, "value": value})
        else:
            setting, value = self._random.choice(LISTS)
            how = {"value": value.format(person=self._ids["Dan"], role=self._places.role), "where": int(Level.GUILD)}
            self._pg.autocomplete(channel, self._ids[MANAGER], "parley", {"set": {"setting": setting} | how}, "value")
            await self._use(MANAGER, "parley", channel, set={"setting": setting} | how)

    async def _look_at_console(self, _who: str) -> None:
        """The owner reads all pages of the console, with the words of people."""
        self._watch.ask_in(ANYWHERE)
        self.log.append("The owner reads the console.")
        site = Site(self._scene.bot.health, is_local=True, shows_content=True)
        site.show(self._scene.bot.shown)
        places = [*self._places.channels, *self._places.threads]
        pages = dict.fromkeys(PAGES, ANYWHERE) | {f"places/{self._words.guilds[id_]}/{id_}": id_ for id_ in places}
        pages |= {f"places/{guild}": ANYWHERE for guild in {*self._words.guilds.values()} - {0}}
        cookies = CookieJar(unsafe=True)  # also of a host that has no name
        async with site.served(0, "127.0.0.1") as address, ClientSession(cookie_jar=cookies) as browser:
            for page, self._watch.channel in pages.items():
                async with browser.get(f"{address}/console/{page}".rstrip("/")) as response:
                    assert response.status in (200, 404)  # an archived thread has no page
                    shown = words_in([await response.text()])
                    self._watch.check_shown(f"on {page}", shown)
                    self._watch.check_hides(f"on {page}", shown)

    # What people can do about what is kept of them

    async def _forget(self, who: str) -> None:
        await self._use(who, "forget")
        self._words.people_forgotten[self._ids[who]] = self._words.step
        await self._watch.search_disk()

    async def _forget_all(self, _who: str) -> None:
        await self._use(MANAGER, "forget", everything=True)
        self._words.channels_forgotten[self._watch.channel] = self._words.step
        await self._watch.search_disk()

    async def _opt_out(self, who: str) -> None:
        await self._use(who, "optout")
        self._words.opted_out.add(self._ids[who])
        self._words.people_forgotten[self._ids[who]] = self._words.step
        await self._watch.search_disk()

    async def _opt_in(self, who: str) -> None:
        await self._use(who, "optin")
        self._words.opted_out.discard(self._ids[who])

    async def _export(self, who: str) -> None:
        answer = await self._use(who, "export")
        for attached in answer.attachments:
            file = self._pg.world.files[int(attached["id"])]
            words = words_in([file.data.decode()])
            self._watch.channel = ANYWHERE
            self._watch.check("exported", words)
            for word in words:
                forwards = {said.author_id for said in self._words.forwards if said.word == word}
                is_own = self._ids[who] in forwards | {self._words.first[word].author_id}
                if not (is_own or (who, word) in self._clicked):
                    self._watch.find(f"exported to {who}", word)

    async def _ask_why(self, who: str) -> None:
        seen = self._places.seen(who)
        message = self._random.choice(seen) if seen and self._random.random() < 0.5 else None
        name, channel = ("Why?", message.channel_id) if message else ("why", self._places.one(who))
        answer = await self._use(who, name, channel, target=message)
        self._watch.check_shown(f"by /{name}", words_in([answer.content]))
