"""Asks tools/FrameOracle.java many questions in one short-lived JVM."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from fluss.errors import MissingRuntimeError
from fluss_testkit.artifact import FLUSS_SERVER, find_jar
from fluss_testkit.java_runtime import find_java
from tests.support.java_programs import java_command

SOURCE = Path(__file__).resolve().parents[3] / "tools" / "FrameOracle.java"
# Options for a fast start of a short-lived JVM.
_JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
_TIMEOUT_S = 60
_JAVA_FLOOR = 17


def ask_java(questions: Sequence[str]) -> list[str]:
    """One answer for each question; see the Java file for both.

    Raises:
        MissingRuntimeError: There is no Java here, or no jar of the Fluss server.
    """
    java = find_java()
    if java.version < _JAVA_FLOOR:
        raise MissingRuntimeError(
            f"the Java at {java.executable} is version {java.version}, the oracle needs "
            f"{_JAVA_FLOOR}.",
            hint="install a newer JDK, or point JAVA_HOME at one.",
        )
    done = subprocess.run(
        java_command(java, _JVM_OPTIONS, [find_jar(FLUSS_SERVER)], [SOURCE]),
        input="\n".join(questions),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert len(answers) == len(questions)
    return answers
