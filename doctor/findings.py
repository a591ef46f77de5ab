"""Findings of checks: one sentence on what is so, one on how to mend it; as a list for people, and as JSON."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from textwrap import TextWrapper

import orjson

SECONDS = 10.0  # for one check
HIDDEN = "[hidden]"
COLOURS = {"ok": "32", "warning": "33", "fault": "31", "skipped": "2"}


class State(StrEnum):
    """State of a finding. SKIPPED: it could not be checked, or does not apply."""

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding. says: one sentence on what is so; fix: one on how to mend it; empty: nothing to do."""

    check: str
    state: State
    says: str
    fix: str = ""


def ok(check: str, says: str) -> Finding:
    return Finding(check, State.OK, says)


def skipped(check: str, says: str) -> Finding:
    return Finding(check, State.SKIPPED, says)


def warning(check: str, says: str, fix: str) -> Finding:
    return Finding(check, State.WARNING, says, fix)


def fault(check: str, says: str, fix: str) -> Finding:
    return Finding(check, State.FAULT, says, fix)


def of_sentence(check: str, error: Exception) -> Finding:
    """A fault from an error whose text is one sentence for the owner: what is wrong, a colon, what would be right."""
    says, colon, fix = str(error).rpartition(": ")
    if not colon:
        return fault(check, str(error), "Correct that; docs/settings.md lists what works.")
    return fault(check, f"{says}.", f"{fix[0].upper()}{fix[1:]}")


class NotCheckedError(Exception):
    """Raised if a check cannot be made. says, fix: the sentences of the finding that reports it."""

    def __init__(self, says: str, fix: str) -> None:
        super().__init__(says)
        self.says = says
        self.fix = fix


async def bounded(check: str, work: Awaitable[list[Finding]], seconds: float = SECONDS) -> list[Finding]:
    """The findings of a check, with a timeout. A timeout or an error in the check becomes a finding, too."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except NotCheckedError as error:
        return [fault(check, error.says, error.fix)]
    except TimeoutError:
        return [
            fault(
                check,
                f"This did not end within {seconds:g} s.",
                "Try again, and see whether the service that it asks is hanging.",
            )
        ]
    except Exception as error:  # noqa: BLE001 - the other checks must still report their findings
        where = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
        return [fault(check, f"The check itself failed ({what}).", "Report that as a bug.")]


def exit_code(findings: Sequence[Finding]) -> int:
    """2 if there is a fault, 1 if there are only warnings, 0 if all is well."""
    states = {finding.state for finding in findings}
    return 2 if State.FAULT in states else int(State.WARNING in states)


def without(secrets: Collection[str], findings: Sequence[Finding]) -> list[Finding]:
    """The findings with these values replaced, wherever they came from."""

    def hide(text: str) -> str:
        for secret in sorted(secrets, key=len, reverse=True):  # longest first: one may begin with another
            text = text.replace(secret, HIDDEN)
        return text

    return [replace(finding, says=hide(finding.says), fix=hide(finding.fix)) for finding in findings]


def as_json(findings: Sequence[Finding]) -> str:
    return orjson.dumps([asdict(finding) for finding in findings], option=orjson.OPT_INDENT_2).decode()


def as_lines(findings: Sequence[Finding], *, coloured: bool, width: int = 100) -> str:
    """The findings for a terminal: state, check and sentence, and the fix below."""
    column = max((len(finding.check) for finding in findings), default=0)
    lines = []
    for finding in findings:
        state = finding.state.value.ljust(7)
        shown = f"\x1b[{COLOURS[finding.state]}m{state}\x1b[0m" if coloured else state
        lines += _wrapped(finding.says, f"{shown}  {finding.check.ljust(column)}  ", len(state) + column + 4, width)
        if finding.fix:
            lines += _wrapped(finding.fix, " " * (len(state) + column + 4) + "-> ", len(state) + column + 7, width)
    return "\n".join(lines)


def _wrapped(text: str, head: str, indent: int, width: int) -> list[str]:
    """The text in lines after a head, indented by `indent` columns. Unprintable characters become "?"."""
    plain = "".join(character if character.isprintable() else "?" for character in text)
    wrapper = TextWrapper(max(width - indent, 40), break_long_words=False, break_on_hyphens=False)
    first, *rest = wrapper.wrap(plain) or [""]
    return [head + first, *(" " * indent + line for line in rest)]
