"""HTTP adapter for geopy that limits the size of a response."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import ClientError, ClientTimeout
from geopy.adapters import AioHTTPAdapter  # type: ignore[import-untyped]
from geopy.exc import GeocoderParseError, GeocoderServiceError  # type: ignore[import-untyped]


class BoundedAdapter(AioHTTPAdapter):  # type: ignore[misc]
    """Reads responses of at most max_bytes, counted after decompression."""

    def __init__(self, max_bytes: int, **how: Any) -> None:
        super().__init__(**how)
        self._max_bytes = max_bytes

    async def get_json(self, url: str, *, timeout: float, headers: dict[str, str]) -> Any:  # noqa: ASYNC109 - geopy's
        """The response as JSON. Raises GeocoderServiceError if there is none, or it is too long or no JSON."""
        limit = ClientTimeout(total=timeout)
        try:
            async with self.session.get(url, timeout=limit, headers=headers, ssl=self.ssl_context) as response:
                if response.status >= 400:
                    raise GeocoderServiceError(f"status {response.status}")
                body = bytearray()
                async for part in response.content.iter_any():
                    body += part
                    if len(body) > self._max_bytes:
                        raise GeocoderServiceError(f"an answer of more than {self._max_bytes} bytes")
            return json.loads(bytes(body))
        except (ClientError, OSError) as error:
            raise GeocoderServiceError(type(error).__name__) from error  # the error's text may contain the query
        except (ValueError, RecursionError) as error:
            raise GeocoderParseError(f"no JSON: {error}") from error
