"""Encryption at rest: documents and records sealed by a key of the owner's (Fernet: AES-128-CBC, authenticated).

`cryptography` is imported only when there is a key. What was stored before there was one is read as it is.
"""

from __future__ import annotations

import re
import time
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

import orjson

from state.stored import Store, WrongKeyError

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

CHUNK = 16_000  # bytes sealed at a time: other threads wait for that long at most, which is a fraction of a ms
SEALED = b'{"sealed":'
PLAIN, ENCODED, TOKEN = b" ", b"=", b"*"
CHECK = "seal"
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


def check_seal(store: Store, seal: Seal | None) -> None:
    """Keeps a small document that tells at the next start whether the key fits; the store should hold nothing else.

    Raises WrongKeyError, having touched nothing, for another key, and for none where there was one.
    """
    store.read(CHECK)
    if seal:
        store.write(CHECK, b'{"sealed_by":"STATE_KEY"}')


def sealed(content: bytes, seal: Seal | None) -> bytes:
    """A document as it is stored: a JSON object again. Raises ValueError for what is none."""
    if not (content.startswith(b"{") and content.endswith(b"}")):
        raise ValueError("A document must be a JSON object.")
    if seal is None:
        return content
    starts = range(0, len(content), CHUNK)
    tokens = []
    for number, start in enumerate(starts):
        # Its place goes with it, so that tokens cannot change places or be left out.
        tokens.append(seal.seal(b"%d/%d " % (number, len(starts)) + content[start : start + CHUNK]).decode())
        time.sleep(0)
    return orjson.dumps({"sealed": tokens})


def opened(content: bytes, seal: Seal | None) -> bytes:
    """Undoes `sealed`. Raises WrongKeyError, and ValueError for tokens that do not make up one document."""
    if not content.startswith(SEALED):
        return content
    tokens = orjson.loads(content)["sealed"]
    parts = [_with_key(seal).open(token).split(b" ", 1) for token in tokens]
    if [place for place, _ in parts] != [b"%d/%d" % (number, len(tokens)) for number in range(len(tokens))]:
        raise ValueError("parts of it are missing or out of place")
    return b"".join(part for _, part in parts)


def wrapped(record: bytes, seal: Seal | None) -> bytes:
    """A record as it is stored: in one line."""
    if seal:
        return TOKEN + seal.seal(record)
    return ENCODED + b64encode(record) if b"\n" in record else PLAIN + record


def unwrapped(line: bytes, seal: Seal | None) -> bytes:
    """Undoes `wrapped`. Raises WrongKeyError."""
    form, rest = line[:1], line[1:]
    if form == TOKEN:
        return _with_key(seal).open(rest)
    return b64decode(rest) if form == ENCODED else rest


def _with_key(seal: Seal | None) -> Seal:
    if seal is None:
        raise WrongKeyError("What is stored is sealed: set STATE_KEY to the key it was sealed with.")
    return seal
