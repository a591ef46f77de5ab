"""The greatest possible length of a sound, by its bytes: transcribing is billed by the minute, and files may lie.

The length that a file states is not used. Everything counts that a decoder could take for the start of a frame, even if
a correct decoder would find none there: so the result may be a little too large, but never too small. M4A, WebM and
FLAC allow no such bound, since a few bytes of them may last an hour; they have no length.
"""

from __future__ import annotations

import re
import struct
from functools import cache
from itertools import islice

import numpy as np
import numpy.typing as npt

PAGE = re.compile(rb"OggS\0")  # RFC 3533: the start of a page; the sizes of its packets' segments follow its header
HEAD_BYTES, CONTINUED = 27, 1
MOST_PAGES = 100_000
WHOLE = 255  # bytes of a packet's segment, unless it is its last
# RFC 6716, 3.1: milliseconds of a frame, by a packet's first five bits; no packet has more than LONGEST seconds.
FRAMES = (10, 20, 40, 60) * 3 + (10, 20) * 2 + (2.5, 5, 10, 20) * 4
LONGEST = 0.12
VORBIS = re.compile(rb"\x01vorbis.{5}(.{4}).{12}(.)", re.DOTALL)  # sample rate and block sizes
OTHERS = (b"fLaC", b"\x7fFLAC", b"Speex   ", b"CELT    ", b"\x01audio", b"\x01Direct Show")  # other codecs in Ogg
MOST_HEADS = 100

FORM = re.compile(rb"fmt (?=.{4}(.{16})(.{10})?)", re.DOTALL)
FIELDS = struct.Struct("<HHIIHH")
SAMPLES, EXTENSIBLE = (1, 3), 0xFFFE  # WAVE formats: plain samples; the format that a later field states

RATES = (44_100, 48_000, 32_000)
# Thousands of bits a second in a frame of layer III, of MPEG-1 and of the others.
FIRST = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
LATER = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
MPEG_1, LAYER_III, LAYER_I = 3, 1, 3
IN_A_ROW = 7  # frames at the beginning that make it an MP3
SLICE = 1 << 20  # bytes that are searched at a time


def length_of(data: bytes, most: float) -> tuple[str, float] | None:
    """A sound's file extension and its length in seconds; above `most` it may be even longer. None: it has no bound."""
    if data.startswith(b"OggS\0"):
        ending, seconds = "ogg", _ogg(data, most)
    elif data.startswith(b"RIFF"):
        ending, seconds = "wav", _wave(data)
    else:
        ending, seconds = "mp3", _mp3(data)
    return (ending, seconds) if seconds else None


def _ogg(data: bytes, most: float) -> float:
    """The length by packets: one of Opus states its own, one of Vorbis is at most as long as the longest block."""
    heads = [head.groups() for head in islice(VORBIS.finditer(data), MOST_HEADS)]
    streams = [(int.from_bytes(rate, "little"), 2 ** max(sizes[0] >> 4, sizes[0] & 15)) for rate, sizes in heads]
    has_opus = b"OpusHead" in data
    if not (has_opus or streams) or len(heads) == MOST_HEADS or not all(rate for rate, _ in streams):
        return 0.0
    if any(other in data for other in OTHERS):
        return 0.0
    longest, seconds = max((block / 2 / rate for rate, block in streams), default=0.0), 0.0
    # One in another counts, too: where the outer one's checksum is wrong decoders find it.
    for number, page in enumerate(PAGE.finditer(data)):
        at = page.start() + HEAD_BYTES
        if at > len(data):
            break
        sizes = data[at : at + data[at - 1]]
        at += len(sizes)
        begins = not data[page.start() + 5] & CONTINUED
        for size in sizes:
            if begins:
                seconds += max(longest, _of_opus(data[at : at + min(size, 2)]) if has_opus else 0.0)
            at += size
            begins = size < WHOLE
        if seconds > most or number > MOST_PAGES:
            return most + 1
    return seconds


def _of_opus(head: bytes) -> float:
    """The length of a packet by its first bytes; the longest for an empty one, which decoders replace by sound."""
    if not head:
        return LONGEST
    frames = (1, 2, 2, head[1] & 63 if len(head) > 1 else 1)[head[0] & 3]
    return min(max(frames, 1) * FRAMES[head[0] >> 3] / 1_000, LONGEST)


def _wave(data: bytes) -> float:
    """The length by the file's size, if the samples are not compressed."""
    seconds = 0.0
    forms = [form.groups(b"") for form in islice(FORM.finditer(data), MOST_HEADS)]
    for fields, more in forms:
        kind, channels, rate, _, _, bits = FIELDS.unpack(fields)
        kind = int.from_bytes(more[8:], "little") if kind == EXTENSIBLE else kind
        if kind not in SAMPLES or not channels * rate * bits or len(forms) == MOST_HEADS:
            return 0.0
        seconds = max(seconds, len(data) / (channels * rate * -(-bits // 8)))
    return seconds


def _mp3(data: bytes) -> float:
    """The length by all that could be the header of a frame, of any layer."""
    at = 0
    for _ in range(MOST_HEADS):
        if data[at : at + 3] != b"ID3" or len(data) < at + 10:
            break
        size = sum(byte << 7 * power for power, byte in enumerate(reversed(data[at + 6 : at + 10])))
        at += 10 + size + 10 * bool(data[at + 5] & 16)
    for _ in range(IN_A_ROW):
        if not (length := _frame_bytes(data[at : at + 4])):
            return 0.0
        if (at := at + length) >= len(data):
            break
    seconds, bytes_ = 0.0, np.frombuffer(data, np.uint8)
    for start in range(0, len(data), SLICE):
        part = bytes_[start : start + SLICE + 2]
        (found,) = np.nonzero(part[:-2] == 0xFF)
        seconds += float(_seconds_by_header()[part[found + 1], part[found + 2]].sum())
    return seconds


def _frame_bytes(head: bytes) -> int:
    """The size of a frame of layer III by its header; 0: it is no such header."""
    if len(head) < 4 or not _seconds_by_header()[head[1], head[2]] or head[0] != 0xFF:
        return 0
    version, bits = head[1] >> 3 & 3, head[2] >> 4
    if head[1] >> 1 & 3 != LAYER_III or not bits:
        return 0
    rate = RATES[head[2] >> 2 & 3] // (1, 2, 0, 4)[3 - version]
    thousands, factor = (FIRST[bits - 1], 144) if version == MPEG_1 else (LATER[bits - 1], 72)
    return factor * thousands * 1_000 // rate + (head[2] >> 1 & 1)


@cache
def _seconds_by_header() -> npt.NDArray[np.float64]:
    """The length of a frame by the second and the third byte of its header; 0: they are of no header."""
    seconds = np.zeros((256, 256))
    for second in range(0xE0, 0x100):
        version, layer = second >> 3 & 3, second >> 1 & 3
        if version == 1 or not layer:
            continue
        short = 1 if version == MPEG_1 else 2
        samples = 384 if layer == LAYER_I else 1_152 // (short if layer == LAYER_III else 1)
        for third in range(0xF0):
            if (rate := third >> 2 & 3) < len(RATES):
                seconds[second, third] = samples * (1, 2, 0, 4)[3 - version] / RATES[rate]
    return seconds
