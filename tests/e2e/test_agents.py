"""Several agents behind one bot: who answers, what each is told, and what stays of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import remote_memory
from playground.model import Message
from tests.e2e.test_waiting_and_the_forgotten import is_not_done, take_back
from tests.e2e.test_who_may_read import call, reader
from tests.support.clock import FakeClock
from tests.support.lives import kill, life, on_disk, open_stage
from tests.support.remote_agent import RemoteAgent, RemoteReply, streamed, whole
from tests.support.scene import Scene
from tests.support.stub_model import Reply, StubModel

HANDBOOK = "Page 12 of the handbook."
FRANCE = "Paris, in France."


@pytest.fixture
async def scene(stage: Scene, roster: dict[str, Path]) -> AsyncIterator[Scene]:
    async with life(stage, **roster):
        yield stage


@pytest.fixture
def roster(stub: StubModel, docs: RemoteAgent, tmp_path: Path) -> dict[str, Path]:
    """The setting by which the bot has an agent beside the general one."""
    stub.default, docs.default = lambda _: Reply(FRANCE), lambda _: whole(HANDBOOK)
    path = tmp_path / "agents.toml"
    path.write_text(f'[[agent]]\nname = "docs"\nkind = "ums"\nurl = "{docs.url}"\nabout = "Knows the handbook."\n')
    return {"agents": path}


async def why(scene: Scene, about: Message) -> str:
    return (await scene.use("Ada", "Why?", target=about)).content


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
    assert await why(scene, question) == "Answered: you mentioned me or replied to me; by docs, which you named"


async def test_who_edits_their_question_while_it_is_looked_up_what_they_may_read_is_answered(scene: Scene) -> None:
    reader(scene)
    gate = asyncio.Event()
    stalled = scene.pg.faults.add("GET", "/members/", delay_event=gate)
    question = scene.mention("Ben", "where is Pairs?")
    await scene.until(lambda: stalled.hits)
    await scene.edit(question, f"<@{scene.pg.bot_id}> where is Paris?")
    gate.set()
    assert (await scene.answer_to(question)).content == FRANCE
    assert "where is Paris?" in scene.told()


async def test_who_may_not_read_the_history_any_more_is_not_answered_by_the_remote_agent_that_was_picked_before(
    scene: Scene, docs: RemoteAgent
) -> None:
    """It would tell them what others asked it."""
    lose = reader(scene)
    await scene.ask("Ada", "docs: does the bluebell code open the safe?")
    gate = asyncio.Event()
    docs.answers.append(whole("The code is bluebell.", before=gate))
    question = scene.mention("Ben", "docs: what did Ada ask yuo?")
    await scene.until(lambda: len(docs.chats) == 2)
    lose()
    await scene.edit(question, f"<@{scene.pg.bot_id}> docs: what did Ada ask you?")
    assert (await scene.answer_to(question)).content == FRANCE
    gate.set()
    assert "what did Ada ask you?" in scene.told()
    assert "bluebell" not in scene.told()
    assert len(docs.chats) == 2


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
    stage: Scene, docs: RemoteAgent, roster: dict[str, Path], shared_context: bool
) -> None:
    john = stage.pg.add_person("John")
    async with life(stage, **roster, shared_context=shared_context):
        question = stage.mention("Ada", f"docs: how many days of holiday does <@{john}> have?")
        await stage.answer_to(question)
        await stage.ask("Ada", "ask yourself where he is")
        assert ('"last_mentioned_user": "John"' in stage.told()) is shared_context
        assert "holiday" not in stage.told()
    async with life(stage, **roster, shared_context=shared_context):
        await stage.ask("Ada", "docs: and in May?")
        assert ('"last_mentioned_user": "John"' in docs.contents[-1]) is shared_context
        await stage.delete(question)
        await stage.ask("Ada", "ask yourself where he was")
        await stage.ask("Ada", "docs: and in June?")
        assert "John" not in stage.told()
        assert "John" not in docs.contents[-1]
        assert not on_disk(stage.folder, "last_mentioned")


@pytest.mark.parametrize("by", ["deleting", "editing"])
@pytest.mark.parametrize("way", ["shared", "in full"])
async def test_what_people_were_to_allow_is_not_done_once_what_another_agent_was_asked_goes(
    stage: Scene, roster: dict[str, Path], way: str, by: str
) -> None:
    """The agent was told what was mentioned last, or a question completed from the words before it."""
    stage.stub.rewriter_says = lambda _: Reply("What does https://bluebell.example say?")
    how = {"shared_context": True} if way == "shared" else {"rewrite_model": "openai-chat:stub"}
    async with life(stage, **roster, **how):
        await stage.ask("Ben", "ask yourself where Paris is")
        await stage.answer_to(said := stage.mention("Chloe", "docs: is https://bluebell.example good?"))
        stage.stub.replies.append(call("create_poll", question="Is bluebell good?", options=["yes", "no"]))
        card = await stage.ask("Ben", "what about that?")
        assert "bluebell" in stage.told()
        await take_back(stage, said, by)
        await is_not_done(stage, card)


async def test_agents_alternate_across_a_kill(stage: Scene, docs: RemoteAgent, roster: dict[str, Path]) -> None:
    async with life(stage, **roster):
        await stage.ask("Ada", "ask docs how many days of holiday I have")
        await stage.ask("Ada", "ask yourself where Paris is")
        await kill(stage)
    async with life(stage, **roster):
        await stage.ask("Ada", "docs: and when do I have to ask for them?")
        assert docs.paths[-1] == "/ums/conversations/conv-1/chat"
        await stage.ask("Ada", "ask yourself what lies west of it")
        assert FRANCE in stage.told()
        assert "holiday" not in stage.told()
        assert HANDBOOK not in stage.told()
    assert docs.paths.count("/ums/conversations") == 1


HOUR = 3_600


async def test_a_conversation_with_it_is_gone_on_with_for_a_day(
    stub: StubModel, docs: RemoteAgent, roster: dict[str, Path], tmp_path: Path
) -> None:
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage:
        async with life(stage, **roster):
            await stage.ask("Ada", "docs: how many days of holiday do I have?")
            clock.advance(HOUR)
            stage.bot.parts.sweep()
            await stage.ask("Ben", "docs: and I?")
            await stage.at_rest()
        clock.advance(23 * HOUR)
        async with life(stage, **roster):
            await stage.ask("Ada", "docs: and in May?")
            await stage.at_rest()
            clock.advance(HOUR)
        async with life(stage, **roster):
            clock.advance(22 * HOUR)
            await stage.ask("Ada", "docs: and in June?", channel="help")
            await stage.ask("Ada", "docs: and in June?")
            clock.advance(25 * HOUR)
            await stage.ask("Ada", "docs: and in July?")
    chats = [path.split("/")[-2] for path in docs.paths if path.endswith("/chat")]
    assert chats == ["conv-1", "conv-1", "conv-1", "conv-2", "conv-1", "conv-3"]


@pytest.mark.parametrize("how", ["deleted", "edited", "forgotten", "by another", "channel", "set to 0"])
async def test_what_goes_after_the_conversation_is_not_gone_on_with(
    stub: StubModel, docs: RemoteAgent, roster: dict[str, Path], tmp_path: Path, how: str
) -> None:
    clock = FakeClock()
    more = {"agent_state_seconds": 0} if how == "set to 0" else {}
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage, life(stage, **roster, **more):
        stage.pg.allow(stage.pg.channel("general"), "manage_channels", member=stage.pg.person("Ben"))
        secret = stage.mention("Ada", "docs: my salary is a secret, is it?")
        await stage.answer_to(secret)
        clock.advance(HOUR)
        match how:
            case "deleted":
                await stage.delete(secret)
            case "edited":
                await stage.edit(secret, "docs: is there a secret?")
            case "forgotten":
                await stage.use("Ada", "forget")
            case "by another":
                await stage.use("Ben", "forget")
            case "channel":
                await stage.use("Ben", "forget", everything=True)
        clock.advance(HOUR)
        await stage.ask("Ben", "docs: and now?")
        assert docs.paths[-1].split("/")[-2] == ("conv-1" if how == "by another" else "conv-2")


@pytest.mark.parametrize("when", ["in the conversation", "after it", "in the next one"])
@pytest.mark.parametrize("how", ["forgotten", "channel"])
async def test_an_agent_that_was_told_a_forward_begins_anew_once_its_words_are_forgotten(
    stub: StubModel, docs: RemoteAgent, roster: dict[str, Path], tmp_path: Path, how: str, when: str
) -> None:
    clock = FakeClock()
    async with (
        open_stage(stub, tmp_path / "state", clock=clock) as stage,
        life(stage, **roster, direct_messages="open"),
    ):
        hers = stage.say("Chloe", "my code is bluebell", channel="random")
        stage.pg.allow(hers.channel_id, "manage_channels", member=stage.pg.person("Ada"))
        dm = stage.pg.dm(ben := stage.pg.person("Ben"))
        await stage.answer_to(stage.pg.post(dm, ben, "docs: tell me what this means"))
        await stage.answer_to(stage.pg.post(dm, ben, forward=hers))
        assert "bluebell" in docs.contents[-1]
        if when != "in the conversation":
            clock.advance(HOUR)
        if when == "in the next one":
            await stage.answer_to(stage.pg.post(dm, ben, "docs: and now?"))
        if how == "forgotten":
            await stage.use("Chloe", "forget")
        else:
            await stage.use("Ada", "forget", channel="random", everything=True)
        await stage.answer_to(stage.pg.post(dm, ben, "docs: and then?"))
        assert docs.paths[-1].split("/")[-2] == "conv-2"


@pytest.mark.parametrize("when", ["in the conversation", "after it"])
@pytest.mark.parametrize("how", ["deleted", "edited", "forgotten"])
async def test_an_agent_that_was_told_what_somebody_mentioned_begins_anew_once_that_goes(
    stub: StubModel, docs: RemoteAgent, roster: dict[str, Path], tmp_path: Path, how: str, when: str
) -> None:
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage, life(stage, **roster, shared_context=True):
        said = stage.mention("Chloe", "ask yourself what stands at https://example.com/bluebell")
        await stage.answer_to(said)
        await stage.ask("Ben", "docs: how many days of holiday do I have?")
        assert "bluebell" in docs.contents[-1]
        clock.advance(HOUR if when == "after it" else 1)
        match how:
            case "deleted":
                await stage.delete(said)
            case "edited":
                await stage.edit(said, "ask yourself what stands there")
            case "forgotten":
                await stage.use("Chloe", "forget")
        await stage.ask("Ben", "docs: and in May?")
        assert docs.paths[-1].split("/")[-2] == "conv-2"
        await stage.ask("Ben", "docs: and in June?")
        assert docs.paths[-1].split("/")[-2] == "conv-2"


@pytest.mark.parametrize(
    ("name", "mention"),
    [
        ("Dora (bluebell)", "<@{}>"),
        ("\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER} Dora", "<@{}>"),
        ("dora", "Dora's"),
        ("Dora", "https://example.com/@everyone/bluebell <:bluebell:123456789012345678>"),
    ],
)
async def test_an_agent_begins_anew_however_what_it_was_told_was_mentioned(
    stub: StubModel, docs: RemoteAgent, roster: dict[str, Path], tmp_path: Path, name: str, mention: str
) -> None:
    async with open_stage(stub, tmp_path / "state") as stage, life(stage, **roster, shared_context=True):
        dora = stage.pg.add_person(name)
        await stage.ask(name, "ask yourself where Paris is")
        said = stage.mention("Chloe", f"ask yourself about {mention.format(dora)} plan")
        await stage.answer_to(said)
        await stage.ask("Ben", "docs: how many days of holiday do I have?")
        assert "Last mentioned" in docs.contents[-1]
        await stage.delete(said)
        await stage.ask("Ben", "docs: and in May?")
        assert docs.paths[-1].split("/")[-2] == "conv-2"


@pytest.mark.parametrize("when", ["in the conversation", "after it"])
async def test_of_several_agents_each_that_was_told_what_somebody_mentioned_begins_anew_once_that_goes(
    stub: StubModel, docs: RemoteAgent, roster: dict[str, Path], tmp_path: Path, when: str
) -> None:
    text = (path := roster["agents"]).read_text()
    path.write_text(f"{text}\n{text.replace('docs', 'trips').replace('handbook', 'trips')}")
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage, life(stage, **roster, shared_context=True):
        said = stage.mention("Chloe", "ask yourself what stands at https://example.com/bluebell")
        await stage.answer_to(said)
        for agent in ("docs", "trips"):
            await stage.ask("Ben", f"{agent}: how many days do I have?")
            assert "bluebell" in docs.contents[-1]
        clock.advance(HOUR if when == "after it" else 1)
        await stage.delete(said)
        for agent in ("docs", "trips"):
            await stage.ask("Ben", f"{agent}: and in May?")
    chats = [path.split("/")[-2] for path in docs.paths if path.endswith("/chat")]
    assert chats == ["conv-1", "conv-2", "conv-3", "conv-4"]


@pytest.mark.parametrize("seconds", [1, HOUR])
@pytest.mark.parametrize("how", ["deleted", "forgotten"])
async def test_an_agent_that_was_told_more_than_is_remembered_begins_anew(
    stub: StubModel,
    docs: RemoteAgent,
    roster: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    seconds: float,
) -> None:
    """In one conversation, and over several: what was told it first could not be taken back any more."""
    monkeypatch.setattr(remote_memory, "MAX_REMOTE", 6)
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage, life(stage, **roster):
        said = stage.mention("Chloe", "docs: my code is bluebell")
        await stage.answer_to(said)
        for number in range(2):
            clock.advance(seconds)
            await stage.ask("Ben", f"docs: what is {number}?")
            assert docs.paths[-1].split("/")[-2] == "conv-1"
        for number in range(2):
            clock.advance(seconds)
            await stage.ask("Ada", f"docs: what is {number}?")
        clock.advance(seconds)
        if how == "deleted":
            await stage.delete(said)
        else:
            await stage.use("Chloe", "forget")
        await stage.ask("Ben", "docs: and in May?")
        assert (last := docs.paths[-1]).split("/")[-2] != "conv-1"
        await stage.ask("Ben", "docs: and in June?")
        assert docs.paths[-1] == last


async def test_what_an_agent_answers_out_of_an_earlier_conversation_goes_with_whose_words_that_was(
    stub: StubModel, docs: RemoteAgent, roster: dict[str, Path], tmp_path: Path
) -> None:
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage, life(stage, **roster):
        await stage.ask("Ada", "docs: my code is bluebell, is it?")
        clock.advance(HOUR)
        docs.answers.append(whole("Her code is bluebell."))
        await stage.ask("Ben", "docs: what did she say?")
        await stage.bot.snapshots.settled()
        assert on_disk(stage.folder, "bluebell")
        await stage.use("Ada", "forget")
        assert not on_disk(stage.folder, "bluebell")


async def test_whom_nobody_named_the_model_chooses_once(scene: Scene, docs: RemoteAgent) -> None:
    scene.stub.picks = "docs"
    question = scene.mention("Ada", "how many days of holiday do I have?")
    assert (await scene.answer_to(question)).content == HANDBOOK
    assert len(scene.stub.judged) == 1
    assert "which fits best" in await why(scene, question)
    assert len(docs.contents) == 1


@pytest.mark.usefixtures("roster")
async def test_with_one_agent_nobody_is_asked_who_answers(stage: Scene) -> None:
    async with life(stage):
        question = stage.mention("Ada", "ask docs where Paris is")
        assert (await stage.answer_to(question)).content == FRANCE
        assert not stage.stub.judged
        assert len(stage.stub.requests) == 1
        told = await why(stage, question)
        assert told == "Answered: you mentioned me or replied to me; the model was openai-chat:stub"


async def test_an_agent_that_fails_costs_one_sentence_and_no_memory(scene: Scene, docs: RemoteAgent) -> None:
    docs.answers += [RemoteReply(status=500), whole(" ")]
    answer = await scene.ask("Ada", "docs: how many days of holiday do I have?")
    assert answer.content == (
        "I asked the agent docs. It cannot be reached, or stopped in the middle of its answer. Please ask again "
        "in a moment."
    )
    answer = await scene.ask("Ada", "docs: how many days of holiday do I have?")
    assert answer.content == "I asked the agent docs. It had no answer to that. Please put it differently."
    assert (await scene.ask("Ada", "docs: and now?")).content == HANDBOOK
    assert docs.paths.count("/ums/conversations") == 1


async def test_an_agent_that_is_gone_from_the_settings_is_kept_and_not_used(
    stage: Scene, docs: RemoteAgent, roster: dict[str, Path]
) -> None:
    async with life(stage, **roster):
        await stage.ask("Ada", "docs: how many days of holiday do I have?")
    async with life(stage):
        assert (await stage.answer_to(stage.say("Ada", "and how many can I keep?"))).content == FRANCE
        await stage.bot.snapshots.settled()
        assert on_disk(stage.folder, "conv-1")
    async with life(stage, **roster):
        await stage.ask("Ada", "docs: and now?")
    assert docs.paths[-1] == "/ums/conversations/conv-1/chat"


async def test_what_is_deleted_while_it_answers_is_not_gone_on_with(scene: Scene, docs: RemoteAgent) -> None:
    first = scene.mention("Ada", "docs: my salary is a secret, is it?")
    await scene.answer_to(first)
    gate = asyncio.Event()
    docs.answers.append(whole(HANDBOOK, before=gate))
    docs.arrived.clear()
    second = scene.mention("Ada", "docs: and the bonus?")
    await docs.arrived.wait()
    await scene.delete(first)
    gate.set()
    await scene.answer_to(second)
    await scene.ask("Ada", "docs: how many days of holiday do I have?")
    assert docs.paths[-1] == "/ums/conversations/conv-2/chat"
    await scene.ask("Ada", "docs: and now?")
    assert docs.paths[-1] == "/ums/conversations/conv-2/chat"


async def test_what_an_agent_answers_out_of_an_earlier_conversation_goes_also_with_whose_words_were_trimmed_there(
    stub: StubModel, docs: RemoteAgent, roster: dict[str, Path], tmp_path: Path
) -> None:
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage, life(stage, **roster):
        stage.bot.conversations._max_messages = 6  # there is no setting
        told = stage.mention("Chloe", "docs: my code is bluebell")
        await stage.answer_to(told)
        await stage.flood()
        assert stage.bot.conversations.find(told.channel_id, told.id) is None
        clock.advance(HOUR)
        docs.answers.append(whole("Chloe's code is bluebell."))
        await stage.ask("Ben", "docs: what did Chloe say?")
        assert docs.paths.count("/ums/conversations") == 1
        await stage.bot.snapshots.settled()
        assert on_disk(stage.folder, "Chloe's code")
        await stage.use("Chloe", "forget")
        assert not on_disk(stage.folder, "bluebell")


async def test_an_answer_of_an_agent_goes_with_whom_it_was_told_though_what_they_said_was_trimmed(
    scene: Scene, docs: RemoteAgent
) -> None:
    """It was silent to them, and the bot said nothing else until that was trimmed, which would have their names."""
    scene.bot.conversations._max_messages = 6  # there is no setting
    await scene.ask("Ada", "docs: how many days of holiday do I have?")
    docs.answers.append(RemoteReply(status=204))
    told = scene.say("Chloe", "docs: what if the code is bluebell?")
    await scene.outcome(told)
    await scene.at_rest()
    assert "bluebell" in docs.contents[-1]
    await scene.flood()
    assert scene.bot.conversations.find(told.channel_id, told.id) is None
    docs.answers.append(whole("Chloe's code is bluebell."))
    await scene.ask("Ben", "docs: what did Chloe say?")
    assert docs.paths.count("/ums/conversations") == 1
    await scene.bot.snapshots.settled()
    assert on_disk(scene.folder, "Chloe's code")
    await scene.use("Chloe", "forget")
    assert not on_disk(scene.folder, "bluebell")


@pytest.mark.parametrize("how", ["edited", "deleted"])
async def test_what_goes_while_its_answer_waits_for_discord_is_not_gone_on_with_after_a_kill(
    stage: Scene, docs: RemoteAgent, roster: dict[str, Path], how: str
) -> None:
    async with life(stage, **roster):
        first = stage.mention("Ada", "docs: my salary is a secret, is it?")
        await stage.answer_to(first)
        stage.pg.faults.add("POST", r"/messages$", status=500, times=10_000)
        second = stage.mention("Ada", "docs: and the bonus?")
        await stage.ready(second)
        await (stage.edit(first, "never mind") if how == "edited" else stage.delete(first))
        await kill(stage)
    stage.pg.faults.clear()
    async with life(stage, **roster):
        await stage.answer_to(second)
        await stage.ask("Ada", "docs: how many days of holiday do I have?")
    assert docs.paths[-1] == "/ums/conversations/conv-2/chat"


async def test_what_was_trimmed_and_is_edited_is_not_gone_on_with_after_a_kill(
    stage: Scene, docs: RemoteAgent, roster: dict[str, Path]
) -> None:
    async with life(stage, **roster):
        first = stage.mention("Ada", "docs: my salary is a secret, is it?")
        await stage.answer_to(first)
        stage.bot.conversations._max_messages = 4  # there is no setting
        for _ in range(4):
            await stage.decision(stage.say("Ben", "hello everybody"))
        await stage.edit(first, "never mind")
        await kill(stage)
    async with life(stage, **roster):
        await stage.ask("Ada", "docs: how many days of holiday do I have?")
    assert docs.paths[-1] == "/ums/conversations/conv-2/chat"


async def test_what_is_deleted_of_a_burst_before_it_is_asked_is_not_told(
    stage: Scene, docs: RemoteAgent, roster: dict[str, Path]
) -> None:
    async with life(stage, **roster, burst_seconds=1):
        gate = asyncio.Event()
        docs.known.add("conv-1")
        docs.creations.append(RemoteReply([b'{"id": "conv-1"}'], status=201, before=gate))
        first = stage.mention("Ada", "docs: my salary is a secret")
        second = stage.say("Ada", "how many days of holiday do I have?")
        await docs.arrived.wait()
        await stage.delete(first)
        gate.set()
        assert await stage.outcome(second) == "answered"
    assert docs.contents == ["how many days of holiday do I have?"]


@pytest.mark.usefixtures("impatient")
async def test_an_answer_that_was_posted_before_a_kill_goes_with_whose_words_its_agent_knew(
    stub: StubModel, docs: RemoteAgent, roster: dict[str, Path], tmp_path: Path
) -> None:
    """The conversation in which these were said is over by then."""
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage:
        async with life(stage, **roster):
            await stage.ask("Ben", "ask the docs agent about bluebells")
            said = stage.say("Ada", "hello")
            await stage.decision(said)
            gate = asyncio.Event()
            docs.default = lambda _: streamed("It was about bluebells", ", as I said.", gate=gate)
            asked = stage.mention("Chloe", "ask the docs agent what that was about")
            await stage.until(lambda: len(stage.said()) == 2)
            stage.pg.faults.add("PATCH", r"/messages/\d+$", status=500, after_effect=True, times=10_000)
            gate.set()
            await stage.ready(asked)
            await stage.until(lambda: stage.said()[1].content.endswith("as I said."))
            await kill(stage)
            stage.pg.faults.clear()
        stage.pg.delete(said)  # so that it is not gone on with either
        clock.advance(200)
        async with life(stage, **roster):
            await stage.answer_to(asked)
            await stage.at_rest()
            await stage.use("Ben", "forget")
            await stage.bot.snapshots.settled()
            assert not on_disk(stage.folder, "bluebells")
            await stage.ask("Chloe", "and now?")
            assert "bluebells" not in stage.told()
