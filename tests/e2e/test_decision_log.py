"""The decision log as the bot writes it: what comes into it, what became of it, and what goes again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from decider import Reason
from discord_io.discord_wire import DiscordWire
from followup.decision_file import FILE_NAME, DecisionFile
from followup.learning import Entry, Outcome
from persistence.open_store import find_seal
from playground.model import Message
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Reply, StubModel

DOUBTFUL = "I would rather take the train"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
async def scene(stub: StubModel, folder: Path) -> AsyncIterator[Scene]:
    async with open_scene(stub, state_dir=folder, decision_log="on") as scene:
        yield scene


async def _row(scene: Scene, folder: Path, message: Message) -> Entry | None:
    """The message's row, once all is written."""
    await scene.bot.decision_log.flush()
    return next((row for row in _rows(folder) if row.message_id == message.id), None)


async def _outcomes(scene: Scene, folder: Path, *messages: Message) -> list[Outcome | None]:
    rows = [await _row(scene, folder, message) for message in messages]
    assert all(rows)
    return [row.outcome for row in rows if row]


def _rows(folder: Path) -> list[Entry]:
    return DecisionFile(folder / FILE_NAME, find_seal(folder, None, None)).read()


async def _left_alone(scene: Scene, who: str, text: str = "lunch?") -> Message:
    """Somebody speaks to Chloe, and the bot is silent."""
    message = scene.say(who, f"<@{scene.pg.person('Chloe')}> {text}")
    assert not (await scene.decision(message)).respond
    return message


# What comes into it


async def test_each_decision_in_a_conversation_is_there_once_the_bot_has_ended(stub: StubModel, folder: Path) -> None:
    async with open_scene(stub, state_dir=folder, decision_log="on") as scene:
        asked = scene.mention("Ada", "hello")
        await scene.answer_to(asked)
        silent = await _left_alone(scene, "Ben")
        people = scene.pg.person("Ada"), scene.pg.person("Ben")
    first, second = _rows(folder)
    assert (first.message_id, first.author_id) == (asked.id, people[0])
    assert (second.message_id, second.author_id) == (silent.id, people[1])
    assert (first.respond, first.reason, first.tier, first.score) == (True, "explicit_trigger", 1, 1.0)
    assert (second.respond, second.reason) == (False, "names_others")
    assert {(row.channel_id, row.guild_id) for row in (first, second)} == {(asked.channel_id, scene.pg.guild_id)}
    assert first.conversation == second.conversation
    assert 0 < first.at < second.at < first.at + 60
    assert (first.content, second.content, first.outcome, second.outcome) == (None, None, None, None)
    assert first.place == second.place == "#general (Playground)"


async def test_what_is_said_outside_a_conversation_costs_no_write_whatever_becomes_of_it(
    scene: Scene, folder: Path
) -> None:
    message = scene.say("Ada", "good morning")
    assert (await scene.decision(message)).reason is Reason.NO_TRIGGER
    await scene.edit(message, "good evening")
    await scene.delete(message)
    scene.pg.deny(scene.pg.channel("general"), "send_messages", "add_reactions")
    assert (await scene.decision(scene.mention("Ada", "hello"))).reason is Reason.MISSING_PERMISSION
    await scene.bot.decision_log.flush()
    assert not (folder / FILE_NAME).exists()


@pytest.mark.usefixtures("rules_of_thumb")
@pytest.mark.parametrize("how", ["deleted", "forgotten"])
async def test_a_message_that_is_taken_back_before_it_is_decided_on_is_neither_answered_nor_logged(
    stub: StubModel, folder: Path, how: str
) -> None:
    async with open_scene(stub, state_dir=folder, decision_log="on", use_llm_judge=True) as scene:
        scene.pg.allow(scene.pg.channel("general"), "manage_channels", member=scene.pg.person("Ada"))
        await scene.ask("Ada", "how do I get to Tokyo?")
        stub.judge_says = lambda _: how == "deleted"

        async def forget(_message: Message) -> None:
            await scene.use("Ada", "forget", everything=True)
            await scene.ask("Ada", "hello again")

        doubtful = await _while_the_judge_ponders(scene, scene.delete if how == "deleted" else forget)
        assert (await scene.decision(doubtful)).reason is (Reason.DELETED if how == "deleted" else Reason.LLM_JUDGE)
        assert await _row(scene, folder, doubtful) is None
        await scene.at_rest()
        assert len(stub.requests) == (1 if how == "deleted" else 2)


