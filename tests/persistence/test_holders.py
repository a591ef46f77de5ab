"""persistence/holders.py: whoever registers is reached by everything that is edited, goes, or comes back."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import discord
import orjson
import pytest

from bot import Parley
from persistence.holders import Edit, Forget, Holder, OfferHolder
from persistence.snapshots import Snapshots
from persistence.stored_state import Encode, as_json
from place_settings.fields import Level, PlaceSettings
from place_settings.guild_settings import GuildSettings
from tests.support.clock import NOON
from tests.support.discord_payloads import THREAD, a_bot, a_message
from tests.support.offers import Desk
from tests.support.people import ANNA, BEN, CHANNEL, GUILD, said


class Probe(Holder):
    """Notes what reaches it. refuses: what is stored of it cannot be read."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.edits: list[Edit] = []
        self.forgotten: list[Forget] = []
        self.expired: list[datetime] = []
        self.restored: dict[int, Any] = {}
        self._refuses = refuses

    def revised(self, edit: Edit) -> bool:
        self.edits.append(edit)
        return False

    def forget(self, what: Forget) -> None:
        self.forgotten.append(what)

    def expire(self, before: datetime) -> None:
        self.expired.append(before)

    def snapshot(self, channel_id: int) -> Encode | None:
        return as_json({"of": channel_id})

    def restore(self, channel_id: int, stored: Any) -> None:
        if self._refuses:
            raise ValueError("it cannot be read")
        self.restored[channel_id] = stored


def with_probe(folder: Path, probe: Probe) -> Parley:
    bot = a_bot(state_dir=folder, model="demo")
    bot.parts.holders.register(probe, of_channels="probe", of_process="probes")
    return bot


async def test_every_way_in_which_something_changes_or_goes_reaches_a_probe(tmp_path: Path) -> None:
    bot = with_probe(tmp_path / "state", probe := Probe())
    message = a_message(bot, author_id=ANNA, content="new words", edited_timestamp=NOON.isoformat())
    edit = SimpleNamespace(message=message, cached_message=None, channel_id=CHANNEL, guild_id=GUILD)
    await bot.on_raw_message_edit(cast(discord.RawMessageUpdateEvent, edit))
    assert [(e.channel_id, e.guild_id, e.message.content, e.is_by_author) for e in probe.edits] == [
        (CHANNEL, GUILD, "new words", True)
    ]
    bot.snapshots.touch("probe", CHANNEL)
    deleted = SimpleNamespace(channel_id=CHANNEL, message_id=5, message_ids={6, 7})
    await bot.on_raw_message_delete(cast(discord.RawMessageDeleteEvent, deleted))
    await bot.on_raw_bulk_message_delete(cast(discord.RawBulkMessageDeleteEvent, deleted))
    await bot.privacy.forget_person(ANNA, 8)
    await bot.privacy.opt_out(BEN, 9)
    await bot.privacy.forget_channel(CHANNEL, 10)
    guild = bot.get_guild(GUILD)
    assert guild
    await bot.on_guild_remove(guild)
    *firsts, last = probe.forgotten
    assert firsts == [
        Forget([CHANNEL], message_ids=frozenset({5})),
        Forget([CHANNEL], message_ids=frozenset({6, 7})),
        Forget([CHANNEL], author_id=ANNA, through=8),
        Forget([CHANNEL], author_id=BEN, through=9),
        Forget([CHANNEL], through=10),
        Forget([], author_id=CHANNEL, through=10),  # what was forwarded from it, or answered elsewhere out of it
    ]
    assert (last.guild_id, list(last.channel_ids)) == (GUILD, [CHANNEL, THREAD])
    await bot.privacy.expire(NOON)
    assert probe.expired == [NOON]
    await bot.close()


async def test_what_was_stored_comes_back_and_one_that_cannot_read_it_costs_the_others_nothing(tmp_path: Path) -> None:
    bot = with_probe(tmp_path / "state", Probe())
    bot.parts.holders.register(Probe(), of_channels="other", of_process="others")
    for kind in ("probe", "other"):
        bot.snapshots.touch(kind, CHANNEL)
        bot.snapshots.touch(f"{kind}s")
    await bot.close()
    later = with_probe(tmp_path / "state", Probe(refuses=True))
    later.parts.holders.register(other := Probe(), of_channels="other", of_process="others")
    await later.lifecycle.take([0])
    assert other.restored == {0: {"of": 0}, CHANNEL: {"of": CHANNEL}}
    await later.close()


def test_what_is_forgotten_names_the_messages_it_covers_and_their_sources() -> None:
    for what, sources in (
        (Forget([1], message_ids=frozenset({5})), [("message", 5)]),
        (Forget([1, 2], author_id=ANNA), [("person", ANNA)]),
        (Forget([1, 2]), [("channel", 1), ("channel", 2)]),
    ):
        assert what.sources == sources
        assert what.covers(said(ANNA, message_id=5))
        assert what.covers(said(BEN, message_id=6)) == (what == Forget([1, 2]))


@pytest.mark.parametrize(
    ("stored", "taken_over"),
    [
        ({"is_on": True}, True),
        ({"is_on": False, "is_off": True}, False),
        ({"is_on": False}, None),
        ({"is_on": True, "parent_id": 7}, None),
        ({"is_on": True, "follows_settings": True}, None),
    ],
)
async def test_whether_offers_were_on_before_that_was_a_setting_is_taken_over(
    stored: dict[str, Any], taken_over: bool | None
) -> None:
    desk, settings = Desk(), GuildSettings(PlaceSettings(offers=False))
    await desk.on()
    old = {**orjson.loads(desk.disk[CHANNEL]), "follows_settings": False, **stored}
    holder = OfferHolder(desk.proactive_offers, desk.offer_channels, cast(Snapshots, None), settings)
    holder.restore(CHANNEL, old)
    assert settings.own(GUILD, CHANNEL, Level.CHANNEL).settings.offers is taken_over
    settings.change(GUILD, CHANNEL, Level.CHANNEL, {"offers": False}, by=ANNA, now=NOON)
    holder.restore(CHANNEL, old)
    assert settings.own(GUILD, CHANNEL, Level.CHANNEL).settings.offers is False
