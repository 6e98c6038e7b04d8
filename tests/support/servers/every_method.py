"""Runs tools/every_method, which calls all methods of Java's client 1.0.0, and reads its table.

The table, tools/tables/every_method.csv, has a line for each case, with the answers of three
servers: Fluss 0.9.1, a server that was built from Fluss's main line, and the embedded one.
`python -m tools.record_every_method` writes a column; `./dev generate` makes a page of it.
"""

from __future__ import annotations

import csv
import io
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fluss.errors import MissingRuntimeError
from fluss_testkit.artifact import FLUSS_CLIENT_1_0, LOG_BINDING, find_jar
from fluss_testkit.java_runtime import find_java
from tests.support.java_programs import java_command
from tests.support.servers.java_client import JVM_OPTIONS, TOOLS

TABLE = TOOLS / "tables" / "every_method.csv"
SERVERS = ("0.9.1", "main", "embedded")
_FIELDS = ("case", "methods", *SERVERS, "difference")
_TIMEOUT_S = 300
OK = "ok"
NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server answered in one case, as the program prints it.

    Attributes:
        case: The name of the case.
        methods: The methods that the case called.
        text: `ok`, and the essence of the answer; or the error's code and the class of the error.
    """

    case: str
    methods: str
    text: str


def call_every_method(bootstrap: str, *, database: str, user: str, password: str) -> list[Answer]:
    """Run the program on a server.

    Args:
        bootstrap: The address for users with a password.
        database: A database that does not exist.
        user: A user who may do everything.
        password: The user's password.

    Raises:
        MissingRuntimeError: There is no JDK here, or no jar of Fluss's client.
    """
    java = find_java()
    if java.compiler is None:
        raise MissingRuntimeError("tools/every_method needs a compiler.", hint="install a JDK.")
    jars = [find_jar(each) for each in (FLUSS_CLIENT_1_0, LOG_BINDING)]
    main = TOOLS / "every_method" / "EveryMethod.java"
    others = sorted(each for each in main.parent.glob("*.java") if each != main)
    command = java_command(java, JVM_OPTIONS, jars, [main, *others])
    return read_answers(_run([*command, bootstrap, database, user, password]))


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_answers(printed: str) -> list[Answer]:
    """Read what the program prints."""
    lines = [line.split("\t") for line in printed.splitlines()]
    return [
        Answer(case=case, methods=methods, text=f"{outcome}: {essence}" if essence else outcome)
        for case, methods, outcome, essence in lines
    ]


def read_table(path: Path = TABLE) -> list[dict[str, str]]:
    """Return the lines of the table."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_table(lines: Sequence[dict[str, str]], path: Path = TABLE) -> None:
    """Write the lines of the table."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    path.write_text(text.getvalue(), encoding="utf-8")


def answers_of(server: str) -> dict[str, str]:
    """The answers of a server by case, as recorded."""
    return {line["case"]: line[server] for line in read_table()}
