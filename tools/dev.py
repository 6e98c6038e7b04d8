"""The recipes behind `./dev`: one function each, listed when `./dev` is called alone.

Every recipe is a short list of programs to run in order; the first that fails ends the recipe with
its exit code. `./dev` has made the .venv with everything a recipe needs; where a machine lacks
Java, the tests that need it are skipped with the remedy.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tools import test_plan
from tools.build_packages import PACKAGES, find_uv
from tools.memory_folder import temporary_files

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
BIN = Path(sys.executable).parent
SIGNAL_CODE = 128  # a shell reports this plus the number of the signal that ended a program
# Tests of servers mostly wait, so five workers keep two processors busy.
WORKERS = "5"


def demo(arguments: Sequence[str]) -> int:
    """Run `fluss demo`: a small shop on a server of its own (--keep leaves the server running)."""
    # The demo replaces this process, so that Ctrl-C reaches it alone.
    os.execv(BIN / "fluss", ["fluss", "demo", *arguments])  # noqa: S606 - our own command


def test(arguments: Sequence[str]) -> int:
    """Run the tests; `./dev test quick` in a minute, other arguments go to pytest (`-k oracle`)."""
    if arguments and arguments[0] == "quick":
        return _test_quick(arguments[1:])
    workers = () if any(word.startswith(("-n", "-p")) for word in arguments) else ("-n", WORKERS)
    words = [PYTHON, "-m", "pytest", *workers, *arguments]
    test_plan.print_full_plan(arguments)

    def run() -> int:
        with temporary_files() as files:
            environment = _keeping_bytecode() | files.variables
            return _run(words, environment=environment, descriptors=files.descriptors)

    if arguments:
        return run()

    def whole() -> int:
        _compile_once()
        return run()

    return test_plan.remember("full", whole)


def check(arguments: Sequence[str]) -> int:
    """Run all that a change must pass: `lint`, then the tests."""
    return _all(lambda: lint(()), lambda: test(arguments))


def lint(_: Sequence[str]) -> int:
    """Check without tests: format, lint, types, imports between rooms, generated files."""
    return _all(
        lambda: _tool("ruff", "format", "--check", "."),
        lambda: _tool("ruff", "check", "."),
        lambda: _tool("mypy"),
        lambda: _tool("lint-imports"),
        lambda: _python("-m", "tools.generate", "--check"),
    )


def fix(_: Sequence[str]) -> int:
    """Format the code and apply the linter's fixes."""
    return _all(
        lambda: _tool("ruff", "check", "--fix", "."),
        lambda: _tool("ruff", "format", "."),
    )


def bench(arguments: Sequence[str]) -> int:
    """Run one benchmark and print its table (`./dev bench codecs`)."""
    names = sorted(each.stem for each in (ROOT / "benchmarks").glob("*.py") if each.stem[0] != "_")
    if not arguments or arguments[0] not in names:
        print(f"usage: ./dev bench NAME, where NAME is one of: {', '.join(names)}")
        return 2
    return _python("-m", f"benchmarks.{arguments[0]}", *arguments[1:])


def prove(arguments: Sequence[str]) -> int:
    """Run the long proofs with their full counts and write their results under docs/proofs."""
    return _run([PYTHON, "-m", "tools.prove", *arguments], environment=_keeping_bytecode())


def real(arguments: Sequence[str]) -> int:
    """Start or stop a real Apache Fluss on this machine (`./dev real up|down|status`)."""
    return _python("-m", "fluss_testkit", *arguments)


def generate(arguments: Sequence[str]) -> int:
    """Write the generated modules, or report with --check whether they are out of date."""
    return _python("-m", "tools.generate", *arguments)


def docs(arguments: Sequence[str]) -> int:
    """Build the documentation as a site (`./dev docs`); also `serve` and `screenshots`."""
    return _python("-m", "tools.docs.site", *arguments)


def notebooks(arguments: Sequence[str]) -> int:
    """Run the notebooks of the examples, or those named, and store them with their outputs."""
    return _python("-m", "tools.notebooks", *arguments)


def build(_: Sequence[str]) -> int:
    """Make the wheels and sdists of all packages in dist/, and check them as an index would."""
    return _python("-m", "tools.build_packages", find_uv())


