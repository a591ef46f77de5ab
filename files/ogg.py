"""How long the sound in an Ogg file is, by its pages, whatever whoever posted it says."""

from __future__ import annotations

import struct

CAPTURE = b"OggS"
PAGE = struct.Struct("<4sBBqIIIB")  # RFC 3533: flags, granule position and serial number are what counts here
BEGINS = 2  # the flag of a stream's first page
OPUS_RATE = 48_000  # granules a second; Vorbis says its own


def seconds_of(data: bytes) -> float:
    """The seconds of all streams in it, one behind the other; 0 where the pages of one do not tell."""
    streams: list[tuple[int, list[int]]] = []  # the rate of each, and its first and its greatest position
    at = data.find(CAPTURE)
    while at >= 0 and at + PAGE.size <= len(data):
        _, _, flags, position, _, _, _, count = PAGE.unpack_from(data, at)
        body = at + PAGE.size + count
        if flags & BEGINS:
            streams.append((_rate(data[body : body + 16]), []))
        elif streams and position >= 0:  # -1: no packet ends in this page
            ends = streams[-1][1]
            ends[:] = [ends[0], max(ends[1], position)] if ends else [position, position]
        at = data.find(CAPTURE, body + sum(data[at + PAGE.size : body]))
    if not all(rate for rate, _ in streams):
        return 0.0
    return sum((ends[1] - ends[0]) / rate for rate, ends in streams if ends)


def _rate(head: bytes) -> int:
    if head.startswith(b"OpusHead"):
        return OPUS_RATE
    return int.from_bytes(head[12:16], "little") if head.startswith(b"\x01vorbis") else 0
