"""What trains and measures loads catboost and scikit-learn: seconds in each worker, for tests that are all slow."""

from __future__ import annotations

from pathlib import Path

import pytest

LOADS_THEM = {"test_measure_rooms.py", "test_train.py"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if collection_path.name in LOADS_THEM and config.option.markexpr == "not slow" else None
