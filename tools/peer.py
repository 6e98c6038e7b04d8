"""pyfluss, the client we are compared with, in an environment of its own: `.dev/peer`.

pyfluss is imported as `fluss`, too, so the two never share a process: a comparison starts
`peer_python()` as a child. The environment is made on first use, with the same Arrow, pandas and
numpy as ours. `tests/compat` and `benchmarks/peer.py` do the comparisons.

    python -m tools.peer         prints the interpreter, and makes it if needed
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from fluss_testkit.file_locks import FileLock

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".dev" / "peer"
PEER = "pyfluss==1.0.0"
SHARED = ("pyarrow", "pandas", "numpy")  # the same versions on both sides
PYTHONS = ((3, 12), (3, 11))  # pyfluss 1.0.0 has wheels up to 3.12; 3.11 is our own floor
INSTALL_TIMEOUT_S = 600


class PeerUnavailableError(Exception):
    """The peer cannot be installed on this machine; the message is one line with the reason."""


def peer_python() -> Path:
    """Return the interpreter with pyfluss; FLUSS_PEER_PYTHON names another one.

    Raises:
        PeerUnavailableError: It cannot be installed here.
    """
    named = os.environ.get("FLUSS_PEER_PYTHON")
    if named:
        return _checked(Path(named))
    HOME.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(HOME.parent / "peer.lock")
    lock.exclusive()  # one of several test processes makes it, and the others wait
    try:
        return _made()
    finally:
        lock.release()


def peer_environment() -> dict[str, str]:
    """Return the variables for a child that runs on `peer_python()`, without any of ours."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    }


def _made() -> Path:
    base = _base_python()
    requirements = "\n".join([base, PEER, *_shared_pins()])
    python, note = HOME / "bin" / "python", HOME / "made-from"
    if note.is_file() and note.read_text() == requirements and python.exists():
        return python
    print(f"peer: making .dev/peer with {PEER} (once)", file=sys.stderr)
    shutil.rmtree(HOME, ignore_errors=True)
    for command in _commands(base, python):
        _run(command)
    _checked(python)
    note.write_text(requirements)
    return python


def _commands(base: str, python: Path) -> list[list[str]]:
    requirements = ["--only-binary", ":all:", PEER, *_shared_pins()]
    uv = shutil.which("uv") or shutil.which("uv", path=str(ROOT / ".dev" / "uv" / "bin"))
    if uv:
        return [
            [uv, "venv", "--quiet", "--python", base, str(HOME)],
            [uv, "pip", "install", "--quiet", "--python", str(python), *requirements],
        ]
    return [
        [base, "-m", "venv", str(HOME)],
        [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *requirements,
        ],
    ]


def _base_python() -> str:
    for version in PYTHONS:
        if sys.version_info[:2] == version:
            return os.path.realpath(sys.executable)
    for major, minor in PYTHONS:
        if found := shutil.which(f"python{major}.{minor}"):
            return found
    versions = " or ".join(f"{major}.{minor}" for major, minor in PYTHONS)
    raise PeerUnavailableError(
        f"{PEER} has wheels up to Python 3.12 only, this is {sys.version.split()[0]} and no "
        f"Python {versions} is on the PATH"
    )


def _shared_pins() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    name = "|".join(SHARED)
    return [line for line in lines if re.match(rf"({name})==", line)]


def _checked(python: Path) -> Path:
    asked = "import importlib.metadata as m; print(m.version('pyfluss'))"
    if not python.exists():
        raise PeerUnavailableError(f"{python} does not exist")
    found = _run([str(python), "-c", asked]).strip()
    if f"pyfluss=={found}" != PEER:
        raise PeerUnavailableError(f"{python} has pyfluss {found} instead of {PEER}")
    return python


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_TIMEOUT_S,
            env=peer_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerUnavailableError(f"{PEER} cannot be had: {error}") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise PeerUnavailableError(f"{PEER} cannot be had: {said[-1] if said else 'no reason'}")
    return done.stdout


def main() -> int:
    """Print the interpreter, or why there is none."""
    try:
        print(peer_python())
    except PeerUnavailableError as error:
        print(f"peer: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
