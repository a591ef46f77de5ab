"""Fault injection: which of the bot's requests fail, how, and whether they take effect nevertheless."""

import asyncio
import re
from dataclasses import dataclass
from typing import Any

from playground.limits import retry_body, retry_headers


@dataclass(slots=True, kw_only=True)
class Fault:
    """A fault. It acts before the request takes effect, or after it with `after_effect`.

    With `delay_event` it first waits for that event. Then with `drop` it cuts the connection, with `status` it answers
    that, with neither the request is handled as usual. `times` is how many requests it still applies to. `via` False: a
    429 as by a proxy in front of Discord, without the header by which discord.py recognises Discord's own.
    """

    method: str
    path: re.Pattern[str]
    status: int | None = None
    body: dict[str, Any] | None = None
    retry_after: float | None = None
    delay_event: asyncio.Event | None = None
    via: bool = True
    drop: bool = False
    after_effect: bool = False
    times: int = 1
    hits: int = 0

    def answer(self) -> tuple[int, dict[str, Any], dict[str, str]] | None:
        """Status, body and headers in place of the real ones. None: the real ones."""
        if self.status is None:
            return None
        if self.retry_after is not None:
            headers = retry_headers(self.retry_after)
            if not self.via:
                del headers["Via"]
            return self.status, self.body or retry_body(self.retry_after), headers
        return self.status, self.body or {"message": f"{self.status}: fault on order", "code": 0}, {}


class Faults:
    """The faults that still apply, oldest first."""

    def __init__(self) -> None:
        self._orders: list[Fault] = []

    def add(
        self,
        method: str,
        path_regex: str,
        *,
        status: int | None = None,
        code: int | None = None,
        message: str = "fault on order",
        **how: Any,
    ) -> Fault:
        """Add a fault for `method` ("*" for any) on paths in which `path_regex` is found (without /api/v10).

        `code` is Discord's error code for the body; `how` are the other fields of Fault, TypeError for unknown ones.
        The default retry_after of a 429 is 0.1 s.
        """
        if code is not None:
            how["body"] = {"message": message, "code": code}
        if status == 429:
            how.setdefault("retry_after", 0.1)
        fault = Fault(method=method.upper(), path=re.compile(path_regex), status=status, **how)
        self._orders.append(fault)
        return fault

    def clear(self) -> None:
        self._orders.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """The fault that applies to this request, counted down. None: none."""
        for fault in self._orders:
            if fault.times > 0 and fault.method in (method, "*") and fault.path.search(path):
                fault.times -= 1
                fault.hits += 1
                self._orders = [one for one in self._orders if one.times > 0]
                return fault
        return None
