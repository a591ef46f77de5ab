"""doctor/env_file.py: what is written is read back, and what stood there stays."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from dotenv import dotenv_values
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doctor.env_file import EnvFile

BEFORE = """\
# My bot

export MODEL = 'demo'   # until there is a key
BUDGETS="$1 a day, $5 a month" # enough

#DISCORD_TOKEN=
CHANNELS= # all
USERS=1"""
AFTER = """\
# My bot

export MODEL = openai:gpt-5-mini   # until there is a key
BUDGETS="$1 a day, $5 a month" # enough

#DISCORD_TOKEN=
CHANNELS=7 # all
USERS=1
DISCORD_TOKEN='it\\'s'
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_values_are_set_where_they_stood_and_all_else_is_kept(tmp_path: Path, end: str) -> None:
    path = tmp_path / ".env"
    path.write_bytes(BEFORE.replace("\n", end).encode())
    EnvFile(path).set({"MODEL": "openai:gpt-5-mini", "CHANNELS": "7", "DISCORD_TOKEN": "it's"})
    assert path.read_bytes().decode() == AFTER.replace("\n", end)
    assert EnvFile(path).values()["DISCORD_TOKEN"] == "it's"


def test_only_the_owner_may_read_it_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "env"
    path.parent.mkdir()
    path.write_text("A=1\n")
    path.chmod(0o644)
    link = tmp_path / ".env"
    link.symlink_to(path)
    EnvFile(link).set({"B": "2"})
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["env"]
    path.unlink()
    path.symlink_to(link)
    with pytest.raises(OSError, match="symbolic links"):  # in a circle
        EnvFile(link).set({"B": "2"})


@given(value=st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1), before=st.sampled_from(["", BEFORE]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_line_is_read_back_as_it_was_given(tmp_path: Path, value: str, before: str) -> None:
    path = tmp_path / ".env"
    path.write_text(before)
    EnvFile(path).set({"OPENAI_API_KEY": value, "MODEL": value})
    assert {"OPENAI_API_KEY": value, "MODEL": value}.items() <= dotenv_values(path).items()
