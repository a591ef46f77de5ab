"""The message's own words, as places in a table of weights: hashed words, pairs, beginnings, ends and runs of letters.

Where the bot, the author or somebody else spoke right before, the same words mean different things: they are hashed a
second time together with that. No text can be read back from the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice, pairwise
from math import sqrt
from operator import xor
from zlib import crc32

import numpy as np
import numpy.typing as npt

from understanding.wording import Wording

BITS = 17
SIZE = 1 << BITS
MASK = SIZE - 1
MAX_WORDS = 40
MAX_BYTES = 100
RUNS = (3, 4)  # bytes
WEIGHT = 2.0  # of each group, shared by its members

Group = tuple[list[int], float]
"""Places in the table, each once, and what each of them counts."""


def groups(wording: Wording, content: str, before: str) -> Iterator[Group]:
    """What a message consists of. before: who spoke right before, a letter."""
    words = [word.encode() for word in wording.tokens[:MAX_WORDS]]
    marks = [mark.encode() for mark in "?!" if mark in content]
    count = b"n %d" % min(len(words), 8)
    starts = [b"f " + b" ".join(words[:length]) for length in (1, 2, 3)] if words else []
    ends = [*starts, b"l " + words[-1]] if words else []
    yield _group((*words, *marks, *map(b" ".join, pairwise(words)), *ends, count))
    yield _runs(f" {content.casefold()} ".encode()[:MAX_BYTES])
    yield _group((b"", *words[:12], *starts[:2], count), crc32(f"{before} ".encode()))


def _group(pieces: Iterable[bytes], start: int = 0) -> Group:
    """start: the checksum of what stands before each piece."""
    places = {crc32(piece, start) & MASK for piece in pieces}
    return list(places), WEIGHT / sqrt(len(places) or 1)


def _checksums_of(run: int) -> Sequence[npt.NDArray[np.intp]]:
    """What each value of each byte of a run adds to the run's place: CRC-32 is linear, the place is their sum by
    exclusive or."""
    zeros = crc32(bytes(run), run)
    alone = [
        [crc32(bytes(place) + bytes((code,)) + bytes(run - place - 1), run) for code in range(256)]
        for place in range(run)
    ]
    tables = [(np.array(values) ^ zeros) & MASK for values in alone]
    return [tables[0] ^ (zeros & MASK), *tables[1:]]


CHECKSUMS = np.stack([table for run in RUNS for table in _checksums_of(run)], axis=1)
"""By the value of a byte: what it adds in each place of each run."""


def _runs(text: bytes) -> Group:
    """All runs at once: one by one they take twice as long in a text of 100 bytes."""
    added, places = iter(CHECKSUMS.take(np.frombuffer(text, np.uint8), axis=0, mode="clip").T), set[int]()
    for run in RUNS:
        count = max(len(text) - run + 1, 0)
        found = [column[start : start + count] for start, column in enumerate(islice(added, run))]
        places.update(reduce(xor, found).tolist())
    return list(places), WEIGHT / sqrt(len(places) or 1)
