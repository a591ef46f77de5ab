"""Values of settings that are more than a word or a number: hours of the day, and addresses."""

from __future__ import annotations

import ipaddress
import re
from datetime import time
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

QuietHours = tuple[time, time, ZoneInfo]
"""From when until when, by which clock; over midnight where the second is the earlier one."""
HOURS = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*-\s*(\d{1,2})(?::(\d{2}))?(?:\s+(\S+))?")


def quiet_hours(text: str) -> QuietHours:
    """Reads "22:30-7 Europe/Berlin". Without a zone the hours are those of UTC. Raises ValueError for what are none."""
    found = HOURS.fullmatch(text.strip())
    if found is None:
        raise ValueError("no hours")
    start, end = (time(int(found[hour]), int(found[hour + 1] or 0)) for hour in (1, 3))
    if start == end:
        raise ValueError("no hours lie between")
    try:
        return start, end, ZoneInfo(found[5] or "UTC")
    except (ZoneInfoNotFoundError, OSError):
        raise ValueError("no such zone") from None


def checked_address(value: str, *, secure: str, loopback: str) -> str:
    """An address to which secrets travel, which is encrypted or never leaves the machine.

    secure, loopback: the schemes of either. Raises ValueError for any other.
    """
    url = urlsplit(value)
    _ = url.port  # a ValueError for one that cannot be
    if not url.hostname or not (url.scheme == secure or (url.scheme == loopback and _is_loopback(url.hostname))):
        raise ValueError("not encrypted, and not loopback")
    return value


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
