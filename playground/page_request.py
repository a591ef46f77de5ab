"""Parses the page's requests: the body and its fields. ApiError for missing or malformed ones."""

from typing import Any, TypeVar

from aiohttp import web

from playground import body, errors
from playground.errors import ApiError
from playground.model import User, Wire, snowflake
from playground.uploads import MOST_FILES
from playground.world import World

T = TypeVar("T")
_MAX_BODY = 64 * 1024


async def read(request: web.Request, upload_limit: int) -> Wire:
    """The query, updated with the JSON body; the uploads are under "files"."""
    given: Wire = dict(request.query)
    if request.content_type.startswith("multipart/"):
        payload, files = await body.read(request, MOST_FILES * upload_limit)
        return given | body.mapping(payload) | {"files": files}
    if request.can_read_body:
        if request.content_length is None or request.content_length > _MAX_BODY:
            raise errors.too_large()
        given |= body.mapping(body.load(await request.read()))
    return given | {"files": ()}


def place(request: web.Request, name: str) -> int:
    """An id in the path."""
    return identity(dict(request.match_info), name)


def identity(given: Wire, name: str) -> int:
    value = snowflake(given.get(name))
    if value is None:
        raise wrong(name)
    return value


def field(given: Wire, name: str, kind: type[T], default: T | None = None) -> T:
    """A field of this type. default: None: the field is required."""
    value = given.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, kind):
        raise wrong(name)
    return value


def texts(given: Wire, name: str) -> list[str]:
    """A list of strings; empty if left out."""
    values: list[Any] = field(given, name, list, [])
    if not all(isinstance(value, str) for value in values):
        raise wrong(name)
    return values


def wrong(name: str) -> ApiError:
    return ApiError(400, 50035, f"The field {name} is missing or not what it should be.")


def speaker(world: World, given: Wire) -> User:
    """The user as whom a request acts: a person or another bot, never the bot itself."""
    user = world.user(identity(given, "author_id"))
    if user.id == world.bot.id:
        raise errors.unknown_user()
    return user
