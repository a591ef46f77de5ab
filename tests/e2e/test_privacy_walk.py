"""bench/privacy: what walks find, and that they find it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.run import Run
from bench.privacy.__main__ import walked
from bench.privacy.venues import Venues
from bench.privacy.walk import Walk
from bench.privacy.watch import Servers
from bench.privacy.words import Said, Words
from remote_memory import RemoteMemory
from state.consent import Forgotten
from tests.support.clock import FakeClock
from tests.support.lives import open_stage
from tests.support.remote_agent import RemoteAgent
from tests.support.stub_model import StubModel
from tests.support.stub_responses import StubResponses

ADA, BEN, GENERAL, HIDDEN, DIRECT, THREAD, ELSEWHERE = 1, 2, 10, 11, 12, 13, 14


@pytest.mark.slow
@pytest.mark.parametrize("seed", [9, 1003, 1013])
async def test_a_walk_finds_nothing(tmp_path: Path, seed: int) -> None:
    walk = await walked(tmp_path / "state", seed, steps=60, lives=2)
    assert not walk.found, "\n".join(walk.log)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "broken", "found"),
    [
        (Forgotten, "mark", "forgotten"),
        (RemoteMemory, "ask", "forgotten"),
        (Run, "leave_out_gone", "told, though"),  # while an answer is being made
    ],
)
async def test_a_walk_finds_what_is_known_still_after_it_was_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, broken: str, found: str
) -> None:
    monkeypatch.setattr(owner, broken, lambda *_, **__: None)
    for seed in range(60):  # one in eight meets the last; what a walk meets depends on the machine's speed, too
        walk = await walked(tmp_path / str(seed), seed, steps=60, lives=2)
        if any(found in one for one in walk.found):
            return
    pytest.fail("no walk found it")


@pytest.mark.parametrize(("told_step", "is_found"), [(1, False), (2, True), (None, True)])
async def test_a_request_may_have_what_the_bot_had_not_been_told_the_end_of(
    stub: StubModel, tmp_path: Path, told_step: int | None, *, is_found: bool
) -> None:
    """It was on its way. Whatever was wrong before is found in any case."""
    async with open_stage(stub, tmp_path, clock=FakeClock()) as scene:
        walk = Walk(scene, Servers(RemoteAgent(), StubResponses(), Venues()), 1)
        watch, words, general = walk._watch, walk._words, scene.pg.channel("general")
        for word, message in (("qxaaaaaaxq", 20), ("qxbaaaaaxq", 21)):
            words.first[word] = Said(word, scene.pg.person("Ada"), general, message, at=0)
        watch.ask_in(general)
        words.gone(21)
        watch.begin_step()
        watch.bot_was_told()
        watch.begin_step()
        words.gone(20)
        watch.check("told", ["qxaaaaaaxq"], told_step=told_step)
        assert bool(watch.found) == is_found
        watch.found.clear()
        watch.check("told", ["qxbaaaaaxq"], told_step=told_step)
        assert watch.found
        watch.found.clear()
        watch.begin_step()
        words.first["qxcaaaaaxq"] = Said("qxcaaaaaxq", scene.pg.person("Ada"), general, 22, at=3)
        watch.begin_step()  # the bot is told of both in one packet, and asks in between
        words.gone(22)
        watch.check("told", ["qxcaaaaaxq"], told_step=told_step)
        assert bool(watch.found) == (told_step is None)


def test_what_may_be_told_is_known_of_each_word() -> None:
    readers = {GENERAL: frozenset((ADA, BEN)), HIDDEN: frozenset((ADA,)), DIRECT: frozenset((ADA,))}
    words = Words(readers, {GENERAL: 1, HIDDEN: 1, DIRECT: 0})
    for word, channel in (("said", GENERAL), ("hidden", HIDDEN), ("written", DIRECT)):
        words.first[word] = Said(word, ADA, channel, channel, at=1)
    assert [words.may_not_be_told(word, GENERAL, ()) for word in words.first] == ["", *["not to be read there"] * 2]
    assert [words.may_not_be_told(word, HIDDEN, ()) for word in words.first] == ["", "", "not to be read there"]
    assert not words.may_not_be_told("written", GENERAL, [DIRECT])  # it is asked
    words.answers.append(Said("hidden", 0, GENERAL, 20, at=2))
    assert not words.may_not_be_told("hidden", GENERAL, ())
    words.gone(HIDDEN)
    assert not words.may_not_be_told("hidden", GENERAL, ())  # the answer still stands
    words.gone(GENERAL)
    assert words.may_not_be_told("said", GENERAL, ()) == "deleted"
    words.people_forgotten[ADA] = 3
    assert {words.may_not_be_told(word, channel, ()) for word in words.first for channel in words.readers} == {
        "forgotten"
    }
    words.forwards.append(Said("said", BEN, GENERAL, 30, at=4))  # of what is gone: Ben's words now
    assert not words.may_not_be_told("said", GENERAL, ())


def test_a_word_is_for_its_server_and_goes_with_its_message_or_thread() -> None:
    readers = dict.fromkeys((GENERAL, THREAD, ELSEWHERE), frozenset((ADA, BEN)))
    words = Words(readers, {GENERAL: 1, THREAD: 1, ELSEWHERE: 2})
    for word, channel, message in (("said", GENERAL, 30), ("attached", GENERAL, 30), ("there", THREAD, 31)):
        words.first[word] = Said(word, ADA, channel, message, at=1)
    assert [words.may_not_be_told(word, THREAD, ()) for word in words.first] == ["", "", ""]
    assert {words.may_not_be_told(word, ELSEWHERE, ()) for word in words.first} == {"not to be read there"}
    words.gone(30, ["said"])
    assert [words.may_not_be_told(word, GENERAL, ()) for word in words.first] == ["deleted", "", ""]
    words.channel_gone(THREAD)
    assert [words.may_not_be_told(word, GENERAL, ()) for word in words.first] == ["deleted", "", "deleted"]


def test_a_newcomer_is_told_what_they_said_and_were_answered_and_where_they_read_nothing_else_is_told() -> None:
    readers = dict.fromkeys((GENERAL, THREAD, HIDDEN), frozenset((ADA, BEN)))
    words = Words(readers, dict.fromkeys(readers, 1), parents={THREAD: GENERAL}, unread={GENERAL: frozenset((BEN,))})
    for word, author, channel, message in (
        ("others", ADA, GENERAL, 20), ("own", BEN, GENERAL, 21), ("title", ADA, THREAD, -THREAD),
    ):  # fmt: skip
        words.first[word] = Said(word, author, channel, message, at=1)
    told = {by: [not words.may_not_be_told(word, GENERAL, by=by) for word in words.first] for by in (ADA, BEN)}
    assert told == {ADA: [True, True, True], BEN: [False, True, False]}
    assert [not words.may_not_be_told(word, THREAD, by=BEN) for word in words.first] == [False, True, True]
    assert not any(not words.may_not_be_told(word, HIDDEN) for word in words.first)  # where Ben reads
    words.answers.append(Said("others", 0, GENERAL, 22, at=2, to=frozenset((BEN,))))
    assert not words.may_not_be_told("others", GENERAL, by=BEN)
