"""Fixtures for the command `fluss`: it runs as in a shell, on a small table."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from fluss.cli import main
from fluss.connection import config_sources
from tests.support.servers.fix_cluster import PATIENCE_MS

ROWS = [
    {"id": 1, "name": "Ann", "price": "1.10"},
    {"id": 2, "name": "Böb, Jr.", "price": "2.20"},
    {"id": 3, "name": None, "price": None},
]


@dataclass(frozen=True)
class Done:
    """The exit code and the output of a command."""

    returncode: int
    stdout: bytes
    stderr: bytes

    @property
    def said(self) -> str:
        """The text on the standard error."""
        return self.stderr.decode()


Run = Callable[..., Done]


@pytest.fixture
def run(cluster, database, monkeypatch, capfdbinary, tmp_path) -> Run:
    """Run `fluss` with files, pipes and exit codes as in a shell."""
    monkeypatch.delenv("FLUSS_URL", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("FLUSS_CONFIG", str(_no_profiles(tmp_path)))
    monkeypatch.setenv("FLUSS_BOOTSTRAP_SERVERS", cluster.bootstrap)
    monkeypatch.setenv("FLUSS_OPERATION_TIMEOUT_MS", str(PATIENCE_MS))
    # A process of its own has no active session; one of this process would come before the
    # environment, and the command would run on that session's cluster.
    monkeypatch.setattr(config_sources, "_opened", [])
    monkeypatch.setattr(config_sources, "_entered", ContextVar("no_sessions", default=()))

    def one(*words: str, given: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "argv", ["fluss", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        capfdbinary.readouterr()
        code = main()
        written = capfdbinary.readouterr()
        return Done(code, written.out, written.err)

    return one


def _no_profiles(directory: Path) -> Path:
    path = directory / "config.toml"
    path.write_text("")
    path.chmod(0o600)
    return path


@pytest.fixture
def program(cluster, tmp_path) -> tuple[list[str], dict[str, str]]:
    """Return the arguments and the environment of a process that runs `fluss`."""
    words = [sys.executable, "-c", "import sys; from fluss.cli import main; sys.exit(main())"]
    return words, {
        **os.environ,
        "FLUSS_BOOTSTRAP_SERVERS": cluster.bootstrap,
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }


@pytest.fixture
def people(session, database) -> str:
    """A primary-key table of three rows."""
    frame = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "name": [each["name"] for each in ROWS],
            "price": pa.array(
                [None if each["price"] is None else Decimal(each["price"]) for each in ROWS],
                pa.decimal128(9, 2),
            ),
        }
    )
    session.create_table("people", frame, primary_key=["id"], buckets=2).upsert(frame)
    return f"{database}.people"
