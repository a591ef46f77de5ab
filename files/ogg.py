"""How long the sound in an Ogg file is, by its pages and packets, whatever whoever posted it says."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

CAPTURE = b"OggS"
PAGE = struct.Struct("<4sBBqIIIB")  # RFC 3533: flags, granule position and serial number are what counts here
CONTINUED, BEGINS = 1, 2  # flags: of a packet that began in the page before, and of a stream's first page
WHOLE = 255  # bytes of a packet's segment, unless it is its last
OPUS_RATE = 48_000  # granules a second; Vorbis says its own
# RFC 6716, 3.1: milliseconds of a frame, by what a packet begins with; a packet has no more than the longest.
FRAMES = (10, 20, 40, 60) * 3 + (10, 20) * 2 + (2.5, 5, 10, 20) * 4
LONGEST = 0.12


@dataclass(slots=True)
class _Stream:
    """rate: granules a second, 0: unknown. longest: seconds that a packet can be; None: it says how long it is.

    told: the first and the greatest position of its pages; packed: the seconds of its packets, which a position that
    is made up makes no shorter.
    """

    rate: int
    longest: float | None
    told: list[int] = field(default_factory=list)
    packed: float = 0.0

    @property
    def seconds(self) -> float:
        return max((self.told[1] - self.told[0]) / self.rate if self.told else 0.0, self.packed)


def seconds_of(data: bytes, most: float) -> float:
    """The seconds of all streams in it, one behind the other; 0 where the pages of one do not tell. Beyond `most` it
    may be longer."""
    streams: list[_Stream] = []
    at = data.find(CAPTURE)
    while at >= 0 and at + PAGE.size <= len(data):
        _, _, flags, position, _, _, _, count = PAGE.unpack_from(data, at)
        body = at + PAGE.size + count
        sizes = data[at + PAGE.size : body]
        if flags & BEGINS:
            streams.append(_begun(data[body : body + 29]))
        elif streams and streams[-1].rate:
            stream = streams[-1]
            if position >= 0:  # -1: no packet ends in this page
                first, last = stream.told or (position, position)
                stream.told = [first, max(last, position)]
            if stream.packed <= most:
                stream.packed += _packed(data, body, sizes, stream.longest, begins=not flags & CONTINUED)
        at = data.find(CAPTURE, body + sum(sizes))
    if not all(stream.rate for stream in streams):
        return 0.0
    return sum(stream.seconds for stream in streams)


def _begun(head: bytes) -> _Stream:
    if head.startswith(b"OpusHead"):
        return _Stream(OPUS_RATE, None)
    rate = int.from_bytes(head[12:16], "little") if head.startswith(b"\x01vorbis") else 0
    return _Stream(rate, 2 ** (head[28] >> 4) / 2 / rate if rate and len(head) > 28 else LONGEST)


def _packed(data: bytes, at: int, sizes: bytes, longest: float | None, *, begins: bool) -> float:
    """The seconds of the packets that begin in a page. at: where they do; sizes: of their segments."""
    seconds = 0.0
    for size in sizes:
        if begins:
            seconds += _of_opus(data[at : at + min(size, 2)]) if longest is None else longest
        at += size
        begins = size < WHOLE
    return seconds


def _of_opus(head: bytes) -> float:
    """What a packet of these first bytes takes; an empty one, in whose place decoders put something, the most."""
    if not head:
        return LONGEST
    frames = (1, 2, 2, head[1] & 63 if len(head) > 1 else 1)[head[0] & 3]
    return min(max(frames, 1) * FRAMES[head[0] >> 3] / 1_000, LONGEST)
