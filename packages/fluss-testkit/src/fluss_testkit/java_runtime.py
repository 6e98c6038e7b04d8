"""Finds a Java that can run Fluss, and whether it has a compiler.

`JAVA_HOME` comes first, then `java` on the PATH. A JDK compiles our launcher, so that one JVM can
host a whole cluster; a JRE runs the jar's own main classes, one process each.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fluss.errors import MissingRuntimeError

VERSION_MIN = 11
ASK_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaRuntime:
    """A Java on this machine."""

    executable: Path
    home: Path
    version: int

    @property
    def compiler(self) -> Path | None:
        """Its javac; None in a JRE."""
        path = self.home / "bin" / "javac"
        return path if path.exists() else None


def find_java() -> JavaRuntime:
    """Return the Java to use.

    Raises:
        MissingRuntimeError: There is none, or it is too old.
    """
    executable = _executable()
    properties = _ask(executable)
    version = _feature_version(properties.get("java.version", ""))
    if version < VERSION_MIN:
        raise MissingRuntimeError(
            f"the Java at {executable} is version {version or 'unknown'}; "
            f"Fluss needs {VERSION_MIN} or newer.",
            hint="install a newer JDK, or point JAVA_HOME at one.",
            path=str(executable),
            version=version,
        )
    home = Path(properties.get("java.home") or executable.resolve().parent.parent)
    return JavaRuntime(executable=executable, home=home, version=version)


def _executable() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        found = shutil.which("java", path=str(Path(home) / "bin"))
        if found is None:
            raise MissingRuntimeError(
                f"JAVA_HOME is {home!r}, but there is no Java in its bin directory.",
                hint="point JAVA_HOME at a JDK, or unset it to use the java on the PATH.",
                path=home,
            )
        return Path(found)
    found = shutil.which("java")
    if found is None:
        raise MissingRuntimeError(
            "a real Fluss needs Java, and there is none: JAVA_HOME is not set and no java is on "
            "the PATH.",
            hint=f"install a JDK, {VERSION_MIN} or newer.",
        )
    return Path(found)


def _ask(executable: Path) -> dict[str, str]:
    """Return the system properties of a Java."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        # JAVA_HOME and the PATH are the user's own choice of program.
        answer = subprocess.run(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASK_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingRuntimeError(
            f"the Java at {executable} does not run: {error}.",
            hint="repair it, or point JAVA_HOME at another JDK.",
            path=str(executable),
        ) from error
    lines = (answer.stderr + answer.stdout).splitlines()
    pairs = (line.split(" = ", 1) for line in lines if " = " in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _feature_version(text: str) -> int:
    """Return the feature version: 17 for `17.0.15`, 8 for `1.8.0_392`."""
    match = re.match(r"(?:1\.)?(\d+)", text)
    return int(match.group(1)) if match else 0
