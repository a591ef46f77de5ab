"""Encryption at rest: values sealed with the owner's key or one that the bot made (AES-256-GCM).

`cryptography` is imported only when something is stored. A value is authenticated together with its row's place: one in
another row's place is refused, and, once there is a key, one that is not sealed. Earlier versions sealed with Fernet,
which is still read.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from base64 import urlsafe_b64encode
from collections.abc import Collection, Mapping, Sequence
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
NO_KEY = "What is stored is encrypted: set STATE_KEY to the key it was encrypted with."
MAKE_ONE = '.venv/bin/python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'


class KeyPlace(Protocol):
    """The place of the key that the bot made."""

    def __str__(self) -> str:
        """The place, in words for the owner."""

    def read(self) -> str:
        """The key; empty where there is none."""

    def keep(self, key: str) -> str:
        """Stores the key if there is none yet, and returns the stored one. Raises StoreError."""

    def delete(self) -> None: ...

    def marker(self) -> str:
        """The marker beside the key, which tells what was sealed once; empty: there is none."""

    def keep_marker(self, marker: str) -> None:
        """Replaces the marker. Raises StoreError."""


class Seal:
    """One or more keys, loaded when first needed: the first one seals, all of them open.

    given: the owner's keys, perhaps none. place: of the key that the bot makes if none is given.

    takes_made: whether that key opens, too, where the owner gave others, as until all it sealed is sealed anew.
    takes_plain: whether unsealed values are read, too, as before there was a key. Later either would let anybody who
    can write there, and so put a key there, add messages. fits: whether the keys are known to fit, so that what they do
    not open is damaged. has_opened_given: whether one of the owner's keys has opened anything. makes_key: False: there
    must be a key already. seals_with: the mark of the key that seals in place of the first one, if it opens anything:
    where sealing anew failed, nothing tells that the first one seals already.
    """

    def __init__(self, given: Sequence[str], place: KeyPlace | None = None) -> None:
        self._given = given
        self._place = place
        self.takes_made = self.takes_plain = self.fits = self.has_opened_given = False
        self.makes_key = True
        self.seals_with = ""
        self._found: list[str] = []
        self._ciphers: list[AESGCM] = []

    def seal(self, content: bytes, place: bytes) -> bytes:
        """Encrypts a value; open() decrypts it with the same place only.

        Raises StoreError where a key has to be made, and cannot be stored.
        """
        return self.seal_all([(content, place)])[0]

    def seal_all(self, values: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
        """The same for several values with their places.

        All nonces come from one call of os.urandom(), as each call lets other threads run first.
        """
        if not values:
            return []
        marks, ciphers = self.marks, self._ciphers
        cipher = ciphers[marks.index(self.seals_with) if self.seals_with in marks else 0]
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
        for number, cipher in enumerate(self._keys(make=False) if sealed[:1] == SEALED else ()):
            with suppress(InvalidTag, ValueError):  # the latter for a truncated value
                opened = cipher.decrypt(nonce, content, place)
                self.has_opened_given |= number < len(self._given)
                return opened
        raise self._refused()

    def open_token(self, token: bytes | str) -> bytes:
        """Opens what Fernet sealed. Raises as open() does."""
        from cryptography.fernet import Fernet, InvalidToken  # noqa: PLC0415 - as above

        self._keys(make=False)
        for number, key in enumerate(self._found):
            with suppress(InvalidToken):
                opened = Fernet(key).decrypt(token)
                self.has_opened_given |= number < len(self._given)
                return opened
        raise self._refused()

    def _refused(self) -> Exception:
        if self.fits:
            return ValueError("it is damaged, or belongs elsewhere")
        return WrongKeyError("STATE_KEY is not the key that the stored data was encrypted with.")

    @property
    def marks(self) -> list[str]:
        """A fingerprint of each key, that of the sealing key first. Raises as seal() does."""
        self._keys(make=True)
        return list(map(_mark, self._found))

    def knows(self, mark: str) -> bool:
        """Whether a fingerprint is that of one of the keys. Makes no key. Raises WrongKeyError where there is none."""
        self._keys(make=False)
        return mark in self.marks

    def hashed(self, number: int) -> bytes:
        """A keyed hash, by which a number can be found but not read. Raises as seal() does."""
        return self.hashes(number)[0]

    def hashes(self, number: int) -> list[bytes]:
        """The keyed hash of a number with each of the keys."""
        self._keys(make=True)
        return [hmac.digest(key.encode(), b"id %d" % number, "sha256")[:16] for key in self._found]

    def has_sealed(self, what: str) -> bool:
        """Whether note_sealed() was called for this with one of the keys: then unsealed values there are not ours."""
        return what in self._noted()

    def note_sealed(self, what: str) -> None:
        """Stores beside the key that this is sealed from now on. Raises StoreError, or as seal() does."""
        self._keys(make=True)
        marker = _marker(self._found[0], {*self._noted(), what})
        if self._place and self._place.marker() != marker:
            self._place.keep_marker(marker)

    def _noted(self) -> list[str]:
        if not (self._place and (marker := self._place.marker())):
            return []
        with suppress(WrongKeyError):  # without a key nothing is sealed with it
            self._keys(make=False)
        *noted, _ = marker.split()
        return noted if any(hmac.compare_digest(marker, _marker(key, noted)) for key in self._found) else []

    def opening(self, other: Seal) -> Seal:
        """A seal with the same keys that also opens what another one sealed. Raises as seal() does."""
        self._keys(make=True)
        other._keys(make=True)
        return Seal([*self._found, *other._found], self._place)

    def put_back(self) -> None:
        """Stores the key that the bot made again if it is gone; if another process stored one first, that one seals.

        Raises StoreError.
        """
        if not self._given and self._place and self._found and self._place.keep(self._found[0]) not in self._found:
            known, self._ciphers = self._found, []
            self._keys(make=False)
            self._ciphers += [_cipher(key) for key in known]
            self._found += known

    @property
    def made_mark(self) -> str:
        """The mark of the key that the bot made, if it opens beside the owner's; else empty. Raises as seal() does."""
        marks = self.marks if self._given else []
        return marks[-1] if len(marks) > len(self._given) else ""

    def is_of_made(self, mark: str) -> bool:
        """Whether a mark is that of the key that lies where the bot keeps its own, even if that opens nothing."""
        return bool(self._place and (own := self._place.read()) and _mark(own) == mark)

    def drop_made(self) -> None:
        """Has the key that the bot made open nothing any more where the owner gave others."""
        self.takes_made = False
        if self._given:
            self._ciphers = []

    def release(self) -> None:
        """Deletes the key that the bot made once the owner gave one and nothing is sealed with it any more."""
        if self._given and self._place:
            self._place.delete()

    def _keys(self, *, make: bool) -> list[AESGCM]:
        if not self._ciphers:
            own = self._place.read() if self._place and (self.takes_made or not self._given) else ""
            found = list(filter(None, (*self._given, own)))
            if not found:
                if not (make and self.makes_key and self._place):
                    where = f", or put back {self._place}" if self._place else ""
                    raise WrongKeyError(
                        f"What is stored is encrypted: set STATE_KEY to the key it was encrypted with{where}."
                    )
                found = [self._place.keep(urlsafe_b64encode(os.urandom(32)).decode())]
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
            raise ValueError("it is not sealed")
        value = rest[8:]
        if rest[:8] != b"%08x" % crc32(value, crc32(_place(key))):
            raise ValueError("it is damaged, or belongs elsewhere")
        return value
    if form not in FORMS or (form == SEALED and stored[-1:] != END):
        raise ValueError("it is damaged")
    if seal is None:
        raise WrongKeyError(NO_KEY)
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
        raise WrongKeyError(NO_KEY)
    return seal.open_token(token)


def _place(key: Key, *part: int) -> bytes:
    return " ".join(map(str, (*key, *part))).encode() + b"\n"


def _marker(key: str, noted: Collection[str]) -> str:
    words = " ".join(sorted(noted))
    return f"{words} {hmac.digest(key.encode(), f'sealed {words}'.encode(), 'sha256').hex()}"