@pytest.mark.usefixtures("rules_of_thumb")
async def test_what_is_called_off_while_the_judge_ponders_gets_no_answer(stub: StubModel) -> None:
    async with open_scene(stub, use_llm_judge=True) as scene:
        await scene.ask("Ada", "how do I get to Tokyo?")
        stub.judge_says = lambda _: True

        async def stop(_message: Message) -> None:
            stub.judge_says = lambda _: False
            assert not (await scene.decision(scene.say("Ben", "stop"))).respond

        doubtful = await _while_the_judge_ponders(scene, stop)
        assert (await scene.decision(doubtful)).reason is Reason.STOP
        await scene.at_rest()
        assert len(stub.requests) == 1


async def _while_the_judge_ponders(scene: Scene, act: Callable[[Message], Awaitable[None]]) -> Message:
    """Ben's doubtful message, to which something happens before it is decided on."""
    scene.stub.judge_gate = asyncio.Event()
    doubtful = scene.say("Ben", DOUBTFUL)
    await scene.until(lambda: scene.stub.judged)
    await act(doubtful)
    scene.stub.judge_gate.set()
    await scene.decision(doubtful)
    return doubtful


@pytest.mark.usefixtures("rules_of_thumb")
async def test_the_judges_words_are_not_told_where_they_may_quote_what_was_deleted_meanwhile(stub: StubModel) -> None:
    async with open_scene(stub, use_llm_judge=True) as scene:
        earlier = await scene.ask("Ada", "how do I get to Tokyo?")
        doubtful = await _while_the_judge_ponders(scene, lambda _message: scene.delete(earlier))
        decision = await scene.decision(doubtful)
        assert (decision.reason, decision.evidence) == (Reason.LLM_JUDGE, "")


@pytest.mark.usefixtures("rules_of_thumb")
async def test_the_judges_words_are_not_kept(stub: StubModel, folder: Path) -> None:
    async with open_scene(stub, state_dir=folder, decision_log="content", use_llm_judge=True) as scene:
        await scene.ask("Ada", "how do I get to Tokyo?")
        doubtful = scene.say("Ben", DOUBTFUL)
        assert (await scene.decision(doubtful)).evidence
        row = await _row(scene, folder, doubtful)
    assert row
    assert (row.reason, row.tier, row.evidence) == ("llm_judge", 3, "")


@pytest.mark.usefixtures("rules_of_thumb")
async def test_content_is_kept_where_it_is_wanted_and_follows_edits(stub: StubModel, folder: Path) -> None:
    async with open_scene(stub, state_dir=folder, decision_log="content", use_llm_judge=True) as scene:
        asked = scene.mention("Ada", "my cat is called Tim")
        await scene.answer_to(asked)

        async def correct(message: Message) -> None:
            await scene.edit(message, "I would rather walk")

        doubtful = await _while_the_judge_ponders(scene, correct)
        await scene.bot.decision_log.flush()
        await scene.edit(asked, "my cat is called Tom")
        rows = [await _row(scene, folder, message) for message in (asked, doubtful)]
    assert [row.content for row in rows if row] == ["my cat is called Tom", "I would rather walk"]


