"""What Discord determines of an uploaded file: its content type, and the size of a picture."""

import mimetypes
import struct
from dataclasses import replace

from playground.model import File, Wire

LIMIT = 10 * 1024 * 1024  # bytes of a file; Discord's limit without Nitro or boosts
MOST_FILES = 10
_TYPES = {"log": "text/plain", "toml": "text/plain", "yaml": "text/plain", "yml": "text/plain", "rs": "text/plain"}
_PNG, _GIF, _JPEG = b"\x89PNG\r\n\x1a\n", b"GIF8", b"\xff\xd8"
_SIZES_IN_JPEG = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # the markers of frames


def named_type(file: File) -> File:
    """The file with the content type of its name's extension. As on Discord, the sender's content type is ignored."""
    ending = file.filename.rpartition(".")[2].lower()
    kind = _TYPES.get(ending) or mimetypes.guess_type(f"x.{ending}")[0] or ""
    return replace(file, content_type=kind + (f"; charset={_charset(file.data)}" if kind.startswith("text/") else ""))


def _charset(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "ISO-8859-1"
    return "utf-8"


def attachment_object(file_id: int, url: str, file: File) -> Wire:
    """Discord's attachment object. A file of no known type has no content_type."""
    wire: Wire = {
        "id": str(file_id),
        "filename": file.filename,
        "size": len(file.data),
        "url": url,
        "proxy_url": url,
    }
    optional = {
        "content_type": file.content_type or None,
        "description": file.description,
        "duration_secs": file.duration_secs,
        "waveform": file.waveform,
    }
    wire |= {name: value for name, value in optional.items() if value is not None}
    size = _picture_size(file.data) if file.content_type.startswith("image/") else None
    return wire if size is None else wire | {"width": size[0], "height": size[1]}


def _picture_size(data: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG, GIF, JPEG or WebP. None: another format."""
    try:
        if data.startswith(_PNG):
            width, height = struct.unpack(">II", data[16:24])
        elif data.startswith(_GIF):
            width, height = struct.unpack("<HH", data[6:10])
        elif data.startswith(_JPEG):
            return _jpeg_size(data)
        elif data[8:15] == b"WEBPVP8":
            return _webp_size(data)
        else:
            return None
    except (struct.error, IndexError):
        return None
    return width, height


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while data[at] == 0xFF:
        if data[at + 1] in _SIZES_IN_JPEG:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    return None


def _webp_size(data: bytes) -> tuple[int, int]:
    if data[15:16] == b"X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if data[15:16] == b"L":
        packed = int.from_bytes(data[21:25], "little")
        return 1 + (packed & 0x3FFF), 1 + (packed >> 14 & 0x3FFF)
    width, height = struct.unpack("<HH", data[26:30])
    return width & 0x3FFF, height & 0x3FFF
