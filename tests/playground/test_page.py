"""The page's endpoints, its event stream, and whom they refuse."""

import io
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import pytest
import yarl

from playground import interactions, permissions
from playground.model import FORUM
from playground.scenes import read_script
from playground.server import Playground
from tests.playground.support import Api

COMMANDS: list[dict[str, Any]] = [{"name": "ping", "description": "Ping"}]
BUTTON = {"type": 2, "style": 1, "label": "ok", "custom_id": "ok"}


class Browser:
    """Requests as the page makes them; answers (status, body)."""

    def __init__(self, pg: Playground, http: aiohttp.ClientSession) -> None:
        self._pg = pg
        self._http = http

    async def call(self, method: str, path: str, json: Any = None, **options: Any) -> tuple[int, Any]:
        async with self._http.request(
            method, yarl.URL(self._pg.url + path, encoded=True), json=json, **options
        ) as response:
            text = response.content_type != "application/json"
            return response.status, await (response.text() if text else response.json())

    async def post(self, **body: Any) -> tuple[int, Any]:
        given = {"author_id": str(self._pg.person("Ada")), "content": "hello"} | body
        return await self.call("POST", f"/page/channels/{self._pg.channel('general')}/messages", given)


@pytest.fixture
def browser(pg: Playground, http: aiohttp.ClientSession) -> Browser:
    return Browser(pg, http)


