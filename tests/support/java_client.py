"""Asks tools/Lookups.java: which rows Apache Fluss's own Java client finds under some keys."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fluss_server.java.artifact import FLUSS_CLIENT, LOG_BINDING, find_jar
from fluss_server.java.runtime import find_java

SOURCE = Path(__file__).resolve().parents[2] / "tools" / "Lookups.java"
# Arrow reads its buffers through java.nio; the rest makes a short life start fast.
_JVM_OPTIONS = (
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
    """For each primary key the row that Java finds, as texts; None for none.

    Args:
        bootstrap: The cluster.
        database: The database.
        table: A table with a primary key.
        keys: The values of each key as texts, in the table's order.

    Raises:
        MissingRuntimeError: There is no Java here, or no jar of Fluss's client.
    """
    jars = os.pathsep.join(str(find_jar(each)) for each in (FLUSS_CLIENT, LOG_BINDING))
    command = [str(find_java().executable), *_JVM_OPTIONS, "-cp", jars, str(SOURCE)]
    done = subprocess.run(
        [*command, bootstrap, database, table],
        input="\n".join(" ".join(map(_word, key)) for key in keys),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(keys), done.stderr
    return [
        None if line == "absent" else [_text(each) for each in line.split(" ")] for line in lines
    ]


def _word(text: str | None) -> str:
    assert text is not None, "a key has no NULL"
    return text.encode().hex() or "."


def _text(word: str) -> str | None:
    if word in "-.":
        return None if word == "-" else ""
    return bytes.fromhex(word).decode()
