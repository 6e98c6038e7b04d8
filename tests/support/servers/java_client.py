"""Runs small programs that use Apache Fluss's own Java client.

tools/Lookups.java prints the rows of some keys; tools/Shop.java creates tables, writes, reads,
looks up and drops; tools/Rescaled.java does what only the client of 1.0 can;
tools/LakeSnapshots.java asks for snapshots of a lake, and tools/ReadKvSnapshots.java reads those
of rows by key.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from fluss_testkit.artifact import (
    FLUSS_CLIENT,
    FLUSS_CLIENT_1_0,
    LOG_BINDING,
    Artifact,
    find_jar,
)
from fluss_testkit.java_runtime import find_java
from tests.support.java_programs import java_command

TOOLS = Path(__file__).resolve().parents[3] / "tools"
# Arrow accesses its buffers through java.nio; the rest speeds up the start of a short-lived JVM.
JVM_OPTIONS = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
)
_TIMEOUT_S = 120

Texts = Sequence[str | None]


def look_up(
    bootstrap: str, database: str, table: str, keys: Sequence[Texts]
) -> list[list[str | None] | None]:
    """Return for each primary key the row that Java finds, as texts; None for none.

    Args:
        bootstrap: The cluster.
        database: The database.
        table: A table with a primary key.
        keys: The values of each key as texts, in the table's order.

    Raises:
        MissingRuntimeError: There is no Java here, or no jar of Fluss's client.
    """
    questions = "\n".join(" ".join(map(_word, key)) for key in keys)
    done = _run("Lookups", bootstrap, database, table, questions=questions)
    lines = done.stdout.splitlines()
    assert len(lines) == len(keys), done.stderr
    return [
        None if line == "absent" else [_text(each) for each in line.split(" ")] for line in lines
    ]


def run_shop(bootstrap: str, database: str) -> list[str]:
    """Return the output of the Java client's shop program, which creates the database.

    Raises:
        MissingRuntimeError: There is no Java here, or no jar of Fluss's client.
    """
    return _run("Shop", bootstrap, database).stdout.splitlines()


def run_rescaled(bootstrap: str, database: str) -> list[str]:
    """Return the output of the program for the Java client 1.0.0; the database has its table.

    Raises:
        MissingRuntimeError: There is no Java here, or no jar of Fluss's client.
    """
    return _run("Rescaled", bootstrap, database, client=FLUSS_CLIENT_1_0).stdout.splitlines()


def ask_for_snapshots(
    bootstrap: str, database: str, table: str, snapshot_id: int, new_table: str, client: Artifact
) -> list[str]:
    """Return what a Java client receives of the snapshots of a table; it creates another one.

    Raises:
        MissingRuntimeError: There is no Java here, or no jar of Fluss's client.
    """
    arguments = (bootstrap, database, table, str(snapshot_id), new_table)
    return _run("LakeSnapshots", *arguments, client=client).stdout.splitlines()


def read_kv_snapshots(
    bootstrap: str, database: str, table: str
) -> tuple[list[tuple[str, int, int, int]], list[list[str]]]:
    """Return what the Java client 1.0.0 reads from the newest KV snapshots of a table.

    Returns:
        Partition (or "-"), bucket, snapshot id and log offset of each bucket; the rows as texts.

    Raises:
        MissingRuntimeError: There is no Java here, or no jar of Fluss's client.
    """
    done = _run("ReadKvSnapshots", bootstrap, database, table, client=FLUSS_CLIENT_1_0)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    buckets = [
        (words[1], int(words[2]), int(words[3]), int(words[4]))
        for words in lines
        if words[0] == "bucket"
    ]
    return buckets, [words[1:] for words in lines if words[0] == "row"]


def _run(
    program: str, *arguments: str, questions: str = "", client: Artifact = FLUSS_CLIENT
) -> subprocess.CompletedProcess[str]:
    jars = [find_jar(each) for each in (client, LOG_BINDING)]
    command = java_command(find_java(), JVM_OPTIONS, jars, [TOOLS / f"{program}.java"])
    done = subprocess.run(
        [*command, *arguments],
        input=questions,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def _word(text: str | None) -> str:
    assert text is not None, "a key has no NULL"
    return text.encode().hex() or "."


def _text(word: str) -> str | None:
    if word in "-.":
        return None if word == "-" else ""
    return bytes.fromhex(word).decode()
