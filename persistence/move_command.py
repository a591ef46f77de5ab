"""`python bot.py move`: copies all that is kept from STATE_DIR into Redis, or back."""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from followup.decision_file import FILE_NAME, DecisionFile
from persistence.lock import in_use
from persistence.open_store import CHECK, MOVED, MOVING, NOTES, all_rows, find_seal, has_note, open_stores
from persistence.people import LIST, OPTED_OUT, YES
from storage.store import Key, Store, StoreError


def move_command(arguments: Sequence[str], state_dir: Path, redis_url: str | None, keys: str | None) -> int:
    """Runs the command, and returns the exit code: 2 if there is no Redis, rows are damaged, the target is not
    empty, or the decision log cannot be written.

    Raises InUseError while a bot is running, and as the function from open_stores() does.
    """
    parser = argparse.ArgumentParser(prog="python bot.py move", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--back", action="store_true", help="from Redis into STATE_DIR")
    parser.add_argument("--without-damaged", action="store_true", help="copies the rest if rows are damaged")
    parsed = parser.parse_args(arguments)
    is_back = parsed.back
    if redis_url is None:
        sys.stderr.write(
            "REDIS_URL or DISCORD_TOKEN is not set, and Redis is used only with both: set both, REDIS_URL to the "
            "Redis to copy to (with --back: to copy from).\n"
        )
        return 2
    names = "STATE_DIR", "REDIS_URL"
    with in_use(state_dir, redis_url, 0.0):
        stores = [open_stores(state_dir, url, keys) for url in (None, redis_url)]
        open_source, open_target = reversed(stores) if is_back else stores
        from_name, to_name = reversed(names) if is_back else names
        # The source first: if its key is not given, none is made for the target.
        with closing(open_source()) as source, closing(open_target()) as target:
            if has_note(source, MOVING):
                sys.stderr.write(f"{from_name} has only a part of the data, as copying into it was interrupted.\n")
                return 2
            if has_note(target, MOVING):  # it was interrupted, and no bot has started since
                for rows in all_rows(target, but={CHECK, MOVING}):
                    target.write(dict.fromkeys(rows))
                target.write({Key(MOVING, 0): None})
            if set(target.kinds()) - NOTES:
                sys.stderr.write(f"{to_name} is not empty: use an empty one.\n")
                return 2
            target.write({Key(MOVING, 0): b"true"})
            count, damaged = _copy(source, target)
            if damaged:
                lost = ", ".join(f"{n:,} of {kind}" for kind, n in sorted(damaged.items()))
                sys.stderr.write(f"Damaged rows in {from_name}, not copied: {lost}. The log lines above name each.\n")
                if not parsed.without_damaged:
                    sys.stderr.write("Copy the rest with --without-damaged. Until then no bot starts with the copy.\n")
                    return 2
            seals = [find_seal(state_dir, url, keys) for url in (None, redis_url)]
            from_seal, to_seal = reversed(seals) if is_back else seals
            # It stays in STATE_DIR, but is read with the key of the place where everything else is.
            decisions = DecisionFile(state_dir / FILE_NAME, to_seal.opening(from_seal))
            try:
                decisions.bring_up()
            except (OSError, sqlite3.Error) as error:
                sys.stderr.write(f"{decisions.path} could not be sealed with the key of {to_name}: {error}.\n")
                sys.stderr.write(
                    "Mend that and run it again, or delete the file. Until then no bot starts with the copy.\n"
                )
                return 2
            target.write({Key(MOVING, 0): None, Key(MOVED, 0): None})
            target.sync()
            with suppress(StoreError):  # a disk that takes nothing more may be why it was moved
                source.write({Key(MOVED, 0): b"true"})
    sys.stdout.write(f"Copied {count:,} rows from {from_name} to {to_name}; what is in {from_name} stays there.\n")
    return 0


def _copy(source: Store, target: Store) -> tuple[int, Counter[str]]:
    """Copies all rows that can be read. Returns how many, and how many of each kind are damaged.

    A damaged opt-out is copied as one: the id of its row is enough.
    """
    count, damaged = 0, Counter[str]()
    for rows in all_rows(source, but=NOTES):
        for key in [key for key, value in rows.items() if value is None]:
            if key.kind == OPTED_OUT and key.id != LIST:
                rows[key] = YES
            else:
                damaged[key.kind] += 1
                del rows[key]
        target.write(rows)
        count += len(rows)
    return count, damaged
