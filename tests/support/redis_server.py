"""A real Redis for tests: a server of its own behind a socket, without persistence."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def redis_server() -> Iterator[str]:
    """Its address. Skips the test where there is no redis-server."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("there is no redis-server here: install Debian's package of that name")
    folder = tempfile.mkdtemp(prefix="redis")  # a socket's path must be short
    options = ["--port", "0", "--unixsocket", f"{folder}/socket", "--save", "", "--appendonly", "no", "--dir", folder]
    with subprocess.Popen([binary, *options], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            assert any("eady to accept connections" in line for line in server.stdout)
            yield f"unix://{folder}/socket"
        finally:
            server.terminate()
            server.wait()
            shutil.rmtree(folder)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The address of one that all tests of a run share. Import it into a conftest.py."""
    with redis_server() as url:
        yield url
