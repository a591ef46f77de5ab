"""Encryption at rest: values sealed by a key of the owner's (Fernet: AES-128-CBC, authenticated), with their place.

`cryptography` is imported only when there is a key. What was stored before there was one is read as it is.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING
from zlib import crc32

import structlog

from storage.store import Key, Row, WrongKeyError

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

log = structlog.get_logger()

CHUNK = 16_000  # bytes sealed at a time: other threads wait for that long at most, which is a fraction of a ms
PLAIN, TOKENS = b"=", b"*"
KEY = re.compile(r"[A-Za-z0-9_-]{43}=")
MAKE_ONE = '.venv/bin/python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'


class Seal:
    """One or more keys: the first one seals, all of them open."""

    def __init__(self, keys: MultiFernet) -> None:
        self._keys = keys

    def seal(self, content: bytes) -> bytes:
        return self._keys.encrypt(content)

    def open(self, token: bytes | str) -> bytes:
        """Raises WrongKeyError for what none of the keys has sealed."""
        from cryptography.fernet import InvalidToken  # noqa: PLC0415 - only where there is a key

        try:
            return self._keys.decrypt(token)
        except InvalidToken:
            raise WrongKeyError("STATE_KEY is not the key that what is stored was sealed with.") from None


def read_keys(text: str) -> Seal:
    """The form of STATE_KEY: one key, or several separated by commas, the present one first.

    Raises ValueError for what is no such key, with a sentence that says how to make one.
    """
    from cryptography.fernet import Fernet, MultiFernet  # noqa: PLC0415 - only where there is a key

    keys = [key.strip() for key in text.split(",")]
    if not all(map(KEY.fullmatch, keys)):
        raise ValueError(f"STATE_KEY must be one or more keys separated by commas, each made by {MAKE_ONE}")
    return Seal(MultiFernet(list(map(Fernet, keys))))


def pack(key: Key, value: bytes, seal: Seal | None) -> bytes:
    """A row's value as it is stored: with a checksum over it and its place, or sealed together with its place."""
    if seal is None:
        return PLAIN + b"%08x" % crc32(value, crc32(_place(key))) + value
    tokens = []
    for start in range(0, len(value), CHUNK):
        # Its place goes with each part, so that parts cannot change places or be left out.
        tokens.append(seal.seal(_place(key, start, len(value)) + value[start : start + CHUNK]))
        time.sleep(0)
    return TOKENS + b",".join(tokens)


def unpack(key: Key, stored: bytes, seal: Seal | None) -> bytes:
    """Undoes `pack`. Raises ValueError for what is damaged or belongs elsewhere, and WrongKeyError."""
    form, rest = stored[:1], stored[1:]
    if form == PLAIN:
        value = rest[8:]
        if rest[:8] != b"%08x" % crc32(value, crc32(_place(key))):
            raise ValueError("it is damaged, or belongs elsewhere")
        return value
    if form != TOKENS:
        raise ValueError("it is damaged")
    parts = [unsealed(token, seal).partition(b"\n") for token in rest.split(b",")]
    value = b"".join(part for *_, part in parts)
    if [place + end for place, end, _ in parts] != [_place(key, n, len(value)) for n in range(0, len(value), CHUNK)]:
        raise ValueError("it belongs elsewhere, or parts of it are missing")
    return value


def read_row(key: Key, stored: bytes | None, seal: Seal | None) -> Row:
    """The row, without its value where `unpack` refuses it, which is logged. Raises WrongKeyError."""
    try:
        return Row(key.channel, key.id, unpack(key, stored or b"", seal))
    except ValueError as error:
        log.error("row_refused", kind=key.kind, channel=key.channel, id=key.id, detail=str(error))
        return Row(key.channel, key.id, None)


def unsealed(token: bytes | str, seal: Seal | None) -> bytes:
    """What a token holds. Raises WrongKeyError."""
    if seal is None:
        raise WrongKeyError("What is stored is sealed: set STATE_KEY to the key it was sealed with.")
    return seal.open(token)


def _place(key: Key, *part: int) -> bytes:
    return " ".join(map(str, (*key, *part))).encode() + b"\n"
