"""Detects error messages and stack traces of programs in a message, in a code block or not.

Sentences about errors ("I made an error", "what does exit code 1 mean?") do not count. Each pattern is tried only if
its key word occurs, so that an ordinary message costs a few look-ups, and of those only so many, so that one that is
made to look like every program's output costs no more than a few milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

MAX_LENGTH = 3_000  # characters that are read
MAX_TRIED = 6  # patterns; what programs print has at most 4 of the key words
MARKS = r"[ \t>`|*]*+"


def _lines(*ways: str) -> re.Pattern[str]:
    """A pattern that matches any of `ways`, line by line. Quote and code marks around a line's text are allowed."""
    around = (f"^{MARKS}{way[1:]}" if way.startswith("^") else way for way in ways)
    return re.compile("|".join(f"{way[:-1]}{MARKS}$" if way.endswith("$") else way for way in around), re.MULTILINE)


CERTAIN = (
    "traceback (most recent call last)",
    "npm err!",
    "gyp err!",
    "npm error code ",
    "(core dumped)",
    "undefined reference to ",
    "undefined symbols for architecture",
    "is not recognized as an internal or external command",
    "is not recognized as the name of a cmdlet",
    "all goroutines are asleep",
    "addresssanitizer: ",
    "*** stack smashing detected ***",
    "double free or corruption",
    "cannot read properties of undefined (reading",
    "cannot read properties of null (reading",
    "err_module_not_found",
    "error response from daemon:",
    "permission denied (publickey",
    "could not find or load main class ",
    "process finished with exit code -",
)
"""Case-folded phrases, each of which only a program prints."""
LIKELY: Mapping[str, re.Pattern[str]] = {
    "error": _lines(
        r"^(?:error|ERROR|Error|fatal error|Fatal error|PHP Fatal error|Parse error|SyntaxError)(?:\[\w+\])?: +\S+ +\S",
        r"\b[A-Z]\w{0,60}Error: +\S",
        r"^(?:\w+\.)+\w*Error$",
        r"\berror\[E\d{4}\]",
        r"\b(?:fatal )?error (?:TS|CS|C|LNK|MSB|NU|NETSDK|AVLN)\d+\b",
        r"\S:\d+(?::\d+)?:? (?:fatal )?error: ",
        r"\b(?:ld|collect2|clang|gcc|g\+\+|cc1\w*): (?:fatal )?error\b",
        r"^\[ERROR\] \S+",
        r"^ERROR \d{4} \(\w{5}\)",
        r"\d:\d\d:\d\d\S{0,20}\s.{0,80}?\bERROR\b",
        r"\bGPG error: \S",
    ),
    "exception": _lines(
        r"\b[A-Z]\w{0,60}Exception: +\S",
        r"\b\w{1,60}\.\w{0,60}Exception\b",
        r"^Exception: +\S",
        r"^(?:Unhandled|Uncaught) [Ee]xception\b",
        r"\bUnhandled exception(?: at| in|\.|:)",
        r'\bException in thread "',
        r"\bFATAL EXCEPTION\b",
        r"\bBuild failed with an exception\b",
    ),
    "uncaught (in promise)": _lines(r"\bUncaught \(in promise\)"),
    "unhandled": _lines(r"\bUnhandledPromiseRejection\w*\b", r"\bUnhandled promise rejection\b"),
    "panic": _lines(r"^panic: \S", r"\bthread '[^'\n]*' (?:\(\d+\) )?panicked at\b", r"\b[Kk]ernel panic - "),
    "goroutine ": _lines(r"^goroutine \d+ \["),
    "    at ": _lines(r"^at \S.{0,200}:\d+\)?$", r"^at [\w.$<>/]+\((?:Native Method|Unknown Source)\)"),
    'file "': _lines(r'^File "[^"\n]+", line \d+'),
    " on line ": _lines(r"[/\\.]\S{1,100} on line \d+"),
    ".go:": _lines(r"^\S+\.go:\d+:\d+: \S"),
    ".rb:": _lines(r"^\S+\.rb:\d+:in [`']"),
    "not found": _lines(
        r"^(?:-?\w*sh: (?:line )?(?:\d+: )?)?[\w./+-]+: (?:command )?not found$",
        r"\b\w*sh: (?:line )?(?:\d+: )?\S+: (?:command )?not found\b",
        r"\bcommand not found: \S",
        r"\bversion `[^'\n]{1,80}' not found\b",
    ),
    "no such file or directory": _lines(r"(?:: |\(2:? )No such file or directory\b"),
    "permission denied": _lines(r"\S: [Pp]ermission denied\b"),
    "segmentation fault": _lines(
        r"^(?:\w*sh: (?:\d+ )?)?[Ss]egmentation fault$", r"^(?:\w*sh: (?:\d+ )?)?[Ss]egmentation fault(?: {2,}|:)"
    ),
    "segfault at ": _lines(r"\bsegfault at [0-9a-f]+ ip "),
    "fatal": _lines(r"^fatal: \S+ \S", r"\d:\d\d:\d\d\S{0,20}\s.{0,80}?\bFATAL\b"),
    "e: ": _lines(r"^E: (?:Unable|Could not|Package|Failed|The|Sub-process|Some|Unmet|dpkg|You)\b"),
    "exit": _lines(
        r"\b(?:exited|finished|failed|died|terminated) with (?:exit )?(?:code|status):? \(?-?[1-9]\d*",
        r"\breturned (?:a )?(?:non-zero )?(?:exit )?(?:code|status):? [1-9]\d*",
        r"^(?:exit code|exit status):? [1-9]\d*$",
        r"\bELIFECYCLE\b",
    ),
    "non-zero": _lines(r"\breturned (?:a )?non-zero (?:exit )?(?:code|status)"),
    "http": _lines(r"\bHTTP/[\d.]+\"? 5\d\d\b", r"\bHTTP(?:Error|StatusError)? 5\d\d: \S"),
    "status": _lines(r"\bstatus(?: ?code|_code)[:= ]+5\d\d\b", r"\bstatus[:=] ?5\d\d\b"),
    "make": _lines(r"^make(?:\[\d+\])?: \*\*\* "),
    "failed": _lines(
        r"^BUILD FAILED\b", r"^(?<=> )Task \S+ FAILED\b", r"^failed to solve: ", r"\bdpkg: .{0,200} failed\b"
    ),
    "0x8": _lines(r"\b0x8[0-9A-Fa-f]{7}\b"),
    "sqlstate[": _lines(r"SQLSTATE\[\w{5}\]"),
    "ora-": _lines(r"\bORA-\d{5}: "),
}
"""A case-folded key word that must occur -> pattern, with its case, of how programs print it."""


def pastes_error(content: str) -> bool:
    """Whether the message contains a program's error output. content: as posted."""
    content = content[:MAX_LENGTH]
    folded = content.casefold()
    if any(words in folded for words in CERTAIN):
        return True
    tried = islice((ways for word, ways in LIKELY.items() if word in folded), MAX_TRIED)
    return any(ways.search(content) for ways in tried)
