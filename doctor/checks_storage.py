"""Checks of the storage: its folder, files, key, free space, and whether another process uses it."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from doctor.findings import Finding, fault, of_sentence, ok, skipped, warning
from persistence.lock import InUseError, UndoneError, in_use
from persistence.open_store import find_seal, opens
from storage.store import StoreError, WrongKeyError, make_folder

FEW_BYTES, NO_BYTES = 500_000_000, 50_000_000
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def check_folder(state_dir: Path) -> Finding:
    """Whether files can be created in the folder. Creates it as the bot would."""
    try:
        make_folder(state_dir)
        with tempfile.NamedTemporaryFile(dir=state_dir, prefix=".doctor-") as file:
            file.write(b"x")
            file.flush()
    except OSError as error:
        return fault(
            "storage",
            f"STATE_DIR {state_dir} cannot be written ({error.strerror}): nothing survives a restart.",
            "Give the user that the bot runs as the right to write there, or set STATE_DIR to a folder where it has.",
        )
    return ok("storage", f"STATE_DIR {state_dir} can be written.")


def check_modes(state_dir: Path) -> Finding:
    """Whether other users of the machine can read the stored files."""
    if os.name != "posix" or not os.path.isdir(state_dir):  # noqa: PTH112 - which raises nothing
        return skipped("files", "There are no files yet, or the system has no file permissions.")
    try:
        # In a folder that nobody else can enter the modes of files do not matter.
        closed = not state_dir.stat().st_mode & OTHERS
        open_ = [path.name for path in state_dir.iterdir() if path.is_file() and path.stat().st_mode & OTHERS]
    except OSError as error:
        return skipped("files", f"What is in {state_dir} cannot be seen ({error.strerror}).")
    if not open_ or (closed and "state.key" not in open_):
        return ok("files", "Only the bot's user can read what is stored.")
    says = f"Other users of this machine can read {', '.join(sorted(open_)[:10])} in {state_dir}."
    return fault("files", says, f"Run chmod 700 {state_dir} && chmod 600 {state_dir}/* as the bot's user.")


def check_disk(state_dir: Path) -> Finding:
    folders = (state_dir.absolute(), *state_dir.absolute().parents)
    there = next(folder for folder in folders if os.path.isdir(folder))  # noqa: PTH112 - which raises nothing
    free = shutil.disk_usage(there).free
    says = f"{free / 1e9:.1f} GB are free on the disk of STATE_DIR."
    fix = "Make room there, or set STATE_DIR to a larger disk."
    if free < NO_BYTES:
        return fault("disk", says, fix)
    return warning("disk", says, fix) if free < FEW_BYTES else ok("disk", says)


def check_key(state_dir: Path, redis_url: str | None, keys: str | None) -> list[Finding]:
    """Whether Redis answers, if it is set, and whether the keys decrypt what is stored. Changes nothing."""
    redis = [ok("redis", "REDIS_URL answers.")] if redis_url else []
    try:
        find_seal(state_dir, redis_url, keys)
    except ValueError as error:
        return [fault("key", "STATE_KEY is not a valid key.", f"{error}.")]
    try:
        is_kept = opens(state_dir, redis_url, keys)
    except WrongKeyError as error:
        return [*redis, of_sentence("key", error)]
    except StoreError as error:
        if not redis_url:
            return [of_sentence("database", error)]
        why = type(error.__cause__).__name__
        return [fault("redis", f"Redis does not answer ({why}).", "Start that Redis, or correct REDIS_URL.")]
    except OSError as error:
        return [skipped("key", f"What is stored cannot be checked ({error.strerror}).")]
    by = "STATE_KEY" if keys else "a key stored beside it (set STATE_KEY to keep the key apart)"
    says = (
        f"What is stored is encrypted with {by}."
        if is_kept
        else f"Nothing is stored yet; it will be encrypted with {by}."
    )
    return [*redis, ok("key", says)]


def check_instance(state_dir: Path, redis_url: str | None, *, runs_here: bool = False) -> Finding:
    """Whether another process uses the storage. runs_here: a healthy bot answers on PORT, so that it is that one."""
    try:
        with in_use(state_dir, redis_url, 0.0):
            return ok("instance", "No other process uses what is stored.")
    except UndoneError as error:
        what, _, remedy = str(error).partition(": ")
        return fault("instance", f"{what}.", f"{remedy[0].upper()}{remedy[1:]}")
    except InUseError as error:
        if runs_here:
            return ok("instance", "The bot that listens on PORT uses what is stored.")
        return warning(
            "instance",
            f"{str(error).partition(':')[0]}: the bot is already running.",
            "Leave it if that is the bot you mean; otherwise stop it, or give this one a STATE_DIR or Redis of its "
            "own.",
        )
    except StoreError:
        return skipped("instance", "Redis does not answer.")


def check_volume(state_dir: Path, redis_url: str | None, environ: Mapping[str, str]) -> list[Finding]:
    """On Railway, whether the storage outlives a deploy."""
    if redis_url or not any(name.startswith("RAILWAY_") for name in environ):
        return []
    mount = environ.get("RAILWAY_VOLUME_MOUNT_PATH")
    if mount and state_dir.absolute().is_relative_to(mount):
        return [ok("volume", f"STATE_DIR is on the volume at {mount}.")]
    says = f"STATE_DIR is not on the volume at {mount}" if mount else "The service has no volume"
    fix = f"Mount a volume at {state_dir.absolute()} in the service's settings, or set REDIS_URL."
    return [fault("volume", f"{says}: nothing survives a deploy.", fix)]
