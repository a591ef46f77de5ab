"""The pages of places and people over real HTTP: what they show, what they escape, and the pause."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
import structlog
from aiohttp import ClientSession, CookieJar

from activity import Ending, Fault, FaultKind, TurnEnded
from cluster.connection import Cluster
from decision import EXPLICIT
from health import Health
from place import Place, SeenPlace
from place_settings.fields import Level
from shards import Shards
from state.budget import Budget
from state.ledger import Ledger
from state.limits import Limits
from state.spending import NOBODY, Payer, Purpose, Spent
from tests.support.clock import NOON, FakeClock
from tests.support.people import ANNA, BEN, BOT, CHANNEL, GUILD, said
from tests.web.console_support import CATEGORY, THREAD, MadeUp, made_up
from tests.web.test_console import OWN
from turns.turn import Question, Turn
from web.console import stream
from web.console.place_pages import PAGE_ROWS
from web.shown import Shown
from web.site import Site

HOSTILE = """<script>alert("1")</script><img src=x onerror='alert(2)'>"""
CHANNEL_PAGE = f"/console/places/{GUILD}/{CHANNEL}"


@pytest.fixture
async def shown(tmp_path: Path) -> AsyncIterator[Shown]:
    async with made_up(tmp_path, FakeClock()) as parts:
        yield parts


@asynccontextmanager
async def visiting(shown: Shown, *, shows_content: bool = True) -> AsyncIterator[ClientSession]:
    """A visitor of a console that only this machine reaches."""
    site = Site(Health(), is_local=True, shows_content=shows_content)
    site.shown = shown
    async with (
        site.served(0, "127.0.0.1") as address,
        ClientSession(address, cookie_jar=CookieJar(unsafe=True)) as visitor,
    ):
        await visitor.get("/console")
        yield visitor


async def read(visitor: ClientSession, path: str) -> str:
    answer = await visitor.get(path)
    assert answer.status == 200
    return await answer.text()


async def test_names_and_messages_are_shown_as_they_are_and_do_nothing(shown: Shown) -> None:
    places = (
        SeenPlace(CATEGORY, Level.CATEGORY, "category", HOSTILE),
        SeenPlace(CHANNEL, Level.CHANNEL, "text", HOSTILE, category_id=CATEGORY),
        SeenPlace(THREAD, Level.THREAD, "public thread", HOSTILE, CHANNEL, CATEGORY),
    )
    shown = replace(shown, servers=MadeUp({GUILD: places}, HOSTILE))
    shown.guild_settings.change(GUILD, CHANNEL, Level.CHANNEL, {"persona": HOSTILE}, by=BOT, now=NOON)
    question = said(ANNA, HOSTILE, author=HOSTILE)
    shown.conversations.start(CHANNEL, [question])
    decision = replace(EXPLICIT, evidence=HOSTILE, contrary=HOSTILE, agent=HOSTILE, model=HOSTILE)
    shown.decisions.add(question.message_id, CHANNEL, ANNA, decision, GUILD)
    shown.limits.spend(Spent("m", 1, 1), NOON, Payer(GUILD, frozenset({ANNA}), CHANNEL), Purpose.ANSWER)
    async with visiting(shown) as visitor:
        for path in ("/console/places", f"/console/places/{GUILD}", CHANNEL_PAGE, "/console/people"):
            page = await read(visitor, path)
            assert "&lt;script&gt;alert(&#34;1&#34;)" in page
            assert not [raw for raw in ("<script>", "<img src=x", 'alert("1")', "'alert(2)'") if raw in page]


async def test_without_content_no_page_has_words_or_names(shown: Shown) -> None:
    shown.conversations.start(CHANNEL, [said(ANNA, "my secret"), said(BEN, "and mine")])
    shown.limits.spend(Spent("m", 1, 1), NOON, Payer(GUILD, frozenset({ANNA}), CHANNEL), Purpose.ANSWER)
    async with visiting(shown, shows_content=False) as visitor:
        pages = [await read(visitor, one) for one in (f"/console/places/{GUILD}", CHANNEL_PAGE, "/console/people")]
    assert "hidden: set CONSOLE_SHOW_CONTENT=true" in pages[1]
    assert f"{ANNA}" in pages[2]
    assert not [word for word in ("secret", "mine", "Anna", "Ben", "cats") for page in pages if word in page]


async def test_the_button_pauses_a_server_and_has_it_go_on(shown: Shown) -> None:
    async with visiting(shown) as visitor:
        for on, badge in (("1", True), ("0", False)):
            csrf = re.findall(r'name="csrf" value="([^"]+)"', await read(visitor, "/console/places"))[0]
            form = {"csrf": csrf, "on": on}
            with structlog.testing.capture_logs() as logs:
                answer = await visitor.post(f"/console/places/{GUILD}/pause", data=form, headers=OWN)
            assert (answer.status, answer.url.path) == (200, f"/console/places/{GUILD}")
            assert shown.guild_settings.is_paused(GUILD) is badge
            assert ("It answers nobody in this server" in await answer.text()) is badge
            event = "paused" if badge else "resumed_answering"
            assert {"event": event, "log_level": "warning", "guild": GUILD, "by": "console"} in logs
        forged = await visitor.post(f"/console/places/{GUILD}/pause", data={"on": "1"}, headers=OWN)
        nowhere = await visitor.post("/console/places/9/pause", data=form, headers=OWN)
        assert (forged.status, nowhere.status) == (403, 404)
    assert not shown.guild_settings.is_paused(GUILD)


async def test_the_overview_does_not_call_a_bot_well_whose_answers_fail(shown: Shown) -> None:
    health = Health()
    health.gateway_up()
    shown = replace(shown, health=health)
    async with visiting(shown) as visitor:
        assert "It is well" in await read(visitor, "/console")
        shown.faults.failed(Fault(FaultKind.MODEL, "denied", "The model refused <its key>.", shown.clock()))
        page = await read(visitor, "/console")
    assert "It is well" not in page
    assert '<a href="/console/errors">The model refused &lt;its key&gt;.</a>' in page
    assert f'at <time datetime="{shown.clock().isoformat()}">' in page


async def test_the_errors_page_advises_by_what_went_wrong(shown: Shown) -> None:
    for code, says in (("empty", "The model gave an empty answer."), ("busy", "The model was overloaded.")):
        shown.faults.failed(Fault(FaultKind.MODEL, code, says, shown.clock()))
    async with visiting(shown) as visitor:
        overloaded, empty = (
            (await read(visitor, "/console/errors")).split("overloaded.", 1)[1].split("empty answer.", 1)
        )
    assert ("the provider" in overloaded, "Nothing needs to be done" in overloaded) == (True, False)
    assert ("the provider" in empty, "Nothing needs to be done" in empty) == (False, True)


async def test_the_overview_names_no_cost_where_the_price_is_not_known(shown: Shown) -> None:
    payer = Payer(GUILD, frozenset({ANNA}), CHANNEL)
    async with visiting(shown) as visitor:
        assert "<dt>Cost</dt><dd>$0.00</dd>" in await read(visitor, "/console")
        shown.limits.spend(Spent("nobody:knows", 10, 5), shown.clock(), payer, Purpose.ANSWER)
        assert "<dt>Cost</dt><dd>price not known</dd>" in await read(visitor, "/console")
        shown.limits.spend(Spent("m", 10, 5, micros=500_000), shown.clock(), payer, Purpose.ANSWER)
        assert "<dt>Cost</dt><dd>$0.50</dd>" in await read(visitor, "/console")


async def test_the_overview_says_what_all_processes_used_where_there_are_several(shown: Shown) -> None:
    everywhere = Ledger()
    everywhere.add(NOBODY, Purpose.ANSWER, Spent("m", 400, 100, micros=2_500_000))
    limits = Limits(turns_per_user_minute=1, daily_tokens=None, totals=everywhere)  # type: ignore[arg-type]  # for what was charged
    async with visiting(replace(shown, limits=limits)) as visitor:
        page = await read(visitor, "/console")
    assert "<dt>Tokens, all processes</dt><dd>500</dd>" in page
    assert "<dt>Cost, all processes</dt><dd>$2.50</dd>" in page


async def test_the_overview_says_which_shards_are_this_process_where_there_are_several(shown: Shown) -> None:
    cluster = Cluster("redis://127.0.0.1:1")
    cluster.leases.processes = 4
    async with visiting(replace(shown, shards=Shards(6, [3, 0]), cluster=cluster)) as visitor:
        page = await read(visitor, "/console")
    assert "<dt>Shards of this process</dt><dd>0, 3 of 6</dd>" in page
    assert "<dt>Processes, with this one</dt><dd>4</dd>" in page


async def test_the_overview_counts_what_is_asked_in_private_among_the_answers_being_made(shown: Shown) -> None:
    turns = [Turn([Question(said(ANNA, "what?"), Place(GUILD, CHANNEL))]) for _ in range(3)]
    async with visiting(shown) as visitor, AsyncExitStack() as made:
        for turn in turns:
            turn.allowance = Budget(shown.limits, shown.clock).allowance(turn.payer)
            await made.enter_async_context(shown.slots.taken(turn))
        assert turn.allowance.slot
        turn.allowance.slot.leave([])
        page = await read(visitor, "/console")
    assert "<dt>Answers being made</dt><dd>2</dd>" in page
    assert "<dt>Waiting for their turn</dt><dd>1</dd>" in page


async def test_what_is_not_there_is_said_so_on_a_page(shown: Shown) -> None:
    async with visiting(shown) as visitor:
        for path in ("9", "x", f"{GUILD}/9", f"{GUILD}/{CATEGORY}", f"9/{CHANNEL}/live", f"{GUILD}/..%2f..%2fetc"):
            assert (await visitor.get(f"/console/places/{path}")).status == 404
        for page in ("0", "-1", "x", "9" * 5_000, "99"):
            assert "<h1>Places</h1>" in await read(visitor, f"/console/places?page={page}")


async def test_of_many_places_a_page_shows_some(shown: Shown) -> None:
    many = tuple(SeenPlace(one, Level.CHANNEL, "text", f"channel-{one}") for one in range(1, 10_001))
    shown = replace(shown, servers=MadeUp({GUILD: many}))
    for one in range(1, 10_001, 10):
        shown.conversations.start(one, [said(ANNA)])
    async with visiting(shown) as visitor:
        for path, first, last in (
            (f"/console/places/{GUILD}", 1, PAGE_ROWS),
            (f"/console/places/{GUILD}?page=100", 9_901, 10_000),
            (f"/console/places/{GUILD}?live&page=10", 9_001, 9_991),
        ):
            page = await read(visitor, path)
            assert page.count("<h2><a ") == PAGE_ROWS
            assert f">channel-{first}<" in page
            assert f">channel-{last}<" in page
        assert "?live&amp;page=9" in page


async def test_a_channel_is_followed_as_it_goes_on(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "INTERVAL_SECONDS", 0.01)
    question = said(ANNA, "hello?", NOON)
    async with visiting(shown) as visitor, visitor.get(f"{CHANNEL_PAGE}/live") as live:

        async def comes(words: str) -> None:
            async for line in live.content:
                if line.startswith(b"data: ") and words in orjson.loads(line[6:]).get("feed", ""):
                    return

        await comes("Nothing has been said here")
        shown.conversations.start(CHANNEL, [question])
        await comes(">deciding<")
        shown.conversations.revise(CHANNEL, replace(question, content="hello there?"))
        await comes("hello there?")
        shown.decisions.add(question.message_id, CHANNEL, ANNA, EXPLICIT, GUILD)
        await comes("answered: you mentioned me")
        shown.conversations.forget_messages(CHANNEL, [question.message_id])
        shown.decisions.discard(question.message_id)
        await comes("Nothing has been said here")


async def test_what_was_answered_without_a_model_has_no_price_to_know(shown: Shown) -> None:
    async with visiting(shown) as visitor:
        for spent, is_priced in ((Spent("m", 1, 1),), True), ((), False):
            message = said(ANNA, "list our trip")
            shown.conversations.start(CHANNEL, [message])
            ended = (Ending.ANSWERED, "finished", NOON, 1.0, 0.5, "trip_planner", "", (), spent)
            shown.activity.turn_ended(TurnEnded(GUILD, CHANNEL, (message.message_id,), *ended))
            page = await read(visitor, CHANNEL_PAGE)
            assert "trip_planner" in page
            assert ("price not known" in page, "tokens" in page) == (is_priced, is_priced)


async def test_where_a_price_is_not_known_no_page_says_that_it_cost_nothing(shown: Shown) -> None:
    async with visiting(shown) as visitor:
        assert "price not known" not in await read(visitor, "/console")
        shown.limits.spend(Spent("m", 1, 1), NOON, Payer(GUILD, frozenset({ANNA}), CHANNEL), Purpose.ANSWER)
        pages = [await read(visitor, f"/console{path}") for path in ("", "/places", f"/places/{GUILD}", "/people")]
    assert [page.count("price not known") for page in pages] == [4, 1, 1, 1]  # the chart has it thrice
