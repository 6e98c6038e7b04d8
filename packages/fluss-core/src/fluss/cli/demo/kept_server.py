"""The server that `fluss demo --keep` leaves running: a process of its own, until it is killed.

The process serves a directory by `embedded:`, so whatever package starts embedded servers also
starts this one. A temporary directory is removed when the process ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import fluss
from fluss.cli.demo.closing import scratch_folder
from fluss.cli.demo.shop_past import with_lake
from fluss.errors import FlussError, LocalServerError

_PROGRAM: Final = "import sys; from fluss.cli.demo.kept_server import serve; serve(sys.argv[1:])"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptServer:
    """A server that outlives this process.

    Args:
        servers: Its address.
        pid: The process to end.
    """

    servers: str
    pid: int


@contextmanager
def start_kept_server(folder: Path | None) -> Iterator[KeptServer]:
    """Start a server that stays; if the block fails, the server ends.

    Args:
        folder: Where its data are; None for a temporary directory.

    Raises:
        LocalServerError: It could not start.
    """
    words = [] if folder is None else [str(folder.expanduser().resolve())]
    process = subprocess.Popen(  # noqa: S603 - our own program, in this Python
        [sys.executable, "-c", _PROGRAM, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C and the end of the terminal do not reach it
    )
    try:
        yield KeptServer(servers=_read_address(process), pid=process.pid)
    except BaseException:
        process.terminate()
        process.wait()
        raise


def _read_address(process: subprocess.Popen[bytes]) -> str:
    line = b"" if process.stdout is None else process.stdout.readline()
    answer = json.loads(line) if line else {}
    if "servers" not in answer:
        raise LocalServerError(
            answer.get("error", "The server of the demo ended without an answer.")
        )
    return str(answer["servers"])


def serve(words: list[str]) -> None:
    """Serve the named directory, or a temporary one, until SIGTERM; the process's main function."""
    is_ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: is_ended.set())
    folder = contextlib.nullcontext(Path(words[0])) if words else scratch_folder()
    try:
        with folder as path, fluss.connect(with_lake(f"embedded:{path}")) as session:
            _say({"servers": session.config.bootstrap_servers})
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            is_ended.wait()
    except FlussError as error:
        _say({"error": str(error)})


def _say(facts: dict[str, str]) -> None:
    print(json.dumps(facts), flush=True)  # noqa: T201 - the demo reads this line
