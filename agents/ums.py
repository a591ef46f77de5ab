"""A remote agent (UMS), which stores its conversation itself: here only the conversation's id is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Self
from weakref import WeakKeyDictionary

import structlog
from aiohttp import ClientConnectorError, ClientError, ConnectionTimeoutError
from pydantic import ValidationError

from agents.gateway import AgentRequest, Answer, Declined, Failure, FailureKind, Outcome
from agents.general import STALL_SECONDS, TOTAL_SECONDS
from agents.run import MAX_ANSWER_CHARACTERS
from agents.ums_wire import GoneError, RefusedError, Remote, RemoteError, SilenceError
from discord_io.split import is_blank
from llm_history import indented
from state.agent_state import UMSState
from state.limits import Cap
from state.message import without_call
from understanding.shared_context import in_words

log = structlog.get_logger()

CONNECT_SECONDS = 5.0
# What an answer is counted as, since remote agents do not report their use.
ANSWER_TOKENS = 10_000
CAPPED = {Cap.TURN: FailureKind.TURN_CAP, Cap.OWN: FailureKind.WAITED, Cap.UNKNOWN: FailureKind.INTERNAL}


class UMSAgent:
    """Asks a remote agent over HTTP, in a conversation that is created with the first question.

    url: the base URL, without `/conversations`; headers: sent with every request, and never shown. Use it with
    `async with`.
    """

    def __init__(
        self,
        name: str,
        url: str,
        headers: Mapping[str, str],
        *,
        connect_seconds: float = CONNECT_SECONDS,
        stall_seconds: float = STALL_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
    ) -> None:
        self.name = name
        self._remote = Remote(url, headers, connect_seconds=connect_seconds, stall_seconds=stall_seconds)
        self._total = total_seconds
        self._begun: WeakKeyDictionary[AgentRequest, UMSState] = WeakKeyDictionary()
        self._reserved: WeakKeyDictionary[AgentRequest, int] = WeakKeyDictionary()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._remote.aclose()

    async def respond(self, request: AgentRequest, show: Callable[[str], None]) -> Outcome:
        heard = _Heard(show)
        try:
            if request.allowance:
                name = f"agent:{self.name}"
                if cap := await request.allowance.reserve(ANSWER_TOKENS, output=ANSWER_TOKENS, models=(name,)):
                    kind = CAPPED.get(cap, FailureKind.OVER_BUDGET)
                    raise RemoteError(kind, f"was not asked: the cap of a {cap.value} is reached")
                self._reserved[request] = ANSWER_TOKENS
            async with asyncio.timeout(self._total):
                await self._ask(request, heard)
        except RemoteError as error:
            kind, why = error.kind, str(error)
        except SilenceError as silence:
            if request.may_decline:
                return Declined(str(silence), self._tokens(request), state=self._state(request))
            kind, why = FailureKind.EMPTY, "declined to answer, though it was called"
        except ConnectionTimeoutError:
            kind, why = FailureKind.UNAVAILABLE, "cannot be reached"
        except TimeoutError:
            kind, why = FailureKind.LATE, "did not finish its answer in time"
        except (ClientError, OSError) as error:  # its text may have the URL
            kind, why = FailureKind.UNAVAILABLE, f"cannot be reached, or broke off ({type(error).__name__})"
        else:
            return Answer(heard.text, [], self._tokens(request), heard.was_cut, state=self._state(request))
        tokens = self._tokens(request) if heard.is_asked else 0
        return Failure(kind, f"The agent {self.name} {why}.", heard.text, tokens, state=self._state(request))

    def interrupted(self, request: AgentRequest, text: str) -> Answer:
        return Answer(text, [], self._tokens(request), state=self._state(request))

    def _tokens(self, request: AgentRequest) -> int:
        return self._reserved.get(request, 0)

    async def _ask(self, request: AgentRequest, heard: _Heard) -> None:
        try:
            await self._hear(self._state(request) or await self._begin(request), request, heard)
        except GoneError:
            log.info("agent_lost_conversation", agent=self.name)
            await self._hear(await self._begin(request), request, heard)
        if is_blank(heard.text):
            heard.text = ""
            raise RemoteError(FailureKind.EMPTY, "gave an empty answer")

    async def _begin(self, request: AgentRequest) -> UMSState:
        """Creates a conversation, and remembers it at once, as the turn may be stopped before its first answer."""
        try:
            state = UMSState(ums_conversation_id=await self._remote.begin())
        except ValidationError:
            raise RemoteError(FailureKind.UNAVAILABLE, "gave its conversation an id that cannot be kept") from None
        self._begun[request] = state
        return state

    async def _hear(self, state: UMSState, request: AgentRequest, heard: _Heard) -> None:
        answer = self._remote.chat(state.ums_conversation_id, _words(request), may_decline=request.may_decline)
        heard.is_asked = True
        try:
            async with aclosing(answer) as pieces:
                async for piece in pieces:
                    heard.add(piece)
                    if heard.was_cut:
                        return
        except (RefusedError, ClientConnectorError, ConnectionTimeoutError):
            heard.is_asked = False
            raise

    def _state(self, request: AgentRequest) -> UMSState | None:
        kept = request.state if isinstance(request.state, UMSState) else None
        return self._begun.get(request, kept)


@dataclass(slots=True)
class _Heard:
    """An answer as far as it was received. is_asked: the agent may have begun it, and so it counts."""

    show: Callable[[str], None]
    text: str = ""
    was_cut: bool = False
    is_asked: bool = False

    def add(self, piece: str) -> None:
        room = MAX_ANSWER_CHARACTERS - len(self.text)
        self.was_cut = len(piece) > room
        if added := piece[:room]:
            self.text += added
            self.show(self.text)


def _words(request: AgentRequest) -> str:
    """The text of the questions, with their authors if there are several, after the context that all agents get, as far
    as nobody has taken it back since."""
    now = request.noted_now(request)
    context = {key: value for key, value in request.shared.items() if now.shared.get(key) == value}
    shared = f"({in_words(context)})\n" if context else ""
    name = request.place.bot_name
    # In `text` a mention of the bot is its name, not its id.
    told = [(question.author, without_call(question.text, 0, name) or question.text) for question in now.questions]
    if len(told) == 1:
        return shared + told[0][1]
    return shared + "\n".join(f"{author}: {indented(words)}" for author, words in told)
