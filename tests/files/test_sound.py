"""files/sound.py: no sound is longer than it is said to be, whatever its file says."""

from __future__ import annotations

import struct
from random import Random

import pytest

from files.sound import length_of
from tests.support.samples import ogg, ogg_page

OPUS = ogg(b"\x08", 0)
VORBIS = b"\x01vorbis" + bytes(5) + (48_000).to_bytes(4, "little") + bytes(12) + b"\xb8"  # blocks of up to 2,048
FAST_VORBIS = b"\x01vorbis" + bytes(5) + (2**31).to_bytes(4, "little") + bytes(12) + b"\x66"
FRAME = b"\xff\xfb\x90\x00" + b"\xff\x00" * 206 + b"\0"  # of MP3: 128 kbit/s, 44,100 Hz
SLOW = b"\xff\xe3\x18\xc4" + bytes(68)  # 8 kbit/s, 8,000 Hz
SHORTEST = b"\xff\xfb\x10\x00"  # what may be a frame, and takes the room of one that is longer


def wave(kind: int, channels: int, rate: int, bits: int, size: int, before: bytes = b"", sub: int = 1) -> bytes:
    form = struct.pack("<HHIIHH", kind, channels, rate, 1, 1, bits) + bytes(8) + struct.pack("<H", sub) + bytes(14)
    return b"RIFF\0\0\0\0WAVE" + before + b"fmt " + struct.pack("<I", len(form)) + form + b"data" + bytes(size)


@pytest.mark.parametrize(
    ("data", "ending", "seconds"),
    [
        (ogg(b"\x08", 1_000), "ogg", 20.12),  # with the head
        (ogg(b"\x1b\x02", 100), "ogg", 12.12),  # packets of 120 ms
        (ogg(b"", 100), "ogg", 12.12),  # of what decoders put there
        (ogg(b"x", 1_000, VORBIS), "ogg", 21.35),
        (OPUS + ogg(b"\x1b\x02", 100, serial=2), "ogg", 12.24),  # two, one behind the other
        (OPUS + ogg_page(0, 0, bytes(255), b"\x08"), "ogg", 0.13),  # bytes without end are one packet
        (OPUS + b"no page" + ogg_page(0, 0, b"\x08"), "ogg", 0.14),
        # What a stream of another kind has between its pages is read as its own by those who look at the numbers.
        (OPUS + ogg(b"", 0, FAST_VORBIS, serial=2) + ogg_page(0, 0, *[b"\x1b\x02"] * 200), "ogg", 24.14),
        (ogg(b"", 0, FAST_VORBIS) + ogg_page(0, 0, b"OpusHead", *[b"\x1b\x02"] * 200, serial=2), "ogg", 24.14),
        # A page in another one is found where the outer one's checksum is wrong.
        (OPUS + ogg_page(0, 0, ogg_page(0, 0, *[b"\x1b\x02"] * 60)), "ogg", 7.44),
        (wave(1, 2, 44_100, 16, 44_100 * 4), "wav", 1.0),
        (wave(0xFFFE, 1, 8_000, 12, 16_000, b"JUNK\4\0\0\0abcd"), "wav", 1.0),
        (wave(1, 2, 44_100, 16, 0) + wave(1, 1, 1, 8, 3_600), "wav", 3_728.0),  # whichever of the two is believed
        (FRAME * 100, "mp3", 2.61),
        (b"ID3\4\0\x10\0\0\0\5" + bytes(15) + FRAME * 100, "mp3", 2.61),
        (SLOW * 100, "mp3", 7.2),
        (FRAME * 10 + SHORTEST * 1_000, "mp3", 26.38),
        (FRAME * 10 + b"\xff\xfd\x10\x00" * 100, "mp3", 2.87),  # of another layer
        (FRAME * 2_700, "mp3", 70.53),  # more than is looked at at once
    ],
)
def test_what_a_decoder_could_make_of_it_counts(data: bytes, ending: str, seconds: float) -> None:
    length = length_of(data, 600.0)
    assert length
    assert (length[0], round(length[1], 2)) == (ending, seconds)


@pytest.mark.parametrize(
    "data",
    [
        b"fLaC" + bytes(5_000),
        b"\0\0\0\x20ftypM4A " + bytes(5_000),
        b"\x1aE\xdf\xa3" + bytes(5_000),
        ogg(b"x", 5, b"Speex   "),
        OPUS + ogg(b"x", 5, b"\x7fFLAC", serial=2),
        ogg(b"x", 5, b"\x01vorbis".ljust(30, b"\0")),  # at no rate
        wave(2, 1, 8_000, 4, 16_000),  # packed
        wave(0xFFFE, 1, 8_000, 16, 16_000, sub=0x55),
        wave(1, 0, 8_000, 16, 16_000),
        wave(1, 1, 8_000, 16, 16_000) + wave(0x55, 1, 8_000, 16, 0),
        b"RIFF\0\0\0\0WAVE",
        b"ID3\4\0\0\0\0\0\0fLaC" + bytes(5_000),
        b"\xff\xf1\x50\x80" + bytes(5_000),  # AAC
        FRAME * 6 + b"\xff\xf1\x50\x80" * 500,
        b"\xff\xfb\0\0" + bytes(5_000),  # at no bitrate
    ],
)
def test_of_other_kinds_and_of_what_hides_one_no_length_is_known(data: bytes) -> None:
    assert length_of(data, 600.0) is None


def test_what_a_frame_holds_may_look_like_one_and_makes_it_little_longer() -> None:
    chance = Random(1)
    frames = b"".join(FRAME[:4] + chance.randbytes(413) for _ in range(5_000))
    length = length_of(frames, 600.0)
    assert length
    assert 130.6 < length[1] < 150.0


@pytest.mark.parametrize("data", [OPUS + b"OggS\0" * 150_000, OPUS + ogg_page(0, 0, *[b"\x08"] * 255) * 200])
def test_beyond_the_most_nothing_is_counted(data: bytes) -> None:
    assert length_of(data, 600.0) == ("ogg", 601.0)
