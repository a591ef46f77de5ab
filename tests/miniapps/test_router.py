"""miniapps/router.py: who takes a turn, and that a mini-app which misbehaves harms nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from structlog.testing import capture_logs

from miniapps import router as router_module
from miniapps.base import ChatGuid, MiniApp, MiniAppContext, MiniAppResponse
from miniapps.router import BROKEN, LATE, UNKNOWN, MiniAppFailure, MiniAppRouter, discover
from miniapps.trip_planner import TripPlanner
from tests.miniapps.support import told
from tests.support.virtual_time import settle, until

pytestmark = pytest.mark.virtual_time
Handler = Callable[[MiniAppContext], Awaitable[Any]]


async def answers(context: MiniAppContext) -> MiniAppResponse:
    return MiniAppResponse(f"You said {context.text}.")


class Scripted(MiniApp):
    """Does what the test says. told: what it was told to forget or retract."""

    def __init__(self, miniapp_id: str = "scripted", *, score: Any = 0.9, handler: Handler = answers) -> None:
        self.id = miniapp_id  # type: ignore[misc]
        self.score = score
        self.handler = handler
        self.told: list[object] = []

    def wants(self, text: str, soft_context: Mapping[str, Any]) -> float:  # noqa: ARG002 - the script knows
        if isinstance(self.score, Exception):
            raise self.score
        return self.score  # type: ignore[no-any-return]

    async def handle(self, context: MiniAppContext) -> MiniAppResponse:
        return await self.handler(context)  # type: ignore[no-any-return]

    def forget(self, chat_guid: ChatGuid, author_id: int | None) -> None:
        self.told.append((chat_guid, author_id))

    def retract(self, chat_guid: ChatGuid, message_ids: Collection[int]) -> None:
        self.told.append((chat_guid, message_ids))


class Deaf(Scripted):
    """Raises where it is told to forget."""

    def forget(self, chat_guid: ChatGuid, author_id: int | None) -> None:
        raise RuntimeError("cannot forget", chat_guid, author_id)

    def retract(self, chat_guid: ChatGuid, message_ids: Collection[int]) -> None:
        raise RuntimeError("cannot retract", chat_guid, message_ids)


async def routed(*apps: MiniApp, **how: Any) -> MiniAppResponse | MiniAppFailure | None:
    return await MiniAppRouter(apps).route_to_miniapp_if_applicable(told("hello"), **how)


# Who takes the turn


def test_the_surest_over_its_threshold_is_picked() -> None:
    router = MiniAppRouter([Scripted("low", score=0.3), Scripted("sure", score=0.9), Scripted("less", score=0.6)])
    assert router.pick("hello", {}) == "sure"


def test_of_equals_the_first_is_picked() -> None:
    assert MiniAppRouter([Scripted("first"), Scripted("second")]).pick("hello", {}) == "first"


def test_none_is_picked_below_its_threshold() -> None:
    assert MiniAppRouter([Scripted(score=0.49)]).pick("hello", {}) is None
    assert MiniAppRouter([]).pick("hello", {}) is None


@pytest.mark.parametrize("score", [RuntimeError("no"), None, "high", float("nan"), 1.1, -1, [1]])
def test_a_mini_app_without_a_sound_score_is_passed_over_and_logged(score: object) -> None:
    with capture_logs() as logs:
        assert MiniAppRouter([Scripted("odd", score=score), Scripted("sound", score=0.6)]).pick("x", {}) == "sound"
    assert [(entry["log_level"], entry["miniapp"]) for entry in logs] == [("error", "odd")]


async def test_the_picked_one_answers() -> None:
    assert await routed(Scripted()) == MiniAppResponse("You said hello.")


async def test_where_none_wants_it_nothing_is_answered() -> None:
    assert await routed(Scripted(score=0)) is None


async def test_a_forced_one_answers_what_it_does_not_want_and_is_given_the_resolution() -> None:
    seen = []

    async def look(context: MiniAppContext) -> MiniAppResponse:
        seen.append(context.focus_resolution)
        return MiniAppResponse("ok")

    resolution = {"type": "confirmation", "confirmed": True}
    forced = Scripted("forced", score=0, handler=look)
    await routed(Scripted(), forced, force_miniapp_id="forced", focus_resolution=resolution)
    assert seen == [resolution]


async def test_a_forced_one_that_is_not_there_is_a_failure() -> None:
    with capture_logs() as logs:
        assert await routed(Scripted(), force_miniapp_id="gone") == MiniAppFailure("gone", UNKNOWN)
    assert [entry["miniapp"] for entry in logs] == ["gone"]


def test_of_two_with_one_id_the_first_counts_and_the_other_is_logged() -> None:
    with capture_logs() as logs:
        router = MiniAppRouter([Scripted("twin", score=0), Scripted("twin", score=1)])
    assert router.pick("hello", {}) is None
    assert [entry["miniapp"] for entry in logs] == ["twin"]


# Those that misbehave


async def raises(_context: MiniAppContext) -> MiniAppResponse:
    raise LookupError("secret detail")


async def asks_nonsense(_context: MiniAppContext) -> MiniAppResponse:
    return MiniAppResponse("Well?", conversation_state={"awaiting_type": "awaiting_miracle"})


async def says_nothing(_context: MiniAppContext) -> MiniAppResponse:
    return MiniAppResponse(" ")


async def returns_text(_context: MiniAppContext) -> Any:
    return "hello"


async def cancels_itself(_context: MiniAppContext) -> MiniAppResponse:
    raise asyncio.CancelledError


@pytest.mark.parametrize("handler", [raises, asks_nonsense, says_nothing, returns_text, cancels_itself])
async def test_one_that_breaks_costs_one_sentence_and_is_logged_by_name(handler: Handler) -> None:
    with capture_logs() as logs:
        assert await routed(Scripted("broken", handler=handler)) == MiniAppFailure("broken", BROKEN)
    assert [(entry["log_level"], entry["miniapp"]) for entry in logs] == [("error", "broken")]


async def test_one_whose_handler_is_not_even_async_costs_one_sentence() -> None:
    class Plain(Scripted):
        def handle(self, context: MiniAppContext) -> MiniAppResponse:  # type: ignore[override]
            return MiniAppResponse(context.text)

    assert await routed(Plain("plain")) == MiniAppFailure("plain", BROKEN)


async def test_one_that_hangs_is_cancelled_after_ten_seconds() -> None:
    ended = []

    async def hangs(_context: MiniAppContext) -> MiniAppResponse:
        try:
            await asyncio.sleep(3_600)
        finally:
            ended.append(asyncio.get_running_loop().time())
        return MiniAppResponse("late")

    started = asyncio.get_running_loop().time()
    with capture_logs() as logs:
        assert await routed(Scripted("slow", handler=hangs)) == MiniAppFailure("slow", LATE)
    await settle()
    assert [time - started for time in ended] == [10]
    assert [entry["miniapp"] for entry in logs] == ["slow"]


async def test_one_that_swallows_its_cancellation_holds_nobody() -> None:
    gate = asyncio.Event()

    async def clings(_context: MiniAppContext) -> MiniAppResponse:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        raise RuntimeError("at last")

    router = MiniAppRouter([Scripted("clinging", handler=clings)])
    with capture_logs() as logs:
        failure = await router.route_to_miniapp_if_applicable(told())
        assert failure == MiniAppFailure("clinging", LATE)
        gate.set()
        await until(lambda: not router._abandoned)
    assert [(entry["log_level"], entry["miniapp"]) for entry in logs] == [
        ("error", "clinging"),
        ("warning", "clinging"),
    ]


async def test_one_that_hangs_holds_no_other_channel() -> None:
    async def hangs_there(context: MiniAppContext) -> MiniAppResponse:
        if context.chat_guid == 1:
            await asyncio.sleep(3_600)
        return MiniAppResponse("here")

    router = MiniAppRouter([Scripted(handler=hangs_there)])
    there = asyncio.create_task(router.route_to_miniapp_if_applicable(told(chat_guid=1)))
    assert await router.route_to_miniapp_if_applicable(told(chat_guid=2)) == MiniAppResponse("here")
    assert isinstance(await there, MiniAppFailure)


async def test_being_cancelled_cancels_the_mini_app() -> None:
    ended = []

    async def waits(_context: MiniAppContext) -> MiniAppResponse:
        try:
            await asyncio.sleep(3_600)
        finally:
            ended.append(True)
        return MiniAppResponse("never")

    turn = asyncio.create_task(routed(Scripted(handler=waits)))
    await settle()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    await settle()
    assert ended == [True]


def test_all_are_told_to_forget_whatever_one_of_them_raises() -> None:
    app = Scripted("listening")
    router = MiniAppRouter([Deaf("deaf"), app])
    with capture_logs() as logs:
        router.forget(700, 11)
        router.forget(700, None)
        router.retract(700, {1, 2})
    assert app.told == [(700, 11), (700, None), (700, {1, 2})]
    assert {entry["miniapp"] for entry in logs} == {"deaf"}
    assert len(logs) == 3


# What others install


class NoApp:
    pass


class Nameless(Scripted):
    def __init__(self) -> None:
        super().__init__()
        del self.id


NOT_CALLABLE = 7


def recipes() -> MiniApp:
    return Scripted("recipes")


def agent() -> MiniApp:
    return Scripted("agent")


def dotted() -> MiniApp:
    return Scripted("my.app")


def explodes() -> MiniApp:
    raise RuntimeError("at start")


def installed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    entries = [EntryPoint(name.rpartition(":")[2], name, "parley.miniapps") for name in names]
    monkeypatch.setattr(router_module, "entry_points", lambda *, group: [e for e in entries if e.group == group])


def test_classes_and_functions_behind_entry_points_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "miniapps.trip_planner:TripPlanner", f"{__name__}:recipes")
    assert [type(app) for app in discover()] == [TripPlanner, Scripted]


@pytest.mark.parametrize("name", ["NoApp", "Nameless", "agent", "dotted", "explodes", "NOT_CALLABLE", "missing"])
def test_what_cannot_be_used_is_left_out_and_logged_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, f"{__name__}:{name}", f"{__name__}:recipes")
    with capture_logs() as logs:
        assert [app.id for app in discover()] == ["recipes"]
    assert [(entry["log_level"], entry["miniapp"]) for entry in logs] == [("error", name)]


def test_a_module_that_is_not_there_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "no_such_module:App")
    with capture_logs() as logs:
        assert discover() == []
    assert len(logs) == 1


def test_without_entry_points_there_is_nothing_to_find() -> None:
    assert discover() == []
