"""Compiles the Java programs of the tests once for each machine, and says how to run them.

`java Program.java` compiles the program in the JVM that runs it: 0.5 to 0.9 s of processor time for
each start. Here the class files are kept in the user's cache, in a folder that is named after all
that they depend on. Where there is no compiler, or no cache, the program runs from its source.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fluss_testkit.cache_paths import cache_dir
from fluss_testkit.java_runtime import JavaRuntime

COMPILE_TIMEOUT_S = 120
_HASH_LENGTH = 16


def java_command(
    java: JavaRuntime, options: Sequence[str], jars: Sequence[Path], sources: Sequence[Path]
) -> list[str]:
    """Return the command that runs the main class of the first source.

    Args:
        java: The Java that compiles and runs the program.
        options: What the JVM is given.
        jars: What the program is compiled against, and runs with.
        sources: The files of the program; a file has the name of its class.
    """
    java_and_options = [str(java.executable), *options, "-cp"]
    try:
        classes = compiled(java, jars, sources)
    except OSError:
        classes = None  # for example a cache that may not be written
    if classes is None:
        return [*java_and_options, _class_path(jars), str(sources[0])]
    return [*java_and_options, _class_path([*jars, classes]), sources[0].stem]


def compiled(java: JavaRuntime, jars: Sequence[Path], sources: Sequence[Path]) -> Path | None:
    """Return the folder with the class files; None without a compiler.

    Raises:
        OSError: The cache cannot be written.
        AssertionError: The sources do not compile; the message is the compiler's.
    """
    if java.compiler is None:
        return None
    target = cache_dir() / "test-programs" / _fingerprint(java, jars, sources)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".compiling-") as scratch:
        classes = Path(scratch) / "classes"
        options = ["-nowarn", "-proc:none", "-cp", _class_path(jars), "-d", str(classes)]
        done = subprocess.run(
            [str(java.compiler), *options, *map(str, sources)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMPILE_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        with suppress(OSError):  # another process was faster, and compiled the same
            classes.rename(target)
    return target


def _fingerprint(java: JavaRuntime, jars: Sequence[Path], sources: Sequence[Path]) -> str:
    digest = hashlib.sha256(f"{java.version}".encode())
    for source in sources:
        digest.update(source.name.encode() + source.read_bytes())
    for jar in jars:
        facts = jar.stat()
        digest.update(f"{jar.name} {facts.st_size} {facts.st_mtime_ns}".encode())
    return digest.hexdigest()[:_HASH_LENGTH]


def _class_path(places: Sequence[Path]) -> str:
    return os.pathsep.join(map(str, places))
