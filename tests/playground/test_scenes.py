"""playground/scenes.py: the script, and how a scene is played in a channel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from playground.errors import ApiError
from playground.model import Message
from playground.scenes import ANSWER_SECONDS, LINE_SECONDS, SETTLED_SECONDS, Await, Line, Stage, parse, read_script
from playground.server import Playground
from tests.support.virtual_time import settle

pytestmark = pytest.mark.virtual_time

SCRIPT = """
## a note
# A question
Look: It answers.
Ada: @Parley why?
[answer]
[0.5s]
Ben: @Ada thanks, @nobody

# Stop
Ada: @Parley go on
[begun]
Ada: stop

# Without Dan
Dan: hi
"""


@pytest.fixture
def pg() -> Playground:
    """Without its sockets."""
    return Playground()


@pytest.fixture
async def stage(pg: Playground) -> AsyncIterator[Stage]:
    stage = Stage(pg, pg._changes, parse(SCRIPT))
    yield stage
    await stage.close()


def said(pg: Playground, channel: str = "general") -> list[str]:
    return [message.content for message in pg.messages(pg.channel(channel))]


async def passes(seconds: float) -> None:
    """So much time, and a little more."""
    await asyncio.sleep(seconds + 0.01)
    await settle()


def bot_says(pg: Playground, text: str) -> Message:
    return pg.post(pg.channel("general"), pg.bot_id, text)


# The script


def test_a_script_is_read_as_it_is_written() -> None:
    scene = parse(SCRIPT)[0]
    assert (scene.title, scene.look) == ("A question", "It answers.")
    assert scene.lines == (
        Line("Ada", "@Parley why?"),
        Line("Ben", "@Ada thanks, @nobody", pause=0.5, awaits=Await.ANSWER),
    )


def test_a_script_goes_to_other_places_and_has_files_and_other_bots() -> None:
    script = "# A title\n[thread: One, two]\nAda: see {a.txt: first\\nsecond}\n[direct]\nCI (app): done"
    assert parse(script)[0].lines == (
        Line("Ada", "see", goes=("thread", "One, two"), file=("a.txt", "first\nsecond")),
        Line("CI", "done", goes=("direct", ""), app=True),
    )


def test_a_line_that_cannot_be_read_is_an_error() -> None:
    for line in ("Ada says hi", "[later]", "[10s]", "#Title", "Ada:hi"):
        with pytest.raises(ValueError, match="is neither"):
            parse(f"# A title\n{line}")


def test_the_scenes_are_short_talks_of_people_who_are_here_and_begin_with_a_mention(pg: Playground) -> None:
    scenes = Stage(pg, pg._changes).scenes
    assert scenes == read_script()
    assert len({scene.title for scene in scenes}) == len(scenes) == 12
    for scene in scenes:
        assert scene.look
        begins = [line for line in scene.lines if line.text.startswith("@Parley ") or line.goes == ("direct", "")]
        assert begins
        assert begins[0] in scene.lines[:2]
        assert len(scene.lines) <= 8
        assert sum(line.pause for line in scene.lines) <= 15


# Playing


async def test_the_lines_are_posted_in_turn_once_the_bot_has_said_all(pg: Playground, stage: Stage) -> None:
    general = pg.channel("general")
    stage.play(general, "A question")
    assert said(pg) == []
    await passes(LINE_SECONDS)
    assert said(pg) == [f"<@{pg.bot_id}> why?"]

    answer = bot_says(pg, "Be")
    await passes(SETTLED_SECONDS / 2)
    pg.edit(answer, "Because.")
    await passes(SETTLED_SECONDS + 0.5)
    assert len(said(pg)) == 2
    await passes(SETTLED_SECONDS)
    assert said(pg)[2:] == [f"<@{pg.person('Ada')}> thanks, @nobody"]
    assert [message.author.name for message in pg.messages(general)] == ["Ada", "Parley", "Ben"]
    assert stage.playing(general) is None


async def test_a_scene_goes_on_while_the_bot_still_speaks_or_where_no_answer_comes(
    pg: Playground, stage: Stage
) -> None:
    stage.play(pg.channel("general"), "Stop")
    stage.play(pg.channel("help"), "Stop")
    await passes(LINE_SECONDS)
    bot_says(pg, "Once")
    await passes(LINE_SECONDS)
    assert said(pg)[-1] == "stop"
    await passes(ANSWER_SECONDS - LINE_SECONDS)
    assert len(said(pg, "help")) == 1
    await passes(LINE_SECONDS)
    assert said(pg, "help")[-1] == "stop"


async def test_a_channel_plays_one_scene_at_a_time_and_says_so(pg: Playground, stage: Stage) -> None:
    stage.play(pg.channel("general"), "Stop")
    with pytest.raises(ApiError, match="“Stop” is being played here"):
        stage.play(pg.channel("general"), "A question")


async def test_a_scene_that_was_stopped_says_nothing_more_and_makes_room(pg: Playground, stage: Stage) -> None:
    general = pg.channel("general")
    stage.stop(general)  # nothing is played yet
    stage.play(general, "Stop")
    await passes(LINE_SECONDS)
    stage.stop(general)
    assert stage.playing(general) is None
    stage.play(general, "A question")
    await passes(2 * LINE_SECONDS + ANSWER_SECONDS)
    assert [text.partition(" ")[2] for text in said(pg)] == ["go on", "why?", "thanks, @nobody"]


async def test_a_scene_of_people_who_are_not_here_is_not_offered(pg: Playground, stage: Stage) -> None:
    assert [scene.title for scene in stage.scenes] == ["A question", "Stop"]
    for title in ("Without Dan", "No such"):
        with pytest.raises(ApiError, match="no such scene"):
            stage.play(pg.channel("general"), title)
    pg.add_person("Dan")
    stage.play(pg.channel("general"), "Without Dan")


async def test_a_scene_goes_on_in_threads_posts_and_direct_messages(pg: Playground) -> None:
    script = (
        "# Places\nAda: begin\n[thread: Talk]\nBen: inside {a.py: pass}\nCI (app): built\n"
        "[post: How?]\nAda: like this\n[direct]\nAda: psst"
    )
    stage, general = Stage(pg, pg._changes, parse(script)), pg.channel("general")
    stage.play(general, "Places")
    await passes(2 * LINE_SECONDS)
    assert stage.playing(pg.channel("Talk")) is stage.playing(general) is not None
    await passes(3 * LINE_SECONDS)
    assert (said(pg), said(pg, "How?")) == (["begin"], ["like this"])
    assert [one.author.name for one in pg.messages(pg.channel("Talk"))] == ["Ben", "Ben", "CI"]
    assert pg.messages(pg.channel("Talk"))[1].attachments[0]["content_type"] == "text/x-python; charset=utf-8"
    assert [one.content for one in pg.messages(pg.dm(pg.person("Ada")))] == ["psst"]
    assert stage.playing(general) is stage.playing(pg.channel("Talk")) is None


async def test_what_is_played_ends_with_the_playground(pg: Playground) -> None:
    pg._stage.play(pg.channel("general"), read_script()[0].title)
    await pg.stop()
    await passes(LINE_SECONDS)
    assert said(pg) == []
