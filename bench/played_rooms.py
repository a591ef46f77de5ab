"""`python -m bench.played_rooms ROOMS.jsonl ...`: labelled rooms played to the real bot, whose model may decline.

The bot is in the loopback Discord. Each room is a channel with people of its own; one is played after the other, by a
clock that goes from message to message. The model declines as the labels say, but for one turn in ten, where a lot is
drawn; whoever calls the bot is answered. What is counted stands in the channels.

The shipped model has seen the rooms that it was trained on; with --left-out each file is played by one that has not.
Exits with 1 where a bound is not held.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from unittest.mock import patch

from agents.declining import STAY_SILENT
from agents.turn_input import MAY_DECLINE
from bench.week.settling import Settling
from config import Settings
from evals.declining_rooms import Declining, agrees
from evals.examples import ExampleError
from evals.free_run import Counts, add
from evals.rooms import NEUTRAL, Moment, Room, read_rooms
from followup.model import Eagerness, FollowupModel, ModelFileError, load_model
from playground.model import Message
from tests.support.clock import FakeClock
from tests.support.lives import life, open_stage
from tests.support.scene import Scene
from tests.support.stub_model import Body, Call, Reply, StubModel, texts
from tests.support.virtual_time import ForwardedLoop

BEGIN = datetime(2026, 3, 2, 8, tzinfo=UTC)
BETWEEN_ROOMS = timedelta(minutes=10)
BURST_SECONDS = Settings.model_fields["burst_seconds"].default  # tests set it to 0 in the environment
STEP_SECONDS = 0.25  # in which time passes while somebody is heard out
MAX_BUTTS_IN, MAX_DEAF, MAX_DECLINED = 0.03, 0.15, 1.0
DECLINE = Reply(calls=(Call(STAY_SILENT.name, '{"why": "not said to me"}'),))


@dataclass(frozen=True, slots=True)
class Played:
    """What came of rooms. wrong: what else happened that should not have, in words."""

    declining: Declining
    wrong: tuple[str, ...] = ()

    def __add__(self, other: Played) -> Played:
        return Played(self.declining + other.declining, self.wrong + other.wrong)

    @property
    def is_within_bounds(self) -> bool:
        rates = self.declining.counts
        is_rare = rates.butts_in <= MAX_BUTTS_IN and rates.is_deaf <= MAX_DEAF
        return is_rare and self.declining.declined_per_answer <= MAX_DECLINED and not self.wrong


NOTHING = Played(Declining(Counts()))


class Stage:
    """One room as it is played. Messages of people are known by their index in the room.

    turns: what the model was asked about and did not decline, by the newest message of each turn.
    """

    def __init__(self, room: Room, scene: Scene, chance: random.Random) -> None:
        self._room = room
        self._scene = scene
        self._chance = chance
        self._channel_id = scene.pg.add_channel(room.id)
        self._users = {room.ids[name]: scene.pg.add_person(name) for name in room.people}
        self._users[room.ids["BOT"]] = scene.pg.bot_id
        self._posted: dict[int, Message] = {}
        self._script = {i: at for at, line in enumerate(room.messages) if line.is_bot for i in room.answered_by(at)}
        self._asked: set[int] = set()
        self._turns: dict[int, Sequence[int]] = {}
        self._said: set[str] = set()
        self._declined = 0
        self._wrong: list[str] = []

    # What people do

    def post(self, index: int) -> None:
        """Has a person say the message."""
        record = self._room.record(index)
        content = re.sub(r"<@(\d+)>", lambda at: f"<@{self._users[int(at[1])]}>", record.content)
        reply_to = self._replied_to(self._room.messages[index].reply_to)
        author_id = self._users[record.author_id]
        self._posted[index] = self._scene.pg.post(self._channel_id, author_id, content, reply_to=reply_to)

    def _replied_to(self, index: int | None) -> int | None:
        """The id of the message; where that is one that the bot has not said here, of its newest one."""
        if index is None:
            return None
        if index in self._posted:
            return self._posted[index].id
        asked = {self._posted[i].id for i in self._room.answered_by(index) if i in self._posted}
        ours = self._ours()
        return next((m.id for m in ours if _answered(m) in asked), ours[-1].id if ours else None)

    # What the model does

    def reply(self, body: Body) -> Reply:
        """What the model says to this."""
        prompt = texts(body)[-1]
        names = prompt.rpartition(" answer ")[2]
        # What of theirs is to be answered, and has not come up yet.
        asked = [
            index
            for index, message in self._posted.items()
            if f'"{message.author.name}"' in names and index not in self._asked
            if any(decision.respond for decision in self._scene.decisions.get(message.id, ())[-1:])
        ]
        if not asked:
            self._wrong.append(f"{self._room.id}: the model was asked again: {prompt!r}")
            return DECLINE
        newest = asked[-1]
        self._asked.update(asked)
        if MAY_DECLINE in prompt and not agrees(self._room.messages[newest], self._chance):
            self._declined += 1
            return DECLINE
        self._turns[newest] = asked
        at = self._script.get(newest)
        text = NEUTRAL[newest % len(NEUTRAL)] if at is None else self._room.messages[at].text
        self._said.add(text)
        return Reply(text)

    # What came of it

    def played(self) -> Played:
        """To be asked once nobody has anything left to do."""
        ours = self._ours()
        replies = Counter(map(_answered, ours))
        answered = {index for index, message in self._posted.items() if message.id in replies}
        answered.update(*(turn for newest, turn in self._turns.items() if newest in answered))
        strange = [f"{self._room.id}: posted {m.content!r}" for m in ours if m.content not in self._said]
        twice = [f"{self._room.id}: {count} answers to one message" for count in replies.values() if count > 1]
        counts, has_begun = Counts(), False
        for index in self._posted:
            moment = Moment(self._room, index, self._room.record(index), None, is_open=has_begun)
            if moment.is_direct:
                has_begun = True
            else:
                moment.responds = index in answered
                counts = add(counts, moment)
        return Played(Declining(counts, len(ours), self._declined), (*self._wrong, *strange, *twice))

    def _ours(self) -> Sequence[Message]:
        return [m for m in self._scene.pg.messages(self._channel_id) if m.author.id == self._scene.pg.bot_id]


def _answered(message: Message) -> int | None:
    """The id of the message that one of the bot's replies to."""
    return message.reference.message_id if message.reference else None


