"""A cluster that outlives its command: kept until `down`, or shared by several processes.

A separate process, the keeper, runs the cluster with `JavaCluster`. Its home is a directory:

    alive.lock    held by the keeper; this lock, not a pid, tells whether it runs
    start.lock    held while a keeper is being started
    users.lock    held, shared, by each process that uses a shared cluster
    state.json    the keeper's phase, its pid, the addresses
    keeper.log    errors of the keeper itself

`up`, `down` and `status` are for people. `share_cluster` is for processes that share one cluster,
such as the workers of a test run: the first one starts it, the kernel counts them by their locks,
and the keeper ends after the last one, even if all of them are killed.
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
from fluss_testkit.log_tail import tail_logs
from fluss_testkit.workspace import write_file

POLL_S = 0.1
KEEPER_POLL_S = 0.25
# Probing whether a keeper runs holds its lock for an instant.
LOCK_PROBE_S = 2.0
STARTING, READY, FAILED = "starting", "ready", "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """The cluster that a keeper starts."""

    profiles: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    data_dir: str | None = None
    users: Mapping[str, str] | None = None
    port: int | None = None
    shared: bool = False

    def cluster(self) -> JavaCluster:
        """Create the cluster without starting it."""
        return JavaCluster(
            *(find_profile(name) for name in self.profiles),
            Profile(options=self.options),
            data_dir=None if self.data_dir is None else Path(self.data_dir),
            users=self.users,
            port=self.port,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCluster:
    """The state that a keeper publishes about its cluster."""

    pid: int
    bootstrap_servers: str
    sasl_bootstrap_servers: str
    users: Mapping[str, str]
    pids: Mapping[str, int]
    directory: str
    log_paths: tuple[str, ...]
    fresh: bool


def up(home: Path, spec: ClusterSpec) -> tuple[KeptCluster, bool]:
    """Return the kept cluster of a home, and whether this call started it.

    Raises:
        MissingRuntimeError: Java, or the server's jar, is missing.
        LocalServerError: The cluster did not start; a note has the ends of the logs.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    gate = FileLock(home / "start.lock")
    gate.exclusive()
    try:
        there = status(home)
        if there is not None:
            return there, False
        _spawn(home, spec)
        return _await_ready(home), True
    finally:
        gate.release()


def status(home: Path) -> KeptCluster | None:
    """Return the kept cluster of a home if it runs and is ready."""
    state = _read_state(home) if _is_alive(home) else {}
    return _kept(state) if state.get("phase") == READY else None


def down(home: Path) -> bool:
    """Stop the kept cluster of a home; return False where there was none.

    Raises:
        LocalServerError: The keeper did not end, not even by SIGKILL.
    """
    if not _is_alive(home):
        return False
    for number, patience_s in ((signal.SIGTERM, STOP_TIMEOUT_S), (signal.SIGKILL, 5.0)):
        pid = _read_state(home).get("pid")
        if isinstance(pid, int) and _is_alive(home):
            os.kill(pid, number)
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            if not _is_alive(home):
                return True
            time.sleep(POLL_S)
    raise LocalServerError(
        f"the keeper of {home} does not end.", hint="see its log.", path=str(home)
    )


