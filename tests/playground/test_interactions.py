"""Commands, buttons, menus and forms: with discord.py, and Discord's rules by raw requests."""

import io
from typing import Any

import aiohttp
import discord
import pytest

from playground.errors import ApiError
from playground.interactions import Interaction
from playground.limits import Limits
from playground.server import Playground
from tests.playground.support import Api, Bot, contents

EPHEMERAL = 64
COMMANDS: list[dict[str, Any]] = [
    {
        "name": "ask",
        "description": "Ask",
        "options": [
            {"type": 3, "name": "text", "description": "What", "required": True},
            {"type": 4, "name": "count", "description": "How many", "choices": [{"name": "one", "value": 1}]},
            {"type": 5, "name": "loud", "description": "Loud"},
            {"type": 6, "name": "who", "description": "Who"},
        ],
    },
    {"name": "Look closer", "type": 3},
]


@pytest.fixture
async def asked(api: Api, pg: Playground) -> Interaction:
    """A slash command that awaits its answer."""
    assert (await api.call("PUT", f"/applications/{pg.bot_id}/commands", COMMANDS))[0] == 200
    return pg.command(pg.channel("general"), pg.person("Ada"), "ask", {"text": "x"})


async def answer(api: Api, made: Interaction, kind: Any, data: Any = None, query: str = "") -> tuple[int, Any]:
    body = {"type": kind} if data is None else {"type": kind, "data": data}
    path = f"/interactions/{made.id}/{made.token}/callback{query}"
    return await api.call("POST", path, body, authorized=False)


def webhook(pg: Playground, made: Interaction, rest: str = "") -> str:
    return f"/webhooks/{pg.bot_id}/{made.token}{rest}"


async def test_a_deferred_private_answer_can_bring_a_file(
    pg: Playground, bot: Bot, http: aiohttp.ClientSession
) -> None:
    data = bytes(range(256)) * 8_000

    @bot.tree.command(description="Why did you say that?")
    async def why(interaction: discord.Interaction, word: str, who: discord.Member | None = None) -> None:
        await interaction.response.defer(ephemeral=True, thinking=True)
        await interaction.followup.send(f"because {word} {who}")
        file = discord.File(io.BytesIO(data), "all.bin")
        await interaction.edit_original_response(content=f"because of {word} and {who}", attachments=[file])

    await bot.tree.sync()
    options = {"word": "this", "who": str(pg.person("Ben"))}
    made = pg.command(pg.channel("general"), pg.person("Ada"), "why", options)
    await pg.wait_for(lambda: made.reply and made.reply.content == "because of this and Ben")
    reply = await pg.reply_to(made)
    assert (reply.flags, list(made.messages)) == (EPHEMERAL, [reply.id])
    assert pg.messages(pg.channel("general")) == []
    [attachment] = reply.attachments
    assert (attachment["filename"], attachment["size"]) == ("all.bin", len(data))
    async with http.get(attachment["url"]) as response:
        assert await response.read() == data


