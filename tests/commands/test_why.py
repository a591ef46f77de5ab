"""commands/why.py: what it says of the last decisions, and that it fits."""

from __future__ import annotations

import pytest

from decider import Decision, Reason, RecentDecisions
from playground.server import Playground
from tests.commands.support import answer
from tests.support.people import ANNA


@pytest.mark.parametrize("character", ["x", "\U0001f431"])
async def test_it_says_why_and_which_agent_and_the_longest_lines_fit_into_one_message(
    pg: Playground, decisions: RecentDecisions, character: str
) -> None:
    ids = [(1 << 62) + n for n in range(6)]
    for message_id in ids:
        judged = Decision(True, Reason.LLM_JUDGE, tier=3, score=1.0, evidence=character * 120)
        decisions.add(message_id, pg.channel("general"), ANNA, judged)
        decisions.assigned(message_id, f"by {'d' * 40}, which fits best ({character * 120})")
    decisions.add(named := 1 << 63, pg.channel("general"), ANNA, Decision(True, Reason.EXPLICIT_TRIGGER))
    decisions.assigned(named, "by docs, which you named")
    newest, *lines = (await answer(pg, "why")).content.splitlines()
    assert newest.endswith(
        f"/{pg.channel('general')}/{named}), you mentioned me or replied to me; by docs, which you named"
    )
    assert len(lines) == 4
    for message_id, line in zip(reversed(ids[2:]), lines, strict=True):
        assert line.startswith(f"- <@{ANNA}>: [answered](")
        assert f"/{message_id}), the judge" in line
        assert line.endswith("…")
