"""Discord's refusals and rules, by raw requests."""

from io import BytesIO
from typing import Any

import aiohttp

from playground.limits import Limits
from playground.server import Playground
from tests.playground.support import Api, contents

BUTTON = {"type": 2, "style": 1, "label": "ok", "custom_id": "ok"}


def row(*parts: Any) -> dict[str, Any]:
    return {"type": 1, "components": list(parts)}


def buttons(count: int) -> list[dict[str, Any]]:
    return [BUTTON | {"custom_id": str(number)} for number in range(count)]


def menu(count: int, **more: Any) -> dict[str, Any]:
    options = [{"label": str(number), "value": str(number)} for number in range(count)]
    return {"type": 3, "custom_id": "menu", "options": options} | more


UNKNOWN = """
GET /channels/1 404 10003
GET /channels/abc 400 50035
GET /channels/{digits} 400 50035
GET /channels/{general}/messages/1 404 10008
PATCH /channels/{general}/messages/1 404 10008
DELETE /channels/{general}/messages/1 404 10008
PUT /channels/{general}/messages/1/reactions/%F0%9F%91%8D/@me 404 10008
GET /channels/{general}/messages?limit=101 400 50035
GET /channels/{general}/messages?before=x 400 50035
GET /users/1 404 10013
GET /guilds/{guild}/members/1 404 10007
GET /guilds/1/members/{bot} 403 50001
PUT /applications/1/commands 404 10002
PUT /applications/{bot}/guilds/1/commands 403 50001
POST /webhooks/1/token 404 10015
POST /webhooks/{bot}/token 401 50027
POST /interactions/1/token/callback 404 10062
POST /users/@me/channels 400 50035
"""


async def test_requests_that_lead_nowhere_are_refused_as_discord_does(api: Api, pg: Playground) -> None:
    status, body = await api.call("GET", "/users/@me", authorized=False)
    assert (status, body) == (401, {"message": "401: Unauthorized", "code": 0})
    assert await api.call("GET", "/nowhere") == (404, {"message": "404: Not Found", "code": 0})
    assert await api.call("PATCH", "/users/@me") == (405, {"message": "405: Method Not Allowed", "code": 0})
    assert (await api.response("GET", "/users/@me")).headers["Content-Type"] == "application/json"
    path = f"/channels/{pg.channel('general')}/messages"
    assert (await api.response("POST", path, data=b"{")).status == 400
    assert await api.code("POST", path, [1]) == (400, 50109)


async def test_unknown_things(api: Api, pg: Playground) -> None:
    known = {"general": pg.channel("general"), "bot": pg.bot_id, "guild": pg.guild_id, "digits": "9" * 5000}
    for line in UNKNOWN.strip().splitlines():
        method, path, status, code = line.split()
        assert await api.code(method, path.format(**known)) == (int(status), int(code)), line


ALLOWED: list[Any] = [
    [], {"parse": ["all"]}, {"users": ["x"]}, {"users": ["1"] * 101}, {"parse": ["users"], "users": ["1"]},
]  # fmt: skip
REFERENCES: list[dict[str, Any]] = [
    {"message_id": "1"}, {"message_id": "x"}, {"message_id": "1", "channel_id": "1"}, {"message_id": "1", "type": 1},
]  # fmt: skip
WRONG_BUTTONS: list[dict[str, Any]] = [
    {"label": "x" * 81}, {"label": ""}, {"style": 9}, {"custom_id": "x" * 101}, {"custom_id": None},
    {"style": 5, "url": "javascript:x"},
]  # fmt: skip
WRONG_MENUS: list[dict[str, Any]] = [
    {"placeholder": "x" * 151},
    *({"options": options} for options in ([{"label": "x" * 101, "value": "x"}], [{"label": "x"}], ["x"])),
    {"options": [{"label": "a", "value": "x"}, {"label": "b", "value": "x"}]},
    {"max_values": 26},
    {"min_values": "1"},
]
COMPONENTS: list[Any] = [
    "x",
    [BUTTON],
    *([row(*parts)] for parts in ((), ({"type": [1]},), ({"type": 4},), buttons(6), (BUTTON, BUTTON))),
    [row(button) for button in buttons(6)],
    *([row(BUTTON | wrong)] for wrong in WRONG_BUTTONS),
    *([row(*parts)] for parts in ((menu(26),), (menu(0),), (menu(1), BUTTON))),
    *([row(menu(1, **wrong))] for wrong in WRONG_MENUS),
    [row(BUTTON), row(menu(1, custom_id=BUTTON["custom_id"]))],
]
EMBEDS: list[Any] = [
    [{"title": "x" * 257}], [{"description": "x" * 4000}] * 2, [{"fields": [{"name": ""}]}], "x", [1],
]  # fmt: skip
# Of each field the values that are refused.
INVALID: dict[str, list[Any]] = {
    "content": ["x" * 2001, ["x"]],
    "nonce": ["x" * 26, {}],
    "embeds": EMBEDS,
    "flags": ["x"],
    "attachments": [[{"id": "x"}]],
    "allowed_mentions": ALLOWED,
    "message_reference": REFERENCES,
    "components": COMPONENTS,
}


