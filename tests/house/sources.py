"""The files of the packages, each read and parsed once for all the rules that look at it."""

import ast
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "packages/fluss-core/src/fluss"
BINARY = {".png", ".bin", ".parquet"}


@cache
def package_files():
    """The Python files of all packages, without the generated ones."""
    return tuple(
        path
        for path in sorted(ROOT.glob("packages/*/src/**/*.py"))
        if "_generated" not in path.parts and "__pycache__" not in path.parts
    )


@cache
def text_of(path):
    """The text of a file."""
    return path.read_text(errors="replace")


@cache
def tree_of(path):
    """The syntax tree of a Python file; a rule must not change it."""
    return ast.parse(text_of(path))


@cache
def tracked_files():
    """The files under version control; a test is skipped where there is no list of them."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout, so there is no list of tracked files")
    return tuple(ROOT / line for line in listed.stdout.splitlines())


def tracked_texts():
    """The tracked files that hold text, with their texts."""
    for path in tracked_files():
        if path.suffix not in BINARY and path.is_file():
            yield path, text_of(path)
