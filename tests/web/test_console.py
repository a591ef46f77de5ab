"""The console over real HTTP: who gets in, what a form must bear, and what every answer bears."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientResponse, ClientSession, CookieJar
from yarl import URL

from bot import create_bot
from config import Settings
from health import Health
from web.console import access
from web.console.access import WRONG_BY_ADDRESS, WRONG_IN_ALL, Password, Sessions
from web.console.page import HERE
from web.site import Site

PASSWORD = "correct horse"
OWN = {"Sec-Fetch-Site": "same-origin"}


class Seconds:
    """A clock that is turned by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def opened(site: Site, *, has_bot: bool = True) -> AsyncIterator[ClientSession]:
    """A visitor who keeps cookies, also those of an address without a name."""
    if has_bot:
        site.show(create_bot(Settings(decision_log="off")).shown)
    async with (
        site.served(0, "127.0.0.1") as address,
        ClientSession(address, cookie_jar=CookieJar(unsafe=True)) as visitor,
    ):
        yield visitor


@pytest.fixture
async def visitor() -> AsyncIterator[ClientSession]:
    async with opened(Site(Health(), password=PASSWORD)) as found:
        yield found


async def log_in(visitor: ClientSession, password: str = PASSWORD, **headers: str) -> ClientResponse:
    form = {"password": password}
    return await visitor.post("/console/login", data=form, headers={**OWN, **headers}, allow_redirects=False)


async def csrf_of(visitor: ClientSession) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', await (await visitor.get("/console")).text())
    assert found
    return found[1]


async def is_in(visitor: ClientSession) -> bool:
    return (await visitor.get("/console", allow_redirects=False)).status == 200


async def lets_in(visitor: ClientSession, cookie: str) -> bool:
    visitor.cookie_jar.clear()
    borne = {"Cookie": f"parley_console={cookie}"}
    return (await visitor.get("/console", headers=borne, allow_redirects=False)).status == 200


async def test_pages_are_for_those_who_know_the_password(visitor: ClientSession) -> None:
    for path in ("/console", "/console/errors", "/console/no-such-page"):
        answer = await visitor.get(path, allow_redirects=False)
        assert (answer.status, answer.headers["Location"]) == (303, "/console/login")
    assert (await visitor.get("/console/live", headers={"Accept": "text/event-stream"})).status == 401
    assert (await log_in(visitor, "wrong")).status == 403
    assert not await is_in(visitor)
    assert (await log_in(visitor)).status == 303
    assert await is_in(visitor)


async def test_the_cookie_is_for_the_console_alone_and_for_no_script(visitor: ClientSession) -> None:
    (await log_in(visitor)).release()
    plain = (await log_in(visitor)).headers["Set-Cookie"]
    assert {"HttpOnly", "Path=/console", "SameSite=Strict"} <= set(plain.split("; "))
    assert "Secure" not in plain
    assert "Secure" in (await log_in(visitor, **{"X-Forwarded-Proto": "https"})).headers["Set-Cookie"]
    assert "Secure" in (await log_in(visitor, Host="bot.example")).headers["Set-Cookie"]


async def test_a_login_begins_a_new_session_and_ends_the_one_before(visitor: ClientSession) -> None:
    await log_in(visitor)
    [before] = visitor.cookie_jar
    await log_in(visitor)
    [after] = visitor.cookie_jar
    assert before.value != after.value
    assert await is_in(visitor)
    assert not await lets_in(visitor, before.value)


async def test_whoever_logs_out_is_out_everywhere(visitor: ClientSession) -> None:
    await log_in(visitor)
    [cookie] = visitor.cookie_jar
    form = {"csrf": await csrf_of(visitor)}
    await visitor.post("/console/logout", data=form, headers=OWN)
    assert not await lets_in(visitor, cookie.value)


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, True),
        ({"Sec-Fetch-Site": "same-site"}, True),
        ({"Origin": "https://evil.example"}, True),
        ({"Origin": "null"}, True),
        (OWN, False),
    ],
)
async def test_a_form_of_another_page_changes_nothing(
    visitor: ClientSession, headers: dict[str, str], token: bool
) -> None:
    await log_in(visitor)
    form = {"csrf": await csrf_of(visitor) if token else "made up"}
    answer = await visitor.post("/console/logout", data=form, headers=headers, allow_redirects=False)
    assert answer.status == 403
    assert "did not come from this console" in await answer.text()
    assert await is_in(visitor)


async def test_another_page_cannot_try_passwords(visitor: ClientSession) -> None:
    assert (await log_in(visitor, **{"Sec-Fetch-Site": "cross-site"})).status == 403
    assert not await is_in(visitor)


