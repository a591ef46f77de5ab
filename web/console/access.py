"""Access to the console: its password, the limit of attempts, and sessions in memory."""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

from aiohttp import web
from yarl import URL

LONGEST_PASSWORD = 1_024  # bytes
MINUTE = 60.0
WRONG_BY_ADDRESS = 5  # a minute
WRONG_IN_ALL = 50  # a minute: an address can be forged
SESSION_SECONDS = 12 * 3600.0
MOST_SESSIONS = 1_000


@dataclass(frozen=True, slots=True)
class Session:
    """A session, of somebody who has logged in, or of any visitor if there is no password. key: hash of its cookie."""

    key: bytes
    ends_at: float
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    def sent(self, csrf: object) -> bool:
        """Whether a form has sent this session's token."""
        return isinstance(csrf, str) and hmac.compare_digest(csrf.encode(), self.csrf.encode())


class Sessions:
    """The sessions that have not ended, the oldest first. clock: monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self) -> tuple[str, Session]:
        """Starts a session, and returns its cookie and itself."""
        cookie = secrets.token_urlsafe(32)
        session = Session(_digest(cookie), self._clock() + SESSION_SECONDS)
        self._sessions[session.key] = session
        if len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return cookie, session

    def find(self, cookie: str | None) -> Session | None:
        session = self._sessions.get(_digest(cookie)) if cookie else None
        return session if session and self.holds(session) else None

    def holds(self, session: Session) -> bool:
        if session.ends_at <= self._clock():
            self.end(session)
        return session.key in self._sessions

    def end(self, session: Session) -> None:
        self._sessions.pop(session.key, None)


class Password:
    """The console's password, and the wrong attempts of the last minute. clock: monotonic seconds.

    An attempt while an address has to wait is neither checked nor counted, so that nobody is locked out for longer than
    a minute after the last one that was. An address that has given the right password before waits only after its own
    wrong attempts.
    """

    def __init__(self, password: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._digest = _digest(password)
        self._clock = clock
        self._wrong: deque[tuple[float, str]] = deque()
        self._right: deque[str] = deque(maxlen=MOST_SESSIONS)

    def seconds_to_wait(self, address: str) -> int:
        """How many seconds this address has to wait for its next attempt; 0: none."""
        now = self._clock()
        while self._wrong and self._wrong[0][0] <= now - MINUTE:
            self._wrong.popleft()
        own = [at for at, whose in self._wrong if whose == address]
        waits = [own[-WRONG_BY_ADDRESS]] if len(own) >= WRONG_BY_ADDRESS else []
        if len(self._wrong) >= WRONG_IN_ALL and address not in self._right:
            waits.append(self._wrong[-WRONG_IN_ALL][0])
        return max((int(at + MINUTE - now) + 1 for at in waits), default=0)

    def accepts(self, given: str, address: str) -> bool:
        """Whether it is the password, compared in constant time. A wrong one is counted."""
        is_right = len(given.encode(errors="surrogatepass")) <= LONGEST_PASSWORD and hmac.compare_digest(
            _digest(given), self._digest
        )
        if is_right and address not in self._right:
            self._right.append(address)
        elif not is_right:
            self._wrong.append((self._clock(), address))
        return is_right


def address_of(request: web.BaseRequest) -> str:
    """The client for the limit of attempts: the peer, and the last of X-Forwarded-For, as a host's proxy sets it."""
    return f"{request.remote} {request.headers.get('X-Forwarded-For', '').rpartition(',')[2].strip()[:64]}"


def host_of(request: web.BaseRequest) -> str | None:
    """The host name or address of the Host header. None: it is invalid."""
    try:
        return URL.build(scheme="http", authority=request.host).host
    except ValueError:
        return None


def _digest(secret: str) -> bytes:
    return sha256(secret.encode(errors="surrogatepass")).digest()
