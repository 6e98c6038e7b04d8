"""The packages as they are published, and empty environments to install them into.

They are built once for a test run, whichever worker comes first; the others wait for its lock.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from fluss_testkit.file_locks import FileLock
from tools.build_packages import CONSTRAINTS, PACKAGES, build, find_uv
from tools.memory_folder import DISK_VARIABLE

INSTALL_TIMEOUT_S = 600


@pytest.fixture(scope="session")
def uv():
    return find_uv()


@pytest.fixture(scope="session")
def dist(tmp_path_factory, uv):
    """A folder with the wheels and sdists of all packages, checked by twine."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    out = shared / "dist"
    lock = FileLock(shared / "dist.lock")
    lock.exclusive()
    try:
        if not (out / "complete").exists():
            build(uv, out)
            (out / "complete").touch()
    finally:
        lock.release()
    return out


@dataclass(frozen=True)
class Environment:
    """A virtual environment outside of the checkout."""

    folder: Path
    uv: str
    dist: Path

    @property
    def bin(self):
        return self.folder / "bin"

    def install(self, *words, **variables):
        """Install what `pip install --find-links dist` would, with these in the environment."""
        # uv's cache may have wheels of an earlier tree that stood in a folder of the same name.
        fresh = [word for name in PACKAGES for word in ("--refresh-package", name)]
        done = subprocess.run(
            [self.uv, "pip", "install", "--quiet", "--python", str(self.bin / "python"),
             "--find-links", str(self.dist), *fresh, *words],
            cwd=self.folder, env=os.environ | variables,
            capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def packages(self):
        """The names and versions of what is installed."""
        listed = subprocess.run(
            [self.uv, "pip", "freeze", "--quiet", "--python", str(self.bin / "python")],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        return dict(
            line.split(" @ ")[0].split("==") for line in listed.splitlines() if "==" in line
        )

    def run(self, *words):
        """Run a program of the environment, with its warnings as errors; return what it did."""
        return subprocess.run(
            words,
            cwd=self.folder,
            env={
                **{name: x for name, x in os.environ.items() if name not in _OF_THIS_RUN},
                "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
                "VIRTUAL_ENV": str(self.folder),
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def python(self, program, *, warnings="error"):
        """Run a program, and return what it printed."""
        done = self.run(str(self.bin / "python"), "-W", warnings, "-c", program)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


_OF_THIS_RUN = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONWARNINGS"}


@pytest.fixture
def disk_path(tmp_path):
    """A folder on the disk: uv links what it installs to its cache, and memory is too small."""
    disk = os.environ.get(DISK_VARIABLE)
    if disk is None:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(
        prefix="fluss-disk-", dir=disk, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


@pytest.fixture
def new_environment(disk_path, uv, dist):
    """A function that makes an empty environment, of this Python or of another."""
    made = []

    def make(python=sys.executable):
        folder = disk_path / f"env{len(made)}"
        base = getattr(sys, "_base_executable", python) if python == sys.executable else python
        subprocess.run([uv, "venv", "--quiet", "--python", str(base), str(folder)], check=True)
        made.append(folder)
        return Environment(folder, uv, dist)

    yield make
    for folder in made:
        shutil.rmtree(folder, ignore_errors=True)  # hundreds of megabytes, if they were copied


@pytest.fixture(scope="session")
def pinned():
    """The options for the versions that all other tests use; uv has them in its cache."""
    return ("--constraint", str(CONSTRAINTS))
