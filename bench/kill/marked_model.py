"""What the stub's model says, so that it can be told later which answer answers which questions.

Every question carries a mark of its own, such as k42. Answer 7 to it begins with b7k42 and ends with e7k42; in between
each sentence has its number, s7k1, s7k2 and so on. Each of these stands in the channel once, or something went wrong.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from random import Random

from playground.model import Event
from tests.support.stub_model import Body, Reply, texts

MARK = re.compile(r"\bk(\d+)\b")
TOKEN = re.compile(r"\b([bse])(\d+)k(\d+)\b")
# What a prompt repeats of messages that stand elsewhere in it, or in the history.
REPEATED = re.compile(r"\(replying to [^\n]*?\): |^\(Note: .*$", re.MULTILINE)
LONG_SHARE, SLOW_SHARE = 0.25, 0.15


class MarkedModel:
    """Gives each prompt an answer: short or of several parts, streamed at some pace, sometimes after a while.

    slowest: seconds that it waits at most, and as many for the whole of what it streams. is_heard: called with each
    prompt, and whenever a piece of an answer has gone out. asked_by: (mark) -> the id of the message that carries it.
    """

    def __init__(
        self, random: Random, slowest: float, is_heard: Callable[[], object], asked_by: Callable[[int], int]
    ) -> None:
        self._random = random
        self._slowest = slowest
        self._is_heard = is_heard
        self._asked_by = asked_by
        self._reply_to: dict[int, int] = {}
        self._count = 0

    def __call__(self, body: Body) -> Reply:
        self._count += 1
        self._is_heard()
        is_long = self._random.random() < LONG_SHARE
        sentences = self._random.randint(30, 60) if is_long else self._random.randint(1, 4)
        text = answer(self._count, asked_in(texts(body), self._answers), sentences)
        chunk = self._random.randint(40, 400)
        pause = self._random.uniform(0, self._slowest) * chunk / max(len(text), chunk)

        async def pace(_text: str) -> None:
            self._is_heard()
            await asyncio.sleep(pause)

        before = None
        if self._random.random() < SLOW_SHARE:
            before = asyncio.Event()
            asyncio.get_running_loop().call_later(self._random.uniform(0, self._slowest), before.set)
        return Reply(text, chunk=chunk, pace=pace, before=before)

    def listen(self, event: Event) -> None:
        """What the playground tells those who listen."""
        message = event.message
        if message and message.author.bot and (asked := message.points_at) is not None:
            self._reply_to |= {int(n): asked for _, n, _ in TOKEN.findall(message.content)}

    def _answers(self, number: int, mark: int) -> bool:
        """Whether an answer is to the question with this mark, and was not merely told of it as said meanwhile."""
        return self._reply_to.get(number, 0) >= self._asked_by(mark)


def asked_in(prompt: Sequence[str], answers: Callable[[int, int], bool]) -> list[int]:
    """The marks of the questions that a model answers: new ones, less those to which it sees a whole answer.

    answers: (number of an answer, mark) -> whether it is one to that question.
    """
    said = [REPEATED.sub("", text) for text in prompt]
    new = [int(mark) for mark in MARK.findall(said[-1])]
    whole = {(int(n), int(mark)) for text in said for kind, n, mark in TOKEN.findall(text) if kind == "e"}
    answered = {mark for n, mark in whole if mark and answers(n, mark)}
    return list(dict.fromkeys([mark for mark in new if mark not in answered] or new))


def answer(number: int, marks: Sequence[int], sentences: int) -> str:
    """The text of an answer to the questions with these marks; 0 stands for none."""
    first, last = (" ".join(f"{kind}{number}k{mark}" for mark in marks or [0]) for kind in "be")
    middle = (f"As s{number}k{n} has it, the train is on time and stops at every station." for n in range(sentences))
    return f"About {first}:\n{' '.join(middle)}\nThat is all, {last}"
