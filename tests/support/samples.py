"""Files of all kinds, made by code: texts in many encodings, PDFs, pictures, and what only passes itself off as one."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Sequence
from random import Random

from PIL import Image
from pypdf import PdfReader, PdfWriter

MEGABYTE = 1 << 20
GPS = 0x8825  # where a picture was taken, as EXIF numbers it


def ogg_page(flags: int, granule: int, *packets: bytes, serial: int = 1) -> bytes:
    sizes = bytes(map(len, packets))
    return struct.pack("<4sBBqIIIB", b"OggS", 0, flags, granule, serial, 0, 0, len(sizes)) + sizes + b"".join(packets)


def ogg(packet: bytes, count: int, head: bytes = b"OpusHead", serial: int = 1) -> bytes:
    """A stream of as many packets, which says that it is a second long."""
    pages = [ogg_page(0, 48_000, *[packet] * min(count - at, 255), serial=serial) for at in range(0, count, 255)]
    return ogg_page(2, 0, head.ljust(30, b"\0"), serial=serial) + b"".join(pages)


OGG = ogg(b"\x08", 50)  # packets of 20 ms


def pdf(pages: Sequence[str], *, kids: str = "", stream: bytes | None = None, script: str = "") -> bytes:
    """A PDF with a line of text on each page. kids: instead of its list of pages. stream: packed, instead of a text.

    script: JavaScript that it wants to be run when it is opened.
    """
    opening = f"/OpenAction << /S /JavaScript /JS ({script}) >>" if script else ""
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {opening} >>".encode(),
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    listed = []
    for text in pages:
        words = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode() if text else b""
        packed = b" /Filter /FlateDecode" if stream else b""
        words = stream or words
        objects.append(b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(words), packed, words))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        listed.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{kids or ' '.join(listed)}] /Count {len(pages)} >>".encode()
    out, offsets = b"%PDF-1.7\n", []
    for number, each in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    head = b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    trailer = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))
    return out + head + trailer


def locked(password: str) -> bytes:
    """A PDF that says "the plan" to whoever has the password; it may be empty."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf(["the plan"]))))
    writer.encrypt(password, "the owner's", algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def packed_zeroes(megabytes: int) -> bytes:
    packer = zlib.compressobj(1)
    return b"".join(packer.compress(bytes(MEGABYTE)) for _ in range(megabytes)) + packer.flush()


def picture(form: str, size: tuple[int, int] = (60, 40), mode: str = "RGB", **how: object) -> bytes:
    out = io.BytesIO()
    Image.new(mode, size, "red").save(out, form, **how)
    return out.getvalue()


def gray(size: tuple[int, int], value: int) -> bytes:
    """A PNG of 16 bits a pixel."""
    out = io.BytesIO()
    Image.new("I;16", size, value).save(out, "PNG")
    return out.getvalue()


def noisy(size: tuple[int, int]) -> bytes:
    """A PNG that cannot be packed, with clear places."""
    out = io.BytesIO()
    Image.frombytes("RGBA", size, noise(4 * size[0] * size[1])).save(out, "PNG")
    return out.getvalue()


def two_frames() -> bytes:
    """A GIF that is red first and then blue."""
    out = io.BytesIO()
    red, blue = (Image.new("RGB", (60, 40), color) for color in ("red", "blue"))
    red.save(out, "GIF", save_all=True, append_images=[blue])
    return out.getvalue()


def where_taken() -> bytes:
    """A JPEG that lies on its side, and tells where it was taken."""
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[GPS] = {1: "N", 2: (52.0, 31.0, 12.0)}
    return picture("JPEG", exif=exif)


def bomb() -> bytes:
    """A PNG of a few kilobytes with 900 million pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 30_000, 30_000, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed_zeroes(2)) + chunk(b"IEND", b"")


def noise(size: int, seed: int = 1) -> bytes:
    return Random(seed).randbytes(size)
