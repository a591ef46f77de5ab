"""commands/why.py: what it says of the last decisions, and that it fits."""

from __future__ import annotations

import pytest

from decider import Decision, Reason, RecentDecisions
from playground.server import Playground
from tests.commands.support import answer
from tests.support.people import ANNA


async def test_it_says_which_agent_was_chosen(pg: Playground, decisions: RecentDecisions) -> None:
    channel = pg.channel("general")
    for message_id in (1, 2):
        decisions.add(message_id, channel, ANNA, Decision(True, Reason.EXPLICIT_TRIGGER))
    decisions.assigned(1, "by docs, which you named")
    newest, oldest = (await answer(pg, "why")).content.splitlines()
    assert newest.endswith("answered: you mentioned me or replied to me")
    assert oldest.endswith("answered: you mentioned me or replied to me; by docs, which you named")


@pytest.mark.parametrize("character", ["x", "\U0001f431"])
async def test_the_longest_lines_fit_into_one_message(
    pg: Playground, decisions: RecentDecisions, character: str
) -> None:
    evidence = character * 120
    ids = [(1 << 62) + n for n in range(6)]
    for message_id in ids:
        judged = Decision(True, Reason.LLM_JUDGE, tier=3, score=1.0, evidence=evidence)
        decisions.add(message_id, pg.channel("general"), ANNA, judged)
        decisions.assigned(message_id, f"by {'d' * 40}, which fits best ({evidence})")
    lines = (await answer(pg, "why")).content.splitlines()
    assert len(lines) == 5
    for message_id, line in zip(reversed(ids[1:]), lines, strict=True):
        assert f"/{message_id} answered: the judge" in line
        assert line.endswith("…")
