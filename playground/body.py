"""Request bodies: read, checked as Discord checks them, and parsed into the parts of a message."""

from dataclasses import dataclass, replace
from typing import Any

import orjson
from aiohttp import BodyPartReader, web

from playground import choices, errors
from playground.components import check_components
from playground.errors import Form
from playground.mentions import AllowedMentions, parse_allowed
from playground.model import SILENT, File, Wire, snowflake
from playground.polls import check_poll
from playground.uploads import MOST_FILES, named_type

MAX_CONTENT = 2_000  # characters, for bots
_MAX_NONCE = 25
_MAX_DESCRIPTION = 1_024
_MAX_EMBEDS = 10
_MAX_EMBED_TEXT = 6_000
_MAX_REQUEST = 25 * 1024 * 1024  # bytes of files in one request; Discord's limit for bots
_EMBED_TEXTS = {"title": 256, "description": 4_096}
SUPPRESS_EMBEDS, EPHEMERAL = 1 << 2, 1 << 6
_BOT_FLAGS = SUPPRESS_EMBEDS | EPHEMERAL | SILENT


@dataclass(frozen=True, slots=True)
class Body:
    """A message body that passed the checks. `given` names the fields that were sent; all others are defaults."""

    given: frozenset[str]
    content: str
    embeds: tuple[Wire, ...]
    components: tuple[Wire, ...]
    kept: frozenset[int]
    files: tuple[File, ...]
    stickers: tuple[str, ...]
    allowed: AllowedMentions
    flags: int
    nonce: str | int | None
    enforce_nonce: bool
    reference: Wire | None
    poll: Wire | None

    @property
    def empty(self) -> bool:
        return not (self.content or self.embeds or self.components or self.files or self.stickers or self.poll)


async def read(request: web.Request, most: int = _MAX_REQUEST) -> tuple[Any, tuple[File, ...]]:
    """The JSON of a request, and its files, of `most` bytes at most (in multipart: payload_json and files[n])."""
    if not request.content_type.startswith("multipart/"):
        return load(await request.read()), ()
    payload: Any = {}
    files: list[File] = []
    left = most
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader):
            raise errors.invalid_json()
        data = bytearray()
        while chunk := await part.read_chunk(1 << 16):  # to the end, even if it is refused: the client still writes
            data += chunk if len(data) <= left else b""
        if part.name == "payload_json":
            payload = load(bytes(data))
        else:
            left -= len(data)
            files.append(named_type(File(part.filename or "file", "", bytes(data))))
    if left < 0:
        raise errors.too_large()
    return payload, tuple(files)


def load(data: bytes) -> Any:
    """Parses JSON. No data is an empty object. ApiError 50109 for invalid JSON."""
    try:
        return orjson.loads(data or b"{}")
    except orjson.JSONDecodeError:
        raise errors.invalid_json() from None


def mapping(value: Any) -> Wire:
    """The value, which must be a JSON object. ApiError 50109 for anything else."""
    if not isinstance(value, dict):
        raise errors.invalid_json()
    return value


def parse(wire: Wire, files: tuple[File, ...] = ()) -> Body:
    """Check a message body. ApiError 50035 with every wrong field."""
    form = Form()
    content = _content(form, wire.get("content"))
    embeds = _embeds(form, wire.get("embeds"))
    components = check_components(form, wire.get("components"))
    nonce = _nonce(form, wire.get("nonce"))
    kept, files = _attachments(form, wire.get("attachments"), files)
    flags = _flags(form, wire.get("flags"))
    stickers = tuple(str(one) for one in _listed(form, "sticker_ids", wire.get("sticker_ids"), 3))
    poll = check_poll(form, wire.get("poll"))
    form.check()
    reference = wire.get("message_reference")
    return Body(
        given=frozenset(wire) | ({"attachments"} if files else set()),
        content=content,
        embeds=embeds,
        components=tuple(choices.told(row) for row in components),
        kept=kept,
        files=files,
        stickers=stickers,
        allowed=parse_allowed(wire.get("allowed_mentions")),
        flags=flags,
        nonce=nonce,
        enforce_nonce=wire.get("enforce_nonce") is True,
        reference=reference if isinstance(reference, dict) else None,
        poll=poll,
    )


