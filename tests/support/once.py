"""What each bot would work out anew, although it comes out the same: in a run of the tests it is done once.

A program makes one bot, the tests make hundreds; without this they would spend half of their time on it.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import httpcore2
import pytest
import structlog
from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource
from structlog.dev import plain_traceback

import decider
import miniapps.router
from tests.support.followups import shipped_model

default_ssl_context = httpcore2.default_ssl_context


@contextmanager
def done_once() -> Iterator[None]:
    """While it is open, bots share the certificates they trust, the trained model, what packages offer, and how each
    setting is read."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(httpcore2, "default_ssl_context", _trusted)
        monkeypatch.setattr(decider, "load_model", shipped_model)
        monkeypatch.setattr(miniapps.router, "entry_points", cache(entry_points))
        # To find out how its fields are read takes Settings longer than to read them.
        for name in ("_extract_field_info", "_field_is_complex"):
            monkeypatch.setattr(EnvSettingsSource, name, _for_each_field(getattr(EnvSettingsSource, name)))
        monkeypatch.setattr("agents.demo.SECONDS_PER_LINE", 0.01)  # nobody watches it write
        # Whom a provider refuses the first time waits for half a second.
        monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.0)
        # rich, which comes with what is installed for tests alone, takes 0.5 s for a traceback.
        monkeypatch.setattr(structlog.get_config()["processors"][-1], "exception_formatter", plain_traceback)
        yield


@cache
def _trusted(*, _trust_env: bool = True) -> ssl.SSLContext:
    return default_ssl_context(_trust_env=_trust_env)


def _for_each_field(find_out: Callable[..., Any]) -> Callable[..., Any]:
    found: dict[tuple[Any, ...], tuple[FieldInfo, Any]] = {}  # with the field, so that its id stays its own

    def known(source: EnvSettingsSource, field: FieldInfo, *name: str) -> Any:
        key = (id(field), type(source), *name)
        if key not in found:
            found[key] = field, find_out(source, field, *name)
        return found[key][1]

    return known
