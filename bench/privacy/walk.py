"""A walk: people do at random what they do in Discord, one after the other, and a model repeats whatever it was told.

Each message has a word of its own, as each file and each thread's title, by which it is found in what the model is sent
and in what is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from bench.privacy.ground import Act
from bench.privacy.places import AUTOMATIC, MANAGER, PEOPLE
from bench.privacy.together import Together
from bench.privacy.watch import words_in
from bench.privacy.words import ANYWHERE, WORD, Said
from discord_io.prompt_cards import EXPIRED
from playground.errors import ApiError
from playground.model import REPLY, File
from tests.support.lives import kill
from tests.support.remote_agent import RemoteAgent
from tests.support.samples import ogg, pdf, picture
from tests.support.scene import Scene, choices

NEAR, AWAY = (2, 5, 10, 20), (130, 200)  # seconds between two steps; the second ends a conversation
SETTINGS: dict[str, Any] = {
    "direct_messages": "open",
    "threads": "open",
    "decline": False,
    "followup_eagerness": "balanced",
    "turns_per_user_minute": 1_000,
    **dict.fromkeys(("turn_tokens", "person_tokens", "guild_tokens", "daily_tokens"), 0),
    "session_tokens": 2_000,
    "catch_up_seconds": 86_400.0,
    "offers_per_day": 100,
    "offer_timeout_seconds": 60,
    "offer_cooldown_seconds": 10,
    "decision_log": "content",
    "use_llm_judge": True,
    **dict.fromkeys(("judge_model", "coordinator_model", "rewrite_model"), "openai-chat:stub"),
    "transcribe_model": "openai:ears",
    "shared_context": True,
}
UNANSWERED_SECONDS = 90  # then the bot may offer to answer
RETENTION = timedelta(days=30)
TRIP = (
    "start a trip called {}", "rename the trip to {}", "add {} Cafe to the trip", "add Shake Shack Shibuya to the trip",
    "add a note for Shake Shack Shibuya: {}", "list our trip, {}", "list our trip", "export the trip",
)  # fmt: skip
SAYINGS = ("my code is", "my code is", "how is the weather in", "and tomorrow in", "see https://example.org/?")
MANY = 8


class Walk(Together):
    """The people, what they know, and what was found wrong."""

    def __init__(self, scene: Scene, docs: RemoteAgent, seed: int) -> None:
        super().__init__(scene, docs, seed)
        self._acts: dict[Act, int] = {
            self._say: 20, self._mention: 25, self._reply: 10, self._attach: 6, self._post_in_forum: 3,
            self._open_thread: 3, self._rename: 3, self._archive: 2, self._delete_thread: 1, self._pin: 3,
            self._edit: 6, self._delete: 6, self._delete_many: 1, self._remove_file: 2, self._act_by_itself: 6,
            self._close_or_open: 2, self._hide_or_show_history: 3, self._ask_everybody: 4, self._ask_docs: 8,
            self._rejoin: 1,
        }  # fmt: skip
        self._acts_with_the_bot: dict[Act, int] = {
            self._forward: 6, self._ask_about: 8, self._plan: 6, self._click: 8, self._forget: 3, self._forget_all: 1,
            self._opt_out: 2, self._opt_in: 2, self._export: 2, self._ask_why: 5, self._leave_server: 1,
            self._turn_on_offers: 3, self._stay_away: 1, self._ask_alone: 3, self._look: 3, self._look_at_console: 2,
            self._set: 3, self._act_meanwhile: 8,
        }  # fmt: skip

    @contextmanager
    def wakes(self) -> Iterator[None]:
        """Notes that the bot starts, and may answer what it had not, in any channel. Until the end it is running."""
        self.log.append("The bot starts.")
        self._watch.ask_in(ANYWHERE, *(said.message_id for said in self._words.first.values() if said.private))
        self._is_running = True
        yield
        self._is_running = False

    async def caught_up(self) -> None:
        """Waits until the bot has answered what it missed, in all places, and has the tools of its MCP server."""
        await self._scene.bot.parts.mcp.tried()
        for channel in self._words.readers:
            await self._scene.bot.parts.gate.wait(channel, self._words.guilds[channel])
        await self._scene.at_rest()

    async def step(self) -> None:
        """Somebody does something, and the bot is at rest again."""
        self._clock.advance(self._random.choice(AWAY if self._random.random() < 0.08 else NEAR))
        acts = self._acts
        if self._is_running:
            self._expire()
            acts = self._acts | self._acts_with_the_bot
        [act] = self._random.choices([*acts], [*acts.values()])
        self._words.step += 1
        self._watch.links = []
        await act(self._random.choice(PEOPLE))
        if self._is_running:
            await self._scene.at_rest()

    def _expire(self) -> None:
        """Ends prompts and offers whose time is over: the bot's own timers go by the machine's time."""
        self._scene.bot.prompts.settle(self._scene.bot.states.expire(), EXPIRED)
        self._scene.bot.proactive_offers.pulse()

    async def ends(self) -> None:
        """Searches what is stored, and may have the bot killed in the middle of an answer."""
        await self._watch.search_disk()
        if self._random.random() < 0.5:
            gate = self._watch.gate = asyncio.Event()
            known = len(self._scene.stub.requests)
            self._words.step += 1
            await self._mention(self._random.choice(PEOPLE))
            await self._scene.until(lambda: len(self._scene.stub.requests) > known or not len(self._scene.bot.turns))
            self.log.append("The bot is killed.")
            await kill(self._scene)
            gate.set()
            self._watch.gate = None

    # What people do, and other bots

    async def _say(self, who: str) -> None:
        seen = (id_ for id_ in (*self._places.channels, *self._places.threads) if self._places.sees(who, id_))
        there = [id_ for id_ in seen if self._is_running and self._scene.bot.conversations.get(id_)]
        goes_on = there and not self._places.here and self._random.random() < 0.6
        channel = self._random.choice(there) if goes_on else self._places.one(who)
        await self._post(who, channel, self._random.choice(SAYINGS))

    async def _mention(self, who: str) -> None:
        await self._post(who, self._places.one(who), f"<@{self._pg.bot_id}> tell me about")

    async def _reply(self, who: str) -> None:
        channel = self._places.one(who)
        there = [m for m in self._pg.messages(channel)[-15:] if m.type in (0, REPLY)]
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

    async def _plan(self, who: str) -> None:
        """Asks the trip planner for something."""
        text = self._random.choice(TRIP).format(word := self._words.new())
        also = [word] if word in text else []
        await self._post(who, self._places.one(who), f"<@{self._pg.bot_id}> {text}", also=also, new=False)

    async def _ask_everybody(self, who: str) -> None:
        """Asks what the bot may offer to answer, as nobody does."""
        await self._post(who, self._places.one(who), "does anybody know how to renew a certificate with")
        if self._is_running:
            await self._scene.at_rest()
            self._clock.advance(UNANSWERED_SECONDS)
            self._scene.bot.proactive_offers.pulse()

    async def _act_meanwhile(self, who: str) -> None:
        often = self._mention, self._mention, self._say, self._reply
        await self._meanwhile(who, often, (self._edit, self._delete, self._forget, self._attach, self._opt_out))

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
        self._speak_in(who, self._places.one(who))
        forward = self._pg.post(self._watch.channel, person, forward=message)
        private = person in self._words.opted_out
        names = [attached["filename"] for attached in message.attachments]
        of = {said.word for said in self._words.first.values() if said.message_id == message.id}  # also in its files
        self._words.forwards += [
            Said(word, person, self._watch.channel, forward.id, self._words.step, private=private)
            for word in of.union(words_in([message.content, *names]))
        ]
        self.log.append(f"{who} forwards {message.id} to {self._watch.channel} as {forward.id}: {message.content}")
        await self._posted_by(who, forward)

    # Threads and posts

    async def _post_in_forum(self, who: str) -> None:
        title, words, call = self._words.new(), self._words.new(), f"<@{self._pg.bot_id}> "
        self._watch.ask_in(ANYWHERE)
        text = f"{call if self._random.random() < 0.5 else ''}what is {words}"
        thread = self._pg.forum_post(self._places.forum, self._ids[who], f"about {title}", text)
        self._note(Said(title, self._ids[who], thread, -thread, self._words.step))
        self._note(Said(words, self._ids[who], thread, thread, self._words.step))
        self.log.append(f"{who} posts {thread} in the forum: {title}: {text}")
        await self._posted_by(who, self._pg.messages(thread)[0])

    async def _open_thread(self, who: str) -> None:
        """Opens a thread, begun at a message or not, or a private one with the bot and somebody else."""
        channel = self._random.choice([id_ for id_ in self._places.channels if self._places.sees(who, id_)])
        person = self._ids[who]
        starters = [m for m in self._pg.messages(channel)[-15:] if m.id not in self._pg.world.threads]
        starter = self._random.choice([m for m in starters if m.type in (0, REPLY)] or [None])
        private, title = self._random.random() < 0.3, self._words.new()
        how: dict[str, Any] = {"private": True} if private else {"message": starter}
        self._ask_in(who, channel)
        thread = self._pg.open_thread(channel, person, f"about {title}", **how)
        if private:
            member = self._random.choice([*(self._words.readers[channel] - {person})])
            self._words.readers[thread] = self._places.members[thread] = frozenset((person, member))
            for member_id in (member, self._pg.bot_id):
                self._pg.add_to_thread(thread, member_id)
        self._note(Said(title, person, thread, -thread, self._words.step))
        self.log.append(f"{who} opens {thread} in {channel}: {title} {'in private' if private else 'at it'}")
        await self._post(who, thread, f"<@{self._pg.bot_id}> what is")

    async def _rename(self, who: str) -> None:
        """Gives somebody's thread another title."""
        if own := self._places.opened_by(who):
            thread, title = self._random.choice(own), self._words.new()
            self._watch.ask_in(thread)
            self._words.gone(-thread)
            self._note(Said(title, self._ids[who], thread, -thread, self._words.step))
            self.log.append(f"{who} renames {thread}: {title}")
            self._pg.change_thread(thread, self._ids[who], archived=False)  # an archived one keeps its title
            self._pg.change_thread(thread, self._ids[who], name=f"about {title}")
            if self._is_running:
                heard = self._scene.bot.wait_for("raw_thread_update", check=lambda update: title in update.data["name"])
                await asyncio.wait_for(heard, timeout=60)
                await asyncio.gather(
                    *(t for t in asyncio.all_tasks() if t.get_name() == "discord.py: on_thread_update")
                )

    async def _archive(self, who: str) -> None:
        if threads := [id_ for id_ in self._places.threads if self._places.sees(who, id_)]:
            thread = self._random.choice(threads)
            self._watch.ask_in(thread)
            self.log.append(f"{who} archives {thread}")
            self._pg.change_thread(thread, archived=True)

    async def _delete_thread(self, who: str) -> None:
        if own := self._places.opened_by(who):
            thread = self._random.choice(own)
            self._watch.ask_in(ANYWHERE)
            self._places.gone(thread)
            self.log.append(f"{who} deletes the thread {thread}")
            self._pg.delete_channel(thread)
            await self._heard("raw_thread_delete", lambda deleted: deleted.thread_id == thread)

    # What becomes of messages

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

    # Who may be where

    async def _close_or_open(self, who: str) -> None:
        """Takes from somebody the right to see a channel, or gives it back."""
        if who != MANAGER:
            channel = self._pg.channel("random")
            self._watch.ask_in(ANYWHERE)
            opens = self._places.close_or_open(channel, who)
            self.log.append(f"{MANAGER} {'opens' if opens else 'closes'} {channel} for {who}")
            await self._heard("guild_channel_update", lambda _, after: after.id == channel)

    async def _hide_or_show_history(self, who: str) -> None:
        """Somebody may not read what was said in a channel before they came, as who joins later, or may again."""
        if who != MANAGER:
            channel = self._random.choice([id_ for id_ in self._places.channels if self._places.sees(who, id_)])
            self._watch.ask_in(ANYWHERE)
            shows = self._places.hide_or_show_history(channel, who)
            self.log.append(f"{MANAGER} {'shows' if shows else 'hides'} the history of {channel} to {who}")
            await self._heard("guild_channel_update", lambda _, after: after.id == channel)

    async def _rejoin(self, who: str) -> None:
        """Somebody leaves the first server, and comes back."""
        if who != MANAGER:
            person = self._ids[who]
            self._watch.ask_in(ANYWHERE)
            self._words.came = {
                (channel, one): step
                for (channel, one), step in self._words.came.items()
                if one != person or self._words.guilds[channel] != self._pg.guild_id
            }
            self.log.append(f"{who} leaves the server, and comes back")
            self._pg.rejoin(person)

    async def _turn_on_offers(self, _who: str) -> None:
        await self._use(MANAGER, "offers", self._random.choice(self._places.channels), on={})

    async def _stay_away(self, _who: str) -> None:
        """Nobody says anything for a month."""
        self._watch.ask_in(ANYWHERE)
        self.log.append("A month passes.")
        self._clock.advance((RETENTION + timedelta(days=1)).total_seconds())
        self._expire()
        await self._scene.at_rest()
        self._scene.bot.parts.sweep()
        await self._scene.bot.parts.privacy.expire(self._clock() - RETENTION)
        await self._watch.search_disk(lambda _: "it is a month old")
        self._words.month_passed()

    async def _leave_server(self, _who: str) -> None:
        """Removes the bot from a server, and invites it again."""
        guild = self._places.elsewhere
        self._watch.ask_in(ANYWHERE)
        self.log.append(f"{MANAGER} removes the bot from {guild}")
        self._pg.remove_bot(guild)
        await self._heard("guild_remove", lambda left: left.id == guild)
        await self._watch.search_disk(lambda word: "the bot has left" * self._words.is_only_in(guild, word))
        self._pg.invite_bot(guild)
        await self._heard("guild_join", lambda joined: joined.id == guild)

    # What people ask of the bot beside messages

    async def _click(self, who: str) -> None:
        cards = [m for m in self._places.seen(who) if m.author.id == self._pg.bot_id and choices(m)]
        if cards:
            card = self._random.choice(cards[-8:])
            label, custom_id, values = self._random.choice(choices(card))
            self._ask_in(who, card.channel_id)
            self._clicked |= {(who, word) for word in words_in([label])}  # what they say by it
            self.log.append(f"{who} clicks {label} on {card.id}")
            try:
                clicked = self._pg.click(card, self._ids[who], custom_id, values)
            except ApiError:  # somebody else's answer has disabled it
                return
            await self._scene.until(lambda: clicked.callback is not None)
            if clicked.form:
                await self._fill_in(who, clicked)

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
