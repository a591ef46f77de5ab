"""/parley show, set and reset, and /model, over a loopback Discord."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from commands.place_edge import NO_CATEGORY, NO_THREAD, NOT_THE_CHANNELS, NOT_THE_SERVERS
from commands.typed_settings import read_value
from place_settings.fields import ABOUT, Level, PlaceSettings
from place_settings.guild_settings import GuildSettings
from playground.server import Playground
from tests.commands.support import EPHEMERAL, FakeModels, line_of, words_of
from tests.support.controls import run, suggested

COUNTS = "This applies from the next message on."


async def said(pg: Playground, words: str, who: str = "Ada", **options: Any) -> str:
    reply = await pg.reply_to(run(pg, who, words, **options))
    assert reply.flags & EPHEMERAL
    return words_of(reply)


async def put(pg: Playground, setting: str, value: str, **options: Any) -> str:
    return await said(pg, "parley set", setting=setting, value=value, **options)


def own(settings: GuildSettings, pg: Playground, level: Level = Level.CHANNEL) -> PlaceSettings:
    place_id = pg.guild_id if level is Level.GUILD else pg.channel("general")
    return settings.own(pg.guild_id, place_id, level).settings


# What applies


async def test_show_says_what_holds_and_where_that_comes_from(pg: Playground) -> None:
    await put(pg, "eagerness", "eager", where=int(Level.GUILD))
    await put(pg, "judge", "on")
    card = await pg.reply_to(run(pg, "Ben", "parley show"))
    assert line_of(card, "Eagerness: ") == "eager · from this server"
    assert line_of(card, "Judge: ") == "on · from this channel"
    assert line_of(card, "When it answers: ") == "follow · default"


async def test_a_budget_of_the_server_is_shown_beside_the_channels(pg: Playground) -> None:
    await put(pg, "budget", "$1 a day", where=int(Level.GUILD))
    await put(pg, "budget", "off")
    both = "off · {}; “$1 a day” · from this server"
    assert line_of(await pg.reply_to(run(pg, "Ada", "parley show")), "Budget: ") == both.format("from this channel")
    card = await pg.reply_to(run(pg, "Ada", "parley settings"))
    assert line_of(card, "Budget: ") == both.format("set here").replace("off", "**off**", 1)


async def test_show_names_nobody_and_quotes_no_persona_to_those_who_manage_nothing(pg: Playground) -> None:
    chloe, pirate = pg.person("Chloe"), "You are a pirate."
    await put(pg, "blocked_users", f"<@{chloe}>")
    await put(pg, "persona", pirate)
    told = await said(pg, "parley show", "Ben")
    assert "Blocked members: 1 member · from this channel" in told
    assert "Persona: set · from this channel" in told
    assert str(chloe) not in told
    assert pirate not in told
    told = await said(pg, "parley show")
    assert f"Blocked members: <@{chloe}> · from this channel" in told
    assert pirate in told


async def test_show_says_what_silences_it_for_all_and_for_whoever_asks(pg: Playground) -> None:
    await put(pg, "blocked_users", f"<@{pg.person('Ben')}>", where=int(Level.GUILD))
    assert "I do not answer you here: “Blocked members”, set for this server." in await said(pg, "parley show", "Ben")
    assert "I do not answer" not in await said(pg, "parley show")
    await put(pg, "answers", "off")
    assert "I answer nobody here: “When it answers”, set for this channel." in await said(pg, "parley show")


async def test_show_and_the_card_name_what_a_newer_version_has_set(pg: Playground, settings: GuildSettings) -> None:
    node = {"settings": {"mood": "gloomy", "eagerness": "quiet"}, "closing": []}
    settings.restore(pg.guild_id, {"version": 9, "revision": 3, "places": {f"channel:{pg.channel('general')}": node}})
    for command in ("parley show", "parley settings"):
        told = await said(pg, command)
        assert "Set in a form that I cannot read, and kept until it is set again or reset: mood." in told
        assert "Eagerness: " in told
    assert "mood" not in await said(pg, "parley show", "Ben")


# Typed


async def test_one_thing_is_set_and_inherited_again(pg: Playground, settings: GuildSettings) -> None:
    assert await put(pg, " eagerness ", "Quiet") == f"Eagerness, for this channel: quiet. {COUNTS}"
    again = f"Eagerness, for this channel: inherited again, balanced · default. {COUNTS}"
    assert await said(pg, "parley reset", setting="eagerness") == again
    await put(pg, "Threads", "join")
    await put(pg, "judge", "on")
    assert await put(pg, "judge", "inherit") == f"Judge, for this channel: inherited again, off · default. {COUNTS}"
    await said(pg, "parley reset", setting="everything")
    assert settings.own(pg.guild_id, pg.channel("general"), Level.CHANNEL).is_empty


@pytest.mark.parametrize(
    ("setting", "value", "refusal"),
    [
        ("mood", "gloomy", "There is no setting “mood”: use When it answers, Allowed channels,"),
        ("eagerness", "a lot", "Eagerness cannot be that: use quiet, balanced or eager."),
        ("persona", "p" * 4_000, "Persona cannot be that: use at most 2,000 characters of text."),
        (
            "blocked_roles",
            "@nobodies",
            "I cannot find the role “@nobodies” here: use mentions, ids or names, separated by",
        ),
        (
            "blocked_channels",
            "<#123456789012345678>",
            "I cannot find the channel “123456789012345678” here: use mentions,",
        ),
        (
            "blocked_users",
            "9" * 20,
            f"I cannot find the member “{'9' * 20}” here: use mentions or ids, separated by commas.",
        ),
        ("blocked_users", "Chloe", "I cannot find the member “Chloe” here: use mentions or ids, separated by commas."),
        ("model", "test:none", "“test:none” is not among my models: use test:large or test:small."),
    ],
)
async def test_what_cannot_be_set_is_refused_in_a_sentence(
    pg: Playground, settings: GuildSettings, setting: str, value: str, refusal: str
) -> None:
    assert (await put(pg, setting, value)).startswith(refusal)
    assert settings.revision(pg.guild_id) == 0


async def test_where_a_place_or_a_level_is_none_a_sentence_says_so(pg: Playground) -> None:
    assert await put(pg, "judge", "on", where=int(Level.CATEGORY)) == NO_CATEGORY
    assert await put(pg, "judge", "on", where=int(Level.THREAD)) == NO_THREAD
    refused = await put(pg, "allowed_channels", "#general", where=int(Level.CHANNEL))
    assert refused == "Allowed channels cannot be set for this channel: use this server."


async def test_lists_are_typed_by_mention_id_or_name_and_added_to(pg: Playground, settings: GuildSettings) -> None:
    one, two, three = pg.add_role("One"), pg.add_role("Number Two"), pg.add_role("Three")
    await put(pg, "blocked roles", f"<@&{one}>, number two")
    assert own(settings, pg).blocked_roles == frozenset({one, two})
    await put(pg, "blocked_roles", f"+{three}")
    assert own(settings, pg).blocked_roles == frozenset({one, two, three})
    assert (
        await put(pg, "blocked_roles", f"- @One <@&{two}>") == f"Blocked roles, for this channel: <@&{three}>. {COUNTS}"
    )
    pg.add_category("General")
    assert (await put(pg, "blocked_channels", "general")).startswith(
        "“general” is the name of more than one channel here: use a"
    )
    suggestions = await suggested(pg, "Ada", "parley set", "value", "gen", setting="blocked_channels")
    assert suggestions == ["#general", "General (category)"]
    await put(pg, "blocked_channels", "#general")  # which is set for the server
    assert own(settings, pg, Level.GUILD).blocked_channels == frozenset({pg.channel("general")})


async def test_who_leaves_out_themselves_is_told_so(pg: Playground) -> None:
    helpers = pg.add_role("Helpers", members=[pg.person("Ben")])
    mind = "Note that I do not answer you here: “Allowed roles”, set for this channel."
    allowed = await put(pg, "allowed_roles", "@Helpers")
    assert allowed == f"Allowed roles, for this channel: <@&{helpers}>. {COUNTS} {mind}"
    assert "Mind" not in await put(pg, "eagerness", "quiet")
    assert "Mind" not in await put(pg, "allowed_users", f"<@{pg.person('Ada')}>")


async def test_who_may_not_is_told_so_and_is_suggested_nothing(pg: Playground) -> None:
    cases: list[tuple[str, dict[str, str]]] = [("set", {"value": "on"}), ("reset", {})]
    for subcommand, options in cases:
        words = f"parley {subcommand}"
        assert await said(pg, words, "Ben", setting="judge", **options) == NOT_THE_CHANNELS
        assert await said(pg, words, "Ben", setting="judge", where=int(Level.GUILD), **options) == NOT_THE_SERVERS
    pg.add_role("Helpers")
    assert await suggested(pg, "Ben", "parley set", "value", "help", setting="blocked_roles") == []
    assert await suggested(pg, "Ada", "parley set", "value", "help", setting="blocked_roles") == ["@Helpers"]


async def test_names_and_choices_are_suggested(pg: Playground) -> None:
    labels = [about.label for about in ABOUT.values()]
    assert await suggested(pg, "Ada", "parley set", "setting", "", value="") == labels[:25]
    assert await suggested(pg, "Ada", "parley set", "setting", "PERS", value="") == ["Persona"]
    assert await suggested(pg, "Ada", "parley reset", "setting", "every") == ["Everything"]
    assert await suggested(pg, "Ada", "parley set", "value", "", setting="judge") == ["on", "off", "inherit"]
    assert await suggested(pg, "Ada", "parley set", "value", "small", setting="model") == ["test:small"]
    assert await suggested(pg, "Ada", "parley set", "value", "x", setting="mood") == []


async def test_500_channels_and_250_roles_are_searched(pg: Playground, settings: GuildSettings) -> None:
    roles = [pg.add_role(f"role {number}") for number in range(250)]
    for number in range(499):
        pg.add_channel(f"room-{number}")
    pg.add_role("Managers", "manage_guild", members=[pg.person("Ben")])
    pg.deny(pg.channel("room-470"), "view_channel", member=pg.person("Ben"))
    found = await suggested(pg, "Ada", "parley set", "value", "role", setting="allowed_roles")
    assert (len(found), found[0]) == (25, "@role 0")
    found = await suggested(pg, "Ada", "parley set", "value", "role 1, +role 24", setting="allowed_roles")
    assert found == ["role 1, @role 24", *(f"role 1, @role {number}" for number in range(240, 250))]
    found = await suggested(pg, "Ben", "parley set", "value", "#room-47", setting="blocked_channels")
    assert found == ["#room-47", *(f"#room-{number}" for number in range(471, 480))]  # 470 is not to be seen by Ben
    await put(pg, "allowed_roles", " ".join(map(str, roles)))
    assert own(settings, pg).allowed_roles == frozenset(roles)
    shown = line_of(await pg.reply_to(run(pg, "Ada", "parley show")), "Allowed roles: ")
    assert shown.endswith("and 242 more · from this channel")


def test_as_many_names_as_fit_into_a_command_hold_up_nothing() -> None:
    channels = [SimpleNamespace(id=number, name=f"room-{number}") for number in range(499)]
    guild: Any = SimpleNamespace(categories=[], channels=[*channels, SimpleNamespace(id=499, name="a")])
    began = time.thread_time()
    assert read_value("allowed_channels", "a," * 3_000, None, guild) == {499}
    assert time.thread_time() - began < 0.1  # it was 0.3 s


# Models


async def test_model_says_which_answers_and_why_and_chooses_another(pg: Playground) -> None:
    why = "/model with a name chooses another."
    assert await said(pg, "model") == f"The model here is test:large (default). {why}"
    chosen = await said(pg, "model", name="test:small", where=int(Level.GUILD))
    in_turn = "An answer that is already being written is finished by the model that began it."
    assert chosen == f"Model, for this server: test:small. {COUNTS} {in_turn}"
    assert await said(pg, "model") == f"The model here is test:small (from this server). {why}"
    assert await suggested(pg, "Ada", "model", "name", "") == ["test:large", "test:small", "default"]
    await said(pg, "model", name="Default", where=int(Level.GUILD))
    assert await said(pg, "model") == f"The model here is test:large (default). {why}"


async def test_model_refuses_what_is_not_on_the_list_and_says_what_left_it(pg: Playground, models: FakeModels) -> None:
    assert await said(pg, "model", name="gpt") == "“gpt” is not among my models: use test:large or test:small."
    await said(pg, "model", name="test:small")
    models.names = ["test:large"]
    gone = "“test:small” can no longer be chosen, so the default answers: test:large."
    assert await said(pg, "model") == f"{gone} The choice is from this channel."
    await said(pg, "model", name="default")
    no_other = "There is no other to choose: my owner can add more in MODELS."
    assert await said(pg, "model") == f"The model here is test:large (default). {no_other}"


async def test_model_is_for_those_who_manage_the_channel(pg: Playground) -> None:
    [command] = [command for command in pg.commands.all() if command["name"] == "model"]
    assert command["default_member_permissions"] == str(1 << 4)  # Manage Channels: Discord hides it from others
    pg.allow(pg.channel("general"), "manage_channels", member=pg.person("Ben"))
    assert await said(pg, "model", "Ben", where=int(Level.GUILD)) == NOT_THE_SERVERS
