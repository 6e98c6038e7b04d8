"""Every example runs, prints the lines of its docstring, and is short."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

# The pages of the guide run on both.
pytestmark = pytest.mark.one_server

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
LINES_MAX = 60


def promised(path):
    head = ast.get_docstring(ast.parse(path.read_text()))
    _, _, lines = head.partition("Prints:\n")
    return "".join(f"{line.removeprefix('    ')}\n" for line in lines.splitlines())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_the_lines_of_its_docstring(cluster, path):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path), cluster.bootstrap],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, promised(path), "")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_shows_how_to_run_it(path):
    text = path.read_text()
    assert text.count("\n") <= LINES_MAX
    assert f"python examples/{path.name} [127.0.0.1:9123]" in text


def test_there_are_examples():
    assert len(EXAMPLES) > 5
