"""Rate limits with Discord's headers, and remembered nonces."""

import hashlib
import math
from collections import OrderedDict
from dataclasses import dataclass

from playground.model import Clock

_NONCE_SECONDS = 300.0  # Discord: "the past few minutes"
_MAX_NONCES = 10_000
_MAX_BUCKETS = 20_000


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate limit: number of requests in a window of `seconds`, which the first request opens."""

    limit: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Discord's rate limits as observed; None: off. All but the last are per channel."""

    sends: Rate | None = Rate(5, 5.0)
    edits: Rate | None = Rate(5, 5.0)
    reactions: Rate | None = Rate(1, 0.25)
    everything: Rate | None = Rate(50, 1.0)

    @classmethod
    def off(cls) -> "Limits":
        return cls(None, None, None, None)

    def scaled(self, factor: float) -> "Limits":
        """The same rates with windows `factor` times as long."""
        rates = (self.sends, self.edits, self.reactions, self.everything)
        return Limits(*(rate and Rate(rate.limit, rate.seconds * factor) for rate in rates))


@dataclass(slots=True)
class _Window:
    ends: float
    used: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a request's bucket. `retry_after`: seconds; None: the request may pass."""

    bucket: str
    rate: Rate
    remaining: int
    reset_after: float
    retry_after: float | None
    is_global: bool = False

    def headers(self, now: float) -> dict[str, str]:
        """Discord's rate limit headers. `now` is wall-clock seconds."""
        headers = {
            "X-RateLimit-Limit": str(self.rate.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": f"{now + self.reset_after:.3f}",
            "X-RateLimit-Reset-After": f"{self.reset_after:.3f}",
            "X-RateLimit-Bucket": self.bucket,
        }
        if self.retry_after is not None:
            headers |= retry_headers(self.retry_after, is_global=self.is_global)
        return headers


def retry_headers(retry_after: float, *, is_global: bool = False) -> dict[str, str]:
    """The headers that only a 429 has. Without Via, discord.py takes it for a ban by Discord's proxy."""
    scope = "global" if is_global else "user"
    headers = {"Retry-After": str(math.ceil(retry_after)), "Via": "1.1 playground", "X-RateLimit-Scope": scope}
    return headers | {"X-RateLimit-Global": "true"} if is_global else headers


def retry_body(retry_after: float, *, is_global: bool = False) -> dict[str, object]:
    return {"message": "You are being rate limited.", "retry_after": round(retry_after, 3), "global": is_global}


class Limiter:
    """Counts requests in their windows."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._windows: OrderedDict[tuple[str, str], _Window] = OrderedDict()

    def take_global(self) -> Standing | None:
        """Count a request in the global limit. None: there is no limit."""
        return self._take("everything", "", self._limits.everything)

    def take(self, kind: str, channel_id: str) -> Standing | None:
        """Count a request in a channel's limit. `kind`: name of a field of Limits. None: there is no limit."""
        return self._take(kind, channel_id, getattr(self._limits, kind))

    def _take(self, kind: str, major: str, rate: Rate | None) -> Standing | None:
        if rate is None:
            return None
        now = self._clock()
        window = self._windows.get((kind, major))
        if window is None or window.ends <= now:
            window = self._windows[kind, major] = _Window(now + rate.seconds)
            self._windows.move_to_end((kind, major))
            if len(self._windows) > _MAX_BUCKETS:
                self._windows.popitem(last=False)
        left = max(0.0, window.ends - now)
        allowed = window.used < rate.limit
        window.used += allowed
        bucket = hashlib.blake2s(kind.encode(), digest_size=16).hexdigest()
        retry_after = None if allowed else left
        return Standing(bucket, rate, rate.limit - window.used, left, retry_after, is_global=kind == "everything")


class Nonces:
    """The messages made with nonces in the last 5 minutes, per author and channel."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._made: OrderedDict[tuple[int, int, str], tuple[float, int]] = OrderedDict()

    def find(self, author_id: int, channel_id: int, nonce: str | int) -> int | None:
        """Id of the message, which may have been deleted. None: there is none."""
        made = self._made.get((author_id, channel_id, str(nonce)))
        return made[1] if made is not None and self._clock() - made[0] < _NONCE_SECONDS else None

    def note(self, author_id: int, channel_id: int, nonce: str | int, message_id: int) -> None:
        key = (author_id, channel_id, str(nonce))
        self._made[key] = (self._clock(), message_id)
        self._made.move_to_end(key)
        if len(self._made) > _MAX_NONCES:
            self._made.popitem(last=False)