async def test_a_folder_that_cannot_be_made_costs_one_warning_and_nothing_else(stub: StubModel, tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    async with open_scene(stub, state_dir=tmp_path / "state", decision_log="on") as scene:
        await scene.ask("Ada", "hello")
        await scene.bot.decision_log.flush()
        await scene.ask("Ada", "and now?")
        await scene.bot.decision_log.flush()
    (warning,) = scene.journal.find("decision_log_failed", level="warning")
    assert str(tmp_path / "state") in warning["file"]


# What became of it


async def test_a_mention_right_after_a_silence_shows_that_it_missed_something(scene: Scene, folder: Path) -> None:
    await scene.ask("Ada", "hello")
    earlier, bens, adas = [await _left_alone(scene, who) for who in ("Ada", "Ben", "Ada")]
    asked = scene.mention("Ada", "I meant you")
    await scene.answer_to(asked)
    assert await _outcomes(scene, folder, earlier, bens, adas, asked) == [None, None, Outcome.MISSED, None]


async def test_a_thumbs_down_under_an_answer_is_said_of_its_question(scene: Scene, folder: Path) -> None:
    scene.stub.replies.extend([Reply("Hello."), Reply("word " * 600)])
    asked = scene.mention("Ada", "hello")
    answer = await scene.answer_to(asked)
    await scene.react(answer, "Parley", "👎🏽")
    await scene.react(asked, "Ben", "👎🏽")
    assert await _outcomes(scene, folder, asked) == [None]
    await scene.react(answer, "Ben", "👎🏽")
    long = scene.mention("Ada", "tell me a story")
    await scene.outcome(long)
    assert len(scene.said()) == 3
    await scene.react(scene.said()[-1], "Ben", "👎")  # its last part
    assert await _outcomes(scene, folder, asked, long) == [Outcome.DISLIKED] * 2


async def test_a_reply_or_another_reaction_takes_an_answer_up_unless_it_is_disliked_after_all(
    scene: Scene, folder: Path
) -> None:
    questions, answers = [], []
    for _ in range(3):
        questions.append(scene.mention("Ada", "hello"))
        answers.append(await scene.answer_to(questions[-1]))
    await scene.react(answers[0], "Ben", "🎉")
    await scene.decision(scene.say("Ben", "that is good to know", reply_to=answers[1].id))
    assert await _outcomes(scene, folder, *questions) == [Outcome.TAKEN_UP, Outcome.TAKEN_UP, None]
    await scene.react(answers[0], "Chloe", "👎")
    await scene.react(answers[0], "Ben", "👍")
    assert await _outcomes(scene, folder, questions[0]) == [Outcome.DISLIKED]


async def test_what_somebody_deletes_is_said_of_its_question_and_not_what_the_bot_takes_back(
    scene: Scene, folder: Path
) -> None:
    asked = scene.mention("Ada", "hello")
    await scene.answer_to(asked)
    wire = DiscordWire(scene.bot, scene.pg.guild_id, asked.channel_id, scene.bot.learning)
    await wire.send("the first part", nonce="1-0", reply_to=asked.id)
    part = await wire.send("the second part", nonce="1-1", reply_to=None)
    heard = scene.heard("raw_message_delete", scene.said()[-1])
    await wire.delete(part.message_id)
    await heard
    assert await _outcomes(scene, folder, asked) == [None]
    await scene.delete(scene.said()[-1])
    assert await _outcomes(scene, folder, asked) == [Outcome.DELETED]


# What goes again


@pytest.mark.parametrize("written", [True, False])
async def test_a_deleted_message_takes_its_row_with_it(scene: Scene, folder: Path, written: bool) -> None:
    asked, other = scene.mention("Ada", "hello"), scene.mention("Ben", "hello")
    await scene.answer_to(other)
    await scene.at_rest()
    if written:
        assert await _row(scene, folder, asked)
    await scene.delete(asked)
    assert await _row(scene, folder, other)
    assert await _row(scene, folder, asked) is None


async def test_what_is_deleted_in_bulk_goes_too(scene: Scene, folder: Path) -> None:
    messages = [scene.mention(who, "hello") for who in ("Ada", "Ben", "Chloe")]
    await scene.decision(messages[-1])
    await scene.at_rest()
    heard = scene.bot.wait_for("raw_bulk_message_delete", timeout=10)
    scene.pg.world.delete_bulk(messages[0].channel_id, [message.id for message in messages[:2]])
    await heard
    await scene.bot.decision_log.flush()
    assert [row.message_id for row in _rows(folder)] == [messages[2].id]


@pytest.mark.parametrize("everything", [False, True])
async def test_forget_drops_the_rows_too(scene: Scene, folder: Path, everything: bool) -> None:
    scene.pg.allow(scene.pg.channel("general"), "manage_channels", member=scene.pg.person("Ada"))
    adas, bens = scene.mention("Ada", "hello"), scene.mention("Ben", "hello")
    elsewhere = scene.mention("Ada", "hello", channel="help")
    for question in (adas, bens, elsewhere):
        await scene.decision(question)
    await scene.at_rest()
    await scene.bot.decision_log.flush()
    await scene.use("Ada", "forget", everything=everything)
    await scene.bot.decision_log.flush()
    assert {row.message_id for row in _rows(folder)} == {elsewhere.id if everything else bens.id}
    later = scene.mention("Ada", "hello again")
    await scene.answer_to(later)
    assert await _row(scene, folder, later)


async def test_a_deletion_is_followed_also_once_the_log_is_off(scene: Scene, folder: Path) -> None:
    asked = scene.mention("Ada", "hello")
    await scene.answer_to(asked)
    await scene.bot.decision_log.flush()
    scene.bot.decision_log._is_on = False
    await scene.delete(asked)
    await scene.ask("Ben", "hello")
    await scene.bot.decision_log.flush()
    assert _rows(folder) == []
