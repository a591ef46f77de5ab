"""A desk with all around it faked, and what is logged meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from tests.support.offers import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def logs() -> Iterator[list[EventDict]]:
    with capture_logs() as logs:
        yield logs
