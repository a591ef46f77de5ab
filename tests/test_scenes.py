"""The scenes of scenes.txt: what an attentive person would do, line by line, held against the decider and its model.

How to write a scene is told at the head of that file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from conversation import ChannelConversation, MessageRecord
from decider import Decision, Reason, ResponseDecider, TrainedFollowup
from followup.model import Eagerness, load_model
from tests.support.clock import NOON
from tests.support.people import BOT, CHANNEL, NAMES, replied, said

FILE = Path(__file__).with_name("scenes.txt")
PEOPLE = {name: author_id for author_id, name in NAMES.items()} | {"Finn": 16, "Gia": 17}
PAUSE_SECONDS = 8

TITLE = re.compile(r"# (?P<title>\S.*)")
AT_MOST = re.compile(r"at most (?P<most>\d) answered")
POINTS = re.compile(r"at (?P<points>\w+(?:, \w+)*)")
PAUSE = re.compile(r"\[(?P<seconds>\d{1,3})s\]")
SPOKEN = re.compile(
    r"(?P<speaker>\w+)(?: (?P<arrow>[>^]) ?(?P<to>\w+(?:, \w+)*))?: (?P<text>\S.*?)"
    r"(?:  => (?P<fault>fault )?(?P<answer>silent|answers)(?: (?P<reason>\w+))?)?"
)
AT = re.compile(r"@(?P<role>&?)(?P<name>\w+)")


class SceneError(ValueError):
    """A line of the file cannot be read; the text says which and why."""


@dataclass(frozen=True)
class Line:
    """One message of a scene. number: its line in the file; expected: whether and why it is answered, None: open.

    is_fault: what is expected does not come today. is_counted: whether it counts where only so many may be answered.
    """

    number: int
    message: MessageRecord
    expected: tuple[bool, Reason | None] | None = None
    is_fault: bool = False
    is_counted: bool = False


@dataclass
class Scene:
    title: str
    points: tuple[Eagerness, ...] = (Eagerness.BALANCED,)
    most: int | None = None
    lines: list[Line] = field(default_factory=list)
    now: datetime = NOON
    is_paused: bool = True

    def latest(self, author_id: int) -> MessageRecord:
        """Their newest message in the scene."""
        spoken = [line.message for line in self.lines if line.message.author_id == author_id]
        if not spoken:
            raise SceneError("it answers somebody who has said nothing yet")
        return spoken[-1]

    def pause(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        self.is_paused = True

    def say(self, number: int, spoken: re.Match[str]) -> None:
        if not self.is_paused:
            self.pause(PAUSE_SECONDS)
        message = self._message(spoken)
        if spoken["answer"] and message.is_bot:
            raise SceneError("the bot decides nothing about its own words")
        reason = Reason(spoken["reason"]) if spoken["reason"] else None
        expected = (spoken["answer"] == "answers", reason) if spoken["answer"] else None
        has_begun = any(line.message.is_bot for line in self.lines)
        is_counted = self.most is not None and has_begun and not message.is_bot and expected is None
        self.lines.append(Line(number, message, expected, spoken["fault"] is not None, is_counted))
        self.is_paused = False

    def _message(self, spoken: re.Match[str]) -> MessageRecord:
        speaker, text = _person(spoken["speaker"]), spoken["text"]
        to = [_person(name) for name in spoken["to"].split(", ")] if spoken["to"] else []
        if "=>" in text:
            raise SceneError("a decision is '  => silent reason' or '  => answers reason'")
        if (spoken["arrow"] == ">") is not (speaker == BOT):
            raise SceneError("the bot's lines, and no others, say with > whom they answer")
        if speaker != BOT and len(to) > 1:
            raise SceneError("a reply is to one person")
        content, is_to_group = AT.sub(_mention, text), any(map(_is_group, AT.finditer(text)))
        answered = self.latest(to[-1]) if to else None
        if speaker == BOT:  # as its answers are recorded
            more: dict[str, Any] = {"mentioned": frozenset(), "addressees": frozenset(to)}
        else:
            more = {"mentions_group": is_to_group, "reply_to_author_id": to[-1] if to else None}
        reply_to_id = answered.message_id if answered else None
        return said(speaker, content, self.now, author=spoken["speaker"], reply_to_id=reply_to_id, **more)


def _person(name: str) -> int:
    if name not in PEOPLE:
        raise SceneError(f"nobody here is called {name}")
    return PEOPLE[name]


def _is_group(at: re.Match[str]) -> bool:
    return bool(at["role"]) or at["name"] in ("everyone", "here")


def _mention(at: re.Match[str]) -> str:
    """As Discord sends it."""
    if at["role"]:
        return "<@&90>"
    return at[0] if _is_group(at) else f"<@{_person(at['name'])}>"


def parse(text: str) -> list[Scene]:
    """The scenes of a file. Raises SceneError at the first line that is none of its kinds."""
    scenes: list[Scene] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line and not line.startswith("##"):
            try:
                _read(scenes, number, line)
            except ValueError as error:
                raise SceneError(f"line {number}: {line!r}: {error}") from None
    return scenes


def _read(scenes: list[Scene], number: int, line: str) -> None:
    if title := TITLE.fullmatch(line):
        scenes.append(Scene(title["title"]))
    elif not scenes:
        raise SceneError("a scene begins with its title")
    elif (most := AT_MOST.fullmatch(line)) and not scenes[-1].lines:
        scenes[-1].most = int(most["most"])
    elif (points := POINTS.fullmatch(line)) and not scenes[-1].lines:
        scenes[-1].points = tuple(map(Eagerness, points["points"].split(", ")))
    elif pause := PAUSE.fullmatch(line):
        scenes[-1].pause(int(pause["seconds"]))
    elif spoken := SPOKEN.fullmatch(line):
        scenes[-1].say(number, spoken)
    else:
        raise SceneError("neither a title, a setting, a pause nor a message")


async def decide(lines: Sequence[Line], decider: ResponseDecider) -> list[tuple[Line, Decision]]:
    """The decision on each line of which one is expected or that counts, taken when it has just been recorded.

    Where a line that counts is answered, so the bot does, for that changes how the talk goes on.
    """
    conversation = ChannelConversation(CHANNEL, NOON, NOON)
    decided = []
    for line in lines:
        conversation.add(line.message)
        if line.expected or line.is_counted:
            decision = await decider.should_respond(line.message, conversation, BOT)
            decided.append((line, decision))
            if line.is_counted and decision.respond:
                conversation.add(replied(line.message.author_id, "Sounds good to me.", line.message.timestamp))
    return decided


def complaints(scene: Scene, decided: Sequence[tuple[Line, Decision]]) -> Iterator[str]:
    for line, decision in decided:
        respond, reason = line.expected or (decision.respond, None)
        is_as_expected = (decision.respond, decision.reason) == (respond, reason or decision.reason)
        if line.is_fault and is_as_expected:
            yield f"no fault any more: {_told(line, decision)}"
        elif not (line.is_fault or is_as_expected):
            yield f"expected {'answers' if respond else 'silent'} {reason or ''}, came {_told(line, decision)}"
    answered = [(line, decision) for line, decision in decided if line.is_counted and decision.respond]
    if scene.most is not None and len(answered) > scene.most:
        yield f"at most {scene.most} were to be answered, came:"
        yield from (_told(line, decision) for line, decision in answered)


def _told(line: Line, decision: Decision) -> str:
    return (
        f"{'answers' if decision.respond else 'silent'} {decision.reason} in line {line.number}, "
        f"{line.message.author}: {line.message.content!r} (score {decision.score:.2f}; {decision.evidence or 'a rule'})"
    )


SCENES = parse(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("point", Eagerness)
async def test_the_scenes_go_as_expected(point: Eagerness) -> None:
    decider = ResponseDecider(followup=TrainedFollowup(load_model(), point))
    wrong: list[str] = []
    for scene in SCENES:
        if point in scene.points and (told := list(complaints(scene, await decide(scene.lines, decider)))):
            wrong += [f"{scene.title}, at {point}:", *told]
    assert not wrong, "\n".join(wrong)


def test_there_are_enough_scenes_and_each_expects_something_under_its_own_name() -> None:
    assert len(SCENES) >= 110
    assert len({scene.title for scene in SCENES}) == len(SCENES)
    assert [scene.title for scene in SCENES if not any(line.expected or line.is_counted for line in scene.lines)] == []


def test_two_to_six_people_talk_in_each_scene() -> None:
    people = {scene.title: len({line.message.author_id for line in scene.lines} - {BOT}) for scene in SCENES}
    assert [title for title, count in people.items() if not 2 <= count <= 6] == []


def test_a_scene_is_read_as_it_is_written() -> None:
    (scene,) = parse("# a title\nat quiet, eager\nAnna: @Parley hi\nParley > Anna: Hi.\n[20s]\nBen ^Anna: eh?")
    hi, answer, reply = (line.message for line in scene.lines)
    assert (scene.title, scene.points) == ("a title", (Eagerness.QUIET, Eagerness.EAGER))
    assert (hi.content, hi.timestamp, hi.mentions) == (f"<@{BOT}> hi", NOON, frozenset({BOT}))
    assert (answer.is_bot, answer.addressees, answer.reply_to_id) == (True, frozenset({PEOPLE["Anna"]}), hi.message_id)
    assert (reply.reply_to_id, reply.timestamp) == (hi.message_id, NOON + timedelta(seconds=PAUSE_SECONDS + 20))


def test_lines_that_count_are_those_behind_the_bots_first_words_of_which_nothing_is_expected() -> None:
    text = "# a title\nat most 2 answered\nBen: yo\nAnna: @Parley hi\nParley > Anna: Hi.\nBen: so\nAnna: no  => silent"
    (scene,) = parse(text)
    assert scene.most == 2
    assert [line.message.content for line in scene.lines if line.is_counted] == ["so"]
    assert [line.expected for line in scene.lines if line.expected] == [(False, None)]


def test_too_many_answers_and_wrong_ones_are_told() -> None:
    (scene,) = parse(
        "# a title\nat most 1 answered\nAnna: hi\nParley > Anna: Hi.\nBen: so\nBen: now\nBen: well  => silent"
    )
    yes, no = Decision(True, Reason.FOLLOWUP), Decision(False, Reason.NO_TRIGGER)
    counted, other = [line for line in scene.lines if line.is_counted], scene.lines[-1]
    assert list(complaints(scene, [(counted[0], yes), (counted[1], no), (other, no)])) == []
    wrong = "\n".join(complaints(scene, [*((line, yes) for line in counted), (other, yes)]))
    assert [f"{word!r}" in wrong for word in ("so", "now", "well")] == [True, True, True]
    assert "expected silent" in wrong
    assert "at most 1 were to be answered" in wrong


def test_a_fault_is_told_once_it_is_none() -> None:
    (scene,) = parse("# a title\nAnna: hi\nBen: so  => fault silent")
    for decision, count in ((Decision(True, Reason.FOLLOWUP), 0), (Decision(False, Reason.NO_TRIGGER), 1)):
        assert len(list(complaints(scene, [(scene.lines[-1], decision)]))) == count


def test_a_line_that_cannot_be_read_is_an_error_with_its_number() -> None:
    for line in UNREADABLE.strip("\n").splitlines():
        with pytest.raises(SceneError, match=r"^line 2: "):
            parse(f"# a title\n{line}")
    with pytest.raises(SceneError, match=r"^line 1: "):
        parse("Anna: hi")


UNREADABLE = """
at most many answered
Anna: hi  => silence
Anna says hi
Zoe: hi
Anna: hi @Zoe
Anna ^Ben: hi
Anna ^Ben, Cleo: hi
Anna > Parley: hi
Anna:hi
Parley: hi
Parley > Anna: hi  => silent no_trigger
Anna: hi => silent no_trigger
Anna: hi  => answers perhaps
Anna: hi  => maybe followup
[20]
at noon
#no title
 Anna: hi
"""
