"""Sessions that processes leave each other in Redis."""

from __future__ import annotations

import pytest

from cluster.sessions import SESSION
from tests.cluster.conftest import Join


@pytest.mark.parametrize("stored", ["{", "[1]", "7", '["a","wss://x/",1,"now",1]', '["a","wss://x/",1,1e300,1]'])
async def test_a_session_that_cannot_be_read_is_none(join: Join, stored: str) -> None:
    cluster = join()
    await cluster.redis.set(f"{SESSION}0", stored)
    assert await cluster.sessions.load(0) is None
