"""The first set-up, at a real terminal: from an empty folder to an answered mention, as docs/quickstart.md shows it."""

from __future__ import annotations

import re
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from config import Settings
from doctor.setup import bare, set_up
from playground.server import Playground
from tests.support.at_terminal import END, INTERRUPT, at_terminal
from tests.support.process import program
from tests.support.stub_model import Reply, StubModel, error_response

TOKEN, WRONG_TOKEN = "the-token-that-discord-takes", "a-token-that-nobody-takes"
KEY, WRONG_KEY = "sk-the-key-that-is-taken", "sk-a-key-that-nobody-takes"
SECRETS = (TOKEN, WRONG_TOKEN, KEY, WRONG_KEY)
BEFORE = "# mine\nINSTRUCTIONS='Be kind.' # always\n"
TOKEN_ASKED, MODEL_ASKED, KEY_ASKED = "Token (", "(Enter: 1):", "OPENAI_API_KEY ("

# What is another each time, or in the test.
VARYING = (
    (r"https?://\S+/oauth2", "/oauth2"),
    (r"\d{15,}", "ID"),
    (r"openai:gpt-5-mini|openai-chat:stub", "MODEL"),
    (r"answered in .*", "answered"),
    (r"Enter: none, as OPENAI_BASE_URL is set; ", ""),
)


class LockedModel(StubModel):
    """A model server that takes one key, and repeats one that it does not take."""

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        given = request.headers["Authorization"].removeprefix("Bearer ")
        if given != KEY:
            return error_response(401, f"Incorrect API key provided: {given}", "invalid_api_key")
        return await super()._complete(request)


@pytest.fixture
async def locked() -> AsyncIterator[LockedModel]:
    server = LockedModel()
    server.default = lambda _: Reply("Hello to you.")
    await server.start()
    yield server
    await server.stop()


@pytest.mark.slow
async def test_it_leads_from_an_empty_folder_to_an_answered_mention(tmp_path: Path, locked: LockedModel) -> None:
    async with Playground(token=TOKEN, message_content=False) as unread:
        port, there = unread.port, _at(unread) | {"OPENAI_BASE_URL": locked.url}
        async with at_terminal(tmp_path, "doctor", **there) as owner:
            await owner.answers(TOKEN_ASKED, "")
            await owner.answers(TOKEN_ASKED, WRONG_TOKEN)
            await owner.sees("Discord refuses")
            await owner.sees("to the whole new one")
            await owner.answers(TOKEN_ASKED, f' "Bot {TOKEN}" ')
            await owner.answers("skip: go on without it", "")
            await owner.sees("The Message Content Intent is off")
            await owner.sees("skip: go on without it")
            await unread.stop()
            async with Playground(port=port, token=TOKEN) as pg:
                pg.remove_bot()
                pg.world.guild.name = "Friends"
                owner.types("")
                await owner.sees("The Message Content Intent is on.")
                await owner.sees(f"{pg.url}/oauth2/authorize?client_id={pg.bot_id}")
                await owner.sees("Waiting")
                pg.invite_bot()
                await owner.sees("It is in Friends.")
                await owner.answers(MODEL_ASKED, "2")
                await owner.answers("Model (", "")
                await owner.answers(KEY_ASKED, "back")
                await owner.answers(MODEL_ASKED, "openai-chat:stub")
                await owner.answers(KEY_ASKED, WRONG_KEY)
                await owner.sees("refuses the key")
                await owner.answers(KEY_ASKED, KEY)
                await owner.sees("openai-chat:stub answered in")
                await owner.sees("@Parley hello")
                assert await owner.ended() == 0
                assert not [secret for secret in SECRETS if secret in owner.shown]
                shown = {alike(line) for line in owner.shown.splitlines()}
                assert [line for line in quoted() if alike(line) not in shown] == []
                written = tmp_path / ".env"
                assert stat.S_IMODE(written.stat().st_mode) == 0o600
                async with program(tmp_path, **there) as running:
                    await running.logged("ready")
                    pg.post(pg.channel("general"), pg.person("Ada"), f"<@{pg.bot_id}> hello")
                    said = pg.world.channels[pg.channel("general")].messages.values
                    await pg.wait_for(lambda: [one for one in said() if one.content == "Hello to you."], 60)
                    running.terminate()
                    assert await running.ended() == 0
    assert not [secret for secret in SECRETS if secret in f"{running.log}{running.other}{running.out}"]


