"""Encryption at rest: values sealed with the owner's key or one that the bot made (AES-256-GCM).

`cryptography` is imported only when something is stored. A value is authenticated together with its row's place: one in
another row's place is refused. Where the owner gave keys, so is all that these did not seal. Earlier versions sealed
with Fernet, which is still read.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol
from zlib import crc32

import structlog

from storage.store import Key, Row, WrongKeyError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

log = structlog.get_logger()

PLAIN, TOKENS, SEALED = FORMS = b"=", b"*", b"+"
END = b"."  # ends a sealed value: a store may pad a row with spaces
NONCE_BYTES = 12  # random: safe for 2**32 values with one key
PART = 16_000  # bytes in one token of Fernet
KEY = re.compile(r"[A-Za-z0-9_-]{43}=")
NO_KEY = "What is stored is encrypted: set STATE_KEY to the key it was encrypted with"
UNSEALED = (
    "Some of what is stored is not encrypted, or of an early version, and with STATE_KEY none of that is read: if it "
    "is yours, start once without STATE_KEY, which encrypts it with a key of its own. Then, for one start, list that "
    "key behind the new one."
)
MAKE_ONE = '.venv/bin/python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'


class KeyPlace(Protocol):
    """The place of the key that the bot makes if its owner gives none."""

    def __str__(self) -> str:
        """The place, in words for the owner."""

    def read(self) -> str:
        """The key; empty where there is none."""

    def keep(self, key: str) -> str:
        """Stores the key if there is none yet, and returns the stored one. Raises StoreError."""


class Seal:
    """One or more keys, loaded when first needed: the first one seals, all of them open.

    given: the owner's keys. place: of the key that the bot makes: it is read only if the owner gave none.

    takes_plain: whether unsealed values are read, too: never where the owner gave keys, as then whoever can write there
    could add some; a key beside the data protects from nobody who can. fits: whether the keys are known to fit, so that
    what they do not open is damaged.
    """

    def __init__(self, given: Sequence[str], place: KeyPlace | None = None) -> None:
        self._given = given
        self._place = place
        self.takes_plain = not given
        self.fits = False
        self._found: Sequence[str] = ()
        self._ciphers: list[AESGCM] = []

    def make_key(self) -> None:
        """Has a key beside the data if the owner gave none: the one that is there, or that was, or else a new one.

        Raises StoreError.
        """
        if not self._given and self._place:
            self._place.keep(self._found[0] if self._found else urlsafe_b64encode(os.urandom(32)).decode())
            self._ciphers = []

    def seal(self, content: bytes, place: bytes) -> bytes:
        """Encrypts a value; open() decrypts it with the same place only. Raises StoreError."""
        return self.seal_all([(content, place)])[0]

    def seal_all(self, values: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
        """The same for several values with their places.

        All nonces come from one call of os.urandom(), as each call lets other threads run first.
        """
        if not values:
            return []
        cipher = self._keys()[0]
        random = os.urandom(NONCE_BYTES * len(values))
        nonces = (random[start : start + NONCE_BYTES] for start in range(0, len(random), NONCE_BYTES))
        return [
            SEALED + nonce + cipher.encrypt(nonce, content, place)
            for nonce, (content, place) in zip(nonces, values, strict=True)
        ]

    def open(self, sealed: bytes, place: bytes) -> bytes:
        """Decrypts a value. Raises WrongKeyError if none of the keys sealed it for this place; ValueError where it must
        be damaged."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - only where something is stored

        nonce, content = sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
        for cipher in self._keys() if sealed[:1] == SEALED else ():
            with suppress(InvalidTag, ValueError):  # the latter for a truncated value
                return cipher.decrypt(nonce, content, place)
        raise self._refused()

    def open_token(self, token: bytes | str) -> bytes:
        """Opens what Fernet sealed. Raises as open() does."""
        from cryptography.fernet import Fernet, InvalidToken  # noqa: PLC0415 - as above

        self._keys()
        for key in self._found:
            with suppress(InvalidToken):
                return Fernet(key).decrypt(token)
        raise self._refused()

    def _refused(self) -> Exception:
        if self.fits:
            return ValueError("it is damaged, or belongs elsewhere")
        if not self._given:
            return self._missing()
        return WrongKeyError(
            "STATE_KEY is not the key that the stored data was encrypted with: set it to that key, or for one start to "
            f"a new key, a comma, and that key.{self.where_made}"
        )

    def _missing(self) -> WrongKeyError:
        return WrongKeyError(f"{NO_KEY}{f', or put back {self._place}' if self._place else ''}.")

    @property
    def where_made(self) -> str:
        """A sentence on where the key before is if the owner had given none. Nothing looks there."""
        return f" If the bot made it, it is in {self._place}; delete it there afterwards." if self._place else ""

    @property
    def marks(self) -> list[str]:
        """A fingerprint of each key, that of the sealing key first. Raises WrongKeyError where there is none."""
        self._keys()
        return list(map(_mark, self._found))

    def hashed(self, number: int) -> bytes:
        """A keyed hash, by which a number can be found but not read. Raises as marks does."""
        return self.hashes(number)[0]

    def hashes(self, number: int) -> list[bytes]:
        """The keyed hash of a number with each of the keys."""
        self._keys()
        return [hmac.digest(key.encode(), b"id %d" % number, "sha256")[:16] for key in self._found]

    def opening(self, other: Seal) -> Seal:
        """A seal with the same keys that also opens what another one sealed. Raises as marks does."""
        self._keys()
        other._keys()
        return Seal([*self._found, *other._found])

    def _keys(self) -> list[AESGCM]:
        if not self._ciphers:
            found = self._given or list(filter(None, [self._place.read()] if self._place else []))
            if not found:
                raise self._missing()
            if not all(map(KEY.fullmatch, found)):
                raise WrongKeyError(f"{self._place} holds no key: put back the one that was there.")
            self._found = found
            self._ciphers = [_cipher(key) for key in found]
        return self._ciphers


