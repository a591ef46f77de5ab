"""Message flags: what a bot may set when it posts, what it may change later, and that silent ones notify nobody."""

from playground.server import Playground
from tests.playground.support import Api, Bot

EMBEDS_OFF, EPHEMERAL, SILENT = 4, 64, 4096


async def test_a_silent_message_stays_silent_and_notifies_nobody(pg: Playground, bot: Bot) -> None:
    asked = pg.post(pg.channel("general"), pg.person("Ada"), "anybody?")
    message = await bot.event("message")
    sent = await message.reply("hello", silent=True)
    await sent.edit(content=f"hello <@{pg.person('Ben')}>")
    posted = pg.messages(asked.channel_id)[-1]
    assert (posted.flags, posted.mentions, posted.pinged) == (SILENT, (pg.person("Ben"), asked.author.id), frozenset())
    assert (await bot.event("message", 2)).flags.suppress_notifications
    assert (await message.channel.fetch_message(posted.id)).flags.suppress_notifications


async def test_of_the_flags_an_edit_changes_only_that_of_embeds(api: Api, pg: Playground) -> None:
    channel = pg.channel("general")
    for sent, stands, edited, then in (
        (SILENT, SILENT, 0, SILENT),
        (0, 0, SILENT, 0),
        (SILENT, SILENT, EMBEDS_OFF, SILENT | EMBEDS_OFF),
        (EMBEDS_OFF, EMBEDS_OFF, 0, 0),
        (EPHEMERAL, 0, EPHEMERAL, 0),
        (1 << 7, 0, 1 << 7, 0),
    ):
        _, message = await api.send(channel, content=f"<@{pg.person('Ben')}>", flags=sent)
        assert message["flags"] == stands
        status, message = await api.call("PATCH", f"/channels/{channel}/messages/{message['id']}", {"flags": edited})
        assert (status, message["flags"]) == (200, then)
        posted = pg.messages(channel)[-1]
        assert (posted.flags, bool(posted.pinged)) == (then, not stands & SILENT)