async def test_invalid_bodies_name_the_field(api: Api, pg: Playground) -> None:
    for field, values in INVALID.items():
        for value in values:
            status, answer = await api.send(pg.channel("general"), **{"content": "x", field: value})
            assert (status, answer["code"], list(answer["errors"])) == (400, 50035, [field]), value
    joined = pg.post(pg.channel("general"), pg.person("Ada"), type=7)
    status, body = await api.send(pg.channel("general"), content="x", message_reference={"message_id": joined.id})
    assert (status, body["code"]) == (400, 50035)  # a system message
    assert len(pg.messages(pg.channel("general"))) == 1


async def test_what_is_within_the_limits_passes(api: Api, pg: Playground) -> None:
    link = {"type": 2, "style": 5, "label": "x", "url": "https://example.org"}
    rows = [row(*buttons(5)), row(menu(25)), row(link)]
    gone = {"message_id": "1", "fail_if_not_exists": False}
    status, body = await api.send(
        pg.channel("general"), content="x" * 2000, components=rows, nonce="x" * 25, message_reference=gone
    )
    assert (status, "message_reference" in body) == (200, False)


async def test_an_empty_message_is_50006(api: Api, pg: Playground) -> None:
    _, posted = await api.send(pg.channel("general"), content="  something ")
    path = f"/channels/{pg.channel('general')}/messages/{posted['id']}"
    assert posted["content"] == "something"
    for content in ("", "  \n ", None):
        status, body = await api.send(pg.channel("general"), content=content)
        assert (status, body["code"]) == (400, 50006)
        assert await api.code("PATCH", path, {"content": content}) == (400, 50006)


async def test_anothers_message_can_be_neither_edited_nor_deleted(api: Api, pg: Playground) -> None:
    message = pg.post(pg.channel("general"), pg.person("Ada"), "mine")
    path = f"/channels/{message.channel_id}/messages/{message.id}"
    assert await api.code("PATCH", path, {"content": "yours"}) == (403, 50005)
    assert await api.code("DELETE", path) == (403, 50013)
    assert await api.code("DELETE", path + "/reactions/%F0%9F%91%8D/1") == (403, 50013)
    assert await api.code("DELETE", path + "/reactions") == (403, 50013)
    pg.allow(message.channel_id, "manage_messages")
    pg.react(message, pg.person("Ada"), "👍")
    assert (await api.call("DELETE", path + "/reactions"))[0] == 204
    assert pg.messages(message.channel_id)[0].reactions == ()
    assert (await api.call("DELETE", path))[0] == 204


async def test_sending_needs_permissions(api: Api, pg: Playground) -> None:
    cases: list[tuple[str, dict[str, Any], int, int]] = [
        ("embed_links", {"embeds": [{"title": "x"}]}, 403, 50013),
        ("read_message_history", {"content": "x", "message_reference": {"message_id": "1"}}, 400, 160002),
        ("send_messages", {"content": "x"}, 403, 50013),
        ("view_channel", {"content": "x"}, 403, 50001),
    ]
    for permission, body, status, code in cases:
        pg.deny(pg.channel("general"), permission)
        assert await api.code("POST", f"/channels/{pg.channel('general')}/messages", body) == (status, code)
    assert (await api.send(pg.channel("help"), content="x"))[0] == 200