async def test_a_public_answer_stands_in_the_channel(pg: Playground, bot: Bot) -> None:
    @bot.tree.command(description="Hello")
    async def hello(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("hello")
        original = await interaction.original_response()
        await original.edit(content="hello all")
        await interaction.followup.send("and more")
        await original.delete()

    await bot.tree.sync()
    pg.command(pg.channel("general"), pg.person("Ada"), "hello")
    await pg.wait_for(lambda: contents(pg.messages(pg.channel("general"))) == ["and more"])
    await bot.event("raw_message_delete")
    assert contents(bot.all("message")) == ["hello all", "and more"]


async def test_context_menus_bring_their_target(pg: Playground, bot: Bot) -> None:
    @bot.tree.context_menu(name="Look")
    async def look(interaction: discord.Interaction, message: discord.Message) -> None:
        await interaction.response.send_message(f"{message.author.display_name}: {message.content}")

    @bot.tree.context_menu(name="Greet")
    async def greet(interaction: discord.Interaction, member: discord.Member) -> None:
        await interaction.response.send_message(f"hello {member.display_name}")

    await bot.tree.sync()
    target = pg.post(pg.channel("general"), pg.person("Ben"), "look at me")
    made = pg.command(target.channel_id, pg.person("Ada"), "Look", target_id=target.id)
    assert (await pg.reply_to(made)).content == "Ben: look at me"
    made = pg.command(target.channel_id, pg.person("Ada"), "Greet", target_id=pg.person("Ben"))
    assert (await pg.reply_to(made)).content == "hello Ben"


async def test_guild_commands_shadow_global_ones_and_keep_their_ids(pg: Playground, bot: Bot) -> None:
    @bot.tree.command(name="same", description="global")
    async def everywhere(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("global")

    @bot.tree.command(name="same", description="guild", guild=discord.Object(pg.guild_id))
    async def here(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("guild")

    await bot.tree.sync()
    [first] = await bot.tree.sync(guild=discord.Object(pg.guild_id))
    [second] = await bot.tree.sync(guild=discord.Object(pg.guild_id))
    assert first.id == second.id
    assert [command["description"] for command in pg.commands.all()] == ["guild"]
    made = pg.command(pg.channel("general"), pg.person("Ada"), "same")
    assert (await pg.reply_to(made)).content == "guild"
    assert len(await bot.tree.fetch_commands()) == 1


async def test_buttons_and_menus_of_a_view(pg: Playground, bot: Bot) -> None:
    class Choice(discord.ui.View):
        @discord.ui.button(label="Yes", custom_id="yes")
        async def yes(self, interaction: discord.Interaction, button: discord.ui.Button[Any]) -> None:
            button.disabled = True
            await interaction.response.edit_message(content="you said yes", view=self)

        @discord.ui.select(custom_id="pick", options=[discord.SelectOption(label="a"), discord.SelectOption(label="b")])
        async def pick(self, interaction: discord.Interaction, menu: discord.ui.Select[Any]) -> None:
            await interaction.response.defer()
            await interaction.edit_original_response(content=f"you picked {menu.values[0]}")

    channel, ada = pg.channel("general"), pg.person("Ada")
    target = bot.get_channel(channel)
    assert isinstance(target, discord.TextChannel)
    asked = await target.send("well?", view=Choice())
    made = pg.click(asked.id, ada, "pick", ["b"])
    await pg.wait_for(lambda: contents(pg.messages(channel)) == ["you picked b"])
    made = pg.click(asked.id, ada, "yes")
    assert (await pg.reply_to(made)).content == "you said yes"
    with pytest.raises(ApiError, match="Invalid Form Body"):
        pg.click(asked.id, ada, "yes")  # disabled by now
    with pytest.raises(ApiError):
        pg.click(asked.id, ada, "pick", ["c"])
    with pytest.raises(ApiError):
        pg.click(asked.id, ada, "nothing")


async def test_a_form_is_shown_and_sent(pg: Playground, bot: Bot) -> None:
    class Form(discord.ui.Modal, title="Tell"):
        name: discord.ui.TextInput[Any] = discord.ui.TextInput(label="Name", custom_id="name")

        async def on_submit(self, interaction: discord.Interaction) -> None:
            await interaction.response.send_message(f"thanks {self.name.value}")

    @bot.tree.command(description="Tell")
    async def tell(interaction: discord.Interaction) -> None:
        await interaction.response.send_modal(Form())

    await bot.tree.sync()
    made = pg.command(pg.channel("general"), pg.person("Ada"), "tell")
    await pg.wait_for(lambda: made.form)
    assert (await pg.reply_to(pg.submit(made, {"name": "Ada"}))).content == "thanks Ada"


def box(name: str = "name", **more: Any) -> dict[str, Any]:
    return {"type": 4, "custom_id": name, "style": 1} | more


def labelled(inside: Any, label: str = "Name", **more: Any) -> dict[str, Any]:
    return {"type": 18, "label": label, "component": inside} | more


async def shown(api: Api, made: Interaction, *parts: Any) -> tuple[int, Any]:
    return await answer(api, made, 9, {"title": "Tell", "custom_id": "tell", "components": list(parts)})


WRONG_FORMS: list[list[Any]] = [
    [{}],
    ["x"],
    [box()],
    [{"type": 1, "components": []}],
    [{"type": 1, "components": [box()]}],
    [{"type": 1, "components": [box(label="x"), box("more", label="x")]}],
    [labelled(None)],
    [labelled({"type": 2, "custom_id": "x", "style": 1, "label": "x"})],
    [labelled(box(), label="")],
    [labelled(box(), label="x" * 46)],
    [labelled(box(), description="x" * 101)],
    [labelled(box("x" * 101))],
    [labelled(box(style=3))],
    [labelled(box(placeholder="x" * 101))],
    [labelled(box(value="x" * 4_001))],
    [labelled(box(max_length=4_001))],
    [labelled(box(max_length=0))],
    [labelled(box(min_length="1"))],
    [labelled(box()), labelled(box())],
    [labelled(box(str(number))) for number in range(6)],
    [{"type": 10, "content": ""}],
]


async def test_a_form_that_discord_would_refuse_is_refused(api: Api, asked: Interaction) -> None:
    for parts in WRONG_FORMS:
        status, body = await shown(api, asked, *parts)
        assert (status, body["code"], asked.form) == (400, 50035, None), parts
    form = {"title": "x" * 46, "custom_id": "x", "components": [labelled(box())]}
    status, body = await answer(api, asked, 9, form)
    assert (status, list(body["errors"]["data"])) == (400, ["title"])


async def test_a_sent_form_comes_in_the_parts_in_which_it_was_shown(
    api: Api, pg: Playground, asked: Interaction
) -> None:
    row = {"type": 1, "components": [box("old", label="Old", required=False)]}
    assert (await shown(api, asked, {"type": 10, "content": "Well?"}, row, labelled(box("new"))))[0] == 204
    sent = pg.submit(asked, {"new": "x"})
    assert sent.data["components"] == [
        {"type": 10},
        {"type": 1, "components": [{"type": 4, "custom_id": "old", "value": ""}]},
        {"type": 18, "component": {"type": 4, "custom_id": "new", "value": "x"}},
    ]


async def test_what_does_not_fit_the_form_cannot_be_sent(api: Api, pg: Playground, asked: Interaction) -> None:
    await shown(api, asked, labelled(box(min_length=2, max_length=5)))
    wrong: list[Any] = [{}, *({"name": value} for value in ("", "x", "x" * 6, 123)), {"name": "xxx", "more": "x"}]
    for values in wrong:
        with pytest.raises(ApiError, match="Invalid Form Body"):
            pg.submit(asked, values)


async def test_a_menu_takes_as_many_values_as_it_says(api: Api, pg: Playground) -> None:
    options = [{"label": one, "value": one} for one in "abc"]
    menu = {"type": 3, "custom_id": "menu", "options": options, "min_values": 0, "max_values": 2}
    await api.send(pg.channel("general"), content="x", components=[{"type": 1, "components": [menu]}])
    message, ada = pg.messages(pg.channel("general"))[0], pg.person("Ada")
    assert pg.click(message, ada, "menu").data["values"] == []
    assert pg.click(message, ada, "menu", ["a", "c"]).data["values"] == ["a", "c"]
    with pytest.raises(ApiError):
        pg.click(message, ada, "menu", ["a", "b", "c"])


async def test_a_click_does_not_bring_back_a_message_deleted_meanwhile(api: Api, pg: Playground) -> None:
    row = {"type": 1, "components": [{"type": 2, "style": 1, "label": "ok", "custom_id": "ok"}]}
    await api.send(pg.channel("general"), content="x", components=[row])
    message = pg.messages(pg.channel("general"))[0]
    made = pg.click(message, pg.person("Ada"), "ok")
    pg.delete(message)
    status, body = await answer(api, made, 7, {"content": "y"})
    assert (status, body["code"]) == (404, 10008)
    assert pg.messages(pg.channel("general")) == []


async def test_the_person_and_their_permissions_come_along(pg: Playground, bot: Bot) -> None:
    seen = []

    @bot.tree.command(description="Who am I")
    async def whoami(interaction: discord.Interaction) -> None:
        seen.append((interaction.user.display_name, interaction.permissions.manage_channels))
        await interaction.response.send_message("ok")

    await bot.tree.sync()
    channel, ben = pg.channel("general"), pg.person("Ben")
    await pg.reply_to(pg.command(channel, pg.person("Ada"), "whoami"))
    await pg.reply_to(pg.command(channel, ben, "whoami"))
    pg.allow(channel, "manage_channels", member=ben)
    await pg.reply_to(pg.command(channel, ben, "whoami"))
    assert seen == [("Ada", True), ("Ben", False), ("Ben", True)]


async def test_answering_after_three_seconds_is_10062(http: aiohttp.ClientSession) -> None:
    now = 0.0
    async with Playground(limits=Limits.off(), clock=lambda: now) as pg:
        api = Api(pg, http)
        await api.call("PUT", f"/applications/{pg.bot_id}/commands", COMMANDS)
        late, early = (pg.command(pg.channel("general"), pg.person("Ada"), "ask", {"text": "x"}) for _ in range(2))
        now = 2.9
        assert (await answer(api, early, 4, {"content": "x"}))[0] == 204
        now = 3.1
        status, body = await answer(api, late, 4, {"content": "x"})
        assert (status, body["code"]) == (404, 10062)
        now = 899.0
        assert (await api.call("POST", webhook(pg, early), {"content": "y"}))[0] == 200
        now = 901.0
        assert await api.code("POST", webhook(pg, early), {"content": "z"}) == (401, 50027)


async def test_a_refused_answer_leaves_the_interaction_open(api: Api, pg: Playground, asked: Interaction) -> None:
    assert await api.code("POST", webhook(pg, asked), {"content": "x"}) == (401, 50027)  # before an answer
    for kind, data, code in (
        (4, {"content": ""}, 50006),
        (4, {"content": "x" * 2001}, 50035),
        (6, None, 50035),
        (7, {"content": "x"}, 50035),
        (1, None, 50035),
        ("4", {"content": "x"}, 50035),
        ([4], None, 50035),
        (9, {"title": "", "custom_id": "x", "components": [{}]}, 50035),
        (9, {"title": "x", "custom_id": "", "components": [{}]}, 50035),
        (9, {"title": "x", "custom_id": "x", "components": []}, 50035),
        (4, [1], 50109),
    ):
        status, body = await answer(api, asked, kind, data)
        assert (status, body["code"]) == (400, code)
    assert (await answer(api, asked, 4, {"content": "x"}))[0] == 204
    status, body = await answer(api, asked, 4, {"content": "x"})
    assert (status, body["code"]) == (400, 40060)


async def test_messages_of_an_interaction_by_webhook(api: Api, pg: Playground, asked: Interaction) -> None:
    status, body = await answer(api, asked, 5, {"flags": EPHEMERAL}, query="?with_response=true")
    assert (status, body["interaction"]["response_message_loading"]) == (200, True)
    original = webhook(pg, asked, "/messages/@original")
    assert (await api.call("GET", original))[1]["flags"] == EPHEMERAL | 128
    _, filled = await api.call("PATCH", original, {"content": "x"})
    assert (filled["flags"], filled["edited_timestamp"]) == (EPHEMERAL, None)
    _, second = await api.call("POST", webhook(pg, asked), {"content": "y", "flags": EPHEMERAL})
    assert second["id"] != filled["id"]
    assert (await api.call("DELETE", webhook(pg, asked, f"/messages/{second['id']}")))[0] == 204
    assert await api.code("GET", webhook(pg, asked, f"/messages/{second['id']}")) == (404, 10008)
    assert await api.code("PATCH", original, {"content": ""}) == (400, 50006)
    assert pg.messages(asked.channel_id) == []


@pytest.mark.usefixtures("asked")
async def test_options_that_do_not_fit_are_refused(pg: Playground) -> None:
    wrong: list[dict[str, Any]] = [
        {},
        {"count": 1},
        {"text": 1},
        *({"text": "x", "count": value} for value in ("1", 2, True)),
        {"text": "x", "loud": 1},
        *({"text": "x", "who": value} for value in ("9" * 5000, "1")),
        {"text": "x", "more": 1},
    ]
    for options in wrong:
        with pytest.raises(ApiError):
            pg.command(pg.channel("general"), pg.person("Ada"), "ask", options)


@pytest.mark.usefixtures("asked")
async def test_unknown_commands_and_targets_are_refused(pg: Playground) -> None:
    with pytest.raises(ApiError, match="Unknown application command"):
        pg.command(pg.channel("general"), pg.person("Ada"), "nothing")
    with pytest.raises(ApiError, match="Unknown Message"):
        pg.command(pg.channel("general"), pg.person("Ada"), "Look closer", target_id=1)
    pg.deny(pg.channel("general"), "use_application_commands", member=pg.person("Ben"))
    with pytest.raises(ApiError, match="Missing Permissions"):
        pg.command(pg.channel("general"), pg.person("Ben"), "ask", {"text": "x"})


async def test_invalid_commands_are_refused_and_change_nothing(api: Api, pg: Playground) -> None:
    path = f"/applications/{pg.bot_id}/commands"
    await api.call("PUT", path, COMMANDS)
    one: dict[str, Any] = {"name": "x", "description": "x"}
    wrong: list[Any] = [
        {},
        ["x"],
        *([one | {"name": name}] for name in ("Upper", "two words", "x" * 33, ["x"])),
        *([one | {"description": text}] for text in ("", "x" * 101)),
        [one] * 2,
        *([one | {"type": kind}] for kind in (9, [1], 3)),
        *([one | {"options": options}] for options in (["x"], "x", [one], [one | {"type": [3]}])),
        [one | {"options": [one | {"type": 3, "choices": [1]}]}],
        [one | {"options": [one | {"name": "X", "type": 3}]}],
        [{"name": str(number), "type": 3} for number in range(6)],
    ]
    for commands in wrong:
        status, _ = await api.call("PUT", path, commands)
        assert status == 400, commands
        assert len((await api.call("GET", path))[1]) == len(COMMANDS)
