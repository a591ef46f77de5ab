"""`python bot.py doctor`: all checks together, by the real program, and the block in the log at the start."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from doctor.findings import Finding, as_json, as_lines, bounded, exit_code, fault, ok, skipped, warning, without
from playground.limits import Limits
from playground.server import Playground
from tests.support.process import Program, finished, program
from tests.support.stub_model import Reply, StubModel

TOKEN, KEY = "a-token-of-the-loopback", "key-of-the-stub"


def settings_for(pg: Playground, stub: StubModel, **more: str) -> dict[str, str]:
    return {
        "DISCORD_TOKEN": TOKEN,
        "DISCORD_API_BASE": pg.api_base,
        "DISCORD_GATEWAY_URL": pg.gateway_url,
        "MODEL": "openai-chat:gpt-5-mini",
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": stub.url,
        **more,
    }


def found(doctor: Program) -> dict[str, Finding]:
    return {each["check"]: Finding(**each) for each in orjson.loads("\n".join(doctor.out))}


@pytest.mark.slow
async def test_a_bot_that_runs_well_is_told_to(stub: StubModel, tmp_path: Path) -> None:
    stub.default = lambda _: Reply("ready")
    async with (
        Playground(limits=Limits.off(), token=TOKEN) as pg,
        program(tmp_path, **settings_for(pg, stub, PORT="0")) as bot,
    ):
        entry = await bot.logged("checked", level="info")
        assert {"intents", "permissions", "files", "disk", "budgets"} <= set(entry["well"])
        port = (await bot.logged("listening"))["address"].rpartition(":")[2]
        code, doctor = await finished(tmp_path, "doctor", "--json", **settings_for(pg, stub, PORT=port))
    findings = found(doctor)
    assert [finding for finding in findings.values() if finding.state in ("warning", "fault")] == []
    assert code == 0
    assert "answered in" in findings["MODEL"].says
    assert "are registered" in findings["commands"].says
    assert "is well" in findings["http"].says
    assert not doctor.other + doctor.log
    assert TOKEN not in str(doctor.out)
    assert KEY not in str(doctor.out)


@pytest.mark.slow
async def test_several_faults_at_once_are_told_in_a_list(stub: StubModel, tmp_path: Path) -> None:
    stub.default = lambda _: Reply(status=401, words=KEY)
    async with Playground(limits=Limits.off(), token=TOKEN, message_content=False) as pg:
        pg.deny(pg.channel("help"), "view_channel")
        code, doctor = await finished(tmp_path, "doctor", **settings_for(pg, stub, THREADS="maybe", MODLE="x"))
    text = "\n".join(doctor.out)
    assert code == 2
    for says in (
        "THREADS 'maybe'",
        "MODLE is not a setting",
        "Intent is off",
        "lacks View Channels in #help",
        "the key",
    ):
        assert says in text
    assert doctor.out[-1].startswith("4 faults and 2 warnings.")  # nothing is registered yet
    assert "\x1b" not in text
    assert TOKEN not in text
    assert KEY not in text


async def test_a_mistyped_state_key_is_told_as_every_other_fault(stub: StubModel, tmp_path: Path) -> None:
    async with Playground(limits=Limits.off(), token=TOKEN) as pg:
        code, doctor = await finished(tmp_path, "doctor", "--json", **settings_for(pg, stub, STATE_KEY="mistyped"))
    assert code == 2
    assert found(doctor)["key"].says == "STATE_KEY is not a valid key."
    assert not doctor.other
    assert "mistyped" not in str(doctor.out)


@pytest.mark.slow
async def test_at_the_start_each_fault_is_one_warning(stub: StubModel, tmp_path: Path) -> None:
    async with Playground(limits=Limits.off(), token=TOKEN) as pg:
        pg.deny(pg.channel("help"), "send_messages")
        async with program(tmp_path, **settings_for(pg, stub, BUDGETS="off", DAILY_TOKENS="0")) as bot:
            entry = await bot.logged("checked", check="permissions")
            await bot.logged("checked", check="budgets")
    assert entry["level"] == "warning"
    assert entry["says"] == "The bot lacks Send Messages in #help (Playground)."
    assert entry["remedy"].startswith("Allow Send Messages")
    assert not stub.requests


@pytest.mark.slow
async def test_what_it_does_not_know_ends_with_2(tmp_path: Path) -> None:
    for arguments in (["--jsn"], ["--json", "--setup"]):
        code, doctor = await finished(tmp_path, "doctor", *arguments)
        assert (code, doctor.out) == (2, [])


def test_the_exit_code_and_the_forms() -> None:
    good, none, meh, bad = ok("a", "Well."), skipped("b", "None."), warning("c", "So.", "Do."), fault("d", "No.", "Do.")
    assert [exit_code(some) for some in ([good, none], [good, meh], [meh, bad])] == [0, 1, 2]
    assert orjson.loads(as_json([meh])) == [{"check": "c", "state": "warning", "says": "So.", "fix": "Do."}]
    named = fault("permissions", "It lacks all in #\x1b[31mred\n.", "Allow it, with secret-word.")
    assert as_lines([good, named], coloured=False).splitlines() == [
        "ok       a            Well.",
        "fault    permissions  It lacks all in #?[31mred?.",
        "                      -> Allow it, with secret-word.",
    ]
    assert "\x1b[31mfault" in as_lines([bad], coloured=True)
    assert without({"secret-word"}, [named])[0].fix == "Allow it, with [hidden]."
    several = without([f"secret-{'word'[:length]}" for length in range(5)], [named])
    assert several[0].fix == "Allow it, with [hidden]."


@pytest.mark.virtual_time
async def test_a_check_that_hangs_or_breaks_is_a_finding() -> None:
    async def hangs() -> list[Finding]:
        await asyncio.Event().wait()
        return []

    async def breaks() -> list[Finding]:
        raise KeyError("id")

    (late,), (broken,) = await bounded("a", hangs()), await bounded("b", breaks())
    assert late.says == "This did not end within 10 s."
    line = breaks.__code__.co_firstlineno + 1
    assert broken.says == f"The check itself failed (KeyError at test_command.py:{line})."
