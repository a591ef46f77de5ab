"""Makefile: what `make run` says while it installs, which is silent by itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Stands for Python and all that `python -m venv` puts there.
STUB = """#!/bin/sh
case "$1 $2" in
    "-m venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python && cp "$0" .venv/bin/pip ;;
    *) echo "$(basename "$0") $1" ;;
esac
"""


@pytest.mark.skipif(shutil.which("make") is None or sys.platform == "win32", reason="needs make")
def test_it_says_what_it_installs_once_and_then_runs_the_bot(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    stub = tmp_path / "python"
    stub.write_text(STUB)
    stub.chmod(0o700)
    said = [
        subprocess.run(
            ["make", "--no-print-directory", "run", f"PYTHON={stub}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert said[0] == [
        "Making a Python environment in .venv ...",
        "Installing what Parley needs into it: about a minute, once ...",
        "pip install",
        "Installed.",
        "python bot.py",
    ]
    assert said[1] == ["python bot.py"]
