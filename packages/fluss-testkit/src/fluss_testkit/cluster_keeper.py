"""A cluster that belongs to no single command: kept until it is told to end, or shared.

A process of its own, the keeper, holds the cluster as `JavaCluster` would. Its home is a directory:

    alive.lock    held by the keeper: whether it runs is what this lock says, not a pid
    start.lock    held by who is about to start one
    users.lock    held, shared, by everybody who uses a shared cluster
    state.json    what the keeper tells the world: its phase, its pid, the addresses
    keeper.log    what goes wrong in the keeper itself

`up`, `down` and `status` are for people. `share_cluster` is for processes that want one cluster
between them, such as the workers of a test run: the first one starts it, the kernel counts them by
their locks, and the keeper ends when the last one is gone, even if all of them were killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fluss.errors import FlussError, LocalServerError, MissingRuntimeError
from fluss_testkit.cluster_profiles import Profile, find_profile
from fluss_testkit.file_locks import FileLock
from fluss_testkit.java_cluster import START_TIMEOUT_S, STOP_TIMEOUT_S, JavaCluster
from fluss_testkit.server_logs import tail_logs
from fluss_testkit.workspace import write_file

POLL_S = 0.1
KEEPER_POLL_S = 0.25
# Who only looks whether a keeper lives holds its lock for an instant.
GLANCE_S = 2.0
STARTING, READY, FAILED = "starting", "ready", "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What kind of cluster a keeper shall start."""

    profiles: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    data_dir: str | None = None
    users: Mapping[str, str] | None = None
    port: int | None = None
    shared: bool = False

    def cluster(self) -> JavaCluster:
        """The cluster, not yet started."""
        return JavaCluster(
            *(find_profile(name) for name in self.profiles),
            Profile(options=self.options),
            data_dir=None if self.data_dir is None else Path(self.data_dir),
            users=self.users,
            port=self.port,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCluster:
    """What a keeper says about its cluster."""

    pid: int
    bootstrap_servers: str
    sasl_bootstrap_servers: str
    users: Mapping[str, str]
    pids: Mapping[str, int]
    directory: str
    log_paths: tuple[str, ...]
    fresh: bool


def up(home: Path, order: Order) -> tuple[KeptCluster, bool]:
    """The kept cluster of that home, and whether it had to be started.

    Raises:
        MissingRuntimeError: Java, or the server's jar, is missing.
        LocalServerError: It did not start; a note holds what the logs say.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    gate = FileLock(home / "start.lock")
    gate.exclusive()
    try:
        there = status(home)
        if there is not None:
            return there, False
        _spawn(home, order)
        return _await_ready(home), True
    finally:
        gate.release()


def status(home: Path) -> KeptCluster | None:
    """The kept cluster of that home, if it runs and is ready."""
    state = _read_state(home) if _is_alive(home) else {}
    return _kept(state) if state.get("phase") == READY else None


def down(home: Path) -> bool:
    """End the kept cluster of that home; False when there was none.

    Raises:
        LocalServerError: It would not end, which not even SIGKILL explains.
    """
    if not _is_alive(home):
        return False
    for number, patience_s in ((signal.SIGTERM, STOP_TIMEOUT_S), (signal.SIGKILL, 5.0)):
        pid = _read_state(home).get("pid")
        if isinstance(pid, int) and _is_alive(home):
            os.kill(pid, number)
        give_up = time.monotonic() + patience_s
        while time.monotonic() < give_up:
            if not _is_alive(home):
                return True
            time.sleep(POLL_S)
    raise LocalServerError(
        f"the keeper of {home} does not end.", hint="look into its log.", path=str(home)
    )


@contextmanager
def share_cluster(home: Path, order: Order) -> Iterator[KeptCluster]:
    """Use the cluster of that home together with other processes.

    Raises:
        MissingRuntimeError: Java, or the server's jar, is missing.
        LocalServerError: It did not start; a note holds what the logs say.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    users = FileLock(home / "users.lock")
    users.shared()  # waits for a keeper that is just about to leave
    try:
        yield up(home, order)[0]
    finally:
        users.release()


# --- seen from outside --------------------------------------------------------------------------


def _spawn(home: Path, order: Order) -> None:
    """Start a keeper; returns when it has detached itself."""
    (home / "state.json").unlink(missing_ok=True)
    # Our own interpreter and our own module; the order travels by pipe, for it holds passwords.
    subprocess.run(  # noqa: S603
        [sys.executable, "-m", "fluss_testkit", "keep", str(home)],
        input=json.dumps(asdict(order)),
        text=True,
        check=True,
    )


def _await_ready(home: Path) -> KeptCluster:
    give_up = time.monotonic() + START_TIMEOUT_S + GLANCE_S
    alive = True
    while alive and time.monotonic() < give_up:
        alive = _is_alive(home)  # asked first: what a dead keeper wrote is all there
        state = _read_state(home)
        if state.get("phase") == READY:
            return _kept(state)
        if state.get("phase") == FAILED:
            raise _failure(state)
        time.sleep(POLL_S)
    failure = LocalServerError(
        "the cluster's keeper ended without a word." if not alive else "the keeper is stuck.",
        hint=f"see {home / 'keeper.log'}.",
        path=str(home),
    )
    failure.add_note(tail_logs([home / "keeper.log"]))
    raise failure


def _failure(state: Mapping[str, Any]) -> LocalServerError:
    kind = MissingRuntimeError if state.get("missing") else LocalServerError
    failure = kind(str(state.get("message")), hint=state.get("hint"))
    for note in state.get("notes", ()):
        failure.add_note(note)
    return failure


def _is_alive(home: Path) -> bool:
    lock = FileLock(home / "alive.lock")
    try:
        return not lock.try_exclusive()
    except FileNotFoundError:
        return False  # not even a home
    finally:
        lock.release()


def _read_state(home: Path) -> dict[str, Any]:
    try:
        state = json.loads((home / "state.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _kept(state: Mapping[str, Any]) -> KeptCluster:
    facts = {name: state[name] for name in KeptCluster.__dataclass_fields__}
    return KeptCluster(**{**facts, "log_paths": tuple(facts["log_paths"])})


# --- the keeper itself --------------------------------------------------------------------------


def keep(home: Path) -> None:
    """Become the keeper of that home; the order comes on standard input.

    Returns in the calling process as soon as the keeper, a process of its own, has the lock.
    """
    order = Order(**json.load(sys.stdin))
    alive = FileLock(home / "alive.lock")
    give_up = time.monotonic() + GLANCE_S
    while not alive.try_exclusive():
        if time.monotonic() > give_up:
            raise LocalServerError(f"a keeper of {home} lives already.", hint="stop it first.")
        time.sleep(POLL_S)
    if os.fork():
        return
    try:
        _detach(home)
        _Keeper(home, order).run()
    finally:
        os._exit(0)  # the code above us belongs to the process that has returned


def _detach(home: Path) -> None:
    """Leave the terminal: no signals from it, nothing written to it."""
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDONLY)
    log = os.open(home / "keeper.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for source, target in ((quiet, 0), (log, 1), (log, 2)):
        os.dup2(source, target)


class _Keeper:
    """Starts a cluster, says so, and waits for a reason to stop it."""

    def __init__(self, home: Path, order: Order) -> None:
        self._home = home
        self._order = order
        self._told_to_stop = False

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._tell_to_stop())
        self._say({"phase": STARTING})
        try:
            with self._order.cluster() as cluster:
                self._say({"phase": READY, **_facts(cluster, self._order)})
                self._wait(cluster)
        except FlussError as error:
            self._say(
                {
                    "phase": FAILED,
                    "missing": isinstance(error, MissingRuntimeError),
                    "message": error.message,
                    "hint": error.hint,
                    "notes": getattr(error, "__notes__", []),
                }
            )

    def _tell_to_stop(self) -> None:
        self._told_to_stop = True

    def _wait(self, cluster: JavaCluster) -> None:
        users = FileLock(self._home / "users.lock")
        nodes = len(cluster.pids)
        while not self._told_to_stop:
            if len(cluster.pids) < nodes:
                sys.stderr.write(f"a server ended by itself:\n{cluster.log_tail()}\n")
                return
            if self._order.shared and users.try_exclusive():
                return  # nobody is left; whoever comes now waits until we are gone
            time.sleep(KEEPER_POLL_S)

    def _say(self, state: Mapping[str, Any]) -> None:
        write_file(self._home / "state.json", json.dumps({"pid": os.getpid(), **state}, indent=2))


def _facts(cluster: JavaCluster, order: Order) -> dict[str, Any]:
    return {
        "bootstrap_servers": cluster.bootstrap_servers,
        "sasl_bootstrap_servers": cluster.sasl_bootstrap_servers,
        "users": dict(cluster.users),
        "pids": dict(cluster.pids),
        "directory": str(cluster.directory),
        "log_paths": [str(path) for path in cluster.log_paths],
        "fresh": order.data_dir is None,
    }
