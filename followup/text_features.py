"""Text features: the message's words, pairs, beginning, end and runs of letters, hashed to places in a weight table.

The same words mean different things depending on who spoke right before, so they are hashed a second time together with
that. No text can be read back from the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import sqrt
from zlib import crc32

import numpy as np
import numpy.typing as npt

from understanding.wording import Wording

BITS = 17
SIZE = 1 << BITS
MASK = SIZE - 1
MAX_WORDS = 40
MAX_BYTES = 100
WEIGHT = 2.0  # of each group, divided by the root of its size

Group = tuple[list[int], float]
"""Places in the table, each once, and the weight of each of them."""


def groups(wording: Wording, content: str, before: str) -> Iterator[Group]:
    """The groups of a message's pieces. before: who spoke right before, as a letter of before_it()."""
    words = [word.encode() for word in wording.tokens[:MAX_WORDS]]
    marks = [mark.encode() for mark in "?!" if mark in content]
    count = b"n %d" % min(len(words), 8)
    starts = [b"f " + b" ".join(words[:length]) for length in (1, 2, 3)] if words else []
    ends = [*starts, b"l " + words[-1]] if words else []
    yield _group((*words, *marks, *map(b" ".join, pairwise(words)), *ends, count))
    # All runs of 3 and 4 bytes, computed at once: one by one takes twice as long for 100 bytes.
    text = np.frombuffer(f" {content.casefold()} ".encode()[:MAX_BYTES], np.uint8)
    last, second, third, fourth = CHECKSUMS.take(text, axis=0, mode="clip").T
    threes = third[:-2] ^ second[1:-1] ^ last[2:]
    places = {*threes.tolist(), *(fourth[:-3] ^ threes[1:]).tolist()}
    yield list(places), WEIGHT / sqrt(len(places) or 1)
    yield _group((b"", *words[:12], *starts[:2], count), crc32(f"{before} ".encode()))


def _group(pieces: Iterable[bytes], start: int = 0) -> Group:
    """The group of these pieces. start: the checksum of a prefix of each piece."""
    places = {crc32(piece, start) & MASK for piece in pieces}
    return list(places), WEIGHT / sqrt(len(places) or 1)


def _checksums() -> npt.NDArray[np.intp]:
    """A table to compute the places of runs: CRC-32 is linear, so a run's is the exclusive or of a value for each of
    its bytes, which depends on how many follow. By a byte's value: that with 0, 1, 2 and 3 bytes behind it."""
    zeros = crc32(bytes(4))
    table = np.array(
        [
            [crc32(bytes((0,) * (3 - after) + (code,) + (0,) * after)) ^ zeros for after in range(4)]
            for code in range(256)
        ]
    )
    of_three, of_four = crc32(bytes(3), 3), crc32(bytes(4), 4)  # that of zeros: each run is hashed with its length
    return (table ^ (of_three, 0, 0, of_three ^ of_four)) & MASK


CHECKSUMS = _checksums()