def _mark(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:16]


def _cipher(key: str) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - only where something is stored

    return AESGCM(hmac.digest(key.encode(), b"values", "sha256"))


def read_keys(text: str, place: KeyPlace | None = None) -> Seal:
    """Reads STATE_KEY: one key, or several separated by commas, the current one first.

    Raises ValueError for a malformed key, with a sentence that says how to make one.
    """
    keys = [key.strip() for key in text.split(",")]
    if not all(map(KEY.fullmatch, keys)):
        raise ValueError(f"STATE_KEY must be one or more keys separated by commas, each made by {MAKE_ONE}")
    return Seal(keys, place)


def pack(rows: Mapping[Key, bytes | None], seal: Seal | None) -> dict[Key, bytes | None]:
    """Encodes rows' values: with a checksum over the value and its place, or sealed together with its place."""
    values = [(value, _place(key)) for key, value in rows.items() if value is not None]
    if seal is None:
        packed = [PLAIN + b"%08x" % crc32(value, crc32(place)) + value for value, place in values]
    else:
        packed = [sealed + END for sealed in seal.seal_all(values)]
    stored = iter(packed)
    return {key: None if value is None else next(stored) for key, value in rows.items()}


def unpack(key: Key, stored: bytes, seal: Seal | None) -> bytes:
    """Decodes what `pack` encoded. Raises ValueError for a value that is damaged or another row's; WrongKeyError."""
    form, rest = stored[:1], stored[1:]
    if form == PLAIN:
        if seal and not seal.takes_plain:
            raise ValueError("it is not sealed") if seal.fits else WrongKeyError(UNSEALED)
        value = rest[8:]
        if rest[:8] != b"%08x" % crc32(value, crc32(_place(key))):
            raise ValueError("it is damaged, or belongs elsewhere")
        return value
    if form not in FORMS or (form == SEALED and stored[-1:] != END):
        raise ValueError("it is damaged")
    if seal is None:
        raise WrongKeyError(f"{NO_KEY}.")
    if form == SEALED:
        return seal.open(stored[:-1], _place(key))
    parts = [seal.open_token(token).partition(b"\n") for token in rest.split(b",")]
    value = b"".join(part for *_, part in parts)
    if [place + end for place, end, _ in parts] != [_place(key, n, len(value)) for n in range(0, len(value), PART)]:
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
    """Decrypts a token of Fernet. Raises WrongKeyError."""
    if seal is None:
        raise WrongKeyError(f"{NO_KEY}.")
    return seal.open_token(token)


def _place(key: Key, *part: int) -> bytes:
    return " ".join(map(str, (*key, *part))).encode() + b"\n"
