"""The directory of one cluster: a temporary one that is deleted with it, or a kept one.

    LOCK             held by every process that uses the directory, the servers included
    cluster.json     for later starts: the ports, and the number of servers
    config/          configuration of the servers; tmp/ their unpacked libraries; logs/ their logs
    plugins/         the servers' plugins: a directory of links to jars for each
    zookeeper/ tablet-0/ ... remote/      their data

A temporary directory without a lock holder was left by a killed process; the next cluster removes
it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fluss.errors import ConfigError, LocalServerError
from fluss_testkit.cache_paths import scratch_dir
from fluss_testkit.file_locks import FileLock

MEMORY_FILE = "cluster.json"
FRESH_PREFIX = "run-"
LOCK_TIMEOUT_S = 15.0  # longer than servers need to stop after their parent was killed


class Workspace:
    """A locked directory, and the paths in it."""

    def __init__(self, root: Path, lock: FileLock, *, kept: bool) -> None:
        self.root = root
        self.kept = kept
        self.lock = lock
        for directory in (self.config, self.logs, self.scratch):
            directory.mkdir(exist_ok=True)

    @property
    def config(self) -> Path:
        """The directory of the servers' configuration."""
        return self.root / "config"

    @property
    def logs(self) -> Path:
        """The directory of the servers' logs."""
        return self.root / "logs"

    @property
    def scratch(self) -> Path:
        """The directory where the servers unpack their native libraries."""
        return self.root / "tmp"

    @property
    def plugins(self) -> Path:
        """The directory of the servers' plugins; missing where there are none."""
        return self.root / "plugins"

    def install_plugins(self, plugins: Mapping[str, Sequence[Path]]) -> None:
        """Link the jars of plugins, in place of those of an earlier start."""
        shutil.rmtree(self.plugins, ignore_errors=True)
        for name, jars in plugins.items():
            directory = self.plugins / name
            directory.mkdir(parents=True)
            for jar in jars:
                (directory / jar.name).symlink_to(jar.resolve())

    def load_memory(self) -> dict[str, Any]:
        """Return what the last cluster in this directory stored; empty where there was none."""
        try:
            memory = json.loads((self.root / MEMORY_FILE).read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise LocalServerError(
                f"{self.root / MEMORY_FILE} cannot be read: {error}.",
                hint="remove the file; the cluster then chooses new ports.",
                path=str(self.root),
            ) from error
        return dict(memory) if isinstance(memory, dict) else {}

    def save_memory(self, memory: dict[str, Any]) -> None:
        """Store what the next cluster in this directory needs."""
        write_file(self.root / MEMORY_FILE, json.dumps(memory, indent=2) + "\n")

    def leave(self) -> None:
        """Remove a temporary directory, and release the lock. The servers must have ended."""
        if not self.kept:
            shutil.rmtree(self.root, ignore_errors=True)
        self.lock.release()


def open_workspace(directory: Path | None) -> Workspace:
    """Open the directory of a new cluster; None for a temporary one.

    Raises:
        LocalServerError: A running cluster uses it.
        ConfigError: It is not the directory of a cluster.
    """
    return _fresh() if directory is None else _kept(directory.expanduser().resolve())


def write_file(path: Path, text: str) -> None:
    """Write a file atomically; only its owner may read it."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    draft.write_text(text, "utf-8")
    draft.replace(path)


def _fresh() -> Workspace:
    base = own_scratch_dir()
    # Without this lock a new directory looks like a leftover until it is locked.
    gate = FileLock(base / "gate.lock")
    gate.exclusive()
    try:
        _remove_leftovers(base)
        root = Path(tempfile.mkdtemp(dir=base, prefix=FRESH_PREFIX))
        lock = FileLock(root / "LOCK")
        lock.exclusive()
    finally:
        gate.release()
    return Workspace(root, lock, kept=False)


def own_scratch_dir() -> Path:
    """Create the directory for temporary clusters; refuse one of another user.

    Raises:
        LocalServerError: It cannot be created, or belongs to another user.
    """
    base = scratch_dir()
    _make(base)
    if base.stat().st_uid != os.getuid():
        raise LocalServerError(
            f"{base} belongs to another user.",
            hint="set TMPDIR to a directory of your own.",
            path=str(base),
        )
    return base


def _remove_leftovers(base: Path) -> None:
    for directory in base.glob(FRESH_PREFIX + "*"):
        lock = FileLock(directory / "LOCK")
        try:
            if lock.try_exclusive():
                shutil.rmtree(directory, ignore_errors=True)
        except OSError:
            continue  # another process was faster
        finally:
            lock.release()


def _kept(root: Path) -> Workspace:
    _make(root)
    others = [each.name for each in root.iterdir()]
    if others and not {"LOCK", MEMORY_FILE} & set(others):
        raise ConfigError(
            f"{root} is not the data directory of a cluster; it has {others[0]!r}.",
            hint="name an empty directory, or one that a cluster has used before.",
            path=str(root),
        )
    lock = FileLock(root / "LOCK")
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while not lock.try_exclusive():
        if time.monotonic() > deadline:
            raise LocalServerError(
                f"another cluster uses {root}.",
                hint="stop that one, or name another directory.",
                path=str(root),
            )
        time.sleep(0.1)
    return Workspace(root, lock, kept=True)


def _make(directory: Path) -> None:
    try:
        # Logs and configuration have the passwords of users.
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LocalServerError(
            f"the directory {directory} cannot be created: {error.strerror}.",
            hint="name one that this user may write.",
            path=str(directory),
        ) from error
