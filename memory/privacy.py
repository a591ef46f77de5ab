"""What people can have done with what is kept of them, carried out wherever something is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Protocol

from pydantic import TypeAdapter

from conversation import ConversationManager, MessageRecord
from decider import RecentDecisions
from delivery.backlog import id_at
from delivery.prompts import Prompts
from followup.decision_log import DecisionLog
from followup.learning import Learning
from initiative.initiative import Initiative
from memory.keeper import Keeper
from miniapps.router import MiniAppRouter
from state.message import Source
from state.optout import OptOut, redacted, without_quote
from turns.lanes import Turns

FORGOTTEN, OPTED_OUT = "forgotten", "opted_out"


class TakeBack(Protocol):
    def __call__(self, *sources: Source) -> None: ...


Whose = tuple[int | None, int | None]
"""A channel, None: all of them; and a person in it, None: everybody."""
MARKS = TypeAdapter(list[tuple[Whose, int]])


class Forgotten:
    """What was forgotten up to which message: it must not come back from what Discord still has."""

    def __init__(self) -> None:
        self._marks: dict[Whose, int] = {}

    def mark(self, channel_id: int | None, author_id: int | None, at: int) -> None:
        self._marks[channel_id, author_id] = at

    def covers(self, channel_id: int, record: MessageRecord) -> bool:
        """Whether its author, whom it answers, or the whole channel was forgotten since.

        Our answer to a click replies to our own card: whom it answers is not known, so any who was forgotten counts.
        """
        who = {None, record.author_id, *record.addressees}
        answers_ourselves = record.is_bot and record.addressees <= {record.author_id}
        marks = (
            at
            for (channel, whose), at in self._marks.items()
            if channel in (None, channel_id) and (answers_ourselves or whose in who)
        )
        return any(record.message_id <= at for at in marks)

    def sweep(self, oldest: int) -> bool:
        """Drops the marks up to this id: what is older is not read any more. Returns whether there were any."""
        left = {whose: at for whose, at in self._marks.items() if at > oldest}
        changed, self._marks = len(left) < len(self._marks), left
        return changed

    def stored(self) -> Any:
        return MARKS.dump_python(list(self._marks.items()), mode="json") or None

    def restore(self, stored: Any) -> None:
        """Raises ValueError for what stored() did not give."""
        self._marks = dict(MARKS.validate_python(stored))


class Privacy:
    """Knows who does not want to be read, and drops what is to go. See commands.Privacy for the commands' part.

    reread: how far back messages are ever read from Discord. changed: told of channels in which something goes;
    take_back: whose words, or of which channel, go wherever an agent looked them up.
    """

    def __init__(
        self,
        *,
        keeper: Keeper,
        conversations: ConversationManager,
        turns: Turns,
        prompts: Prompts,
        miniapps: MiniAppRouter,
        initiative: Initiative,
        decisions: RecentDecisions,
        decision_log: DecisionLog,
        learning: Learning,
        opted_out: OptOut,
        forgotten: Forgotten,
        clock: Callable[[], datetime],
        reread: timedelta,
        changed: Callable[[int], None],
        take_back: TakeBack,
    ) -> None:
        self._changed = changed
        self._take_back = take_back
        self._keeper = keeper
        self._conversations = conversations
        self._turns = turns
        self._prompts = prompts
        self._miniapps = miniapps
        self._initiative = initiative
        self._decisions = decisions
        self._decision_log = decision_log
        self._learning = learning
        self._opted_out = opted_out
        self._forgotten = forgotten
        self._clock = clock
        self._reread = reread
        self._at_a_time = asyncio.Lock()  # whoever asks again and again keeps the writer from nothing else

    # Who is not read

    def is_opted_out(self, user_id: int) -> bool:
        return user_id in self._opted_out

    def readable(self, record: MessageRecord) -> MessageRecord:
        """The message as far as it may be kept and told."""
        return redacted(record) if record.author_id in self._opted_out else self.unquoted(record)

    def unquoted(self, record: MessageRecord) -> MessageRecord:
        """The message without what it quotes of somebody who does not want to be read."""
        to = record.reply_to_author_id
        return without_quote(record) if to is not None and to in self._opted_out else record

    async def opt_out(self, user_id: int, at: int) -> None:
        self._opted_out.add(user_id)
        self._keeper.touch_process(OPTED_OUT)
        await self.forget_person(user_id, at)

    async def opt_in(self, user_id: int) -> None:
        self._opted_out.discard(user_id)
        self._keeper.touch_process(OPTED_OUT)
        await self._stored()

    # What goes

    def is_forgotten(self, channel_id: int, record: MessageRecord) -> bool:
        return self._forgotten.covers(channel_id, record)

    async def forget_person(self, user_id: int, at: int) -> None:
        self._mark(None, user_id, at)
        self._learning.forgotten(None, user_id, through=at)
        self._decisions.drop(lambda entry: user_id in (entry.author_id, entry.decision.partner))
        for channel_id in self._keeper.channels:
            self._forget(channel_id, user_id)
        self._take_back(("person", user_id))
        await self._carry_out(self._keeper.forget_person(user_id))

    async def forget_channel(self, channel_id: int, at: int) -> None:
        self._drop_channel(channel_id, at)
        self._take_back(("channel", channel_id))
        self._learning.forgotten(channel_id, None, through=at)
        await self._carry_out(self._keeper.forget_where(lambda channel, _guild: channel == channel_id))

    async def forget_guild(self, guild_id: int, channel_ids: Iterable[int], at: int) -> None:
        """We are not there any more, or the server is gone."""
        channels = list(channel_ids)
        for channel_id in channels:
            self._drop_channel(channel_id, at)
            self._initiative.leave(channel_id)
        self._take_back(*(("channel", channel_id) for channel_id in channels))
        self._learning.guild_forgotten(guild_id, through=at)
        await self._carry_out(self._keeper.forget_where(lambda _channel, guild: guild == guild_id))

    async def expire(self, before: datetime) -> None:
        """What was said before goes."""
        self._learning.expire(before)
        for channel_id in self._keeper.channels:
            kept = self._miniapps.stored(channel_id)
            self._miniapps.expire(channel_id, id_at(before))
            self._initiative.expire(channel_id, id_at(before))
            # The conversation first: it is to be told in any case.
            if self._expires_in_conversation(channel_id, before) or self._miniapps.stored(channel_id) != kept:
                self._keeper.purge(channel_id)
        await self._keeper.expire(before)

    def _expires_in_conversation(self, channel_id: int, before: datetime) -> bool:
        """Also of one that is alive what is too old goes. Returns whether it was old enough for that."""
        conversation = self._conversations.get(channel_id)
        if conversation is None or conversation.started_at >= before:
            return False
        self._conversations.forget_messages(
            channel_id, [m.message_id for m in conversation.messages if m.timestamp < before]
        )
        self._conversations.forget_history(channel_id)
        return True

    def sweep(self) -> None:
        if self._forgotten.sweep(id_at(self._clock() - self._reread)):
            self._keeper.touch_process(FORGOTTEN)

    async def export(self, user_id: int) -> bytes:
        return await self._keeper.export(user_id)

    def _drop_channel(self, channel_id: int, at: int) -> None:
        self._mark(channel_id, None, at)
        self._decisions.drop(lambda entry: entry.channel_id == channel_id)
        self._forget(channel_id, None)

    def _mark(self, channel_id: int | None, author_id: int | None, at: int) -> None:
        """By ids, as by Discord's own clock, older messages are told from newer ones."""
        self._forgotten.mark(channel_id, author_id, at)
        self._keeper.touch_process(FORGOTTEN)

    def _forget(self, channel_id: int, author_id: int | None) -> None:
        self._changed(channel_id)
        self._turns.withdraw(channel_id, lambda message: author_id in (None, message.author_id))
        self._prompts.forget(channel_id, author_id)
        self._miniapps.forget(channel_id, author_id)
        self._initiative.forget(channel_id, author_id)
        if author_id is None:
            self._conversations.end(channel_id)
        else:
            self._conversations.forget_author(channel_id, author_id)
        self._keeper.purge(channel_id)

    async def _carry_out(self, removal: Awaitable[None]) -> None:
        """What is kept in all three places goes, though one of them should fail. Raises OSError then."""
        async with self._at_a_time:
            results = await asyncio.gather(self._stored(), removal, self._logged(), return_exceptions=True)
        for error in results:
            if isinstance(error, BaseException):
                raise error

    async def _stored(self) -> None:
        if not await self._keeper.settled():
            raise OSError("what is kept could not be written")

    async def _logged(self) -> None:
        if not await self._decision_log.flush():
            raise OSError("the decision log could not be written")
