"""Runs the steps of pages in one process, so that engines are imported once for all of them.

`PageRunner` is the test's side. The process reads one page per line of its standard input, and
answers with what each step has printed. A page has a directory and names of its own; databases,
tables, modules and variables of the environment that it made are removed after it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.support.pages.page_steps import Step

ROOT = Path(__file__).resolve().parents[3]
WRITTEN_ADDRESS = "127.0.0.1:9123"
CONSOLE_TIMEOUT_S = 120
# Plugins of our own tests, which a reader need not have.
PYTEST_OPTIONS = "-p no:asyncio -p no:anyio -p no:cacheprovider -p no:randomly"


class PageRunner:
    """A process that runs pages."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.support.pages.page_runner"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, steps: list[Step], folder: Path, bootstrap: str) -> dict[str, Any]:
        """Run the steps of a page against a server.

        Returns:
            `printed`, by step; `error`, a traceback or None; `stderr`.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        page = {
            "folder": str(folder),
            "steps": [asdict(each) for each in steps],
            "bootstrap": bootstrap,
        }
        self._process.stdin.write(json.dumps(page) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()


def main() -> None:
    """Run the pages that come on the standard input."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library writes to the standard output is no answer
    for line in sys.stdin:
        page = json.loads(line)
        answer = run_page(page["steps"], page["folder"], page["bootstrap"])
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def run_page(steps: list[dict[str, str]], folder: str, bootstrap: str) -> dict[str, Any]:
    """Run the steps of one page, and remove what they made."""
    printed: list[str] = []
    errors = io.StringIO()
    names: dict[str, Any] = {"__name__": "__main__"}
    answer: dict[str, Any] = {"printed": printed, "error": None}
    with _own_place(folder, bootstrap), contextlib.redirect_stderr(errors):
        for step in steps:
            text = step["text"].replace(WRITTEN_ADDRESS, bootstrap)
            try:
                printed.append(_run_step(step["kind"], step["name"], text, names))
            except BaseException:  # noqa: BLE001 - whatever it is, the test reports it
                answer["error"] = traceback.format_exc()
                break
        names.clear()
    return answer | {"stderr": errors.getvalue()}


def _run_step(kind: str, name: str, text: str, names: dict[str, Any]) -> str:
    if kind == "file":
        Path(name).write_text(text)
        return ""
    if kind == "console":
        return _in_terminal(text)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        code = compile(text, "<page>", "exec", dont_inherit=True)  # not with our annotations
        exec(code, names)  # noqa: S102 - the page's own
    return output.getvalue()


def _in_terminal(session: str) -> str:
    commands = [line[2:] for line in session.splitlines() if line.startswith("$ ")]
    script = "\n".join(f"echo {shlex.quote(f'$ {each}')}\n{each}" for each in commands)
    done = subprocess.run(
        ["bash", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=CONSOLE_TIMEOUT_S,
        check=False,
    )
    return done.stdout


@contextlib.contextmanager
def _own_place(folder: str, bootstrap: str) -> Any:
    modules, environment = set(sys.modules), dict(os.environ)
    before = _tables(bootstrap)
    scripts = Path(sys.executable).parent
    os.environ["FLUSS_BOOTSTRAP_SERVERS"] = bootstrap
    os.environ["PYTEST_ADDOPTS"] = PYTEST_OPTIONS
    os.environ["PATH"] = f"{scripts}{os.pathsep}{os.environ['PATH']}"
    os.chdir(folder)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        os.chdir(ROOT)
        os.environ.clear()
        os.environ.update(environment)
        for name in set(sys.modules) - modules:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and file.startswith(folder):
                del sys.modules[name]
        _drop(bootstrap, before)


def _tables(bootstrap: str) -> dict[str, list[str]]:
    import fluss

    with fluss.connect(f"fluss://{bootstrap}") as session:
        return {each: session.tables(each) for each in session.databases()}


def _drop(bootstrap: str, before: dict[str, list[str]]) -> None:
    import fluss

    with fluss.connect(f"fluss://{bootstrap}") as session:
        for database in session.databases():
            if database not in before:
                session.drop_database(database, cascade=True)
                continue
            for table in set(session.tables(database)) - set(before[database]):
                session.drop_table(f"{database}.{table}")


if __name__ == "__main__":
    main()
