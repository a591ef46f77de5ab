"""Text features: the message's words, pairs, beginning, end and runs of letters, hashed to places in a weight table.

The same words mean different things depending on who spoke right before, so they are hashed a second time together with
that. No text can be read back from the table.
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
    yield _runs(f" {content.casefold()} ".encode()[:MAX_BYTES])
    yield _group((b"", *words[:12], *starts[:2], count), crc32(f"{before} ".encode()))


def _group(pieces: Iterable[bytes], start: int = 0) -> Group:
    """The group of these pieces. start: the checksum of a prefix of each piece."""
    places = {crc32(piece, start) & MASK for piece in pieces}
    return list(places), WEIGHT / sqrt(len(places) or 1)


def _checksums_of(run: int) -> Sequence[npt.NDArray[np.intp]]:
    """Tables to compute a run's place byte by byte: CRC-32 is linear, so the place is the exclusive or of a value for
    each of its bytes."""
    zeros = crc32(bytes(run), run)
    alone = [
        [crc32(bytes(place) + bytes((code,)) + bytes(run - place - 1), run) for code in range(256)]
        for place in range(run)
    ]
    tables = [(np.array(values) ^ zeros) & MASK for values in alone]
    return [tables[0] ^ (zeros & MASK), *tables[1:]]


CHECKSUMS = np.stack([table for run in RUNS for table in _checksums_of(run)], axis=1)
"""By a byte's value: its contribution at each position of each run."""


def _runs(text: bytes) -> Group:
    """The group of all runs of a text, computed at once: one by one takes twice as long for 100 bytes."""
    added, places = iter(CHECKSUMS.take(np.frombuffer(text, np.uint8), axis=0, mode="clip").T), set[int]()
    for run in RUNS:
        count = max(len(text) - run + 1, 0)
        found = [column[start : start + count] for start, column in enumerate(islice(added, run))]
        places.update(reduce(xor, found).tolist())
    return list(places), WEIGHT / sqrt(len(places) or 1)
