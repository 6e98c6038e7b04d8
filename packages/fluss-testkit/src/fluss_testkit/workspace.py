"""The directory of one cluster: a fresh one that vanishes with it, or a kept one.

    LOCK             held by everybody who works here, the servers included
    cluster.json     what a later start needs: the ports, and how many servers there were
    config/          what the servers read; tmp/ what they unpack; logs/ what they say
    zookeeper/ tablet-0/ ... remote/      their data

A fresh directory whose lock nobody holds is litter, left by a process that was killed; the next
cluster removes it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from fluss.errors import ConfigError, LocalServerError
from fluss_testkit.cache_paths import scratch_dir
from fluss_testkit.file_locks import FileLock

MEMORY_FILE = "cluster.json"
FRESH_PREFIX = "run-"
PATIENCE_S = 15.0  # what servers whose parent was killed may take to end, and a little more


class Workspace:
    """A locked directory, and the names of things in it."""

    def __init__(self, root: Path, lock: FileLock, *, kept: bool) -> None:
        self.root = root
        self.kept = kept
        self.lock = lock
        for directory in (self.config, self.logs, self.scratch):
            directory.mkdir(exist_ok=True)

    @property
    def config(self) -> Path:
        """Where the servers' configuration is written."""
        return self.root / "config"

    @property
    def logs(self) -> Path:
        """Where the servers' logs are."""
        return self.root / "logs"

    @property
    def scratch(self) -> Path:
        """Where the servers unpack their native libraries."""
        return self.root / "tmp"

    def recall(self) -> dict[str, Any]:
        """What the last cluster in this directory wrote down; empty when there was none."""
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

    def remember(self, memory: dict[str, Any]) -> None:
        """Write down what the next cluster in this directory needs."""
        write_file(self.root / MEMORY_FILE, json.dumps(memory, indent=2) + "\n")

    def leave(self) -> None:
        """Remove a fresh directory, and let go of a kept one. The servers must be dead."""
        if not self.kept:
            shutil.rmtree(self.root, ignore_errors=True)
        self.lock.release()


def open_workspace(directory: Path | None) -> Workspace:
    """The directory of a new cluster; None asks for a fresh one that vanishes afterwards.

    Raises:
        LocalServerError: A living cluster works there.
        ConfigError: It holds something else.
    """
    return _fresh() if directory is None else _kept(directory.expanduser().resolve())


def write_file(path: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    draft.write_text(text, "utf-8")
    draft.replace(path)


def _fresh() -> Workspace:
    base = own_scratch_dir()
    # Between the making of a directory and its lock it would look like litter.
    gate = FileLock(base / "gate.lock")
    gate.exclusive()
    try:
        _sweep(base)
        root = Path(tempfile.mkdtemp(dir=base, prefix=FRESH_PREFIX))
        lock = FileLock(root / "LOCK")
        lock.exclusive()
    finally:
        gate.release()
    return Workspace(root, lock, kept=False)


def own_scratch_dir() -> Path:
    """The place for fresh clusters, made if need be, and refused if it is somebody else's.

    Raises:
        LocalServerError: It cannot be made, or another user was there first.
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


def _sweep(base: Path) -> None:
    for directory in base.glob(FRESH_PREFIX + "*"):
        lock = FileLock(directory / "LOCK")
        try:
            if lock.try_exclusive():
                shutil.rmtree(directory, ignore_errors=True)
        except OSError:
            continue  # somebody else was faster
        finally:
            lock.release()


def _kept(root: Path) -> Workspace:
    _make(root)
    strangers = [each.name for each in root.iterdir()]
    if strangers and not {"LOCK", MEMORY_FILE} & set(strangers):
        raise ConfigError(
            f"{root} is not the data directory of a cluster; it holds {strangers[0]!r}.",
            hint="name an empty directory, or one that a cluster has used before.",
            path=str(root),
        )
    lock = FileLock(root / "LOCK")
    give_up = time.monotonic() + PATIENCE_S
    while not lock.try_exclusive():
        if time.monotonic() > give_up:
            raise LocalServerError(
                f"another cluster uses {root}.",
                hint="stop that one, or name another directory.",
                path=str(root),
            )
        time.sleep(0.1)
    return Workspace(root, lock, kept=True)


def _make(directory: Path) -> None:
    try:
        # Logs and configuration of a cluster hold the passwords of its users.
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LocalServerError(
            f"the directory {directory} cannot be made: {error.strerror}.",
            hint="name one that can be written.",
            path=str(directory),
        ) from error