class Clock:
    """Has time pass, for the bot's clock, and, while somebody is heard out, for the event loop."""

    def __init__(self, scene: Scene, clock: FakeClock, loop: ForwardedLoop) -> None:
        self._scene = scene
        self._clock = clock
        self._loop = loop
        self._settling = Settling(scene)

    @property
    def now(self) -> datetime:
        return self._clock.now

    async def go_on(self, until: datetime) -> None:
        """Up to this time, once the bot is done with what was before."""
        await self._settling.wait()
        while len(self._scene.bot.bursts) and self._clock.now < until:
            step = min(timedelta(seconds=STEP_SECONDS), until - self._clock.now)
            self._clock.now += step
            await self._loop.forward(step.total_seconds())
            await self._settling.wait()
        self._clock.now = until


async def _play(rooms: Sequence[Room], stub: StubModel, scene: Scene, clock: Clock, chance: random.Random) -> Played:
    played = NOTHING
    for room in rooms:
        stage = Stage(room, scene, chance)
        stub.default = stage.reply
        begin = clock.now
        for index, line in enumerate(room.messages):
            if not line.is_bot:
                await clock.go_on(begin + timedelta(seconds=line.t))
                stage.post(index)
        await clock.go_on(clock.now + BETWEEN_ROOMS)
        played += stage.played()
    errors = tuple(str(entry) for entry in scene.journal.entries if entry["level"] == "error")
    return replace(played, wrong=(*played.wrong, *errors))


async def _with_bot(
    rooms: Sequence[Room], loop: ForwardedLoop, folder: Path, eagerness: Eagerness, seed: int
) -> Played:
    clock, stub = FakeClock(BEGIN), StubModel()
    await stub.start()
    try:
        with patch.dict(os.environ, {"OPENAI_API_KEY": "sk-nobodys", "OPENAI_BASE_URL": stub.url}):
            async with (
                open_stage(stub, folder, clock=clock) as scene,
                life(scene, burst_seconds=BURST_SECONDS, followup_eagerness=eagerness),
            ):
                return await _play(rooms, stub, scene, Clock(scene, clock, loop), random.Random(seed))
    finally:
        await stub.stop()


def play(
    rooms: Sequence[Room], model: FollowupModel, eagerness: Eagerness = Eagerness.BALANCED, *, seed: int = 1
) -> Played:
    """What comes of the rooms, in an event loop of their own. seed: what lots are drawn by."""
    loop = ForwardedLoop()
    with (
        patch("decider.load_model", lambda: model),
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        asyncio.Runner(loop_factory=lambda: loop) as runner,
    ):
        return runner.run(_with_bot(rooms, loop, Path(folder), eagerness, seed))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.played_rooms", description=__doc__)
    parser.add_argument("rooms", type=Path, nargs="+", help="rooms, one JSON object a line; .gz or not")
    parser.add_argument("--left-out", type=Path, help="the folder that evals.train --left-out has written")
    parser.add_argument("--limit", type=int, help="so many rooms of each file, the first ones")
    parser.add_argument("--eagerness", type=Eagerness, choices=list(Eagerness), default=Eagerness.BALANCED)
    parser.add_argument("--seed", type=int, default=1, help="what lots are drawn by")
    arguments = parser.parse_args()
    left_out: Path | None = arguments.left_out
    try:
        files = {path.name: read_rooms(path)[: arguments.limit] for path in arguments.rooms}
        models = [load_model(left_out / f"{path.stem}.json") if left_out else load_model() for path in arguments.rooms]
    except (ExampleError, ModelFileError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    whole = NOTHING
    print("| rooms | open | butts in | deaf | answers | declined per answer | seconds |\n|---|---|---|---|---|---|---|")
    for (name, rooms), model in zip(files.items(), models, strict=True):
        began = perf_counter()
        played = play(rooms, model, arguments.eagerness, seed=arguments.seed)
        print(_row(name, played, perf_counter() - began), flush=True)
        whole += played
    if len(files) > 1:
        print(_row("all", whole))
    print("\n".join(["", *whole.wrong] if whole.wrong else ["", "Nothing was answered twice, and nothing went wrong."]))
    return 0 if whole.is_within_bounds else 1


def _row(name: str, of: Played, seconds: float | None = None) -> str:
    counts = of.declining.counts
    cells = (
        name,
        f"{counts.right + counts.deaf + counts.butts + counts.left_alone:,}",
        f"{counts.butts_in:.1%}",
        f"{counts.is_deaf:.1%}",
        f"{of.declining.answers:,}",
        f"{of.declining.declined_per_answer:.2f}",
        "" if seconds is None else f"{seconds:.0f}",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
