"""Writes the generated files: `python -m tools.generate [--check]`.

The protobuf classes come from tools/proto/fluss_api.proto, the error codes from
tools/tables/error_codes.csv, and pages and pictures of docs, and the typed arguments of scans, from
what the packages declare. With --check nothing is written: differences are printed, and the exit
code is 1. The compiler is old on purpose and has a private environment: protobuf's runtimes accept
modules of older compilers and refuse those of newer ones.
"""

from __future__ import annotations

import csv
import difflib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.docs.generated import generated_docs
from tools.typed_arguments import scan_arguments

ROOT = Path(__file__).resolve().parent.parent
FLUSS = ROOT / "packages" / "fluss-core" / "src" / "fluss"
PROTO = ROOT / "tools" / "proto" / "fluss_api.proto"
ERROR_CODES = ROOT / "tools" / "tables" / "error_codes.csv"
PRIVATE = ROOT / ".dev" / "generate"

# STOP AND READ: modules made by this compiler need at least protobuf 4.25; if you change it, change
# `protobuf>=` in packages/fluss-core/pyproject.toml too, and import the result under that version
# and under the newest one with warnings as errors.
COMPILER = "grpcio-tools==1.62.3"
# The compiler has wheels for these versions of Python; later ones would have to build it.
COMPILER_PYTHON_MAX = (3, 12)

# protobuf registers messages under the path of their file, in one table per process.
MESSAGES = "fluss/wire/_generated/messages"
DIFF_LINES_MAX = 12


class CompilerMissingError(Exception):
    """The private environment with the compiler cannot be made."""


def main(arguments: Sequence[str]) -> int:
    """Write the generated files, or compare them with --check."""
    if set(arguments) - {"--check"}:
        print("usage: python -m tools.generate [--check]", file=sys.stderr)
        return 2
    try:
        expected = {
            **generate_messages(),
            **generate_error_codes(),
            **generate_scan_arguments(),
            **generate_docs(),
        }
    except CompilerMissingError as error:
        print(f"generate: {error}", file=sys.stderr)
        return 2
    if "--check" in arguments:
        return _compare(expected)
    for path, text in expected.items():
        path.write_text(text, encoding="utf-8")
    return 0


def generate_messages() -> dict[Path, str]:
    """Compile the protobuf messages: a module and its types."""
    compiler = _compiler()
    with tempfile.TemporaryDirectory() as folder:
        staged = Path(folder) / f"{MESSAGES}.proto"
        staged.parent.mkdir(parents=True)
        shutil.copyfile(PROTO, staged)
        subprocess.run(
            [
                compiler,
                "-m",
                "grpc_tools.protoc",
                f"-I{folder}",
                f"--python_out={folder}",
                f"--pyi_out={folder}",
                staged,
            ],
            check=True,
        )
        made = [staged.with_name("messages_pb2.py"), staged.with_name("messages_pb2.pyi")]
        return {
            FLUSS / "wire" / "_generated" / module.name: f"# {_origin(PROTO)}\n{module.read_text()}"
            for module in made
        }


def generate_error_codes() -> dict[Path, str]:
    """Write the table of error codes as an enum."""
    with ERROR_CODES.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    def those_with(column: str, value: str = "yes") -> str:
        return ", ".join(row["code"] for row in rows if row[column] == value)

    members = "\n".join(f"    {row['name']} = {row['code']}, {row['sentence']!r}" for row in rows)
    text = f'''"""{_origin(ERROR_CODES)}

The codes with which a server says why it refused, as the protocol numbers them. Which exception a
code becomes is decided in `fluss.errors`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class ErrorCode(IntEnum):
    """Why a request failed; `CLIENT_ERROR` stands for refusals of the client itself.

    Attributes:
        sentence: What the code says, for answers that come without a message.
    """

    sentence: str

    def __new__(cls, number: int, sentence: str = "") -> Self:
        """Make a member from its line."""
        code = int.__new__(cls, number)
        code._value_ = number
        code.sentence = sentence
        return code

{members}

    @property
    def is_retriable(self) -> bool:
        """Whether the same request may succeed later."""
        return self in _RETRIABLE

    @property
    def refreshes_metadata(self) -> bool:
        """Whether leaders should be looked up again before the request is repeated."""
        return self in _REFRESH_METADATA

    @property
    def since(self) -> str:
        """The first release of Fluss that answers with this code, 0.9 standing for all before."""
        return "1.0" if self in _SINCE_1_0 else "0.9"


_RETRIABLE = frozenset({{{those_with("retriable")}}})
_REFRESH_METADATA = frozenset({{{those_with("refresh_metadata")}}})
_SINCE_1_0 = frozenset({{{those_with("since", "1.0")}}})
'''
    path = FLUSS / "error_codes.py"
    return {path: _formatted(text, path)}


def generate_scan_arguments() -> dict[Path, str]:
    """Write the options of scans as typed arguments."""
    path = FLUSS / "model" / "options" / "scan_arguments.py"
    return {path: _formatted(scan_arguments(), path)}


def generate_docs() -> dict[Path, str]:
    """Write the pages and pictures of the documentation that are made from the code."""
    return {ROOT / "docs" / name: text for name, text in generated_docs().items()}


def _origin(source: Path) -> str:
    return f"Generated by `python -m tools.generate` from {source.relative_to(ROOT)}; do not edit."


def _formatted(text: str, path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", path, "-"],
        cwd=ROOT,
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def _compare(expected: Mapping[Path, str]) -> int:
    stale = 0
    for path, text in expected.items():
        there = path.read_text(encoding="utf-8") if path.exists() else ""
        if there == text:
            continue
        stale = 1
        lines = list(difflib.unified_diff(there.splitlines(), text.splitlines(), lineterm="", n=0))
        changed = [line[:100] for line in lines[2:] if not line.startswith("@@")]
        print(f"generate: {path.relative_to(ROOT)} is out of date, {len(changed)} lines differ:")
        for line in changed[:DIFF_LINES_MAX]:
            print(f"    {line}")
    if stale:
        print("generate: run `python -m tools.generate` and commit the result")
    return stale


def _compiler() -> str:
    """Return the Python of the private environment; make the environment on first use."""
    python = PRIVATE / "bin" / "python"
    made_from = PRIVATE / "made-from"
    if made_from.exists() and made_from.read_text() == COMPILER:
        return str(python)
    print(f"generate: making {PRIVATE.relative_to(ROOT)} with {COMPILER} (once)", file=sys.stderr)
    for step in _steps(str(python), str(PRIVATE)):
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
            raise CompilerMissingError(
                f"cannot install {COMPILER} into {PRIVATE.relative_to(ROOT)} "
                f"(needed once, from a package index, for Python 3.11 or 3.12): {lines[-1]}"
            )
    made_from.write_text(COMPILER)
    return str(python)


def _steps(python: str, folder: str) -> list[list[str]]:
    uv = _uv()
    if uv is None:
        return [
            [sys.executable, "-m", "venv", "--clear", folder],
            [python, "-m", "pip", "install", "--quiet", COMPILER],
        ]
    return [
        [uv, "venv", "--quiet", "--clear", "--python", _python_version(), folder],
        [uv, "pip", "install", "--quiet", "--python", python, COMPILER],
    ]


def _python_version() -> str:
    version = min(sys.version_info[:2], COMPILER_PYTHON_MAX)
    return ".".join(map(str, version))


def _uv() -> str | None:
    private = ROOT / ".dev" / "uv" / "bin" / "uv"
    return shutil.which("uv") or (str(private) if private.exists() else None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
