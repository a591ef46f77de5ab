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
from persistence.migration import KINDS, EarlierFolder, OpenEarlier, check_earlier, refuse_earlier, take_over
from storage.sealing import KeyPlace, Seal, read_keys, read_row
from storage.sqlite_store import SQLiteStore
from storage.state_key import KeyFile
from storage.store import Key, Leases, Store, StoreError, WrongKeyError

if TYPE_CHECKING:
    from storage.redis_store import RedisStore

log = structlog.get_logger()

DATABASE = "parley.db"
CHECK = "seal"  # the row that tells with which key all rows are sealed
MOVING = "moving"  # the row that exists while `bot.py move` copies into the store
NO_MORE = "sealed_by"  # the same as CHECK in an earlier version
GONE = (
    "Redis lost what was stored there, and the running processes are storing it again: start this one again in a few "
    "seconds."
)
ROWS = "rows"  # the name under which the seal notes that all rows are sealed
PAGE = 500


def find_seal(state_dir: Path, redis_url: str | None, keys: str | None) -> Seal:
    """The seal of the owner's keys, or, without any, of a key that is kept beside the data, and made when needed.

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
    seal.takes_made = True
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
                    is_gone = not store.channels(CHECK)
                    if is_gone and was_open:
                        seal.put_back()
                    elif is_gone and store.is_used():
                        raise InUseError(GONE)
                    _seal_all(_earlier(state_dir, store), store, seal, decisions, is_shared=is_shared, is_ours=was_open)
                    store.expect(Key(CHECK, 0))
                was_open = True
        except WrongKeyError:
            store.close()
            raise
        except StoreError as error:
            # If that works the keys fit: the bot also runs when the disk is full or read-only.
            known = _known_without_made(store, seal)
            seal.seals_with = known["sealed_by"] if known else seal.made_mark
            store.owed = partial(_first_check, _earlier(state_dir, store), store, seal)
            log.warning(
                "state_not_sealed",
                error=str(error),
                meaning="what another key encrypted, or an earlier version left, stays as it is until the next start",
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
    seal.takes_made = True
    if redis_url is not None:
        store = _store(state_dir, redis_url, seal)
        try:
            return bool(store.read(CHECK))
        finally:
            store.close()
    if not (path := state_dir / DATABASE).is_file():
        return False
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)) as db:
            rows = db.execute("SELECT channel, id, value FROM row WHERE live AND kind = ?", (CHECK,)).fetchall()
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be read ({error}): check its permissions and its disk.") from None
    return [read_row(Key(CHECK, channel, id_), value.rstrip(b" "), seal) for channel, id_, value in rows] != []


def check_stores(state_dir: Path, redis_url: str | None, keys: str | None) -> None:
    """Prepares what is stored for this start. Raises as the function from open_stores() does, and ValueError where
    `bot.py move` did not finish, or was left out."""
    store = open_stores(state_dir, redis_url, keys)()
    if store.channels(MOVING):
        store.close()
        raise ValueError("`bot.py move` to this place was interrupted: run it again, then start the bot")
    if redis_url is not None and not set(store.kinds()) - {CHECK}:
        with closing(SQLiteStore(state_dir / DATABASE)) as left:
            if set(left.kinds()) - {CHECK}:
                store.close()
                raise ValueError(
                    "STATE_DIR has data, as of people who opted out, and REDIS_URL has none: run `bot.py move`, or "
                    f"delete {DATABASE} there to begin anew"
                )
    seal = find_seal(state_dir, redis_url, keys)
    # If this fails, it fails again in use, and is logged then.
    with suppress(OSError, sqlite3.Error):
        if _known(store) == {"sealed_by": seal.marks[0], "whole": True}:
            if keys:
                seal.release()
            DecisionFile(state_dir / FILE_NAME, seal).bring_up()
    store.close()


def _seal_all(
    open_earlier: OpenEarlier,
    store: SQLiteStore | RedisStore,
    seal: Seal,
    decisions: DecisionFile,
    *,
    is_shared: bool,
    is_ours: bool = False,
) -> None:
    """Migrates what an earlier version left, and seals all rows with the first key, unless that is done already.

    Unsealed rows are accepted until all were sealed once, which is noted beside the key: from then on they are not
    ours, in this database or another. So is what the key seals that the bot made, once the owner gave another. Raises
    StoreError, and WrongKeyError where running processes use another key.
    is_shared: as for open_stores(). is_ours: this process sealed it before, so that the rows there now are of running
    processes.
    """
    seal.seals_with = ""
    known = _known_without_made(store, seal)
    if is_ours and known is None:
        store.write({Key(CHECK, 0): orjson.dumps({"sealed_by": seal.marks[0], "whole": True})})
        seal.note_sealed(ROWS)
        return
    if known is None and store.channels(CHECK) and decisions.is_anothers():
        # That row is not damaged, but of a key that is not there: one of several changes that were interrupted.
        raise WrongKeyError(
            f"STATE_KEY is not the key that {decisions.path} was encrypted with: list all that it had, or delete it."
        )
    if was_sealed := seal.has_sealed(ROWS):
        refuse_earlier(open_earlier, store)
    seal.takes_plain = not (was_sealed or (known.get("whole") if known else _is_whole(open_earlier, store)))
    if seal.takes_plain:
        check_earlier(open_earlier, seal)
    _check_key_before(known, seal)
    seal.fits = True
    if known == {"sealed_by": seal.marks[0], "whole": True}:
        seal.note_sealed(ROWS)
        return
    if is_shared or (not isinstance(store, SQLiteStore) and store.is_used()):
        raise WrongKeyError(
            "What is stored is encrypted with another key than the first of STATE_KEY, and running processes use that "
            "key: stop all of them, then start this one."
        )
    _seal_anew(open_earlier, store, seal, decisions, known)


def _seal_anew(
    open_earlier: OpenEarlier,
    store: SQLiteStore | RedisStore,
    seal: Seal,
    decisions: DecisionFile,
    known: dict[str, Any] | None,
) -> None:
    """Seals all rows and the decision log with the first key. Ended at any point, the next start goes on with it.

    known: the CHECK row. Raises StoreError.
    """
    # This row is sealed with the first key: with it the next start checks whether its key fits. If this one is killed,
    # "also" tells all other keys that may have sealed any rows by then.
    before = known or _begun(open_earlier, store, seal)
    also = sorted({*before.get("also", ()), seal.marks[0]})
    store.write({Key(CHECK, 0): orjson.dumps(before | {"also": also})})
    # Where nothing is stored yet, the log may be of a bot whose rows `bot.py move` is about to copy.
    is_logs_place = known or set(store.kinds()) - {CHECK, MOVING} or any(open_earlier(kind).is_left() for kind in KINDS)
    if is_taken := not seal.takes_plain or take_over(open_earlier, store, seal):
        _write_anew(store)
    # After the rows: what has none of them sealed with the new key, the old key opens as a whole.
    if is_logs_place and not decisions.is_anothers():
        _bring_up(decisions, seal)
    if not is_taken:
        return
    whole = orjson.dumps({"sealed_by": seal.marks[0], "whole": True})
    store.write({Key(CHECK, 0): whole, Key(NO_MORE, 0): None})
    store.sync()
    seal.note_sealed(ROWS)
    seal.takes_plain, seal.fits = False, True
    seal.drop_made()


def _begun(open_earlier: OpenEarlier, store: Store, seal: Seal) -> dict[str, Any]:
    """What the CHECK row is to say where it says nothing yet: any of the keys may have sealed rows."""
    return {"sealed_by": seal.marks[-1], "whole": _is_whole(open_earlier, store), "also": seal.marks}


def _is_whole(open_earlier: OpenEarlier, store: Store) -> bool:
    """Whether nothing unsealed is to be taken over. So it is of an empty store, too: a copy of a CHECK row that says
    otherwise, put back later, would let anybody's unsealed rows in.
    """
    return store.is_sealed() or not (store.kinds() or any(open_earlier(kind).is_left() for kind in KINDS))


def _first_check(open_earlier: OpenEarlier, store: Store, seal: Seal) -> dict[Key, bytes]:
    """The CHECK row, if there is none. Without it, another key would take what this one seals for damaged, and what an
    earlier version left would be refused beside it."""
    return {} if store.channels(CHECK) else {Key(CHECK, 0): orjson.dumps(_begun(open_earlier, store, seal))}


def _check_key_before(known: dict[str, Any] | None, seal: Seal) -> None:
    """Raises WrongKeyError if a key is gone before all that it sealed was sealed with the first one."""
    if known and not {known["sealed_by"], *known.get("also", ())} <= {*seal.marks}:
        raise WrongKeyError(
            "Not all that is stored is encrypted with the first key of STATE_KEY yet: list the key that it had before "
            "behind it, for one start."
        )


def _write_anew(store: Store) -> None:
    for rows in all_rows(store):
        store.write({key: value for key, value in rows.items() if value is not None})


def _bring_up(decisions: DecisionFile, seal: Seal) -> None:
    """Has the decision log sealed with the first key. Raises StoreError if that fails and only now the log opens."""
    try:
        decisions.bring_up()
    except (OSError, sqlite3.Error) as error:
        if seal.made_mark:  # which opens nothing any more once all is sealed anew
            raise StoreError(f"{decisions.path} could not be sealed anew: {error}.") from error


def _known_without_made(store: Store, seal: Seal) -> dict[str, Any] | None:
    """As _known(). From then on the key that the bot made opens nothing if the owner gave others and has used them.

    The only exception is that not all was sealed anew when they were given.
    """
    seal.has_opened_given = False
    known = _known(store)
    if not (made := seal.made_mark):
        return known
    if known is None or not seal.has_opened_given:
        seal.fits = True
        if not any(seal.has_opened_given for _ in all_rows(store)):
            return known
        known = None
    elif known["sealed_by"] == made:
        return known
    log.warning(
        "made_key_refused",
        meaning="a key lies where the bot keeps its own, but all was encrypted with STATE_KEY: it opens nothing",
    )
    seal.drop_made()
    return known


def all_rows(store: Store, *, but: Collection[str] = ()) -> Iterator[dict[Key, bytes | None]]:
    """All rows but those of some kinds, in pages; the value None: the row is damaged."""
    for kind in set(store.kinds()).difference(but):
        for channel in store.channels(kind):
            since: int | None = 0
            while since is not None:
                rows = store.read(kind, channel, since=since, limit=PAGE)
                yield {Key(kind, channel, row.id): row.value for row in rows}
                since = rows[-1].id + 1 if len(rows) == PAGE else None


def _known(store: Store) -> dict[str, Any] | None:
    """The CHECK row; None: there is none, or only that row is damaged. Raises WrongKeyError.

    If it does not open, all others have to: a process that was sealing them anew with a key that is not there may have
    been killed.
    """
    try:
        return next((orjson.loads(row.value) for row in store.read(CHECK, 0, before=1) if row.value), None)
    except WrongKeyError:
        if not sum(value is not None for rows in all_rows(store, but={CHECK}) for value in rows.values()):
            raise
        return None


def _store(state_dir: Path, redis_url: str | None, seal: Seal) -> SQLiteStore | RedisStore:
    if redis_url is None:
        return SQLiteStore(state_dir / DATABASE, seal=seal)
    from storage.redis_store import RedisStore  # noqa: PLC0415 - only who sets REDIS_URL needs its client

    return RedisStore(redis_url, seal=seal)


def _earlier(state_dir: Path, store: SQLiteStore | RedisStore) -> OpenEarlier:
    """Opens the documents of an earlier version, in the place of this store."""
    return partial(EarlierFolder, state_dir) if isinstance(store, SQLiteStore) else store.earlier
