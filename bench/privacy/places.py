"""The people of a walk and where they meet: who sees what, and what each has said there."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from bench.privacy.words import Words
from playground.model import FORUM, Event, Message
from playground.server import Playground

PEOPLE = ("Ada", "Ben", "Chloe", "Dan")  # Ada manages the servers; only she and Ben see #secret
MANAGER, INSIDERS = "Ada", ("Ada", "Ben")
TEAM = "Team"  # a role, without which nobody but Ada sees #team
NEWCOMERS = ("Chloe", "Dan")  # who may not read the history of #general and #random
AUTOMATIC = ("Robo", "Hook")  # another bot, and a webhook
CHANNELS = ("general", "random", "secret", "team")
NEWEST = 4  # threads that people go on in


class Places:
    """Two servers with their channels and threads, and direct messages. words: knows who reads which of them.

    ids: of people, by name. posted: their messages, as they were. members: of private threads. here: where all goes on
    for now; 0: anywhere.
    """

    def __init__(self, pg: Playground, random: Random) -> None:
        self._pg, self._random = pg, random
        pg.add_person("Dan")
        pg.add_channel("secret")
        pg.add_channel("team")
        self.ids = {name: pg.person(name) for name in PEOPLE}
        self.role = pg.add_role(TEAM, members=[self.ids[name] for name in INSIDERS])
        pg.deny(pg.channel("team"), "view_channel", member=pg.guild_id)
        for member in (self.role, pg.bot_id):
            pg.allow(pg.channel("team"), "view_channel", member=member)
        everybody, insiders = frozenset(self.ids.values()), frozenset(self.ids[name] for name in INSIDERS)
        for outsider in everybody - insiders:
            pg.deny(pg.channel("secret"), "view_channel", member=outsider)
        self.ids |= {"Robo": pg.add_bot("Robo"), "Hook": pg.add_webhook("Hook")}
        self.elsewhere = pg.add_guild("Elsewhere")
        self.channels = [*map(pg.channel, CHANNELS), pg.channel("general", self.elsewhere)]
        self.forum = pg.add_channel("forum", type=FORUM)
        self.threads: list[int] = []
        self.members: dict[int, frozenset[int]] = {}
        self.here = 0
        hidden = dict.fromkeys((pg.channel("secret"), pg.channel("team")), insiders)
        readers = dict.fromkeys((*self.channels, self.forum), everybody) | hidden
        direct = {pg.dm(person): frozenset((person,)) for person in everybody}
        self.words = Words(readers | direct, {id_: pg.world.channel(id_).guild_id or 0 for id_ in (*readers, *direct)})
        for who, channel in zip(NEWCOMERS, self.channels, strict=False):
            self.hide_or_show_history(channel, who)
        self.posted: dict[str, list[Message]] = {name: [] for name in self.ids}
        pg.world.listen(self._listen)

    def _listen(self, event: Event) -> None:
        """Notes new threads, which all read who read their channel."""
        if event.name == "THREAD_CREATE" and event.channel and event.channel.id not in self.threads:
            thread = event.channel
            self.words.readers[thread.id] = self.words.readers[thread.parent_id or 0]
            self.words.guilds[thread.id] = thread.guild_id or 0
            self.words.parents[thread.id] = thread.parent_id or 0
            self.threads.append(thread.id)

    def sees(self, who: str, channel: int) -> bool:
        return self.ids[who] in self.words.readers[channel]

    def reads(self, who: str, channel: int) -> bool:
        """Whether somebody who sees a channel may read its history."""
        return self.ids[who] not in self.words.unread_in(channel)

    def hide_or_show_history(self, channel: int, who: str) -> bool:
        """Takes from somebody the right to read the history of a channel, or gives it back. Returns which."""
        unread, person = self.words.unread_in(channel), frozenset((self.ids[who],))
        shows = person <= unread
        (self._pg.allow if shows else self._pg.deny)(channel, "read_message_history", member=self.ids[who])
        self.words.unread[channel] = unread - person if shows else unread | person
        return shows

    def close_or_open(self, channel: int, who: str) -> bool:
        """Takes from somebody the right to see a channel and its threads, or gives it back. Returns which."""
        opens, person = not self.sees(who, channel), self.ids[who]
        (self._pg.allow if opens else self._pg.deny)(channel, "view_channel", member=person)
        self._see_anew(channel, person)
        return opens

    def give_or_take_role(self, who: str) -> bool:
        """Gives somebody the role or takes it from them, of which the bot hears nothing. Returns which."""
        person = self.ids[who]
        gives = self.role not in self._pg.world.guild.member_roles.get(person, ())
        (self._pg.give_role if gives else self._pg.take_role)(person, self.role)
        for channel in self.channels:
            self._see_anew(channel, person)
        return gives

    def left(self, who: str) -> None:
        """Notes that somebody has left the first server and come back, without their role."""
        for channel in self.channels:
            self._see_anew(channel, self.ids[who])

    def _with_threads(self, channel: int) -> list[int]:
        return [channel, *(id_ for id_ in self.threads if self._pg.world.channel(id_).parent_id == channel)]

    def _see_anew(self, channel: int, person: int) -> None:
        """Notes whether somebody sees a channel and its threads now."""
        sees = self._pg.world.may(self._pg.world.channel(channel), person, "view_channel")
        for id_ in self._with_threads(channel):
            before = self.words.readers[id_]
            may = sees and person in self.members.get(id_, (person,))
            self.words.readers[id_] = before | {person} if may else before - {person}

    def one(self, who: str) -> int:
        """A channel, thread or direct message in which somebody may write."""
        if who in AUTOMATIC:
            return self._random.choice(self.channels)
        if self.here and self.sees(who, self.here):
            return self.here
        there = (*self.channels, *self.threads[-NEWEST:], self._pg.dm(self.ids[who]))
        return self._random.choice([id_ for id_ in there if self.sees(who, id_)])

    def seen(self, who: str) -> list[Message]:
        """The newest messages in all channels whose history somebody reads."""
        read = (id_ for id_ in self.words.readers if self.sees(who, id_) and self.reads(who, id_))
        return [m for id_ in read for m in self._pg.messages(id_)[-25:]]

    def own(self, who: str) -> Sequence[Message]:
        """Somebody's newest messages that still stand, as they stand."""
        standing = {message.id: message for id_ in self.words.readers for message in self._pg.messages(id_)}
        own = [standing[message.id] for message in self.posted[who] if message.id in standing]
        return [message for message in own if self.here in (0, message.channel_id)][-12:]

    def opened_by(self, who: str) -> list[int]:
        """The newest threads that somebody opened."""
        world = self._pg.world
        return [id_ for id_ in self.threads if world.thread(world.channel(id_)).owner_id == self.ids[who]][-NEWEST:]

    def gone(self, thread: int) -> None:
        """Notes that a thread was deleted."""
        self.threads.remove(thread)
        del self.words.readers[thread]
        self.words.channel_gone(thread)