@pytest.mark.slow
async def test_stopped_in_the_middle_it_goes_on_from_there(tmp_path: Path) -> None:
    written = tmp_path / ".env"
    written.write_text(BEFORE)
    async with Playground(token=TOKEN) as pg:
        pg.remove_bot()
        async with at_terminal(tmp_path, "doctor", "--setup", **_at(pg)) as owner:
            await owner.answers(TOKEN_ASKED, TOKEN)
            await owner.sees("Waiting")
            owner.types(INTERRUPT, end="")
            await owner.sees("Stopped.")
            assert await owner.ended() == 0
        assert written.read_text() == f"{BEFORE}DISCORD_TOKEN={TOKEN}\n"
        async with at_terminal(tmp_path, "doctor", "--setup", **_at(pg)) as owner:
            await owner.answers("Waiting", "skip")
            await owner.answers(MODEL_ASKED, "")
            await owner.sees("/oauth2/authorize")
            assert await owner.ended() == 0
            assert TOKEN_ASKED not in owner.shown
    assert written.read_text() == f"{BEFORE}DISCORD_TOKEN={TOKEN}\nMODEL=demo\n"


@pytest.mark.slow
@pytest.mark.parametrize(("key", "code", "says"), [(INTERRUPT, 0, "Stopped."), (END, 2, "DISCORD_TOKEN")])
async def test_left_at_the_first_question_it_writes_nothing(tmp_path: Path, key: str, code: int, says: str) -> None:
    async with at_terminal(tmp_path, "doctor") as owner:
        await owner.answers(TOKEN_ASKED, key, end="")
        await owner.sees(says)
        assert await owner.ended() == code
    assert not (tmp_path / ".env").exists()


@pytest.mark.slow
async def test_what_env_could_not_change_is_not_asked_for(tmp_path: Path) -> None:
    async with (
        Playground(token=TOKEN) as pg,
        at_terminal(tmp_path, "doctor", "--setup", **_at(pg), DISCORD_TOKEN=WRONG_TOKEN) as owner,
    ):
        await owner.sees("Discord refuses")
        await owner.sees("DISCORD_TOKEN is set in the environment, which overrides .env")
        assert await owner.ended() == 2
        assert TOKEN_ASKED not in owner.shown


def test_without_a_terminal_it_says_what_to_set(capfd: pytest.CaptureFixture[str]) -> None:
    assert set_up(Settings()) == 2
    said = capfd.readouterr().err
    assert all(name in said for name in ("DISCORD_TOKEN", "MODEL", "OPENAI_API_KEY"))


@pytest.mark.parametrize("given", [" MTA.x-y_z \n", '"MTA.x-y_z"', "Bot MTA.x-y_z", 'export DISCORD_TOKEN="MTA.x-y_z"'])
def test_a_token_is_read_without_what_was_copied_with_it(given: str) -> None:
    assert bare(given) == "MTA.x-y_z"


def quoted() -> list[str]:
    """The lines of the terminal that the quick start shows."""
    page = (Path(__file__).parents[2] / "docs" / "quickstart.md").read_text(encoding="utf-8")
    return page.split("```")[1].splitlines()


def alike(line: str) -> str:
    """A line without what is another each time."""
    for form, instead in VARYING:
        line = re.sub(form, instead, line)
    return line.rstrip()


def _at(pg: Playground) -> dict[str, str]:
    return {"DISCORD_API_BASE": pg.api_base, "DISCORD_GATEWAY_URL": pg.gateway_url}
