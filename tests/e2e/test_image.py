"""What the Dockerfile makes an image of runs from it: read-only but for the volume, with its environment and commands.

Without Docker: the files that it copies, in a tree of their own, where nothing but `.parley` can be written, /tmp not
either. What the tests have installed stands for what the image has.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import aiohttp
import pytest
from aiohttp.test_utils import unused_port

from playground.limits import Limits
from playground.server import Playground
from tests.support.process import command
from tests.support.scene import Scene, recorded
from tests.support.stub_model import StubModel

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
VOLUME = ".parley"
# In a mount namespace of its own.
READ_ONLY = ("unshare", "--mount", "--map-root-user", "sh", "-c")
READ_ONLY_ROOT = f'mount --bind {VOLUME} {VOLUME} && mount -o remount,bind,ro / && cd "$PWD" && exec "$@"'


def can_be_read_only() -> bool:
    script = [*READ_ONLY, "mount --bind . . && mount -o remount,bind,ro /"]
    return bool(shutil.which("unshare")) and subprocess.run(script, check=False, capture_output=True).returncode == 0


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not can_be_read_only(), reason="needs unshare, and mount namespaces for whoever runs it"),
]


def last(instruction: str) -> str:
    """What stands behind the last of these instructions."""
    return str(re.findall(rf"^{instruction} (.+)$", DOCKERFILE, re.MULTILINE)[-1])


def copied(name: str) -> bool:
    """Whether .dockerignore lets a file into the image: the last pattern that matches it, or its folder, decides."""
    path, is_in = Path(name), True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!")
        deep = any(fnmatch(part, pattern.removeprefix("**/")) for part in path.parts) and pattern.startswith("**/")
        if deep or any(part.match(f"/{pattern}") for part in (Path("/", path), *Path("/", path).parents)):
            is_in = line.startswith("!")
    return is_in


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """The folder /app of the image, with an empty volume."""
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(copied, tracked.splitlines()):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / VOLUME).mkdir(mode=0o700)
    return tmp_path


def read_only(arguments: list[str]) -> list[str]:
    assert arguments[0] == "python"
    return [*READ_ONLY, READ_ONLY_ROOT, "sh", sys.executable, *arguments[1:]]


async def test_it_answers_is_healthy_and_stops_where_only_the_volume_can_be_written(
    image: Path, stub: StubModel
) -> None:
    named = dict(part.split("=", 1) for part in last("ENV").split()) | {"PORT": str(unused_port())}
    async with Playground(limits=Limits.off()) as pg, recorded(pg) as journal:
        scene = Scene(pg, stub, journal, image)
        environment = {
            **named,
            "PATH": "/usr/bin:/bin",
            "DISCORD_API_BASE": pg.api_base,
            "DISCORD_GATEWAY_URL": pg.gateway_url,
            "DISCORD_TOKEN": pg.token,
            "MODEL": "openai-chat:stub",
            "OPENAI_BASE_URL": stub.url,
            "OPENAI_API_KEY": "sk-a-key",
            "CONSOLE_PASSWORD": "correct horse",
        }
        async with command(image, read_only(json.loads(last("CMD"))), environment) as running:
            await scene.until(lambda: pg.connected)
            question = scene.mention("Ada", "hello")
            await running.logged("turn_ended", message=question.id, outcome="answered")
            assert len(scene.said()) == 1
            check = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
            async with command(image, read_only(check), environment) as checking:
                assert await checking.ended() == 0, checking.other
            async with aiohttp.ClientSession(f"http://127.0.0.1:{named['PORT']}") as http:
                assert "for 30 days, and then it is deleted" in await (await http.get("/privacy")).text()
                page = await (await http.get("/console/login")).text()
                parts = re.findall(r'(?:href|src)="(/console/static/[^"]+)"', page)
                assert parts
                assert {(await http.get(part)).status for part in parts} == {200}
            running.terminate()
            assert await running.ended() == 0
        async with command(image, read_only(check), environment) as checking:
            assert await checking.ended() != 0  # nobody listens any more
    assert not running.other
    assert {line["level"] for line in running.log} <= {"info"}
    assert list((image / VOLUME).iterdir())


def test_what_mcp_config_needs_is_installed_into_it() -> None:
    extras = last("ARG").removeprefix("EXTRAS=").split(",")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "mcp" in extras
    assert set(extras) <= project["optional-dependencies"].keys()
    assert '--editable ".[$EXTRAS]"' in DOCKERFILE
