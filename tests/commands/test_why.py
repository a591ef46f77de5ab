"""commands/why.py: what it says of the last decisions, and that it fits."""

from __future__ import annotations

import pytest

from commands.why import WHOSE_YOU
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
    newest, *lines, whose = (await answer(pg, "why")).content.splitlines()
    assert whose == WHOSE_YOU
    assert newest.endswith(
        f"/{pg.channel('general')}/{named}), you mentioned me or replied to me; by docs, which you named"
    )
    assert len(lines) == 4
    for message_id, line in zip(reversed(ids[2:]), lines, strict=True):
        assert line.startswith(f"- <@{ANNA}>: [answered](")
        assert f"/{message_id}), the judge" in line
        assert line.endswith("…")


async def test_by_which_list_somebody_is_not_answered_is_for_them_and_for_those_who_manage_it(
    pg: Playground, decisions: RecentDecisions
) -> None:
    evidence = "“Blocked members”, set for this server"
    refused = Decision(False, Reason.NOT_ALLOWED, evidence=evidence)
    message = pg.post(pg.channel("general"), pg.person("Ben"), "hello?")
    decisions.add(message.id, message.channel_id, pg.person("Ben"), refused)
    for who, is_told in (("Ada", True), ("Ben", True), ("Chloe", False)):
        told = [
            (await pg.reply_to(pg.command(message.channel_id, pg.person(who), name, {}, target))).content
            for name, target in (("why", None), ("Why?", message.id))
        ]
        assert [evidence in words for words in told] == [is_told, is_told]
        assert [words.endswith(WHOSE_YOU) for words in told] == [who != "Ben"] * 2
        assert all("I am not set up to answer the person who wrote it here" in words for words in told)
