"""Several agents behind one bot: who answers, what each is told, and what stays of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.lives import kill, life, on_disk, open_stage
from tests.support.remote_agent import RemoteAgent, RemoteReply, streamed, whole
from tests.support.scene import Scene
from tests.support.stub_model import Reply, StubModel

HANDBOOK = "Page 12 of the handbook."
FRANCE = "Paris, in France."


@pytest.fixture
async def docs() -> AsyncIterator[RemoteAgent]:
    agent = RemoteAgent()
    agent.default = lambda _: whole(HANDBOOK)
    await agent.start()
    yield agent
    await agent.stop()


@pytest.fixture
async def stage(stub: StubModel, docs: RemoteAgent, tmp_path: Path) -> AsyncIterator[Scene]:
    """A Discord for a bot with an agent beside the general one."""
    stub.default = lambda _: Reply(FRANCE)
    roster = tmp_path / "agents.toml"
    roster.write_text(f'[[agent]]\nname = "docs"\nkind = "ums"\nurl = "{docs.url}"\nabout = "Knows the handbook."\n')
    async with open_stage(stub, tmp_path / "state") as opened:
        yield opened


@pytest.fixture
async def scene(stage: Scene, tmp_path: Path) -> AsyncIterator[Scene]:
    async with life(stage, **beside(tmp_path)):
        yield stage


def beside(folder: Path) -> dict[str, Path]:
    return {"agents": folder / "agents.toml"}


async def why(scene: Scene, about: int) -> str:
    general = scene.pg.channel("general")
    return (await scene.pg.reply_to(scene.pg.command(general, scene.pg.person("Ada"), "Why?", {}, about))).content


async def test_the_agent_that_is_named_answers_and_goes_on_in_its_conversation(scene: Scene, docs: RemoteAgent) -> None:
    question = scene.mention("Ada", "ask the docs agent how many days of holiday I have")
    assert (await scene.answer_to(question)).content == HANDBOOK
    followup = await scene.answer_to(scene.say("Ada", "and how many of them can I keep?"))
    assert followup.content == HANDBOOK
    assert docs.paths == ["/ums/conversations", "/ums/conversations/conv-1/chat", "/ums/conversations/conv-1/chat"]
    assert docs.contents == [
        "ask the docs agent how many days of holiday I have",
        "and how many of them can I keep?",
    ]
    assert not scene.stub.requests
    assert not scene.stub.judged
    assert await why(scene, question.id) == "Answered: you mentioned me or replied to me; by docs, which you named"


async def test_neither_agent_learns_what_the_other_was_asked(scene: Scene, docs: RemoteAgent) -> None:
    await scene.ask("Ada", "ask docs how many days of holiday I have")
    await scene.ask("Ada", "ask yourself where Paris is")
    told = scene.told()
    assert "where Paris is" in told
    assert "holiday" not in told
    assert HANDBOOK not in told
    await scene.ask("Ada", "docs: and when do I have to ask for them?")
    assert not any("Paris" in content for content in docs.contents)
    await scene.ask("Ada", "ask yourself what lies west of it")
    assert FRANCE in scene.told()
    assert HANDBOOK not in scene.told()
    assert "handbook" not in scene.told().casefold()
    assert docs.paths.count("/ums/conversations") == 1


@pytest.mark.parametrize("shared_context", [True, False])
async def test_what_people_mentioned_last_every_agent_knows_if_it_is_switched_on(
    stage: Scene, docs: RemoteAgent, tmp_path: Path, shared_context: bool
) -> None:
    john = stage.pg.add_person("John")
    async with life(stage, **beside(tmp_path), shared_context=shared_context):
        question = stage.mention("Ada", f"docs: how many days of holiday does <@{john}> have?")
        await stage.answer_to(question)
        await stage.ask("Ada", "ask yourself where he is")
        assert ('"last_mentioned_user": "John"' in stage.told()) is shared_context
        assert "holiday" not in stage.told()
    async with life(stage, **beside(tmp_path), shared_context=shared_context):
        await stage.ask("Ada", "docs: and in May?")
        assert ('"last_mentioned_user": "John"' in docs.contents[-1]) is shared_context
        await stage.delete(question)
        await stage.ask("Ada", "ask yourself where he was")
        await stage.ask("Ada", "docs: and in June?")
        assert "John" not in stage.told()
        assert "John" not in docs.contents[-1]
        assert not on_disk(stage.folder, "last_mentioned")


@pytest.mark.parametrize("ending", ["told to", "killed"])
async def test_agents_alternate_across_a_restart(stage: Scene, docs: RemoteAgent, tmp_path: Path, ending: str) -> None:
    async with life(stage, **beside(tmp_path)):
        await stage.ask("Ada", "ask docs how many days of holiday I have")
        await stage.ask("Ada", "ask yourself where Paris is")
        if ending == "killed":
            await kill(stage)
    async with life(stage, **beside(tmp_path)):
        await stage.ask("Ada", "docs: and when do I have to ask for them?")
        assert docs.paths[-1] == "/ums/conversations/conv-1/chat"
        await stage.ask("Ada", "ask yourself what lies west of it")
        assert FRANCE in stage.told()
        assert "holiday" not in stage.told()
        assert HANDBOOK not in stage.told()
    assert docs.paths.count("/ums/conversations") == 1


async def test_a_reply_to_an_agents_answer_is_for_that_agent(scene: Scene, docs: RemoteAgent) -> None:
    answer = await scene.ask("Ada", "ask docs how many days of holiday I have")
    await scene.ask("Ben", "ask yourself where Paris is")
    reply = scene.say("Ben", "and part-time?", reply_to=answer.id)
    assert (await scene.answer_to(reply)).content == HANDBOOK
    assert docs.contents[-1] == "and part-time?"


async def test_whom_nobody_named_the_model_chooses_once(scene: Scene, docs: RemoteAgent) -> None:
    scene.stub.picks = "docs"
    question = scene.mention("Ada", "how many days of holiday do I have?")
    assert (await scene.answer_to(question)).content == HANDBOOK
    assert len(scene.stub.judged) == 1
    assert "which fits best" in await why(scene, question.id)
    assert len(docs.contents) == 1


async def test_where_the_model_cannot_choose_the_general_agent_answers(scene: Scene) -> None:
    scene.stub.judge_says = lambda _: Reply(status=500)
    question = scene.mention("Ada", "where is Paris?")
    assert (await scene.answer_to(question)).content == FRANCE
    assert "could not be asked" in await why(scene, question.id)


async def test_with_one_agent_nobody_is_asked_who_answers(stage: Scene) -> None:
    async with life(stage):
        question = stage.mention("Ada", "ask docs where Paris is")
        assert (await stage.answer_to(question)).content == FRANCE
        assert not stage.stub.judged
        assert len(stage.stub.requests) == 1
        assert await why(stage, question.id) == "Answered: you mentioned me or replied to me"


async def test_an_answer_in_pieces_is_shown_as_it_comes(scene: Scene, docs: RemoteAgent) -> None:
    docs.answers.append(streamed("Page 12 ", "of the ", "handbook."))
    assert (await scene.ask("Ada", "docs: where does it stand?")).content == HANDBOOK


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (RemoteReply(status=500), "It cannot be reached, or broke off. Please ask again in a moment."),
        (RemoteReply(status=429), "It is overloaded. Please ask again in a moment."),
        (RemoteReply(status=401), "It is not set up correctly. Whoever runs me finds the reason in my log."),
        (whole(" "), "It had no answer to that. Please put it differently."),
    ],
)
async def test_an_agent_that_fails_costs_one_sentence_and_no_memory(
    scene: Scene, docs: RemoteAgent, said: RemoteReply, sentence: str
) -> None:
    docs.answers.append(said)
    answer = await scene.ask("Ada", "docs: how many days of holiday do I have?")
    assert answer.content == f"I asked the agent docs. {sentence}"
    assert (await scene.ask("Ada", "docs: and now?")).content == HANDBOOK
    assert docs.paths.count("/ums/conversations") == 1


async def test_a_conversation_that_the_agent_lost_is_made_anew(scene: Scene, docs: RemoteAgent) -> None:
    await scene.ask("Ada", "docs: how many days of holiday do I have?")
    docs.known.clear()
    docs.ids.append("conv-new")
    assert (await scene.ask("Ada", "docs: and now?")).content == HANDBOOK
    await scene.ask("Ada", "docs: and then?")
    assert docs.paths[-1] == "/ums/conversations/conv-new/chat"
    assert docs.paths.count("/ums/conversations") == 2


async def test_what_is_deleted_is_not_gone_on_with(scene: Scene, docs: RemoteAgent) -> None:
    question = scene.mention("Ada", "docs: my salary is a secret, is it?")
    await scene.answer_to(question)
    await scene.delete(question)
    await scene.ask("Ada", "docs: how many days of holiday do I have?")
    assert docs.paths[-1] == "/ums/conversations/conv-2/chat"


async def test_an_agent_that_is_gone_from_the_settings_is_kept_and_not_used(
    stage: Scene, docs: RemoteAgent, tmp_path: Path
) -> None:
    async with life(stage, **beside(tmp_path)):
        await stage.ask("Ada", "docs: how many days of holiday do I have?")
    async with life(stage):
        assert (await stage.answer_to(stage.say("Ada", "and how many can I keep?"))).content == FRANCE
        await stage.bot.snapshots.settled()
        assert on_disk(stage.folder, "conv-1")
    async with life(stage, **beside(tmp_path)):
        await stage.ask("Ada", "docs: and now?")
    assert docs.paths[-1] == "/ums/conversations/conv-1/chat"


async def test_who_named_the_general_agent_is_not_told_to_another(scene: Scene, docs: RemoteAgent) -> None:
    gate = asyncio.Event()
    scene.stub.replies.append(Reply(FRANCE, before=gate))
    scene.mention("Ada", "ask yourself where Paris is")
    await scene.until(lambda: scene.stub.requests)
    own = scene.mention("Ben", "ask yourself whether my diagnosis is bad")
    other = scene.mention("Ada", "docs: how many days of holiday do I have?")
    await scene.decision(other)
    gate.set()
    await scene.outcome(other)
    assert docs.contents == ["docs: how many days of holiday do I have?"]
    assert (await scene.answer_to(own)).content == FRANCE


async def test_what_is_deleted_while_it_answers_is_not_gone_on_with(scene: Scene, docs: RemoteAgent) -> None:
    first = scene.mention("Ada", "docs: my salary is a secret, is it?")
    await scene.answer_to(first)
    gate = asyncio.Event()
    docs.answers.append(whole(HANDBOOK, before=gate))
    second = scene.mention("Ada", "docs: and the bonus?")
    await scene.until(lambda: len(docs.contents) == 2)
    await scene.delete(first)
    gate.set()
    await scene.answer_to(second)
    await scene.ask("Ada", "docs: how many days of holiday do I have?")
    assert docs.paths[-1] == "/ums/conversations/conv-2/chat"
    await scene.ask("Ada", "docs: and now?")
    assert docs.paths[-1] == "/ums/conversations/conv-2/chat"
