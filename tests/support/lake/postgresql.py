"""A server of PostgreSQL for tests, from the programs that this machine has (Debian's, for one)."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TIMEOUT_S = 60
USER, PASSWORD, DATABASE = "fluss", "p@ss word/1", "lake"


def _program(name: str) -> str:
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = str(installed[-1]) if installed else shutil.which(name)
    if found is None:
        pytest.skip(f"PostgreSQL is not installed: there is no {name} (apt install postgresql)")
    return found


@contextmanager
def postgresql() -> Iterator[str]:
    """Run a server that requires a password; yield its address, `host:port`."""
    # Not a directory of pytest: those are closed to the user that PostgreSQL runs as here.
    with tempfile.TemporaryDirectory(prefix="fluss-postgresql-") as made:
        yield from _server(Path(made))


def _server(home: Path) -> Iterator[str]:
    initdb = _program("initdb")
    # PostgreSQL refuses to run as root.
    other = {"user": "daemon", "group": "daemon"} if os.geteuid() == 0 else {}
    secret = home / "password"
    secret.write_text(PASSWORD)
    if other:
        for path in (home, secret):
            shutil.chown(path, "daemon", "daemon")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = str(home / "data")

    subprocess.run(
        [initdb, "-D", data, "-U", USER, f"--pwfile={secret}", "-A", "scram-sha-256", "-N"],
        check=True, timeout=TIMEOUT_S, capture_output=True, cwd=home, **other,
    )  # fmt: skip
    server = subprocess.Popen(
        [_program("postgres"), "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", str(home),
         "-c", "fsync=off"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=home, **other,
    )  # fmt: skip
    try:
        _create_database(port)
        yield f"127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait(TIMEOUT_S)


def _create_database(port: int) -> None:
    command = [_program("createdb"), "-h", "127.0.0.1", "-p", str(port), "-U", USER, DATABASE]
    environment = {**os.environ, "PGPASSWORD": PASSWORD}
    deadline = time.monotonic() + TIMEOUT_S
    while subprocess.run(command, check=False, env=environment, capture_output=True).returncode:
        assert time.monotonic() < deadline, "PostgreSQL is not ready"
        time.sleep(0.1)
