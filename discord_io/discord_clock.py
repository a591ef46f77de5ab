"""The wall clock as Discord has it: what is said carries Discord's time, and is compared with the bot's own."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from types import SimpleNamespace

import aiohttp
import discord
import structlog

from clock import Clock, utc_now

log = structlog.get_logger()

# Discord tells its time in whole seconds, and an answer is on its way for some time: less cannot be told.
OFF = timedelta(seconds=2)
HALF_A_SECOND = timedelta(seconds=0.5)
LONGEST_SECONDS = 1.0  # that a request may take to tell the time


class DiscordClock:
    """The time of this machine, unless it is off: then put right by what Discord's answers say.

    trace: of the client's requests. machine: this machine's own.
    """

    def __init__(self, trace: aiohttp.TraceConfig, machine: Clock = utc_now) -> None:
        self._machine = machine
        self._ahead = timedelta()  # how far this machine's is
        trace.on_request_start.append(self._begun)
        trace.on_request_end.append(self._answered)

    def __call__(self) -> datetime:
        return self._machine() - self._ahead

    async def _begun(self, _: aiohttp.ClientSession, request: SimpleNamespace, __: object) -> None:
        request.begun_at = asyncio.get_running_loop().time()

    async def _answered(
        self, _: aiohttp.ClientSession, request: SimpleNamespace, answered: aiohttp.TraceRequestEndParams
    ) -> None:
        date = answered.response.headers.get("Date")
        took = asyncio.get_running_loop().time() - request.begun_at
        if date is None or took > LONGEST_SECONDS or not str(answered.url).startswith(discord.http.Route.BASE):
            return
        try:
            ahead = self._machine() - parsedate_to_datetime(date) - HALF_A_SECOND
        except (ValueError, TypeError):  # no time at all, or one without its zone
            return
        if abs(ahead) <= OFF:
            ahead = timedelta()
        if abs(ahead - self._ahead) > OFF:
            self._ahead = ahead
            log.warning(
                "clock_off",
                ahead_s=round(ahead.total_seconds(), 1),
                meaning="the bot goes by Discord's clock and not by this machine's",
                remedy="let the machine set its clock by NTP, for example with timedatectl set-ntp true",
            )