async def test_five_wrong_passwords_are_enough_for_a_minute(visitor: ClientSession) -> None:
    for _ in range(WRONG_BY_ADDRESS):
        assert (await log_in(visitor, "wrong")).status == 403
    refused = await log_in(visitor)
    assert refused.status == 429
    assert 0 < int(refused.headers["Retry-After"]) <= 61
    assert "too many wrong passwords: try again in" in await refused.text()
    assert (await log_in(visitor, **{"X-Forwarded-For": "10.0.0.1, 10.0.0.2"})).status == 303, "somebody else's proxy"


def test_wrong_passwords_are_counted_for_a_minute_and_tries_that_come_too_soon_are_not() -> None:
    clock = Seconds()
    password = Password(PASSWORD, clock)
    for _ in range(WRONG_BY_ADDRESS):
        assert not password.accepts("wrong", "here")
        clock.now += 10
    assert password.seconds_to_wait("here") == 11
    assert password.seconds_to_wait("there") == 0
    clock.now += 11
    assert password.seconds_to_wait("here") == 0
    assert password.accepts(PASSWORD, "here")


def test_addresses_that_are_made_up_do_not_get_past_the_limit_for_all() -> None:
    clock = Seconds()
    password = Password(PASSWORD, clock)
    assert password.accepts(PASSWORD, "the owner's")
    for number in range(WRONG_IN_ALL):
        assert password.seconds_to_wait(str(number)) == 0
        password.accepts("wrong", str(number))
    assert password.seconds_to_wait("another") > 0
    assert password.seconds_to_wait("the owner's") == 0, "whoever runs it is locked out by nobody else"
    clock.now += access.MINUTE
    assert password.seconds_to_wait("another") == 0


async def test_a_password_of_ten_thousand_characters_is_wrong_and_a_longer_form_is_not_read(
    visitor: ClientSession,
) -> None:
    assert (await log_in(visitor, "x" * 10_000)).status == 403
    assert (await log_in(visitor, "x" * 100_000)).status == 413
    assert (await visitor.post("/console/login", json={"password": PASSWORD}, headers=OWN)).status == 415


def test_sessions_end_by_themselves_and_are_not_more_than_there_is_room_for() -> None:
    clock = Seconds()
    sessions = Sessions(clock)
    cookie, session = sessions.begin()
    assert len(cookie) >= 43
    assert sessions.find(cookie) is session
    clock.now += access.SESSION_SECONDS
    assert sessions.find(cookie) is None
    for _ in range(access.MOST_SESSIONS + 5):
        sessions.begin()
    assert len(sessions) == access.MOST_SESSIONS


async def test_every_answer_says_what_a_browser_may_do_with_it(visitor: ClientSession) -> None:
    await log_in(visitor)
    for path in ("/console", "/console/login", "/console/nothing", "/console/static/console.js", "/healthz"):
        answer = await visitor.get(path)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "same-origin"
    assert (await visitor.get("/console")).headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("name", ["..%2fpage.py", "../page.py", "%2e%2e/page.py", "layout.html", "console.js%00", ""])
async def test_no_other_file_is_served(visitor: ClientSession, name: str) -> None:
    answer = await visitor.get(URL(f"/console/static/{name}", encoded=True), allow_redirects=False)
    assert answer.status in (303, 404)


async def test_without_a_password_there_is_a_console_on_its_own_machine_alone() -> None:
    async with opened(Site(Health())) as visitor:
        assert (await visitor.get("/console")).status == 404
    async with opened(Site(Health(), is_local=True)) as visitor:
        assert await is_in(visitor)
        assert len(list(visitor.cookie_jar)) == 1
        for host in ("evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "[", ""):
            for path in ("/console", "/healthz"):
                answer = await visitor.get(path, headers={"Host": host}, allow_redirects=False)
                assert answer.status in (400, 421), host
        assert (await visitor.get("/console", headers={"Host": "localhost:1"})).status == 200
        assert (await visitor.get("/console", headers={"Host": "[::1]:1"})).status == 200


async def test_before_there_is_a_bot_that_is_said() -> None:
    async with opened(Site(Health(), is_local=True), has_bot=False) as visitor:
        answer = await visitor.get("/console")
        assert answer.status == 503
        assert "The bot is starting" in await answer.text()


def test_no_template_has_anything_inline_or_unescaped() -> None:
    templates = [*(HERE / "templates").glob("*.html")]
    assert templates
    for template in templates:
        text = template.read_text()
        assert not re.search(r"\sstyle=|\son\w+=|<script>|\|\s*safe", text), template
