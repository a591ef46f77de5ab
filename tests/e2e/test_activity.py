"""What is told of a bot at work: its turns with their tools and calls, and answers that one person alone sees."""

from __future__ import annotations

from activity import Ending
from state.spending import Purpose
from tests.support.observed import Observed
from tests.support.scene import Scene
from tests.support.stub_model import Call, Reply


async def test_a_turn_is_told_with_its_tools_and_what_each_call_used(scene: Scene) -> None:
    scene.bot.parts.activity.watch(observed := Observed())
    wrong = Reply(calls=(Call("made_up_by_the_model", "{}"),))
    scene.stub.replies.extend([Reply(calls=(Call("search_history", '{"words": "tea"}'),)), wrong, Reply("Nothing.")])
    await scene.ask("Ada", "who spoke of tea?")
    await scene.until(lambda: observed.turns)
    (turn,) = observed.turns
    assert (turn.agent, turn.model, turn.tools) == ("general", "openai-chat:stub", ("search_history",))
    assert 0 < (turn.first_text or 0) <= turn.seconds
    assert [(purpose, spent) for _, purpose, spent in observed.calls] == [(Purpose.ANSWER, one) for one in turn.spent]
    assert len(turn.spent) == 3
    assert {payer.guild_id for payer, _, _ in observed.calls} == {scene.pg.guild_id}


async def test_what_is_asked_in_private_is_told_as_well(scene: Scene) -> None:
    scene.bot.parts.activity.watch(observed := Observed())
    scene.stub.replies.append(Reply("I see."))
    made = scene.pg.command(scene.pg.channel("general"), scene.pg.person("Ada"), "ask", {"question": "why?"})
    assert (await scene.pg.reply_to(made)).content == "I see."
    await scene.until(lambda: observed.turns)
    (turn,) = observed.turns
    assert (turn.ending, turn.guild_id, len(turn.spent)) == (Ending.ANSWERED, scene.pg.guild_id, 1)
