"""README and docs/: what is generated is up to date, and what they point to is there."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from config import Settings, load_settings

ROOT = Path(__file__).parent.parent


def test_the_settings_pages_are_what_make_settings_writes() -> None:
    for path, text in runpy.run_module("docs.settings")["written"]().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `make settings`"


def test_the_example_names_every_setting_and_works_uncommented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    values = dict(
        line.removeprefix("#").split("=", 1) for line in lines if line.startswith("#") and line[1:2].isupper()
    )
    assert {name.lower() for name in values} >= set(Settings.model_fields)
    monkeypatch.chdir(tmp_path)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    assert load_settings().model == values["MODEL"]
