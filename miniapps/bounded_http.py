"""How geopy speaks HTTP here: no answer is read beyond a bound, whatever the server sends."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import ClientError, ClientTimeout
from geopy.adapters import AioHTTPAdapter  # type: ignore[import-untyped]
from geopy.exc import GeocoderParseError, GeocoderServiceError  # type: ignore[import-untyped]


class BoundedAdapter(AioHTTPAdapter):  # type: ignore[misc]
    """Reads answers of so many bytes at most, unpacked."""

    def __init__(self, max_bytes: int, **how: Any) -> None:
        super().__init__(**how)
        self._max_bytes = max_bytes

    async def get_json(self, url: str, *, timeout: float, headers: dict[str, str]) -> Any:  # noqa: ASYNC109 - geopy's
        """The answer as JSON. Raises GeocoderServiceError where there is none, or it is too long or no JSON."""
        limit = ClientTimeout(total=timeout)
        try:
            async with self.session.get(url, timeout=limit, headers=headers) as response:
                if response.status >= 400:
                    raise GeocoderServiceError(f"status {response.status}")
                body = bytearray()
                async for part in response.content.iter_any():
                    body += part
                    if len(body) > self._max_bytes:
                        raise GeocoderServiceError(f"an answer of more than {self._max_bytes} bytes")
            return json.loads(bytes(body))
        except (ClientError, OSError) as error:
            raise GeocoderServiceError(type(error).__name__) from error  # its text may have the query
        except (ValueError, RecursionError) as error:
            raise GeocoderParseError(f"no JSON: {error}") from error
