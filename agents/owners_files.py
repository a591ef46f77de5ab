"""What the readers of the files that the bot's owner writes have in common."""

from __future__ import annotations

import ipaddress

MAX_SHOWN = 80


def shown(text: str) -> str:
    """A text of the file's as a sentence shows it: in quotes, and clipped."""
    return repr(text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…")


def is_loopback(host: str) -> bool:
    """Whether what is sent there stays on this machine, and so may go unencrypted."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