async def test_files_need_a_permission_and_are_kept_with_it(api: Api, pg: Playground) -> None:
    path = f"/channels/{pg.channel('general')}/messages"

    def form(content: bytes = b"data") -> aiohttp.FormData:
        data = aiohttp.FormData()
        data.add_field("payload_json", '{"content": "x"}')
        data.add_field("files[0]", BytesIO(content), filename="a.txt", content_type="text/plain")
        return data

    assert (await api.response("POST", path, data=form())).status == 200
    assert pg.messages(pg.channel("general"))[0].attachments[0]["filename"] == "a.txt"
    assert (await api.response("POST", path, data=form(bytes(10 * 1024 * 1024 + 1)))).status == 413
    pg.deny(pg.channel("general"), "attach_files")
    assert (await api.response("POST", path, data=form())).status == 403


async def test_reading_and_reacting_need_permissions(api: Api, pg: Playground) -> None:
    message = pg.post(pg.channel("general"), pg.person("Ada"), "x")
    path = f"/channels/{message.channel_id}/messages"
    pg.deny(message.channel_id, "add_reactions")
    react = f"{path}/{message.id}/reactions/%F0%9F%91%8D/@me"
    assert await api.code("PUT", react) == (403, 50013)
    pg.react(message, pg.person("Ada"), "👍")
    assert (await api.call("PUT", react))[0] == 204  # joining in is always allowed
    assert await api.code("PUT", react.replace("%F0%9F%91%8D", "thumbs")) == (400, 10014)
    pg.deny(message.channel_id, "read_message_history")
    assert await api.call("GET", path) == (200, [])
    assert await api.code("GET", f"{path}/{message.id}") == (403, 50013)
    pg.deny(message.channel_id, "send_messages")
    assert await api.code("POST", f"/channels/{message.channel_id}/typing") == (403, 50013)


async def test_one_nonce_makes_one_message(api: Api, pg: Playground) -> None:
    channel = pg.channel("general")
    first = await api.send(channel, content="one", nonce="n", enforce_nonce=True)
    assert await api.send(channel, content="two", nonce="n", enforce_nonce=True) == first
    assert (await api.send(pg.channel("help"), content="elsewhere", nonce="n", enforce_nonce=True))[0] == 200
    assert (await api.send(channel, content="not enforced", nonce="n"))[0] == 200
    assert contents(pg.messages(channel)) == ["one", "not enforced"]


async def test_a_deleted_messages_nonce_is_10008_until_it_is_forgotten(http: aiohttp.ClientSession) -> None:
    now = 0.0
    async with Playground(limits=Limits.off(), clock=lambda: now) as pg:
        api, channel = Api(pg, http), pg.channel("general")
        await api.send(channel, content="one", nonce="n", enforce_nonce=True)
        pg.delete(pg.messages(channel)[0])
        status, body = await api.send(channel, content="two", nonce="n", enforce_nonce=True)
        assert (status, body["code"]) == (404, 10008)
        now = 301.0
        assert (await api.send(channel, content="two", nonce="n", enforce_nonce=True))[0] == 200


