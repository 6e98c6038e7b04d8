"""The programs of the README and of the guides run, and print the output on the page."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)
WRITTEN_ADDRESS = "127.0.0.1:9123"
GUIDE = sorted((ROOT / "docs/guide").glob("*.md"))
IN_A_TERMINAL = ROOT / "docs/guide/terminal.md"
# Spark's programs run in the session of its tests: tests/engines/spark/test_guide.py.
SPARK = "import fluss_spark"
# Its programs are streaming queries; tests/engines/spark/test_exactly_once.py runs similar ones.
FOR_SPARK = ROOT / "docs/guide/exactly-once.md"
PAGES = [ROOT / "README.md", *(each for each in GUIDE if each not in {IN_A_TERMINAL, FOR_SPARK})]
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
END = "=== the end of a program ==="


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_program_prints_the_output_on_its_page(cluster, page):
    programs = [each for each in PROGRAM.findall(page.read_text()) if SPARK not in each[0]]
    assert programs
    joined = "".join(f"{code}\nprint({END!r})\n" for code, _ in programs)
    assert WRITTEN_ADDRESS in joined
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", joined.replace(WRITTEN_ADDRESS, cluster.bootstrap)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    printed = done.stdout.split(f"{END}\n")
    assert (done.returncode, done.stderr) == (0, ""), f"after {len(printed) - 1} programs"
    assert printed == [*(output for _, output in programs), ""]


def test_a_terminal_shows_the_output_on_its_page(cluster, tmp_path):
    (session,) = CONSOLE.findall(IN_A_TERMINAL.read_text())
    commands = [line[2:] for line in session.splitlines() if line.startswith("$ ")]
    script = "\n".join(f"echo {shlex.quote(f'$ {each}')}\n{each}" for each in commands)
    scripts = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={
            **os.environ,
            "FLUSS_BOOTSTRAP_SERVERS": cluster.bootstrap,
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == session


def test_what_is_installed_exists():
    text = (ROOT / "README.md").read_text()
    lines = re.findall(r"pip install --find-links dist (.*?)(?:  #.*)?\n", text)
    found = re.findall(r"(fluss-\w+)(?:\[([\w,]+)\])?", " ".join(lines))
    # The test kit is not for users; the README lists it in the table of packages.
    assert len(found) + 1 == len(list((ROOT / "packages").iterdir()))
    assert "(packages/fluss-testkit)" in text
    for name, extras in found:
        project = tomllib.loads((ROOT / "packages" / name / "pyproject.toml").read_text())
        known = project["project"].get("optional-dependencies", {})
        assert set(filter(None, extras.split(","))) <= set(known), name
