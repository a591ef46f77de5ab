"""The terminal at which somebody sets the bot up: questions, answers that are not shown, and waiting for a line."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from getpass import getpass
from textwrap import fill

from doctor.findings import HIDDEN, Finding

WIDTH = 100


def is_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


class Terminal:
    """stdin and stdout, each a terminal. A secret that was given is never printed, whoever has it in what they say."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()

    def say(self, text: str = "") -> None:
        """Prints paragraphs. What is indented stays a line, so that an address can be copied whole."""
        for secret in sorted(self._secrets, key=len, reverse=True):  # of which one may begin another
            text = text.replace(secret, HIDDEN)
        shown = "".join(character if character.isprintable() or character == "\n" else "?" for character in text)
        for line in shown.split("\n"):
            whole = line.startswith(" ")
            sys.stdout.write(
                (line if whole else fill(line, WIDTH, break_long_words=False, break_on_hyphens=False)) + "\n"
            )
        sys.stdout.flush()

    def show(self, finding: Finding) -> None:
        """Prints what a check found, and its fix."""
        self.say(f"{finding.says} {finding.fix}".strip())

    def ask(self, question: str) -> str:
        """What is answered, in one line. Raises EOFError where nothing will be."""
        return self._read(input, f"{question} ")

    def ask_secret(self, question: str) -> str:
        """As ask; what is typed or pasted is not shown."""
        answer = self._read(getpass, f"{question} ")
        self.hide(answer)
        return answer

    def _read(self, read: Callable[[str], str], question: str) -> str:
        """A line of text: what is none, as bytes in another encoding, is asked for again."""
        while True:
            try:
                return read(question).strip().encode().decode()
            except UnicodeError:
                self.say("That cannot be read: it is no text in UTF-8.")

    def hide(self, secret: str) -> None:
        """Keeps this from being printed, where it is long enough to be a secret."""
        if len(secret) >= 8:
            self._secrets.add(secret)

    def wait(self, seconds: float) -> str | None:
        """A line, if one is typed within this time."""
        return self.ask("") if select.select([sys.stdin], [], [], seconds)[0] else None
