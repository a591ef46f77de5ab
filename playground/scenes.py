"""The page's "Try it": short scripted conversations, posted line by line. The script is scenes.txt."""

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
from playground.model import FORUM, Channel, Event, File, Message
from playground.people import People
from playground.uploads import named_type

FILE = Path(__file__).with_name("scenes.txt")
BOT = "Parley"  # the bot's name in the script
LINE_SECONDS = 2.0
SETTLED_SECONDS = 1.5  # an answer is complete if it has not changed for that long
ANSWER_SECONDS = 15.0  # then the scene goes on without an answer
AT = re.compile(r"@(\w+)")
STEP = re.compile(r"\[(?:(?P<answer>answer|begun)|(?P<seconds>\d(?:\.\d)?)s)\]")
GOING = re.compile(r"\[(?P<kind>thread|post|direct)(?:: (?P<title>.+))?\]")
SPOKEN = re.compile(r"(?P<speaker>\w+)(?P<app> \(app\))?: (?P<text>\S.*?)(?: \{(?P<name>[\w.-]+): (?P<data>.*)\})?")
FORUM_NAME = "questions"


class Await(Enum):
    """What a line waits for, besides its pause."""

    NOTHING = auto()
    BEGUN = auto()
    ANSWER = auto()


@dataclass(frozen=True, slots=True)
class Line:
    """A message of a scene. awaits: what of the bot must come before it; pause: seconds after that.

    goes: (kind, title) of GOING if this line and the following ones are posted in another place. app: another bot says
    it. file: name and content of a text file.
    """

    speaker: str
    text: str
    pause: float = LINE_SECONDS
    awaits: Await = Await.NOTHING
    goes: tuple[str, str] | None = None
    app: bool = False
    file: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """A scripted conversation. look: what to look for in it."""

    title: str
    look: str = ""
    lines: tuple[Line, ...] = ()


def parse(script: str) -> list[Scene]:
    """The scenes of a script. Raises ValueError at the first invalid line."""
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
        elif going := GOING.fullmatch(line):
            following = replace(following, goes=(going["kind"], going["title"] or ""))
        elif spoken := SPOKEN.fullmatch(line):
            said = replace(following, speaker=spoken["speaker"], text=spoken["text"], app=bool(spoken["app"]))
            if spoken["name"]:
                said = replace(said, file=(spoken["name"], spoken["data"].replace("\\n", "\n")))
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
        """The scenes whose people all exist."""
        here = {one.name for one in self._world.people}
        return [scene for scene in self._script if here.issuperset(one.speaker for one in scene.lines if not one.app)]

    def playing(self, channel_id: int) -> Scene | None:
        return self._playing[channel_id][0] if channel_id in self._playing else None

    def play(self, channel_id: int, title: str) -> None:
        """Starts a scene. ApiError for an unknown one, or if one is being played there."""
        channel = self._world.channel(channel_id)
        scene = next((one for one in self.scenes if one.title == title), None)
        if scene is None:
            raise ApiError(404, 0, "There is no such scene here.")
        if playing := self.playing(channel_id):
            raise ApiError(409, 0, f"“{playing.title}” is being played here: let it end, or stop it.")
        self._playing[channel_id] = scene, asyncio.create_task(self._perform(channel, scene))
        self._tell(channel)

    def stop(self, channel_id: int) -> None:
        """Stops the scene that is played in the channel, if any."""
        self._world.channel(channel_id)
        if channel_id in self._playing:
            self._playing[channel_id][1].cancel()
            self._end(channel_id)

    def _end(self, channel_id: int) -> None:
        """Ends the scene of a channel, also in the other places to which it moved."""
        ended = self._playing[channel_id]
        for place_id in [one for one, playing in self._playing.items() if playing is ended]:
            del self._playing[place_id]
            with contextlib.suppress(ApiError):  # it was deleted meanwhile
                self._tell(self._world.channel(place_id))

    async def close(self) -> None:
        """Stops all scenes."""
        tasks = [task for _, task in self._playing.values()]
        while self._playing:
            self.stop(next(iter(self._playing)))
        await asyncio.gather(*tasks, return_exceptions=True)

    def _tell(self, channel: Channel) -> None:
        self._world.emit(Event(name="SCENE", channel=channel))

    async def _perform(self, channel: Channel, scene: Scene) -> None:
        place = channel
        for line in scene.lines:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._heard(place, line.awaits)
            if line.app:
                apps = {one.name: one.id for one in self._world.users.values() if one.bot}
                speaker_id = apps.get(line.speaker) or self._people.add_bot(line.speaker)
            else:
                speaker_id = self._people.person(line.speaker)
            self._people.typing(place.id, speaker_id)
            await asyncio.sleep(line.pause)
            try:
                place = self._say(line, speaker_id, place, channel)
            except ApiError:  # somebody has archived, locked or deleted the place
                break
        self._end(channel.id)

    def _say(self, line: Line, speaker_id: int, place: Channel, channel: Channel) -> Channel:
        """Posts the line, and returns its channel or thread."""
        ids = {one.name: one.id for one in self._world.people} | {BOT: self._world.bot.id}
        text = AT.sub(lambda at: f"<@{ids[at[1]]}>" if at[1] in ids else at[0], line.text)
        files = [] if line.file is None else [named_type(File(line.file[0], "", line.file[1].encode()))]
        kind, title = line.goes or ("", "")
        if kind == "post":
            forum = next((one for one in self._world.channels.values() if one.type == FORUM), None)
            forum_id = forum.id if forum else self._people.add_channel(FORUM_NAME, type=FORUM)
            return self._move(channel, self._people.forum_post(forum_id, speaker_id, title, text, attachments=files))
        if kind == "thread":
            newest = _newest(place)
            starter = newest if newest is not None and newest.id not in self._world.threads else None
            place = self._move(channel, self._people.open_thread(place.id, speaker_id, title, message=starter))
        elif kind == "direct":
            place = self._move(channel, self._people.dm(speaker_id))
        self._people.post(place.id, speaker_id, text, attachments=files)
        return place

    def _move(self, channel: Channel, place_id: int) -> Channel:
        """Moves the scene of a channel to another place; the page follows it."""
        self._playing[place_id] = self._playing[channel.id]
        place = self._world.channel(place_id)
        self._world.emit(Event(name="SCENE", channel=place, data={"from": str(channel.id)}))
        return place

    async def _heard(self, channel: Channel, awaits: Await) -> None:
        """Waits until the newest message is the bot's, and, for ANSWER, does not change any more."""
        if awaits is Await.NOTHING:
            return
        await self._changes.wait_for(lambda: (last := _newest(channel)) and last.author.id == self._world.bot.id)
        last = None
        while awaits is Await.ANSWER and last is not _newest(channel):
            last = _newest(channel)
            await asyncio.sleep(SETTLED_SECONDS)


def _newest(channel: Channel) -> Message | None:
    return next(reversed(channel.messages.values()), None)
