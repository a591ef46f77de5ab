"""Makefile: what `make run` says while it installs, which is silent by itself."""

from __future__ import annotations

import os
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
    "bot.py doctor") exit "$FOUND" ;;
    *) echo "$(basename "$0") $1" ;;
esac
"""


def make(folder: Path, target: str, **variables: str) -> subprocess.CompletedProcess[str]:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy2(ROOT / name, folder)
    stub = folder / "python"
    stub.write_text(STUB)
    stub.chmod(0o700)
    command = ["make", "--no-print-directory", target, f"PYTHON={stub}"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **variables}
    )


needs_make = pytest.mark.skipif(shutil.which("make") is None or sys.platform == "win32", reason="needs make")


@needs_make
def test_it_says_what_it_installs_once_and_then_runs_the_bot(tmp_path: Path) -> None:
    said = [make(tmp_path, "run").stdout.splitlines() for _ in range(2)]
    assert said[0] == [
        "Making a Python environment in .venv ...",
        "Installing what Parley needs into it: about a minute, once ...",
        "pip install",
        "Installed.",
        "python bot.py",
    ]
    assert said[1] == ["python bot.py"]


@needs_make
@pytest.mark.parametrize(("found", "is_error"), [(0, False), (1, False), (2, True)])
def test_warnings_of_the_doctors_are_no_error_of_makes(tmp_path: Path, found: int, is_error: bool) -> None:
    made = make(tmp_path, "doctor", FOUND=str(found))
    assert (made.returncode != 0, "***" in made.stderr) == (is_error, is_error)
