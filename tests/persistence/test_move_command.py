"""`python bot.py move`: all rows, sealed anew where they come to, and nothing where something is already."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from persistence.move_command import move_command
from persistence.open_store import CHECK, PAGE, open_stores
from storage.store import Key, Store
from tests.support.redis_server import redis_server

CHANNEL = 2**60
ROWS = {
    Key("message", CHANNEL, number): b'{"content":"all aboard, number %d"}' % number for number in range(1, PAGE + 2)
} | {Key("opted_out", 0, 7): b"{}", Key("alive", 0): b"[1]"}


def rows(store: Store) -> dict[Key, bytes | None]:
    kinds = set(store.kinds()) - {CHECK}
    return {Key(kind, row.channel, row.id): row.value for kind in kinds for row in store.read(kind)}


def test_all_rows_go_to_redis_and_back_and_only_where_nothing_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    with closing(open_stores(old, None, None)()) as store:
        store.write(ROWS)
    with redis_server() as url:
        assert move_command([], old, url, None) == 0
        assert f"Copied {len(ROWS)} rows from STATE_DIR to REDIS_URL" in capsys.readouterr().out
        with closing(open_stores(old, url, None)()) as store:
            assert rows(store) == ROWS
        assert move_command([], old, url, None) == 2
        assert "REDIS_URL has something kept in it" in capsys.readouterr().err
        assert move_command(["--back"], new, url, None) == 0
    with closing(open_stores(new, None, None)()) as store:
        assert rows(store) == ROWS


def test_without_redis_it_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert move_command([], tmp_path, None, None) == 2
    assert capsys.readouterr().err.startswith("REDIS_URL is not set")