class Events:
    """The page's event stream."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def next(self) -> dict[str, Any]:
        frame: dict[str, Any] = await self._socket.receive_json(timeout=5)
        return frame


@pytest.fixture
async def events(pg: Playground, http: aiohttp.ClientSession) -> AsyncIterator[Events]:
    """Past the first frame."""
    async with http.ws_connect(f"{pg.url}/page/events") as socket:
        stream = Events(socket)
        assert (await stream.next())["type"] == "world"
        yield stream


async def test_the_page_is_served_with_its_parts(browser: Browser) -> None:
    status, page = await browser.call("GET", "/")
    assert (status, "<html" in page) == (200, True)
    assert (await browser.call("GET", "/page/index.html"))[0] == 200
    for name in ("nothing.js", "..%2fpage.py", "%2e%2e%2fpage.py", "..", "%ff", "%00", "x" * 5000):
        assert (await browser.call("GET", f"/page/{name}"))[0] == 404


async def test_the_first_frame_is_the_world(pg: Playground, http: aiohttp.ClientSession) -> None:
    message = pg.post(pg.channel("general"), pg.person("Ada"), "hello")
    pg.annotate(message.id, respond=False, reason="no_trigger", text="silent: nobody asked")
    async with http.ws_connect(f"{pg.url}/page/events") as socket:
        world = await Events(socket).next()
    assert [channel["name"] for channel in world["channels"]] == ["general", "help", "random"]
    assert [person["name"] for person in world["people"]] == ["Ada", "Ben", "Chloe"]
    assert world["bot"] == {"id": str(pg.bot_id), "name": "Parley", "connected": False, "member": True}
    assert world["messages"][str(message.channel_id)][0]["content"] == "hello"
    assert world["annotations"][str(message.id)]["text"] == "silent: nobody asked"


async def test_the_page_is_told_who_may_use_which_command(pg: Playground, events: Events) -> None:
    managers = {"name": "manage", "description": "x", "default_member_permissions": "16"}
    admins = {"name": "rule", "description": "x", "default_member_permissions": "0"}
    pg.commands.overwrite([*COMMANDS, managers, admins])
    use = permissions.BITS["use_application_commands"]
    told = {one["name"]: int(one["needed"]) for one in (await events.next())["commands"]}
    assert told == {"ping": use, "manage": use | 16, "rule": use | 8}
    pg.allow(pg.channel("help"), "manage_channels", member=pg.person("Ben"))
    world = await events.next()
    manages = {
        channel["name"]: [pg.world.user(int(one)).name for one, own in channel["permissions"].items() if int(own) & 16]
        for channel in world["channels"]
    }
    assert manages == {"general": ["Ada"], "help": ["Ada", "Ben"], "random": ["Ada"]}


async def test_everything_that_happens_is_told(pg: Playground, events: Events) -> None:
    channel, ada = pg.channel("general"), pg.person("Ada")
    message = pg.post(channel, ada, "hello")
    pg.typing(channel, ada)
    pg.react(message, ada, "👍")
    pg.edit(message, "hello!")
    pg.annotate(message.id, respond=True, reason="explicit_trigger", text="answered: you mentioned me")
    pg.delete(message)
    pg.add_channel("new")
    frames = [await events.next() for _ in range(7)]
    kinds = "message_create typing reactions message_update annotation message_delete world"
    assert [frame["type"] for frame in frames] == kinds.split()
    assert frames[2]["reactions"] == [{"emoji": "👍", "users": [str(ada)]}]
    assert frames[3]["message"]["content"] == "hello!"
    assert frames[5] == {"type": "message_delete", "channel_id": str(channel), "id": str(message.id)}


async def test_a_scene_is_played_told_of_and_stopped(pg: Playground, browser: Browser, events: Events) -> None:
    channel, title = pg.channel("help"), read_script()[0].title
    path, playing = f"/page/channels/{channel}/scene", {"type": "scene", "channel_id": str(channel)}
    assert await browser.call("PUT", path, {"title": title}) == (200, {})
    assert await events.next() == playing | {"title": title}
    status, refused = await browser.call("PUT", path, {"title": title})
    assert (status, refused["error"]) == (409, f"“{title}” is being played here: let it end, or stop it.")
    assert (await browser.call("PUT", f"/page/channels/{pg.channel('random')}/scene", {"title": "x"}))[0] == 404
    world = pg._page._snapshot()
    assert [one["scene"] for one in world["channels"]] == [None, title, None]
    assert [one["title"] for one in world["scenes"]] == [scene.title for scene in read_script()]
    assert (await events.next())["type"] == "typing"
    assert await browser.call("DELETE", path) == (200, {})
    assert await events.next() == playing | {"title": None}


async def test_the_bot_is_removed_and_let_in_again_on_the_page(
    pg: Playground, browser: Browser, events: Events
) -> None:
    pg.commands.overwrite(COMMANDS)
    assert (await events.next())["type"] == "commands"
    for method, is_member in (("DELETE", False), ("PUT", True)):
        for _ in range(2):  # the second one changes nothing
            assert await browser.call(method, "/page/bot") == (200, {})
        world = await events.next()
        assert (world["type"], world["bot"]["member"], len(world["commands"])) == ("world", is_member, is_member)
    pg.typing(pg.channel("general"), pg.person("Ada"))
    assert (await events.next())["type"] == "typing"


async def test_a_person_posts_edits_replies_reacts_and_deletes(pg: Playground, browser: Browser) -> None:
    status, first = await browser.post(content=" hello ")
    assert (status, first["content"]) == (200, "hello")
    channel, ada = pg.channel("general"), pg.person("Ada")
    _, reply = await browser.post(content="and", reply_to=first["id"], ping=False, author_id=str(pg.person("Ben")))
    assert reply["referenced_message"]["id"] == first["id"]
    assert pg.messages(channel)[1].pinged == frozenset()
    path = f"/page/channels/{channel}/messages/{first['id']}"
    assert (await browser.call("PATCH", path, {"author_id": str(ada), "content": "hi"}))[1]["content"] == "hi"
    thumb = f"{path}/reactions/%F0%9F%91%8D?author_id={ada}"
    assert (await browser.call("PUT", thumb))[0] == 200
    assert pg.messages(channel)[0].reactions[0].users == (ada,)
    assert (await browser.call("DELETE", thumb))[0] == 200
    assert (await browser.call("POST", f"/page/channels/{channel}/typing", {"author_id": str(ada)}))[0] == 200
    assert (await browser.call("DELETE", f"{path}?author_id={ada}"))[0] == 200
    assert [message.content for message in pg.messages(channel)] == ["and"]


async def test_a_person_uses_a_command_and_sees_its_private_answer(
    pg: Playground, browser: Browser, api: Api, events: Events
) -> None:
    _, [command] = await api.call("PUT", f"/applications/{pg.bot_id}/commands", COMMANDS)
    assert (await events.next())["commands"][0]["name"] == "ping"
    channel, ada = pg.channel("general"), str(pg.person("Ada"))
    body = {"author_id": ada, "command_id": command["id"], "options": {}}
    assert (await browser.call("POST", f"/page/channels/{channel}/commands", body))[0] == 200
    [made] = pg.interactions.recent()
    data = {"content": "pong", "flags": 64, "components": [{"type": 1, "components": [BUTTON]}]}
    await api.call("POST", f"/interactions/{made.id}/{made.token}/callback", {"type": 4, "data": data})
    told = await events.next()
    assert (told["type"], told["user_id"], told["message"]["content"]) == ("ephemeral", ada, "pong")
    click = {"author_id": ada, "message_id": told["message"]["id"], "custom_id": "ok"}
    assert (await browser.call("POST", f"/page/channels/{channel}/components", click))[0] == 200
    assert pg.interactions.recent()[-1].type == 3
    await api.call("DELETE", f"/webhooks/{pg.bot_id}/{made.token}/messages/@original")
    assert (await events.next())["type"] == "message_delete"


async def test_a_person_is_shown_a_form_and_sends_it(
    pg: Playground, browser: Browser, api: Api, events: Events
) -> None:
    channel, ada = pg.channel("general"), str(pg.person("Ada"))
    await api.send(channel, content="Well?", components=[{"type": 1, "components": [BUTTON]}])
    assert (await events.next())["type"] == "message_create"
    made = pg.click(pg.messages(channel)[0], int(ada), "ok")
    text_input = {"type": 4, "custom_id": "text", "style": 1, "required": True}
    form = {"title": "Tell", "custom_id": "tell", "components": [{"type": 18, "label": "x", "component": text_input}]}
    await api.call("POST", f"/interactions/{made.id}/{made.token}/callback", {"type": 9, "data": form})
    place = {"user_id": ada, "channel_id": str(channel)}
    assert await events.next() == {"type": "form", **place, "interaction_id": str(made.id), "form": form}
    path, body = f"/page/channels/{channel}/forms", {"author_id": ada, "interaction_id": str(made.id)}
    assert (await browser.call("POST", path, body | {"values": {"text": ""}}))[0] == 400
    assert (await browser.call("POST", path, body | {"values": ["x"]}))[0] == 400
    assert (await browser.call("POST", path, body | {"values": {"text": "x"}, "interaction_id": "1"}))[0] == 404
    as_ben = {"author_id": str(pg.person("Ben"))}
    assert (await browser.call("POST", path, body | as_ben | {"values": {"text": "x"}}))[0] == 404
    assert (await browser.call("POST", path, body | {"values": {"text": "hello"}}))[0] == 200
    sent = pg.interactions.recent()[-1]
    assert (sent.type, sent.data["components"][0]["component"]["value"]) == (5, "hello")


async def test_a_click_that_nobody_answers_in_time_is_told_as_failed(
    pg: Playground, api: Api, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interactions, "_ANSWER_SECONDS", 0.05)
    channel, ada, ben = pg.channel("general"), pg.person("Ada"), pg.person("Ben")
    await api.send(channel, content="Well?", components=[{"type": 1, "components": [BUTTON]}])
    message = pg.messages(channel)[0]
    answered = pg.click(message, ada, "ok")
    await api.call("POST", f"/interactions/{answered.id}/{answered.token}/callback", {"type": 6})
    pg.click(message, ben, "ok")
    assert (await events.next())["type"] == "message_create"
    place = {"user_id": str(ben), "channel_id": str(channel)}
    assert await events.next() == {"type": "interaction_failed", **place, "message_id": str(message.id)}


async def test_bad_posts_get_one_sentence(pg: Playground, browser: Browser) -> None:
    wrong: list[dict[str, Any]] = [
        *({"content": value} for value in ("", "   ", 3, None, "x" * 4001)),
        *({"author_id": value} for value in ("1", None, ["1"], "9" * 5000, "²")),
        *({"reply_to": value} for value in ("1", "x")),
        {"ping": "yes"},
    ]
    for body in wrong:
        status, answer = await browser.post(**body)
        assert 400 <= status < 500
        assert list(answer) == ["error"]
        assert answer["error"].endswith(".")
    assert pg.messages(pg.channel("general")) == []
    assert (await browser.post(content="x" * 4000))[0] == 200


async def test_bad_requests_of_all_kinds_are_4xx(pg: Playground, browser: Browser) -> None:
    ada, here = str(pg.person("Ada")), f"/page/channels/{pg.channel('general')}"
    own = pg.post(pg.channel("general"), pg.bot_id, "mine")
    message, says = f"{here}/messages/{own.id}", {"author_id": ada, "content": "x"}
    clicks = {"author_id": ada, "message_id": str(own.id), "custom_id": "x"}
    requests: list[tuple[str, str, Any]] = [
        ("POST", "/page/channels/1/messages", says),
        ("POST", "/page/channels/x/messages", says),
        ("POST", f"{here}/messages", [1]),
        ("POST", f"{here}/messages", says | {"author_id": str(pg.bot_id)}),
        ("PATCH", message, says),
        ("PUT", "/page/channels/1/scene", {"title": read_script()[0].title}),
        ("PUT", f"{here}/scene", {"title": 3}),
        ("DELETE", "/page/channels/1/scene", None),
        ("DELETE", f"{message}?author_id={ada}", None),
        ("DELETE", message, None),
        ("PUT", f"{message}/reactions/text?author_id={ada}", None),
        ("POST", "/page/channels/1/typing", {"author_id": ada}),
        ("POST", f"{here}/commands", {"author_id": ada, "command_id": "1"}),
        ("POST", f"{here}/commands", {"author_id": ada, "command_id": "1", "options": [1]}),
        ("POST", f"{here}/components", clicks | {"message_id": "1"}),
        ("POST", f"{here}/components", clicks | {"values": [[1]]}),
    ]
    for method, path, body in requests:
        status, answer = await browser.call(method, path, body)
        assert 400 <= status < 500, (method, path, answer)
        assert answer["error"]
    for data, status in ((b"{", 400), (b"[" * 60_000, 400), (b" " * 100_000, 413)):
        assert (await browser.call("POST", f"{here}/messages", data=data))[0] == status


async def test_foreign_hosts_and_origins_are_refused_everywhere(pg: Playground, browser: Browser) -> None:
    post = f"/page/channels/{pg.channel('general')}/messages"
    body = {"author_id": str(pg.person("Ada")), "content": "x"}
    foreign = [{"Host": host} for host in ("evil.example", "evil.example:80", "192.0.2.1", "[::1")]
    foreign += [{"Origin": name} for name in ("http://evil.example", "null", "http://127.0.0.1:1", "http://[")]
    for headers in foreign:
        for path in ("/", "/page/events", "/api/v10/gateway", "/gateway"):
            assert (await browser.call("GET", path, headers=headers))[0] == 403
        assert (await browser.call("POST", post, body, headers=headers))[0] == 403
    assert pg.messages(pg.channel("general")) == []
    for host in (f"127.0.0.1:{pg.port}", f"localhost:{pg.port}", f"[::1]:{pg.port}"):
        assert (await browser.call("GET", "/", headers={"Host": host, "Origin": f"http://{host}"}))[0] == 200


async def test_listening_everywhere_takes_addresses_but_no_names(http: aiohttp.ClientSession) -> None:
    async with Playground("0.0.0.0") as pg:  # noqa: S104 - what is tested
        for host, status in (("192.0.2.1", 200), ("evil.example", 403)):
            url = f"http://127.0.0.1:{pg.port}/api/v10/gateway"
            async with http.get(url, headers={"Host": host}) as response:
                assert response.status == status


async def test_uploads_that_could_act_as_a_page_are_only_downloaded(
    pg: Playground, api: Api, browser: Browser, http: aiohttp.ClientSession
) -> None:
    form = aiohttp.FormData()
    form.add_field("files[0]", b"<script>", filename="x.html", content_type="text/html")
    await api.response("POST", f"/channels/{pg.channel('general')}/messages", data=form)
    url = pg.messages(pg.channel("general"))[0].attachments[0]["url"]
    async with http.get(url) as response:
        assert response.headers["Content-Disposition"] == "attachment"
        assert response.content_type == "application/octet-stream"
    assert (await browser.call("GET", "/attachments/1/1/x"))[0] == 404


async def test_threads_are_opened_changed_and_deleted_by_who_may(pg: Playground, browser: Browser) -> None:
    general, ben = pg.channel("general"), pg.person("Ben")
    as_ada, as_ben = {"author_id": str(pg.person("Ada"))}, {"author_id": str(ben)}
    asked = pg.post(general, ben, "ramen?")
    path = f"/page/channels/{general}/threads"
    body = as_ben | {"name": "Ramen", "message_id": str(asked.id)}
    assert await browser.call("POST", path, body) == (200, {"id": str(asked.id)})
    assert (await browser.call("POST", path, body))[1] == {
        "error": "A thread has already been created for this message."
    }
    _, private = await browser.call("POST", path, as_ben | {"name": "Secret", "private": True})
    assert (await browser.call("POST", path, as_ben | {"name": " "}))[0] == 400
    thread, member = f"/page/channels/{asked.id}", f"/page/channels/{asked.id}/members/{pg.person('Chloe')}"
    assert (await browser.call("PATCH", thread, as_ben | {"name": "Soup", "archived": True}))[0] == 200
    assert (await browser.call("PATCH", thread, as_ben | {"locked": True}))[0] == 403
    assert (await browser.call("DELETE", f"{thread}?author_id={ben}"))[0] == 403
    assert (await browser.call("PATCH", thread, as_ada | {"archived": False, "locked": False}))[0] == 200
    assert (await browser.call("PUT", member, as_ben))[0] == 200
    assert [one.type for one in pg.messages(asked.id)] == [21, 1]
    assert (await browser.call("DELETE", f"{member}?author_id={pg.person('Chloe')}"))[0] == 200
    hidden = f"/page/channels/{private['id']}/members/{pg.person('Chloe')}"
    assert (await browser.call("PUT", hidden, {"author_id": str(pg.person("Chloe"))}))[0] == 403
    assert (await browser.call("PATCH", f"/page/channels/{general}", as_ada | {"name": "x"}))[0] == 400
    assert (await browser.call("DELETE", f"{thread}?author_id={pg.person('Ada')}"))[0] == 200
    assert [one.name for one in pg.world.threads.values()] == ["Secret"]


async def test_posts_files_and_other_bots_come_by_the_page(
    pg: Playground,
    browser: Browser,
    events: Events,
) -> None:
    forum = pg.add_channel("questions", type=FORUM, tags=["code"], needs_tag=True)
    assert (await events.next())["type"] == "world"
    path, body = f"/page/channels/{forum}/threads", {"author_id": str(pg.person("Ada")), "name": "Sorting"}
    assert (await browser.call("POST", path, body | {"content": "how?"}))[0] == 400
    _, made = await browser.call("POST", path, body | {"content": "how?", "tags": ["code"]})
    told = (await events.next())["thread"]
    assert (told["id"], told["tags"], told["members"]) == (made["id"], ["code"], [str(pg.person("Ada"))])
    _, bot = await browser.call("POST", "/page/bots", {"name": "CI"})
    form = aiohttp.FormData()
    form.add_field("payload_json", orjson.dumps({"author_id": bot["id"], "content": ""}).decode())
    form.add_field("files[0]", b"\x89PNG", filename="a.png", content_type="text/html")
    status, posted = await browser.call("POST", f"/page/channels/{made['id']}/messages", data=form)
    assert (status, posted["author"]["username"], posted["author"]["bot"]) == (200, "CI", True)
    assert posted["attachments"][0]["content_type"] == "image/png"
    pg.world.upload_limit = 1 << 20
    form = aiohttp.FormData()
    form.add_field("payload_json", orjson.dumps({"author_id": bot["id"], "content": "x"}).decode())
    form.add_field("files[0]", io.BytesIO(bytes(1 << 20 | 1)), filename="a.txt")
    answer = await browser.call("POST", f"/page/channels/{made['id']}/messages", data=form)
    assert answer == (413, {"error": "That is too large: a file may have 1 MB at most."})
