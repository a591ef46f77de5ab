"""The page's "Try it": short scripted talks, posted line by line as the people who say them. The script: scenes.txt."""

import asyncio
import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cache
from pathlib import Path

from playground.changes import Changes
from playground.errors import ApiError
from playground.model import Channel, Event, Message
from playground.people import People

FILE = Path(__file__).with_name("scenes.txt")
BOT = "Parley"  # in the script, whatever the bot's name
LINE_SECONDS = 2.0
SETTLED_SECONDS = 1.5  # an answer that did not change for so long is whole
ANSWER_SECONDS = 15.0  # then the scene goes on without one
AT = re.compile(r"@(\w+)")
STEP = re.compile(r"\[(?:(?P<answer>answer|begun)|(?P<seconds>\d(?:\.\d)?)s)\]")
SPOKEN = re.compile(r"(?P<speaker>\w+): (?P<text>\S.*)")


class Await(Enum):
    """What a line waits for, besides its pause."""

    NOTHING = auto()
    BEGUN = auto()
    ANSWER = auto()


@dataclass(frozen=True, slots=True)
class Line:
    """What somebody says. awaits: what of the bot's comes before it; pause: seconds, after that."""

    speaker: str
    text: str
    pause: float = LINE_SECONDS
    awaits: Await = Await.NOTHING


@dataclass(frozen=True, slots=True)
class Scene:
    """look: what there is to see in it."""

    title: str
    look: str = ""
    lines: tuple[Line, ...] = ()


def parse(script: str) -> list[Scene]:
    """The scenes of a script. Raises ValueError at the first line that is none of its kinds."""
    scenes: list[Scene] = []
    following = Line("", "")  # what the next line waits for
    for line in filter(None, script.splitlines()):
        if line.startswith("# "):
            scenes.append(Scene(line[2:]))
        elif line.startswith("Look: "):
            scenes[-1] = replace(scenes[-1], look=line[6:])
        elif step := STEP.fullmatch(line):
            pause, answer = step["seconds"], step["answer"]
            changed = {"pause": float(pause)} if pause else {"awaits": Await[answer.upper()]}
            following = replace(following, **changed)
        elif spoken := SPOKEN.fullmatch(line):
            said = replace(following, speaker=spoken["speaker"], text=spoken["text"])
            scenes[-1] = replace(scenes[-1], lines=(*scenes[-1].lines, said))
            following = Line("", "")
        elif not line.startswith("##"):
            raise ValueError(f"{line!r} is neither a title, what to look for, a pause nor a message")
    return scenes


@cache
def read_script() -> list[Scene]:
    return parse(FILE.read_text(encoding="utf-8"))


class Stage:
    """Plays scenes, one at a time in a channel."""

    def __init__(self, people: People, changes: Changes, script: Sequence[Scene] | None = None) -> None:
        self._people = people
        self._world = people.world
        self._changes = changes
        self._script = read_script() if script is None else script
        self._playing: dict[int, tuple[Scene, asyncio.Task[None]]] = {}

    @property
    def scenes(self) -> list[Scene]:
        """Those whose people are all here."""
        here = {one.name for one in self._world.people}
        return [scene for scene in self._script if here.issuperset(line.speaker for line in scene.lines)]

    def playing(self, channel_id: int) -> Scene | None:
        return self._playing[channel_id][0] if channel_id in self._playing else None

    def play(self, channel_id: int, title: str) -> None:
        """Begins a scene. ApiError for an unknown one, or where one is being played."""
        channel = self._world.channel(channel_id)
        scene = next((one for one in self.scenes if one.title == title), None)
        if scene is None:
            raise ApiError(404, 0, "There is no such scene here.")
        if playing := self.playing(channel_id):
            raise ApiError(409, 0, f"“{playing.title}” is being played here: let it end, or stop it.")
        self._playing[channel_id] = scene, asyncio.create_task(self._perform(channel, scene))
        self._tell(channel)

    def stop(self, channel_id: int) -> None:
        """Breaks off what is being played in the channel, if anything is."""
        channel = self._world.channel(channel_id)
        if channel_id in self._playing:
            self._playing.pop(channel_id)[1].cancel()
            self._tell(channel)

    async def close(self) -> None:
        """Breaks off everything."""
        tasks = [task for _, task in self._playing.values()]
        for channel_id in list(self._playing):
            self.stop(channel_id)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _tell(self, channel: Channel) -> None:
        self._world.emit(Event(name="SCENE", channel=channel))

    async def _perform(self, channel: Channel, scene: Scene) -> None:
        for line in scene.lines:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._heard(channel, line.awaits)
            speaker_id = self._people.person(line.speaker)
            self._people.typing(channel.id, speaker_id)
            await asyncio.sleep(line.pause)
            self._people.post(channel.id, speaker_id, AT.sub(self._mention, line.text))
        del self._playing[channel.id]
        self._tell(channel)

    async def _heard(self, channel: Channel, awaits: Await) -> None:
        """Waits until the newest message is the bot's, and, where the whole answer is awaited, changes no more."""
        if awaits is Await.NOTHING:
            return
        await self._changes.wait_for(lambda: (last := _newest(channel)) and last.author.id == self._world.bot.id)
        last = None
        while awaits is Await.ANSWER and last is not _newest(channel):
            last = _newest(channel)
            await asyncio.sleep(SETTLED_SECONDS)

    def _mention(self, at: re.Match[str]) -> str:
        ids = {one.name: one.id for one in self._world.people} | {BOT: self._world.bot.id}
        return f"<@{ids[at[1]]}>" if at[1] in ids else at[0]


def _newest(channel: Channel) -> Message | None:
    return next(reversed(channel.messages.values()), None)
