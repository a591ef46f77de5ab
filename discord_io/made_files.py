"""Turns long code blocks and wide tables of an answer into files, as messages do not show them well."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from os.path import commonprefix
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

from discord_io.split import FENCE, MAX_LENGTH, length

MAX_COLUMNS = 60  # characters of a table's line that a window of usual size shows without breaking it
MAX_FILES = 10  # of a message: Discord's limit
RULE = re.compile(r"[ \t]*+\|?[ \t]*+:?-+:?[ \t]*+(?:\|[ \t]*+:?-+:?[ \t]*+)*+\|?[ \t]*+$")  # below a table's head
PLAIN = re.compile(r"[a-z0-9]{1,8}")
# The endings of files in languages whose name is not the ending.
ENDINGS = {
    "python": "py", "javascript": "js", "typescript": "ts", "bash": "sh", "shell": "sh", "zsh": "sh", "console": "txt",
    "text": "txt", "plaintext": "txt", "markdown": "md", "rust": "rs", "ruby": "rb", "kotlin": "kt", "csharp": "cs",
    "c++": "cpp", "c#": "cs", "golang": "go", "perl": "pl", "haskell": "hs", "yml": "yaml", "powershell": "ps1",
    "latex": "tex", "makefile": "mk", "terraform": "tf", "dockerfile": "txt",
}  # fmt: skip


Data = Annotated[
    bytes,
    BeforeValidator(lambda value: b64decode(value) if isinstance(value, str) else value),
    PlainSerializer(lambda data: b64encode(data).decode(), when_used="json"),
]


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A file attached to an answer."""

    name: str
    data: Data


def with_files(text: str) -> tuple[str, list[MadeFile]]:
    """Returns the text with a line in place of each long code block and wide table, and these as files.

    As the text grows, what has become a file stays one.
    """
    if "```" not in text and "|" not in text:  # neither code nor a table, as in most answers
        return text, []
    files: list[MadeFile] = []
    shown: list[str] = []
    lines, at = text.splitlines(keepends=True), 0
    while at < len(lines):
        end, ending = _code(lines, at) or _table(lines, at) or (at + 1, "")
        piece, at = lines[at:end], end
        if ending and len(files) < MAX_FILES:
            name = f"answer{f'-{len(files) + 1}' if files else ''}.{ending}"
            files.append(MadeFile(name, _inside(piece).encode(errors="replace")))
            shown.append(f"📎 `{name}`\n")
        else:
            shown += piece
    return ("".join(shown), files) if files else (text, files)


def _code(lines: list[str], at: int) -> tuple[int, str] | None:
    """The line at which a code block that begins here ends, and its file's ending (empty: it stays text); None: there
    is no code block."""
    opening = FENCE.match(lines[at]) if "```" in lines[at] else None
    if opening is None:
        return None
    closings = ((n, FENCE.match(lines[n - 1])) for n in range(at + 2, len(lines) + 1))  # no copy for each block
    closed = next((n for n, c in closings if c and c[1].startswith(opening[1]) and not c[2]), None)
    end = closed or len(lines)
    language = opening[2].lower()
    ending = ENDINGS.get(language) or (language if PLAIN.fullmatch(language) else "txt")
    return end, ending if length("".join(lines[at:end])) > MAX_LENGTH else ""


def _table(lines: list[str], at: int) -> tuple[int, str] | None:
    """The same for a table in Markdown, which Discord does not format."""
    if "|" not in lines[at] or at + 1 == len(lines) or "|" not in lines[at + 1] or not RULE.match(lines[at + 1]):
        return None
    end = next((n for n in range(at, len(lines)) if "|" not in lines[n]), len(lines))
    return end, "md" if max(len(line.strip()) for line in lines[at:end]) > MAX_COLUMNS else ""


def _inside(lines: list[str]) -> str:
    """The code in a code block; a table unchanged."""
    if (opening := FENCE.match(lines[0])) is None:
        return "".join(lines)
    closing = FENCE.match(lines[-1]) if len(lines) > 1 else None
    is_closed = closing is not None and closing[1].startswith(opening[1]) and not closing[2]
    code = lines[1 : len(lines) - is_closed]
    # In a list it is indented as the list is. textwrap.dedent() would make a pattern of the indentation.
    indentation = commonprefix([line[: -len(line.lstrip(" \t"))] for line in code if line.strip()])  # noqa: RUF071 - no paths
    return "".join(line.removeprefix(indentation) for line in code) if opening.start(1) else "".join(code)
