"""Builds, serves and pictures the site: `python -m tools.docs.site [build|serve|screenshots]`.

The site's tools have an environment of their own, `.dev/docs`, made on first use from the
dependency group `docs`. Neither the packages nor their tests need it: the reference is read from
the source, and the pages that depend on code are written by `./dev generate`. This file uses the
standard library only.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = ROOT / "tools" / "docs" / "mkdocs.yml"
ENVIRONMENT = ROOT / ".dev" / "docs"
SITE = ROOT / ".dev" / "site"
USAGE = "usage: ./dev docs [build | serve [--dev-addr HOST:PORT] | screenshots]"

# What a browser loads without a click: another host in one of these would be asked for it.
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preload|preconnect|icon|dns-prefetch))"""
    r"""[^>]*?\bhref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|url\(["']?((?:https?:)?//[^"')]+)""",
    re.IGNORECASE,
)


class ToolsMissingError(Exception):
    """The environment with the tools of the site cannot be made."""


def main(arguments: Sequence[str]) -> int:
    """Run the step that the first argument names."""
    step, *rest = arguments or ["build"]
    if step == "screenshots":
        from tools.docs.screenshots import take_screenshots

        return take_screenshots(rest)
    if step not in {"build", "serve"}:
        print(USAGE, file=sys.stderr)
        return 0 if step in {"-h", "--help"} else 2
    try:
        return _serve(rest) if step == "serve" else build(SITE)
    except ToolsMissingError as error:
        print(f"docs: {error}", file=sys.stderr)
        return 2


def build(site: Path, configuration: Path = CONFIGURATION) -> int:
    """Build the site into a folder; a warning is an error, and so is a file of another host.

    Raises:
        ToolsMissingError: The tools are missing and cannot be installed.
    """
    words = ("build", "--strict", "--site-dir", str(site), "--config-file", str(configuration))
    done = _mkdocs(*words, capture_output=True, text=True)
    if done.returncode:
        # `--quiet` would hide the warnings, and `--strict` counts only those that are shown.
        print(*_warnings(done.stderr), sep="\n", file=sys.stderr)
        return done.returncode
    foreign = list(foreign_addresses(site))
    for page, address in foreign:
        print(f"docs: {page} would load {address}", file=sys.stderr)
    pages = sum(1 for _ in site.rglob("*.html"))
    print(f"docs: {pages} pages in {os.path.relpath(site / 'index.html', ROOT)}", file=sys.stderr)
    return 1 if foreign else 0


def foreign_addresses(site: Path) -> Iterator[tuple[str, str]]:
    """Yield what a browser would load from another host, with the file that names it."""
    for path in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        for found in _LOADED.findall(path.read_text(errors="replace")):
            yield path.relative_to(site).as_posix(), next(filter(None, found))


def _serve(arguments: Sequence[str]) -> int:
    try:
        words = ("serve", "--config-file", str(CONFIGURATION))
        return _mkdocs(*words, *arguments).returncode
    except KeyboardInterrupt:
        return 130


def _warnings(log: str) -> list[str]:
    """Return the lines of MkDocs without those of its progress."""
    return [line for line in log.splitlines() if line and not line.startswith("INFO")]


def _mkdocs(*arguments: str, **how: Any) -> subprocess.CompletedProcess[Any]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    words = [_python(), "-m", "mkdocs", *arguments]
    return subprocess.run(words, cwd=ROOT, env=environment, check=False, **how)


def _python() -> str:
    """Return the Python of the site's environment; make the environment on first use."""
    ENVIRONMENT.parent.mkdir(exist_ok=True)
    with ENVIRONMENT.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests may build concurrently
        return _made_environment()


def _made_environment() -> str:
    python = ENVIRONMENT / "bin" / "python"
    made_from = ENVIRONMENT / "made-from"
    pins = ROOT / "constraints.txt"
    group = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["docs"]
    expected = hashlib.sha256(pins.read_bytes() + repr((group, sys.version)).encode()).hexdigest()
    if made_from.exists() and made_from.read_text() == expected:
        return str(python)
    print("docs: making .dev/docs with the tools of the site (once)", file=sys.stderr)
    for step in _steps(str(python), ["--constraint", str(pins), *group]):
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
            raise ToolsMissingError(
                f"{' '.join(group)} cannot be installed from a package index: {lines[-1]}"
            )
    made_from.write_text(expected)
    return str(python)


def _steps(python: str, requirements: list[str]) -> list[list[str]]:
    private = ROOT / ".dev" / "uv" / "bin" / "uv"
    uv = shutil.which("uv") or (str(private) if private.exists() else None)
    if uv is None:
        return [
            [sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)],
            [python, "-m", "pip", "install", "--quiet", *requirements],
        ]
    return [
        [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(ENVIRONMENT)],
        [uv, "pip", "install", "--quiet", "--python", python, *requirements],
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
