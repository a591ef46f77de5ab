"""miniapps/router.py: who takes a turn, and that a mini-app which misbehaves harms nobody."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from datetime import timedelta
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from structlog.testing import capture_logs

from discord_io.split import length
from miniapps import router as router_module
from miniapps.base import ChatGuid, FollowUp, MiniApp, MiniAppContext, MiniAppResponse
from miniapps.router import (
    BROKEN,
    CUT,
    LATE,
    MAX_ABANDONED,
    MAX_MESSAGE,
    UNKNOWN,
    MiniAppFailure,
    MiniAppRouter,
    discover,
)
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
        if isinstance(self.score, BaseException):
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

    error: type[BaseException] = RuntimeError

    def forget(self, chat_guid: ChatGuid, author_id: int | None) -> None:
        raise self.error("cannot forget", chat_guid, author_id)

    def retract(self, chat_guid: ChatGuid, message_ids: Collection[int]) -> None:
        raise self.error("cannot retract", chat_guid, message_ids)


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


@pytest.mark.parametrize(
    "score",
    [RuntimeError("no"), SystemExit(3), asyncio.CancelledError(), None, "high", float("nan"), 1.1, -1, [1]],
)
def test_a_mini_app_without_a_sound_score_is_passed_over_and_logged(score: object) -> None:
    with capture_logs() as logs:
        assert MiniAppRouter([Scripted("odd", score=score), Scripted("sound", score=0.6)]).pick("x", {}) == "sound"
    assert [(entry["log_level"], entry["miniapp"]) for entry in logs] == [("error", "odd")]


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


async def keeps_too_much(_context: MiniAppContext) -> MiniAppResponse:
    return MiniAppResponse("Done.", soft_context={"all": "x" * 201})


async def returns_text(_context: MiniAppContext) -> Any:
    return "hello"


async def cancels_itself(_context: MiniAppContext) -> MiniAppResponse:
    raise asyncio.CancelledError


class Falsy(Exception):  # noqa: N818 - no error to its own mind
    def __bool__(self) -> bool:
        return False


async def raises_a_falsy_error(_context: MiniAppContext) -> MiniAppResponse:
    raise Falsy


async def exits(_context: MiniAppContext) -> MiniAppResponse:
    sys.exit(3)


class Hollow(MiniAppResponse):
    def __init__(self) -> None:
        """Fills no field."""


async def returns_a_hollow_response(_context: MiniAppContext) -> MiniAppResponse:
    return Hollow()


@pytest.mark.parametrize(
    "handler",
    [
        raises,
        cancels_itself,
        raises_a_falsy_error,
        asks_nonsense,
        says_nothing,
        keeps_too_much,
        returns_text,
        exits,
        returns_a_hollow_response,
    ],
)
async def test_one_that_breaks_costs_one_sentence_and_is_logged_by_name(handler: Handler) -> None:
    with capture_logs() as logs:
        assert await routed(Scripted("broken", handler=handler)) == MiniAppFailure("broken", BROKEN)
    assert [(entry["log_level"], entry["miniapp"]) for entry in logs] == [("error", "broken")]
    if handler not in (
        raises,
        cancels_itself,
        raises_a_falsy_error,
    ):  # of what is wrong with a response we say whose it is
        assert str(logs[0]["exc_info"]).startswith("broken")


async def test_what_is_asked_without_a_handler_is_asked_by_the_mini_app() -> None:
    async def asks(_context: MiniAppContext) -> MiniAppResponse:
        return MiniAppResponse("Well?" * 5_000, {"awaiting_type": "awaiting_input"}, {"kept": 1})

    response = await routed(Scripted("dice", handler=asks))
    assert isinstance(response, MiniAppResponse)
    assert response.ask
    assert (response.ask.source_handler, response.soft_context) == ("dice", {"kept": 1})


@pytest.mark.parametrize("text", ["word " * 40_000, "😀" * 12_001, "```\n" + "code\n" * 3_000 + "```"])
async def test_a_message_without_end_is_cut_says_so_and_is_logged_by_name(text: str) -> None:
    async def goes_on(_context: MiniAppContext) -> MiniAppResponse:
        return MiniAppResponse(text)

    with capture_logs() as logs:
        response = await routed(Scripted("chatty", handler=goes_on))
    assert isinstance(response, MiniAppResponse)
    body = response.message.removesuffix(CUT)
    assert body != response.message
    assert MAX_MESSAGE - 10 < length(body) <= MAX_MESSAGE + len("\n```")
    assert body.count("```") % 2 == 0
    assert [(entry["log_level"], entry["miniapp"]) for entry in logs] == [("warning", "chatty")]


@pytest.mark.parametrize("length", [1, MAX_MESSAGE + 1])
async def test_a_follow_up_is_handed_on_also_with_a_message_that_is_cut(length: int) -> None:
    follow_up = FollowUp("How was it?", "add a note", timedelta(hours=4), about="it")

    async def comes_back(_context: MiniAppContext) -> MiniAppResponse:
        return MiniAppResponse("x" * length, follow_up=follow_up)

    response = await routed(Scripted(handler=comes_back))
    assert isinstance(response, MiniAppResponse)
    assert response.follow_up == follow_up


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


def clinging(gate: asyncio.Event) -> Handler:
    """Swallows its cancellation until the gate is open, and then raises."""

    async def clings(_context: MiniAppContext) -> MiniAppResponse:
        while not gate.is_set():
            with suppress(asyncio.CancelledError):
                await gate.wait()
        raise RuntimeError("at last")

    return clings


async def test_one_that_swallows_cancellation_holds_nobody_and_gets_no_sixth_turn_until_one_has_ended() -> None:
    gate, changed = asyncio.Event(), list[ChatGuid]()
    apps = [Scripted("clinging", handler=clinging(gate)), Scripted("sound")]
    router, clock = MiniAppRouter(apps, on_change=changed.append), asyncio.get_running_loop()
    for _ in range(MAX_ABANDONED):
        turn = await router.route_to_miniapp_if_applicable(told(), force_miniapp_id="clinging")
        assert turn == MiniAppFailure("clinging", LATE)
    assert changed == []
    started = clock.time()
    with capture_logs() as logs:
        failure = await router.route_to_miniapp_if_applicable(told(), force_miniapp_id="clinging")
    assert (failure, clock.time(), len(router._abandoned)) == (MiniAppFailure("clinging", LATE), started, MAX_ABANDONED)
    assert [(entry["log_level"], entry["miniapp"]) for entry in logs] == [("error", "clinging")]
    assert await router.route_to_miniapp_if_applicable(told("hi"), force_miniapp_id="sound") == MiniAppResponse(
        "You said hi."
    )
    with capture_logs() as logs:
        gate.set()
        await until(lambda: not router._abandoned)
    assert {(entry["log_level"], entry["event"]) for entry in logs} == {("warning", "miniapp_failed_late")}
    assert len(changed) == MAX_ABANDONED + 1, "also that of the sound one"
    failure = await router.route_to_miniapp_if_applicable(told(), force_miniapp_id="clinging")
    assert failure == MiniAppFailure("clinging", BROKEN)


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


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, asyncio.CancelledError])
def test_all_are_told_to_forget_whatever_one_of_them_raises(error: type[BaseException]) -> None:
    deaf, app = Deaf("deaf"), Scripted("listening")
    deaf.error = error
    router = MiniAppRouter([deaf, app])
    with capture_logs() as logs:
        router.forget(700, 11)
        router.forget(700, None)
        router.retract(700, {1, 2})
    assert app.told == [(700, 11), (700, None), (700, {1, 2})]
    assert {entry["miniapp"] for entry in logs} == {"deaf"}
    assert len(logs) == 3


# What follow-ups are about


class Standing(Scripted):
    """Says what the test says of what its follow-ups are about."""

    def __init__(self, *, stands: Any) -> None:
        super().__init__("standing")
        self.stands = stands

    def still_stands(self, chat_guid: ChatGuid, about: str) -> bool:
        self.told.append((chat_guid, about))
        if isinstance(self.stands, BaseException):
            raise self.stands
        return self.stands  # type: ignore[no-any-return]


@pytest.mark.parametrize("stands", [True, False])
def test_a_mini_app_says_whether_what_a_follow_up_is_about_still_stands(stands: bool) -> None:
    app = Standing(stands=stands)
    with capture_logs() as logs:
        assert MiniAppRouter([Scripted(), app]).still_stands("standing", 700, "it") is stands
    assert app.told == [(700, "it")]
    assert logs == []


def test_what_nothing_is_said_of_still_stands_unless_its_mini_app_is_gone() -> None:
    router = MiniAppRouter([Scripted()])
    with capture_logs() as logs:
        assert router.still_stands("scripted", 700, "it")
        assert not router.still_stands("gone", 700, "it")
    assert logs == []


@pytest.mark.parametrize("error", [RuntimeError("no"), SystemExit(3), asyncio.CancelledError()])
def test_of_a_mini_app_that_raises_nothing_stands_and_it_is_logged(error: BaseException) -> None:
    with capture_logs() as logs:
        assert not MiniAppRouter([Standing(stands=error)]).still_stands("standing", 700, "it")
    assert [(entry["log_level"], entry["miniapp"]) for entry in logs] == [("error", "standing")]


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


def exits_at_start() -> MiniApp:
    sys.exit(3)


def installed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    entries = [EntryPoint(name.rpartition(":")[2], name, "parley.miniapps") for name in names]
    monkeypatch.setattr(router_module, "entry_points", lambda *, group: [e for e in entries if e.group == group])


def test_classes_and_functions_behind_entry_points_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "miniapps.trip_planner:TripPlanner", f"{__name__}:recipes")
    assert [type(app) for app in discover()] == [TripPlanner, Scripted]


@pytest.mark.parametrize(
    "name", ["NoApp", "Nameless", "agent", "dotted", "explodes", "exits_at_start", "NOT_CALLABLE", "missing"]
)
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
