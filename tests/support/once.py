"""What each bot would work out anew, although it comes out the same: in a run of the tests it is done once.

A program makes one bot, the tests make hundreds; without this they would spend half of their time on it.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points

import httpcore2
import pytest
import structlog
from structlog.dev import plain_traceback

import decider
import miniapps.router
from tests.support.followups import shipped_model

default_ssl_context = httpcore2.default_ssl_context


@contextmanager
def done_once() -> Iterator[None]:
    """While it is open, bots share the certificates they trust, the trained model and what packages offer."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(httpcore2, "default_ssl_context", _trusted)
        monkeypatch.setattr(decider, "load_model", shipped_model)
        monkeypatch.setattr(miniapps.router, "entry_points", cache(entry_points))
        # rich, which comes with what is installed for tests alone, takes 0.5 s for a traceback.
        monkeypatch.setattr(structlog.get_config()["processors"][-1], "exception_formatter", plain_traceback)
        yield


@cache
def _trusted(*, _trust_env: bool = True) -> ssl.SSLContext:
    return default_ssl_context(_trust_env=_trust_env)
