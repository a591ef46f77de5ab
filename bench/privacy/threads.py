"""What people do with threads and the posts of a forum."""

from __future__ import annotations

import asyncio
from typing import Any

from bench.privacy.messages import Messages
from bench.privacy.words import ANYWHERE, Said
from playground.model import REPLY


class Threads(Messages):
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
        others, title = [*(self._words.readers[channel] - {person})], self._words.new()
        private = bool(others) and self._random.random() < 0.3
        how: dict[str, Any] = {"private": True} if private else {"message": starter}
        self._ask_in(who, channel)
        thread = self._pg.open_thread(channel, person, f"about {title}", **how)
        if private:
            member = self._random.choice(others)
            self._words.readers[thread] = self._places.members[thread] = frozenset((person, member))
            for member_id in (member, self._pg.bot_id):
                self._pg.add_to_thread(thread, member_id)
        self._note(Said(title, person, thread, -thread, self._words.step))
        self.log.append(f"{who} opens {thread} in {channel}: {title} {'in private' if private else 'at it'}")
        await self._post(who, thread, f"<@{self._pg.bot_id}> what is")

    async def _take_back_opener(self, who: str) -> None:
        """Somebody edits or deletes the message at which a thread was begun, and asks in the thread."""
        own = [message for message in self._places.posted[who] if message.id in self._places.threads]
        if own and self._places.sees(who, thread := self._random.choice(own).id):
            self._places.posted[who], before = [m for m in own if m.id == thread], self._places.posted[who]
            await self._random.choice((self._edit, self._delete))(who)
            self._places.posted[who] = before
            self._begin_step()
            await self._post(who, thread, f"<@{self._pg.bot_id}> what was it about, and")

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
