"""What people can have done with what is kept of them: in the bot's memory, before its model, and on its disk."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import aiohttp
import orjson
import pytest

from commands import answers, privacy_commands
from commands.privacy_commands import NOTHING_KEPT
from decider import Reason
from discord_io.channel_history import HISTORY_MESSAGES
from followup.decision_file import FILE_NAME
from persistence.open_store import DATABASE
from state.optout import UNREAD
from tests.e2e.test_who_may_read import call, link
from tests.support.lives import life, on_disk
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Call, Reply, StubModel
from web.site import Site

SECRET = "Timotheus"
TELLS = f"my cat is called {SECRET}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
async def scene(stub: StubModel, folder: Path) -> AsyncIterator[Scene]:
    stub.default = lambda _: Reply("I see.")
    async with open_scene(stub, state_dir=folder, decision_log="content") as opened:
        yield opened


async def settled(scene: Scene) -> None:
    """All that is to be written or removed is."""
    await scene.bot.decision_log.flush()
    await scene.bot.snapshots.settled()


# Opting out


async def test_who_opted_out_is_neither_told_of_nor_named_and_their_place_is_kept(scene: Scene, folder: Path) -> None:
    await scene.use("Ada", "optout")
    await scene.ask("Ben", "hello")
    said = scene.say("Ada", TELLS)
    await scene.decision(said)
    await scene.ask("Ben", "what was that?")
    told = scene.told()
    assert SECRET not in told
    assert "Ada" not in told
    assert told.index("hello") < told.index(UNREAD) < told.index("what was that?")
    await scene.edit(said, f"{TELLS}!")
    await scene.ask("Ben", "what do you make of this?", reply_to=said.id)
    assert SECRET not in scene.told()
    assert "what do you make of this?" in scene.told()
    await settled(scene)
    assert not on_disk(folder, SECRET)


async def test_who_opted_out_is_answered_when_they_mention_it_only(scene: Scene) -> None:
    await scene.use("Ada", "optout")
    await scene.ask("Ada", "hello")
    silent = scene.say("Ada", "and how are you?")
    assert (await scene.decision(silent)).reason is Reason.OPTED_OUT
    shown = await scene.use("Ada", "Why?", target=silent)
    assert shown.content == "Silent: you asked me not to read your messages, and did not mention me"
    await scene.ask("Ada", "and now?")


async def test_what_they_mention_it_with_is_told_for_that_answer_and_not_kept(scene: Scene, folder: Path) -> None:
    await scene.use("Ada", "optout")
    await scene.ask("Ada", TELLS)
    assert SECRET in scene.told()
    await scene.ask("Ben", "what did Ada say?")
    assert SECRET not in scene.told()
    await scene.ask("Ada", "and now?")
    assert SECRET not in scene.told()
    await scene.bot.decision_log.flush()
    assert not on_disk(folder, SECRET)


async def test_what_they_write_in_a_form_is_told_for_that_answer_and_not_kept(scene: Scene, folder: Path) -> None:
    await scene.use("Ada", "optout")
    scene.stub.replies.append(Reply(calls=(Call("ask_text", '{"question": "Who is it?"}'),)))
    scene.mention("Ada", "hello")
    opener = scene.press("Ada", await scene.card("Who is it?"), "Answer")
    await scene.until(lambda: opener.form)
    gate, requests = scene.held("I see."), len(scene.stub.requests)
    scene.pg.submit(opener, {"text": TELLS})
    await scene.until(lambda: len(scene.stub.requests) > requests)
    assert f": {TELLS}" in scene.told()
    await settled(scene)
    assert not on_disk(folder, SECRET)
    gate.set()
    await scene.at_rest()
    await scene.ask("Ben", "what did Ada say?")
    assert SECRET not in scene.told()
    await settled(scene)
    assert not on_disk(folder, SECRET)


async def test_what_they_mention_it_with_is_put_on_no_list(scene: Scene, folder: Path) -> None:
    """It would be kept there, with their name, and shown to others."""
    scene.stub.default = lambda _: Reply("I see.")
    await scene.use("Ada", "optout")
    for words in ("add Shake Shack Shibuya", f"get the {SECRET} burger"):
        await scene.ask("Ada", words)
    assert "nothing on the list" in (await scene.ask("Ben", "list our trip")).content
    await settled(scene)
    assert not on_disk(folder, SECRET) + on_disk(folder, "Shibuya")


async def test_who_opted_out_is_named_for_their_own_answer_only(scene: Scene, folder: Path) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    await scene.use("Ada", "optout")
    await scene.ask("Ada", TELLS)
    assert scene.told().endswith('Now answer "Ada".')
    await scene.ask("Ben", "hello")
    assert "Ada" not in scene.told()
    await settled(scene)
    assert not on_disk(folder, "Ada")


@pytest.mark.parametrize("way", ["read elsewhere", "in a reply", "in the next conversation"])
async def test_the_console_shows_no_answer_that_may_quote_who_opted_out(scene: Scene, way: str) -> None:
    """Also where they were not answered themselves."""
    await scene.use("Ada", "optout")
    scene.stub.replies.append(Reply(f"Your cat is called {SECRET}."))
    answer = await scene.ask("Ada", TELLS, channel="random")
    scene.bot.conversations.end(answer.channel_id)
    where = "general" if way == "read elsewhere" else "random"
    for number in range(HISTORY_MESSAGES if way == "in a reply" else 0):
        scene.say("Ben", f"number {number}", channel=where)
    if way == "read elsewhere":
        scene.stub.replies.append(call("read_message", link=link(scene, answer)))
    scene.stub.replies.append(Reply(f"The cat is called {SECRET}."))
    reply_to = {"reply_to": answer.id} if way == "in a reply" else {}
    await scene.ask("Ben", f"what is {link(scene, answer)}", channel=where, **reply_to)
    assert SECRET in json.dumps(scene.stub.requests[-1])
    shown = await shown_of(scene, where)
    assert "what is" in shown
    assert SECRET not in shown


@pytest.mark.parametrize("when", ["in the conversation", "after it"])
@pytest.mark.usefixtures("rules_of_thumb")
async def test_the_console_shows_no_words_of_the_judge_that_may_quote_who_opted_out(stub: StubModel, when: str) -> None:
    """Which has read what they were answered."""
    async with open_scene(stub, use_llm_judge=True) as scene:
        await scene.use("Ada", "optout")
        stub.replies.append(Reply(f"Your cat is called {SECRET}."))
        answer = await scene.ask("Ada", TELLS)
        stub.judge_says, stub.evidence = lambda _: True, lambda _: f"It is about {SECRET}."
        doubtful = scene.say("Ben", "I would rather take the train")
        await scene.decision(doubtful)
        assert SECRET in json.dumps(stub.judged[-1])
        if when == "after it":
            scene.bot.conversations.end(answer.channel_id)
        shown = await shown_of(scene, "general")
        assert "thought" in shown or "judge" in shown
        assert SECRET not in shown


async def shown_of(scene: Scene, channel: str) -> str:
    """The console's page of a channel, with people's words."""
    site = Site(scene.bot.health, is_local=True, shows_content=True)
    site.show(scene.bot.shown)
    page = f"places/{scene.pg.guild_id}/{scene.pg.channel(channel)}"
    cookies = aiohttp.CookieJar(unsafe=True)  # also of a host that has no name
    async with site.served(0, "127.0.0.1") as address, aiohttp.ClientSession(cookie_jar=cookies) as browser:
        await browser.get(f"{address}/console")  # which sets the cookie
        async with browser.get(f"{address}/console/{page}") as response:
            return await response.text()


async def test_what_was_said_before_opting_out_is_gone_and_does_not_come_back_from_the_history(
    scene: Scene, folder: Path
) -> None:
    await scene.decision(scene.say("Ada", TELLS, channel="help"))
    await scene.ask("Ada", TELLS)
    await scene.use("Ada", "optout")
    assert not on_disk(folder, SECRET)
    for channel in ("general", "help"):
        await scene.ask("Ben", "which cat?", channel=channel)
        assert SECRET not in scene.told()


async def test_what_was_said_while_opted_out_is_not_read_after_opting_in(scene: Scene) -> None:
    await scene.use("Ada", "optout")
    await scene.decision(scene.say("Ada", TELLS, channel="help"))
    await scene.use("Ada", "optin")
    await scene.decision(scene.say("Ada", "my dog is called Rex", channel="help"))
    told = (await scene.use("Ben", "why", channel="help")).content
    assert "Rex" in told
    assert SECRET not in told
    await scene.ask("Ben", "which animals?", channel="help")
    assert "Rex" in scene.told()
    assert SECRET not in scene.told()


@pytest.mark.parametrize("way", ["pinned", "edited before, and found after a restart"])
async def test_what_was_said_while_opted_out_is_not_read_when_it_is_seen_again_after_opting_in(
    stage: Scene, way: str
) -> None:
    stage.stub.default = lambda _: Reply("I see.")
    async with life(stage):
        await stage.use("Ada", "optout")
        await stage.ask("Ben", "hello")
        said = stage.say("Ada", "my cat has a name")
        await stage.decision(said)
        await stage.edit(said, TELLS)
        await stage.use("Ada", "optin")
        if way == "pinned":
            heard = stage.heard("raw_message_edit", said)
            stage.pg.world.pin(stage.pg.world.message(said.channel_id, said.id), said.author)
            await heard
            await stage.ask("Ben", "which cat?")
            assert SECRET not in stage.told()
    async with life(stage):
        await stage.ask("Ben", "which animals?")
        assert SECRET not in stage.told()
    assert not on_disk(stage.folder, SECRET)


async def test_a_choice_survives_a_restart_and_can_be_taken_back(stage: Scene) -> None:
    stage.stub.default = lambda _: Reply("I see.")
    async with life(stage):
        await stage.use("Ada", "optout")
    async with life(stage):
        assert (await stage.use("Ada", "optout")).content == privacy_commands.OUT_ALREADY
        await stage.ask("Ben", "hello")
        assert (await stage.decision(stage.say("Ada", TELLS))).reason is Reason.OPTED_OUT
        assert (await stage.use("Ada", "optin")).content == privacy_commands.OPTED_IN
        await stage.decision(stage.say("Ada", "my dog is called Rex"))
        await stage.ask("Ben", "which animals?")
        assert "Rex" in stage.told()
        assert SECRET not in stage.told()
    async with life(stage):
        assert (await stage.use("Ada", "optin")).content == privacy_commands.IN_ALREADY


# Deleting


@pytest.mark.parametrize("way", ["deleted", "edited"])
async def test_a_reply_from_before_the_conversation_quotes_nothing_that_is_not_there_any_more(
    scene: Scene, way: str
) -> None:
    for number in range(HISTORY_MESSAGES):  # so many that they are taken from the cache
        scene.say("Chloe", f"by the way, number {number}")
    said = scene.say("Ada", TELLS)
    await scene.decision(scene.say("Chloe", "really?", reply_to=said.id))
    await (scene.delete(said) if way == "deleted" else scene.edit(said, "my dog is called Rex"))
    await scene.ask("Ben", "which animals?")
    assert "really?" in scene.told()
    assert SECRET not in scene.told()
    assert ("(replying to Ada: 'my dog is called Rex')" in scene.told()) == (way == "edited")


async def test_a_thread_says_nothing_of_a_deleted_message_that_it_was_started_from(scene: Scene) -> None:
    said = scene.say("Ada", TELLS)
    scene.pg.open_thread(said.channel_id, scene.pg.person("Chloe"), "pets", message=said)
    for number in range(HISTORY_MESSAGES - 1):  # so many that they are taken from the cache
        await scene.decision(scene.say("Chloe", f"by the way, number {number}", channel="pets"))
    await scene.delete(said)
    await scene.ask("Ben", "which animals?", channel="pets")
    assert SECRET not in scene.told()


# Forgetting


@pytest.mark.parametrize("everything", [False, True])
async def test_what_is_forgotten_is_gone_from_disk(scene: Scene, folder: Path, everything: bool) -> None:
    scene.pg.allow(scene.pg.channel("general"), "manage_channels", member=scene.pg.person("Ada"))
    await scene.ask("Ada", TELLS)
    await scene.ask("Ada", "my dog is called Rex", channel="help")
    await scene.ask("Ben", "mine is called Tom", channel="help")
    await settled(scene)
    assert all(on_disk(folder, name) for name in (SECRET, "Rex", "Tom"))
    expected = privacy_commands.CHANNEL_FORGOTTEN if everything else privacy_commands.FORGOTTEN
    assert (await scene.use("Ada", "forget", everything=everything)).content == expected
    assert not on_disk(folder, SECRET)
    assert bool(on_disk(folder, "Rex")) == everything
    assert on_disk(folder, "Tom")


async def test_what_is_forgotten_is_gone_though_another_program_left_a_trigger_meanwhile(
    scene: Scene, folder: Path
) -> None:
    await scene.ask("Ada", TELLS)
    await settled(scene)
    with closing(sqlite3.connect(folder / DATABASE)) as db:
        db.execute("CREATE TRIGGER t BEFORE UPDATE ON row BEGIN SELECT RAISE(IGNORE); END")
    assert (await scene.use("Ada", "forget")).content == privacy_commands.FORGOTTEN
    assert not on_disk(folder, SECRET)


async def test_what_is_deleted_in_discord_is_gone_from_disk(scene: Scene, folder: Path) -> None:
    asked = scene.mention("Ada", TELLS)
    await scene.answer_to(asked)
    await settled(scene)
    assert on_disk(folder, SECRET)
    await scene.delete(asked)
    await settled(scene)
    assert not on_disk(folder, SECRET)


async def test_what_somebody_deletes_of_an_answer_that_is_being_made_is_gone(scene: Scene, folder: Path) -> None:
    gate = asyncio.Event()
    rest = "\n\n".join([f"{SECRET} is a cat.", "one " * 400, "two " * 400, "three " * 400])
    scene.stub.replies.append(Reply(rest, gate=gate, chunk=3_000))
    asked = scene.mention("Ada", "what is a cat?")
    await scene.delete(await scene.shows(SECRET))
    gate.set()
    await scene.outcome(asked)
    await settled(scene)
    assert not on_disk(folder, SECRET)
    assert await scene.bot.snapshots.search.find(asked.channel_id, SECRET) == []


async def test_being_removed_from_a_server_clears_what_was_said_there(scene: Scene, folder: Path) -> None:
    for channel in ("general", "help"):
        await scene.ask("Ada", TELLS, channel=channel)
    await settled(scene)
    assert on_disk(folder, SECRET)
    left = asyncio.ensure_future(scene.bot.wait_for("guild_remove", timeout=10))
    scene.pg.remove_bot()
    await left
    # discord.py's name of the task in which the bot follows an event.
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() == "discord.py: on_guild_remove"))
    await settled(scene)
    assert not on_disk(folder, SECRET)
    back = asyncio.ensure_future(scene.bot.wait_for("guild_join", timeout=10))
    scene.pg.invite_bot()
    await back
    await scene.ask("Ben", "which cat?")
    assert SECRET not in scene.told()


async def test_being_removed_clears_also_channels_whose_server_is_not_known_any_more(stage: Scene) -> None:
    async with life(stage):
        await stage.ask("Ada", TELLS)
    with closing(sqlite3.connect(stage.folder / DATABASE)) as db, db:
        db.execute("DELETE FROM row WHERE kind = 'guild'")
    async with life(stage):
        left = asyncio.ensure_future(stage.bot.wait_for("guild_remove", timeout=10))
        stage.pg.remove_bot()
        await left
        await asyncio.gather(*(t for t in asyncio.all_tasks() if t.get_name() == "discord.py: on_guild_remove"))
        await settled(stage)
        assert not on_disk(stage.folder, SECRET)


async def test_what_could_not_be_forgotten_completely_is_said_to_be_and_can_be_tried_again(
    scene: Scene, folder: Path
) -> None:
    await scene.ask("Ada", TELLS)
    assert await scene.bot.decision_log.flush()
    written = folder / FILE_NAME
    away = written.rename(folder / "away")
    written.mkdir()  # as good as a disk that fails
    assert (await scene.use("Ada", "forget")).content == answers.INCOMPLETE
    (entry,) = scene.journal.find("privacy_failed", level="error")
    assert entry["user"] == scene.pg.person("Ada")
    written.rmdir()
    away.rename(written)
    assert (await scene.use("Ada", "forget")).content == privacy_commands.FORGOTTEN
    assert not on_disk(folder, SECRET)


# Taking it along


async def test_the_export_holds_ones_own_messages_from_all_channels_and_nobody_elses(scene: Scene) -> None:
    await scene.ask("Ada", TELLS)
    await scene.ask("Ada", "my dog is called Rex", channel="help")
    await scene.ask("Ben", "mine is called Tom")
    exported = await _exported(scene, "Ada")
    assert len(exported) == 2
    assert any("Rex" in text for text in exported)
    assert any(SECRET in text for text in exported)
    answer = await scene.use("Chloe", "export")
    assert (answer.content, answer.attachments) == (NOTHING_KEPT, ())


async def _exported(scene: Scene, who: str) -> list[str]:
    """The texts in the file that a person is given."""
    reply = await scene.use(who, "export")
    assert reply.content == privacy_commands.EXPORTED
    async with aiohttp.ClientSession() as http, http.get(reply.attachments[0]["url"]) as response:
        exported = orjson.loads(await response.read())
    assert exported["user"] == str(scene.pg.person(who))
    return [message["content"] for message in exported["messages"]]