async def test_who_is_pinged_is_what_allowed_mentions_allow(api: Api, pg: Playground) -> None:
    channel, ada, ben = pg.channel("general"), pg.person("Ada"), pg.person("Ben")
    asked = pg.post(channel, ben, "x")
    everyone = {ada, ben, pg.person("Chloe")}
    reply = {"message_reference": {"message_id": asked.id}}
    cases: list[tuple[dict[str, Any], set[int], bool]] = [
        ({}, {ada}, False),
        ({"content": "@everyone"}, everyone, True),
        ({"content": "@everyone", "allowed_mentions": {"parse": []}}, set(), False),
        ({"content": "@everyone", "allowed_mentions": {"parse": ["users"]}}, set(), False),
        ({"allowed_mentions": {"parse": []}}, set(), False),
        ({"allowed_mentions": {"users": [str(ada)]}}, {ada}, False),
        ({"allowed_mentions": {"users": [str(ben)]}}, set(), False),
        (reply, {ada, ben}, False),
        (reply | {"allowed_mentions": {"parse": []}}, set(), False),
        (reply | {"allowed_mentions": {"parse": [], "replied_user": True}}, {ben}, False),
    ]
    for body, pinged, loud in cases:
        await api.send(channel, **{"content": f"<@{ada}>"} | body)
        message = pg.messages(channel)[-1]
        assert set(message.pinged) == pinged, body
        assert message.mention_everyone == loud, body
    pg.deny(channel, "mention_everyone")
    await api.send(channel, content="@everyone")
    assert pg.messages(channel)[-1].pinged == frozenset()
    pg.post(channel, ada, f"<@&{pg.bot_role_id}>")
    assert pg.messages(channel)[-1].pinged == {pg.bot_id}


async def test_limits_come_in_headers_and_end_in_429(http: aiohttp.ClientSession) -> None:
    now = 100.0
    async with Playground(clock=lambda: now) as pg:
        api, path = Api(pg, http), f"/channels/{pg.channel('general')}/messages"
        answers = [await api.response("POST", path, {"content": "x"}) for _ in range(6)]
        assert [answer.status for answer in answers] == [200] * 5 + [429]
        assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["4", "3", "2", "1", "0", "0"]
        last = answers[-1]
        assert (last.headers["X-RateLimit-Limit"], last.headers["X-RateLimit-Reset-After"]) == ("5", "5.000")
        assert (last.headers["Retry-After"], last.headers["X-RateLimit-Scope"]) == ("5", "user")
        assert "Via" in last.headers
        elsewhere = f"/channels/{pg.channel('help')}/messages"
        assert (await api.call("POST", elsewhere, {"content": "x"}))[0] == 200
        edit = f"{path}/{pg.messages(pg.channel('general'))[0].id}"
        edits = [(await api.call("PATCH", edit, {"content": str(one)}))[0] for one in range(6)]
        assert edits == [200] * 5 + [429]
        now = 105.0
        assert (await api.call("POST", path, {"content": "x"}))[0] == 200


async def test_fifty_requests_a_second_is_the_global_limit(http: aiohttp.ClientSession) -> None:
    async with Playground(clock=lambda: 1.0) as pg:
        api = Api(pg, http)
        answers = [await api.call("GET", "/users/@me") for _ in range(51)]
        assert [status for status, _ in answers] == [200] * 50 + [429]
        assert answers[-1][1] == {"message": "You are being rate limited.", "retry_after": 1.0, "global": True}


async def test_faults_are_taken_in_order_and_run_out(api: Api, pg: Playground) -> None:
    pg.faults.add("*", "^/users/", status=503, times=2)
    pg.faults.add("GET", "^/users/", status=403, code=50001, message="Missing Access")
    pg.faults.add("POST", "^/users/", status=500)
    answers = [await api.call("GET", "/users/@me") for _ in range(4)]
    assert [status for status, _ in answers] == [503, 503, 403, 200]
    assert answers[2][1] == {"message": "Missing Access", "code": 50001}
    assert [sent.status for sent in pg.requests] == [503, 503, 403, 200]


async def test_without_the_content_intent_rest_hides_it_too(http: aiohttp.ClientSession) -> None:
    async with Playground(message_content=False) as pg:
        channel = pg.channel("general")
        pg.post(channel, pg.person("Ada"), "secret")
        secret = pg.messages(channel)[0]
        pg.post(channel, pg.person("Ada"), f"<@{pg.bot_id}> open", reply_to=secret.id)
        _, history = await Api(pg, http).call("GET", f"/channels/{channel}/messages")
        assert [one["content"] for one in history] == [f"<@{pg.bot_id}> open", ""]
        assert history[0]["referenced_message"]["content"] == ""
        _, application = await Api(pg, http).call("GET", "/oauth2/applications/@me")
        assert application["flags"] == 0
