"""Keeps the schemas of tools as they are sent: pydantic-ai adapts each to the provider anew at every request, which
takes 0.05 ms of CPU for each tool."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson
from pydantic_ai.models import Model

MAX_SCHEMAS = 256  # of each model, its own tools' and those of MCP servers


@dataclass(frozen=True, slots=True)
class _Adapted:
    """Stands in for a transformer, of which pydantic-ai asks only these two."""

    schema: bytes
    is_strict_compatible: bool

    def walk(self) -> Any:
        return orjson.loads(self.schema)  # each time a new one, as clients may change it


def adapt_once(model: Model) -> None:
    """Makes a model adapt each schema only once. What is sent stays the same."""
    kind: Any = model.profile.get("json_schema_transformer")
    if kind is None:
        return

    @lru_cache(MAX_SCHEMAS)
    def adapted(schema: bytes, strict: bool | None) -> _Adapted:
        transformer = kind(orjson.loads(schema), strict=strict)
        return _Adapted(orjson.dumps(transformer.walk()), transformer.is_strict_compatible)

    class Once(kind):  # type: ignore[misc]
        def __new__(cls, schema: Any, *, strict: bool | None = None) -> Any:
            try:
                return adapted(orjson.dumps(schema), strict)
            except orjson.JSONEncodeError:  # an MCP server may send what orjson does not write, such as 65 bits
                return kind(schema, strict=strict)

    model.profile["json_schema_transformer"] = Once
