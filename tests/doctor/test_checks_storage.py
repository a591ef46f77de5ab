"""What is kept, looked at without a change: folder, files, key, room, and who else uses it."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography.fernet import Fernet

from doctor.checks_storage import check_disk, check_folder, check_instance, check_key, check_modes, check_volume
from doctor.command import _storage
from doctor.findings import Finding, State
from persistence.lock import in_use
from persistence.open_store import check_stores
from storage.state_key import KEY_FILE

KEY = Fernet.generate_key().decode()


def unwritable(tmp_path: Path) -> Finding:
    (tmp_path / "file").touch()
    return check_folder(tmp_path / "file" / "state")


def readable(tmp_path: Path) -> Finding:
    check_stores(tmp_path, None, None)
    tmp_path.chmod(0o755)
    (tmp_path / KEY_FILE).chmod(0o644)
    return check_modes(tmp_path)


def other_key(tmp_path: Path) -> Finding:
    check_stores(tmp_path, None, Fernet.generate_key().decode())
    (finding,) = check_key(tmp_path, None, Fernet.generate_key().decode())
    return finding


def lost_key(tmp_path: Path) -> Finding:
    check_stores(tmp_path, None, None)
    (tmp_path / KEY_FILE).unlink()
    (finding,) = check_key(tmp_path, None, None)
    return finding


def no_key(tmp_path: Path) -> Finding:
    (finding,) = check_key(tmp_path, None, "secret")
    return finding


def no_redis(tmp_path: Path) -> Finding:
    (finding,) = check_key(tmp_path, "redis://:password@127.0.0.1:1/0", None)
    return finding


def second(tmp_path: Path) -> Finding:
    with in_use(tmp_path):
        return check_instance(tmp_path, None)


def no_volume(tmp_path: Path) -> Finding:
    (finding,) = check_volume(tmp_path, None, {"RAILWAY_PROJECT_ID": "1"})
    return finding


def elsewhere(tmp_path: Path) -> Finding:
    (finding,) = check_volume(tmp_path, None, {"RAILWAY_VOLUME_MOUNT_PATH": "/data"})
    return finding


@pytest.mark.parametrize(
    ("plant", "state", "says", "fix"),
    [
        (unwritable, State.FAULT, "cannot be written", "the right to write there"),
        (readable, State.FAULT, "Other users of this machine can read state.key", "chmod 600"),
        (other_key, State.FAULT, "STATE_KEY is not the key", "Set it to that key, or for one start to a new key"),
        (lost_key, State.FAULT, "What is stored is encrypted.", "or put back"),
        (no_key, State.FAULT, "STATE_KEY is not a valid key", "Fernet.generate_key"),
        (no_redis, State.FAULT, "Redis does not answer", "Start that Redis"),
        (second, State.WARNING, "is in use by another process", "otherwise stop it"),
        (no_volume, State.FAULT, "The service has no volume", "Mount a volume at"),
        (elsewhere, State.FAULT, "not on the volume at /data", "Mount a volume at"),
    ],
)
def test_what_is_wrong_with_what_is_kept(
    plant: Callable[[Path], Finding], state: State, says: str, fix: str, tmp_path: Path
) -> None:
    finding = plant(tmp_path)
    assert finding.state is state
    assert says in finding.says
    assert fix in finding.fix
    assert "password@" not in repr(finding)


@pytest.mark.parametrize("state_dir", ["x" * 300, "closed/state", "closed"])
def test_a_folder_that_cannot_be_looked_into_is_named_and_the_rest_goes_on(
    state_dir: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, *_: object, **__: object) -> object:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    (tmp_path / "closed").mkdir()
    for name in ("stat", "iterdir", "mkdir", "is_dir", "is_file"):  # as it is for one who is not root
        monkeypatch.setattr(Path, name, refused)
    findings = _storage(tmp_path / state_dir, None, None, runs_here=False)
    assert [(one.check, one.state) for one in findings[:2]] == [("storage", State.FAULT), ("files", State.SKIPPED)]
    assert {one.check for one in findings} >= {"disk", "key"}


def test_a_redis_that_does_not_answer_is_named_and_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr("doctor.command.check_instance", lambda *_, **__: asked.append(1))
    findings = _storage(tmp_path, "redis://127.0.0.1:1/0", None, runs_here=False)
    assert [one.check for one in findings if one.state is State.FAULT] == ["redis"]
    assert not asked


@pytest.mark.parametrize(("free", "state"), [(10**10, State.OK), (10**8, State.WARNING), (10**6, State.FAULT)])
def test_room_on_the_disk(free: int, state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    assert check_disk(tmp_path / "not" / "made").state is state


@pytest.mark.parametrize("key", [None, KEY], ids=["its own", "given"])
def test_where_all_is_well_nothing_is_changed(key: str | None, tmp_path: Path) -> None:
    assert "Nothing is stored yet" in check_key(tmp_path, None, key)[0].says
    check_stores(tmp_path, None, key)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    found = [check_folder(tmp_path), check_modes(tmp_path), *check_key(tmp_path, None, key)]
    assert {finding.state for finding in found} == {State.OK}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name in before} == before
    assert check_instance(tmp_path, None).state is State.OK
