"""`python -m playground`: a Discord in which the set-up of a bot is tried out."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import aiohttp
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
async def test_it_prints_a_token_whose_bot_comes_in_by_the_address_it_is_invited_by() -> None:
    command = (sys.executable, "-m", "playground", "0")
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert process.stdout
    try:
        said = (await process.stdout.readuntil(b"token: ") + await process.stdout.readline()).decode()
        site, api = re.findall(r"Open (\S+) ", said)[0], re.findall(r"DISCORD_API_BASE=(\S+)", said)[0]
        headers = {"Authorization": f"Bot {said.split()[-1]}"}
        async with aiohttp.ClientSession(headers=headers, raise_for_status=True) as http:
            application = await (await http.get(f"{api}/applications/@me")).json()
            assert await (await http.get(f"{api}/users/@me/guilds")).json() == []
            async with http.ws_connect(f"{site}/page/events") as page_events:
                assert not (await page_events.receive_json(timeout=5))["decisions"]
            page = await http.get(f"{site}/oauth2/authorize?client_id={application['id']}&scope=bot")
            assert (page.url.path, page.content_type) == ("/", "text/html")
            assert len(await (await http.get(f"{api}/users/@me/guilds")).json()) == 1
            async with http.get(f"{site}/oauth2/authorize?client_id=1", raise_for_status=False) as refused:
                assert refused.status == 404
    finally:
        process.terminate()
        await process.wait()