def pin(_: Sequence[str]) -> int:
    """Compile constraints.txt again from the floors in the pyproject files."""
    extras = [
        word
        for extra in ("pandas", "fsspec", "snapshot", "cli", "fast")
        for word in ("--extra", extra)
    ]
    sources = ["pyproject.toml", *(f"packages/{name}/pyproject.toml" for name in PACKAGES)]
    options = [
        "--universal",
        "--python-version",
        "3.11",
        "--upgrade",
        "--no-annotate",
        "--no-header",
    ]
    groups = ["--group", "dev", "--group", "docs"]
    compiled = subprocess.run(
        [find_uv(), "pip", "compile", "--quiet", *options, *groups, *extras, *sources],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    pins = [line for line in compiled.splitlines() if not line.startswith("-e")]
    (ROOT / "constraints.txt").write_text("\n".join(pins) + "\n")
    return 0


RECIPES: dict[str, Callable[[Sequence[str]], int]] = {
    recipe.__name__: recipe
    for recipe in (demo, test, check, lint, fix, bench, prove, real, generate, docs, build, pin)
}


def main(arguments: Sequence[str]) -> int:
    """Run the recipe that the first argument names."""
    if not arguments or arguments[0] not in RECIPES:
        for name, recipe in RECIPES.items():
            print(f"./dev {name:<11}{(recipe.__doc__ or '').strip()}")
        return 0 if not arguments or arguments[0] in {"help", "-h", "--help"} else 2
    return RECIPES[arguments[0]](arguments[1:])


def _compile_once() -> None:
    """Compile the tests of a fresh clone, and what they import, in one process for each half.

    Five workers that collect the same tests at the same time would each compile all of it, which
    takes 12 s of processor time. A test that cannot be collected is reported by the run itself.
    """
    if any((ROOT / "tests").rglob("*-pytest-*.pyc")):
        return
    print("compiling the tests, once", file=sys.stderr, flush=True)
    rest = (folder for folder in test_plan.FOLDERS if folder not in test_plan.QUICK_FOLDERS)
    running = [
        subprocess.Popen(
            [PYTHON, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *half],
            cwd=ROOT,
            env=_keeping_bytecode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for half in (test_plan.QUICK_FOLDERS, tuple(rest))
    ]
    for each in running:
        each.wait()


def _test_quick(arguments: Sequence[str]) -> int:
    """Run what needs neither servers nor Java, with few examples."""
    test_plan.print_quick_plan()
    workers = () if any(word.startswith(("-n", "-p")) for word in arguments) else ("-n", "auto")
    words = ["-m", "pytest", "-q", "-m", "not slow", *workers, *test_plan.QUICK_FOLDERS, *arguments]
    environment = _keeping_bytecode() | {"FLUSS_TEST_PROFILE": "brief"}
    return test_plan.remember("quick", lambda: _run([PYTHON, *words], environment=environment))


def _all(*steps: Callable[[], int]) -> int:
    for step in steps:
        code = step()
        if code:
            return code
    return 0


def _python(*words: str) -> int:
    return _run([PYTHON, *words])


def _tool(name: str, *words: str) -> int:
    return _run([str(BIN / name), *words])


def _run(
    words: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    descriptors: Sequence[int] = (),
) -> int:
    print(f"+ {' '.join(_short(word) for word in words)}", file=sys.stderr, flush=True)
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        # Ctrl-C reaches the child as well, which ends in its own way and reports the result.
        signal.signal(signal.SIGINT, lambda *_: None)
    try:
        code = subprocess.run(
            words, cwd=ROOT, env=environment, pass_fds=descriptors, check=False
        ).returncode
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else SIGNAL_CODE - code


def _keeping_bytecode() -> dict[str, str]:
    """Return the environment without PYTHONDONTWRITEBYTECODE, which many containers set.

    The tests start hundreds of Python processes, each of which would compile every import again.
    """
    return {each: x for each, x in os.environ.items() if each != "PYTHONDONTWRITEBYTECODE"}


def _short(word: str) -> str:
    return os.path.relpath(word, ROOT) if word.startswith(str(ROOT)) else word


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
