"""Tables of phrases in text files, each read by one test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def labelled(file: Path) -> Iterator[tuple[str, str]]:
    """Each line with the label of the nearest line above that begins with "# "; "##" begins a comment."""
    label = ""
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("# "):
            label = line[2:]
        elif line and not line.startswith("##"):
            yield line, label
