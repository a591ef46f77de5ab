"""The terminal of the set-up: questions, hidden answers, and waiting for a line."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from getpass import getpass
from textwrap import fill

from doctor.findings import HIDDEN, Finding

WIDTH = 100


def is_terminal() -> bool:
    """Whether stdin and stdout are a terminal, so that somebody can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


class Terminal:
    """stdin and stdout, each a terminal. Secrets that were typed are never printed, not even as part of an error."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()

    def say(self, text: str = "") -> None:
        """Prints wrapped paragraphs. Indented lines are not wrapped, so that an address can be copied whole."""
        for secret in sorted(self._secrets, key=len, reverse=True):  # longest first: one may begin with another
            text = text.replace(secret, HIDDEN)
        shown = "".join(character if character.isprintable() or character == "\n" else "?" for character in text)
        for line in shown.split("\n"):
            whole = line.startswith(" ")
            sys.stdout.write(
                (line if whole else fill(line, WIDTH, break_long_words=False, break_on_hyphens=False)) + "\n"
            )
        sys.stdout.flush()

    def show(self, finding: Finding) -> None:
        """Prints a finding and its fix."""
        self.say(f"{finding.says} {finding.fix}".strip())

    def ask(self, question: str) -> str:
        """Asks, and returns one line. Raises EOFError if there is no more input."""
        return self._read(input, f"{question} ")

    def ask_secret(self, question: str) -> str:
        """Asks without showing what is typed or pasted."""
        answer = self._read(getpass, f"{question} ")
        self.hide(answer)
        return answer

    def _read(self, read: Callable[[str], str], question: str) -> str:
        """Reads a line, and asks again if it is not UTF-8."""
        while True:
            try:
                return read(question).strip().encode().decode()
            except UnicodeError:
                self.say("That cannot be read: it is not text in UTF-8.")

    def hide(self, secret: str) -> None:
        """Hides a text from then on, if it is long enough to be a secret."""
        if len(secret) >= 8:
            self._secrets.add(secret)

    def wait(self, seconds: float) -> str | None:
        """A line, if one is typed within `seconds`, else None."""
        return self.ask("") if select.select([sys.stdin], [], [], seconds)[0] else None
