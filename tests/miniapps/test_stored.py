"""What mini-apps keep outlives a restart, and is dropped when it has grown too old."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection
from typing import Any, ClassVar

import pytest
from pydantic import JsonValue
from structlog.testing import capture_logs

from miniapps.base import ChatGuid, MiniApp, MiniAppContext, MiniAppResponse
from miniapps.router import MiniAppRouter
from miniapps.trip_planner import EMPTY, TripPlanner
from tests.miniapps.support import resolved, said, told
from tests.support.people import ANNA, BEN, CHANNEL

pytestmark = pytest.mark.virtual_time


class Keeping(MiniApp):
    """Keeps what it is told to, and gives back what the test says. asked: what else it was told."""

    id: ClassVar[str] = "keeping"

    def __init__(self, stored: Any = None, miniapp_id: str = "keeping") -> None:
        self.id = miniapp_id  # type: ignore[misc]
        self.kept = stored
        self.asked: list[object] = []

    def wants(self, *_: object) -> float:
        return 1

    async def handle(self, context: MiniAppContext) -> MiniAppResponse:
        self.kept = context.text
        return MiniAppResponse("Kept.")

    def forget(self, *what: object) -> None:
        self.asked.append(what)

    def retract(self, chat_guid: ChatGuid, message_ids: Collection[int]) -> None:
        self.asked.append((chat_guid, message_ids))

    def expire(self, *what: object) -> None:
        self.asked.append(what)

    def stored(self, chat_guid: ChatGuid) -> JsonValue | None:  # noqa: ARG002 - the test knows
        return self.kept  # type: ignore[no-any-return]

    def restore(self, *what: object) -> None:
        self.asked.append(what)


class Plain(MiniApp):
    """Does what a mini-app must, and no more."""

    id: ClassVar[str] = "plain"

    def wants(self, *_: object) -> float:
        return 0

    async def handle(self, context: MiniAppContext) -> MiniAppResponse:
        return MiniAppResponse(context.text)


class Failing(Keeping):
    error: type[BaseException] = RuntimeError

    def _fail(self, *_: object, **__: object) -> Any:
        raise self.error("no")

    forget = expire = stored = restore = retract = _fail

    async def handle(self, context: MiniAppContext) -> MiniAppResponse:
        raise self.error(context.text)


# The router


def test_what_they_keep_is_stored_by_their_ids() -> None:
    router = MiniAppRouter([Keeping({"list": [1]}), Plain(), Keeping(None, "empty"), Keeping(0, "counting")])
    assert router.stored(CHANNEL) == {"keeping": {"list": [1]}, "counting": 0}


def test_what_is_stored_does_not_change_with_the_mini_app() -> None:
    app = Keeping({"list": [1]})
    stored = MiniAppRouter([app]).stored(CHANNEL)
    app.kept["list"].append(2)
    assert stored == {"keeping": {"list": [1]}}


@pytest.mark.parametrize("kept", [{1, 2}, {5: "five"}, b"x", object(), [object()], "\ud800", 2**64])
def test_what_is_no_json_is_logged_and_left_out(kept: object) -> None:
    with capture_logs() as logs:
        assert MiniAppRouter([Keeping(kept, "odd"), Keeping(1)]).stored(CHANNEL) == {"keeping": 1}
    assert [(entry["log_level"], entry["miniapp"]) for entry in logs] == [("error", "odd")]


def test_each_is_given_back_its_own_and_what_nobody_has_kept_is_dropped() -> None:
    first, second = Keeping(miniapp_id="first"), Keeping(miniapp_id="second")
    MiniAppRouter([first, second, Plain()]).restore(CHANNEL, {"second": [2], "plain": 1, "gone": 3})
    assert (first.asked, second.asked) == ([], [(CHANNEL, [2])])


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, asyncio.CancelledError])
def test_one_that_fails_at_it_is_logged_and_holds_up_nobody(error: type[BaseException]) -> None:
    failing, app = Failing(miniapp_id="failing"), Keeping("kept")
    failing.error = error
    router = MiniAppRouter([failing, app])
    with capture_logs() as logs:
        assert router.stored(CHANNEL) == {"keeping": "kept"}
        router.restore(CHANNEL, {"failing": 1, "keeping": 2})
        router.expire(CHANNEL, 500)
    assert app.asked == [(CHANNEL, 2), (CHANNEL, 500)]
    assert [entry["miniapp"] for entry in logs] == ["failing"] * 3


@pytest.mark.parametrize("app", [Keeping(), Failing()])
async def test_after_each_turn_the_channel_is_told_to_have_changed(app: MiniApp) -> None:
    changed: list[ChatGuid] = []
    router = MiniAppRouter([app], on_change=changed.append)
    await router.route_to_miniapp_if_applicable(told())
    assert changed == [CHANNEL]


@pytest.mark.parametrize(
    "drop",
    [
        lambda router: router.forget(CHANNEL, ANNA),
        lambda router: router.retract(CHANNEL, {1}),
        lambda router: router.expire(CHANNEL, 500),
    ],
)
@pytest.mark.parametrize("app", [Keeping(), Failing()])
def test_whatever_is_dropped_the_channel_is_told_to_have_changed(
    app: MiniApp, drop: Callable[[MiniAppRouter], None]
) -> None:
    changed: list[ChatGuid] = []
    drop(MiniAppRouter([app], on_change=changed.append))
    assert changed == [CHANNEL]


# The trip planner


async def planned(planner: TripPlanner) -> None:
    """Anna names the trip and adds a place, Ben adds another by its name only, and notes something on it."""
    await said(planner, "create a trip called Tokyo <3", message_id=101)
    await said(planner, "add tokyo tower", message_id=102)
    offer = await said(planner, "add the corner bar", BEN, message_id=103)
    added = await planner.handle(resolved(offer, "yes", BEN, type="confirmation", confirmed=True))
    assert added.ask
    note = {"type": "metadata", "metadata_type": "vibe", "content": "cosy", **added.ask.context}
    await planner.handle(resolved(added, "it's cosy", BEN, **note))


def restarted(planner: TripPlanner, chat_guid: ChatGuid = CHANNEL) -> TripPlanner:
    later = TripPlanner()
    later.restore(chat_guid, json.loads(json.dumps(planner.stored(chat_guid))))
    return later


async def test_a_trip_comes_back_as_it_was() -> None:
    planner = TripPlanner()
    await planned(planner)
    later = restarted(planner)
    assert later._trips == planner._trips
    assert later.stored(CHANNEL) == planner.stored(CHANNEL)
    shown = (await said(planner, "show our trip")).message
    assert "corner bar" in shown
    assert (await said(later, "show our trip")).message == shown


async def test_what_was_said_can_be_forgotten_after_the_restart() -> None:
    planner = TripPlanner()
    await planned(planner)
    later = restarted(planner)
    later.forget(CHANNEL, BEN)
    later.retract(CHANNEL, {101})
    assert (await said(later, "show our trip")).message.splitlines()[:-1] == [
        "**Trip** (1 venue)",
        "1. Tokyo Tower Minato, Tokyo (added by Anna)",
    ]


async def test_what_is_too_old_is_dropped_as_if_it_were_deleted() -> None:
    planner = TripPlanner()
    await planned(planner)
    planner.expire(CHANNEL, 101)
    before = planner.stored(CHANNEL)
    planner.expire(CHANNEL, 103)
    assert planner.stored(CHANNEL) != before
    lines = (await said(planner, "show our trip")).message.splitlines()[:-1]
    assert lines == [
        "**Trip** (2 venues)",
        "1. Tokyo Tower Minato, Tokyo",
        "2. the corner bar (added by Ben)",
        "   - vibe: cosy",
    ]


async def test_an_empty_trip_is_not_worth_storing() -> None:
    planner = TripPlanner()
    assert planner.stored(CHANNEL) is None
    await said(planner, "create a trip called Tokyo", message_id=101)
    assert planner.stored(CHANNEL)
    planner.expire(CHANNEL, 500)
    assert planner.stored(CHANNEL) is None
    planner.expire(CHANNEL + 1, 500)
    assert (await said(planner, "show our trip")).message == EMPTY


@pytest.mark.parametrize("stored", ["Tokyo", [], {"name": 5}, {"stops": [{}]}, {"name": "x", "said": "Anna"}, None])
async def test_what_is_no_trip_is_logged_and_leaves_the_list_alone(stored: JsonValue) -> None:
    planner = TripPlanner()
    await planned(planner)
    before = planner.stored(CHANNEL)
    with capture_logs() as logs:
        MiniAppRouter([planner]).restore(CHANNEL, {"trip_planner": stored})
    assert [entry["miniapp"] for entry in logs] == ["trip_planner"]
    assert planner.stored(CHANNEL) == before
