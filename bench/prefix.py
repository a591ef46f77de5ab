"""`python -m bench.prefix`: how much of what the model was sent last is the beginning of what it is sent next.

That is what a provider's prompt cache saves. The bot is in the loopback Discord, in a conversation of three people who
ask it and talk to each other; in some turns the model looks up the time, or what was said before. Counted are the
characters of the messages; the rules and the tools' descriptions before them, which never change, are left out. Exits
with 1 where a bound is not held.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise, starmap, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from tests.support.lives import life, open_stage
from tests.support.scene import Scene
from tests.support.stub_model import Body, Call, Reply, StubModel

BOUND = {(30, 0): 0.95, (30, 6): 0.95}  # by how many turns there are, and in each how manieth of them a tool is used
TOOLS = ("current_time", "search_history")
PEOPLE = ("Ada", "Ben", "Chloe")
ASKED = "how do we get number {} of the bottles home, if it rains and the car is at Chloe's until the evening?"
ASIDE = "haha, the cat has stolen the cheese from the picnic basket again, that is number {} this summer"
ANSWER = "Take the covered cart from the cellar, put the bottles in upright, and go by the lower road, number {}. "
USED = {0: "none", 6: "every 6th turn", 3: "every 3rd turn", 1: "every turn"}
ZONES = ("UTC", "Europe/Berlin", "Asia/Tokyo", "America/Lima")


async def conversation(scene: Scene, turns: int, tool_every: int, tool: str) -> list[Body]:
    """What the model was sent at the end of each turn. tool_every: in which of them it looks up the time, 0: none."""
    prompts = []
    for number in range(turns):
        person, other = PEOPLE[number % 3], PEOPLE[(number + 1) % 3]
        if tool_every and number % tool_every == tool_every - 1:
            given = {"current_time": {"timezone": ZONES[number % 4]}, "search_history": {"words": f"number {number}"}}
            scene.stub.replies.append(Reply(calls=(Call(tool, json.dumps(given[tool]), f"call-{number}"),)))
        scene.stub.replies.append(Reply(2 * ANSWER.format(number)))
        question = scene.mention(person, ASKED.format(number))
        await scene.answer_to(question)
        prompts.append(scene.stub.requests[-1])
        await scene.decision(scene.say(other, ASIDE.format(number), reply_to=question.id))
    assert len(scene.said()) == turns, "what people say to each other was answered"
    return prompts


def shared(prompts: Sequence[Body]) -> float:
    """The share of each prompt that begins the next, over all of them."""
    written = ["".join(json.dumps(m) for m in body["messages"] if m["role"] != "system") for body in prompts]
    return sum(starmap(_common, pairwise(written))) / sum(map(len, written[:-1]))


def _common(before: str, after: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))


async def measure(turns: int, tool_every: int, tool: str) -> float:
    stub = StubModel()
    await stub.start()
    environment = {"OPENAI_API_KEY": "sk-nobodys", "OPENAI_BASE_URL": stub.url}
    with patch.dict(os.environ, environment), TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            async with open_stage(stub, Path(folder)) as scene, life(scene, turns_per_user_minute=1_000):
                return shared(await conversation(scene, turns, tool_every, tool))
        finally:
            await stub.stop()


def main() -> int:
    print(f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {platform.machine()}")
    print("\n| turns | a tool is used in | current_time | search_history |\n|---|---|---|---|")
    held = True
    for turns in (30, 100):
        for tool_every, named in USED.items():
            shares = [asyncio.run(measure(turns, tool_every, tool)) for tool in TOOLS]
            is_under = min(shares) < BOUND.get((turns, tool_every), 0)
            held = held and not is_under
            print(f"| {turns} | {named} | {' | '.join(f'{share:.1%}' for share in shares)}{' **under**' * is_under} |")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
