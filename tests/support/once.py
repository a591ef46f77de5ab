"""What each bot would work out anew, although it comes out the same: in a run of the tests it is done once.

A program makes one bot, the tests make hundreds; without this they would spend half of their time on it.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from types import CodeType
from typing import Any

import httpcore2
import pytest
from pydantic_ai import Tool

import agents.searching
import agents.tools
import miniapps.router

default_ssl_context = httpcore2.default_ssl_context
_tools: dict[CodeType, Tool[Any]] = {}


@contextmanager
def done_once() -> Iterator[None]:
    """While it is open, bots share the certificates they trust, their tools' schemas and what packages offer."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(httpcore2, "default_ssl_context", _trusted)
        monkeypatch.setattr(agents.tools, "Tool", _tool)
        monkeypatch.setattr(agents.searching, "Tool", _tool)
        monkeypatch.setattr(miniapps.router, "entry_points", cache(entry_points))
        yield


@cache
def _trusted(*, _trust_env: bool = True) -> ssl.SSLContext:
    return default_ssl_context(_trust_env=_trust_env)


def _tool(function: Callable[..., Any]) -> Tool[Any]:
    """As Tool itself. A function's code decides on its schema, whatever the function is bound to."""
    code = function.__code__
    if code not in _tools:
        _tools[code] = Tool(function)
    return Tool(function, function_schema=replace(_tools[code].function_schema, function=function))
