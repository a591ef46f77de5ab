"""followup/learning.py: what is chosen, forgotten or too old reaches the decision log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conversation import ChannelConversation, MessageRecord
from decider import EXPLICIT
from followup.decision_log import FILE_NAME, DecisionFile, DecisionLog
from followup.learning import Learning
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, CHANNEL, GUILD, said

OLD = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> DecisionLog:
    return DecisionLog(tmp_path)


def decide(learning: Learning, message: MessageRecord, channel_id: int = CHANNEL, guild_id: int = GUILD) -> int:
    conversation = ChannelConversation(channel_id, NOON, NOON, messages=[message])
    learning.decided(message, guild_id, conversation, EXPLICIT, is_explicit=True, is_judgement=True)
    return message.message_id


@pytest.mark.parametrize(
    ("forget", "left"),
    [
        (lambda learning, at: learning.forgotten(CHANNEL, ANNA, at), {"bens", "elsewhere", "abroad"}),
        (lambda learning, at: learning.forgotten(None, ANNA, at), {"bens"}),
        (lambda learning, at: learning.forgotten(CHANNEL, None, at), {"elsewhere", "abroad"}),
        (lambda learning, at: learning.guild_forgotten(GUILD, at), {"abroad"}),
        (lambda learning, _at: learning.expire(NOON), {"annas", "bens", "elsewhere"}),
        (lambda learning, at: learning.deleted({at}, NOON), {"annas", "bens", "elsewhere"}),
    ],
)
async def test_what_goes_is_gone_from_disk(
    tmp_path: Path, log: DecisionLog, forget: Callable[[Learning, int], None], left: set[str]
) -> None:
    learning = Learning(log, keeps_content=True)
    ids = {
        "annas": decide(learning, said(ANNA)),
        "bens": decide(learning, said(BEN)),
        "elsewhere": decide(learning, said(ANNA), CHANNEL + 1),
        "abroad": decide(learning, said(ANNA, at=OLD), CHANNEL + 2, GUILD + 1),
    }
    assert await log.flush()
    forget(learning, ids["abroad"])
    assert await log.flush()
    rows = {row.message_id for row in DecisionFile(tmp_path / FILE_NAME).read()}
    assert {name for name, message_id in ids.items() if message_id in rows} == left


def test_an_edit_that_waits_goes_with_its_guild(log: DecisionLog) -> None:
    learning = Learning(log, keeps_content=True)
    learning.revised(5, CHANNEL, ANNA, "the cat is called Tim", GUILD)
    learning.revised(6, CHANNEL, ANNA, "x", GUILD + 1)
    learning.guild_forgotten(GUILD, through=9)
    assert [change.message_id for change in log._pending.values()] == [6]


@pytest.mark.parametrize(("agent", "reason"), [("docs", "named"), ("", "unsure")])
async def test_the_agent_of_several_messages_is_logged(
    tmp_path: Path, log: DecisionLog, agent: str, reason: str
) -> None:
    learning = Learning(log, keeps_content=False)
    asked = [decide(learning, said(who)) for who in (ANNA, BEN)]
    learning.assigned([*asked, 999], agent, reason)
    later = decide(learning, said(ANNA))
    assert await log.flush()
    rows = {row.message_id: (row.agent, row.agent_reason) for row in DecisionFile(tmp_path / FILE_NAME).read()}
    assert rows == {asked[0]: (agent, reason), asked[1]: (agent, reason), later: ("", "")}


async def test_no_agent_is_logged_where_the_log_is_off(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path, is_on=False)
    Learning(log, keeps_content=False).assigned([1], "docs", "named")
    assert len(log) == 0
