"""Who may be where and read what, as it changes: by channels, by roles, and by leaving the server."""

from __future__ import annotations

from bench.privacy.ground import Ground
from bench.privacy.places import MANAGER
from bench.privacy.words import ANYWHERE


class Access(Ground):
    async def _close_or_open(self, who: str) -> None:
        """Takes from somebody the right to see a channel, or gives it back."""
        if who != MANAGER:
            channel = self._pg.channel(self._random.choice(("random", "team")))
            self._watch.ask_in(ANYWHERE)
            opens = self._places.close_or_open(channel, who)
            self.log.append(f"{MANAGER} {'opens' if opens else 'closes'} {channel} for {who}")
            await self._heard("guild_channel_update", lambda _, after: after.id == channel)

    async def _hide_or_show_history(self, who: str) -> None:
        """Somebody may not read the history of a channel any more, or may again."""
        if who != MANAGER:
            seen = [id_ for id_ in self._places.channels if self._places.sees(who, id_)]
            channel = self._places.here if self._places.here in seen else self._random.choice(seen)
            self._watch.ask_in(ANYWHERE)
            shows = self._places.hide_or_show_history(channel, who)
            self.log.append(f"{MANAGER} {'shows' if shows else 'hides'} the history of {channel} to {who}")
            await self._heard("guild_channel_update", lambda _, after: after.id == channel)

    async def _rejoin(self, who: str) -> None:
        """Somebody leaves the first server, and comes back."""
        if who != MANAGER:
            self._watch.ask_in(ANYWHERE)
            self.log.append(f"{who} leaves the server, and comes back")
            self._pg.rejoin(self._ids[who])
            self._places.left(who)

    async def _give_or_take_role(self, who: str) -> None:
        """Somebody gets the role with which they see a channel, or loses it."""
        if who != MANAGER:
            self._watch.ask_in(ANYWHERE)
            gives = self._places.give_or_take_role(who)
            self.log.append(f"{MANAGER} {'gives the role to' if gives else 'takes the role from'} {who}")

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
