"""What `./dev test` prints first: what it runs, what it skips and why, and about how long it takes.

The time is that of the last whole run on this machine, kept in .dev; before the first one it is
an estimate. The reasons for skipped tests are asked of the code that the tests ask themselves.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from fluss.errors import FlussError
from fluss_testkit.java_runtime import JavaRuntime, find_java
from tools.docs.browser import find_chromium

ROOT: Final = Path(__file__).resolve().parent.parent
DURATIONS: Final = ROOT / ".dev" / "test-durations.json"
JAVA_FLOOR: Final = 17
# Measured with five workers on two processors.
PROCESSOR_MINUTES: Final = {"full": 35, "quick": 1}
FOLDERS: Final = {
    "tests/unit": "the rooms, without servers",
    "tests/house": "rules of the repository",
    "tests/cluster": "servers, real and embedded",
    "tests/engines": "servers, and Polars, DuckDB, pandas, Spark",
    "tests/java": "bytes recorded from Java, and the live oracle",
    "tests/compat": "programs written for pyfluss and for the Rust client",
    "tests/examples": "examples, notebooks, the documentation and its site",
    "tests/packaging": "wheels and sdists, installed into empty environments",
    "tests/proofs": "long random histories; `./dev prove` runs them in full",
}
QUICK_FOLDERS: Final = ("tests/unit", "tests/house")
# pytest's exit codes of a run to its end: all passed, some failed.
_COMPLETE: Final = (0, 1)
# Variables that limit a run.
_LIMITS: Final = ("FLUSS_TEST_CLUSTER", "FLUSS_TEST_BOOTSTRAP", "FLUSS_TEST_PROFILE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Tests that a machine cannot run.

    Args:
        tests: Which ones.
        reason: What is missing, and how to get it.
    """

    tests: str
    reason: str


def print_full_plan(arguments: Sequence[str]) -> None:
    """Print the plan of `./dev test` with these arguments for pytest."""
    print(f"./dev test: {_chosen(arguments)}, on {_processors()} processors")
    if not arguments:
        _print_folders(FOLDERS)
    for name in _LIMITS:
        if name in os.environ:
            print(f"  {name}={os.environ[name]}")
    skipped = list(find_skipped())
    print("skipped:" if skipped else "skipped: nothing that this machine lacks")
    for each in skipped:
        print(f"  {each.tests}: {each.reason}")
    print(f"time: {'the whole suite takes ' if arguments else ''}{_duration('full')}", flush=True)


def print_quick_plan() -> None:
    """Print the plan of `./dev test quick`."""
    print("./dev test quick: tests of single rooms and of the house, without servers")
    _print_folders({folder: FOLDERS[folder] for folder in QUICK_FOLDERS})
    print("left out (./dev test runs all of it):")
    print(f"  tests marked `slow` in {', '.join(QUICK_FOLDERS)}")
    _print_folders({folder: FOLDERS[folder] for folder in FOLDERS if folder not in QUICK_FOLDERS})
    print(f"time: {_duration('quick')}", flush=True)


def remember(name: str, run: Callable[[], int]) -> int:
    """Run tests, and keep the duration for the next plan unless the run was broken off."""
    began = monotonic()
    code = run()
    if code in _COMPLETE:
        known = _known_durations() | {name: monotonic() - began}
        DURATIONS.parent.mkdir(exist_ok=True)
        DURATIONS.write_text(json.dumps(known))
    return code


def find_skipped() -> Iterator[Skipped]:
    """Find what this machine lacks; without a download, which the tests make themselves."""
    missing = _missing_java()
    if missing is not None:
        yield Skipped(tests="a real Fluss, Java's own classes, Spark", reason=missing)
    if find_chromium() is None:
        yield Skipped(
            tests="the site in a browser", reason="no Chromium; ./dev docs screenshots installs it"
        )
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        yield Skipped(tests="a directory without permission", reason="root may write everywhere")


def _missing_java() -> str | None:
    try:
        java: JavaRuntime = find_java()
    except FlussError as error:
        return _one_line(error)
    if java.version < JAVA_FLOOR:
        return f"{java.executable} is Java {java.version}; install a JDK, {JAVA_FLOOR} or newer"
    return None if java.compiler else f"{java.home} is a JRE; install a JDK"


def _chosen(arguments: Sequence[str]) -> str:
    return f"the tests of `pytest {' '.join(arguments)}`" if arguments else "the whole suite"


def _print_folders(folders: dict[str, str]) -> None:
    for folder, purpose in folders.items():
        files = len(list((ROOT / folder).rglob("test_*.py")))
        print(f"  {folder:<16} {files:>4} files   {purpose}")


def _duration(name: str) -> str:
    seconds = _known_durations().get(name)
    if seconds is not None:
        return f"about {_minutes(seconds / 60)}, as the last time"
    minutes = PROCESSOR_MINUTES[name] / min(_processors(), 3)
    return f"about {_minutes(minutes)}; more while something else runs"


def _minutes(minutes: float) -> str:
    whole = max(1, round(minutes))
    return "a minute" if whole == 1 else f"{whole} minutes"


def _known_durations() -> dict[str, float]:
    try:
        return dict(json.loads(DURATIONS.read_text()))
    except (OSError, ValueError):
        return {}


def _processors() -> int:
    return os.cpu_count() or 1


def _one_line(error: FlussError) -> str:
    return " ".join(str(error).split())
