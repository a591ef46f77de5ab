"""An error of the bot's own in a command, a click or a form: whoever waits for its answer is told, and its owner."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from commands.answers import BROKEN, OUTDATED
from playground.interactions import Interaction
from tests.support.scene import PATIENCE_SECONDS, Scene

EPHEMERAL = 1 << 6


def breaks(*_: Any, **__: Any) -> NoReturn:
    raise LookupError("what somebody said")


async def is_told(scene: Scene, used: Interaction, command: str = "") -> None:
    """Whoever did it is told, alone; the log has the error, with its ids, and the fault is counted."""
    told = await scene.pg.reply_to(used, timeout=PATIENCE_SECONDS)
    assert (told.content, told.flags & EPHEMERAL) == (BROKEN, EPHEMERAL)
    [logged] = scene.journal.find("interaction_broken", interaction=used.id)
    ids = scene.pg.guild_id, scene.pg.channel("general"), scene.pg.person("Ada"), command
    assert tuple(logged[name] for name in ("guild", "channel", "user", "command")) == ids
    assert "what somebody said" in repr([logged["exc_info"], logged["exc_info"].__cause__])
    fault = scene.bot.parts.faults.last()[0]
    assert (fault.guild_id, fault.channel_id, fault.code) == (*ids[:2], "interaction_broken")
    assert "what somebody said" not in fault.says
    scene.journal.entries.remove(logged)


@pytest.mark.parametrize("name", ["export", "optin"])  # the first is deferred, the other answered at once
async def test_a_command_that_breaks(scene: Scene, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("settle", "is_opted_out"):
        monkeypatch.setattr(scene.bot.privacy, part, breaks)
    general, ada = scene.pg.channel("general"), scene.pg.person("Ada")
    await is_told(scene, scene.pg.command(general, ada, name), name)
    status = (await scene.use("Ada", "status")).content
    assert "An error of the bot's own ended a command or a click: its log has the details." in status


async def test_a_click_and_a_form_that_break(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.mention("Ada", "start a trip")
    card = await scene.card("What's your trip name?")
    opener = scene.press("Ada", card, "Answer")
    await scene.until(lambda: opener.form)
    monkeypatch.setattr(scene.bot.states, "find", breaks)
    await is_told(scene, scene.press("Ada", card, "Answer"))
    await is_told(scene, scene.pg.submit(opener, {"text": "Tokyo Trip"}))
    assert len(scene.bot.parts.faults.last()) == 2


@pytest.mark.parametrize(
    ("broken", "name", "given", "option"),
    [
        ("model_command.suggest", "model", {"name": "g"}, "name"),
        ("settings_commands.suggest_settings", "parley", {"set": {"setting": "m"}}, "setting"),
        ("settings_commands.suggest_settings", "parley", {"reset": {"setting": "m"}}, "setting"),
        ("settings_commands.suggest_values", "parley", {"set": {"setting": "model", "value": "g"}}, "value"),
    ],
)
async def test_of_what_breaks_while_somebody_types_nothing_is_suggested(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, broken: str, name: str, given: dict[str, Any], option: str
) -> None:
    monkeypatch.setattr(f"commands.{broken}", breaks)
    typed = scene.pg.autocomplete(scene.pg.channel("general"), scene.pg.person("Ada"), name, given, option)
    assert await scene.pg.suggested(typed, timeout=PATIENCE_SECONDS) == []
    assert scene.journal.find("interaction_broken", interaction=typed.id)
    assert [fault.code for fault in scene.bot.parts.faults.last()] == ["interaction_broken"]
    assert not scene.journal.find("interaction_failed")
    scene.journal.entries.clear()


async def test_a_command_that_an_older_version_had_is_no_error_of_this_one(scene: Scene) -> None:
    scene.bot.tree.remove_command("optin")
    assert (await scene.use("Ada", "optin")).content == OUTDATED
    assert scene.bot.parts.faults.last() == []
