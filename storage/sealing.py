"""Encryption at rest: values sealed by a key of the owner's (Fernet: AES-128-CBC, authenticated), with their place.

`cryptography` is imported only when something is stored. What is stored is authenticated together with its place: a row
in another's place, and with a key one that nobody sealed, is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol
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


class KeyPlace(Protocol):
    """Where a key of our own lies."""

    def __str__(self) -> str:
        """For the owner."""

    def read(self) -> str:
        """The key; empty where there is none."""

    def keep(self, key: str) -> str:
        """Stores it where there is none yet, and returns the one that holds. Raises StoreError."""

    def delete(self) -> None: ...


class Seal:
    """One or more keys: the first one seals, all of them open. Found when first needed.

    given: the owner's keys, perhaps none. place: where a key of our own is: made where none is given, it opens what it
    sealed before one was.

    takes_plain: whether what was stored before there was a key is read too; else anybody who can write could put words
    there. fits: whether the keys are known to be those of what is stored, so that what they do not open is damaged.
    """

    def __init__(self, given: Sequence[str], place: KeyPlace | None = None) -> None:
        self._given = given
        self._place = place
        self.takes_plain = self.fits = False
        self._found: list[str] = []
        self._fernet: MultiFernet | None = None

    def seal(self, content: bytes) -> bytes:
        """Raises StoreError where a key has to be made, and cannot be kept."""
        return self._keys(make=True).encrypt(content)

    def open(self, token: bytes | str) -> bytes:
        """Raises WrongKeyError for what none of the keys has sealed, ValueError where that is damage."""
        from cryptography.fernet import InvalidToken  # noqa: PLC0415 - only where something is stored

        try:
            return self._keys(make=False).decrypt(token)
        except InvalidToken:
            if self.fits:
                raise ValueError("it is damaged") from None
            raise WrongKeyError("STATE_KEY is not the key that what is stored was sealed with.") from None

    @property
    def marks(self) -> list[str]:
        """What tells the keys from others, the one that seals first. Raises as seal() does."""
        self._keys(make=True)
        return [hashlib.sha256(key.encode()).hexdigest()[:16] for key in self._found]

    def hashed(self, number: int) -> bytes:
        """By which a number is found again, and not read. Raises as seal() does."""
        self._keys(make=True)
        return hmac.digest(self._found[0].encode(), b"id %d" % number, "sha256")[:16]

    def release(self) -> None:
        """Deletes the key of our own where the owner gave one: nothing is sealed with it any more."""
        if self._given and self._place:
            self._place.delete()

    def _keys(self, *, make: bool) -> MultiFernet:
        if self._fernet is None:
            from cryptography.fernet import Fernet, MultiFernet  # noqa: PLC0415 - as above

            own = self._place.read() if self._place else ""
            found = list(filter(None, (*self._given, own)))
            if not found:
                if not (make and self._place):
                    where = f", or put back {self._place}" if self._place else ""
                    raise WrongKeyError(
                        f"What is stored is sealed: set STATE_KEY to the key it was sealed with{where}."
                    )
                found = [self._place.keep(Fernet.generate_key().decode())]
            try:
                self._fernet = MultiFernet(list(map(Fernet, found)))
            except ValueError:
                raise WrongKeyError(f"{self._place} holds no key: put back the one that was there.") from None
            self._found = found
        return self._fernet


def read_keys(text: str, place: KeyPlace | None = None) -> Seal:
    """The form of STATE_KEY: one key, or several separated by commas, the present one first.

    Raises ValueError for what is no such key, with a sentence that says how to make one.
    """
    keys = [key.strip() for key in text.split(",")]
    if not all(map(KEY.fullmatch, keys)):
        raise ValueError(f"STATE_KEY must be one or more keys separated by commas, each made by {MAKE_ONE}")
    return Seal(keys, place)


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
        if seal and not seal.takes_plain:
            raise ValueError("it is not sealed")
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
