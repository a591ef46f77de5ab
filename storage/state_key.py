"""The key that the bot makes if the owner gives none, kept beside the data."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import structlog

from storage.store import StoreError, WrongKeyError, make_folder

log = structlog.get_logger()

KEY_FILE = "state.key"


class KeyFile:
    """A file in STATE_DIR, for its owner only."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / KEY_FILE

    def __str__(self) -> str:
        return str(self._path)

    def read(self) -> str:
        """The key; empty where there is none. Raises WrongKeyError for a file that holds none, and StoreError for one
        that cannot be read: what it opens is not to be taken for what none of the keys opens.
        """
        try:
            if self._path.exists() and not self._path.is_file():  # a pipe, say, for which it would wait
                raise OSError("it is no file")
            return self._path.read_text("ascii").strip()
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except (OSError, ValueError) as error:
            which = StoreError if isinstance(error, OSError) else WrongKeyError
            raise which(f"The key in {self} cannot be read ({error}): make it readable, or put it back.") from None

    def keep(self, key: str) -> str:
        """Stores the key if there is none yet, in one step, and returns the stored one. Raises StoreError."""
        if known := self.read():
            return known
        new = self._path.with_suffix(".new")
        try:
            make_folder(self._path.parent)
            new.unlink(missing_ok=True)
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(f"{key}\n")
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
        except OSError as error:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            raise StoreError(f"{self} could not be written: {error}.") from error
        tell(str(self))
        return key


def tell(place: str) -> None:
    """Logs where a new key is."""
    log.info(
        "state_key_made",
        place=place,
        meaning="what is stored is encrypted with a key that is kept beside it: anyone who copies both can read it",
        remedy="set STATE_KEY to a key of your own, which is then kept apart from the data",
    )
