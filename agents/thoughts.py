"""Removes thoughts that a model writes between bare tags in its text, which nobody is to read.

Most providers send thoughts separately. Other servers leave the tags in the text: in any letter case, cut anywhere by
the stream, never closed, or closed without having been opened, if the opening tag was in the prompt. A tag in quoted
code is text.
"""

from __future__ import annotations

import codecs
import re

TAG = re.compile(r"<\s{0,2}(?P<closes>/?)\s{0,2}(?:think|thinking|thought)\s{0,2}>", re.IGNORECASE)
TAGS = ("<thinking>", "<thought>", "</thinking>", "</thought>", "<think>", "</think>")
MAX_TAG = 20  # characters
TICKS = re.compile("`+")  # start or end inline code


class BareThoughts:
    """Separates the words of one response from its thoughts, as they are streamed.

    words: all so far; fewer than before if the first ones turn out to have been thoughts. were_unopened: they did.
    may_begin: the response may start with thoughts without an opening tag; then no words are reported until that is
    known. had_none: it did not.
    """

    def __init__(self, *, may_begin: bool = False) -> None:
        self._halves = codecs.getincrementaldecoder("utf-16-le")("replace")  # of emojis, which may come in two deltas
        self._said: list[str] = []  # the words in pieces: to add to a text copies all of it
        self.were_unopened = self.had_none = False
        self._thinks = self._is_unsure = may_begin
        self._unsure = ""
        self._had_any = False
        self._held = ""  # the beginning of a possible tag
        self._unlooked = ""  # words in which code was not looked for yet; what was found in those before
        self._fences = self._ticks = 0
        self._last = 0  # backticks at the end of those, which may still become a fence

    @property
    def words(self) -> str:
        if len(self._said) > 1:
            self._said = ["".join(self._said)]
        return self._said[0] if self._said else ""

    def _say(self, text: str) -> None:
        if text:
            self._said.append(text)
            self._unlooked += text

    def _say_instead(self, text: str) -> None:
        self._said, self._unlooked, self._fences, self._ticks, self._last = [], "", 0, 0, 0
        self._say(text)

    def hear(self, delta: str) -> None:
        held, at = self._held + self._halves.decode(delta.encode("utf-16-le", "surrogatepass")), 0
        for tag in TAG.finditer(held):  # without a copy of what follows each
            self._take(held[at : tag.start()])
            self._meet(tag)
            at = tag.end()
        self._held = held[at:]
        position = self._held.rfind("<")
        rest = self._held[position:] if position >= 0 else ""  # which may become a tag
        squeezed = "".join(rest.split()).lower()
        may_be_tag = rest and len(rest) < MAX_TAG and any(tag.startswith(squeezed) for tag in TAGS)
        end = position if may_be_tag else len(self._held)
        self._take(self._held[:end])
        self._held = self._held[end:]

    def end(self) -> None:
        """Ends the response: thoughts that are not closed stay thoughts, and the beginning of a tag becomes text."""
        self._take(self._held + self._halves.decode(b"", final=True))
        self._held = ""
        if self._is_unsure:
            self._say_instead(self._unsure)
            self._unsure, self._thinks, self.had_none = "", False, True

    def _take(self, text: str) -> None:
        if self._is_unsure:
            self._unsure += text
        elif not self._thinks:
            self._say(text.lstrip() if self._had_any and not self._said else text)

    def _meet(self, tag: re.Match[str]) -> None:
        if not self._thinks and self._is_code():
            self._say(tag[0])
            return
        if not tag["closes"]:
            if self._is_unsure:  # the thoughts begin here, so what came before is text
                self._say_instead(self._unsure)
            self._thinks = True
        elif self._is_unsure or not (self._thinks or self._had_any):
            self._say_instead("")
            self.were_unopened, self._thinks = True, False
        else:
            self._thinks = False
        self._unsure, self._is_unsure, self._had_any = "", False, True

    def _is_code(self) -> bool:
        """Whether the next text is in quoted code. Looks at each word only once, as there may be many tags."""
        new, self._unlooked = self._unlooked, ""
        if rest := new.rstrip("`"):
            whole = "`" * self._last + rest
            _, newline, line = whole.rpartition("\n")
            self._fences += whole.count("```")
            line = line.replace("```", "")  # else the end of a block would count as inline code
            self._ticks = len(TICKS.findall(line)) + (0 if newline else self._ticks)
            self._last = 0
        self._last += len(new) - len(rest)
        return (self._fences + self._last // 3) % 2 == 1 or (self._ticks + (self._last % 3 > 0)) % 2 == 1


def without_bare_thoughts(text: str) -> str:
    """The words of a complete response."""
    heard = BareThoughts()
    heard.hear(text)
    heard.end()
    return heard.words
