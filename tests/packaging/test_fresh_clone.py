"""What the README tells a newcomer, done in a fresh clone, an empty environment and a terminal."""

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.house.sources import tracked_files
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.terminal import CTRL_C, Terminal
from tools.build_packages import CONSTRAINTS, ROOT

pytestmark = [
    pytest.mark.slow,  # environments are made, packages are built
    pytest.mark.timeout(900),
]

README = ROOT / "README.md"
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
PROGRAM = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)
WRITTEN_ADDRESS = "127.0.0.1:9123"
END = "=== the end of a program ==="
# pip's words, with the versions and the cache of the other tests; `prove` uses pip itself.
PIP = 'pip() { uv pip "$@" --quiet --constraint "$CONSTRAINTS"; }'


@pytest.fixture
def clone(disk_path):
    """The files under version control as they are now, and nothing else."""
    folder = disk_path / "clone"
    for path in tracked_files():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            shutil.copy2(path, target, follow_symlinks=False)
    yield folder
    shutil.rmtree(folder)  # environments of hundreds of megabytes


@pytest.fixture
def environment(uv):
    """Variables of a user who has uv, and has activated no environment."""
    kept = {name: x for name, x in os.environ.items() if not name.startswith(("FLUSS_", "VIRTUAL"))}
    path = f"{Path(uv).parent}{os.pathsep}{os.environ['PATH']}"
    # Spark and pip warn by themselves.
    strict = {} if IS_EXHAUSTIVE else {"PYTHONWARNINGS": "error"}
    return kept | strict | {"PATH": path, "CONSTRAINTS": str(CONSTRAINTS)}


def test_the_demo_needs_only_the_clone(clone, environment):
    (command,) = [line[2:] for line in commands() if "demo" in line]
    environment.pop("PYTHONWARNINGS", None)  # the installers have their own
    with Terminal(command.split(), columns=80, cwd=clone, env=environment) as terminal:
        terminal.wait_for("Ctrl-C: ask the engines", seconds=300)
        terminal.type(CTRL_C)
        assert terminal.wait() == 0, terminal.text
        assert "3 engines asked; all as in the books." in terminal.text
    assert not (clone / ".venv").exists(), "the demo needs no environment for development"


def test_the_readme_from_top_to_bottom(clone, environment):
    lines = [line[2:].partition("  #")[0].strip() for line in commands()]
    begin, end = lines.index("./dev build"), last_index(lines, "pip install")
    install = [each for each in lines[begin : end + 1] if IS_EXHAUSTIVE or "spark" not in each]
    assert install[1:3] == ["python3 -m venv env", ". env/bin/activate"]
    port = free_port()
    (server,) = [each for each in lines if each.startswith("fluss server")]
    programs = [
        each
        for each in PROGRAM.findall(README.read_text())
        if IS_EXHAUSTIVE or "fluss_spark" not in each[0]
    ]
    joined = "".join(f"{code}\nprint({END!r})\n" for code, _ in programs)
    (clone / "readme.py").write_text(joined.replace(WRITTEN_ADDRESS, f"127.0.0.1:{port}"))
    script = "\n".join(
        [
            "set -eu",
            "" if IS_EXHAUSTIVE else PIP,
            *(f"{each} >&2" for each in install),
            f"{server} --port {port} > server.log &",
            "trap 'kill $!; wait' EXIT",
            "until grep -q ready server.log; do sleep 0.05; done",
            "python readme.py",
        ]
    )
    done = subprocess.run(
        ["bash", "-c", script.replace("python3 -m venv", python_with_venv())],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    printed = done.stdout.split(f"{END}\n")
    assert done.returncode == 0, f"after {len(printed) - 1} programs: {done.stderr}"
    assert printed == [*(output for _, output in programs), ""]
    assert sorted(each.name for each in clone.iterdir() if each.name not in tracked_tops()) == [
        "data", "dist", "env", "readme.py", "server.log",
    ]  # fmt: skip


def commands():
    return [
        line
        for block in CONSOLE.findall(README.read_text())
        for line in block.splitlines()
        if line.startswith("$ ")
    ]


def last_index(lines, beginning):
    return max(at for at, line in enumerate(lines) if line.startswith(beginning))


def tracked_tops():
    return {path.relative_to(ROOT).parts[0] for path in tracked_files()} | {"__pycache__"}


def python_with_venv():
    """`python3 -m venv` of a Python that is new enough; the machine's python3 may be older."""
    import sys

    return f"{getattr(sys, '_base_executable', sys.executable)} -m venv"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
