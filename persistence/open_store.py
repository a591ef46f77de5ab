"""Opens the store: a database in STATE_DIR, or Redis, sealed with the owner's key or one that the bot made."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson
import structlog

from followup.decision_file import FILE_NAME, DecisionFile
from persistence.lock import InUseError
from persistence.migration import EarlierFolder, OpenEarlier, check_earlier, take_over
from storage.sealing import UNSEALED, KeyPlace, Seal, read_keys, read_row
from storage.sqlite_store import OURS, SQLiteStore
from storage.state_key import KeyFile
from storage.store import Key, Leases, Store, StoreError, WrongKeyError, strangers

if TYPE_CHECKING:
    from storage.redis_store import RedisStore

log = structlog.get_logger()

DATABASE = "parley.db"
CHECK = "seal"  # the row that tells with which key all rows are sealed
MOVING = "moving"  # the row that exists while `bot.py move` copies into the store
MOVED = "moved"  # the row that exists once it has copied from there
NOTES = {CHECK, MOVING, MOVED}  # rows that are no data
NO_MORE = "sealed_by"  # the same as CHECK in an earlier version
GONE = (
    "Redis lost what was stored there, and the running processes are storing it again: start this one again in a few "
    "seconds."
)
PAGE = 500


def find_seal(state_dir: Path, redis_url: str | None, keys: str | None) -> Seal:
    """The seal of the owner's keys, or, without any, of the key that open_stores() makes beside the data.

    Reads and writes nothing yet. Raises ValueError, with a sentence, for malformed keys.
    """
    place: KeyPlace = KeyFile(state_dir)
    if redis_url is not None:
        from storage.redis_store import KeyInRedis  # noqa: PLC0415 - only who sets REDIS_URL needs its client

        place = KeyInRedis(redis_url)
    return read_keys(keys, place) if keys else Seal([], place)


def open_stores(
    state_dir: Path, redis_url: str | None, keys: str | None, leases: Leases | None = None, *, is_shared: bool = False
) -> Callable[[], Store]:
    """Returns a function that opens the store and seals all rows in it; the thread that uses the store has to call it.

    leases: in Redis, those that must be held for anything to be written. is_shared: a bot is running, with the key by
    which the rows are sealed: with another one first, the function raises WrongKeyError and changes nothing.

    Raises as find_seal() does; the function raises WrongKeyError where these keys do not fit, StoreError where the
    store cannot be opened, and InUseError.
    """
    seal = find_seal(state_dir, redis_url, keys)
    decisions = DecisionFile(state_dir / FILE_NAME, seal)
    was_open = False

    def open_store() -> Store:
        nonlocal was_open
        store = _store(state_dir, redis_url, seal)
        try:
            if isinstance(store, SQLiteStore):
                _seal_all(_earlier(state_dir, store), store, seal, decisions, is_shared=is_shared)
            else:
                with store.alone():  # of several processes that start at once, one does it
                    if was_open:
                        seal.make_key()  # Redis may have lost it
                    elif not store.channels(CHECK) and store.is_used():
                        raise InUseError(GONE)
                    _seal_all(_earlier(state_dir, store), store, seal, decisions, is_shared=is_shared, is_ours=was_open)
                    store.expect(Key(CHECK, 0))
                was_open = True
        except WrongKeyError:
            store.close()
            raise
        except StoreError as error:
            # The bot also runs when the disk is full or read-only, but not with a key that has yet to seal all anew:
            # who then goes back to the key before would lose what the new one sealed meanwhile.
            known = _known(_earlier(state_dir, store), store, seal)
            if known and {known["sealed_by"], *known.get("also", ())} != {seal.marks[0]}:
                store.close()
                raise StoreError(f"Not all could be encrypted with the first key of STATE_KEY: {error}") from None
            seal.fits = True
            store.owed = partial(_first_check, store, seal)
            log.warning(
                "state_not_sealed",
                error=str(error),
                meaning="what an earlier version left stays as it is until the next start",
                remedy="fix what the error names, and start again",
            )
        if leases and not isinstance(store, SQLiteStore):
            store.leases = leases
        return store

    return open_store


def opens(state_dir: Path, redis_url: str | None, keys: str | None) -> bool:
    """Whether there are rows and these keys open them. Changes nothing, so a bot may be running.

    Raises ValueError for malformed keys, WrongKeyError where they do not fit, StoreError.
    """
    seal = find_seal(state_dir, redis_url, keys)
    if redis_url is not None:
        with closing(_store(state_dir, redis_url, seal)) as store:
            return _known(_earlier(state_dir, store), store, seal) is not None
    if (path := state_dir / DATABASE).is_file():
        if foreign := strangers(path):
            raise StoreError(f"{foreign[0]} is none of the bot's files: a bot that starts deletes it.")
        try:
            with closing(sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)) as db:
                first = "ORDER BY (kind, channel, id) IS NOT (?, ?, ?) LIMIT 1"
                sql = f"SELECT kind, channel, id, value FROM row WHERE {OURS} {first}"  # noqa: S608 - ours
                found = db.execute(sql, Key(CHECK, 0)).fetchone()
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter: of an error that quotes what is damaged
            raise StoreError(f"{path} cannot be read ({error}): check its permissions and its disk.") from None
        if found:
            *place, value = found
            row = read_row(Key(*place), value.rstrip(b" ") if isinstance(value, bytes) else None, seal)
            if row.value and place[0] == CHECK:
                _checked(row.value, seal)
            return True
    check_earlier(partial(EarlierFolder, state_dir), seal)
    return False


def check_stores(state_dir: Path, redis_url: str | None, keys: str | None) -> None:
    """Prepares what is stored for this start. Raises as the function from open_stores() does, and ValueError where
    `bot.py move` did not finish, or was left out."""
    store = open_stores(state_dir, redis_url, keys)()
    command = "`bot.py move --back`" if redis_url is None else "`bot.py move`"
    if has_note(store, MOVING):
        store.close()
        raise ValueError(f"{command} was interrupted: run it again, then start the bot")
    if has_note(store, MOVED):
        here, there = ("STATE_DIR", "REDIS_URL") if redis_url is None else ("REDIS_URL", "STATE_DIR")
        log.warning(
            "moved_away",
            meaning=f"all was copied from {here} to {there}: who opted out or deleted something there since is unknown",
            remedy=f"{'set' if redis_url is None else 'remove'} REDIS_URL, or run {command} into an empty {here}",
        )
    if redis_url is not None and not set(store.kinds()) - NOTES:
        with closing(SQLiteStore(state_dir / DATABASE)) as left:
            if set(left.kinds()) - NOTES:
                store.close()
                raise ValueError(
                    "STATE_DIR has data, as of people who opted out, and REDIS_URL has none: run `bot.py move`, or "
                    f"delete {DATABASE} there to begin anew"
                )
    seal = find_seal(state_dir, redis_url, keys)
    # If this fails, it fails again in use, and is logged then.
    with suppress(OSError, sqlite3.Error):
        DecisionFile(state_dir / FILE_NAME, seal).bring_up()
    store.close()
    if keys and "," in keys:
        log.info(
            "earlier_key_listed",
            meaning="STATE_KEY has more than one key: whoever has one of them can add data",
            remedy="leave only the first there, once a start with all of them has gone well",
        )


def _seal_all(
    open_earlier: OpenEarlier,
    store: SQLiteStore | RedisStore,
    seal: Seal,
    decisions: DecisionFile,
    *,
    is_shared: bool,
    is_ours: bool = False,
) -> None:
    """Seals all rows with the first key, unless that is done already; without STATE_KEY also those that are not sealed.

    Raises StoreError, and WrongKeyError where the keys do not fit, or running processes use another one: then nothing
    is changed.
    is_shared: as for open_stores(). is_ours: this process sealed it before, so that the rows there now are of running
    processes.
    """
    known = _known(open_earlier, store, seal)
    if known is None and store.channels(CHECK) and not is_ours and decisions.is_anothers():
        # That row is not damaged, but of a key that is not there: one of several changes that were interrupted.
        raise WrongKeyError(
            f"STATE_KEY is not the key that {decisions.path} was encrypted with: list all that it had, or delete it."
        )
    seal.fits = True
    if known is None and is_ours:
        store.write({Key(CHECK, 0): orjson.dumps(_done(seal))})
    elif known is None or known != _done(seal):
        if is_shared or (not isinstance(store, SQLiteStore) and store.is_used()):
            raise WrongKeyError(
                "What is stored is encrypted with another key than the first of STATE_KEY, and running processes use "
                "that key: stop all of them, then start this one."
            )
        seal.make_key()
        _seal_anew(open_earlier, store, seal, decisions, known or _begun(seal))


def _seal_anew(
    open_earlier: OpenEarlier,
    store: SQLiteStore | RedisStore,
    seal: Seal,
    decisions: DecisionFile,
    before: dict[str, Any],
) -> None:
    """Seals all rows and the decision log with the first key, without STATE_KEY also what an earlier version left.

    Ended at any point, the next start goes on with it. before: the CHECK row. Raises StoreError.
    """
    # This row is sealed with the first key: with it the next start checks whether its key fits. If this one is killed,
    # "also" tells all other keys that may have sealed any rows by then.
    also = sorted({*before.get("also", ()), seal.marks[0]})
    store.write({Key(CHECK, 0): orjson.dumps(before | {"also": also})})
    is_taken = not seal.takes_plain or take_over(open_earlier, store, seal)
    for rows in all_rows(store):
        store.write({key: value for key, value in rows.items() if value is not None})
    # After the rows: what has none of them sealed with the new key, the old key opens as a whole. In an empty store it
    # may be the log of the one from which `bot.py move` is about to copy.
    if not decisions.is_anothers():
        try:
            decisions.bring_up()
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{decisions.path} could not be sealed anew: {error}.") from error
    if is_taken:
        store.write({Key(CHECK, 0): orjson.dumps(_done(seal)), Key(NO_MORE, 0): None})
        store.sync()


def _done(seal: Seal) -> dict[str, Any]:
    """What the CHECK row is to say where the first key has sealed everything."""
    return {"sealed_by": seal.marks[0], "whole": True}


def _begun(seal: Seal) -> dict[str, Any]:
    """What the CHECK row is to say where it says nothing yet: any of the keys may have sealed rows."""
    return {"sealed_by": seal.marks[-1], "whole": not seal.takes_plain, "also": seal.marks}


def _first_check(store: Store, seal: Seal) -> dict[Key, bytes]:
    """The CHECK row, if there is none. Without it, another key would take what this one seals for damaged."""
    if store.channels(CHECK):
        return {}
    seal.make_key()
    return {Key(CHECK, 0): orjson.dumps(_begun(seal))}


def has_note(store: Store, kind: str) -> bool:
    """Whether the store has this row, and the keys open it: else another program put it there."""
    return any(row.value for row in store.read(kind, 0))


def all_rows(store: Store, *, but: Collection[str] = ()) -> Iterator[dict[Key, bytes | None]]:
    """All rows but those of some kinds, in pages; the value None: the row is damaged."""
    for kind in set(store.kinds()).difference(but):
        for channel in store.channels(kind):
            since: int | None = 0
            while since is not None:
                rows = store.read(kind, channel, since=since, limit=PAGE)
                yield {Key(kind, channel, row.id): row.value for row in rows}
                since = rows[-1].id + 1 if len(rows) == PAGE else None


def _known(open_earlier: OpenEarlier, store: Store, seal: Seal) -> dict[str, Any] | None:
    """The CHECK row; None: there is none, or only that row is damaged. Raises WrongKeyError.

    If there is none, or it does not open, all others have to: a process that was sealing them anew with a key that is
    not there may have been killed.
    """
    refused, value = None, None
    try:
        value = next((row.value for row in store.read(CHECK, 0, before=1)), None)
    except WrongKeyError as error:
        refused = error
    if value:
        return _checked(value, seal)
    if not seal.fits:
        opened = sum(value is not None for rows in all_rows(store, but={CHECK}) for value in rows.values())
        if refused and not opened:
            raise refused
        check_earlier(open_earlier, seal)
    return None


def _checked(value: bytes, seal: Seal) -> dict[str, Any]:
    """What the CHECK row says. Raises WrongKeyError if these keys do not open all that it tells of."""
    known: dict[str, Any] = orjson.loads(value)
    if not (known.get("whole") or seal.takes_plain):
        raise WrongKeyError(UNSEALED)
    if not {known["sealed_by"], *known.get("also", ())} <= {*seal.marks}:
        raise WrongKeyError(
            "Not all that is stored is encrypted with the first key of STATE_KEY yet: list the key from before behind "
            f"it, after a comma, for one start.{seal.where_made}"
        )
    return known


def _store(state_dir: Path, redis_url: str | None, seal: Seal) -> SQLiteStore | RedisStore:
    if redis_url is None:
        return SQLiteStore(state_dir / DATABASE, seal=seal)
    from storage.redis_store import RedisStore  # noqa: PLC0415 - only who sets REDIS_URL needs its client

    return RedisStore(redis_url, seal=seal)


def _earlier(state_dir: Path, store: SQLiteStore | RedisStore) -> OpenEarlier:
    """Opens the documents of an earlier version, in the place of this store."""
    return partial(EarlierFolder, state_dir) if isinstance(store, SQLiteStore) else store.earlier