def _content(form: Form, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str | int | float):
        form.wrong("content", "STRING_TYPE_CONVERT", "Could not convert to string.")
        return ""
    content = str(value).strip()
    form.at_most("content", content, MAX_CONTENT)
    return content


def _nonce(form: Form, value: Any) -> str | int | None:
    if value is None or isinstance(value, int):
        return value
    if not isinstance(value, str):
        form.wrong("nonce", "STRING_TYPE_CONVERT", "Could not convert to string.")
    else:
        form.at_most("nonce", value, _MAX_NONCE)
    return str(value)


def _listed(form: Form, path: str, value: Any, most: int) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        form.wrong(path, "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
        return []
    form.at_most(path, value, most, list)
    return value


def _embeds(form: Form, value: Any) -> tuple[Wire, ...]:
    embeds = _listed(form, "embeds", value, _MAX_EMBEDS)
    for number, embed in enumerate(embeds):
        if isinstance(embed, dict):
            _check_embed(form, f"embeds.{number}", embed)
        else:
            form.wrong(f"embeds.{number}", "MODEL_TYPE_CONVERT", "Only dictionaries may be used in a ModelType")
    if sum(_embed_size(embed) for embed in embeds if isinstance(embed, dict)) > _MAX_EMBED_TEXT:
        form.wrong("embeds", "MAX_EMBED_SIZE_EXCEEDED", f"Embed size exceeds maximum size of {_MAX_EMBED_TEXT}")
    return tuple({"type": "rich"} | embed for embed in embeds if isinstance(embed, dict))


def _embed_size(embed: Wire) -> int:
    """Number of characters that count towards Discord's limit on all embeds of a message."""
    texts = [embed.get("title"), embed.get("description")]
    for name, inner in (("footer", "text"), ("author", "name")):
        part = embed.get(name)
        texts.append(part.get(inner) if isinstance(part, dict) else None)
    fields = embed.get("fields")
    for one in fields if isinstance(fields, list) else ():
        texts += [one.get("name"), one.get("value")] if isinstance(one, dict) else []
    return sum(len(text) for text in texts if isinstance(text, str))


def _check_embed(form: Form, path: str, embed: Wire) -> None:
    for name, most in _EMBED_TEXTS.items():
        form.at_most(f"{path}.{name}", str(embed.get(name) or ""), most)
    for number, field in enumerate(_listed(form, f"{path}.fields", embed.get("fields"), 25)):
        for name, most in (("name", 256), ("value", 1_024)):
            text = field.get(name) if isinstance(field, dict) else None
            form.between(f"{path}.fields.{number}.{name}", text, 1, most)


def _attachments(form: Form, value: Any, files: tuple[File, ...]) -> tuple[frozenset[int], tuple[File, ...]]:
    """The ids of existing attachments that an edit keeps, and the uploads with the names of their entries."""
    kept, named = set(), list(files)
    for number, entry in enumerate(_listed(form, "attachments", value, MOST_FILES)):
        given = snowflake(entry.get("id")) if isinstance(entry, dict) else None
        if given is None:
            form.wrong(f"attachments.{number}.id", "NUMBER_TYPE_COERCE", "Value is not snowflake.")
        elif given >= len(files):
            kept.add(given)
        else:
            filename = str(entry.get("filename") or files[given].filename)
            description = entry.get("description") or None
            form.at_most(f"attachments.{number}.description", str(description or ""), _MAX_DESCRIPTION)
            named[given] = named_type(replace(files[given], filename=filename, description=description))
    return frozenset(kept), tuple(named)


def _flags(form: Form, value: Any) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or value < 0:
        form.wrong("flags", "NUMBER_TYPE_COERCE", "Value is not int.")
        return 0
    return value & _BOT_FLAGS
