"""What people do with messages, and other bots: post, reply, forward, link, pin, edit and delete them."""

from __future__ import annotations

from bench.privacy.ground import Ground
from bench.privacy.places import AUTOMATIC, MANAGER
from bench.privacy.watch import words_in
from bench.privacy.words import WORD, Said
from playground.model import REPLY, File
from tests.support.samples import ogg, pdf, picture

SAYINGS = ("my code is", "my code is", "how is the weather in", "and tomorrow in", "see https://example.org/?")
MANY = 8


class Messages(Ground):
    async def _say(self, who: str) -> None:
        seen = (id_ for id_ in (*self._places.channels, *self._places.threads) if self._places.sees(who, id_))
        there = [id_ for id_ in seen if self._is_running and self._scene.bot.conversations.get(id_)]
        goes_on = there and not self._places.here and self._random.random() < 0.6
        channel = self._random.choice(there) if goes_on else self._places.one(who)
        await self._post(who, channel, self._random.choice(SAYINGS))

    async def _mention(self, who: str) -> None:
        await self._post(who, self._places.one(who), f"<@{self._pg.bot_id}> tell me about")

    async def _reply(self, who: str, among: int = 15) -> None:
        """among: so many of the newest messages there."""
        channel = self._places.one(who)
        there = [m for m in self._pg.messages(channel)[-among:] if m.type in (0, REPLY)]
        if there and (who in AUTOMATIC or self._places.reads(who, channel)):
            call = f"<@{self._pg.bot_id}> " if self._random.random() < 0.5 else ""
            await self._post(who, channel, f"{call}really,", reply_to=self._random.choice(there).id)

    async def _attach(self, who: str) -> None:
        call = f"<@{self._pg.bot_id}> " if self._random.random() < 0.7 else ""
        word = self._words.new()
        text = f"the plan is {word}"
        of = [
            File(f"{word}.txt", "text/plain", text.encode()),
            File("plan.pdf", "application/pdf", pdf([text])),
            File(f"{word}.png", "image/png", picture("PNG"), description=text),
            File("said.ogg", "audio/ogg", ogg(b"\x08" + text.encode(), 50), waveform="AAAA", duration_secs=1.0),
        ]
        channel = self._places.one(who)
        await self._post(who, channel, f"{call}look at", also=[word], attachments=[self._random.choice(of)])

    async def _act_by_itself(self, _who: str) -> None:
        act = self._random.choice((self._say, self._reply, self._edit, self._delete))
        await act(self._random.choice(AUTOMATIC))

    async def _ask_about(self, who: str) -> None:
        """Asks the bot about a message by its link."""
        if seen := self._places.seen(who):
            message = self._random.choice(seen)
            guild = self._words.guilds[message.channel_id] or "@me"
            link = f"https://discord.com/channels/{guild}/{message.channel_id}/{message.id}"
            self._watch.links = [link]
            await self._post(who, self._places.one(who), f"<@{self._pg.bot_id}> what does {link} say, and")

    async def _forward(self, who: str) -> None:
        seen = [message for message in self._places.seen(who) if message.content]
        if not seen:
            return
        message, person = self._random.choice(seen), self._ids[who]
        self._ask_in(who, self._places.one(who))
        forward = self._pg.post(self._watch.channel, person, forward=message)
        private = person in self._words.opted_out
        names = [attached["filename"] for attached in message.attachments]
        said_in_it = (*self._words.first.values(), *self._words.answers)  # also in its files
        of = {said.word for said in said_in_it if said.message_id == message.id}
        self._words.forwards += [
            Said(word, person, self._watch.channel, forward.id, self._words.step, private=private)
            for word in of.union(words_in([message.content, *names]))
        ]
        self.log.append(f"{who} forwards {message.id} to {self._watch.channel} as {forward.id}: {message.content}")
        await self._posted_by(who, forward)

    async def _pin(self, who: str) -> None:
        """Pins a message, or no longer."""
        if seen := [message for message in self._places.seen(who) if message.type in (0, REPLY)]:
            message = self._random.choice(seen)
            self._watch.ask_in(message.channel_id)
            self.log.append(f"{who} pins {message.id}: {message.content}")
            if message.pinned_at is None:
                self._pg.world.pin(message, self._pg.world.user(self._ids[who]))
            else:
                self._pg.world.unpin(message)

    async def _edit(self, who: str) -> None:
        own = [message for message in self._places.own(who) if WORD.search(message.content)]
        if own:
            message, word = self._random.choice(own), self._words.new()
            self._ask_in(who, message.channel_id, message.id)
            self._words.gone(message.id, WORD.findall(message.content))
            self._note(Said(word, self._ids[who], message.channel_id, message.id, self._words.step))
            self.log.append(f"{who} edits {message.id}: {word}")
            text = WORD.sub(word, message.content)
            self._pg.edit(message, text)
            await self._heard("raw_message_edit", lambda edited: edited.message_id == message.id)

    async def _delete(self, who: str) -> None:
        if own := self._places.own(who):
            message = self._random.choice(own)
            self._watch.ask_in(message.channel_id)
            self._words.gone(message.id)
            self.log.append(f"{who} deletes {message.id}: {message.content}")
            self._pg.delete(message)
            await self._heard("raw_message_delete", lambda deleted: deleted.message_id == message.id)

    async def _delete_many(self, _who: str) -> None:
        """Deletes the newest messages of a channel at once, as a moderator's bot does."""
        channel = self._random.choice([*self._places.channels, *self._places.threads])
        newest = [message.id for message in self._pg.messages(channel)[-self._random.randrange(2, MANY) :]]
        if newest:
            self._watch.ask_in(channel)
            for message_id in newest:
                self._words.gone(message_id)
            self.log.append(f"{MANAGER} deletes {newest} in {channel}")
            self._pg.world.delete_bulk(channel, newest)
            await self._heard("raw_bulk_message_delete", lambda deleted: deleted.message_ids == {*newest})

    async def _remove_file(self, who: str) -> None:
        if own := [message for message in self._places.own(who) if message.attachments]:
            message = self._random.choice(own)
            self._ask_in(who, message.channel_id, message.id)
            own_words = WORD.findall(message.content)
            words = [said.word for said in self._words.first.values() if said.message_id == message.id]
            self._words.gone(message.id, set(words) - set(own_words))
            self.log.append(f"{who} removes the file of {message.id}")
            self._pg.world.edit(message, {"attachments": ()})
            await self._heard("raw_message_edit", lambda edited: edited.message_id == message.id)
