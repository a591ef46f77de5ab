"""A module's main() in this process, which has all imported: what it prints, and how it ends."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from importlib import import_module

import pytest


@dataclass(frozen=True)
class Ended:
    returncode: int
    stdout: bytes
    stderr: bytes


def run_main(module: str, *arguments: object) -> Ended:
    """As `python -m module arguments`, but for what only a process of its own can show."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [module, *map(str, arguments)])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            code = import_module(module).main()
        except SystemExit as error:  # argparse's
            code = error.code
    return Ended(int(code or 0), *(bytes(stream.buffer.getvalue()) for stream in (out, err)))
