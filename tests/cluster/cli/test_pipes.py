"""A reader that closes the pipe (`| head -1`) ends every command with 141 and without a message."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import pytest

COMMANDS = [
    ["--help"],
    ["demo", "--help"],
    ["ls"],
    ["describe", "{table}"],
    ["describe", "{table}", "-o", "json"],
    ["count", "{table}"],
    ["count", "{table}", "-o", "json"],
    ["ls", "-l"],
    ["offsets", "{table}"],
    ["doctor"],
    ["config", "explain"],
    ["completion", "bash"],
    ["delete", "{table}", "--where", "id > 0", "--dry-run"],
    ["lookup", "{table}", "1"],
    ["tail", "{table}"],
    ["tail", "{table}", "-f"],
    *(["head", "{table}", "-o", form] for form in ("table", "json", "csv", "arrow")),
    *(["export", "{table}", "-", "--file-format", form] for form in ("json", "csv", "arrow")),
    ["export", "{table}", "-", "--file-format", "parquet"],
    *(["sql", "FROM fluss('{table}')", "-o", form] for form in ("table", "json", "csv", "arrow")),
    ["demo", "--rounds", "1"],
]


@contextmanager
def closed_pipe() -> Iterator[TextIO]:
    """An output with a closed reader."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out:
        yield out


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_closed_pipe_ends_every_command_quietly(run, people, monkeypatch, words):
    with closed_pipe() as out:
        monkeypatch.setattr(sys, "stdout", out)
        done = run(*(each.format(table=people) for each in words))
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_is_reported(run, people, monkeypatch):
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a standard output is no path
        monkeypatch.setattr(sys, "stdout", full)
        done = run("head", people)
    assert done.returncode == 1
    assert done.said == "fluss: the standard output: No space left on device\n"


@pytest.mark.parametrize(
    "words", ['sql "SELECT * FROM range(300000)"', "export {table} -", "head {table} -n 50000"]
)
def test_head_ends_a_process_quietly(session, database, program, words):
    table = session.create_table("many", {"n": [0]}, buckets=1)
    table.append({"n": list(range(50_000))})
    line, environment = program
    command = " ".join(f"'{each}'" for each in line) + " " + words.format(table=table.name)
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -1; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        timeout=60,
        check=False,
        env=environment,
    )
    assert (done.stdout.splitlines()[1:], done.stderr) == ([b"141"], b"")


@pytest.mark.parametrize(
    ("closing", "code", "said"),
    [(">&-", 1, "fluss: Bad file descriptor\n"), ("2>&- >&2", 1, ""), ("<&-", 0, "")],
)
def test_a_closed_stream_ends_no_process_by_force(people, program, closing, code, said):
    line, environment = program
    command = " ".join(f"'{each}'" for each in line)
    done = subprocess.run(
        ["bash", "-c", f"{command} ls {closing}"],
        capture_output=True, text=True, timeout=60, check=False, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, said)
