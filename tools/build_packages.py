"""`./dev build`: the wheels and sdists of all packages, in dist/, checked as a package index would.

Each sdist is made from the sources, and each wheel from its sdist, so that both are complete. Only
Python and uv are needed: `./dev build` calls this before there is a .venv. The wheel of
fluss-native is for this Python and this machine; without a C compiler only its sdist is made.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
DIST: Final = ROOT / "dist"
CONSTRAINTS: Final = ROOT / "constraints.txt"
PACKAGES: Final = (
    "fluss-core",
    "fluss-polars",
    "fluss-duckdb",
    "fluss-spark",
    "fluss-server",
    "fluss-testkit",
    "fluss-lake",
    "fluss-native",
)
COMPILED: Final = "fluss-native"


def build(uv: str, out: Path = DIST) -> None:
    """Build all packages into a folder, and check their metadata and their pages.

    Args:
        uv: The path of uv.
        out: The folder; files of earlier builds in it are removed.

    Raises:
        CalledProcessError: A build or the check failed; its output is on the standard error.
    """
    out.mkdir(parents=True, exist_ok=True)
    for earlier in [*out.glob("fluss_*.whl"), *out.glob("fluss_*.tar.gz")]:
        earlier.unlink()
    for name in PACKAGES:
        # --no-sources: the packages require each other by name, as they do from an index.
        options = ["--quiet", "--no-sources", "--no-create-gitignore", "--out-dir", str(out)]
        options += ["--python", sys.executable]
        if name == COMPILED and not has_compiler():
            print(f"build: no C compiler found, so {name} gets no wheel.", file=sys.stderr)
            options.append("--sdist")
        subprocess.run(
            [uv, "build", *options, "--package", name],
            cwd=ROOT,
            env={**os.environ, "FLUSS_NATIVE_REQUIRED": "1"},
            check=True,
        )
    check(uv, out)


def has_compiler() -> bool:
    """Whether this machine has a C compiler (that of $CC or of this Python), and the headers."""
    words = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    header = Path(sysconfig.get_path("include")) / "Python.h"
    return bool(words) and shutil.which(words[0]) is not None and header.exists()


def check(uv: str, out: Path) -> None:
    """Check metadata and pages with twine."""
    twine = [uv, "tool", "run", "--quiet", "--constraints", str(CONSTRAINTS), "twine"]
    files = [str(each) for each in sorted([*out.glob("*.whl"), *out.glob("*.tar.gz")])]
    done = subprocess.run(
        [*twine, "check", "--strict", *files],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        done.check_returncode()


def find_uv() -> str:
    """Return the path of uv: the machine's, or a private one, which is installed if need be."""
    private = ROOT / ".dev" / "uv" / "bin" / "uv"
    found = shutil.which("uv") or (str(private) if private.exists() else None)
    if found is None:
        folder = private.parent
        subprocess.run([sys.executable, "-m", "venv", str(folder.parent)], check=True)
        subprocess.run([str(folder / "pip"), "install", "--quiet", "uv"], check=True)
        return str(private)
    return found


def main(arguments: Sequence[str]) -> int:
    """Build with the uv of the first argument, or with the one that is found."""
    try:
        build(arguments[0] if arguments else find_uv())
    except subprocess.CalledProcessError as error:
        print(f"build: {' '.join(error.cmd[:2])} … failed; see above.", file=sys.stderr)
        return 1
    for path in sorted(DIST.glob("fluss_*")):
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size // 1024} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
