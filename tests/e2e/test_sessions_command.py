"""`python bot.py sessions`: the real program, beside a bot that runs and after it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from followup.decision_file import FILE_NAME, DecisionFile
from history_cut import SUMMED_UP, context_of
from persistence.lock import in_use
from persistence.open_store import check_stores, find_seal, open_stores
from persistence.sessions_command import read_sessions
from playground.model import Message as Posted
from state import Message, MessageCategory, Session
from state.spending import Spent
from storage.store import Key, Row
from tests.support.lives import kill, life, on_disk, open_stage, waking
from tests.support.process import PROGRAM
from tests.support.scene import Scene
from tests.support.stub_model import Call, Reply, StubModel, texts

TOKEN = "a-token-of-a-bot"  # without one it would be the playground's folder
TELLS = "my cat is called Tim"
ZONE = "Pacific/Auckland"
ANSWER_TOKENS = 5  # which the stub counts for each answer


def uses_a_tool(stub: StubModel, answer: str = "It is noon.") -> None:
    stub.replies += [Reply(calls=(Call("current_time", f'{{"timezone":"{ZONE}"}}'),)), Reply(answer)]


@pytest.fixture
async def stage(stub: StubModel, tmp_path: Path) -> AsyncIterator[Scene]:
    stub.default = lambda _: Reply("I see.")
    async with open_stage(stub, tmp_path / "state") as opened:
        yield opened


async def sessions(stage: Scene, *arguments: str, **more: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr. more: of the environment."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAM),
        "sessions",
        *arguments,
        cwd=stage.folder.parent,
        env={"PATH": os.environ["PATH"], "STATE_DIR": str(stage.folder), "DISCORD_TOKEN": TOKEN, **more},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


@pytest.mark.slow
async def test_the_owner_lists_shows_exports_and_deletes(stage: Scene) -> None:
    general, help_ = str(stage.pg.channel("general")), str(stage.pg.channel("help"))
    async with life(stage, decision_log="on"):
        uses_a_tool(stage.stub, "I see.")
        await stage.ask("Ada", f"{TELLS}\x1b[2J")
        await stage.ask("Ben", "my horse is called Bluebell", channel="help")
        await stage.at_rest()
        await stage.bot.snapshots.settled()
        with in_use(stage.folder):
            code, listed, said = await sessions(stage, "list")  # beside the bot
        assert not said
        rows = [line.split()[:3] for line in listed.splitlines()[1:]]
        assert (code, rows) == (0, [[one, str(stage.pg.guild_id), n] for one, n in ((help_, "3"), (general, "5"))])
    code, shown, _ = await sessions(stage, "show", general)
    assert code == 0
    rules, *lines = [line.split("  ", 1)[1] for line in shown.splitlines()]
    assert rules.startswith('SYSTEM         system: You are "Parley", a member of the Discord server named')
    call, result = lines.pop(1), lines.pop(1)
    assert call == f'SYSTEM_OUTPUT  assistant: current_time({{"timezone":"{ZONE}"}})'
    assert result.startswith("SYSTEM_OUTPUT  current_time: ")
    assert lines == [f"DIALOG         Ada: @Parley {TELLS} [2J", "DIALOG         Parley: I see."]
    code, exported, _ = await sessions(stage, "export", general)
    session = Session.from_dict(json.loads(exported))
    assert (code, session.id, session.metadata["guild_id"]) == (0, general, stage.pg.guild_id)
    assert [message.tokens for message in session.messages if message.role == "assistant"] == [0, ANSWER_TOKENS]
    assert session.trim(0).messages == session.messages[:1]
    assert await sessions(stage, "delete", general) == (0, "", "")
    assert not on_disk(stage.folder, TELLS)
    log = DecisionFile(stage.folder / FILE_NAME, find_seal(stage.folder, None, None))
    assert {entry.channel_id for entry in log.read()} == {int(help_)}
    code, out, err = await sessions(stage, "show", general)
    assert (code, out) == (2, "")
    assert "sessions list" in err
    (stage.folder / "state.key").unlink()
    code, out, err = await sessions(stage, "list")
    assert (code, out) == (2, "")
    assert "STATE_KEY" in err


@pytest.mark.slow
async def test_with_a_key_that_the_running_bot_does_not_have_nothing_is_sealed_anew(stage: Scene) -> None:
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    with in_use(stage.folder):  # as by a bot with the key that it made, and by one with the old one
        check_stores(stage.folder, None, None)
        made = (stage.folder / "state.key").read_text().strip()
        for keys, next_keys in ((None, f"{new},{made}"), (f"{old},{made}", f"{new},{old}")):
            check_stores(stage.folder, None, keys)
            store = open_stores(stage.folder, None, keys)()
            code, _, said = await sessions(stage, "list", STATE_KEY=next_keys)
            assert (code, "running processes use that key" in said) == (2, True)
            store.write({Key("a", 1): b"since then"})
            store.close()
    check_stores(stage.folder, None, f"{new},{old}")
    store = open_stores(stage.folder, None, new)()
    assert store.read("a") == [Row(1, 0, b"since then")]
    store.close()


@pytest.mark.slow
async def test_a_key_that_is_none_costs_one_sentence(stage: Scene) -> None:
    code, out, err = await sessions(stage, "list", STATE_KEY="no key")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("STATE_KEY must be")
    assert not stage.folder.exists()


@pytest.mark.slow
async def test_nothing_is_deleted_beside_a_bot_that_runs(stage: Scene) -> None:
    general = str(stage.pg.channel("general"))
    async with life(stage):
        await stage.ask("Ada", TELLS)
        with in_use(stage.folder):
            code, _, err = await sessions(stage, "delete", general)
        assert (code, "in use by another process" in err) == (1, True)
        assert on_disk(stage.folder, TELLS)


@pytest.mark.parametrize("how", ["forget", "delete"])
async def test_what_is_forgotten_or_deleted_leaves_no_empty_session(stage: Scene, how: str) -> None:
    async with life(stage):
        question = stage.mention("Ada", TELLS)
        answer = await stage.answer_to(question)
        if how == "forget":
            await stage.use("Ada", "forget")
        else:
            await stage.delete(question)
            await stage.delete(answer)
        assert await stage.bot.snapshots.settled()
    store = open_stores(stage.folder, None, None)()
    assert not {"message", "guild", "system", "context", "output"} & set(store.kinds())
    store.close()


def stored(stage: Scene, category: MessageCategory) -> list[Message]:
    """What is stored of general, of this category."""
    store = open_stores(stage.folder, None, None)()
    sessions = read_sessions(store, stage.pg.channel("general"))
    store.close()
    return [message for session in sessions for message in session.filter({category}).messages]


async def test_a_full_session_is_continued_in_a_new_one_with_what_it_says_of_system(stage: Scene) -> None:
    for questions in (6, 5):  # of which the later process goes on with what the earlier one had begun
        async with life(stage, max_messages_per_session=10):
            for _ in range(questions):
                answer = await stage.ask("Ada", TELLS)
            await stage.delete(answer)
            assert await stage.bot.snapshots.settled()
    store = open_stores(stage.folder, None, None)()
    sessions = read_sessions(store, stage.pg.channel("general"))
    store.close()
    assert [len(session.messages) for session in sessions] == [10, 10, 3]
    assert [session.messages[0].category for session in sessions] == [MessageCategory.SYSTEM] * 3
    ids = [session.id for session in sessions]
    assert [session.metadata.get("continued_from") for session in sessions] == [None, *ids[:-1]]
    assert [session.metadata.get("continued_to") for session in sessions] == [*ids[1:], None]


async def test_instructions_are_stored_once_and_again_when_they_change(stage: Scene) -> None:
    for instructions in ("Be brief.", "Be brief.", "Be kind."):
        async with life(stage, instructions=instructions):
            await stage.ask("Ada", TELLS)
            await stage.ask("Ada", TELLS)
            assert await stage.bot.snapshots.settled()
    endings = [message.content.splitlines()[-1] for message in stored(stage, MessageCategory.SYSTEM)]
    assert endings == ["Be brief.", "Be kind."]


@pytest.mark.parametrize("how", ["edit", "delete", "answer", "forget", "optout", "everything", "unfurl"])
async def test_tool_use_goes_with_what_was_told_before_it(stage: Scene, how: str) -> None:
    """For whatever an answer was made of may stand in it."""
    async with life(stage):
        earlier = stage.mention("Ada", TELLS)
        await stage.answer_to(earlier)
        uses_a_tool(stage.stub)
        answer = await stage.ask("Ben", "what time is it?")
        assert await stage.bot.snapshots.settled()
        assert on_disk(stage.folder, ZONE)
        match how:
            case "edit":
                await stage.edit(earlier, "my cat is called Tom")
            case "delete":
                await stage.delete(earlier)
            case "answer":
                await stage.delete(answer)
            case "unfurl":
                heard = stage.heard("raw_message_edit", earlier)
                stage.pg.world.replace_message(earlier)
                await heard
            case "everything":
                await stage.use("Ada", "forget", everything=True)
            case command:
                await stage.use("Ada", command)
        assert await stage.bot.snapshots.settled()
    assert bool(on_disk(stage.folder, ZONE)) is bool(stored(stage, MessageCategory.SYSTEM_OUTPUT)) is (how == "unfurl")


@pytest.mark.parametrize("how", ["edit", "delete"])
async def test_tool_use_and_a_summary_go_with_what_was_merely_quoted_to_the_agent(stage: Scene, how: str) -> None:
    async with life(stage, session_tokens=2_000):
        stage.stub.rewriter_says = lambda _: Reply(CAME_TO, tokens=700)
        quoted = stage.say("Ada", TELLS)
        for number in range(25):  # more than is read of what was said before
            stage.say("Chloe", f"{number}")
        await stage.ask("Ben", f"why? {SHEEP}", reply_to=quoted.id)
        assert TELLS in stage.told()
        await counts_sheep(stage)
        uses_a_tool(stage.stub)
        await stage.ask("Ben", "what time is it?")
        assert CAME_TO in stage.told()
        assert await stage.bot.snapshots.settled()
        assert on_disk(stage.folder, ZONE)
        await (stage.edit(quoted, "my cat is called Tom") if how == "edit" else stage.delete(quoted))
        assert await stage.bot.snapshots.settled()
        await stage.ask("Ben", "what was that?")
        assert CAME_TO not in stage.told()
        assert ZONE not in str(stage.stub.requests[-1]["messages"])
    assert not on_disk(stage.folder, CAME_TO)
    assert not on_disk(stage.folder, ZONE)


async def test_tool_use_goes_with_what_was_cut_before_it_without_a_summary(stage: Scene) -> None:
    async with life(stage, session_tokens=2_000):
        questions = await counts_sheep(stage, status=500)
        uses_a_tool(stage.stub)
        await stage.ask("Ben", "what time is it?")
        assert await stage.bot.snapshots.settled()
        assert on_disk(stage.folder, ZONE)
        await stage.delete(questions[0])
        assert await stage.bot.snapshots.settled()
    assert not on_disk(stage.folder, ZONE)


async def test_tool_use_goes_with_what_was_said_while_nobody_made_its_answer(stage: Scene) -> None:
    async with life(stage):
        stage.halted()
        question = stage.mention("Ada", "what time is it?")
        await stage.shows("First words")
        await kill(stage)
    said = stage.say("Ben", TELLS)
    async with waking(stage):
        uses_a_tool(stage.stub)
        await stage.answer_to(question)
        assert TELLS in stage.told()
        assert await stage.bot.snapshots.settled()
        assert on_disk(stage.folder, ZONE)
        await stage.delete(said)
        assert await stage.bot.snapshots.settled()
    assert not on_disk(stage.folder, ZONE)


async def test_tool_use_for_whoever_is_not_kept_is_not_stored(stage: Scene) -> None:
    async with life(stage):
        await stage.use("Ada", "optout")
        uses_a_tool(stage.stub)
        await stage.ask("Ada", "what time is it?")
        assert await stage.bot.snapshots.settled()
    assert not on_disk(stage.folder, ZONE)


async def test_a_turn_that_never_began_takes_no_earlier_tool_use_for_its_own(stage: Scene) -> None:
    async with life(stage, daily_tokens=1_000_000):
        uses_a_tool(stage.stub)
        gate = asyncio.Event()
        stage.stub.replies[-1] = Reply("It is noon.", before=gate)
        stage.mention("Ada", "what time is it?")
        await stage.until(lambda: len(stage.stub.requests) == 2)
        await stage.decision(second := stage.mention("Ben", "and now?"))
        stage.bot.parts.limits.spend(Spent(tokens_in=1_000_000), datetime.now(UTC))
        gate.set()
        await stage.answer_to(second)
        await stage.at_rest()
        assert await stage.bot.snapshots.settled()
    assert len(stored(stage, MessageCategory.SYSTEM_OUTPUT)) == 2


@pytest.mark.slow  # 8 s, for which the bot looks whether what it had begun to post arrives after all
async def test_what_is_posted_only_after_a_kill_is_stored_with_its_tool_use(stage: Scene) -> None:
    async with life(stage):
        uses_a_tool(stage.stub)
        held = stage.pg.faults.add("POST", "/messages$", delay_event=asyncio.Event())
        question = stage.mention("Ada", "what time is it?")
        await stage.until(lambda: held.hits)
        await stage.ready(question)
        await kill(stage)
    async with life(stage):
        assert (await stage.answer_to(question)).content == "It is noon."
        await stage.at_rest()
        assert await stage.bot.snapshots.settled()
    assert len(stored(stage, MessageCategory.SYSTEM_OUTPUT)) == 2
    assert [message.tokens for message in stored(stage, MessageCategory.DIALOG)] == [0, ANSWER_TOKENS]


SHEEP = "sheep " * 300  # some 450 tokens
CAME_TO = "Ada counts sheep, and has got to 5."


async def counts_sheep(stage: Scene, numbers: range = range(6), status: int = 200) -> list[Posted]:
    """After all of them the first does not fit into 2,000 tokens any more. Returns the questions."""
    stage.stub.rewriter_says = lambda _: Reply(CAME_TO, tokens=700, status=status)
    questions = []
    for number in numbers:
        questions.append(stage.mention("Ada", f"{number} {SHEEP}"))
        await stage.answer_to(questions[-1])
    return questions


@pytest.mark.slow
async def test_what_no_longer_fits_is_summed_up_once_and_gone_on_with_in_a_new_session(stage: Scene) -> None:
    general = str(stage.pg.channel("general"))
    async with life(stage, session_tokens=2_000):
        await counts_sheep(stage, range(4))
        assert not stage.stub.rewritten, "nothing was cut"
        await counts_sheep(stage, range(4, 6))
        assert len(stage.stub.rewritten) == 1
        assert stage.bot.parts.limits.tokens_today == 6 * 15 + 700
        told = texts(stage.stub.requests[-1])
        assert told[1:3] == [SUMMED_UP, CAME_TO]
        assert "0 sheep" not in "".join(told)
        assert await stage.bot.snapshots.settled()
    store = open_stores(stage.folder, None, None)()
    first, then = read_sessions(store, int(general))
    store.close()
    assert (first.id, first.metadata["continued_to"]) == (general, then.id)
    assert (then.metadata["continued_from"], then.metadata["continuation_index"]) == (general, 1)
    assert [m.category.name for m in then.messages] == ["SYSTEM", "CONTEXT", "DIALOG", "DIALOG"]
    assert [m.content for m in then.messages[:2]] == [first.messages[0].content, CAME_TO]
    code, shown, _ = await sessions(stage, "show", then.id)
    assert (code, f"CONTEXT        system: {CAME_TO}" in shown, "5 sheep" in shown, "0 sheep" in shown) == (
        0,
        True,
        True,
        False,
    )
    async with life(stage, session_tokens=2_000):
        await stage.ask("Ada", "how far have I got?")
        assert texts(stage.stub.requests[-1])[1:3] == [SUMMED_UP, CAME_TO]


@pytest.mark.parametrize("how", ["edit", "delete", "forget", "everything"])
async def test_a_summary_goes_with_what_it_was_made_of(stage: Scene, how: str) -> None:
    async with life(stage, session_tokens=2_000):
        first, *_ = await counts_sheep(stage)
        assert await stage.bot.snapshots.settled()
        assert on_disk(stage.folder, CAME_TO)
        match how:
            case "edit":
                await stage.edit(first, "goats")
            case "delete":
                await stage.delete(first)
            case _:
                await stage.use("Ada", "forget", everything=how == "everything")
        assert await stage.bot.snapshots.settled()
        await stage.ask("Ben", "what was that?")
        assert CAME_TO not in "".join(texts(stage.stub.requests[-1]))
    assert not on_disk(stage.folder, CAME_TO)
    store = open_stores(stage.folder, None, None)()
    assert len(read_sessions(store, stage.pg.channel("general"))) == (2 if how in ("edit", "delete") else 1)
    store.close()


async def test_a_summary_goes_with_the_last_answer_that_it_was_made_of_though_that_was_trimmed(stage: Scene) -> None:
    async with life(stage, session_tokens=2_000):
        stage.bot.conversations._max_messages = 2  # there is no setting
        stage.stub.rewriter_says = lambda _: Reply(CAME_TO)
        answers: dict[int, Posted] = {}
        for _ in range(6):
            asked = stage.mention("Ada", SHEEP)
            answers[asked.id] = await stage.answer_to(asked)
        conversation = stage.bot.conversations.get(stage.pg.channel("general"))
        assert conversation
        summary = context_of(conversation.llm_history)
        assert summary
        await stage.delete(answers[summary.through])
        await stage.ask("Ben", "what was that?")
        assert CAME_TO not in "".join(texts(stage.stub.requests[-1]))


@pytest.mark.parametrize("how", ["edit", "delete", "forget"])
async def test_what_goes_while_summing_up_fails_is_not_sent_again(stage: Scene, how: str) -> None:
    async with life(stage, session_tokens=2_000):
        first, *_ = await counts_sheep(stage, range(5))
        gate = asyncio.Event()
        stage.stub.rewriter_says = lambda _: Reply(status=500, before=gate)
        asked = stage.mention("Ben", SHEEP)
        await stage.until(lambda: stage.stub.rewritten)
        assert "0 sheep" in str(stage.stub.rewritten)
        match how:
            case "edit":
                await stage.edit(first, "goats")
            case "delete":
                await stage.delete(first)
            case _:
                await stage.use("Ada", "forget")
        gate.set()
        await stage.answer_to(asked)
        assert len(stage.stub.rewritten) == 1


@pytest.mark.parametrize(("size", "status"), [(0, 200), (500, 500)])
async def test_without_a_summary_the_oldest_is_left_out_all_the_same(stage: Scene, size: int, status: int) -> None:
    async with life(stage, session_tokens=2_000, session_summary_tokens=size):
        await counts_sheep(stage, status=status)
        assert bool(stage.stub.rewritten) is bool(size)
        assert "0 sheep" not in "".join(texts(stage.stub.requests[-1]))


@pytest.mark.slow
async def test_a_reader_that_wants_no_more_is_no_fault(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)  # as `head` does after its last line
    environment = {"PATH": os.environ["PATH"], "STATE_DIR": str(tmp_path / "state"), "DISCORD_TOKEN": TOKEN}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(PROGRAM), "sessions", "list"),
        cwd=tmp_path,
        env=environment,
        stdout=write,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(write)
    _, said = await process.communicate()
    assert (process.returncode, b"BrokenPipe" in said) == (1, False)