@contextmanager
def share_cluster(home: Path, spec: ClusterSpec) -> Iterator[KeptCluster]:
    """Share the cluster of a home with other processes.

    Raises:
        MissingRuntimeError: Java, or the server's jar, is missing.
        LocalServerError: The cluster did not start; a note has the ends of the logs.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    users = FileLock(home / "users.lock")
    users.shared()  # waits for a keeper that is about to end
    try:
        yield up(home, spec)[0]
    finally:
        users.release()


# --- in the calling process ---------------------------------------------------------------------


def _spawn(home: Path, spec: ClusterSpec) -> None:
    """Start a keeper; return when it has detached itself."""
    (home / "state.json").unlink(missing_ok=True)
    # Our own interpreter and module; the specification goes through a pipe, because it has
    # passwords.
    subprocess.run(  # noqa: S603
        [sys.executable, "-m", "fluss_testkit", "keep", str(home)],
        input=json.dumps(asdict(spec)),
        text=True,
        check=True,
    )


def _await_ready(home: Path) -> KeptCluster:
    deadline = time.monotonic() + START_TIMEOUT_S + LOCK_PROBE_S
    alive = True
    while alive and time.monotonic() < deadline:
        alive = _is_alive(home)  # first: a dead keeper has written all of its state
        state = _read_state(home)
        if state.get("phase") == READY:
            return _kept(state)
        if state.get("phase") == FAILED:
            raise _failure(state)
        time.sleep(POLL_S)
    failure = LocalServerError(
        "the cluster's keeper ended without a message." if not alive else "the keeper is stuck.",
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
        return False  # the home does not exist
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


# --- in the keeper ------------------------------------------------------------------------------


def keep(home: Path) -> None:
    """Fork the keeper of a home; standard input has the cluster's specification.

    Returns in the calling process as soon as the keeper, a separate process, has the lock.
    """
    spec = ClusterSpec(**json.load(sys.stdin))
    alive = FileLock(home / "alive.lock")
    deadline = time.monotonic() + LOCK_PROBE_S
    while not alive.try_exclusive():
        if time.monotonic() > deadline:
            raise LocalServerError(f"a keeper of {home} runs already.", hint="stop it first.")
        time.sleep(POLL_S)
    if os.fork():
        return
    try:
        _detach(home)
        _Keeper(home, spec).run()
    finally:
        os._exit(0)  # the callers belong to the process that has returned


def _detach(home: Path) -> None:
    """Detach from the terminal: no signals from it, no output to it."""
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDONLY)
    log = os.open(home / "keeper.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for source, target in ((quiet, 0), (log, 1), (log, 2)):
        os.dup2(source, target)


class _Keeper:
    """Starts a cluster, publishes its state, and waits until it has to stop."""

    def __init__(self, home: Path, spec: ClusterSpec) -> None:
        self._home = home
        self._spec = spec
        self._stop_requested = False

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._request_stop())
        self._publish({"phase": STARTING})
        try:
            with self._spec.cluster() as cluster:
                self._publish({"phase": READY, **_facts(cluster, self._spec)})
                self._wait(cluster)
        except FlussError as error:
            self._publish(
                {
                    "phase": FAILED,
                    "missing": isinstance(error, MissingRuntimeError),
                    "message": error.message,
                    "hint": error.hint,
                    "notes": getattr(error, "__notes__", []),
                }
            )

    def _request_stop(self) -> None:
        self._stop_requested = True

    def _wait(self, cluster: JavaCluster) -> None:
        users = FileLock(self._home / "users.lock")
        nodes = len(cluster.pids)
        while not self._stop_requested:
            if len(cluster.pids) < nodes:
                sys.stderr.write(f"a server ended unexpectedly:\n{cluster.log_tail()}\n")
                return
            if self._spec.shared and users.try_exclusive():
                return  # no user is left; a new one waits until this keeper has ended
            time.sleep(KEEPER_POLL_S)

    def _publish(self, state: Mapping[str, Any]) -> None:
        write_file(self._home / "state.json", json.dumps({"pid": os.getpid(), **state}, indent=2))


def _facts(cluster: JavaCluster, spec: ClusterSpec) -> dict[str, Any]:
    return {
        "bootstrap_servers": cluster.bootstrap_servers,
        "sasl_bootstrap_servers": cluster.sasl_bootstrap_servers,
        "users": dict(cluster.users),
        "pids": dict(cluster.pids),
        "directory": str(cluster.directory),
        "log_paths": [str(path) for path in cluster.log_paths],
        "fresh": spec.data_dir is None,
    }
