"""What the model was sent last is the beginning of what it is sent next, which is what prompt caches need."""

from __future__ import annotations

import pytest

from bench.prefix import BOUND, TOOLS, measure


@pytest.mark.parametrize(("turns", "tool_every"), BOUND)
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.slow
async def test_a_prompt_begins_as_the_one_before(turns: int, tool_every: int, tool: str) -> None:
    assert await measure(turns, tool_every, tool) >= BOUND[turns, tool_every]
