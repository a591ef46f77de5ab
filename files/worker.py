"""Reads a PDF or a picture in a process of its own, run by sandbox.py, and bounds its memory.

Usage: worker.py pdf|picture ROOM, the file on stdin. Writes to stdout a line of JSON, then a PDF's text in UTF-8, of
about ROOM characters, or a picture of at most ROOM pixels a side. If the file cannot be read, the JSON has "problem".
It imports nothing of the bot, and gets none of its environment.
"""

from __future__ import annotations

import json
import sys
from io import BytesIO
from typing import Any

MEGABYTE = 1 << 20
MEMORY = {"pdf": 28 * MEGABYTE, "picture": 46 * MEGABYTE}  # on top of what the interpreter and the library take
CPU_SECONDS = 10
MAX_FILE = 8_000_000  # bytes
MAX_PAGES = 50
MAX_DECODED = 34_000_000  # bytes of a decoded picture: enough for a screenshot in 4K
# Bytes of a pixel, by mode; 4 in others. A WebP is in memory twice, and cannot be read in part.
WEIGHTS = {"1": 1, "L": 1, "P": 1, "I;16": 2}
WEBP_WEIGHT = 8
MAX_SIDES = 200_000_000  # pixels that a picture's header may state; a JPEG is decoded smaller
FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
QUALITY = 85
MAX_PNG = 3_500_000  # bytes: a larger one is sent as a JPEG, on white
ORIENTATION = 0x0112  # as EXIF numbers it
REDUCED_AS_THEY_ARE = ("L", "LA", "RGB", "RGBA", "CMYK")  # others have a palette, single bits, or 16 of them
BAND = 16  # lines of a reduced picture made at once


class Problem(Exception):  # noqa: N818 - it is what the other end is told
    """Why a file cannot be read: a key of PROBLEMS in reading.py."""


def _bound(job: str) -> None:
    """Limits this process' memory and CPU time from now on, where the system supports that."""
    if sys.platform != "linux":
        return
    import resource  # noqa: PLC0415 - not on Windows

    with open("/proc/self/status", "rb") as status:  # noqa: PTH123 - to import pathlib takes memory
        used = next((int(line.split()[1]) * 1_024 for line in status if line.startswith(b"VmData")), 0)
    for what, most in (
        (resource.RLIMIT_DATA, used + MEMORY[job]),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))


def read_pdf(data: bytes, room: int) -> tuple[dict[str, Any], bytes]:
    from pypdf import PdfReader  # noqa: PLC0415 - what it needs is imported before the bounds
    from pypdf.errors import DependencyError  # noqa: PLC0415

    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Problem("encrypted")
        count = len(reader.pages)
        texts: list[str] = []
        blank = size = 0
        for page in reader.pages[:MAX_PAGES]:
            text = page.extract_text().encode(errors="replace").decode().strip()
            blank += not text
            texts.append(f"[page {len(texts) + 1}]\n{text}")
            size += len(texts[-1])
            if size > room:
                break
    except DependencyError as error:
        raise Problem("encrypted") from error
    except (Problem, MemoryError, RecursionError):
        raise
    except Exception as error:  # on arbitrary input the library may raise anything
        raise Problem("broken") from error
    if blank == len(texts):
        raise Problem("scanned" if count else "empty")
    return {"pages": count, "read": len(texts), "blank": blank}, "\n".join(texts)[: room + 1].encode()


def _plain(picture: Any, mode: str) -> Any:
    """Converts a picture to this mode; of 16 bits, only the upper 8 are kept."""
    if picture.mode.startswith("I"):
        picture = picture.point(lambda value: value / 256).convert("L")
    return picture if picture.mode == mode else picture.convert(mode)


def _reduced(picture: Any, factor: int, mode: str) -> Any:
    """Makes a picture so many times smaller, in bands: a copy of the whole would take as much memory again."""
    size = -(-picture.width // factor), -(-picture.height // factor)
    small = _plain(picture.resize(size, 0), mode)  # of the nearest pixels
    for top in range(0, picture.height, factor * BAND):
        bottom = min(top + factor * BAND, picture.height)
        band = _plain(picture.crop((0, top, picture.width, bottom)), mode)
        small.paste(band.reduce(factor), (0, top // factor))
    return small


def read_picture(data: bytes, side: int) -> tuple[dict[str, Any], bytes]:
    from PIL import Image, ImageOps, UnidentifiedImageError  # noqa: PLC0415 - imported before the bounds

    Image.MAX_IMAGE_PIXELS = MAX_SIDES
    try:
        picture: Image.Image = Image.open(BytesIO(data), formats=FORMATS)
        if picture.width * picture.height > MAX_SIDES:
            raise Problem("huge")
        shrunk = max(1.0, max(picture.size) / side)
        # A JPEG is decoded at a half, a quarter or an eighth of its size.
        picture.draft("RGB", (int(picture.width / shrunk), int(picture.height / shrunk)))
        weight = WEBP_WEIGHT if picture.format == "WEBP" else WEIGHTS.get(picture.mode, 4)
        if picture.width * picture.height * weight > MAX_DECODED:
            raise Problem("huge")
        turn = picture.getexif().get(ORIENTATION)
        picture.load()
        is_clear = picture.has_transparency_data
        mode = "RGBA" if is_clear else "RGB"
        if (factor := max(picture.size) // side) > 1:
            picture = _reduced(picture, factor, picture.mode if picture.mode in REDUCED_AS_THEY_ARE else mode)
        picture.thumbnail((side, side))
        picture.getexif()[ORIENTATION] = turn or 1
        picture = ImageOps.exif_transpose(picture)
        picture = _plain(picture, mode)
        out = BytesIO()
        picture.save(out, "PNG" if is_clear else "JPEG", quality=QUALITY)
        if is_clear and out.tell() > MAX_PNG:
            is_clear, out = False, BytesIO()
            shown = Image.new("RGB", picture.size, "white")
            shown.paste(picture, mask=picture)
            shown.save(out, "JPEG", quality=QUALITY)
    except Image.DecompressionBombError as error:
        raise Problem("huge") from error
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, TypeError, LookupError) as error:
        raise Problem("unshown") from error  # as above
    return {"kind": "image/png" if is_clear else "image/jpeg"}, out.getvalue()


def main() -> None:
    job, room = sys.argv[1], int(sys.argv[2])
    data = sys.stdin.buffer.read(MAX_FILE + 1)
    unused = ["PIL", "fontTools"] if job == "pdf" else []
    if job == "pdf" and b"/Encrypt" not in data:
        unused.append("cryptography")  # a third of all the memory used
    sys.modules.update(dict.fromkeys(unused))  # type: ignore[arg-type]  # makes their import fail
    try:
        if len(data) > MAX_FILE:
            raise Problem("large")
        __import__("pypdf" if job == "pdf" else "PIL.Image")
        _bound(job)
        head, body = read_pdf(data, room) if job == "pdf" else read_picture(data, room)
    except Problem as problem:
        head, body = {"problem": str(problem)}, b""
    except (MemoryError, RecursionError):
        head, body = {"problem": "complex"}, b""
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + body)


if __name__ == "__main__":
    main()
